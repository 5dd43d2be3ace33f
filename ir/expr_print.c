/* Text of a scalar expression, linear in its size: a node that is used more than once is named first.
 *     {t0 = b0[a0, a1] * 2:f32; t0 * t0 + t0}
 * Axes are a0, a1, ..., loads b<buffer>[indices], a load with a default b<buffer>[indices else value],
 * reductions r0, dims stand in brackets: [4 * s0]. Constants of other types than i64 and bool carry their
 * type. Nothing of the model's own text appears. */
#include "ir/expr.h"

#include "ir/expr_internal.h"

#include <inttypes.h>
#include <string.h>

struct printer {
    const struct exprs *pool;
    struct text *out;
    struct expr_walk walk;
    uint32_t *uses;  /* by position */
    uint32_t *names; /* name + 1 of nodes that are named */
};

static void print_node(struct printer *printer, expr e, bool inner);

static void print_constant(struct printer *printer, const struct expr_node *node)
{
    double value;
    if (node->dtype == DTYPE_BOOL) {
        text_put(printer->out, node->value ? "true" : "false");
        return;
    }
    if (dtype_is_float(node->dtype)) {
        uint64_t bits = (uint64_t)node->value;
        if (node->dtype == DTYPE_F32) {
            uint32_t word = (uint32_t)bits;
            float single;
            memcpy(&single, &word, sizeof single);
            text_put_f32(printer->out, single);
        } else if (node->dtype == DTYPE_F64) {
            memcpy(&value, &bits, sizeof value);
            text_put_f64(printer->out, value);
        } else {
            text_printf(printer->out, "0x%" PRIx64, bits);
        }
    } else if (dtype_class(node->dtype) == DTYPE_CLASS_UINT) {
        text_printf(printer->out, "%" PRIu64, (uint64_t)node->value);
    } else {
        text_printf(printer->out, "%" PRId64, node->value);
    }
    if (node->dtype != DTYPE_I64)
        text_printf(printer->out, ":%s", dtype_name(node->dtype));
}

static void print_list(struct printer *printer, const struct expr_node *node, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        if (i > first)
            text_put(printer->out, ", ");
        print_node(printer, node->arguments[i], false);
    }
}

static void print_leaf(struct printer *printer, const struct expr_node *node)
{
    struct text *out = printer->out;
    switch (node->op) {
    case EXPR_CONSTANT:
        print_constant(printer, node);
        break;
    case EXPR_AXIS:
        text_printf(out, "a%" PRId64, node->value);
        break;
    case EXPR_DIM:
        text_put(out, "[");
        dim_print(printer->pool->dims, (dim)node->value, out);
        text_put(out, "]");
        break;
    case EXPR_LOAD:
    case EXPR_LOAD_OR: {
        uint32_t rank = node->op == EXPR_LOAD_OR ? node->count - 1u : node->count;
        text_printf(out, "b%" PRId64 "[", node->value);
        print_list(printer, node, 0, rank);
        if (node->op == EXPR_LOAD_OR) {
            text_put(out, rank ? " else " : "else ");
            print_node(printer, node->arguments[rank], false);
        }
        text_put(out, "]");
        break;
    }
    default:
        text_printf(out, "r%" PRId64, node->value);
        break;
    }
}

static void print_kernel(struct printer *printer, const struct expr_node *node)
{
    struct text *out = printer->out;
    switch (node->op) {
    case EXPR_VARIABLE:
        text_printf(out, "v%" PRId64, node->value);
        break;
    case EXPR_ELEMENT:
        text_printf(out, "m%" PRId64 "[", node->value);
        print_list(printer, node, 0, 1);
        text_put(out, "]");
        break;
    case EXPR_THREAD_INDEX:
    case EXPR_BLOCK_INDEX:
        text_printf(out, "%s.%c", expr_op_name(node->op), "xyz?"[node->value & 3]);
        break;
    default:
        text_printf(out, "%s", expr_op_name(node->op));
        if (node->op == EXPR_LANE || node->op == EXPR_SHUFFLE_XOR)
            text_printf(out, "<%" PRId64 ">", node->value);
        text_put(out, "(");
        print_list(printer, node, 0, node->count);
        text_put(out, ")");
        break;
    }
    if (node->lanes > 1)
        text_printf(out, ":%u", (unsigned)node->lanes);
}

/* `inner`: an operand of an infix operator, which needs parentheses when it is infix itself. */
static void print_operation(struct printer *printer, const struct expr_node *node, bool inner)
{
    struct text *out = printer->out;
    enum expr_class class = expr_class_of(node->op);
    if (class == EXPR_LEAF) {
        print_leaf(printer, node);
    } else if (class == EXPR_KERNEL) {
        print_kernel(printer, node);
    } else if (node->count == 2 && node->op != EXPR_MIN && node->op != EXPR_MAX && node->op != EXPR_POW) {
        text_put(out, inner ? "(" : "");
        print_node(printer, node->arguments[0], true);
        text_printf(out, " %s ", expr_op_name(node->op));
        print_node(printer, node->arguments[1], true);
        text_put(out, inner ? ")" : "");
    } else {
        text_put(out, expr_op_name(node->op));
        if (class == EXPR_CONVERSION)
            text_printf(out, "<%s>", dtype_name(node->dtype));
        text_put(out, "(");
        print_list(printer, node, 0, node->count);
        text_put(out, ")");
    }
}

static void print_node(struct printer *printer, expr e, bool inner)
{
    uint32_t name = printer->names[expr_walk_position(&printer->walk, e)];
    if (name)
        text_printf(printer->out, "t%" PRIu32, name - 1);
    else
        print_operation(printer, expr_at(printer->pool, e), inner);
}

/* Parts this deep are named although they are used once, so that printing does not recurse without bound. */
enum { MAX_NESTING = 64 };

void expr_print(const struct exprs *pool, expr e, struct text *out)
{
    struct printer printer = {.pool = pool, .out = out};
    expr_walk_init(&printer.walk, out->arena);
    expr_walk_add(&printer.walk, pool, e);
    expr_walk_finish(&printer.walk);
    uint32_t count = printer.walk.order.count, named = 0;
    printer.uses = arena_new_array(out->arena, uint32_t, count);
    printer.names = arena_new_array(out->arena, uint32_t, count);
    uint32_t *depth = arena_new_array(out->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct expr_node *node = expr_at(pool, printer.walk.order.items[i]);
        for (uint32_t k = 0; k < node->count; k++)
            printer.uses[expr_walk_position(&printer.walk, node->arguments[k])]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        expr own = printer.walk.order.items[i];
        const struct expr_node *node = expr_at(pool, own);
        for (uint32_t k = 0; k < node->count; k++) {
            uint32_t below = depth[expr_walk_position(&printer.walk, node->arguments[k])];
            depth[i] = below >= depth[i] ? below + 1 : depth[i];
        }
        if (own == e || node->count == 0 || (printer.uses[i] < 2 && depth[i] < MAX_NESTING))
            continue;
        text_printf(out, "%st%" PRIu32 " = ", named ? "" : "{", named);
        print_operation(&printer, node, false);
        text_put(out, "; ");
        printer.names[i] = ++named;
        depth[i] = 0;
    }
    print_operation(&printer, expr_at(pool, e), false);
    if (named)
        text_put(out, "}");
}

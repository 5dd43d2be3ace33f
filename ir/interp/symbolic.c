/* Symbolic execution: the contents of small tensors as dims. Shape arithmetic is evaluated by the same
 * Definitions as all else, element by element, where a value is a dim (a symbol's expression), a real
 * constant, or unknown.
 *
 * A comparison that the sizes decide at run time is 1 or 0 by an expression of them; what selects by it is
 * unknown. Constants go through expr_eval_op, so they wrap and round as everywhere. A size that stands in a
 * float is taken as exact: the float types hold sizes below 2^24 exactly, and f32 arithmetic on larger ones
 * is not followed in its rounding. */
#include "ir/expr_eval.h"
#include "ir/expr_internal.h"
#include "ir/interp.h"
#include "ir/support/checked.h"

#include <math.h>
#include <string.h>

enum { MAX_ELEMENTS = 4096, MAX_STEPS = 1 << 20 };

struct known {
    enum { UNKNOWN, SIZE, REAL } kind;
    dim size;    /* SIZE: any integer, also one that stands in a float */
    double real; /* REAL: a float that is no integer */
};

/* What one root reaches, in evaluation order. */
struct tree {
    uint32_t count;
    const expr *order;
    const uint32_t *const *arguments; /* positions in `order` */
    struct known *values;
};

struct symbolic {
    const struct definition *d;
    struct exprs *pool;
    struct dims *dims;
    struct arena *arena;
    const dim *contents[MAX_BUFFERS]; /* NULL: unknown */
    int64_t sizes[MAX_BUFFERS][MAX_RANK];
    bool sized[MAX_BUFFERS];
    uint32_t steps;
    int64_t axes[MAX_AXES];
    struct known *reduced; /* of the current nest */
};

static const struct known unknown = {.kind = UNKNOWN};

static struct known of_dim(dim size)
{
    return (struct known){.kind = size ? SIZE : UNKNOWN, .size = size};
}

static struct known of_int(struct symbolic *s, int64_t value)
{
    return of_dim(dim_constant(s->dims, value));
}

static bool constant_of(const struct symbolic *s, struct known value, int64_t *constant)
{
    return value.kind == SIZE && dim_is_constant(s->dims, value.size, constant);
}

/* ---- constants
 * --------------------------------------------------------------------------------------------------- */

static bool bits_of(const struct symbolic *s, struct known value, enum dtype dtype, uint64_t *bits)
{
    int64_t whole = 0;
    if (value.kind != REAL && !constant_of(s, value, &whole))
        return false;
    if (!dtype_is_float(dtype)) {
        *bits = expr_eval_extend(dtype, (uint64_t)whole);
        return value.kind == SIZE;
    }
    const double real = value.kind == REAL ? value.real : (double)whole;
    memcpy(bits, &real, sizeof *bits);
    return expr_eval_convert(dtype, DTYPE_F64, *bits, bits);
}

static struct known of_real(struct symbolic *s, double real)
{
    if (real == floor(real) && fabs(real) < 9007199254740992.0)
        return of_int(s, (int64_t)real);
    return (struct known){.kind = REAL, .real = real};
}

static struct known of_bits(struct symbolic *s, enum dtype dtype, uint64_t bits)
{
    if (!dtype_is_float(dtype))
        return dtype == DTYPE_U64 && bits >> 63 ? unknown : of_int(s, (int64_t)bits);
    double real;
    if (!expr_eval_convert(DTYPE_F64, dtype, bits, &bits))
        return unknown;
    memcpy(&real, &bits, sizeof real);
    return of_real(s, real);
}

/* All arguments constant: the operation itself. */
static bool constant_operation(struct symbolic *s, const struct expr_node *node, const struct known *a,
                               struct known *out)
{
    uint64_t bits[3], result;
    if (node->count > 3)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!bits_of(s, a[i], expr_at(s->pool, node->arguments[i])->dtype, &bits[i]))
            return false;
    const enum dtype from = expr_at(s->pool, node->arguments[node->op == EXPR_SELECT])->dtype;
    if (!expr_eval_op(node->op, node->dtype, from, bits, &result))
        return false;
    *out = of_bits(s, node->dtype, result);
    return true;
}

/* ---- operations on sizes
 * ----------------------------------------------------------------------------------------- */

static bool not_negative(struct symbolic *s, dim d)
{
    int64_t low, high;
    dim_range(s->dims, d, &low, &high);
    return low >= 0;
}

static bool positive(struct symbolic *s, dim d)
{
    int64_t low, high;
    dim_range(s->dims, d, &low, &high);
    return low > 0;
}

/* a / b where that is a whole number for all values of the symbols. */
static struct known exact_quotient(struct symbolic *s, dim a, dim b)
{
    const dim quotient = dim_floor_div(s->dims, a, b);
    return quotient && dim_equal(s->dims, dim_mul(s->dims, quotient, b), a) == 1 ? of_dim(quotient) : unknown;
}

/* A size times a constant such as 0.5. */
static struct known scale_size(struct symbolic *s, dim a, double factor)
{
    const double inverse = 1 / factor;
    if (inverse != floor(inverse) || !(fabs(inverse) < 1e9))
        return unknown;
    return exact_quotient(s, a, dim_constant(s->dims, (int64_t)inverse));
}

static struct known divide_sizes(struct symbolic *s, const struct expr_node *node, dim a, dim b)
{
    if (dtype_is_float(node->dtype))
        return exact_quotient(s, a, b);
    if (node->op == EXPR_INDEX_DIV || (not_negative(s, a) && positive(s, b)))
        return of_dim(dim_floor_div(s->dims, a, b));
    return exact_quotient(s, a, b);
}

static struct known integer_power(struct symbolic *s, dim base, int64_t exponent)
{
    dim result = dim_constant(s->dims, 1);
    if (exponent < 0 || exponent > 64)
        return unknown;
    for (int64_t i = 0; i < exponent; i++)
        result = dim_mul(s->dims, result, base);
    return of_dim(result);
}

/* 1 or 0; sizes may decide which. */
static struct known compare_sizes(struct symbolic *s, enum expr_op op, dim a, dim b)
{
    const bool negated = op == EXPR_EQUAL || op == EXPR_LESS_EQUAL;
    const bool equality = op == EXPR_EQUAL || op == EXPR_NOT_EQUAL;
    const int truth = equality          ? dim_equal(s->dims, a, b)
                      : op == EXPR_LESS ? dim_less(s->dims, a, b)
                                        : dim_less(s->dims, b, a);
    if (truth >= 0)
        return of_int(s, op == EXPR_NOT_EQUAL || op == EXPR_LESS_EQUAL ? !truth : truth);
    const dim holds = equality          ? dim_is_not_zero(s->dims, dim_sub(s->dims, a, b))
                      : op == EXPR_LESS ? dim_is_less(s->dims, a, b)
                                        : dim_is_less(s->dims, b, a);
    return of_dim(negated ? dim_sub(s->dims, dim_constant(s->dims, 1), holds) : holds);
}

static struct known binary_sizes(struct symbolic *s, const struct expr_node *node, dim a, dim b)
{
    int64_t constant;
    switch (node->op) {
    case EXPR_ADD:
        return of_dim(dim_add(s->dims, a, b));
    case EXPR_SUB:
        return of_dim(dim_sub(s->dims, a, b));
    case EXPR_MUL:
        return of_dim(dim_mul(s->dims, a, b));
    case EXPR_MIN:
        return of_dim(dim_min(s->dims, a, b));
    case EXPR_MAX:
        return of_dim(dim_max(s->dims, a, b));
    case EXPR_DIV:
    case EXPR_INDEX_DIV:
        return divide_sizes(s, node, a, b);
    case EXPR_REMAINDER:
    case EXPR_INDEX_MOD:
        if (node->op == EXPR_REMAINDER && !(not_negative(s, a) && positive(s, b)))
            return unknown;
        return of_dim(dim_mod(s->dims, a, b));
    case EXPR_POW:
        return dim_is_constant(s->dims, b, &constant) ? integer_power(s, a, constant) : unknown;
    case EXPR_EQUAL:
    case EXPR_NOT_EQUAL:
    case EXPR_LESS:
    case EXPR_LESS_EQUAL:
        return compare_sizes(s, node->op, a, b);
    default:
        return unknown;
    }
}

/* Bools, each maybe unknown: a known argument may decide alone. */
static struct known logic(struct symbolic *s, enum expr_op op, struct known a, struct known b)
{
    int64_t x, y;
    const bool x_known = constant_of(s, a, &x), y_known = constant_of(s, b, &y);
    if (op == EXPR_AND && ((x_known && !x) || (y_known && !y)))
        return of_int(s, 0);
    if (op == EXPR_OR && ((x_known && x) || (y_known && y)))
        return of_int(s, 1);
    if ((op == EXPR_AND || op == EXPR_OR) && (x_known || y_known))
        return x_known ? b : a;
    if (a.kind != SIZE || b.kind != SIZE)
        return unknown;
    return op == EXPR_AND  ? of_dim(dim_min(s->dims, a.size, b.size))
           : op == EXPR_OR ? of_dim(dim_max(s->dims, a.size, b.size))
                           : unknown;
}

static struct known convert_size(struct symbolic *s, enum dtype to, dim a)
{
    if (to != DTYPE_BOOL)
        return of_dim(a);
    return compare_sizes(s, EXPR_NOT_EQUAL, a, dim_constant(s->dims, 0));
}

static struct known unary_size(struct symbolic *s, const struct expr_node *node, dim a)
{
    switch (node->op) {
    case EXPR_NEG:
        return of_dim(dim_sub(s->dims, dim_constant(s->dims, 0), a));
    case EXPR_ABS:
        return not_negative(s, a) ? of_dim(a) : unknown;
    case EXPR_FLOOR:
    case EXPR_CEIL:
    case EXPR_TRUNC:
    case EXPR_ROUND_EVEN:
        return of_dim(a);
    case EXPR_CONVERT:
        return convert_size(s, node->dtype, a);
    case EXPR_NOT:
        return node->dtype == DTYPE_BOOL ? of_dim(dim_sub(s->dims, dim_constant(s->dims, 1), a)) : unknown;
    default:
        return unknown;
    }
}

static struct known select_known(struct symbolic *s, const struct known *a)
{
    int64_t condition;
    if (constant_of(s, a[0], &condition))
        return condition ? a[1] : a[2];
    const bool same = a[1].kind == SIZE && a[2].kind == SIZE && dim_equal(s->dims, a[1].size, a[2].size) == 1;
    return same ? a[1] : unknown;
}

static struct known operation(struct symbolic *s, const struct expr_node *node, const struct known *a)
{
    struct known result;
    if (node->op == EXPR_SELECT)
        return select_known(s, a);
    if (constant_operation(s, node, a, &result))
        return result;
    if (expr_class_of(node->op) == EXPR_LOGIC && node->count == 2 && node->dtype == DTYPE_BOOL)
        return logic(s, node->op, a[0], a[1]);
    if (node->count == 1 && a[0].kind == SIZE)
        return unary_size(s, node, a[0].size);
    if (node->count != 2 || node->op == EXPR_SHIFT_LEFT || node->op == EXPR_SHIFT_RIGHT)
        return unknown;
    if (node->op == EXPR_MUL && a[0].kind == SIZE && a[1].kind == REAL)
        return scale_size(s, a[0].size, a[1].real);
    if (node->op == EXPR_MUL && a[1].kind == SIZE && a[0].kind == REAL)
        return scale_size(s, a[1].size, a[0].real);
    if (node->op == EXPR_DIV && a[0].kind == SIZE && a[1].kind == REAL &&
        a[1].real == 1 / floor(1 / a[1].real))
        return of_dim(dim_mul(s->dims, a[0].size, dim_constant(s->dims, (int64_t)(1 / a[1].real))));
    return a[0].kind == SIZE && a[1].kind == SIZE ? binary_sizes(s, node, a[0].size, a[1].size) : unknown;
}

/* SQRT and POW of constants whose exact result is whole. */
static struct known function_of(struct symbolic *s, const struct expr_node *node, const struct known *a)
{
    int64_t x, y;
    if (node->op == EXPR_POW && a[0].kind == SIZE && constant_of(s, a[1], &y) && y >= 0)
        return integer_power(s, a[0].size, y);
    if (node->op == EXPR_POW && constant_of(s, a[0], &x) && a[1].kind == REAL && a[1].real == 0.5 && x >= 0) {
        const double root = sqrt((double)x);
        return root == floor(root) && root * root == (double)x ? of_real(s, root) : unknown;
    }
    return unknown;
}

/* ---- loads
 * ------------------------------------------------------------------------------------------------------- */

static struct known load(struct symbolic *s, const struct expr_node *node, const struct known *a)
{
    const uint32_t rank = (uint32_t)node->count - (node->op == EXPR_LOAD_OR);
    int64_t flat = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t index;
        if (!s->sized[node->value] || !constant_of(s, a[i], &index))
            return unknown;
        if (index < 0 || index >= s->sizes[node->value][i])
            return node->op == EXPR_LOAD_OR ? a[rank] : unknown;
        flat = flat * s->sizes[node->value][i] + index;
    }
    const dim *contents = s->contents[node->value];
    return contents ? of_dim(contents[flat]) : unknown;
}

static struct known evaluate_node(struct symbolic *s, const struct expr_node *node, const struct known *a)
{
    switch (node->op) {
    case EXPR_CONSTANT:
        return of_bits(s, node->dtype, (uint64_t)node->value);
    case EXPR_AXIS:
        return of_int(s, s->axes[node->value]);
    case EXPR_DIM:
        return of_dim(dim_current(s->dims, (dim)node->value));
    case EXPR_LOAD:
    case EXPR_LOAD_OR:
        return load(s, node, a);
    case EXPR_REDUCED:
        return s->reduced[node->value];
    default:
        return expr_class_of(node->op) == EXPR_FUNCTION ? function_of(s, node, a) : operation(s, node, a);
    }
}

/* ---- trees
 * ------------------------------------------------------------------------------------------------------- */

static struct tree tree_of(struct symbolic *s, expr root)
{
    struct expr_walk walk;
    expr_walk_init(&walk, s->arena);
    expr_walk_add(&walk, s->pool, root);
    expr_walk_finish(&walk);
    const uint32_t count = walk.order.count;
    uint32_t **positions = arena_array(s->arena, count, sizeof *positions);
    for (uint32_t i = 0; i < count; i++) {
        const struct expr_node *node = expr_at(s->pool, walk.order.items[i]);
        positions[i] = arena_new_array(s->arena, uint32_t, node->count);
        for (uint32_t k = 0; k < node->count; k++)
            positions[i][k] = expr_walk_position(&walk, node->arguments[k]);
    }
    return (struct tree){
        .count = count,
        .order = walk.order.items,
        .arguments = (const uint32_t *const *)positions,
        .values = arena_new_array(s->arena, struct known, count),
    };
}

/* The root's value at the current axes; unknown once the steps are used up. */
static struct known evaluate(struct symbolic *s, const struct tree *tree)
{
    if (tree->count > MAX_STEPS - s->steps)
        return unknown;
    s->steps += tree->count;
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct expr_node *node = expr_at(s->pool, tree->order[i]);
        struct known few[MAX_RANK + 1], *arguments = few;
        if (node->count > MAX_RANK + 1)
            return unknown;
        for (uint32_t k = 0; k < node->count; k++)
            arguments[k] = tree->values[tree->arguments[i][k]];
        tree->values[i] = evaluate_node(s, node, arguments);
    }
    return tree->values[tree->count - 1];
}

/* ---- nests
 * ------------------------------------------------------------------------------------------------------- */

static bool advance(int64_t *axes, const int64_t *extents, uint32_t first, uint32_t last)
{
    for (uint32_t i = last; i-- > first;) {
        if (++axes[i] < extents[i])
            return true;
        axes[i] = 0;
    }
    return false;
}

static struct known combine(struct symbolic *s, enum reduce_op op, struct known a, struct known b)
{
    if (a.kind != SIZE || b.kind != SIZE)
        return unknown;
    switch (op) {
    case REDUCE_SUM:
        return of_dim(dim_add(s->dims, a.size, b.size));
    case REDUCE_PRODUCT:
        return of_dim(dim_mul(s->dims, a.size, b.size));
    case REDUCE_MAX:
        return of_dim(dim_max(s->dims, a.size, b.size));
    default:
        return of_dim(dim_min(s->dims, a.size, b.size));
    }
}

static struct known reduce(struct symbolic *s, const struct nest *nest, const struct reduction *reduction,
                           const struct tree *tree, const int64_t *extents)
{
    const uint32_t last = nest->rank + nest->reduce_rank;
    struct known total = unknown;
    bool empty = false;
    for (uint32_t i = nest->rank; i < last; i++) {
        s->axes[i] = 0;
        empty |= extents[i] == 0;
    }
    if (empty)
        return reduction->op == REDUCE_SUM       ? of_int(s, 0)
               : reduction->op == REDUCE_PRODUCT ? of_int(s, 1)
                                                 : unknown;
    bool first = true;
    do {
        const struct known value = evaluate(s, tree);
        total = first ? value : combine(s, reduction->op, total, value);
        first = false;
        if (total.kind == UNKNOWN)
            return total;
    } while (advance(s->axes, extents, nest->rank, last));
    return total;
}

struct store_trees {
    struct tree value, indices[MAX_RANK];
};

/* Stores one element if its place is known; otherwise nothing of the buffer can be trusted. */
static void store_element(struct symbolic *s, const struct nest_store *store, const struct store_trees *trees,
                          dim **written, bool *spoilt)
{
    const uint32_t rank = (uint32_t)s->d->buffers.items[store->buffer].type.rank;
    int64_t flat = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t index = s->axes[i];
        if ((store->indices && !constant_of(s, evaluate(s, &trees->indices[i]), &index)) || index < 0 ||
            index >= s->sizes[store->buffer][i]) {
            spoilt[store->buffer] = true;
            return;
        }
        flat = flat * s->sizes[store->buffer][i] + index;
    }
    const struct known value = evaluate(s, &trees->value);
    written[store->buffer][flat] = value.kind == SIZE ? value.size : DIM_NONE;
}

static void run_nest(struct symbolic *s, const struct nest *nest, dim **written, bool *spoilt)
{
    int64_t extents[MAX_AXES], points = 1, reduced_points = 1;
    bool possible = nest->kind == NEST_REDUCE;
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++) {
        int64_t *count = i < nest->rank ? &points : &reduced_points;
        possible = possible &&
                   dim_is_constant(s->dims, dim_current(s->dims, nest->extents[i]), &extents[i]) &&
                   mul_i64(*count, extents[i], count) && *count <= MAX_ELEMENTS;
    }
    for (uint32_t i = 0; i < nest->store_count; i++)
        possible = possible && s->sized[nest->stores[i].buffer] && !nest->stores[i].condition;
    if (!possible) {
        for (uint32_t i = 0; i < nest->store_count; i++)
            spoilt[nest->stores[i].buffer] = true;
        return;
    }
    if (!points)
        return;
    s->reduced = arena_new_array(s->arena, struct known, nest->reduction_count);
    struct tree *bodies = arena_new_array(s->arena, struct tree, nest->reduction_count);
    struct store_trees *stores = arena_new_array(s->arena, struct store_trees, nest->store_count);
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        bodies[i] = tree_of(s, nest->reductions[i].body);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        stores[i].value = tree_of(s, store->value);
        for (int k = 0; store->indices && k < s->d->buffers.items[store->buffer].type.rank; k++)
            stores[i].indices[k] = tree_of(s, store->indices[k]);
    }
    memset(s->axes, 0, sizeof s->axes);
    do {
        for (uint32_t i = 0; i < nest->reduction_count; i++)
            s->reduced[i] = reduce(s, nest, &nest->reductions[i], &bodies[i], extents);
        for (uint32_t i = 0; i < nest->store_count; i++)
            store_element(s, &nest->stores[i], &stores[i], written, spoilt);
    } while (advance(s->axes, extents, 0, nest->rank));
}

/* The sizes of buffers whose dims are constant and that are small. */
static int64_t find_sizes(struct symbolic *s, uint32_t buffer)
{
    const struct tensor_type *type = &s->d->buffers.items[buffer].type;
    int64_t elements = 1;
    s->sized[buffer] = true;
    for (int i = 0; i < type->rank; i++) {
        int64_t *size = &s->sizes[buffer][i];
        s->sized[buffer] = s->sized[buffer] &&
                           dim_is_constant(s->dims, dim_current(s->dims, type->dims[i]), size) &&
                           *size >= 0 && mul_i64(elements, *size, &elements);
    }
    s->sized[buffer] = s->sized[buffer] && elements <= MAX_ELEMENTS;
    return s->sized[buffer] ? elements : 0;
}

bool interpret_symbolic(const struct definition *definition, const dim *const *contents,
                        uint32_t output_buffer, dim *out, uint32_t count)
{
    struct symbolic s = {
        .d = definition,
        .pool = definition->pool,
        .dims = definition->pool->dims,
        .arena = definition->pool->arena,
    };
    dim *written[MAX_BUFFERS] = {NULL};
    bool spoilt[MAX_BUFFERS] = {false};
    memset(out, 0, count * sizeof *out);
    for (uint32_t i = 0; i < definition->buffers.count; i++) {
        const int64_t elements = find_sizes(&s, i);
        if (definition->buffers.items[i].role == BUFFER_INPUT)
            s.contents[i] = s.sized[i] ? contents[i] : NULL;
        else if (s.sized[i])
            written[i] = arena_new_array(s.arena, dim, (size_t)elements);
        if (i == output_buffer && (!s.sized[i] || elements != (int64_t)count))
            return false;
    }
    for (uint32_t i = 0; i < definition->nests.count; i++) {
        const struct nest *nest = &definition->nests.items[i];
        run_nest(&s, nest, written, spoilt);
        for (uint32_t k = 0; k < nest->store_count; k++) {
            const uint32_t buffer = nest->stores[k].buffer;
            s.contents[buffer] = spoilt[buffer] ? NULL : written[buffer];
        }
    }
    if (!s.contents[output_buffer])
        return false;
    bool any = count == 0;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = s.contents[output_buffer][i];
        any = any || out[i] != DIM_NONE;
    }
    return any;
}

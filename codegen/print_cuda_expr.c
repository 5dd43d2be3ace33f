/* Expressions as CUDA C. Where C's own arithmetic is not what expr.def states, a function of the prelude
 * stands for it (print_cuda_prelude.c): wrapping integers, minima with NaN, shifts, exponentials, conversions
 * of storage types.
 *
 * i64 values that hang on loop variables, thread and block indices, dims and small constants alone are `int`
 * in a kernel of 32-bit indices: prepare guarantees that they fit. Everything loaded from memory stays 64
 * bits wide. */
#include <inttypes.h>
#include <string.h>

#include "codegen/print_cuda_internal.h"

const char *cuda_value_type(enum dtype dtype)
{
    return dtype == DTYPE_BOOL ? "bool" : cuda_storage_type(dtype);
}

const char *cuda_storage_type(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return "float";
    case DTYPE_F64:
        return "double";
    case DTYPE_I8:
        return "signed char";
    case DTYPE_I16:
        return "short";
    case DTYPE_I32:
        return "int";
    case DTYPE_I64:
        return "long long";
    case DTYPE_U16:
    case DTYPE_F16:
    case DTYPE_BF16:
        return "unsigned short";
    case DTYPE_U32:
        return "unsigned";
    case DTYPE_U64:
        return "unsigned long long";
    default: /* bool, u8, the 8-bit floats, packed integers: bytes */
        return "unsigned char";
    }
}

static bool index_leaf(const struct cuda_printer *p, const struct expr_node *node)
{
    switch (node->op) {
    case EXPR_CONSTANT:
        return p->kernel->index_bits == 64 || (node->value >= INT32_MIN && node->value <= INT32_MAX);
    case EXPR_VARIABLE:
        return !p->wide_variable[node->value];
    case EXPR_DIM:
    case EXPR_COMPUTED:
    case EXPR_THREAD_INDEX:
    case EXPR_BLOCK_INDEX:
        return true;
    default:
        return false;
    }
}

/* Made of loop variables, thread and block indices, dims and constants alone: it does not wrap. Bounded by
 * the expression's height: collect() names what stands too high, and the answer is memorised bottom up there.
 */
bool cuda_is_index(struct cuda_printer *p, expr e)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->dtype != DTYPE_I64)
        return false;
    if (p->index[e] >= 0)
        return p->index[e];
    bool index = index_leaf(p, node);
    if (!index && node->count && expr_class_of(node->op) == EXPR_ARITHMETIC) {
        index = true;
        for (uint32_t i = node->op == EXPR_SELECT ? 1 : 0; i < node->count; i++)
            index = index && cuda_is_index(p, node->arguments[i]);
    }
    p->index[e] = index;
    return index;
}

bool cuda_is_narrow(struct cuda_printer *p, expr e)
{
    return p->kernel->index_bits == 32 && cuda_is_index(p, e);
}

const char *cuda_expr_type(struct cuda_printer *p, expr e)
{
    return cuda_is_narrow(p, e) ? "int" : cuda_value_type(expr_at(p->kernel->pool, e)->dtype);
}

void cuda_indent(struct cuda_printer *p)
{
    text_printf(p->out, "%*s", (int)(4 * p->depth), "");
}

const char *cuda_new_name(struct cuda_printer *p, const char *label)
{
    const char *name = label;
    for (unsigned number = 2;; number++) {
        bool taken = false;
        for (uint32_t i = 0; i < p->taken.count && !taken; i++)
            taken = strcmp(p->taken.items[i], name) == 0;
        if (!taken)
            break;
        const size_t length = strlen(label);
        const bool digit = label[length - 1] >= '0' && label[length - 1] <= '9';
        name = arena_printf(p->out->arena, "%s%s%u", label, digit ? "_" : "", number);
    }
    vec_push(p->out->arena, &p->taken, name);
    return name;
}

static void put_float(struct cuda_printer *p, const struct expr_node *node)
{
    float single;
    double real;
    uint32_t low = (uint32_t)node->value;
    memcpy(&single, &low, sizeof single);
    memcpy(&real, &node->value, sizeof real);
    bool is_single = node->dtype == DTYPE_F32;
    double value = is_single ? (double)single : real;
    if (value - value != 0) { /* infinities and NaN */
        if (is_single && value == value)
            text_put(p->out, value > 0 ? "infinity" : "-infinity");
        else if (is_single)
            text_printf(p->out, "__uint_as_float(0x%08" PRIx32 "u)", low);
        else
            text_printf(p->out, "__longlong_as_double(0x%016" PRIx64 "ll)", (uint64_t)node->value);
        return;
    }
    size_t start = p->out->length;
    if (is_single)
        text_put_f32(p->out, single);
    else
        text_put_f64(p->out, real);
    if (!strpbrk(p->out->data + start, ".e"))
        text_put(p->out, ".0");
    if (is_single)
        text_put(p->out, "f");
}

/* TILE_ROWS of "tile_rows"; declared in front of the body since it is used. Nothing else is in capitals. */
static void put_named_constant(struct cuda_printer *p, uint32_t tag)
{
    if (!p->constants[tag]) {
        char *label = arena_string(p->out->arena, p->kernel->constants.items[tag].label);
        for (char *at = label; *at; at++)
            *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
        unsigned same = 0;
        for (uint32_t i = 0; i < p->kernel->constants.count; i++)
            same += p->constants[i] &&
                    strcmp(p->kernel->constants.items[i].label, p->kernel->constants.items[tag].label) == 0;
        p->constants[tag] = same ? arena_printf(p->out->arena, "%s_%u", label, same + 1) : label;
    }
    text_put(p->out, p->constants[tag]);
}

static void put_constant(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->extent) {
        put_named_constant(p, node->extent - 1);
        return;
    }
    bool parentheses = node->value < 0 && precedence > CUDA_SUM;
    text_put(p->out, parentheses ? "(" : "");
    if (node->dtype == DTYPE_F32 || node->dtype == DTYPE_F64)
        put_float(p, node);
    else if (node->dtype == DTYPE_BOOL)
        text_put(p->out, node->value ? "true" : "false");
    else if (node->dtype == DTYPE_U32)
        text_printf(p->out, "%" PRIu32 "u", (uint32_t)node->value);
    else if (node->dtype == DTYPE_U64)
        text_printf(p->out, "%" PRIu64 "ull", (uint64_t)node->value);
    else if (node->dtype == DTYPE_I64 && !cuda_is_narrow(p, e) && node->value == INT64_MIN)
        text_put(p->out, "(-9223372036854775807ll - 1)");
    else if (node->dtype == DTYPE_I32 && node->value == INT32_MIN)
        text_put(p->out, "(-2147483647 - 1)");
    else if (node->dtype == DTYPE_I64 && !cuda_is_narrow(p, e))
        text_printf(p->out, "%" PRId64 "ll", node->value);
    else
        text_printf(p->out, "%" PRId64, node->value);
    text_put(p->out, parentheses ? ")" : "");
}

static void put_call(struct cuda_printer *p, const char *function, const struct expr_node *node)
{
    text_printf(p->out, "%s(", function);
    for (uint32_t i = 0; i < node->count; i++) {
        text_put(p->out, i ? ", " : "");
        cuda_put_expr(p, node->arguments[i], CUDA_ANY);
    }
    text_put(p->out, ")");
}

static void put_infix(struct cuda_printer *p, const char *sign, int own, const struct expr_node *node,
                      int precedence)
{
    bool parentheses = precedence > own;
    const struct expr_node *right = expr_at(p->kernel->pool, node->arguments[1]);
    text_put(p->out, parentheses ? "(" : "");
    cuda_put_expr(p, node->arguments[0], own);
    text_printf(p->out, " %s ", sign);
    /* x + (-1), as the pool has it, is x - 1. */
    if (sign[0] == '-' && node->op == EXPR_ADD)
        text_printf(p->out, "%" PRId64, -right->value);
    else
        cuda_put_expr(p, node->arguments[1], own + 1);
    text_put(p->out, parentheses ? ")" : "");
}

static void put_prefix(struct cuda_printer *p, const char *sign, expr argument, int precedence)
{
    bool parentheses = precedence > CUDA_UNARY;
    text_printf(p->out, "%s%s", parentheses ? "(" : "", sign);
    cuda_put_expr(p, argument, CUDA_PRIMARY);
    text_put(p->out, parentheses ? ")" : "");
}

/* A load of consecutive elements, or of one. Booleans in memory are bytes of which only zero is false. */
static void put_element(struct cuda_printer *p, const struct expr_node *node, expr index, int precedence)
{
    const struct kernel_memory *memory = &p->kernel->memories.items[node->value];
    bool test = node->dtype == DTYPE_BOOL && memory->space != MEMORY_REGISTER;
    bool parentheses = test && precedence > CUDA_EQUALITY;
    text_put(p->out, parentheses ? "(" : "");
    if (node->lanes > 1)
        text_printf(p->out, "*(const %sx%u *)&", dtype_name(node->dtype), (unsigned)node->lanes);
    text_printf(p->out, "%s[", p->memories[node->value]);
    cuda_put_expr(p, index, CUDA_ANY);
    text_put(p->out, "]");
    text_put(p->out, test ? " != 0" : "");
    text_put(p->out, parentheses ? ")" : "");
}

static void put_select(struct cuda_printer *p, const struct expr_node *node, int precedence)
{
    bool parentheses = precedence > CUDA_CONDITIONAL;
    text_put(p->out, parentheses ? "(" : "");
    cuda_put_expr(p, node->arguments[0], CUDA_LOGICAL_OR);
    text_put(p->out, " ? ");
    if (node->op == EXPR_ELEMENT_OR)
        put_element(p, node, node->arguments[1], CUDA_CONDITIONAL + 1);
    else
        cuda_put_expr(p, node->arguments[1], CUDA_CONDITIONAL + 1);
    text_put(p->out, " : ");
    cuda_put_expr(p, node->arguments[2], CUDA_CONDITIONAL);
    text_put(p->out, parentheses ? ")" : "");
}

static void put_bitcast(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    enum dtype from = expr_at(p->kernel->pool, node->arguments[0])->dtype;
    static const struct {
        enum dtype from, to;
        const char *function;
    } rows[] = {
        {DTYPE_F32, DTYPE_U32, "__float_as_uint"},
        {DTYPE_F32, DTYPE_I32, "__float_as_int"},
        {DTYPE_U32, DTYPE_F32, "__uint_as_float"},
        {DTYPE_I32, DTYPE_F32, "__int_as_float"},
        {DTYPE_F64, DTYPE_I64, "__double_as_longlong"},
        {DTYPE_I64, DTYPE_F64, "__longlong_as_double"},
        {DTYPE_F64, DTYPE_U64, "(unsigned long long)__double_as_longlong"},
        {DTYPE_U64, DTYPE_F64, "__longlong_as_double"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].from == from && rows[i].to == node->dtype) {
            put_call(p, rows[i].function, node);
            return;
        }
    char cast[32] = "(";
    strcat(cast, cuda_value_type(node->dtype));
    strcat(cast, ")");
    put_prefix(p, cast, node->arguments[0], precedence);
}

const char *cuda_function_name(struct arena *arena, enum expr_op op, enum dtype to, enum dtype from)
{
    return op == EXPR_CONVERT ? arena_printf(arena, "%s_from_%s", dtype_name(to), dtype_name(from))
                              : arena_printf(arena, "%s_%s", expr_op_name(op), dtype_name(to));
}

static bool put_function(struct cuda_printer *p, const struct expr_node *node)
{
    if (!expr_is_call(p->kernel->pool, node))
        return false;
    const enum dtype from = expr_at(p->kernel->pool, node->arguments[0])->dtype;
    put_call(p, cuda_function_name(p->out->arena, node->op, node->dtype, from), node);
    return true;
}

static void put_convert(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->dtype == DTYPE_BOOL) {
        bool parentheses = precedence > CUDA_EQUALITY;
        text_put(p->out, parentheses ? "(" : "");
        cuda_put_expr(p, node->arguments[0], CUDA_EQUALITY);
        text_put(p->out, " != 0");
        text_put(p->out, parentheses ? ")" : "");
        return;
    }
    char cast[32] = "(";
    strcat(cast, cuda_expr_type(p, e));
    strcat(cast, ")");
    put_prefix(p, cast, node->arguments[0], precedence);
}

/* name_i32(...): a function of the prelude, for this type. */
static void put_typed_call(struct cuda_printer *p, const char *name, const struct expr_node *node)
{
    put_call(p, arena_printf(p->out->arena, "%s_%s", name, dtype_name(node->dtype)), node);
}

/* C's own minimum of integers, whose operands must be of one type. */
static void put_integer_limit(struct cuda_printer *p, expr e, const char *name)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    const bool wide = node->dtype == DTYPE_I64 && !cuda_is_narrow(p, e);
    text_printf(p->out, "%s(", name);
    for (uint32_t i = 0; i < node->count; i++) {
        const bool cast = wide && cuda_is_narrow(p, node->arguments[i]);
        text_put(p->out, i ? ", " : "");
        text_put(p->out, cast ? "(long long)" : "");
        cuda_put_expr(p, node->arguments[i], cast ? CUDA_PRIMARY : CUDA_ANY);
    }
    text_put(p->out, ")");
}

static void put_limit(struct cuda_printer *p, expr e)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    const bool least = node->op == EXPR_MIN;
    if (dtype_is_float(node->dtype))
        put_typed_call(p, least ? "minimum" : "maximum", node);
    else
        put_integer_limit(p, e, least ? "min" : "max");
}

/* By a constant the compiler makes a multiplication of it either way. */
static void put_index_division(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    const bool division = node->op == EXPR_INDEX_DIV;
    if (expr_at(p->kernel->pool, node->arguments[1])->op == EXPR_CONSTANT)
        put_infix(p, division ? "/" : "%", CUDA_TERM, node, precedence);
    else
        put_call(p,
                 arena_printf(p->out->arena, "%s_i%d", division ? "index_div" : "index_mod",
                              cuda_is_narrow(p, e) ? 32 : 64),
                 node);
}

/* Floats and indices by C's operators; data integers by functions that wrap. */
static bool put_arithmetic(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    bool is_float = dtype_is_float(node->dtype), is_unsigned = dtype_class(node->dtype) == DTYPE_CLASS_UINT;
    bool plain = is_float || is_unsigned || cuda_is_index(p, e);
    switch (node->op) {
    case EXPR_ADD: {
        const struct expr_node *right = expr_at(p->kernel->pool, node->arguments[1]);
        bool subtracts = cuda_is_index(p, e) && right->op == EXPR_CONSTANT && right->value < 0 &&
                         right->value > INT32_MIN && !right->extent;
        plain ? put_infix(p, subtracts ? "-" : "+", CUDA_SUM, node, precedence)
              : put_typed_call(p, "wrap_add", node);
        return true;
    }
    case EXPR_SUB:
        plain ? put_infix(p, "-", CUDA_SUM, node, precedence) : put_typed_call(p, "wrap_sub", node);
        return true;
    case EXPR_MUL:
        plain ? put_infix(p, "*", CUDA_TERM, node, precedence) : put_typed_call(p, "wrap_mul", node);
        return true;
    case EXPR_DIV:
        put_infix(p, "/", CUDA_TERM, node, precedence);
        return true;
    case EXPR_REMAINDER:
        put_infix(p, "%", CUDA_TERM, node, precedence);
        return true;
    case EXPR_NEG:
        plain ? put_prefix(p, "-", node->arguments[0], precedence) : put_typed_call(p, "wrap_neg", node);
        return true;
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
        put_index_division(p, e, precedence);
        return true;
    case EXPR_ABS:
        is_float ? put_call(p, node->dtype == DTYPE_F32 ? "fabsf" : "fabs", node)
                 : put_typed_call(p, "wrap_abs", node);
        return true;
    case EXPR_MIN:
    case EXPR_MAX:
        put_limit(p, e);
        return true;
    case EXPR_SHIFT_LEFT:
        put_typed_call(p, "shift_left", node);
        return true;
    case EXPR_SHIFT_RIGHT:
        put_typed_call(p, "shift_right", node);
        return true;
    default:
        return false;
    }
}

static bool put_float_function(struct cuda_printer *p, const struct expr_node *node)
{
    static const struct {
        enum expr_op op;
        const char *single, *real;
    } rows[] = {
        {EXPR_FMA, "fmaf", "fma"},       {EXPR_SQRT, "__fsqrt_rn", "__dsqrt_rn"},
        {EXPR_FLOOR, "floorf", "floor"}, {EXPR_CEIL, "ceilf", "ceil"},
        {EXPR_TRUNC, "truncf", "trunc"}, {EXPR_ROUND_EVEN, "rintf", "rint"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].op == node->op) {
            put_call(p, node->dtype == DTYPE_F32 ? rows[i].single : rows[i].real, node);
            return true;
        }
    return false;
}

static bool put_logic(struct cuda_printer *p, const struct expr_node *node, int precedence)
{
    bool truth = node->dtype == DTYPE_BOOL;
    switch (node->op) {
    case EXPR_AND:
        put_infix(p, truth ? "&&" : "&", truth ? CUDA_LOGICAL_AND : CUDA_AND, node, precedence);
        return true;
    case EXPR_OR:
        put_infix(p, truth ? "||" : "|", truth ? CUDA_LOGICAL_OR : CUDA_OR, node, precedence);
        return true;
    case EXPR_XOR:
        put_infix(p, truth ? "!=" : "^", truth ? CUDA_EQUALITY : CUDA_XOR, node, precedence);
        return true;
    case EXPR_NOT:
        put_prefix(p, truth ? "!" : "~", node->arguments[0], precedence);
        return true;
    case EXPR_EQUAL:
        put_infix(p, "==", CUDA_EQUALITY, node, precedence);
        return true;
    case EXPR_NOT_EQUAL:
        put_infix(p, "!=", CUDA_EQUALITY, node, precedence);
        return true;
    case EXPR_LESS:
        put_infix(p, "<", CUDA_RELATION, node, precedence);
        return true;
    case EXPR_LESS_EQUAL:
        put_infix(p, "<=", CUDA_RELATION, node, precedence);
        return true;
    default:
        return false;
    }
}

static void put_kernel_leaf(struct cuda_printer *p, const struct expr_node *node, int precedence)
{
    switch (node->op) {
    case EXPR_VARIABLE:
        text_put(p->out, p->variables[node->value]);
        return;
    case EXPR_DIM:
        text_put(p->out, p->dims[kernel_dim_position(p->kernel, (dim)node->value)]);
        return;
    case EXPR_COMPUTED:
        text_put(p->out, p->dims[p->kernel->dims.count + node->value]);
        return;
    case EXPR_WORD:
        text_printf(p->out, "(long long)%s[%" PRIu32 "]", p->words[node->value],
                    p->kernel->words.items[node->value].element);
        return;
    case EXPR_THREAD_INDEX:
        text_printf(p->out, p->kernel->index_bits == 32 ? "(int)threadIdx.%c" : "(long long)threadIdx.%c",
                    "xyz"[node->value]);
        return;
    case EXPR_BLOCK_INDEX:
        text_printf(p->out, p->kernel->index_bits == 32 ? "(int)blockIdx.%c" : "(long long)blockIdx.%c",
                    "xyz"[node->value]);
        return;
    case EXPR_ELEMENT:
        put_element(p, node, node->arguments[0], precedence);
        return;
    case EXPR_LANE:
        cuda_put_expr(p, node->arguments[0], CUDA_PRIMARY);
        text_printf(p->out, ".v[%" PRId64 "]", node->value);
        return;
    case EXPR_PACK:
        text_printf(p->out, "%sx%u{", dtype_name(node->dtype), (unsigned)node->lanes);
        for (uint32_t i = 0; i < node->count; i++) {
            text_put(p->out, i ? ", " : "");
            cuda_put_expr(p, node->arguments[i], CUDA_ANY);
        }
        text_put(p->out, "}");
        return;
    default: /* SHUFFLE_XOR */
        text_put(p->out, "__shfl_xor_sync(0xffffffffu, ");
        cuda_put_expr(p, node->arguments[0], CUDA_ANY);
        text_printf(p->out, ", %" PRId64 ")", node->value);
        return;
    }
}

static void put_node(struct cuda_printer *p, expr e, int precedence)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->op == EXPR_CONSTANT)
        put_constant(p, e, precedence);
    else if (node->op == EXPR_SELECT || node->op == EXPR_ELEMENT_OR)
        put_select(p, node, precedence);
    else if (put_function(p, node))
        return;
    else if (node->op == EXPR_CONVERT)
        put_convert(p, e, precedence);
    else if (node->op == EXPR_BITCAST)
        put_bitcast(p, e, precedence);
    else if (!put_arithmetic(p, e, precedence) && !put_float_function(p, node) &&
             !put_logic(p, node, precedence))
        put_kernel_leaf(p, node, precedence);
}

void cuda_put_expr(struct cuda_printer *p, expr e, int precedence)
{
    if (p->names[e])
        text_put(p->out, p->names[e]);
    else
        put_node(p, e, precedence);
}

/* The nodes below the root, arguments first. Iterative: an expression may be high. */
static void collect(struct cuda_printer *p, expr root)
{
    struct visit {
        expr e;
        uint32_t next;
    };
    VEC(struct visit) stack = {0};
    if (p->uses[root]++)
        return;
    vec_push(p->out->arena, &stack, ((struct visit){.e = root}));
    while (stack.count) {
        struct visit *top = &stack.items[stack.count - 1];
        const struct expr_node *node = expr_at(p->kernel->pool, top->e);
        if (top->next == node->count) {
            vec_push(p->out->arena, &p->order, top->e);
            stack.count--;
            continue;
        }
        struct visit child = {.e = node->arguments[top->next++]};
        if (!p->uses[child.e]++)
            vec_push(p->out->arena, &stack, child);
    }
}

static bool is_root(expr e, uint32_t count, const expr *roots)
{
    for (uint32_t i = 0; i < count; i++)
        if (roots[i] == e)
            return true;
    return false;
}

/* The index of an element of a small array: constant once the loops are unrolled, so better written where it
 * is used. */
static bool is_unrolled_index(const struct cuda_printer *p, expr e, unsigned depth)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->op == EXPR_CONSTANT)
        return true;
    if (node->op == EXPR_VARIABLE)
        return p->unrolled[node->value];
    if (expr_class_of(node->op) != EXPR_ARITHMETIC || depth == 0)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!is_unrolled_index(p, node->arguments[i], depth - 1))
            return false;
    return true;
}

static void put_temporary(struct cuda_printer *p, expr e)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    const char *label = node->lanes > 1                 ? "vector"
                        : node->dtype == DTYPE_BOOL     ? "inside"
                        : cuda_is_narrow(p, e)          ? "at"
                        : dtype_is_integer(node->dtype) ? "bits"
                                                        : "t";
    const char *name = cuda_new_name(p, label);
    cuda_indent(p);
    if (node->lanes > 1)
        text_printf(p->out, "const %sx%u %s = ", dtype_name(node->dtype), (unsigned)node->lanes, name);
    else
        text_printf(p->out, "const %s %s = ", cuda_expr_type(p, e), name);
    put_node(p, e, CUDA_ANY);
    text_put(p->out, ";\n");
    p->names[e] = name;
}

/* A node gets a temporary when it is used twice and is more than a name, when it is a vector that lanes are
 * taken of, or when the expression would become unreadably (and the printer's recursion too) deep. */
void cuda_begin_statement(struct cuda_printer *p, uint32_t count, const expr *roots)
{
    enum { DEEPEST = 12 };
    const struct exprs *pool = p->kernel->pool;
    p->order.count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            collect(p, roots[i]);
    uint32_t *heights = arena_new_array(p->out->arena, uint32_t, p->order.count + 1);
    for (uint32_t i = 0; i < p->order.count; i++) {
        expr e = p->order.items[i];
        const struct expr_node *node = expr_at(pool, e);
        uint32_t height = 0, used = p->uses[e];
        for (uint32_t k = 0; k < node->count; k++) {
            uint32_t below = p->names[node->arguments[k]] ? 0 : heights[p->uses[node->arguments[k]]];
            height = below + 1 > height ? below + 1 : height;
        }
        cuda_is_narrow(p, e); /* memorised from the leaves up */
        bool vector = node->lanes > 1 && node->op != EXPR_PACK && node->op != EXPR_VARIABLE &&
                      !is_root(e, count, roots);
        bool repeated = used > 1 && !(node->dtype == DTYPE_I64 && is_unrolled_index(p, e, 2));
        bool named = node->count && (repeated || height >= DEEPEST || vector);
        if (named)
            put_temporary(p, e);
        heights[i] = named ? 0 : height;
        p->uses[e] = i; /* from here on only its place matters */
    }
}

void cuda_end_statement(struct cuda_printer *p)
{
    for (uint32_t i = 0; i < p->order.count; i++) {
        p->uses[p->order.items[i]] = 0;
        p->names[p->order.items[i]] = NULL;
    }
}

/* The declared type converts: no cast in front of a hardware index that stands alone. */
void cuda_put_declaration_value(struct cuda_printer *p, expr e)
{
    const struct expr_node *node = expr_at(p->kernel->pool, e);
    if (node->op == EXPR_THREAD_INDEX || node->op == EXPR_BLOCK_INDEX)
        text_printf(p->out, "%s.%c", node->op == EXPR_THREAD_INDEX ? "threadIdx" : "blockIdx",
                    "xyz"[node->value]);
    else
        cuda_put_expr(p, e, CUDA_ANY);
}

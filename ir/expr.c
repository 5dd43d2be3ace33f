/* The pool of scalar expressions: hash-consed nodes, the builders, and the simplifications that every builder
 * applies. A rule may be used here only when both sides have the same value for every input, NaN, -0 and
 * wrapping included (the bits of a NaN are not part of a value). Arguments have smaller numbers than their
 * users, so ascending order is evaluation order. Rules about index ranges and division are in expr_index.c.
 */
#include "ir/expr.h"

#include "ir/expr_eval.h"
#include "ir/expr_internal.h"
#include "ir/support/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *printed;
    enum expr_class class;
    uint16_t arguments;
} rows[] = {
    [EXPR_NONE] = {"none", EXPR_LEAF, 0},
#define EXPR(name, arguments, class, printed) [EXPR_##name] = {printed, EXPR_##class, arguments},
#include "ir/expr.def"
#undef EXPR
};

enum { ANY_NUMBER = 255 };

enum expr_class expr_class_of(enum expr_op op)
{
    return op < EXPR_COUNT ? rows[op].class : EXPR_LEAF;
}

const char *expr_op_name(enum expr_op op)
{
    return op < EXPR_COUNT ? rows[op].printed : "none";
}

/* ---- hash-consing
 * -------------------------------------------------------------------------------------------------- */

void exprs_init(struct exprs *pool, struct arena *arena, struct dims *dims)
{
    memset(pool, 0, sizeof *pool);
    pool->arena = arena;
    pool->dims = dims;
    pool->slot_count = 256;
    pool->slots = arena_new_array(arena, uint32_t, pool->slot_count);
    struct expr_node none = {.op = EXPR_NONE};
    vec_push(arena, &pool->nodes, none);
}

static uint64_t node_hash(const struct expr_node *node)
{
    uint64_t hash =
        hash_word((uint64_t)node->op << 32 | (uint64_t)node->dtype << 16 | node->lanes, node->extent);
    hash = hash_word(hash, (uint64_t)node->value);
    for (uint32_t i = 0; i < node->count; i++)
        hash = hash_word(hash, node->arguments[i]);
    return hash;
}

static bool node_equal(const struct expr_node *a, const struct expr_node *b)
{
    if (a->op != b->op || a->dtype != b->dtype || a->lanes != b->lanes || a->count != b->count ||
        a->extent != b->extent || a->value != b->value)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->arguments[i] != b->arguments[i])
            return false;
    return true;
}

static uint32_t *find_slot(const struct exprs *pool, const struct expr_node *node)
{
    uint32_t mask = pool->slot_count - 1;
    for (uint32_t i = (uint32_t)node_hash(node) & mask;; i = (i + 1) & mask)
        if (!pool->slots[i] || node_equal(expr_at(pool, pool->slots[i]), node))
            return &pool->slots[i];
}

static void grow_slots(struct exprs *pool)
{
    pool->slot_count *= 2;
    pool->slots = arena_new_array(pool->arena, uint32_t, pool->slot_count);
    for (uint32_t e = 1; e < pool->nodes.count; e++)
        *find_slot(pool, expr_at(pool, e)) = e;
}

static expr intern_node(struct exprs *pool, const struct expr_node *node)
{
    uint32_t *slot = find_slot(pool, node);
    if (*slot)
        return *slot;
    struct expr_node copy = *node;
    copy.arguments = NULL;
    if (node->count)
        copy.arguments = arena_copy(pool->arena, node->arguments, node->count * sizeof *node->arguments);
    expr e = pool->nodes.count;
    *slot = e;
    vec_push(pool->arena, &pool->nodes, copy);
    if (pool->nodes.count > pool->slot_count / 2)
        grow_slots(pool);
    return e;
}

/* ---- constants ----------------------------------------------------------------------------------------- */

static expr constant_bits(struct exprs *pool, enum dtype dtype, uint64_t bits)
{
    struct expr_node node = {.op = EXPR_CONSTANT, .dtype = dtype, .lanes = 1, .value = (int64_t)bits};
    return intern_node(pool, &node);
}

expr expr_int(struct exprs *pool, enum dtype dtype, int64_t value)
{
    assert(dtype_is_integer(dtype) || dtype == DTYPE_BOOL);
    uint64_t bits = dtype == DTYPE_BOOL ? value != 0 : expr_eval_extend(dtype, (uint64_t)value);
    return constant_bits(pool, dtype, bits);
}

expr expr_float(struct exprs *pool, enum dtype dtype, double value)
{
    uint64_t bits, result = 0;
    memcpy(&bits, &value, sizeof bits);
    bool known = expr_eval_convert(dtype, DTYPE_F64, bits, &result);
    assert(known && dtype_is_float(dtype));
    (void)known;
    return constant_bits(pool, dtype, result);
}

expr expr_index(struct exprs *pool, int64_t value)
{
    return expr_int(pool, DTYPE_I64, value);
}

bool expr_constant_int(const struct exprs *pool, expr e, int64_t *value)
{
    const struct expr_node *node = expr_at(pool, e);
    if (node->op != EXPR_CONSTANT || dtype_is_float(node->dtype))
        return false;
    *value = node->value;
    return true;
}

bool expr_constant_float(const struct exprs *pool, expr e, double *value)
{
    const struct expr_node *node = expr_at(pool, e);
    uint64_t bits;
    if (node->op != EXPR_CONSTANT || !dtype_is_float(node->dtype) ||
        !expr_eval_convert(DTYPE_F64, node->dtype, (uint64_t)node->value, &bits))
        return false;
    memcpy(value, &bits, sizeof *value);
    return true;
}

static bool is_int(const struct exprs *pool, expr e, int64_t value)
{
    int64_t known;
    return expr_constant_int(pool, e, &known) && known == value;
}

/* The bits of a float constant that is a number; by bits, since -0 and 0 are not the same. */
static bool is_float(const struct exprs *pool, expr e, double value)
{
    double known;
    return expr_constant_float(pool, e, &known) && memcmp(&known, &value, sizeof known) == 0;
}

static bool all_ones(const struct exprs *pool, expr e)
{
    const struct expr_node *node = expr_at(pool, e);
    return node->op == EXPR_CONSTANT && !dtype_is_float(node->dtype) &&
           (uint64_t)node->value == expr_eval_extend(node->dtype, UINT64_MAX);
}

/* ---- simplification ------------------------------------------------------------------------------------ */

static expr fold_constants(struct exprs *pool, const struct expr_node *node)
{
    uint64_t arguments[3], result;
    if (node->count == 0 || node->count > 3)
        return 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct expr_node *argument = expr_at(pool, node->arguments[i]);
        if (argument->op != EXPR_CONSTANT)
            return 0;
        arguments[i] = (uint64_t)argument->value;
    }
    bool index_division = node->op == EXPR_INDEX_DIV || node->op == EXPR_INDEX_MOD;
    if (index_division && ((int64_t)arguments[0] < 0 || (int64_t)arguments[1] <= 0))
        return 0;
    enum dtype from = expr_at(pool, node->arguments[node->op == EXPR_SELECT])->dtype;
    if (!expr_eval_op(node->op, node->dtype, from, arguments, &result))
        return 0;
    return constant_bits(pool, node->dtype, result);
}

/* Arithmetic of two dims is a dim. */
static expr fold_dims(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    const struct expr_node *x = expr_at(pool, a), *y = expr_at(pool, b);
    bool x_dim = x->op == EXPR_DIM, y_dim = y->op == EXPR_DIM;
    if ((!x_dim && !y_dim) || (!x_dim && x->op != EXPR_CONSTANT) || (!y_dim && y->op != EXPR_CONSTANT))
        return 0;
    dim left = x_dim ? (dim)x->value : dim_constant(pool->dims, x->value);
    dim right = y_dim ? (dim)y->value : dim_constant(pool->dims, y->value);
    dim result = DIM_NONE;
    switch (op) {
    case EXPR_ADD:
        result = dim_add(pool->dims, left, right);
        break;
    case EXPR_SUB:
        result = dim_sub(pool->dims, left, right);
        break;
    case EXPR_MUL:
        result = dim_mul(pool->dims, left, right);
        break;
    case EXPR_MIN:
        result = dim_min(pool->dims, left, right);
        break;
    case EXPR_MAX:
        result = dim_max(pool->dims, left, right);
        break;
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
        result =
            op == EXPR_INDEX_DIV ? dim_floor_div(pool->dims, left, right) : dim_mod(pool->dims, left, right);
        break;
    default:
        break;
    }
    return result == DIM_NONE ? 0 : expr_dim(pool, result);
}

/* 1 / value when it is exact and normal, so that x / value and x * (1 / value) are the same real number. */
static bool exact_reciprocal(const struct exprs *pool, expr e, double *reciprocal)
{
    double value;
    uint64_t bits;
    if (!expr_constant_float(pool, e, &value))
        return false;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023,
        limit = expr_at(pool, e)->dtype == DTYPE_F64 ? 1022 : 126;
    if (bits & ((UINT64_C(1) << 52) - 1) || exponent < -limit || exponent > limit)
        return false;
    *reciprocal = 1 / value;
    return true;
}

static expr simplify_float(struct exprs *pool, enum expr_op op, enum dtype dtype, expr a, expr b)
{
    double reciprocal;
    switch (op) {
    case EXPR_ADD:
        return is_float(pool, b, -0.0) ? a : is_float(pool, a, -0.0) ? b : 0;
    case EXPR_SUB:
        return is_float(pool, b, 0.0) ? a : 0;
    case EXPR_MUL:
        if (is_float(pool, b, 1))
            return a;
        if (is_float(pool, a, 1))
            return b;
        if (is_float(pool, b, -1))
            return expr_unary(pool, EXPR_NEG, a);
        return is_float(pool, a, -1) ? expr_unary(pool, EXPR_NEG, b) : 0;
    case EXPR_DIV:
        if (is_float(pool, b, 1))
            return a;
        return exact_reciprocal(pool, b, &reciprocal)
                   ? expr_binary(pool, EXPR_MUL, a, expr_float(pool, dtype, reciprocal))
                   : 0;
    case EXPR_MIN:
    case EXPR_MAX:
        return a == b ? a : 0;
    default:
        return 0;
    }
}

/* (x + c) + d is x + (c + d); the same for MUL, AND, OR, XOR, MIN, MAX. Wrapping addition is associative. */
static expr reassociate(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    const struct expr_node *inner = expr_at(pool, a);
    if (inner->op != op || expr_at(pool, b)->op != EXPR_CONSTANT ||
        expr_at(pool, inner->arguments[1])->op != EXPR_CONSTANT)
        return 0;
    expr x = inner->arguments[0], c = inner->arguments[1];
    return expr_binary(pool, op, x, expr_binary(pool, op, c, b));
}

static expr simplify_add(struct exprs *pool, enum expr_op op, enum dtype dtype, expr a, expr b)
{
    if (is_int(pool, b, 0))
        return a;
    if (op == EXPR_SUB) {
        int64_t value;
        if (a == b)
            return expr_int(pool, dtype, 0);
        if (expr_constant_int(pool, b, &value))
            return expr_binary(pool, EXPR_ADD, a, expr_int(pool, dtype, (int64_t)(0 - (uint64_t)value)));
        const struct expr_node *left = expr_at(pool, a);
        if (left->op == EXPR_ADD && left->arguments[0] == b)
            return left->arguments[1];
        if (left->op == EXPR_ADD && left->arguments[1] == b)
            return left->arguments[0];
        return 0;
    }
    const struct expr_node *left = expr_at(pool, a), *right = expr_at(pool, b);
    if (left->op == EXPR_SUB && left->arguments[1] == b)
        return left->arguments[0];
    if (right->op == EXPR_SUB && right->arguments[1] == a)
        return right->arguments[0];
    /* Constants move outwards: x + (y + c) is (x + y) + c. */
    if (right->op == EXPR_ADD && expr_at(pool, right->arguments[1])->op == EXPR_CONSTANT) {
        expr y = right->arguments[0], c = right->arguments[1];
        return expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_ADD, a, y), c);
    }
    if (left->op == EXPR_ADD && right->op != EXPR_CONSTANT &&
        expr_at(pool, left->arguments[1])->op == EXPR_CONSTANT) {
        expr x = left->arguments[0], c = left->arguments[1];
        return expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_ADD, x, b), c);
    }
    return 0;
}

/* Integers and bools. Constants stand on the right by now. */
static expr simplify_integer(struct exprs *pool, enum expr_op op, enum dtype dtype, expr a, expr b)
{
    switch (op) {
    case EXPR_ADD:
    case EXPR_SUB:
        return simplify_add(pool, op, dtype, a, b);
    case EXPR_MUL:
        return is_int(pool, b, 1) ? a : is_int(pool, b, 0) ? b : 0;
    case EXPR_DIV:
    case EXPR_INDEX_DIV:
        return is_int(pool, b, 1) ? a : is_int(pool, a, 0) ? a : 0;
    case EXPR_REMAINDER:
    case EXPR_INDEX_MOD:
        return is_int(pool, b, 1) || is_int(pool, a, 0) ? expr_int(pool, dtype, 0) : 0;
    case EXPR_MIN:
    case EXPR_MAX:
        return a == b ? a : 0;
    case EXPR_SHIFT_LEFT:
    case EXPR_SHIFT_RIGHT:
        return is_int(pool, b, 0) || is_int(pool, a, 0) ? a : 0;
    case EXPR_AND:
        return a == b || all_ones(pool, b) ? a : is_int(pool, b, 0) ? b : 0;
    case EXPR_OR:
        return a == b || is_int(pool, b, 0) ? a : all_ones(pool, b) ? b : 0;
    case EXPR_XOR:
        if (a == b)
            return expr_int(pool, dtype, 0);
        if (is_int(pool, b, 0))
            return a;
        return all_ones(pool, b) ? expr_unary(pool, EXPR_NOT, a) : 0;
    default:
        return 0;
    }
}

static bool commutes(enum expr_op op)
{
    return op == EXPR_ADD || op == EXPR_MUL || op == EXPR_MIN || op == EXPR_MAX || op == EXPR_AND ||
           op == EXPR_OR || op == EXPR_XOR;
}

/* Where an operand of a sum of floats stands: what is computed, what is loaded, constants. */
static int place_of(const struct exprs *pool, expr e)
{
    switch (expr_at(pool, e)->op) {
    case EXPR_CONSTANT:
        return 2;
    case EXPR_LOAD:
    case EXPR_LOAD_OR:
    case EXPR_ELEMENT:
    case EXPR_ELEMENT_OR:
        return 1;
    default:
        return 0;
    }
}

/* Exporters write a + b or b + a; kernels shall not differ by it. Index expressions have an order of their
 * own, and MIN and MAX of floats tell zeros apart by theirs. */
static bool stand_reversed(const struct exprs *pool, const struct expr_node *node)
{
    const expr a = node->arguments[0], b = node->arguments[1];
    if (dtype_is_float(node->dtype) && node->op == EXPR_ADD)
        return place_of(pool, a) > place_of(pool, b);
    return expr_at(pool, a)->op == EXPR_CONSTANT && expr_at(pool, b)->op != EXPR_CONSTANT &&
           (dtype_is_float(node->dtype) ? node->op == EXPR_MUL : commutes(node->op));
}

static expr simplify_binary(struct exprs *pool, const struct expr_node *node)
{
    expr a = node->arguments[0], b = node->arguments[1];
    if (stand_reversed(pool, node))
        return expr_binary(pool, node->op, b, a);
    if (dtype_is_float(node->dtype))
        return simplify_float(pool, node->op, node->dtype, a, b);
    expr result = node->dtype == DTYPE_I64 ? fold_dims(pool, node->op, a, b) : 0;
    if (!result)
        result = simplify_integer(pool, node->op, node->dtype, a, b);
    if (!result && commutes(node->op))
        result = reassociate(pool, node->op, a, b);
    if (!result && node->dtype == DTYPE_I64)
        result = expr_simplify_index(pool, node->op, a, b);
    return result;
}

static expr simplify_unary(struct exprs *pool, const struct expr_node *node)
{
    expr a = node->arguments[0];
    const struct expr_node *argument = expr_at(pool, a);
    bool is_real = dtype_is_float(argument->dtype);
    switch (node->op) {
    case EXPR_NEG:
        return argument->op == EXPR_NEG ? argument->arguments[0] : 0;
    case EXPR_ABS:
        if (argument->op == EXPR_ABS || dtype_class(node->dtype) == DTYPE_CLASS_UINT)
            return a;
        return argument->op == EXPR_NEG && is_real ? expr_unary(pool, EXPR_ABS, argument->arguments[0]) : 0;
    case EXPR_FLOOR:
    case EXPR_CEIL:
    case EXPR_TRUNC:
    case EXPR_ROUND_EVEN: {
        bool integral = argument->op == EXPR_FLOOR || argument->op == EXPR_CEIL ||
                        argument->op == EXPR_TRUNC || argument->op == EXPR_ROUND_EVEN;
        return integral ? a : 0;
    }
    case EXPR_NOT: {
        if (argument->op == EXPR_NOT)
            return argument->arguments[0];
        if (expr_class_of(argument->op) != EXPR_COMPARE)
            return 0;
        expr x = argument->arguments[0], y = argument->arguments[1];
        if (argument->op == EXPR_EQUAL || argument->op == EXPR_NOT_EQUAL)
            return expr_binary(pool, argument->op == EXPR_EQUAL ? EXPR_NOT_EQUAL : EXPR_EQUAL, x, y);
        if (dtype_is_float(expr_at(pool, x)->dtype))
            return 0; /* with NaN both orders are false */
        return expr_binary(pool, argument->op == EXPR_LESS ? EXPR_LESS_EQUAL : EXPR_LESS, y, x);
    }
    default:
        return 0;
    }
}

static expr simplify_compare(struct exprs *pool, const struct expr_node *node)
{
    expr a = node->arguments[0], b = node->arguments[1];
    enum dtype from = expr_at(pool, a)->dtype;
    bool is_real = dtype_is_float(from);
    if (a == b && node->op == EXPR_LESS)
        return expr_int(pool, DTYPE_BOOL, 0);
    if (a == b && !is_real)
        return expr_int(pool, DTYPE_BOOL, node->op != EXPR_NOT_EQUAL);
    if (from == DTYPE_BOOL && (node->op == EXPR_EQUAL || node->op == EXPR_NOT_EQUAL)) {
        int64_t value;
        if (expr_constant_int(pool, b, &value))
            return (value != 0) == (node->op == EXPR_EQUAL) ? a : expr_unary(pool, EXPR_NOT, a);
        if (expr_constant_int(pool, a, &value))
            return (value != 0) == (node->op == EXPR_EQUAL) ? b : expr_unary(pool, EXPR_NOT, b);
    }
    return from == DTYPE_I64 ? expr_simplify_index(pool, node->op, a, b) : 0;
}

static expr simplify_select(struct exprs *pool, const struct expr_node *node)
{
    expr condition = node->arguments[0], then = node->arguments[1], otherwise = node->arguments[2];
    int64_t value;
    if (expr_constant_int(pool, condition, &value))
        return value ? then : otherwise;
    if (then == otherwise)
        return then;
    if (expr_at(pool, condition)->op == EXPR_NOT)
        return expr_select(pool, expr_at(pool, condition)->arguments[0], otherwise, then);
    int64_t first, second;
    if (node->dtype == DTYPE_BOOL && expr_constant_int(pool, then, &first) &&
        expr_constant_int(pool, otherwise, &second))
        return first ? condition : expr_unary(pool, EXPR_NOT, condition);
    /* The branch of an inner select that the same condition rules out. */
    const struct expr_node *inner = expr_at(pool, then);
    if (inner->op == EXPR_SELECT && inner->arguments[0] == condition)
        return expr_select(pool, condition, inner->arguments[1], otherwise);
    inner = expr_at(pool, otherwise);
    if (inner->op == EXPR_SELECT && inner->arguments[0] == condition)
        return expr_select(pool, condition, then, inner->arguments[2]);
    return 0;
}

/* Every value of the narrow type is a value of the wide one. */
static bool holds_exactly(enum dtype wide, enum dtype narrow)
{
    const struct float_format *w = float_format_of(wide), *n = float_format_of(narrow);
    if (wide == narrow)
        return true;
    if (w && n)
        return w->has_infinity && w->mantissa_bits > n->mantissa_bits &&
               w->exponent_bits >= n->exponent_bits &&
               (w->bias > n->bias || wide == DTYPE_F64 || w->mantissa_bits >= 23) && narrow != DTYPE_F8E8M0;
    if (narrow == DTYPE_BOOL)
        return w ? w->is_signed : dtype_is_integer(wide);
    if (!dtype_is_integer(narrow))
        return false;
    bool narrow_signed = dtype_class(narrow) == DTYPE_CLASS_INT;
    unsigned magnitude = dtype_bits(narrow) - narrow_signed;
    if (w)
        return (wide == DTYPE_F32 || wide == DTYPE_F64) && magnitude <= w->mantissa_bits + 1;
    if (!dtype_is_integer(wide))
        return false;
    bool wide_signed = dtype_class(wide) == DTYPE_CLASS_INT;
    return dtype_bits(wide) - wide_signed >= magnitude && (wide_signed || !narrow_signed);
}

static expr simplify_conversion(struct exprs *pool, const struct expr_node *node)
{
    expr a = node->arguments[0];
    const struct expr_node *argument = expr_at(pool, a);
    if (argument->dtype == node->dtype)
        return a;
    if (argument->op != node->op)
        return 0;
    expr x = argument->arguments[0];
    if (node->op == EXPR_BITCAST)
        return expr_bitcast(pool, node->dtype, x);
    /* A detour through a type that holds every value says nothing, except that from float to integer
     * saturates where from integer to integer wraps. */
    enum dtype from = expr_at(pool, x)->dtype, through = argument->dtype;
    if (!holds_exactly(through, from))
        return 0;
    bool whole = dtype_is_integer(from) || from == DTYPE_BOOL;
    if (whole && dtype_is_float(through) && dtype_is_integer(node->dtype) &&
        !holds_exactly(node->dtype, from))
        return 0;
    return expr_convert(pool, node->dtype, x);
}

static expr simplify(struct exprs *pool, const struct expr_node *node)
{
    if (node->lanes != 1)
        return 0;
    switch (expr_class_of(node->op)) {
    case EXPR_ARITHMETIC:
    case EXPR_LOGIC:
    case EXPR_COMPARE:
    case EXPR_CONVERSION:
        break;
    default:
        return 0;
    }
    expr folded = fold_constants(pool, node);
    if (folded)
        return folded;
    if (node->op == EXPR_SELECT)
        return simplify_select(pool, node);
    switch (expr_class_of(node->op)) {
    case EXPR_COMPARE:
        return simplify_compare(pool, node);
    case EXPR_CONVERSION:
        return simplify_conversion(pool, node);
    default:
        return node->count == 1   ? simplify_unary(pool, node)
               : node->count == 2 ? simplify_binary(pool, node)
                                  : 0;
    }
}

/* ---- builders ------------------------------------------------------------------------------------------ */

#ifndef NDEBUG
static bool operands_fit(const struct exprs *pool, const struct expr_node *node)
{
    enum expr_class class = expr_class_of(node->op);
    if (node->op == EXPR_NONE || node->op >= EXPR_COUNT || node->lanes == 0)
        return false;
    if (rows[node->op].arguments != ANY_NUMBER && rows[node->op].arguments != node->count)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (node->arguments[i] == 0 || node->arguments[i] >= pool->nodes.count)
            return false;
    const expr *a = node->arguments;
    if (node->op == EXPR_SELECT)
        return expr_at(pool, a[0])->dtype == DTYPE_BOOL && expr_at(pool, a[1])->dtype == node->dtype &&
               expr_at(pool, a[2])->dtype == node->dtype;
    if (class == EXPR_COMPARE)
        return node->dtype == DTYPE_BOOL && expr_at(pool, a[0])->dtype == expr_at(pool, a[1])->dtype;
    if (node->op == EXPR_BITCAST)
        return dtype_bits(node->dtype) == dtype_bits(expr_at(pool, a[0])->dtype);
    if (class == EXPR_ARITHMETIC || class == EXPR_LOGIC || class == EXPR_FUNCTION)
        for (uint32_t i = 0; i < node->count; i++)
            if (expr_at(pool, a[i])->dtype != node->dtype || expr_at(pool, a[i])->lanes != node->lanes)
                return false;
    return true;
}
#endif

expr expr_make(struct exprs *pool, const struct expr_node *node)
{
    assert(operands_fit(pool, node));
    expr simpler = simplify(pool, node);
    return simpler ? simpler : intern_node(pool, node);
}

expr expr_dim(struct exprs *pool, dim d)
{
    int64_t value;
    if (dim_is_constant(pool->dims, d, &value))
        return expr_index(pool, value);
    struct expr_node node = {.op = EXPR_DIM, .dtype = DTYPE_I64, .lanes = 1, .value = (int64_t)d};
    return expr_make(pool, &node);
}

expr expr_axis(struct exprs *pool, uint32_t axis, dim extent)
{
    if (dim_equals_constant(pool->dims, extent, 1))
        return expr_index(pool, 0);
    struct expr_node node = {
        .op = EXPR_AXIS, .dtype = DTYPE_I64, .lanes = 1, .extent = extent, .value = (int64_t)axis};
    return expr_make(pool, &node);
}

expr expr_load(struct exprs *pool, uint32_t buffer, enum dtype dtype, uint32_t rank, const expr *indices)
{
    struct expr_node node = {.op = EXPR_LOAD,
                             .dtype = dtype,
                             .lanes = 1,
                             .count = (uint16_t)rank,
                             .value = (int64_t)buffer,
                             .arguments = indices};
    return expr_make(pool, &node);
}

expr expr_load_or(struct exprs *pool, uint32_t buffer, enum dtype dtype, uint32_t rank, const expr *indices,
                  expr otherwise)
{
    expr *arguments = arena_new_array(pool->arena, expr, (size_t)rank + 1);
    if (rank)
        memcpy(arguments, indices, rank * sizeof *indices);
    arguments[rank] = otherwise;
    struct expr_node node = {.op = EXPR_LOAD_OR,
                             .dtype = dtype,
                             .lanes = 1,
                             .count = (uint16_t)(rank + 1),
                             .value = (int64_t)buffer,
                             .arguments = arguments};
    return expr_make(pool, &node);
}

expr expr_reduced(struct exprs *pool, uint32_t which, enum dtype dtype)
{
    struct expr_node node = {.op = EXPR_REDUCED, .dtype = dtype, .lanes = 1, .value = (int64_t)which};
    return expr_make(pool, &node);
}

static expr make_operation(struct exprs *pool, enum expr_op op, enum dtype dtype, uint16_t count,
                           const expr *arguments)
{
    struct expr_node node = {.op = op,
                             .dtype = dtype,
                             .lanes = expr_at(pool, arguments[0])->lanes,
                             .count = count,
                             .arguments = arguments};
    return expr_make(pool, &node);
}

expr expr_unary(struct exprs *pool, enum expr_op op, expr a)
{
    return make_operation(pool, op, expr_at(pool, a)->dtype, 1, &a);
}

expr expr_binary(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    expr arguments[] = {a, b};
    enum dtype dtype = expr_class_of(op) == EXPR_COMPARE ? DTYPE_BOOL : expr_at(pool, a)->dtype;
    return make_operation(pool, op, dtype, 2, arguments);
}

expr expr_fma(struct exprs *pool, expr a, expr b, expr c)
{
    expr arguments[] = {a, b, c};
    return make_operation(pool, EXPR_FMA, expr_at(pool, a)->dtype, 3, arguments);
}

expr expr_select(struct exprs *pool, expr condition, expr then, expr otherwise)
{
    expr arguments[] = {condition, then, otherwise};
    struct expr_node node = {.op = EXPR_SELECT,
                             .dtype = expr_at(pool, then)->dtype,
                             .lanes = expr_at(pool, then)->lanes,
                             .count = 3,
                             .arguments = arguments};
    return expr_make(pool, &node);
}

expr expr_convert(struct exprs *pool, enum dtype to, expr a)
{
    return expr_at(pool, a)->dtype == to ? a : make_operation(pool, EXPR_CONVERT, to, 1, &a);
}

expr expr_bitcast(struct exprs *pool, enum dtype to, expr a)
{
    return expr_at(pool, a)->dtype == to ? a : make_operation(pool, EXPR_BITCAST, to, 1, &a);
}

enum dtype compute_dtype(enum dtype storage)
{
    if (storage == DTYPE_F64)
        return DTYPE_F64;
    if (dtype_is_float(storage))
        return DTYPE_F32;
    if (dtype_is_integer(storage) && dtype_bits(storage) < 32)
        return dtype_class(storage) == DTYPE_CLASS_INT ? DTYPE_I32 : DTYPE_U32;
    return storage;
}

/* ---- walking and rewriting ----------------------------------------------------------------------------- */

void expr_walk_init(struct expr_walk *walk, struct arena *arena)
{
    memset(walk, 0, sizeof *walk);
    walk->arena = arena;
    walk->slot_count = 64;
    walk->slots = arena_new_array(arena, uint32_t, walk->slot_count);
}

static uint32_t *walk_slot(const struct expr_walk *walk, expr e)
{
    uint32_t mask = walk->slot_count - 1;
    for (uint32_t i = (uint32_t)hash_word(0, e) & mask;; i = (i + 1) & mask)
        if (!walk->slots[i] || walk->order.items[walk->slots[i] - 1] == e)
            return &walk->slots[i];
}

static void walk_index(struct expr_walk *walk, bool grow)
{
    if (grow) {
        walk->slot_count *= 2;
        walk->slots = arena_new_array(walk->arena, uint32_t, walk->slot_count);
    } else {
        memset(walk->slots, 0, walk->slot_count * sizeof *walk->slots);
    }
    for (uint32_t i = 0; i < walk->order.count; i++)
        *walk_slot(walk, walk->order.items[i]) = i + 1;
}

void expr_walk_add(struct expr_walk *walk, const struct exprs *pool, expr root)
{
    /* The order doubles as the queue: nodes behind `next` have not been looked into. */
    uint32_t next = walk->order.count;
    expr pending = root;
    uint32_t argument = 0;
    for (;;) {
        uint32_t *slot = walk_slot(walk, pending);
        if (!*slot) {
            *slot = walk->order.count + 1;
            vec_push(walk->arena, &walk->order, pending);
            if (walk->order.count > walk->slot_count / 2)
                walk_index(walk, true);
        }
        while (next < walk->order.count && argument >= expr_at(pool, walk->order.items[next])->count) {
            next++;
            argument = 0;
        }
        if (next >= walk->order.count)
            return;
        pending = expr_at(pool, walk->order.items[next])->arguments[argument++];
    }
}

static int compare_numbers(const void *left, const void *right)
{
    expr a = *(const expr *)left, b = *(const expr *)right;
    return (a > b) - (a < b);
}

void expr_walk_finish(struct expr_walk *walk)
{
    if (walk->order.count)
        qsort(walk->order.items, walk->order.count, sizeof *walk->order.items, compare_numbers);
    walk_index(walk, false);
}

uint32_t expr_walk_position(const struct expr_walk *walk, expr e)
{
    return *walk_slot(walk, e) - 1;
}

expr expr_rewrite(struct exprs *into, const struct exprs *from, expr e,
                  expr (*leaf)(void *user, struct exprs *into, const struct expr_node *node,
                               const expr *arguments),
                  void *user)
{
    struct expr_walk walk;
    expr_walk_init(&walk, into->arena);
    expr_walk_add(&walk, from, e);
    expr_walk_finish(&walk);
    expr *results = arena_new_array(into->arena, expr, walk.order.count);
    for (uint32_t i = 0; i < walk.order.count; i++) {
        struct expr_node node = *expr_at(from, walk.order.items[i]);
        expr *arguments = arena_new_array(into->arena, expr, node.count);
        for (uint32_t k = 0; k < node.count; k++)
            arguments[k] = results[expr_walk_position(&walk, node.arguments[k])];
        if (expr_class_of(node.op) == EXPR_LEAF || expr_class_of(node.op) == EXPR_KERNEL)
            results[i] = leaf(user, into, &node, arguments);
        if (!results[i]) {
            node.arguments = arguments;
            results[i] = node.op == EXPR_AXIS  ? expr_axis(into, (uint32_t)node.value, node.extent)
                         : node.op == EXPR_DIM ? expr_dim(into, (dim)node.value)
                                               : expr_make(into, &node);
        }
    }
    return results[expr_walk_position(&walk, e)];
}

/* ---- cost
 * ----------------------------------------------------------------------------------------------------------
 */

static uint32_t node_cost(const struct exprs *pool, const struct expr_node *node)
{
    switch (node->op) {
    case EXPR_DIV:
    case EXPR_REMAINDER:
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
        if (dtype_is_float(node->dtype))
            return 8;
        return expr_at(pool, node->arguments[1])->op == EXPR_CONSTANT ? 4 : 20;
    case EXPR_SQRT:
        return 8;
    case EXPR_EXP:
    case EXPR_EXP2:
        return 16;
    case EXPR_SIGMOID:
    case EXPR_LOG:
        return 28;
    case EXPR_TANH:
    case EXPR_ERF:
        return 32;
    case EXPR_SIN:
    case EXPR_COS:
        return 70;
    case EXPR_POW:
        return 90;
    case EXPR_SHUFFLE_XOR:
        return 4;
    default:
        return expr_class_of(node->op) == EXPR_LEAF || expr_class_of(node->op) == EXPR_KERNEL ? 0 : 1;
    }
}

uint32_t expr_cost(const struct exprs *pool, expr e)
{
    struct expr_walk walk;
    uint32_t cost = 0;
    expr_walk_init(&walk, pool->arena);
    expr_walk_add(&walk, pool, e);
    for (uint32_t i = 0; i < walk.order.count; i++)
        cost += node_cost(pool, expr_at(pool, walk.order.items[i]));
    return cost;
}

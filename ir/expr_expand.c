/* Replaces what no machine does the same way everywhere by arithmetic that every executor does alike. What is
 * left after expr_expand is listed in docs/kernel-ir.md. Each node is expanded once, in evaluation order; an
 * expansion is a straight line of selects, so that it vectorises and no thread diverges. Divisions by what
 * may be zero get their guards here. */
#include "ir/expr_expand_internal.h"

#include "ir/expr_internal.h"

#include <string.h>

/* ---- helpers for all expansions ------------------------------------------------------------------------ */

expr constant_like(struct exprs *pool, expr like, double value)
{
    enum dtype dtype = expr_at(pool, like)->dtype;
    return dtype_is_float(dtype) ? expr_float(pool, dtype, value) : expr_int(pool, dtype, (int64_t)value);
}

expr constant_of_bits(struct exprs *pool, enum dtype dtype, uint64_t bits)
{
    unsigned width = dtype_bits(dtype);
    enum dtype word = width == 64 ? DTYPE_U64 : width == 32 ? DTYPE_U32 : width == 16 ? DTYPE_U16 : DTYPE_U8;
    return expr_bitcast(pool, dtype, expr_int(pool, word, (int64_t)bits));
}

expr polynomial(struct exprs *pool, const double *coefficients, uint32_t count, expr x)
{
    expr sum = constant_like(pool, x, coefficients[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;)
        sum = fused(pool, sum, x, constant_like(pool, x, coefficients[i]));
    return sum;
}

expr with_sign_of(struct exprs *pool, expr a, expr sign)
{
    enum dtype dtype = expr_at(pool, a)->dtype;
    enum dtype word = dtype == DTYPE_F64 ? DTYPE_U64 : DTYPE_U32;
    uint64_t mask = dtype == DTYPE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    expr bits = masked(pool, expr_bitcast(pool, word, sign), mask);
    return expr_bitcast(pool, dtype, either(pool, expr_bitcast(pool, word, a), bits));
}

/* 1 / (1 + e^-x), and for x < 0 the equal e^x / (1 + e^x), which keeps its precision. */
expr sigmoid_by(struct exprs *pool, expr x, expr e)
{
    expr one = constant_like(pool, x, 1), is_negative = below(pool, x, 0);
    expr divisor = plus(pool, one, e), lost = plus(pool, minus(pool, one, divisor), e);
    expr value = over(pool, choose(pool, is_negative, e, one), divisor);
    /* What the rounded divisor lost: value * lost / divisor, where 1 / divisor is the value itself or 1 -
     * value. */
    expr inverse = choose(pool, is_negative, minus(pool, value, one), negated(pool, value));
    return fused(pool, times(pool, value, lost), inverse, value);
}

/* ---- integers ------------------------------------------------------------------------------------------ */

/* x / 0 = 0, x rem 0 = 0, MIN / -1 = MIN, x rem -1 = 0. Neither divisor reaches the division itself. */
static expr expand_division(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    expr zero = constant_like(pool, a, 0), one = constant_like(pool, a, 1);
    bool is_signed = dtype_class(expr_at(pool, a)->dtype) == DTYPE_CLASS_INT;
    expr is_zero = equal(pool, b, zero), unsafe = is_zero, is_minus_one = expr_int(pool, DTYPE_BOOL, 0);
    if (is_signed) {
        is_minus_one = equal(pool, b, constant_like(pool, a, -1));
        unsafe = either(pool, is_zero, is_minus_one);
    }
    int64_t always;
    if (expr_constant_int(pool, unsafe, &always) && !always)
        return expr_binary(pool, op, a, b);
    expr safe = expr_binary(pool, op, a, choose(pool, unsafe, one, b));
    if (op == EXPR_REMAINDER) /* x rem 1 is 0 already */
        return safe;
    if (is_signed)
        safe = choose(pool, is_minus_one, negated(pool, a), safe);
    return choose(pool, is_zero, zero, safe);
}

/* ---- all
 * -----------------------------------------------------------------------------------------------------------
 */

static expr expand_node(struct exprs *pool, const struct expr_node *node, const expr *arguments)
{
    bool is_real = dtype_is_float(node->dtype);
    switch (node->op) {
    case EXPR_CONVERT:
        return expand_conversion(pool, node->dtype, arguments[0]);
    case EXPR_DIV:
        return is_real ? 0 : expand_division(pool, node->op, arguments[0], arguments[1]);
    case EXPR_REMAINDER:
        return is_real ? expand_remainder(pool, arguments[0], arguments[1])
                       : expand_division(pool, node->op, arguments[0], arguments[1]);
    case EXPR_POW:
        return expand_pow(pool, arguments[0], arguments[1]);
    case EXPR_SIN:
    case EXPR_COS:
        return expand_sine(pool, node->op, arguments[0]);
    default:
        if (expr_class_of(node->op) != EXPR_FUNCTION)
            return 0;
        return node->dtype == DTYPE_F64 ? expand_f64(pool, node->op, arguments[0])
                                        : expand_f32(pool, node->op, arguments[0]);
    }
}

static bool is_storage_float(enum dtype dtype)
{
    return dtype_is_float(dtype) && dtype != DTYPE_F32 && dtype != DTYPE_F64;
}

bool expr_is_call(const struct exprs *pool, const struct expr_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (expr_at(pool, node->arguments[i])->op == EXPR_CONSTANT)
            return false;
    if (node->op == EXPR_CONVERT)
        return is_storage_float(node->dtype) || is_storage_float(expr_at(pool, node->arguments[0])->dtype);
    return expr_class_of(node->op) == EXPR_FUNCTION;
}

static expr expand(struct exprs *pool, expr e, bool keep_calls)
{
    struct expr_walk walk;
    expr_walk_init(&walk, pool->arena);
    expr_walk_add(&walk, pool, e);
    expr_walk_finish(&walk);
    expr *results = arena_new_array(pool->arena, expr, walk.order.count);
    for (uint32_t i = 0; i < walk.order.count; i++) {
        struct expr_node node = *expr_at(pool, walk.order.items[i]);
        expr *arguments = arena_new_array(pool->arena, expr, node.count);
        bool changed = false;
        for (uint32_t k = 0; k < node.count; k++) {
            arguments[k] = results[expr_walk_position(&walk, node.arguments[k])];
            changed |= arguments[k] != node.arguments[k];
        }
        node.arguments = arguments;
        const bool kept = keep_calls && expr_is_call(pool, &node);
        results[i] = kept ? 0 : expand_node(pool, &node, arguments);
        if (!results[i] && changed) {
            results[i] = expr_make(pool, &node);
        } else if (!results[i]) {
            results[i] = walk.order.items[i];
        }
    }
    return results[expr_walk_position(&walk, e)];
}

expr expr_expand(struct exprs *pool, expr e)
{
    return expand(pool, e, false);
}

expr expr_expand_inline(struct exprs *pool, expr e)
{
    return expand(pool, e, true);
}

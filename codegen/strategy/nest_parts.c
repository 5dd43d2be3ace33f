/* See nest_parts.h. Arguments of an expression have smaller numbers than their users: one pass downwards sees
 * all. */
#include "codegen/strategy/nest_parts.h"

#include <math.h>

static const enum expr_op combines[] = {
    [REDUCE_SUM] = EXPR_ADD, [REDUCE_PRODUCT] = EXPR_MUL, [REDUCE_MAX] = EXPR_MAX, [REDUCE_MIN] = EXPR_MIN};

expr reduce_combine(struct exprs *pool, enum reduce_op op, expr a, expr b)
{
    if (expr_at(pool, a)->dtype == DTYPE_BOOL) /* any and all */
        return expr_binary(pool, op == REDUCE_MAX || op == REDUCE_SUM ? EXPR_OR : EXPR_AND, a, b);
    return expr_binary(pool, combines[op], a, b);
}

expr reduce_neutral(struct exprs *pool, enum reduce_op op, enum dtype dtype)
{
    const bool is_real = dtype_is_float(dtype);
    if (op == REDUCE_SUM || op == REDUCE_PRODUCT)
        return is_real ? expr_float(pool, dtype, op == REDUCE_PRODUCT)
                       : expr_int(pool, dtype, op == REDUCE_PRODUCT);
    if (is_real)
        return expr_float(pool, dtype, op == REDUCE_MAX ? -INFINITY : INFINITY);
    const bool is_signed = dtype_class(dtype) == DTYPE_CLASS_INT;
    const unsigned bits = dtype_bits(dtype);
    const uint64_t highest = UINT64_MAX >> (64 - bits + is_signed);
    const uint64_t lowest = is_signed ? ~highest : 0;
    return expr_int(pool, dtype, (int64_t)(op == REDUCE_MAX ? lowest : highest));
}

bool *expr_reached(struct arena *arena, const struct exprs *pool, expr e)
{
    bool *reached = arena_new_array(arena, bool, (size_t)e + 1);
    reached[e] = true;
    for (expr x = e; x > 0; x--) {
        const struct expr_node *node = expr_at(pool, x);
        for (uint32_t i = 0; reached[x] && i < node->count; i++)
            reached[node->arguments[i]] = true;
    }
    return reached;
}

bool expr_uses_axis(struct arena *arena, const struct exprs *pool, expr e, uint32_t axis)
{
    const bool *reached = expr_reached(arena, pool, e);
    for (expr x = 1; x <= e; x++)
        if (reached[x] && expr_at(pool, x)->op == EXPR_AXIS && expr_at(pool, x)->value == (int64_t)axis)
            return true;
    return false;
}

void expr_mark_loads(struct arena *arena, const struct exprs *pool, expr e, bool *loaded)
{
    const bool *reached = expr_reached(arena, pool, e);
    for (expr x = 1; x <= e; x++) {
        const struct expr_node *node = expr_at(pool, x);
        if (reached[x] && (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR))
            loaded[node->value] = true;
    }
}

/* Contractions: finds matmul, convolution and their kin by the form of a nest, whatever operator it came
 * from, and says which axes play which part. Looks only at which axes the factors use; it does not judge
 * whether a strategy can handle the indices (expr_affine tells a strategy that). */
#include "ir/expr_internal.h"
#include "ir/group.h"

#include <string.h>

/* The axes that an expression uses, as bits. */
static uint32_t axes_of(const struct exprs *pool, struct arena *arena, expr e)
{
    struct expr_walk walk;
    uint32_t axes = 0;
    expr_walk_init(&walk, arena);
    expr_walk_add(&walk, pool, e);
    for (uint32_t i = 0; i < walk.order.count; i++) {
        const struct expr_node *node = expr_at(pool, walk.order.items[i]);
        if (node->op == EXPR_AXIS && node->value < MAX_AXES)
            axes |= UINT32_C(1) << node->value;
    }
    return axes;
}

static uint32_t count_bits(uint32_t bits)
{
    uint32_t count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

static bool is_load(enum expr_op op)
{
    return op == EXPR_LOAD || op == EXPR_LOAD_OR;
}

/* Does an index of this load depend on another load? */
static bool is_indirect(const struct exprs *pool, struct arena *arena, const struct expr_node *load)
{
    uint32_t rank = load->op == EXPR_LOAD_OR ? load->count - 1u : load->count;
    struct expr_walk walk;
    expr_walk_init(&walk, arena);
    for (uint32_t i = 0; i < rank; i++)
        expr_walk_add(&walk, pool, load->arguments[i]);
    for (uint32_t i = 0; i < walk.order.count; i++)
        if (is_load(expr_at(pool, walk.order.items[i])->op))
            return true;
    return false;
}

/* The load of a factor's main operand: the one that the sum runs over. Scales and zero points, which use no
 * reduced axis or fewer axes, are part of the prologue. */
static bool main_load(const struct exprs *pool, expr factor, uint32_t reduced, const char *side, expr *out,
                      struct text *why)
{
    struct expr_walk walk;
    uint32_t most = 0;
    bool tie = false;
    *out = 0;
    expr_walk_init(&walk, why->arena);
    expr_walk_add(&walk, pool, factor);
    expr_walk_finish(&walk);
    for (uint32_t i = 0; i < walk.order.count; i++) {
        expr e = walk.order.items[i];
        const struct expr_node *node = expr_at(pool, e);
        uint32_t axes = is_load(node->op) ? axes_of(pool, why->arena, e) : 0;
        if (!(axes & reduced))
            continue;
        if (is_indirect(pool, why->arena, node)) {
            text_printf(why, "an index of the %s operand is itself loaded", side);
            return false;
        }
        uint32_t count = count_bits(axes);
        if (count >= most) {
            tie = count == most;
            most = count;
            *out = e;
        }
    }
    if (*out && !tie)
        return true;
    text_printf(why,
                *out ? "the %s factor loads several operands over the summed axes"
                     : "the %s factor loads nothing over the summed axes",
                side);
    return false;
}

bool find_contraction(const struct definition *definition, uint32_t nest_number, struct contraction *out,
                      struct text *why)
{
    const struct exprs *pool = definition->pool;
    const struct nest *nest = &definition->nests.items[nest_number];
    memset(out, 0, sizeof *out);
    out->nest = nest_number;
    if (nest->reduction_count != 1 || nest->reductions[0].op != REDUCE_SUM || nest->reduce_rank == 0) {
        text_put(why, "the nest is not one sum");
        return false;
    }
    const struct expr_node *body = expr_at(pool, nest->reductions[0].body);
    if (body->op != EXPR_MUL) {
        text_put(why, "the sum is not over a product");
        return false;
    }
    out->left = body->arguments[0];
    out->right = body->arguments[1];
    uint32_t total = nest->rank + nest->reduce_rank;
    uint32_t parallel = (UINT32_C(1) << nest->rank) - 1, reduced = ((UINT32_C(1) << total) - 1) & ~parallel;
    if (!main_load(pool, out->left, reduced, "left", &out->left_load, why) ||
        !main_load(pool, out->right, reduced, "right", &out->right_load, why))
        return false;
    uint32_t left = axes_of(pool, why->arena, out->left), right = axes_of(pool, why->arena, out->right);
    if (((left ^ right) & parallel) == 0) {
        text_put(why, "both factors use the same parallel axes, so no element is used twice");
        return false;
    }
    for (uint32_t axis = 0; axis < total; axis++) {
        uint32_t bit = UINT32_C(1) << axis;
        bool in_left = (left & bit) != 0, in_right = (right & bit) != 0;
        out->roles[axis] = bit & reduced         ? AXIS_REDUCED
                           : in_left == in_right ? AXIS_BATCH
                           : in_left             ? AXIS_LEFT
                                                 : AXIS_RIGHT;
    }
    return true;
}

expr flat_index(struct exprs *pool, const struct tensor_type *type, const expr *indices)
{
    expr stride = expr_index(pool, 1), flat = expr_index(pool, 0);
    for (int i = type->rank - 1; i >= 0; i--) {
        flat = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, indices[i], stride), flat);
        stride = expr_binary(pool, EXPR_MUL, stride, expr_dim(pool, type->dims[i]));
    }
    return flat;
}

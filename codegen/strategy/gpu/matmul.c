/* The plan of a matrix product's operands. See matmul.h. */
#include "codegen/strategy/gpu/matmul.h"

#include <string.h>

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

/* An operand's elements from one value of an axis to the next, [axis]. */
struct strides {
    dim of[MAX_AXES];
};

/* The factor's load when it is nothing but a load of 16-bit floats. */
static const struct expr_node *plain_load(const struct exprs *pool, expr factor)
{
    const struct expr_node *node = expr_at(pool, factor);
    if (node->op == EXPR_CONVERT && node->dtype == DTYPE_F32)
        node = expr_at(pool, node->arguments[0]);
    return node->op == EXPR_LOAD && (node->dtype == DTYPE_F16 || node->dtype == DTYPE_BF16) ? node : NULL;
}

static dim dim_of_expr(struct dims *dims, const struct exprs *pool, expr e)
{
    int64_t value;
    if (expr_constant_int(pool, e, &value))
        return dim_constant(dims, value);
    const struct expr_node *node = expr_at(pool, e);
    return node->op == EXPR_DIM ? dim_current(dims, (dim)node->value) : DIM_NONE;
}

static bool find_strides(const struct matmul_plan *plan, const struct expr_node *load, struct strides *out,
                         struct text *why)
{
    struct exprs *pool = plan->body->pool;
    struct affine affine;
    const struct tensor_type *type = &plan->body->buffers.items[load->value].type;
    const uint32_t axes = plan->nest->rank + plan->nest->reduce_rank;
    const expr flat = load->count == 1 ? load->arguments[0] : flat_index(pool, type, load->arguments);
    int64_t offset;
    if (!expr_affine(pool, flat, axes, &affine))
        return no(why, "an operand whose index is no sum of axes (a broadcast that only sizes decide, a "
                       "gather, a window)");
    if (!expr_constant_int(pool, affine.offset, &offset) || offset != 0)
        return no(why, "an operand that does not begin where its buffer begins");
    for (uint32_t i = 0; i < axes; i++) {
        out->of[i] = dim_of_expr(pool->dims, pool, affine.coefficients[i]);
        if (out->of[i] == DIM_NONE)
            return no(why, "an operand whose strides are no sizes");
    }
    return true;
}

static bool is_one(const struct matmul_plan *plan, uint32_t axis)
{
    return dim_equals_constant(plan->body->pool->dims, plan->nest->extents[axis], 1);
}

/* Puts the axis in front of the run when both operands run through it as one with what the run has. */
static bool join(const struct matmul_plan *plan, const struct strides *strides, uint32_t axis,
                 struct axis_run *run)
{
    struct dims *dims = plan->body->pool->dims;
    for (int side = 0; side < 2 && run->count; side++)
        if (strides[side].of[axis] != dim_mul(dims, run->strides[side], run->extent))
            return false;
    if (!run->count) {
        run->extent = dim_constant(dims, 1);
        run->strides[0] = strides[0].of[axis];
        run->strides[1] = strides[1].of[axis];
    }
    memmove(&run->axes[1], &run->axes[0], run->count * sizeof *run->axes);
    run->axes[0] = axis;
    run->count++;
    run->extent = dim_mul(dims, run->extent, plan->nest->extents[axis]);
    return run->extent != DIM_NONE;
}

static bool add_batch(struct matmul_plan *plan, const struct strides *strides, uint32_t axis,
                      struct text *why)
{
    if (plan->batch_count && join(plan, strides, axis, &plan->batch[plan->batch_count - 1]))
        return true;
    if (plan->batch_count == MAX_BATCH)
        return no(why, "more axes in front of the matrices than tensor maps have dims");
    return join(plan, strides, axis, &plan->batch[plan->batch_count++]) ||
           no(why, "sizes whose product leaves the limits");
}

/* Rows and columns: the last axis that one factor alone has, and those before it that merge. Batch: all
 * others. From the last axis to the first, so batch runs come out last first. */
static bool sort_axes(struct matmul_plan *plan, const struct strides *strides,
                      const struct contraction *contraction, enum axis_role columns, struct text *why)
{
    bool closed[2] = {false, false};
    for (uint32_t axis = plan->nest->rank + plan->nest->reduce_rank; axis-- > 0;) {
        const enum axis_role role = contraction->roles[axis];
        if (is_one(plan, axis))
            continue;
        if (role == AXIS_REDUCED) {
            if (!join(plan, strides, axis, &plan->depth))
                return no(why, "summed axes that do not run through both operands as one");
            continue;
        }
        const int side = role == columns ? SIDE_RIGHT : SIDE_LEFT;
        if (role != AXIS_BATCH && !closed[side] && join(plan, strides, axis, &plan->operands[side].own))
            continue;
        if (role != AXIS_BATCH)
            closed[side] = true;
        if (!add_batch(plan, strides, axis, why))
            return false;
    }
    return true;
}

static bool set_operand(struct matmul_plan *plan, int side, struct text *why)
{
    struct dims *dims = plan->body->pool->dims;
    struct matmul_operand *operand = &plan->operands[side];
    const dim depth = plan->depth.count ? plan->depth.strides[side] : dim_constant(dims, 0);
    if (!operand->own.count)
        return no(why, "a factor without axes of its own: no element is used twice");
    const dim own = operand->own.strides[side];
    operand->along = dim_equals_constant(dims, depth, 1);
    operand->line = operand->along ? own : depth;
    return operand->along || dim_equals_constant(dims, own, 1) ||
           no(why, "an operand that has neither its depth nor its rows or columns side by side");
}

/* A run of one element where there are no axes. */
static void close_run(struct matmul_plan *plan, struct axis_run *run)
{
    struct dims *dims = plan->body->pool->dims;
    if (run->count)
        return;
    run->extent = dim_constant(dims, 1);
    run->strides[0] = run->strides[1] = dim_constant(dims, 0);
}

/* The role of the result's last axis: neighbours there are stored side by side. */
static enum axis_role columns_role(const struct nest *nest, const struct contraction *contraction)
{
    for (uint32_t axis = nest->rank; axis-- > 0;)
        if (contraction->roles[axis] != AXIS_BATCH)
            return contraction->roles[axis];
    return AXIS_RIGHT;
}

bool matmul_plan_make(const struct strategy_context *context, struct matmul_plan *plan, struct text *why)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    struct contraction contraction;
    struct strides strides[2];
    *plan =
        (struct matmul_plan){.body = body, .nest = &body->nests.items[0], .batches = dim_constant(dims, 1)};
    if (body->nests.count != 1)
        return no(why, "several nests");
    if (plan->nest->store_count > MAX_AXES)
        return no(why, "too many stores");
    if (!find_contraction(body, 0, &contraction, why))
        return false;
    if (expr_at(body->pool, plan->nest->reductions[0].body)->dtype != DTYPE_F32)
        return no(why, "sums of another type than f32");
    const enum axis_role columns = columns_role(plan->nest, &contraction);
    const expr factors[2] = {columns == AXIS_RIGHT ? contraction.left : contraction.right,
                             columns == AXIS_RIGHT ? contraction.right : contraction.left};
    for (int side = 0; side < 2; side++) {
        const struct expr_node *load = plain_load(body->pool, factors[side]);
        if (!load || (side && load->dtype != plan->dtype))
            return no(why, "factors that are no plain loads of one 16-bit float type");
        plan->dtype = load->dtype;
        plan->operands[side].buffer = (uint32_t)load->value;
        const struct expr_node copy = *load; /* the pool may grow */
        if (!find_strides(plan, &copy, &strides[side], why))
            return false;
    }
    if (!sort_axes(plan, strides, &contraction, columns, why))
        return false;
    close_run(plan, &plan->depth);
    if (!set_operand(plan, SIDE_LEFT, why) || !set_operand(plan, SIDE_RIGHT, why))
        return false;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        plan->batches = dim_mul(dims, plan->batches, plan->batch[i].extent);
    if (!plan->batches)
        return no(why, "sizes whose product leaves the limits");
    const struct axis_run *run = &plan->operands[SIDE_RIGHT].own;
    plan->whole_runs = dim_divisible(dims, plan->nest->extents[run->axes[run->count - 1]], FRAGMENT_RUN);
    return true;
}

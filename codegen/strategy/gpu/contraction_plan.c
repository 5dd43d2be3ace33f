/* What a contraction's nest says about how it is best tiled: see contraction.h. */
#include <string.h>

#include "codegen/strategy/gpu/contraction.h"

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

/* How often a buffer is loaded below e (each node once). */
static uint32_t loads_of(const struct exprs *pool, expr e, int64_t buffer, unsigned char *visited)
{
    if (visited[e])
        return 0;
    visited[e] = 1;
    const struct expr_node *node = expr_at(pool, e);
    uint32_t count = (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) && node->value == buffer;
    for (uint32_t i = 0; i < node->count; i++)
        count += loads_of(pool, node->arguments[i], buffer, visited);
    return count;
}

static bool is_axis(const struct exprs *pool, expr e, uint32_t axis)
{
    return expr_at(pool, e)->op == EXPR_AXIS && expr_at(pool, e)->value == axis;
}

/* How many of the last of axes[] are the last indices of the load, in order, over dims of their extents, and
 * in no other index; `length`: the product of their extents. */
static uint32_t trailing_run(const struct strategy_context *context, const struct contraction_plan *plan,
                             const struct operand *side, const uint32_t *axes, uint32_t count, dim *length)
{
    const struct exprs *pool = plan->body->pool;
    const struct expr_node *load = expr_at(pool, side->load);
    const struct tensor_type *type = &plan->body->buffers.items[side->buffer].type;
    uint32_t run = 0;
    *length = dim_constant(pool->dims, 1);
    while (run < count && run < (uint32_t)type->rank) {
        const uint32_t axis = axes[count - 1 - run], index = (uint32_t)type->rank - 1 - run;
        bool elsewhere = false;
        for (uint32_t i = 0; i < (uint32_t)type->rank; i++)
            elsewhere = elsewhere || (i != index && gpu_uses_axis(context, load->arguments[i], axis));
        if (!is_axis(pool, load->arguments[index], axis) || elsewhere ||
            dim_equal(pool->dims, type->dims[index], plan->nest->extents[axis]) != 1)
            break;
        *length = dim_mul(pool->dims, *length, plan->nest->extents[axis]);
        run++;
    }
    return run;
}

/* How the factor's main operand is best read: along which axes, in vectors of how many elements. */
static void choose_fill(const struct strategy_context *context, const struct contraction_plan *plan,
                        struct operand *side)
{
    enum { VECTOR = 4 };
    const struct exprs *pool = plan->body->pool;
    const struct expr_node *load = expr_at(pool, side->load);
    const struct tensor_type *type = &plan->body->buffers.items[side->buffer].type;
    const unsigned bits = dtype_bits(type->dtype);
    const bool fills_zero =
        load->op == EXPR_LOAD || (expr_at(pool, load->arguments[load->count - 1])->op == EXPR_CONSTANT &&
                                  expr_at(pool, load->arguments[load->count - 1])->value == 0);
    side->vector = 1;
    side->plain = side->factor == side->load && bits == 32 && fills_zero && type->dtype == plan->dtype;
    if (type->rank == 0)
        return;
    const expr last = load->arguments[type->rank - 1];
    const uint32_t own = side->axes[side->count - 1], depth = plan->depth[plan->depth_count - 1];
    side->along_depth = gpu_uses_axis(context, last, depth) && !gpu_uses_axis(context, last, own);
    if (load->op != EXPR_LOAD)
        return;
    dim length;
    const uint32_t run = side->along_depth
                             ? trailing_run(context, plan, side, plan->depth, plan->depth_count, &length)
                             : trailing_run(context, plan, side, side->axes, side->count, &length);
    side->flat_depth = side->along_depth && run == plan->depth_count && side->factor == side->load;
    if (bits < 8 || bits > 32 || type->dtype == DTYPE_BOOL || plan->lanes < VECTOR || !run)
        return;
    unsigned char *visited = arena_new_array(context->arena, unsigned char, pool->nodes.count);
    if (dim_divisible(pool->dims, length, VECTOR) && loads_of(pool, side->factor, load->value, visited) == 1)
        side->vector = VECTOR;
}

static void sort_axes(struct contraction_plan *plan, const struct contraction *contraction,
                      enum axis_role columns)
{
    const struct nest *nest = plan->nest;
    struct dims *dims = plan->body->pool->dims;
    for (uint32_t axis = 0; axis < nest->rank + nest->reduce_rank; axis++) {
        enum axis_role role = contraction->roles[axis];
        if (role == AXIS_REDUCED)
            plan->depth[plan->depth_count++] = axis;
        else if (role == AXIS_BATCH)
            plan->batch[plan->batch_count++] = axis;
        else {
            struct operand *side = &plan->operands[role == columns ? SIDE_COLUMNS : SIDE_ROWS];
            side->axes[side->count++] = axis;
            side->extent = dim_mul(dims, side->extent, nest->extents[axis]);
        }
    }
}

/* The summed axes of a load that stand in sums with other axes, as a window's taps do, and those that stand
 * alone. */
static void sort_taps(const struct strategy_context *context, const struct contraction_plan *plan,
                      const struct operand *window, uint32_t *taps, uint32_t *tap_count, uint32_t *others,
                      uint32_t *other_count)
{
    const struct exprs *pool = plan->body->pool;
    const struct expr_node *load = expr_at(pool, window->load);
    const int rank = plan->body->buffers.items[window->buffer].type.rank;
    *tap_count = *other_count = 0;
    for (uint32_t i = 0; i < plan->depth_count; i++) {
        const uint32_t axis = plan->depth[i];
        if (dim_equals_constant(pool->dims, plan->nest->extents[axis], 1)) {
            taps[(*tap_count)++] = axis;
            continue;
        }
        uint32_t alone = 0, mixed = 0;
        for (int k = 0; k < rank; k++) {
            alone += is_axis(pool, load->arguments[k], axis);
            mixed +=
                !is_axis(pool, load->arguments[k], axis) && gpu_uses_axis(context, load->arguments[k], axis);
        }
        if (alone == 1 && mixed == 0)
            others[(*other_count)++] = axis;
        else
            taps[(*tap_count)++] = axis;
    }
}

/* A constant whose indices are single axes, its own or summed ones: it may be repacked. */
static bool may_pack(const struct strategy_context *context, const struct contraction_plan *plan,
                     const struct operand *side)
{
    const struct exprs *pool = plan->body->pool;
    const struct expr_node *load = expr_at(pool, side->load);
    const struct tensor_type *type = &plan->body->buffers.items[side->buffer].type;
    int64_t extent;
    for (uint32_t i = 0; i < plan->nest->store_count; i++) {
        unsigned char *visited = arena_new_array(context->arena, unsigned char, pool->nodes.count);
        if (loads_of(pool, plan->nest->stores[i].value, side->buffer, visited) > 0)
            return false;
    }
    if (plan->operands[0].buffer == plan->operands[1].buffer)
        return false;
    if (!side->plain || load->op != EXPR_LOAD || plan->batch_count > 0 ||
        !context->is_constant(context, side->buffer) || !dim_is_constant(pool->dims, side->extent, &extent) ||
        !dim_is_constant(pool->dims, plan->depth_extent, &extent))
        return false;
    for (int i = 0; i < type->rank; i++) {
        int64_t zero;
        if (expr_at(pool, load->arguments[i])->op != EXPR_AXIS &&
            !(expr_constant_int(pool, load->arguments[i], &zero) && zero == 0))
            return false;
    }
    return true;
}

/* Sums a window's taps outside its channels where the other factor can be repacked for that. */
static void choose_order(const struct strategy_context *context, struct contraction_plan *plan)
{
    enum { SHALLOWEST = 8 };
    struct dims *dims = plan->body->pool->dims;
    for (int s = 0; s < 2; s++) {
        struct operand *window = &plan->operands[s], *other = &plan->operands[!s];
        uint32_t taps[MAX_AXES], others[MAX_AXES], tap_count, other_count;
        int64_t channels;
        if (window->along_depth || !window->plain || !may_pack(context, plan, other))
            continue;
        sort_taps(context, plan, window, taps, &tap_count, others, &other_count);
        if (tap_count == 0 || other_count != 1 ||
            !dim_is_constant(dims, plan->nest->extents[others[0]], &channels) || channels % SHALLOWEST != 0)
            continue;
        memcpy(plan->depth, taps, tap_count * sizeof *taps);
        plan->depth[tap_count] = others[0];
        plan->taps = tap_count;
        plan->channels = channels;
        other->packed = true;
        other->along_depth = other->flat_depth = false;
        other->vector = 4;
        window->vector = 1;
        return;
    }
}

/* Trailing axes that are all the columns' and a stretch of the stores, as many as possible. */
static void choose_stretch(const struct strategy_context *context, struct contraction_plan *plan)
{
    const struct operand *columns = &plan->operands[SIDE_COLUMNS];
    const struct nest *nest = plan->nest;
    uint32_t trailing = 0;
    while (trailing < columns->count &&
           columns->axes[columns->count - 1 - trailing] == nest->rank - 1 - trailing)
        trailing++;
    for (uint32_t first = nest->rank - trailing; first < nest->rank && !plan->has_stretch; first++)
        plan->has_stretch = find_stretch_from(context, nest, first, &plan->stretch) &&
                            dim_divisible(plan->body->pool->dims, plan->stretch.length, plan->lanes) &&
                            stretch_widest_run(context, &plan->stretch) >= (int32_t)plan->lanes;
}

static bool is_summed(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_I32 || dtype == DTYPE_F64;
}

bool contraction_plan_make(const struct strategy_context *context, struct contraction_plan *plan,
                           struct text *why)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    struct contraction contraction;
    const dim one = dim_constant(dims, 1);
    *plan = (struct contraction_plan){
        .body = body, .nest = &body->nests.items[0], .batches = one, .depth_extent = one};
    plan->operands[0].extent = plan->operands[1].extent = one;
    if (body->nests.count != 1)
        return no(why, "several nests");
    if (!find_contraction(body, 0, &contraction, why))
        return false;
    plan->dtype = expr_at(body->pool, plan->nest->reductions[0].body)->dtype;
    if (!is_summed(plan->dtype))
        return no(why, "sums of a type that tiles are not built for");
    /* The result's last axis runs along the columns, so that neighbours store side by side. */
    enum axis_role columns = AXIS_RIGHT;
    for (uint32_t axis = plan->nest->rank; axis-- > 0;)
        if (contraction.roles[axis] != AXIS_BATCH) {
            columns = contraction.roles[axis];
            break;
        }
    sort_axes(plan, &contraction, columns);
    if (plan->nest->store_count > MAX_AXES)
        return no(why, "too many stores");
    if (!plan->operands[0].count || !plan->operands[1].count)
        return no(why, "a factor without axes of its own: no element is used twice");
    for (int s = 0; s < 2; s++) {
        const bool is_right = (s == SIDE_COLUMNS) == (columns == AXIS_RIGHT);
        struct operand *side = &plan->operands[s];
        side->factor = is_right ? contraction.right : contraction.left;
        side->load = is_right ? contraction.right_load : contraction.left_load;
        side->buffer = (uint32_t)expr_at(body->pool, side->load)->value;
    }
    for (uint32_t i = 0; i < plan->batch_count; i++)
        plan->batches = dim_mul(dims, plan->batches, plan->nest->extents[plan->batch[i]]);
    for (uint32_t i = 0; i < plan->depth_count; i++)
        plan->depth_extent = dim_mul(dims, plan->depth_extent, plan->nest->extents[plan->depth[i]]);
    if (!plan->batches || !plan->depth_extent || !plan->operands[0].extent || !plan->operands[1].extent)
        return no(why, "sizes whose product leaves the limits");
    plan->lanes = 128 / dtype_bits(plan->dtype);
    choose_fill(context, plan, &plan->operands[SIDE_ROWS]);
    choose_fill(context, plan, &plan->operands[SIDE_COLUMNS]);
    choose_order(context, plan);
    choose_stretch(context, plan);
    plan->asynchronous =
        context->machine->asynchronous_copies && plan->operands[0].plain && plan->operands[1].plain;
    return true;
}

bool contraction_depth_fits(const struct contraction_plan *plan, int64_t depth)
{
    return plan->taps == 0 || plan->channels % depth == 0;
}

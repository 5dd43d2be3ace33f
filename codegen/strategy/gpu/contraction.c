/* Which contractions are taken, with which tiles, at what cost. See contraction.h. */
#include "codegen/strategy/gpu/contraction.h"

#include <math.h>

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

/* How the factor's main operand is best read: along which axis, in vectors of how many elements. */
static void choose_fill(const struct strategy_context *context, const struct contraction_plan *plan,
                        struct operand *side)
{
    const struct exprs *pool = plan->body->pool;
    const struct expr_node *load = expr_at(pool, side->load);
    const struct tensor_type *type = &plan->body->buffers.items[load->value].type;
    side->along_depth = false;
    side->vector = 1;
    if (type->rank == 0)
        return;
    expr last = load->arguments[type->rank - 1];
    uint32_t own = side->axes[side->count - 1], depth = plan->depth[plan->depth_count - 1];
    side->along_depth = gpu_uses_axis(context, last, depth) && !gpu_uses_axis(context, last, own);
    uint32_t fast = side->along_depth ? depth : own;
    const struct expr_node *index = expr_at(pool, last);
    unsigned bits = dtype_bits(type->dtype);
    if (load->op != EXPR_LOAD || index->op != EXPR_AXIS || index->value != fast || bits < 8 || bits > 32 ||
        type->dtype == DTYPE_BOOL || plan->lanes < 4)
        return;
    for (int i = 0; i + 1 < type->rank; i++)
        if (gpu_uses_axis(context, load->arguments[i], fast))
            return;
    unsigned char *visited = arena_new_array(context->arena, unsigned char, pool->nodes.count);
    if (dim_divisible(pool->dims, type->dims[type->rank - 1], 4) &&
        dim_divisible(pool->dims, plan->nest->extents[fast], 4) &&
        loads_of(pool, side->factor, load->value, visited) == 1)
        side->vector = 4;
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

bool contraction_plan_make(const struct strategy_context *context, struct contraction_plan *plan,
                           struct text *why)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    struct contraction contraction;
    dim one = dim_constant(dims, 1);
    *plan = (struct contraction_plan){
        .body = body, .nest = &body->nests.items[0], .batches = one, .depth_extent = one};
    plan->operands[0].extent = plan->operands[1].extent = one;
    if (body->nests.count != 1)
        return no(why, "several nests");
    if (!find_contraction(body, 0, &contraction, why))
        return false;
    plan->dtype = expr_at(body->pool, plan->nest->reductions[0].body)->dtype;
    if (plan->dtype != DTYPE_F32 && plan->dtype != DTYPE_I32 && plan->dtype != DTYPE_F64)
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
    bool right_is_columns = columns == AXIS_RIGHT;
    plan->operands[right_is_columns].factor = contraction.right;
    plan->operands[right_is_columns].load = contraction.right_load;
    plan->operands[!right_is_columns].factor = contraction.left;
    plan->operands[!right_is_columns].load = contraction.left_load;
    plan->batches = one;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        plan->batches = dim_mul(dims, plan->batches, plan->nest->extents[plan->batch[i]]);
    for (uint32_t i = 0; i < plan->depth_count; i++)
        plan->depth_extent = dim_mul(dims, plan->depth_extent, plan->nest->extents[plan->depth[i]]);
    if (!plan->batches || !plan->depth_extent || !plan->operands[0].extent || !plan->operands[1].extent)
        return no(why, "sizes whose product leaves the limits");
    plan->lanes = 128 / dtype_bits(plan->dtype);
    const struct operand *side = &plan->operands[SIDE_COLUMNS];
    plan->whole_columns = dim_divisible(dims, plan->nest->extents[side->axes[side->count - 1]], plan->lanes);
    choose_fill(context, plan, &plan->operands[SIDE_ROWS]);
    choose_fill(context, plan, &plan->operands[SIDE_COLUMNS]);
    return true;
}

static bool fits(const struct strategy_context *context, struct text *why)
{
    struct contraction_plan plan;
    return contraction_plan_make(context, &plan, why);
}

static const int16_t tiles[][5] = {
    {128, 128, 8, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4},
    {32, 64, 16, 4, 4},  {64, 32, 16, 4, 4},  {32, 32, 16, 4, 4},  {16, 64, 16, 4, 4},
};
enum { TILES = sizeof tiles / sizeof tiles[0], MOST_SPLIT = 16 };

struct sizes {
    double rows, columns, depth, batches;
};

static struct sizes planned_sizes(const struct strategy_context *context, const struct contraction_plan *plan)
{
    return (struct sizes){.rows = gpu_size(context, plan->operands[SIDE_ROWS].extent),
                          .columns = gpu_size(context, plan->operands[SIDE_COLUMNS].extent),
                          .depth = gpu_size(context, plan->depth_extent),
                          .batches = gpu_size(context, plan->batches)};
}

/* Waves of blocks over the multiprocessors; a step of the depth takes its arithmetic's time, or its latency.
 */
static double cost(const struct strategy_context *context, const struct config *config)
{
    const double step_latency = 0.7e-6, launch = 2e-6;
    struct contraction_plan plan;
    struct text why;
    text_init(&why, context->arena);
    if (!contraction_plan_make(context, &plan, &why))
        return INFINITY;
    const int32_t *v = config->value;
    struct sizes n = planned_sizes(context, &plan);
    double processors = context->machine->multiprocessors;
    double threads =
        (double)(v[CONFIG_ROWS] / v[CONFIG_OWN_ROWS]) * (v[CONFIG_COLUMNS] / v[CONFIG_OWN_COLUMNS]);
    double resident = threads >= 256   ? (v[CONFIG_OWN_ROWS] * v[CONFIG_OWN_COLUMNS] > 32 ? 2 : 4)
                      : threads >= 128 ? 8
                                       : 12;
    double blocks =
        ceil(n.rows / v[CONFIG_ROWS]) * ceil(n.columns / v[CONFIG_COLUMNS]) * n.batches * v[CONFIG_SPLIT];
    /* What a thread reads from shared memory for each multiplication bounds the arithmetic. */
    double share = 0.85 / (1.0 + 2.0 * (1.0 / v[CONFIG_OWN_ROWS] + 1.0 / v[CONFIG_OWN_COLUMNS]));
    double steps = ceil(ceil(n.depth / v[CONFIG_DEPTH]) / v[CONFIG_SPLIT]);
    double at_once = fmin(resident, ceil(blocks / processors));
    double arithmetic = at_once * 2.0 * v[CONFIG_ROWS] * v[CONFIG_COLUMNS] * v[CONFIG_DEPTH] /
                        (context->machine->fp32_per_second / processors * share);
    if (plan.dtype != DTYPE_F32)
        arithmetic *= 2;
    double waves = ceil(blocks / (processors * at_once));
    double time = waves * (steps * fmax(arithmetic, step_latency) + 2 * step_latency);
    if (v[CONFIG_SPLIT] > 1)
        time += launch + 8.0 * n.rows * n.columns * n.batches * (v[CONFIG_SPLIT] + 1) /
                             context->machine->memory_bytes_per_second;
    return fmax(launch + time, gpu_roofline(context, 0.8, 1.0));
}

static uint32_t candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    struct config all[TILES * 5];
    double costs[TILES * 5];
    uint32_t count = 0;
    struct contraction_plan plan;
    struct text why;
    text_init(&why, context->arena);
    if (!contraction_plan_make(context, &plan, &why))
        return 0;
    for (uint32_t t = 0; t < TILES; t++)
        for (int32_t split = 1; split <= MOST_SPLIT; split *= 2) {
            struct config config = {
                .value = {tiles[t][0], tiles[t][1], tiles[t][2], tiles[t][3], tiles[t][4], split}};
            if (plan.dtype == DTYPE_F64 && tiles[t][3] * tiles[t][4] > 16)
                continue;
            double seconds = cost(context, &config);
            uint32_t at = count++;
            for (; at > 0 && costs[at - 1] > seconds; at--) {
                costs[at] = costs[at - 1];
                all[at] = all[at - 1];
            }
            costs[at] = seconds;
            all[at] = config;
        }
    for (uint32_t i = 0; i < count && i < limit; i++)
        out[i] = all[i];
    return count < limit ? count : limit;
}

static bool build(const struct strategy_context *context, const struct config *config,
                  struct lowered_group *out, struct text *why)
{
    struct contraction_plan plan;
    return contraction_plan_make(context, &plan, why) && contraction_build(context, &plan, config, out);
}

static void describe(const struct config *config, struct text *out)
{
    const int32_t *v = config->value;
    text_printf(out, "tile=%dx%dx%d, thread=%dx%d, split=%d", v[CONFIG_ROWS], v[CONFIG_COLUMNS],
                v[CONFIG_DEPTH], v[CONFIG_OWN_ROWS], v[CONFIG_OWN_COLUMNS], v[CONFIG_SPLIT]);
}

const struct strategy gpu_contraction = {
    .name = "gpu_contraction",
    .fits = fits,
    .candidates = candidates,
    .cost = cost,
    .build = build,
    .describe = describe,
    .from_level = 1,
};

/* Which groups rows take, with how many threads a row, at what cost. See rows.h. */
#include "codegen/strategy/gpu/rows.h"

#include <math.h>

enum { MOST_KEPT = 32, MOST_REGISTERS = 96 };

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

static bool shuffles(const struct row_group *rows, const struct nest *nest)
{
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        enum dtype dtype = expr_at(rows->body->pool, nest->reductions[r].body)->dtype;
        if (dtype == DTYPE_BOOL)
            return false;
    }
    return true;
}

/* ---- what lies along the rows
 * -------------------------------------------------------------------------------------- */

bool rows_load_is_along(const struct strategy_context *context, const struct rows_plan *plan, uint32_t n,
                        uint32_t buffer, const expr *indices)
{
    const struct definition *body = plan->group.body;
    const struct nest *nest = &body->nests.items[n];
    const struct tensor_type *type = &body->buffers.items[buffer].type;
    const uint32_t count = plan->inner_count[n];
    if (count == 0 || type->rank < (int)count)
        return false;
    const uint32_t skip = (uint32_t)type->rank - count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t axis = plan->inner[n][i];
        const struct expr_node *index = expr_at(body->pool, indices[skip + i]);
        int64_t value;
        const bool single = dim_equals_constant(body->pool->dims, nest->extents[axis], 1) &&
                            expr_constant_int(body->pool, indices[skip + i], &value) && value == 0;
        if ((!single && (index->op != EXPR_AXIS || index->value != axis)) ||
            dim_equal(body->pool->dims, type->dims[skip + i], nest->extents[axis]) != 1)
            return false;
    }
    for (uint32_t i = 0; i < skip; i++)
        for (uint32_t k = 0; k < count; k++)
            if (gpu_uses_axis(context, indices[i], plan->inner[n][k]))
                return false;
    return true;
}

struct survey {
    const struct strategy_context *context;
    struct rows_plan *plan;
    uint32_t nest;
    unsigned char *visited;
    unsigned widest; /* bits of what lies along the rows */
};

static void survey_loads(struct survey *s, expr e)
{
    const struct definition *body = s->plan->group.body;
    if (s->visited[e])
        return;
    s->visited[e] = 1;
    const struct expr_node *node = expr_at(body->pool, e);
    if (node->op == EXPR_LOAD &&
        rows_load_is_along(s->context, s->plan, s->nest, (uint32_t)node->value, node->arguments)) {
        const unsigned bits = dtype_bits(node->dtype);
        s->plan->along[node->value] = true;
        s->widest = bits < 8 || node->dtype == DTYPE_BOOL ? 128 : bits > s->widest ? bits : s->widest;
        return;
    }
    for (uint32_t i = 0; i < node->count; i++)
        survey_loads(s, node->arguments[i]);
}

static void survey_stores(struct survey *s, const struct nest *nest)
{
    const struct definition *body = s->plan->group.body;
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        const enum dtype dtype = body->buffers.items[store->buffer].type.dtype;
        survey_loads(s, store->value);
        if (!nest->reduction_count) {
            const unsigned bits = dtype_bits(dtype);
            s->widest = bits < 8 || dtype == DTYPE_BOOL ? 128 : bits > s->widest ? bits : s->widest;
        }
    }
}

static void find_inner(struct rows_plan *plan, uint32_t n)
{
    const struct nest *nest = &plan->group.body->nests.items[n];
    const uint32_t from = nest->reduction_count ? nest->rank : 0,
                   to = nest->reduction_count ? nest->rank + nest->reduce_rank : nest->rank;
    plan->inner_count[n] = 0;
    for (uint32_t i = from; i < to; i++)
        if (plan->group.row_axis[n][i] < 0)
            plan->inner[n][plan->inner_count[n]++] = i;
}

bool rows_plan_make(const struct strategy_context *context, struct rows_plan *plan, struct text *why)
{
    if (!find_row_group(context, &plan->group, why))
        return false;
    const struct definition *body = plan->group.body;
    struct dims *dims = body->pool->dims;
    struct survey survey = {.context = context, .plan = plan, .widest = 8};
    plan->length = DIM_NONE;
    bool same = true;
    for (uint32_t n = 0; n < body->nests.count; n++) {
        const struct nest *nest = &body->nests.items[n];
        if (!shuffles(&plan->group, nest))
            return no(why, "a reduction of a type that warps do not shuffle");
        find_inner(plan, n);
        dim length = dim_constant(dims, 1);
        for (uint32_t i = 0; i < plan->inner_count[n]; i++)
            length = dim_mul(dims, length, nest->extents[plan->inner[n][i]]);
        same = same && length && (n == 0 || dim_equal(dims, length, plan->length) == 1);
        plan->length = length;
        survey.nest = n;
        survey.visited = arena_new_array(context->arena, unsigned char, body->pool->nodes.count);
        for (uint32_t r = 0; r < nest->reduction_count; r++)
            survey_loads(&survey, nest->reductions[r].body);
        survey_stores(&survey, nest);
    }
    plan->length = same ? plan->length : DIM_NONE;
    plan->kept_loads = 0;
    for (uint32_t i = 0; i < body->buffers.count; i++)
        plan->kept_loads += plan->along[i];
    plan->vector = same && 4 * survey.widest <= 128 && dim_divisible(dims, plan->length, 4) ? 4 : 1;
    return true;
}

/* ---- choice
 * ---------------------------------------------------------------------------------------------------------
 */

/* Of the longest reduction. */
static double row_length(const struct strategy_context *context)
{
    double longest = 0;
    for (uint32_t n = 0; n < context->group->body.nests.count; n++) {
        const struct nest *nest = &context->group->body.nests.items[n];
        if (nest->reduction_count)
            longest = fmax(longest, gpu_size(context, gpu_extent_product(context, nest, nest->rank,
                                                                         nest->rank + nest->reduce_rank)));
    }
    return longest;
}

static bool rows_fits(const struct strategy_context *context, struct text *why)
{
    struct rows_plan *plan = arena_new(context->arena, struct rows_plan);
    return rows_plan_make(context, plan, why) &&
           (row_length(context) >= (double)WARP / 2 || no(why, "rows shorter than half a warp"));
}

/* Elements that each of `threads` keeps of a row of this length: whole accesses; 0: too many. */
static int32_t kept_elements(const struct rows_plan *plan, double length, int32_t threads)
{
    const double accesses = ceil(length / (threads * (double)plan->vector));
    const double kept = fmax(accesses, 1) * plan->vector;
    return plan->length == DIM_NONE || plan->kept_loads == 0 || kept > (double)MOST_KEPT ||
                   kept * plan->kept_loads > (double)MOST_REGISTERS
               ? 0
               : (int32_t)kept;
}

static uint32_t rows_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    static const int32_t threads[] = {32, 64, 128, 256, 512, 1024};
    enum { ROWS_OF_WARPS = 4 };
    struct rows_plan *plan = arena_new(context->arena, struct rows_plan);
    struct text why;
    text_init(&why, context->arena);
    if (!rows_plan_make(context, plan, &why))
        return 0;
    const double length = row_length(context);
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0] && count < limit; i++) {
        /* More threads than accesses only idle. */
        if (i > 0 && threads[i - 1] * (double)plan->vector >= length)
            break;
        out[count++] = (struct config){.value = {[ROWS_THREADS] = threads[i],
                                                 [ROWS_ROWS] = threads[i] == WARP ? ROWS_OF_WARPS : 1,
                                                 [ROWS_KEPT] = kept_elements(plan, length, threads[i])}};
    }
    return count;
}

static double rows_cost(const struct strategy_context *context, const struct config *config)
{
    const double launch = 2e-6, memory = 0.7e-6, warp_combine = 0.08e-6, block_combine = 0.12e-6,
                 element = 3e-9;
    struct rows_plan *plan = arena_new(context->arena, struct rows_plan);
    struct text why;
    text_init(&why, context->arena);
    if (!rows_plan_make(context, plan, &why))
        return INFINITY;
    const struct machine *machine = context->machine;
    const double threads = config->value[ROWS_THREADS], kept = config->value[ROWS_KEPT];
    const uint32_t nests = context->group->body.nests.count;
    dim rows = dim_constant(context->group->body.pool->dims, 1);
    for (uint32_t i = 0; i < plan->group.rank; i++)
        rows = dim_mul(context->group->body.pool->dims, rows, plan->group.extents[i]);
    const double registers = 32 + kept * plan->kept_loads;
    const double at_once = machine->multiprocessors *
                           fmin(machine->threads / threads, machine->registers / (registers * threads));
    const double each = ceil(row_length(context) / threads);
    /* A row that is not kept is read again, from a cache, by each nest. */
    double row = (kept > 0 ? memory : memory + 0.3e-6 * (nests - 1)) + each * nests * element;
    row += nests * (warp_combine + (threads > (double)WARP ? block_combine : 0));
    const double waves = fmax(1, gpu_size(context, rows) / at_once);
    /* What lies along the rows is read once where it is kept; all else by every nest and row. */
    const double traffic = gpu_traffic(context, true, kept > 0 ? plan->along : NULL);
    const double throughput = fmax(traffic, gpu_roofline(context, 0.85, 0.3) - launch);
    /* Rows in flight hide each other's latency; the more of them, the better. */
    return launch + hypot(waves * row, throughput);
}

static void rows_describe(const struct config *config, struct text *out)
{
    text_printf(out, "threads=%d, rows=%d, kept=%d", (int)config->value[ROWS_THREADS],
                (int)config->value[ROWS_ROWS], (int)config->value[ROWS_KEPT]);
}

const struct strategy gpu_rows = {
    .name = "gpu_rows",
    .fits = rows_fits,
    .candidates = rows_candidates,
    .cost = rows_cost,
    .build = rows_build,
    .describe = rows_describe,
    .from_level = 1,
};

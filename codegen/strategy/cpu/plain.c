/* Fits every group: each nest is a kernel. Outer parallel axes are shared among the workers, the innermost
 * loop runs along the axis on which most accesses are in order (emit.h). A nest of one long axis is cut into
 * chunks. */
#include "codegen/strategy/cpu/emit.h"
#include "codegen/strategy/cpu/ordered.h"
#include "codegen/strategy/cpu/strategies.h"

enum { ENOUGH_ITEMS = 64, FEW_ITEMS = 16, MAP_CHUNK = 8192 };

struct plain_nest {
    struct flat_nest nest;
    struct nest_form form;
};

static void plan_nest(const struct strategy_context *context, uint32_t number, struct plain_nest *out)
{
    flat_nest_init(&out->nest, &context->group->body, number, 0);
    flat_nest_merge(&out->nest, 0);
    out->form = choose_form(&out->nest, 0, true);
    if (context->exact_order && out->nest.reduction_count)
        out->form = (struct nest_form){.kind = FORM_ROW, .vector = NO_AXIS};
}

static bool plain_fits(const struct strategy_context *context, struct text *why)
{
    (void)context;
    (void)why;
    return true;
}

static uint32_t plain_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){{0}};
    return limit ? 1 : 0;
}

static double plain_cost(const struct strategy_context *context, const struct config *config)
{
    double seconds = 0;
    (void)config;
    for (uint32_t i = 0; i < context->group->body.nests.count; i++) {
        struct plain_nest plan;
        if (context->group->body.nests.items[i].kind != NEST_REDUCE) {
            seconds += cpu_ordered_seconds(context, i);
            continue;
        }
        plan_nest(context, i, &plan);
        seconds += nest_seconds(context, &plan.nest, plan.form);
    }
    return seconds;
}

/* Outer axes for the workers: the first ones, but for the vector axis, until there are enough items. */
static uint32_t worker_axes(const struct plain_nest *plan, uint32_t *axes, int64_t *items)
{
    const struct dims *dims = plan->nest.definition->pool->dims;
    uint32_t count = 0;
    *items = 1;
    for (uint32_t axis = 0; axis < plan->nest.rank && *items < ENOUGH_ITEMS; axis++) {
        if (plan->form.kind != FORM_ROW && axis == plan->form.vector)
            continue;
        axes[count++] = axis;
        *items *= hinted(dims, &plan->nest.extents[axis], 1);
    }
    return count;
}

static void build_nest(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct plain_nest plan;
    struct emitter emitter;
    uint64_t buffers = loaded_buffers(&context->group->body, nest);
    for (uint32_t s = 0; s < nest->store_count; s++)
        buffers |= UINT64_C(1) << nest->stores[s].buffer;
    plan_nest(context, number, &plan);
    if (cpu_build_pieces(context, number, &plan.nest, plan.form, out))
        return;
    emitter_init(&emitter, context, "cpu_plain", "", buffers);
    uint32_t axes[MAX_AXES];
    int64_t items, chunk = 0;
    const uint32_t count = worker_axes(&plan, axes, &items);
    if (plan.form.kind == FORM_COLUMN || plan.form.kind == FORM_WINDOW)
        chunk = COLUMN_CHUNK;
    else if (plan.form.kind == FORM_MAP && plan.form.vector != NO_AXIS && items < FEW_ITEMS)
        chunk = MAP_CHUNK;
    struct block top = {.kernel = emitter.kernel, .at = &emitter.kernel->body}, body;
    emit_parallel(&emitter, &top, &plan.nest, count, axes, plan.form.vector, chunk, &body);
    emit_nest(&emitter, &body, &plan.nest, plan.form);
    emit_figures(&emitter, &plan.nest);
    vec_push(context->arena, &out->launches, emitter_launch(&emitter));
}

static bool plain_build(const struct strategy_context *context, const struct config *config,
                        struct lowered_group *out, struct text *why)
{
    (void)config;
    (void)why;
    for (uint32_t i = 0; i < context->group->body.nests.count; i++)
        switch (context->group->body.nests.items[i].kind) {
        case NEST_REDUCE:
            build_nest(context, i, out);
            break;
        case NEST_SCAN:
            cpu_build_scan(context, i, out);
            break;
        case NEST_SORT:
            cpu_build_sort(context, i, out);
            break;
        case NEST_FILTER:
            cpu_build_filter(context, i, out);
            break;
        case NEST_SCATTER:
            cpu_build_scatter(context, i, out);
            break;
        }
    return true;
}

const struct strategy cpu_plain = {
    .name = "cpu_plain",
    .fits = plain_fits,
    .candidates = plain_candidates,
    .cost = plain_cost,
    .build = plain_build,
    .from_level = 0,
    .any_nest = true,
};

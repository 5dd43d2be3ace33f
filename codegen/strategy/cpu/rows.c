/* Softmax, norms and reductions with what stands around them: one item of the parallel loop is one row, whose
 * reductions stay in variables from nest to nest; the row itself stays in the first cache. Only where the row
 * lies in order in memory: else separate nests, each along its own best axis, are faster (plain.c). */
#include "codegen/strategy/cpu/emit.h"
#include "codegen/strategy/cpu/ordered.h"
#include "codegen/strategy/cpu/strategies.h"
#include "codegen/strategy/row_group.h"

static uint64_t row_values(const struct row_group *rows)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < rows->body->buffers.count; i++)
        if (rows->is_row_value[i])
            bits |= UINT64_C(1) << i;
    return bits;
}

/* Bit a: axis a of the nest is a row's. */
static uint32_t row_axes(const struct row_group *rows, uint32_t n)
{
    uint32_t bits = 0;
    for (uint32_t axis = 0; axis < rows->body->nests.items[n].rank; axis++)
        if (rows->row_axis[n][axis] >= 0)
            bits |= UINT32_C(1) << axis;
    return bits;
}

static struct nest_form row_form(const struct row_group *rows, uint32_t n, struct flat_nest *nest)
{
    flat_nest_init(nest, rows->body, n, row_values(rows));
    return choose_form(nest, row_axes(rows, n), false);
}

static bool rows_fits(const struct strategy_context *context, struct text *why)
{
    struct row_group rows;
    if (!find_row_group(context, &rows, why))
        return false;
    for (uint32_t n = 0; n < rows.body->nests.count; n++) {
        struct flat_nest nest;
        const struct nest_form form = row_form(&rows, n, &nest);
        if (few_long_rows(rows.body->pool->dims, nest.extents, nest.rank, nest.reduce_rank)) {
            text_put(why, "few long rows: workers share each");
            return false;
        }
        if ((form.kind != FORM_MAP && form.kind != FORM_ROW) || form.bad > 1) {
            text_put(why, "a row that does not lie in order in memory");
            return false;
        }
    }
    return true;
}

static uint32_t rows_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){{0}};
    return limit ? 1 : 0;
}

/* Nests after the first find the row in the cache. */
static double rows_cost(const struct strategy_context *context, const struct config *config)
{
    struct row_group rows;
    struct text why;
    double seconds = 0;
    (void)config;
    text_init(&why, context->arena);
    if (!find_row_group(context, &rows, &why))
        return 0;
    for (uint32_t n = 0; n < rows.body->nests.count; n++) {
        struct flat_nest nest;
        const struct nest_form form = row_form(&rows, n, &nest);
        seconds += nest_seconds(context, &nest, form) * (n ? 0.6 : 1);
    }
    return seconds;
}

static bool rows_build(const struct strategy_context *context, const struct config *config,
                       struct lowered_group *out, struct text *why)
{
    struct row_group rows;
    struct emitter emitter;
    expr row[MAX_AXES] = {0};
    uint64_t buffers = 0;
    (void)config;
    if (!find_row_group(context, &rows, why))
        return false;
    for (uint32_t n = 0; n < rows.body->nests.count; n++) {
        const struct nest *nest = &rows.body->nests.items[n];
        buffers |= loaded_buffers(rows.body, nest);
        for (uint32_t s = 0; s < nest->store_count; s++)
            buffers |= UINT64_C(1) << nest->stores[s].buffer;
    }
    emitter_init(&emitter, context, "cpu_rows", "", buffers & ~row_values(&rows));
    for (uint32_t i = 0; i < rows.body->buffers.count; i++)
        if (rows.is_row_value[i])
            emitter.locals[i] = (struct local){.used = true, .memory = UINT32_MAX};
    struct block top = {.kernel = emitter.kernel, .at = &emitter.kernel->body}, body;
    struct flat_nest shape = {.definition = rows.body, .rank = rows.rank};
    uint32_t axes[MAX_AXES];
    for (uint32_t i = 0; i < rows.rank; i++) {
        axes[i] = i;
        shape.extents[i] = rows.extents[i];
    }
    emit_parallel(&emitter, &top, &shape, rows.rank, axes, NO_AXIS, 0, &body);
    for (uint32_t i = 0; i < rows.rank; i++)
        row[i] = emitter.axes[i];
    for (uint32_t n = 0; n < rows.body->nests.count; n++) {
        struct flat_nest nest;
        const struct nest_form form = row_form(&rows, n, &nest);
        emitter_reset(&emitter);
        for (uint32_t axis = 0; axis < nest.rank; axis++)
            if (rows.row_axis[n][axis] >= 0)
                emitter.axes[axis] = row[rows.row_axis[n][axis]];
        emit_nest(&emitter, &body, &nest, form);
        emit_figures(&emitter, &nest);
    }
    vec_push(context->arena, &out->launches, emitter_launch(&emitter));
    return true;
}

const struct strategy cpu_rows = {
    .name = "cpu_rows",
    .fits = rows_fits,
    .candidates = rows_candidates,
    .cost = rows_cost,
    .build = rows_build,
    .from_level = 1,
};

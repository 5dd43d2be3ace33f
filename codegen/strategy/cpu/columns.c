/* Softmax, norms and reductions over an axis that lies across memory: one item is a chunk of neighbouring
 * rows, taken together along vectors. Their reductions stay in scratch from nest to nest, and what they read
 * stays in the cache; nest by nest (plain.c) it would come from memory each time. */
#include "codegen/strategy/cpu/emit.h"
#include "codegen/strategy/cpu/strategies.h"
#include "codegen/strategy/row_group.h"

enum { LEAST_LENGTH = 8 };

static uint64_t row_values(const struct row_group *rows)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < rows->body->buffers.count; i++)
        if (rows->is_row_value[i])
            bits |= UINT64_C(1) << i;
    return bits;
}

/* The nest's axis that is the rows' last one; NO_AXIS: it has none. */
static uint32_t vector_axis(const struct row_group *rows, uint32_t n)
{
    for (uint32_t axis = 0; axis < rows->body->nests.items[n].rank; axis++)
        if (rows->row_axis[n][axis] == (int)rows->rank - 1)
            return axis;
    return NO_AXIS;
}

static bool lies_across(const struct row_group *rows, uint32_t n, struct flat_nest *nest)
{
    const uint32_t vector = vector_axis(rows, n);
    if (vector == NO_AXIS)
        return false;
    flat_nest_init(nest, rows->body, n, row_values(rows));
    const struct access_count count = count_accesses(nest, vector);
    return count.bad == 0 && count.guarded == 0;
}

static bool columns_fits(const struct strategy_context *context, struct text *why)
{
    struct row_group rows;
    if (!find_row_group(context, &rows, why))
        return false;
    if (rows.body->nests.count < 2 || rows.rank == 0 ||
        dim_hint(rows.body->pool->dims, rows.extents[rows.rank - 1]) < LEAST_LENGTH) {
        text_put(why, "no neighbouring rows to take together");
        return false;
    }
    for (uint32_t n = 0; n < rows.body->nests.count; n++) {
        struct flat_nest nest;
        if (!lies_across(&rows, n, &nest)) {
            text_put(why, "neighbouring rows do not lie side by side in memory");
            return false;
        }
    }
    return true;
}

static uint32_t columns_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){{0}};
    return limit ? 1 : 0;
}

/* Nests after the first find what they read in the cache. */
static double columns_cost(const struct strategy_context *context, const struct config *config)
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
        const struct nest_form form = {.kind =
                                           rows.body->nests.items[n].reduction_count ? FORM_COLUMN : FORM_MAP,
                                       .vector = vector_axis(&rows, n)};
        if (lies_across(&rows, n, &nest))
            seconds += nest_seconds(context, &nest, form) * (n ? 0.6 : 1);
    }
    return seconds;
}

/* Every row value has an array in scratch, one element a row of the chunk. */
static void add_values(struct emitter *emitter, const struct row_group *rows)
{
    for (uint32_t i = 0; i < rows->body->buffers.count; i++) {
        if (!rows->is_row_value[i])
            continue;
        const struct kernel_memory memory = {.space = MEMORY_SCRATCH,
                                             .dtype = rows->body->buffers.items[i].type.dtype,
                                             .count = COLUMN_CHUNK,
                                             .label = "row"};
        emitter->locals[i] =
            (struct local){.used = true, .memory = kernel_memory_add(emitter->kernel, &memory)};
    }
}

static void build_nest(struct emitter *emitter, struct block *block, const struct row_group *rows, uint32_t n,
                       const expr *row)
{
    struct flat_nest nest;
    flat_nest_init(&nest, rows->body, n, row_values(rows));
    emitter_reset(emitter);
    emitter->chunk_axis = vector_axis(rows, n);
    for (uint32_t axis = 0; axis < nest.rank; axis++)
        if (rows->row_axis[n][axis] >= 0 && axis != emitter->chunk_axis)
            emitter->axes[axis] = row[rows->row_axis[n][axis]];
    const struct nest_form form = {.kind = nest.reduction_count ? FORM_COLUMN : FORM_MAP,
                                   .vector = emitter->chunk_axis};
    emit_nest(emitter, block, &nest, form);
    emit_figures(emitter, &nest);
}

static bool columns_build(const struct strategy_context *context, const struct config *config,
                          struct lowered_group *out, struct text *why)
{
    struct row_group rows;
    struct emitter emitter;
    expr row[MAX_AXES] = {0};
    uint32_t axes[MAX_AXES];
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
    emitter_init(&emitter, context, "cpu_columns", "", buffers & ~row_values(&rows));
    add_values(&emitter, &rows);
    struct block top = {.kernel = emitter.kernel, .at = &emitter.kernel->body}, body;
    struct flat_nest shape = {.definition = rows.body, .rank = rows.rank};
    for (uint32_t i = 0; i < rows.rank; i++) {
        axes[i] = i;
        shape.extents[i] = rows.extents[i];
    }
    emit_parallel(&emitter, &top, &shape, rows.rank - 1, axes, rows.rank - 1, COLUMN_CHUNK, &body);
    for (uint32_t i = 0; i + 1 < rows.rank; i++)
        row[i] = emitter.axes[i];
    for (uint32_t n = 0; n < rows.body->nests.count; n++)
        build_nest(&emitter, &body, &rows, n, row);
    vec_push(context->arena, &out->launches, emitter_launch(&emitter));
    return true;
}

const struct strategy cpu_columns = {
    .name = "cpu_columns",
    .fits = columns_fits,
    .candidates = columns_candidates,
    .cost = columns_cost,
    .build = columns_build,
    .from_level = 1,
};

/* Maps whose loads run along another axis than their stores: transposes, and what is fused into them. A tile
 * of the two axes is read along the loads' axis into scratch and written along the stores' axis, so that
 * memory sees whole cache lines both ways. The pitch of the scratch tile is odd: neighbours of a column lie
 * in different cache sets.
 *
 *   y[i, j] = f(x[j, i])      for a strip of i, for a strip of j:   tile[j, i] = x[j, i];   y[i, j] =
 * f(tile[j, i])
 */
#include "codegen/strategy/cpu/emit.h"
#include "codegen/strategy/cpu/strategies.h"

enum { READ_TILE = 32, WRITE_TILE = 64, PITCH = READ_TILE + 1, MAX_TILED_LOADS = 4, SHORTEST = 8 };

struct transpose {
    struct flat_nest nest; /* tiled loads are REDUCED leaves: 0, 1, ... */
    uint32_t read, write;  /* axes */
    uint32_t count;
    expr loads[MAX_TILED_LOADS];
};

/* ---- which loads
 * ------------------------------------------------------------------------------------------------- */

static expr tile_leaf(void *user, struct exprs *pool, const struct expr_node *node, const expr *arguments)
{
    struct transpose *t = user;
    if (node->op != EXPR_LOAD || node->count != 1)
        return 0;
    const int64_t along = index_stride(pool, arguments[0], t->write);
    if (along == 0 || along == 1 || index_stride(pool, arguments[0], t->read) != 1)
        return 0;
    const expr load = expr_load(pool, (uint32_t)node->value, node->dtype, 1, arguments);
    uint32_t i = 0;
    while (i < t->count && t->loads[i] != load)
        i++;
    if (i == MAX_TILED_LOADS)
        return 0;
    t->loads[i] = load;
    t->count += i == t->count;
    return expr_reduced(pool, i, node->dtype);
}

/* The axis, if any, along which the stores run and no load does as well as along `read`. */
static bool find_axes(struct transpose *t)
{
    const struct flat_nest *nest = &t->nest;
    const struct dims *dims = nest->definition->pool->dims;
    t->read = t->write = NO_AXIS;
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        if (has_unit_store(nest, axis) && count_accesses(nest, axis).bad)
            t->write = axis;
    for (uint32_t axis = 0; axis < nest->rank; axis++)
        if (axis != t->write && has_unit_load(nest, axis))
            t->read = axis;
    return t->read != NO_AXIS && t->write != NO_AXIS && dim_hint(dims, nest->extents[t->read]) >= SHORTEST &&
           dim_hint(dims, nest->extents[t->write]) >= SHORTEST;
}

static bool find_transpose(const struct strategy_context *context, struct transpose *t, struct text *why)
{
    const struct definition *body = &context->group->body;
    *t = (struct transpose){0};
    if (body->nests.count != 1 || body->nests.items[0].reduction_count) {
        text_put(why, "more than one map");
        return false;
    }
    flat_nest_init(&t->nest, body, 0, 0);
    flat_nest_merge(&t->nest, 0);
    if (find_axes(t)) {
        struct exprs *pool = body->pool;
        for (uint32_t i = 0; i < t->nest.store_count; i++)
            t->nest.stores[i].value = expr_rewrite(pool, pool, t->nest.stores[i].value, tile_leaf, t);
    }
    if (t->count == 0)
        text_put(why, "no load that runs across the stores");
    return t->count != 0;
}

/* ---- strategy
 * ---------------------------------------------------------------------------------------------------- */

static bool transpose_fits(const struct strategy_context *context, struct text *why)
{
    struct transpose t;
    return find_transpose(context, &t, why);
}

static uint32_t transpose_candidates(const struct strategy_context *context, struct config *out,
                                     uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){{READ_TILE, WRITE_TILE}};
    return limit ? 1 : 0;
}

static double transpose_cost(const struct strategy_context *context, const struct config *config)
{
    struct transpose t;
    struct text why;
    (void)config;
    text_init(&why, context->arena);
    if (!find_transpose(context, &t, &why))
        return 0;
    const struct nest_form form = {.kind = FORM_MAP, .vector = t.write};
    return nest_seconds(context, &t.nest, form) * 1.2;
}

/* A loop over part of an axis; sets the axis. */
static void emit_part(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                      uint32_t axis, expr begin, expr end, enum loop_kind loop, struct block *body)
{
    struct kernel *kernel = emitter->kernel;
    expr variable;
    const struct statement *statement = build_for(block, "i", begin, end, 0, loop, body, &variable);
    kernel->variables.items[statement->variable].extent = nest->extents[axis];
    emitter->axes[axis] = kernel_variable(kernel, statement->variable);
}

static expr tile_index(const struct emitter *emitter, const struct transpose *t, expr first)
{
    struct exprs *pool = emitter->kernel->pool;
    const expr row = expr_binary(pool, EXPR_SUB, emitter->axes[t->write], first);
    const expr column = expr_binary(pool, EXPR_SUB, emitter->axes[t->read], emitter->chunk_begin);
    return expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, row, expr_index(pool, PITCH)), column);
}

/* One strip of the write axis: fills the tiles, then maps them. */
static void emit_tile(struct emitter *emitter, struct block *block, const struct transpose *t, expr first,
                      expr last, const uint32_t *tiles)
{
    struct kernel *kernel = emitter->kernel;
    struct block outer, inner;
    emit_part(emitter, block, &t->nest, t->write, first, last, LOOP_SERIAL, &outer);
    emit_part(emitter, &outer, &t->nest, t->read, emitter->chunk_begin, emitter->chunk_end, LOOP_VECTORISE,
              &inner);
    for (uint32_t i = 0; i < t->count; i++)
        build_store(&inner, tiles[i], tile_index(emitter, t, first),
                    lower_expr(&emitter->lowering, t->loads[i]));
    emit_part(emitter, block, &t->nest, t->read, emitter->chunk_begin, emitter->chunk_end, LOOP_SERIAL,
              &outer);
    emit_part(emitter, &outer, &t->nest, t->write, first, last, LOOP_VECTORISE, &inner);
    for (uint32_t i = 0; i < t->count; i++)
        emitter->reduced[i] = kernel_element(kernel, tiles[i], tile_index(emitter, t, first), 1);
    const struct nest_form nothing_left = {.kind = FORM_MAP, .vector = NO_AXIS};
    emit_nest(emitter, &inner, &t->nest, nothing_left);
}

static bool transpose_build(const struct strategy_context *context, const struct config *config,
                            struct lowered_group *out, struct text *why)
{
    struct transpose t;
    struct emitter emitter;
    (void)config;
    if (!find_transpose(context, &t, why))
        return false;
    const struct nest *nest = &context->group->body.nests.items[0];
    uint64_t buffers = loaded_buffers(&context->group->body, nest);
    for (uint32_t s = 0; s < nest->store_count; s++)
        buffers |= UINT64_C(1) << nest->stores[s].buffer;
    emitter_init(&emitter, context, "cpu_transpose", "tile=32x64", buffers);
    struct kernel *kernel = emitter.kernel;
    struct exprs *pool = kernel->pool;
    uint32_t tiles[MAX_TILED_LOADS], axes[MAX_AXES], count = 0;
    for (uint32_t i = 0; i < t.count; i++) {
        const struct kernel_memory tile = {.space = MEMORY_SCRATCH,
                                           .dtype = expr_at(context->group->body.pool, t.loads[i])->dtype,
                                           .count = WRITE_TILE * PITCH,
                                           .label = "tile"};
        tiles[i] = kernel_memory_add(kernel, &tile);
    }
    for (uint32_t axis = 0; axis < t.nest.rank; axis++)
        if (axis != t.read && axis != t.write)
            axes[count++] = axis;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body, strip;
    expr first;
    emit_parallel(&emitter, &top, &t.nest, count, axes, t.read, READ_TILE, &body);
    const expr end = kernel_dim(kernel, t.nest.extents[t.write]), length = expr_index(pool, WRITE_TILE);
    build_for(&body, "first", expr_index(pool, 0), end, length, LOOP_SERIAL, &strip, &first);
    const expr last = build_declare(
        &strip, "last", expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_ADD, first, length), end));
    emit_tile(&emitter, &strip, &t, first, last, tiles);
    emit_figures(&emitter, &t.nest);
    vec_push(context->arena, &out->launches, emitter_launch(&emitter));
    return true;
}

static void transpose_describe(const struct config *config, struct text *out)
{
    text_printf(out, "tile=%dx%d", (int)config->value[0], (int)config->value[1]);
}

const struct strategy cpu_transpose = {
    .name = "cpu_transpose",
    .fits = transpose_fits,
    .candidates = transpose_candidates,
    .cost = transpose_cost,
    .build = transpose_build,
    .describe = transpose_describe,
    .from_level = 2,
};

/* The interpreter's top: sizes, temporaries, and the loops over a nest's points.
 *
 * Every nest's expressions are first rewritten into a pool of our own in which all dims are constants, so
 * nothing that others share is written and the expressions are those of exactly these sizes. Parallel points
 * go in blocks; reductions run either point by point over blocks of the reduced domain, or, when that is
 * small, once for each reduced point over the whole block. */
#include "ir/interp/nest.h"

#include "ir/support/checked.h"

#include <string.h>

enum { LONG_BLOCK = 64 }; /* parallel points that are worth a block of their own */

static enum interp_status size_of_dim(struct interpretation *run, dim d, int64_t *size)
{
    const struct dims *dims = run->definition->pool->dims;
    return dim_evaluate(dims, d, run->symbol_values, size) && *size >= 0 ? INTERP_DONE : INTERP_DIMS;
}

static uint32_t page_count(const struct interpretation *run)
{
    return run->spill && run->spill->pages ? run->spill->pages : PAGE_COUNT;
}

/* Memory of a temporary, or storage beyond what may be held. */
static enum interp_status add_temporary(struct interpretation *run, uint32_t number, uint64_t bytes,
                                        uint64_t *total)
{
    struct place *place = &run->places[number];
    *total += bytes;
    if (run->limits && run->limits->bytes && *total > run->limits->bytes)
        return INTERP_MEMORY;
    if (!run->spill || *total <= run->spill->held) {
        place->bytes = arena_alloc(&run->arena, (size_t)bytes);
        return INTERP_DONE;
    }
    *total -= bytes;
    if (!run->spill->take(run->spill->user, bytes, &run->spilled[number]))
        return INTERP_STORAGE;
    place->storage = &run->spilled[number];
    return INTERP_DONE;
}

static enum interp_status add_place(struct interpretation *run, uint32_t number,
                                    const struct interp_buffer *given, uint64_t *total)
{
    const struct buffer *buffer = &run->definition->buffers.items[number];
    struct place *place = &run->places[number];
    place->dtype = buffer->type.dtype;
    place->rank = (uint32_t)buffer->type.rank;
    place->width = dtype_bits(place->dtype) / 8;
    if (!place->width || place->width > 8 || place->rank > MAX_RANK)
        return INTERP_OUT_OF_RANGE;
    place->count = 1;
    for (uint32_t i = place->rank; i-- > 0;) {
        if (size_of_dim(run, buffer->type.dims[i], &place->sizes[i]) != INTERP_DONE)
            return INTERP_DIMS;
        place->strides[i] = place->count;
        if (!mul_i64(place->count, place->sizes[i], &place->count))
            return INTERP_DIMS;
    }
    uint64_t bytes;
    if (!dtype_bytes(place->dtype, place->count, &bytes) || bytes > SIZE_MAX)
        return INTERP_DIMS;
    place->bytes = given->memory;
    place->storage = given->memory ? NULL : given->storage;
    if (!place->bytes && !place->storage) {
        const enum interp_status status = add_temporary(run, number, bytes, total);
        if (status != INTERP_DONE)
            return status;
    }
    if (place->storage && !run->executor.pages)
        run->executor.pages = pages_new(&run->arena, page_count(run));
    return INTERP_DONE;
}

/* ---- one nest
 * ---------------------------------------------------------------------------------------------------- */

static expr rewrite_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    struct interpretation *run = user;
    int64_t value = 0;
    (void)arguments;
    if (node->op != EXPR_AXIS && node->op != EXPR_DIM)
        return 0;
    const dim d = node->op == EXPR_AXIS ? node->extent : (dim)node->value;
    if (!dim_evaluate(run->definition->pool->dims, d, run->symbol_values, &value))
        run->dims_failed = true;
    if (node->op == EXPR_DIM)
        return expr_index(into, value);
    return expr_axis(into, (uint32_t)node->value, dim_constant(into->dims, value));
}

static expr own_copy(struct interpretation *run, expr e)
{
    expr copy = expr_rewrite(&run->pool, run->definition->pool, e, rewrite_leaf, run);
    return expr_expand(&run->pool, copy);
}

static unsigned char *new_registers(struct interpretation *run, const struct program *program)
{
    unsigned char *memory = arena_array(&run->arena, program->register_count, REGISTER_BYTES);
    run->executor.registers = memory;
    program_prepare(&run->executor, program);
    return memory;
}

static void compile_body(struct nest_plan *plan)
{
    struct interpretation *run = plan->run;
    const struct nest *nest = plan->nest;
    const uint32_t count = nest->reduction_count;
    const uint32_t axes = nest->kind == NEST_SORT ? nest->rank + 1 : nest->rank + nest->reduce_rank;
    expr *roots = arena_new_array(&run->arena, expr, count);
    plan->body_results = arena_new_array(&run->arena, uint32_t, count);
    plan->body_dtypes = arena_new_array(&run->arena, enum dtype, count);
    plan->accumulators = arena_array(&run->arena, count, sizeof *plan->accumulators);
    for (uint32_t i = 0; i < count; i++) {
        roots[i] = own_copy(run, nest->reductions[i].body);
        plan->body_dtypes[i] = expr_at(&run->pool, roots[i])->dtype;
        plan->accumulators[i] = arena_new_array(&run->arena, union accumulator, BLOCK_POINTS);
    }
    struct space space;
    if (plan->blocks_of_parallel)
        space_init(&space, axes, plan->extents, 0, nest->rank);
    else /* a filter's blocks are of earlier candidates */
        space_init(&space, axes, plan->extents, nest->rank + (nest->kind == NEST_FILTER), axes);
    program_compile(&run->pool, run->places, &space, count, roots, plan->body_results, &plan->body);
    plan->body_registers = new_registers(run, &plan->body);
}

static void compile_stores(struct nest_plan *plan)
{
    struct interpretation *run = plan->run;
    const struct nest *nest = plan->nest;
    const uint32_t axes = nest_store_axes(nest);
    struct space space;
    if (nest->kind == NEST_SORT || nest->kind == NEST_FILTER ||
        (nest->kind == NEST_SCAN && !plan->blocks_of_parallel))
        space_init(&space, axes, plan->extents, axes - 1, axes);
    else
        space_init(&space, axes, plan->extents, 0, nest->rank);
    plan->stores = arena_new_array(&run->arena, struct nest_store_plan, nest->store_count);
    const size_t most = (size_t)nest->store_count * (MAX_RANK + 2);
    expr *roots = arena_new_array(&run->arena, expr, most);
    uint32_t *results = arena_new_array(&run->arena, uint32_t, most), count = 0;
    bool needs_runs = false;
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        const uint32_t rank = run->places[store->buffer].rank;
        expr indices[MAX_RANK];
        for (uint32_t d = 0; d < rank; d++)
            indices[d] = store->indices
                             ? own_copy(run, store->indices[d])
                             : expr_axis(&run->pool, d, dim_constant(&run->dims, plan->extents[d]));
        const struct access *access =
            store->condition ? NULL
                             : access_new(&run->pool, &space, run->places, store->buffer, rank, indices);
        plan->stores[i].access = access;
        needs_runs |= access && !access->linear;
        roots[count++] = own_copy(run, store->value);
        if (store->condition)
            roots[count++] = own_copy(run, store->condition);
        for (uint32_t d = 0; d < rank && !access; d++)
            roots[count++] = indices[d];
    }
    program_compile(&run->pool, run->places, &space, count, roots, results, &plan->store);
    plan->store.needs_runs |= needs_runs;
    plan->store_registers = new_registers(run, &plan->store);
    for (uint32_t i = 0, next = 0; i < nest->store_count; i++) {
        plan->stores[i].value = results[next++];
        plan->stores[i].condition = nest->stores[i].condition ? results[next++] : NO_REGISTER;
        for (uint32_t d = 0; d < run->places[nest->stores[i].buffer].rank && !plan->stores[i].access; d++)
            plan->stores[i].indices[d] = results[next++];
    }
}

void nest_unflatten(const int64_t *extents, uint32_t first, uint32_t last, int64_t position, int64_t *axes)
{
    for (uint32_t i = last; i-- > first;) {
        axes[i] = position % extents[i];
        position /= extents[i];
    }
}

static void combine_block(struct nest_plan *plan, uint32_t first, bool into_one, uint32_t count)
{
    for (uint32_t r = 0; r < plan->nest->reduction_count; r++)
        accumulate(plan->nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r] + first,
                   into_one, register_at(&plan->run->executor, plan->body_results[r]), count);
}

static bool reduce_block(struct nest_plan *plan, int64_t start, uint32_t count)
{
    struct executor *x = &plan->run->executor;
    const struct nest *nest = plan->nest;
    const uint32_t axes = nest->rank + nest->reduce_rank;
    int64_t fixed[MAX_AXES] = {0};
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        accumulator_init(nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r], count);
    x->registers = plan->body_registers;
    if (plan->blocks_of_parallel) {
        for (int64_t at = 0; at < plan->reduce_count; at++) {
            nest_unflatten(plan->extents, nest->rank, axes, at, fixed);
            if (!program_run(x, &plan->body, fixed, start, count))
                return false;
            combine_block(plan, 0, false, count);
        }
        return true;
    }
    for (uint32_t p = 0; p < count; p++) {
        nest_unflatten(plan->extents, 0, nest->rank, start + p, fixed);
        for (int64_t at = 0; at < plan->reduce_count; at += BLOCK_POINTS) {
            const int64_t rest = plan->reduce_count - at;
            const uint32_t points = rest < BLOCK_POINTS ? (uint32_t)rest : BLOCK_POINTS;
            if (!program_run(x, &plan->body, fixed, at, points))
                return false;
            combine_block(plan, p, true, points);
        }
    }
    return true;
}

bool nest_run_stores(struct nest_plan *plan, const int64_t *fixed, int64_t start, uint32_t count)
{
    struct executor *x = &plan->run->executor;
    if (!program_run(x, &plan->store, fixed, start, count))
        return false;
    for (uint32_t i = 0; i < plan->nest->store_count; i++) {
        const struct nest_store_plan *store = &plan->stores[i];
        if (!store_block(x, &plan->store, plan->nest->stores[i].buffer, store->access, store->indices,
                         store->value, store->condition, count))
            return false;
    }
    return true;
}

static bool run_block(struct nest_plan *plan, int64_t start, uint32_t count)
{
    struct executor *x = &plan->run->executor;
    const int64_t fixed[MAX_AXES] = {0};
    if (plan->nest->reduction_count && !reduce_block(plan, start, count))
        return false;
    x->registers = plan->store_registers;
    for (uint32_t i = 0; i < plan->store.reduced_count; i++) {
        const struct preset *reduced = &plan->store.reduced[i];
        accumulator_finish(reduced->dtype, plan->accumulators[reduced->value],
                           register_at(x, reduced->result), count);
    }
    return nest_run_stores(plan, fixed, start, count);
}

/* The last parallel axis gives longer runs than the last reduced one: a convolution's row against its
 * kernel's. */
static bool longer_runs(const struct nest_plan *plan)
{
    const struct nest *nest = plan->nest;
    const int64_t parallel = nest->rank ? plan->extents[nest->rank - 1] : 1;
    const int64_t reduced = nest->reduce_rank ? plan->extents[nest->rank + nest->reduce_rank - 1] : 1;
    return parallel > reduced;
}

/* `count` points from a flat position on. */
static bool run_points(struct nest_plan *plan, int64_t start, int64_t count)
{
    for (int64_t at = 0; at < count; at += BLOCK_POINTS) {
        const int64_t rest = count - at;
        if (!run_block(plan, start + at, rest < BLOCK_POINTS ? (uint32_t)rest : BLOCK_POINTS))
            return false;
    }
    return true;
}

/* The next combination of the axes, each from its begin to its end; false behind the last. */
static bool step_axes(int64_t *at, const int64_t *begin, const int64_t *end, const int64_t *step,
                      uint32_t axes)
{
    for (uint32_t i = axes; i-- > 0;) {
        at[i] += step[i];
        if (at[i] < end[i])
            return true;
        at[i] = begin[i];
    }
    return false;
}

/* One piece of the parallel axes: points that follow each other in the flat order go together. */
static bool run_tile(struct nest_plan *plan, const int64_t *begin, const int64_t *tile)
{
    static const int64_t ones[MAX_AXES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint32_t rank = plan->nest->rank;
    int64_t end[MAX_AXES], at[MAX_AXES], points = 1;
    uint32_t outer = rank;
    for (uint32_t i = 0; i < rank; i++) {
        end[i] = tile[i] < plan->extents[i] - begin[i] ? begin[i] + tile[i] : plan->extents[i];
        at[i] = begin[i];
    }
    while (outer > 0) {
        outer--;
        points *= end[outer] - begin[outer];
        if (end[outer] - begin[outer] != plan->extents[outer])
            break;
    }
    do {
        int64_t flat = 0;
        for (uint32_t i = 0; i < rank; i++)
            flat = flat * plan->extents[i] + at[i];
        if (!run_points(plan, flat, points))
            return false;
    } while (step_axes(at, begin, end, ones, outer));
    return true;
}

static bool run_tiles(struct nest_plan *plan)
{
    const struct interpretation *run = plan->run;
    const uint32_t rank = plan->nest->rank;
    const int64_t begin[MAX_AXES] = {0};
    int64_t tile[MAX_AXES], at[MAX_AXES] = {0};
    if (!run->executor.pages)
        return run_points(plan, 0, plan->parallel_count);
    const struct access **stores = arena_array(&plan->run->arena, plan->nest->store_count, sizeof *stores);
    for (uint32_t i = 0; i < plan->nest->store_count; i++)
        stores[i] = plan->stores[i].access;
    order_tiles(run->places, &plan->body, &plan->store, stores, plan->nest->store_count, rank,
                rank + plan->nest->reduce_rank, plan->extents, page_count(run), tile);
    do {
        if (!run_tile(plan, at, tile))
            return false;
    } while (step_axes(at, begin, plan->extents, tile, rank));
    return true;
}

static enum interp_status run_nest(struct interpretation *run, const struct nest *nest)
{
    struct nest_plan plan = {.run = run, .nest = nest, .parallel_count = 1, .reduce_count = 1};
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++) {
        int64_t *count = i < nest->rank ? &plan.parallel_count : &plan.reduce_count;
        if (size_of_dim(run, nest->extents[i], &plan.extents[i]) != INTERP_DONE ||
            !mul_i64(*count, plan.extents[i], count))
            return INTERP_DIMS;
    }
    if (!plan.parallel_count)
        return INTERP_DONE;
    const int64_t block = plan.parallel_count < BLOCK_POINTS ? plan.parallel_count : BLOCK_POINTS;
    plan.blocks_of_parallel = nest->kind == NEST_SCAN      ? block > plan.reduce_count
                              : nest->kind == NEST_SCATTER ? true
                              : nest->kind == NEST_SORT || nest->kind == NEST_FILTER
                                  ? false
                                  : block >= plan.reduce_count || (block >= LONG_BLOCK && longer_runs(&plan));
    if (nest->reduction_count)
        compile_body(&plan);
    compile_stores(&plan);
    if (run->dims_failed)
        return INTERP_DIMS;
    if (nest->kind != NEST_REDUCE)
        return nest->kind == NEST_SORT     ? nest_run_sort(&plan)
               : nest->kind == NEST_FILTER ? nest_run_filter(&plan)
                                           : nest_run_scan(&plan);
    return run_tiles(&plan) ? INTERP_DONE : run->executor.status;
}

static enum interp_status run_all(struct interpretation *run, const struct interp_buffer *buffers)
{
    const struct definition *definition = run->definition;
    uint64_t total = 0;
    dims_init(&run->dims, &run->arena);
    exprs_init(&run->pool, &run->arena, &run->dims);
    run->executor.places = run->places;
    run->executor.step_limit = run->limits ? run->limits->steps : 0;
    run->executor.run_axes = arena_new_array(&run->arena, int64_t, (size_t)BLOCK_POINTS * MAX_AXES);
    for (uint32_t i = 0; i < definition->buffers.count; i++) {
        const enum interp_status status = add_place(run, i, &buffers[i], &total);
        if (status != INTERP_DONE)
            return status;
    }
    for (uint32_t i = 0; i < definition->nests.count; i++) {
        const enum interp_status status = run_nest(run, &definition->nests.items[i]);
        if (status != INTERP_DONE)
            return status;
    }
    return pages_flush(&run->executor) ? INTERP_DONE : run->executor.status;
}

enum interp_status interpret_stored(const struct definition *definition, const int64_t *symbol_values,
                                    const struct interp_buffer *buffers, const struct interp_spill *spill,
                                    const struct interp_limits *limits, const struct allocator *allocator)
{
    struct interpretation run = {
        .definition = definition, .symbol_values = symbol_values, .limits = limits, .spill = spill};
    arena_init(&run.arena, allocator, &run.recovery);
    if (setjmp(run.recovery.jump) != 0) {
        arena_release(&run.arena);
        return INTERP_MEMORY;
    }
    const enum interp_status status = run_all(&run, buffers);
    arena_release(&run.arena);
    return status;
}

enum interp_status interpret(const struct definition *definition, const int64_t *symbol_values,
                             void *const *buffers, const struct interp_limits *limits,
                             const struct allocator *allocator)
{
    struct interp_buffer held[MAX_BUFFERS] = {{0}};
    for (uint32_t i = 0; i < definition->buffers.count; i++)
        held[i].memory = buffers[i];
    return interpret_stored(definition, symbol_values, held, NULL, limits, allocator);
}

/* See gpu_common.h. */
#include "codegen/strategy/gpu/gpu_common.h"

#include <math.h>
#include <string.h>

static void mark_reductions(const struct strategy_context *context, const struct nest *nest, bool *loaded)
{
    const struct exprs *pool = context->group->body.pool;
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        expr_mark_loads(context->arena, pool, nest->reductions[i].body, loaded);
}

static void mark_stores(const struct strategy_context *context, const struct nest *nest, bool *loaded,
                        bool *stored)
{
    const struct exprs *pool = context->group->body.pool;
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        expr_mark_loads(context->arena, pool, store->value, loaded);
        expr_mark_loads(context->arena, pool, store->condition, loaded);
        stored[store->buffer] = true;
        for (int k = 0; store->indices && k < context->group->body.buffers.items[store->buffer].type.rank;
             k++)
            expr_mark_loads(context->arena, pool, store->indices[k], loaded);
    }
}

static void mark_nest(const struct strategy_context *context, const struct nest *nest, bool *loaded,
                      bool *stored)
{
    mark_reductions(context, nest, loaded);
    mark_stores(context, nest, loaded, stored);
}

uint32_t gpu_kernel_parameter(struct gpu_kernel *k, enum argument_kind kind, uint32_t index, enum dtype dtype,
                              const char *label)
{
    struct kernel_memory memory = {
        .space = MEMORY_GLOBAL, .dtype = dtype, .lanes = 1, .label = label, .alignment = 16};
    struct argument argument = {.kind = kind, .index = index};
    vec_push(k->context->arena, &k->arguments, argument);
    return kernel_memory_add(k->kernel, &memory);
}

static void begin_kernel(struct gpu_kernel *k, const struct strategy_context *context, const char *strategy)
{
    const struct definition *body = &context->group->body;
    *k = (struct gpu_kernel){.context = context, .kernel = kernel_new(context->arena, body->pool->dims)};
    k->kernel->strategy = strategy;
    k->kernel->location = context->group->location;
    k->kernel->index_bits = gpu_index_bits(context, k->kernel);
    k->kernel->calls_functions = true;
    k->memories = arena_new_array(context->arena, uint32_t, body->buffers.count);
}

const char *gpu_shape_text(const struct strategy_context *context, const struct tensor_type *type)
{
    struct text text;
    text_init(&text, context->arena);
    text_put(&text, "[");
    for (int i = 0; i < type->rank; i++) {
        text_put(&text, i ? ", " : "");
        dim_print(context->group->body.pool->dims, type->dims[i], &text);
    }
    text_put(&text, "]");
    return text.data;
}

static void add_buffers(struct gpu_kernel *k, const bool *loaded, const bool *stored, const bool *inside)
{
    static const char *const inputs[] = {"x", "y", "z", "w", "u", "v"};
    const struct definition *body = &k->context->group->body;
    uint32_t input = 0;
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        k->memories[i] = UINT32_MAX;
        if ((!loaded[i] && !stored[i]) || (inside && inside[i]))
            continue;
        const char *label = stored[i]                                  ? "out"
                            : input < sizeof inputs / sizeof inputs[0] ? inputs[input]
                                                                       : "in";
        input += !stored[i];
        k->memories[i] =
            gpu_kernel_parameter(k, ARGUMENT_BUFFER, i, body->buffers.items[i].type.dtype, label);
        k->kernel->memories.items[k->memories[i]].shape =
            gpu_shape_text(k->context, &body->buffers.items[i].type);
    }
}

void gpu_kernel_begin(struct gpu_kernel *k, const struct strategy_context *context, const char *strategy,
                      uint32_t first_nest, uint32_t nest_count, const bool *inside)
{
    bool loaded[MAX_BUFFERS] = {false}, stored[MAX_BUFFERS] = {false};
    begin_kernel(k, context, strategy);
    for (uint32_t i = 0; i < nest_count; i++)
        mark_nest(context, &context->group->body.nests.items[first_nest + i], loaded, stored);
    add_buffers(k, loaded, stored, inside);
    gpu_figures(context, first_nest, nest_count, &k->kernel->bytes, &k->kernel->operations);
}

void gpu_kernel_begin_reductions(struct gpu_kernel *k, const struct strategy_context *context,
                                 const char *strategy, uint32_t nest, const bool *inside)
{
    bool loaded[MAX_BUFFERS] = {false}, stored[MAX_BUFFERS] = {false};
    begin_kernel(k, context, strategy);
    mark_reductions(context, &context->group->body.nests.items[nest], loaded);
    add_buffers(k, loaded, stored, inside);
    gpu_figures(context, nest, 1, &k->kernel->bytes, &k->kernel->operations);
}

void gpu_kernel_begin_stores(struct gpu_kernel *k, const struct strategy_context *context,
                             const char *strategy, uint32_t nest)
{
    bool loaded[MAX_BUFFERS] = {false}, stored[MAX_BUFFERS] = {false};
    begin_kernel(k, context, strategy);
    mark_stores(context, &context->group->body.nests.items[nest], loaded, stored);
    add_buffers(k, loaded, stored, NULL);
}

void gpu_kernel_end(struct gpu_kernel *k, struct lowered_group *out)
{
    struct kernel_launch launch = {.kernel = k->kernel, .arguments = k->arguments.items};
    vec_push(k->context->arena, &out->launches, launch);
}

double gpu_size(const struct strategy_context *context, dim d)
{
    enum { USUAL = 32 };
    const struct dims *dims = context->group->body.pool->dims;
    int64_t value;
    if (dim_is_constant(dims, d, &value))
        return (double)value;
    int64_t *values = arena_new_array(context->arena, int64_t, dims->symbols.count);
    for (uint32_t i = 0; i < dims->symbols.count; i++) {
        const struct symbol *symbol = &dims->symbols.items[i];
        /* A range that somebody stated has a hint that somebody meant. */
        const bool stated = symbol->high <= INT32_MAX;
        values[i] = symbol->hint <= 1 && !stated ? USUAL : symbol->hint;
    }
    return dim_evaluate(dims, d, values, &value) ? (double)value : (double)dim_hint(dims, d);
}

dim gpu_extent_product(const struct strategy_context *context, const struct nest *nest, uint32_t from,
                       uint32_t to)
{
    struct dims *dims = context->group->body.pool->dims;
    dim product = dim_constant(dims, 1);
    for (uint32_t i = from; i < to; i++)
        product = dim_mul(dims, product, nest->extents[i]);
    return product;
}

const char *gpu_summary(const struct strategy_context *context, const char *what, uint32_t nest)
{
    const struct definition *body = &context->group->body;
    const struct nest *at = &body->nests.items[nest];
    struct text text;
    text_init(&text, context->arena);
    text_printf(&text, "%s over [", what);
    for (uint32_t i = 0; i < at->rank + at->reduce_rank; i++) {
        text_put(&text, i == 0 ? "" : i == at->rank ? " | " : ", ");
        dim_print(body->pool->dims, at->extents[i], &text);
    }
    text_printf(&text, "]%s, %u stored.", at->reduce_rank ? " (reduced behind the bar)" : "",
                at->store_count);
    return text.data;
}

/* Below loads everything is index arithmetic, which is no work that the nest asks for. */
static expr without_indices(void *user, struct exprs *into, const struct expr_node *node,
                            const expr *arguments)
{
    (void)user;
    (void)arguments;
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    return expr_load(into, (uint32_t)node->value, node->dtype, 0, NULL);
}

static uint32_t value_cost(const struct strategy_context *context, expr value)
{
    struct exprs *pool = arena_new(context->arena, struct exprs);
    exprs_init(pool, context->arena, context->group->body.pool->dims);
    return expr_cost(pool, expr_rewrite(pool, context->group->body.pool, value, without_indices, NULL));
}

void gpu_figures(const struct strategy_context *context, uint32_t first_nest, uint32_t nest_count, dim *bytes,
                 dim *operations)
{
    const struct definition *body = &context->group->body;
    struct dims *dims = body->pool->dims;
    bool loaded[MAX_BUFFERS] = {false}, stored[MAX_BUFFERS] = {false};
    dim all = dim_constant(dims, 0), work = dim_constant(dims, 0);
    for (uint32_t n = first_nest; n < first_nest + nest_count; n++) {
        const struct nest *nest = &body->nests.items[n];
        mark_nest(context, nest, loaded, stored);
        uint32_t point = 0, reduced = 0;
        for (uint32_t i = 0; i < nest->store_count; i++)
            point += value_cost(context, nest->stores[i].value);
        for (uint32_t i = 0; i < nest->reduction_count; i++)
            reduced += value_cost(context, nest->reductions[i].body) + 1;
        dim points = gpu_extent_product(context, nest, 0, nest->rank);
        dim inner = dim_mul(dims, points,
                            gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank));
        work = dim_add(dims, work, dim_mul(dims, points, dim_constant(dims, point)));
        if (nest->reduction_count)
            work = dim_add(dims, work, dim_mul(dims, inner, dim_constant(dims, reduced)));
    }
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        const struct tensor_type *type = &body->buffers.items[i].type;
        if ((loaded[i] || stored[i]) && body->buffers.items[i].role != BUFFER_TEMPORARY)
            all = dim_add(dims, all,
                          dim_mul(dims, tensor_elements(dims, type),
                                  dim_constant(dims, (dtype_bits(type->dtype) + 7) / 8)));
    }
    *bytes = all;
    *operations = work;
}

double gpu_roofline(const struct strategy_context *context, double memory_share, double arithmetic_share)
{
    const double launch = 2e-6;
    dim bytes, operations;
    gpu_figures(context, 0, context->group->body.nests.count, &bytes, &operations);
    double memory = gpu_size(context, bytes) / (context->machine->memory_bytes_per_second * memory_share);
    double compute = gpu_size(context, operations) / (context->machine->fp32_per_second * arithmetic_share);
    return launch + (memory > compute ? memory : compute);
}

bool gpu_uses_axis(const struct strategy_context *context, expr e, uint32_t axis)
{
    return expr_uses_axis(context->arena, context->group->body.pool, e, axis);
}

struct traffic {
    const struct strategy_context *context;
    const bool *kept;       /* by buffer: the nests after the first that loads it have it; NULL: none */
    bool *loaded;           /* by buffer: an earlier nest loaded it */
    unsigned char *visited; /* by expression, in one nest */
};

/* Bytes that one evaluation of e moves for each thread, when neighbours differ in `axis`. */
static double load_bytes(struct traffic *traffic, expr e, uint32_t axis)
{
    enum { TRANSACTION = 32 };
    const struct definition *body = &traffic->context->group->body;
    if (traffic->visited[e])
        return 0;
    traffic->visited[e] = 1;
    const struct expr_node *node = expr_at(body->pool, e);
    double bytes = 0;
    for (uint32_t i = 0; i < node->count; i++)
        bytes += load_bytes(traffic, node->arguments[i], axis);
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return bytes;
    if (traffic->kept && traffic->kept[node->value]) {
        if (traffic->loaded[node->value])
            return bytes;
        traffic->loaded[node->value] = true;
    }
    const struct tensor_type *type = &body->buffers.items[node->value].type;
    double own = dtype_bits(type->dtype) / 8.0;
    if (!gpu_uses_axis(traffic->context, e, axis))
        return bytes + own / (double)WARP;
    bool side_by_side =
        type->rank > 0 && gpu_uses_axis(traffic->context, node->arguments[type->rank - 1], axis);
    return bytes + (side_by_side ? own : (double)TRANSACTION);
}

double gpu_traffic(const struct strategy_context *context, bool along_reduced, const bool *kept)
{
    const double cache_speed = 2.5; /* of the second-level cache, in memory's bandwidths */
    const struct definition *body = &context->group->body;
    struct traffic traffic = {.context = context,
                              .kept = kept,
                              .loaded = arena_new_array(context->arena, bool, body->buffers.count)};
    double bytes = 0;
    for (uint32_t n = 0; n < body->nests.count; n++) {
        const struct nest *nest = &body->nests.items[n];
        traffic.visited = arena_new_array(context->arena, unsigned char, body->pool->nodes.count);
        double points = gpu_size(context, gpu_extent_product(context, nest, 0, nest->rank));
        double inner =
            gpu_size(context, gpu_extent_product(context, nest, nest->rank, nest->rank + nest->reduce_rank));
        uint32_t last = nest->rank ? nest->rank - 1 : 0;
        uint32_t fast = along_reduced && nest->reduce_rank ? nest->rank + nest->reduce_rank - 1 : last;
        for (uint32_t r = 0; r < nest->reduction_count; r++)
            bytes += points * inner * load_bytes(&traffic, nest->reductions[r].body, fast);
        for (uint32_t s = 0; s < nest->store_count; s++)
            bytes += points * load_bytes(&traffic, nest->stores[s].value, last);
    }
    return bytes / (cache_speed * context->machine->memory_bytes_per_second);
}

expr gpu_flat_thread(struct gpu_kernel *k, struct block *at, const char *label, int64_t threads)
{
    struct kernel *kernel = k->kernel;
    struct exprs *pool = kernel->pool;
    const expr start = expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE),
                                   kernel_named(kernel, threads, "threads"));
    return build_declare(at, label,
                         expr_binary(pool, EXPR_ADD, start,
                                     kernel_thread_index(kernel, 0, dim_constant(pool->dims, threads))));
}

uint32_t gpu_registers(struct gpu_kernel *k, enum dtype dtype, int64_t count, const char *label)
{
    const struct kernel_memory memory = {.space = MEMORY_REGISTER,
                                         .dtype = dtype,
                                         .lanes = 1,
                                         .count = count,
                                         .label = label,
                                         .alignment = 16};
    return kernel_memory_add(k->kernel, &memory);
}

expr gpu_declare_within(struct gpu_kernel *k, struct block *at, const char *label, expr value, dim extent)
{
    uint32_t before = k->kernel->variables.count;
    expr declared = build_declare(at, label, value);
    if (k->kernel->variables.count == before)
        return declared;
    int64_t known, claimed;
    const dim found = k->kernel->variables.items[before].extent;
    const struct dims *dims = k->kernel->pool->dims;
    if (found != DIM_NONE && dim_is_constant(dims, found, &known) &&
        dim_is_constant(dims, extent, &claimed) && known <= claimed)
        return declared;
    k->kernel->variables.items[before].extent = extent;
    return kernel_variable(k->kernel, before);
}

void gpu_split_position(struct gpu_kernel *k, struct block *at, const struct nest *nest, expr position,
                        const uint32_t *axes, uint32_t count, const char *label, expr *values)
{
    struct exprs *pool = k->kernel->pool;
    expr rest = position;
    for (uint32_t i = count; i-- > 0;) {
        expr extent = kernel_dim(k->kernel, nest->extents[axes[i]]);
        if (i == 0) {
            values[axes[i]] = rest;
            return;
        }
        expr remainder = expr_binary(pool, EXPR_INDEX_MOD, rest, extent);
        values[axes[i]] = gpu_declare_within(k, at, label, remainder, nest->extents[axes[i]]);
        rest = expr_binary(pool, EXPR_INDEX_DIV, rest, extent);
        rest = gpu_declare_within(k, at, "rest", rest, i == 1 ? nest->extents[axes[0]] : DIM_NONE);
    }
}

struct lowering gpu_lowering(const struct gpu_kernel *k, const expr *axes, const expr *reduced)
{
    return (struct lowering){.kernel = k->kernel,
                             .definition = &k->context->group->body,
                             .memories = k->memories,
                             .axes = axes,
                             .reduced = reduced};
}

/* Windows of a few taps are written out. */
static bool is_short(const struct gpu_kernel *k, const struct nest *nest, expr begin, expr step)
{
    enum { MOST_TAPS = 32 };
    int64_t first, stride, taps;
    dim product = gpu_extent_product(k->context, nest, nest->rank, nest->rank + nest->reduce_rank);
    return expr_constant_int(k->kernel->pool, begin, &first) && first == 0 &&
           expr_constant_int(k->kernel->pool, step, &stride) && stride == 1 &&
           dim_is_constant(k->kernel->pool->dims, product, &taps) && taps <= MOST_TAPS;
}

void gpu_reduce_serial(struct gpu_kernel *k, struct block *at, uint32_t nest_number, expr *axes, expr begin,
                       expr step, expr *reduced)
{
    const struct nest *nest = &k->context->group->body.nests.items[nest_number];
    struct exprs *pool = k->kernel->pool;
    uint32_t *variables = arena_new_array(k->context->arena, uint32_t, nest->reduction_count);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        enum dtype dtype = expr_at(k->context->group->body.pool, nest->reductions[r].body)->dtype;
        variables[r] = build_mutable(at, "sum", reduce_neutral(pool, nest->reductions[r].op, dtype));
        reduced[r] = kernel_variable(k->kernel, variables[r]);
    }
    struct block inner = *at;
    enum loop_kind loop = is_short(k, nest, begin, step) ? LOOP_UNROLL : LOOP_SERIAL;
    for (uint32_t i = 0; i < nest->reduce_rank; i++) {
        uint32_t axis = nest->rank + i;
        struct block body;
        build_for(&inner, "k", i == 0 ? begin : expr_index(pool, 0),
                  kernel_dim(k->kernel, nest->extents[axis]), i == 0 ? step : 0, loop, &body, &axes[axis]);
        inner = body;
    }
    struct lowering lowering = gpu_lowering(k, axes, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(&inner, variables[r],
                     reduce_combine(pool, nest->reductions[r].op, reduced[r],
                                    lower_expr(&lowering, nest->reductions[r].body)));
}

void gpu_store_point(struct gpu_kernel *k, struct block *at, uint32_t nest_number, const expr *axes,
                     const expr *reduced)
{
    const struct nest *nest = &k->context->group->body.nests.items[nest_number];
    struct lowering lowering = gpu_lowering(k, axes, reduced);
    for (uint32_t s = 0; s < nest->store_count; s++)
        gpu_store(k, at, &lowering, &nest->stores[s], axes, lower_expr(&lowering, nest->stores[s].value));
}

void gpu_store(struct gpu_kernel *k, struct block *at, const struct lowering *lowering,
               const struct nest_store *store, const expr *axes, expr value)
{
    expr indices[MAX_RANK];
    for (int i = 0; i < lowering->definition->buffers.items[store->buffer].type.rank; i++)
        indices[i] = store->indices ? lower_expr(lowering, store->indices[i]) : axes[i];
    struct block where = *at;
    if (store->condition)
        build_if(at, lower_expr(lowering, store->condition), &where, NULL);
    build_store(&where, k->memories[store->buffer], lower_index(lowering, store->buffer, indices), value);
}

void gpu_mark_loads(const struct strategy_context *context, const struct nest *nest, bool *loaded)
{
    bool stored[MAX_BUFFERS] = {false};
    mark_nest(context, nest, loaded, stored);
}

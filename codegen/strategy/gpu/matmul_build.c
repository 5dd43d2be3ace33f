/* Tiles of a matrix product: their places, and the store of their sums. See matmul.h. */
#include "codegen/strategy/gpu/matmul.h"

#include <string.h>

static expr number(struct matmul_builder *b, int64_t value)
{
    return expr_index(b->pool, value);
}

static expr binary(struct matmul_builder *b, enum expr_op op, expr left, expr right)
{
    return expr_binary(b->pool, op, left, right);
}

void matmul_begin(struct matmul_builder *b, const struct strategy_context *context,
                  const struct matmul_plan *plan, const struct strategy *strategy,
                  const struct config *config)
{
    struct text text;
    *b = (struct matmul_builder){.context = context, .plan = plan, .config = config->value};
    gpu_kernel_begin(&b->k, context, strategy->name, 0, 1, NULL);
    b->pool = b->k.kernel->pool;
    text_init(&text, context->arena);
    strategy->describe(config, &text);
    b->k.kernel->config = text.data;
    b->k.kernel->summary = gpu_summary(context, "Matrix product on tensor cores", 0);
    b->run = kernel_memory_add(b->k.kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                                    .dtype = DTYPE_F32,
                                                                    .count = FRAGMENT_RUN,
                                                                    .label = "run"});
}

static dim tiles_of(const struct matmul_builder *b, int side)
{
    struct dims *dims = b->pool->dims;
    const int32_t length = b->config[side == SIDE_LEFT ? MATMUL_ROWS : MATMUL_COLUMNS];
    return dim_ceil_div(dims, b->plan->operands[side].own.extent, dim_constant(dims, length));
}

dim matmul_tiles(const struct matmul_builder *b)
{
    struct dims *dims = b->pool->dims;
    return dim_mul(dims, dim_mul(dims, tiles_of(b, SIDE_LEFT), tiles_of(b, SIDE_RIGHT)), b->plan->batches);
}

/* Positions in the runs of batch axes, the fastest first. */
static void place_batch(struct matmul_builder *b, struct block *at, expr rest, struct matmul_tile *tile)
{
    for (uint32_t i = 0; i < b->plan->batch_count; i++) {
        const expr extent = kernel_dim(b->k.kernel, b->plan->batch[i].extent);
        const bool last = i + 1 == b->plan->batch_count;
        tile->batch[i] = build_declare(at, "batch", last ? rest : binary(b, EXPR_INDEX_MOD, rest, extent));
        rest = last ? rest : build_declare(at, "rest", binary(b, EXPR_INDEX_DIV, rest, extent));
    }
}

void matmul_place(struct matmul_builder *b, struct block *at, expr position, struct matmul_tile *tile)
{
    enum { GROUP = 8 };
    struct kernel *kernel = b->k.kernel;
    struct dims *dims = b->pool->dims;
    const dim tall = tiles_of(b, SIDE_LEFT), wide = tiles_of(b, SIDE_RIGHT);
    *tile = (struct matmul_tile){0};
    if (b->plan->batch_count) {
        const expr tiles = kernel_dim(kernel, dim_mul(dims, tall, wide));
        place_batch(b, at, build_declare(at, "batch", binary(b, EXPR_INDEX_DIV, position, tiles)), tile);
        position = build_declare(at, "place", binary(b, EXPR_INDEX_MOD, position, tiles));
    }
    const expr row_tiles = kernel_dim(kernel, tall);
    const expr area = kernel_dim(kernel, dim_mul(dims, wide, dim_constant(dims, GROUP)));
    const expr first = build_declare(
        at, "first", binary(b, EXPR_MUL, binary(b, EXPR_INDEX_DIV, position, area), number(b, GROUP)));
    const expr height = build_declare(
        at, "height", binary(b, EXPR_MIN, number(b, GROUP), binary(b, EXPR_SUB, row_tiles, first)));
    const expr inside = build_declare(at, "inside", binary(b, EXPR_INDEX_MOD, position, area));
    const expr row = binary(b, EXPR_ADD, first, binary(b, EXPR_INDEX_MOD, inside, height));
    tile->row = build_declare(at, "row0", binary(b, EXPR_MUL, row, number(b, b->config[MATMUL_ROWS])));
    tile->column = build_declare(
        at, "column0",
        binary(b, EXPR_MUL, binary(b, EXPR_INDEX_DIV, inside, height), number(b, b->config[MATMUL_COLUMNS])));
}

/* ---- storing ---- */

/* A buffer that the stores load once, side by side along the run: brought by vectors. */
struct run_load {
    uint32_t buffer;
    expr load;       /* in the definition's pool */
    uint32_t memory; /* registers that hold the run */
};

struct run_loads {
    struct matmul_builder *builder;
    struct run_load items[MAX_BUFFERS];
    uint32_t count;
    bool spoilt[MAX_BUFFERS]; /* [buffer]: loaded otherwise too */
    expr lane;
};

static uint32_t fast_axis(const struct matmul_builder *b)
{
    const struct axis_run *own = &b->plan->operands[SIDE_RIGHT].own;
    return own->axes[own->count - 1];
}

static bool runs_along(const struct matmul_builder *b, const struct expr_node *load)
{
    const struct exprs *pool = b->plan->body->pool;
    const struct tensor_type *type = &b->plan->body->buffers.items[load->value].type;
    const unsigned bits = dtype_bits(type->dtype);
    if (load->op != EXPR_LOAD || !type->rank || load->count != type->rank || type->dtype == DTYPE_BOOL ||
        (bits != 16 && bits != 32) || !dim_divisible(pool->dims, type->dims[type->rank - 1], FRAGMENT_RUN))
        return false;
    const struct expr_node *last = expr_at(pool, load->arguments[type->rank - 1]);
    if (last->op != EXPR_AXIS || last->value != fast_axis(b))
        return false;
    for (int i = 0; i + 1 < type->rank; i++)
        if (gpu_uses_axis(b->context, load->arguments[i], fast_axis(b)))
            return false;
    return true;
}

static void find_loads(struct run_loads *loads, expr e, unsigned char *visited)
{
    const struct exprs *pool = loads->builder->plan->body->pool;
    if (visited[e])
        return;
    visited[e] = 1;
    const struct expr_node *node = expr_at(pool, e);
    for (uint32_t i = 0; i < node->count; i++)
        find_loads(loads, node->arguments[i], visited);
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return;
    for (uint32_t i = 0; i < loads->count; i++)
        if (loads->items[i].buffer == node->value)
            loads->spoilt[node->value] = true;
    if (!runs_along(loads->builder, node))
        loads->spoilt[node->value] = true;
    else
        loads->items[loads->count++] = (struct run_load){.buffer = (uint32_t)node->value, .load = e};
}

/* The vectors of every such buffer, into registers. */
static void bring_runs(struct matmul_builder *b, struct block *at, const expr *axes, struct run_loads *loads)
{
    enum { VECTOR_BITS = 128 };
    const struct definition *body = b->plan->body;
    struct kernel *kernel = b->k.kernel;
    unsigned char *visited = arena_new_array(b->context->arena, unsigned char, body->pool->nodes.count);
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    *loads = (struct run_loads){.builder = b};
    for (uint32_t s = 0; s < b->plan->nest->store_count; s++)
        find_loads(loads, b->plan->nest->stores[s].value, visited);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < loads->count; i++)
        if (!loads->spoilt[loads->items[i].buffer])
            loads->items[kept++] = loads->items[i];
    loads->count = kept;
    for (uint32_t i = 0; i < loads->count; i++) {
        struct run_load *item = &loads->items[i];
        const struct expr_node *load = expr_at(body->pool, item->load);
        const enum dtype dtype = body->buffers.items[item->buffer].type.dtype;
        const uint32_t lanes = VECTOR_BITS / dtype_bits(dtype), memory = b->k.memories[item->buffer];
        expr indices[MAX_RANK];
        for (uint32_t k = 0; k < load->count; k++)
            indices[k] = lower_expr(&lowering, load->arguments[k]);
        const expr index = build_declare(at, "at", lower_index(&lowering, item->buffer, indices));
        kernel->memories.items[memory].read = true;
        item->memory = kernel_memory_add(
            kernel, &(struct kernel_memory){
                        .space = MEMORY_REGISTER, .dtype = dtype, .count = FRAGMENT_RUN, .label = "with"});
        for (uint32_t k = 0; k < FRAGMENT_RUN; k += lanes) {
            const expr from = binary(b, EXPR_ADD, index, number(b, k));
            const expr vector =
                build_declare(at, "vector", kernel_element(kernel, memory, from, (uint16_t)lanes));
            for (uint32_t lane = 0; lane < lanes; lane++)
                build_store(at, item->memory, number(b, k + lane), kernel_lane(kernel, vector, lane));
        }
    }
}

static expr brought(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    const struct run_loads *loads = user;
    (void)rank;
    (void)indices;
    uint32_t i = 0;
    while (loads->items[i].buffer != buffer)
        i++;
    return kernel_element(loads->builder->k.kernel, loads->items[i].memory, loads->lane, 1);
}

/* Is the run stored at once? */
static bool stores_run(const struct matmul_builder *b, const struct nest_store *store)
{
    const struct tensor_type *type = &b->plan->body->buffers.items[store->buffer].type;
    const unsigned bits = dtype_bits(type->dtype);
    return !store->indices && type->rank > 0 && fast_axis(b) == (uint32_t)type->rank - 1 &&
           fast_axis(b) == b->plan->nest->rank - 1 && bits >= 8 && bits <= 64 && type->dtype != DTYPE_BOOL;
}

static void put_results(struct matmul_builder *b, struct block *at, const expr *axes,
                        const struct nest_store *store, uint32_t results)
{
    enum { VECTOR_BITS = 128 };
    const enum dtype dtype = b->k.kernel->memories.items[results].dtype;
    const uint32_t most = VECTOR_BITS / dtype_bits(dtype), lanes = most < FRAGMENT_RUN ? most : FRAGMENT_RUN;
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    const expr index = build_declare(at, "to", lower_index(&lowering, store->buffer, axes));
    for (uint32_t k = 0; k < FRAGMENT_RUN; k += lanes) {
        expr values[FRAGMENT_RUN];
        for (uint32_t lane = 0; lane < lanes; lane++)
            values[lane] = kernel_element(b->k.kernel, results, number(b, k + lane), 1);
        build_store(at, b->k.memories[store->buffer], binary(b, EXPR_ADD, index, number(b, k)),
                    kernel_pack(b->k.kernel, values, (uint16_t)lanes));
    }
}

/* A run that is all inside: the values of every store in registers, then vectors. */
static void store_run(struct matmul_builder *b, struct block *at, expr *axes)
{
    const struct nest *nest = b->plan->nest;
    struct run_loads loads;
    struct block body;
    uint32_t results[MAX_AXES];
    const uint32_t fast = fast_axis(b);
    const expr first = axes[fast];
    bring_runs(b, at, axes, &loads);
    build_for(at, "lane", number(b, 0), number(b, FRAGMENT_RUN), 0, LOOP_UNROLL, &body, &loads.lane);
    uint32_t *memories =
        arena_copy(b->context->arena, b->k.memories, b->plan->body->buffers.count * sizeof *memories);
    for (uint32_t i = 0; i < loads.count; i++)
        memories[loads.items[i].buffer] = UINT32_MAX;
    axes[fast] = binary(b, EXPR_ADD, first, loads.lane);
    const expr sum = kernel_element(b->k.kernel, b->run, loads.lane, 1);
    for (uint32_t s = 0; s < nest->store_count; s++) {
        struct lowering lowering = gpu_lowering(&b->k, axes, &sum);
        lowering.memories = memories;
        lowering.value = brought;
        lowering.user = &loads;
        const expr value = lower_expr(&lowering, nest->stores[s].value);
        if (!stores_run(b, &nest->stores[s])) {
            gpu_store(&b->k, &body, &lowering, &nest->stores[s], axes, value);
            continue;
        }
        results[s] =
            kernel_memory_add(b->k.kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                                   .dtype = expr_at(b->pool, value)->dtype,
                                                                   .count = FRAGMENT_RUN,
                                                                   .label = "result"});
        build_store(&body, results[s], loads.lane, value);
    }
    axes[fast] = first;
    for (uint32_t s = 0; s < nest->store_count; s++)
        if (stores_run(b, &nest->stores[s]))
            put_results(b, at, axes, &nest->stores[s], results[s]);
}

static void split(struct matmul_builder *b, struct block *at, const struct axis_run *run, expr position,
                  const char *label, expr *axes)
{
    gpu_split_position(&b->k, at, b->plan->nest, position, run->axes, run->count, label, axes);
}

void matmul_store(struct matmul_builder *b, struct block *at, const struct matmul_tile *tile,
                  const struct fragment *fragment, expr warp_row, expr warp_column)
{
    const struct axis_run *rows = &b->plan->operands[SIDE_LEFT].own,
                          *columns = &b->plan->operands[SIDE_RIGHT].own;
    struct kernel *kernel = b->k.kernel;
    struct block body, inside, then;
    expr axes[MAX_AXES], row, column, lane;
    for (uint32_t i = 0; i < MAX_AXES; i++)
        axes[i] = number(b, 0);
    for (uint32_t i = 0; i < b->plan->batch_count; i++)
        split(b, at, &b->plan->batch[i], tile->batch[i], "batch", axes);
    const expr first_row = build_declare(at, "row1", binary(b, EXPR_ADD, tile->row, warp_row));
    const expr first_column = build_declare(at, "column1", binary(b, EXPR_ADD, tile->column, warp_column));
    fragment_runs(at, fragment, b->sum, b->run, b->thread, &body, &row, &column);
    row = build_declare(&body, "row", binary(b, EXPR_ADD, first_row, row));
    column = build_declare(&body, "column", binary(b, EXPR_ADD, first_column, column));
    build_if(&body, binary(b, EXPR_LESS, row, kernel_dim(kernel, rows->extent)), &inside, NULL);
    split(b, &inside, rows, row, "row", axes);
    const expr end = kernel_dim(kernel, columns->extent);
    if (b->plan->whole_runs) {
        build_if(&inside, binary(b, EXPR_LESS, column, end), &then, NULL);
        split(b, &then, columns, column, "column", axes);
        store_run(b, &then, axes);
        return;
    }
    struct block lanes;
    build_for(&inside, "lane", number(b, 0), number(b, FRAGMENT_RUN), 0, LOOP_UNROLL, &lanes, &lane);
    column = build_declare(&lanes, "column", binary(b, EXPR_ADD, column, lane));
    build_if(&lanes, binary(b, EXPR_LESS, column, end), &then, NULL);
    split(b, &then, columns, column, "column", axes);
    const expr sum = kernel_element(kernel, b->run, lane, 1);
    gpu_store_point(&b->k, &then, 0, axes, &sum);
}

/* gpu_matmul_wgmma: a block a multiprocessor, which takes tile after tile; the copy engine fills a ring of
 * tiles on one thread's word, warpgroups of 64 rows multiply and store (codegen/device/matmul_wgmma.cuh). The
 * copy engine wants strides of 16 bytes: where sizes decide that, the launch has a condition, and
 * gpu_matmul_mma's kernel is launched where it does not hold. */
#include "codegen/strategy/gpu/matmul.h"

#include <math.h>

enum { STEP = 64, WARPGROUP = 128, ELEMENT = 2, SWIZZLE = 128, MOST_STAGES = 12 };

static const int16_t tiles[][2] = {{128, 256}, {128, 128}, {64, 256}, {128, 64}, {64, 128}, {64, 64}};
enum { TILES = sizeof tiles / sizeof tiles[0] };

static struct config config_of(const struct machine *machine, uint32_t row)
{
    enum { BARRIERS = 1024 };
    const int32_t step = (tiles[row][0] + tiles[row][1]) * STEP * ELEMENT;
    const int32_t most = ((int32_t)machine->shared_bytes_block - BARRIERS) / step;
    struct config config = {.value = {[MATMUL_ROWS] = tiles[row][0],
                                      [MATMUL_COLUMNS] = tiles[row][1],
                                      [MATMUL_DEPTH] = STEP,
                                      [MATMUL_STAGES] = most < MOST_STAGES ? most : MOST_STAGES}};
    return config;
}

static dim add_rest(struct dims *dims, dim sum, dim stride)
{
    return dim_add(dims, sum, dim_mod(dims, stride, dim_constant(dims, 16 / ELEMENT)));
}

/* A dim that is 0 where a stride is no multiple of 16 bytes or the depth is empty, else 1; DIM_NONE: too long
 * to say. */
static dim condition_of(const struct matmul_plan *plan)
{
    struct dims *dims = plan->body->pool->dims;
    const dim one = dim_constant(dims, 1);
    dim rest = dim_constant(dims, 0);
    for (int side = 0; side < 2; side++) {
        rest = add_rest(dims, rest, plan->operands[side].line);
        for (uint32_t i = 0; i < plan->batch_count; i++)
            rest = add_rest(dims, rest, plan->batch[i].strides[side]);
    }
    return dim_mul(dims, dim_sub(dims, one, dim_min(dims, one, rest)),
                   dim_min(dims, one, plan->depth.extent));
}

/* Tensor maps and conditions are the host's, who knows sizes that the model computes only when it is done. */
static bool hangs_on_words(const struct definition *body)
{
    for (uint32_t b = 0; b < body->buffers.count; b++)
        for (int i = 0; i < body->buffers.items[b].type.rank; i++)
            if (dim_hangs_on_word(body->pool->dims, body->buffers.items[b].type.dims[i]))
                return true;
    return false;
}

static bool plan_make(const struct strategy_context *context, struct matmul_plan *plan, struct text *why)
{
    const struct machine *machine = context->machine;
    if (!machine->architecture_specific || machine->compute_capability != 90) {
        text_put(why, "a machine without warpgroups' instructions (sm_90a has them)");
        return false;
    }
    if (!matmul_plan_make(context, plan, why))
        return false;
    if (hangs_on_words(plan->body)) {
        text_put(why, "sizes that the model computes, which the copy engine would need before the run");
        return false;
    }
    const dim condition = condition_of(plan);
    if (condition == DIM_NONE || dim_equals_constant(plan->body->pool->dims, condition, 0)) {
        text_put(why, "strides that are never multiples of the copy engine's 16 bytes, or an empty depth");
        return false;
    }
    if (!plan->depth.count) {
        text_put(why, "a depth of one");
        return false;
    }
    return true;
}

static bool fits(const struct strategy_context *context, struct text *why)
{
    struct matmul_plan plan;
    return plan_make(context, &plan, why);
}

/* Rounds of tiles over the multiprocessors. A step: its arithmetic at the peak, and what handing the ring on
 * costs. */
static double seconds(const struct strategy_context *context, const struct matmul_plan *plan,
                      const struct config *config)
{
    const double launch = 2e-6, fill = 2e-6, hand = 0.1e-6;
    const struct machine *machine = context->machine;
    const int32_t *v = config->value;
    const double rows = gpu_size(context, plan->operands[SIDE_LEFT].own.extent);
    const double columns = gpu_size(context, plan->operands[SIDE_RIGHT].own.extent);
    const double count =
        ceil(rows / v[MATMUL_ROWS]) * ceil(columns / v[MATMUL_COLUMNS]) * gpu_size(context, plan->batches);
    const double steps = ceil(gpu_size(context, plan->depth.extent) / (double)STEP);
    const double arithmetic = 2.0 * v[MATMUL_ROWS] * v[MATMUL_COLUMNS] * (double)STEP /
                              (machine->tensor_per_second / machine->multiprocessors);
    return launch + ceil(count / machine->multiprocessors) * (steps * (arithmetic + hand) + fill);
}

static double cost(const struct strategy_context *context, const struct config *config)
{
    struct matmul_plan plan;
    struct text why;
    dim bytes, operations;
    text_init(&why, context->arena);
    if (!plan_make(context, &plan, &why))
        return INFINITY;
    gpu_figures(context, 0, 1, &bytes, &operations);
    return fmax(seconds(context, &plan, config),
                2e-6 + gpu_size(context, bytes) / (0.8 * context->machine->memory_bytes_per_second));
}

static uint32_t candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    struct matmul_plan plan;
    struct config all[TILES];
    double costs[TILES];
    uint32_t count = 0;
    struct text why;
    text_init(&why, context->arena);
    if (!plan_make(context, &plan, &why))
        return 0;
    for (uint32_t t = 0; t < TILES; t++) {
        const struct config config = config_of(context->machine, t);
        const double own = seconds(context, &plan, &config);
        uint32_t at = count++;
        for (; at > 0 && costs[at - 1] > own; at--) {
            costs[at] = costs[at - 1];
            all[at] = all[at - 1];
        }
        costs[at] = own;
        all[at] = config;
    }
    for (uint32_t i = 0; i < count && i < limit; i++)
        out[i] = all[i];
    return count < limit ? count : limit;
}

/* ---- the kernel ---- */

struct ring {
    uint32_t maps[2], tiles[2], full, empty; /* memories */
    uint32_t ranks[2];
};

/* The operand's matrix, and the batch runs that it has. */
static void add_map(struct matmul_builder *b, struct ring *ring, int side)
{
    struct dims *dims = b->pool->dims;
    const struct matmul_operand *operand = &b->plan->operands[side];
    struct kernel_tensor_map map = {.buffer = b->k.memories[operand->buffer], .rank = 2, .swizzle = SWIZZLE};
    const dim depth = b->plan->depth.extent, own = operand->own.extent;
    map.sizes[0] = operand->along ? depth : own;
    map.sizes[1] = operand->along ? own : depth;
    map.strides[0] = dim_constant(dims, 1);
    map.strides[1] = operand->line;
    map.box[0] = STEP;
    map.box[1] =
        operand->along ? (uint32_t)b->config[side == SIDE_LEFT ? MATMUL_ROWS : MATMUL_COLUMNS] : STEP;
    for (uint32_t i = 0; i < b->plan->batch_count; i++) {
        const struct axis_run *run = &b->plan->batch[i];
        if (dim_equals_constant(dims, run->strides[side], 0))
            continue;
        map.sizes[map.rank] = run->extent;
        map.strides[map.rank] = run->strides[side];
        map.box[map.rank++] = 1;
    }
    ring->ranks[side] = map.rank;
    ring->maps[side] = kernel_tensor_map_add(b->k.kernel, &map, side == SIDE_LEFT ? "map_a" : "map_b");
}

static void add_ring(struct matmul_builder *b, struct ring *ring)
{
    static const char *const labels[] = {"tiles_a", "tiles_b"};
    for (int side = 0; side < 2; side++) {
        const int64_t length = b->config[side == SIDE_LEFT ? MATMUL_ROWS : MATMUL_COLUMNS];
        add_map(b, ring, side);
        ring->tiles[side] = kernel_memory_add(
            b->k.kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                 .dtype = b->plan->dtype,
                                                 .count = b->config[MATMUL_STAGES] * length * STEP,
                                                 .label = labels[side],
                                                 .alignment = 8 * SWIZZLE});
    }
    struct kernel_memory barriers = {
        .space = MEMORY_MBARRIER, .dtype = DTYPE_U64, .count = b->config[MATMUL_STAGES], .label = "full"};
    ring->full = kernel_memory_add(b->k.kernel, &barriers);
    barriers.label = "empty";
    ring->empty = kernel_memory_add(b->k.kernel, &barriers);
}

/* All tiles of this block, one after the other. */
static void each_tile(struct matmul_builder *b, struct block *at, struct block *body,
                      struct matmul_tile *tile)
{
    struct kernel *kernel = b->k.kernel;
    expr position;
    build_for(at, "tile", kernel_block_index(kernel, 0, kernel->grid[0]), kernel_dim(kernel, matmul_tiles(b)),
              kernel_dim(kernel, kernel->grid[0]), LOOP_SERIAL, body, &position);
    matmul_place(b, body, position, tile);
}

static void load_tiles(struct matmul_builder *b, struct block *at, const struct ring *ring)
{
    const int32_t *v = b->config;
    struct exprs *pool = b->pool;
    struct matmul_tile tile;
    struct block body;
    const uint32_t steps = build_mutable(at, "at", expr_int(pool, DTYPE_U32, 0));
    each_tile(b, at, &body, &tile);
    expr coordinates[2][MAX_BATCH];
    for (int side = 0; side < 2; side++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < b->plan->batch_count; i++)
            if (!dim_equals_constant(pool->dims, b->plan->batch[i].strides[side], 0))
                coordinates[side][count++] = tile.batch[i];
        while (count < MAX_BATCH)
            coordinates[side][count++] = expr_index(pool, 0);
    }
    const int64_t constants[] = {v[MATMUL_ROWS],
                                 v[MATMUL_COLUMNS],
                                 v[MATMUL_STAGES],
                                 b->plan->operands[SIDE_LEFT].along,
                                 b->plan->operands[SIDE_RIGHT].along,
                                 ring->ranks[SIDE_LEFT],
                                 ring->ranks[SIDE_RIGHT]};
    const struct stage_operand operands[] = {
        {.memory = ring->maps[SIDE_LEFT]},
        {.memory = ring->maps[SIDE_RIGHT]},
        {.memory = ring->tiles[SIDE_LEFT]},
        {.memory = ring->tiles[SIDE_RIGHT]},
        {.memory = ring->full},
        {.memory = ring->empty},
        {.value = tile.row},
        {.value = tile.column},
        {.value = coordinates[SIDE_LEFT][0]},
        {.value = coordinates[SIDE_LEFT][1]},
        {.value = coordinates[SIDE_LEFT][2]},
        {.value = coordinates[SIDE_RIGHT][0]},
        {.value = coordinates[SIDE_RIGHT][1]},
        {.value = coordinates[SIDE_RIGHT][2]},
        {.value = kernel_dim(b->k.kernel, b->plan->depth.extent)},
        {.variable = steps},
    };
    build_stage(&body, STAGE_matmul_wgmma_load, constants, operands);
}

static void multiply_tiles(struct matmul_builder *b, struct block *at, const struct ring *ring)
{
    const int32_t *v = b->config;
    struct exprs *pool = b->pool;
    struct matmul_tile tile;
    struct block body;
    const struct fragment fragment = {.tall = 1, .wide = (uint32_t)v[MATMUL_COLUMNS] / FRAGMENT_COLUMNS};
    const expr group = build_declare(
        at, "group",
        expr_binary(pool, EXPR_SUB, expr_binary(pool, EXPR_INDEX_DIV, b->thread, expr_index(pool, WARPGROUP)),
                    expr_index(pool, 1)));
    /* Warps behind the first warpgroup have 16 rows each. */
    const expr warp_row = build_declare(
        at, "warp_row",
        expr_binary(pool, EXPR_SUB,
                    expr_binary(pool, EXPR_MUL,
                                expr_binary(pool, EXPR_INDEX_DIV, b->thread, expr_index(pool, WARP)),
                                expr_index(pool, FRAGMENT_ROWS)),
                    expr_index(pool, WARPGROUP / WARP * FRAGMENT_ROWS)));
    const uint32_t steps = build_mutable(at, "at", expr_int(pool, DTYPE_U32, 0));
    each_tile(b, at, &body, &tile);
    const int64_t constants[] = {b->plan->dtype == DTYPE_BF16,
                                 v[MATMUL_ROWS],
                                 v[MATMUL_COLUMNS],
                                 v[MATMUL_STAGES],
                                 b->plan->operands[SIDE_LEFT].along,
                                 b->plan->operands[SIDE_RIGHT].along};
    const struct stage_operand operands[] = {
        {.memory = b->sum},
        {.memory = ring->tiles[SIDE_LEFT]},
        {.memory = ring->tiles[SIDE_RIGHT]},
        {.memory = ring->full},
        {.memory = ring->empty},
        {.value = group},
        {.value = kernel_dim(b->k.kernel, b->plan->depth.extent)},
        {.value = b->thread},
        {.variable = steps},
    };
    build_stage(&body, STAGE_matmul_wgmma, constants, operands);
    matmul_store(b, &body, &tile, &fragment, warp_row, expr_index(pool, 0));
}

static void build_kernel(const struct strategy_context *context, const struct matmul_plan *plan,
                         const struct config *config, dim condition, struct lowered_group *out)
{
    enum { LOADER_REGISTERS = 40, MULTIPLIER_REGISTERS = 232 };
    struct matmul_builder *b = arena_new(context->arena, struct matmul_builder);
    const int32_t *v = config->value;
    struct ring ring;
    matmul_begin(b, context, plan, &gpu_matmul_wgmma, config);
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = b->pool;
    const int64_t warpgroups = v[MATMUL_ROWS] / 64, threads = (1 + warpgroups) * WARPGROUP;
    kernel->condition = condition;
    kernel->grid[0] =
        dim_min(pool->dims, matmul_tiles(b), dim_constant(pool->dims, context->machine->multiprocessors));
    kernel->block[0] = (uint32_t)threads;
    kernel->min_blocks = 1;
    b->sum = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                               .dtype = DTYPE_F32,
                                                               .count = v[MATMUL_COLUMNS] / 2,
                                                               .label = "sum"});
    add_ring(b, &ring);
    struct block top = {.kernel = kernel, .at = &kernel->body}, first, loader, multiplier, one;
    b->thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, threads)));
    const expr is_first = expr_binary(pool, EXPR_EQUAL, b->thread, expr_index(pool, 0));
    build_if(&top, is_first, &first, NULL);
    const int64_t stages = v[MATMUL_STAGES], few = LOADER_REGISTERS, many = MULTIPLIER_REGISTERS;
    const struct stage_operand barriers[] = {{.memory = ring.full},
                                             {.memory = ring.empty},
                                             {.value = expr_index(pool, warpgroups * WARPGROUP / WARP)}};
    build_stage(&first, STAGE_ring_begin, &stages, barriers);
    build_barrier(&top);
    build_if(&top, expr_binary(pool, EXPR_LESS, b->thread, expr_index(pool, WARPGROUP)), &loader,
             &multiplier);
    build_comment(&loader, "The copies, on one thread's word.");
    build_stage(&loader, STAGE_registers_give, &few, NULL);
    build_if(&loader, is_first, &one, NULL);
    load_tiles(b, &one, &ring);
    build_comment(&multiplier, "The products.");
    build_stage(&multiplier, STAGE_registers_take, &many, NULL);
    multiply_tiles(b, &multiplier, &ring);
    gpu_kernel_end(&b->k, out);
}

static bool build(const struct strategy_context *context, const struct config *config,
                  struct lowered_group *out, struct text *why)
{
    struct matmul_plan *plan = arena_new(context->arena, struct matmul_plan);
    if (!plan_make(context, plan, why))
        return false;
    struct dims *dims = plan->body->pool->dims;
    const dim condition = condition_of(plan);
    if (dim_equals_constant(dims, condition, 1)) {
        build_kernel(context, plan, config, DIM_NONE, out);
        return true;
    }
    const struct config other = matmul_mma_best(context, plan);
    build_kernel(context, plan, config, condition, out);
    return matmul_mma_build(context, plan, &other, dim_sub(dims, dim_constant(dims, 1), condition), out);
}

static void describe(const struct config *config, struct text *out)
{
    const int32_t *v = config->value;
    text_printf(out, "tile=%dx%dx%d, stages=%d", v[MATMUL_ROWS], v[MATMUL_COLUMNS], v[MATMUL_DEPTH],
                v[MATMUL_STAGES]);
}

const struct strategy gpu_matmul_wgmma = {
    .name = "gpu_matmul_wgmma",
    .fits = fits,
    .candidates = candidates,
    .cost = cost,
    .build = build,
    .describe = describe,
    .from_level = 1,
};

/* gpu_matmul_mma: a block a tile, its warps copy and multiply by themselves (codegen/device/matmul_mma.cuh).
 * Takes any sizes and strides: where rows do not allow copies of 16 bytes, elements are read one by one. */
#include "codegen/strategy/gpu/matmul.h"

#include <math.h>

/* MATMUL_ROWS .. MATMUL_WARP_COLUMNS */
static const int16_t tiles[][6] = {
    {128, 256, 64, 3, 64, 64}, {128, 128, 32, 4, 64, 32}, {128, 64, 32, 4, 32, 32},
    {64, 64, 32, 4, 32, 32},   {32, 64, 64, 4, 16, 32},   {16, 64, 64, 4, 16, 32},
};
enum { TILES = sizeof tiles / sizeof tiles[0] };

static struct config config_of(uint32_t row)
{
    struct config config = {0};
    for (int i = 0; i < 6; i++)
        config.value[i] = tiles[row][i];
    return config;
}

static int32_t threads_of(const int32_t *v)
{
    return v[MATMUL_ROWS] / v[MATMUL_WARP_ROWS] * (v[MATMUL_COLUMNS] / v[MATMUL_WARP_COLUMNS]) * WARP;
}

static int64_t shared_bytes(const int32_t *v)
{
    return (int64_t)v[MATMUL_STAGES] * (v[MATMUL_ROWS] + v[MATMUL_COLUMNS]) * v[MATMUL_DEPTH] * 2;
}

static bool fits(const struct strategy_context *context, struct text *why)
{
    struct matmul_plan plan;
    if (context->machine->compute_capability < 80 || !context->machine->asynchronous_copies) {
        text_put(why, "a machine without asynchronous copies");
        return false;
    }
    return matmul_plan_make(context, &plan, why);
}

/* Waves of blocks; a step takes its arithmetic's time at the rate that tiles of the size reach (on an H200,
 * of the peak that warpgroups have; on an A100, of its own), or its latency. */
static double seconds(const struct strategy_context *context, const struct matmul_plan *plan,
                      const struct config *config)
{
    const double launch = 2e-6, latency = 0.3e-6, fill = 1.5e-6;
    const struct machine *machine = context->machine;
    const int32_t *v = config->value;
    const double rows = gpu_size(context, plan->operands[SIDE_LEFT].own.extent);
    const double columns = gpu_size(context, plan->operands[SIDE_RIGHT].own.extent);
    const double blocks =
        ceil(rows / v[MATMUL_ROWS]) * ceil(columns / v[MATMUL_COLUMNS]) * gpu_size(context, plan->batches);
    const double steps = ceil(gpu_size(context, plan->depth.extent) / v[MATMUL_DEPTH]);
    const double reuse = (double)v[MATMUL_ROWS] * v[MATMUL_COLUMNS] / (v[MATMUL_ROWS] + v[MATMUL_COLUMNS]);
    const double share = fmin(0.31, 0.0066 * reuse) * (machine->compute_capability < 90 ? 2 : 1);
    const double resident =
        fmax(1, fmin(512.0 / threads_of(v), floor((double)machine->shared_bytes / (double)shared_bytes(v))));
    const double at_once = fmin(resident, ceil(blocks / machine->multiprocessors));
    const double flops = 2.0 * v[MATMUL_ROWS] * v[MATMUL_COLUMNS] * v[MATMUL_DEPTH] * at_once;
    const double arithmetic = flops / (machine->tensor_per_second * share / machine->multiprocessors);
    const double waves = ceil(blocks / (machine->multiprocessors * at_once));
    return launch + waves * (steps * fmax(arithmetic, latency) + fill);
}

static double cost(const struct strategy_context *context, const struct config *config)
{
    struct matmul_plan plan;
    struct text why;
    dim bytes, operations;
    text_init(&why, context->arena);
    if (!matmul_plan_make(context, &plan, &why))
        return INFINITY;
    gpu_figures(context, 0, 1, &bytes, &operations);
    return fmax(seconds(context, &plan, config),
                2e-6 + gpu_size(context, bytes) / (0.8 * context->machine->memory_bytes_per_second));
}

/* The tiles by their cost, those that the machine's shared memory holds. */
static uint32_t sorted(const struct strategy_context *context, const struct matmul_plan *plan,
                       struct config *out)
{
    double costs[TILES];
    uint32_t count = 0;
    for (uint32_t t = 0; t < TILES; t++) {
        const struct config config = config_of(t);
        if (shared_bytes(config.value) > context->machine->shared_bytes_block)
            continue;
        const double own = seconds(context, plan, &config);
        uint32_t at = count++;
        for (; at > 0 && costs[at - 1] > own; at--) {
            costs[at] = costs[at - 1];
            out[at] = out[at - 1];
        }
        costs[at] = own;
        out[at] = config;
    }
    return count;
}

static uint32_t candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    struct matmul_plan plan;
    struct config all[TILES];
    struct text why;
    text_init(&why, context->arena);
    if (!matmul_plan_make(context, &plan, &why))
        return 0;
    const uint32_t count = sorted(context, &plan, all);
    for (uint32_t i = 0; i < count && i < limit; i++)
        out[i] = all[i];
    return count < limit ? count : limit;
}

struct config matmul_mma_best(const struct strategy_context *context, const struct matmul_plan *plan)
{
    struct config all[TILES];
    sorted(context, plan, all);
    return all[0];
}

/* ---- the kernel ---- */

/* Where the batch's matrix begins in the operand. */
static expr matrix_begin(struct matmul_builder *b, const struct matmul_tile *tile, int side)
{
    expr offset = expr_index(b->pool, 0);
    for (uint32_t i = 0; i < b->plan->batch_count; i++)
        offset = expr_binary(b->pool, EXPR_ADD, offset,
                             expr_binary(b->pool, EXPR_MUL, tile->batch[i],
                                         kernel_dim(b->k.kernel, b->plan->batch[i].strides[side])));
    return offset;
}

/* True where the lines of every matrix begin at multiples of 16 bytes. */
static expr is_aligned(struct matmul_builder *b, int side)
{
    struct dims *dims = b->pool->dims;
    const dim eight = dim_constant(dims, 8);
    dim rest = dim_mod(dims, b->plan->operands[side].line, eight);
    for (uint32_t i = 0; i < b->plan->batch_count; i++)
        rest = dim_add(dims, rest, dim_mod(dims, b->plan->batch[i].strides[side], eight));
    return rest == DIM_NONE
               ? expr_int(b->pool, DTYPE_BOOL, 0)
               : expr_binary(b->pool, EXPR_EQUAL, kernel_dim(b->k.kernel, rest), expr_index(b->pool, 0));
}

static uint32_t tile_memory(struct matmul_builder *b, int32_t length, const char *label)
{
    const int32_t *v = b->config;
    return kernel_memory_add(
        b->k.kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                             .dtype = b->plan->dtype,
                                             .count = (int64_t)v[MATMUL_STAGES] * length * v[MATMUL_DEPTH],
                                             .label = label,
                                             .alignment = 128});
}

static void multiply(struct matmul_builder *b, struct block *at, const struct matmul_tile *tile,
                     expr warp_row, expr warp_column)
{
    const struct matmul_operand *left = &b->plan->operands[SIDE_LEFT],
                                *right = &b->plan->operands[SIDE_RIGHT];
    const int32_t *v = b->config;
    struct kernel *kernel = b->k.kernel;
    const uint32_t tiles_a = tile_memory(b, v[MATMUL_ROWS], "tiles_a"),
                   tiles_b = tile_memory(b, v[MATMUL_COLUMNS], "tiles_b");
    const uint32_t barrier = kernel_memory_add(
        kernel, &(struct kernel_memory){
                    .space = MEMORY_BARRIER, .dtype = DTYPE_U64, .count = threads_of(v), .label = "all"});
    const int64_t constants[] = {b->plan->dtype == DTYPE_BF16,
                                 v[MATMUL_ROWS],
                                 v[MATMUL_COLUMNS],
                                 v[MATMUL_DEPTH],
                                 v[MATMUL_STAGES],
                                 v[MATMUL_WARP_ROWS],
                                 v[MATMUL_WARP_COLUMNS],
                                 left->along,
                                 right->along,
                                 kernel->index_bits};
    const struct stage_operand operands[] = {
        {.memory = b->sum},
        {.memory = tiles_a},
        {.memory = tiles_b},
        {.memory = b->k.memories[left->buffer], .value = matrix_begin(b, tile, SIDE_LEFT)},
        {.memory = b->k.memories[right->buffer], .value = matrix_begin(b, tile, SIDE_RIGHT)},
        {.memory = barrier},
        {.value = kernel_dim(kernel, left->line)},
        {.value = is_aligned(b, SIDE_LEFT)},
        {.value = kernel_dim(kernel, right->line)},
        {.value = is_aligned(b, SIDE_RIGHT)},
        {.value = tile->row},
        {.value = tile->column},
        {.value = kernel_dim(kernel, left->own.extent)},
        {.value = kernel_dim(kernel, right->own.extent)},
        {.value = kernel_dim(kernel, b->plan->depth.extent)},
        {.value = warp_row},
        {.value = warp_column},
        {.value = b->thread},
    };
    build_stage(at, STAGE_matmul_mma, constants, operands);
}

bool matmul_mma_build(const struct strategy_context *context, const struct matmul_plan *plan,
                      const struct config *config, dim condition, struct lowered_group *out)
{
    struct matmul_builder *b = arena_new(context->arena, struct matmul_builder);
    const int32_t *v = config->value;
    struct matmul_tile tile;
    matmul_begin(b, context, plan, &gpu_matmul_mma, config);
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = b->pool;
    const struct fragment fragment = {.tall = (uint32_t)v[MATMUL_WARP_ROWS] / FRAGMENT_ROWS,
                                      .wide = (uint32_t)v[MATMUL_WARP_COLUMNS] / FRAGMENT_COLUMNS};
    const int64_t threads = threads_of(v), across = v[MATMUL_COLUMNS] / v[MATMUL_WARP_COLUMNS];
    kernel->condition = condition;
    kernel->grid[0] = matmul_tiles(b);
    kernel->block[0] = (uint32_t)threads;
    kernel->min_blocks = threads == 256 && v[MATMUL_COLUMNS] <= 128 ? 2 : 1;
    b->sum = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                               .dtype = DTYPE_F32,
                                                               .count = fragment_registers(&fragment),
                                                               .label = "sum"});
    struct block top = {.kernel = kernel, .at = &kernel->body};
    b->thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, threads)));
    matmul_place(b, &top, build_declare(&top, "block", kernel_block_index(kernel, 0, kernel->grid[0])),
                 &tile);
    const expr warp =
        build_declare(&top, "warp", expr_binary(pool, EXPR_INDEX_DIV, b->thread, expr_index(pool, WARP)));
    const expr warp_row =
        expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_DIV, warp, expr_index(pool, across)),
                    expr_index(pool, v[MATMUL_WARP_ROWS]));
    const expr warp_column =
        expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, warp, expr_index(pool, across)),
                    expr_index(pool, v[MATMUL_WARP_COLUMNS]));
    const expr own_row = build_declare(&top, "warp_row", warp_row);
    const expr own_column = build_declare(&top, "warp_column", warp_column);
    multiply(b, &top, &tile, own_row, own_column);
    matmul_store(b, &top, &tile, &fragment, own_row, own_column);
    gpu_kernel_end(&b->k, out);
    return true;
}

static bool build(const struct strategy_context *context, const struct config *config,
                  struct lowered_group *out, struct text *why)
{
    struct matmul_plan *plan = arena_new(context->arena, struct matmul_plan);
    return matmul_plan_make(context, plan, why) && matmul_mma_build(context, plan, config, DIM_NONE, out);
}

static void describe(const struct config *config, struct text *out)
{
    const int32_t *v = config->value;
    text_printf(out, "tile=%dx%dx%d, warp=%dx%d, stages=%d", v[MATMUL_ROWS], v[MATMUL_COLUMNS],
                v[MATMUL_DEPTH], v[MATMUL_WARP_ROWS], v[MATMUL_WARP_COLUMNS], v[MATMUL_STAGES]);
}

const struct strategy gpu_matmul_mma = {
    .name = "gpu_matmul_mma",
    .fits = fits,
    .candidates = candidates,
    .cost = cost,
    .build = build,
    .describe = describe,
    .from_level = 1,
};

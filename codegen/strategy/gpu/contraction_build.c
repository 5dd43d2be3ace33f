/* Kernel IR of a tiled contraction: which tile a block has, the loop over the depth, the sums. See
 * contraction.h. */
#include <string.h>

#include "codegen/strategy/gpu/contraction_build.h"

enum { LANES_X = 8 }; /* of a warp: 8 side by side along the columns, 4 along the rows */

/* ---- which tile this block has
 * ------------------------------------------------------------------------------------- */

/* Threads of a warp are 8 by 4, so that it reads few different vectors of both tiles. */
static void place_thread(struct builder *b, struct block *top)
{
    struct dims *dims = b->pool->dims;
    const int64_t lanes_y = WARP / LANES_X, warps_x = b->threads_x / LANES_X;
    b->thread =
        build_declare(top, "thread", kernel_thread_index(b->k.kernel, 0, dim_constant(dims, b->threads)));
    const expr lane = build_declare(top, "lane", binary(b, EXPR_INDEX_MOD, b->thread, number(b, WARP)));
    const expr warp = build_declare(top, "warp", binary(b, EXPR_INDEX_DIV, b->thread, number(b, WARP)));
    const expr across = named(b, warps_x, "warps_x");
    const expr x = add(b, scaled(b, binary(b, EXPR_INDEX_MOD, warp, across), LANES_X),
                       binary(b, EXPR_INDEX_MOD, lane, number(b, LANES_X)));
    const expr y = add(b, scaled(b, binary(b, EXPR_INDEX_DIV, warp, across), lanes_y),
                       binary(b, EXPR_INDEX_DIV, lane, number(b, LANES_X)));
    b->thread_column = gpu_declare_within(&b->k, top, "thread_x", x, dim_constant(dims, b->threads_x));
    b->thread_row = gpu_declare_within(&b->k, top, "thread_y", y, dim_constant(dims, b->threads_y));
}

static void begin_block(struct builder *b, struct block *top)
{
    struct kernel *kernel = b->k.kernel;
    struct dims *dims = b->pool->dims;
    const struct contraction_plan *plan = b->plan;
    const dim row_tiles =
        dim_ceil_div(dims, plan->operands[SIDE_ROWS].extent, dim_constant(dims, b->config[CONFIG_ROWS]));
    const dim column_tiles = dim_ceil_div(dims, plan->operands[SIDE_COLUMNS].extent,
                                          dim_constant(dims, b->config[CONFIG_COLUMNS]));
    const dim parts = dim_constant(dims, b->config[CONFIG_SPLIT]);
    const dim tiles = dim_mul(dims, row_tiles, column_tiles);
    kernel->grid[0] = dim_mul(dims, dim_mul(dims, tiles, plan->batches), parts);
    kernel->block[0] = (uint32_t)b->threads;
    place_thread(b, top);
    const expr block = build_declare(top, "block", kernel_block_index(kernel, 0, kernel->grid[0]));
    const expr columns = kernel_size(kernel, column_tiles, "column_tiles"),
               rows = kernel_size(kernel, row_tiles, "row_tiles");
    /* Blocks side by side share the columns: those are a convolution's pixels, read once from memory. */
    expr rest = build_declare(top, "rest", binary(b, EXPR_INDEX_DIV, block, rows));
    b->first_row = build_declare(
        top, "first_row",
        times(b, binary(b, EXPR_INDEX_MOD, block, rows), named(b, b->config[CONFIG_ROWS], "tile_rows")));
    b->first_column = build_declare(top, "first_column",
                                    times(b, binary(b, EXPR_INDEX_MOD, rest, columns),
                                          named(b, b->config[CONFIG_COLUMNS], "tile_columns")));
    rest = build_declare(top, "rest", binary(b, EXPR_INDEX_DIV, rest, columns));
    const expr depth = kernel_size(kernel, plan->depth_extent, "depth_end");
    b->depth_begin = b->part = number(b, 0);
    b->depth_end = depth;
    if (b->config[CONFIG_SPLIT] > 1) {
        const dim step = dim_constant(dims, b->config[CONFIG_DEPTH]);
        const dim chunk =
            dim_mul(dims, dim_ceil_div(dims, dim_ceil_div(dims, plan->depth_extent, step), parts), step);
        const expr batches = kernel_size(kernel, plan->batches, "batches"),
                   part_depth = kernel_size(kernel, chunk, "part_depth");
        b->part = build_declare(top, "part", binary(b, EXPR_INDEX_DIV, rest, batches));
        rest = build_declare(top, "batch", binary(b, EXPR_INDEX_MOD, rest, batches));
        b->depth_begin = build_declare(top, "begin", times(b, b->part, part_depth));
        b->depth_end =
            build_declare(top, "end", binary(b, EXPR_MIN, depth, add(b, b->depth_begin, part_depth)));
    }
    gpu_split_position(&b->k, top, plan->nest, rest, plan->batch, plan->batch_count, "batch", b->axes);
}

/* ---- summing
 * ---------------------------------------------------------------------------------------------------------
 */

/* Own row or column i of a thread, within the tile. */
static expr own_position(struct builder *b, enum side side, expr i)
{
    const int64_t threads = side == SIDE_ROWS ? b->threads_y : b->threads_x;
    const expr thread = side == SIDE_ROWS ? b->thread_row : b->thread_column;
    const expr stride = named(b, threads, side == SIDE_ROWS ? "threads_y" : "threads_x");
    /* Along the depth single ones, else runs of a vector: i is then the first of one. */
    return b->fills[side].operand->along_depth
               ? add(b, thread, times(b, i, stride))
               : add(b, scaled(b, thread, b->plan->lanes), times(b, i, stride));
}

static int64_t own_count(const struct builder *b, enum side side)
{
    return b->config[side == SIDE_ROWS ? CONFIG_OWN_ROWS : CONFIG_OWN_COLUMNS];
}

static expr own_name(struct builder *b, enum side side)
{
    return named(b, own_count(b, side), side == SIDE_ROWS ? "own_rows" : "own_columns");
}

/* Along the depth: each own row's vector of the next depths. */
static void load_depths(struct builder *b, struct block *at, enum side side, expr stage, expr k)
{
    const struct fill *fill = &b->fills[side];
    const int64_t lanes = b->plan->lanes;
    struct block body;
    expr i;
    build_for(at, "i", number(b, 0), own_name(b, side), 0, LOOP_UNROLL, &body, &i);
    const expr place = contraction_tile_index(b, fill, stage, k, own_position(b, side, i));
    build_store(&body, b->own[side], scaled(b, i, lanes),
                kernel_element(b->k.kernel, fill->tile, place, (uint16_t)lanes));
}

/* Along the rows or columns: the own ones at one depth, run by run. */
static void load_own(struct builder *b, struct block *at, enum side side, expr stage, expr k)
{
    const struct fill *fill = &b->fills[side];
    const int64_t lanes = b->plan->lanes;
    struct block body = *at;
    expr i = number(b, 0);
    if (own_count(b, side) > lanes)
        build_for(at, "i", number(b, 0), own_name(b, side), number(b, lanes), LOOP_UNROLL, &body, &i);
    const expr place = contraction_tile_index(b, fill, stage, k, own_position(b, side, i));
    build_store(&body, b->own[side], i, kernel_element(b->k.kernel, fill->tile, place, (uint16_t)lanes));
}

/* sum[r][c] += a[r] * b[c] at one depth; `lane` of the depths that load_depths brought. */
static void multiply(struct builder *b, struct block *at, expr lane)
{
    struct kernel *kernel = b->k.kernel;
    struct block row_body, body;
    expr row, column;
    build_for(at, "r", number(b, 0), own_name(b, SIDE_ROWS), 0, LOOP_UNROLL, &row_body, &row);
    build_for(&row_body, "c", number(b, 0), own_name(b, SIDE_COLUMNS), 0, LOOP_UNROLL, &body, &column);
    const expr at_sum = add(b, times(b, row, own_name(b, SIDE_COLUMNS)), column);
    expr factors[2], own[] = {row, column};
    for (int side = 0; side < 2; side++) {
        if (b->fills[side].operand->along_depth)
            own[side] = add(b, scaled(b, own[side], b->plan->lanes), lane);
        factors[side] = kernel_element(kernel, b->own[side], own[side], 1);
    }
    const expr sum = kernel_element(kernel, b->sum, at_sum, 1);
    build_store(&body, b->sum, at_sum,
                dtype_is_float(b->plan->dtype) ? expr_fma(b->pool, factors[0], factors[1], sum)
                                               : add(b, times(b, factors[0], factors[1]), sum));
}

static void sum_tile(struct builder *b, struct block *at, expr stage)
{
    const bool depths[] = {b->fills[0].operand->along_depth, b->fills[1].operand->along_depth};
    const int64_t lanes = b->plan->lanes;
    const bool any = depths[0] || depths[1];
    struct block body, inner;
    expr k, lane = number(b, 0);
    build_for(at, "k", number(b, 0), contraction_depth_step(b), any ? number(b, lanes) : 0, LOOP_UNROLL,
              &body, &k);
    for (int side = 0; side < 2; side++)
        if (depths[side])
            load_depths(b, &body, (enum side)side, stage, k);
    inner = body;
    if (any)
        build_for(&body, "lane", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &inner, &lane);
    for (int side = 0; side < 2; side++)
        if (!depths[side])
            load_own(b, &inner, (enum side)side, stage, add(b, k, lane));
    multiply(b, &inner, lane);
}

/* ---- the loop over the depth
 * --------------------------------------------------------------------------------------- */

static expr next_stage(struct builder *b, expr stage)
{
    const expr stages = named(b, b->config[CONFIG_STAGES], "stages"), next = add(b, stage, number(b, 1));
    return expr_select(b->pool, binary(b, EXPR_LESS, next, stages), next, number(b, 0));
}

/* If the depth has this step; nothing to ask where it must. */
static struct block where_exists(struct builder *b, struct block *at, expr depth)
{
    struct block then = *at;
    int64_t known;
    const expr exists = binary(b, EXPR_LESS, depth, b->depth_end);
    if (!expr_constant_int(b->pool, exists, &known) || !known)
        build_if(at, exists, &then, NULL);
    return then;
}

/* Copies run stages - 1 steps ahead. One barrier a step: behind it, everyone's copies of this step have
 * arrived and everyone is done with the step whose stage is filled next. */
static void sum_copied(struct builder *b, struct block *top)
{
    const uint32_t ahead = (uint32_t)b->config[CONFIG_STAGES] - 1;
    struct block body, then;
    expr depth;
    expr early;
    build_for(top, "early", number(b, 0), number(b, ahead), 0, LOOP_UNROLL, &body, &early);
    const expr first =
        build_declare(&body, "first", add(b, b->depth_begin, times(b, early, contraction_depth_step(b))));
    build_if(&body, binary(b, EXPR_LESS, first, b->depth_end), &then, NULL);
    for (int side = 0; side < 2; side++)
        contraction_fill_copy(b, &then, &b->fills[side], first, early);
    build_commit(&body);
    const uint32_t stage = build_mutable(top, "stage", number(b, 0)),
                   filled = build_mutable(top, "filled", number(b, ahead));
    const expr stage_now = kernel_variable(b->k.kernel, stage),
               filled_now = kernel_variable(b->k.kernel, filled);
    build_for(top, "depth", b->depth_begin, b->depth_end, contraction_depth_step(b), LOOP_SERIAL, &body,
              &depth);
    build_wait(&body, ahead - 1);
    build_barrier(&body);
    const expr next =
        build_declare(&body, "next", add(b, depth, times(b, number(b, ahead), contraction_depth_step(b))));
    build_if(&body, binary(b, EXPR_LESS, next, b->depth_end), &then, NULL);
    for (int side = 0; side < 2; side++)
        contraction_fill_copy(b, &then, &b->fills[side], next, filled_now);
    build_commit(&body);
    sum_tile(b, &body, stage_now);
    build_assign(&body, stage, next_stage(b, stage_now));
    build_assign(&body, filled, next_stage(b, filled_now));
}

/* Two stages: the next step's elements are on their way in registers while this one is summed. */
static void sum_staged(struct builder *b, struct block *top)
{
    struct block body, then;
    expr depth;
    const expr one = number(b, 1);
    then = where_exists(b, top, b->depth_begin);
    for (int side = 0; side < 2; side++)
        contraction_fill_load(b, &then, &b->fills[side], b->depth_begin);
    for (int side = 0; side < 2; side++)
        contraction_fill_store(b, &then, &b->fills[side], number(b, 0));
    build_barrier(top);
    const uint32_t stage = build_mutable(top, "stage", number(b, 0));
    const expr now = kernel_variable(b->k.kernel, stage), other = binary(b, EXPR_SUB, one, now);
    build_for(top, "depth", b->depth_begin, b->depth_end, contraction_depth_step(b), LOOP_SERIAL, &body,
              &depth);
    const expr next = build_declare(&body, "next", add(b, depth, contraction_depth_step(b)));
    const expr more = build_declare(&body, "more", binary(b, EXPR_LESS, next, b->depth_end));
    build_if(&body, more, &then, NULL);
    for (int side = 0; side < 2; side++)
        contraction_fill_load(b, &then, &b->fills[side], next);
    sum_tile(b, &body, now);
    build_if(&body, more, &then, NULL);
    for (int side = 0; side < 2; side++)
        contraction_fill_store(b, &then, &b->fills[side], other);
    build_assign(&body, stage, other);
    build_barrier(&body);
}

/* ---- kernels
 * ---------------------------------------------------------------------------------------------------------
 */

static void build_main(struct builder *b, struct lowered_group *out, uint32_t parts)
{
    struct kernel *kernel = b->k.kernel;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    expr i;
    begin_block(b, &top);
    contraction_fill_begin(b, &top, SIDE_ROWS);
    contraction_fill_begin(b, &top, SIDE_COLUMNS);
    const int64_t sums = own_count(b, SIDE_ROWS) * own_count(b, SIDE_COLUMNS), lanes = b->plan->lanes;
    kernel->min_blocks = contraction_resident_blocks(b->config);
    static const char *const labels[] = {"left", "right"};
    b->sum = gpu_registers(&b->k, b->plan->dtype, sums, "sum");
    for (int side = 0; side < 2; side++) {
        const int64_t depths = b->fills[side].operand->along_depth ? lanes : 1;
        b->own[side] =
            gpu_registers(&b->k, b->plan->dtype, own_count(b, (enum side)side) * depths, labels[side]);
    }
    build_for(&top, "i", number(b, 0), times(b, own_name(b, SIDE_ROWS), own_name(b, SIDE_COLUMNS)), 0,
              LOOP_UNROLL, &body, &i);
    build_store(&body, b->sum, i, reduce_neutral(b->pool, REDUCE_SUM, b->plan->dtype));
    if (b->plan->asynchronous)
        sum_copied(b, &top);
    else
        sum_staged(b, &top);
    contraction_store(b, &top, parts);
    gpu_kernel_end(&b->k, out);
}

static void name_operands(struct builder *b, struct lowered_group *out)
{
    static const char *const labels[] = {"a", "b"}, *const packed_labels[] = {"a_packed", "b_packed"};
    for (int side = 0; side < 2; side++) {
        const struct operand *operand = &b->plan->operands[side];
        struct fill *fill = &b->fills[side];
        fill->memory = b->k.memories[operand->buffer];
        if (!operand->packed) {
            b->k.kernel->memories.items[fill->memory].label = labels[side];
            continue;
        }
        const uint32_t derived = contraction_pack(b->context, b->plan, operand, out);
        fill->memory =
            gpu_kernel_parameter(&b->k, ARGUMENT_DERIVED, derived, b->plan->dtype, packed_labels[side]);
        b->k.kernel->memories.items[fill->memory].shape =
            gpu_shape_text(b->context, &out->derived.items[derived].recipe.buffers.items[1].type);
    }
}

/* Compilers pass 128 registers a little where 64 sums fit them well, and then half as many threads are
 * resident. */
uint32_t contraction_resident_blocks(const int32_t *config)
{
    enum { SUMS = 64, THREADS = 512 };
    const int32_t threads =
        config[CONFIG_ROWS] / config[CONFIG_OWN_ROWS] * (config[CONFIG_COLUMNS] / config[CONFIG_OWN_COLUMNS]);
    return config[CONFIG_OWN_ROWS] * config[CONFIG_OWN_COLUMNS] == SUMS ? (uint32_t)(THREADS / threads) : 0;
}

uint64_t contraction_shared_bytes(const struct contraction_plan *plan, const struct config *config)
{
    const int32_t *v = config->value;
    const uint64_t padding =
        plan->operands[SIDE_COLUMNS].along_depth ? (uint64_t)v[CONFIG_COLUMNS] * plan->lanes : 0;
    const uint64_t stage =
        (uint64_t)v[CONFIG_DEPTH] * (uint64_t)(v[CONFIG_ROWS] + v[CONFIG_COLUMNS]) + padding;
    return stage * (uint64_t)v[CONFIG_STAGES] * dtype_bits(plan->dtype) / 8;
}

bool contraction_build(const struct strategy_context *context, const struct contraction_plan *plan,
                       const struct config *config, struct lowered_group *out)
{
    struct builder *b = arena_new(context->arena, struct builder);
    b->context = context;
    b->plan = plan;
    b->config = config->value;
    b->threads_y = config->value[CONFIG_ROWS] / config->value[CONFIG_OWN_ROWS];
    b->threads_x = config->value[CONFIG_COLUMNS] / config->value[CONFIG_OWN_COLUMNS];
    b->threads = b->threads_x * b->threads_y;
    memset(b->results, 0xff, sizeof b->results);
    memset(b->runs, 0xff, sizeof b->runs);
    const int64_t split = config->value[CONFIG_SPLIT];
    uint32_t parts = UINT32_MAX;
    struct dims *dims = plan->body->pool->dims;
    bool packed[MAX_BUFFERS] = {false};
    for (int side = 0; side < 2; side++)
        packed[plan->operands[side].buffer] |= plan->operands[side].packed;
    if (split > 1) {
        gpu_kernel_begin_reductions(&b->k, context, "gpu_contraction", 0, packed);
        const dim lines = dim_mul(dims, plan->batches, plan->operands[SIDE_ROWS].extent);
        const dim elements =
            dim_mul(dims, dim_mul(dims, lines, contraction_parts_pitch(plan)), dim_constant(dims, split));
        const struct temporary temporary = {.type =
                                                tensor_type_new(context->arena, plan->dtype, 1, &elements)};
        vec_push(context->arena, &out->temporaries, temporary);
        parts = gpu_kernel_parameter(&b->k, ARGUMENT_TEMPORARY, 0, plan->dtype, "parts");
    } else {
        gpu_kernel_begin(&b->k, context, "gpu_contraction", 0, 1, packed);
    }
    b->pool = b->k.kernel->pool;
    name_operands(b, out);
    struct text text;
    text_init(&text, context->arena);
    gpu_contraction.describe(config, &text);
    b->k.kernel->config = text.data;
    b->k.kernel->summary = gpu_summary(context, "Tiled contraction", 0);
    build_main(b, out, parts);
    if (split > 1)
        contraction_sum_parts(context, plan, split, out);
    return true;
}

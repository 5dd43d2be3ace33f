/* Kernel IR of a tiled contraction. See contraction.h. */
#include <string.h>

#include "codegen/strategy/gpu/contraction.h"

enum { PAD = 4, MOST_FILLS = 16 };

/* How one side's tile is filled. */
struct fill {
    const struct operand *operand;
    int64_t length;                 /* of the tile: rows or columns */
    int64_t rounds;                 /* loads of a thread and step */
    int64_t stride;                 /* between rounds: of the rows, or of the depth when along the rows */
    expr at, depth_at;              /* within the tile, of round 0 */
    expr own[MOST_FILLS][MAX_AXES]; /* [round, or 0]: values of the operand's own axes */
    uint32_t tile, next;            /* memories: shared; registers on their way to it */
};

struct builder {
    const struct strategy_context *context;
    const struct contraction_plan *plan;
    const int32_t *config;
    struct gpu_kernel k;
    struct exprs *pool;
    int64_t threads, threads_x, threads_y;
    expr axes[MAX_AXES]; /* batch axes are set */
    expr tid, thread_row, thread_column, first_row, first_column, part;
    expr depth_begin, depth_end; /* of this block */
    struct fill fills[2];
    uint32_t acc, own[2];       /* registers: sums; a thread's rows and columns of one depth */
    uint32_t results[MAX_AXES]; /* [store]: registers of a run's values; UINT32_MAX: none yet */
    expr loaded;                /* vector of the main operand's elements while a factor is lowered */
    uint32_t lane, loaded_buffer;
};

static expr number(struct builder *b, int64_t value)
{
    return expr_index(b->pool, value);
}

static expr binary(struct builder *b, enum expr_op op, expr left, expr right)
{
    return expr_binary(b->pool, op, left, right);
}

static expr add(struct builder *b, expr left, expr right)
{
    return binary(b, EXPR_ADD, left, right);
}

static expr scaled(struct builder *b, expr value, int64_t factor)
{
    return binary(b, EXPR_MUL, value, number(b, factor));
}

static void split_position(struct builder *b, struct block *at, expr position, const uint32_t *axes,
                           uint32_t count, const char *label, expr *values)
{
    gpu_split_position(&b->k, at, b->plan->nest, position, axes, count, label, values);
}

/* ---- which tile this block has
 * ---------------------------------------------------------------------------------------- */

static void begin_block(struct builder *b, struct block *top)
{
    struct kernel *kernel = b->k.kernel;
    struct dims *dims = b->pool->dims;
    const struct contraction_plan *plan = b->plan;
    dim row_tiles =
        dim_ceil_div(dims, plan->operands[SIDE_ROWS].extent, dim_constant(dims, b->config[CONFIG_ROWS]));
    dim column_tiles = dim_ceil_div(dims, plan->operands[SIDE_COLUMNS].extent,
                                    dim_constant(dims, b->config[CONFIG_COLUMNS]));
    dim parts = dim_constant(dims, b->config[CONFIG_SPLIT]);
    dim tiles = dim_mul(dims, row_tiles, column_tiles);
    kernel->grid[0] = dim_mul(dims, dim_mul(dims, tiles, plan->batches), parts);
    kernel->block[0] = (uint32_t)b->threads;
    b->tid = build_declare(top, "thread", kernel_thread_index(kernel, 0, dim_constant(dims, b->threads)));
    b->thread_column = build_declare(top, "tx", binary(b, EXPR_INDEX_MOD, b->tid, number(b, b->threads_x)));
    b->thread_row = build_declare(top, "ty", binary(b, EXPR_INDEX_DIV, b->tid, number(b, b->threads_x)));
    expr block = build_declare(top, "block", kernel_block_index(kernel, 0, kernel->grid[0]));
    expr columns = kernel_dim(kernel, column_tiles), rows = kernel_dim(kernel, row_tiles);
    expr rest = build_declare(top, "rest", binary(b, EXPR_INDEX_DIV, block, columns));
    b->first_column = build_declare(
        top, "column0", scaled(b, binary(b, EXPR_INDEX_MOD, block, columns), b->config[CONFIG_COLUMNS]));
    b->first_row =
        build_declare(top, "row0", scaled(b, binary(b, EXPR_INDEX_MOD, rest, rows), b->config[CONFIG_ROWS]));
    rest = build_declare(top, "rest", binary(b, EXPR_INDEX_DIV, rest, rows));
    expr depth = kernel_dim(kernel, plan->depth_extent);
    b->depth_begin = b->part = number(b, 0);
    b->depth_end = depth;
    if (b->config[CONFIG_SPLIT] > 1) {
        dim step = dim_constant(dims, b->config[CONFIG_DEPTH]);
        dim chunk =
            dim_mul(dims, dim_ceil_div(dims, dim_ceil_div(dims, plan->depth_extent, step), parts), step);
        expr batches = kernel_dim(kernel, plan->batches);
        b->part = build_declare(top, "part", binary(b, EXPR_INDEX_DIV, rest, batches));
        rest = build_declare(top, "batch", binary(b, EXPR_INDEX_MOD, rest, batches));
        b->depth_begin =
            build_declare(top, "depth0", binary(b, EXPR_MUL, b->part, kernel_dim(kernel, chunk)));
        b->depth_end = build_declare(
            top, "depth1", binary(b, EXPR_MIN, depth, add(b, b->depth_begin, kernel_dim(kernel, chunk))));
    }
    split_position(b, top, rest, plan->batch, plan->batch_count, "batch", b->axes);
}

/* ---- filling the tiles
 * ------------------------------------------------------------------------------------------------- */

/* A position that exists: the last `width` ones where this lies beyond the end. */
static expr clamped(struct builder *b, struct block *at, expr position, dim extent, int64_t tile,
                    int64_t width, const char *label)
{
    if (!dim_divisible(b->pool->dims, extent, tile))
        position = binary(b, EXPR_MIN, position,
                          binary(b, EXPR_SUB, kernel_dim(b->k.kernel, extent), number(b, width)));
    return build_declare(at, label, position);
}

static void begin_fill(struct builder *b, struct block *top, enum side side)
{
    static const char *const labels[][3] = {{"tile_a", "next_a", "row"}, {"tile_b", "next_b", "column"}};
    struct fill *fill = &b->fills[side];
    const struct operand *operand = fill->operand = &b->plan->operands[side];
    int64_t vector = operand->vector, depth = b->config[CONFIG_DEPTH];
    fill->length = b->config[side == SIDE_ROWS ? CONFIG_ROWS : CONFIG_COLUMNS];
    int64_t across = (operand->along_depth ? depth : fill->length) / vector; /* threads side by side */
    expr fast = scaled(b, binary(b, EXPR_INDEX_MOD, b->tid, number(b, across)), vector);
    expr slow = binary(b, EXPR_INDEX_DIV, b->tid, number(b, across));
    fill->stride = b->threads / across;
    fill->rounds = (operand->along_depth ? fill->length : depth) / fill->stride;
    fill->at = build_declare(top, "fill_at", operand->along_depth ? slow : fast);
    fill->depth_at = build_declare(top, "fill_depth", operand->along_depth ? fast : slow);
    expr first = side == SIDE_ROWS ? b->first_row : b->first_column;
    for (int64_t round = 0; round < (operand->along_depth ? fill->rounds : 1); round++) {
        expr position = add(b, first, add(b, fill->at, number(b, round * fill->stride)));
        position = clamped(b, top, position, operand->extent, fill->length, operand->along_depth ? 1 : vector,
                           labels[side][2]);
        split_position(b, top, position, operand->axes, operand->count, labels[side][2], fill->own[round]);
    }
    fill->tile = kernel_memory_add(b->k.kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                        .dtype = b->plan->dtype,
                                                                        .lanes = 1,
                                                                        .count = depth * (fill->length + PAD),
                                                                        .label = labels[side][0],
                                                                        .alignment = 16});
    fill->next = kernel_memory_add(b->k.kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                                        .dtype = b->plan->dtype,
                                                                        .lanes = 1,
                                                                        .count = fill->rounds * vector,
                                                                        .label = labels[side][1]});
}

static expr loaded_lane(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    struct builder *b = user;
    (void)buffer;
    (void)rank;
    (void)indices;
    return kernel_lane(b->k.kernel, b->loaded, b->lane);
}

/* The factor at the axes; `lane` of the loaded vector where there is one. */
static expr factor_value(struct builder *b, const struct fill *fill, const expr *axes, expr vector,
                         uint32_t lane)
{
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    if (!vector)
        return lower_expr(&lowering, fill->operand->factor);
    uint32_t buffer = (uint32_t)expr_at(b->plan->body->pool, fill->operand->load)->value;
    uint32_t *memories =
        arena_copy(b->context->arena, b->k.memories, b->plan->body->buffers.count * sizeof *memories);
    memories[buffer] = UINT32_MAX;
    lowering.memories = memories;
    lowering.value = loaded_lane;
    lowering.user = b;
    b->loaded = vector;
    b->lane = lane;
    return lower_expr(&lowering, fill->operand->factor);
}

static expr load_vector(struct builder *b, struct block *at, const struct fill *fill, const expr *axes)
{
    const struct expr_node *load = expr_at(b->plan->body->pool, fill->operand->load);
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    uint32_t buffer = (uint32_t)load->value, memory = b->k.memories[buffer];
    expr indices[MAX_RANK];
    for (uint32_t i = 0; i < load->count; i++)
        indices[i] = lower_expr(&lowering, load->arguments[i]);
    b->k.kernel->memories.items[memory].read = true;
    return build_declare(at, "vector",
                         kernel_element(b->k.kernel, memory, lower_index(&lowering, buffer, indices),
                                        (uint16_t)fill->operand->vector));
}

/* One round's elements into the registers. `round`: an expression that is constant after unrolling. */
static void load_round(struct builder *b, struct block *at, const struct fill *fill, expr depth0, expr round,
                       const expr *own)
{
    const struct contraction_plan *plan = b->plan;
    int64_t vector = fill->operand->vector, step = b->config[CONFIG_DEPTH];
    expr axes[MAX_AXES];
    memcpy(axes, b->axes, sizeof axes);
    for (uint32_t i = 0; i < fill->operand->count; i++)
        axes[fill->operand->axes[i]] = own[fill->operand->axes[i]];
    expr depth = add(b, depth0, fill->depth_at);
    if (!fill->operand->along_depth)
        depth = add(b, depth, scaled(b, round, fill->stride));
    depth = build_declare(at, "depth", depth);
    int64_t width = fill->operand->along_depth ? vector : 1;
    bool whole = dim_divisible(b->pool->dims, plan->depth_extent, step); /* parts are multiples of the step */
    expr last = binary(b, EXPR_SUB, kernel_dim(b->k.kernel, plan->depth_extent), number(b, width));
    expr place = whole ? depth : build_declare(at, "place", binary(b, EXPR_MIN, depth, last));
    split_position(b, at, place, plan->depth, plan->depth_count, "k", axes);
    uint32_t fast = fill->operand->along_depth ? plan->depth[plan->depth_count - 1]
                                               : fill->operand->axes[fill->operand->count - 1];
    expr first = axes[fast], loaded = vector > 1 ? load_vector(b, at, fill, axes) : 0;
    expr zero = gpu_neutral(b->pool, REDUCE_SUM, plan->dtype);
    for (int64_t lane = 0; lane < vector; lane++) {
        axes[fast] = add(b, first, number(b, lane));
        expr value = factor_value(b, fill, axes, loaded, (uint32_t)lane);
        if (!whole)
            value =
                expr_select(b->pool, binary(b, EXPR_LESS, depth, kernel_dim(b->k.kernel, plan->depth_extent)),
                            value, zero);
        build_store(at, fill->next, add(b, scaled(b, round, vector), number(b, lane)), value);
    }
}

static void load_next(struct builder *b, struct block *at, const struct fill *fill, expr depth0)
{
    if (fill->operand->along_depth) {
        for (int64_t round = 0; round < fill->rounds; round++)
            load_round(b, at, fill, depth0, number(b, round), fill->own[round]);
        return;
    }
    struct block body;
    expr round;
    build_for(at, "round", number(b, 0), number(b, fill->rounds), 0, LOOP_UNROLL, &body, &round);
    load_round(b, &body, fill, depth0, round, fill->own[0]);
}

/* The registers into the tile: tile[depth][row or column]. */
static void store_tile(struct builder *b, struct block *at, const struct fill *fill)
{
    struct block body;
    expr round;
    struct kernel *kernel = b->k.kernel;
    int64_t vector = fill->operand->vector, pitch = fill->length + PAD;
    build_for(at, "round", number(b, 0), number(b, fill->rounds), 0, LOOP_UNROLL, &body, &round);
    expr moved = scaled(b, round, fill->stride);
    bool along = fill->operand->along_depth;
    expr depth = along ? fill->depth_at : add(b, fill->depth_at, moved),
         place = along ? add(b, fill->at, moved) : fill->at;
    expr lanes[4];
    for (int64_t lane = 0; lane < vector; lane++)
        lanes[lane] =
            kernel_element(kernel, fill->next, add(b, scaled(b, round, vector), number(b, lane)), 1);
    if (!along) {
        build_store(&body, fill->tile, add(b, scaled(b, depth, pitch), place),
                    kernel_pack(kernel, lanes, (uint16_t)vector));
        return;
    }
    for (int64_t lane = 0; lane < vector; lane++)
        build_store(&body, fill->tile, add(b, scaled(b, add(b, depth, number(b, lane)), pitch), place),
                    lanes[lane]);
}

/* ---- summing
 * ------------------------------------------------------------------------------------------------------------
 */

static void load_own(struct builder *b, struct block *at, enum side side, expr depth)
{
    const struct fill *fill = &b->fills[side];
    int64_t lanes = b->plan->lanes, threads = side == SIDE_ROWS ? b->threads_y : b->threads_x;
    int64_t count = b->config[side == SIDE_ROWS ? CONFIG_OWN_ROWS : CONFIG_OWN_COLUMNS];
    expr thread = side == SIDE_ROWS ? b->thread_row : b->thread_column;
    expr row = scaled(b, depth, fill->length + PAD);
    for (int64_t run = 0; run < count / lanes; run++) {
        expr place = add(b, row, add(b, scaled(b, thread, lanes), number(b, run * threads * lanes)));
        expr vector = build_declare(at, side == SIDE_ROWS ? "a" : "b",
                                    kernel_element(b->k.kernel, fill->tile, place, (uint16_t)lanes));
        for (int64_t lane = 0; lane < lanes; lane++)
            build_store(at, b->own[side], number(b, run * lanes + lane),
                        kernel_lane(b->k.kernel, vector, (uint32_t)lane));
    }
}

static void sum_tile(struct builder *b, struct block *at)
{
    struct kernel *kernel = b->k.kernel;
    struct block depth_body, row_body, body;
    expr depth, row, column;
    build_for(at, "k", number(b, 0), number(b, b->config[CONFIG_DEPTH]), 0, LOOP_UNROLL, &depth_body, &depth);
    load_own(b, &depth_body, SIDE_ROWS, depth);
    load_own(b, &depth_body, SIDE_COLUMNS, depth);
    build_for(&depth_body, "r", number(b, 0), number(b, b->config[CONFIG_OWN_ROWS]), 0, LOOP_UNROLL,
              &row_body, &row);
    build_for(&row_body, "c", number(b, 0), number(b, b->config[CONFIG_OWN_COLUMNS]), 0, LOOP_UNROLL, &body,
              &column);
    expr place = add(b, scaled(b, row, b->config[CONFIG_OWN_COLUMNS]), column);
    expr sum = kernel_element(kernel, b->acc, place, 1);
    expr left = kernel_element(kernel, b->own[SIDE_ROWS], row, 1),
         right = kernel_element(kernel, b->own[SIDE_COLUMNS], column, 1);
    build_store(&body, b->acc, place,
                dtype_is_float(b->plan->dtype) ? expr_fma(b->pool, left, right, sum)
                                               : add(b, binary(b, EXPR_MUL, left, right), sum));
}

static void sum_depth(struct builder *b, struct block *top)
{
    struct block body, then;
    expr depth, step = number(b, b->config[CONFIG_DEPTH]);
    expr some = binary(b, EXPR_LESS, b->depth_begin, b->depth_end);
    int64_t known;
    if (expr_constant_int(b->pool, some, &known) && known)
        then = *top;
    else
        build_if(top, some, &then, NULL);
    load_next(b, &then, &b->fills[SIDE_ROWS], b->depth_begin);
    load_next(b, &then, &b->fills[SIDE_COLUMNS], b->depth_begin);
    build_for(top, "depth", b->depth_begin, b->depth_end, step, LOOP_SERIAL, &body, &depth);
    store_tile(b, &body, &b->fills[SIDE_ROWS]);
    store_tile(b, &body, &b->fills[SIDE_COLUMNS]);
    build_barrier(&body);
    expr next = build_declare(&body, "next", add(b, depth, step));
    build_if(&body, binary(b, EXPR_LESS, next, b->depth_end), &then, NULL);
    load_next(b, &then, &b->fills[SIDE_ROWS], next);
    load_next(b, &then, &b->fills[SIDE_COLUMNS], next);
    sum_tile(b, &body);
    build_barrier(&body);
}

/* ---- storing
 * ------------------------------------------------------------------------------------------------------------
 */

/* May the run of columns be stored at once? */
static bool stores_vector(const struct builder *b, const struct nest_store *store)
{
    const struct contraction_plan *plan = b->plan;
    const struct operand *columns = &plan->operands[SIDE_COLUMNS];
    const struct tensor_type *type = &plan->body->buffers.items[store->buffer].type;
    unsigned bits = dtype_bits(type->dtype);
    uint32_t fast = columns->axes[columns->count - 1];
    return plan->whole_columns && !store->indices && type->rank > 0 && fast == (uint32_t)type->rank - 1 &&
           fast == plan->nest->rank - 1 && bits >= 8 && bits * plan->lanes <= 128 &&
           type->dtype != DTYPE_BOOL;
}

/* The nest's stores of a run of columns at column `first`, which is all in range: each store's values are
 * made in registers and stored at once. */
static void store_vectors(struct builder *b, struct block *at, expr *axes, expr place)
{
    const struct contraction_plan *plan = b->plan;
    struct kernel *kernel = b->k.kernel;
    const struct operand *columns = &plan->operands[SIDE_COLUMNS];
    uint32_t fast = columns->axes[columns->count - 1], lanes = plan->lanes;
    expr first = axes[fast], lane;
    struct block body;
    build_for(at, "lane", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &body, &lane);
    axes[fast] = add(b, first, lane);
    expr sum = kernel_element(kernel, b->acc, add(b, place, lane), 1);
    for (uint32_t s = 0; s < plan->nest->store_count; s++) {
        const struct nest_store *store = &plan->nest->stores[s];
        struct lowering lowering = gpu_lowering(&b->k, axes, &sum);
        expr value = lower_expr(&lowering, store->value);
        if (!stores_vector(b, store)) {
            gpu_store(&b->k, &body, &lowering, store, axes, value);
            continue;
        }
        if (b->results[s] == UINT32_MAX)
            b->results[s] =
                kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                                  .dtype = expr_at(b->pool, value)->dtype,
                                                                  .lanes = 1,
                                                                  .count = lanes,
                                                                  .label = "result"});
        build_store(&body, b->results[s], lane, value);
    }
    axes[fast] = first;
    for (uint32_t s = 0; s < plan->nest->store_count; s++) {
        const struct nest_store *store = &plan->nest->stores[s];
        expr values[16];
        if (!stores_vector(b, store))
            continue;
        for (uint32_t i = 0; i < lanes; i++)
            values[i] = kernel_element(kernel, b->results[s], number(b, i), 1);
        struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
        gpu_store(&b->k, at, &lowering, store, axes, kernel_pack(kernel, values, (uint16_t)lanes));
    }
}

/* part * batches * rows + batch * rows + row */
static expr part_row(struct builder *b, expr row)
{
    const struct contraction_plan *plan = b->plan;
    expr flat = b->part;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        flat = add(b, binary(b, EXPR_MUL, flat, kernel_dim(b->k.kernel, plan->nest->extents[plan->batch[i]])),
                   b->axes[plan->batch[i]]);
    return add(b, binary(b, EXPR_MUL, flat, kernel_dim(b->k.kernel, plan->operands[SIDE_ROWS].extent)), row);
}

/* A part's sums into the temporary [part][batch][row][column]. */
static void store_parts(struct builder *b, struct block *at, expr row, expr column, expr place,
                        uint32_t count, uint32_t memory)
{
    expr index = add(b,
                     binary(b, EXPR_MUL, part_row(b, row),
                            kernel_dim(b->k.kernel, b->plan->operands[SIDE_COLUMNS].extent)),
                     column);
    expr sums[16];
    for (uint32_t i = 0; i < count; i++)
        sums[i] = kernel_element(b->k.kernel, b->acc, add(b, place, number(b, i)), 1);
    build_store(at, memory, index, kernel_pack(b->k.kernel, sums, (uint16_t)count));
}

/* The sums from acc[place] on, of a run of columns or (where runs may cross a row's end) of one column. */
static void store_run(struct builder *b, struct block *at, expr row, const expr *row_axes, expr column,
                      expr place, uint32_t parts)
{
    struct block then;
    const struct operand *columns = &b->plan->operands[SIDE_COLUMNS];
    bool whole = b->plan->whole_columns;
    build_if(at, binary(b, EXPR_LESS, column, kernel_dim(b->k.kernel, columns->extent)), &then, NULL);
    if (parts != UINT32_MAX) {
        store_parts(b, &then, row, column, place, whole ? b->plan->lanes : 1, parts);
        return;
    }
    expr axes[MAX_AXES];
    memcpy(axes, row_axes, sizeof axes);
    split_position(b, &then, column, columns->axes, columns->count, "column", axes);
    if (whole) {
        store_vectors(b, &then, axes, place);
        return;
    }
    expr sum = kernel_element(b->k.kernel, b->acc, place, 1);
    gpu_store_point(&b->k, &then, 0, axes, &sum);
}

static void store_sums(struct builder *b, struct block *top, uint32_t parts)
{
    struct kernel *kernel = b->k.kernel;
    const struct operand *rows = &b->plan->operands[SIDE_ROWS];
    int64_t lanes = b->plan->lanes, own = b->config[CONFIG_OWN_COLUMNS];
    struct block run_body, body, inside, column_body;
    expr run, r, c;
    build_for(top, "run", number(b, 0), number(b, b->config[CONFIG_OWN_ROWS] / lanes), 0, LOOP_UNROLL,
              &run_body, &run);
    build_for(&run_body, "r", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &body, &r);
    expr row = add(b, add(b, b->first_row, scaled(b, run, b->threads_y * lanes)),
                   add(b, scaled(b, b->thread_row, lanes), r));
    row = build_declare(&body, "row", row);
    build_if(&body, binary(b, EXPR_LESS, row, kernel_dim(kernel, rows->extent)), &inside, NULL);
    expr axes[MAX_AXES];
    memcpy(axes, b->axes, sizeof axes);
    if (parts == UINT32_MAX)
        split_position(b, &inside, row, rows->axes, rows->count, "row", axes);
    build_for(&inside, "c", number(b, 0), number(b, own / lanes), 0, LOOP_UNROLL, &column_body, &c);
    expr column = add(b, add(b, b->first_column, scaled(b, c, b->threads_x * lanes)),
                      scaled(b, b->thread_column, lanes));
    column = build_declare(&column_body, "column", column);
    expr place = add(b, scaled(b, add(b, scaled(b, run, lanes), r), own), scaled(b, c, lanes));
    if (b->plan->whole_columns) {
        store_run(b, &column_body, row, axes, column, place, parts);
        return;
    }
    struct block lane_body;
    expr lane;
    build_for(&column_body, "lane", number(b, 0), number(b, lanes), 0, LOOP_UNROLL, &lane_body, &lane);
    column = build_declare(&lane_body, "column", add(b, column, lane));
    store_run(b, &lane_body, row, axes, column, add(b, place, lane), parts);
}

/* ---- kernels
 * ------------------------------------------------------------------------------------------------------------
 */

static uint32_t registers(struct builder *b, int64_t count, const char *label)
{
    return kernel_memory_add(
        b->k.kernel,
        &(struct kernel_memory){
            .space = MEMORY_REGISTER, .dtype = b->plan->dtype, .lanes = 1, .count = count, .label = label});
}

static void build_main(struct builder *b, struct lowered_group *out, uint32_t parts)
{
    struct kernel *kernel = b->k.kernel;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    expr i;
    begin_block(b, &top);
    begin_fill(b, &top, SIDE_ROWS);
    begin_fill(b, &top, SIDE_COLUMNS);
    int64_t sums = (int64_t)b->config[CONFIG_OWN_ROWS] * b->config[CONFIG_OWN_COLUMNS];
    b->acc = registers(b, sums, "sum");
    b->own[SIDE_ROWS] = registers(b, b->config[CONFIG_OWN_ROWS], "own_a");
    b->own[SIDE_COLUMNS] = registers(b, b->config[CONFIG_OWN_COLUMNS], "own_b");
    build_for(&top, "i", number(b, 0), number(b, sums), 0, LOOP_UNROLL, &body, &i);
    build_store(&body, b->acc, i, gpu_neutral(b->pool, REDUCE_SUM, b->plan->dtype));
    sum_depth(b, &top);
    store_sums(b, &top, parts);
    gpu_kernel_end(&b->k, out);
}

/* The second kernel of a split depth: one thread a point adds the parts in order and stores. */
static void build_sum_of_parts(const struct strategy_context *context, const struct contraction_plan *plan,
                               int64_t parts, struct lowered_group *out)
{
    enum { THREADS = 256 };
    struct gpu_kernel k;
    gpu_kernel_begin_stores(&k, context, "gpu_contraction", 0);
    uint32_t memory = gpu_kernel_parameter(&k, ARGUMENT_TEMPORARY, 0, plan->dtype, "parts");
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    kernel->memories.items[memory].read = true;
    kernel->summary = "Adds the parts of a product's depth and stores.";
    kernel->config = arena_printf(context->arena, "parts=%d", (int)parts);
    dim points = gpu_extent_product(context, plan->nest, 0, plan->nest->rank);
    kernel->grid[0] = dim_ceil_div(dims, points, dim_constant(dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside, body;
    expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    expr point = build_declare(
        &top, "point",
        expr_binary(pool, EXPR_ADD, start, kernel_thread_index(kernel, 0, dim_constant(dims, THREADS))));
    expr total = kernel_dim(kernel, points);
    build_if(&top, expr_binary(pool, EXPR_LESS, point, total), &inside, NULL);
    struct builder b = {.context = context, .plan = plan, .k = k, .pool = pool};
    const struct operand *rows = &plan->operands[SIDE_ROWS], *columns = &plan->operands[SIDE_COLUMNS];
    /* Points in the temporary's order: batch, row, column. */
    uint32_t order[MAX_AXES], count = 0;
    for (uint32_t i = 0; i < plan->batch_count; i++)
        order[count++] = plan->batch[i];
    for (uint32_t i = 0; i < rows->count; i++)
        order[count++] = rows->axes[i];
    for (uint32_t i = 0; i < columns->count; i++)
        order[count++] = columns->axes[i];
    expr axes[MAX_AXES] = {0};
    split_position(&b, &inside, point, order, count, "i", axes);
    uint32_t sum = build_mutable(&inside, "sum", gpu_neutral(pool, REDUCE_SUM, plan->dtype));
    expr part, reduced = kernel_variable(kernel, sum);
    build_for(&inside, "part", expr_index(pool, 0), expr_index(pool, parts), 0, LOOP_UNROLL, &body, &part);
    expr index = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, part, total), point);
    build_assign(&body, sum, expr_binary(pool, EXPR_ADD, reduced, kernel_element(kernel, memory, index, 1)));
    gpu_store_point(&k, &inside, 0, axes, &reduced);
    gpu_kernel_end(&k, out);
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
    int64_t split = config->value[CONFIG_SPLIT];
    uint32_t parts = UINT32_MAX;
    struct dims *dims = plan->body->pool->dims;
    if (split > 1) {
        gpu_kernel_begin_reductions(&b->k, context, "gpu_contraction", 0);
        dim elements = dim_mul(dims, gpu_extent_product(context, plan->nest, 0, plan->nest->rank),
                               dim_constant(dims, split));
        struct temporary temporary = {.type = tensor_type_new(context->arena, plan->dtype, 1, &elements)};
        vec_push(context->arena, &out->temporaries, temporary);
        parts = gpu_kernel_parameter(&b->k, ARGUMENT_TEMPORARY, 0, plan->dtype, "parts");
    } else {
        gpu_kernel_begin(&b->k, context, "gpu_contraction", 0, 1, NULL);
    }
    b->pool = b->k.kernel->pool;
    struct text text;
    text_init(&text, context->arena);
    gpu_contraction.describe(config, &text);
    b->k.kernel->config = text.data;
    b->k.kernel->summary = gpu_summary(context, "Tiled contraction", 0);
    build_main(b, out, parts);
    if (split > 1)
        build_sum_of_parts(context, plan, split, out);
    return true;
}

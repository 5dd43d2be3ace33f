/* The register-blocked kernel (tile.h): work items, blocks of the depth, and the micro-kernels. A full tile
 * and the tiles at the edges have a micro-kernel each, so that edges cost little; the stores' expressions
 * stand there once. */
#include "codegen/strategy/cpu/tile.h"

#include <string.h>

uint16_t tile_lanes(const struct machine *machine, enum dtype accumulator)
{
    return (uint16_t)(machine->vector_bytes * 8 / dtype_bits(accumulator));
}

void tile_describe(const struct config *config, struct text *out)
{
    text_printf(out, "tile=%dx%dv%s, depth=%d, block=%dx%d", (int)config->value[TILE_ROWS],
                (int)config->value[TILE_VECTORS], config->value[TILE_SWAP] ? " swapped" : "",
                (int)config->value[TILE_DEPTH], (int)config->value[TILE_ROW_BLOCK],
                (int)config->value[TILE_COLUMN_BLOCK]);
}

/* ---- memories
 * ----------------------------------------------------------------------------------------------------- */

static uint32_t add_global(struct tiler *t, enum dtype dtype, const char *label, uint32_t alignment,
                           enum argument_kind kind, uint32_t index)
{
    const struct kernel_memory memory = {
        .space = MEMORY_GLOBAL, .dtype = dtype, .label = label, .alignment = alignment};
    const uint32_t number = kernel_memory_add(t->kernel, &memory);
    t->arguments[number] = (struct argument){.kind = kind, .index = index};
    return number;
}

static void add_constant_panels(struct tiler *t, struct operand *operand, struct lowered_group *out)
{
    if (operand->mode != OPERAND_CONSTANT)
        return;
    const struct derived derived = product_recipe(t->product, operand->side, operand->panel);
    vec_push(t->context->arena, &out->derived, derived);
    operand->memory =
        add_global(t, t->product->accumulator, operand == &t->rows ? "row_panels" : "column_panels", 256,
                   ARGUMENT_DERIVED, out->derived.count - 1);
    t->kernel->memories.items[operand->memory].read = true;
}

static void add_buffers(struct tiler *t, struct lowered_group *out)
{
    const struct definition *d = &t->product->definition;
    bool *used = arena_new_array(t->context->arena, bool, d->buffers.count);
    product_mark_stores(t->product, used);
    if (t->rows.mode != OPERAND_CONSTANT)
        product_mark_loads(t->product, t->rows.side->factor, used);
    if (t->columns.mode != OPERAND_CONSTANT)
        product_mark_loads(t->product, t->columns.side->factor, used);
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        t->memories[i] = UINT32_MAX;
        const enum dtype dtype = d->buffers.items[i].type.dtype;
        if (used[i])
            t->memories[i] = add_global(t, dtype, d->buffers.items[i].role == BUFFER_INPUT ? "x" : "y",
                                        dtype == DTYPE_BOOL ? 1 : dtype_bits(dtype) / 8, ARGUMENT_BUFFER, i);
    }
    add_constant_panels(t, &t->rows, out);
    add_constant_panels(t, &t->columns, out);
}

static uint32_t add_scratch(struct tiler *t, int64_t count, const char *label)
{
    const struct kernel_memory memory = {
        .space = MEMORY_SCRATCH, .dtype = t->product->accumulator, .count = count, .label = label};
    return kernel_memory_add(t->kernel, &memory);
}

static void add_scratches(struct tiler *t)
{
    const struct config *c = t->config;
    const int64_t tile = (int64_t)t->rows.width * t->columns.width;
    const int64_t row_block = c->value[TILE_ROW_BLOCK], column_block = c->value[TILE_COLUMN_BLOCK];
    const int64_t depth = c->value[TILE_DEPTH];
    t->accumulators = add_scratch(t, t->blocked ? tile * row_block * column_block : tile, "results");
    /* Behind the last panel there is room for one overrunning vector. */
    if (t->rows.mode == OPERAND_PACKED)
        t->rows.memory = add_scratch(t, row_block * depth * t->rows.stride + t->lanes, "row_panels");
    if (t->columns.mode == OPERAND_PACKED)
        t->columns.memory =
            add_scratch(t, column_block * depth * t->columns.stride + t->lanes, "column_panels");
}

/* ---- the micro-kernel
 * ----------------------------------------------------------------------------------------------- */

struct micro {
    uint32_t rows, vectors;
    bool clamped;                         /* rows that do not exist are read from the last one that does */
    expr row_tile, column_tile, last_row; /* last_row: within the tile */
    expr tile;                            /* first element in the accumulators' buffer */
    expr row_base, column_base;
    expr offsets[32]; /* DIRECT: elements from the tile's first row */
};

static expr zero_vector(const struct tiler *t)
{
    const enum dtype dtype = t->product->accumulator;
    struct exprs *pool = t->kernel->pool;
    return kernel_broadcast(
        t->kernel, dtype_is_float(dtype) ? expr_float(pool, dtype, 0) : expr_int(pool, dtype, 0), t->lanes);
}

/* Elements from one panel of constants to the next. */
static expr panel_elements(const struct tiler *t, const struct operand *operand)
{
    return index_mul(t, expr_dim(t->kernel->pool, t->product->depth), operand->stride);
}

/* Element `i` of a tile's row or column at a depth of 0, from the tile's base. */
static expr panel_offset(const struct tiler *t, const struct operand *operand, uint32_t i)
{
    const expr within = index_constant(t, i % operand->panel);
    if (i < operand->panel)
        return within;
    return index_add(t, index_mul(t, panel_elements(t, operand), i / operand->panel), within);
}

/* First element of a tile's panel at the begin of the block of the depth. */
static expr panel_base(const struct tiler *t, const struct operand *operand, expr tile, expr first)
{
    struct exprs *pool = t->kernel->pool;
    if (operand->mode == OPERAND_PACKED)
        return index_mul(t, index_sub(t, tile, first),
                         (int64_t)t->config->value[TILE_DEPTH] * operand->stride);
    const expr first_panel = index_mul(t, tile, (operand->width + operand->panel - 1) / operand->panel);
    const expr number =
        index_add(t, index_scale(t, operand->outer, expr_dim(pool, operand->panels)), first_panel);
    return index_add(t, index_scale(t, number, panel_elements(t, operand)),
                     index_mul(t, t->depth_begin, operand->stride));
}

/* Flat index of the tile's first element in the buffer. */
static expr direct_base(struct tiler *t, const struct operand *operand, expr tile)
{
    struct exprs *pool = t->kernel->pool;
    side_axes(operand->side, t->product, pool, index_mul(t, tile, operand->width), t->axes);
    depth_axes(t->product, pool, t->depth_begin, t->axes);
    const expr load = lower_expr(&t->lowering, operand->side->factor);
    return expr_at(pool, load)->arguments[0];
}

static void micro_bases(struct tiler *t, struct block *block, struct micro *m)
{
    struct exprs *pool = t->kernel->pool;
    m->column_base =
        build_declare(block, "column_base", panel_base(t, &t->columns, m->column_tile, t->column_first));
    if (t->rows.mode != OPERAND_DIRECT) {
        m->row_base = build_declare(block, "row_base", panel_base(t, &t->rows, m->row_tile, t->row_first));
        return;
    }
    m->row_base = build_declare(block, "row_base", direct_base(t, &t->rows, m->row_tile));
    const expr growth = expr_dim(pool, t->rows.row_growth);
    for (uint32_t i = 0; i < m->rows; i++) {
        const expr row = index_constant(t, i);
        m->offsets[i] = index_scale(t, m->clamped ? index_min(t, row, m->last_row) : row, growth);
        if (m->clamped)
            m->offsets[i] = build_declare(block, "offset", m->offsets[i]);
    }
}

static expr row_element(const struct tiler *t, const struct micro *m, uint32_t row, expr depth)
{
    const struct operand *operand = &t->rows;
    expr index;
    if (operand->mode == OPERAND_DIRECT) {
        const expr growth = expr_dim(t->kernel->pool, operand->depth_growth);
        index = index_add(t, index_add(t, m->row_base, m->offsets[row]), index_scale(t, depth, growth));
    } else {
        index = index_add(t, index_add(t, m->row_base, index_mul(t, depth, operand->stride)),
                          panel_offset(t, operand, row));
    }
    return kernel_element(t->kernel, operand->memory, index, 1);
}

static expr multiply_add(const struct tiler *t, expr a, expr b, expr sum)
{
    struct exprs *pool = t->kernel->pool;
    if (!dtype_is_float(t->product->accumulator)) {
        const expr product[] = {a, b};
        const struct expr_node node = {.op = EXPR_MUL,
                                       .dtype = t->product->accumulator,
                                       .lanes = t->lanes,
                                       .count = 2,
                                       .arguments = product};
        const expr sums[] = {sum, expr_make(pool, &node)};
        const struct expr_node add = {.op = EXPR_ADD,
                                      .dtype = t->product->accumulator,
                                      .lanes = t->lanes,
                                      .count = 2,
                                      .arguments = sums};
        return expr_make(pool, &add);
    }
    const expr arguments[] = {a, b, sum};
    const struct expr_node node = {.op = EXPR_FMA,
                                   .dtype = t->product->accumulator,
                                   .lanes = t->lanes,
                                   .count = 3,
                                   .arguments = arguments};
    return expr_make(pool, &node);
}

static void build_micro(struct tiler *t, struct block *block, struct micro m)
{
    struct kernel *kernel = t->kernel;
    uint32_t sums[64];
    expr columns[8];
    micro_bases(t, block, &m);
    for (uint32_t i = 0; i < m.rows * m.vectors; i++) {
        const int64_t offset =
            (int64_t)(i / m.vectors) * t->columns.width + (int64_t)(i % m.vectors) * t->lanes;
        const expr element = kernel_element(kernel, t->accumulators,
                                            index_add(t, m.tile, index_constant(t, offset)), t->lanes);
        sums[i] = build_mutable(block, "sum", t->blocked ? element : zero_vector(t));
    }
    struct block body;
    expr depth;
    build_for(block, "depth", index_constant(t, 0), t->depth_count, 0, LOOP_SERIAL, &body, &depth);
    const expr place = index_add(t, m.column_base, index_mul(t, depth, t->columns.stride));
    for (uint32_t v = 0; v < m.vectors; v++) {
        const expr index = index_add(t, place, panel_offset(t, &t->columns, v * t->lanes));
        columns[v] =
            build_declare(&body, "column", kernel_element(kernel, t->columns.memory, index, t->lanes));
    }
    for (uint32_t i = 0; i < m.rows; i++) {
        const expr row =
            build_declare(&body, "row", kernel_broadcast(kernel, row_element(t, &m, i, depth), t->lanes));
        for (uint32_t v = 0; v < m.vectors; v++) {
            const uint32_t sum = sums[i * m.vectors + v];
            build_assign(&body, sum, multiply_add(t, row, columns[v], kernel_variable(kernel, sum)));
        }
    }
    for (uint32_t i = 0; i < m.rows * m.vectors; i++) {
        const int64_t offset =
            (int64_t)(i / m.vectors) * t->columns.width + (int64_t)(i % m.vectors) * t->lanes;
        build_store(block, t->accumulators, index_add(t, m.tile, index_constant(t, offset)),
                    kernel_variable(kernel, sums[i]));
    }
}

/* Smaller micro-kernels for `left` rows or vectors of a tile of `full`, largest first; exact where sizes are
 * known. */
static uint32_t edge_sizes(const struct tiler *t, dim extent, uint32_t full, uint32_t unit, uint32_t *sizes)
{
    int64_t known;
    if (dim_is_constant(t->product->dims, extent, &known)) {
        const uint32_t left = (uint32_t)((known % (int64_t)(full * unit) + unit - 1) / unit);
        sizes[0] = left;
        return left ? 1 : 0;
    }
    uint32_t count = 0;
    for (uint32_t size = full / 2; size > 0; size = size > 3 ? size / 3 : size - 1)
        if (count < 3)
            sizes[count++] = size;
    return count;
}

/* Picks the vectors: IFs from the full tile down. `left`: columns that exist. */
static void choose_vectors(struct tiler *t, struct block *block, const struct micro *m, expr left)
{
    struct exprs *pool = t->kernel->pool;
    const uint32_t full = m->vectors;
    uint32_t sizes[4];
    const uint32_t count = edge_sizes(t, t->columns.side->extent, full, t->lanes, sizes);
    int64_t known;
    const bool only_edge = dim_is_constant(t->product->dims, t->columns.side->extent, &known) &&
                           known < (int64_t)full * t->lanes;
    struct micro edge = *m;
    struct block inner = *block;
    if (!only_edge) {
        const expr limit = index_constant(t, count ? (int64_t)sizes[0] * t->lanes : 0);
        struct block then, otherwise;
        if (count == 0) {
            build_micro(t, &inner, *m);
            return;
        }
        build_if(&inner, expr_binary(pool, EXPR_LESS, limit, left), &then, &otherwise);
        build_micro(t, &then, *m);
        inner = otherwise;
    }
    for (uint32_t i = 0; i < count; i++) {
        edge.vectors = sizes[i];
        if (i + 1 == count) {
            build_micro(t, &inner, edge);
            return;
        }
        struct block then, otherwise;
        const expr limit = index_constant(t, (int64_t)sizes[i + 1] * t->lanes);
        build_if(&inner, expr_binary(pool, EXPR_LESS, limit, left), &then, &otherwise);
        build_micro(t, &then, edge);
        inner = otherwise;
    }
}

/* Picks the rows in the same way. Rows in panels may be computed in vain; rows in the buffer itself are
 * clamped. */
static void choose_rows(struct tiler *t, struct block *block, struct micro *m, expr rows_left,
                        expr columns_left)
{
    struct exprs *pool = t->kernel->pool;
    uint32_t sizes[4];
    const uint32_t full = t->rows.width;
    const dim extent = t->rows.side->extent;
    const uint32_t count = edge_sizes(t, extent, full, 1, sizes);
    int64_t known;
    const bool is_known = dim_is_constant(t->product->dims, extent, &known);
    struct block inner = *block, then, otherwise;
    m->rows = full;
    m->last_row = index_sub(t, rows_left, index_constant(t, 1));
    if (count == 0) {
        choose_vectors(t, &inner, m, columns_left);
        return;
    }
    if (!(is_known && known < full)) {
        build_if(&inner, expr_binary(pool, EXPR_LESS, index_constant(t, full - 1), rows_left), &then,
                 &otherwise);
        choose_vectors(t, &then, m, columns_left);
        inner = otherwise;
    }
    if (!is_known && t->rows.mode == OPERAND_DIRECT)
        m->clamped = true;
    if (!is_known) {
        build_if(&inner, expr_binary(pool, EXPR_LESS, index_constant(t, sizes[0]), rows_left), &then,
                 &otherwise);
        choose_vectors(t, &then, m, columns_left);
        inner = otherwise;
    }
    for (uint32_t i = 0; i < count; i++) {
        m->rows = sizes[i];
        if (i + 1 == count) {
            choose_vectors(t, &inner, m, columns_left);
            return;
        }
        build_if(&inner, expr_binary(pool, EXPR_LESS, index_constant(t, sizes[i + 1]), rows_left), &then,
                 &otherwise);
        choose_vectors(t, &then, m, columns_left);
        inner = otherwise;
    }
}

/* ---- loops
 * ----------------------------------------------------------------------------------------------------------
 */

/* min(width, extent - tile * width); the width where it always divides. */
static expr valid_part(const struct tiler *t, const struct operand *operand, expr tile)
{
    struct exprs *pool = t->kernel->pool;
    if (dim_divisible(t->product->dims, operand->side->extent, operand->width))
        return index_constant(t, operand->width);
    const expr left =
        index_sub(t, kernel_dim(t->kernel, operand->side->extent), index_mul(t, tile, operand->width));
    return expr_binary(pool, EXPR_MIN, index_constant(t, operand->width), left);
}

static void build_tiles(struct tiler *t, struct block *block, expr last_block)
{
    struct block columns, rows;
    struct micro m = {.vectors = (uint32_t)t->config->value[TILE_VECTORS]};
    build_for(block, "column_tile", t->column_first, t->column_end, 0, LOOP_SERIAL, &columns, &m.column_tile);
    const expr columns_left = build_declare(&columns, "columns", valid_part(t, &t->columns, m.column_tile));
    build_for(&columns, "row_tile", t->row_first, t->row_end, 0, LOOP_SERIAL, &rows, &m.row_tile);
    const expr rows_left = build_declare(&rows, "rows", valid_part(t, &t->rows, m.row_tile));
    m.tile = index_constant(t, 0);
    if (t->blocked) {
        const expr column =
            index_mul(t, index_sub(t, m.column_tile, t->column_first), t->config->value[TILE_ROW_BLOCK]);
        const expr number = index_add(t, column, index_sub(t, m.row_tile, t->row_first));
        m.tile =
            build_declare(&rows, "tile", index_mul(t, number, (int64_t)t->rows.width * t->columns.width));
    }
    const expr row_tile = m.row_tile, column_tile = m.column_tile, tile = m.tile;
    choose_rows(t, &rows, &m, rows_left, columns_left);
    struct block store = rows;
    if (last_block)
        build_if(&rows, last_block, &store, NULL);
    tile_store(t, &store, tile, row_tile, column_tile, rows_left, columns_left);
}

static void clear_accumulators(struct tiler *t, struct block *block)
{
    const struct config *c = t->config;
    const int64_t count =
        (int64_t)c->value[TILE_ROW_BLOCK] * c->value[TILE_COLUMN_BLOCK] * t->rows.width * t->columns.width;
    struct block body;
    expr i;
    build_for(block, "i", index_constant(t, 0), index_constant(t, count), index_constant(t, t->lanes),
              LOOP_SERIAL, &body, &i);
    build_store(&body, t->accumulators, i, zero_vector(t));
}

static void pack_operand(struct tiler *t, struct block *block, struct operand *operand,
                         const struct packer *packer)
{
    const bool columns = operand == &t->columns;
    if (operand->mode != OPERAND_PACKED)
        return;
    const expr first = columns ? t->column_first : t->row_first, end = columns ? t->column_end : t->row_end;
    pack_function *pack = packer->pack && packer->columns == columns ? packer->pack : tile_pack;
    pack(t, block, operand, first, end);
}

static void build_depth(struct tiler *t, struct block *block, const struct packer *packer)
{
    struct exprs *pool = t->kernel->pool;
    const int64_t size = t->config->value[TILE_DEPTH];
    const expr depth = kernel_dim(t->kernel, t->product->depth);
    struct block body = *block;
    expr last = 0;
    t->depth_block = t->depth_begin = index_constant(t, 0);
    t->depth_count = depth;
    if (t->blocked) {
        struct dims *dims = t->product->dims;
        dim blocks = dim_ceil_div(dims, t->product->depth, dim_constant(dims, size));
        blocks = dim_max(dims, blocks, dim_constant(dims, 1)); /* sums over nothing are stored too */
        clear_accumulators(t, block);
        build_for(block, "depth_block", index_constant(t, 0), kernel_dim(t->kernel, blocks), 0, LOOP_SERIAL,
                  &body, &t->depth_block);
        t->depth_begin = build_declare(&body, "depth_begin", index_mul(t, t->depth_block, size));
        t->depth_count = index_constant(t, size);
        if (!dim_divisible(dims, t->product->depth, size))
            t->depth_count =
                build_declare(&body, "depth_count",
                              index_min(t, index_constant(t, size), index_sub(t, depth, t->depth_begin)));
        last = expr_binary(pool, EXPR_EQUAL, t->depth_block,
                           index_sub(t, kernel_dim(t->kernel, blocks), index_constant(t, 1)));
    }
    pack_operand(t, &body, &t->columns, packer);
    pack_operand(t, &body, &t->rows, packer);
    build_tiles(t, &body, last);
}

static dim block_count(const struct tiler *t, const struct operand *operand, int64_t block)
{
    return dim_ceil_div(t->product->dims, operand->tiles, dim_constant(t->product->dims, block));
}

static void block_range(struct tiler *t, struct block *block, const struct operand *operand, expr number,
                        int64_t size, const char *label, expr *first, expr *end)
{
    *first = build_declare(block, label, index_mul(t, number, size));
    *end = index_add(t, *first, index_constant(t, size));
    if (!dim_divisible(t->product->dims, operand->tiles, size))
        *end = build_declare(block, label, index_min(t, *end, kernel_dim(t->kernel, operand->tiles)));
}

static void build_items(struct tiler *t, const struct packer *packer, dim work)
{
    struct exprs *pool = t->kernel->pool;
    const struct product *product = t->product;
    struct block top = {.kernel = t->kernel, .at = &t->kernel->body}, block;
    const int64_t row_block = t->config->value[TILE_ROW_BLOCK],
                  column_block = t->config->value[TILE_COLUMN_BLOCK];
    const expr row_blocks = kernel_dim(t->kernel, block_count(t, &t->rows, row_block));
    const expr column_blocks = kernel_dim(t->kernel, block_count(t, &t->columns, column_block));
    expr item;
    build_for(&top, "item", index_constant(t, 0), kernel_dim(t->kernel, work), 0, LOOP_PARALLEL, &block,
              &item);
    const expr row = build_declare(&block, "row_block", expr_binary(pool, EXPR_INDEX_MOD, item, row_blocks));
    item = expr_binary(pool, EXPR_INDEX_DIV, item, row_blocks);
    const expr column =
        build_declare(&block, "column_block", expr_binary(pool, EXPR_INDEX_MOD, item, column_blocks));
    expr outer = build_declare(&block, "outer", expr_binary(pool, EXPR_INDEX_DIV, item, column_blocks));
    for (uint32_t i = product->outer_count; i-- > 0;) {
        const uint32_t axis = product->outer[i];
        const expr extent = kernel_dim(t->kernel, product->nest->extents[axis]);
        const expr value = i ? expr_binary(pool, EXPR_INDEX_MOD, outer, extent) : outer;
        t->axes[axis] = build_declare(&block, "outer_axis", value);
        outer = i ? build_declare(&block, "outer", expr_binary(pool, EXPR_INDEX_DIV, outer, extent)) : outer;
    }
    block_range(t, &block, &t->rows, row, row_block, "row_tiles", &t->row_first, &t->row_end);
    block_range(t, &block, &t->columns, column, column_block, "column_tiles", &t->column_first,
                &t->column_end);
    t->rows.outer = product_outer_index(product, t->rows.side, pool, t->axes);
    t->columns.outer = product_outer_index(product, t->columns.side, pool, t->axes);
    build_depth(t, &block, packer);
}

bool tile_direct(const struct product *product, struct operand *operand)
{
    const struct side *side = operand->side;
    const struct expr_node load = *expr_at(product->definition.pool, side->load);
    int64_t known;
    if (side->factor != side->load || load.op != EXPR_LOAD || load.dtype != product->accumulator ||
        product->digit_count == 0)
        return false;
    operand->row_growth = dim_constant(product->dims, 0);
    dim growth = DIM_NONE;
    for (uint32_t i = side->axis_count; i-- > 0;) {
        const dim own = product_load_growth(product, side->load, side->axes[i]);
        if (own == DIM_NONE || (growth != DIM_NONE && own != growth))
            return false;
        if (growth == DIM_NONE)
            operand->row_growth = own;
        growth = dim_mul(product->dims, own, product->nest->extents[side->axes[i]]);
    }
    growth = DIM_NONE;
    for (uint32_t i = product->digit_count; i-- > 0;) {
        const struct digit *digit = &product->digits[i];
        const dim own = product_load_growth(product, side->load, digit->axis);
        if (own == DIM_NONE || digit->step != 1 || (growth != DIM_NONE && own != growth))
            return false;
        if (growth == DIM_NONE)
            operand->depth_growth = own;
        growth = dim_mul(product->dims, own, digit->extent);
    }
    return dim_equals_constant(product->dims, operand->depth_growth, 1) ||
           (dim_is_constant(product->dims, operand->depth_growth, &known) && known >= 0 && known <= 1024);
}

static void set_operand(const struct tiler *t, struct operand *operand, const struct side *side,
                        uint32_t width, const struct packer *packer)
{
    const bool columns = operand == &t->columns;
    struct dims *dims = t->product->dims;
    operand->side = side;
    operand->width = width;
    operand->panel = operand->stride = side->constant ? tile_panel(t->product, side) : width;
    operand->tiles = dim_ceil_div(dims, side->extent, dim_constant(dims, width));
    operand->panels = dim_ceil_div(dims, side->extent, dim_constant(dims, operand->panel));
    operand->mode = OPERAND_PACKED;
    if (side->constant)
        operand->mode = OPERAND_CONSTANT;
    else if (packer->pack && packer->columns == columns)
        operand->stride = width + packer->slack;
    else if (!columns && tile_direct(t->product, operand)) {
        int64_t growth = 0;
        if (!dim_is_constant(dims, operand->row_growth, &growth) ||
            tile_rows_fit(width, growth, dtype_bits(t->product->accumulator) / 8))
            operand->mode = OPERAND_DIRECT;
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What an item does at the sizes that were planned for, times the items: with hints of free sizes alone the
 * runtime would take the work to be too little to share. */
static void set_figures(struct tiler *t, dim work)
{
    const struct product *product = t->product;
    struct dims *dims = product->dims;
    const struct tile_sizes sizes = tile_sizes_of(product);
    const int64_t rows = smaller(sizes.rows, (int64_t)t->config->value[TILE_ROW_BLOCK] * t->rows.width);
    const int64_t columns =
        smaller(sizes.columns, (int64_t)t->config->value[TILE_COLUMN_BLOCK] * t->columns.width);
    dim item = dim_constant(dims, 2 * sizes.depth);
    item = dim_mul(dims, item, dim_mul(dims, dim_constant(dims, rows), dim_constant(dims, columns)));
    const dim operations = dim_mul(dims, work, item);
    t->kernel->operations = operations ? operations : dim_constant(dims, INT64_MAX >> 16);
    t->kernel->bytes = product_bytes(product);
}

bool tile_build(const struct strategy_context *context, const struct product *product,
                const struct config *config, const struct packer *packer, struct lowered_group *out,
                struct text *why)
{
    static const struct packer none = {0};
    struct arena *arena = context->arena;
    struct tiler *t = arena_new(arena, struct tiler);
    *t = (struct tiler){.context = context,
                        .product = product,
                        .config = config,
                        .kernel = kernel_new(arena, product->dims),
                        .lanes = tile_lanes(context->machine, product->accumulator)};
    if (!packer)
        packer = &none;
    t->packer = packer;
    set_operand(t, &t->rows, &product->rows, (uint32_t)config->value[TILE_ROWS], packer);
    set_operand(t, &t->columns, &product->columns, (uint32_t)config->value[TILE_VECTORS] * t->lanes, packer);
    int64_t depth;
    t->blocked = !dim_is_constant(product->dims, product->depth, &depth) || depth > config->value[TILE_DEPTH];
    dim work = dim_mul(product->dims, block_count(t, &t->rows, config->value[TILE_ROW_BLOCK]),
                       block_count(t, &t->columns, config->value[TILE_COLUMN_BLOCK]));
    work = dim_mul(product->dims, work, product->outer_extent);
    if (work == DIM_NONE) {
        text_put(why, "its sizes are too large");
        return false;
    }
    for (uint32_t i = 0; i < MAX_AXES; i++)
        t->axes[i] = expr_index(t->kernel->pool, 0);
    add_buffers(t, out);
    if (t->rows.mode == OPERAND_DIRECT)
        t->rows.memory = t->memories[t->rows.side->buffer];
    add_scratches(t);
    t->lowering = (struct lowering){.kernel = t->kernel,
                                    .definition = &product->definition,
                                    .memories = t->memories,
                                    .axes = t->axes,
                                    .reduced = t->reduced};
    build_items(t, packer, work);
    set_figures(t, work);
    struct text text;
    text_init(&text, arena);
    tile_describe(config, &text);
    t->kernel->config = text.data;
    t->kernel->location = context->group->location;
    const struct kernel_launch launch = {
        .kernel = t->kernel,
        .arguments = arena_copy(arena, t->arguments, t->kernel->global_count * sizeof *t->arguments)};
    vec_push(arena, &out->launches, launch);
    return true;
}

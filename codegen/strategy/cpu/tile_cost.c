/* Choosing a tile and its blocks: every sensible configuration is counted in cycles of one core, at the
 * sizes' hints. The model knows the fma and load ports, edges, packing that is repeated in every work item,
 * uneven shares of the threads, and whether the panels fit the caches. */
#include "codegen/strategy/cpu/tile.h"

#include <string.h>

/* With every register taken, LLVM moves accumulators around inside the loop: some are left to it. */
enum { SPARE_REGISTERS = 3 };
/* Tiles of sizes that are not known stay small: their edges are computed in full. */
enum { FREE_ROWS = 8, FREE_VECTORS = 2, USUAL_SIZE = 64 };
enum {
    THREADS = 2,
    MANY_THREADS = 16,
    SCRATCH_LIMIT = 6 << 20,
    CACHE_BYTES = 700 << 10,
    FIRST_CACHE_BYTES = 24 << 10
};
static const double cycles_a_second = 3.3e9;

/* Rows that are read side by side fit the ways of a 32 KiB cache of 8 ways and 64-byte lines. */
bool tile_rows_fit(int64_t rows, int64_t growth, uint32_t bytes)
{
    enum { LINE = 64, SETS = 64, WAYS = 6 };
    int64_t sets = SETS;
    for (int64_t step = growth * bytes / LINE; growth * bytes % LINE == 0 && step % 2 == 0 && sets > 1;
         step /= 2)
        sets /= 2;
    return growth == 0 || rows <= sets * WAYS;
}

struct model {
    const struct tile_sizes *sizes;
    uint32_t lanes, registers;
    bool wide;      /* vectors of 64 bytes: one fma a cycle, else two */
    uint32_t bytes; /* of an element */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Cycles of one step of the depth. */
static double step_cycles(const struct model *m, int64_t rows, int64_t vectors, bool near)
{
    const double loads = m->wide ? (double)vectors + (double)rows / 2 : (double)(rows + vectors) / 2;
    const double arithmetic = (double)(rows * vectors) / (m->wide ? 1 : 2);
    const double cycles = arithmetic > loads ? arithmetic : loads;
    return (cycles < 4 ? 4 : cycles) * (near ? 1 : 1.04);
}

static double tile_cycles(const struct model *m, int64_t rows, int64_t vectors, int64_t blocks, bool near)
{
    const double once = 20 + 2.0 * (double)(rows * vectors);
    return (double)m->sizes->depth * step_cycles(m, rows, vectors, near) + once * (double)blocks + 10;
}

static double config_cycles(const struct model *m, const struct config *c)
{
    const struct tile_sizes *s = m->sizes;
    const int64_t height = c->value[TILE_ROWS], vectors = c->value[TILE_VECTORS], width = vectors * m->lanes;
    const int64_t depth = c->value[TILE_DEPTH];
    const int64_t row_tiles = ceil_div(s->rows, height), column_tiles = ceil_div(s->columns, width);
    const int64_t row_blocks = ceil_div(row_tiles, c->value[TILE_ROW_BLOCK]);
    const int64_t column_blocks = ceil_div(column_tiles, c->value[TILE_COLUMN_BLOCK]);
    const int64_t blocks = s->depth > depth ? ceil_div(s->depth, depth) : 1;
    const bool near = depth * width * m->bytes <= FIRST_CACHE_BYTES;
    const int64_t row_edge = s->rows % height, column_edge = ceil_div(s->columns % width, m->lanes);
    const double full_rows = (double)(s->rows / height), full_columns = (double)(s->columns / width);
    double cycles = full_rows * full_columns * tile_cycles(m, height, vectors, blocks, near);
    if (row_edge)
        cycles += full_columns * tile_cycles(m, row_edge, vectors, blocks, near);
    if (column_edge)
        cycles += full_rows * tile_cycles(m, height, column_edge, blocks, near);
    if (row_edge && column_edge)
        cycles += tile_cycles(m, row_edge, column_edge, blocks, near);
    cycles += (double)(s->rows * s->columns) * s->store_cost;
    cycles += (double)(s->columns * s->depth * row_blocks) * s->column_cost;
    const double row_cost = s->direct && tile_rows_fit(height, s->row_growth, m->bytes) ? 0 : s->row_cost;
    cycles += (double)(s->rows * s->depth * column_blocks) * row_cost;
    int64_t scratch = 0;
    if (blocks > 1)
        scratch += height * width * c->value[TILE_ROW_BLOCK] * c->value[TILE_COLUMN_BLOCK];
    if (s->column_cost > 0)
        scratch += c->value[TILE_COLUMN_BLOCK] * width * depth;
    if (row_cost > 0)
        scratch += c->value[TILE_ROW_BLOCK] * height * depth;
    scratch *= m->bytes;
    if (scratch > SCRATCH_LIMIT)
        return -1;
    if (scratch > CACHE_BYTES)
        cycles *= 1.15;
    const int64_t items = s->outer * row_blocks * column_blocks;
    /* More items than threads let a larger machine share them too. */
    const double share = 0.95 * (double)ceil_div(items, THREADS) / (double)items +
                         0.05 * (double)ceil_div(items, MANY_THREADS) / (double)items;
    return (cycles * (double)s->outer + 150.0 * (double)items) * share;
}

/* Sorted by cycles, at most `limit` of them. */
static uint32_t insert(struct config *out, double *cycles, uint32_t count, uint32_t limit,
                       const struct config *config, double value)
{
    uint32_t at = count;
    while (at > 0 && cycles[at - 1] > value)
        at--;
    if (at >= limit)
        return count;
    const uint32_t kept = count < limit ? count : limit - 1;
    memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
    memmove(&cycles[at + 1], &cycles[at], (kept - at) * sizeof *cycles);
    out[at] = *config;
    cycles[at] = value;
    return kept + 1;
}

static int32_t depth_block(const struct tile_sizes *s, struct config *config)
{
    enum { MOST = 512, USUAL = 384 };
    if (s->channels) {
        uint32_t best = 1;
        for (uint32_t c = 1; c <= s->channels; c++)
            if (s->channels % c == 0 && c * s->taps <= MOST)
                best = c;
        config->value[TILE_CHANNELS] = (int32_t)best;
        return (int32_t)(best * s->taps);
    }
    if (s->depth <= MOST)
        return s->depth > 0 ? (int32_t)s->depth : 1;
    return (int32_t)ceil_div(s->depth, ceil_div(s->depth, USUAL));
}

static int64_t clamp_size(int64_t value)
{
    return value < 1 ? 1 : value > (INT64_C(1) << 20) ? INT64_C(1) << 20 : value;
}

static uint32_t try_tile(const struct model *m, struct config config, struct config *out, double *cycles,
                         uint32_t count, uint32_t limit)
{
    static const int32_t row_splits[] = {1, 2, 3, 4, 6, 8, 16},
                         column_splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
    const int64_t row_tiles = ceil_div(m->sizes->rows, config.value[TILE_ROWS]);
    const int64_t column_tiles = ceil_div(m->sizes->columns, (int64_t)config.value[TILE_VECTORS] * m->lanes);
    for (size_t i = 0; i < sizeof row_splits / sizeof *row_splits; i++) {
        if (i && row_splits[i] > row_tiles)
            break;
        config.value[TILE_ROW_BLOCK] = (int32_t)ceil_div(row_tiles, row_splits[i]);
        for (size_t k = 0; k < sizeof column_splits / sizeof *column_splits; k++) {
            if (k && column_splits[k] > column_tiles)
                break;
            config.value[TILE_COLUMN_BLOCK] = (int32_t)ceil_div(column_tiles, column_splits[k]);
            const double value = config_cycles(m, &config);
            if (value >= 0)
                count = insert(out, cycles, count, limit, &config, value);
        }
    }
    return count;
}

/* Cycles to pack one element of a side; 0: nothing is packed at run time. */
static double packing_cost(const struct product *product, const struct side *side, bool columns)
{
    if (side->constant)
        return 0;
    const struct expr_node load = *expr_at(product->definition.pool, side->load);
    const double work = 0.05 * expr_cost(product->definition.pool, side->factor);
    if (load.op == EXPR_LOAD_OR || product->digit_count > 1)
        return 8 + 10 * work;
    const bool consecutive =
        columns && side->axis_count > 0 &&
        dim_equals_constant(product->dims,
                            product_load_growth(product, side->load, side->axes[side->axis_count - 1]), 1);
    return consecutive ? 0.2 + work : 1.6 + 10 * work;
}

/* A size to plan for: free ones are taken to be larger than a hint that says little. */
static int64_t plausible(const struct product *product, dim extent, int64_t least, bool *is_free)
{
    int64_t value;
    *is_free = !dim_is_constant(product->dims, extent, &value);
    if (!*is_free)
        return value;
    value = dim_hint(product->dims, extent);
    return value < least ? least : value;
}

struct tile_sizes tile_sizes_of(const struct product *product)
{
    const struct nest *nest = product->nest;
    uint32_t cost = 0;
    for (uint32_t i = 0; i < nest->store_count; i++)
        cost += expr_cost(product->definition.pool, nest->stores[i].value);
    struct operand operand = {.side = &product->rows};
    int64_t growth = 0;
    const bool direct = !product->rows.constant && tile_direct(product, &operand);
    if (direct && !dim_is_constant(product->dims, operand.row_growth, &growth))
        growth = 0;
    struct tile_sizes sizes = {
        .direct = direct,
        .row_growth = growth,
        .outer = dim_hint(product->dims, product->outer_extent),
        .column_cost = packing_cost(product, &product->columns, true),
        .row_cost = packing_cost(product, &product->rows, false),
        .store_cost = product->swapped ? 2.5 + 0.5 * cost : 0.2 + 0.06 * cost,
    };
    bool free_depth;
    sizes.rows = plausible(product, product->rows.extent, USUAL_SIZE, &sizes.free_rows);
    sizes.columns = plausible(product, product->columns.extent, USUAL_SIZE, &sizes.free_columns);
    sizes.depth = plausible(product, product->depth, USUAL_SIZE, &free_depth);
    return sizes;
}

static struct model model_of(const struct strategy_context *context, const struct product *product,
                             struct tile_sizes *sizes)
{
    sizes->outer = clamp_size(sizes->outer);
    sizes->rows = clamp_size(sizes->rows);
    sizes->columns = clamp_size(sizes->columns);
    return (struct model){.sizes = sizes,
                          .lanes = tile_lanes(context->machine, product->accumulator),
                          .registers = context->machine->vector_registers,
                          .wide = context->machine->vector_bytes >= 64,
                          .bytes = dtype_bits(product->accumulator) / 8};
}

uint32_t tile_panel(const struct product *product, const struct side *side)
{
    enum { LINE_BITS = 512, FEW_ROWS = 4 };
    int64_t extent;
    if (side == &product->columns)
        return LINE_BITS / dtype_bits(product->accumulator);
    return dim_is_constant(product->dims, side->extent, &extent) && extent > 0 && extent < FEW_ROWS
               ? (uint32_t)extent
               : FEW_ROWS;
}

/* A tile of one side begins where a panel of constants begins; one that is alone may end anywhere. */
static bool fits_panels(const struct product *product, const struct side *side, int64_t width)
{
    int64_t extent;
    return !side->constant || width % tile_panel(product, side) == 0 ||
           (side == &product->rows && dim_is_constant(product->dims, side->extent, &extent) &&
            extent == width);
}

uint32_t tile_candidates(const struct strategy_context *context, const struct product *product,
                         const struct tile_sizes *sizes, struct config *out, double *cycles, uint32_t count,
                         uint32_t limit)
{
    static const int32_t heights[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 24};
    struct tile_sizes s = *sizes;
    const struct model model = model_of(context, product, &s);
    const int32_t least_vectors =
        product->columns.constant ? (int32_t)(tile_panel(product, &product->columns) / model.lanes) : 1;
    struct config config = {{0}};
    config.value[TILE_SWAP] = product->swapped;
    config.value[TILE_DEPTH] = depth_block(&s, &config);
    for (int32_t vectors = 1; vectors <= 4; vectors++)
        for (size_t i = 0; i < sizeof heights / sizeof *heights; i++) {
            if ((s.free_rows && heights[i] > FREE_ROWS) || (s.free_columns && vectors > FREE_VECTORS))
                continue;
            config.value[TILE_ROWS] = heights[i];
            config.value[TILE_VECTORS] = vectors;
            if ((uint32_t)(heights[i] * vectors + vectors + 1 + SPARE_REGISTERS) > model.registers ||
                (i && heights[i] > s.rows) || !fits_panels(product, &product->rows, heights[i]) ||
                !fits_panels(product, &product->columns, vectors * (int64_t)model.lanes) ||
                (vectors > least_vectors && (vectors - 1) * (int64_t)model.lanes >= s.columns))
                continue;
            count = try_tile(&model, config, out, cycles, count, limit);
        }
    return count;
}

void tile_retarget(const struct strategy_context *context, const struct product *product,
                   const struct tile_sizes *sizes, struct config *config)
{
    struct config best;
    double cycles;
    if (!tile_candidates(context, product, sizes, &best, &cycles, 0, 1))
        return; /* the reference's own tile is right everywhere */
    best.value[TILE_DEPTH] = config->value[TILE_DEPTH];
    best.value[TILE_CHANNELS] = config->value[TILE_CHANNELS];
    *config = best;
}

static double hinted_size(const struct product *product, dim extent)
{
    const int64_t size = dim_hint(product->dims, extent);
    return size < 1 ? 1 : (double)size;
}

double tile_seconds(const struct strategy_context *context, const struct product *product,
                    const struct tile_sizes *sizes, const struct config *config)
{
    struct tile_sizes s = *sizes;
    const struct model model = model_of(context, product, &s);
    const double planned = (double)s.rows * (double)s.columns * (double)s.depth;
    /* Other strategies are compared at the sizes' hints, which may be smaller than those that were planned
     * for. */
    const double share = hinted_size(product, product->rows.extent) *
                         hinted_size(product, product->columns.extent) *
                         hinted_size(product, product->depth) / planned;
    return config_cycles(&model, config) / cycles_a_second * (share < 1 ? share : 1);
}

/* Convolutions on a CPU, as products of weights and pixels (tile.h). Panels of pixels are filled row by row
 * of the image: a run of outputs in one row needs a run of inputs in one row, which is copied in whole
 * vectors under a mask that is off outside the image; what a vector writes too much is overwritten by the
 * next run, or falls into the panel's slack.
 *
 * Depth order: blocks of channels, then taps, then the channels of the block, so that masks are made once for
 * all of them. Nothing is read outside the image, whatever its size. */
#include "codegen/strategy/cpu/pixels.h"
#include "codegen/strategy/cpu/strategies.h"
#include "codegen/strategy/cpu/tile.h"

#include <math.h>

/* Blocks of channels, taps, channels of a block. */
static void order_depth(struct pixels *p, const struct config *config)
{
    struct product *product = p->product;
    const int64_t block = config->value[TILE_CHANNELS] > 0 ? config->value[TILE_CHANNELS] : 1;
    uint32_t count = 0;
    if (p->has_channel) {
        const dim size = dim_constant(product->dims, block);
        product->digits[count++] =
            (struct digit){.axis = p->channel.axis,
                           .extent = dim_floor_div(product->dims, p->channel.extent, size),
                           .step = block};
    }
    for (uint32_t i = 0; i < p->tap_count; i++)
        product->digits[count++] = p->taps[i];
    if (p->has_channel)
        product->digits[count++] =
            (struct digit){.axis = p->channel.axis, .extent = dim_constant(product->dims, block), .step = 1};
    product->digit_count = count;
}

/* ---- packing
 * ------------------------------------------------------------------------------------------------------ */

struct packing {
    struct packer packer;
    struct pixels pixels;
};

struct place {
    struct tiler *t;
    const struct pixels *p;
    const struct operand *operand;
    expr panel;    /* first element of the panel */
    expr tap;      /* number of the tap times the channels of a block */
    expr inside;   /* all indices but that along the row are in the image */
    expr position; /* that one at the begin of the run */
    expr base;     /* flat index there, for the first channel of the block */
    expr channel_growth;
    expr width; /* of the image */
};

static expr zeros(const struct kernel *kernel, uint16_t lanes)
{
    return kernel_broadcast(kernel, expr_float(kernel->pool, DTYPE_F32, 0), lanes);
}

/* The loop over the channels of a block around one vector (or one element). */
static void copy_channels(struct block *block, const struct place *place, expr offset, expr source,
                          const expr *masks, uint16_t lanes)
{
    struct tiler *t = place->t;
    struct kernel *kernel = t->kernel;
    struct block body = *block;
    expr channel = index_constant(t, 0);
    if (place->p->has_channel)
        build_for(block, "channel", channel, index_constant(t, t->config->value[TILE_CHANNELS]), 0,
                  LOOP_SERIAL, &body, &channel);
    const expr from =
        build_declare(&body, "from", index_add(t, source, index_scale(t, channel, place->channel_growth)));
    const expr row = index_mul(t, index_add(t, place->tap, channel), place->operand->stride);
    const expr to = index_add(t, index_add(t, place->panel, row), offset);
    const uint32_t memory = t->memories[place->p->side->buffer];
    kernel->memories.items[memory].read = true;
    if (lanes == 1 || place->p->stride == 1) {
        build_store(&body, place->operand->memory, to,
                    kernel_element_or(kernel, memory, masks[0], from, zeros(kernel, lanes), lanes));
        return;
    }
    expr both[2], even[64];
    for (int i = 0; i < 2; i++)
        both[i] = build_declare(&body, "pixels",
                                kernel_element_or(kernel, memory, masks[i],
                                                  index_add(t, from, index_constant(t, i * lanes)),
                                                  zeros(kernel, lanes), lanes));
    for (uint16_t i = 0; i < lanes; i++)
        even[i] = kernel_lane(kernel, both[2 * i / lanes], (uint32_t)(2 * i % lanes));
    build_store(&body, place->operand->memory, to, kernel_pack(kernel, even, lanes));
}

/* One run: outputs begin .. end-1 of a row, from `offset` of the panel on. */
static void copy_run(struct block *block, const struct place *place, expr begin, expr end, expr offset)
{
    struct tiler *t = place->t;
    struct exprs *pool = t->kernel->pool;
    const int64_t stride = place->p->stride;
    const bool gaps = !dim_equals_constant(t->product->dims, place->p->gap, 1);
    const uint16_t lanes = stride <= 2 && !gaps ? t->lanes : 1;
    struct block body;
    expr at;
    build_for(block, "at", index_constant(t, 0), index_sub(t, end, begin), index_constant(t, lanes),
              LOOP_SERIAL, &body, &at);
    const expr shift = build_declare(&body, "shift", index_mul(t, at, stride));
    const expr position = build_declare(&body, "position", index_add(t, place->position, shift));
    expr masks[2] = {0};
    if (lanes == 1) {
        const expr low = expr_binary(pool, EXPR_LESS_EQUAL, index_constant(t, 0), position);
        const expr high = expr_binary(pool, EXPR_LESS, position, place->width);
        masks[0] =
            build_declare(&body, "mask",
                          expr_binary(pool, EXPR_AND, place->inside, expr_binary(pool, EXPR_AND, low, high)));
    } else {
        for (int64_t i = 0; i < stride; i++)
            masks[i] = pixel_mask(&body, place->inside, place->width,
                                  index_add(t, position, index_constant(t, i * lanes)), lanes);
    }
    const expr moved = gaps ? index_scale(t, shift, kernel_dim(t->kernel, place->p->gap)) : shift;
    copy_channels(&body, place, index_add(t, offset, at),
                  build_declare(&body, "source", index_add(t, place->base, moved)), masks, lanes);
}

/* The load's indices with the axes as they are set; the tests of all but that along the row. */
static void locate(struct place *place, struct block *block)
{
    struct tiler *t = place->t;
    struct exprs *pool = t->kernel->pool;
    const struct expr_node load = *expr_at(t->product->definition.pool, place->p->side->load);
    const struct tensor_type *type = &t->product->definition.buffers.items[load.value].type;
    const uint32_t rank = (uint32_t)type->rank;
    expr indices[MAX_RANK];
    place->inside = expr_int(pool, DTYPE_BOOL, 1);
    for (uint32_t i = 0; i < rank; i++) {
        indices[i] = lower_expr(&t->lowering, load.arguments[i]);
        if (i == place->p->along)
            continue;
        const bool moves =
            load.op == EXPR_LOAD_OR &&
            !(place->p->has_channel && product_uses(t->product, load.arguments[i], place->p->channel.axis));
        if (!moves)
            continue;
        const expr limit = kernel_dim(t->kernel, type->dims[i]);
        indices[i] = build_declare(block, "index", indices[i]);
        place->inside = expr_binary(pool, EXPR_AND, place->inside,
                                    expr_binary(pool, EXPR_LESS_EQUAL, index_constant(t, 0), indices[i]));
        place->inside =
            expr_binary(pool, EXPR_AND, place->inside, expr_binary(pool, EXPR_LESS, indices[i], limit));
    }
    place->inside = build_declare(block, "inside", place->inside);
    place->width = kernel_dim(t->kernel, type->dims[place->p->along]);
    place->position = build_declare(block, "position", indices[place->p->along]);
    place->base = build_declare(block, "base", lower_index(&t->lowering, (uint32_t)load.value, indices));
}

static void copy_rows(struct block *block, struct place *place, expr start, expr end)
{
    struct tiler *t = place->t;
    struct exprs *pool = t->kernel->pool;
    const struct side *side = place->p->side;
    const expr length = expr_dim(pool, t->product->nest->extents[place->p->run]);
    const expr first = expr_binary(pool, EXPR_INDEX_DIV, start, length);
    expr last = expr_binary(pool, EXPR_INDEX_DIV, index_sub(t, end, index_constant(t, 1)), length);
    struct block body = *block;
    expr row = index_constant(t, 0);
    if (side->axis_count > 1) {
        last = index_add(t, last, index_constant(t, 1));
        build_for(block, "image_row", build_declare(block, "first", first),
                  build_declare(block, "last", last), 0, LOOP_SERIAL, &body, &row);
    }
    struct side rows = *side;
    rows.axis_count--;
    side_axes(&rows, t->product, pool, row, t->axes);
    for (uint32_t i = 0; i < rows.axis_count; i++)
        t->axes[rows.axes[i]] = build_declare(&body, "axis", t->axes[rows.axes[i]]);
    const expr row_start = build_declare(&body, "row_start", index_scale(t, row, length));
    const expr zero = index_constant(t, 0);
    expr begin = expr_binary(pool, EXPR_MAX, index_sub(t, start, row_start), zero);
    begin = build_declare(&body, "begin", begin);
    const expr stop = build_declare(&body, "stop", index_min(t, length, index_sub(t, end, row_start)));
    const expr offset = build_declare(&body, "offset", index_sub(t, index_add(t, row_start, begin), start));
    t->axes[place->p->run] = begin;
    locate(place, &body);
    copy_run(&body, place, begin, stop, offset);
}

static void pack_pixels(struct tiler *t, struct block *block, const struct operand *operand, expr first,
                        expr end)
{
    const struct pixels *p = &((const struct packing *)(const void *)t->packer)->pixels;
    struct exprs *pool = t->kernel->pool;
    struct place place = {.t = t, .p = p, .operand = operand};
    struct block tiles, body;
    expr tile;
    const int64_t channels = p->has_channel ? t->config->value[TILE_CHANNELS] : 1;
    build_for(block, "tile", first, end, 0, LOOP_SERIAL, &tiles, &tile);
    const int64_t panel = (int64_t)t->config->value[TILE_DEPTH] * operand->stride;
    place.panel = build_declare(&tiles, "panel", index_mul(t, index_sub(t, tile, first), panel));
    const expr start = build_declare(&tiles, "start", index_mul(t, tile, operand->width));
    expr stop = index_add(t, start, index_constant(t, operand->width));
    if (!dim_divisible(t->product->dims, operand->side->extent, operand->width))
        stop =
            build_declare(&tiles, "stop", index_min(t, stop, kernel_dim(t->kernel, operand->side->extent)));
    body = tiles;
    expr number = index_constant(t, 0);
    for (uint32_t i = 0; i < p->tap_count; i++) {
        const struct digit *tap = &p->taps[i];
        struct block inner;
        build_for(&body, "tap", index_constant(t, 0), expr_dim(pool, tap->extent), 0, LOOP_SERIAL, &inner,
                  &t->axes[tap->axis]);
        number = index_add(t, index_scale(t, number, expr_dim(pool, tap->extent)), t->axes[tap->axis]);
        body = inner;
    }
    place.tap = build_declare(&body, "tap", index_mul(t, number, channels));
    place.channel_growth = index_constant(t, 0);
    if (p->has_channel) {
        t->axes[p->channel.axis] = build_declare(&body, "channel", index_mul(t, t->depth_block, channels));
        place.channel_growth =
            kernel_dim(t->kernel, product_load_growth(t->product, p->side->load, p->channel.axis));
    }
    copy_rows(&body, &place, start, stop);
}

/* ---- the strategy
 * --------------------------------------------------------------------------------------------------- */

static bool conv_fits(const struct strategy_context *context, struct text *why)
{
    struct pixels pixels;
    if (!pixels_find(context, false, &pixels, why))
        return false;
    const struct expr_node load = *expr_at(pixels.product->definition.pool, pixels.side->load);
    if (load.op != EXPR_LOAD_OR && pixels.tap_points == 1 && pixels.stride == 1) {
        text_put(why, "the pixels are a plain matrix");
        return false;
    }
    if (!pixels.has_channel ||
        product_load_growth(pixels.product, pixels.side->load, pixels.channel.axis) != DIM_NONE)
        return true;
    text_put(why, "the channels do not lie evenly");
    return false;
}

static struct tile_sizes pixel_sizes(const struct strategy_context *context, const struct pixels *p)
{
    struct tile_sizes sizes = tile_sizes_of(p->product);
    /* Images of sizes that are not known are taken to be this large. */
    enum { USUAL_LENGTH = 28 };
    int64_t *pixels = p->product->swapped ? &sizes.rows : &sizes.columns;
    if ((p->product->swapped ? sizes.free_rows : sizes.free_columns) && *pixels < USUAL_LENGTH * USUAL_LENGTH)
        *pixels = USUAL_LENGTH * USUAL_LENGTH;
    int64_t channels = 1, length = dim_hint(p->product->dims, p->product->nest->extents[p->run]);
    int64_t known;
    if (length < USUAL_LENGTH &&
        !dim_is_constant(p->product->dims, p->product->nest->extents[p->run], &known))
        length = USUAL_LENGTH;
    if (p->has_channel)
        dim_is_constant(p->product->dims, p->channel.extent, &channels);
    sizes.channels = (uint32_t)channels;
    sizes.taps = (uint32_t)p->tap_points;
    const uint16_t lanes = tile_lanes(context->machine, p->product->accumulator);
    const double share = length >= lanes ? lanes : length < 1 ? 1 : (double)length;
    const bool gaps = !dim_equals_constant(p->product->dims, p->gap, 1);
    const double cost = gaps ? 2.5 : p->stride == 1 ? 4 / share : p->stride == 2 ? 7 / share : 2.5;
    if (p->product->swapped) {
        sizes.row_cost = cost * 1.3;
        sizes.direct = false;
    } else {
        sizes.column_cost = cost;
    }
    return sizes;
}

enum { MOST_CANDIDATES = 4 };

static uint32_t conv_candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    double cycles[MOST_CANDIDATES];
    uint32_t count = 0;
    struct text why;
    text_init(&why, context->arena);
    for (int swap = 0; swap < 2; swap++) {
        struct pixels pixels;
        if (!pixels_find(context, swap != 0, &pixels, &why))
            continue;
        const struct tile_sizes sizes = pixel_sizes(context, &pixels);
        count = tile_candidates(context, pixels.product, &sizes, out, cycles, count,
                                limit < MOST_CANDIDATES ? limit : MOST_CANDIDATES);
    }
    return count;
}

static double conv_cost(const struct strategy_context *context, const struct config *config)
{
    struct pixels pixels;
    struct text why;
    text_init(&why, context->arena);
    if (!pixels_find(context, config->value[TILE_SWAP] != 0, &pixels, &why))
        return HUGE_VAL;
    const struct tile_sizes sizes = pixel_sizes(context, &pixels);
    return tile_seconds(context, pixels.product, &sizes, config);
}

static bool conv_build(const struct strategy_context *context, const struct config *config,
                       struct lowered_group *out, struct text *why)
{
    struct packing *packing = arena_new(context->arena, struct packing);
    if (!pixels_find(context, config->value[TILE_SWAP] != 0, &packing->pixels, why))
        return false;
    packing->packer =
        (struct packer){.pack = pack_pixels,
                        .columns = config->value[TILE_SWAP] == 0,
                        .slack = tile_lanes(context->machine, packing->pixels.product->accumulator)};
    order_depth(&packing->pixels, config);
    return tile_build(context, packing->pixels.product, config, &packing->packer, out, why);
}

static void conv_retarget(const struct strategy_context *context, struct config *config)
{
    struct pixels pixels;
    struct text why;
    text_init(&why, context->arena);
    if (!pixels_find(context, config->value[TILE_SWAP] != 0, &pixels, &why))
        return;
    const struct tile_sizes sizes = pixel_sizes(context, &pixels);
    tile_retarget(context, pixels.product, &sizes, config);
}

const struct strategy cpu_conv = {
    .name = "cpu_conv",
    .fits = conv_fits,
    .candidates = conv_candidates,
    .cost = conv_cost,
    .build = conv_build,
    .describe = tile_describe,
    .retarget = conv_retarget,
    .from_level = 2,
};

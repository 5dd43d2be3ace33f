/* Convolutions of each channel with a kernel of its own, on a CPU: no product to speak of, so no panels. A
 * work item is one channel of one image. Blocks of a few output rows share the input rows that they load: for
 * each input row and tap column one vector of pixels, under a mask that is off outside the image, goes into
 * every accumulator that it belongs to. The last vector of a row overlaps the one before it, so that no row
 * ends in single elements. */
#include "codegen/strategy/cpu/lanes.h"
#include "codegen/strategy/cpu/pixels.h"
#include "codegen/strategy/cpu/strategies.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4, MOST_TAPS = 49 };
enum depthwise_number { DEPTHWISE_LANES };

struct depthwise {
    struct pixels pixels;
    const struct side *weights;
    const struct product *product;
    bool has_row; /* outputs have rows, which share inputs */
    uint32_t row; /* their axis */
    int64_t row_stride;
    struct digit row_tap, column_tap; /* extent DIM_NONE: none */
    int64_t row_taps, column_taps, row_step, column_step;

    const struct strategy_context *context;
    struct kernel *kernel;
    struct lowering lowering;
    uint32_t memories[MAX_BUFFERS];
    struct argument arguments[MAX_BUFFERS];
    expr axes[MAX_AXES], reduced[1];
    uint16_t lanes;
    uint32_t results; /* SCRATCH: ROWS vectors */
    expr weight[MOST_TAPS];
};

/* Which index of the load an axis moves, by how much; false: none, several, or unevenly. */
static bool axis_index(const struct depthwise *w, uint32_t axis, uint32_t *index, int64_t *growth)
{
    const struct expr_node load = *expr_at(w->product->definition.pool, w->pixels.side->load);
    const uint32_t rank = load.op == EXPR_LOAD_OR ? load.count - 1u : load.count;
    uint32_t found = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (!product_uses(w->product, load.arguments[i], axis))
            continue;
        const dim d = product_growth(w->product, load.arguments[i], axis);
        if (d == DIM_NONE || !dim_is_constant(w->product->dims, d, growth) || *growth < 1)
            return false;
        *index = i;
        found++;
    }
    return found == 1;
}

static bool find_taps(struct depthwise *w)
{
    const struct pixels *p = &w->pixels;
    uint32_t index, row_index = UINT32_MAX, last;
    int64_t growth;
    w->row_taps = w->column_taps = 1;
    w->row_step = w->column_step = 1;
    w->row_stride = 1;
    if (!axis_index(w, p->run, &last, &growth))
        return false;
    w->has_row = p->side->axis_count == 2;
    if (w->has_row) {
        w->row = p->side->axes[0];
        if (!axis_index(w, w->row, &row_index, &w->row_stride))
            return false;
    }
    for (uint32_t i = 0; i < p->tap_count; i++) {
        if (!axis_index(w, p->taps[i].axis, &index, &growth))
            return false;
        int64_t extent = 0;
        dim_is_constant(w->product->dims, p->taps[i].extent, &extent);
        if (index == last && !w->column_tap.extent) {
            w->column_tap = p->taps[i];
            w->column_taps = extent;
            w->column_step = growth;
        } else if (index == row_index && !w->row_tap.extent) {
            w->row_tap = p->taps[i];
            w->row_taps = extent;
            w->row_step = growth;
        } else {
            return false;
        }
    }
    return true;
}

static bool depthwise_find(const struct strategy_context *context, struct depthwise *w, struct text *why)
{
    memset(w, 0, sizeof *w);
    w->context = context;
    if (!pixels_find(context, false, &w->pixels, why))
        return false;
    w->product = w->pixels.product;
    w->weights = &w->product->rows;
    if (w->pixels.has_channel || w->weights->axis_count || w->pixels.tap_points > MOST_TAPS ||
        w->pixels.side->axis_count > 2) {
        text_put(why, "it is no small kernel over single channels");
        return false;
    }
    const struct expr_node load = *expr_at(w->product->definition.pool, w->pixels.side->load);
    if (w->pixels.along + 1 != (uint32_t)load.count - (load.op == EXPR_LOAD_OR)) {
        text_put(why, "the rows of the image do not lie along the last index");
        return false;
    }
    if (w->pixels.stride <= 2 && find_taps(w))
        return true;
    text_put(why, "its strides or taps are not even");
    return false;
}

static uint16_t choose_lanes(const struct depthwise *w)
{
    uint16_t lanes = (uint16_t)(w->context->machine->vector_bytes / 4);
    const int64_t length = dim_hint(w->product->dims, w->product->nest->extents[w->pixels.run]);
    while (lanes > 4 && lanes > length)
        lanes = (uint16_t)(lanes / 2);
    return lanes;
}

/* ---- building
 * ----------------------------------------------------------------------------------------------------- */

static expr number(const struct depthwise *w, int64_t value)
{
    return expr_index(w->kernel->pool, value);
}

static expr binary(const struct depthwise *w, enum expr_op op, expr a, expr b)
{
    return expr_binary(w->kernel->pool, op, a, b);
}

static void add_buffers(struct depthwise *w)
{
    const struct definition *d = &w->product->definition;
    bool *used = arena_new_array(w->context->arena, bool, d->buffers.count);
    product_mark_stores(w->product, used);
    product_mark_loads(w->product, w->weights->factor, used);
    product_mark_loads(w->product, w->pixels.side->factor, used);
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        const enum dtype dtype = d->buffers.items[i].type.dtype;
        w->memories[i] = UINT32_MAX;
        if (!used[i])
            continue;
        const struct kernel_memory memory = {.space = MEMORY_GLOBAL,
                                             .dtype = dtype,
                                             .label = d->buffers.items[i].role == BUFFER_INPUT ? "x" : "y",
                                             .alignment = dtype == DTYPE_BOOL ? 1 : dtype_bits(dtype) / 8};
        w->memories[i] = kernel_memory_add(w->kernel, &memory);
        w->arguments[w->memories[i]] = (struct argument){.kind = ARGUMENT_BUFFER, .index = i};
    }
    const struct kernel_memory results = {
        .space = MEMORY_SCRATCH, .dtype = DTYPE_F32, .count = (int64_t)ROWS * w->lanes, .label = "results"};
    w->results = kernel_memory_add(w->kernel, &results);
}

static void set_taps(struct depthwise *w, int64_t row, int64_t column)
{
    if (w->row_tap.extent)
        w->axes[w->row_tap.axis] = number(w, row);
    if (w->column_tap.extent)
        w->axes[w->column_tap.axis] = number(w, column);
}

static void declare_weights(struct depthwise *w, struct block *block)
{
    for (int64_t i = 0; i < w->row_taps * w->column_taps; i++) {
        set_taps(w, i / w->column_taps, i % w->column_taps);
        const expr value = lower_expr(&w->lowering, w->weights->factor);
        w->weight[i] = build_declare(block, "weight", kernel_broadcast(w->kernel, value, w->lanes));
    }
}

/* The pixels of one input row at one tap column, for outputs begin .. begin + lanes - 1. */
static expr load_pixels(struct depthwise *w, struct block *block, expr base, const expr *masks)
{
    struct kernel *kernel = w->kernel;
    const uint32_t memory = w->memories[w->pixels.side->buffer];
    const expr zeros = kernel_broadcast(kernel, expr_float(kernel->pool, DTYPE_F32, 0), w->lanes);
    kernel->memories.items[memory].read = true;
    expr vectors[2], even[64];
    for (int i = 0; i < w->pixels.stride; i++) {
        const expr index = binary(w, EXPR_ADD, base, number(w, i * w->lanes));
        vectors[i] = build_declare(block, "pixels",
                                   kernel_element_or(kernel, memory, masks[i], index, zeros, w->lanes));
    }
    if (w->pixels.stride == 1)
        return vectors[0];
    for (uint16_t i = 0; i < w->lanes; i++)
        even[i] = kernel_lane(kernel, vectors[2 * i / w->lanes], (uint32_t)(2 * i % w->lanes));
    return build_declare(block, "pixels", kernel_pack(kernel, even, w->lanes));
}

struct window {
    expr first_row, begin; /* of the outputs */
    uint32_t sums[ROWS];
    uint32_t rows;
    expr masks[MOST_TAPS][2];
    expr width;
};

static void window_masks(struct depthwise *w, struct block *block, struct window *window)
{
    const struct expr_node load = *expr_at(w->product->definition.pool, w->pixels.side->load);
    const struct tensor_type *type = &w->product->definition.buffers.items[load.value].type;
    const expr yes = expr_int(w->kernel->pool, DTYPE_BOOL, 1);
    window->width = kernel_dim(w->kernel, type->dims[type->rank - 1]);
    for (int64_t column = 0; column < w->column_taps; column++) {
        set_taps(w, 0, column);
        const expr at = lower_expr(&w->lowering, load.arguments[type->rank - 1]);
        for (int i = 0; i < w->pixels.stride; i++)
            window->masks[column][i] = pixel_mask(block, yes, window->width,
                                                  binary(w, EXPR_ADD, at, number(w, i * w->lanes)), w->lanes);
    }
}

/* One input row: all outputs of the window that it belongs to. */
static void add_row(struct depthwise *w, struct block *block, const struct window *window, int64_t input_row)
{
    struct kernel *kernel = w->kernel;
    struct exprs *pool = kernel->pool;
    const struct expr_node load = *expr_at(w->product->definition.pool, w->pixels.side->load);
    const struct tensor_type *type = &w->product->definition.buffers.items[load.value].type;
    int64_t some_row = -1, some_tap = 0;
    for (int64_t row = 0; row < window->rows; row++)
        for (int64_t tap = 0; tap < w->row_taps; tap++)
            if (row * w->row_stride + tap * w->row_step == input_row) {
                some_row = row;
                some_tap = tap;
            }
    if (some_row < 0)
        return;
    if (w->has_row)
        w->axes[w->row] = binary(w, EXPR_ADD, window->first_row, number(w, some_row));
    set_taps(w, some_tap, 0);
    expr indices[MAX_RANK], inside = expr_int(pool, DTYPE_BOOL, 1);
    for (int i = 0; i < type->rank; i++)
        indices[i] = lower_expr(&w->lowering, load.arguments[i]);
    /* Rows behind the last output are computed in vain: they are tested even where the image needs no
     * padding. */
    for (int i = 0; i + 1 < type->rank; i++) {
        const bool moves = w->has_row && product_uses(w->product, load.arguments[i], w->row);
        if (!moves && load.op != EXPR_LOAD_OR)
            continue;
        indices[i] = build_declare(block, "index", indices[i]);
        inside = binary(w, EXPR_AND, inside, binary(w, EXPR_LESS_EQUAL, number(w, 0), indices[i]));
        inside =
            binary(w, EXPR_AND, inside, binary(w, EXPR_LESS, indices[i], kernel_dim(kernel, type->dims[i])));
    }
    struct block then;
    build_if(block, inside, &then, NULL);
    const expr base = build_declare(&then, "base", lower_index(&w->lowering, (uint32_t)load.value, indices));
    for (int64_t column = 0; column < w->column_taps; column++) {
        const expr pixels = load_pixels(
            w, &then, binary(w, EXPR_ADD, base, number(w, column * w->column_step)), window->masks[column]);
        for (uint32_t row = 0; row < window->rows; row++)
            for (int64_t tap = 0; tap < w->row_taps; tap++) {
                if (row * w->row_stride + tap * w->row_step != input_row)
                    continue;
                const expr arguments[] = {pixels, w->weight[tap * w->column_taps + column],
                                          kernel_variable(kernel, window->sums[row])};
                const struct expr_node node = {.op = EXPR_FMA,
                                               .dtype = DTYPE_F32,
                                               .lanes = w->lanes,
                                               .count = 3,
                                               .arguments = arguments};
                build_assign(&then, window->sums[row], expr_make(pool, &node));
            }
    }
}

static expr result(const struct depthwise *w, expr row, expr column)
{
    const expr index = binary(w, EXPR_ADD, binary(w, EXPR_MUL, row, number(w, w->lanes)), column);
    return kernel_element(w->kernel, w->results, index, 1);
}

static void store_window(struct depthwise *w, struct block *block, const struct window *window, expr length,
                         expr rows_left)
{
    struct kernel *kernel = w->kernel;
    struct block body, whole, edge, single;
    expr row = number(w, 0), i;
    for (uint32_t r = 0; r < window->rows; r++)
        build_store(block, w->results, number(w, (int64_t)r * w->lanes),
                    kernel_variable(kernel, window->sums[r]));
    body = *block;
    if (w->has_row) {
        build_for(block, "row", number(w, 0), rows_left, 0, LOOP_SERIAL, &body, &row);
        w->axes[w->row] = build_declare(&body, "output_row", binary(w, EXPR_ADD, window->first_row, row));
    }
    const expr lane = lane_axis(kernel, w->lanes), lanes = number(w, w->lanes);
    const expr fits = binary(w, EXPR_LESS_EQUAL, lanes, length);
    int64_t known;
    whole = body;
    const bool decided = expr_constant_int(kernel->pool, fits, &known);
    if (!decided)
        build_if(&body, fits, &whole, &edge);
    else
        edge = body;
    if (!decided || known) {
        w->axes[w->pixels.run] = binary(w, EXPR_ADD, window->begin, lane);
        w->reduced[0] = result(w, row, lane);
        lane_store_nest(&whole, &w->lowering, w->product->nest, w->lanes);
    }
    if (decided && known)
        return;
    build_for(&edge, "i", number(w, 0), length, 0, LOOP_SERIAL, &single, &i);
    w->axes[w->pixels.run] = i;
    w->reduced[0] = result(w, row, i);
    lane_store_nest(&single, &w->lowering, w->product->nest, 1);
}

static void build_windows(struct depthwise *w, struct block *block)
{
    struct exprs *pool = w->kernel->pool;
    const struct nest *nest = w->product->nest;
    const expr length = kernel_dim(w->kernel, nest->extents[w->pixels.run]);
    struct window window = {.rows = w->has_row ? ROWS : 1, .first_row = number(w, 0)};
    struct block rows = *block, columns;
    expr at, rows_left = number(w, 1);
    if (w->has_row) {
        const expr height = kernel_dim(w->kernel, nest->extents[w->row]);
        build_for(block, "first_row", number(w, 0), height, number(w, ROWS), LOOP_SERIAL, &rows,
                  &window.first_row);
        rows_left = build_declare(
            &rows, "rows",
            binary(w, EXPR_MIN, number(w, ROWS), binary(w, EXPR_SUB, height, window.first_row)));
        w->axes[w->row] = window.first_row;
    }
    build_for(&rows, "at", number(w, 0), length, number(w, w->lanes), LOOP_SERIAL, &columns, &at);
    const expr last = binary(w, EXPR_MAX, binary(w, EXPR_SUB, length, number(w, w->lanes)), number(w, 0));
    window.begin = build_declare(&columns, "begin", binary(w, EXPR_MIN, at, last));
    w->axes[w->pixels.run] = window.begin;
    window_masks(w, &columns, &window);
    const expr zeros = kernel_broadcast(w->kernel, expr_float(pool, DTYPE_F32, 0), w->lanes);
    for (uint32_t i = 0; i < window.rows; i++)
        window.sums[i] = build_mutable(&columns, "sum", zeros);
    const int64_t inputs = ((int64_t)window.rows - 1) * w->row_stride + (w->row_taps - 1) * w->row_step + 1;
    for (int64_t i = 0; i < inputs; i++)
        add_row(w, &columns, &window, i);
    store_window(w, &columns, &window, length, rows_left);
}

static bool depthwise_build(const struct strategy_context *context, const struct config *config,
                            struct lowered_group *out, struct text *why)
{
    struct depthwise *w = arena_new(context->arena, struct depthwise);
    if (!depthwise_find(context, w, why))
        return false;
    w->lanes = (uint16_t)config->value[DEPTHWISE_LANES];
    w->kernel = kernel_new(context->arena, w->product->dims);
    struct exprs *pool = w->kernel->pool;
    for (uint32_t i = 0; i < MAX_AXES; i++)
        w->axes[i] = number(w, 0);
    add_buffers(w);
    w->lowering = (struct lowering){.kernel = w->kernel,
                                    .definition = &w->product->definition,
                                    .memories = w->memories,
                                    .axes = w->axes,
                                    .reduced = w->reduced};
    struct block top = {.kernel = w->kernel, .at = &w->kernel->body}, block;
    expr outer;
    build_for(&top, "item", number(w, 0), kernel_dim(w->kernel, w->product->outer_extent), 0, LOOP_PARALLEL,
              &block, &outer);
    for (uint32_t i = w->product->outer_count; i-- > 0;) {
        const uint32_t axis = w->product->outer[i];
        const expr extent = kernel_dim(w->kernel, w->product->nest->extents[axis]);
        w->axes[axis] =
            build_declare(&block, "outer_axis", i ? binary(w, EXPR_INDEX_MOD, outer, extent) : outer);
        outer = i ? expr_binary(pool, EXPR_INDEX_DIV, outer, extent) : outer;
    }
    declare_weights(w, &block);
    build_windows(w, &block);
    const dim points = dim_mul(w->product->dims, w->product->outer_extent, w->pixels.side->extent);
    const dim operations =
        dim_mul(w->product->dims, points, dim_constant(w->product->dims, 2 * w->pixels.tap_points));
    w->kernel->operations = operations ? operations : dim_constant(w->product->dims, INT64_MAX >> 16);
    w->kernel->bytes = product_bytes(w->product);
    w->kernel->config = arena_printf(context->arena, "lanes=%u, rows=%u", (unsigned)w->lanes, (unsigned)ROWS);
    w->kernel->location = context->group->location;
    const struct kernel_launch launch = {
        .kernel = w->kernel,
        .arguments =
            arena_copy(context->arena, w->arguments, w->kernel->global_count * sizeof *w->arguments)};
    vec_push(context->arena, &out->launches, launch);
    return true;
}

/* ---- the strategy
 * --------------------------------------------------------------------------------------------------- */

static bool depthwise_fits(const struct strategy_context *context, struct text *why)
{
    struct depthwise w;
    return depthwise_find(context, &w, why);
}

static uint32_t depthwise_candidates(const struct strategy_context *context, struct config *out,
                                     uint32_t limit)
{
    struct depthwise w;
    struct text why;
    text_init(&why, context->arena);
    if (limit == 0 || !depthwise_find(context, &w, &why))
        return 0;
    out[0] = (struct config){{0}};
    out[0].value[DEPTHWISE_LANES] = choose_lanes(&w);
    return 1;
}

static void depthwise_retarget(const struct strategy_context *context, struct config *config)
{
    depthwise_candidates(context, config, 1);
}

static double depthwise_cost(const struct strategy_context *context, const struct config *config)
{
    struct depthwise w;
    struct text why;
    text_init(&why, context->arena);
    if (!depthwise_find(context, &w, &why))
        return HUGE_VAL;
    const double lanes = config->value[DEPTHWISE_LANES];
    const double points = (double)dim_hint(w.product->dims, w.product->outer_extent) *
                          (double)dim_hint(w.product->dims, w.pixels.side->extent);
    const double taps = (double)w.pixels.tap_points;
    return points / lanes * (taps * (w.pixels.stride == 1 ? 1.5 : 3) + 12) / 3.3e9 / 2;
}

static void depthwise_describe(const struct config *config, struct text *out)
{
    text_printf(out, "lanes=%d, rows=%d", (int)config->value[DEPTHWISE_LANES], (int)ROWS);
}

const struct strategy cpu_depthwise = {
    .name = "cpu_depthwise",
    .fits = depthwise_fits,
    .candidates = depthwise_candidates,
    .cost = depthwise_cost,
    .build = depthwise_build,
    .describe = depthwise_describe,
    .retarget = depthwise_retarget,
    .from_level = 2,
};

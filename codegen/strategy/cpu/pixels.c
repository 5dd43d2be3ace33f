/* The pixels of a convolution (pixels.h): plain f32 loads, 0 outside the image, one index of which moves with
 * the innermost axis of the outputs; reduced axes are told apart into taps, which shift a position, and
 * channels. */
#include "codegen/strategy/cpu/pixels.h"

#include <string.h>

static bool index_uses_pixels(const struct product *product, const struct side *side, expr index)
{
    for (uint32_t i = 0; i < side->axis_count; i++)
        if (product_uses(product, index, side->axes[i]))
            return true;
    return false;
}

/* The index stays within its dim at every point. */
static bool stays_inside(const struct product *product, expr index, dim size)
{
    const struct exprs *pool = product->definition.pool;
    const struct expr_node *node = expr_at(pool, index);
    int64_t low, high, most;
    if (node->op == EXPR_AXIS)
        return dim_equal(product->dims, node->extent, size) == 1;
    return expr_index_range(pool, index, &low, &high) && low >= 0 &&
           dim_is_constant(product->dims, size, &most) && high < most;
}

/* A reduced axis that shifts a pixel's position, or leads out of the buffer, is a tap; another one is a
 * channel. */
static bool is_tap(const struct pixels *p, uint32_t axis)
{
    const struct expr_node load = *expr_at(p->product->definition.pool, p->side->load);
    const struct tensor_type *type = &p->product->definition.buffers.items[load.value].type;
    const uint32_t rank = load.op == EXPR_LOAD_OR ? load.count - 1u : load.count;
    for (uint32_t i = 0; i < rank; i++)
        if (product_uses(p->product, load.arguments[i], axis) &&
            (index_uses_pixels(p->product, p->side, load.arguments[i]) ||
             (load.op == EXPR_LOAD_OR && !stays_inside(p->product, load.arguments[i], type->dims[i]))))
            return true;
    return false;
}

static bool sort_digits(struct pixels *p, struct text *why)
{
    const struct product *product = p->product;
    int64_t extent;
    p->tap_points = 1;
    for (uint32_t i = 0; i < product->digit_count; i++) {
        const struct digit digit = product->digits[i];
        if (!dim_is_constant(product->dims, digit.extent, &extent) || extent < 1) {
            text_put(why, "the size of the kernel or the number of channels is not known");
            return false;
        }
        if (!p->has_channel && !is_tap(p, digit.axis)) {
            p->has_channel = true;
            p->channel = digit;
            continue;
        }
        p->taps[p->tap_count++] = digit;
        p->tap_points *= extent;
    }
    if (p->tap_points <= 512)
        return true;
    text_put(why, "the kernel has too many taps");
    return false;
}

/* One index alone moves with the run, by a constant. */
static bool check_indices(struct pixels *p, struct text *why)
{
    const struct product *product = p->product;
    const struct expr_node load = *expr_at(product->definition.pool, p->side->load);
    const uint32_t rank = load.op == EXPR_LOAD_OR ? load.count - 1u : load.count;
    double zero = 1;
    if (p->side->factor != p->side->load || load.dtype != product->accumulator || load.dtype != DTYPE_F32 ||
        rank == 0 || p->side->axis_count == 0) {
        text_put(why, "the pixels are not plain f32 loads");
        return false;
    }
    if (load.op == EXPR_LOAD_OR &&
        (!expr_constant_float(product->definition.pool, load.arguments[rank], &zero) || zero != 0)) {
        text_put(why, "the pixels outside the image are not 0");
        return false;
    }
    p->run = p->side->axes[p->side->axis_count - 1];
    bool fine = true;
    uint32_t moving = 0;
    for (uint32_t i = 0; i < rank; i++) {
        const dim growth = product_growth(product, load.arguments[i], p->run);
        if (growth != DIM_NONE && dim_equals_constant(product->dims, growth, 0))
            continue;
        fine = fine && growth != DIM_NONE && dim_is_constant(product->dims, growth, &p->stride) &&
               p->stride >= 1;
        p->along = i;
        moving++;
    }
    fine = fine && moving == 1;
    for (uint32_t i = 0; fine && i + 1 < p->side->axis_count; i++)
        fine = !product_uses(product, load.arguments[p->along], p->side->axes[i]);
    p->gap = dim_constant(product->dims, 1);
    const struct tensor_type *type = &product->definition.buffers.items[load.value].type;
    for (uint32_t i = p->along + 1; fine && i < rank; i++)
        p->gap = dim_mul(product->dims, p->gap, type->dims[i]);
    if (fine && p->gap != DIM_NONE)
        return true;
    text_put(why, "the rows of the image do not lie along one index");
    return false;
}

bool pixels_find(const struct strategy_context *context, bool swap, struct pixels *p, struct text *why)
{
    memset(p, 0, sizeof *p);
    p->product = arena_new(context->arena, struct product);
    if (!product_find(context, swap, p->product, why))
        return false;
    p->side = swap ? &p->product->rows : &p->product->columns;
    if (p->side->constant) {
        text_put(why, "the pixels are constant");
        return false;
    }
    return check_indices(p, why) && sort_digits(p, why);
}

/* Lanes whose position is in the image, counted from the position of lane 0, `step` apart. */
expr pixel_mask(struct block *block, expr inside, expr width, expr position, uint16_t lanes)
{
    struct kernel *kernel = block->kernel;
    struct exprs *pool = kernel->pool;
    const expr far = expr_index(pool, 4096), near = expr_index(pool, -4096);
    expr low = expr_binary(pool, EXPR_SUB, expr_index(pool, 0), position);
    expr high = expr_binary(pool, EXPR_SUB, width, position);
    high = expr_select(pool, inside, high, near);
    low = expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_MAX, low, near), far);
    high = expr_binary(pool, EXPR_MIN, expr_binary(pool, EXPR_MAX, high, near), far);
    expr numbers[64];
    for (uint16_t i = 0; i < lanes; i++)
        numbers[i] = expr_int(pool, DTYPE_I32, i);
    const expr lane = kernel_pack(kernel, numbers, lanes);
    const expr bounds[] = {
        kernel_broadcast(kernel, build_declare(block, "low", expr_convert(pool, DTYPE_I32, low)), lanes),
        kernel_broadcast(kernel, build_declare(block, "high", expr_convert(pool, DTYPE_I32, high)), lanes)};
    const expr pairs[2][2] = {{bounds[0], lane}, {lane, bounds[1]}};
    expr tests[2];
    for (int i = 0; i < 2; i++) {
        const struct expr_node node = {.op = i ? EXPR_LESS : EXPR_LESS_EQUAL,
                                       .dtype = DTYPE_BOOL,
                                       .lanes = lanes,
                                       .count = 2,
                                       .arguments = pairs[i]};
        tests[i] = expr_make(pool, &node);
    }
    const struct expr_node both = {
        .op = EXPR_AND, .dtype = DTYPE_BOOL, .lanes = lanes, .count = 2, .arguments = tests};
    return build_declare(block, "mask", expr_make(pool, &both));
}

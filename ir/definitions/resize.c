/* Resize: y[o] = x sampled at the coordinates that coordinate_transformation_mode gives to o, axis by axis.
 *
 *   half_pixel            (o + 1/2) / s - 1/2                   asymmetric            o / s
 *   pytorch_half_pixel    the same, 0 where y has one element   align_corners         o (n - 1) / (m - 1)
 *   half_pixel_symmetric  the same about the middle             tf_half_pixel_for_nn  (o + 1/2) / s
 *
 * n, m: sizes of x and y; s: the scale that was given, else m / n. Coordinates are f32. Modes:
 *   nearest  the element that nearest_mode rounds to, held inside x; whole scales need no floats
 *   linear   between the two neighbours of each resized axis, the edge repeated
 *   cubic    four neighbours of each resized axis with coefficient cubic_coeff_a; exclude_outside drops those
 * outside
 *
 * Axes that keep their size at scale 1 are not resampled. */
#include "ir/definitions/build.h"

#include <math.h>
#include <string.h>

enum { MAX_LINEAR_AXES = 4, MAX_CUBIC_AXES = 2 };

struct taps { /* of one axis */
    uint32_t count;
    expr positions[4], weights[4];
};

struct resize {
    struct build *b;
    const char *coordinates;
    const struct attribute *scales;
    uint32_t axis[MAX_RANK], count; /* axes that are resampled */
    struct taps taps[MAX_RANK];
    expr indices[MAX_RANK];
};

static expr real(struct resize *r, double value)
{
    return number(r->b, DTYPE_F32, value);
}

static double given_scale(const struct resize *r, uint32_t axis)
{
    return r->scales ? r->scales->numbers[axis] : 0;
}

/* An axis's dim as f32. */
static expr input_size(struct resize *r, uint32_t axis)
{
    return size_as(r->b, DTYPE_F32, build_input(r->b, 0)->dims[axis]);
}

static expr output_size(struct resize *r, uint32_t axis)
{
    return size_as(r->b, DTYPE_F32, build_output(r->b, 0)->dims[axis]);
}

static expr scale_of(struct resize *r, uint32_t axis)
{
    if (r->scales)
        return real(r, given_scale(r, axis));
    return divide(r->b, output_size(r, axis), input_size(r, axis));
}

static expr transformed(struct resize *r, uint32_t axis, expr o)
{
    struct build *b = r->b;
    expr at = convert(b, DTYPE_F32, o), half = real(r, 0.5), one = position(b, 1);
    expr length = size(b, build_output(b, 0)->dims[axis]);
    expr half_pixel = sub(b, divide(b, add(b, at, half), scale_of(r, axis)), half);
    if (strcmp(r->coordinates, "asymmetric") == 0)
        return divide(b, at, scale_of(r, axis));
    if (strcmp(r->coordinates, "align_corners") == 0) {
        expr last = sub(b, input_size(r, axis), real(r, 1));
        expr result_last = convert(b, DTYPE_F32, maximum(b, sub(b, length, one), one));
        return divide(b, mul(b, at, last), result_last);
    }
    if (strcmp(r->coordinates, "pytorch_half_pixel") == 0)
        return choose(b, less(b, one, length), half_pixel, real(r, 0));
    if (strcmp(r->coordinates, "tf_half_pixel_for_nn") == 0)
        return divide(b, add(b, at, half), scale_of(r, axis));
    if (strcmp(r->coordinates, "half_pixel_symmetric") == 0) {
        expr exact = mul(b, scale_of(r, axis), input_size(r, axis));
        expr adjustment = divide(b, output_size(r, axis), exact);
        expr middle = divide(b, input_size(r, axis), real(r, 2));
        return add(b, mul(b, middle, sub(b, real(r, 1), adjustment)), half_pixel);
    }
    return half_pixel;
}

/* The coordinate in x of position `o` (i64) of y; o itself where the sizes turn out to be the same. */
static expr coordinate(struct resize *r, uint32_t axis, expr o)
{
    struct build *b = r->b;
    expr x = transformed(r, axis, o);
    if (r->scales)
        return x;
    expr same = equal(b, size(b, build_input(b, 0)->dims[axis]), size(b, build_output(b, 0)->dims[axis]));
    return choose(b, same, convert(b, DTYPE_F32, o), x);
}

/* A whole, constant factor from x's size to y's; 0: there is none. */
static int64_t whole_scale(struct resize *r, uint32_t axis)
{
    const dim from = build_input(r->b, 0)->dims[axis], to = build_output(r->b, 0)->dims[axis];
    int64_t factor = 0, sizes[2];
    if (r->scales) {
        const double scale = given_scale(r, axis);
        factor = scale >= 1 && scale <= 1024 && scale == floor(scale) ? (int64_t)scale : 0;
    } else if (dim_is_constant(r->b->dims, from, &sizes[0]) && dim_is_constant(r->b->dims, to, &sizes[1])) {
        factor = sizes[0] > 0 && sizes[1] % sizes[0] == 0 ? sizes[1] / sizes[0] : 0;
    }
    return factor &&
                   dim_equal(r->b->dims, dim_mul(r->b->dims, from, dim_constant(r->b->dims, factor)), to) == 1
               ? factor
               : 0;
}

/* At a whole scale these coordinates lie in [q, q + 1) (floor) or within half of q (rounding), q = o / scale.
 */
static bool rounds_to_quotient(const struct resize *r, const char *rounding)
{
    if (strcmp(rounding, "floor") == 0)
        return strcmp(r->coordinates, "asymmetric") == 0 ||
               strcmp(r->coordinates, "tf_half_pixel_for_nn") == 0;
    return strncmp(rounding, "round_prefer", 12) == 0 &&
           (strcmp(r->coordinates, "half_pixel") == 0 || strcmp(r->coordinates, "half_pixel_symmetric") == 0);
}

static expr nearest_position(struct resize *r, uint32_t axis, expr o)
{
    struct build *b = r->b;
    const char *rounding = node_word(b->node, ATTR_nearest_mode, "round_prefer_floor");
    const int64_t factor = whole_scale(r, axis);
    if (factor && rounds_to_quotient(r, rounding))
        return index_div(b, o, position(b, factor));
    expr x = coordinate(r, axis, o), rounded;
    if (strcmp(rounding, "floor") == 0)
        rounded = function(b, EXPR_FLOOR, x);
    else if (strcmp(rounding, "ceil") == 0)
        rounded = function(b, EXPR_CEIL, x);
    else if (strcmp(rounding, "round_prefer_ceil") == 0)
        rounded = function(b, EXPR_FLOOR, add(b, x, real(r, 0.5)));
    else
        rounded = function(b, EXPR_CEIL, sub(b, x, real(r, 0.5)));
    return clamp_position(b, convert(b, DTYPE_I64, rounded), build_input(b, 0)->dims[axis]);
}

/* Cubic convolution at distances 1 + t, t, 1 - t, 2 - t. */
static void cubic_weights(struct resize *r, expr t, expr *weights)
{
    struct build *b = r->b;
    const double a = node_float(b->node, ATTR_cubic_coeff_a, -0.75);
    for (uint32_t i = 0; i < 4; i++) {
        expr distance = i < 2 ? add(b, t, real(r, 1 - (double)i)) : sub(b, real(r, (double)i - 1), t);
        expr square = mul(b, distance, distance);
        if (i == 1 || i == 2) /* ((a + 2) d - (a + 3)) d^2 + 1 */
            weights[i] =
                add(b, mul(b, sub(b, mul(b, real(r, a + 2), distance), real(r, a + 3)), square), real(r, 1));
        else /* a (((d - 5) d + 8) d - 4) */
            weights[i] =
                mul(b, real(r, a),
                    sub(b, add(b, mul(b, sub(b, distance, real(r, 5)), square), mul(b, real(r, 8), distance)),
                        real(r, 4)));
    }
}

/* Weights of positions outside x become 0 and the others sum up to 1. */
static void exclude_outside(struct resize *r, uint32_t axis, const expr *places, struct taps *taps)
{
    struct build *b = r->b;
    expr length = size(b, build_input(b, 0)->dims[axis]), sum = real(r, 0);
    for (uint32_t i = 0; i < taps->count; i++) {
        expr inside =
            expr_binary(b->pool, EXPR_AND, expr_binary(b->pool, EXPR_LESS_EQUAL, position(b, 0), places[i]),
                        less(b, places[i], length));
        taps->weights[i] = choose(b, inside, taps->weights[i], real(r, 0));
        sum = add(b, sum, taps->weights[i]);
    }
    for (uint32_t i = 0; i < taps->count; i++)
        taps->weights[i] = divide(b, taps->weights[i], sum);
}

static void find_taps(struct resize *r, uint32_t axis, expr o, bool cubic, struct taps *taps)
{
    struct build *b = r->b;
    expr x = coordinate(r, axis, o), below = function(b, EXPR_FLOOR, x);
    expr t = sub(b, x, below), first = convert(b, DTYPE_I64, below), places[4];
    taps->count = cubic ? 4 : 2;
    for (uint32_t i = 0; i < taps->count; i++) {
        places[i] = add(b, first, position(b, cubic ? (int64_t)i - 1 : (int64_t)i));
        taps->positions[i] = clamp_position(b, places[i], build_input(b, 0)->dims[axis]);
    }
    if (!cubic) {
        taps->weights[0] = sub(b, real(r, 1), t);
        taps->weights[1] = t;
        return;
    }
    cubic_weights(r, t, taps->weights);
    if (node_int(b->node, ATTR_exclude_outside, 0))
        exclude_outside(r, axis, places, taps);
}

/* Sizes that were given may make elements of an empty x: those are 0. Scales keep it empty. */
static expr load_element(struct resize *r)
{
    struct build *b = r->b;
    bool outside = false;
    for (uint32_t i = 0; i < r->count && !r->scales; i++)
        outside = outside || may_be_empty(b, build_input(b, 0)->dims[r->axis[i]]);
    return outside ? load_stored_or(b, 0, r->indices, number(b, build_input(b, 0)->dtype, 0))
                   : load_stored(b, 0, r->indices);
}

/* The weighted sum over the taps of the resampled axes from `which` on; at most four of them. */
static expr sample(struct resize *r, uint32_t which)
{
    struct build *b = r->b;
    if (which == r->count)
        return convert(b, DTYPE_F32, load_element(r));
    const struct taps *taps = &r->taps[which];
    expr sum = 0;
    for (uint32_t i = 0; i < taps->count; i++) {
        r->indices[r->axis[which]] = taps->positions[i];
        expr term = mul(b, sample(r, which + 1), taps->weights[i]);
        sum = i ? add(b, sum, term) : term;
    }
    return sum;
}

static bool read_resize(struct build *b, struct resize *r)
{
    static const char *const known[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                        "align_corners", "asymmetric",           "tf_half_pixel_for_nn"};
    const struct tensor_type *from = build_input(b, 0), *to = build_output(b, 0);
    const uint32_t rank = (uint32_t)from->rank;
    if (node_int(b->node, ATTR_antialias, 0))
        return build_refuse(b, "antialias is not implemented");
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found || strcmp(r->coordinates, known[i]) == 0;
    if (!found)
        return build_refuse(b, "coordinate_transformation_mode \"%s\" is not implemented", r->coordinates);
    if (r->scales && r->scales->count != rank)
        return build_refuse(b, "scales must name one factor for every axis");
    for (uint32_t i = 0; i < rank; i++) {
        if (r->scales && !(given_scale(r, i) > 0))
            return build_refuse(b, "a scale is not positive");
        if (r->scales ? given_scale(r, i) != 1 : dim_equal(b->dims, from->dims[i], to->dims[i]) != 1)
            r->axis[r->count++] = i;
    }
    return true;
}

bool define_resize(struct build *b)
{
    const char *mode = node_word(b->node, ATTR_mode, "nearest");
    struct resize r = {
        .b = b,
        .coordinates = node_word(b->node, ATTR_coordinate_transformation_mode, "half_pixel"),
        .scales = node_attribute(b->node, ATTR_scales),
    };
    if (!read_resize(b, &r))
        return false;
    const bool nearest = strcmp(mode, "nearest") == 0, cubic = strcmp(mode, "cubic") == 0;
    if (!nearest && !cubic && strcmp(mode, "linear") != 0)
        return build_refuse(b, "mode \"%s\" is not implemented", mode);
    if (!nearest && r.count > (cubic ? MAX_CUBIC_AXES : MAX_LINEAR_AXES))
        return build_refuse(b, "mode \"%s\" over %u axes is not implemented", mode, (unsigned)r.count);
    const enum dtype dtype = build_input(b, 0)->dtype;
    if (!nearest && (dtype == DTYPE_F64 || dtype == DTYPE_BOOL))
        return build_refuse(b, "mode \"%s\" is not implemented for elements of type %s", mode,
                            dtype_name(dtype));
    struct nest *nest = nest_over(b, build_output(b, 0));
    nest_axes(b, nest, nest->rank, r.indices);
    for (uint32_t i = 0; i < r.count; i++) {
        const uint32_t axis = r.axis[i];
        if (nearest)
            r.indices[axis] = nearest_position(&r, axis, r.indices[axis]);
        else
            find_taps(&r, axis, r.indices[axis], cubic, &r.taps[i]);
    }
    store_output(b, nest, 0, NULL, nearest ? load_element(&r) : sample(&r, 0));
    return true;
}

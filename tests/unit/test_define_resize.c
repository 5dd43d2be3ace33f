/* Resize against its specification in double: one axis after another by the coordinate formulas, with weights
 * spelled out. */
#include "tests/unit/definition_support.h"

struct setting {
    const char *mode, *coordinates, *rounding;
    bool exclude;
};

static double coordinate(const struct setting *s, double o, double from, double to, double scale)
{
    if (strcmp(s->coordinates, "asymmetric") == 0)
        return o / scale;
    if (strcmp(s->coordinates, "align_corners") == 0)
        return to > 1 ? o * (from - 1) / (to - 1) : 0;
    if (strcmp(s->coordinates, "tf_half_pixel_for_nn") == 0)
        return (o + 0.5) / scale;
    if (strcmp(s->coordinates, "pytorch_half_pixel") == 0 && to <= 1)
        return 0;
    const double x = (o + 0.5) / scale - 0.5;
    if (strcmp(s->coordinates, "half_pixel_symmetric") == 0)
        return from / 2 * (1 - to / (scale * from)) + x;
    return x;
}

static int64_t hold(double at, int64_t size)
{
    return at < 0 ? 0 : at > (double)(size - 1) ? size - 1 : (int64_t)at;
}

static double cubic_weight(double distance)
{
    const double a = -0.75, d = fabs(distance);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* Weight of each element of x for one element of y along one axis. */
static void axis_weights(const struct setting *s, double x, int64_t size, double *weights)
{
    for (int64_t i = 0; i < size; i++)
        weights[i] = 0;
    const double low = floor(x);
    if (strcmp(s->mode, "nearest") == 0) {
        const double rounded = strcmp(s->rounding, "floor") == 0               ? low
                               : strcmp(s->rounding, "ceil") == 0              ? ceil(x)
                               : strcmp(s->rounding, "round_prefer_ceil") == 0 ? floor(x + 0.5)
                                                                               : ceil(x - 0.5);
        weights[hold(rounded, size)] = 1;
        return;
    }
    const bool cubic = strcmp(s->mode, "cubic") == 0;
    double sum = 0;
    for (int i = cubic ? -1 : 0; i < (cubic ? 3 : 2); i++) {
        const double place = low + i, t = fabs(x - place), weight = cubic ? cubic_weight(t) : 1 - t;
        if (s->exclude && (place < 0 || place >= (double)size))
            continue;
        weights[hold(place, size)] += weight;
        sum += weight;
    }
    for (int64_t i = 0; i < size && s->exclude; i++)
        weights[i] /= sum;
}

/* y = W_rows x W_columns^T for each of the leading planes. */
static void check_resize(struct arena *arena, const struct setting *s, enum dtype dtype, const int64_t *from,
                         const int64_t *to, bool by_scales, double tolerance)
{
    struct op_case c = {.op = OP_Resize, .input_count = 1, .output_count = 1};
    c.inputs[0] = tensor_random(arena, dtype, 3, dtype_is_float(dtype) ? -1 : 0,
                                dtype_is_float(dtype) ? 1 : 200, 3, from);
    c.outputs[0] = tensor_new(arena, dtype, 3, to);
    add_attribute(&c, attribute_word(ATTR_mode, word_find(s->mode)));
    add_attribute(&c, attribute_word(ATTR_coordinate_transformation_mode, word_find(s->coordinates)));
    add_attribute(&c, attribute_word(ATTR_nearest_mode, word_find(s->rounding)));
    add_attribute(&c, attribute_int(ATTR_exclude_outside, s->exclude));
    double scales[3], weights[2][16 * 16];
    for (int i = 0; i < 3; i++)
        scales[i] = (double)to[i] / (double)from[i];
    if (by_scales)
        add_attribute(&c, attribute_floats(ATTR_scales, 3, arena_copy(arena, scales, sizeof scales)));
    for (int axis = 0; axis < 2; axis++)
        for (int64_t o = 0; o < to[1 + axis]; o++) {
            const double x =
                coordinate(s, (double)o, (double)from[1 + axis], (double)to[1 + axis], scales[1 + axis]);
            if (from[1 + axis] != to[1 + axis])
                axis_weights(s, x, from[1 + axis], weights[axis] + o * 16);
            else
                for (int64_t i = 0; i < from[1 + axis]; i++)
                    weights[axis][o * 16 + i] = i == o;
        }
    double *expected = arena_new_array(arena, double, (size_t)tensor_count(&c.outputs[0]) + 1);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t y[3];
        index_of(&c.outputs[0], i, y);
        for (int64_t r = 0; r < from[1]; r++)
            for (int64_t k = 0; k < from[2]; k++)
                expected[i] += weights[0][y[1] * 16 + r] * weights[1][y[2] * 16 + k] *
                               value_at(&c.inputs[0], (const int64_t[]){y[0], r, k});
    }
    c.constant_only = strcmp(s->mode, "cubic") == 0 && !by_scales; /* else three axes may be resampled */
    run_case(arena, &c, expected, tolerance);
}

static const char *const coordinates[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                          "align_corners", "asymmetric",           "tf_half_pixel_for_nn"};
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

/* Sizes whose coordinates f32 computes exactly, or that stay away from where rounding turns. */
static const int64_t shapes[][2][3] = {
    {{2, 3, 4}, {2, 6, 16}}, {{2, 8, 6}, {2, 4, 3}}, {{1, 5, 4}, {1, 5, 8}},
    {{2, 4, 1}, {2, 1, 4}},  {{2, 2, 4}, {2, 3, 5}},
};

static void test_nearest(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (size_t c = 0; c < 6; c++)
        for (size_t r = 0; r < 4; r++)
            for (size_t n = 0; n < 4; n++)
                for (int by_scales = 0; by_scales < 2; by_scales++) {
                    const struct setting s = {"nearest", coordinates[c], roundings[r], false};
                    check_resize(&arena, &s, DTYPE_F32, shapes[n][0], shapes[n][1], by_scales, 0);
                    check_resize(&arena, &s, DTYPE_U8, shapes[n][0], shapes[n][1], by_scales, 0);
                }
    arena_release(&arena);
}

static void test_linear_and_cubic(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (size_t c = 0; c < 6; c++)
        for (int mode = 0; mode < 3; mode++)
            for (size_t n = 0; n < 5; n++)
                for (int by_scales = 0; by_scales < 2; by_scales++) {
                    const struct setting s = {mode ? "cubic" : "linear", coordinates[c], "floor", mode == 2};
                    if (mode == 2 && n == 3)
                        continue; /* a tap inside need not exist */
                    check_resize(&arena, &s, DTYPE_F32, shapes[n][0], shapes[n][1], by_scales, 4e-6);
                    check_resize(&arena, &s, DTYPE_F16, shapes[n][0], shapes[n][1], by_scales, 2e-3);
                }
    arena_release(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct op_case c = {.op = OP_Resize, .input_count = 1, .output_count = 1, .refused = true};
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 2));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(4, 4));
    add_attribute(&c, attribute_int(ATTR_antialias, 1));
    run_case(&arena, &c, NULL, 0);
    c.attribute_count = 0;
    add_attribute(&c, attribute_word(ATTR_coordinate_transformation_mode, word_find("tf_crop_and_resize")));
    run_case(&arena, &c, NULL, 0);
    c.attribute_count = 0;
    add_attribute(&c, attribute_word(ATTR_mode, word_find("cubic")));
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 2, 2));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(4, 4, 4));
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_linear_and_cubic),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Definitions with reductions, windows and sampling, against plain loops in double: Reduce*, normalisations,
 * Softmax, pools, Conv, Gemm, MatMul, Resize. */
#include "tests/unit/definition_support.h"

static double unit_of(enum dtype dtype)
{
    return dtype == DTYPE_F16    ? 0x1p-10
           : dtype == DTYPE_BF16 ? 0x1p-7
           : dtype == DTYPE_F32  ? 0x1p-22
                                 : 0x1p-48;
}

static const enum dtype float_types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64};
enum { FLOAT_TYPES = sizeof float_types / sizeof *float_types };

/* ---- reductions
 * -------------------------------------------------------------------------------------------------- */

static double combine(enum op op, double a, double b)
{
    switch (op) {
    case OP_ReduceMax:
        return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    case OP_ReduceMin:
        return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    case OP_ReduceProd:
        return a * b;
    default:
        return a + b;
    }
}

static double neutral(enum op op)
{
    return op == OP_ReduceMax ? -INFINITY : op == OP_ReduceMin ? INFINITY : op == OP_ReduceProd ? 1 : 0;
}

static void check_reduce(struct arena *arena, enum op op, const struct tensor *x, uint32_t axis_mask,
                         bool keep)
{
    struct op_case c = {.op = op, .input_count = 1, .output_count = 1, .inputs = {*x}};
    int64_t *axes = arena_new_array(arena, int64_t, 4), sizes[MOST_DIMS];
    uint32_t count = 0;
    int rank = 0;
    double reduced = 1;
    for (int i = 0; i < x->rank; i++) {
        if (axis_mask >> i & 1) {
            axes[count] = count % 2 ? i - x->rank : i;
            count++;
            reduced *= (double)x->sizes[i];
        }
        if (keep || !(axis_mask >> i & 1))
            sizes[rank++] = axis_mask >> i & 1 ? 1 : x->sizes[i];
    }
    add_attribute(&c, attribute_ints(ATTR_axes, count, axes));
    add_attribute(&c, attribute_int(ATTR_keepdims, keep));
    if (!count)
        add_attribute(&c, attribute_int(ATTR_noop_with_empty_axes, 1));
    c.outputs[0] = tensor_new(arena, x->dtype, rank, sizes);
    const int64_t results = tensor_count(&c.outputs[0]);
    double *expected = arena_new_array(arena, double, (size_t)results + 1);
    for (int64_t i = 0; i < results; i++)
        expected[i] = neutral(op);
    for (int64_t i = 0; i < tensor_count(x); i++) {
        int64_t index[MOST_DIMS], flat = 0;
        index_of(x, i, index);
        for (int k = 0; k < x->rank; k++)
            if (!(axis_mask >> k & 1))
                flat = flat * x->sizes[k] + index[k];
        expected[flat] = combine(op, expected[flat], x->values[i]);
    }
    for (int64_t i = 0; i < results && op == OP_ReduceMean; i++)
        expected[i] = dtype_is_float(x->dtype) ? expected[i] / reduced : trunc(expected[i] / reduced);
    run_case(arena, &c, expected, dtype_is_float(x->dtype) ? 2 * unit_of(x->dtype) : 0);
}

static void test_reduce(void **state)
{
    (void)state;
    static const enum op ops[] = {OP_ReduceSum, OP_ReduceMean, OP_ReduceMax, OP_ReduceMin, OP_ReduceProd};
    TEST_ARENA(arena);
    for (int o = 0; o < 5; o++) {
        for (int t = 0; t < FLOAT_TYPES; t++) {
            const struct tensor x = tensor_random(&arena, float_types[t], 1, 0.5, 1.5, SIZES(3, 5, 7));
            for (uint32_t mask = 0; mask < 8; mask++)
                check_reduce(&arena, ops[o], &x, mask, mask % 2 != 0);
        }
        const struct tensor whole = tensor_random(&arena, DTYPE_I32, 1, -3, 3, SIZES(4, 6));
        check_reduce(&arena, ops[o], &whole, 2, false);
        check_reduce(&arena, ops[o], &whole, 3, true);
        const struct tensor wide = tensor_random(&arena, DTYPE_F32, 1, 0.99, 1.01, SIZES(2, 1500));
        check_reduce(&arena, ops[o], &wide, 2, false);
        const struct tensor tall = tensor_random(&arena, DTYPE_F32, 1, 0.99, 1.01, SIZES(700, 3));
        check_reduce(&arena, ops[o], &tall, 1, false);
        const struct tensor empty = tensor_new(&arena, DTYPE_F32, SIZES(3, 0));
        check_reduce(&arena, ops[o], &empty, 2, false);
        check_reduce(&arena, ops[o], &empty, 1, false);
    }
    struct tensor with_nan = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(3, 4));
    with_nan.values[5] = NAN;
    check_reduce(&arena, OP_ReduceMax, &with_nan, 2, false);
    check_reduce(&arena, OP_ReduceMin, &with_nan, 1, false);
    const struct tensor bools = tensor_random(&arena, DTYPE_BOOL, 1, 0, 1, SIZES(6, 2));
    check_reduce(&arena, OP_ReduceMax, &bools, 2, false);
    check_reduce(&arena, OP_ReduceMin, &bools, 2, false);
    arena_release(&arena);
}

/* No axes: all of them. Integer extremes of an empty domain. */
static void test_reduce_all(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct op_case c = {.op = OP_ReduceSum, .input_count = 1, .output_count = 1};
    c.inputs[0] = tensor_of(&arena, DTYPE_I64, SIZES(2, 2), (const double[]){1, 2, 3, 4});
    c.outputs[0] = tensor_new(&arena, DTYPE_I64, SIZES(1, 1));
    run_case(&arena, &c, (const double[]){10}, 0);
    c.op = OP_ReduceMax;
    c.inputs[0] = tensor_new(&arena, DTYPE_I8, SIZES(0));
    c.outputs[0] = tensor_new(&arena, DTYPE_I8, SIZES(1));
    run_case(&arena, &c, (const double[]){-128}, 0);
    c.op = OP_ReduceMin;
    c.inputs[0].dtype = c.outputs[0].dtype = DTYPE_I16;
    run_case(&arena, &c, (const double[]){32767}, 0);
    c.op = OP_ReduceMax;
    c.inputs[0].dtype = c.outputs[0].dtype = DTYPE_I32;
    run_case(&arena, &c, (const double[]){-2147483648.0}, 0);
    arena_release(&arena);
}

/* ---- rows
 * -------------------------------------------------------------------------------------------------------- */

static void test_softmax(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (int t = 0; t < FLOAT_TYPES; t++)
        for (int axis = -3; axis < 3; axis++)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                struct tensor x = tensor_random(&arena, float_types[t], 1, -6, 6, SIZES(3, 5, 4));
                x.values[7] = -INFINITY;
                const int at = axis < 0 ? axis + 3 : axis;
                struct op_case c = unary_case(logarithm ? OP_LogSoftmax : OP_Softmax, x, x.dtype);
                add_attribute(&c, attribute_int(ATTR_axis, axis));
                double expected[60];
                for (int i = 0; i < 60; i++) {
                    int64_t index[3];
                    index_of(&x, i, index);
                    double sum = 0, largest = -INFINITY;
                    for (index[at] = 0; index[at] < x.sizes[at]; index[at]++)
                        largest = fmax(largest, value_at(&x, index));
                    for (index[at] = 0; index[at] < x.sizes[at]; index[at]++)
                        sum += exp(value_at(&x, index) - largest);
                    expected[i] =
                        logarithm ? x.values[i] - largest - log(sum) : exp(x.values[i] - largest) / sum;
                }
                run_case(&arena, &c, expected, 6 * unit_of(x.dtype));
            }
    struct op_case c = unary_case(OP_Softmax, tensor_new(&arena, DTYPE_F32, SIZES(3, 0)), DTYPE_F32);
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

static void test_batch_normalization(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (int t = 0; t < FLOAT_TYPES; t++) {
        const enum dtype dtype = float_types[t];
        const struct tensor x = tensor_random(&arena, dtype, 1, -2, 2, SIZES(2, 3, 5));
        struct op_case c = unary_case(OP_BatchNormalization, x, dtype);
        c.input_count = 5;
        for (uint32_t i = 1; i < 5; i++)
            c.inputs[i] = tensor_random(&arena, DTYPE_F32, i + 7, 0.5, 2, SIZES(3));
        add_attribute(&c, attribute_float(ATTR_epsilon, 0.25));
        double expected[30];
        for (int i = 0; i < 30; i++) {
            const int k = i / 5 % 3;
            expected[i] = (x.values[i] - c.inputs[3].values[k]) / sqrt(c.inputs[4].values[k] + 0.25) *
                              c.inputs[1].values[k] +
                          c.inputs[2].values[k];
        }
        run_case(&arena, &c, expected, 6 * unit_of(dtype == DTYPE_F64 ? DTYPE_F32 : dtype));
    }
    arena_release(&arena);
}

/* Mean and 1 / sqrt(variance + epsilon) of `count` elements. */
static void statistics_of(const double *x, int64_t count, double epsilon, double *mean, double *inverse)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    *mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *inverse = 1 / sqrt(squares / (double)count + epsilon);
}

static void test_instance_normalization(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (int t = 0; t < FLOAT_TYPES; t++) {
        const enum dtype dtype = float_types[t];
        const struct tensor x = tensor_random(&arena, dtype, 1, 5, 7, SIZES(2, 3, 4, 5));
        struct op_case c = unary_case(OP_InstanceNormalization, x, dtype);
        c.input_count = 3;
        c.inputs[1] = tensor_random(&arena, dtype, 2, 0.5, 2, SIZES(3));
        c.inputs[2] = tensor_random(&arena, dtype, 3, -1, 1, SIZES(3));
        double expected[120], mean, inverse;
        for (int i = 0; i < 120; i++) {
            statistics_of(x.values + i / 20 * 20, 20, (double)1e-5f, &mean, &inverse);
            const int k = i / 20 % 3;
            expected[i] = (x.values[i] - mean) * inverse * c.inputs[1].values[k] + c.inputs[2].values[k];
        }
        run_case(&arena, &c, expected, 16 * unit_of(dtype));
    }
    arena_release(&arena);
}

static void test_layer_normalization(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (int t = 0; t < FLOAT_TYPES; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int form = 0; form < 3; form++) {
                const enum dtype dtype = float_types[t], precise = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
                const struct tensor x = tensor_random(&arena, dtype, 1, 5, 7, SIZES(3, 4, 6));
                struct op_case c = unary_case(OP_LayerNormalization, x, dtype);
                add_attribute(&c, attribute_int(ATTR_axis, form ? axis - 3 : axis));
                add_attribute(&c, attribute_float(ATTR_epsilon, 0.125));
                int64_t length = 1;
                for (int i = axis; i < 3; i++)
                    length *= x.sizes[i];
                c.input_count = form ? 3 : 2;
                c.inputs[1] = tensor_random(&arena, dtype, 2, 0.5, 2, 3 - axis, x.sizes + axis);
                if (form)
                    c.inputs[2] = tensor_random(&arena, dtype, 3, -1, 1, SIZES(6));
                c.output_count = form ? 3 : 1;
                for (int o = 1; o < 3 && form == 2; o++) {
                    c.outputs[o] = tensor_new(&arena, precise, 3, x.sizes);
                    for (int i = axis; i < 3; i++)
                        c.outputs[o].sizes[i] = 1;
                }
                double expected[72], means[72], inverses[72];
                for (int64_t i = 0; i < 72; i++) {
                    const int64_t row = i / length;
                    statistics_of(x.values + row * length, length, 0.125, &means[row], &inverses[row]);
                    expected[i] =
                        (x.values[i] - means[row]) * inverses[row] * c.inputs[1].values[i % length] +
                        (form ? c.inputs[2].values[i % 6] : 0);
                }
                run_case(&arena, &c, expected, 16 * unit_of(dtype));
                if (form == 2) {
                    check_values("mean", &c.outputs[1], means, 4 * unit_of(precise));
                    check_values("inverse", &c.outputs[2], inverses, 8 * unit_of(precise));
                }
            }
    arena_release(&arena);
}

/* ---- windows
 * ----------------------------------------------------------------------------------------------------- */

struct window_case {
    int64_t size, kernel, stride, dilation, begin, end;
    bool ceil, include;
};

static int64_t window_results(const struct window_case *w)
{
    const int64_t reach = w->size + w->begin + w->end - (w->dilation * (w->kernel - 1) + 1);
    int64_t count = reach / w->stride + 1;
    if (w->ceil) {
        count = (reach + w->stride - 1) / w->stride + 1;
        if ((count - 1) * w->stride >= w->size + w->begin)
            count--;
    }
    return count;
}

static double pool_reference(const struct window_case *w, bool is_max, const double *row, int64_t o)
{
    double sum = 0, largest = -INFINITY;
    int64_t taps = 0;
    for (int64_t k = 0; k < w->kernel; k++) {
        const int64_t at = o * w->stride - w->begin + k * w->dilation;
        const bool inside = at >= 0 && at < w->size;
        taps += inside || (w->include && at < w->size + w->end);
        sum += inside ? row[at] : 0;
        largest = inside ? fmax(largest, row[at]) : largest;
    }
    return is_max ? largest : sum / (double)taps;
}

static void test_pools(void **state)
{
    (void)state;
    static const struct window_case rows[] = {
        {10, 3, 1, 1, 0, 0, false, false}, {10, 3, 2, 1, 1, 1, false, false},
        {10, 3, 2, 1, 1, 1, false, true},  {10, 3, 3, 2, 2, 1, false, false},
        {10, 3, 2, 1, 0, 0, true, false},  {10, 4, 3, 1, 2, 1, true, true},
        {11, 2, 3, 1, 1, 1, true, false},  {10, 4, 3, 2, 3, 3, true, true},
        {9, 9, 1, 1, 0, 0, false, false},  {10, 1, 2, 1, 0, 0, false, true},
        {7, 3, 2, 3, 3, 2, true, false},
    };
    TEST_ARENA(arena);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int t = 0; t < FLOAT_TYPES; t++)
            for (int is_max = 0; is_max < 2; is_max++) {
                const struct window_case *w = &rows[r];
                const int64_t length = window_results(w);
                struct op_case c = {
                    .op = is_max ? OP_MaxPool : OP_AveragePool, .input_count = 1, .output_count = 1};
                c.inputs[0] = tensor_random(&arena, float_types[t], 1, -5, 5, SIZES(2, 3, w->size));
                c.outputs[0] = tensor_new(&arena, float_types[t], SIZES(2, 3, length));
                const int64_t pads[] = {w->begin, w->end};
                add_attribute(&c, attribute_ints(ATTR_kernel_shape, 1, &w->kernel));
                add_attribute(&c, attribute_ints(ATTR_strides, 1, &w->stride));
                add_attribute(&c, attribute_ints(ATTR_dilations, 1, &w->dilation));
                add_attribute(&c, attribute_ints(ATTR_pads, 2, pads));
                add_attribute(&c, attribute_int(ATTR_ceil_mode, w->ceil));
                add_attribute(&c, attribute_int(ATTR_count_include_pad, w->include));
                double *expected = arena_new_array(&arena, double, (size_t)(6 * length));
                for (int64_t i = 0; i < 6 * length; i++)
                    expected[i] =
                        pool_reference(w, is_max, c.inputs[0].values + i / length * w->size, i % length);
                run_case(&arena, &c, expected, is_max ? 0 : 2 * unit_of(float_types[t]));
            }
    /* two spatial axes; integers; a window that lies in the pad alone has the lowest value */
    struct op_case c = {.op = OP_MaxPool, .input_count = 1, .output_count = 1};
    c.inputs[0] = tensor_of(&arena, DTYPE_I8, SIZES(1, 1, 2, 2), (const double[]){-3, -4, -5, -6});
    c.outputs[0] = tensor_new(&arena, DTYPE_I8, SIZES(1, 1, 2, 2));
    static const int64_t kernel[] = {1, 2}, pads[] = {1, 0, 0, 1}, strides[] = {1, 1};
    add_attribute(&c, attribute_ints(ATTR_kernel_shape, 2, kernel));
    add_attribute(&c, attribute_ints(ATTR_strides, 2, strides));
    add_attribute(&c, attribute_ints(ATTR_pads, 4, pads));
    run_case(&arena, &c, (const double[]){-128, -128, -3, -4}, 0);
    arena_release(&arena);
}

/* ---- contractions
 * ------------------------------------------------------------------------------------------------ */

struct conv_case {
    int spatial;
    int64_t images, channels, results, group;
    int64_t size[3], kernel[3], stride[3], dilation[3], pads[6];
    bool bias;
};

static double conv_reference(const struct conv_case *s, const struct op_case *c, const int64_t *y)
{
    const int64_t channels = s->channels / s->group, first = y[1] / (s->results / s->group) * channels;
    double sum = s->bias ? c->inputs[2].values[y[1]] : 0;
    int64_t taps = 1;
    for (int i = 0; i < s->spatial; i++)
        taps *= s->kernel[i];
    for (int64_t channel = 0; channel < channels; channel++)
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t x[5] = {y[0], first + channel}, w[5] = {y[1], channel}, rest = tap;
            bool inside = true;
            for (int i = s->spatial; i-- > 0;) {
                w[2 + i] = rest % s->kernel[i];
                rest /= s->kernel[i];
                x[2 + i] = y[2 + i] * s->stride[i] + w[2 + i] * s->dilation[i] - s->pads[i];
                inside = inside && x[2 + i] >= 0 && x[2 + i] < s->size[i];
            }
            sum += inside ? value_at(&c->inputs[0], x) * value_at(&c->inputs[1], w) : 0;
        }
    return sum;
}

static void check_conv(struct arena *arena, const struct conv_case *s, enum dtype dtype)
{
    struct op_case c = {.op = OP_Conv, .input_count = s->bias ? 3 : 2, .output_count = 1};
    int64_t x[5] = {s->images, s->channels}, w[5] = {s->results, s->channels / s->group},
            y[5] = {s->images, s->results};
    for (int i = 0; i < s->spatial; i++) {
        x[2 + i] = s->size[i];
        w[2 + i] = s->kernel[i];
        y[2 + i] =
            (s->size[i] + s->pads[i] + s->pads[s->spatial + i] - s->dilation[i] * (s->kernel[i] - 1) - 1) /
                s->stride[i] +
            1;
    }
    c.inputs[0] = tensor_random(arena, dtype, 1, -1, 1, s->spatial + 2, x);
    c.inputs[1] = tensor_random(arena, dtype, 2, -1, 1, s->spatial + 2, w);
    c.inputs[2] = tensor_random(arena, dtype, 3, -1, 1, SIZES(s->results));
    c.outputs[0] = tensor_new(arena, dtype, s->spatial + 2, y);
    add_attribute(&c, attribute_ints(ATTR_strides, (uint32_t)s->spatial, s->stride));
    add_attribute(&c, attribute_ints(ATTR_dilations, (uint32_t)s->spatial, s->dilation));
    add_attribute(&c, attribute_ints(ATTR_pads, 2 * (uint32_t)s->spatial, s->pads));
    add_attribute(&c, attribute_int(ATTR_group, s->group));
    double *expected = arena_new_array(arena, double, (size_t)tensor_count(&c.outputs[0]) + 1);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t index[5];
        index_of(&c.outputs[0], i, index);
        expected[i] = conv_reference(s, &c, index);
    }
    run_case(arena, &c, expected, 4 * unit_of(dtype));
}

static void test_conv(void **state)
{
    (void)state;
    static const struct conv_case cases[] = {
        {1, 2, 4, 6, 1, {9}, {3}, {1}, {1}, {0, 0}, false},
        {1, 1, 4, 6, 2, {9}, {3}, {2}, {2}, {2, 1}, true},
        {2, 2, 3, 5, 1, {7, 6}, {3, 2}, {2, 1}, {1, 2}, {1, 0, 1, 2}, true},
        {2, 1, 6, 6, 6, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, true},
        {2, 1, 6, 12, 6, {5, 4}, {3, 1}, {1, 1}, {1, 1}, {1, 0, 1, 0}, false},
        {2, 1, 8, 4, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, true},
        {2, 1, 3, 3, 3, {3, 3}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true},
        {3, 1, 2, 4, 2, {4, 5, 3}, {2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {1, 1, 0, 0, 1, 1}, true},
        {2, 0, 3, 5, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, false},
    };
    TEST_ARENA(arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < FLOAT_TYPES; t++)
            check_conv(&arena, &cases[i], float_types[t]);
    struct op_case c = {.op = OP_Conv, .input_count = 2, .output_count = 1, .refused = true};
    c.inputs[0] = c.inputs[1] = c.outputs[0] =
        tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(1, 1, 1, 1, 1, 1));
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

static void check_matmul(struct arena *arena, enum dtype dtype, int left_rank, const int64_t *left,
                         int right_rank, const int64_t *right, int rank, const int64_t *sizes)
{
    struct op_case c = {.op = OP_MatMul, .input_count = 2, .output_count = 1};
    const struct tensor a = c.inputs[0] = tensor_random(arena, dtype, 1, -2, 2, left_rank, left);
    const struct tensor b = c.inputs[1] = tensor_random(arena, dtype, 2, -2, 2, right_rank, right);
    c.outputs[0] = tensor_new(arena, dtype, rank, sizes);
    const int64_t length = left[left_rank - 1];
    const int rows = left_rank > 1, columns = right_rank > 1, batch = rank - rows - columns;
    double *expected = arena_new_array(arena, double, (size_t)tensor_count(&c.outputs[0]) + 1);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t y[MOST_DIMS], at_a[MOST_DIMS], at_b[MOST_DIMS];
        index_of(&c.outputs[0], i, y);
        for (int k = 0; k < left_rank - 2; k++)
            at_a[k] = left[k] == 1 ? 0 : y[batch - (left_rank - 2) + k];
        for (int k = 0; k < right_rank - 2; k++)
            at_b[k] = right[k] == 1 ? 0 : y[batch - (right_rank - 2) + k];
        if (rows)
            at_a[left_rank - 2] = y[batch];
        if (columns)
            at_b[right_rank - 1] = y[rank - 1];
        for (int64_t k = 0; k < length; k++) {
            at_a[left_rank - 1] = k;
            at_b[columns ? right_rank - 2 : 0] = k;
            expected[i] += value_at(&a, at_a) * value_at(&b, at_b);
        }
    }
    run_case(arena, &c, expected, dtype_is_float(dtype) ? 4 * unit_of(dtype) : 0);
}

static void test_matmul(void **state)
{
    (void)state;
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_I32};
    TEST_ARENA(arena);
    for (int t = 0; t < 5; t++) {
        check_matmul(&arena, types[t], SIZES(5, 7), SIZES(7, 3), SIZES(5, 3));
        check_matmul(&arena, types[t], SIZES(2, 5, 7), SIZES(7, 3), SIZES(2, 5, 3));
        check_matmul(&arena, types[t], SIZES(2, 1, 5, 7), SIZES(3, 7, 4), SIZES(2, 3, 5, 4));
        check_matmul(&arena, types[t], SIZES(5, 7), SIZES(2, 7, 3), SIZES(2, 5, 3));
        check_matmul(&arena, types[t], SIZES(7), SIZES(7, 3), SIZES(3));
        check_matmul(&arena, types[t], SIZES(5, 7), SIZES(7), SIZES(5));
        check_matmul(&arena, types[t], SIZES(7), SIZES(2, 7, 3), SIZES(2, 3));
        check_matmul(&arena, types[t], SIZES(2, 5, 7), SIZES(7), SIZES(2, 5));
        check_matmul(&arena, types[t], SIZES(7), SIZES(7), SCALAR);
        check_matmul(&arena, types[t], SIZES(4, 0), SIZES(0, 3), SIZES(4, 3));
        check_matmul(&arena, types[t], SIZES(0, 4), SIZES(4, 3), SIZES(0, 3));
        check_matmul(&arena, types[t], SIZES(1, 1), SIZES(1, 1), SIZES(1, 1));
    }
    arena_release(&arena);
}

static void test_gemm(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const int64_t addends[][3] = {{2, 5, 3}, {1, 3, 0}, {2, 5, 1}, {0, 0, 0}, {2, 1, 3}, {-1, 0, 0}};
    for (int turned = 0; turned < 4; turned++)
        for (int addend = 0; addend < 6; addend++)
            for (int t = 0; t < FLOAT_TYPES; t++) {
                const bool left = turned & 1, right = turned & 2;
                const double alpha = addend % 2 ? 1 : 0.5, beta = addend % 3 ? 1 : 2;
                struct op_case c = {.op = OP_Gemm, .input_count = addend == 5 ? 2 : 3, .output_count = 1};
                c.inputs[0] =
                    tensor_random(&arena, float_types[t], 1, -1, 1, SIZES(left ? 7 : 5, left ? 5 : 7));
                c.inputs[1] =
                    tensor_random(&arena, float_types[t], 2, -1, 1, SIZES(right ? 3 : 7, right ? 7 : 3));
                if (addend < 5)
                    c.inputs[2] = tensor_random(&arena, float_types[t], 3, -1, 1, (int)addends[addend][0],
                                                addends[addend] + 1);
                c.outputs[0] = tensor_new(&arena, float_types[t], SIZES(5, 3));
                add_attribute(&c, attribute_float(ATTR_alpha, alpha));
                add_attribute(&c, attribute_float(ATTR_beta, beta));
                add_attribute(&c, attribute_int(ATTR_transA, left));
                add_attribute(&c, attribute_int(ATTR_transB, right));
                double expected[15] = {0};
                for (int i = 0; i < 15; i++) {
                    const int64_t y[2] = {i / 3, i % 3};
                    for (int64_t k = 0; k < 7; k++)
                        expected[i] += alpha * c.inputs[0].values[left ? k * 5 + y[0] : y[0] * 7 + k] *
                                       c.inputs[1].values[right ? y[1] * 7 + k : k * 3 + y[1]];
                    if (addend < 5)
                        expected[i] += beta * broadcast_at(&c.inputs[2], 2, y);
                }
                run_case(&arena, &c, expected, 4 * unit_of(float_types[t]));
            }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_reduce_all),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_batch_normalization),
        cmocka_unit_test(test_instance_normalization),
        cmocka_unit_test(test_layer_normalization),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_gemm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The CPU strategies for nests that are no contraction against the interpreter: every form of a nest (map,
 * row, unrolled window, column), groups of rows, transposes, guarded loads, at odd, short and empty sizes,
 * with constant and with free sizes, on each ISA level that this machine has. */
#include "tests/unit/definition_support.h"
#include "tests/unit/strategy_support.h"

static void run_strategy(struct arena *arena, const struct definition *definition, const int64_t *symbols,
                         const char *strategy, bool must_fit, const char *what)
{
    for (unsigned i = 0; i < TEST_LEVELS; i++) {
        struct group_test *test = arena_new(arena, struct group_test);
        /* What is chosen runs on every level; without fma the kernels are the same, only their code is not. */
        if (!test_level(i) || (strategy && test_level(i)->software_fma))
            continue;
        if (!group_test_build(test, arena, definition, test_level(i), strategy, 0)) {
            if (must_fit)
                fail_msg("%s does not fit %s", strategy, what);
            continue;
        }
        group_test_check(test, symbols, what);
        group_test_close(test);
    }
}

/* One operator's Definition by the plain strategy, by `strategy`, and by what strategy_choose picks. */
static void check_sizes(const struct op_case *c, const char *strategy, bool symbolic)
{
    TEST_ARENA(arena);
    struct graph *graph = graph_new(&arena);
    struct symbols symbols = {.dims = &graph->dims, .symbolic = symbolic};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "case");
    const node_id node = case_node(&arena, c, &symbols, graph);
    struct exprs pool;
    struct definition definition;
    exprs_init(&pool, &arena, &graph->dims);
    assert_true(define_node(graph, node, &pool, &diagnostics, &definition));
    const char *what = op_facts(c->op)->name;
    run_strategy(&arena, &definition, symbols.values, "cpu_plain", true, what);
    run_strategy(&arena, &definition, symbols.values, NULL, true, what);
    if (strategy) /* where symbols of their own hide that sizes are equal, it may refuse */
        run_strategy(&arena, &definition, symbols.values, strategy, !symbolic, what);
    arena_release(&arena);
}

static void check(const struct op_case *c, const char *strategy)
{
    check_sizes(c, strategy, false);
    if (!c->constant_only)
        check_sizes(c, strategy, true);
}

static struct tensor shape(struct arena *arena, enum dtype dtype, int rank, const int64_t *sizes)
{
    return tensor_new(arena, dtype, rank, sizes);
}

static void test_maps(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const struct tensor a = shape(&arena, DTYPE_F32, SIZES(3, 5, 37)),
                        row = shape(&arena, DTYPE_F32, SIZES(37)),
                        column = shape(&arena, DTYPE_F32, SIZES(5, 1)),
                        one = shape(&arena, DTYPE_F32, SCALAR);
    const struct tensor others[] = {a, row, column, one};
    for (unsigned i = 0; i < 4; i++) {
        struct op_case c = {.op = OP_Mul, .input_count = 2, .output_count = 1, .inputs = {a, others[i]}};
        c.outputs[0] = a;
        check(&c, NULL);
    }
    struct op_case c = unary_case(OP_Erf, shape(&arena, DTYPE_F32, SIZES(20011)), DTYPE_F32);
    check(&c, NULL);
    c = unary_case(OP_Tanh, shape(&arena, DTYPE_F16, SIZES(3, 41)), DTYPE_F16);
    check(&c, NULL);
    c = unary_case(OP_Sigmoid, shape(&arena, DTYPE_F32, SIZES(0, 4)), DTYPE_F32);
    check(&c, NULL);
    c = unary_case(OP_IsNaN, shape(&arena, DTYPE_F32, SIZES(77)), DTYPE_BOOL);
    check(&c, NULL);
    c = unary_case(OP_Cast, shape(&arena, DTYPE_I32, SIZES(77)), DTYPE_I64);
    add_attribute(&c, attribute_dtype(ATTR_to, DTYPE_I64));
    check(&c, NULL);
    arena_release(&arena);
}

static void check_transpose(int rank, const int64_t *sizes, const int64_t *perm, enum dtype dtype,
                            const char *strategy)
{
    TEST_ARENA(arena);
    int64_t result[MOST_DIMS];
    for (int i = 0; i < rank; i++)
        result[i] = sizes[perm[i]];
    struct op_case c = {.op = OP_Transpose, .input_count = 1, .output_count = 1};
    c.inputs[0] = shape(&arena, dtype, rank, sizes);
    c.outputs[0] = shape(&arena, dtype, rank, result);
    add_attribute(&c, attribute_ints(ATTR_perm, (uint32_t)rank, perm));
    check(&c, strategy);
    arena_release(&arena);
}

static void test_transposes(void **state)
{
    (void)state;
    check_transpose(SIZES(67, 45), (const int64_t[]){1, 0}, DTYPE_F32, "cpu_transpose");
    check_transpose(SIZES(2, 12, 70, 33), (const int64_t[]){0, 2, 3, 1}, DTYPE_F32, "cpu_transpose");
    check_transpose(SIZES(2, 35, 9, 40), (const int64_t[]){0, 2, 1, 3}, DTYPE_F32, NULL);
    check_transpose(SIZES(5, 64, 64), (const int64_t[]){2, 0, 1}, DTYPE_F64, "cpu_transpose");
    check_transpose(SIZES(40, 0, 40), (const int64_t[]){2, 1, 0}, DTYPE_F32, NULL);
    check_transpose(SIZES(1, 130), (const int64_t[]){1, 0}, DTYPE_I32, NULL);
}

static void check_reduction(enum op op, int rank, const int64_t *sizes, uint32_t axis_count,
                            const int64_t *axes)
{
    TEST_ARENA(arena);
    int64_t result[MOST_DIMS];
    for (int i = 0; i < rank; i++)
        result[i] = sizes[i];
    for (uint32_t i = 0; i < axis_count; i++)
        result[axes[i]] = 1;
    struct op_case c = {.op = op, .input_count = 1, .output_count = 1};
    c.inputs[0] = shape(&arena, DTYPE_F32, rank, sizes);
    c.outputs[0] = shape(&arena, DTYPE_F32, rank, result);
    c.constant_only = true; /* the 1s of the result are part of the operator */
    add_attribute(&c, attribute_ints(ATTR_axes, axis_count, axes));
    check(&c, NULL);
    arena_release(&arena);
}

static void test_reductions(void **state)
{
    (void)state;
    static const enum op ops[] = {OP_ReduceSum, OP_ReduceMax, OP_ReduceMin, OP_ReduceMean};
    for (unsigned i = 0; i < 4; i++) {
        check_reduction(ops[i], SIZES(13, 1000), 1, (const int64_t[]){1});
        check_reduction(ops[i], SIZES(700, 301), 1, (const int64_t[]){0});
        check_reduction(ops[i], SIZES(3, 50, 40), 1, (const int64_t[]){1});
        check_reduction(ops[i], SIZES(2, 5, 7, 7), 2, (const int64_t[]){2, 3});
        check_reduction(ops[i], SIZES(12345), 1, (const int64_t[]){0});
        check_reduction(ops[i], SIZES(3, 0), 1, (const int64_t[]){1});
        check_reduction(ops[i], SIZES(4, 3, 33), 2, (const int64_t[]){0, 1});
    }
}

/* Equal addends round the same way each time: a sum in one accumulator would be off by 1e-5 and more. */
static void test_long_sums_keep_their_digits(void **state)
{
    (void)state;
    enum { ROWS = 4096, COLUMNS = 40 };
    static float data[ROWS * COLUMNS], sums[COLUMNS];
    TEST_ARENA(arena);
    const int64_t axis = 0;
    struct op_case c = {.op = OP_ReduceSum, .input_count = 1, .output_count = 1};
    c.inputs[0] = shape(&arena, DTYPE_F32, SIZES(ROWS, COLUMNS));
    c.outputs[0] = shape(&arena, DTYPE_F32, SIZES(1, COLUMNS));
    add_attribute(&c, attribute_ints(ATTR_axes, 1, &axis));
    struct graph *graph = graph_new(&arena);
    struct symbols symbols = {.dims = &graph->dims};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "case");
    const node_id node = case_node(&arena, &c, &symbols, graph);
    struct exprs pool;
    struct definition definition;
    exprs_init(&pool, &arena, &graph->dims);
    assert_true(define_node(graph, node, &pool, &diagnostics, &definition));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = 0.1f + 0.01f * (float)(i % COLUMNS);
    for (unsigned i = 0; i < TEST_LEVELS; i++) {
        struct group_test *test = arena_new(&arena, struct group_test);
        if (!test_level(i))
            continue;
        assert_true(group_test_build(test, &arena, &definition, test_level(i), NULL, 0));
        group_test_run(test, NULL, (void *[]){data, sums}, group_test_scratch(test), 3);
        for (int k = 0; k < COLUMNS; k++) {
            const double exact = (double)ROWS * (double)data[k];
            assert_true(fabs((double)sums[k] - exact) <= 2e-6 * exact);
        }
        group_test_close(test);
    }
    arena_release(&arena);
}

static void check_softmax(enum op op, int64_t axis, int rank, const int64_t *sizes)
{
    TEST_ARENA(arena);
    struct op_case c = unary_case(op, shape(&arena, DTYPE_F32, rank, sizes), DTYPE_F32);
    add_attribute(&c, attribute_int(ATTR_axis, axis));
    check(&c, axis == -1 || axis == rank - 1 ? "cpu_rows" : "cpu_columns");
    arena_release(&arena);
}

static void test_rows(void **state)
{
    (void)state;
    check_softmax(OP_Softmax, -1, SIZES(3, 4, 129));
    check_softmax(OP_Softmax, -1, SIZES(70, 8));
    check_softmax(OP_LogSoftmax, -1, SIZES(5, 1000));
    check_softmax(OP_Softmax, 1, SIZES(2, 21, 33));
    check_softmax(OP_Softmax, 0, SIZES(40));
    check_softmax(OP_Softmax, 1, SIZES(3, 21, 2, 301));
    check_softmax(OP_LogSoftmax, 0, SIZES(9, 530));
    check_softmax(OP_Softmax, 1, SIZES(0, 9));
    TEST_ARENA(arena);
    for (int64_t axis = 1; axis < 3; axis++) {
        const struct tensor x = shape(&arena, DTYPE_F32, SIZES(6, 5, 77)),
                            scale = shape(&arena, DTYPE_F32, 3 - (int)axis,
                                          (const int64_t[]){axis == 1 ? 5 : 77, 77});
        struct op_case c = {
            .op = OP_LayerNormalization, .input_count = 3, .output_count = 1, .inputs = {x, scale, scale}};
        c.outputs[0] = x;
        add_attribute(&c, attribute_int(ATTR_axis, axis));
        check(&c, "cpu_rows");
    }
    const struct tensor image = shape(&arena, DTYPE_F32, SIZES(2, 3, 9, 14)),
                        channel = shape(&arena, DTYPE_F32, SIZES(3));
    struct op_case c = {.op = OP_InstanceNormalization,
                        .input_count = 3,
                        .output_count = 1,
                        .inputs = {image, channel, channel}};
    c.outputs[0] = image;
    check(&c, "cpu_rows");
    arena_release(&arena);
}

struct pool {
    enum op op;
    int64_t size[2], kernel[2], stride[2], dilation[2], pads[4], ceil_mode, include_pad;
};

static void check_pool(const struct pool *p, enum dtype dtype)
{
    TEST_ARENA(arena);
    int64_t out[4] = {2, 3};
    for (int i = 0; i < 2; i++) {
        const int64_t room =
            p->size[i] + p->pads[i] + p->pads[2 + i] - p->dilation[i] * (p->kernel[i] - 1) - 1;
        out[2 + i] = (room + (p->ceil_mode ? p->stride[i] - 1 : 0)) / p->stride[i] + 1;
    }
    struct op_case c = {.op = p->op, .input_count = 1, .output_count = 1};
    c.inputs[0] = shape(&arena, dtype, SIZES(2, 3, p->size[0], p->size[1]));
    c.outputs[0] = shape(&arena, dtype, 4, out);
    add_attribute(&c, attribute_ints(ATTR_kernel_shape, 2, p->kernel));
    add_attribute(&c, attribute_ints(ATTR_strides, 2, p->stride));
    add_attribute(&c, attribute_ints(ATTR_dilations, 2, p->dilation));
    add_attribute(&c, attribute_ints(ATTR_pads, 4, p->pads));
    add_attribute(&c, attribute_int(ATTR_ceil_mode, p->ceil_mode));
    add_attribute(&c, attribute_int(ATTR_count_include_pad, p->include_pad));
    check(&c, NULL);
    arena_release(&arena);
}

static void test_windows(void **state)
{
    (void)state;
    static const struct pool pools[] = {
        {OP_MaxPool, {37, 41}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, 0},
        {OP_MaxPool, {20, 20}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 0, 0},
        {OP_MaxPool, {28, 64}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 0, 0},
        {OP_MaxPool, {15, 50}, {3, 2}, {3, 1}, {2, 3}, {2, 1, 0, 2}, 1, 0},
        {OP_MaxPool, {3, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, 0},
        {OP_MaxPool, {24, 40}, {13, 13}, {1, 1}, {1, 1}, {6, 6, 6, 6}, 0, 0},
        {OP_AveragePool, {17, 33}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 0, 0},
        {OP_AveragePool, {17, 34}, {3, 3}, {1, 2}, {1, 1}, {1, 1, 1, 1}, 1, 1},
        {OP_AveragePool, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 0, 0},
    };
    for (unsigned i = 0; i < sizeof pools / sizeof *pools; i++)
        check_pool(&pools[i], DTYPE_F32);
    check_pool(&pools[0], DTYPE_I8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),       cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_long_sums_keep_their_digits),
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The CPU strategies for contractions against the interpreter: matrix products and convolutions at odd sizes,
 * every candidate, on each ISA level that this machine has, with constant and with free sizes, constant and
 * computed operands.
 */
#include "tests/unit/definition_support.h"
#include "tests/unit/strategy_support.h"

enum finish { FINISH_NONE, FINISH_RESIDUAL, FINISH_SIGMOID };

struct problem {
    struct arena *arena;
    struct graph *graph;
    struct exprs pool;
    struct definition definition;
    struct symbols symbols;
    bool constant[MAX_BUFFERS];
};

/* The Definition of one node, with another operation behind its sum. */
static void define_problem(struct problem *p, struct arena *arena, const struct op_case *c, bool symbolic,
                           enum finish finish)
{
    memset(p, 0, sizeof *p);
    p->arena = arena;
    p->graph = graph_new(arena);
    p->symbols = (struct symbols){.dims = &p->graph->dims, .symbolic = symbolic};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena, "case");
    const node_id node = case_node(arena, c, &p->symbols, p->graph);
    exprs_init(&p->pool, arena, &p->graph->dims);
    assert_true(define_node(p->graph, node, &p->pool, &diagnostics, &p->definition));
    if (finish == FINISH_NONE)
        return;
    struct nest *nest = &p->definition.nests.items[0];
    struct nest_store *store = &nest->stores[0];
    expr value = store->value;
    if (finish == FINISH_SIGMOID) {
        value = expr_binary(&p->pool, EXPR_MUL, value, expr_unary(&p->pool, EXPR_SIGMOID, value));
    } else {
        const struct tensor_type type = p->definition.buffers.items[store->buffer].type;
        const uint32_t buffer = definition_buffer(&p->definition, BUFFER_INPUT, type);
        expr axes[MAX_RANK];
        for (uint32_t i = 0; i < nest->rank; i++)
            axes[i] = nest_axis(&p->definition, nest, i);
        value =
            expr_binary(&p->pool, EXPR_ADD, value, expr_load(&p->pool, buffer, type.dtype, nest->rank, axes));
        value = expr_binary(&p->pool, EXPR_MAX, value, expr_float(&p->pool, type.dtype, 0));
    }
    store->value = value;
}

static void check_problem(struct problem *p, const char *strategy, uint32_t which, const char *what)
{
    for (unsigned i = 0; i < TEST_LEVELS; i++) {
        struct group_test *test = arena_new(p->arena, struct group_test);
        /* Without fma the kernels are those of the reference, and slow: one candidate shows that they compile. */
        if (!test_level(i) || (which && test_level(i)->software_fma))
            continue;
        memcpy(test->constant, p->constant, sizeof test->constant);
        if (!group_test_build(test, p->arena, &p->definition, test_level(i), strategy, which))
            fail_msg("%s does not fit %s", strategy, what);
        group_test_check(test, p->symbols.values, what);
        group_test_close(test);
    }
}

static struct op_case matmul_case(struct arena *arena, int rank, const int64_t *left, int right_rank,
                                  const int64_t *right, const int64_t *result)
{
    struct op_case c = {.op = OP_MatMul, .input_count = 2, .output_count = 1};
    c.inputs[0] = tensor_new(arena, DTYPE_F32, rank, left);
    c.inputs[1] = tensor_new(arena, DTYPE_F32, right_rank, right);
    c.outputs[0] = tensor_new(arena, DTYPE_F32, rank > right_rank ? rank : right_rank, result);
    return c;
}

static void check_matmul(const int64_t *size, unsigned mode, uint32_t which)
{
    TEST_ARENA(arena);
    const int64_t m = size[0], n = size[1], k = size[2];
    struct op_case c = matmul_case(&arena, SIZES(m, k), SIZES(k, n), (const int64_t[]){m, n});
    struct problem p;
    define_problem(&p, &arena, &c, mode & 1, (enum finish)(mode % 3));
    p.constant[1] = mode >= 2 && !(mode & 1);
    p.constant[0] = mode == 4;
    check_problem(&p, "cpu_matmul", which, "MatMul");
    arena_release(&arena);
}

static void test_matmul_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 2, 3},      {1, 17, 40},  {3, 5, 7},     {8, 48, 33},
                                       {13, 33, 129},  {40, 39, 37}, {29, 16, 600}, {64, 130, 2},
                                       {5, 257, 1030}, {31, 9, 0}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned mode = 0; mode < 6; mode++)
            check_matmul(sizes[i], mode, mode == 5 ? i : 0);
}

/* Channels, outputs, groups, then for each spatial dim: size, kernel, stride, dilation, pad before, pad
 * behind. */
struct convolution {
    int64_t batch, channels, outputs, group;
    uint32_t spatial;
    int64_t size[3], kernel[3], stride[3], dilation[3], pads[6];
};

static struct op_case conv_case(struct arena *arena, const struct convolution *v)
{
    struct op_case c = {.op = OP_Conv, .input_count = 3, .output_count = 1};
    int64_t x[5] = {v->batch, v->channels}, w[5] = {v->outputs, v->channels / v->group},
            y[5] = {v->batch, v->outputs};
    for (uint32_t i = 0; i < v->spatial; i++) {
        x[2 + i] = v->size[i];
        w[2 + i] = v->kernel[i];
        y[2 + i] =
            (v->size[i] + v->pads[i] + v->pads[v->spatial + i] - v->dilation[i] * (v->kernel[i] - 1) - 1) /
                v->stride[i] +
            1;
    }
    const int rank = (int)v->spatial + 2;
    c.inputs[0] = tensor_new(arena, DTYPE_F32, rank, x);
    c.inputs[1] = tensor_new(arena, DTYPE_F32, rank, w);
    c.inputs[2] = tensor_new(arena, DTYPE_F32, SIZES(v->outputs));
    c.outputs[0] = tensor_new(arena, DTYPE_F32, rank, y);
    add_attribute(&c, attribute_ints(ATTR_strides, v->spatial, v->stride));
    add_attribute(&c, attribute_ints(ATTR_dilations, v->spatial, v->dilation));
    add_attribute(&c, attribute_ints(ATTR_pads, 2 * v->spatial, v->pads));
    add_attribute(&c, attribute_int(ATTR_group, v->group));
    return c;
}

static void check_conv(const struct convolution *v, const char *strategy, unsigned mode, uint32_t which)
{
    TEST_ARENA(arena);
    struct op_case c = conv_case(&arena, v);
    struct problem p;
    define_problem(&p, &arena, &c, false, (enum finish)(mode % 3));
    p.constant[1] = mode != 1;
    check_problem(&p, strategy, which, "Conv");
    arena_release(&arena);
}

static const struct convolution convolutions[] = {
    {1, 3, 5, 1, 2, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {2, 4, 17, 1, 2, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {1, 64, 33, 1, 2, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {1, 3, 20, 1, 2, {37, 41}, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
    {1, 5, 9, 1, 2, {13, 40}, {3, 2}, {2, 3}, {1, 2}, {0, 2, 1, 0}},
    {2, 8, 12, 4, 2, {10, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}},
    {1, 6, 10, 2, 2, {8, 21}, {1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
    {1, 37, 7, 1, 2, {5, 6}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
    {3, 7, 40, 1, 1, {50}, {5}, {1}, {1}, {2, 2}},
    {1, 7, 4, 1, 1, {50}, {3}, {2}, {3}, {1, 4}},
    {1, 3, 6, 1, 3, {5, 6, 19}, {3, 2, 3}, {1, 2, 1}, {1, 1, 1}, {1, 0, 1, 1, 1, 1}},
};

static void test_conv_sizes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        for (unsigned mode = 0; mode < 3; mode++)
            check_conv(&convolutions[i], "cpu_conv", mode, mode == 2 ? 3 : 0);
}

static const struct convolution channelwise[] = {
    {1, 5, 5, 5, 2, {9, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {2, 3, 3, 3, 2, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {1, 4, 4, 4, 2, {14, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
    {1, 4, 4, 4, 2, {14, 33}, {5, 5}, {2, 2}, {1, 1}, {1, 2, 1, 2}},
    {1, 4, 4, 4, 2, {20, 17}, {5, 3}, {1, 1}, {2, 3}, {4, 3, 1, 0}},
    {1, 3, 3, 3, 2, {10, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {1, 3, 3, 3, 2, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {2, 6, 6, 6, 1, {50}, {7}, {1}, {1}, {3, 3}},
    {1, 6, 6, 6, 1, {9}, {3}, {2}, {1}, {1, 1}},
};

static void test_channelwise_sizes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof channelwise / sizeof *channelwise; i++)
        for (unsigned mode = 0; mode < 3; mode++)
            check_conv(&channelwise[i], "cpu_depthwise", mode, 0);
}

/* One kernel at several sizes: batch, heads and length free, heads inside the rows as inlined transposes
 * leave them. */
static void check_attention_at(bool scores, unsigned l)
{
    static const int64_t sizes[][5] = {
        {1, 2, 3, 5, 8}, {2, 3, 40, 17, 8}, {1, 1, 1, 1, 8}, {3, 2, 131, 64, 8}, {0, 2, 4, 4, 8}};
    TEST_ARENA(arena);
    struct dims dims;
    struct exprs pool;
    dims_init(&dims, &arena);
    exprs_init(&pool, &arena, &dims);
    dim extents[5];
    for (uint32_t i = 0; i < 4; i++) {
        const struct symbol symbol = {.input = i, .low = 0, .high = 4096, .hint = 64};
        extents[i] = dim_symbol(&dims, &symbol);
    }
    extents[4] = dim_constant(&dims, 8);
    struct definition d = {.pool = &pool};
    const dim length = scores ? extents[4] : extents[3], inner = scores ? extents[3] : extents[4];
    const dim left[2][4] = {{extents[0], extents[1], extents[2], length},
                            {extents[0], extents[2], extents[1], length}};
    const dim right[] = {extents[0], extents[3], extents[1], extents[4]};
    const dim result[2][4] = {{extents[0], extents[2], extents[1], inner},
                              {extents[0], extents[1], extents[2], inner}};
    definition_buffer(&d, BUFFER_INPUT, tensor_type_new(&arena, DTYPE_F32, 4, left[scores]));
    definition_buffer(&d, BUFFER_INPUT, tensor_type_new(&arena, DTYPE_F32, 4, right));
    definition_buffer(&d, BUFFER_OUTPUT, tensor_type_new(&arena, DTYPE_F32, 4, result[scores]));
    const dim parallel[] = {extents[0], extents[1], extents[2], inner};
    struct nest *nest = definition_nest(&d, 4, parallel, 1, &length);
    expr a[5];
    for (uint32_t i = 0; i < 5; i++)
        a[i] = nest_axis(&d, nest, i);
    const expr left_at[2][4] = {{a[0], a[1], a[2], a[4]}, {a[0], a[2], a[1], a[4]}};
    const expr right_at[2][4] = {{a[0], a[4], a[1], a[3]}, {a[0], a[3], a[1], a[4]}};
    const expr result_at[2][4] = {{a[0], a[2], a[1], a[3]}, {a[0], a[1], a[2], a[3]}};
    const expr body = expr_binary(&pool, EXPR_MUL, expr_load(&pool, 0, DTYPE_F32, 4, left_at[scores]),
                                  expr_load(&pool, 1, DTYPE_F32, 4, right_at[scores]));
    const expr sum = expr_reduced(&pool, nest_reduce(&d, nest, REDUCE_SUM, body), DTYPE_F32);
    /* Scores behind the diagonal are masked: the epilogue uses its position. */
    const expr value = scores ? expr_select(&pool, expr_binary(&pool, EXPR_LESS_EQUAL, a[3], a[2]), sum,
                                            expr_float(&pool, DTYPE_F32, -100))
                              : sum;
    nest_store(&d, nest, 2, result_at[scores], value);
    struct group_test *test = arena_new(&arena, struct group_test);
    if (test_level(l)) {
        assert_true(group_test_build(test, &arena, &d, test_level(l), "cpu_matmul", 0));
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
            group_test_check(test, sizes[i], scores ? "scores" : "values");
        group_test_close(test);
    }
    arena_release(&arena);
}

static void check_attention(bool scores)
{
    for (unsigned l = 0; l < TEST_LEVELS; l++)
        check_attention_at(scores, l);
}

static void test_attention(void **state)
{
    (void)state;
    check_attention(true);
    check_attention(false);
}

/* A 3x3 convolution with steps of `stride` over an image whose channels lie last, as transposed inputs give
 * it. */
static void check_channels_last(int64_t stride, bool constant)
{
    TEST_ARENA(arena);
    struct dims dims;
    struct exprs pool;
    dims_init(&dims, &arena);
    exprs_init(&pool, &arena, &dims);
    enum { IMAGES = 2, ROWS = 21, COLUMNS = 37, CHANNELS = 3, FILTERS = 9, TAPS = 3 };
    const int64_t heights = (ROWS + 2 - TAPS) / stride + 1, widths = (COLUMNS + 2 - TAPS) / stride + 1;
    dim d[9];
    const int64_t sizes[] = {IMAGES, FILTERS, heights, widths, CHANNELS, TAPS, TAPS, ROWS, COLUMNS};
    for (int i = 0; i < 9; i++)
        d[i] = dim_constant(&dims, sizes[i]);
    struct definition definition = {.pool = &pool};
    const dim image[] = {d[0], d[7], d[8], d[4]}, weights[] = {d[1], d[4], d[5], d[6]};
    definition_buffer(&definition, BUFFER_INPUT, tensor_type_new(&arena, DTYPE_F32, 4, image));
    definition_buffer(&definition, BUFFER_INPUT, tensor_type_new(&arena, DTYPE_F32, 4, weights));
    definition_buffer(&definition, BUFFER_OUTPUT, tensor_type_new(&arena, DTYPE_F32, 4, d));
    struct nest *nest = definition_nest(&definition, 4, d, 3, d + 4);
    expr a[7], place[2];
    for (uint32_t i = 0; i < 7; i++)
        a[i] = nest_axis(&definition, nest, i);
    for (int i = 0; i < 2; i++) {
        const expr step = expr_binary(&pool, EXPR_MUL, a[2 + i], expr_index(&pool, stride));
        place[i] =
            expr_binary(&pool, EXPR_ADD, expr_binary(&pool, EXPR_ADD, step, a[5 + i]), expr_index(&pool, -1));
    }
    const expr pixel_at[] = {a[0], place[0], place[1], a[4]}, weight_at[] = {a[1], a[4], a[5], a[6]};
    const expr pixel = expr_load_or(&pool, 0, DTYPE_F32, 4, pixel_at, expr_float(&pool, DTYPE_F32, 0));
    const expr body = expr_binary(&pool, EXPR_MUL, pixel, expr_load(&pool, 1, DTYPE_F32, 4, weight_at));
    const expr sum = expr_reduced(&pool, nest_reduce(&definition, nest, REDUCE_SUM, body), DTYPE_F32);
    nest_store(&definition, nest, 2, NULL, sum);
    for (unsigned l = 0; l < TEST_LEVELS; l++) {
        struct group_test *test = arena_new(&arena, struct group_test);
        if (!test_level(l))
            continue;
        test->constant[1] = constant;
        assert_true(group_test_build(test, &arena, &definition, test_level(l), "cpu_conv", 0));
        group_test_check(test, NULL, "channels last");
        group_test_close(test);
    }
    arena_release(&arena);
}

static void test_channels_last(void **state)
{
    (void)state;
    for (int64_t stride = 1; stride <= 2; stride++) {
        check_channels_last(stride, true);
        check_channels_last(stride, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels_last), cmocka_unit_test(test_matmul_sizes),
        cmocka_unit_test(test_conv_sizes),    cmocka_unit_test(test_channelwise_sizes),
        cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

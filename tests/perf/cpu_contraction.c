/* Speed of the CPU strategies' contraction kernels: for shapes of well-known models, the strategy that is
 * chosen, its configuration, GFLOP/s of one thread and the share of the peak, which is measured by a loop of
 * fmas on registers.
 *
 *     cpu_contraction [NAME PART]      only problems whose names hold the text
 */
#include "tests/unit/definition_support.h"
#include "tests/unit/strategy_support.h"

#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- peak: a kernel of fmas on registers
 * --------------------------------------------------------------------------- */

enum { SUMS = 12, STEPS = 200000 };

static double peak_flops(struct arena *arena, const struct machine *machine)
{
    struct dims dims;
    dims_init(&dims, arena);
    struct kernel *kernel = kernel_new(arena, &dims);
    struct exprs *pool = kernel->pool;
    const uint16_t lanes = (uint16_t)(machine->vector_bytes / 4);
    const struct kernel_memory memory = {
        .space = MEMORY_GLOBAL, .dtype = DTYPE_F32, .read = true, .label = "y"};
    const uint32_t y = kernel_memory_add(kernel, &memory);
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    uint32_t sums[SUMS];
    expr step;
    const expr factor = build_declare(&top, "factor", kernel_element(kernel, y, expr_index(pool, 0), lanes));
    for (uint32_t i = 0; i < SUMS; i++)
        sums[i] = build_mutable(&top, "sum",
                                kernel_element(kernel, y, expr_index(pool, (int64_t)i * lanes), lanes));
    build_for(&top, "step", expr_index(pool, 0), expr_index(pool, STEPS), 0, LOOP_SERIAL, &body, &step);
    for (uint32_t i = 0; i < SUMS; i++) {
        const expr arguments[] = {kernel_variable(kernel, sums[i]), factor, factor};
        const struct expr_node node = {
            .op = EXPR_FMA, .dtype = DTYPE_F32, .lanes = lanes, .count = 3, .arguments = arguments};
        build_assign(&body, sums[i], expr_make(pool, &node));
    }
    for (uint32_t i = 0; i < SUMS; i++)
        build_store(&top, y, expr_index(pool, (int64_t)i * lanes), kernel_variable(kernel, sums[i]));
    const struct object_kernel object = {.kernel = kernel, .symbol = "peak", .machine = machine};
    const struct library library = load_kernels(arena, &object, 1);
    kernel_function *function = library_kernel(&library, "peak");
    float values[SUMS * 16] = {0};
    void *buffers[] = {values};
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        const double start = now();
        function(buffers, NULL, 0, 1, NULL);
        const double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    dlclose(library.handle);
    return 2.0 * (double)(SUMS * STEPS) * lanes / best;
}

/* ---- problems
 * -------------------------------------------------------------------------------------------------------- */

struct problem {
    const char *name;
    int64_t size[8]; /* MATMUL: batch, m, n, k. CONV: channels, height, outputs, kernel, stride, groups */
    enum { MATMUL, CONV, SCORES, VALUES } kind;
};

static const struct problem problems[] = {
    {"resnet conv1 7x7 s2", {3, 224, 64, 7, 2, 1}, CONV},
    {"resnet 3x3 64 56", {64, 56, 64, 3, 1, 1}, CONV},
    {"resnet 3x3 128 28", {128, 28, 128, 3, 1, 1}, CONV},
    {"resnet 3x3 256 14", {256, 14, 256, 3, 1, 1}, CONV},
    {"resnet 3x3 512 7", {512, 7, 512, 3, 1, 1}, CONV},
    {"resnet 3x3 s2 128 56", {128, 56, 128, 3, 2, 1}, CONV},
    {"resnet 3x3 s2 512 14", {512, 14, 512, 3, 2, 1}, CONV},
    {"resnet 1x1 64-64 56", {64, 56, 64, 1, 1, 1}, CONV},
    {"resnet 1x1 64-256 56", {64, 56, 256, 1, 1, 1}, CONV},
    {"resnet 1x1 256-64 56", {256, 56, 64, 1, 1, 1}, CONV},
    {"resnet 1x1 512-128 28", {512, 28, 128, 1, 1, 1}, CONV},
    {"resnet 1x1 128-512 28", {128, 28, 512, 1, 1, 1}, CONV},
    {"resnet 1x1 256-1024 14", {256, 14, 1024, 1, 1, 1}, CONV},
    {"resnet 1x1 1024-256 14", {1024, 14, 256, 1, 1, 1}, CONV},
    {"resnet 1x1 512-2048 7", {512, 7, 2048, 1, 1, 1}, CONV},
    {"resnet 1x1 2048-512 7", {2048, 7, 512, 1, 1, 1}, CONV},
    {"resnet 1x1 s2 256-512 56", {256, 56, 512, 1, 2, 1}, CONV},
    {"mobile 1x1 24-144 56", {24, 56, 144, 1, 1, 1}, CONV},
    {"mobile 1x1 144-24 56", {144, 56, 24, 1, 1, 1}, CONV},
    {"mobile 1x1 160-960 7", {160, 7, 960, 1, 1, 1}, CONV},
    {"mobile first 3x3 s2", {3, 224, 32, 3, 2, 1}, CONV},
    {"depthwise 3x3 144 56", {144, 56, 144, 3, 1, 144}, CONV},
    {"depthwise 3x3 s2 144 56", {144, 56, 144, 3, 2, 144}, CONV},
    {"depthwise 3x3 384 14", {384, 14, 384, 3, 1, 384}, CONV},
    {"depthwise 3x3 960 7", {960, 7, 960, 3, 1, 960}, CONV},
    {"grouped 3x3 128 28 g4", {128, 28, 128, 3, 1, 4}, CONV},
    {"classifier 2048-1000", {1, 1, 1000, 2048}, MATMUL},
    {"bert 128x768x768", {1, 128, 768, 768}, MATMUL},
    {"bert 128x3072x768", {1, 128, 3072, 768}, MATMUL},
    {"bert 128x768x3072", {1, 128, 768, 3072}, MATMUL},
    {"gpt decode 1x768x3072", {1, 1, 3072, 768}, MATMUL},
    {"short 16x768x768", {1, 16, 768, 768}, MATMUL},
    {"scores 12x128x128x64", {12, 128, 128, 64}, SCORES},
    {"values 12x128x64x128", {12, 128, 64, 128}, VALUES},
    {"scores 12x197x197x64", {12, 197, 197, 64}, SCORES},
    {"values 12x197x64x197", {12, 197, 64, 197}, VALUES},
};

static void define_matmul_problem(struct arena *arena, const struct problem *p, struct op_case *c)
{
    const int64_t m = p->size[1], n = p->size[2], k = p->size[3];
    *c = (struct op_case){.op = OP_MatMul, .input_count = 2, .output_count = 1};
    c->inputs[0] = tensor_new(arena, DTYPE_F32, SIZES(m, k));
    c->inputs[1] = tensor_new(arena, DTYPE_F32, SIZES(k, n));
    c->outputs[0] = tensor_new(arena, DTYPE_F32, SIZES(m, n));
}

static void define_conv_problem(struct arena *arena, const struct problem *p, struct op_case *c)
{
    const int64_t *s = p->size, pad = s[3] / 2, out = (s[1] + 2 * pad - s[3]) / s[4] + 1;
    static int64_t strides[2], pads[4];
    strides[0] = strides[1] = s[4];
    pads[0] = pads[1] = pads[2] = pads[3] = pad;
    *c = (struct op_case){.op = OP_Conv, .input_count = 3, .output_count = 1};
    c->inputs[0] = tensor_new(arena, DTYPE_F32, SIZES(1, s[0], s[1], s[1]));
    c->inputs[1] = tensor_new(arena, DTYPE_F32, SIZES(s[2], s[0] / s[5], s[3], s[3]));
    c->inputs[2] = tensor_new(arena, DTYPE_F32, SIZES(s[2]));
    c->outputs[0] = tensor_new(arena, DTYPE_F32, SIZES(1, s[2], out, out));
    add_attribute(c, attribute_ints(ATTR_strides, 2, strides));
    add_attribute(c, attribute_ints(ATTR_pads, 4, pads));
    add_attribute(c, attribute_int(ATTR_group, s[5]));
}

static expr axis_of(const struct definition *d, uint32_t axis)
{
    return nest_axis(d, &d->nests.items[0], axis);
}

/* Attention: heads lie inside the rows of the operands, as transposes that were inlined leave them. */
static void define_attention(struct arena *arena, struct dims *dims, const struct problem *p,
                             struct definition *d)
{
    const int64_t heads = p->size[0], m = p->size[1], n = p->size[2], k = p->size[3];
    const bool scores = p->kind == SCORES;
    const dim extents[] = {dim_constant(dims, heads), dim_constant(dims, m), dim_constant(dims, n),
                           dim_constant(dims, k)};
    const dim left[] = {scores ? extents[1] : extents[0], scores ? extents[0] : extents[1], extents[3]};
    const dim right[] = {scores ? extents[2] : extents[3], extents[0], scores ? extents[3] : extents[2]};
    const dim result[] = {scores ? extents[0] : extents[1], scores ? extents[1] : extents[0], extents[2]};
    definition_buffer(d, BUFFER_INPUT, tensor_type_new(arena, DTYPE_F32, 3, left));
    definition_buffer(d, BUFFER_INPUT, tensor_type_new(arena, DTYPE_F32, 3, right));
    definition_buffer(d, BUFFER_OUTPUT, tensor_type_new(arena, DTYPE_F32, 3, result));
    struct nest *nest = definition_nest(d, 3, extents, 1, extents + 3);
    const expr h = axis_of(d, 0), i = axis_of(d, 1), j = axis_of(d, 2), r = axis_of(d, 3);
    const expr left_at[] = {scores ? i : h, scores ? h : i, r},
               right_at[] = {scores ? j : r, h, scores ? r : j};
    const expr body = expr_binary(d->pool, EXPR_MUL, expr_load(d->pool, 0, DTYPE_F32, 3, left_at),
                                  expr_load(d->pool, 1, DTYPE_F32, 3, right_at));
    const expr result_at[] = {scores ? h : i, scores ? i : h, j};
    nest_store(d, nest, 2, result_at,
               expr_reduced(d->pool, nest_reduce(d, nest, REDUCE_SUM, body), DTYPE_F32));
}

static double operations(const struct problem *p)
{
    const int64_t *s = p->size;
    if (p->kind != CONV)
        return 2.0 * (double)(s[0] * s[1] * s[2] * s[3]);
    const int64_t out = (s[1] + s[3] / 2 * 2 - s[3]) / s[4] + 1;
    return 2.0 * (double)(out * out * s[2] * s[0] / s[5] * s[3] * s[3]);
}

static double best_time(struct group_test *test, void *const *buffers, void *scratch)
{
    double best = 1e9, spent = 0;
    for (int run = 0; run < 200 && (run < 3 || spent < 0.3); run++) {
        const double start = now();
        group_test_run(test, NULL, buffers, scratch, 1);
        const double seconds = now() - start;
        spent += seconds;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static void measure(const struct problem *p, const struct machine *machine, double peak)
{
    TEST_ARENA(arena);
    struct op_case c;
    struct graph *graph = graph_new(&arena);
    struct symbols symbols = {.dims = &graph->dims};
    struct exprs pool;
    exprs_init(&pool, &arena, &graph->dims);
    struct definition definition = {.pool = &pool};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "perf");
    struct group_test *test = arena_new(&arena, struct group_test);
    if (p->kind == SCORES || p->kind == VALUES) {
        define_attention(&arena, &graph->dims, p, &definition);
    } else {
        (p->kind == CONV ? define_conv_problem : define_matmul_problem)(&arena, p, &c);
        assert_true(
            define_node(graph, case_node(&arena, &c, &symbols, graph), &pool, &diagnostics, &definition));
        test->constant[1] = true;
    }
    assert_true(group_test_build(test, &arena, &definition, machine, NULL, 0));
    void *buffers[MAX_BUFFERS] = {0};
    for (uint32_t i = 0; i < definition.buffers.count; i++) {
        const struct buffer *buffer = &definition.buffers.items[i];
        const uint64_t bytes = type_bytes(&graph->dims, &buffer->type, NULL);
        buffers[i] = arena_alloc(&arena, bytes + 64);
        buffers[i] = (void *)(((uintptr_t)buffers[i] + 63) & ~(uintptr_t)63);
        if (buffer->role == BUFFER_INPUT)
            fill_random(buffers[i], buffer->type.dtype, bytes, i + 1);
    }
    group_test_pack(test, buffers);
    const double seconds = best_time(test, buffers, group_test_scratch(test));
    struct text config;
    text_init(&config, &arena);
    test->strategy->describe(&test->config, &config);
    printf("%-8s %-26s %9.1f us %7.1f GFLOP/s %5.1f%%  %s %s (model %.1f us)\n", machine->name, p->name,
           seconds * 1e6, operations(p) / seconds * 1e-9, operations(p) / seconds / peak * 100,
           test->strategy->name, config.data, 2e6 * test->strategy->cost(&test->context, &test->config));
    fflush(stdout);
    group_test_close(test);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const char *const levels[] = {"cpu", "cpu-v4"}; /* v2 compiles the kernels of v3 */
    for (unsigned i = 0; i < 2; i++) {
        TEST_ARENA(arena);
        if (i && !machine_has_v4())
            continue;
        const struct machine *machine = machine_find(levels[i]);
        const double peak = peak_flops(&arena, machine);
        printf("%-8s peak %.1f GFLOP/s\n", machine->name, peak * 1e-9);
        for (unsigned k = 0; k < sizeof problems / sizeof *problems; k++)
            if (argc < 2 || strstr(problems[k].name, argv[1]))
                measure(&problems[k], machine, peak);
        arena_release(&arena);
    }
    return 0;
}

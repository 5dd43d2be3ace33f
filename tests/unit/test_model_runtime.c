/* Models from text to results on the CPU, for what only a whole model shows: outputs in inputs' buffers,
 * sizes that are read from inputs, constants that the init program computes, guards, the caller's workspace.
 */
#include "tests/unit/model_support.h"

#include <math.h>

enum { ROWS = 6 };

static void fill(float *data, size_t count, float seed)
{
    for (size_t i = 0; i < count; i++)
        data[i] = seed + (float)(i * 13 % 29) * 0.5f;
}

static gpucc_status prepare(gpucc_context *context, size_t count, const gpucc_dim *items)
{
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = items;
    dims.count = count;
    return gpucc_prepare(context, &dims, NULL);
}

/* An iteration of a loop stores its element, and nothing of the size of the whole. */
static void a_scan_output_is_filled_in_place(void **state)
{
    enum { STEPS = 1 << 12, WIDTH = 1 << 10 };
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  input %x \"x\" : f32[1024]\n"
                                    "  weight %trips : i64[] hex 0010000000000000\n"
                                    "  weight %one : f32[] hex 0000803f\n"
                                    "  %1, %2 = Loop(%trips, _, %x) : f32[*], f32[*]\n"
                                    "    body (%i : i64[*], %on : bool[*], %s : f32[*]) {\n"
                                    "      %3 = Add(%s, %one) : f32[*]\n"
                                    "      yield %on, %3, %s\n"
                                    "    }\n"
                                    "  output %1 \"last\"\n"
                                    "  output %2 \"all\"\n"
                                    "}\n");
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    assert_ok(prepare(context, 0, NULL));
    gpucc_statistics statistics = GPUCC_INIT(gpucc_statistics);
    assert_ok(gpucc_context_statistics(context, &statistics));
    /* the state alone: what a step makes of it would need as much again */
    assert_true(statistics.arena_bytes < 2 * (uint64_t)STEPS * WIDTH * sizeof(float));
    float *x = calloc(WIDTH, sizeof *x), *last = calloc(WIDTH, sizeof *last);
    float *all = calloc((size_t)STEPS * WIDTH, sizeof *all);
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(WIDTH));
    gpucc_tensor outputs[] = {tensor_over(last, GPUCC_F32, 4, DIMS(WIDTH)),
                              tensor_over(all, GPUCC_F32, 4, DIMS(STEPS, WIDTH))};
    assert_non_null(all);
    assert_ok(gpucc_enqueue(context, NULL, &input, outputs));
    for (size_t t = 0; t < STEPS; t++)
        assert_true(all[t * WIDTH + 7] == (float)t);
    assert_true(last[0] == (float)STEPS);
    free(x);
    free(last);
    free(all);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* ---- aliases
 * ------------------------------------------------------------------------------------------------------- */

static const char cache_model[] = "model opset 17 {\n"
                                  "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                                  "  input %past \"past\" : f32[s0, 4]\n"
                                  "  input %x \"x\" : f32[s0, 4]\n"
                                  "  %present = Add(%past, %x) : f32[s0, 4] ; #0\n"
                                  "  %y = Mul(%present, %x) : f32[s0, 4] ; #1\n"
                                  "  output %present \"present\"\n"
                                  "  output %y \"y\"\n"
                                  "  alias 0 = 0\n"
                                  "}\n";

static void an_output_lives_in_its_inputs_buffer(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu", cache_model);
    gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
    assert_ok(gpucc_output_info(model, 0, &info));
    assert_int_equal(info.alias_input, 0);
    assert_ok(gpucc_output_info(model, 1, &info));
    assert_int_equal(info.alias_input, -1);
    gpucc_context *context = model_context(model, GPUCC_CPU, 2);
    assert_ok(prepare(context, 1, &(gpucc_dim){"past[0]", 1, ROWS}));
    float cache[ROWS * 4], x[ROWS * 4], y[ROWS * 4], expected[ROWS * 4];
    fill(cache, ROWS * 4, 1);
    memcpy(expected, cache, sizeof cache);
    for (int step = 0; step < 3; step++) {
        fill(x, ROWS * 4, (float)step);
        gpucc_tensor inputs[] = {tensor_over(cache, GPUCC_F32, 4, DIMS(ROWS, 4)),
                                 tensor_over(x, GPUCC_F32, 4, DIMS(ROWS, 4))};
        gpucc_tensor outputs[] = {inputs[0], tensor_over(y, GPUCC_F32, 4, DIMS(ROWS, 4))};
        assert_ok(gpucc_enqueue(context, NULL, inputs, outputs));
        for (int i = 0; i < ROWS * 4; i++) {
            expected[i] += x[i];
            assert_true(cache[i] == expected[i] && y[i] == expected[i] * x[i]);
        }
    }
    /* Another buffer is refused by enqueue and taken by run. */
    float other[ROWS * 4];
    gpucc_tensor inputs[] = {tensor_over(cache, GPUCC_F32, 4, DIMS(ROWS, 4)),
                             tensor_over(x, GPUCC_F32, 4, DIMS(ROWS, 4))};
    gpucc_tensor outputs[] = {tensor_over(other, GPUCC_F32, 4, DIMS(ROWS, 4)),
                              tensor_over(y, GPUCC_F32, 4, DIMS(ROWS, 4))};
    assert_fails(gpucc_enqueue(context, NULL, inputs, outputs), GPUCC_INVALID_ARGUMENT,
                 "output 0 \"present\" must be the buffer of input 0 \"past\" (--alias)");
    assert_ok(gpucc_run(context, inputs, outputs));
    for (int i = 0; i < ROWS * 4; i++)
        assert_true(other[i] == expected[i] + x[i] && cache[i] == expected[i]);
    outputs[0].data = cache + 2;
    outputs[0].bytes = sizeof cache;
    assert_fails(gpucc_run(context, inputs, outputs), GPUCC_INVALID_ARGUMENT, "overlaps input 0 \"past\"");
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void an_output_may_outgrow_its_input(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                                    "  input %past \"past\" : f32[s0, 4]\n"
                                    "  input %new \"new\" : f32[1, 4]\n"
                                    "  %present = Concat(%past, %new) axis=0 : f32[1 + s0, 4] ; #0\n"
                                    "  %y = ReduceSum(%present) axes=[0] keepdims=1 : f32[1, 4] ; #1\n"
                                    "  output %present \"present\"\n"
                                    "  output %y \"y\"\n"
                                    "  alias 0 = 0\n"
                                    "}\n");
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    assert_ok(prepare(context, 1, &(gpucc_dim){"past[0]", 1, ROWS}));
    float cache[ROWS * 4], new_row[4], y[4], sums[4] = {0};
    for (int64_t rows = 1; rows < ROWS; rows++) {
        if (rows == 1)
            for (int i = 0; i < 4; i++)
                sums[i] = cache[i] = (float)i;
        fill(new_row, 4, (float)rows);
        gpucc_tensor inputs[] = {tensor_over(cache, GPUCC_F32, 4, DIMS(rows, 4)),
                                 tensor_over(new_row, GPUCC_F32, 4, DIMS(1, 4))};
        gpucc_tensor outputs[] = {tensor_over(cache, GPUCC_F32, 4, DIMS(rows + 1, 4)),
                                  tensor_over(y, GPUCC_F32, 4, DIMS(1, 4))};
        assert_ok(gpucc_enqueue(context, NULL, inputs, outputs));
        assert_int_equal(outputs[0].dims[0], rows + 1);
        for (int i = 0; i < 4; i++) {
            sums[i] += new_row[i];
            assert_true(cache[rows * 4 + i] == new_row[i] && y[i] == sums[i]);
        }
        outputs[0].bytes -= 1;
        assert_fails(gpucc_enqueue(context, NULL, inputs, outputs), GPUCC_INVALID_ARGUMENT,
                     "output 0 \"present\": the buffer has");
    }
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* What is read late is right all the same, and copies stand in an order that is. */
static void aliases_wait_for_the_last_reader(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  input %a \"a\" : f32[8, 8]\n"
                                    "  input %b \"b\" : f32[8, 8]\n"
                                    "  %r = MatMul(%b, %b) : f32[8, 8] ; #0\n"
                                    "  %y = MatMul(%r, %b) : f32[8, 8] ; #1\n"
                                    "  output %r \"next b\"\n"
                                    "  output %b \"next a\"\n"
                                    "  output %y \"y\"\n"
                                    "  alias 0 = 1\n"
                                    "  alias 1 = 0\n"
                                    "}\n");
    assert_int_equal(world.plan.copies.count, 2);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    assert_ok(gpucc_prepare(context, NULL, NULL));
    float a[64], b[64], y[64], old[64];
    fill(a, 64, 1);
    fill(b, 64, -2);
    memcpy(old, b, sizeof b);
    gpucc_tensor inputs[] = {tensor_over(a, GPUCC_F32, 4, DIMS(8, 8)),
                             tensor_over(b, GPUCC_F32, 4, DIMS(8, 8))};
    gpucc_tensor outputs[] = {inputs[1], inputs[0], tensor_over(y, GPUCC_F32, 4, DIMS(8, 8))};
    assert_ok(gpucc_enqueue(context, NULL, inputs, outputs));
    assert_memory_equal(a, old, sizeof a);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            float r = 0, last = 0;
            for (int j = 0; j < 8; j++)
                r += old[i * 8 + j] * old[j * 8 + k];
            assert_true(fabsf(b[i * 8 + k] - r) <= 1e-4f * fabsf(r) + 1e-4f);
            for (int j = 0; j < 8; j++)
                last += b[i * 8 + j] * old[j * 8 + k];
            assert_true(fabsf(y[i * 8 + k] - last) <= 1e-4f * fabsf(last) + 1e-2f);
        }
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void expect_refusal(const char *text, enum diag_code code, const char *words)
{
    TEST_ARENA(arena);
    struct model world;
    assert_false(model_plan(&world, &arena, "cpu", FOLD_LIMIT, text));
    assert_int_equal(world.diagnostics.items.count, 1);
    assert_int_equal(world.diagnostics.items.items[0].code, code);
    if (!strstr(world.diagnostics.items.items[0].message, words))
        fail_msg("\"%s\" does not say \"%s\"", world.diagnostics.items.items[0].message, words);
    model_end(&world);
}

static void impossible_aliases_are_refused(void **state)
{
    (void)state;
    expect_refusal(
        "model opset 17 {\n"
        "  input %a \"a\" : f32[8]\n"
        "  input %b \"b\" : f32[8]\n"
        "  output %b \"first\"\n"
        "  output %a \"second\"\n"
        "  alias 0 = 0\n"
        "  alias 1 = 1\n"
        "}\n",
        DIAG_unsupported_case,
        "output \"first\" cannot live in the buffer of input \"a\": output \"second\" is a copy of that "
        "input and would read it after it is written");
    expect_refusal("model opset 17 {\n"
                   "  input %a \"a\" : f32[8]\n"
                   "  %y = Cast(%a) to=i32 : i32[8] ; #0\n"
                   "  output %y \"y\"\n"
                   "  alias 0 = 0\n"
                   "}\n",
                   DIAG_bad_option,
                   "output \"y\" holds i32 and cannot live in the buffer of input \"a\", which holds f32");
}

/* ---- sizes from inputs' values
 * ------------------------------------------------------------------------------------- */

static const char reshape_model[] = "model opset 17 {\n"
                                    "  dim s0 : input 0 axis 0, 1..4096, hint 24\n"
                                    "  input %x \"x\" : f32[s0]\n"
                                    "  input %shape \"shape\" : i64[2]\n"
                                    "  %r = Reshape(%x, %shape) ; #0\n"
                                    "  %t = Transpose(%r) perm=[1, 0] ; #1\n"
                                    "  output %t \"t\"\n"
                                    "}\n";

static void an_inputs_values_are_sizes(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu", reshape_model);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    float x[24], t[24];
    int64_t shape[2] = {4, 6};
    fill(x, 24, 0);
    gpucc_tensor inputs[] = {tensor_over(x, GPUCC_F32, 4, DIMS(24)),
                             tensor_over(shape, GPUCC_I64, 8, DIMS(2))};
    gpucc_tensor output = tensor_over(t, GPUCC_F32, 4, DIMS(6, 4));
    /* A range in prepare, then each size that is in it. */
    const gpucc_dim range[] = {{"x[0]", 1, 24}, {"shape[0]", 1, 24}, {"shape[1]", 1, 24}};
    assert_ok(prepare(context, 3, range));
    static const int64_t shapes[][2] = {{4, 6}, {24, 1}, {2, 12}, {3, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        memcpy(shape, shapes[i], sizeof shape);
        memset(t, 0xff, sizeof t);
        assert_ok(gpucc_enqueue(context, NULL, inputs, &output));
        assert_true(output.dims[0] == shape[1] && output.dims[1] == shape[0]);
        for (int64_t a = 0; a < shape[0]; a++)
            for (int64_t b = 0; b < shape[1]; b++)
                assert_true(t[b * shape[0] + a] == x[a * shape[1] + b]);
    }
    shape[0] = 5;
    assert_fails(gpucc_enqueue(context, NULL, inputs, &output), GPUCC_OUT_OF_RANGE, "shape[0]");
    shape[0] = INT64_MIN;
    assert_fails(gpucc_enqueue(context, NULL, inputs, &output), GPUCC_OUT_OF_RANGE, "shape[0]");
    inputs[1].data = NULL;
    assert_fails(gpucc_enqueue(context, NULL, inputs, &output), GPUCC_INVALID_ARGUMENT,
                 "input 1 \"shape\": its element 0 gives a size but is not there");
    inputs[1].data = shape;
    /* gpucc_run prepares for the values. */
    shape[0] = 6, shape[1] = 4;
    assert_ok(gpucc_run(context, inputs, &output));
    assert_true(output.dims[0] == 4 && output.dims[1] == 6 && t[6] == x[1]);
    const gpucc_dim wrong[] = {{"x[0]", 24, 24}, {"shape[0]", 5, 5}, {"shape[1]", 5, 5}};
    assert_fails(prepare(context, 3, wrong), GPUCC_OUT_OF_RANGE,
                 "\"x[0]\" is 24 but must be shape[0] * shape[1] = 25");
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void an_inputs_values_expand(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  input %x \"x\" : f32[3]\n"
                                    "  input %shape \"shape\" : i64[2]\n"
                                    "  %e = Expand(%x, %shape) ; #0\n"
                                    "  %y = Neg(%e) ; #1\n"
                                    "  output %y \"y\"\n"
                                    "}\n");
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    float x[3] = {1, 2, 3}, y[12];
    int64_t shape[2] = {4, 3};
    gpucc_tensor inputs[] = {tensor_over(x, GPUCC_F32, 4, DIMS(3)),
                             tensor_over(shape, GPUCC_I64, 8, DIMS(2))};
    gpucc_tensor output = tensor_over(y, GPUCC_F32, 4, DIMS(4, 3));
    assert_ok(gpucc_run(context, inputs, &output));
    for (int i = 0; i < 12; i++)
        assert_true(y[i] == -x[i % 3]);
    shape[1] = 5;
    assert_fails(gpucc_run(context, inputs, &output), GPUCC_OUT_OF_RANGE, "Expand #0");
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* ---- constants that nodes compute, guards, memory
 * ----------------------------------------------------------------- */

/* Folded when compiling, or left to the init program: the same result, and no launch either way. */
static void compute_constants(uint64_t fold_limit)
{
    static const char text[] = "model opset 17 {\n"
                               "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                               "  input %x \"x\" : f32[s0, 2]\n"
                               "  weight %w \"w\" : f32[2, 2] hex 0000803f000000400000404000008040\n"
                               "  weight %c \"c\" : f32[2] hex 0000003f00000040\n"
                               "  %t = Transpose(%w) perm=[1, 0] : f32[2, 2] ; #0\n"
                               "  %m = Mul(%t, %c) : f32[2, 2] ; #1\n"
                               "  %y = MatMul(%x, %m) : f32[s0, 2] ; #2\n"
                               "  output %y \"y\"\n"
                               "}\n";
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model;
    if (!model_plan(&world, &arena, "cpu", fold_limit, text) || !model_write(&world))
        model_fail(&world, "the model");
    assert_int_equal(world.plan.launches.count, 1);
    assert_ok(gpucc_open(world.path, NULL, &model));
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    float x[4] = {1, 10, -1, 2}, y[4];
    static const float m[4] = {0.5f, 6, 1, 8};
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(2, 2)),
                 output = tensor_over(y, GPUCC_F32, 4, DIMS(2, 2));
    assert_ok(gpucc_run(context, &input, &output));
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == x[i / 2 * 2] * m[i % 2] + x[i / 2 * 2 + 1] * m[2 + i % 2]);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void the_init_program_computes_constants(void **state)
{
    (void)state;
    compute_constants(FOLD_LIMIT);
    compute_constants(0);
}

/* A value and its reshape, both read by kernels that load at places of their own: one stretch of memory. */
static void a_reshape_is_no_copy(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  input %x \"x\" : f32[8, 8]\n"
                                    "  weight %shape : i64[2] hex 04000000000000001000000000000000\n"
                                    "  %e = MatMul(%x, %x) : f32[8, 8] ; #0\n"
                                    "  %r = Reshape(%e, %shape) ; #1\n"
                                    "  %a = ReduceMax(%e) axes=[0] keepdims=1 : f32[1, 8] ; #2\n"
                                    "  %b = ReduceMax(%r) axes=[0] keepdims=1 : f32[1, 16] ; #3\n"
                                    "  output %a \"a\"\n"
                                    "  output %b \"b\"\n"
                                    "}\n");
    uint32_t arena_buffers = 0;
    for (uint32_t i = 0; i < world.plan.buffers.count; i++)
        arena_buffers += world.plan.buffers.items[i].kind == PLAN_ARENA;
    assert_int_equal(arena_buffers, 1);
    assert_int_equal(world.plan.launches.count, 3);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    float x[64], a[8], b[16], product[64] = {0};
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i * 7 % 11) - 5;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int k = 0; k < 8; k++)
                product[i * 8 + k] += x[i * 8 + j] * x[j * 8 + k];
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(8, 8));
    gpucc_tensor outputs[] = {tensor_over(a, GPUCC_F32, 4, DIMS(1, 8)),
                              tensor_over(b, GPUCC_F32, 4, DIMS(1, 16))};
    assert_ok(gpucc_run(context, &input, outputs));
    for (int i = 0; i < 64; i++)
        assert_true(product[i] <= a[i % 8] && product[i] <= b[i % 16]);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void guards_that_fail_name_their_node(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  dim s0 \"rows\" : input 0 axis 0, 0..64, hint 4\n"
                                    "  dim s1 \"columns\" : input 0 axis 1, 0..64, hint 3\n"
                                    "  dim s2 \"count\" : input 1 axis 0, 0..4096, hint 12\n"
                                    "  input %x \"x\" : f32[s0, s1]\n"
                                    "  input %y \"y\" : f32[s2]\n"
                                    "  weight %flat \"flat\" : i64[1] hex ffffffffffffffff\n"
                                    "  weight %six \"six\" : i64[2] hex 0600000000000000ffffffffffffffff\n"
                                    "  %r = Reshape(%x, %flat) ; #0\n"
                                    "  %s = Mul(%r, %y) ; #1\n"
                                    "  %t = Reshape(%s, %six) ; #2\n"
                                    "  %u = Relu(%t) ; #3\n"
                                    "  output %u \"u\"\n"
                                    "}\n");
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    const gpucc_dim good[] = {{"rows", 4, 4}, {"columns", 3, 3}, {"count", 12, 12}};
    const gpucc_dim uneven[] = {{"rows", 5, 5}, {"columns", 3, 3}, {"count", 15, 15}};
    const gpucc_dim other[] = {{"rows", 4, 4}, {"columns", 3, 3}, {"count", 13, 13}};
    assert_ok(prepare(context, 3, good));
    assert_fails(prepare(context, 3, uneven), GPUCC_OUT_OF_RANGE, "Reshape #2");
    assert_fails(prepare(context, 3, other), GPUCC_OUT_OF_RANGE, "Mul #1");
    /* A failed prepare leaves nothing prepared; the next good one does. */
    float x[12], y[12], u[12];
    fill(x, 12, -3);
    fill(y, 12, 1);
    gpucc_tensor inputs[] = {tensor_over(x, GPUCC_F32, 4, DIMS(4, 3)),
                             tensor_over(y, GPUCC_F32, 4, DIMS(12))};
    gpucc_tensor output = tensor_over(u, GPUCC_F32, 4, DIMS(6, 2));
    assert_fails(gpucc_enqueue(context, NULL, inputs, &output), GPUCC_NOT_PREPARED, "gpucc_prepare");
    assert_ok(prepare(context, 3, good));
    assert_ok(gpucc_enqueue(context, NULL, inputs, &output));
    for (int i = 0; i < 12; i++)
        assert_true(u[i] == fmaxf(x[i] * y[i], 0));
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void the_workspace_is_all_that_is_used(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu",
                                    "model opset 17 {\n"
                                    "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                                    "  input %x \"x\" : f32[s0, 16]\n"
                                    "  weight %w \"w\" : f32[16, 16] zeros\n"
                                    "  %a = MatMul(%x, %w) : f32[s0, 16] ; #0\n"
                                    "  %b = MatMul(%a, %w) : f32[s0, 16] ; #1\n"
                                    "  %c = MatMul(%b, %w) : f32[s0, 16] ; #2\n"
                                    "  %d = Add(%c, %a) : f32[s0, 16] ; #3\n"
                                    "  output %d \"d\"\n"
                                    "}\n");
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    gpucc_dim rows = {"x[0]", 1, 7};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = &rows;
    dims.count = 1;
    gpucc_workspace workspace = GPUCC_INIT(gpucc_workspace);
    assert_ok(gpucc_workspace_size(model, NULL, &dims, &workspace.bytes));
    assert_true(workspace.bytes >= 7 * 64);
    unsigned char *memory = aligned_alloc(256, workspace.bytes + 512);
    memset(memory, 0x5a, workspace.bytes + 512);
    workspace.memory = memory + 256;
    gpucc_statistics before = GPUCC_INIT(gpucc_statistics), after = GPUCC_INIT(gpucc_statistics);
    assert_ok(gpucc_context_statistics(context, &before));
    assert_ok(gpucc_prepare(context, &dims, &workspace));
    assert_ok(gpucc_context_statistics(context, &after));
    assert_int_equal(after.allocations - before.allocations, 1); /* the weights */
    float x[112] = {1}, d[112];
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(7, 16)),
                 output = tensor_over(d, GPUCC_F32, 4, DIMS(7, 16));
    assert_ok(gpucc_enqueue(context, NULL, &input, &output));
    for (size_t i = 0; i < 256; i++)
        assert_true(memory[i] == 0x5a && memory[256 + workspace.bytes + i] == 0x5a);
    workspace.memory = memory + 128;
    assert_fails(gpucc_prepare(context, &dims, &workspace), GPUCC_INVALID_ARGUMENT, "aligned to 256");
    workspace.memory = NULL;
    assert_fails(gpucc_prepare(context, &dims, &workspace), GPUCC_INVALID_ARGUMENT, "workspace");
    assert_fails(gpucc_enqueue(context, NULL, &input, &output), GPUCC_NOT_PREPARED, "gpucc_prepare");
    gpucc_context_destroy(context);
    gpucc_close(model);
    free(memory);
    model_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_lives_in_its_inputs_buffer),
        cmocka_unit_test(an_output_may_outgrow_its_input),
        cmocka_unit_test(a_scan_output_is_filled_in_place),
        cmocka_unit_test(aliases_wait_for_the_last_reader),
        cmocka_unit_test(impossible_aliases_are_refused),
        cmocka_unit_test(an_inputs_values_are_sizes),
        cmocka_unit_test(an_inputs_values_expand),
        cmocka_unit_test(the_init_program_computes_constants),
        cmocka_unit_test(a_reshape_is_no_copy),
        cmocka_unit_test(guards_that_fail_name_their_node),
        cmocka_unit_test(the_workspace_is_all_that_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A model's life on the fake driver, with each error at each call of the driver: the call that failed is
 * named, nothing is leaked, whatever comes later stays clean. Also weights that are replaced, as launches see
 * them. */
#include <dlfcn.h>

#include "tests/fake_cuda/fake_cuda.h"

#include "tests/unit/model_support.h"

static const struct fake_controls *fake;

static const char text[] = "model opset 17 {\n"
                           "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                           "  input %x \"x\" : f32[s0, 4]\n"
                           "  weight %w \"w\" : f32[4] hex 0000803f000000400000404000008040\n"
                           "  %a = Mul(%x, %w) : f32[s0, 4] ; #0\n"
                           "  %r = ReduceSum(%a) axes=[1] keepdims=1 : f32[s0, 1] ; #1\n"
                           "  %t = Transpose(%a) perm=[1, 0] : f32[4, s0] ; #2\n"
                           "  %u = MatMul(%t, %r) : f32[4, 1] ; #3\n"
                           "  output %u \"u\"\n"
                           "}\n";

/* Device memory is host memory for the fake; kernels do not run. */
static float device_x[64 * 4] __attribute__((aligned(16))), device_u[4] __attribute__((aligned(16)));

static gpucc_status prepare(gpucc_context *context, int64_t low, int64_t high)
{
    gpucc_dim rows = {"x[0]", low, high};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = &rows;
    dims.count = 1;
    return gpucc_prepare(context, &dims, NULL);
}

static gpucc_status enqueue(gpucc_context *context, void *stream, int64_t rows)
{
    gpucc_tensor input = tensor_over(device_x, GPUCC_F32, 4, DIMS(rows, 4)),
                 output = tensor_over(device_u, GPUCC_F32, 4, DIMS(4, 1));
    return gpucc_enqueue(context, stream, &input, &output);
}

static gpucc_status run(gpucc_context *context, int64_t rows)
{
    static float x[64 * 4], u[4];
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(rows, 4)),
                 output = tensor_over(u, GPUCC_F32, 4, DIMS(4, 1));
    return gpucc_run(context, &input, &output);
}

static gpucc_status replace(gpucc_model *model, const float *values)
{
    float data[4];
    const char *name = "w";
    memcpy(data, values, sizeof data);
    gpucc_tensor tensor = tensor_over(data, GPUCC_F32, 4, DIMS(4));
    return gpucc_replace_weights(model, &name, &tensor, 1);
}

/* Prepared ranges, graphs that are patched, an empty launch, capture, host memory that grows, other weights.
 */
static gpucc_status use(gpucc_model *model, gpucc_context *context, void *stream)
{
    static const float other[4] = {5, 6, 7, 8};
    gpucc_status status = prepare(context, 1, 8);
    for (int64_t rows = 1; rows <= 8 && status == GPUCC_OK; rows *= 2)
        status = enqueue(context, stream, rows);
    fake->capture(stream, 1);
    if (status == GPUCC_OK)
        status = enqueue(context, stream, 3);
    fake->capture(stream, 0);
    if (status == GPUCC_OK)
        status = run(context, 4);
    if (status == GPUCC_OK)
        status = run(context, 60);
    if (status == GPUCC_OK)
        status = replace(model, other);
    if (status == GPUCC_OK)
        status = prepare(context, 1, 64);
    if (status == GPUCC_OK)
        status = enqueue(context, stream, 64);
    return status;
}

static void every_call_says_so(gpucc_context *context, void *stream)
{
    for (int round = 0; round < 2; round++) {
        assert_int_equal(prepare(context, 2, 2), GPUCC_DEVICE_ERROR);
        assert_int_equal(enqueue(context, stream, 2), GPUCC_DEVICE_ERROR);
        assert_int_equal(run(context, 2), GPUCC_DEVICE_ERROR);
        assert_true(*gpucc_last_error());
    }
}

/* The status of what failed; its words in `words`. */
static gpucc_status whole_life(const char *path, char words[512])
{
    gpucc_model *model;
    gpucc_context *context = NULL;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    void *stream = fake->stream();
    words[0] = '\0';
    assert_ok(gpucc_open(path, NULL, &model));
    gpucc_status status = gpucc_context_create(model, &options, &context);
    if (status == GPUCC_OK)
        status = use(model, context, stream);
    if (status != GPUCC_OK)
        snprintf(words, 512, "%s", gpucc_last_error());
    if (context && status == GPUCC_DEVICE_ERROR)
        every_call_says_so(context, stream);
    else if (context && status != GPUCC_OK) { /* out of memory: it works again */
        assert_ok(prepare(context, 2, 2));
        assert_ok(enqueue(context, stream, 2));
    }
    gpucc_context_destroy(context);
    gpucc_close(model);
    fake->stream_end(stream);
    return status;
}

/* Calls on the way out, whose failure has nobody to be told to: what they hold is lost with the device. */
static bool gives_back(const char *function)
{
    static const char *const names[] = {"cuCtxPopCurrent_v2",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxSynchronize",
                                        "cuMemFree_v2",
                                        "cuMemFreeHost",
                                        "cuModuleUnload",
                                        "cuStreamDestroy_v2",
                                        "cuGraphExecDestroy",
                                        "cuGraphDestroy",
                                        "cuEventDestroy_v2",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], function) == 0)
            return true;
    return false;
}

static void each_error_at_each_call(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    static const int errors[] = {1 /* invalid value */, 2 /* out of memory */, 700 /* illegal address */,
                                 719 /* launch failed */, 999 /* unknown */};
    char words[512];
    gpucc_close(open_model(&world, &arena, "sm_90a", text));
    fake->reset();
    if (whole_life(world.path, words) != GPUCC_OK)
        fail_msg("%s", words);
    const unsigned calls = fake->calls(NULL);
    assert_int_equal(fake->alive(), 0);
    assert_true(calls > 80);
    unsigned told = 0;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (unsigned nth = 1; nth <= calls; nth++) {
            fake->reset();
            fake->fail_at(nth, errors[e]);
            const gpucc_status status = whole_life(world.path, words);
            const char *function = fake->failed();
            fake->fail_at(0, 0);
            if (status == GPUCC_OK && !gives_back(function))
                fail_msg("error %d of call %u, %s, was not told", errors[e], nth, function);
            if (status != GPUCC_OK && !strstr(words, function) && !strstr(words, "device error before"))
                fail_msg("error %d of call %u, %s: %s", errors[e], nth, function, words);
            if (fake->alive() && !gives_back(function))
                fail_msg("error %d of call %u, %s: %u objects leaked", errors[e], nth, function,
                         fake->alive());
            told += status != GPUCC_OK;
            fake->forget();
        }
    assert_true(told > calls * 2);
    model_end(&world);
}

/* What the first launch reads is the weight of its context's last prepare, while older work keeps the old. */
static void launches_see_replaced_weights(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "sm_90a", text);
    static const float old[4] = {1, 2, 3, 4}, other[4] = {5, 6, 7, 8};
    struct fake_launch launches[64];
    for (uint32_t i = 0; i < world.plan.kernels.count; i++)
        fake->arguments(world.plan.kernels.items[i].kernel->name,
                        world.plan.kernels.items[i].kernel->global_count);
    gpucc_context *context = model_context(model, 0, 0);
    assert_ok(prepare(context, 1, 8));
    const void *seen[3] = {NULL};
    for (int step = 0; step < 3; step++) {
        if (step == 1)
            assert_ok(replace(model, other));
        if (step == 2)
            assert_ok(prepare(context, 1, 8));
        fake->reset();
        assert_ok(enqueue(context, NULL, 4));
        const unsigned count = fake->launches(launches, 64);
        const float *wanted = step < 2 ? old : other;
        for (unsigned i = 0; i < count; i++)
            for (unsigned k = 0; k < 4; k++) {
                const void *at = (const void *)(uintptr_t)launches[i].arguments[k];
                if (at && at != device_x && at != device_u && (uintptr_t)at % 256 == 0 &&
                    memcmp(at, wanted, sizeof old) == 0)
                    seen[step] = at;
            }
        assert_non_null(seen[step]);
    }
    assert_ptr_equal(seen[0], seen[1]);
    assert_ptr_not_equal(seen[1], seen[2]);
    gpucc_context_destroy(context);
    gpucc_close(model);
    assert_int_equal(fake->alive(), 0);
    model_end(&world);
}

/* In a CUDA context of the caller's: weights, arena and graph are its own, and none is left current. */
static void a_second_cuda_context(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "sm_90a", text);
    gpucc_context *contexts[2] = {model_context(model, 0, 0), NULL};
    void *own = fake->context(), *stream = fake->stream();
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.cuda_context = own;
    assert_ok(gpucc_context_create(model, &options, &contexts[1]));
    assert_int_equal(fake->current(), 0);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            if (!round)
                assert_ok(prepare(contexts[i], 1, 8));
            fake->reset();
            assert_ok(enqueue(contexts[i], i ? stream : NULL, 4));
            assert_int_equal(fake->current(), 0);
            assert_true(fake->launches(NULL, 0) > 0);
        }
    for (int i = 0; i < 2; i++)
        gpucc_context_destroy(contexts[i]);
    gpucc_close(model);
    fake->stream_end(stream);
    fake->stream_end(own);
    assert_int_equal(fake->alive(), 0);
    model_end(&world);
}

int main(void)
{
    void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *symbol = dlsym(library, "fake_cuda_controls");
    fake_cuda_controls_function *controls;
    memcpy(&controls, &symbol, sizeof controls);
    fake = controls();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_error_at_each_call),
        cmocka_unit_test(launches_see_replaced_weights),
        cmocka_unit_test(a_second_cuda_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

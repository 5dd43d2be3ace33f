/* Sizes that the model computes, through the C API: bounds, actual dims, what passes a bound, sizes that
 * disagree; on the CPU, and on the fake driver, whose kernels compute nothing: there the allocator fills the
 * memory that the words are read from. */
#include <dlfcn.h>

#include "runtime/cuda_driver.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/model_support.h"

static const char counted[] = "model opset 17 {\n"
                              "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                              "  input %x \"x\" : i64[s0]\n"
                              "  weight %zero : i64[] hex 0000000000000000\n"
                              "  weight %one : i64[] hex 0100000000000000\n"
                              "  %n = ReduceSum(%x) keepdims=0 ; #3\n"
                              "  %r = Range(%zero, %n, %one) ; #4\n"
                              "  %y = Neg(%r) ; #5\n"
                              "  output %y \"y\"\n"
                              "}\n";

static const char two[] = "model opset 17 {\n"
                          "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                          "  dim s1 : input 1 axis 0, 1..64, hint 4\n"
                          "  input %x \"x\" : i64[s0]\n"
                          "  input %w \"w\" : i64[s1]\n"
                          "  weight %zero : i64[] hex 0000000000000000\n"
                          "  weight %one : i64[] hex 0100000000000000\n"
                          "  %n = ReduceSum(%x) keepdims=0 ; #1\n"
                          "  %m = ReduceSum(%w) keepdims=0 ; #2\n"
                          "  %a = Range(%zero, %n, %one) ; #3\n"
                          "  %b = Range(%zero, %m, %one) ; #4\n"
                          "  %y = Add(%a, %b) ; #5\n"
                          "  output %y \"y\"\n"
                          "}\n";

static gpucc_status prepare(gpucc_context *context, size_t count, const gpucc_dim *items)
{
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = items;
    dims.count = count;
    return gpucc_prepare(context, &dims, NULL);
}

static void check_size(gpucc_context *context, int64_t bound, int64_t value)
{
    gpucc_computed_size size = GPUCC_INIT(gpucc_computed_size);
    assert_int_equal(gpucc_computed_size_count(context), 1);
    assert_ok(gpucc_computed_size_info(context, 0, &size));
    assert_string_equal(size.name, "#3");
    assert_int_equal(size.stated, 1);
    assert_int_equal(size.bound, bound);
    assert_int_equal(size.value, value);
    assert_fails(gpucc_computed_size_info(context, 1, &size), GPUCC_INVALID_ARGUMENT, "computes 1 sizes");
    size.size = 0;
    assert_fails(gpucc_computed_size_info(context, 0, &size), GPUCC_INVALID_ARGUMENT, "size is not set");
}

static void the_actual_dims_are_told(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu", counted);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    const gpucc_dim unbounded[] = {{"x[0]", 1, 3}}, dims[] = {{"x[0]", 1, 3}, {"#3", 0, 20}};
    int64_t x[3] = {3, 4, 5}, y[21], sizes[GPUCC_MAX_RANK];
    int32_t rank;
    gpucc_tensor input = tensor_over(x, GPUCC_I64, 8, DIMS(3)),
                 output = tensor_over(y, GPUCC_I64, 8, DIMS(20));
    check_size(context, -1, -1);
    assert_fails(prepare(context, 1, unbounded), GPUCC_INVALID_ARGUMENT, "#3 (computed by the model");
    assert_ok(prepare(context, 2, dims));
    check_size(context, 20, -1);
    assert_ok(gpucc_output_dims(context, 0, &rank, sizes));
    assert_int_equal(sizes[0], 20);
    memset(y, 0x5a, sizeof y);
    assert_ok(gpucc_enqueue(context, NULL, &input, &output));
    assert_int_equal(output.dims[0], 12);
    assert_ok(gpucc_output_dims(context, 0, &rank, sizes));
    assert_int_equal(rank, 1);
    assert_int_equal(sizes[0], 12);
    check_size(context, 20, 12);
    for (int64_t i = 0; i < 12; i++)
        assert_int_equal(y[i], -i);
    /* the next run has its own size, and room for the bound is needed whatever it will be */
    x[2] = 0;
    assert_ok(gpucc_enqueue(context, NULL, &input, &output));
    assert_int_equal(output.dims[0], 7);
    output.bytes = 19 * 8;
    assert_fails(gpucc_enqueue(context, NULL, &input, &output), GPUCC_INVALID_ARGUMENT, "160");
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void what_passes_its_bound_is_an_error(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu", counted);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    const gpucc_dim dims[] = {{"x[0]", 3, 3}, {"#3", 0, 11}};
    int64_t x[3] = {3, 4, 5}, y[12], sizes[GPUCC_MAX_RANK];
    int32_t rank;
    gpucc_tensor input = tensor_over(x, GPUCC_I64, 8, DIMS(3)),
                 output = tensor_over(y, GPUCC_I64, 8, DIMS(11));
    y[11] = 77;
    assert_ok(prepare(context, 2, dims));
    assert_fails(gpucc_enqueue(context, NULL, &input, &output), GPUCC_OUT_OF_RANGE,
                 "computed 12 for the size \"#3\"");
    assert_fails(gpucc_output_dims(context, 0, &rank, sizes), GPUCC_OUT_OF_RANGE, "0 to 11");
    assert_int_equal(y[11], 77);
    check_size(context, 11, 12);
    x[0] = -10; /* a size is not negative */
    assert_fails(gpucc_enqueue(context, NULL, &input, &output), GPUCC_OUT_OF_RANGE, "computed -1 ");
    x[0] = -9;
    assert_ok(gpucc_enqueue(context, NULL, &input, &output));
    assert_int_equal(output.dims[0], 0);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

static void sizes_that_disagree_are_an_error(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_model(&world, &arena, "cpu", two);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    const gpucc_dim dims[] = {{"x[0]", 1, 1}, {"w[0]", 1, 1}, {"#1", 0, 9}, {"#2", 0, 9}};
    int64_t x = 3, w = 3, y[9];
    gpucc_tensor inputs[] = {tensor_over(&x, GPUCC_I64, 8, DIMS(1)), tensor_over(&w, GPUCC_I64, 8, DIMS(1))};
    gpucc_tensor output = tensor_over(y, GPUCC_I64, 8, DIMS(9));
    assert_ok(prepare(context, 4, dims));
    assert_ok(gpucc_enqueue(context, NULL, inputs, &output));
    assert_int_equal(output.dims[0], 3);
    assert_int_equal(y[2], 4);
    w = 1; /* broadcasts */
    assert_ok(gpucc_enqueue(context, NULL, inputs, &output));
    assert_int_equal(output.dims[0], 3);
    assert_int_equal(y[2], 2);
    w = 4;
    memset(y, 0x5a, sizeof y);
    assert_fails(gpucc_enqueue(context, NULL, inputs, &output), GPUCC_OUT_OF_RANGE, "Add #5");
    assert_int_equal(y[0], 0x5a5a5a5a5a5a5a5a); /* its kernel did nothing */
    w = 3;
    assert_ok(gpucc_enqueue(context, NULL, inputs, &output));
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* ---- CUDA
 * ---------------------------------------------------------------------------------------------------------
 */

typedef cuda_result allocate_function(cuda_pointer *memory, size_t bytes);
typedef cuda_result release_function(cuda_pointer memory);
typedef cuda_result push_function(cuda_context context);
typedef cuda_result pop_function(cuda_context *context);

struct device_memory {
    allocate_function *allocate;
    release_function *release;
    push_function *push;
    pop_function *pop;
    cuda_context context;
    int64_t filled; /* every word of it */
};

static void *take(void *user, size_t bytes, size_t alignment)
{
    const struct device_memory *memory = user;
    cuda_pointer address = 0;
    (void)alignment;
    memory->push(memory->context);
    const cuda_result failed = memory->allocate(&address, bytes);
    memory->pop(&(cuda_context){NULL});
    if (failed)
        return NULL;
    for (size_t i = 0; i + 8 <= bytes; i += 8)
        memcpy((char *)(uintptr_t)address + i, &memory->filled, 8);
    return (void *)(uintptr_t)address;
}

static void give_back(void *user, void *address, size_t bytes)
{
    const struct device_memory *memory = user;
    (void)bytes;
    memory->push(memory->context);
    memory->release((cuda_pointer)(uintptr_t)address);
    memory->pop(&(cuda_context){NULL});
}

static gpucc_context *cuda_context_over(gpucc_model *model, struct device_memory *memory)
{
    gpucc_allocator allocator = GPUCC_INIT(gpucc_allocator);
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    gpucc_context *context;
    allocator.user = memory;
    allocator.allocate = take;
    allocator.release = give_back;
    options.allocator = &allocator;
    assert_ok(gpucc_context_create(model, &options, &context));
    return context;
}

static void a_gpu_copies_the_words_without_waiting(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    struct device_memory memory = {.filled = 5};
    void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW);
    assert_non_null(library);
    fake_cuda_controls_function *controls;
    *(void **)&controls = dlsym(library, "fake_cuda_controls");
    *(void **)&memory.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&memory.release = dlsym(library, "cuMemFree_v2");
    *(void **)&memory.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&memory.pop = dlsym(library, "cuCtxPopCurrent_v2");
    const struct fake_controls *fake = controls();
    fake->device(1, 90, 13000);
    memory.context = fake->context();
    gpucc_model *model = open_model(&world, &arena, "sm_90", counted);
    gpucc_context *context = cuda_context_over(model, &memory);
    const gpucc_dim dims[] = {{"x[0]", 3, 3}, {"#3", 0, 20}};
    int64_t x[3] = {0}, y[20], sizes[GPUCC_MAX_RANK];
    int32_t rank;
    gpucc_tensor input = tensor_over(x, GPUCC_I64, 8, DIMS(3)),
                 output = tensor_over(y, GPUCC_I64, 8, DIMS(20));
    assert_ok(prepare(context, 2, dims));
    fake->reset();
    assert_ok(gpucc_run(context, &input, &output));
    assert_int_equal(output.dims[0], 5);
    assert_ok(gpucc_output_dims(context, 0, &rank, sizes));
    assert_int_equal(sizes[0], 5);
    check_size(context, 20, 5);
    _Alignas(16) int64_t device_x[4] = {0}, device_y[20] = {0};
    input.data = device_x;
    output.data = device_y;
    fake->reset();
    assert_ok(gpucc_enqueue(context, NULL, &input, &output));
    assert_int_equal(output.dims[0], 20);
    assert_int_equal(fake->calls("cuMemcpyDtoHAsync_v2"), 1);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 0);
    assert_int_equal(fake->calls("cuMemHostAlloc"), 0);
    gpucc_context_destroy(context);
    /* Beyond the bound. */
    memory.filled = 21;
    context = cuda_context_over(model, &memory);
    assert_ok(prepare(context, 2, dims));
    input.data = x;
    output.data = y;
    assert_fails(gpucc_run(context, &input, &output), GPUCC_OUT_OF_RANGE, "computed 21");
    gpucc_context_destroy(context);
    gpucc_close(model);
    fake->stream_end(memory.context);
    assert_int_equal(fake->alive(), 0);
    model_end(&world);
}

int main(void)
{
    if (!dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW)) { /* by its name the runtime finds it from now on */
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_actual_dims_are_told),
        cmocka_unit_test(what_passes_its_bound_is_an_error),
        cmocka_unit_test(sizes_that_disagree_are_an_error),
        cmocka_unit_test(a_gpu_copies_the_words_without_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* 16 threads with a context each on one model, on the CPU and on the fake driver, while weights are replaced.
 * The runtime is linked into this program and not in a bundle, so that ThreadSanitizer sees it (preset tsan).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/context.h"
#include "runtime/info.h"
#include "tests/fake_cuda/fake_cuda.h"

#include "tests/unit/kernel_support.h"
#include "tests/unit/model_support.h"

enum { THREADS = 16, STATES = 3, ROUNDS = 30, MOST_ROWS = 600, MOST_KERNELS = 32 };

static const char text[] = "model opset 17 {\n"
                           "  dim s0 : input 0 axis 0, 1..1024, hint 512\n"
                           "  input %x \"x\" : f32[s0, 4]\n"
                           "  weight %w \"w\" : f32[4] hex 0000803f000000400000404000008040\n"
                           "  weight %v \"v\" : f32[4] hex 0000803f000000400000404000008040\n"
                           "  %p = Abs(%w) : f32[4] ; #4\n"
                           "  %a = Mul(%x, %p) : f32[s0, 4] ; #0\n"
                           "  %r = ReduceSum(%a) axes=[0] keepdims=1 : f32[1, 4] ; #1\n"
                           "  %m = Mul(%r, %v) : f32[1, 4] ; #2\n"
                           "  %y = Add(%a, %m) : f32[s0, 4] ; #3\n"
                           "  output %y \"y\"\n"
                           "}\n";

/* A model without a bundle's code around it: tables from the file, kernels from a library. */
struct bare {
    struct model world;
    struct bundle_file file;
    struct library library;
    bundle_cpu_kernel *kernels[MOST_KERNELS];
    struct runtime_model *model;
};

static void bare_open(struct bare *bare, struct arena *arena, const char *machine)
{
    struct object_kernel kernels[MOST_KERNELS];
    struct runtime_error error;
    uint32_t count = 0;
    gpucc_close(open_model(&bare->world, arena, machine, text));
    const bool cpu = bare->world.plan.machine->kind == TARGET_CPU;
    assert_true(bare->world.plan.kernels.count + bare->world.init.kernels.count <= MOST_KERNELS);
    if (cpu)
        model_kernels(&bare->world, &bare->world.plan, "", kernels, &count);
    model_kernels(&bare->world, &bare->world.init, "_init", kernels, &count);
    bare->library = load_kernels(arena, kernels, count);
    for (uint32_t i = 0; i < count; i++)
        bare->kernels[i] = library_kernel(&bare->library, kernels[i].symbol);
    assert_int_equal(bundle_file_open(bare->world.path, &bare->file, &error), GPUCC_OK);
    const struct runtime_open options = {.fd = bare->file.fd, .weights_fd = -1};
    assert_int_equal(model_open(bare->file.blob, bare->kernels, &options, &bare->model, &error), GPUCC_OK);
}

static void bare_close(struct bare *bare)
{
    model_close(bare->model);
    bundle_file_close(&bare->file);
    dlclose(bare->library.handle);
    model_end(&bare->world);
}

static struct runtime_context *bare_context(struct bare *bare, int32_t device)
{
    struct runtime_context *context;
    struct runtime_error error;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = device;
    options.threads = 2;
    if (context_create(bare->model, &options, &context, &error) != GPUCC_OK)
        fail_msg("%s", error.text);
    return context;
}

static void bare_prepare(struct runtime_context *context, int64_t low, int64_t high)
{
    struct runtime_error error;
    gpucc_dim rows = {"x[0]", low, high};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = &rows;
    dims.count = 1;
    if (context_prepare(context, &dims, NULL, &error) != GPUCC_OK)
        fail_msg("%s", error.text);
}

static void bare_enqueue(struct runtime_context *context, float *x, float *y, int64_t rows)
{
    struct runtime_error error;
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(rows, 4)),
                 output = tensor_over(y, GPUCC_F32, 4, DIMS(rows, 4));
    if (context_enqueue(context, NULL, &input, &output, &error) != GPUCC_OK)
        fail_msg("%s", error.text);
}

/* Both weights become multiples of the first ones by state + 1. */
static void replace_both(struct bare *bare, unsigned state)
{
    struct runtime_error error;
    static const char *const names[2] = {"w", "v"};
    float data[4];
    for (int i = 0; i < 4; i++)
        data[i] = (float)((i + 1) * (int)(state + 1));
    const gpucc_tensor tensors[2] = {tensor_over(data, GPUCC_F32, 4, DIMS(4)),
                                     tensor_over(data, GPUCC_F32, 4, DIMS(4))};
    if (model_replace_weights(bare->model, names, tensors, 2, &error) != GPUCC_OK)
        fail_msg("%s", error.text);
}

struct runner {
    struct bare *bare;
    unsigned number;
};

/* x is 1 everywhere, so y = w + rows * w * v: which state it is can be told, and a mix is none. */
static void *run_on_cpu(void *user)
{
    const struct runner *runner = user;
    struct runtime_context *context = bare_context(runner->bare, GPUCC_CPU);
    float *x = calloc(4 * MOST_ROWS, sizeof *x), *y = calloc(4 * MOST_ROWS, sizeof *y);
    for (int i = 0; i < 4 * MOST_ROWS; i++)
        x[i] = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const int64_t rows = 1 + (int64_t)(runner->number * 37 + round * 101) % MOST_ROWS;
        bare_prepare(context, 1 + rows / 2, rows);
        bare_enqueue(context, x, y, rows);
        int matches = 0;
        for (int state = 1; state <= STATES; state++) {
            bool all = true;
            for (int64_t i = 0; i < 4 * rows && all; i++) {
                const float w = (float)((i % 4 + 1) * state);
                all = y[i] == w + (float)rows * w * w;
            }
            matches += all;
        }
        if (matches != 1)
            fail_msg("thread %u, round %u: no result of one state of the weights", runner->number, round);
    }
    free(x);
    free(y);
    context_destroy(context);
    return NULL;
}

static void *run_on_device(void *user)
{
    static float x[4 * MOST_ROWS] __attribute__((aligned(16))), y[4 * MOST_ROWS] __attribute__((aligned(16)));
    const struct runner *runner = user;
    struct runtime_context *context = bare_context(runner->bare, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const int64_t rows = 1 + (int64_t)(runner->number * 37 + round * 101) % MOST_ROWS;
        bare_prepare(context, 1 + rows / 2, rows);
        bare_enqueue(context, x, y, rows);
    }
    context_destroy(context);
    return NULL;
}

static void run_threads(struct bare *bare, void *(*function)(void *user))
{
    pthread_t threads[THREADS];
    struct runner runners[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        runners[i] = (struct runner){bare, i};
        assert_int_equal(pthread_create(&threads[i], NULL, function, &runners[i]), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++)
        replace_both(bare, round % STATES);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void sixteen_threads_on_the_cpu(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bare bare = {0};
    bare_open(&bare, &arena, "cpu");
    run_threads(&bare, run_on_cpu);
    bare_close(&bare);
}

static void sixteen_threads_on_a_device(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const struct fake_controls *fake = *state;
    struct bare bare = {0};
    bare_open(&bare, &arena, "sm_90a");
    run_threads(&bare, run_on_device);
    bare_close(&bare);
    assert_int_equal(fake->alive(), 0);
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
    void *fake = (void *)(uintptr_t)controls();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_threads_on_the_cpu),
        cmocka_unit_test_prestate(sixteen_threads_on_a_device, fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A decode loop: one token a step, each step's caches the next one's, in the same buffers.
 *
 *     decode BUNDLE STEPS DEVICE TOLERANCE      DEVICE: cpu, cuda (device 0), or fake: the driver that
 * executes nothing
 *
 * The bundle's first input is the tokens [batch, 1], its first output the scores; the other inputs are caches
 * [batch, heads, tokens, width] of f32, and the outputs behind the scores are the same caches, longer by this
 * step's token, each in the buffer of its input (--alias). STEPS, written by decode.py, holds the first
 * caches and, of every step, the tokens and what the scores must be, then the caches at the end. The context
 * is prepared once, for 1 to 512 cached tokens.
 *
 * Fails when a result is further off than TOLERANCE of the largest one, when a step allocates, or when the
 * launch graph is built again. Prints the time of a step: on the fake driver that is the host's part alone.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpucc/runtime.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/harness/counted_calls.h"

enum { MOST_CACHES = 64, MOST_TOKENS = 512, SLACK = 256, ROUNDS = 20, MAGIC = 0x6465636f };

/* FUNCTION(name, parameters): of libcuda, all returning int. */
#define FUNCTIONS                                                                                            \
    FUNCTION(cuInit, (unsigned flags))                                                                       \
    FUNCTION(cuDeviceGet, (int *device, int ordinal))                                                        \
    FUNCTION(cuDevicePrimaryCtxRetain, (void **context, int device))                                         \
    FUNCTION(cuCtxPushCurrent_v2, (void *context))                                                           \
    FUNCTION(cuCtxSynchronize, (void))                                                                       \
    FUNCTION(cuMemAlloc_v2, (unsigned long long *memory, size_t bytes))                                      \
    FUNCTION(cuMemcpyHtoD_v2, (unsigned long long to, const void *from, size_t bytes))                       \
    FUNCTION(cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream))

static struct {
#define FUNCTION(name, parameters) int(*name) parameters;
    FUNCTIONS
#undef FUNCTION
} cuda;

enum device { ON_CPU, ON_CUDA, ON_FAKE };

struct steps {
    FILE *file;
    int64_t count, batch, vocabulary, caches, heads, width, first;
};

struct loop {
    enum device device;
    gpucc_model *model;
    gpucc_context *context;
    struct steps steps;
    double tolerance, worst;
    gpucc_tensor inputs[1 + MOST_CACHES], outputs[1 + MOST_CACHES];
    float *expected, *got; /* of the largest tensor that is compared */
};

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "decode: %s: %s\n", what, detail);
    exit(1);
}

static void need(gpucc_status status, const char *what)
{
    if (status != GPUCC_OK)
        fail(what, gpucc_last_error());
}

static void good(int result, const char *what)
{
    if (result != 0)
        fail(what, "the driver's function failed");
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------------------
 */

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        fail("libcuda.so.1", "not there");
#define FUNCTION(name, parameters)                                                                           \
    {                                                                                                        \
        void *symbol = dlsym(library, #name);                                                                \
        if (!symbol)                                                                                         \
            fail(#name, "not there");                                                                        \
        memcpy(&cuda.name, &symbol, sizeof symbol);                                                          \
    }
    FUNCTIONS
#undef FUNCTION
    void *context;
    int device;
    good(cuda.cuInit(0), "cuInit");
    good(cuda.cuDeviceGet(&device, 0), "cuDeviceGet");
    good(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    good(cuda.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
}

static void *host_memory(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
    if (!memory)
        fail("memory", "none");
    return memory;
}

static void *device_memory(const struct loop *loop, size_t bytes)
{
    unsigned long long memory = 0;
    if (loop->device == ON_CPU)
        return host_memory(bytes);
    good(cuda.cuMemAlloc_v2(&memory, bytes + 256), "cuMemAlloc");
    return (void *)(uintptr_t)memory;
}

static void put(const struct loop *loop, void *to, const void *from, size_t bytes)
{
    if (loop->device != ON_CPU)
        good(cuda.cuMemcpyHtoD_v2((uintptr_t)to, from, bytes), "cuMemcpyHtoD");
    else
        memcpy(to, from, bytes);
}

static void get(const struct loop *loop, void *to, const void *from, size_t bytes)
{
    if (loop->device == ON_CPU) {
        memcpy(to, from, bytes);
        return;
    }
    good(cuda.cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, bytes, NULL), "cuMemcpyDtoHAsync");
    good(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}

/* ---- the loop's tensors
 * ------------------------------------------------------------------------------------------------ */

static void read_file(struct steps *steps, void *data, size_t bytes)
{
    if (fread(data, 1, bytes, steps->file) != bytes)
        fail("the steps", "the file is too short");
}

static void read_header(struct steps *steps, const char *path)
{
    int64_t header[8];
    steps->file = fopen(path, "rb");
    if (!steps->file)
        fail(path, "cannot be opened");
    read_file(steps, header, sizeof header);
    *steps = (struct steps){steps->file, header[1], header[2], header[3],
                            header[4],   header[5], header[6], header[7]};
    if (header[0] != MAGIC || steps->caches > MOST_CACHES || steps->first + steps->count > MOST_TOKENS)
        fail(path, "not steps, or too many");
}

static size_t row_elements(const struct steps *steps)
{
    return (size_t)(steps->batch * steps->heads * steps->width);
}

static gpucc_tensor cache_tensor(const struct steps *steps, int64_t tokens)
{
    gpucc_tensor tensor = {.size = sizeof tensor, .dtype = GPUCC_F32, .rank = 4};
    const int64_t dims[] = {steps->batch, steps->heads, tokens, steps->width};
    memcpy(tensor.dims, dims, sizeof dims);
    return tensor;
}

static void prepare(struct loop *loop)
{
    static char names[2 * (1 + MOST_CACHES)][160];
    static gpucc_dim items[2 * (1 + MOST_CACHES)];
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = items;
    for (size_t i = 0; i < gpucc_input_count(loop->model); i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        need(gpucc_input_info(loop->model, i, &info), "input");
        for (int32_t axis = 0; axis < info.rank; axis++) {
            if (info.dims[axis] >= 0 || dims.count == sizeof items / sizeof *items)
                continue;
            snprintf(names[dims.count], sizeof names[0], "%.120s[%d]", info.name, axis);
            const int64_t size = axis == 0 ? loop->steps.batch : 1;
            items[dims.count] = (gpucc_dim){names[dims.count], size, axis == 2 ? MOST_TOKENS - 1 : size};
            dims.count++;
        }
    }
    need(gpucc_prepare(loop->context, &dims, NULL), "prepare");
}

/* Each cache has one buffer, with room for the tokens to come. */
static void make_tensors(struct loop *loop)
{
    const struct steps *steps = &loop->steps;
    const size_t room = row_elements(steps) * MOST_TOKENS * sizeof(float);
    gpucc_tensor tokens = {.size = sizeof tokens, .dtype = GPUCC_I64, .rank = 2, .dims = {steps->batch, 1}};
    gpucc_tensor scores = {.size = sizeof scores, .dtype = GPUCC_F32};
    tokens.bytes = (size_t)steps->batch * sizeof(int64_t);
    scores.bytes = (size_t)(steps->batch * steps->vocabulary) * sizeof(float);
    tokens.data = device_memory(loop, tokens.bytes);
    scores.data = device_memory(loop, scores.bytes);
    loop->inputs[0] = tokens;
    loop->outputs[0] = scores;
    for (int64_t i = 1; i <= steps->caches; i++) {
        loop->inputs[i] = cache_tensor(steps, steps->first);
        loop->inputs[i].bytes = room;
        loop->inputs[i].data = device_memory(loop, room + SLACK);
        loop->outputs[i] = loop->inputs[i];
    }
    const size_t most = room > scores.bytes ? room : scores.bytes;
    loop->expected = host_memory(most);
    loop->got = host_memory(most);
}

static void compare(struct loop *loop, const void *data, size_t elements, const char *what, int64_t step)
{
    double largest = 0, error = 0;
    char text[80];
    get(loop, loop->got, data, elements * sizeof(float));
    for (size_t i = 0; i < elements; i++) {
        const double off = fabs((double)loop->got[i] - (double)loop->expected[i]);
        largest = fmax(largest, fabs((double)loop->expected[i]));
        error = off <= error ? error : isnan(off) ? INFINITY : off;
    }
    error = largest > 0 ? error / largest : error;
    loop->worst = fmax(loop->worst, error);
    snprintf(text, sizeof text, "step %" PRId64 " is off by %.2e", step, error);
    if (!(error <= loop->tolerance))
        fail(what, text);
}

/* ---- steps
 * -------------------------------------------------------------------------------------------------------------
 */

/* The caches as they are before step `step`: lengths only, the buffers stay. */
static void set_length(struct loop *loop, int64_t step)
{
    for (int64_t i = 1; i <= loop->steps.caches; i++)
        loop->inputs[i].dims[2] = loop->steps.first + step;
}

static void enqueue(struct loop *loop)
{
    need(gpucc_enqueue(loop->context, NULL, loop->inputs, loop->outputs), "enqueue");
}

static void run_steps(struct loop *loop)
{
    struct steps *steps = &loop->steps;
    int64_t *tokens = host_memory((size_t)steps->batch * sizeof *tokens);
    for (int64_t i = 1; i <= steps->caches; i++) {
        const size_t elements = row_elements(steps) * (size_t)steps->first;
        read_file(steps, loop->expected, elements * sizeof(float));
        put(loop, loop->inputs[i].data, loop->expected, elements * sizeof(float));
    }
    for (int64_t step = 0; step < steps->count; step++) {
        const size_t elements = (size_t)(steps->batch * steps->vocabulary);
        read_file(steps, tokens, (size_t)steps->batch * sizeof *tokens);
        read_file(steps, loop->expected, elements * sizeof(float));
        put(loop, loop->inputs[0].data, tokens, (size_t)steps->batch * sizeof *tokens);
        set_length(loop, step);
        const uint64_t before = calls_allocated();
        enqueue(loop);
        if (loop->device == ON_CPU && calls_allocated() != before)
            fail("a step", "it allocated or freed memory");
        if (loop->device != ON_FAKE)
            compare(loop, loop->outputs[0].data, elements, "the scores", step);
    }
    for (int64_t i = 1; i <= steps->caches && loop->device != ON_FAKE; i++) {
        const size_t elements = row_elements(steps) * (size_t)(steps->first + steps->count);
        read_file(steps, loop->expected, elements * sizeof(float));
        compare(loop, loop->outputs[i].data, elements, "a cache", steps->count);
    }
}

/* Microseconds of a step: the least mean of several passes over all steps. */
static double time_steps(struct loop *loop)
{
    double best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = microseconds();
        for (int64_t step = 0; step < loop->steps.count; step++) {
            set_length(loop, step);
            enqueue(loop);
        }
        if (loop->device == ON_CUDA)
            good(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
        best = fmin(best, (microseconds() - begin) / (double)loop->steps.count);
    }
    return best;
}

static const struct fake_controls *fake_controls(void *library)
{
    void *symbol = dlsym(library, "fake_cuda_controls");
    fake_cuda_controls_function *function;
    memcpy(&function, &symbol, sizeof function);
    return function();
}

/* Calls of what an enqueue may do. */
static unsigned only_patches(const struct fake_controls *fake)
{
    static const char *const names[] = {"cuMemcpyHtoD_v2",
                                        "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",
                                        "cuStreamIsCapturing",
                                        "cuGraphExecKernelNodeSetParams",
                                        "cuGraphNodeSetEnabled",
                                        "cuGraphLaunch",
                                        "cuMemcpyDtoDAsync_v2"};
    unsigned calls = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        calls += fake->calls(names[i]);
    return calls;
}

int main(int count, char **arguments)
{
    static struct loop loop;
    const struct fake_controls *fake = NULL;
    if (count != 5) {
        fprintf(stderr, "usage: decode BUNDLE STEPS cpu|cuda|fake TOLERANCE\n");
        return 2;
    }
    loop.device = !strcmp(arguments[3], "cpu") ? ON_CPU : !strcmp(arguments[3], "cuda") ? ON_CUDA : ON_FAKE;
    loop.tolerance = atof(arguments[4]);
    read_header(&loop.steps, arguments[2]);
    if (loop.device == ON_FAKE) {
        void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
        if (!library)
            fail("the fake driver", dlerror());
        fake = fake_controls(library);
    }
    if (loop.device != ON_CPU)
        load_driver();
    need(gpucc_open(arguments[1], NULL, &loop.model), "open");
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = loop.device == ON_CPU ? GPUCC_CPU : 0;
    need(gpucc_context_create(loop.model, &options, &loop.context), "create");
    if (gpucc_input_count(loop.model) != (size_t)loop.steps.caches + 1 ||
        gpucc_output_count(loop.model) != (size_t)loop.steps.caches + 1)
        fail("the bundle", "its inputs are not tokens and caches");
    prepare(&loop);
    make_tensors(&loop);
    gpucc_statistics before = GPUCC_INIT(gpucc_statistics), after = GPUCC_INIT(gpucc_statistics);
    need(gpucc_context_statistics(loop.context, &before), "statistics");
    if (fake)
        fake->reset();
    run_steps(&loop);
    if (fake)
        fake->leave_copies(1);
    const double taken = time_steps(&loop);
    need(gpucc_context_statistics(loop.context, &after), "statistics");
    if (after.allocations != before.allocations || after.graphs_built != before.graphs_built ||
        after.prepares != 1)
        fail("the steps", "they allocated, or the graph was built again");
    if (fake && only_patches(fake) != fake->calls(NULL))
        fail("the steps", "they called more of the driver than patches, copies and launches");
    if (fake)
        printf("%u driver calls a step, ", fake->calls(NULL) / (unsigned)(loop.steps.count * (ROUNDS + 1)));
    else
        printf("worst error %.2e, ", loop.worst);
    printf("%" PRId64 " steps from %" PRId64 " tokens, %.2f us a step, %" PRIu64
           " launches, no allocation, %" PRIu64 " graph built\n",
           loop.steps.count, loop.steps.first, taken, after.launches, after.graphs_built);
    gpucc_context_destroy(loop.context);
    gpucc_close(loop.model);
    return 0;
}

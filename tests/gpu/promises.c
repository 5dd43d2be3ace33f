/* What gpucc/runtime.h promises of streams, capture, contexts, threads, weights and device errors, on a real
 * device. Needs the driver alone.
 *
 *     promises BUNDLE           everything that leaves the device well
 *     promises BUNDLE error     after a device error: the process's CUDA context is lost
 *
 * BUNDLE has code for the CPU and for device 0; free dims are taken as 2, integers are 0 or 1. One line a
 * promise; exit status 0: all hold. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpucc/runtime.h"

enum { MOST = 32, THREADS = 16, ROUNDS = 20, SIZE = 2 };

typedef struct context_opaque *cuda_context;
typedef struct stream_opaque *cuda_stream;
typedef struct graph_opaque *cuda_graph;
typedef struct executable_opaque *cuda_executable;
typedef struct module_opaque *cuda_module;
typedef struct function_opaque *cuda_function;
typedef unsigned long long cuda_pointer;

/* FUNCTION(name, parameters): of libcuda, all returning int. */
#define FUNCTIONS                                                                                            \
    FUNCTION(cuInit, (unsigned flags))                                                                       \
    FUNCTION(cuDeviceGet, (int *device, int ordinal))                                                        \
    FUNCTION(cuDevicePrimaryCtxRetain, (cuda_context * context, int device))                                 \
    FUNCTION(cuCtxCreate_v2, (cuda_context * context, unsigned flags, int device))                           \
    FUNCTION(cuCtxDestroy_v2, (cuda_context context))                                                        \
    FUNCTION(cuCtxGetCurrent, (cuda_context * context))                                                      \
    FUNCTION(cuCtxSetCurrent, (cuda_context context))                                                        \
    FUNCTION(cuCtxSynchronize, (void))                                                                       \
    FUNCTION(cuMemAlloc_v2, (cuda_pointer * memory, size_t bytes))                                           \
    FUNCTION(cuMemFree_v2, (cuda_pointer memory))                                                            \
    FUNCTION(cuMemcpyHtoD_v2, (cuda_pointer to, const void *from, size_t bytes))                             \
    FUNCTION(cuMemcpyDtoH_v2, (void *to, cuda_pointer from, size_t bytes))                                   \
    FUNCTION(cuStreamCreate, (cuda_stream * stream, unsigned flags))                                         \
    FUNCTION(cuStreamDestroy_v2, (cuda_stream stream))                                                       \
    FUNCTION(cuStreamSynchronize, (cuda_stream stream))                                                      \
    FUNCTION(cuStreamBeginCapture_v2, (cuda_stream stream, int mode))                                        \
    FUNCTION(cuStreamEndCapture, (cuda_stream stream, cuda_graph * graph))                                   \
    FUNCTION(cuGraphInstantiateWithFlags,                                                                    \
             (cuda_executable * executable, cuda_graph graph, unsigned long long flags))                     \
    FUNCTION(cuGraphLaunch, (cuda_executable executable, cuda_stream stream))                                \
    FUNCTION(cuGraphExecDestroy, (cuda_executable executable))                                               \
    FUNCTION(cuGraphDestroy, (cuda_graph graph))                                                             \
    FUNCTION(cuModuleLoadData, (cuda_module * module, const void *image))                                    \
    FUNCTION(cuModuleGetFunction, (cuda_function * function, cuda_module module, const char *name))          \
    FUNCTION(cuLaunchKernel, (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,     \
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,   \
                              cuda_stream stream, void **arguments, void **extra))                           \
    FUNCTION(cuGetErrorName, (int result, const char **name))

static struct {
#define FUNCTION(name, parameters) int(*name) parameters;
    FUNCTIONS
#undef FUNCTION
} cuda;

static const char *bundle_path;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

static void say_wrong(const char *what, const char *detail)
{
    pthread_mutex_lock(&print_lock);
    printf("      %s: %s\n", what, detail);
    pthread_mutex_unlock(&print_lock);
}

static bool good(int result, const char *what)
{
    const char *name = "?";
    if (result == 0)
        return true;
    cuda.cuGetErrorName(result, &name);
    say_wrong(what, name);
    return false;
}

static bool well(gpucc_status status, const char *what)
{
    if (status == GPUCC_OK)
        return true;
    say_wrong(what, gpucc_last_error());
    return false;
}

#define GOOD(call) good(cuda.call, #call)
#define WELL(call) well(call, #call)

static bool load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
#define FUNCTION(name, parameters)                                                                           \
    {                                                                                                        \
        void *symbol = dlsym(library, #name);                                                                \
        if (!symbol)                                                                                         \
            return false;                                                                                    \
        memcpy(&cuda.name, &symbol, sizeof symbol);                                                          \
    }
    FUNCTIONS
#undef FUNCTION
    return cuda.cuInit(0) == 0;
}

/* ---- a model with its tensors
 * ---------------------------------------------------------------------------------------- */

struct work {
    gpucc_model *model;
    size_t input_count, output_count;
    gpucc_tensor inputs[MOST], outputs[MOST]; /* host */
};

struct device_work {
    gpucc_tensor inputs[MOST], outputs[MOST];
};

static size_t element_bytes(int32_t dtype)
{
    switch (dtype) {
    case GPUCC_F64:
    case GPUCC_I64:
    case GPUCC_U64:
        return 8;
    case GPUCC_F32:
    case GPUCC_I32:
    case GPUCC_U32:
        return 4;
    case GPUCC_F16:
    case GPUCC_BF16:
    case GPUCC_I16:
    case GPUCC_U16:
        return 2;
    default:
        return 1;
    }
}

static void fill(gpucc_tensor *tensor, unsigned seed)
{
    const size_t element = element_bytes(tensor->dtype);
    for (size_t i = 0; i < tensor->bytes / element; i++) {
        const float single = (float)((i * 31 + seed * 17) % 61) / 32.0f - 0.9f;
        const double wide = (double)single;
        unsigned char *at = (unsigned char *)tensor->data + i * element;
        memset(at, 0, element);
        if (tensor->dtype == GPUCC_F32)
            memcpy(at, &single, sizeof single);
        else if (tensor->dtype == GPUCC_F64)
            memcpy(at, &wide, sizeof wide);
        else if (tensor->dtype != GPUCC_F16 && tensor->dtype != GPUCC_BF16)
            at[0] = (unsigned char)((i + seed) % 3 == 0);
    }
}

/* A host tensor of the listed dims; free ones are SIZE. Room for one output more than is known. */
static bool make_tensor(const gpucc_tensor_info *info, size_t room, gpucc_tensor *tensor)
{
    *tensor = (gpucc_tensor){.size = sizeof *tensor, .dtype = info->dtype, .rank = info->rank};
    tensor->bytes = element_bytes(info->dtype);
    for (int i = 0; i < info->rank; i++) {
        tensor->dims[i] = info->dims[i] < 0 ? SIZE : info->dims[i];
        tensor->bytes *= (size_t)tensor->dims[i];
    }
    tensor->bytes = tensor->bytes > room ? tensor->bytes : room;
    tensor->data = calloc(1, tensor->bytes + 16);
    return tensor->data != NULL;
}

static gpucc_dims all_dims(const struct work *work, gpucc_dim *items, char names[][160])
{
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = items;
    for (size_t i = 0; i < work->input_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        gpucc_input_info(work->model, i, &info);
        for (int axis = 0; axis < info.rank; axis++) {
            if (info.dims[axis] >= 0 || dims.count == MOST)
                continue;
            snprintf(names[dims.count], 160, "%s[%d]", info.name, axis);
            items[dims.count] = (gpucc_dim){names[dims.count], SIZE, SIZE};
            dims.count++;
        }
    }
    return dims;
}

static bool prepare(const struct work *work, gpucc_context *context)
{
    gpucc_dim items[MOST];
    char names[MOST][160];
    const gpucc_dims dims = all_dims(work, items, names);
    return WELL(gpucc_prepare(context, &dims, NULL));
}

static bool open_work(struct work *work)
{
    enum { ROOM = 1 << 22 };
    memset(work, 0, sizeof *work);
    if (!WELL(gpucc_open(bundle_path, NULL, &work->model)))
        return false;
    work->input_count = gpucc_input_count(work->model);
    work->output_count = gpucc_output_count(work->model);
    if (work->input_count > MOST || work->output_count > MOST)
        return false;
    for (size_t i = 0; i < work->input_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        if (!WELL(gpucc_input_info(work->model, i, &info)) || !make_tensor(&info, 0, &work->inputs[i]))
            return false;
        fill(&work->inputs[i], (unsigned)i);
    }
    for (size_t i = 0; i < work->output_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        if (!WELL(gpucc_output_info(work->model, i, &info)) || !make_tensor(&info, ROOM, &work->outputs[i]))
            return false;
    }
    return true;
}

static void close_work(struct work *work)
{
    for (size_t i = 0; i < work->input_count; i++)
        free(work->inputs[i].data);
    for (size_t i = 0; i < work->output_count; i++)
        free(work->outputs[i].data);
    gpucc_close(work->model);
}

static gpucc_context *make_context(const struct work *work, int32_t device, void *cuda_own)
{
    gpucc_context *context = NULL;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = device;
    options.cuda_context = cuda_own;
    WELL(gpucc_context_create(work->model, &options, &context));
    return context;
}

/* Device copies of the tensors, in the current context. */
static bool to_device(const struct work *work, struct device_work *device)
{
    bool done = true;
    for (size_t i = 0; i < work->input_count + work->output_count && done; i++) {
        const bool input = i < work->input_count;
        const gpucc_tensor *from = input ? &work->inputs[i] : &work->outputs[i - work->input_count];
        gpucc_tensor *to = input ? &device->inputs[i] : &device->outputs[i - work->input_count];
        cuda_pointer memory = 0;
        *to = *from;
        done = GOOD(cuMemAlloc_v2(&memory, from->bytes + 1)) &&
               GOOD(cuMemcpyHtoD_v2(memory, from->data, from->bytes));
        to->data = (void *)(size_t)memory;
    }
    return done;
}

static void off_device(const struct work *work, const struct device_work *device)
{
    for (size_t i = 0; i < work->input_count; i++)
        cuda.cuMemFree_v2((cuda_pointer)(size_t)device->inputs[i].data);
    for (size_t i = 0; i < work->output_count; i++)
        cuda.cuMemFree_v2((cuda_pointer)(size_t)device->outputs[i].data);
}

static size_t used_bytes(const gpucc_tensor *tensor)
{
    size_t bytes = element_bytes(tensor->dtype);
    for (int i = 0; i < tensor->rank; i++)
        bytes *= (size_t)tensor->dims[i];
    return bytes;
}

/* The device's outputs are those of `work`, bit by bit; they are poisoned behind. */
static bool same_outputs(const struct work *work, const struct device_work *device, const char *what)
{
    bool same = true;
    for (size_t i = 0; i < work->output_count && same; i++) {
        const size_t bytes = used_bytes(&work->outputs[i]);
        unsigned char *got = malloc(bytes + 1);
        same = got && GOOD(cuMemcpyDtoH_v2(got, (cuda_pointer)(size_t)device->outputs[i].data, bytes));
        if (same && memcmp(got, work->outputs[i].data, bytes) != 0) {
            say_wrong(what, "outputs differ");
            same = false;
        }
        if (got) {
            memset(got, 0xA5, bytes);
            cuda.cuMemcpyHtoD_v2((cuda_pointer)(size_t)device->outputs[i].data, got, bytes);
        }
        free(got);
    }
    return same;
}

static bool near_outputs(const struct work *a, const struct work *b)
{
    for (size_t i = 0; i < a->output_count; i++) {
        const float *x = a->outputs[i].data, *y = b->outputs[i].data;
        double largest = 0, error = 0;
        if (a->outputs[i].dtype != GPUCC_F32)
            continue;
        for (size_t k = 0; k < used_bytes(&a->outputs[i]) / 4; k++) {
            largest = fmax(largest, fabs((double)x[k]));
            error = fmax(error, fabs((double)x[k] - (double)y[k]));
        }
        if (!(error <= 2e-4 * largest)) {
            printf("      output %zu: error %.3g of %.3g\n", i, error, largest);
            return false;
        }
    }
    return true;
}

/* ---- promises
 * -------------------------------------------------------------------------------------------------------- */

/* The default stream, a blocking and a non-blocking one. */
static bool any_stream(struct work *work)
{
    cuda_stream streams[3] = {NULL, NULL, NULL};
    struct device_work device;
    gpucc_context *context = make_context(work, 0, NULL);
    bool held = context && WELL(gpucc_run(context, work->inputs, work->outputs)) && prepare(work, context) &&
                to_device(work, &device) && GOOD(cuStreamCreate(&streams[1], 0)) &&
                GOOD(cuStreamCreate(&streams[2], 1));
    for (int round = 0; round < 3 && held; round++)
        for (int i = 0; i < 3 && held; i++)
            held = WELL(gpucc_enqueue(context, streams[i], device.inputs, device.outputs)) &&
                   GOOD(cuStreamSynchronize(streams[i])) && same_outputs(work, &device, "stream");
    gpucc_context_destroy(context);
    return held;
}

/* A captured enqueue is part of the caller's graph, in each mode of capture; launched twice. */
static bool while_captured(struct work *work)
{
    cuda_stream stream = NULL;
    struct device_work device;
    gpucc_context *context = make_context(work, 0, NULL);
    bool held =
        context && prepare(work, context) && to_device(work, &device) && GOOD(cuStreamCreate(&stream, 1));
    for (int mode = 0; mode < 3 && held; mode++) {
        cuda_graph graph = NULL;
        cuda_executable executable = NULL;
        held = GOOD(cuStreamBeginCapture_v2(stream, mode)) &&
               WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
               GOOD(cuStreamEndCapture(stream, &graph)) &&
               GOOD(cuGraphInstantiateWithFlags(&executable, graph, 0));
        for (int launch = 0; launch < 2 && held; launch++)
            held = GOOD(cuGraphLaunch(executable, stream)) && GOOD(cuStreamSynchronize(stream)) &&
                   same_outputs(work, &device, "captured graph");
        /* And the context works outside of capture as before. */
        held = held && WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
               GOOD(cuStreamSynchronize(stream)) && same_outputs(work, &device, "after capture");
        if (executable)
            cuda.cuGraphExecDestroy(executable);
        if (graph)
            cuda.cuGraphDestroy(graph);
    }
    gpucc_context_destroy(context);
    return held;
}

/* In a CUDA context of the caller's, with another one current: it stays current. */
static bool second_cuda_context(struct work *work)
{
    cuda_context first = NULL, own = NULL, now = NULL;
    cuda_stream stream = NULL;
    struct device_work device;
    int number = 0;
    bool held = GOOD(cuDeviceGet(&number, 0)) && GOOD(cuCtxGetCurrent(&first)) &&
                GOOD(cuCtxCreate_v2(&own, 0, number)) && to_device(work, &device) &&
                GOOD(cuStreamCreate(&stream, 1)) && GOOD(cuCtxSetCurrent(first));
    gpucc_context *context = held ? make_context(work, 0, own) : NULL;
    held = held && context && prepare(work, context);
    for (int round = 0; round < 3 && held; round++) {
        held = WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
               GOOD(cuCtxGetCurrent(&now));
        if (held && now != first) {
            say_wrong("current context", "enqueue left another one");
            held = false;
        }
        held = held && GOOD(cuCtxSetCurrent(own)) && GOOD(cuStreamSynchronize(stream)) &&
               same_outputs(work, &device, "second context") && GOOD(cuCtxSetCurrent(first));
    }
    gpucc_context_destroy(context);
    if (own)
        cuda.cuCtxDestroy_v2(own);
    return GOOD(cuCtxSetCurrent(first)) && held;
}

struct thread_work {
    struct work *work;
    cuda_context primary;
    bool held;
};

static void *one_thread(void *user)
{
    struct thread_work *thread = user;
    cuda_stream stream = NULL;
    struct device_work device;
    bool held = GOOD(cuCtxSetCurrent(thread->primary)) && to_device(thread->work, &device) &&
                GOOD(cuStreamCreate(&stream, 1));
    gpucc_context *context = held ? make_context(thread->work, 0, NULL) : NULL;
    held = held && context && prepare(thread->work, context);
    for (int round = 0; round < ROUNDS && held; round++)
        held = WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
               GOOD(cuStreamSynchronize(stream)) && same_outputs(thread->work, &device, "thread");
    gpucc_context_destroy(context);
    off_device(thread->work, &device);
    thread->held = held;
    return NULL;
}

static bool from_threads(struct work *work)
{
    pthread_t threads[THREADS];
    struct thread_work parts[THREADS];
    bool held = true;
    cuda_context primary = NULL;
    held = GOOD(cuCtxGetCurrent(&primary));
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct thread_work){.work = work, .primary = primary};
        if (pthread_create(&threads[i], NULL, one_thread, &parts[i]) != 0)
            return false;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        held = held && parts[i].held;
    }
    return held;
}

/* The first weight that can be replaced; its elements changed. */
static bool replace_one(struct work *work)
{
    for (size_t i = 0; i < gpucc_weight_count(work->model); i++) {
        gpucc_weight info = GPUCC_INIT(gpucc_weight);
        gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor);
        if (!WELL(gpucc_weight_info(work->model, i, &info)))
            return false;
        size_t bytes = 4;
        for (int k = 0; k < info.rank; k++)
            bytes *= (size_t)(tensor.dims[k] = info.dims[k]);
        if (info.frozen || info.dtype != GPUCC_F32 || bytes < 256)
            continue;
        tensor.dtype = info.dtype;
        tensor.rank = info.rank;
        tensor.bytes = bytes;
        tensor.data = malloc(bytes);
        if (!tensor.data)
            return false;
        for (size_t k = 0; k < bytes / 4; k++)
            ((float *)tensor.data)[k] = 0.01f * (float)(k * 7 % 11) - 0.05f;
        const bool done = WELL(gpucc_replace_weights(work->model, &info.name, &tensor, 1));
        free(tensor.data);
        return done;
    }
    say_wrong("weights", "none can be replaced");
    return false;
}

/* Some output is not what `before` holds: the new weight reaches it. */
static bool outputs_changed(const struct work *work, void *const *before)
{
    for (size_t i = 0; i < work->output_count; i++)
        if (memcmp(before[i], work->outputs[i].data, used_bytes(&work->outputs[i])) != 0)
            return true;
    say_wrong("weights", "the replaced one does not show in the outputs");
    return false;
}

/* Both devices take the new weight in prepare; until then they keep the old one. */
static bool weights_replaced(struct work *work)
{
    struct work on_cpu = {0};
    cuda_stream stream = NULL;
    struct device_work device;
    void *before[MOST] = {NULL};
    gpucc_context *context = make_context(work, 0, NULL);
    bool held = context != NULL;
    for (size_t i = 0; i < work->output_count && held; i++) {
        before[i] = malloc(used_bytes(&work->outputs[i]) + 1);
        held = before[i] != NULL;
        if (held)
            memcpy(before[i], work->outputs[i].data, used_bytes(&work->outputs[i]));
    }
    held = held && prepare(work, context) && to_device(work, &device) && GOOD(cuStreamCreate(&stream, 1)) &&
           replace_one(work) && WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
           GOOD(cuStreamSynchronize(stream)) && same_outputs(work, &device, "before prepare") &&
           prepare(work, context) && WELL(gpucc_run(context, work->inputs, work->outputs)) &&
           WELL(gpucc_enqueue(context, stream, device.inputs, device.outputs)) &&
           GOOD(cuStreamSynchronize(stream)) && same_outputs(work, &device, "after prepare") &&
           outputs_changed(work, before);
    for (size_t i = 0; i < work->output_count; i++)
        free(before[i]);
    if (held && open_work(&on_cpu)) {
        gpucc_context *cpu = replace_one(&on_cpu) ? make_context(&on_cpu, GPUCC_CPU, NULL) : NULL;
        held = cpu && WELL(gpucc_run(cpu, on_cpu.inputs, on_cpu.outputs)) && near_outputs(work, &on_cpu);
        gpucc_context_destroy(cpu);
        close_work(&on_cpu);
    }
    gpucc_context_destroy(context);
    return held;
}

static bool expect_broken(gpucc_status status, const char *call)
{
    if (status == GPUCC_DEVICE_ERROR && *gpucc_last_error())
        return true;
    say_wrong(call, status == GPUCC_OK ? "succeeded on a lost device" : gpucc_last_error());
    return false;
}

/* A kernel of our own that writes where nothing was ever allocated: in the page of the null pointer. */
static bool lose_device(cuda_stream stream)
{
    static const char source[] = ".version 6.3\n"
                                 ".target sm_75\n"
                                 ".address_size 64\n"
                                 ".visible .entry lose()\n"
                                 "{\n"
                                 "    .reg .b64 %at;\n"
                                 "    .reg .b32 %value;\n"
                                 "    mov.u64 %at, 256;\n"
                                 "    mov.u32 %value, 1;\n"
                                 "    st.global.u32 [%at], %value;\n"
                                 "    ret;\n"
                                 "}\n";
    cuda_module module = NULL;
    cuda_function function = NULL;
    return GOOD(cuModuleLoadData(&module, source)) && GOOD(cuModuleGetFunction(&function, module, "lose")) &&
           GOOD(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* What comes from the failing kernel on. enqueue behind it may or may not see the error yet. */
static bool refuse_after(struct work *work, gpucc_context *context, struct device_work *device)
{
    gpucc_dim items[MOST];
    char names[MOST][160];
    const gpucc_dims dims = all_dims(work, items, names);
    const gpucc_status behind = gpucc_enqueue(context, NULL, device->inputs, device->outputs);
    if (behind != GPUCC_OK && !expect_broken(behind, "gpucc_enqueue behind the failing kernel"))
        return false;
    if (cuda.cuCtxSynchronize() == 0) {
        say_wrong("synchronise", "no error came");
        return false;
    }
    return expect_broken(gpucc_enqueue(context, NULL, device->inputs, device->outputs), "gpucc_enqueue") &&
           expect_broken(gpucc_enqueue(context, NULL, device->inputs, device->outputs),
                         "gpucc_enqueue again") &&
           expect_broken(gpucc_prepare(context, &dims, NULL), "gpucc_prepare") &&
           expect_broken(gpucc_run(context, work->inputs, work->outputs), "gpucc_run");
}

/* Every later call says so, of the other context in the lost CUDA context too, and cleaning up works. */
static bool after_an_error(struct work *work)
{
    struct device_work device;
    gpucc_context *contexts[2] = {make_context(work, 0, NULL), make_context(work, 0, NULL)}, *late = NULL;
    bool held = contexts[0] && contexts[1] && prepare(work, contexts[0]) && prepare(work, contexts[1]) &&
                to_device(work, &device) && lose_device(NULL) && refuse_after(work, contexts[0], &device);
    if (held)
        printf("      says: %s\n", gpucc_last_error());
    held = held && expect_broken(gpucc_enqueue(contexts[1], NULL, device.inputs, device.outputs),
                                 "gpucc_enqueue of the other context");
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    if (gpucc_context_create(work->model, &options, &late) == GPUCC_OK)
        gpucc_context_destroy(late); /* it may be made; its prepare fails */
    gpucc_context_destroy(contexts[0]);
    gpucc_context_destroy(contexts[1]);
    return held;
}

static const struct promise {
    const char *name;
    bool (*check)(struct work *work);
} promises[] = {{"enqueue on any stream", any_stream},
                {"enqueue while the stream is captured", while_captured},
                {"enqueue in a second CUDA context", second_cuda_context},
                {"16 threads with a context each", from_threads},
                {"weights replaced", weights_replaced}};

static bool check_promise(const struct promise *promise)
{
    struct work work;
    bool held = open_work(&work);
    if (held && promise->check != after_an_error) {
        gpucc_context *context = make_context(&work, 0, NULL);
        held = context && WELL(gpucc_run(context, work.inputs, work.outputs));
        gpucc_context_destroy(context);
    }
    held = held && promise->check(&work);
    if (work.model)
        close_work(&work);
    printf("%s  %s\n", held ? "ok  " : "FAIL", promise->name);
    fflush(stdout);
    return held;
}

int main(int argc, char **argv)
{
    static const struct promise error = {"after a device error", after_an_error};
    cuda_context primary = NULL;
    int device = 0;
    bool held = true;
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "error") != 0)) {
        fprintf(stderr, "usage: promises BUNDLE [error]\n");
        return 2;
    }
    bundle_path = argv[1];
    if (!load_driver() || !GOOD(cuDeviceGet(&device, 0)) ||
        !GOOD(cuDevicePrimaryCtxRetain(&primary, device)) || !GOOD(cuCtxSetCurrent(primary))) {
        fprintf(stderr, "promises: no CUDA device\n");
        return 1;
    }
    if (argc == 3)
        return check_promise(&error) ? 0 : 1;
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        held = check_promise(&promises[i]) && held;
    return held ? 0 : 1;
}

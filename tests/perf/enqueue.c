/* Host time of one enqueue on a driver that executes nothing:
 *
 *     enqueue BUNDLE [NAME=SIZE ...]
 *
 * The driver is tests/fake_cuda's. Prepares these sizes, then enqueues with two sets of buffers in turn, so
 * that the parameters of the graph's nodes that hold the caller's pointers are patched each time. Prints the
 * least mean of a hundred calls, in microseconds. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpucc/runtime.h"

enum { MOST_TENSORS = 32, TRIALS = 50, CALLS = 100 };

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void need(gpucc_status status, const char *what)
{
    if (status == GPUCC_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, gpucc_status_name(status), gpucc_last_error());
    exit(1);
}

static size_t element_bytes(int32_t dtype)
{
    switch (dtype) {
    case GPUCC_U8:
    case GPUCC_I8:
    case GPUCC_BOOL:
        return 1;
    case GPUCC_F16:
    case GPUCC_BF16:
        return 2;
    case GPUCC_I64:
    case GPUCC_F64:
        return 8;
    default:
        return 4;
    }
}

/* Memory for the tensor's dims; the driver takes any for a device's. */
static void give_memory(gpucc_tensor *tensor)
{
    tensor->bytes = element_bytes(tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->bytes *= (size_t)tensor->dims[i];
    tensor->data = aligned_alloc(256, (tensor->bytes + 511) / 256 * 256);
    if (!tensor->data)
        exit(3);
}

static int64_t size_of(int count, char **arguments, const char *symbol)
{
    for (int i = 2; i < count; i++) {
        const char *equals = strchr(arguments[i], '=');
        if (symbol && equals && strlen(symbol) == (size_t)(equals - arguments[i]) &&
            !strncmp(arguments[i], symbol, strlen(symbol)))
            return atoll(equals + 1);
    }
    return 1;
}

int main(int count, char **arguments)
{
    static gpucc_tensor inputs[2][MOST_TENSORS], outputs[2][MOST_TENSORS];
    static gpucc_dim named[MOST_TENSORS * GPUCC_MAX_RANK];
    gpucc_model *model;
    gpucc_context *context;
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    if (count < 2 || !dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "usage: enqueue BUNDLE [NAME=SIZE ...]\n");
        return 2;
    }
    need(gpucc_open(arguments[1], NULL, &model), "open");
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    need(gpucc_context_create(model, &options, &context), "create");
    dims.items = named;
    if (gpucc_input_count(model) > MOST_TENSORS || gpucc_output_count(model) > MOST_TENSORS)
        return 2;
    for (size_t i = 0; i < gpucc_input_count(model); i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        need(gpucc_input_info(model, i, &info), "input");
        gpucc_tensor tensor = {.size = sizeof tensor, .dtype = info.dtype, .rank = info.rank};
        for (int32_t axis = 0; axis < info.rank; axis++) {
            tensor.dims[axis] = info.dims[axis];
            if (info.dims[axis] >= 0)
                continue;
            tensor.dims[axis] = size_of(count, arguments, info.symbols[axis]);
            named[dims.count++] = (gpucc_dim){info.symbols[axis], tensor.dims[axis], tensor.dims[axis]};
        }
        for (int k = 0; k < 2; k++) {
            inputs[k][i] = tensor;
            give_memory(&inputs[k][i]);
        }
    }
    need(gpucc_prepare(context, &dims, NULL), "prepare");
    for (size_t i = 0; i < gpucc_output_count(model); i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        need(gpucc_output_info(model, i, &info), "output");
        gpucc_tensor tensor = {.size = sizeof tensor, .dtype = info.dtype};
        need(gpucc_output_dims(context, i, &tensor.rank, tensor.dims), "output dims");
        for (int k = 0; k < 2; k++) {
            outputs[k][i] = tensor;
            give_memory(&outputs[k][i]);
        }
    }
    double best = 1e9;
    for (int trial = 0; trial < TRIALS; trial++) {
        const double begin = microseconds();
        for (int i = 0; i < CALLS; i++)
            need(gpucc_enqueue(context, NULL, inputs[i % 2], outputs[i % 2]), "enqueue");
        const double each = (microseconds() - begin) / CALLS;
        best = each < best ? each : best;
    }
    gpucc_statistics statistics = GPUCC_INIT(gpucc_statistics);
    need(gpucc_context_statistics(context, &statistics), "statistics");
    printf("%.2f us, %llu launches\n", best, (unsigned long long)statistics.launches);
    gpucc_context_destroy(context);
    gpucc_close(model);
    return 0;
}

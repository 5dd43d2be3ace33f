/* Runs the bundle of large.py's `elements` model and compares every byte:
 *
 *     large_elements BUNDLE DEVICE COUNT BEGIN        DEVICE: -1 is the CPU
 *
 * x[i] is drawn from i, its last element is the largest. y = 255 - x, behind = (x + x)[BEGIN:], most =
 * max(x). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpucc/runtime.h"

enum { LARGEST = 254 };

static uint8_t element(uint64_t i, uint64_t count)
{
    const uint64_t mixed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return i + 1 == count ? LARGEST : (uint8_t)((mixed >> 32) % LARGEST);
}

static void need(gpucc_status status, const char *what)
{
    if (status == GPUCC_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, gpucc_status_name(status), gpucc_last_error());
    exit(1);
}

static gpucc_tensor tensor_of(uint64_t count, int32_t rank)
{
    gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor);
    tensor.dtype = GPUCC_U8;
    tensor.rank = rank;
    tensor.dims[0] = (int64_t)count;
    tensor.bytes = count;
    tensor.data = malloc(count);
    if (!tensor.data) {
        fprintf(stderr, "no memory\n");
        exit(3);
    }
    memset(tensor.data, 0xa5, count);
    return tensor;
}

static uint64_t wrong_elements(const gpucc_tensor *x, const gpucc_tensor *outputs, uint64_t count,
                               uint64_t begin)
{
    const uint8_t *from = x->data, *y = outputs[0].data, *behind = outputs[1].data;
    uint64_t wrong = *(const uint8_t *)outputs[2].data != LARGEST;
    for (uint64_t i = 0; i < count; i++)
        wrong += (unsigned)y[i] + (unsigned)from[i] != 255U;
    for (uint64_t i = begin; i < count; i++)
        wrong += behind[i - begin] != (uint8_t)(from[i] * 2U);
    return wrong;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 5) {
        fprintf(stderr, "usage: large_elements BUNDLE DEVICE COUNT BEGIN\n");
        return 2;
    }
    const uint64_t count = strtoull(arguments[3], NULL, 10), begin = strtoull(arguments[4], NULL, 10);
    gpucc_model *model;
    gpucc_context *context;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    struct timespec start, end;
    options.device = (int32_t)strtol(arguments[2], NULL, 10);
    need(gpucc_open(arguments[1], NULL, &model), "open");
    need(gpucc_context_create(model, &options, &context), "create");
    gpucc_tensor x = tensor_of(count, 1);
    gpucc_tensor outputs[] = {tensor_of(count, 1), tensor_of(count - begin, 1), tensor_of(1, 0)};
    for (uint64_t i = 0; i < count; i++)
        ((uint8_t *)x.data)[i] = element(i, count);
    clock_gettime(CLOCK_MONOTONIC, &start);
    need(gpucc_run(context, &x, outputs), "run");
    clock_gettime(CLOCK_MONOTONIC, &end);
    const uint64_t wrong = wrong_elements(&x, outputs, count, begin);
    printf("%s a tensor of %" PRIu64 " elements on %s %d: %.2f s, %" PRIu64 " wrong\n",
           wrong ? "FAIL" : "ok  ", count, options.device < 0 ? "the CPU" : "device", options.device,
           (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec), wrong);
    gpucc_context_destroy(context);
    gpucc_close(model);
    free(x.data);
    for (int i = 0; i < 3; i++)
        free(outputs[i].data);
    return wrong ? 1 : 0;
}

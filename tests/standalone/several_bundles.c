/* Several bundles in one process, and the same one twice: several_bundles FILE FILE...
 *
 * Each is first opened, run on random inputs of its own and closed alone. Then all are opened at once, each
 * twice, and run in turns and from one thread each; whatever order they are closed in, the results must be
 * those of the first run, bit by bit. No memory of the process may be writable and executable meanwhile. */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpucc/runtime.h"

enum { MOST_BUNDLES = 16, MOST_TENSORS = 32, FREE_DIM = 2, ROUNDS = 3 };

struct instance {
    const char *path;
    gpucc_model *model;
    gpucc_context *context;
    size_t input_count, output_count;
    gpucc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
};

static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void must(gpucc_status status, const char *path, const char *call)
{
    if (status != GPUCC_OK)
        stop("%s: %s: %s: %s", path, call, gpucc_status_name(status), gpucc_last_error());
}

static size_t element_bytes(int32_t dtype)
{
    switch (dtype) {
    case GPUCC_F32:
    case GPUCC_I32:
        return 4;
    case GPUCC_I64:
    case GPUCC_F64:
        return 8;
    default:
        stop("element type %d is not one of this test's", (int)dtype);
        return 0;
    }
}

/* Integers are 0 or 1, so that they are valid indices; floats lie between 0 and 1. */
static void fill(gpucc_tensor *tensor, uint32_t *random)
{
    size_t each = element_bytes(tensor->dtype);
    for (size_t i = 0; i < tensor->bytes / each; i++) {
        *random = *random * 1664525u + 1013904223u;
        if (tensor->dtype == GPUCC_F32)
            ((float *)tensor->data)[i] = (float)(*random >> 8) * 0x1p-24f;
        else if (tensor->dtype == GPUCC_F64)
            ((double *)tensor->data)[i] = (double)(*random >> 8) * 0x1p-24;
        else if (tensor->dtype == GPUCC_I32)
            ((int32_t *)tensor->data)[i] = (int32_t)(*random >> 31);
        else
            ((int64_t *)tensor->data)[i] = (int64_t)(*random >> 31);
    }
}

static gpucc_tensor make_tensor(const gpucc_tensor_info *info, size_t spare)
{
    gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor);
    tensor.dtype = info->dtype;
    tensor.rank = info->rank;
    tensor.bytes = element_bytes(info->dtype);
    for (int32_t i = 0; i < info->rank; i++) {
        tensor.dims[i] = info->dims[i] < 0 ? FREE_DIM : info->dims[i];
        tensor.bytes *= (size_t)tensor.dims[i];
    }
    tensor.bytes += spare;
    tensor.data = calloc(1, tensor.bytes ? tensor.bytes : 1);
    if (!tensor.data)
        stop("out of memory");
    return tensor;
}

static void open_instance(struct instance *instance, const char *path)
{
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 2;
    uint32_t random = 1;
    memset(instance, 0, sizeof *instance);
    instance->path = path;
    must(gpucc_open(path, NULL, &instance->model), path, "gpucc_open");
    must(gpucc_context_create(instance->model, &options, &instance->context), path, "gpucc_context_create");
    instance->input_count = gpucc_input_count(instance->model);
    instance->output_count = gpucc_output_count(instance->model);
    if (instance->input_count > MOST_TENSORS || instance->output_count > MOST_TENSORS)
        stop("%s has too many inputs or outputs", path);
    for (size_t i = 0; i < instance->input_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        must(gpucc_input_info(instance->model, i, &info), path, "gpucc_input_info");
        instance->inputs[i] = make_tensor(&info, 0);
        fill(&instance->inputs[i], &random);
    }
    for (size_t i = 0; i < instance->output_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        must(gpucc_output_info(instance->model, i, &info), path, "gpucc_output_info");
        instance->outputs[i] =
            make_tensor(&info, (size_t)1 << 20); /* dims of outputs may be products of free ones */
    }
}

static void close_instance(struct instance *instance)
{
    for (size_t i = 0; i < instance->input_count; i++)
        free(instance->inputs[i].data);
    for (size_t i = 0; i < instance->output_count; i++)
        free(instance->outputs[i].data);
    gpucc_context_destroy(instance->context);
    gpucc_close(instance->model);
}

/* A digest of the outputs (FNV-1a), which are poisoned first. */
static uint64_t run_instance(struct instance *instance)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < instance->output_count; i++)
        memset(instance->outputs[i].data, 0xa5, instance->outputs[i].bytes);
    must(gpucc_run(instance->context, instance->inputs, instance->outputs), instance->path, "gpucc_run");
    for (size_t i = 0; i < instance->output_count; i++) {
        const unsigned char *bytes = instance->outputs[i].data;
        for (size_t k = 0; k < instance->outputs[i].bytes; k++)
            digest = (digest ^ bytes[k]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static void check_memory(void)
{
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        stop("/proc/self/maps cannot be read");
    while (fgets(line, sizeof line, maps)) {
        char rights[8];
        if (sscanf(line, "%*s %7s", rights) == 1 && rights[1] == 'w' && rights[2] == 'x')
            stop("writable and executable: %s", line);
    }
    fclose(maps);
}

struct job {
    struct instance instance;
    uint64_t expected;
    unsigned wrong;
};

static void *run_job(void *argument)
{
    struct job *job = argument;
    for (int i = 0; i < ROUNDS; i++)
        job->wrong += run_instance(&job->instance) != job->expected;
    return NULL;
}

int main(int count, char **arguments)
{
    static struct job jobs[2 * MOST_BUNDLES];
    const unsigned bundles = (unsigned)count - 1, all = 2 * bundles;
    pthread_t threads[2 * MOST_BUNDLES];
    if (count < 3 || bundles > MOST_BUNDLES)
        stop("usage: several_bundles FILE FILE...");
    for (unsigned i = 0; i < bundles; i++) {
        struct instance alone;
        open_instance(&alone, arguments[i + 1]);
        jobs[i].expected = jobs[bundles + i].expected = run_instance(&alone);
        close_instance(&alone);
    }
    for (unsigned i = 0; i < all; i++)
        open_instance(&jobs[i].instance, arguments[i % bundles + 1]);
    check_memory();
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < all; i++)
            jobs[i].wrong += run_instance(&jobs[i].instance) != jobs[i].expected;
    for (unsigned i = 0; i < all; i++)
        if (pthread_create(&threads[i], NULL, run_job, &jobs[i]) != 0)
            stop("no thread");
    for (unsigned i = 0; i < all; i++)
        pthread_join(threads[i], NULL);
    check_memory();
    /* The first of each pair goes, the second must go on. */
    for (unsigned i = 0; i < bundles; i++)
        close_instance(&jobs[i].instance);
    for (unsigned i = bundles; i < all; i++)
        jobs[i].wrong += run_instance(&jobs[i].instance) != jobs[i].expected;
    unsigned wrong = 0;
    for (unsigned i = 0; i < all; i++)
        wrong += jobs[i].wrong;
    for (unsigned i = all; i-- > bundles;)
        close_instance(&jobs[i].instance);
    printf("%u bundles, each twice in one process: %u wrong results\n", bundles, wrong);
    return wrong ? 1 : 0;
}

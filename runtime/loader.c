/* The library that programs link: opens a bundle, checks it, loads it, and forwards every call to the runtime
 * inside.
 *
 * The file is opened once. What was hashed is what is loaded: dlopen gets the descriptor's name under
 * /proc/self/fd. The dynamic loader takes an object for loaded when it knows the name, and keeps names of
 * objects that were closed by one of several users, so each open uses a spelling of its own; the tables in
 * memory must then be those of the file. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/abi.h"
#include "runtime/info.h"

struct gpucc_model {
    struct bundle_file file;
    int weights_fd; /* of the sidecar, or -1 */
    void *library;
    const struct bundle_functions *functions;
    struct runtime_model *model;
};

struct gpucc_context {
    const struct bundle_functions *functions;
    struct runtime_context *context;
};

static _Thread_local struct runtime_error last_error;

const char *gpucc_last_error(void)
{
    return last_error.text;
}

const char *gpucc_status_name(gpucc_status status)
{
    static const char *const names[] = {"OK",           "INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_PREPARED",
                                        "BAD_BUNDLE",   "NO_PLAN",          "NO_DEVICE",    "OUT_OF_MEMORY",
                                        "DEVICE_ERROR", "IO_ERROR"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

static gpucc_status null_argument(void)
{
    return runtime_fail(&last_error, GPUCC_INVALID_ARGUMENT, "an argument is NULL");
}

/* The descriptor's name with a number written into it: '/' and '/.' are the bits, which the kernel does not
 * see. */
static void unique_name(int fd, char *name, size_t bytes)
{
    static atomic_uint_fast64_t opened;
    char bits[3 * 64 + 1] = "";
    size_t used = 0;
    for (uint64_t number = atomic_fetch_add(&opened, 1) + 1; number; number >>= 1) {
        memcpy(bits + used, number & 1 ? "/." : "/", number & 1 ? 2 : 1);
        used += number & 1 ? 2 : 1;
    }
    bits[used] = '\0';
    snprintf(name, bytes, "/proc/self/fd%s/%d", bits, fd);
}

/* dlopen would only say that the ELF header is wrong. */
static gpucc_status check_machine(const struct bundle_header *header)
{
#if defined(__x86_64__)
    const uint32_t own = BUNDLE_X86_64;
#elif defined(__aarch64__)
    const uint32_t own = BUNDLE_AARCH64;
#else
#error "bundles have no code for this processor"
#endif
    if (header->machine == own)
        return GPUCC_OK;
    return runtime_fail(&last_error, GPUCC_NO_PLAN, "the bundle is for %s hosts",
                        header->machine == BUNDLE_AARCH64  ? "AArch64"
                        : header->machine == BUNDLE_X86_64 ? "x86-64"
                                                           : "other");
}

static gpucc_status load_library(gpucc_model *model)
{
    char name[256];
    unique_name(model->file.fd, name, sizeof name);
    model->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!model->library) {
        const char *reason = dlerror();
        return runtime_fail(&last_error, GPUCC_BAD_BUNDLE, "cannot load the bundle: %s",
                            reason ? reason : "unknown");
    }
    void *symbol = dlsym(model->library, BUNDLE_QUERY);
    bundle_query *query;
    memcpy(&query, &symbol,
           sizeof query); /* POSIX: a function pointer has an object pointer's representation */
    model->functions = symbol ? query(GPUCC_ABI) : NULL;
    if (!model->functions || model->functions->abi != GPUCC_ABI ||
        model->functions->bytes != sizeof *model->functions)
        return runtime_fail(&last_error, GPUCC_BAD_BUNDLE, "the bundle's runtime does not speak ABI %d",
                            GPUCC_ABI);
    if (memcmp(model->functions->tables, model->file.tables.header, sizeof(struct bundle_header)) != 0)
        return runtime_fail(&last_error, GPUCC_BAD_BUNDLE, "another file was loaded in the bundle's place");
    return GPUCC_OK;
}

/* The sidecar: where the options say, else beside the bundle under the name that the bundle states. */
static gpucc_status open_weights(gpucc_model *model, const char *path, const char *wish)
{
    const struct bundle_tables *tables = &model->file.tables;
    char *beside = NULL;
    if (!tables->header->sidecar)
        return GPUCC_OK;
    if (!wish) {
        const char *name = tables->strings + tables->header->sidecar_name, *slash = strrchr(path, '/');
        size_t folder = slash ? (size_t)(slash - path) + 1 : 0, length = strlen(name);
        if (strchr(name, '/') || !*name)
            return runtime_fail(&last_error, GPUCC_BAD_BUNDLE,
                                "the bundle names no file with weights beside it");
        beside = malloc(folder + length + 1);
        if (!beside)
            return runtime_fail(&last_error, GPUCC_OUT_OF_MEMORY, "out of memory");
        memcpy(beside, path, folder);
        memcpy(beside + folder, name, length + 1);
    }
    model->weights_fd = open(wish ? wish : beside, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int reason = errno;
    free(beside);
    if (model->weights_fd < 0)
        return runtime_fail(&last_error, GPUCC_IO_ERROR, "cannot open the file with the weights: %s",
                            strerror(reason));
    return GPUCC_OK;
}

gpucc_status gpucc_open(const char *path, const gpucc_open_options *options, gpucc_model **model)
{
    if (!path || !model)
        return null_argument();
    *model = NULL;
    if (options && options->size < sizeof *options)
        return runtime_fail(&last_error, GPUCC_INVALID_ARGUMENT,
                            "the struct size of the options is not set (use GPUCC_INIT)");
    gpucc_model *opened = calloc(1, sizeof *opened);
    if (!opened)
        return runtime_fail(&last_error, GPUCC_OUT_OF_MEMORY, "out of memory");
    opened->weights_fd = -1;
    bool trusted = options && options->trusted;
    gpucc_status status = bundle_file_open(path, &opened->file, &last_error);
    if (status == GPUCC_OK && !trusted)
        status = bundle_file_check_image(&opened->file, &last_error);
    if (status == GPUCC_OK)
        status = open_weights(opened, path, options ? options->weights : NULL);
    if (status == GPUCC_OK)
        status = check_machine(opened->file.tables.header);
    if (status == GPUCC_OK)
        status = load_library(opened);
    if (status == GPUCC_OK) {
        struct runtime_open open_options = {opened->file.fd, opened->weights_fd, trusted};
        status = opened->functions->open(&open_options, &opened->model, &last_error);
    }
    if (status == GPUCC_OK)
        *model = opened;
    else
        gpucc_close(opened);
    return status;
}

void gpucc_close(gpucc_model *model)
{
    if (!model)
        return;
    if (model->model)
        model->functions->close(model->model);
    if (model->library)
        dlclose(model->library);
    if (model->weights_fd >= 0)
        close(model->weights_fd);
    bundle_file_close(&model->file);
    free(model);
}

size_t gpucc_input_count(const gpucc_model *model)
{
    return model ? model->file.tables.input_count : 0;
}

size_t gpucc_output_count(const gpucc_model *model)
{
    return model ? model->file.tables.output_count : 0;
}

gpucc_status gpucc_input_info(const gpucc_model *model, size_t index, gpucc_tensor_info *info)
{
    if (!model || !info)
        return null_argument();
    return model->functions->tensor_info(model->model, 0, index, info, &last_error);
}

gpucc_status gpucc_output_info(const gpucc_model *model, size_t index, gpucc_tensor_info *info)
{
    if (!model || !info)
        return null_argument();
    return model->functions->tensor_info(model->model, 1, index, info, &last_error);
}

size_t gpucc_weight_count(const gpucc_model *model)
{
    return model ? model->functions->weight_count(model->model) : 0;
}

gpucc_status gpucc_weight_info(const gpucc_model *model, size_t index, gpucc_weight *info)
{
    if (!model || !info)
        return null_argument();
    return model->functions->weight_info(model->model, index, info, &last_error);
}

gpucc_status gpucc_replace_weights(gpucc_model *model, const char *const *names, const gpucc_tensor *tensors,
                                   size_t count)
{
    if (!model || (count && (!names || !tensors)))
        return null_argument();
    return model->functions->replace_weights(model->model, names, tensors, count, &last_error);
}

gpucc_status gpucc_context_create(gpucc_model *model, const gpucc_context_options *options,
                                  gpucc_context **context)
{
    if (!model || !context)
        return null_argument();
    *context = NULL;
    gpucc_context *created = calloc(1, sizeof *created);
    if (!created)
        return runtime_fail(&last_error, GPUCC_OUT_OF_MEMORY, "out of memory");
    created->functions = model->functions;
    gpucc_status status =
        model->functions->context_create(model->model, options, &created->context, &last_error);
    if (status == GPUCC_OK)
        *context = created;
    else
        free(created);
    return status;
}

void gpucc_context_destroy(gpucc_context *context)
{
    if (!context)
        return;
    context->functions->context_destroy(context->context);
    free(context);
}

int32_t gpucc_context_device(const gpucc_context *context)
{
    return context ? context->functions->context_device(context->context) : GPUCC_CPU;
}

gpucc_status gpucc_workspace_size(const gpucc_model *model, const gpucc_context_options *options,
                                  const gpucc_dims *dims, size_t *bytes)
{
    if (!model || !bytes)
        return null_argument();
    return model->functions->workspace_size(model->model, options, dims, bytes, &last_error);
}

gpucc_status gpucc_prepare(gpucc_context *context, const gpucc_dims *dims, const gpucc_workspace *workspace)
{
    return context ? context->functions->prepare(context->context, dims, workspace, &last_error)
                   : null_argument();
}

gpucc_status gpucc_enqueue(gpucc_context *context, void *stream, const gpucc_tensor *inputs,
                           gpucc_tensor *outputs)
{
    return context ? context->functions->enqueue(context->context, stream, inputs, outputs, &last_error)
                   : null_argument();
}

size_t gpucc_computed_size_count(const gpucc_context *context)
{
    return context ? context->functions->computed_size_count(context->context) : 0;
}

gpucc_status gpucc_computed_size_info(gpucc_context *context, size_t index, gpucc_computed_size *info)
{
    if (!context || !info)
        return null_argument();
    return context->functions->computed_size_info(context->context, index, info, &last_error);
}

gpucc_status gpucc_output_dims(gpucc_context *context, size_t index, int32_t *rank, int64_t *dims)
{
    if (!context || !rank || !dims)
        return null_argument();
    return context->functions->output_dims(context->context, index, rank, dims, &last_error);
}

gpucc_status gpucc_run(gpucc_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs)
{
    return context ? context->functions->run(context->context, inputs, outputs, &last_error)
                   : null_argument();
}

gpucc_status gpucc_context_statistics(const gpucc_context *context, gpucc_statistics *statistics)
{
    if (!context || !statistics)
        return null_argument();
    return context->functions->statistics(context->context, statistics, &last_error);
}

/* A CUDA device: plan choice, driver version, context, modules, memory. */
#include "runtime/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpucc_status cuda_functions_of(struct runtime_model *model, const struct cuda_functions **functions,
                               struct runtime_error *error)
{
    gpucc_status status = GPUCC_OK;
    pthread_mutex_lock(&model->lock);
    if (!model->cuda)
        status = cuda_driver_open(&model->cuda, error);
    *functions = model->cuda;
    pthread_mutex_unlock(&model->lock);
    return status;
}

gpucc_status cuda_done(struct runtime_context *context, cuda_result result, const char *function,
                       const char *action, struct runtime_error *error)
{
    gpucc_status status = cuda_check(cuda_state_of(context)->cuda, result, function, action, error);
    if (status == GPUCC_DEVICE_ERROR)
        context->broken = status;
    return status;
}

gpucc_status cuda_enter(const struct cuda_state *state, struct runtime_error *error)
{
    return cuda_check(state->cuda, state->cuda->context_push(state->context), CUDA_NAME(context_push),
                      "cannot use the CUDA context", error);
}

gpucc_status cuda_enter_for(struct runtime_context *context, struct runtime_error *error)
{
    gpucc_status status = cuda_enter(cuda_state_of(context), error);
    if (status == GPUCC_DEVICE_ERROR)
        context->broken = status;
    return status;
}

void cuda_leave(const struct cuda_state *state)
{
    cuda_context ignored;
    state->cuda->context_pop(&ignored);
}

static void *allocate(struct runtime_context *context, size_t bytes, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    cuda_pointer memory = 0;
    if (cuda_enter_for(context, error) != GPUCC_OK)
        return NULL;
    gpucc_status status = cuda_done(context, state->cuda->allocate(&memory, bytes ? bytes : 1),
                                    CUDA_NAME(allocate), "cannot allocate device memory", error);
    cuda_leave(state);
    return status == GPUCC_OK ? (void *)(uintptr_t)memory : NULL;
}

static void release(struct runtime_context *context, void *memory, size_t bytes)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct runtime_error ignored;
    (void)bytes;
    if (cuda_enter(state, &ignored) != GPUCC_OK)
        return;
    state->cuda->release((cuda_pointer)(uintptr_t)memory);
    cuda_leave(state);
}

static gpucc_status put(struct runtime_context *context, void *to, const void *data, size_t bytes,
                        struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = cuda_enter(state, error);
    if (status != GPUCC_OK)
        return status;
    /* Several threads come here: cuda_done would race on `broken`, and a failed load leaves the context
     * unprepared. */
    status = cuda_check(state->cuda, state->cuda->copy_in_now((cuda_pointer)(uintptr_t)to, data, bytes),
                        CUDA_NAME(copy_in_now), "cannot copy weights to the device", error);
    cuda_leave(state);
    return status;
}

static void wait(struct runtime_context *context)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct runtime_error ignored;
    if (!state || !state->context || cuda_enter(state, &ignored) != GPUCC_OK)
        return;
    if (state->cuda->context_synchronise() != 0)
        context->broken = GPUCC_DEVICE_ERROR;
    cuda_leave(state);
}

static gpucc_status find_kernels(struct runtime_context *context, const struct bundle_image *image,
                                 cuda_module module, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    const struct bundle_tables *tables = &context->model->tables;
    char action[128];
    gpucc_status status = GPUCC_OK;
    for (uint32_t k = image->first_kernel;
         k < image->first_kernel + image->kernel_count && status == GPUCC_OK; k++) {
        const struct bundle_kernel *kernel = &tables->kernels[context->plan->first_kernel + k];
        const char *name = tables->strings + kernel->name;
        snprintf(action, sizeof action, "cannot find kernel %.100s", name);
        status = cuda_check(state->cuda, state->cuda->module_function(&state->functions[k], module, name),
                            CUDA_NAME(module_function), action, error);
        if (status == GPUCC_OK && kernel->shared_bytes > CUDA_STATIC_SHARED_LIMIT)
            status = cuda_check(state->cuda,
                                state->cuda->function_set(state->functions[k], CUDA_FUNCTION_DYNAMIC_SHARED,
                                                          (int)kernel->shared_bytes),
                                CUDA_NAME(function_set), "cannot reserve shared memory", error);
    }
    return status;
}

/* Loads the images of the chosen kind and finds every kernel in them. After a failure those that are loaded
 * stay for the next try. */
static gpucc_status load_modules(struct runtime_context *context, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_plan *plan = context->plan;
    char log[512] = "", action[sizeof log + 128];
    int options[2] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    for (uint32_t i = 0; i < plan->image_count; i++) {
        const struct bundle_image *image = &tables->images[plan->first_image + i];
        void *values[2] = {log, (void *)(uintptr_t)(sizeof log - 1)};
        gpucc_status status = GPUCC_OK;
        if (image->kind != state->image_kind)
            continue;
        if (!state->modules[i]) {
            cuda_result result = state->cuda->module_load(&state->modules[i], tables->code + image->offset, 2,
                                                          options, values);
            snprintf(action, sizeof action, "cannot load the kernels of %s%s%s", tables->strings + plan->name,
                     *log ? ": " : "", log);
            status = cuda_check(state->cuda, result, CUDA_NAME(module_load), action, error);
            if (status != GPUCC_OK)
                state->modules[i] = NULL;
            else
                context->statistics.code_bytes += image->bytes;
        }
        if (status == GPUCC_OK)
            status = find_kernels(context, image, state->modules[i], error);
        if (status != GPUCC_OK)
            return status;
    }
    for (uint32_t k = 0; k < plan->kernel_count; k++)
        if (!state->functions[k])
            return runtime_fail(error, GPUCC_BAD_BUNDLE,
                                "the bundle is damaged: kernel %u of %s is in no image", k,
                                tables->strings + plan->name);
    state->modules_loaded = true;
    return GPUCC_OK;
}

/* Pinned, so that the device's copy of the words waits for nothing. */
static gpucc_status allocate_words(struct runtime_context *context, struct runtime_error *error)
{
    void *memory = NULL;
    gpucc_status status = cuda_done(
        context,
        cuda_state_of(context)->cuda->host_allocate(&memory, context->plan->word_count * sizeof *context->words, 0),
        CUDA_NAME(host_allocate), "cannot allocate pinned memory", error);
    if (status != GPUCC_OK)
        return status;
    context->words = memory;
    context->statistics.allocations++;
    return GPUCC_OK;
}

static gpucc_status prepare(struct runtime_context *context, struct prepared *prepared,
                            struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = cuda_enter(state, error);
    if (status != GPUCC_OK)
        return status;
    if (!state->modules_loaded)
        status = load_modules(context, error);
    struct cuda_graph *graph = NULL;
    if (status == GPUCC_OK && context->plan->word_count && !context->words)
        status = allocate_words(context, error);
    if (status == GPUCC_OK)
        status = cuda_graph_build(context, prepared, &graph, error);
    prepared->device_prepared = graph;
    cuda_leave(state);
    return status;
}

static void forget(struct runtime_context *context, struct prepared *prepared)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct runtime_error ignored;
    bool entered = cuda_enter(state, &ignored) == GPUCC_OK;
    cuda_graph_release(entered ? state->cuda : NULL, prepared->device_prepared);
    if (entered)
        cuda_leave(state);
}

static gpucc_status enqueue(struct runtime_context *context, void *stream, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = cuda_enter_for(context, error);
    if (status != GPUCC_OK)
        return status;
    status = cuda_graph_run(context, context->current->device_prepared, stream, error);
    cuda_leave(state);
    return status;
}

static void destroy(struct runtime_context *context)
{
    struct cuda_state *state = cuda_state_of(context);
    struct runtime_error ignored;
    if (!state)
        return;
    context_release(context, state->io, state->io_bytes);
    if (state->context && cuda_enter(state, &ignored) == GPUCC_OK) {
        for (uint32_t i = 0; state->modules && i < context->plan->image_count; i++)
            if (state->modules[i])
                state->cuda->module_unload(state->modules[i]);
        cuda_stage_release(state->cuda, &state->stage);
        if (context->words)
            state->cuda->host_release(context->words);
        if (state->stream)
            state->cuda->stream_destroy(state->stream);
        cuda_leave(state);
    }
    if (state->retained)
        state->cuda->primary_release(state->device);
    free(state->modules);
    free(state->functions);
    free(state->device_inputs);
    free(state->host_outputs);
    free(state);
}

const struct device cuda_device = {prepare, forget, enqueue, allocate, release, put, cuda_run, wait, destroy};

/* The device's number and its compute capability (10 * major + minor). */
static gpucc_status find_device(struct runtime_context *context, const gpucc_context_options *options,
                                uint32_t *capability, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    int count = 0, major = 0, minor = 0;
    gpucc_status status = cuda_check(state->cuda, state->cuda->device_count(&count), CUDA_NAME(device_count),
                                     "cannot count the devices", error);
    if (status == GPUCC_OK && options->device >= count)
        return runtime_fail(error, GPUCC_NO_DEVICE, "there is no CUDA device %d; the machine has %d",
                            options->device, count);
    if (status == GPUCC_OK)
        status = cuda_check(state->cuda, state->cuda->device_get(&state->device, options->device),
                            CUDA_NAME(device_get), "cannot find the device", error);
    if (status == GPUCC_OK)
        status = cuda_check(state->cuda,
                            state->cuda->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, state->device),
                            CUDA_NAME(device_attribute), "cannot ask the device", error);
    if (status == GPUCC_OK)
        status = cuda_check(state->cuda,
                            state->cuda->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, state->device),
                            CUDA_NAME(device_attribute), "cannot ask the device", error);
    *capability = (uint32_t)(10 * major + minor);
    context->ordinal = options->device;
    return status;
}

static gpucc_status choose_plan(struct runtime_context *context, uint32_t capability,
                                struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    int version = 0;
    context->plan = model_cuda_plan(context->model, capability, &state->image_kind);
    if (!context->plan)
        return runtime_fail(error, GPUCC_NO_PLAN,
                            "the bundle has no code for a device of compute capability %u.%u",
                            capability / 10, capability % 10);
    gpucc_status status = cuda_check(state->cuda, state->cuda->driver_version(&version),
                                     CUDA_NAME(driver_version), "cannot ask the driver's version", error);
    uint32_t needed =
        state->image_kind == BUNDLE_PTX ? context->plan->ptx_driver_version : context->plan->driver_version;
    if (status == GPUCC_OK && (version < 0 || (uint32_t)version < needed))
        return runtime_fail(
            error, GPUCC_NO_DEVICE,
            "the NVIDIA driver supports CUDA %d.%d; the bundle's code for this device needs %u.%u",
            version / 1000, version % 1000 / 10, needed / 1000, needed % 1000 / 10);
    return status;
}

static gpucc_status take_context(struct runtime_context *context, const gpucc_context_options *options,
                                 struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = GPUCC_OK;
    if (options->cuda_context) {
        state->context = options->cuda_context;
    } else {
        status = cuda_check(state->cuda, state->cuda->primary_retain(&state->context, state->device),
                            CUDA_NAME(primary_retain), "cannot create a CUDA context", error);
        state->retained = status == GPUCC_OK;
    }
    context->weights_owner = state->context;
    if (status == GPUCC_OK)
        status = cuda_enter(state, error);
    if (status != GPUCC_OK)
        return status;
    cuda_device_number actual = state->device;
    status = cuda_check(state->cuda, state->cuda->context_device(&actual), CUDA_NAME(context_device),
                        "cannot use the CUDA context", error);
    if (status == GPUCC_OK && actual != state->device)
        status = runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                              "the CUDA context belongs to another device than %d", options->device);
    if (status == GPUCC_OK)
        status = cuda_check(state->cuda, state->cuda->stream_create(&state->stream, CUDA_STREAM_NON_BLOCKING),
                            CUDA_NAME(stream_create), "cannot create a stream", error);
    cuda_leave(state);
    return status;
}

gpucc_status cuda_device_create(struct runtime_context *context, const gpucc_context_options *options,
                                struct runtime_error *error)
{
    bool any = false;
    for (uint32_t i = 0; i < context->model->tables.plan_count; i++)
        any |= context->model->tables.plans[i].kind == BUNDLE_CUDA;
    if (!any) /* said without asking for a driver: none would help */
        return runtime_fail(error, GPUCC_NO_PLAN, "the bundle has no code for a GPU");
    struct cuda_state *state = calloc(1, sizeof *state);
    if (!state)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    context->device = &cuda_device;
    context->device_state = state;
    uint32_t capability = 0;
    gpucc_status status = cuda_functions_of(context->model, &state->cuda, error);
    if (status == GPUCC_OK)
        status = find_device(context, options, &capability, error);
    if (status == GPUCC_OK)
        status = choose_plan(context, capability, error);
    if (status == GPUCC_OK) {
        state->modules = calloc((size_t)context->plan->image_count + 1, sizeof(cuda_module));
        state->functions = calloc((size_t)context->plan->kernel_count + 1, sizeof(cuda_function));
        state->device_inputs = calloc((size_t)context->model->tables.input_count + 1, sizeof(char *));
        state->host_outputs = calloc((size_t)context->model->tables.output_count + 1, sizeof(void *));
        status = state->modules && state->functions && state->device_inputs && state->host_outputs
                     ? take_context(context, options, error)
                     : runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    }
    if (status == GPUCC_OK)
        return status;
    /* The caller may try the CPU instead: leave nothing behind. */
    destroy(context);
    context->device = NULL;
    context->device_state = NULL;
    context->plan = NULL;
    return status;
}

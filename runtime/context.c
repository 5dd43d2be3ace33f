/* Life of a context: creation on a device, `prepare` with its kept results, the arena. */
#include "runtime/context.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plan_memory.h"

void *context_allocate(struct runtime_context *context, size_t bytes, struct runtime_error *error)
{
    void *memory;
    if (context->own_allocator) {
        memory = context->allocator.allocate(context->allocator.user, bytes, BUNDLE_ALIGNMENT);
        if (!memory)
            runtime_fail(error, GPUCC_OUT_OF_MEMORY, "the allocator gave no %zu bytes", bytes);
    } else {
        memory = context->device->allocate(context, bytes, error);
    }
    context->statistics.allocations += memory != NULL;
    return memory;
}

void context_release(struct runtime_context *context, void *memory, size_t bytes)
{
    if (!memory)
        return;
    if (context->own_allocator)
        context->allocator.release(context->allocator.user, memory, bytes);
    else
        context->device->release(context, memory, bytes);
}

static void *place_allocate(void *user, size_t bytes, struct runtime_error *error)
{
    return context_allocate(user, bytes, error);
}

static void place_release(void *user, void *memory, size_t bytes)
{
    context_release(user, memory, bytes);
}

static gpucc_status place_put(void *user, void *to, const void *data, size_t bytes,
                              struct runtime_error *error)
{
    struct runtime_context *context = user;
    return context->device->put(context, to, data, bytes, error);
}

static struct weights_place weights_place_of(struct runtime_context *context)
{
    return (struct weights_place){.owner = context->weights_owner,
                                  .shared = !context->own_allocator,
                                  .user = context,
                                  .allocate = place_allocate,
                                  .release = place_release,
                                  .put = place_put};
}

static gpucc_status copy_options(const gpucc_context_options *theirs, gpucc_context_options *ours,
                                 gpucc_allocator *allocator, struct runtime_error *error)
{
    if (!model_copy_struct(ours, sizeof *ours, theirs, sizeof *ours))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "the struct size of the options is not set (use GPUCC_INIT)");
    if (ours->device < GPUCC_CPU || ours->threads < 0 || ours->cpu_level < 0)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "device %d, %d threads or CPU level %d make no sense", ours->device,
                            ours->threads, ours->cpu_level);
    if (ours->allocator &&
        (!model_copy_struct(allocator, sizeof *allocator, ours->allocator, sizeof *allocator) ||
         !allocator->allocate || !allocator->release))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the allocator lacks its size or a function");
    return GPUCC_OK;
}

static gpucc_status create_device(struct runtime_context *context, const gpucc_context_options *options,
                                  struct runtime_error *error)
{
    if (options->size)
        return options->device == GPUCC_CPU ? cpu_device_create(context, options, error)
                                            : cuda_device_create(context, options, error);
    /* No wish: the GPU when there is one that the bundle has code for. */
    gpucc_context_options first = GPUCC_INIT(gpucc_context_options);
    gpucc_status status = cuda_device_create(context, &first, error);
    const struct bundle_plan *plan;
    struct runtime_error ignored;
    if (status == GPUCC_OK || model_cpu_plan(context->model, 0, &plan, &ignored) != GPUCC_OK)
        return status;
    first.device = GPUCC_CPU;
    return cpu_device_create(context, &first, error);
}

static gpucc_status create_arrays(struct runtime_context *context, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    size_t inputs = (size_t)tables->input_count + 1, outputs = (size_t)tables->output_count + 1;
    context->symbol_values = calloc((size_t)tables->symbol_count + 1, sizeof *context->symbol_values);
    context->values = calloc((size_t)tables->dim_count + 1, sizeof *context->values);
    context->input_data = calloc(inputs, sizeof *context->input_data);
    context->output_data = calloc(outputs, sizeof *context->output_data);
    context->input_bytes = calloc(inputs, sizeof *context->input_bytes);
    context->output_bytes = calloc(outputs, sizeof *context->output_bytes);
    context->buffers = calloc((size_t)context->plan->buffer_count + 1, sizeof *context->buffers);
    context->has_words = words_any(tables);
    if (context->has_words && !sizes_allocate(tables, &context->words_now))
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    if (context->symbol_values && context->values && context->input_data && context->output_data &&
        context->input_bytes && context->output_bytes && context->buffers)
        return GPUCC_OK;
    return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
}

gpucc_status context_create(struct runtime_model *model, const gpucc_context_options *options,
                            struct runtime_context **context, struct runtime_error *error)
{
    gpucc_context_options ours = {0};
    struct runtime_context *created = calloc(1, sizeof *created);
    if (!created)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    created->model = model;
    gpucc_status status = options ? copy_options(options, &ours, &created->allocator, error) : GPUCC_OK;
    created->own_allocator = created->allocator.allocate != NULL;
    if (status == GPUCC_OK)
        status = create_device(created, &ours, error);
    if (status == GPUCC_OK)
        status = create_arrays(created, error);
    if (status == GPUCC_OK)
        *context = created;
    else
        context_destroy(created);
    return status;
}

static void forget(struct runtime_context *context, struct prepared *prepared)
{
    if (!prepared->stamp)
        return;
    if (context->current == prepared)
        context->current = NULL;
    context->device->forget(context, prepared);
    sizes_release(&prepared->sizes);
    free(prepared->offsets);
    *prepared = (struct prepared){0};
}

void context_destroy(struct runtime_context *context)
{
    if (!context)
        return;
    if (context->device) {
        context->device->wait(context);
        for (int i = 0; i < PREPARED_KEPT; i++)
            forget(context, &context->kept[i]);
        if (context->arena_owned)
            context_release(context, context->arena, (size_t)context->arena_bytes);
        struct weights_place place = weights_place_of(context);
        weights_release(context->model, context->weights, &place);
        context->device->destroy(context);
    }
    free(context->symbol_values);
    free(context->values);
    free(context->input_data);
    free(context->output_data);
    free(context->input_bytes);
    free(context->output_bytes);
    free(context->buffers);
    sizes_release(&context->words_now);
    free(context);
}

/* The kept result for exactly these ranges, or an empty slot, or the one unused for longest, emptied. */
static struct prepared *find_slot(struct runtime_context *context, const struct sizes *sizes)
{
    size_t bytes = context->model->tables.symbol_count * sizeof *sizes->symbols;
    struct prepared *slot = &context->kept[0];
    for (int i = 0; i < PREPARED_KEPT; i++) {
        struct prepared *kept = &context->kept[i];
        if (kept->stamp && memcmp(kept->sizes.symbols, sizes->symbols, bytes) == 0)
            return kept;
        if (kept->stamp < slot->stamp)
            slot = kept;
    }
    if (slot->stamp)
        context->device->wait(context);
    forget(context, slot);
    return slot;
}

/* An arena of at least `bytes`: the caller's, or the context's own, grown. */
static gpucc_status take_arena(struct runtime_context *context, const gpucc_workspace *workspace,
                               uint64_t bytes, struct runtime_error *error)
{
    if (workspace) {
        if (workspace->size < sizeof *workspace || (uintptr_t)workspace->memory % BUNDLE_ALIGNMENT ||
            workspace->bytes < bytes || (!workspace->memory && bytes))
            return runtime_fail(
                error, GPUCC_INVALID_ARGUMENT,
                "the workspace must have its struct size set, be aligned to %d and hold %llu bytes",
                BUNDLE_ALIGNMENT, (unsigned long long)bytes);
    } else if (context->arena_owned && context->arena_bytes >= bytes) {
        return GPUCC_OK;
    }
    if (context->arena_owned) {
        context->device->wait(context);
        context_release(context, context->arena, (size_t)context->arena_bytes);
    }
    context->arena_owned = false;
    context->arena = workspace ? workspace->memory : NULL;
    context->arena_bytes = workspace ? workspace->bytes : 0;
    if (workspace || !bytes)
        return GPUCC_OK;
    context->arena = context_allocate(context, (size_t)bytes, error);
    if (!context->arena)
        return GPUCC_OUT_OF_MEMORY;
    context->arena_bytes = bytes;
    context->arena_owned = true;
    return GPUCC_OK;
}

static gpucc_status fill_slot(struct runtime_context *context, struct prepared *slot, struct sizes *sizes,
                              struct runtime_error *error)
{
    struct prepared made = {.sizes = *sizes};
    made.offsets = calloc((size_t)context->plan->buffer_count + 1, sizeof *made.offsets);
    if (!made.offsets)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    gpucc_status status = plan_memory_place(&context->model->tables, context->plan, made.sizes.bounds,
                                            made.offsets, &made.arena_bytes, error);
    if (status == GPUCC_OK)
        status = context->device->prepare(context, &made, error);
    if (status != GPUCC_OK) {
        free(made.offsets);
        return status;
    }
    made.stamp = ++context->clock;
    *slot = made;
    *sizes = (struct sizes){0};
    return GPUCC_OK;
}

gpucc_status context_take_weights(struct runtime_context *context, struct runtime_error *error)
{
    struct weights *old = context->weights;
    if (old && old->generation == atomic_load(&context->model->generation))
        return GPUCC_OK;
    struct weights_place place = weights_place_of(context);
    gpucc_status status =
        weights_acquire(context->model, context->plan, &place, old, &context->weights, error);
    if (status != GPUCC_OK)
        return status;
    if (old) {
        context->device->wait(context); /* what is enqueued reads the old ones */
        weights_release(context->model, old, &place);
    }
    context->statistics.weight_bytes = context->weights->base->bytes;
    return GPUCC_OK;
}

gpucc_status context_prepare_sizes(struct runtime_context *context, struct sizes *sizes,
                                   const gpucc_workspace *workspace, struct runtime_error *error)
{
    context->current = NULL;
    context->values_valid = context->words_ran = context->words_taken = false;
    gpucc_status status = context_take_weights(context, error);
    if (status != GPUCC_OK)
        return status;
    struct prepared *slot = find_slot(context, sizes);
    status = slot->stamp ? GPUCC_OK : fill_slot(context, slot, sizes, error);
    if (status == GPUCC_OK)
        status = take_arena(context, workspace, slot->arena_bytes, error);
    if (status != GPUCC_OK)
        return status;
    slot->stamp = ++context->clock;
    context->current = slot;
    context->statistics.prepares++;
    context->statistics.arena_bytes = slot->arena_bytes;
    context->statistics.launches = context->plan->launch_count;
    return GPUCC_OK;
}

/* Named dims -> all sizes. */
static gpucc_status sizes_of(const struct bundle_tables *tables, const gpucc_dims *dims, struct sizes *sizes,
                             struct runtime_error *error)
{
    if (dims && (dims->size < sizeof *dims || (dims->count && !dims->items)))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "the struct size of the dims is not set, or items is NULL");
    if (!sizes_allocate(tables, sizes))
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    gpucc_status status = sizes_name(tables, dims, sizes, error);
    if (status == GPUCC_OK)
        status = sizes_settle(tables, sizes, error);
    return status == GPUCC_OK ? sizes_check_named(tables, dims, sizes, error) : status;
}

gpucc_status context_prepare(struct runtime_context *context, const gpucc_dims *dims,
                             const gpucc_workspace *workspace, struct runtime_error *error)
{
    if (context->broken != GPUCC_OK)
        return runtime_fail(error, context->broken, "the context had a device error before");
    struct sizes sizes = {0};
    gpucc_status status = sizes_of(&context->model->tables, dims, &sizes, error);
    if (status == GPUCC_OK)
        status = context_prepare_sizes(context, &sizes, workspace, error);
    else
        context->current = NULL;
    sizes_release(&sizes);
    return context_end(context, status);
}

gpucc_status context_workspace_size(const struct runtime_model *model, const gpucc_context_options *options,
                                    const gpucc_dims *dims, size_t *bytes, struct runtime_error *error)
{
    const struct bundle_tables *tables = &model->tables;
    gpucc_context_options ours = {0};
    gpucc_allocator ignored;
    struct sizes sizes = {0};
    gpucc_status status = options ? copy_options(options, &ours, &ignored, error) : GPUCC_OK;
    if (status == GPUCC_OK)
        status = sizes_of(tables, dims, &sizes, error);
    /* Which plan a device will take is not known without touching it: the largest of its kind suits all. */
    uint64_t most = 0;
    bool any = false;
    for (uint32_t i = 0; i < tables->plan_count && status == GPUCC_OK; i++) {
        const struct bundle_plan *plan = &tables->plans[i];
        if (plan->kind == BUNDLE_INIT)
            continue;
        if (options && (plan->kind == BUNDLE_CPU) != (ours.device == GPUCC_CPU))
            continue;
        uint64_t arena = 0, *offsets = calloc((size_t)plan->buffer_count + 1, sizeof *offsets);
        status = offsets ? plan_memory_place(tables, plan, sizes.bounds, offsets, &arena, error)
                         : runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
        free(offsets);
        most = arena > most ? arena : most;
        any = true;
    }
    sizes_release(&sizes);
    if (status == GPUCC_OK && !any)
        status = runtime_fail(error, GPUCC_NO_PLAN, "the bundle has no code for this kind of device");
    if (status == GPUCC_OK)
        *bytes = (size_t)most;
    return status;
}

gpucc_status context_output_dims(struct runtime_context *context, size_t index, int32_t *rank,
                                 int64_t *dims, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    if (index >= tables->output_count)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model has %u outputs", tables->output_count);
    if (!context->current)
        return runtime_fail(error, GPUCC_NOT_PREPARED, "gpucc_prepare was not called, or failed");
    const struct bundle_tensor *row = &tables->outputs[index];
    *rank = (int32_t)row->rank;
    if (context->values_valid && context->words_ran && !context->words_taken) {
        gpucc_status status = words_take(context, error);
        if (status != GPUCC_OK)
            return status;
    }
    for (uint32_t i = 0; i < row->rank; i++) {
        uint32_t dim = tables->indices[row->first_dim + i];
        dims[i] = context->words_taken    ? context->words_now.bounds[dim].high
                  : context->values_valid ? context->values[dim] : context->current->sizes.bounds[dim].high;
    }
    return GPUCC_OK;
}

gpucc_status context_statistics(const struct runtime_context *context, gpucc_statistics *statistics,
                                struct runtime_error *error)
{
    size_t size = statistics->size;
    if (size < sizeof *statistics)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the struct's size is not set");
    *statistics = context->statistics;
    statistics->size = size;
    return GPUCC_OK;
}

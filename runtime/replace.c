/* Replacing weights: the init plan's steps that hang on them run on the CPU, and their results become the
 * model's next generation of constants. Sets of weights that are in use never change (weights.h).
 *
 * A buffer of the plan is dirty when a replaced weight reaches it. Steps that write a dirty one run; what
 * else they read is loaded (weights and constants that stand in the bundle, as replaced before) or, in
 * between, computed again. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cpu_level.h"
#include "runtime/float_mode.h"
#include "runtime/weights.h"

struct replacing {
    struct runtime_model *model;
    const struct bundle_plan *plan;
    const struct bundle_buffer *buffers;
    const void **given;   /* [weight]: the caller's elements, or NULL */
    bool *dirty, *needed; /* [buffer] */
    bool *runs;           /* [launch] */
    void **memory;        /* [buffer]: malloc's */
    void *scratch;
};

size_t model_weight_count(const struct runtime_model *model)
{
    return model->tables.weight_count;
}

gpucc_status model_weight_info(const struct runtime_model *model, size_t index, gpucc_weight *info,
                               struct runtime_error *error)
{
    const struct bundle_tables *tables = &model->tables;
    if (index >= tables->weight_count)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model has %u weights", tables->weight_count);
    if (info->size < sizeof *info)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the struct's size is not set");
    const struct bundle_weight_row *row = &tables->weights[index];
    size_t size = info->size;
    memset(info, 0, sizeof *info);
    info->size = size;
    info->name = tables->strings + row->name;
    info->dtype = (int32_t)row->dtype;
    info->rank = (int32_t)row->rank;
    for (uint32_t i = 0; i < row->rank; i++)
        info->dims[i] = tables->dims[tables->indices[row->first_dim + i]].value;
    info->frozen = row->frozen ? tables->strings + row->frozen : NULL;
    return GPUCC_OK;
}

/* ---- the caller's weights
 * ------------------------------------------------------------------------------------------ */

static gpucc_status find_weight(const struct bundle_tables *tables, const char *name, uint32_t *weight,
                                struct runtime_error *error)
{
    char text[160];
    for (*weight = 0; name && *weight < tables->weight_count; ++*weight)
        if (strcmp(tables->strings + tables->weights[*weight].name, name) == 0)
            return GPUCC_OK;
    if (!name)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "a weight has no name");
    return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model has no weight \"%s\"",
                        runtime_escape(name, text, sizeof text));
}

static gpucc_status check_weight(const struct bundle_tables *tables, const struct bundle_weight_row *row,
                                 const gpucc_tensor *tensor, struct runtime_error *error)
{
    char name[128], reason[256];
    runtime_escape(tables->strings + row->name, name, sizeof name);
    if (row->frozen)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "weight \"%s\" cannot be replaced: %s", name,
                            runtime_escape(tables->strings + row->frozen, reason, sizeof reason));
    if (tensor->dtype != (int32_t)row->dtype)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "weight \"%s\": element type is %s, the model has %s", name,
                            tables_dtype_name((uint32_t)tensor->dtype), tables_dtype_name(row->dtype));
    if (tensor->rank != (int32_t)row->rank)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "weight \"%s\": rank is %d, the model has %u",
                            name, tensor->rank, row->rank);
    int64_t elements = 1;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < row->rank; i++) {
        int64_t size = tables->dims[tables->indices[row->first_dim + i]].value;
        if (tensor->dims[i] != size)
            return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                                "weight \"%s\": dim %u is %lld, the model has %lld", name, i,
                                (long long)tensor->dims[i], (long long)size);
        elements *= size;
    }
    tables_dtype_bytes(row->dtype, elements, &bytes);
    if (tensor->bytes < bytes || (!tensor->data && bytes))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "weight \"%s\": the buffer has %zu bytes, its dims need %llu", name,
                            tensor->data ? tensor->bytes : 0, (unsigned long long)bytes);
    return GPUCC_OK;
}

static gpucc_status take_given(struct replacing *r, const char *const *names, const gpucc_tensor *tensors,
                               size_t count, struct runtime_error *error)
{
    static const unsigned char nothing[1];
    const struct bundle_tables *tables = &r->model->tables;
    char text[160];
    for (size_t i = 0; i < count; i++) {
        const gpucc_tensor *tensor =
            (const gpucc_tensor *)(const void *)((const char *)tensors + i * tensors->size);
        uint32_t weight;
        if (tensors->size < sizeof *tensors || tensor->size != tensors->size)
            return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                                "the struct size of the tensors is not set (use GPUCC_INIT)");
        gpucc_status status = find_weight(tables, names[i], &weight, error);
        if (status == GPUCC_OK)
            status = check_weight(tables, &tables->weights[weight], tensor, error);
        if (status != GPUCC_OK)
            return status;
        if (r->given[weight])
            return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "weight \"%s\" is given twice",
                                runtime_escape(names[i], text, sizeof text));
        r->given[weight] = tensor->data ? tensor->data : nothing;
    }
    return GPUCC_OK;
}

/* ---- what must run
 * ------------------------------------------------------------------------------------------------- */

static const struct bundle_launch *launch_at(const struct replacing *r, uint32_t launch)
{
    return &r->model->tables.launches[r->plan->first_launch + launch];
}

static const struct bundle_kernel *kernel_of(const struct replacing *r, const struct bundle_launch *launch)
{
    return &r->model->tables.kernels[r->plan->first_kernel + launch->kernel];
}

static bool is_read(const struct bundle_kernel *kernel, uint32_t parameter)
{
    return (kernel->read_mask >> parameter & 1) != 0;
}

static bool is_written(const struct bundle_kernel *kernel, uint32_t parameter)
{
    return (kernel->written_mask >> parameter & 1) != 0;
}

/* Launches stand in an order in which they can run, so one walk reaches everything. */
static void spread_dirt(struct replacing *r)
{
    for (uint32_t i = 0; i < r->plan->buffer_count; i++)
        r->dirty[i] = r->buffers[i].kind == BUNDLE_WEIGHT && r->given[r->buffers[i].index];
    for (uint32_t i = 0; i < r->plan->launch_count; i++) {
        const struct bundle_launch *launch = launch_at(r, i);
        const struct bundle_kernel *kernel = kernel_of(r, launch);
        const uint32_t *buffers = &r->model->tables.indices[launch->first_buffer];
        bool dirty = false;
        for (uint32_t k = 0; k < kernel->buffer_count; k++)
            dirty = dirty || (is_read(kernel, k) && r->dirty[buffers[k]]);
        for (uint32_t k = 0; k < kernel->buffer_count && dirty; k++)
            if (is_written(kernel, k))
                r->dirty[buffers[k]] = true;
    }
    for (uint32_t i = 0; i < r->plan->copy_count; i++) {
        const struct bundle_copy *copy = &r->model->tables.copies[r->plan->first_copy + i];
        r->dirty[copy->to] = r->dirty[copy->to] || r->dirty[copy->from];
    }
}

static void find_runs(struct replacing *r)
{
    for (uint32_t i = 0; i < r->plan->buffer_count; i++)
        r->needed[i] = r->dirty[i] && r->buffers[i].kind == BUNDLE_CONSTANT;
    for (uint32_t i = r->plan->launch_count; i-- > 0;) {
        const struct bundle_launch *launch = launch_at(r, i);
        const struct bundle_kernel *kernel = kernel_of(r, launch);
        const uint32_t *buffers = &r->model->tables.indices[launch->first_buffer];
        /* Clean constants are loaded, not computed. */
        for (uint32_t k = 0; k < kernel->buffer_count; k++)
            r->runs[i] =
                r->runs[i] || (is_written(kernel, k) && r->needed[buffers[k]] &&
                               (r->dirty[buffers[k]] || r->buffers[buffers[k]].kind == BUNDLE_ARENA));
        for (uint32_t k = 0; k < kernel->buffer_count && r->runs[i]; k++)
            r->needed[buffers[k]] = true;
    }
    for (uint32_t i = 0; i < r->plan->copy_count; i++) {
        const struct bundle_copy *copy = &r->model->tables.copies[r->plan->first_copy + i];
        r->needed[copy->from] = r->needed[copy->from] || r->dirty[copy->to];
    }
}

/* ---- running
 * ---------------------------------------------------------------------------------------------------------
 */

static uint64_t bytes_of(const struct replacing *r, uint32_t buffer)
{
    uint64_t bytes = 0;
    tables_dtype_bytes(r->buffers[buffer].dtype, r->model->tables.dims[r->buffers[buffer].elements].value,
                       &bytes);
    return bytes;
}

/* What stands in the bundle, or what was replaced before. */
static gpucc_status load_constant(const struct replacing *r, uint32_t constant, void *to,
                                  struct runtime_error *error)
{
    const struct runtime_model *model = r->model;
    if (!model->replaced || !model->replaced[constant])
        return weights_read(model, constant, to, error);
    memcpy(to, model->replaced[constant], (size_t)model->tables.constants[constant].bytes);
    return GPUCC_OK;
}

static gpucc_status load_weight(const struct replacing *r, uint32_t weight, void *to, uint64_t bytes,
                                struct runtime_error *error)
{
    const struct bundle_weight_row *row = &r->model->tables.weights[weight];
    if (r->given[weight]) {
        memcpy(to, r->given[weight], (size_t)bytes);
        return GPUCC_OK;
    }
    return row->constant != BUNDLE_NONE
               ? load_constant(r, row->constant, to, error)
               : runtime_fail(error, GPUCC_BAD_BUNDLE, "the bundle is damaged: weight %u is not in it",
                              weight);
}

static gpucc_status fill_buffers(struct replacing *r, struct runtime_error *error)
{
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < r->plan->buffer_count && status == GPUCC_OK; i++) {
        const struct bundle_buffer *buffer = &r->buffers[i];
        uint64_t bytes = bytes_of(r, i);
        if (!r->needed[i])
            continue;
        if (posix_memalign(&r->memory[i], BUNDLE_ALIGNMENT, bytes ? (size_t)bytes : 1) != 0) {
            r->memory[i] = NULL;
            return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "no %llu bytes to make a weight's constants",
                                (unsigned long long)bytes);
        }
        if (buffer->kind == BUNDLE_WEIGHT)
            status = load_weight(r, buffer->index, r->memory[i], bytes, error);
        else if (buffer->kind == BUNDLE_CONSTANT && !r->dirty[i])
            status = load_constant(r, buffer->index, r->memory[i], error);
    }
    return status;
}

static gpucc_status allocate_scratch(struct replacing *r, struct runtime_error *error)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < r->plan->launch_count; i++) {
        uint64_t bytes = kernel_of(r, launch_at(r, i))->scratch_bytes;
        most = r->runs[i] && bytes > most ? bytes : most;
    }
    if (most && posix_memalign(&r->scratch, 64, (size_t)most) != 0) {
        r->scratch = NULL;
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "no %llu bytes to make a weight's constants",
                            (unsigned long long)most);
    }
    return GPUCC_OK;
}

static void run_steps(struct replacing *r)
{
    const struct bundle_tables *tables = &r->model->tables;
    float_mode saved = float_mode_enter();
    for (uint32_t i = 0; i < r->plan->launch_count; i++) {
        const struct bundle_launch *launch = launch_at(r, i);
        const struct bundle_kernel *kernel = kernel_of(r, launch);
        void *buffers[BUNDLE_MAX_KERNEL_BUFFERS];
        int64_t dims[BUNDLE_MAX_KERNEL_DIMS];
        int64_t work = tables->dims[launch->work].value;
        if (!r->runs[i] || work <= 0)
            continue;
        for (uint32_t k = 0; k < kernel->buffer_count; k++)
            buffers[k] = r->memory[tables->indices[launch->first_buffer + k]];
        for (uint32_t k = 0; k < kernel->dim_count; k++)
            dims[k] = tables->dims[tables->indices[launch->first_dim + k]].value;
        r->model->kernels[kernel->function](buffers, dims, 0, work, r->scratch);
    }
    float_mode_leave(saved);
    for (uint32_t i = 0; i < r->plan->copy_count; i++) {
        const struct bundle_copy *copy = &tables->copies[r->plan->first_copy + i];
        if (r->dirty[copy->to])
            memcpy(r->memory[copy->to], r->memory[copy->from], (size_t)bytes_of(r, copy->to));
    }
}

/* The dirty constants become the model's: contexts see them all from now on, or none. */
static void publish(struct replacing *r)
{
    struct runtime_model *model = r->model;
    for (uint32_t i = 0; i < r->plan->buffer_count; i++) {
        if (!r->dirty[i] || r->buffers[i].kind != BUNDLE_CONSTANT)
            continue;
        free(model->replaced[r->buffers[i].index]);
        model->replaced[r->buffers[i].index] = r->memory[i];
        r->memory[i] = NULL;
    }
    atomic_fetch_add(&model->generation, 1);
}

static gpucc_status allocate(struct replacing *r, struct runtime_error *error)
{
    const struct bundle_tables *tables = &r->model->tables;
    size_t buffers = (size_t)r->plan->buffer_count + 1;
    r->dirty = calloc(buffers, sizeof *r->dirty);
    r->needed = calloc(buffers, sizeof *r->needed);
    r->runs = calloc((size_t)r->plan->launch_count + 1, sizeof *r->runs);
    r->memory = calloc(buffers, sizeof *r->memory);
    if (!r->model->replaced)
        r->model->replaced = calloc((size_t)tables->constant_count + 1, sizeof *r->model->replaced);
    return r->dirty && r->needed && r->runs && r->memory && r->model->replaced
               ? GPUCC_OK
               : runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
}

static gpucc_status make_constants(struct replacing *r, struct runtime_error *error)
{
    const struct bundle_tables *tables = &r->model->tables;
    for (uint32_t i = 0; i < tables->plan_count && !r->plan; i++)
        if (tables->plans[i].kind == BUNDLE_INIT)
            r->plan = &tables->plans[i];
    if (!r->plan || r->plan->level > cpu_level())
        return runtime_fail(error, GPUCC_NO_PLAN,
                            "the bundle's steps from weights to constants cannot run on this CPU");
    r->buffers = &tables->buffers[r->plan->first_buffer];
    gpucc_status status = allocate(r, error);
    if (status != GPUCC_OK)
        return status;
    spread_dirt(r);
    find_runs(r);
    status = fill_buffers(r, error);
    if (status == GPUCC_OK)
        status = allocate_scratch(r, error);
    if (status != GPUCC_OK)
        return status;
    run_steps(r);
    publish(r);
    return GPUCC_OK;
}

static void clean_up(struct replacing *r)
{
    for (uint32_t i = 0; r->memory && i < r->plan->buffer_count; i++)
        free(r->memory[i]);
    free(r->given);
    free(r->dirty);
    free(r->needed);
    free(r->runs);
    free(r->memory);
    free(r->scratch);
}

gpucc_status model_replace_weights(struct runtime_model *model, const char *const *names,
                                   const gpucc_tensor *tensors, size_t count, struct runtime_error *error)
{
    struct replacing r = {.model = model};
    r.given = calloc((size_t)model->tables.weight_count + 1, sizeof *r.given);
    if (!r.given)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    gpucc_status status = take_given(&r, names, tensors, count, error);
    pthread_mutex_lock(&model->lock);
    if (status == GPUCC_OK && count)
        status = make_constants(&r, error);
    pthread_mutex_unlock(&model->lock);
    clean_up(&r);
    return status;
}

/* Opening a model, answering questions on it, and choosing the plan for a machine. */
#include "runtime/model.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cpu_level.h"
#include "runtime/cuda_driver.h"

gpucc_status model_open(const void *blob, bundle_cpu_kernel *const *kernels,
                        const struct runtime_open *options, struct runtime_model **model,
                        struct runtime_error *error)
{
    struct runtime_model *opened = calloc(1, sizeof *opened);
    if (!opened || pthread_mutex_init(&opened->lock, NULL) != 0) {
        free(opened);
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    }
    opened->kernels = kernels;
    opened->weights_fd = options->weights_fd >= 0 ? options->weights_fd : options->fd;
    opened->trusted = options->trusted != 0;
    const struct bundle_header *header = blob;
    gpucc_status status = tables_open(blob, header->blob_bytes, &opened->tables, error);
    if (status != GPUCC_OK) {
        model_close(opened);
        return status;
    }
    *model = opened;
    return GPUCC_OK;
}

void model_close(struct runtime_model *model)
{
    if (!model)
        return;
    cuda_driver_close(model->cuda);
    for (uint32_t i = 0; model->replaced && i < model->tables.constant_count; i++)
        free(model->replaced[i]);
    free(model->replaced);
    pthread_mutex_destroy(&model->lock);
    free(model);
}

bool model_copy_struct(void *ours, size_t our_bytes, const void *theirs, size_t least_bytes)
{
    size_t bytes;
    memcpy(&bytes, theirs, sizeof bytes);
    if (bytes < least_bytes)
        return false;
    memset(ours, 0, our_bytes);
    memcpy(ours, theirs, bytes < our_bytes ? bytes : our_bytes);
    return true;
}

gpucc_status model_tensor_info(const struct runtime_model *model, int output, size_t index,
                               gpucc_tensor_info *info, struct runtime_error *error)
{
    const struct bundle_tables *tables = &model->tables;
    size_t count = output ? tables->output_count : tables->input_count;
    if (index >= count)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model has %zu %s", count,
                            output ? "outputs" : "inputs");
    if (info->size < sizeof *info)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the struct's size is not set");
    const struct bundle_tensor *tensor = output ? &tables->outputs[index] : &tables->inputs[index];
    size_t size = info->size;
    memset(info, 0, sizeof *info);
    info->size = size;
    info->name = tables->strings + tensor->name;
    info->dtype = (int32_t)tensor->dtype;
    info->rank = (int32_t)tensor->rank;
    info->alias_input = tensor->alias_input == BUNDLE_NONE ? -1 : (int32_t)tensor->alias_input;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const struct bundle_dim *dim = &tables->dims[tables->indices[tensor->first_dim + i]];
        info->dims[i] = dim->op == BUNDLE_DIM_CONSTANT ? dim->value : -1;
        if (dim->op == BUNDLE_DIM_SYMBOL && tables->symbols[dim->value].name)
            info->symbols[i] = tables->strings + tables->symbols[dim->value].name;
    }
    return GPUCC_OK;
}

gpucc_status model_cpu_plan(const struct runtime_model *model, int32_t wish, const struct bundle_plan **plan,
                            struct runtime_error *error)
{
    const uint32_t level = cpu_level();
    *plan = NULL;
    if (wish > 0 && (uint32_t)wish > level)
        return runtime_fail(error, GPUCC_NO_DEVICE, "this CPU is of %s and lacks level %d (%s)",
                            cpu_level_name(level), wish, cpu_level_name((uint32_t)wish));
    for (uint32_t i = 0; i < model->tables.plan_count; i++) {
        const struct bundle_plan *row = &model->tables.plans[i];
        if (row->kind != BUNDLE_CPU || row->level > level || (wish && row->level != (uint32_t)wish))
            continue;
        if (!*plan || row->level > (*plan)->level)
            *plan = row;
    }
    if (*plan)
        return GPUCC_OK;
    return wish ? runtime_fail(error, GPUCC_NO_PLAN, "the bundle has no code of level %d (%s)", wish,
                               cpu_level_name((uint32_t)wish))
                : runtime_fail(error, GPUCC_NO_PLAN, "the bundle has no code for this CPU (%s)",
                               cpu_level_name(level));
}

static bool plan_has_image(const struct runtime_model *model, const struct bundle_plan *plan, uint32_t kind)
{
    if (!plan->kernel_count)
        return true; /* nothing to load */
    for (uint32_t i = 0; i < plan->image_count; i++)
        if (model->tables.images[plan->first_image + i].kind == kind)
            return true;
    return false;
}

/* How well a plan's images of a kind suit a device: 0 not at all. Cubins run on their own major version from
 * their minor version on, those of `a` targets and their PTX on exactly one chip, other PTX on anything
 * newer. */
static uint32_t suitability(const struct bundle_plan *plan, uint32_t kind, uint32_t capability)
{
    bool exact = plan->level == capability;
    if (plan->architecture_specific)
        return exact ? (kind == BUNDLE_CUBIN ? 4000 : 2000) : 0;
    if (plan->level > capability)
        return 0;
    if (kind == BUNDLE_CUBIN)
        return plan->level / 10 == capability / 10 ? 3000 + plan->level : 0;
    return 1000 + plan->level;
}

const struct bundle_plan *model_cuda_plan(const struct runtime_model *model, uint32_t capability,
                                          uint32_t *image_kind)
{
    const struct bundle_plan *best = NULL;
    uint32_t best_rank = 0;
    for (uint32_t i = 0; i < model->tables.plan_count; i++) {
        const struct bundle_plan *plan = &model->tables.plans[i];
        for (uint32_t kind = BUNDLE_CUBIN; kind <= BUNDLE_PTX && plan->kind == BUNDLE_CUDA; kind++) {
            uint32_t rank = plan_has_image(model, plan, kind) ? suitability(plan, kind, capability) : 0;
            if (rank > best_rank) {
                best = plan;
                best_rank = rank;
                *image_kind = kind;
            }
        }
    }
    return best;
}

/* A bundle's one exported function. Linked into bundles only: the tables and the kernels' addresses come from
 * the object that the bundle writer makes. */
#include "runtime/context.h"

extern const unsigned char gpucc_bundle_tables[] __attribute__((visibility("hidden")));
extern bundle_cpu_kernel *const gpucc_bundle_kernels[] __attribute__((visibility("hidden")));

static gpucc_status open_model(const struct runtime_open *options, struct runtime_model **model,
                               struct runtime_error *error)
{
    return model_open(gpucc_bundle_tables, gpucc_bundle_kernels, options, model, error);
}

static int32_t context_ordinal(const struct runtime_context *context)
{
    return context->ordinal;
}

static const struct bundle_functions functions = {
    .abi = GPUCC_ABI,
    .bytes = sizeof(struct bundle_functions),
    .tables = gpucc_bundle_tables,
    .open = open_model,
    .close = model_close,
    .tensor_info = model_tensor_info,
    .weight_count = model_weight_count,
    .weight_info = model_weight_info,
    .replace_weights = model_replace_weights,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .context_device = context_ordinal,
    .workspace_size = context_workspace_size,
    .prepare = context_prepare,
    .enqueue = context_enqueue,
    .output_dims = context_output_dims,
    .computed_size_count = words_count,
    .computed_size_info = words_info,
    .run = context_run,
    .statistics = context_statistics,
};

GPUCC_API const struct bundle_functions *gpucc_bundle_query(uint32_t abi);

const struct bundle_functions *gpucc_bundle_query(uint32_t abi)
{
    return abi == GPUCC_ABI ? &functions : NULL;
}

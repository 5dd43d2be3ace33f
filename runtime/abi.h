/* Between the loader and the runtime inside a bundle: one exported function gives a table of functions. They
 * are those of gpucc/runtime.h with the error's text passed in the open, since a bundle has no thread-local
 * storage. Raise GPUCC_ABI with any change here. */
#ifndef GPUCC_RUNTIME_ABI_H
#define GPUCC_RUNTIME_ABI_H

#include "runtime/error.h"

struct runtime_model;
struct runtime_context;

struct runtime_open {
    int fd;         /* of the bundle; open as long as the model */
    int weights_fd; /* of the sidecar, or -1; owned by the caller too */
    int32_t trusted;
};

struct bundle_functions {
    uint32_t abi, bytes;
    const void *tables; /* the blob in memory; its header says how long it is */
    gpucc_status (*open)(const struct runtime_open *open, struct runtime_model **model,
                         struct runtime_error *error);
    void (*close)(struct runtime_model *model);
    gpucc_status (*tensor_info)(const struct runtime_model *model, int output, size_t index,
                                gpucc_tensor_info *info, struct runtime_error *error);
    size_t (*weight_count)(const struct runtime_model *model);
    gpucc_status (*weight_info)(const struct runtime_model *model, size_t index, gpucc_weight *info,
                                struct runtime_error *error);
    gpucc_status (*replace_weights)(struct runtime_model *model, const char *const *names,
                                    const gpucc_tensor *tensors, size_t count, struct runtime_error *error);
    gpucc_status (*context_create)(struct runtime_model *model, const gpucc_context_options *options,
                                   struct runtime_context **context, struct runtime_error *error);
    void (*context_destroy)(struct runtime_context *context);
    int32_t (*context_device)(const struct runtime_context *context);
    gpucc_status (*workspace_size)(const struct runtime_model *model, const gpucc_context_options *options,
                                   const gpucc_dims *dims, size_t *bytes, struct runtime_error *error);
    gpucc_status (*prepare)(struct runtime_context *context, const gpucc_dims *dims,
                            const gpucc_workspace *workspace, struct runtime_error *error);
    gpucc_status (*enqueue)(struct runtime_context *context, void *stream, const gpucc_tensor *inputs,
                            gpucc_tensor *outputs, struct runtime_error *error);
    gpucc_status (*output_dims)(struct runtime_context *context, size_t index, int32_t *rank,
                                int64_t *dims, struct runtime_error *error);
    size_t (*computed_size_count)(const struct runtime_context *context);
    gpucc_status (*computed_size_info)(struct runtime_context *context, size_t index, gpucc_computed_size *info,
                                       struct runtime_error *error);
    gpucc_status (*run)(struct runtime_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs,
                        struct runtime_error *error);
    gpucc_status (*statistics)(const struct runtime_context *context, gpucc_statistics *statistics,
                               struct runtime_error *error);
};

#define BUNDLE_QUERY "gpucc_bundle_query"
/* NULL when the bundle does not speak this ABI. */
typedef const struct bundle_functions *bundle_query(uint32_t abi);

#endif

/* A model inside a bundle: the tables, the file that its weights are in, and the sets of weights that its
 * contexts share. Immutable to callers; what contexts share is under `lock`. */
#ifndef GPUCC_RUNTIME_MODEL_H
#define GPUCC_RUNTIME_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/abi.h"
#include "runtime/tables.h"

struct weights;
struct cuda_functions;

struct runtime_model {
    struct bundle_tables tables;
    bundle_cpu_kernel *const *kernels; /* the bundle's pointer table */
    int weights_fd;                    /* owned by the loader */
    bool trusted;
    pthread_mutex_t lock;
    struct weights *weights; /* sets in use */
    void **replaced; /* [constant]: what it is instead of the file's, malloc's, or NULL; NULL: none is */
    _Atomic uint64_t generation; /* counts replacements */
    struct cuda_functions *cuda; /* the driver's functions once a context needed them */
};

/* `blob`: the tables in memory, `kernels`: the pointer table beside them. */
gpucc_status model_open(const void *blob, bundle_cpu_kernel *const *kernels,
                        const struct runtime_open *options, struct runtime_model **model,
                        struct runtime_error *error);
void model_close(struct runtime_model *model);
/* Replaces weights by name: all of them or none. Contexts take them in their next `prepare` (replace.c). */
gpucc_status model_replace_weights(struct runtime_model *model, const char *const *names,
                                   const gpucc_tensor *tensors, size_t count, struct runtime_error *error);
size_t model_weight_count(const struct runtime_model *model);
gpucc_status model_weight_info(const struct runtime_model *model, size_t index, gpucc_weight *info,
                               struct runtime_error *error);
gpucc_status model_tensor_info(const struct runtime_model *model, int output, size_t index,
                               gpucc_tensor_info *info, struct runtime_error *error);

/* The best CPU plan that this machine runs, or that of a level that the caller wishes for (0: none). */
gpucc_status model_cpu_plan(const struct runtime_model *model, int32_t wish, const struct bundle_plan **plan,
                            struct runtime_error *error);
/* Best CUDA plan for a device of compute capability 10 * major + minor; `*image_kind` says which of its
 * images. */
const struct bundle_plan *model_cuda_plan(const struct runtime_model *model, uint32_t capability,
                                          uint32_t *image_kind);

/* Copies the caller's struct of `size` bytes (its first member) into one of ours; false when it is too small
 * to be one or not set. */
bool model_copy_struct(void *ours, size_t our_bytes, const void *theirs, size_t least_bytes);

#endif

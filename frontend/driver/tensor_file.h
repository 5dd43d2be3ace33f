/* Tensors in files: numpy's .npy (format 1.0 and 2.0, little endian, C order) and ONNX's TensorProto (.pb). The ending
 * decides. Element types that numpy lacks (bf16, fp8, 4- and 2-bit types) are refused in .npy by name. */
#ifndef GPUCC_FRONTEND_DRIVER_TENSOR_FILE_H
#define GPUCC_FRONTEND_DRIVER_TENSOR_FILE_H

#include "frontend/payload.h"

struct file_tensor {
    enum dtype dtype;
    int rank;
    int64_t sizes[MAX_RANK];
    void *data; /* packed, little endian, in the arena */
    size_t bytes;
};

bool tensor_file_read(const char *path, struct arena *arena, struct diagnostics *diagnostics, struct file_tensor *out);
bool tensor_file_write(const char *path, const char *name, const struct file_tensor *tensor, struct arena *arena,
                       struct diagnostics *diagnostics);

#endif

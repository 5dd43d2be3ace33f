/* A bundle file's tables, read without executing anything: what `gpucc info` shows and what the loader checks
 * first. All functions are safe on any file. */
#ifndef GPUCC_RUNTIME_INFO_H
#define GPUCC_RUNTIME_INFO_H

#include "runtime/dim_text.h"

struct bundle_file {
    int fd; /* of the file, open until bundle_file_close */
    uint64_t file_bytes;
    uint64_t section_offset;     /* where .gpucc stands in the file */
    void *blob;                  /* a copy of .gpucc */
    struct bundle_tables tables; /* views into the blob */
};

/* Opens, finds the section, validates the tables. Errors: IO_ERROR, BAD_BUNDLE, OUT_OF_MEMORY. */
gpucc_status bundle_file_open(const char *path, struct bundle_file *file, struct runtime_error *error);
void bundle_file_close(struct bundle_file *file); /* harmless on a zeroed struct and after a failed open */

/* Reads header and code of the file again and compares with the hash in the header. */
gpucc_status bundle_file_check_image(const struct bundle_file *file, struct runtime_error *error);
/* All weights against their hash tree; `sidecar`: the file with the weights when they are not in the bundle,
 * or NULL. */
gpucc_status bundle_file_check_weights(const struct bundle_file *file, const char *sidecar,
                                       struct runtime_error *error);

/* Bytes of the file's executable segments: code of the CPU kernels and of the runtime. */
gpucc_status bundle_file_code(const struct bundle_file *file, uint64_t *bytes, struct runtime_error *error);

/* Arena bytes of a plan with every symbol at its hint; weights that it loads; bytes of its device code. */
struct bundle_memory {
    uint64_t arena_bytes, weight_bytes, code_bytes;
};
gpucc_status bundle_plan_memory(const struct bundle_tables *tables, uint32_t plan,
                                struct bundle_memory *memory, struct runtime_error *error);

#endif

/* nvcc as a program, in place of NVRTC (--compiler=nvcc). */
#ifndef GPUCC_CODEGEN_NVCC_H
#define GPUCC_CODEGEN_NVCC_H

#include "codegen/nvrtc.h"

/* "nvcc 13.0.88"; NULL: E0502 is recorded. */
const char *nvcc_version(int *major, int *minor, struct arena *arena, struct diagnostics *diagnostics);
/* Compiles one unit in a folder of its own; thread safe. As nvrtc_compile. */
bool nvcc_compile(const char *source, const char *const *options, uint32_t option_count, const char *architecture, bool ptx,
                  struct nvrtc_result *out);

/* Keeps a unit that a compiler refused, and its log, in a fresh folder; its path, or NULL. */
const char *cuda_save_failure(const char *source, const char *log, struct arena *arena);

#endif

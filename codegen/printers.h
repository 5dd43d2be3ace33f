/* The two printers of Kernel IR, and what compiles their output. LLVM-C enters through print_llvm*.c and llvm_object.c;
 * NVRTC through nvrtc.c. */
#ifndef GPUCC_CODEGEN_PRINTERS_H
#define GPUCC_CODEGEN_PRINTERS_H

#include "codegen/plan.h"

/* CUDA C of one kernel named `name`: header-free, without any text of the model. `comments`: with the comment block
 * (node numbers, op types, shapes, bytes, operations, roofline time) or bare (what is hashed). */
void print_cuda(const struct kernel *kernel, const char *name, const struct machine *machine, bool comments,
                struct text *out);
/* Dynamic shared memory of the printed kernel: 0 when its arrays are static. */
uint64_t cuda_dynamic_shared_bytes(const struct kernel *kernel);
/* What stands in front of printed kernels: the helper functions and types that they use. */
void print_cuda_prelude(const char *source, const struct machine *machine, struct text *out);

/* CPU kernels under the given symbol names, each for one machine, as relocatable objects of its host: position independent,
 * no library calls. Signature of a kernel, see runtime/bundle_format.h:
 *     void (void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch) */
struct object_kernel {
    const struct kernel *kernel;
    const char *symbol;
    const struct machine *machine;
};


struct object_file {
    const unsigned char *bytes; /* in the arena */
    size_t length;
};
/* "19.1.7" */
const char *llvm_version(void);
/* Several objects, compiled on `threads` threads through the kernel cache (kernel_cache_open's wish); equal input gives
 * equal bytes whatever the number of threads. */
bool llvm_objects(const struct object_kernel *kernels, uint32_t count, uint32_t threads, const char *cache_folder,
                  struct arena *arena, struct diagnostics *diagnostics, struct object_file **objects, uint32_t *object_count);

enum cuda_compiler { COMPILER_NVRTC, COMPILER_NVCC };
struct cuda_options {
    enum cuda_compiler compiler;
    const char *cache_folder; /* NULL: by the environment (design.md section 9); "": no cache */
    uint32_t threads;
};
struct cuda_image {
    const unsigned char *bytes; /* a cubin (or PTX with a NUL) */
    size_t length;
    uint32_t first_kernel, kernel_count; /* of the plan: those in this unit */
};
/* Compiles the plan's kernels (their `source`) in units of several small ones, through the kernel cache, on all threads.
 * `ptx`: PTX of the machine's architecture instead of a cubin. */
bool cuda_compile(const struct plan *plan, const struct cuda_options *options, bool ptx, struct arena *arena,
                  struct diagnostics *diagnostics, struct cuda_image **images, uint32_t *image_count);
/* What compiles CUDA C here, "NVRTC 13.0" or "nvcc 13.0.88", and its version. NULL: reported. */
const char *cuda_compiler_name(enum cuda_compiler compiler, int *major, int *minor, struct arena *arena,
                               struct diagnostics *diagnostics);
/* What was emitted, so that it can be taken back. Zeroed: nothing. */
struct cuda_emission {
    const struct plan *plan;
    const char *folder;
    struct arena *arena;
    struct diagnostics *diagnostics;
    VEC(const char *) folders; /* that were made for it, outer ones first */
    VEC(const char *) files;
};
/* Writes each kernel's source, build.sh and kernels.map (which holds the model's names, escaped) into the folder. On
 * failure no file of it stays. */
bool cuda_emit(const struct plan *plan, const char *folder, struct arena *arena, struct diagnostics *diagnostics,
               struct cuda_emission *emission);
void cuda_emit_remove(struct cuda_emission *emission);

#endif

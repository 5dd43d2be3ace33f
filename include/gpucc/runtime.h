/* gpucc runtime: run a compiled model.
 *
 *   gpucc_model    an opened bundle: immutable, shared by any number of threads.
 *   gpucc_context  one thread's execution state for one model on one device.
 *
 *     gpucc_model *model;
 *     gpucc_context *context;
 *     gpucc_open("model.so", NULL, &model);
 *     gpucc_context_create(model, NULL, &context);
 *     gpucc_prepare(context, &dims, NULL);                   may allocate, build graphs
 *     gpucc_enqueue(context, stream, inputs, outputs);       never allocates or synchronises
 *
 * Threads: any number on one model; a context is used by one thread at a time, not always the same.
 * CUDA contexts: a context works in the CUDA context that it was created for, whatever is current in the calling thread;
 * that stays current.
 * Streams: any of that CUDA context. One context's work shares its arena: on several streams the caller orders it. While a
 * stream is being captured, in whatever mode, gpucc_enqueue adds launches with the buffers and dims of that call to the
 * caller's graph, which may run as often as wanted while the context lives and is not prepared anew.
 * After GPUCC_DEVICE_ERROR every call of that context but gpucc_context_destroy returns it again; a lost CUDA context takes
 * the other contexts in it along. The text names the driver's function and error.
 *
 * Every function returns a gpucc_status; gpucc_last_error() has the reason in words, for the calling thread. No function
 * prints, exits or changes process state (environment, locale, signal handlers, floating-point mode on return).
 * Structs begin with their size, so that old programs keep working: fill them with GPUCC_INIT(struct name).
 * Include this file from C11 or C++11. */
#ifndef GPUCC_RUNTIME_H
#define GPUCC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GPUCC_API __attribute__((visibility("default")))
#else
#define GPUCC_API
#endif

/* Raised when a struct or a promise of this file changes. */
#define GPUCC_ABI 2

typedef enum gpucc_status {
    GPUCC_OK = 0,
    GPUCC_INVALID_ARGUMENT, /* a null pointer, a wrong count, dtype, rank, dim or size */
    GPUCC_OUT_OF_RANGE,     /* dims outside the range that was prepared or compiled; a guard does not hold */
    GPUCC_NOT_PREPARED,     /* enqueue before a successful prepare */
    GPUCC_BAD_BUNDLE,       /* not a bundle, damaged, or of another version */
    GPUCC_NO_PLAN,          /* no code for this device in the bundle */
    GPUCC_NO_DEVICE,        /* no driver, driver too old, no such device */
    GPUCC_OUT_OF_MEMORY,
    GPUCC_DEVICE_ERROR,     /* the driver reported an error; the context is unusable from then on */
    GPUCC_IO_ERROR
} gpucc_status;

typedef struct gpucc_model gpucc_model;
typedef struct gpucc_context gpucc_context;

/* Element types; the numbers are ONNX's. */
typedef enum gpucc_dtype {
    GPUCC_F32 = 1, GPUCC_U8 = 2, GPUCC_I8 = 3, GPUCC_U16 = 4, GPUCC_I16 = 5, GPUCC_I32 = 6, GPUCC_I64 = 7,
    GPUCC_STRING = 8, GPUCC_BOOL = 9, GPUCC_F16 = 10, GPUCC_F64 = 11, GPUCC_U32 = 12, GPUCC_U64 = 13,
    GPUCC_BF16 = 16, GPUCC_F8E4M3FN = 17, GPUCC_F8E4M3FNUZ = 18, GPUCC_F8E5M2 = 19, GPUCC_F8E5M2FNUZ = 20,
    GPUCC_U4 = 21, GPUCC_I4 = 22, GPUCC_F4E2M1 = 23, GPUCC_F8E8M0 = 24, GPUCC_U2 = 25, GPUCC_I2 = 26
} gpucc_dtype;

enum { GPUCC_MAX_RANK = 16 };

/* A tensor of the caller: dense, row-major. `data` is device memory for a CUDA context and host memory for a CPU one and
 * for gpucc_run; aligned to at least its element (16 bytes lets kernels use their widest accesses on CUDA: required
 * there). Owned by the caller. `data` may be NULL only when the tensor has no elements. */
typedef struct gpucc_tensor {
    size_t size; /* of this struct */
    void *data;
    size_t bytes;           /* of the buffer; at least what the dims need */
    int32_t dtype;          /* gpucc_dtype */
    int32_t rank;
    int64_t dims[GPUCC_MAX_RANK];
} gpucc_tensor;

/* Memory for what a context needs beyond its own small structures (arena, weights). NULL functions: malloc, or the
 * driver's allocator. `device` memory for CUDA. Called in open, create, prepare, destroy only. */
typedef struct gpucc_allocator {
    size_t size;
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
} gpucc_allocator;

typedef struct gpucc_open_options {
    size_t size;
    const char *weights; /* sidecar file for bundles made with --weights; NULL: beside the bundle */
    int32_t trusted;     /* 1: skip the hash checks */
} gpucc_open_options;

enum { GPUCC_CPU = -1 };

typedef struct gpucc_context_options {
    size_t size;
    int32_t device;      /* CUDA device ordinal, or GPUCC_CPU */
    int32_t threads;     /* CPU: worker threads, the caller's included; 0: one a CPU that the process may use */
    void *cuda_context;  /* CUcontext to use; NULL: the device's primary context */
    const gpucc_allocator *allocator;
    int32_t cpu_level;   /* CPU: run the code of this level: 2, 3, 4 of x86-64, 8 for Armv8-A; 0: the highest that the
                            processor has. Results do not hang on it. Errors: NO_DEVICE, NO_PLAN. */
} gpucc_context_options;

/* One named dim: a symbol's name as `gpucc info` lists it, or "INPUT[AXIS]". For a range: low <= high; for one size: equal. */
typedef struct gpucc_dim {
    const char *name;
    int64_t low, high;
} gpucc_dim;

typedef struct gpucc_dims {
    size_t size;
    const gpucc_dim *items;
    size_t count;
} gpucc_dims;

/* The caller's memory for the arena; device memory for CUDA, 256-byte aligned. */
typedef struct gpucc_workspace {
    size_t size;
    void *memory;
    size_t bytes;
} gpucc_workspace;

typedef struct gpucc_tensor_info {
    size_t size;
    const char *name;       /* the model's; lives as long as the model */
    int32_t dtype, rank;
    int64_t dims[GPUCC_MAX_RANK];           /* -1 where the dim is free */
    const char *symbols[GPUCC_MAX_RANK];    /* name of a free dim, or NULL */
    int32_t alias_input;    /* outputs: the input whose buffer it lives in, or -1 */
} gpucc_tensor_info;

/* A struct with its size set and all else zero: gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor); */
/* An initialiser of the model. */
typedef struct gpucc_weight {
    size_t size;
    const char *name; /* the model's; lives as long as the model, as `frozen` does */
    int32_t dtype, rank;
    int64_t dims[GPUCC_MAX_RANK];
    const char *frozen; /* why it cannot be replaced; NULL: it can */
} gpucc_weight;

#ifdef __cplusplus
#define GPUCC_INIT(type) gpucc_sized<type>()
#else
#define GPUCC_INIT(type) { .size = sizeof(type) }
#endif

/* The text of the calling thread's last failure; "" when there was none. Valid until its next call. */
GPUCC_API const char *gpucc_last_error(void);
GPUCC_API const char *gpucc_status_name(gpucc_status status);

/* Opens a bundle file: checks header and code hash, loads it. Any thread; the result is immutable and thread safe.
 * Errors: IO_ERROR, BAD_BUNDLE, OUT_OF_MEMORY. A bundle is native code: open only files that you trust as such. */
GPUCC_API gpucc_status gpucc_open(const char *path, const gpucc_open_options *options, gpucc_model **model);
/* All contexts of the model must be destroyed first. NULL is allowed. */
GPUCC_API void gpucc_close(gpucc_model *model);

GPUCC_API size_t gpucc_input_count(const gpucc_model *model);
GPUCC_API size_t gpucc_output_count(const gpucc_model *model);
/* `info->size` must be set. */
GPUCC_API gpucc_status gpucc_input_info(const gpucc_model *model, size_t index, gpucc_tensor_info *info);
GPUCC_API gpucc_status gpucc_output_info(const gpucc_model *model, size_t index, gpucc_tensor_info *info);

/* The model's initialisers. */
GPUCC_API size_t gpucc_weight_count(const gpucc_model *model);
GPUCC_API gpucc_status gpucc_weight_info(const gpucc_model *model, size_t index, gpucc_weight *info);
/* Replaces initialisers by name, all of them or none: tensors in host memory of the listed type and dims, not kept. What
 * the compiler made of them (folded, cast, repacked) is made again by the same steps: results equal those of a model
 * compiled with them. A context takes the new weights as a whole in its next gpucc_prepare or gpucc_run; until then, and
 * for work that it has enqueued, it keeps the old ones. Any thread; does not wait for contexts.
 * Errors: INVALID_ARGUMENT (unknown name, wrong type or dims, frozen: with the reason), OUT_OF_MEMORY, IO_ERROR,
 * BAD_BUNDLE (a hash), NO_PLAN (this CPU cannot run the steps). */
GPUCC_API gpucc_status gpucc_replace_weights(gpucc_model *model, const char *const *names, const gpucc_tensor *tensors,
                                             size_t count);

/* `options` NULL: device 0 when there is one and the bundle has code for it, else the CPU; gpucc_context_device tells.
 * Errors: NO_DEVICE, NO_PLAN, OUT_OF_MEMORY, DEVICE_ERROR, BAD_BUNDLE (a weight's hash). */
GPUCC_API gpucc_status gpucc_context_create(gpucc_model *model, const gpucc_context_options *options,
                                            gpucc_context **context);
/* Waits for the context's work. NULL is allowed. */
GPUCC_API void gpucc_context_destroy(gpucc_context *context);
GPUCC_API int32_t gpucc_context_device(const gpucc_context *context);

/* Arena bytes that prepare would need for the dims; touches no device. */
GPUCC_API gpucc_status gpucc_workspace_size(const gpucc_model *model, const gpucc_context_options *options,
                                            const gpucc_dims *dims, size_t *bytes);

/* Makes ready for one size or a range of sizes of each free dim: evaluates shapes and guards, plans the arena, loads
 * weights and kernels on first use, builds the launch graph. All free dims must be named (guards may settle some).
 * `workspace` NULL: the context allocates. May be called again; graphs of recent dims are kept (8). */
GPUCC_API gpucc_status gpucc_prepare(gpucc_context *context, const gpucc_dims *dims,
                                     const gpucc_workspace *workspace);

/* Launches the model once: CUDA: in stream order on `stream` (a CUstream; NULL: the legacy default stream), returns at
 * once; CPU: runs before it returns (`stream` must be NULL). inputs and outputs in the model's order; each tensor's dims
 * must be inside the prepared range and agree with each other; outputs' dims are written by the call, their `bytes` must
 * suffice. Buffers must not overlap unless aliased by the bundle; an aliased output that is longer than its input is made
 * elsewhere and copied there last. Never allocates, never synchronises. */
GPUCC_API gpucc_status gpucc_enqueue(gpucc_context *context, void *stream, const gpucc_tensor *inputs,
                                     gpucc_tensor *outputs);

/* Dims of output `index` for the prepared upper end, or for the last enqueue's inputs after one. Where they hang on sizes that
 * the model computes, gpucc_enqueue writes their bounds on CUDA, and this function the actual dims once the caller has waited
 * for the stream; on the CPU and from gpucc_run the tensors have them at once. OUT_OF_RANGE: a computed size passed its bound,
 * or sizes disagree; the outputs are not to be used. */
GPUCC_API gpucc_status gpucc_output_dims(gpucc_context *context, size_t index, int32_t *rank, int64_t *dims);

/* A size that the model itself computes (how many boxes are kept, how long a sentence is spoken). Its bound is known before:
 * buffers, outputs' among them, must have room for it. Where the model does not say it, `stated` is 1 and gpucc_prepare must
 * be given it, as the high end of a dim of that name (or the compiler, by --dim). */
typedef struct gpucc_computed_size {
    size_t size;
    const char *name; /* lives as long as the model; "" where it has none */
    int32_t stated;
    int64_t bound; /* prepared; -1 before */
    int64_t value; /* of the last run, which must be done; -1 before. Beyond its bound: results are not to be used */
} gpucc_computed_size;
GPUCC_API size_t gpucc_computed_size_count(const gpucc_context *context);
GPUCC_API gpucc_status gpucc_computed_size_info(gpucc_context *context, size_t index, gpucc_computed_size *info);

/* Convenience on host memory: prepares for the inputs' dims when needed, copies, runs, copies back, waits. An output that
 * the bundle aliases to an input may have a buffer of its own here. */
GPUCC_API gpucc_status gpucc_run(gpucc_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs);

/* Figures of the context, for tests and tools. */
typedef struct gpucc_statistics {
    size_t size;
    uint64_t allocations;      /* made by this context since its creation */
    uint64_t prepares, graphs_built, enqueues;
    uint64_t arena_bytes, weight_bytes, code_bytes;
    uint64_t launches;         /* kernels of one enqueue */
} gpucc_statistics;
GPUCC_API gpucc_status gpucc_context_statistics(const gpucc_context *context, gpucc_statistics *statistics);

#ifdef __cplusplus
}

template <typename type> inline type gpucc_sized()
{
    type value = type();
    value.size = sizeof(type);
    return value;
}
#endif

#endif

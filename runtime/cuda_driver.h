/* libcuda as a table of functions, found by dlopen: the one place where it enters. Our own prototypes, of the
 * driver's stable C interface. */
#ifndef GPUCC_RUNTIME_CUDA_DRIVER_H
#define GPUCC_RUNTIME_CUDA_DRIVER_H

#include "runtime/error.h"

typedef int cuda_result; /* 0: done */
typedef int cuda_device_number;
typedef uint64_t cuda_pointer;
typedef struct cuda_context_opaque *cuda_context;
typedef struct cuda_module_opaque *cuda_module;
typedef struct cuda_function_opaque *cuda_function;
typedef struct cuda_stream_opaque *cuda_stream;
typedef struct cuda_event_opaque *cuda_event;
typedef struct cuda_graph_opaque *cuda_graph_handle;
typedef struct cuda_node_opaque *cuda_node;
typedef struct cuda_executable_opaque *cuda_executable;

/* CUDA_KERNEL_NODE_PARAMS_v1 */
struct cuda_kernel_node {
    cuda_function function;
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **arguments;
    void **extra;
};

/* CUgraphNodeParams with its CUDA_CONDITIONAL_NODE_PARAMS */
struct cuda_conditional_node {
    int type, reserved[3];
    uint64_t handle;
    int kind;
    unsigned size;
    cuda_graph_handle *graphs; /* out: [size], the bodies; the driver's */
    cuda_context context;
    long long padding[25], last; /* zero */
};

/* CUtensorMap: the driver alone knows what is in it. */
struct cuda_tensor_map {
    _Alignas(64) uint64_t opaque[16];
};

enum {
    CUDA_BAD_VALUE = 1,        /* CUDA_ERROR_INVALID_VALUE */
    CUDA_NO_MEMORY = 2,        /* CUDA_ERROR_OUT_OF_MEMORY */
    CUDA_ATTRIBUTE_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    CUDA_ATTRIBUTE_MINOR = 76,
    CUDA_FUNCTION_DYNAMIC_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_CAPTURE_NONE = 0,
    CUDA_NODE_CONDITIONAL = 13, /* CU_GRAPH_NODE_TYPE_CONDITIONAL */
    CUDA_CONDITION_IF = 0,
    CUDA_CONDITION_WHILE = 1,
    CUDA_JIT_ERROR_LOG = 5, /* CU_JIT_ERROR_LOG_BUFFER */
    CUDA_JIT_ERROR_LOG_BYTES = 6,
    CUDA_STATIC_SHARED_LIMIT = 48 * 1024
};

struct cuda_functions {
    void *library;
#define CUDA_SYMBOL(field, name, parameters)     cuda_result(*field) parameters;
#define CUDA_NEW_SYMBOL(field, name, parameters) CUDA_SYMBOL(field, name, parameters)
#include "runtime/cuda_symbols.def"
#undef CUDA_SYMBOL
#undef CUDA_NEW_SYMBOL
};

/* The exported name of a function of the table, for messages: CUDA_NAME(graph_launch) is "cuGraphLaunch". */
struct cuda_names {
#define CUDA_SYMBOL(field, name, parameters)     const char *field;
#define CUDA_NEW_SYMBOL(field, name, parameters) CUDA_SYMBOL(field, name, parameters)
#include "runtime/cuda_symbols.def"
#undef CUDA_SYMBOL
#undef CUDA_NEW_SYMBOL
};
extern const struct cuda_names cuda_names;
#define CUDA_NAME(field) (cuda_names.field)

/* Loads libcuda.so.1 and initialises it. NO_DEVICE with the reason. */
gpucc_status cuda_driver_open(struct cuda_functions **functions, struct runtime_error *error);
void cuda_driver_close(struct cuda_functions *functions); /* NULL is allowed */

/* Turns a result of `function` into a status and text: "cannot launch: cuLaunchKernel:
 * CUDA_ERROR_ILLEGAL_ADDRESS (an illegal ...)". */
gpucc_status cuda_check(const struct cuda_functions *functions, cuda_result result, const char *function,
                        const char *action, struct runtime_error *error);

#endif

/* The tables of a bundle: one blob of fixed-width little-endian structs, the ELF section ".gpucc". References
 * are indices into the blob's arrays or, for an array itself, byte offsets from the blob's begin. Validated
 * once when the bundle is opened (runtime/tables.c) and trusted from then on.
 *
 * Layout of the file:
 *     [0, image_bytes)                  the linked ELF image and zeros up to a page; .gpucc and code are in
 * it [weights_offset, + weights_bytes) constants, each 256-byte aligned; not mapped by the dynamic loader
 *     [leaves_offset, + 32 leaf_count)  sha256 of each 4 MiB leaf of the weights
 * In a bundle with a sidecar the last two stand in that file, weights at offset 0. weights_root is the sha256
 * of the leaf hashes; image_hash that of the image with image_hash itself zeroed.
 *
 * This file is all that the compiler knows of the runtime, besides pure functions (arena_plan.h, sha256.h).
 */
#ifndef GPUCC_RUNTIME_BUNDLE_FORMAT_H
#define GPUCC_RUNTIME_BUNDLE_FORMAT_H

#include <stdint.h>

#define BUNDLE_MAGIC   "gpucc\r\n\x1a"
#define BUNDLE_SECTION ".gpucc"

enum {
    BUNDLE_ABI = 2,         /* GPUCC_ABI of gpucc/runtime.h, which the compiler does not include */
    BUNDLE_FORMAT = 5,      /* raised when a struct below changes */
    BUNDLE_ALIGNMENT = 256, /* of constants and arena buffers */
    BUNDLE_PAGE = 4096,     /* alignment of the weights in the file */
    BUNDLE_LEAF = 4 * 1024 * 1024,
    BUNDLE_MAX_RANK = 16,
    BUNDLE_MAX_KERNEL_BUFFERS = 64,
    BUNDLE_MAX_KERNEL_DIMS = 64,
    BUNDLE_MAX_TENSOR_MAPS = 8, /* of a launch */
    BUNDLE_MAX_MAP_RANK = 5,
    BUNDLE_MAX_DEPTH = 64 /* of controls in controls */
};
#define BUNDLE_NONE UINT32_MAX /* an index that points nowhere */

/* bundle_header.machine: ELF's e_machine of the hosts. */
enum { BUNDLE_X86_64 = 62, BUNDLE_AARCH64 = 183 };

/* A CPU kernel: runs iterations begin .. end of its outermost parallel loop. `scratch`: scratch_bytes of the
 * calling thread's own, 64-byte aligned, contents undefined. */
typedef void bundle_cpu_kernel(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                               void *scratch);

struct bundle_array {
    uint64_t offset; /* from the blob's begin; a multiple of 8 */
    uint64_t count;  /* items */
};

/* Strings are byte offsets into `strings`, NUL-terminated; 0 is the empty string. Names are the model's own
 * text. */
typedef uint32_t bundle_string;

struct bundle_header {
    char magic[8];
    uint32_t format, abi;
    uint32_t header_bytes;
    uint32_t machine; /* e_machine of the host code */
    uint64_t blob_bytes;
    uint64_t image_bytes; /* 0 until the image is linked */
    uint64_t weights_offset, weights_bytes;
    uint64_t leaves_offset, leaf_count;
    uint32_t sidecar;           /* 1: weights and leaves stand in another file */
    bundle_string sidecar_name; /* its file name beside the bundle */
    uint8_t image_hash[32];
    uint8_t weights_root[32];
    struct bundle_array strings;   /* char */
    struct bundle_array symbols;   /* bundle_symbol */
    struct bundle_array terms;     /* bundle_term */
    struct bundle_array dims;      /* bundle_dim, arguments before their users */
    struct bundle_array guards;    /* bundle_guard */
    struct bundle_array inputs;    /* bundle_tensor */
    struct bundle_array outputs;   /* bundle_tensor */
    struct bundle_array constants; /* bundle_constant */
    struct bundle_array weights;   /* bundle_weight_row */
    struct bundle_array plans;     /* bundle_plan */
    struct bundle_array buffers;   /* bundle_buffer, plan after plan */
    struct bundle_array kernels;   /* bundle_kernel */
    struct bundle_array launches;  /* bundle_launch */
    struct bundle_array controls;  /* bundle_control */
    struct bundle_array maps;      /* bundle_tensor_map */
    struct bundle_array copies;    /* bundle_copy */
    struct bundle_array images;    /* bundle_image */
    struct bundle_array indices;   /* uint32_t: dims of tensors, buffers and dims of launches */
    struct bundle_array code;      /* bytes of the images */
    struct bundle_array facts;     /* bundle_fact_row: provenance */
    uint64_t cpu_kernel_count;     /* entries of the pointer table */
    bundle_string producer;        /* the model's producer_name */
    uint32_t reserved;
    int64_t opset;
};

/* WORD: computed by the model, see bundle_plan. BOUND: the most that words may be, which whoever runs the model states. */
enum bundle_symbol_source { BUNDLE_INPUT_AXIS, BUNDLE_INPUT_VALUE, BUNDLE_WORD, BUNDLE_BOUND };

struct bundle_symbol {
    bundle_string name; /* "" when the model has none */
    uint32_t source;    /* enum bundle_symbol_source */
    uint32_t input, axis;
    int64_t low, high, hint;
    uint32_t replacement; /* dim that it must equal and is computed from, or BUNDLE_NONE: it is free */
    uint32_t bound;       /* WORD: dim that it never passes; else BUNDLE_NONE */
};

enum bundle_dim_op {
    BUNDLE_DIM_CONSTANT, /* value */
    BUNDLE_DIM_SYMBOL,   /* value: index of the symbol */
    BUNDLE_DIM_SUM,      /* value + sum of coefficient * dim over the terms */
    BUNDLE_DIM_PRODUCT,  /* of the terms' dims */
    BUNDLE_DIM_FLOOR_DIV,
    BUNDLE_DIM_MOD,
    BUNDLE_DIM_MIN,
    BUNDLE_DIM_MAX,
    BUNDLE_DIM_OP_COUNT
};

struct bundle_term {
    int64_t coefficient; /* SUM only, else 1 */
    uint32_t dim;
    uint32_t reserved;
};

struct bundle_dim {
    uint32_t op;
    uint32_t first_term, term_count; /* two for the binary ones */
    uint32_t reserved;
    int64_t value;
};

enum bundle_guard_kind {
    BUNDLE_GUARD_EQUAL,       /* left == right */
    BUNDLE_GUARD_NOT_NEGATIVE /* left >= 0: the size of a tensor; right is left */
};

struct bundle_guard {
    uint32_t left, right;
    bundle_string node; /* the node that needs it */
    uint32_t kind;
};

struct bundle_tensor {
    bundle_string name;
    uint32_t dtype, rank;
    uint32_t first_dim;   /* into indices */
    uint32_t alias_input; /* outputs: or BUNDLE_NONE */
    uint32_t reserved;
};

struct bundle_constant {
    bundle_string name; /* initialiser that it comes from, or "" */
    uint32_t dtype;
    uint32_t repacked; /* 1: not in the model's layout */
    uint32_t reserved;
    int64_t elements;
    uint64_t offset, bytes; /* in the weights */
};

/* An initialiser of the model. */
struct bundle_weight_row {
    bundle_string name;
    uint32_t dtype, rank;
    uint32_t first_dim;   /* into indices; all dims are constants */
    bundle_string frozen; /* why it cannot be replaced; "": it can */
    uint32_t constant;    /* where its elements stand as they are, or BUNDLE_NONE */
};

/* INIT: at most one, the steps from weights to constants (a CPU plan that reads BUNDLE_WEIGHT and writes
 * BUNDLE_CONSTANT buffers; all of its dims are constants, its launches are in an order to run them). */
enum bundle_plan_kind { BUNDLE_CPU, BUNDLE_CUDA, BUNDLE_INIT };

struct bundle_plan {
    bundle_string name;
    uint32_t kind;
    uint32_t level; /* CPU: 2, 3, 4: the x86-64 level; 8: Armv8-A. CUDA: compute capability, 90 */
    uint32_t architecture_specific;
    uint32_t driver_version;     /* CUDA: that cubins need, as cuDriverGetVersion gives it; 0: any */
    uint32_t ptx_driver_version; /* and that PTX needs */
    uint32_t first_buffer, buffer_count;
    uint32_t first_kernel, kernel_count;
    uint32_t first_launch, launch_count;
    uint32_t first_control, control_count;
    uint32_t first_copy, copy_count;
    uint32_t first_image, image_count;
    uint32_t word_buffer;            /* ARENA, i64: the sizes that the model computed, when it is done; or BUNDLE_NONE */
    uint32_t first_word, word_count; /* into indices: the symbols that its elements are */
};

enum bundle_buffer_kind { BUNDLE_INPUT, BUNDLE_OUTPUT, BUNDLE_CONSTANT, BUNDLE_ARENA, BUNDLE_WEIGHT };

struct bundle_buffer {
    uint32_t kind, index; /* INPUT, OUTPUT, CONSTANT, WEIGHT: which */
    uint32_t dtype;
    uint32_t elements;    /* dim */
    uint32_t first, last; /* ARENA: launches of the plan, inclusive */
    uint32_t
        shares; /* ARENA: buffer of the plan in whose memory it lives (which itself shares none), or NONE */
    uint32_t reserved;
};

struct bundle_kernel {
    bundle_string name;   /* CUDA: its name in the image */
    bundle_string config; /* "gpu_rows tile=..." */
    bundle_string summary;
    uint32_t buffer_count, dim_count;
    uint32_t block[3];
    uint32_t index_bits;   /* CUDA: 32 or 64: the type of dims parameters and the range of flat indices */
    uint32_t function;     /* CPU: entry of the pointer table */
    uint32_t shared_bytes; /* CUDA: dynamic shared memory */
    uint32_t reserved;
    uint64_t scratch_bytes;
    uint64_t read_mask, written_mask; /* bit i: buffer i */
    /* At the hinted dims: iterations of the parallel loop, and what all of them cost. */
    int64_t hint_work, hint_bytes, hint_operations;
};

struct bundle_launch {
    uint32_t kernel;               /* of the plan */
    uint32_t first_buffer;         /* into indices: buffers of the plan, as many as the kernel has */
    uint32_t first_dim;            /* into indices */
    uint32_t grid[3];              /* dims; CUDA */
    uint32_t work;                 /* dim; CPU */
    bundle_string nodes;           /* nodes that it computes, "Conv #41, Relu #42" */
    uint32_t condition;            /* dim: launched where it is not 0; BUNDLE_NONE: always; CUDA */
    uint32_t first_map, map_count; /* CUDA: tensor maps, parameters behind the dims, in order */
    uint32_t reserved;
};

/* How the copy engine sees a buffer. Encoded when a launch is first made and anew when the buffer's address
 * or a size changes: for buffers of the arena and constants once a prepared range, for inputs and outputs in
 * enqueue. */
struct bundle_tensor_map {
    uint32_t buffer; /* among the kernel's buffers */
    uint32_t dtype, rank;
    uint32_t swizzle;   /* bytes: 0, 32, 64, 128 */
    uint32_t first_dim; /* into indices: `rank` sizes, fastest first, then rank - 1 strides in elements */
    uint32_t box[BUNDLE_MAX_MAP_RANK];
};

enum bundle_control_kind { BUNDLE_IF, BUNDLE_WHILE };

/* Launches that run by a condition, read when their turn comes: IF: [first, middle) where it is true, else [middle, end).
 * WHILE: [first, end) as long as it is true; middle is end. A plan's controls are sorted by `first`, outer ones before
 * those in them; none is empty. */
struct bundle_control {
    uint32_t kind;
    uint32_t condition; /* buffer of the plan: bool, its number of elements a constant */
    uint32_t first, middle, end;
    uint32_t inner; /* how many of the next ones are in this one */
};

/* Copies from inputs and constants into outputs that are not aliased run before the launches, the others
 * behind. */
struct bundle_copy {
    uint32_t from, to; /* buffers of the plan */
};

enum bundle_image_kind { BUNDLE_CUBIN, BUNDLE_PTX };

struct bundle_image {
    uint32_t kind;
    uint32_t first_kernel, kernel_count; /* of the plan */
    uint32_t reserved;
    uint64_t offset, bytes; /* in code; PTX ends with a NUL */
};

struct bundle_fact_row {
    bundle_string key, value;
};

#endif

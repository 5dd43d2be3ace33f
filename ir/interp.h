/* The interpreter: runs Definitions directly, bounds-checked, limited in steps and memory. It folds constants and is the
 * independent executor that the fast paths are checked against. Sums of floats accumulate in f64 and are rounded once. */
#ifndef GPUCC_IR_INTERP_H
#define GPUCC_IR_INTERP_H

#include "ir/definition.h"

struct interp_limits {
    uint64_t steps; /* expression evaluations, 0: no limit */
    uint64_t bytes; /* of temporaries */
};

enum interp_status {
    INTERP_DONE,
    INTERP_OUT_OF_RANGE, /* an index left its buffer: a defect of the Definition, or of the input values */
    INTERP_STEPS,
    INTERP_MEMORY,
    INTERP_DIMS,    /* a dim overflowed */
    INTERP_STORAGE, /* a buffer's storage could not be read or written */
};

/* A buffer that is too large to be held: bytes at an offset, read and written in pieces. */
struct interp_storage {
    bool (*read)(void *user, uint64_t at, void *data, size_t bytes);
    bool (*write)(void *user, uint64_t at, const void *data, size_t bytes); /* NULL: only read */
    void *user;
};

struct interp_buffer {
    void *memory;
    const struct interp_storage *storage; /* when memory is NULL */
};

/* What to do without memory: pages that the window onto storage has (0: 64 MB), and storage for temporaries beyond what
 * may be held. */
struct interp_spill {
    uint32_t pages;
    uint64_t held; /* bytes of temporaries in memory */
    bool (*take)(void *user, uint64_t bytes, struct interp_storage *out);
    void *user;
};

/* buffers[i]: memory of definition buffer i in its storage type, packed; temporaries may be NULL (allocated within). Sizes
 * come from the buffers' types under `symbol_values`. Uses `allocator` only. Thread safe. */
enum interp_status interpret(const struct definition *definition, const int64_t *symbol_values,
                             void *const *buffers, const struct interp_limits *limits,
                             const struct allocator *allocator);

/* The same with buffers that need not be in memory: what is behind storage goes through a bounded set of pages, in an order
 * of points that reads and writes each page few times. `spill` may be NULL. */
enum interp_status interpret_stored(const struct definition *definition, const int64_t *symbol_values,
                                    const struct interp_buffer *buffers, const struct interp_spill *spill,
                                    const struct interp_limits *limits, const struct allocator *allocator);

/* Symbolic execution: the contents (dims) of an integer or bool output of at most MAX_CONTENTS elements, from the contents
 * of the inputs. contents[b]: one dim an element, or NULL when unknown; floats hold integral values where known. Writes
 * `out` (DIM_NONE where unknown) and returns true when at least one element is known. */
bool interpret_symbolic(const struct definition *definition, const dim *const *contents, uint32_t output_buffer,
                        dim *out, uint32_t count);

#endif

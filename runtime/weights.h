/* The constants of one plan in memory, read from the file once, their hashes checked on the way. Contexts of
 * one model share a set when it lies in the same place (host, or one CUDA context). Weights that were
 * replaced (replace.h) stand beside it. */
#ifndef GPUCC_RUNTIME_WEIGHTS_H
#define GPUCC_RUNTIME_WEIGHTS_H

#include "runtime/model.h"

/* Where weights are put. */
struct weights_place {
    void *owner; /* equal for places that can share: the CUDA context, NULL for the host */
    bool shared; /* false: a set of the context's own */
    void *user;
    void *(*allocate)(void *user, size_t bytes, struct runtime_error *error); /* NULL: failed, text written */
    void (*release)(void *user, void *memory, size_t bytes);
    /* Any thread; `to` is memory + offset. */
    gpucc_status (*put)(void *user, void *to, const void *data, size_t bytes, struct runtime_error *error);
};

/* What stands in the file, read once. */
struct weights_base {
    uint32_t references;
    unsigned char *memory; /* NULL when there are no bytes */
    uint64_t bytes;
    uint64_t *offsets; /* [constant of the bundle]: in memory; UINT64_MAX: not of this plan */
};

/* One state of the weights: the file's, with those that were replaced until then. It never changes; contexts
 * go from one to the next in `prepare`. */
struct weights {
    struct weights *next;
    const struct bundle_plan *plan;
    struct weights_place place;
    uint64_t generation; /* of the model when it was made */
    uint32_t references;
    struct weights_base *base;
    void **replaced; /* [constant]: memory of the place, or NULL: the base's; NULL: none is */
};

/* The current state. `old`: what the context has now, or NULL; its base is shared, and it stays the caller's.
 */
gpucc_status weights_acquire(struct runtime_model *model, const struct bundle_plan *plan,
                             const struct weights_place *place, const struct weights *old,
                             struct weights **weights, struct runtime_error *error);
/* Gives the memory back, by the releasing context's `place`, with the last reference. */
void weights_release(struct runtime_model *model, struct weights *weights, const struct weights_place *place);
/* A constant of the plan, in the place's memory. */
void *weights_constant(const struct weights *weights, uint32_t constant);
/* A constant as the file has it, into host memory; its hashes checked. */
gpucc_status weights_read(const struct runtime_model *model, uint32_t constant, void *to,
                          struct runtime_error *error);

#endif

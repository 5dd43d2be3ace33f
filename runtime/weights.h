/* The constants of one plan in memory, read from the file once, their hashes checked on the way. Contexts of
 * one model share a set when it lies in the same place (host, or one CUDA context). */
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

struct weights {
    struct weights *next;
    const struct bundle_plan *plan;
    struct weights_place place;
    uint32_t references;
    unsigned char *memory; /* NULL when there are no bytes */
    uint64_t bytes;
    uint64_t *offsets; /* [constant of the bundle]: in memory; UINT64_MAX: not of this plan */
};

gpucc_status weights_acquire(struct runtime_model *model, const struct bundle_plan *plan,
                             const struct weights_place *place, struct weights **weights,
                             struct runtime_error *error);
/* Gives the memory back, by the releasing context's `place`, with the last reference. */
void weights_release(struct runtime_model *model, struct weights *weights, const struct weights_place *place);

#endif

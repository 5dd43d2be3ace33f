/* Places buffers with known live ranges in one arena. Pure: used by `prepare` in the runtime and by the
 * compiler, which states the arena's size. */
#ifndef GPUCC_RUNTIME_ARENA_PLAN_H
#define GPUCC_RUNTIME_ARENA_PLAN_H

#include <stdint.h>

struct arena_item {
    uint64_t bytes;       /* in */
    uint32_t first, last; /* in: live from .. to, inclusive */
    uint64_t offset;      /* out: a multiple of the alignment; 0 for an item without bytes */
};

/* `order`: scratch of the caller, 2 * count words. `alignment`: a power of two. *total gets the arena's
 * bytes. Returns 0 when the sizes do not fit 64 bits. Equal input gives equal output. */
int arena_plan(struct arena_item *items, uint32_t count, uint64_t alignment, uint32_t *order,
               uint64_t *total);

/* The largest sum of bytes, rounded up to the alignment, that is live at one time: no arena is smaller. Same
 * scratch. */
uint64_t arena_plan_live(const struct arena_item *items, uint32_t count, uint64_t alignment, uint32_t *order);

#endif

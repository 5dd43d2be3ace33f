/* The trailing axes of a nest that are one flat stretch of every buffer that they index: neighbouring points
 * are neighbours in memory there, so runs of points are loaded and stored by one access. The stretch starts
 * at an axis from which on every load and store either ends in exactly those axes, over dims of their
 * extents, or does not hang on them at all (a broadcast). A run never leaves the stretch where the stretch's
 * length divides by the run's. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_STRETCH_H
#define GPUCC_CODEGEN_STRATEGY_GPU_STRETCH_H

#include "codegen/strategy/gpu/gpu_common.h"

enum { MOST_RUN = 16 }; /* elements of one access */

struct stretch {
    const struct nest *nest;
    uint32_t first; /* axis */
    dim length;
    bool flat[MAX_BUFFERS];  /* loaded along the stretch */
    expr loads[MAX_BUFFERS]; /* the load node of a flat buffer */
};

/* Is first .. rank-1 a stretch of the nest's stores? */
bool find_stretch_from(const struct strategy_context *context, const struct nest *nest, uint32_t first,
                       struct stretch *out);
/* Longest run that a 16-byte access of the widest element allows, whatever the length; 1: a type that has no
 * runs. */
int32_t stretch_widest_run(const struct strategy_context *context, const struct stretch *s);
/* Flat index into a buffer: its indices before the stretch (in the definition's pool), then the position
 * within it. */
expr stretch_index(const struct strategy_context *context, const struct stretch *s,
                   const struct lowering *lowering, uint32_t buffer, const expr *indices, expr position);

#endif

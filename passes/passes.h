/* The shared passes, one function a file; pipeline.c orders them. */
#ifndef GPUCC_PASSES_PASSES_H
#define GPUCC_PASSES_PASSES_H

#include "passes/pass.h"

bool pass_import_cleanup(struct pass_context *context);
bool pass_shapes(struct pass_context *context);
bool pass_fold(struct pass_context *context);
bool pass_canonicalise(struct pass_context *context);
bool pass_cse(struct pass_context *context);
bool pass_hoist(struct pass_context *context);
bool pass_dead_code(struct pass_context *context);

/* ---- what several passes share (forward.c)
 * ------------------------------------------------------------------------ */

/* Values that stand for others. A pass collects them while it walks and applies them once, so that a walk
 * stays linear in the graph. */
struct forward {
    struct arena *arena;
    VEC(value_id) to; /* [value]: 0: itself */
};
void forward_init(struct forward *forward, struct arena *arena);
void forward_add(struct forward *forward, value_id old, value_id new_value);
value_id forward_of(const struct forward *forward, value_id value);
/* Every use in the graph: node inputs, region results, graph outputs. */
void forward_apply(const struct forward *forward, struct graph *graph);

#endif

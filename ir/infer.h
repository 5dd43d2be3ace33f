/* Shape inference: the type of every value, and the contents of small integer tensors, by one function an
 * operator.
 *
 * infer_node also *binds*: it may rewrite its node so that shape inputs become attributes or vanish (ops.def
 * says what is left), or replace the node by others (Flatten -> Reshape, Split -> Slices, Shape -> Dims). A
 * shape that hangs on unknown values is an error E0304; shapes that cannot agree are E0302, wrong element
 * types E0301; every problem of the graph is reported in one run: a failed node's results get unknown types
 * and nodes fed by them are skipped silently.
 *
 * Merges of dims go through dim_merge, with the node's location as the reason. */
#ifndef GPUCC_IR_INFER_H
#define GPUCC_IR_INFER_H

#include "ir/graph.h"

/* A branch that is being walked, and those around it: it runs where the condition is `holds`. */
struct infer_path {
    const struct infer_path *around;
    value_id condition;
    bool holds;
};

struct infer {
    struct graph *graph;
    struct diagnostics *diagnostics;
    uint32_t failures;
    struct exprs *pool; /* NULL at first; for the Definitions that find contents */
    const struct infer_path *path; /* NULL: outside all branches */
    bool appends; /* set by infer_graph: nodes made beside a node go to the end of its region, it places them
                   */
};

/* One node whose inputs have types. False: reported; its results stay unknown. */
bool infer_node(struct infer *infer, node_id node);
/* Every node in order; then dims are brought up to date after merges (repeated until none changes). False
 * when any problem was reported. */
bool infer_graph(struct graph *graph, struct diagnostics *diagnostics);

typedef bool infer_function(struct infer *infer, node_id node); /* infer_<shape>: see infer_internal.h */

/* Every dim of the graph with all merges applied. False: one is no longer representable (reported). */
bool infer_refresh_graph(struct graph *graph, struct diagnostics *diagnostics);

/* The known elements of a value (constants are read on demand); NULL when none is known. Elements may be
 * DIM_NONE. */
const dim *infer_value_contents(struct infer *infer, value_id value, uint32_t *count);

#endif

/* Shape inference: the type of every value, and the contents of small integer tensors, by one function an operator.
 *
 * infer_node also *binds*: it may rewrite its node so that shape inputs become attributes or vanish (ops.def says what is
 * left), or replace the node by others (Flatten -> Reshape, Split -> Slices, Shape -> Dims). A shape that hangs on
 * unknown values is an error E0304; shapes that cannot agree are E0302, wrong element types E0301; every problem of the
 * graph is reported in one run: a failed node's results get unknown types and nodes fed by them are skipped silently.
 *
 * Merges of dims go through dim_merge, with the node's location as the reason. */
#ifndef GPUCC_IR_INFER_H
#define GPUCC_IR_INFER_H

#include "ir/graph.h"

struct infer {
    struct graph *graph;
    struct diagnostics *diagnostics;
    uint32_t failures;
};

/* One node whose inputs have types. False: reported; its results stay unknown. */
bool infer_node(struct infer *infer, node_id node);
/* Every node in order; then dims are brought up to date after merges (repeated until none changes). False when any
 * problem was reported. */
bool infer_graph(struct graph *graph, struct diagnostics *diagnostics);

/* Helpers for the infer_* functions (ir/infer_... .c). */
typedef bool infer_function(struct infer *infer, node_id node);
bool infer_fail(struct infer *infer, node_id node, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5))); /* always false */
void infer_set(struct infer *infer, node_id node, uint32_t output, enum dtype dtype, int rank, const dim *dims);
/* The broadcast of two shapes by ONNX's rule and design.md section 6. */
bool infer_broadcast(struct infer *infer, node_id node, const struct tensor_type *a, const struct tensor_type *b,
                     int *rank, dim *dims);
/* a and b must be equal: merge or report. */
bool infer_equal(struct infer *infer, node_id node, dim a, dim b, const char *what);
/* "f32[12, 7, s0]" for messages, in the diagnostics' arena. */
const char *infer_type_text(struct infer *infer, const struct tensor_type *type);

#endif

/* Where constants come from. A constant is an initialiser of the model, a literal, or what a node made of
 * other constants: then it remembers that node, and with it the steps from the initialisers to what stands in
 * the bundle. A weight that is replaced at run time goes through the same steps (codegen/plan_init.c).
 *
 * A decision that reads a constant's value holds for that value only: it freezes the initialisers behind it,
 * with the reason that a refused replacement is given. */
#ifndef GPUCC_IR_PROVENANCE_H
#define GPUCC_IR_PROVENANCE_H

#include "ir/graph.h"

/* The value was read to decide `what`, "the shape", of the node at `location`. */
void graph_freeze(struct graph *graph, value_id value, const struct location *location, const char *what);
/* The same for all inputs of a node whose result is known now. */
void graph_freeze_inputs(struct graph *graph, node_id node, const char *what);
/* The value, a result of the node, is a constant from now on and the node goes. Where the node has other
 * inputs than constants, they were read for what they are: they freeze. */
void graph_record_fold(struct graph *graph, value_id value, node_id node);

/* The node that makes a constant, in the graph or folded; 0: it is an initialiser or a literal. */
node_id constant_maker(const struct graph *graph, value_id value);
/* An initialiser that may be replaced. */
bool constant_is_weight(const struct graph *graph, value_id value);
/* flags[value]: hangs on at least one initialiser that may be replaced. For values that are constant. */
bool *varying_values(const struct graph *graph, struct arena *arena);

#endif

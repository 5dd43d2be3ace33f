/* The init program: the part of a graph that hangs on constants alone. Its nodes run when the bundle is written, not when
 * the model runs; what they compute stands in the bundle as constants. */
#ifndef GPUCC_IR_INIT_H
#define GPUCC_IR_INIT_H

#include "ir/graph.h"

/* flags[value]: a constant, or the result of a node of the graph's body whose inputs are all so flagged, whose results and
 * attributes have constant dims, and that is neither random nor control flow. */
bool *init_values(const struct graph *graph, struct arena *arena);

#endif

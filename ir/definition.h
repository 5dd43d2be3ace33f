/* Definitions: what an operator computes, without threads, blocks, memory spaces or targets. A list of loop nests over
 * named buffers, run one after the other.
 *
 * A nest has `rank` parallel axes (0 .. rank-1) and `reduce_rank` reduced axes (rank .. rank+reduce_rank-1).
 *   for every point of the parallel axes:
 *       reduced[r] = combine over the reduced axes of reductions[r].body       for each reduction r
 *       each store: store.buffer[store.indices or the parallel axes] = store.value
 * A reduction over an empty domain gives its neutral element (0, 1, -inf or the lowest integer, +inf or the highest).
 * Bodies may load earlier buffers; they cannot see REDUCED. Stores may use REDUCED and the parallel axes. Buffers that
 * one nest stores, later nests load; no nest loads what it stores. Stored indices are a bijection onto the buffer's
 * elements together with the other nests that store to it: every element of an output is written exactly once.
 *
 * The same structure is a *group* once its buffers are bound to values (ir/group.h): what a strategy turns into kernels. */
#ifndef GPUCC_IR_DEFINITION_H
#define GPUCC_IR_DEFINITION_H

#include "ir/expr.h"
#include "ir/graph.h"

enum { MAX_AXES = 24, MAX_BUFFERS = 64 };

enum buffer_role { BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_TEMPORARY };

struct buffer {
    enum buffer_role role;
    struct tensor_type type;
};

enum reduce_op { REDUCE_SUM, REDUCE_PRODUCT, REDUCE_MAX, REDUCE_MIN };

struct reduction {
    enum reduce_op op;
    expr body; /* of a compute type: the accumulator's type */
};

struct nest_store {
    uint32_t buffer;
    const expr *indices; /* NULL: the parallel axes, one a dim of the buffer; else one a dim of the buffer */
    expr value;          /* of the buffer's element type */
};

struct nest {
    uint32_t rank, reduce_rank;
    dim extents[MAX_AXES]; /* parallel axes, then reduced ones */
    uint32_t reduction_count, store_count;
    struct reduction *reductions;
    struct nest_store *stores;
};

struct definition {
    struct exprs *pool;
    VEC(struct buffer) buffers; /* inputs in the node's order (absent ones are skipped: see definition_input) first */
    VEC(struct nest) nests;
};

/* The Definition of one node with known types. Memory: the pool's arena. False when the operator has none for these
 * types or attributes (recorded as E0403). */
bool define_node(const struct graph *graph, node_id node, struct exprs *pool, struct diagnostics *diagnostics,
                 struct definition *out);

/* The buffer of input i, or -1 when the node does not have that input. Inputs that repeat have buffers of their own. */
int definition_input(const struct graph *graph, node_id node, uint32_t input);

void definition_print(const struct definition *definition, struct text *out);
/* Every index provably or structurally in range is not checked here (the interpreter checks); this verifies ranks, types,
 * roles and order. */
bool definition_verify(const struct definition *definition, struct text *why);

const char *reduce_op_name(enum reduce_op op);

/* Building helpers for the files of ir/definitions. */
uint32_t definition_buffer(struct definition *d, enum buffer_role role, struct tensor_type type);
struct nest *definition_nest(struct definition *d, uint32_t rank, const dim *extents, uint32_t reduce_rank,
                             const dim *reduce_extents);
expr nest_axis(const struct definition *d, const struct nest *nest, uint32_t axis);
uint32_t nest_reduce(struct definition *d, struct nest *nest, enum reduce_op op, expr body); /* index for REDUCED */
void nest_store(struct definition *d, struct nest *nest, uint32_t buffer, const expr *indices, expr value);

#endif

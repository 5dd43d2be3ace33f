/* Definitions: what an operator computes, without threads, blocks, memory spaces or targets. A list of loop
 * nests over named buffers, run one after the other.
 *
 * A nest has `rank` parallel axes (0 .. rank-1) and `reduce_rank` reduced axes (rank .. rank+reduce_rank-1).
 *   for every point of the parallel axes:
 *       reduced[r] = combine over the reduced axes of reductions[r].body       for each reduction r
 *       each store: store.buffer[store.indices or the parallel axes] = store.value
 * A reduction over an empty domain gives its neutral element (0, 1, -inf or the lowest integer, +inf or the
 * highest).
 *
 * A *scan* has one ordered axis behind the parallel ones (axis `rank`): its stores run at every point of it,
 * in order, and REDUCED is the combination of the bodies up to and including that point. Exclusive and
 * reverse scans are index maps: the body loads the point before, or counted from the end.
 *
 * A *sort* has one reduction whose body, of type u32 or u64, is the key of each point of the source axis
 * (axis `rank`); the keys of a row ascend, equal ones keep their order. Its stores run at every point of the
 * place axis (axis `rank + 1`, not longer than the source axis), where REDUCED is an i64: which source point
 * stands at that place.
 *
 * A *scatter* has no reductions and one ordered axis behind the parallel ones (axis `rank`): its one store
 * runs at every point of that axis, in order. It may store to an element again, which earlier nests or
 * earlier points stored, and its value may load the element that it stores to. Points that differ in a
 * parallel axis never store to the same element.
 *
 * A *filter* goes through its candidates in order (axis `rank`) and keeps those that no kept one rules out. It
 * has three reductions: whether a candidate is let in (u32, not 0), whether it is ruled out by the one at axis
 * `rank + 1` (u32, not 0; same extent, asked only of kept ones before it), and how many of a row are kept at
 * most (i64; hangs on the parallel axes alone). Its stores run at every candidate, where REDUCED(0), a u32, is 1
 * for the kept ones.
 *
 * A store with a condition stores nothing where it is false.
 *
 * Bodies may load earlier buffers; they cannot see REDUCED. Stores may use REDUCED and the parallel axes.
 * Buffers that one nest stores, later nests load; no nest but a scatter loads what it stores. Stored indices
 * are a bijection onto the buffer's elements together with the other nests that store to it, scatters apart:
 * every element of an output is written exactly once before them.
 *
 * The same structure is a *group* once its buffers are bound to values (ir/group.h): what a strategy turns
 * into kernels. */
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
    expr condition;      /* a bool; 0: always. The value and the loads in it must be valid all the same. */
};

enum nest_kind {
    NEST_REDUCE, /* with or without reductions */
    NEST_SCAN,
    NEST_SORT,
    NEST_SCATTER,
    NEST_FILTER,
};

struct nest {
    enum nest_kind kind;
    uint32_t rank, reduce_rank;
    dim extents[MAX_AXES]; /* parallel axes, then reduced or ordered ones */
    uint32_t reduction_count, store_count;
    struct reduction *reductions;
    struct nest_store *stores;
};

struct definition {
    struct exprs *pool;
    VEC(struct buffer)
    buffers; /* inputs in the node's order (absent ones are skipped: see definition_input) first */
    VEC(struct nest) nests;
};

/* The Definition of one node with known types. Memory: the pool's arena. False when the operator has none for
 * these types or attributes (recorded as E0403). */
bool define_node(const struct graph *graph, node_id node, struct exprs *pool, struct diagnostics *diagnostics,
                 struct definition *out);

/* The buffer of input i, or -1 when the node does not have that input. Inputs that repeat have buffers of
 * their own. */
int definition_input(const struct graph *graph, node_id node, uint32_t input);

void definition_print(const struct definition *definition, struct text *out);
/* Every index provably or structurally in range is not checked here (the interpreter checks); this verifies
 * ranks, types, roles and order. */
bool definition_verify(const struct definition *definition, struct text *why);

const char *reduce_op_name(enum reduce_op op);

/* How a value of the type stands in a buffer: packed elements (of less than a byte) as a vector of bytes. */
struct tensor_type storage_type(struct dims *dims, struct arena *arena, const struct tensor_type *type);

/* Building helpers for the files of ir/definitions. */
uint32_t definition_buffer(struct definition *d, enum buffer_role role, struct tensor_type type);
struct nest *definition_nest(struct definition *d, uint32_t rank, const dim *extents, uint32_t reduce_rank,
                             const dim *reduce_extents);
expr nest_axis(const struct definition *d, const struct nest *nest, uint32_t axis);
uint32_t nest_reduce(struct definition *d, struct nest *nest, enum reduce_op op,
                     expr body); /* index for REDUCED */
void nest_store(struct definition *d, struct nest *nest, uint32_t buffer, const expr *indices, expr value);
void nest_store_where(struct definition *d, struct nest *nest, uint32_t buffer, const expr *indices,
                      expr value, expr condition);

/* The axes that the nest's stores may use: 0 .. the result - 1. */
uint32_t nest_store_axes(const struct nest *nest);
/* The type of REDUCED in the nest's stores. */
enum dtype nest_reduced_dtype(const struct definition *d, const struct nest *nest, uint32_t reduction);
/* All nests reduce or map, and store without conditions: what strategies take that are not made for more. */
bool definition_is_plain(const struct definition *definition);

#endif

/* Groups: what one strategy turns into kernels. A group is a Definition whose buffers are bound to values of the graph:
 * the nests of several nodes, with producers inlined into their consumers' loads (prologues, views) and consumers merged
 * into their producers' stores (epilogues). Its nests are its stages.
 *
 * Two groups that are equal after canonical naming (buffers in order, dims renumbered) are one kernel with many
 * launches: group_key is that canonical text. */
#ifndef GPUCC_IR_GROUP_H
#define GPUCC_IR_GROUP_H

#include "ir/definition.h"

struct group {
    struct definition body;
    value_id *values; /* [body.buffers.count]; 0 for temporaries that no value of the graph names */
    const struct location *location; /* the nodes that it computes, linked by `also` */
    VEC(node_id) nodes;
    /* A control-flow node (If, While): its body has buffers for what it and its bodies read and for its results, and no
     * nests; `bodies` are those of the node, grouped each for itself. */
    node_id control; /* 0: none */
    struct grouping *bodies;
};

/* `value` has the elements of `of` in the same flat order: it is that value's memory. */
struct value_view {
    value_id value, of;
};

/* All groups of one region for one target, in execution order. Every value that is not inside one group is stored by exactly
 * one, or is a view of one that is. */
struct grouping {
    VEC(struct group) groups;
    VEC(struct value_view) views;
};

void group_print(const struct graph *graph, const struct group *group, struct text *out);

/* ---- analysis that strategies share ------------------------------------------------------------------------------ */

/* A contraction: one reduction SUM whose body is a product of two factors, each of which loads from one main operand at
 * indices that hang on axes and dims alone (affine but for broadcasts whose dim is 1 or not at run time, `select(dim == 1,
 * 0, axis)`, and divisions; expr_affine tells). A factor may be an expression around its load (a prologue: dequantise,
 * cast). Axis roles by where an axis appears in the factors: */
enum axis_role {
    AXIS_BATCH,  /* parallel, in both factors (or in neither) */
    AXIS_LEFT,   /* parallel, only in the left factor: rows of a matmul; spatial and batch axes of a convolution */
    AXIS_RIGHT,  /* parallel, only in the right factor: columns; output channels */
    AXIS_REDUCED /* summed */
};
struct contraction {
    uint32_t nest, reduction;
    expr left, right;            /* the factors */
    expr left_load, right_load;  /* the LOAD or LOAD_OR node of each main operand */
    enum axis_role roles[MAX_AXES];
};
/* Finds the contraction of a nest: false with the reason when there is none. */
bool find_contraction(const struct definition *definition, uint32_t nest, struct contraction *out, struct text *why);

/* Flat element index of a load or store: row-major over the buffer's dims. */
expr flat_index(struct exprs *pool, const struct tensor_type *type, const expr *indices);

#endif

/* A contraction seen as a batch of matrix products, for the register-blocked CPU strategies:
 *
 *     for every point of the outer axes:  C[row, column] = sum over depth of A[row, depth] * B[depth, column]
 *
 * Rows are broadcast, columns lie along vectors; either factor can be the one with the columns. A side's axes
 * that lie behind each other in the output are one flattened index; the others are outer. Axes that only a
 * group number of them enters (grouped convolutions) are split first, so that the group is a batch axis. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_PRODUCT_H
#define GPUCC_CODEGEN_STRATEGY_CPU_PRODUCT_H

#include "codegen/strategy.h"

struct side {
    expr factor, load;                   /* in the product's pool; load: its main operand */
    uint32_t axes[MAX_AXES], axis_count; /* flattened, outermost first */
    dim extent;
    bool constant;   /* of one constant buffer alone, all sizes known: packed when the bundle is written */
    uint32_t buffer; /* of `load` */
};

/* The depth index in the order in which panels hold it: digits, the most significant first. An axis is the
 * sum of its digits times their steps. */
struct digit {
    uint32_t axis;
    dim extent;
    int64_t step;
};
enum { MAX_DIGITS = MAX_AXES + 1 };

struct product {
    struct arena *arena;
    struct dims *dims;
    struct definition definition; /* one nest with explicit store indices, in a pool of its own */
    const struct nest *nest;
    enum dtype accumulator;
    struct side rows, columns;
    uint32_t outer[MAX_AXES], outer_count;
    dim outer_extent;
    struct digit digits[MAX_DIGITS];
    uint32_t digit_count;
    dim depth;
    bool swapped; /* consecutive outputs lie along the rows */
};

/* `swap`: the side along which outputs are consecutive becomes the rows. */
bool product_find(const struct strategy_context *context, bool swap, struct product *out, struct text *why);

/* The nest of the group in a form that has groups split; `definition` has one nest with explicit store
 * indices. */
bool product_normalise(const struct strategy_context *context, struct definition *out, struct text *why);

/* By how much an i64 expression grows with an axis; DIM_NONE when that is no dim. */
dim product_growth(const struct product *product, expr index, uint32_t axis);
/* Growth of the flat index of a load with an axis. */
dim product_load_growth(const struct product *product, expr load, uint32_t axis);
bool product_uses(const struct product *product, expr e, uint32_t axis);
/* Sets used[buffer] for every buffer that the expression loads. */
void product_mark_loads(const struct product *product, expr e, bool *used);
/* The same for the nest's stores, and for the buffers that they write. */
void product_mark_stores(const struct product *product, bool *used);

/* Bytes of the buffers, each once; 0 when that is no dim. */
dim product_bytes(const struct product *product);

/* Values of the axes of a flattened side, or of the depth, by div and mod; `pool` may be another one than the
 * product's. */
void side_axes(const struct side *side, const struct product *product, struct exprs *pool, expr index,
               expr *axes);
void depth_axes(const struct product *product, struct exprs *pool, expr depth, expr *axes);

/* Constant side as panels [outer axes that it uses][tiles][depth][width]: what the bundle writer computes. */
struct derived product_recipe(const struct product *product, const struct side *side, uint32_t width);
/* Number of the outer axes' combination within such panels. */
expr product_outer_index(const struct product *product, const struct side *side, struct exprs *pool,
                         const expr *axes);

#endif

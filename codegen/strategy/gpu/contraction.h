/* Tiled contractions on CUDA cores: matrix products and convolutions alike, by the roles of a nest's axes.
 * The axes of one factor, flattened, are the tile's rows, those of the other its columns, the summed ones its
 * depth.
 *
 *     fill shared tiles a[depth][rows], b[depth][columns] with the factors (prologue included), zero beyond
 * the depth each thread: acc[RM][RN] += a[k][its rows] * b[k][its columns] store: the nest's stores (epilogue
 * included) at each point
 *
 * Rows and columns beyond the end are computed at the last one's place and not stored. While a tile is
 * summed, the next one is on its way in registers. A small problem's depth may be split over blocks; a second
 * kernel adds the parts. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_H
#define GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_H

#include "codegen/strategy/gpu/gpu_common.h"

/* What the numbers of a configuration mean. */
enum {
    CONFIG_ROWS, /* tile */
    CONFIG_COLUMNS,
    CONFIG_DEPTH,
    CONFIG_OWN_ROWS, /* of a thread */
    CONFIG_OWN_COLUMNS,
    CONFIG_SPLIT, /* parts of the depth */
};

enum side { SIDE_ROWS, SIDE_COLUMNS };

/* One factor. */
struct operand {
    expr factor, load;       /* in the definition's pool */
    uint32_t axes[MAX_AXES]; /* its own parallel axes, the last one fastest */
    uint32_t count;
    dim extent;       /* their product */
    bool along_depth; /* neighbouring threads fill along the depth, else along the rows or columns */
    uint32_t vector;  /* elements that one load brings */
};

struct contraction_plan {
    const struct definition *body;
    const struct nest *nest;
    enum dtype dtype;           /* of the products and sums */
    struct operand operands[2]; /* [side] */
    uint32_t batch[MAX_AXES], batch_count, depth[MAX_AXES], depth_count;
    dim batches, depth_extent;
    uint32_t lanes;     /* elements of 16 bytes: a thread's rows and columns come in runs of so many */
    bool whole_columns; /* a run of columns never crosses the end of a row of the result */
};

bool contraction_plan_make(const struct strategy_context *context, struct contraction_plan *plan,
                           struct text *why);
bool contraction_build(const struct strategy_context *context, const struct contraction_plan *plan,
                       const struct config *config, struct lowered_group *out);

#endif

/* Matrix products on tensor cores, by form: a nest's one sum over a product of two plain loads, each of which
 * is a matrix in memory with some axes in front. What both strategies share: the plan of the operands, tiles
 * and their places, the store of the sums.
 *
 *     gpu_matmul_mma     warps, cp.async, ldmatrix, mma.sync; sm_80 and newer; any sizes and strides
 *     gpu_matmul_wgmma   the copy engine, warpgroups; sm_90a; strides of 16 bytes, else a launch of the
 * former takes over
 *
 * Rows and columns are tile after tile of the axes that only one factor has, merged into one where they run
 * through memory as one; axes that do not merge, and those that both factors have, are batch axes, merged
 * likewise. */
#ifndef GPUCC_STRATEGY_GPU_MATMUL_H
#define GPUCC_STRATEGY_GPU_MATMUL_H

#include "codegen/strategy/gpu/fragment.h"
#include "codegen/strategy/gpu/gpu_common.h"

enum { SIDE_LEFT, SIDE_RIGHT }; /* rows of the result; its columns */

/* Axes that are one: the last one is the fastest. */
struct axis_run {
    uint32_t axes[MAX_AXES], count;
    dim extent;
    dim strides[2]; /* [side]: elements of its operand from one to the next; the constant 0: the operand does
                       not have it */
};

struct matmul_operand {
    uint32_t buffer; /* of the group */
    bool along;      /* its depth is side by side, else its rows or columns are */
    dim line;        /* elements from one row or column to the next, or of the depth to the next */
    struct axis_run own;
};

enum { MAX_BATCH = 3 }; /* tensor maps have five dims */

struct matmul_plan {
    const struct definition *body;
    const struct nest *nest;
    enum dtype dtype; /* of both operands */
    struct matmul_operand operands[2];
    struct axis_run depth, batch[MAX_BATCH];
    uint32_t batch_count;
    dim batches;
    bool whole_runs; /* eight columns from a multiple of eight on never cross the end of the last axis of the
                        columns */
};

/* What the numbers of a configuration mean. DEPTH is fixed for warpgroups. */
enum { MATMUL_ROWS, MATMUL_COLUMNS, MATMUL_DEPTH, MATMUL_STAGES, MATMUL_WARP_ROWS, MATMUL_WARP_COLUMNS };

bool matmul_plan_make(const struct strategy_context *context, struct matmul_plan *plan, struct text *why);

/* A kernel under construction. */
struct matmul_builder {
    const struct strategy_context *context;
    const struct matmul_plan *plan;
    const int32_t *config;
    struct gpu_kernel k;
    struct exprs *pool;
    expr thread;       /* of the block */
    uint32_t sum, run; /* registers */
};

/* A tile of the result. */
struct matmul_tile {
    expr row, column;      /* its first */
    expr batch[MAX_BATCH]; /* positions in the runs of batch axes */
    expr axes[MAX_AXES];   /* the batch axes are set */
};
void matmul_begin(struct matmul_builder *b, const struct strategy_context *context,
                  const struct matmul_plan *plan, const struct strategy *strategy,
                  const struct config *config);
dim matmul_tiles(const struct matmul_builder *b); /* of all batches */
/* Tiles go in groups of a few rows, so that those that run at once share what they load. `number`: of a tile.
 */
void matmul_place(struct matmul_builder *b, struct block *at, expr number, struct matmul_tile *tile);
/* The nest's stores for a warp's sums, whose first row and column in the tile are given. */
void matmul_store(struct matmul_builder *b, struct block *at, const struct matmul_tile *tile,
                  const struct fragment *fragment, expr warp_row, expr warp_column);

/* gpu_matmul_mma: the cheapest configuration, and a kernel by it. */
struct config matmul_mma_best(const struct strategy_context *context, const struct matmul_plan *plan);
bool matmul_mma_build(const struct strategy_context *context, const struct matmul_plan *plan,
                      const struct config *config, dim condition, struct lowered_group *out);

#endif

/* Shared by the files contraction_*.c that write a contraction's Kernel IR. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_BUILD_H
#define GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_BUILD_H

#include "codegen/strategy/gpu/contraction.h"

enum { MOST_FILLS = 32 };

/* How one side's tile is filled. */
struct fill {
    const struct operand *operand;
    enum side side;
    int64_t length; /* of the tile: rows or columns */
    int64_t
        pitch; /* elements from one line of the tile to the next: a line is one depth, or one row or column */
    int64_t stage;                  /* elements of one stage */
    int64_t across;                 /* loads side by side along a line */
    int64_t lines;                  /* that the threads fill at once */
    int64_t rounds;                 /* loads of a thread and step */
    bool idle;                      /* more threads than loads */
    expr at;                        /* along the rows or columns within the tile, of round 0 */
    expr depth_at;                  /* along the depth within the tile, of round 0 */
    expr position;                  /* packed: flat own position */
    expr own[MOST_FILLS][MAX_AXES]; /* [round, or 0]: values of the operand's own axes */
    expr base[MOST_FILLS];          /* flat_depth: [round]: index at depth 0 */
    uint32_t memory;                /* the operand's */
    uint32_t tile, next;            /* memories: shared; registers on their way to it */
};

struct builder {
    const struct strategy_context *context;
    const struct contraction_plan *plan;
    const int32_t *config;
    struct gpu_kernel k;
    struct exprs *pool;
    int64_t threads, threads_x, threads_y;
    expr axes[MAX_AXES]; /* batch axes are set */
    expr thread, thread_row, thread_column, first_row, first_column, part;
    expr depth_begin, depth_end; /* of this block */
    struct fill fills[2];
    uint32_t sum, own[2];       /* registers: sums; a thread's rows and columns */
    uint32_t results[MAX_AXES]; /* [store]: registers of a run's values; UINT32_MAX: none yet */
    uint32_t
        runs[MAX_BUFFERS]; /* [buffer]: registers of a run of what the epilogue loads; UINT32_MAX: none yet */
    expr loaded;           /* vector of the main operand's elements while a factor is lowered */
    expr lane;             /* of the run that the epilogue computes */
    uint32_t loaded_lane;
};

static inline expr number(struct builder *b, int64_t value)
{
    return expr_index(b->pool, value);
}

/* A constant that the printed kernel calls by name. */
static inline expr named(struct builder *b, int64_t value, const char *label)
{
    return value < 2 ? expr_index(b->pool, value) : kernel_named(b->k.kernel, value, label);
}

static inline expr binary(struct builder *b, enum expr_op op, expr left, expr right)
{
    return expr_binary(b->pool, op, left, right);
}

static inline expr add(struct builder *b, expr left, expr right)
{
    return binary(b, EXPR_ADD, left, right);
}

static inline expr times(struct builder *b, expr left, expr right)
{
    return binary(b, EXPR_MUL, left, right);
}

static inline expr scaled(struct builder *b, expr value, int64_t factor)
{
    return binary(b, EXPR_MUL, value, number(b, factor));
}

expr contraction_depth_step(struct builder *b); /* the tile's depth, by name */

/* Which loads a thread does; before the loop over the depth. */
void contraction_fill_begin(struct builder *b, struct block *top, enum side side);
/* Starts the copies of one step into a stage. */
void contraction_fill_copy(struct builder *b, struct block *at, struct fill *fill, expr depth0, expr stage);
/* The same by way of registers, in two parts. */
void contraction_fill_load(struct builder *b, struct block *at, struct fill *fill, expr depth0);
void contraction_fill_store(struct builder *b, struct block *at, struct fill *fill, expr stage);
/* Index into a tile. */
expr contraction_tile_index(struct builder *b, const struct fill *fill, expr stage, expr depth, expr own);

/* The derived constant of a packed operand; its number in out->derived. */
uint32_t contraction_pack(const struct strategy_context *context, const struct contraction_plan *plan,
                          const struct operand *operand, struct lowered_group *out);
dim contraction_packed_pitch(const struct contraction_plan *plan, const struct operand *operand);

/* The sums to where they belong: the nest's stores, or the temporary `parts` (UINT32_MAX: none). */
void contraction_store(struct builder *b, struct block *top, uint32_t parts);
/* The second kernel of a split depth. */
void contraction_sum_parts(const struct strategy_context *context, const struct contraction_plan *plan,
                           int64_t parts, struct lowered_group *out);
dim contraction_parts_pitch(
    const struct contraction_plan *plan); /* columns of the temporary, whole vectors */

#endif

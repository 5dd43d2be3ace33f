/* Softmax, norms and reductions, with whatever expressions stand around them: nests that share their leading
 * points, the rows (row_group.h). One row is a warp's (several rows a block) or a block's. Each reduction is
 * combined by shuffles within a warp and, for a block, through one shared slot a warp. What a row's
 * reductions give stays in registers: buffers of the size of the rows that only this group reads are never in
 * memory.
 *
 * A row of up to some thousand elements is kept: each thread loads its elements once, by 16 bytes where the
 * row's length allows, and every nest reads them from registers. Where the length is free the kernel asks at
 * run time whether it fits; else, and for longer rows, threads stride over the row in every nest. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_ROWS_H
#define GPUCC_CODEGEN_STRATEGY_GPU_ROWS_H

#include "codegen/strategy/gpu/gpu_common.h"
#include "codegen/strategy/row_group.h"

enum {
    ROWS_THREADS, /* of a row */
    ROWS_ROWS,    /* of a block; more than 1: a warp each */
    ROWS_KEPT     /* elements of a row that a thread keeps; 0: none */
};

struct rows_plan {
    struct row_group group;
    uint32_t inner[MAX_ROW_NESTS][MAX_AXES], inner_count[MAX_ROW_NESTS]; /* a nest's axes within the row */
    dim length;              /* of every nest's inner axes; DIM_NONE: they differ */
    uint32_t vector;         /* elements of one access */
    bool along[MAX_BUFFERS]; /* some load of the buffer lies along the row */
    uint32_t kept_loads;     /* how many buffers do */
};

bool rows_plan_make(const struct strategy_context *context, struct rows_plan *plan, struct text *why);
/* The load, of nest n, lies along the row: its last indices are the inner axes. */
bool rows_load_is_along(const struct strategy_context *context, const struct rows_plan *plan, uint32_t n,
                        uint32_t buffer, const expr *indices);
bool rows_build(const struct strategy_context *context, const struct config *config,
                struct lowered_group *out, struct text *why);

#endif

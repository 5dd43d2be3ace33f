/* Sums of tensor cores in registers. A warp has `tall` x `wide` tiles of 16 rows and 8 columns, tile after
 * tile row by row, four registers of a lane each: row lane / 4, columns 2 (lane % 4) and the next, then the
 * same eight rows below (m16n8 of mma.sync; wgmma's 64 rows are four warps of tall = 1). Expressions are
 * lowered on runs of eight columns of one row, which the stage fragment_run gathers from a quad of lanes. */
#ifndef GPUCC_STRATEGY_GPU_FRAGMENT_H
#define GPUCC_STRATEGY_GPU_FRAGMENT_H

#include "codegen/kernel_ir.h"

enum { FRAGMENT_ROWS = 16, FRAGMENT_COLUMNS = 8, FRAGMENT_RUN = 8 };

struct fragment {
    uint32_t tall, wide; /* wide: a multiple of four */
};

uint32_t fragment_registers(const struct fragment *fragment);
/* Loops over the runs that a lane gets, written out: the statements for one run go to `body`. `run` is
 * filled; `row` and `column` are the run's place in the warp's part. */
void fragment_runs(struct block *at, const struct fragment *fragment, uint32_t sum, uint32_t run, expr thread,
                   struct block *body, expr *row, expr *column);

#endif

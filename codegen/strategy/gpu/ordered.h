/* Scans, sorts and scatters on a GPU: one nest each, for the plain strategy, which takes every group nest by
 * nest. Nothing hangs on the order in which blocks run: equal inputs give equal bits. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_ORDERED_H
#define GPUCC_CODEGEN_STRATEGY_GPU_ORDERED_H

#include "codegen/strategy/gpu/gpu_common.h"

void gpu_build_filter(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void gpu_build_scan(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void gpu_build_scatter(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void gpu_build_sort(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
double gpu_ordered_seconds(const struct strategy_context *context, uint32_t nest);

/* A temporary of so many elements. */
uint32_t gpu_temporary(const struct strategy_context *context, struct lowered_group *out, enum dtype dtype,
                       dim elements);
/* A parameter for it, read and perhaps written. Before any other memory. */
uint32_t gpu_temporary_parameter(struct gpu_kernel *k, uint32_t temporary, enum dtype dtype,
                                 const char *label);

/* ---- scan_block.c: a block of threads goes along one row, a tile at a time
 * ---------------------------------------------------- */

enum { SCAN_THREADS = 256, SCAN_ITEMS = 8, SCAN_TILE = SCAN_THREADS * SCAN_ITEMS, SCAN_MOST = 8 };

struct block_scan {
    struct kernel *kernel;
    expr thread;    /* within the block */
    uint32_t count; /* values that are scanned together */
    enum reduce_op ops[SCAN_MOST];
    enum dtype dtypes[SCAN_MOST];
    uint32_t
        carries[SCAN_MOST]; /* mutable variables: what stands before the tile; the caller declares them */
    uint32_t shared[SCAN_MOST], items[SCAN_MOST]; /* memories, by block_scan_memories */
    void *user;
    /* values[] at a position of the row that exists. */
    void (*load)(struct block_scan *scan, struct block *at, expr position, expr *values);
    /* What stands before the position, and up to it; may be NULL. */
    void (*store)(struct block_scan *scan, struct block *at, expr position, const expr *before,
                  const expr *running);
};

/* Adds the memories; behind all parameters. */
void block_scan_memories(struct block_scan *scan);
/* One tile from position `begin` of a row of `length`; the carries move on. All threads of the block must
 * come here. */
void block_scan_tile(struct block_scan *scan, struct block *at, expr begin, expr length);

#endif

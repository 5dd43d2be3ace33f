/* What the CPU strategies know of one nest before they write loops: loads and stores at flat indices, axes
 * that run through memory as one merged into one, and how far each access moves along an axis. No Kernel IR
 * yet. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_NEST_H
#define GPUCC_CODEGEN_STRATEGY_CPU_NEST_H

#include "ir/group.h"

enum { NO_AXIS = MAX_AXES };
#define STRIDE_UNKNOWN INT64_MIN

/* A nest whose stores have one flat index each (indices[0]) and whose LOADs (not LOAD_ORs, nor those of
 * buffers in `kept`) have one flat index. Axes: parallel, then reduced. */
struct flat_nest {
    const struct definition *definition;
    uint64_t kept;
    uint32_t rank, reduce_rank;
    dim extents[MAX_AXES];
    uint32_t reduction_count, store_count;
    struct reduction *reductions;
    struct nest_store *stores;
};

/* Bit b of `kept`: loads and stores of buffer b keep their indices, one a dim. */
void flat_nest_init(struct flat_nest *out, const struct definition *definition, uint32_t nest, uint64_t kept);
/* Drops axes of size 1 and merges neighbours where no index gets a division by it. Parallel axes before
 * `first` stay. */
void flat_nest_merge(struct flat_nest *nest, uint32_t first);

/* Elements that the flat index moves when the axis goes up by one; STRIDE_UNKNOWN when that is no constant.
 */
int64_t index_stride(const struct exprs *pool, expr index, uint32_t axis);

/* Accesses of a nest along an axis as a vector would make them: strides 0 and 1 are good, others bad. Guarded
 * loads count apart, whatever their stride. */
struct access_count {
    uint32_t good, bad, guarded;
};
struct access_count count_accesses(const struct flat_nest *nest, uint32_t axis);
/* A load moves by 1 along the axis and is no guarded one. */
bool has_unit_load(const struct flat_nest *nest, uint32_t axis);
bool has_unit_store(const struct flat_nest *nest, uint32_t axis);

/* Buffers that a nest loads, as bits. */
uint64_t loaded_buffers(const struct definition *definition, const struct nest *nest);

/* Simple operations for one point: bodies for each point of the whole domain, stores for each of the parallel
 * axes. */
uint32_t body_cost(const struct flat_nest *nest);
uint32_t store_cost(const struct flat_nest *nest);
/* Number of points at the hinted dims, and as a dim (DIM_NONE on overflow). */
int64_t hinted(const struct dims *dims, const dim *extents, uint32_t count);
/* All extents constant: their product; else -1. */
int64_t constant_points(const struct dims *dims, const dim *extents, uint32_t count);

#endif

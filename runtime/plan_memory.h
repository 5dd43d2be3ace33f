/* Sizes and places of a plan's buffers for given bounds of the dims: what `prepare`, the workspace query and
 * `info` share. */
#ifndef GPUCC_RUNTIME_PLAN_MEMORY_H
#define GPUCC_RUNTIME_PLAN_MEMORY_H

#include "runtime/dims_program.h"

/* offsets[buffer of the plan]: in the arena; 0 for other kinds. Allocates scratch and gives it back.
 * OUT_OF_RANGE when a size is unknown or does not fit. */
gpucc_status plan_memory_place(const struct bundle_tables *tables, const struct bundle_plan *plan,
                               const struct dim_interval *bounds, uint64_t *offsets, uint64_t *arena_bytes,
                               struct runtime_error *error);

/* Marks the constants that a plan uses (used[constant]) and sums their aligned bytes. */
uint64_t plan_memory_weights(const struct bundle_tables *tables, const struct bundle_plan *plan,
                             unsigned char *used);

#endif

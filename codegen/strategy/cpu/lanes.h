/* Widening: a scalar expression of a kernel, with one lane axis left in it, becomes the same expression on
 * vectors of `lanes` consecutive values of that axis. Loads whose index grows by one a lane become vector
 * loads, loads that do not depend on the lane are broadcast, all others are gathered lane by lane.
 *
 * The lane axis is EXPR_AXIS number 0 of the kernel's pool; it must not survive into a statement. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_LANES_H
#define GPUCC_CODEGEN_STRATEGY_CPU_LANES_H

#include "codegen/kernel_ir.h"
#include "ir/definition.h"

expr lane_axis(const struct kernel *kernel, uint16_t lanes);
/* The expression at one value of the lane axis. */
expr lane_substitute(const struct kernel *kernel, expr e, expr value);
/* Grows by exactly one a lane. */
bool lane_contiguous(const struct kernel *kernel, expr index);
/* Every load of the expression is contiguous in the lane or does not depend on it. */
bool lane_loads_contiguous(const struct kernel *kernel, expr e);
expr lane_widen(const struct kernel *kernel, expr e, uint16_t lanes);
/* Stores the widened value at the lanes of the index: one vector store where it is contiguous. */
void lane_store(struct block *block, uint32_t memory, expr index, expr vector, uint16_t lanes);
/* All stores of a nest at the lanes of the axes as they are lowered; all values before the first store, which
 * may overwrite what another value reads. */
void lane_store_nest(struct block *block, const struct lowering *lowering, const struct nest *nest,
                     uint16_t lanes);

#endif

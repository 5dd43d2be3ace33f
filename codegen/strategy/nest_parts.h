/* What the strategies of every machine ask of a nest's expressions and build for its reductions. */
#ifndef GPUCC_CODEGEN_STRATEGY_NEST_PARTS_H
#define GPUCC_CODEGEN_STRATEGY_NEST_PARTS_H

#include "ir/definition.h"

/* What a reduction over nothing gives. */
expr reduce_neutral(struct exprs *pool, enum reduce_op op, enum dtype dtype);
expr reduce_combine(struct exprs *pool, enum reduce_op op, expr a, expr b);

/* [node, up to e]: e is made of it. */
bool *expr_reached(struct arena *arena, const struct exprs *pool, expr e);
/* Does e use the axis? */
bool expr_uses_axis(struct arena *arena, const struct exprs *pool, expr e, uint32_t axis);
/* loaded[buffer] becomes true for every buffer that is loaded below e, in indices too. */
void expr_mark_loads(struct arena *arena, const struct exprs *pool, expr e, bool *loaded);

#endif

/* Evaluation of a bundle's dims: every row in order, for known values of the symbols or for ranges of them.
 * Results are in arrays of the caller; nothing is allocated. All arithmetic is checked. */
#ifndef GPUCC_RUNTIME_DIMS_PROGRAM_H
#define GPUCC_RUNTIME_DIMS_PROGRAM_H

#include "runtime/tables.h"

struct dim_interval {
    int64_t low, high; /* inclusive; low > high: unknown, or outside i64 */
};

/* values[dim] for symbol_values[symbol]. OUT_OF_RANGE on overflow or division by zero. */
gpucc_status dims_evaluate(const struct bundle_tables *tables, const int64_t *symbol_values, int64_t *values,
                           struct runtime_error *error);

/* Bounds of every dim while the symbols stay in theirs: sound, and exact when each range is one value. A row
 * that hangs on an unknown symbol, overflows or may divide by zero is unknown. */
void dims_bounds(const struct bundle_tables *tables, const struct dim_interval *symbols,
                 struct dim_interval *bounds);

static inline int dim_interval_known(struct dim_interval interval)
{
    return interval.low <= interval.high;
}

#endif

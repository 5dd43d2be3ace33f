/* From the caller's dims to ranges of every symbol and dim: names are matched, merged symbols computed,
 * guards and the compiled range checked. */
#ifndef GPUCC_RUNTIME_SIZES_H
#define GPUCC_RUNTIME_SIZES_H

#include <stdbool.h>

#include "runtime/dims_program.h"

struct sizes {
    struct dim_interval *symbols; /* [symbol_count] */
    struct dim_interval *bounds;  /* [dim_count] */
};

/* NULL pointers when memory runs out. */
bool sizes_allocate(const struct bundle_tables *tables, struct sizes *sizes);
void sizes_release(struct sizes *sizes);

/* Names -> symbols. Symbols that are not named stay unknown. INVALID_ARGUMENT for unknown names and
 * contradictions. */
gpucc_status sizes_name(const struct bundle_tables *tables, const gpucc_dims *dims, struct sizes *sizes,
                        struct runtime_error *error);
/* Settles the symbols that are not known yet, then computes all bounds and checks them. */
gpucc_status sizes_settle(const struct bundle_tables *tables, struct sizes *sizes,
                          struct runtime_error *error);
/* The named dims that are no symbols (constants, sums, ...) against the bounds. */
gpucc_status sizes_check_named(const struct bundle_tables *tables, const gpucc_dims *dims,
                               const struct sizes *sizes, struct runtime_error *error);

/* Text of a guard that does not hold. */
gpucc_status sizes_guard_fails(const struct bundle_tables *tables, uint32_t guard,
                               struct runtime_error *error);

#endif

/* Dims and symbols of a bundle in words. */
#ifndef GPUCC_RUNTIME_DIM_TEXT_H
#define GPUCC_RUNTIME_DIM_TEXT_H

#include "runtime/tables.h"

/* A dim as people read it: "4 * batch + ids[1]", with names of symbols as the tables have them, escaped; cut
 * with "..." when it does not fit. Returns `text`. */
const char *bundle_dim_text(const struct bundle_tables *tables, uint32_t dim, char *text, size_t bytes);
/* "batch", or "ids[1]" for a symbol without a name. Escaped. */
const char *bundle_symbol_text(const struct bundle_tables *tables, uint32_t symbol, char *text, size_t bytes);

#endif

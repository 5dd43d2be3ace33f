/* Scans, sorts, scatters and reductions of few long rows on a CPU: one nest each, for the plain strategy,
 * which takes every group nest by nest. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_ORDERED_H
#define GPUCC_CODEGEN_STRATEGY_CPU_ORDERED_H

#include "codegen/strategy/cpu/emit.h"

void cpu_build_filter(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void cpu_build_scan(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void cpu_build_scatter(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
void cpu_build_sort(const struct strategy_context *context, uint32_t nest, struct lowered_group *out);
/* False: the nest is none of few long rows, or of no form that can be cut. */
bool cpu_build_pieces(const struct strategy_context *context, uint32_t number, const struct flat_nest *nest,
                      struct nest_form form, struct lowered_group *out);
/* By the sizes' hints: so few rows, so long, that workers must share a row. */
bool few_long_rows(const struct dims *dims, const dim *extents, uint32_t rank, uint32_t reduce_rank);
double cpu_ordered_seconds(const struct strategy_context *context, uint32_t nest);

/* A kernel of one nest: the buffers that the nest loads, or stores, or both are its parameters. */
void ordered_begin(struct emitter *emitter, const struct strategy_context *context, uint32_t nest, bool loads,
                   bool stores, const char *what);
/* One more parameter, behind those; before any other memory. */
uint32_t ordered_temporary(struct emitter *emitter, uint32_t temporary, enum dtype dtype, const char *label);
/* A temporary of so many elements. */
uint32_t ordered_temporary_new(const struct strategy_context *context, struct lowered_group *out,
                               enum dtype dtype, dim elements);
/* The nest's parallel axes as a position among the rows. */
expr ordered_row(struct emitter *emitter, const struct nest *nest);
dim ordered_rows(const struct strategy_context *context, const struct nest *nest);
void ordered_end(struct emitter *emitter, const struct nest *nest, struct lowered_group *out);

#endif

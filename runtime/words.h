/* Sizes that the model computes (BUNDLE_WORD): before a run they are ranges up to their bounds, for which
 * memory and grids are made; after it the plan's word buffer has what they are. */
#ifndef GPUCC_RUNTIME_WORDS_H
#define GPUCC_RUNTIME_WORDS_H

#include "runtime/sizes.h"

struct runtime_context;

/* Some symbol is a word. */
bool words_any(const struct bundle_tables *tables);
/* bounds of all dims for the symbols' ranges; those of words become [least, bound]. Sound also where bounds
 * hang on words. A word whose bound is unknown stays unknown. */
void words_bounds(const struct bundle_tables *tables, struct sizes *sizes);

/* From symbol_values, where words count for nothing: context->values, at the words' bounds. */
gpucc_status words_evaluate(struct runtime_context *context, struct runtime_error *error);
/* Behind a run whose words are in context->words: checks them against their ranges and the guards, and makes
 * them what context->words_now tells. OUT_OF_RANGE: results are not to be used. */
gpucc_status words_take(struct runtime_context *context, struct runtime_error *error);
/* The actual dims of the outputs, once taken. */
void words_write_dims(const struct runtime_context *context, gpucc_tensor *outputs);
size_t words_count(const struct runtime_context *context);
gpucc_status words_info(struct runtime_context *context, size_t index, gpucc_computed_size *info,
                        struct runtime_error *error);

#endif

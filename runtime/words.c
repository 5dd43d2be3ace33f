/* Words are a few symbols among the others; their bounds hang on other sizes, older words among them, so one
 * sweep over all dims for each level of that settles everything. */
#include "runtime/words.h"

#include <string.h>

#include "runtime/context.h"
#include "runtime/dim_text.h"

static const struct dim_interval unknown = {1, 0};

bool words_any(const struct bundle_tables *tables)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        if (tables->symbols[i].source == BUNDLE_WORD)
            return true;
    return false;
}

static bool same_interval(struct dim_interval a, struct dim_interval b)
{
    return a.low == b.low && a.high == b.high;
}

/* What is known of a word's range. */
static struct dim_interval range_of(const struct bundle_symbol *row, struct dim_interval bound)
{
    if (!dim_interval_known(bound))
        return unknown;
    const int64_t high = bound.high < row->high ? bound.high : row->high;
    return (struct dim_interval){row->low, high < row->low ? row->low : high};
}

void words_bounds(const struct bundle_tables *tables, struct sizes *sizes)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        if (tables->symbols[i].source == BUNDLE_WORD)
            sizes->symbols[i] = unknown;
    bool changed = true;
    for (uint32_t sweep = 0; changed && sweep <= tables->symbol_count; sweep++) {
        dims_bounds(tables, sizes->symbols, sizes->bounds);
        changed = false;
        for (uint32_t i = 0; i < tables->symbol_count; i++) {
            const struct bundle_symbol *row = &tables->symbols[i];
            if (row->source != BUNDLE_WORD)
                continue;
            const struct dim_interval range = range_of(row, sizes->bounds[row->bound]);
            changed = changed || !same_interval(range, sizes->symbols[i]);
            sizes->symbols[i] = range;
        }
    }
}

/* Guards among ranges: those of one value each must hold, others must be able to. */
static gpucc_status check_guards(const struct bundle_tables *tables, const struct dim_interval *bounds,
                                 struct runtime_error *error)
{
    for (uint32_t i = 0; i < tables->guard_count; i++) {
        const struct bundle_guard *guard = &tables->guards[i];
        const struct dim_interval left = bounds[guard->left], right = bounds[guard->right];
        const bool known = dim_interval_known(left) && dim_interval_known(right);
        if (!known || (guard->kind == BUNDLE_GUARD_EQUAL ? left.low > right.high || right.low > left.high
                                                         : left.high < 0))
            return sizes_guard_fails(tables, i, error);
    }
    return GPUCC_OK;
}

gpucc_status words_evaluate(struct runtime_context *context, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    struct sizes *now = &context->words_now;
    context->words_taken = context->words_narrowed = false;
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        now->symbols[i] = (struct dim_interval){context->symbol_values[i], context->symbol_values[i]};
    words_bounds(tables, now);
    for (uint32_t row = 0; row < tables->dim_count; row++) {
        if (!dim_interval_known(now->bounds[row]))
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "a size computed from the dims does not fit 64 bits, or may divide by zero");
        context->values[row] = now->bounds[row].high;
    }
    return check_guards(tables, now->bounds, error);
}

gpucc_status words_take(struct runtime_context *context, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const uint32_t *symbols = &tables->indices[context->plan->first_word];
    struct sizes *now = &context->words_now;
    char text[128];
    for (uint32_t i = 0; i < context->plan->word_count; i++) {
        const struct dim_interval allowed = now->symbols[symbols[i]];
        const int64_t value = context->words[i];
        if (value < allowed.low || value > allowed.high)
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "the model computed %lld for the size \"%s\", which may be %lld to %lld here",
                                (long long)value, bundle_symbol_text(tables, symbols[i], text, sizeof text),
                                (long long)allowed.low, (long long)allowed.high);
    }
    for (uint32_t i = 0; i < context->plan->word_count; i++)
        now->symbols[symbols[i]] = (struct dim_interval){context->words[i], context->words[i]};
    dims_bounds(tables, now->symbols, now->bounds);
    context->words_narrowed = true;
    const gpucc_status status = check_guards(tables, now->bounds, error);
    context->words_taken = status == GPUCC_OK;
    return status;
}

void words_write_dims(const struct runtime_context *context, gpucc_tensor *outputs)
{
    const struct bundle_tables *tables = &context->model->tables;
    for (uint32_t i = 0; i < tables->output_count; i++) {
        gpucc_tensor *tensor = (gpucc_tensor *)(void *)((char *)outputs + i * outputs->size);
        const struct bundle_tensor *row = &tables->outputs[i];
        for (uint32_t k = 0; k < row->rank; k++)
            tensor->dims[k] = context->words_now.bounds[tables->indices[row->first_dim + k]].high;
    }
}

size_t words_count(const struct runtime_context *context)
{
    return context->plan->word_count;
}

gpucc_status words_info(struct runtime_context *context, size_t index, gpucc_computed_size *info,
                        struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    if (info->size < sizeof *info)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the struct's size is not set");
    if (index >= context->plan->word_count)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model computes %u sizes",
                            context->plan->word_count);
    const uint32_t symbol = tables->indices[context->plan->first_word + index];
    const struct bundle_symbol *row = &tables->symbols[symbol];
    const struct bundle_dim *bound = &tables->dims[row->bound];
    info->name = tables->strings + row->name;
    info->stated = bound->op == BUNDLE_DIM_SYMBOL && tables->symbols[bound->value].source == BUNDLE_BOUND;
    info->bound = context->current ? context->current->sizes.symbols[symbol].high : -1;
    info->value = context->words_ran ? context->words[index] : -1;
    return GPUCC_OK;
}

/* A dim may be named by the model's symbol or as INPUT[AXIS]; several symbols may share a name and several
 * names may mean one symbol. What stays unnamed is computed from what it was merged with. */
#include "runtime/sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dim_text.h"
#include "runtime/words.h"

static const struct dim_interval unknown = {1, 0};

bool sizes_allocate(const struct bundle_tables *tables, struct sizes *sizes)
{
    sizes->symbols = calloc((size_t)tables->symbol_count + 1, sizeof *sizes->symbols);
    sizes->bounds = calloc((size_t)tables->dim_count + 1, sizeof *sizes->bounds);
    if (sizes->symbols && sizes->bounds)
        return true;
    sizes_release(sizes);
    return false;
}

void sizes_release(struct sizes *sizes)
{
    free(sizes->symbols);
    free(sizes->bounds);
    *sizes = (struct sizes){0};
}

/* Is `name` "INPUT[AXIS]" with an axis of an input, or an element where the input's value is sizes? */
static bool parse_axis(const struct bundle_tables *tables, const char *name, uint32_t *input, uint32_t *axis)
{
    const char *bracket = strrchr(name, '[');
    if (!bracket)
        return false;
    uint32_t number = 0;
    const char *digit = bracket + 1;
    for (; *digit >= '0' && *digit <= '9' && number < 1000000; digit++)
        number = 10 * number + (uint32_t)(*digit - '0');
    if (digit == bracket + 1 || strcmp(digit, "]") != 0)
        return false;
    size_t length = (size_t)(bracket - name);
    for (uint32_t i = 0; i < tables->input_count; i++) {
        const char *own = tables->strings + tables->inputs[i].name;
        if (strlen(own) == length && memcmp(own, name, length) == 0) {
            *input = i;
            *axis = number;
            return true;
        }
    }
    return false;
}

/* The input is read on the host: "INPUT[n]" is its nth element, and its own length a constant. */
static bool is_element(const struct bundle_tables *tables, uint32_t input, uint32_t element)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        if (tables->symbols[i].source == BUNDLE_INPUT_VALUE && tables->symbols[i].input == input &&
            tables->symbols[i].axis == element)
            return true;
    return false;
}

static bool symbol_is_named(const struct bundle_tables *tables, uint32_t symbol, const char *name,
                            bool is_axis, uint32_t input, uint32_t axis)
{
    const struct bundle_symbol *row = &tables->symbols[symbol];
    if (row->source == BUNDLE_WORD) /* its bound has the name */
        return false;
    return (row->name && strcmp(tables->strings + row->name, name) == 0) ||
           (is_axis && row->source != BUNDLE_BOUND && row->input == input && row->axis == axis);
}

static gpucc_status name_one(const struct bundle_tables *tables, const gpucc_dim *dim, struct sizes *sizes,
                             struct runtime_error *error)
{
    char text[96];
    if (!dim->name)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "a dim has no name");
    runtime_escape(dim->name, text, sizeof text);
    if (dim->low > dim->high || dim->low < 0)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "dim \"%s\": the range %lld:%lld is empty or negative", text, (long long)dim->low,
                            (long long)dim->high);
    uint32_t input = 0, axis = 0;
    bool is_axis = parse_axis(tables, dim->name, &input, &axis), found = false;
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        if (!symbol_is_named(tables, i, dim->name, is_axis, input, axis))
            continue;
        struct dim_interval *known = &sizes->symbols[i];
        if (dim_interval_known(*known) && tables->symbols[i].source != BUNDLE_BOUND && (known->low != dim->low || known->high != dim->high))
            return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                                "dim \"%s\" is given twice with different sizes", text);
        /* Of a size that the model computes only the most that it may be is stated. */
        *known = (struct dim_interval){
            tables->symbols[i].source == BUNDLE_BOUND ? dim->high : dim->low, dim->high};
        found = true;
    }
    /* A dim that is a constant or computed has no symbol: sizes_check_named compares it. */
    if (!found && !(is_axis && axis < tables->inputs[input].rank))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the model has no dim \"%s\"", text);
    return GPUCC_OK;
}

gpucc_status sizes_name(const struct bundle_tables *tables, const gpucc_dims *dims, struct sizes *sizes,
                        struct runtime_error *error)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        sizes->symbols[i] = unknown;
    gpucc_status status = GPUCC_OK;
    for (size_t i = 0; dims && i < dims->count && status == GPUCC_OK; i++)
        status = name_one(tables, &dims->items[i], sizes, error);
    return status;
}

/* The symbol that a merged symbol simply equals, or NONE. */
static uint32_t plain_replacement(const struct bundle_tables *tables, uint32_t symbol)
{
    uint32_t replacement = tables->symbols[symbol].replacement;
    if (replacement == BUNDLE_NONE || tables->dims[replacement].op != BUNDLE_DIM_SYMBOL)
        return BUNDLE_NONE;
    return (uint32_t)tables->dims[replacement].value;
}

/* Free symbols: from a merged one that was named, or from a compiled range of one value. */
static gpucc_status settle_free(const struct bundle_tables *tables, struct sizes *sizes,
                                struct runtime_error *error)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        uint32_t same = plain_replacement(tables, i);
        if (same != BUNDLE_NONE && dim_interval_known(sizes->symbols[i]) &&
            !dim_interval_known(sizes->symbols[same]))
            sizes->symbols[same] = sizes->symbols[i];
    }
    char missing[512] = "", text[128];
    size_t used = 0;
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        const struct bundle_symbol *row = &tables->symbols[i];
        if (row->replacement != BUNDLE_NONE || row->source == BUNDLE_WORD ||
            dim_interval_known(sizes->symbols[i]))
            continue;
        if (row->low == row->high) {
            sizes->symbols[i] = (struct dim_interval){row->low, row->low};
            continue;
        }
        bundle_symbol_text(tables, i, text, sizeof text);
        if (used + strlen(text) + 64 < sizeof missing)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s%s", used ? ", " : "", text,
                                     row->source == BUNDLE_BOUND
                                         ? " (computed by the model: the most that it may be)"
                                         : "");
    }
    if (used)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the sizes of these dims are not given: %s",
                            missing);
    return GPUCC_OK;
}

/* ", needed by /fc/MatMul (MatMul #0)" for the guard that made the symbol equal to others. */
static const char *merge_reason(const struct bundle_tables *tables, uint32_t symbol, char *text, size_t bytes)
{
    static const char prefix[] = ", needed by ";
    text[0] = '\0';
    for (uint32_t i = 0; i < tables->guard_count; i++) {
        const struct bundle_guard *guard = &tables->guards[i];
        const struct bundle_dim *sides[] = {&tables->dims[guard->left], &tables->dims[guard->right]};
        for (int k = 0; k < 2 && !text[0]; k++)
            if (sides[k]->op == BUNDLE_DIM_SYMBOL && sides[k]->value == (int64_t)symbol) {
                memcpy(text, prefix, sizeof prefix);
                runtime_escape(tables->strings + guard->node, text + sizeof prefix - 1,
                               bytes - sizeof prefix);
            }
    }
    return text;
}

static gpucc_status settle_merged(const struct bundle_tables *tables, struct sizes *sizes,
                                  struct runtime_error *error)
{
    char text[128], computed[256], reason[256];
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        const struct bundle_symbol *row = &tables->symbols[i];
        if (row->replacement == BUNDLE_NONE || row->source == BUNDLE_WORD)
            continue;
        struct dim_interval value = sizes->bounds[row->replacement], given = sizes->symbols[i];
        bundle_symbol_text(tables, i, text, sizeof text);
        bundle_dim_text(tables, row->replacement, computed, sizeof computed);
        if (!dim_interval_known(value))
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "dim \"%s\": %s cannot be computed for these sizes", text, computed);
        bool exact = value.low == value.high;
        if (dim_interval_known(given) && (exact ? given.low != value.low || given.high != value.high
                                                : given.low > value.high || given.high < value.low))
            return runtime_fail(error, GPUCC_OUT_OF_RANGE, "dim \"%s\" is %lld but must be %s = %lld%s", text,
                                (long long)given.low, computed, (long long)value.low,
                                merge_reason(tables, i, reason, sizeof reason));
        sizes->symbols[i] = value;
    }
    return GPUCC_OK;
}

gpucc_status sizes_guard_fails(const struct bundle_tables *tables, uint32_t guard,
                               struct runtime_error *error)
{
    const struct bundle_guard *row = &tables->guards[guard];
    char left[160], right[160], node[160];
    bundle_dim_text(tables, row->left, left, sizeof left);
    runtime_escape(tables->strings + row->node, node, sizeof node);
    if (row->kind == BUNDLE_GUARD_NOT_NEGATIVE)
        return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                            "the size %s must not be negative or too large, needed by %s", left, node);
    return runtime_fail(error, GPUCC_OUT_OF_RANGE, "%s and %s must be equal, needed by %s", left,
                        bundle_dim_text(tables, row->right, right, sizeof right), node);
}

static bool guard_may_hold(const struct bundle_guard *guard, struct dim_interval left,
                           struct dim_interval right)
{
    if (!dim_interval_known(left) || !dim_interval_known(right))
        return false;
    return guard->kind == BUNDLE_GUARD_EQUAL ? left.low <= right.high && right.low <= left.high
                                             : left.high >= 0;
}

gpucc_status sizes_settle(const struct bundle_tables *tables, struct sizes *sizes,
                          struct runtime_error *error)
{
    gpucc_status status = settle_free(tables, sizes, error);
    if (status != GPUCC_OK)
        return status;
    /* Replacements hang on free symbols only; the second sweep has the merged ones too. */
    words_bounds(tables, sizes);
    status = settle_merged(tables, sizes, error);
    if (status != GPUCC_OK)
        return status;
    words_bounds(tables, sizes);
    char text[128];
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        const struct bundle_symbol *row = &tables->symbols[i];
        struct dim_interval value = sizes->symbols[i];
        if (row->source == BUNDLE_WORD) /* checked behind the run */
            continue;
        bool merged_range = row->replacement != BUNDLE_NONE && value.low != value.high;
        if (merged_range ? value.high < row->low || value.low > row->high
                         : value.low < row->low || value.high > row->high)
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "dim \"%s\": %lld is outside the compiled range %lld:%lld",
                                bundle_symbol_text(tables, i, text, sizeof text),
                                (long long)(value.low < row->low ? value.low : value.high),
                                (long long)row->low, (long long)row->high);
    }
    for (uint32_t i = 0; i < tables->guard_count; i++) {
        const struct bundle_guard *guard = &tables->guards[i];
        if (!guard_may_hold(guard, sizes->bounds[guard->left], sizes->bounds[guard->right]))
            return sizes_guard_fails(tables, i, error);
    }
    return GPUCC_OK;
}

gpucc_status sizes_check_named(const struct bundle_tables *tables, const gpucc_dims *dims,
                               const struct sizes *sizes, struct runtime_error *error)
{
    for (size_t i = 0; dims && i < dims->count; i++) {
        const gpucc_dim *dim = &dims->items[i];
        uint32_t input, axis;
        char text[96], expected[256];
        if (!parse_axis(tables, dim->name, &input, &axis) || axis >= tables->inputs[input].rank ||
            is_element(tables, input, axis))
            continue;
        uint32_t row = tables->indices[tables->inputs[input].first_dim + axis];
        struct dim_interval bounds = sizes->bounds[row];
        if (dim_interval_known(bounds) && dim->low >= bounds.low && dim->high <= bounds.high)
            continue;
        return runtime_fail(error, GPUCC_OUT_OF_RANGE, "dim \"%s\" is %lld but must be %s",
                            runtime_escape(dim->name, text, sizeof text), (long long)dim->high,
                            bundle_dim_text(tables, row, expected, sizeof expected));
    }
    return GPUCC_OK;
}

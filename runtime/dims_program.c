/* Dims of a bundle are rows in topological order, so one sweep evaluates them all. The same sweep over
 * intervals gives what `prepare` needs for a range of sizes: upper bounds of buffers and grids. */
#include "runtime/dims_program.h"

#include "runtime/checked.h"

static const struct dim_interval unknown = {1, 0};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool combine(uint32_t op, int64_t a, int64_t b, int64_t *value)
{
    int64_t quotient;
    switch (op) {
    case BUNDLE_DIM_PRODUCT:
        return product_i64(a, b, value);
    case BUNDLE_DIM_FLOOR_DIV:
        return floor_quotient_i64(a, b, value);
    case BUNDLE_DIM_MOD:
        if (!floor_quotient_i64(a, b, &quotient))
            return false;
        *value = a - quotient * b; /* smaller than b: cannot overflow */
        return true;
    case BUNDLE_DIM_MIN:
        *value = smaller(a, b);
        return true;
    default:
        *value = larger(a, b);
        return true;
    }
}

static bool row_value(const struct bundle_tables *tables, const struct bundle_dim *dim, const int64_t *values,
                      int64_t *value)
{
    const struct bundle_term *terms = &tables->terms[dim->first_term];
    if (dim->op == BUNDLE_DIM_SUM) {
        int64_t sum = dim->value, part;
        for (uint32_t i = 0; i < dim->term_count; i++)
            if (!product_i64(terms[i].coefficient, values[terms[i].dim], &part) || !sum_i64(sum, part, &sum))
                return false;
        *value = sum;
        return true;
    }
    int64_t result = dim->op == BUNDLE_DIM_PRODUCT && !dim->term_count ? 1 : values[terms[0].dim];
    for (uint32_t i = 1; i < dim->term_count; i++)
        if (!combine(dim->op, result, values[terms[i].dim], &result))
            return false;
    *value = result;
    return true;
}

gpucc_status dims_evaluate(const struct bundle_tables *tables, const int64_t *symbol_values, int64_t *values,
                           struct runtime_error *error)
{
    for (uint32_t row = 0; row < tables->dim_count; row++) {
        const struct bundle_dim *dim = &tables->dims[row];
        if (dim->op == BUNDLE_DIM_CONSTANT)
            values[row] = dim->value;
        else if (dim->op == BUNDLE_DIM_SYMBOL)
            values[row] = symbol_values[dim->value];
        else if (!row_value(tables, dim, values, &values[row]))
            return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                                "a size computed from the dims does not fit 64 bits, or divides by zero");
    }
    return GPUCC_OK;
}

/* The op at the four corners; enough for the monotone ones. */
static struct dim_interval corners(uint32_t op, struct dim_interval a, struct dim_interval b)
{
    const int64_t left[4] = {a.low, a.low, a.high, a.high}, right[4] = {b.low, b.high, b.low, b.high};
    struct dim_interval result = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        int64_t value;
        if (!combine(op, left[i], right[i], &value))
            return unknown;
        result.low = smaller(result.low, value);
        result.high = larger(result.high, value);
    }
    return result;
}

static struct dim_interval combine_bounds(uint32_t op, struct dim_interval a, struct dim_interval b)
{
    if (op == BUNDLE_DIM_MIN)
        return (struct dim_interval){smaller(a.low, b.low), smaller(a.high, b.high)};
    if (op == BUNDLE_DIM_MAX)
        return (struct dim_interval){larger(a.low, b.low), larger(a.high, b.high)};
    if (op == BUNDLE_DIM_PRODUCT)
        return corners(op, a, b);
    if (b.low <= 0 && b.high >= 0)
        return unknown; /* may divide by zero */
    if (op == BUNDLE_DIM_FLOOR_DIV || (a.low == a.high && b.low == b.high))
        return corners(op, a, b);
    if (b.low < 0)
        return (struct dim_interval){b.low == INT64_MIN ? INT64_MIN : b.low + 1, 0};
    /* a mod b with b > 0: below b; a itself when a < b everywhere. */
    if (a.low >= 0 && a.high < b.low)
        return a;
    return (struct dim_interval){0, a.low >= 0 ? smaller(a.high, b.high - 1) : b.high - 1};
}

static struct dim_interval row_bounds(const struct bundle_tables *tables, const struct bundle_dim *dim,
                                      const struct dim_interval *bounds)
{
    const struct bundle_term *terms = &tables->terms[dim->first_term];
    for (uint32_t i = 0; i < dim->term_count; i++)
        if (!dim_interval_known(bounds[terms[i].dim]))
            return unknown;
    if (dim->op == BUNDLE_DIM_SUM) {
        struct dim_interval sum = {dim->value, dim->value};
        for (uint32_t i = 0; i < dim->term_count; i++) {
            struct dim_interval part =
                corners(BUNDLE_DIM_PRODUCT, bounds[terms[i].dim],
                        (struct dim_interval){terms[i].coefficient, terms[i].coefficient});
            if (!dim_interval_known(part) || !sum_i64(sum.low, part.low, &sum.low) ||
                !sum_i64(sum.high, part.high, &sum.high))
                return unknown;
        }
        return sum;
    }
    if (!dim->term_count)
        return (struct dim_interval){1, 1};
    struct dim_interval result = bounds[terms[0].dim];
    for (uint32_t i = 1; i < dim->term_count && dim_interval_known(result); i++)
        result = combine_bounds(dim->op, result, bounds[terms[i].dim]);
    return result;
}

void dims_bounds(const struct bundle_tables *tables, const struct dim_interval *symbols,
                 struct dim_interval *bounds)
{
    for (uint32_t row = 0; row < tables->dim_count; row++) {
        const struct bundle_dim *dim = &tables->dims[row];
        if (dim->op == BUNDLE_DIM_CONSTANT)
            bounds[row] = (struct dim_interval){dim->value, dim->value};
        else if (dim->op == BUNDLE_DIM_SYMBOL)
            bounds[row] = symbols[dim->value];
        else
            bounds[row] = row_bounds(tables, dim, bounds);
    }
}

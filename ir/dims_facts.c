/* Questions about dims that need no new dims: divisibility, values; and what may be assumed of symbols'
 * ranges. */
#include "ir/dims_polynomial.h"

#include "ir/support/checked.h"

static bool value_divisible(const struct dims *dims, dim d, int64_t coefficient, int64_t divisor)
{
    const struct dim_node *node = &dims->nodes.items[d];
    int64_t left = divisor;
    for (int64_t a = coefficient % divisor, b = divisor;
         b != 0;) { /* left = divisor / gcd(coefficient, divisor) */
        const int64_t rest = a % b;
        a = b;
        b = rest;
        if (b == 0)
            left = divisor / (a < 0 ? -a : a);
    }
    if (left == 1)
        return true;
    switch (node->op) {
    case DIM_CONSTANT:
        return node->value % left == 0;
    case DIM_SUM:
        for (uint32_t i = 0; i < node->count; i++)
            if (!value_divisible(dims, node->arguments[i], node->coefficients[i], left))
                return false;
        return node->value % left == 0;
    case DIM_PRODUCT:
        for (uint32_t i = 0; i < node->count; i++)
            if (value_divisible(dims, node->arguments[i], 1, left))
                return true;
        return false;
    case DIM_MIN:
    case DIM_MAX:
        return value_divisible(dims, node->arguments[0], 1, left) &&
               value_divisible(dims, node->arguments[1], 1, left);
    default:
        return false;
    }
}

bool dim_divisible(const struct dims *dims, dim a, int64_t divisor)
{
    return a != DIM_NONE && divisor > 0 && value_divisible(dims, a, 1, divisor);
}

bool dim_hangs_on_word(struct dims *dims, dim d)
{
    d = dim_current(dims, d);
    return d != DIM_NONE && dims->nodes.items[d].word;
}

static bool collect_words(const struct dims *dims, dim d, uint32_t *symbols, uint32_t *count, uint32_t limit)
{
    const struct dim_node *node = &dims->nodes.items[d];
    if (!node->word)
        return true;
    for (uint32_t i = 0; i < node->count; i++)
        if (!collect_words(dims, node->arguments[i], symbols, count, limit))
            return false;
    if (node->op != DIM_SYMBOL)
        return true;
    for (uint32_t i = 0; i < *count; i++)
        if (symbols[i] == node->value)
            return true;
    if (*count == limit)
        return false;
    symbols[(*count)++] = (uint32_t)node->value;
    return true;
}

bool dim_words(struct dims *dims, dim d, uint32_t *symbols, uint32_t *count, uint32_t limit)
{
    d = dim_current(dims, d);
    return d == DIM_NONE || collect_words(dims, d, symbols, count, limit);
}

/* ---- evaluation
 * -------------------------------------------------------------------------------------------------- */

static bool evaluate(const struct dims *dims, dim d, const int64_t *symbol_values, int64_t *value);

static bool evaluate_symbol(const struct dims *dims, int64_t index, const int64_t *symbol_values,
                            int64_t *value)
{
    const struct symbol *symbol = &dims->symbols.items[index];
    if (symbol->replacement != DIM_NONE)
        return evaluate(dims, symbol->replacement, symbol_values, value);
    *value = symbol_values ? symbol_values[index] : symbol->hint;
    return true;
}

static bool evaluate(const struct dims *dims, dim d, const int64_t *symbol_values, int64_t *value)
{
    const struct dim_node *node = &dims->nodes.items[d];
    int64_t result = node->value, a, b;
    switch (node->op) {
    case DIM_CONSTANT:
        break;
    case DIM_SYMBOL:
        return evaluate_symbol(dims, node->value, symbol_values, value);
    case DIM_SUM:
        for (uint32_t i = 0; i < node->count; i++)
            if (!evaluate(dims, node->arguments[i], symbol_values, &a) ||
                !mul_i64(a, node->coefficients[i], &a) || !add_i64(result, a, &result))
                return false;
        break;
    case DIM_PRODUCT:
        result = 1;
        for (uint32_t i = 0; i < node->count; i++)
            if (!evaluate(dims, node->arguments[i], symbol_values, &a) || !mul_i64(result, a, &result))
                return false;
        break;
    default:
        if (!evaluate(dims, node->arguments[0], symbol_values, &a) ||
            !evaluate(dims, node->arguments[1], symbol_values, &b))
            return false;
        if (node->op == DIM_FLOOR_DIV) {
            if (b == 0 || (a == INT64_MIN && b == -1))
                return false;
            result = floor_div_i64(a, b);
        } else {
            result = (a < b) == (node->op == DIM_MIN) ? a : b;
        }
        break;
    }
    *value = result;
    return true;
}

bool dim_evaluate(const struct dims *dims, dim d, const int64_t *symbol_values, int64_t *value)
{
    return d != DIM_NONE && evaluate(dims, d, symbol_values, value);
}

int64_t dim_hint(const struct dims *dims, dim d)
{
    int64_t value;
    if (d != DIM_NONE && evaluate(dims, d, NULL, &value))
        return value;
    return d != DIM_NONE && dims->nodes.items[d].low > 0 ? dims->nodes.items[d].low : 0;
}

/* ---- assumptions
 * ------------------------------------------------------------------------------------------------- */

void dims_fix_symbols(struct dims *dims)
{
    for (uint32_t i = 0; i < dims->symbols.count; i++) {
        const struct symbol *symbol = &dims->symbols.items[i];
        if (symbol->low != symbol->high || symbol->replacement != DIM_NONE)
            continue;
        const dim self = dims_intern(dims, &(struct dim_node){.op = DIM_SYMBOL, .value = i});
        const dim value = dim_constant(dims, symbol->low);
        dims_guard(dims, self, value, NULL);
        dims_replace(dims, i, value);
    }
}

static void set_range(struct dims *dims, dim d, int64_t low, int64_t high)
{
    struct dim_node *node = &dims->nodes.items[d];
    struct symbol *symbol = &dims->symbols.items[node->value];
    node->low = symbol->low = low;
    node->high = symbol->high = high;
    symbol->hint = symbol->hint < low ? low : symbol->hint > high ? high : symbol->hint;
    dims->merges++;
    if (low == high)
        dims_fix_symbols(dims);
}

static bool assume_not_empty(struct dims *dims, dim d)
{
    const struct dim_node *node = &dims->nodes.items[d];
    bool changed = false;
    if (node->op == DIM_SYMBOL) {
        const struct symbol *symbol = &dims->symbols.items[node->value];
        if (symbol->source != SYMBOL_INPUT_AXIS || symbol->low != 0 || symbol->high == 0)
            return false;
        set_range(dims, d, 1, symbol->high);
        return true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        changed = assume_not_empty(dims, node->arguments[i]) || changed;
    return changed;
}

bool dim_assume_not_empty(struct dims *dims, dim d)
{
    d = dim_current(dims, d);
    return d != DIM_NONE && assume_not_empty(dims, d);
}

/* Direction in which d moves when its symbols rise: 1 never falls, -1 never rises, 0 neither is certain.
 * *symbol is the one that it hangs on; two of them: 0. Constants are 1. */
static int direction(const struct dims *dims, dim d, dim *symbol)
{
    const struct dim_node *node = &dims->nodes.items[d];
    int common = 0;
    if (node->op == DIM_SYMBOL) {
        if (*symbol != DIM_NONE && *symbol != d)
            return 0;
        *symbol = d;
        return 1;
    }
    if (node->op == DIM_CONSTANT)
        return 1;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct dim_node *argument = &dims->nodes.items[node->arguments[i]];
        if (argument->op == DIM_CONSTANT) {
            if (node->op == DIM_FLOOR_DIV && i == 0)
                return 0;
            continue;
        }
        int way = direction(dims, node->arguments[i], symbol);
        if (node->op == DIM_SUM && node->coefficients[i] < 0)
            way = -way;
        if ((node->op == DIM_PRODUCT && argument->low < 0) || (node->op == DIM_FLOOR_DIV && i == 1))
            return 0;
        if (way == 0 || (common != 0 && way != common))
            return 0;
        common = way;
    }
    return common;
}

/* The value of d with its symbol at the given value reaches the bound. Where d overflows, it is beyond it on
 * the side to which it moves. */
static bool reaches(const struct dims *dims, dim d, dim symbol, int64_t at, int64_t *values, int way,
                    int64_t bound)
{
    int64_t value;
    values[dims->nodes.items[symbol].value] = at;
    return evaluate(dims, d, values, &value) ? value >= bound : way > 0;
}

bool dim_assume_at_least(struct dims *dims, dim d, int64_t bound, const struct location *location)
{
    dim symbol = DIM_NONE;
    d = dim_current(dims, d);
    if (d == DIM_NONE || dims->nodes.items[d].low >= bound)
        return d != DIM_NONE;
    if (dims->nodes.items[d].high < bound)
        return false;
    const dim zero = dim_constant(dims, 0);
    if (dims->where &&
        dims_guard_where(dims, dim_max(dims, dim_sub(dims, dim_constant(dims, bound), d), zero), true,
                         location))
        return true;
    const int way = direction(dims, d, &symbol);
    if (way == 0 || symbol == DIM_NONE) {
        const dim least = dim_constant(dims, bound);
        dims_guard(dims, dim_min(dims, d, least), least, location);
        return true;
    }
    /* The first value of the symbol that is enough, or the last one. */
    const struct symbol range = dims->symbols.items[dims->nodes.items[symbol].value];
    int64_t *values = arena_new_array(dims->arena, int64_t, dims->symbols.count);
    int64_t low = range.low, high = range.high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2 + (way < 0);
        const bool enough = reaches(dims, d, symbol, middle, values, way, bound);
        if (way > 0)
            *(enough ? &high : &low) = enough ? middle : middle + 1;
        else
            *(enough ? &low : &high) = enough ? middle : middle - 1;
    }
    if (!reaches(dims, d, symbol, low, values, way, bound))
        return false;
    set_range(dims, symbol, way > 0 ? low : range.low, way > 0 ? range.high : low);
    return true;
}

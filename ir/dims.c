/* The table of dims: hash-consing, the public operations and their simplifications, merges, evaluation.
 * Polynomials are dims_polynomial.c, text is dims_print.c. */
#include "ir/dims_polynomial.h"

#include "ir/support/checked.h"
#include "ir/support/hash.h"

#include <string.h>

enum { FIRST_SLOTS = 256 };

void dims_init(struct dims *dims, struct arena *arena)
{
    *dims = (struct dims){.arena = arena, .slot_count = FIRST_SLOTS};
    dims->slots = arena_new_array(arena, uint32_t, FIRST_SLOTS);
    vec_push(arena, &dims->nodes, ((struct dim_node){.op = DIM_CONSTANT}));
}

/* ---- the table
 * --------------------------------------------------------------------------------------------------- */

static uint64_t node_hash(const struct dim_node *node)
{
    uint64_t hash = hash_word(hash_word((uint64_t)node->op, (uint64_t)node->value), node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        hash = hash_word(hash, node->arguments[i]);
        if (node->op == DIM_SUM)
            hash = hash_word(hash, (uint64_t)node->coefficients[i]);
    }
    return hash;
}

static bool node_same(const struct dim_node *a, const struct dim_node *b)
{
    if (a->op != b->op || a->value != b->value || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->arguments[i] != b->arguments[i] ||
            (a->op == DIM_SUM && a->coefficients[i] != b->coefficients[i]))
            return false;
    return true;
}

static void widen_over(int64_t value, int64_t *low, int64_t *high)
{
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

static int64_t bounded_floor_div(int64_t a, int64_t b)
{
    if (a == INT64_MIN || a == INT64_MAX)
        return a;
    return b == INT64_MAX ? (a < 0 ? -1 : 0) : floor_div_i64(a, b);
}

/* The range of values from the arguments' ranges. */
static void node_range(struct dims *dims, const struct dim_node *node, int64_t *low, int64_t *high)
{
    const struct dim_node *a = node->count > 0 ? &dims->nodes.items[node->arguments[0]] : NULL;
    const struct dim_node *b = node->count > 1 ? &dims->nodes.items[node->arguments[1]] : NULL;
    struct polynomial p;
    switch (node->op) {
    case DIM_CONSTANT:
        *low = *high = node->value;
        break;
    case DIM_SYMBOL:
        *low = dims->symbols.items[node->value].low;
        *high = dims->symbols.items[node->value].high;
        break;
    case DIM_SUM:
        p.constant = node->value;
        p.count = node->count;
        for (uint32_t i = 0; i < node->count; i++)
            p.terms[i] = (struct term){node->arguments[i], node->coefficients[i]};
        polynomial_range(dims, &p, low, high);
        break;
    case DIM_PRODUCT:
        *low = *high = 1;
        for (uint32_t i = 0; i < node->count; i++) {
            const struct dim_node *factor = &dims->nodes.items[node->arguments[i]];
            const int64_t l = *low, h = *high;
            *low = *high = bounded_mul(l, factor->low);
            widen_over(bounded_mul(l, factor->high), low, high);
            widen_over(bounded_mul(h, factor->low), low, high);
            widen_over(bounded_mul(h, factor->high), low, high);
        }
        break;
    case DIM_FLOOR_DIV:
        *low = INT64_MIN;
        *high = INT64_MAX;
        if (b->low <= 0) /* only after a merge; evaluation checks */
            break;
        *low = *high = bounded_floor_div(a->low, b->low);
        widen_over(bounded_floor_div(a->low, b->high), low, high);
        widen_over(bounded_floor_div(a->high, b->low), low, high);
        widen_over(bounded_floor_div(a->high, b->high), low, high);
        break;
    case DIM_MIN:
        *low = a->low < b->low ? a->low : b->low;
        *high = a->high < b->high ? a->high : b->high;
        break;
    case DIM_MAX:
        *low = a->low > b->low ? a->low : b->low;
        *high = a->high > b->high ? a->high : b->high;
        break;
    case DIM_MOD: /* never stored */
    default:
        *low = INT64_MIN;
        *high = INT64_MAX;
        break;
    }
}

static void grow_slots(struct dims *dims)
{
    const uint32_t count = dims->slot_count * 2;
    dims->slots = arena_new_array(dims->arena, uint32_t, count);
    dims->slot_count = count;
    for (uint32_t i = 1; i < dims->nodes.count; i++) {
        uint64_t at = node_hash(&dims->nodes.items[i]);
        while (dims->slots[at % count])
            at++;
        dims->slots[at % count] = i;
    }
}

dim dims_intern(struct dims *dims, const struct dim_node *node)
{
    uint32_t weight = 1;
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->arguments[i] == DIM_NONE)
            return DIM_NONE;
        weight += dims->nodes.items[node->arguments[i]].weight;
        if (weight > MAX_DIM_WEIGHT)
            return DIM_NONE;
    }
    int64_t low, high;
    node_range(dims, node, &low, &high);
    uint64_t at = node_hash(node);
    for (; dims->slots[at % dims->slot_count]; at++) {
        const dim found = dims->slots[at % dims->slot_count];
        struct dim_node *have = &dims->nodes.items[found];
        if (!node_same(have, node))
            continue;
        have->low = low > have->low ? low : have->low; /* symbols may know more by now */
        have->high = high < have->high ? high : have->high;
        return found;
    }
    const dim made = dims->nodes.count;
    struct dim_node copy = *node;
    copy.arguments = arena_copy(dims->arena, node->arguments, node->count * sizeof *node->arguments);
    if (node->op == DIM_SUM)
        copy.coefficients =
            arena_copy(dims->arena, node->coefficients, node->count * sizeof *node->coefficients);
    copy.low = low;
    copy.high = high;
    copy.weight = weight;
    copy.word =
        node->op == DIM_SYMBOL && dims->symbols.items[node->value].source == SYMBOL_WORD;
    for (uint32_t i = 0; i < node->count; i++)
        copy.word = copy.word || dims->nodes.items[node->arguments[i]].word;
    copy.current = made;
    copy.current_at = dims->merges;
    vec_push(dims->arena, &dims->nodes, copy);
    dims->slots[at % dims->slot_count] = made;
    if (dims->nodes.count * 2 > dims->slot_count)
        grow_slots(dims);
    return made;
}

dim dims_atom(struct dims *dims, enum dim_op op, dim a, dim b)
{
    const dim arguments[2] = {a, b};
    return dims_intern(dims, &(struct dim_node){.op = op, .count = 2, .arguments = arguments});
}

dim dim_constant(struct dims *dims, int64_t value)
{
    return dims_intern(dims, &(struct dim_node){.op = DIM_CONSTANT, .value = value});
}

dim dim_symbol(struct dims *dims, const struct symbol *symbol)
{
    vec_push(dims->arena, &dims->symbols, *symbol);
    return dim_of_symbol(dims, dims->symbols.count - 1);
}

dim dim_of_symbol(struct dims *dims, uint32_t symbol)
{
    return dims_intern(dims, &(struct dim_node){.op = DIM_SYMBOL, .value = symbol});
}

/* ---- arithmetic
 * -------------------------------------------------------------------------------------------------- */

/* The plain operations below take dims with all merges applied, and are what bringing a dim up to date is
 * made of; the public ones apply the merges first. */

static bool load_both(struct dims *dims, dim a, dim b, struct polynomial *p, struct polynomial *q)
{
    if (a == DIM_NONE || b == DIM_NONE)
        return false;
    polynomial_load(dims, a, p);
    polynomial_load(dims, b, q);
    return true;
}

static dim plain_add(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q;
    return load_both(dims, a, b, &p, &q) && polynomial_add(dims, &p, 1, &q) ? polynomial_make(dims, &p)
                                                                            : DIM_NONE;
}

static dim plain_sub(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q;
    return load_both(dims, a, b, &p, &q) && polynomial_add(dims, &p, -1, &q) ? polynomial_make(dims, &p)
                                                                             : DIM_NONE;
}

static dim plain_mul(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q, product;
    return load_both(dims, a, b, &p, &q) && polynomial_multiply(dims, &p, &q, &product)
               ? polynomial_make(dims, &product)
               : DIM_NONE;
}

/* quotient + floor(a / b) */
static dim with_quotient(struct dims *dims, const struct polynomial *quotient, dim rest)
{
    const dim whole = polynomial_make(dims, quotient);
    return rest == DIM_NONE ? DIM_NONE : plain_add(dims, whole, rest);
}

/* The one term of p that is a floor division by a constant with coefficient 1, or p->count. */
static uint32_t find_nested_division(const struct dims *dims, const struct polynomial *p)
{
    uint32_t found = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dim_node *node = &dims->nodes.items[p->terms[i].monomial];
        if (node->op != DIM_FLOOR_DIV || p->terms[i].coefficient != 1 ||
            dims->nodes.items[node->arguments[1]].op != DIM_CONSTANT)
            continue;
        if (found < p->count)
            return p->count;
        found = i;
    }
    return found;
}

/* The remainder in [0, c), c > 0. */
static int64_t floor_mod_i64(int64_t a, int64_t c)
{
    return a % c < 0 ? a % c + c : a % c;
}

/* floor(a / c) for a constant c > 1:
 *   floor((c*q + r) / c) = q + floor(r / c), every number of r in [0, c);
 *   floor((g*x + k) / (g*c)) = floor((x + floor(k/g)) / c);
 *   floor((y + floor(x/a)) / c) = floor((a*y + x) / (a*c)). */
static dim divide_by_constant(struct dims *dims, const struct polynomial *a, int64_t c)
{
    struct polynomial quotient = {.constant = floor_div_i64(a->constant, c)};
    struct polynomial rest = {.constant = floor_mod_i64(a->constant, c)};
    for (uint32_t i = 0; i < a->count; i++) {
        const struct term term = a->terms[i];
        const int64_t factor = floor_div_i64(term.coefficient, c), left = floor_mod_i64(term.coefficient, c);
        if (factor)
            quotient.terms[quotient.count++] = (struct term){term.monomial, factor};
        if (left)
            rest.terms[rest.count++] = (struct term){term.monomial, left};
    }
    if (rest.count == 0)
        return polynomial_make(dims, &quotient);
    uint64_t g = (uint64_t)c;
    for (uint64_t b = polynomial_content(&rest); b;) {
        const uint64_t left = g % b;
        g = b;
        b = left;
    }
    if (g > 1) {
        const int64_t divisor = (int64_t)g;
        for (uint32_t i = 0; i < rest.count; i++)
            rest.terms[i].coefficient /= divisor;
        rest.constant = floor_div_i64(rest.constant, divisor);
        return with_quotient(dims, &quotient,
                             c == divisor ? polynomial_make(dims, &rest)
                                          : divide_by_constant(dims, &rest, c / divisor));
    }
    const uint32_t nested = find_nested_division(dims, &rest);
    if (nested < rest.count) {
        const struct dim_node *node = &dims->nodes.items[rest.terms[nested].monomial];
        const int64_t inner = dims->nodes.items[node->arguments[1]].value;
        struct polynomial outer = rest, sum;
        int64_t product;
        outer.count--;
        memmove(&outer.terms[nested], &outer.terms[nested + 1], (outer.count - nested) * sizeof *outer.terms);
        polynomial_load(dims, node->arguments[0], &sum);
        if (mul_i64(inner, c, &product) && polynomial_add(dims, &sum, inner, &outer))
            return with_quotient(dims, &quotient, divide_by_constant(dims, &sum, product));
    }
    int64_t low, high;
    polynomial_range(dims, &rest, &low, &high);
    if (low != INT64_MIN && high != INT64_MAX && floor_div_i64(low, c) == floor_div_i64(high, c))
        return with_quotient(dims, &quotient, dim_constant(dims, floor_div_i64(low, c)));
    return with_quotient(dims, &quotient,
                         dims_atom(dims, DIM_FLOOR_DIV, polynomial_make(dims, &rest), dim_constant(dims, c)));
}

static bool negate(const struct dims *dims, struct polynomial *p)
{
    struct polynomial out = {.count = 0};
    if (!polynomial_add(dims, &out, -1, p))
        return false;
    *p = out;
    return true;
}

static dim plain_floor_div(struct dims *dims, dim a, dim b);

/* floor(a / b) for b that is no constant and above 0 */
static dim divide_by_dim(struct dims *dims, const struct polynomial *a, const struct polynomial *b)
{
    struct polynomial quotient, rest, difference = *b;
    if (polynomial_divide(dims, a, b, &quotient, &rest) && (quotient.count || quotient.constant))
        return with_quotient(dims, &quotient,
                             plain_floor_div(dims, polynomial_make(dims, &rest), polynomial_make(dims, b)));
    int64_t low, high, gap_low, gap_high;
    polynomial_range(dims, a, &low, &high);
    if (low >= 0 && polynomial_add(dims, &difference, -1, a)) {
        polynomial_range(dims, &difference, &gap_low, &gap_high);
        if (gap_low > 0)
            return dim_constant(dims, 0);
    }
    difference = *b;
    if (high < 0 && polynomial_add(dims, &difference, 1, a)) {
        polynomial_range(dims, &difference, &gap_low, &gap_high);
        if (gap_low >= 0)
            return dim_constant(dims, -1);
    }
    return dims_atom(dims, DIM_FLOOR_DIV, polynomial_make(dims, a), polynomial_make(dims, b));
}

/* Loads a / b with a positive divisor. 1: *exact is the quotient; 0: p / q remains; -1: b can be 0, or
 * overflow. */
static int prepare_division(struct dims *dims, dim a, dim b, struct polynomial *p, struct polynomial *q,
                            dim *exact)
{
    struct polynomial quotient;
    int64_t low, high;
    if (!load_both(dims, a, b, p, q) || (q->count == 0 && q->constant == 0))
        return -1;
    if (polynomial_divide_exactly(dims, p, q, &quotient)) {
        *exact = polynomial_make(dims, &quotient);
        return *exact == DIM_NONE ? -1 : 1;
    }
    polynomial_range(dims, q, &low, &high);
    if (high < 0 && (!negate(dims, p) || !negate(dims, q)))
        return -1;
    if (q->count)
        polynomial_cancel(dims, p, q);
    polynomial_range(dims, q, &low, &high);
    return low > 0 ? 0 : -1;
}

static dim plain_floor_div(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q;
    dim exact;
    const int state = prepare_division(dims, a, b, &p, &q, &exact);
    if (state != 0)
        return state > 0 ? exact : DIM_NONE;
    return q.count == 0 ? divide_by_constant(dims, &p, q.constant) : divide_by_dim(dims, &p, &q);
}

static dim plain_ceil_div(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q;
    dim exact;
    const int state = prepare_division(dims, a, b, &p, &q, &exact);
    if (state != 0)
        return state > 0 ? exact : DIM_NONE;
    if (!polynomial_add(dims, &p, 1, &q) || !sub_i64(p.constant, 1, &p.constant))
        return DIM_NONE;
    return q.count == 0 ? divide_by_constant(dims, &p, q.constant) : divide_by_dim(dims, &p, &q);
}

/* ---- minimum and maximum
 * ----------------------------------------------------------------------------------------- */

enum { MAX_OPERANDS = 32 };

/* Bounds of a - b. False: nothing is known. */
static bool difference_range(struct dims *dims, dim a, dim b, int64_t *low, int64_t *high)
{
    struct polynomial p, q;
    if (!load_both(dims, a, b, &p, &q) || !polynomial_add(dims, &p, -1, &q))
        return false;
    polynomial_range(dims, &p, low, high);
    return true;
}

static bool collect_operands(const struct dims *dims, enum dim_op op, dim d, dim *operands, uint32_t *count)
{
    const struct dim_node *node = &dims->nodes.items[d];
    if (node->op == op)
        return collect_operands(dims, op, node->arguments[0], operands, count) &&
               collect_operands(dims, op, node->arguments[1], operands, count);
    if (*count == MAX_OPERANDS)
        return false;
    operands[(*count)++] = d;
    return true;
}

/* Nested ones are one sorted list without operands that another one dominates. */
static dim extreme(struct dims *dims, enum dim_op op, dim a, dim b)
{
    dim operands[MAX_OPERANDS], kept[MAX_OPERANDS] = {0};
    uint32_t count = 0, kept_count = 0;
    if (a == DIM_NONE || b == DIM_NONE || !collect_operands(dims, op, a, operands, &count) ||
        !collect_operands(dims, op, b, operands, &count))
        return DIM_NONE;
    for (uint32_t i = 0; i < count; i++) {
        bool dominated = false;
        for (uint32_t j = 0; j < count && !dominated; j++) {
            int64_t low, high;
            if (i == j || operands[j] == DIM_NONE)
                continue;
            if (operands[i] == operands[j] || !difference_range(dims, operands[i], operands[j], &low, &high))
                dominated = operands[i] == operands[j];
            else
                dominated = op == DIM_MAX ? high <= 0 : low >= 0;
        }
        if (dominated)
            operands[i] = DIM_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (operands[i] == DIM_NONE)
            continue;
        uint32_t at = kept_count++;
        for (; at > 0 && dims_compare(dims, kept[at - 1], operands[i]) > 0; at--)
            kept[at] = kept[at - 1];
        kept[at] = operands[i];
    }
    dim result = kept[0];
    for (uint32_t i = 1; i < kept_count; i++)
        result = dims_atom(dims, op, result, kept[i]);
    return result;
}

/* ---- the public operations
 * --------------------------------------------------------------------------------------- */

dim dim_add(struct dims *dims, dim a, dim b)
{
    return plain_add(dims, dim_current(dims, a), dim_current(dims, b));
}

dim dim_sub(struct dims *dims, dim a, dim b)
{
    return plain_sub(dims, dim_current(dims, a), dim_current(dims, b));
}

dim dim_mul(struct dims *dims, dim a, dim b)
{
    return plain_mul(dims, dim_current(dims, a), dim_current(dims, b));
}

dim dim_floor_div(struct dims *dims, dim a, dim b)
{
    return plain_floor_div(dims, dim_current(dims, a), dim_current(dims, b));
}

dim dim_ceil_div(struct dims *dims, dim a, dim b)
{
    return plain_ceil_div(dims, dim_current(dims, a), dim_current(dims, b));
}

dim dim_mod(struct dims *dims, dim a, dim b)
{
    return dim_sub(dims, a, dim_mul(dims, b, dim_floor_div(dims, a, b)));
}

dim dim_min(struct dims *dims, dim a, dim b)
{
    return extreme(dims, DIM_MIN, dim_current(dims, a), dim_current(dims, b));
}

dim dim_max(struct dims *dims, dim a, dim b)
{
    return extreme(dims, DIM_MAX, dim_current(dims, a), dim_current(dims, b));
}

dim dim_distance(struct dims *dims, dim a, dim b)
{
    return dim_max(dims, dim_max(dims, dim_sub(dims, a, b), dim_sub(dims, b, a)), dim_constant(dims, 0));
}

dim dim_is_less(struct dims *dims, dim a, dim b)
{
    const dim gap = dim_max(dims, dim_sub(dims, b, a), dim_constant(dims, 0));
    return dim_min(dims, gap, dim_constant(dims, 1));
}

dim dim_is_not_zero(struct dims *dims, dim a)
{
    const dim zero = dim_constant(dims, 0);
    return dim_min(dims, dim_distance(dims, a, zero), dim_constant(dims, 1));
}

/* ---- facts
 * ------------------------------------------------------------------------------------------------------- */

bool dim_is_constant(const struct dims *dims, dim d, int64_t *value)
{
    const struct dim_node *node = &dims->nodes.items[d];
    if (d == DIM_NONE || node->op != DIM_CONSTANT)
        return false;
    *value = node->value;
    return true;
}

bool dim_equals_constant(const struct dims *dims, dim d, int64_t value)
{
    int64_t constant;
    return dim_is_constant(dims, d, &constant) && constant == value;
}

void dim_range(const struct dims *dims, dim d, int64_t *low, int64_t *high)
{
    *low = d == DIM_NONE ? INT64_MIN : dims->nodes.items[d].low;
    *high = d == DIM_NONE ? INT64_MAX : dims->nodes.items[d].high;
}

int dim_less(struct dims *dims, dim a, dim b)
{
    int64_t low, high;
    if (!difference_range(dims, dim_current(dims, a), dim_current(dims, b), &low, &high))
        return -1;
    return high < 0 ? 1 : low >= 0 ? 0 : -1;
}

/* p is never 0: its range or its divisibility says so. */
static bool never_zero(struct dims *dims, const struct polynomial *p)
{
    int64_t low, high;
    polynomial_range(dims, p, &low, &high);
    if (low > 0 || high < 0)
        return true;
    const uint64_t content = polynomial_content(p);
    return content > 1 && content <= INT64_MAX && p->constant % (int64_t)content != 0;
}

int dim_equal(struct dims *dims, dim a, dim b)
{
    struct polynomial p, q;
    a = dim_current(dims, a);
    b = dim_current(dims, b);
    if (!load_both(dims, a, b, &p, &q))
        return -1;
    if (a == b)
        return 1;
    return polynomial_add(dims, &p, -1, &q) && never_zero(dims, &p) ? 0 : -1;
}

/* ---- merges
 * ------------------------------------------------------------------------------------------------------ */

/* What a walk puts in the place of symbols. */
typedef dim replace_symbol(void *user, struct dims *dims, dim symbol);

static dim rebuild(struct dims *dims, dim d, replace_symbol *replace, void *user)
{
    const struct dim_node node = dims->nodes.items[d];
    dim result, other;
    switch (node.op) {
    case DIM_CONSTANT:
        return d;
    case DIM_SYMBOL:
        return replace(user, dims, d);
    case DIM_SUM:
        result = dim_constant(dims, node.value);
        for (uint32_t i = 0; i < node.count; i++) {
            other = plain_mul(dims, rebuild(dims, node.arguments[i], replace, user),
                              dim_constant(dims, node.coefficients[i]));
            result = plain_add(dims, result, other);
        }
        return result;
    case DIM_PRODUCT:
        result = dim_constant(dims, 1);
        for (uint32_t i = 0; i < node.count; i++)
            result = plain_mul(dims, result, rebuild(dims, node.arguments[i], replace, user));
        return result;
    default:
        result = rebuild(dims, node.arguments[0], replace, user);
        other = rebuild(dims, node.arguments[1], replace, user);
        if (node.op != DIM_FLOOR_DIV)
            return extreme(dims, node.op, result, other);
        d = plain_floor_div(dims, result, other); /* a merge can hide that the divisor is not 0 */
        return d != DIM_NONE || dim_equals_constant(dims, other, 0)
                   ? d
                   : dims_atom(dims, DIM_FLOOR_DIV, result, other);
    }
}

static dim current_symbol(void *user, struct dims *dims, dim d)
{
    (void)user;
    const dim replacement = dims->symbols.items[dims->nodes.items[d].value].replacement;
    return replacement == DIM_NONE ? d : dim_current(dims, replacement);
}

dim dim_current(struct dims *dims, dim d)
{
    if (d == DIM_NONE || dims->nodes.items[d].current_at == dims->merges)
        return d == DIM_NONE ? d : dims->nodes.items[d].current;
    const dim current = dims->nodes.items[d].op == DIM_SYMBOL ? current_symbol(NULL, dims, d)
                                                              : rebuild(dims, d, current_symbol, NULL);
    dims->nodes.items[d].current = current;
    dims->nodes.items[d].current_at = dims->merges;
    return current;
}

static bool holds_symbol(const struct dims *dims, dim d, int64_t symbol)
{
    const struct dim_node *node = &dims->nodes.items[d];
    if (node->op == DIM_SYMBOL)
        return node->value == symbol;
    for (uint32_t i = 0; i < node->count; i++)
        if (holds_symbol(dims, node->arguments[i], symbol))
            return true;
    return false;
}

enum { MAX_NAMED = 32 };

struct named_symbols {
    int64_t indices[MAX_NAMED];
    uint32_t count;
};

static void collect_named(const struct dims *dims, dim d, struct named_symbols *out)
{
    const struct dim_node *node = &dims->nodes.items[d];
    for (uint32_t i = 0; i < node->count; i++)
        collect_named(dims, node->arguments[i], out);
    if (node->op != DIM_SYMBOL || !dims->symbols.items[node->value].name || out->count == MAX_NAMED ||
        dims->symbols.items[node->value].source >= SYMBOL_WORD)
        return;
    for (uint32_t i = 0; i < out->count; i++)
        if (out->indices[i] == node->value)
            return;
    out->indices[out->count++] = node->value;
}

void dim_merge_names(struct dims *dims, dim a, dim b, const struct location *location)
{
    struct named_symbols symbols = {.count = 0};
    a = dim_current(dims, a);
    b = dim_current(dims, b);
    if (a == b || a == DIM_NONE || b == DIM_NONE)
        return;
    collect_named(dims, a, &symbols);
    collect_named(dims, b, &symbols);
    for (uint32_t i = 0; i < symbols.count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const int64_t x = symbols.indices[k], y = symbols.indices[i];
            if (strcmp(dims->symbols.items[x].name, dims->symbols.items[y].name) ==
                0) /* what cannot be stays apart */
                (void)dim_merge(dims, dims_intern(dims, &(struct dim_node){.op = DIM_SYMBOL, .value = x}),
                                dims_intern(dims, &(struct dim_node){.op = DIM_SYMBOL, .value = y}),
                                location);
        }
}

void dims_guard(struct dims *dims, dim left, dim right, const struct location *location)
{
    enum { LOOK_BACK = 256 }; /* repeats are harmless; a bounded look keeps this linear */
    const uint32_t first = dims->guards.count > LOOK_BACK ? dims->guards.count - LOOK_BACK : 0;
    for (uint32_t i = first; i < dims->guards.count; i++)
        if (dims->guards.items[i].left == left && dims->guards.items[i].right == right)
            return;
    vec_push(dims->arena, &dims->guards, ((struct guard){left, right, location}));
}

/* Removes the factors that both sides of p == 0 share, taking them to be above 0, and states p as left ==
 * right. */
static void reduce_equation(struct dims *dims, struct polynomial *p, dim *left, dim *right)
{
    const struct polynomial before = *p;
    if (p->count > 1 || p->constant != 0)
        (void)polynomial_cancel(dims, p, NULL);
    struct polynomial positive = {.count = 0}, negative = {.count = 0};
    positive.constant = p->constant > 0 ? p->constant : 0;
    negative.constant = p->constant < 0 ? p->constant : 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct polynomial *side = p->terms[i].coefficient > 0 ? &positive : &negative;
        side->terms[side->count++] = p->terms[i];
    }
    dim other;
    if (!negate(dims, &negative) || (other = polynomial_make(dims, &negative)) == DIM_NONE) {
        *p = before;
        return;
    }
    *left = polynomial_make(dims, &positive);
    *right = other;
}

/* May the symbol be `value`? Words give way to older symbols, others to none that hang on words. */
static bool may_be_replaced(const struct dims *dims, int64_t symbol, dim value)
{
    const struct dim_node *node = &dims->nodes.items[value];
    if (!node->word)
        return true;
    if (dims->symbols.items[symbol].source != SYMBOL_WORD)
        return false;
    if (node->op == DIM_SYMBOL)
        return node->value < symbol;
    for (uint32_t i = 0; i < node->count; i++)
        if (!may_be_replaced(dims, symbol, node->arguments[i]))
            return false;
    return true;
}

/* A symbol that p == 0 determines: p = ±symbol + rest, rest free of the symbol. Prefers words, then one whose
 * replacement stays in the symbol's range, then the youngest. Returns DIM_NONE when there is none. */
static dim solve(struct dims *dims, const struct polynomial *p, int64_t *symbol)
{
    dim best = DIM_NONE;
    bool best_fits = false, best_word = false;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct term term = p->terms[i];
        const struct dim_node node = dims->nodes.items[term.monomial];
        if (node.op != DIM_SYMBOL || (term.coefficient != 1 && term.coefficient != -1))
            continue;
        struct polynomial rest = *p, self = {.count = 1, .terms = {{term.monomial, 1}}};
        bool usable = polynomial_add(dims, &rest, -term.coefficient, &self);
        for (uint32_t j = 0; usable && j < rest.count; j++)
            usable = !holds_symbol(dims, rest.terms[j].monomial, node.value);
        if (!usable || (term.coefficient == 1 && !negate(dims, &rest)))
            continue;
        const dim value = polynomial_make(dims, &rest);
        if (value == DIM_NONE || !may_be_replaced(dims, node.value, value))
            continue;
        const struct dim_node *range = &dims->nodes.items[value];
        const bool fits = node.word || range->op == DIM_SYMBOL ||
                          (range->low >= node.low && range->high <= node.high);
        const bool better_kind = node.word && !best_word, worse_kind = !node.word && best_word;
        if (best == DIM_NONE || better_kind ||
            (!worse_kind && ((fits && !best_fits) || (fits == best_fits && node.value > *symbol)))) {
            best = value;
            best_fits = fits;
            best_word = node.word;
            *symbol = node.value;
        }
    }
    return best;
}

/* What is known of a replaced symbol holds for the symbol in its replacement `other + offset`. */
static void narrow_symbol(struct dims *dims, const struct symbol *replaced, dim replacement)
{
    struct polynomial p;
    polynomial_load(dims, replacement, &p);
    if (p.count != 1 || p.terms[0].coefficient != 1)
        return;
    struct dim_node *node = &dims->nodes.items[p.terms[0].monomial];
    if (node->op != DIM_SYMBOL)
        return;
    struct symbol *symbol = &dims->symbols.items[node->value];
    int64_t low, high;
    if (sub_i64(replaced->low, p.constant, &low) && low > symbol->low)
        node->low = symbol->low = low;
    if (sub_i64(replaced->high, p.constant, &high) && high < symbol->high)
        node->high = symbol->high = high;
    symbol->hint = symbol->hint < symbol->low    ? symbol->low
                   : symbol->hint > symbol->high ? symbol->high
                                                 : symbol->hint;
}

void dims_replace(struct dims *dims, uint32_t symbol, dim replacement)
{
    dims->symbols.items[symbol].replacement = replacement;
    dims->merges++;
    for (uint32_t i = 0; i < dims->symbols.count; i++)
        dims->symbols.items[i].replacement = dim_current(dims, dims->symbols.items[i].replacement);
}

/* p == 0 says min(x, y) == x (or the like), which is x <= y: an assumption on ranges. False: it says
 * something else. */
static bool settle_extreme(struct dims *dims, const struct polynomial *p, const struct location *location,
                           bool *possible)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const struct term term = p->terms[i];
        const struct dim_node atom = dims->nodes.items[term.monomial];
        if ((atom.op != DIM_MIN && atom.op != DIM_MAX) || (term.coefficient != 1 && term.coefficient != -1))
            continue;
        struct polynomial rest = *p, self = {.count = 1, .terms = {{term.monomial, 1}}};
        if (!polynomial_add(dims, &rest, -term.coefficient, &self) ||
            (term.coefficient == 1 && !negate(dims, &rest)))
            continue;
        const dim value = polynomial_make(dims, &rest);
        if (value != atom.arguments[0] && value != atom.arguments[1])
            continue;
        const dim other = value == atom.arguments[0] ? atom.arguments[1] : atom.arguments[0];
        const dim gap = atom.op == DIM_MIN ? plain_sub(dims, other, value) : plain_sub(dims, value, other);
        *possible = dim_assume_at_least(dims, gap, 0, location);
        return true;
    }
    return false;
}

bool dims_guard_where(struct dims *dims, dim gap, bool known, const struct location *location)
{
    const dim where = dims->where ? dim_current(dims, dims->where(dims->where_user, known)) : DIM_NONE;
    const dim both = where == DIM_NONE ? DIM_NONE : dim_min(dims, where, gap);
    if (both == DIM_NONE || dim_equals_constant(dims, where, 1))
        return false;
    dims_guard(dims, both, dim_constant(dims, 0), location);
    return true;
}

bool dim_merge(struct dims *dims, dim a, dim b, const struct location *location)
{
    struct polynomial p, q;
    int64_t symbol = -1;
    a = dim_current(dims, a);
    b = dim_current(dims, b);
    if (!load_both(dims, a, b, &p, &q))
        return false;
    if (a == b)
        return true;
    if (!polynomial_add(dims, &p, -1, &q)) {
        dims_guard(dims, a, b, location);
        return true;
    }
    if (never_zero(dims, &p))
        return false;
    reduce_equation(dims, &p, &a, &b);
    if (p.count == 0 || never_zero(dims, &p))
        return p.count == 0 && p.constant == 0;
    const bool symbols = dims->nodes.items[a].op == DIM_SYMBOL && dims->nodes.items[b].op == DIM_SYMBOL;
    if (!symbols && dims->where && dims_guard_where(dims, dim_distance(dims, a, b), false, location))
        return true;
    bool possible;
    if (settle_extreme(dims, &p, location, &possible))
        return possible;
    const dim value = solve(dims, &p, &symbol);
    if (value != DIM_NONE) {
        const struct symbol replaced = dims->symbols.items[symbol];
        const struct dim_node *range = &dims->nodes.items[value];
        if (range->high < replaced.low || range->low > replaced.high)
            return false;
        narrow_symbol(dims, &replaced, value);
        dims_guard(dims, a, b, location);
        dims_replace(dims, (uint32_t)symbol, value);
        return true;
    }
    dims_guard(dims, a, b, location);
    return true;
}

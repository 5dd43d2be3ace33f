/* Index arithmetic: ranges, affine form, and division with remainder.
 *
 * Everything works on one form: an index is a sum of terms, a term a dim (its coefficient, known or symbolic)
 * times atoms (axes, divisions, loads, ...). Division of such a sum by a dim D uses, in this order: (Q*D + R)
 * idiv D = Q              when 0 <= R < D           imod: R (Q*D + R) idiv D = Q + R idiv D   when 0 <= R
 * imod: R imod D (g*X + r) idiv (g*E) = X idiv E   when 0 <= r < g           imod: g * (X imod E) + r (x idiv
 * C) idiv D = x idiv (C*D) Bounds are dims, so `s*H + h < S*H` is found for symbolic S and H. Work is bounded
 * by the limits below; beyond them an index simply stays as it is. Index arithmetic is taken not to wrap: a
 * flat index that leaves i64 is refused by prepare. */
#include "ir/expr.h"

#include "ir/expr_internal.h"
#include "ir/support/checked.h"

#include <string.h>

enum { MAX_TERMS = 32, MAX_ATOMS = 4, MAX_DEPTH = 24, MAX_STEPS = 400 };

struct term {
    dim coefficient;
    uint32_t count;
    expr atoms[MAX_ATOMS]; /* ascending */
};

struct sum {
    uint32_t count;
    struct term terms[MAX_TERMS];
};

/* ---- numeric ranges ------------------------------------------------------------------------------------ */

struct range {
    int64_t low, high;
};

static bool range_of(const struct exprs *pool, expr e, uint32_t depth, uint32_t *steps, struct range *out);

static bool range_product(struct range a, struct range b, struct range *out)
{
    int64_t corners[4];
    if (!mul_i64(a.low, b.low, &corners[0]) || !mul_i64(a.low, b.high, &corners[1]) ||
        !mul_i64(a.high, b.low, &corners[2]) || !mul_i64(a.high, b.high, &corners[3]))
        return false;
    out->low = out->high = corners[0];
    for (int i = 1; i < 4; i++) {
        if (corners[i] < out->low)
            out->low = corners[i];
        if (corners[i] > out->high)
            out->high = corners[i];
    }
    return true;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool range_binary(enum expr_op op, struct range a, struct range b, struct range *out)
{
    switch (op) {
    case EXPR_ADD:
        return add_i64(a.low, b.low, &out->low) && add_i64(a.high, b.high, &out->high);
    case EXPR_SUB:
        return sub_i64(a.low, b.high, &out->low) && sub_i64(a.high, b.low, &out->high);
    case EXPR_MUL:
        return range_product(a, b, out);
    case EXPR_DIV:
    case EXPR_INDEX_DIV:
        if (a.low < 0 || b.low <= 0)
            return false;
        out->low = a.low / b.high;
        out->high = a.high / b.low;
        return true;
    case EXPR_REMAINDER:
    case EXPR_INDEX_MOD:
        if (a.low < 0 || b.low <= 0)
            return false;
        out->low = b.low == b.high && a.high < b.low ? a.low : 0;
        out->high = smaller(a.high, b.high - 1);
        return true;
    case EXPR_MIN:
        out->low = smaller(a.low, b.low);
        out->high = smaller(a.high, b.high);
        return true;
    case EXPR_MAX:
        out->low = larger(a.low, b.low);
        out->high = larger(a.high, b.high);
        return true;
    case EXPR_SELECT:
        out->low = smaller(a.low, b.low);
        out->high = larger(a.high, b.high);
        return true;
    default:
        return false;
    }
}

/* What the type of a narrower integer says by itself. */
static bool range_of_dtype(enum dtype dtype, struct range *out)
{
    unsigned bits = dtype == DTYPE_BOOL ? 1 : dtype_bits(dtype);
    if (bits == 0 || bits > 32 || dtype_is_float(dtype))
        return false;
    bool is_signed = dtype_class(dtype) == DTYPE_CLASS_INT;
    out->low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
    out->high = (INT64_C(1) << (bits - is_signed)) - 1;
    return true;
}

static bool range_of(const struct exprs *pool, expr e, uint32_t depth, uint32_t *steps, struct range *out)
{
    const struct expr_node *node = expr_at(pool, e);
    struct range a, b;
    if (depth > MAX_DEPTH || ++*steps > MAX_STEPS)
        return false;
    if (node->dtype != DTYPE_I64)
        return range_of_dtype(node->dtype, out);
    if (node->op == EXPR_CONSTANT) {
        out->low = out->high = node->value;
        return true;
    }
    if (node->op == EXPR_DIM) {
        dim_range(pool->dims, (dim)node->value, &out->low, &out->high);
        return true;
    }
    if (node->extent != DIM_NONE) {
        int64_t low, high;
        dim_range(pool->dims, node->extent, &low, &high);
        out->low = 0;
        out->high = high > 0 ? high - 1 : 0;
        return true;
    }
    if (node->op == EXPR_CONVERT)
        return !dtype_is_float(expr_at(pool, node->arguments[0])->dtype) &&
               range_of(pool, node->arguments[0], depth + 1, steps, out);
    if (expr_class_of(node->op) != EXPR_ARITHMETIC || node->count < 2)
        return false;
    uint32_t first = node->op == EXPR_SELECT;
    return range_of(pool, node->arguments[first], depth + 1, steps, &a) &&
           range_of(pool, node->arguments[first + 1], depth + 1, steps, &b) &&
           range_binary(node->op, a, b, out);
}

bool expr_index_range(const struct exprs *pool, expr e, int64_t *low, int64_t *high)
{
    uint32_t steps = 0;
    struct range range;
    if (!range_of(pool, e, 0, &steps, &range))
        return false;
    *low = range.low;
    *high = range.high;
    return true;
}

/* ---- sums of terms ------------------------------------------------------------------------------------- */

static bool same_atoms(const struct term *a, const struct term *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->atoms[i] != b->atoms[i])
            return false;
    return true;
}

static bool sum_add_term(struct exprs *pool, struct sum *sum, const struct term *term)
{
    if (term->coefficient == DIM_NONE)
        return false;
    for (uint32_t i = 0; i < sum->count; i++) {
        struct term *own = &sum->terms[i];
        if (!same_atoms(own, term))
            continue;
        own->coefficient = dim_add(pool->dims, own->coefficient, term->coefficient);
        if (own->coefficient == DIM_NONE)
            return false;
        if (dim_equals_constant(pool->dims, own->coefficient, 0)) {
            memmove(own, own + 1, (sum->count - i - 1) * sizeof *own);
            sum->count--;
        }
        return true;
    }
    if (dim_equals_constant(pool->dims, term->coefficient, 0))
        return true;
    if (sum->count == MAX_TERMS)
        return false;
    sum->terms[sum->count++] = *term;
    return true;
}

static bool multiply_terms(struct exprs *pool, const struct term *a, const struct term *b, struct term *out)
{
    if (a->count + b->count > MAX_ATOMS)
        return false;
    out->coefficient = dim_mul(pool->dims, a->coefficient, b->coefficient);
    out->count = 0;
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count)
        out->atoms[out->count++] =
            j == b->count || (i < a->count && a->atoms[i] <= b->atoms[j]) ? a->atoms[i++] : b->atoms[j++];
    return out->coefficient != DIM_NONE;
}

/* Adds factor * e to the sum. */
static bool collect(struct exprs *pool, expr e, const struct term *factor, uint32_t depth, struct sum *sum)
{
    const struct expr_node *node = expr_at(pool, e);
    struct term term = *factor, own = {.coefficient = DIM_NONE};
    if (depth > MAX_DEPTH)
        return false;
    switch (node->op) {
    case EXPR_CONSTANT:
        own.coefficient = dim_constant(pool->dims, node->value);
        break;
    case EXPR_DIM:
        own.coefficient = dim_current(pool->dims, (dim)node->value);
        break;
    case EXPR_ADD:
    case EXPR_SUB: {
        expr a = node->arguments[0], b = node->arguments[1];
        if (node->op == EXPR_SUB)
            term.coefficient = dim_mul(pool->dims, term.coefficient, dim_constant(pool->dims, -1));
        return term.coefficient != DIM_NONE && collect(pool, a, factor, depth + 1, sum) &&
               collect(pool, b, &term, depth + 1, sum);
    }
    case EXPR_NEG: {
        expr a = node->arguments[0];
        term.coefficient = dim_mul(pool->dims, term.coefficient, dim_constant(pool->dims, -1));
        return term.coefficient != DIM_NONE && collect(pool, a, &term, depth + 1, sum);
    }
    case EXPR_MUL: {
        expr a = node->arguments[0], b = node->arguments[1];
        struct sum left = {0};
        const struct term one = {.coefficient = dim_constant(pool->dims, 1)};
        if (!collect(pool, a, &one, depth + 1, &left))
            return false;
        for (uint32_t i = 0; i < left.count; i++)
            if (!multiply_terms(pool, &left.terms[i], factor, &term) ||
                !collect(pool, b, &term, depth + 1, sum))
                return false;
        return true;
    }
    default:
        own.coefficient = dim_constant(pool->dims, 1);
        own.count = 1;
        own.atoms[0] = e;
        break;
    }
    return own.coefficient != DIM_NONE && multiply_terms(pool, factor, &own, &term) &&
           sum_add_term(pool, sum, &term);
}

static bool sum_of(struct exprs *pool, expr e, struct sum *sum)
{
    const struct term one = {.coefficient = dim_constant(pool->dims, 1)};
    sum->count = 0;
    return collect(pool, e, &one, 0, sum);
}

static expr term_expression(struct exprs *pool, const struct term *term)
{
    expr product = 0;
    for (uint32_t i = 0; i < term->count; i++)
        product = product ? expr_binary(pool, EXPR_MUL, product, term->atoms[i]) : term->atoms[i];
    expr coefficient = expr_dim(pool, term->coefficient);
    return product ? expr_binary(pool, EXPR_MUL, product, coefficient) : coefficient;
}

static expr sum_expression(struct exprs *pool, const struct sum *sum)
{
    expr result = 0;
    for (int with_atoms = 1; with_atoms >= 0; with_atoms--)
        for (uint32_t i = 0; i < sum->count; i++) {
            if ((sum->terms[i].count != 0) != (with_atoms != 0))
                continue;
            expr term = term_expression(pool, &sum->terms[i]);
            result = result ? expr_binary(pool, EXPR_ADD, result, term) : term;
        }
    return result ? result : expr_index(pool, 0);
}

/* ---- symbolic bounds ----------------------------------------------------------------------------------- */

static bool at_least(struct exprs *pool, dim d, int64_t value)
{
    int64_t low, high;
    dim_range(pool->dims, d, &low, &high);
    return low >= value;
}

static bool sum_bounds(struct exprs *pool, const struct sum *sum, uint32_t depth, dim *low, dim *high);

static dim exact_quotient(struct exprs *pool, dim a, dim b);

/* A divisor as a dim; DIM_NONE when it is more than that. */
static dim divisor_of(struct exprs *pool, expr e)
{
    struct sum sum;
    bool single = sum_of(pool, e, &sum) && sum.count == 1 && sum.terms[0].count == 0;
    return single ? sum.terms[0].coefficient : DIM_NONE;
}

static bool division_high(struct exprs *pool, enum expr_op op, expr a, expr b, uint32_t depth, dim *high)
{
    struct sum sum;
    dim low, one = dim_constant(pool->dims, 1), divisor = divisor_of(pool, b);
    *high = DIM_NONE;
    if (divisor == DIM_NONE)
        return false;
    if (op == EXPR_INDEX_MOD) {
        *high = dim_sub(pool->dims, divisor, one);
        return *high != DIM_NONE;
    }
    dim most;
    if (!sum_of(pool, a, &sum) || !sum_bounds(pool, &sum, depth + 1, &low, &most))
        return false;
    dim exact = exact_quotient(pool, dim_add(pool->dims, most, one), divisor);
    *high = exact != DIM_NONE ? dim_sub(pool->dims, exact, one) : dim_floor_div(pool->dims, most, divisor);
    return *high != DIM_NONE;
}

/* Bounds of an atom that is never negative: 0 <= atom <= *high. */
static bool atom_high(struct exprs *pool, expr atom, uint32_t depth, dim *high)
{
    const struct expr_node *node = expr_at(pool, atom);
    int64_t low_value, high_value;
    *high = DIM_NONE;
    if (depth > 6)
        return false;
    if (node->extent != DIM_NONE) {
        *high = dim_sub(pool->dims, node->extent, dim_constant(pool->dims, 1));
        return *high != DIM_NONE;
    }
    if (node->op == EXPR_INDEX_DIV || node->op == EXPR_INDEX_MOD)
        return division_high(pool, node->op, node->arguments[0], node->arguments[1], depth, high);
    if (node->op == EXPR_SELECT) {
        expr a = node->arguments[1], b = node->arguments[2];
        dim lows[2], highs[2];
        struct sum sum;
        if (!sum_of(pool, a, &sum) || !sum_bounds(pool, &sum, depth + 1, &lows[0], &highs[0]) ||
            !sum_of(pool, b, &sum) || !sum_bounds(pool, &sum, depth + 1, &lows[1], &highs[1]) ||
            !at_least(pool, lows[0], 0) || !at_least(pool, lows[1], 0))
            return false;
        /* Where a loop runs, its axis' extent is at least 1: 0 is not above the other branch's bound. */
        if (dim_equals_constant(pool->dims, highs[0], 0))
            *high = highs[1];
        else if (dim_equals_constant(pool->dims, highs[1], 0))
            *high = highs[0];
        else
            *high = dim_max(pool->dims, highs[0], highs[1]);
        return *high != DIM_NONE;
    }
    if (!expr_index_range(pool, atom, &low_value, &high_value) || low_value < 0)
        return false;
    *high = dim_constant(pool->dims, high_value);
    return *high != DIM_NONE;
}

/* Bounds as dims, of a sum whose atoms are all known not to be negative and whose coefficients have known
 * signs. */
static bool sum_bounds(struct exprs *pool, const struct sum *sum, uint32_t depth, dim *low, dim *high)
{
    *low = *high = dim_constant(pool->dims, 0);
    for (uint32_t i = 0; i < sum->count; i++) {
        const struct term *term = &sum->terms[i];
        dim bound = term->coefficient;
        for (uint32_t k = 0; k < term->count; k++) {
            dim atom;
            if (!atom_high(pool, term->atoms[k], depth + 1, &atom))
                return false;
            bound = dim_mul(pool->dims, bound, atom);
        }
        int64_t least, most;
        dim_range(pool->dims, term->coefficient, &least, &most);
        if (bound == DIM_NONE || (least < 0 && most > 0 && term->count != 0))
            return false;
        if (term->count == 0 || least >= 0)
            *high = dim_add(pool->dims, *high, bound);
        if (term->count == 0 || least < 0)
            *low = dim_add(pool->dims, *low, bound);
        if (*low == DIM_NONE || *high == DIM_NONE)
            return false;
    }
    return true;
}

/* 0 <= sum < limit for every value. The empty sum is 0, and limits are positive. */
static bool sum_within(struct exprs *pool, const struct sum *sum, dim limit)
{
    dim low, high;
    if (sum->count == 0)
        return true;
    return sum_bounds(pool, sum, 0, &low, &high) && at_least(pool, low, 0) &&
           dim_less(pool->dims, high, limit) == 1;
}

bool expr_index_bounds(struct exprs *pool, expr e, dim *low, dim *high)
{
    struct sum sum;
    return sum_of(pool, e, &sum) && sum_bounds(pool, &sum, 0, low, high);
}

static bool sum_not_negative(struct exprs *pool, const struct sum *sum)
{
    dim low, high;
    return sum_bounds(pool, sum, 0, &low, &high) && at_least(pool, low, 0);
}

/* ---- division ------------------------------------------------------------------------------------------ */

/* a / b when b divides a for all values of the symbols. A divisor is positive wherever its expression is
 * evaluated. */
static dim exact_quotient(struct exprs *pool, dim a, dim b)
{
    if (a == DIM_NONE || b == DIM_NONE || dim_equals_constant(pool->dims, b, 0))
        return DIM_NONE;
    dim quotient = dim_floor_div(pool->dims, a, b);
    return quotient != DIM_NONE && dim_mul(pool->dims, quotient, b) == a ? quotient : DIM_NONE;
}

/* sum = divisor * multiple + rest, with every term that divides exactly in `multiple`. */
static void split(struct exprs *pool, const struct sum *sum, dim divisor, struct sum *multiple,
                  struct sum *rest)
{
    multiple->count = rest->count = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        dim quotient = exact_quotient(pool, sum->terms[i].coefficient, divisor);
        if (quotient != DIM_NONE) {
            multiple->terms[multiple->count] = sum->terms[i];
            multiple->terms[multiple->count++].coefficient = quotient;
        } else {
            rest->terms[rest->count++] = sum->terms[i];
        }
    }
    /* A constant that is no multiple itself still gives its whole part: 70 = 1 * 64 + 6. */
    int64_t value, by;
    for (uint32_t i = 0; i < rest->count; i++) {
        struct term *term = &rest->terms[i];
        if (term->count || !dim_is_constant(pool->dims, term->coefficient, &value) ||
            !dim_is_constant(pool->dims, divisor, &by) || by <= 0)
            continue;
        int64_t whole = value / by;
        struct term part = {.coefficient = dim_constant(pool->dims, whole)};
        if (whole > 0 && multiple->count < MAX_TERMS && sum_add_term(pool, multiple, &part))
            term->coefficient = dim_constant(pool->dims, value - whole * by);
    }
}

/* The divisor divided by a common factor that is also in all terms but a small rest; tries every coefficient.
 */
static bool split_common(struct exprs *pool, const struct sum *sum, dim divisor, dim *factor,
                         struct sum *multiple, struct sum *rest)
{
    int64_t constant, by;
    for (uint32_t i = 0; i < sum->count; i++) {
        dim candidate = sum->terms[i].coefficient;
        if (dim_is_constant(pool->dims, candidate, &constant) && dim_is_constant(pool->dims, divisor, &by)) {
            /* the greatest common divisor also serves when the coefficient itself does not divide */
            int64_t a = constant < 0 ? -(constant + 1) : constant, b = by;
            if (constant < 0)
                continue;
            while (a) {
                int64_t r = b % a;
                b = a;
                a = r;
            }
            candidate = dim_constant(pool->dims, b);
        }
        if (!at_least(pool, candidate, 0) || dim_equals_constant(pool->dims, candidate, 1) ||
            candidate == divisor || exact_quotient(pool, divisor, candidate) == DIM_NONE)
            continue;
        split(pool, sum, candidate, multiple, rest);
        if (multiple->count && sum_within(pool, rest, candidate)) {
            *factor = candidate;
            return true;
        }
    }
    return false;
}

/* A division of a single division or remainder. */
static expr simplify_nested(struct exprs *pool, enum expr_op op, expr a, dim divisor)
{
    const struct expr_node *node = expr_at(pool, a);
    if (node->op != EXPR_INDEX_DIV && node->op != EXPR_INDEX_MOD)
        return 0;
    expr x = node->arguments[0], inner = node->arguments[1];
    bool inner_division = node->op == EXPR_INDEX_DIV;
    if (inner_division && op == EXPR_INDEX_DIV)
        return expr_binary(pool, EXPR_INDEX_DIV, x,
                           expr_binary(pool, EXPR_MUL, inner, expr_dim(pool, divisor)));
    if (inner_division || op != EXPR_INDEX_MOD ||
        exact_quotient(pool, divisor_of(pool, inner), divisor) == DIM_NONE)
        return 0;
    return expr_binary(pool, EXPR_INDEX_MOD, x, expr_dim(pool, divisor)); /* (x imod (k*D)) imod D */
}

static expr simplify_division(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    struct sum sum, multiple, rest;
    bool division = op == EXPR_INDEX_DIV;
    dim divisor = divisor_of(pool, b);
    if (divisor == DIM_NONE || !sum_of(pool, a, &sum))
        return 0;
    expr nested = simplify_nested(pool, op, a, divisor);
    if (nested)
        return nested;
    split(pool, &sum, divisor, &multiple, &rest);
    if (sum_within(pool, &rest, divisor))
        return sum_expression(pool, division ? &multiple : &rest);
    if (multiple.count && sum_not_negative(pool, &rest)) {
        expr remaining = expr_binary(pool, op, sum_expression(pool, &rest), expr_dim(pool, divisor));
        return division ? expr_binary(pool, EXPR_ADD, sum_expression(pool, &multiple), remaining) : remaining;
    }
    dim factor;
    if (!split_common(pool, &sum, divisor, &factor, &multiple, &rest))
        return 0;
    expr quotient = expr_dim(pool, exact_quotient(pool, divisor, factor));
    expr reduced = expr_binary(pool, op, sum_expression(pool, &multiple), quotient);
    if (division)
        return reduced;
    expr scaled = expr_binary(pool, EXPR_MUL, reduced, expr_dim(pool, factor));
    return expr_binary(pool, EXPR_ADD, scaled, sum_expression(pool, &rest));
}

/* ---- sums with remainders ------------------------------------------------------------------------------ */

/* k*D * (x idiv D) + k * (x imod D) is k * x. Finds one such pair in the sum. */
static bool join_pair(struct exprs *pool, struct sum *sum)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        const struct term remainder = sum->terms[i];
        if (remainder.count != 1 || expr_at(pool, remainder.atoms[0])->op != EXPR_INDEX_MOD)
            continue;
        expr x = expr_at(pool, remainder.atoms[0])->arguments[0],
             b = expr_at(pool, remainder.atoms[0])->arguments[1];
        struct sum part;
        dim divisor = divisor_of(pool, b);
        if (divisor == DIM_NONE)
            continue;
        dim expected = dim_mul(pool->dims, divisor, remainder.coefficient);
        if (!sum_of(pool, expr_binary(pool, EXPR_INDEX_DIV, x, b), &part) || part.count != 1 ||
            !dim_equals_constant(pool->dims, part.terms[0].coefficient, 1))
            continue;
        for (uint32_t k = 0; k < sum->count; k++) {
            if (k == i || sum->terms[k].coefficient != expected ||
                !same_atoms(&sum->terms[k], &part.terms[0]))
                continue;
            struct term factor = {.coefficient = remainder.coefficient};
            uint32_t first = i < k ? i : k, second = i < k ? k : i;
            memmove(&sum->terms[second], &sum->terms[second + 1],
                    (sum->count - second - 1) * sizeof *sum->terms);
            memmove(&sum->terms[first], &sum->terms[first + 1],
                    (sum->count - first - 2) * sizeof *sum->terms);
            sum->count -= 2;
            return collect(pool, x, &factor, 0, sum);
        }
    }
    return false;
}

/* Does a term of this sum, as written, hold a remainder? Looks a few levels deep only. */
static bool has_remainder(const struct exprs *pool, expr e, uint32_t depth)
{
    const struct expr_node *node = expr_at(pool, e);
    if (node->op == EXPR_INDEX_MOD)
        return true;
    if (depth == 0 || (node->op != EXPR_ADD && node->op != EXPR_MUL))
        return false;
    return has_remainder(pool, node->arguments[0], depth - 1) ||
           has_remainder(pool, node->arguments[1], depth - 1);
}

static expr simplify_sum(struct exprs *pool, expr a, expr b)
{
    if (!has_remainder(pool, a, 5) && !has_remainder(pool, b, 5))
        return 0;
    struct sum sum = {0};
    const struct term one = {.coefficient = dim_constant(pool->dims, 1)};
    if (!collect(pool, a, &one, 0, &sum) || !collect(pool, b, &one, 0, &sum))
        return 0;
    return join_pair(pool, &sum) ? sum_expression(pool, &sum) : 0;
}

bool expr_index_equal(struct exprs *pool, expr a, expr b)
{
    if (a == b)
        return true;
    struct sum sum = {0};
    const struct term plus = {.coefficient = dim_constant(pool->dims, 1)},
                      minus = {.coefficient = dim_constant(pool->dims, -1)};
    if (!collect(pool, a, &plus, 0, &sum) || !collect(pool, b, &minus, 0, &sum))
        return false;
    while (sum.count && join_pair(pool, &sum))
        ;
    return sum.count == 0;
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

/* 1: a < b always, 0: never, -1: unknown. */
static int index_less(struct exprs *pool, expr a, expr b)
{
    int64_t a_low, a_high, b_low, b_high;
    if (expr_index_range(pool, a, &a_low, &a_high) && expr_index_range(pool, b, &b_low, &b_high)) {
        if (a_high < b_low)
            return 1;
        if (a_low >= b_high)
            return 0;
    }
    const struct expr_node *x = expr_at(pool, a), *y = expr_at(pool, b);
    if (y->op == EXPR_DIM && x->extent == (dim)y->value)
        return 1; /* an axis and its own extent */
    struct sum sum;
    dim low, high, limit;
    if (y->op != EXPR_DIM && y->op != EXPR_CONSTANT)
        return -1;
    limit = y->op == EXPR_DIM ? (dim)y->value : dim_constant(pool->dims, y->value);
    if (!sum_of(pool, a, &sum) || !sum_bounds(pool, &sum, 0, &low, &high))
        return -1;
    if (dim_less(pool->dims, high, limit) == 1)
        return 1;
    return dim_less(pool->dims, low, limit) == 0 ? 0 : -1;
}

static expr simplify_comparison(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    int less = index_less(pool, a, b), greater = index_less(pool, b, a);
    int value = -1;
    switch (op) {
    case EXPR_LESS:
        value = less == 1 ? 1 : less == 0 || greater == 1 ? 0 : -1;
        break;
    case EXPR_LESS_EQUAL:
        value = greater == 1 ? 0 : greater == 0 || less == 1 ? 1 : -1;
        break;
    default: {
        int equal = less == 1 || greater == 1 ? 0 : less == 0 && greater == 0 ? 1 : -1;
        value = equal < 0 || op == EXPR_EQUAL ? equal : !equal;
        break;
    }
    }
    return value < 0 ? 0 : expr_int(pool, DTYPE_BOOL, value);
}

expr expr_simplify_index(struct exprs *pool, enum expr_op op, expr a, expr b)
{
    switch (op) {
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
        return simplify_division(pool, op, a, b);
    case EXPR_ADD:
        return simplify_sum(pool, a, b);
    case EXPR_MIN:
        return index_less(pool, a, b) == 1 ? a : index_less(pool, b, a) == 1 ? b : 0;
    case EXPR_MAX:
        return index_less(pool, a, b) == 1 ? b : index_less(pool, b, a) == 1 ? a : 0;
    case EXPR_LESS:
    case EXPR_LESS_EQUAL:
    case EXPR_EQUAL:
    case EXPR_NOT_EQUAL:
        return simplify_comparison(pool, op, a, b);
    default:
        return 0;
    }
}

/* ---- affine form --------------------------------------------------------------------------------------- */

bool expr_affine(struct exprs *pool, expr index, uint32_t axis_count, struct affine *out)
{
    struct sum sum;
    if (!sum_of(pool, index, &sum))
        return false;
    out->count = axis_count;
    out->offset = expr_index(pool, 0);
    out->coefficients = arena_new_array(pool->arena, expr, axis_count);
    for (uint32_t i = 0; i < axis_count; i++)
        out->coefficients[i] = out->offset;
    for (uint32_t i = 0; i < sum.count; i++) {
        const struct term *term = &sum.terms[i];
        if (term->count == 0) {
            out->offset = expr_dim(pool, term->coefficient);
            continue;
        }
        const struct expr_node *atom = expr_at(pool, term->atoms[0]);
        if (term->count != 1 || atom->op != EXPR_AXIS || (uint64_t)atom->value >= axis_count)
            return false;
        out->coefficients[atom->value] = expr_dim(pool, term->coefficient);
    }
    return true;
}

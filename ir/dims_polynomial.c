/* Polynomials over atoms: the arithmetic behind the canonical form of dims. See dims_polynomial.h. */
#include "ir/dims_polynomial.h"

#include "ir/support/checked.h"

#include <string.h>

/* ---- order
 * ------------------------------------------------------------------------------------------------------- */

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int dims_compare(const struct dims *dims, dim a, dim b)
{
    if (a == b)
        return 0;
    const struct dim_node *x = &dims->nodes.items[a], *y = &dims->nodes.items[b];
    if (x->op != y->op) /* constants last */
        return compare_i64(x->op == DIM_CONSTANT ? INT64_MAX : (int64_t)x->op,
                           y->op == DIM_CONSTANT ? INT64_MAX : (int64_t)y->op);
    if (x->value != y->value)
        return compare_i64(x->value, y->value);
    if (x->count != y->count)
        return compare_i64(x->count, y->count);
    for (uint32_t i = 0; i < x->count; i++) {
        int order = dims_compare(dims, x->arguments[i], y->arguments[i]);
        if (order == 0 && x->op == DIM_SUM)
            order = compare_i64(x->coefficients[i], y->coefficients[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

uint32_t monomial_atoms(const struct dims *dims, const dim *monomial, const dim **atoms)
{
    const struct dim_node *node = &dims->nodes.items[*monomial];
    if (*monomial == DIM_NONE)
        return 0;
    *atoms = node->op == DIM_PRODUCT ? node->arguments : monomial;
    return node->op == DIM_PRODUCT ? node->count : 1;
}

/* Below 0: a stands first (is the greater monomial). */
static int monomial_compare(const struct dims *dims, dim a, dim b)
{
    if (a == b)
        return 0;
    const dim *x = NULL, *y = NULL;
    const uint32_t m = monomial_atoms(dims, &a, &x), n = monomial_atoms(dims, &b, &y);
    if (m != n)
        return m > n ? -1 : 1;
    for (uint32_t i = 0; i < m; i++) {
        const int order = dims_compare(dims, x[i], y[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

/* ---- monomials
 * --------------------------------------------------------------------------------------------------- */

static dim monomial_make(struct dims *dims, const dim *atoms, uint32_t count)
{
    if (count == 1)
        return atoms[0];
    return dims_intern(dims, &(struct dim_node){.op = DIM_PRODUCT, .count = count, .arguments = atoms});
}

dim monomial_multiply(struct dims *dims, dim a, dim b)
{
    if (a == DIM_NONE || b == DIM_NONE)
        return a == DIM_NONE ? b : a;
    const dim *x = NULL, *y = NULL;
    const uint32_t m = monomial_atoms(dims, &a, &x), n = monomial_atoms(dims, &b, &y);
    if (m + n > MAX_DIM_DEGREE)
        return DIM_NONE;
    dim atoms[MAX_DIM_DEGREE];
    uint32_t count = 0;
    for (uint32_t i = 0, j = 0; i < m || j < n;)
        atoms[count++] = j == n || (i < m && dims_compare(dims, x[i], y[j]) <= 0) ? x[i++] : y[j++];
    return monomial_make(dims, atoms, count);
}

bool monomial_divide(struct dims *dims, dim a, dim b, dim *quotient)
{
    const dim *x = NULL, *y = NULL;
    const uint32_t m = monomial_atoms(dims, &a, &x), n = monomial_atoms(dims, &b, &y);
    dim atoms[MAX_DIM_DEGREE];
    uint32_t count = 0, j = 0;
    for (uint32_t i = 0; i < m; i++) {
        if (j < n && x[i] == y[j])
            j++;
        else
            atoms[count++] = x[i];
    }
    if (j < n)
        return false;
    *quotient = count ? monomial_make(dims, atoms, count) : DIM_NONE;
    return count == 0 || *quotient != DIM_NONE;
}

/* The atoms that both have. */
static dim monomial_common(struct dims *dims, dim a, dim b)
{
    const dim *x = NULL, *y = NULL;
    const uint32_t m = monomial_atoms(dims, &a, &x), n = monomial_atoms(dims, &b, &y);
    dim atoms[MAX_DIM_DEGREE];
    uint32_t count = 0;
    for (uint32_t i = 0, j = 0; i < m && j < n;) {
        const int order = dims_compare(dims, x[i], y[j]);
        if (order == 0)
            atoms[count++] = x[i];
        i += order <= 0;
        j += order >= 0;
    }
    return count ? monomial_make(dims, atoms, count) : DIM_NONE;
}

/* ---- polynomials
 * ------------------------------------------------------------------------------------------------- */

void polynomial_load(const struct dims *dims, dim d, struct polynomial *out)
{
    const struct dim_node *node = &dims->nodes.items[d];
    out->constant = 0;
    out->count = 0;
    if (node->op == DIM_CONSTANT) {
        out->constant = node->value;
    } else if (node->op == DIM_SUM) {
        out->constant = node->value;
        for (uint32_t i = 0; i < node->count; i++)
            out->terms[out->count++] = (struct term){node->arguments[i], node->coefficients[i]};
    } else {
        out->terms[out->count++] = (struct term){d, 1};
    }
}

dim polynomial_make(struct dims *dims, const struct polynomial *p)
{
    if (p->count == 0)
        return dims_intern(dims, &(struct dim_node){.op = DIM_CONSTANT, .value = p->constant});
    if (p->count == 1 && p->terms[0].coefficient == 1 && p->constant == 0)
        return p->terms[0].monomial;
    dim arguments[MAX_DIM_TERMS];
    int64_t coefficients[MAX_DIM_TERMS];
    for (uint32_t i = 0; i < p->count; i++) {
        arguments[i] = p->terms[i].monomial;
        coefficients[i] = p->terms[i].coefficient;
        if (coefficients[i] == INT64_MIN) /* has no negative, so no text */
            return DIM_NONE;
    }
    if (p->constant == INT64_MIN)
        return DIM_NONE;
    return dims_intern(dims, &(struct dim_node){.op = DIM_SUM,
                                                .value = p->constant,
                                                .count = p->count,
                                                .arguments = arguments,
                                                .coefficients = coefficients});
}

bool polynomial_add(const struct dims *dims, struct polynomial *p, int64_t factor, const struct polynomial *q)
{
    struct polynomial sum;
    int64_t product;
    sum.count = 0;
    if (!mul_i64(q->constant, factor, &product) || !add_i64(p->constant, product, &sum.constant))
        return false;
    for (uint32_t i = 0, j = 0; i < p->count || j < q->count;) {
        const int order = i == p->count ? 1
                          : j == q->count
                              ? -1
                              : monomial_compare(dims, p->terms[i].monomial, q->terms[j].monomial);
        struct term term = {DIM_NONE, 0};
        if (order <= 0)
            term = p->terms[i++];
        if (order >= 0) {
            term.monomial = q->terms[j].monomial;
            if (!mul_i64(q->terms[j].coefficient, factor, &product) ||
                !add_i64(term.coefficient, product, &term.coefficient))
                return false;
            j++;
        }
        if (term.coefficient == 0)
            continue;
        if (sum.count == MAX_DIM_TERMS)
            return false;
        sum.terms[sum.count++] = term;
    }
    p->constant = sum.constant;
    p->count = sum.count;
    memcpy(p->terms, sum.terms, sum.count * sizeof *sum.terms);
    return true;
}

/* out = term * p; the monomial order survives a multiplication. */
static bool multiply_by_term(struct dims *dims, struct term by, const struct polynomial *p,
                             struct polynomial *out)
{
    out->count = 0;
    out->constant = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        struct term *term = &out->terms[out->count];
        term->monomial = monomial_multiply(dims, by.monomial, p->terms[i].monomial);
        if (term->monomial == DIM_NONE ||
            !mul_i64(by.coefficient, p->terms[i].coefficient, &term->coefficient))
            return false;
        out->count++;
    }
    int64_t constant;
    if (!mul_i64(by.coefficient, p->constant, &constant))
        return false;
    if (by.monomial == DIM_NONE) {
        out->constant = constant;
    } else if (constant != 0) {
        if (out->count == MAX_DIM_TERMS)
            return false;
        out->terms[out->count++] = (struct term){by.monomial, constant};
    }
    return true;
}

bool polynomial_multiply(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                         struct polynomial *out)
{
    struct polynomial part;
    if (!multiply_by_term(dims, (struct term){DIM_NONE, a->constant}, b, out))
        return false;
    if (a->constant == 0)
        out->count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (!multiply_by_term(dims, a->terms[i], b, &part) || !polynomial_add(dims, out, 1, &part))
            return false;
    return true;
}

/* Common walk of the two divisions: takes leading terms of `rest` one by one. */
static bool divide(struct dims *dims, struct polynomial rest, const struct polynomial *b, bool exactly,
                   struct polynomial *quotient, struct polynomial *remainder)
{
    const struct term lead = b->count ? b->terms[0] : (struct term){DIM_NONE, b->constant};
    struct polynomial product;
    quotient->count = remainder->count = 0;
    quotient->constant = remainder->constant = 0;
    for (uint32_t steps = 0; rest.count || rest.constant; steps++) {
        if (steps > 2 * MAX_DIM_TERMS)
            return false;
        struct polynomial part = {.count = 0};
        struct term first = rest.count ? rest.terms[0] : (struct term){DIM_NONE, rest.constant};
        struct polynomial first_part = {.constant = 0};
        dim monomial;
        int64_t factor = 0;
        const bool overflows = lead.coefficient == -1 && first.coefficient == INT64_MIN;
        if (!overflows && monomial_divide(dims, first.monomial, lead.monomial, &monomial))
            factor = floor_div_i64(first.coefficient, lead.coefficient);
        if (exactly && (overflows || factor == 0 || first.coefficient % lead.coefficient != 0))
            return false;
        if (factor != 0) {
            if (!multiply_by_term(dims, (struct term){monomial, factor}, b, &product) ||
                !polynomial_add(dims, &rest, -1, &product))
                return false;
            if (monomial == DIM_NONE)
                part.constant = factor;
            else
                part.terms[part.count++] = (struct term){monomial, factor};
            if (!polynomial_add(dims, quotient, 1, &part))
                return false;
        }
        /* What is left of the leading term can no longer be divided. */
        const struct term now = rest.count ? rest.terms[0] : (struct term){DIM_NONE, rest.constant};
        if (now.monomial != first.monomial || now.coefficient == 0)
            continue;
        if (now.monomial == DIM_NONE)
            first_part.constant = now.coefficient;
        else
            first_part.terms[first_part.count++] = now;
        if (!polynomial_add(dims, remainder, 1, &first_part) || !polynomial_add(dims, &rest, -1, &first_part))
            return false;
    }
    return true;
}

bool polynomial_divide_exactly(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                               struct polynomial *quotient)
{
    struct polynomial remainder;
    return divide(dims, *a, b, true, quotient, &remainder);
}

bool polynomial_divide(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                       struct polynomial *quotient, struct polynomial *remainder)
{
    return divide(dims, *a, b, false, quotient, remainder);
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t polynomial_content(const struct polynomial *p)
{
    uint64_t content = 0;
    for (uint32_t i = 0; i < p->count; i++)
        content = common_divisor(content, magnitude(p->terms[i].coefficient));
    return content;
}

static bool divide_terms(struct dims *dims, struct polynomial *p, dim monomial, int64_t number)
{
    struct polynomial out = {.constant = p->constant / number};
    for (uint32_t i = 0; i < p->count; i++) {
        dim left;
        if (!monomial_divide(dims, p->terms[i].monomial, monomial, &left))
            return false;
        const int64_t coefficient = p->terms[i].coefficient / number;
        if (left == DIM_NONE)
            out.constant += coefficient; /* p's own constant is 0 when there is a monomial to cancel */
        else
            out.terms[out.count++] = (struct term){left, coefficient};
    }
    *p = out;
    return true;
}

bool polynomial_cancel(struct dims *dims, struct polynomial *p, struct polynomial *q)
{
    struct polynomial *const both[2] = {p, q};
    dim monomial = DIM_NONE;
    uint64_t number = 0;
    bool first = true;
    for (uint32_t k = 0; k < 2 && both[k]; k++) {
        number =
            common_divisor(common_divisor(number, polynomial_content(both[k])), magnitude(both[k]->constant));
        if (both[k]->constant != 0 || (!first && monomial == DIM_NONE)) {
            monomial = DIM_NONE;
            first = false;
        }
        for (uint32_t i = 0; i < both[k]->count && (first || monomial != DIM_NONE); i++) {
            const dim term = both[k]->terms[i].monomial;
            monomial = first ? term : monomial_common(dims, monomial, term);
            first = false;
        }
    }
    if (number == 0 || number > INT64_MAX || (number == 1 && monomial == DIM_NONE))
        return false;
    for (uint32_t k = 0; k < 2 && both[k]; k++)
        if (!divide_terms(dims, both[k], monomial, (int64_t)number))
            return false;
    return true;
}

/* ---- ranges
 * ------------------------------------------------------------------------------------------------------ */

static bool infinite(int64_t value)
{
    return value == INT64_MIN || value == INT64_MAX;
}

int64_t bounded_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (infinite(a) || infinite(b))
        return infinite(a) ? a : b;
    return add_i64(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

int64_t bounded_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 0 || b == 0)
        return 0;
    if (!infinite(a) && !infinite(b) && mul_i64(a, b, &product))
        return product;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static void terms_range(const struct dims *dims, const struct polynomial *p, int64_t *low, int64_t *high)
{
    *low = *high = p->constant;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dim_node *node = &dims->nodes.items[p->terms[i].monomial];
        const int64_t k = p->terms[i].coefficient;
        const int64_t a = bounded_mul(k, node->low), b = bounded_mul(k, node->high);
        *low = bounded_add(*low, k > 0 ? a : b);
        *high = bounded_add(*high, k > 0 ? b : a);
    }
}

static void narrow(int64_t *low, int64_t *high, int64_t other_low, int64_t other_high)
{
    *low = other_low > *low ? other_low : *low;
    *high = other_high < *high ? other_high : *high;
}

/* Terms are correlated where an atom stands beside its own argument. With an atom a of coefficient k:
 *   a = x / c (c constant, c divides k, m = -k/c):  p = (p - m * (x - c * a)) + m * (x mod c)
 *   a = min(x, y), k > 0:  p lies between the least and the lesser of the two p with a replaced; likewise the
 * others. */
static void correlated_range(struct dims *dims, const struct polynomial *p, int effort, int64_t *low,
                             int64_t *high)
{
    terms_range(dims, p, low, high);
    if (effort == 0 || p->count < 1 || *low == *high)
        return;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct dim_node *atom = &dims->nodes.items[p->terms[i].monomial];
        const int64_t k = p->terms[i].coefficient;
        const bool extreme = atom->op == DIM_MIN || atom->op == DIM_MAX;
        if ((!extreme && atom->op != DIM_FLOOR_DIV) || (p->count == 1 && atom->op == DIM_FLOOR_DIV))
            continue;
        struct polynomial rest = *p, x, y, self = {.count = 1, .terms = {{p->terms[i].monomial, 1}}};
        polynomial_load(dims, atom->arguments[0], &x);
        polynomial_load(dims, atom->arguments[1], &y);
        if (extreme) {
            struct polynomial other = *p;
            int64_t low_x, high_x, low_y, high_y;
            if (!polynomial_add(dims, &rest, -k, &self) || !polynomial_add(dims, &other, -k, &self) ||
                !polynomial_add(dims, &rest, k, &x) || !polynomial_add(dims, &other, k, &y))
                return;
            const bool lesser = (atom->op == DIM_MIN) == (k > 0);
            correlated_range(dims, &rest, effort - 1, &low_x, &high_x);
            correlated_range(dims, &other, effort - 1, &low_y, &high_y);
            if (lesser)
                narrow(low, high, low_x < low_y ? low_x : low_y, high_x < high_y ? high_x : high_y);
            else
                narrow(low, high, low_x > low_y ? low_x : low_y, high_x > high_y ? high_x : high_y);
            return;
        }
        const int64_t c = y.constant;
        if (y.count == 0 && c > 1 && k % c == 0) {
            const int64_t m = -(k / c);
            int64_t rest_low, rest_high, modulus;
            if (!mul_i64(m, c - 1, &modulus) || !mul_i64(m, c, &modulus) ||
                !polynomial_add(dims, &rest, -m, &x) || !polynomial_add(dims, &rest, modulus, &self))
                return;
            correlated_range(dims, &rest, effort - 1, &rest_low, &rest_high);
            const int64_t far = m * (c - 1);
            narrow(low, high, bounded_add(rest_low, far < 0 ? far : 0),
                   bounded_add(rest_high, far > 0 ? far : 0));
            return;
        }
    }
}

void polynomial_range(struct dims *dims, const struct polynomial *p, int64_t *low, int64_t *high)
{
    enum { EFFORT = 4 };
    correlated_range(dims, p, EFFORT, low, high);
}

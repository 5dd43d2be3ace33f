/* Private to dims: polynomials over atoms, unpacked from and packed into the table of dims. Terms are sorted
 * by monomial order (degree first, then lexicographic with the earlier atom greater), which products preserve
 * and exact division needs. The order is structural, never by node number, so that it survives printing and
 * parsing. */
#ifndef GPUCC_IR_DIMS_POLYNOMIAL_H
#define GPUCC_IR_DIMS_POLYNOMIAL_H

#include "ir/dims.h"

enum { MAX_DIM_TERMS = 128, MAX_DIM_DEGREE = 24 };

struct term {
    dim monomial; /* an atom or a PRODUCT */
    int64_t coefficient;
};

struct polynomial {
    int64_t constant;
    uint32_t count;
    struct term terms[MAX_DIM_TERMS];
};

/* The node with these parts, made when it is new; DIM_NONE when it would be too heavy. */
dim dims_intern(struct dims *dims, const struct dim_node *node);
/* A binary atom (FLOOR_DIV, MIN, MAX) as it stands, without simplification. */
dim dims_atom(struct dims *dims, enum dim_op op, dim a, dim b);
/* After a merge: the symbol is `replacement` from now on. */
void dims_replace(struct dims *dims, uint32_t symbol, dim replacement);
/* Records that left == right was assumed, once. */
void dims_guard(struct dims *dims, dim left, dim right, const struct location *location);
/* Guards that gap is 0 where dims.where says, called with `known`. False: that is everywhere, and nothing was done. */
bool dims_guard_where(struct dims *dims, dim gap, bool known, const struct location *location);
/* Total structural order of dims; 0 exactly when they are the same. */
int dims_compare(const struct dims *dims, dim a, dim b);

void polynomial_load(const struct dims *dims, dim d, struct polynomial *out);
dim polynomial_make(struct dims *dims, const struct polynomial *p);
/* p += factor * q. False: overflow or too many terms. */
bool polynomial_add(const struct dims *dims, struct polynomial *p, int64_t factor,
                    const struct polynomial *q);
bool polynomial_multiply(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                         struct polynomial *out);
/* The product of two monomials; DIM_NONE when its degree passes the limit. DIM_NONE as an argument stands
 * for 1. */
dim monomial_multiply(struct dims *dims, dim a, dim b);
/* a / b when b divides a; *quotient is DIM_NONE for 1. */
bool monomial_divide(struct dims *dims, dim a, dim b, dim *quotient);
/* The atoms of a monomial. */
uint32_t monomial_atoms(const struct dims *dims, const dim *monomial, const dim **atoms);

/* a == quotient * b as polynomials. b is not the zero polynomial. */
bool polynomial_divide_exactly(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                               struct polynomial *quotient);
/* a == quotient * b + remainder, where no term of the remainder holds the leading term of b any more. */
bool polynomial_divide(struct dims *dims, const struct polynomial *a, const struct polynomial *b,
                       struct polynomial *quotient, struct polynomial *remainder);
/* Divides by the monomial that all terms of p (and of q, unless NULL) share, and by the common divisor of all
 * their numbers. False: there was nothing to cancel. */
bool polynomial_cancel(struct dims *dims, struct polynomial *p, struct polynomial *q);
/* Greatest common divisor of the coefficients, 0 for a constant. */
uint64_t polynomial_content(const struct polynomial *p);

void polynomial_range(struct dims *dims, const struct polynomial *p, int64_t *low, int64_t *high);

/* Arithmetic with INT64_MIN and INT64_MAX as infinities. */
int64_t bounded_add(int64_t a, int64_t b);
int64_t bounded_mul(int64_t a, int64_t b);

#endif

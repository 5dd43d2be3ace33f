/* One operation on raw bits: what each row of expr.def means, as plain C. The interpreter, constant folding
 * and the tests share it; it is written apart from the expansions (expr_expand.c), so that each checks the
 * other.
 *
 * A value is held in a uint64_t: integers sign- or zero-extended by their type, bool as 0 or 1, floats of
 * every width as their zero-extended bits. The bits of a NaN result are not part of an operation's meaning;
 * here it is the canonical quiet NaN of the type. */
#ifndef GPUCC_IR_EXPR_EVAL_H
#define GPUCC_IR_EXPR_EVAL_H

#include "ir/expr.h"

/* Evaluates one operation of class ARITHMETIC, LOGIC, COMPARE or CONVERSION. `dtype` is the result's type
 * (BOOL for COMPARE), `from` the type of the first argument (the same as `dtype` but for COMPARE and
 * CONVERSION; for SELECT the type of the second and third argument, the first is a bool). False, and nothing
 * written, for another class or for types on which the operation is not defined. */
bool expr_eval_op(enum expr_op op, enum dtype dtype, enum dtype from, const uint64_t *arguments,
                  uint64_t *result);

/* CONVERT alone, for every pair of number types, bool, and the narrow floats; false when either is another
 * type. */
bool expr_eval_convert(enum dtype to, enum dtype from, uint64_t bits, uint64_t *result);

/* The bits cut to the type's width and extended as stated above. */
uint64_t expr_eval_extend(enum dtype dtype, uint64_t bits);

/* A float type of at most 64 bits, as its fields say. */
struct float_format {
    unsigned bits, exponent_bits, mantissa_bits;
    int bias;
    bool is_signed;
    bool has_infinity; /* exponent all ones, mantissa 0; other mantissas are NaNs */
    uint64_t nan;      /* the canonical NaN; 0: the type has none, NaN converts to the largest value */
    uint64_t largest;  /* largest finite value */
};
/* NULL when the type is no float. */
const struct float_format *float_format_of(enum dtype dtype);

#endif

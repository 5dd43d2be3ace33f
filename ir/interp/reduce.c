/* Accumulators of reductions. Sums and products of floats stand in f64 and are rounded once at the end;
 * integers wrap in 64 bits, which wraps narrower types as well. Max and min of floats give NaN when any value
 * is one. */
#include "ir/interp/program.h"

#include "ir/expr_eval.h"

#include <math.h>

static bool is_float(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

static uint64_t lowest_bits(enum dtype dtype)
{
    const bool has_sign = dtype_class(dtype) == DTYPE_CLASS_INT;
    return has_sign ? expr_eval_extend(dtype, UINT64_C(1) << (dtype_bits(dtype) - 1)) : 0;
}

void accumulator_init(enum reduce_op op, enum dtype dtype, union accumulator *accumulators, uint32_t count)
{
    union accumulator neutral;
    if (is_float(dtype))
        neutral.number = op == REDUCE_SUM       ? 0
                         : op == REDUCE_PRODUCT ? 1
                         : op == REDUCE_MAX     ? (double)-INFINITY
                                                : (double)INFINITY;
    else
        neutral.bits = op == REDUCE_SUM       ? 0
                       : op == REDUCE_PRODUCT ? 1
                       : op == REDUCE_MAX     ? lowest_bits(dtype)
                                              : expr_eval_extend(dtype, ~lowest_bits(dtype));
    for (uint32_t i = 0; i < count; i++)
        accumulators[i] = neutral;
}

static double float_combine(enum reduce_op op, double a, double b)
{
    switch (op) {
    case REDUCE_SUM:
        return a + b;
    case REDUCE_PRODUCT:
        return a * b;
    case REDUCE_MAX:
        return a != a ? a : b != b ? b : a == b ? (signbit(a) ? b : a) : a < b ? b : a;
    default:
        return a != a ? a : b != b ? b : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
    }
}

static uint64_t integer_combine(enum reduce_op op, bool has_sign, uint64_t a, uint64_t b)
{
    const uint64_t flip = has_sign ? UINT64_C(1) << 63 : 0;
    switch (op) {
    case REDUCE_SUM:
        return a + b;
    case REDUCE_PRODUCT:
        return a * b;
    case REDUCE_MAX:
        return (a ^ flip) < (b ^ flip) ? b : a;
    default:
        return (a ^ flip) < (b ^ flip) ? a : b;
    }
}

/* The operation is a constant in each loop, so that the compiler sees one loop an operation. */
#define COMBINE_FLOATS(operation)                                                                            \
    {                                                                                                        \
        if (into_one) {                                                                                      \
            double total = accumulators[0].number;                                                           \
            for (uint32_t i = 0; i < count; i++)                                                             \
                total = float_combine(operation, total, (double)numbers[i]);                                 \
            accumulators[0].number = total;                                                                  \
        } else {                                                                                             \
            for (uint32_t i = 0; i < count; i++)                                                             \
                accumulators[i].number =                                                                     \
                    float_combine(operation, accumulators[i].number, (double)numbers[i]);                    \
        }                                                                                                    \
        break;                                                                                               \
    }
#define ACCUMULATE_FLOATS(name, type)                                                                        \
    static void name(enum reduce_op op, union accumulator *accumulators, bool into_one, const type *numbers, \
                     uint32_t count)                                                                         \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case REDUCE_SUM:                                                                                     \
            COMBINE_FLOATS(REDUCE_SUM)                                                                       \
        case REDUCE_PRODUCT:                                                                                 \
            COMBINE_FLOATS(REDUCE_PRODUCT)                                                                   \
        case REDUCE_MAX:                                                                                     \
            COMBINE_FLOATS(REDUCE_MAX)                                                                       \
        default:                                                                                             \
            COMBINE_FLOATS(REDUCE_MIN)                                                                       \
        }                                                                                                    \
    }
ACCUMULATE_FLOATS(accumulate_f32, float)
ACCUMULATE_FLOATS(accumulate_f64, double)

void accumulate(enum reduce_op op, enum dtype dtype, union accumulator *accumulators, bool into_one,
                const void *values, uint32_t count)
{
    if (dtype == DTYPE_F32) {
        accumulate_f32(op, accumulators, into_one, values, count);
        return;
    }
    if (dtype == DTYPE_F64) {
        accumulate_f64(op, accumulators, into_one, values, count);
        return;
    }
    const bool has_sign = dtype_class(dtype) == DTYPE_CLASS_INT;
    for (uint32_t i = 0; i < count; i++) {
        union accumulator *own = &accumulators[into_one ? 0 : i];
        own->bits = integer_combine(op, has_sign, own->bits, read_element(dtype, values, i));
    }
}

void accumulator_finish(enum dtype dtype, const union accumulator *accumulators, void *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (dtype == DTYPE_F32)
            ((float *)values)[i] = (float)accumulators[i].number;
        else
            write_element(dtype, values, i, accumulators[i].bits); /* an f64's bits are its value */
    }
}

/* Integer arithmetic that says when it overflows, for the runtime: stores the result and returns true, or
 * false. */
#ifndef GPUCC_RUNTIME_CHECKED_H
#define GPUCC_RUNTIME_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool sum_i64(int64_t a, int64_t b, int64_t *sum)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *sum = a + b;
    return true;
}

static inline bool product_i64(int64_t a, int64_t b, int64_t *product)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *product = a * b;
    return true;
}

/* Towards minus infinity. False for b == 0 and for INT64_MIN / -1. */
static inline bool floor_quotient_i64(int64_t a, int64_t b, int64_t *quotient)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *quotient = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    return true;
}

static inline bool sum_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    if (a > UINT64_MAX - b)
        return false;
    *sum = a + b;
    return true;
}

#endif

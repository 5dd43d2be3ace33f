/* Arithmetic that says when it overflows. Each function stores the result and returns true, or returns false and
 * leaves the result untouched. Plain C11, so that it holds with every compiler. */
#ifndef GPUCC_IR_SUPPORT_CHECKED_H
#define GPUCC_IR_SUPPORT_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool add_size(size_t a, size_t b, size_t *sum)
{
    if (a > SIZE_MAX - b)
        return false;
    *sum = a + b;
    return true;
}

static inline bool mul_size(size_t a, size_t b, size_t *product)
{
    if (b && a > SIZE_MAX / b)
        return false;
    *product = a * b;
    return true;
}

static inline bool add_i64(int64_t a, int64_t b, int64_t *sum)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *sum = a + b;
    return true;
}

static inline bool sub_i64(int64_t a, int64_t b, int64_t *difference)
{
    if (b > 0 ? a < INT64_MIN + b : a > INT64_MAX + b)
        return false;
    *difference = a - b;
    return true;
}

static inline bool mul_i64(int64_t a, int64_t b, int64_t *product)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *product = a * b;
    return true;
}

/* Quotient rounded towards minus infinity; b must not be 0 and INT64_MIN / -1 must not occur. */
static inline int64_t floor_div_i64(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

#endif

/* One operation over a block. The common ones have a loop for each type; all else goes element by element
 * through expr_eval_op, which states the meaning. A loop here must do exactly what expr_eval_op does (NaN
 * bits aside). */
#include "ir/interp/program.h"

#include "ir/expr_eval.h"

#include <math.h>
#include <string.h>

uint64_t read_element(enum dtype dtype, const void *values, uint32_t index)
{
    switch (dtype_bits(dtype)) {
    case 8:
        return expr_eval_extend(dtype, ((const uint8_t *)values)[index]);
    case 16:
        return expr_eval_extend(dtype, ((const uint16_t *)values)[index]);
    case 32:
        return expr_eval_extend(dtype, ((const uint32_t *)values)[index]);
    default:
        return ((const uint64_t *)values)[index];
    }
}

void write_element(enum dtype dtype, void *values, uint32_t index, uint64_t bits)
{
    switch (dtype_bits(dtype)) {
    case 8:
        ((uint8_t *)values)[index] = (uint8_t)bits;
        break;
    case 16:
        ((uint16_t *)values)[index] = (uint16_t)bits;
        break;
    case 32:
        ((uint32_t *)values)[index] = (uint32_t)bits;
        break;
    default:
        ((uint64_t *)values)[index] = bits;
        break;
    }
}

static void by_element(const struct instruction *i, uint32_t count, void *result,
                       const void *const *arguments)
{
    const uint32_t used = i->argument_count < 3 ? i->argument_count : 3;
    for (uint32_t k = 0; k < count; k++) {
        uint64_t values[3] = {0}, bits = 0;
        for (uint32_t a = 0; a < used; a++)
            values[a] = read_element(i->op == EXPR_SELECT && a == 0 ? DTYPE_BOOL : i->from, arguments[a], k);
        (void)expr_eval_op(i->op, i->dtype, i->from, values, &bits);
        write_element(i->dtype, result, k, bits);
    }
}

#define EACH(value)                                                                                          \
    for (uint32_t k = 0; k < count; k++)                                                                     \
        r[k] = (value);                                                                                      \
    return true

/* ---- arithmetic
 * -------------------------------------------------------------------------------------------------- */

/* NaN when either is one; -0 is less than +0. */
#define FLOAT_MIN(a, b)                                                                                      \
    ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) == (b) ? (signbit(a) ? (a) : (b)) : (a) < (b) ? (a) : (b))
#define FLOAT_MAX(a, b)                                                                                      \
    ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) == (b) ? (signbit(a) ? (b) : (a)) : (a) < (b) ? (b) : (a))

#define FLOAT_OPERATIONS(name, type, suffix)                                                                 \
    static bool name(enum expr_op op, uint32_t count, type *r, const type *a, const type *b, const type *c)  \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case EXPR_ADD:                                                                                       \
            EACH(a[k] + b[k]);                                                                               \
        case EXPR_SUB:                                                                                       \
            EACH(a[k] - b[k]);                                                                               \
        case EXPR_MUL:                                                                                       \
            EACH(a[k] * b[k]);                                                                               \
        case EXPR_DIV:                                                                                       \
            EACH(a[k] / b[k]);                                                                               \
        case EXPR_MIN:                                                                                       \
            EACH(FLOAT_MIN(a[k], b[k]));                                                                     \
        case EXPR_MAX:                                                                                       \
            EACH(FLOAT_MAX(a[k], b[k]));                                                                     \
        case EXPR_FMA:                                                                                       \
            EACH(fma##suffix(a[k], b[k], c[k]));                                                             \
        case EXPR_SQRT:                                                                                      \
            EACH(sqrt##suffix(a[k]));                                                                        \
        case EXPR_FLOOR:                                                                                     \
            EACH(floor##suffix(a[k]));                                                                       \
        case EXPR_CEIL:                                                                                      \
            EACH(ceil##suffix(a[k]));                                                                        \
        case EXPR_TRUNC:                                                                                     \
            EACH(trunc##suffix(a[k]));                                                                       \
        case EXPR_ROUND_EVEN:                                                                                \
            EACH(nearbyint##suffix(a[k]));                                                                   \
        case EXPR_NEG:                                                                                       \
            EACH(-a[k]);                                                                                     \
        case EXPR_ABS:                                                                                       \
            EACH(fabs##suffix(a[k]));                                                                        \
        default:                                                                                             \
            return false;                                                                                    \
        }                                                                                                    \
    }
FLOAT_OPERATIONS(f32_operation, float, f)
FLOAT_OPERATIONS(f64_operation, double, )

/* `wide` is the unsigned type in which the results wrap. */
#define INTEGER_OPERATIONS(name, type, wide)                                                                 \
    static bool name(enum expr_op op, uint32_t count, type *r, const type *a, const type *b)                 \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case EXPR_ADD:                                                                                       \
            EACH((type)((wide)a[k] + (wide)b[k]));                                                           \
        case EXPR_SUB:                                                                                       \
            EACH((type)((wide)a[k] - (wide)b[k]));                                                           \
        case EXPR_MUL:                                                                                       \
            EACH((type)((wide)a[k] * (wide)b[k]));                                                           \
        case EXPR_MIN:                                                                                       \
            EACH(b[k] < a[k] ? b[k] : a[k]);                                                                 \
        case EXPR_MAX:                                                                                       \
            EACH(a[k] < b[k] ? b[k] : a[k]);                                                                 \
        case EXPR_AND:                                                                                       \
            EACH((type)(a[k] & b[k]));                                                                       \
        case EXPR_OR:                                                                                        \
            EACH((type)(a[k] | b[k]));                                                                       \
        case EXPR_XOR:                                                                                       \
            EACH((type)(a[k] ^ b[k]));                                                                       \
        case EXPR_INDEX_DIV:                                                                                 \
            EACH(b[k] > 0 ? (type)(a[k] / b[k]) : 0);                                                        \
        case EXPR_INDEX_MOD:                                                                                 \
            EACH(b[k] > 0 ? (type)(a[k] % b[k]) : 0);                                                        \
        case EXPR_SHIFT_RIGHT:                                                                               \
            EACH(b[k] >= 0 && (uint64_t)b[k] < 8 * sizeof(type) ? (type)(a[k] >> b[k])                       \
                                                                : (type)(a[k] < 0 ? -1 : 0));                \
        case EXPR_SHIFT_LEFT:                                                                                \
            EACH(b[k] >= 0 && (uint64_t)b[k] < 8 * sizeof(type) ? (type)((wide)a[k] << b[k]) : 0);           \
        default:                                                                                             \
            return false;                                                                                    \
        }                                                                                                    \
    }
INTEGER_OPERATIONS(i32_operation, int32_t, uint32_t)
INTEGER_OPERATIONS(i64_operation, int64_t, uint64_t)

static bool bool_operation(enum expr_op op, uint32_t count, uint8_t *r, const uint8_t *a, const uint8_t *b)
{
    switch (op) {
    case EXPR_AND:
        EACH(a[k] & b[k]);
    case EXPR_OR:
        EACH(a[k] | b[k]);
    case EXPR_XOR:
        EACH(a[k] ^ b[k]);
    case EXPR_NOT:
        EACH(!a[k]);
    default:
        return false;
    }
}

/* On unsigned types everything but order, division and the right shift is as on signed ones. */
static bool same_when_unsigned(enum expr_op op)
{
    return op == EXPR_ADD || op == EXPR_SUB || op == EXPR_MUL || op == EXPR_AND || op == EXPR_OR ||
           op == EXPR_XOR || op == EXPR_SHIFT_LEFT;
}

/* Unsigned shifts by a register's amounts; the others of u32 go by element. */
static bool u32_operation(enum expr_op op, uint32_t count, uint32_t *r, const uint32_t *a, const uint32_t *b)
{
    switch (op) {
    case EXPR_SHIFT_RIGHT:
        EACH(b[k] < 32 ? a[k] >> b[k] : 0);
    case EXPR_SHIFT_LEFT:
        EACH(b[k] < 32 ? a[k] << b[k] : 0);
    case EXPR_MIN:
        EACH(b[k] < a[k] ? b[k] : a[k]);
    case EXPR_MAX:
        EACH(a[k] < b[k] ? b[k] : a[k]);
    default:
        return same_when_unsigned(op) &&
               i32_operation(op, count, (int32_t *)r, (const int32_t *)a, (const int32_t *)b);
    }
}

static bool arithmetic(const struct instruction *i, uint32_t count, void *result,
                       const void *const *arguments)
{
    const void *a = arguments[0], *b = i->argument_count > 1 ? arguments[1] : NULL;
    const bool binary = b != NULL;
    switch (i->dtype) {
    case DTYPE_F32:
        return f32_operation(i->op, count, result, a, b, i->argument_count > 2 ? arguments[2] : NULL);
    case DTYPE_F64:
        return f64_operation(i->op, count, result, a, b, i->argument_count > 2 ? arguments[2] : NULL);
    case DTYPE_I32:
        return binary && i32_operation(i->op, count, result, a, b);
    case DTYPE_I64:
        return binary && i64_operation(i->op, count, result, a, b);
    case DTYPE_U32:
        return binary && u32_operation(i->op, count, result, a, b);
    case DTYPE_U64:
        return binary && i->op != EXPR_SHIFT_LEFT && same_when_unsigned(i->op) &&
               i64_operation(i->op, count, result, a, b);
    case DTYPE_BOOL:
        return bool_operation(i->op, count, result, a, b);
    default:
        return false;
    }
}

/* ---- comparison and choice
 * --------------------------------------------------------------------------------------- */

#define COMPARE_OPERATIONS(name, type)                                                                       \
    static bool name(enum expr_op op, uint32_t count, uint8_t *r, const type *a, const type *b)              \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case EXPR_EQUAL:                                                                                     \
            EACH(a[k] == b[k]);                                                                              \
        case EXPR_NOT_EQUAL:                                                                                 \
            EACH(a[k] != b[k]);                                                                              \
        case EXPR_LESS:                                                                                      \
            EACH(a[k] < b[k]);                                                                               \
        case EXPR_LESS_EQUAL:                                                                                \
            EACH(a[k] <= b[k]);                                                                              \
        default:                                                                                             \
            return false;                                                                                    \
        }                                                                                                    \
    }
COMPARE_OPERATIONS(f32_compare, float)
COMPARE_OPERATIONS(f64_compare, double)
COMPARE_OPERATIONS(i32_compare, int32_t)
COMPARE_OPERATIONS(i64_compare, int64_t)
COMPARE_OPERATIONS(u32_compare, uint32_t)
COMPARE_OPERATIONS(u64_compare, uint64_t)
COMPARE_OPERATIONS(bool_compare, uint8_t)

static bool compare(const struct instruction *i, uint32_t count, void *r, const void *a, const void *b)
{
    switch (i->from) {
    case DTYPE_F32:
        return f32_compare(i->op, count, r, a, b);
    case DTYPE_F64:
        return f64_compare(i->op, count, r, a, b);
    case DTYPE_I32:
        return i32_compare(i->op, count, r, a, b);
    case DTYPE_I64:
        return i64_compare(i->op, count, r, a, b);
    case DTYPE_U32:
        return u32_compare(i->op, count, r, a, b);
    case DTYPE_U64:
        return u64_compare(i->op, count, r, a, b);
    case DTYPE_BOOL:
        return bool_compare(i->op, count, r, a, b);
    default:
        return false;
    }
}

#define CHOOSE(type)                                                                                         \
    {                                                                                                        \
        type *r = result;                                                                                    \
        const type *then = arguments[1], *otherwise = arguments[2];                                          \
        EACH(condition[k] ? then[k] : otherwise[k]);                                                         \
    }

static bool choose_block(enum dtype dtype, uint32_t count, void *result, const void *const *arguments)
{
    const uint8_t *condition = arguments[0];
    switch (dtype_bits(dtype)) {
    case 8:
        CHOOSE(uint8_t)
    case 16:
        CHOOSE(uint16_t)
    case 32:
        CHOOSE(uint32_t)
    default:
        CHOOSE(uint64_t)
    }
}

/* ---- conversion
 * -------------------------------------------------------------------------------------------------- */

#define WIDEN(type)                                                                                          \
    for (uint32_t k = 0; k < count; k++)                                                                     \
        r[k] = (int64_t)((const type *)a)[k];                                                                \
    return true

/* Integers and bools as i64; u64 keeps its bits. */
static bool widen(enum dtype from, uint32_t count, int64_t *r, const void *a)
{
    switch (from) {
    case DTYPE_BOOL:
    case DTYPE_U8:
        WIDEN(uint8_t);
    case DTYPE_I8:
        WIDEN(int8_t);
    case DTYPE_U16:
        WIDEN(uint16_t);
    case DTYPE_I16:
        WIDEN(int16_t);
    case DTYPE_U32:
        WIDEN(uint32_t);
    case DTYPE_I32:
        WIDEN(int32_t);
    case DTYPE_U64:
    case DTYPE_I64:
        memcpy(r, a, count * sizeof *r);
        return true;
    default:
        return false;
    }
}

#define NARROW(type, value)                                                                                  \
    for (uint32_t k = 0; k < count; k++)                                                                     \
        ((type *)r)[k] = (type)(value);                                                                      \
    return true

/* i64 to another number; integers wrap. */
static bool narrow(enum dtype to, uint32_t count, void *r, const int64_t *a)
{
    switch (to) {
    case DTYPE_BOOL:
        NARROW(uint8_t, a[k] != 0);
    case DTYPE_U8:
    case DTYPE_I8:
        NARROW(uint8_t, a[k]);
    case DTYPE_U16:
    case DTYPE_I16:
        NARROW(uint16_t, a[k]);
    case DTYPE_U32:
    case DTYPE_I32:
        NARROW(uint32_t, a[k]);
    case DTYPE_U64:
    case DTYPE_I64:
        memcpy(r, a, count * sizeof *a);
        return true;
    case DTYPE_F32:
        NARROW(float, a[k]);
    case DTYPE_F64:
        NARROW(double, a[k]);
    default:
        return false;
    }
}

/* Truncates and saturates to an integer type of at most 32 bits, or i64; NaN gives 0. */
static bool saturate(enum dtype to, uint32_t count, int64_t *r, const double *a)
{
    if (!dtype_is_integer(to) || to == DTYPE_U64)
        return false;
    const unsigned bits = dtype_bits(to);
    const bool has_sign = dtype_class(to) == DTYPE_CLASS_INT;
    const int64_t high = INT64_MAX >> (64 - bits - !has_sign), low = has_sign ? -high - 1 : 0;
    const double above = (double)high; /* of i64: 2^63, which is out of range itself */
    for (uint32_t k = 0; k < count; k++) {
        const double value = trunc(a[k]);
        r[k] = value != value ? 0 : value >= above ? high : value <= (double)low ? low : (int64_t)value;
    }
    return true;
}

static bool convert_block(enum dtype to, enum dtype from, uint32_t count, void *r, const void *a)
{
    int64_t whole[BLOCK_POINTS];
    double real[BLOCK_POINTS];
    if (dtype_is_integer(from) || from == DTYPE_BOOL) {
        if (from == DTYPE_U64 && dtype_is_float(to))
            return false;
        return widen(from, count, whole, a) && narrow(to, count, r, whole);
    }
    if (from == DTYPE_F32)
        for (uint32_t k = 0; k < count; k++)
            real[k] = (double)((const float *)a)[k];
    else if (from == DTYPE_F64)
        memcpy(real, a, count * sizeof *real);
    else
        return false;
    switch (to) {
    case DTYPE_BOOL:
        NARROW(uint8_t, real[k] != 0);
    case DTYPE_F32:
        NARROW(float, real[k]);
    case DTYPE_F64:
        memcpy(r, real, count * sizeof *real);
        return true;
    default:
        return saturate(to, count, whole, real) && narrow(to, count, r, whole);
    }
}

void operate_block(const struct instruction *i, uint32_t count, void *result, const void *const *arguments)
{
    bool done = false;
    switch (expr_class_of(i->op)) {
    case EXPR_COMPARE:
        done = compare(i, count, result, arguments[0], arguments[1]);
        break;
    case EXPR_CONVERSION:
        if (i->op == EXPR_CONVERT)
            done = convert_block(i->dtype, i->from, count, result, arguments[0]);
        else if ((done = i->dtype != DTYPE_BOOL && dtype_bits(i->dtype) >= 8))
            memcpy(result, arguments[0], (size_t)count * dtype_bits(i->dtype) / 8);
        break;
    default:
        done = i->op == EXPR_SELECT ? choose_block(i->dtype, count, result, arguments)
                                    : arithmetic(i, count, result, arguments);
        break;
    }
    if (!done)
        by_element(i, count, result, arguments);
}

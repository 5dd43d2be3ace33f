/* Element types. The enumerators' numbers are ONNX's, so that files and messages agree. */
#ifndef GPUCC_IR_TYPES_H
#define GPUCC_IR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_NONE = 0,
#define DTYPE(name, number, text, bits, class) DTYPE_##name = number,
#include "ir/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
};

enum dtype_class { DTYPE_CLASS_FLOAT, DTYPE_CLASS_INT, DTYPE_CLASS_UINT, DTYPE_CLASS_BOOL, DTYPE_CLASS_OTHER };

const char *dtype_name(enum dtype dtype);         /* "f32"; "none" for anything unknown */
enum dtype dtype_from_name(const char *name);     /* DTYPE_NONE when unknown */
unsigned dtype_bits(enum dtype dtype);            /* 0 for strings */
enum dtype_class dtype_class(enum dtype dtype);
bool dtype_is_float(enum dtype dtype);
bool dtype_is_integer(enum dtype dtype);          /* signed or unsigned, not bool */
/* Bytes of `count` packed elements (4- and 2-bit types share bytes, rounded up). False when it overflows. */
bool dtype_bytes(enum dtype dtype, int64_t count, uint64_t *bytes);

/* Sets of types, for operator rows: bit n is the type with number n. */
typedef uint32_t dtype_set;
#define DTYPE_BIT(name)   (UINT32_C(1) << DTYPE_##name)
#define DTYPES_FLOAT      (DTYPE_BIT(F16) | DTYPE_BIT(BF16) | DTYPE_BIT(F32) | DTYPE_BIT(F64))
#define DTYPES_SIGNED     (DTYPE_BIT(I8) | DTYPE_BIT(I16) | DTYPE_BIT(I32) | DTYPE_BIT(I64))
#define DTYPES_UNSIGNED   (DTYPE_BIT(U8) | DTYPE_BIT(U16) | DTYPE_BIT(U32) | DTYPE_BIT(U64))
#define DTYPES_INTEGER    (DTYPES_SIGNED | DTYPES_UNSIGNED)
#define DTYPES_NUMBER     (DTYPES_FLOAT | DTYPES_INTEGER)
#define DTYPES_INDEX      (DTYPE_BIT(I32) | DTYPE_BIT(I64))
#define DTYPES_BOOL       DTYPE_BIT(BOOL)
/* Types that arithmetic takes: strings and complex numbers are carried, not computed. */
#define DTYPES_COMPUTE    (DTYPES_NUMBER | DTYPES_BOOL)
/* Types that are stored only: converted, quantised to and from, moved. Those of less than a byte are packed. */
#define DTYPES_NARROW                                                                                                  \
    (DTYPE_BIT(F8E4M3FN) | DTYPE_BIT(F8E4M3FNUZ) | DTYPE_BIT(F8E5M2) | DTYPE_BIT(F8E5M2FNUZ) | DTYPE_BIT(F8E8M0) |      \
     DTYPE_BIT(F4E2M1) | DTYPE_BIT(U4) | DTYPE_BIT(I4) | DTYPE_BIT(U2) | DTYPE_BIT(I2))
#define DTYPES_STORED     (DTYPES_COMPUTE | DTYPES_NARROW)

#endif

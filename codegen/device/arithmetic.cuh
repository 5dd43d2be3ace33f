// Arithmetic as the compiler states it (ir/expr.def), in pieces of which a kernel gets those it uses; see
// codegen/print_cuda_prelude.c for the lines that begin with "//!".

//! DEVICE
#define DEVICE static __device__ __forceinline__

//! infinity
#define infinity __int_as_float(0x7f800000)

//! wrap_add_i32
DEVICE int wrap_add_i32(int a, int b) { return (int)((unsigned)a + (unsigned)b); }

//! wrap_add_i64
DEVICE long long wrap_add_i64(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }

//! wrap_sub_i32
DEVICE int wrap_sub_i32(int a, int b) { return (int)((unsigned)a - (unsigned)b); }

//! wrap_sub_i64
DEVICE long long wrap_sub_i64(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }

//! wrap_mul_i32
DEVICE int wrap_mul_i32(int a, int b) { return (int)((unsigned)a * (unsigned)b); }

//! wrap_mul_i64
DEVICE long long wrap_mul_i64(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }

//! wrap_neg_i32
DEVICE int wrap_neg_i32(int a) { return (int)(0u - (unsigned)a); }

//! wrap_neg_i64
DEVICE long long wrap_neg_i64(long long a) { return (long long)(0ull - (unsigned long long)a); }

//! wrap_abs_i32
DEVICE int wrap_abs_i32(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }

//! wrap_abs_i64
DEVICE long long wrap_abs_i64(long long a) { return a < 0 ? (long long)(0ull - (unsigned long long)a) : a; }

//! index_div_i32
// Nothing is negative, so the cheaper unsigned division serves.
DEVICE int index_div_i32(int a, int b) { return (int)((unsigned)a / (unsigned)b); }

//! index_div_i64
// Nothing is negative, so the cheaper unsigned division serves.
DEVICE long long index_div_i64(long long a, long long b) { return (long long)((unsigned long long)a / (unsigned long long)b); }

//! index_mod_i32
// Nothing is negative, so the cheaper unsigned division serves.
DEVICE int index_mod_i32(int a, int b) { return (int)((unsigned)a % (unsigned)b); }

//! index_mod_i64
// Nothing is negative, so the cheaper unsigned division serves.
DEVICE long long index_mod_i64(long long a, long long b) { return (long long)((unsigned long long)a % (unsigned long long)b); }

//! 80+ minimum_f32
// NaN if either is NaN; -0 is less than +0.
DEVICE float minimum_f32(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

//! 80- minimum_f32
// NaN if either is NaN; -0 is less than +0.
DEVICE float minimum_f32(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) | __float_as_uint(b)) : a < b ? a : b;
}

//! minimum_f64
// NaN if either is NaN; -0 is less than +0.
DEVICE double minimum_f64(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b)) : a < b ? a : b;
}

//! 80+ maximum_f32
// NaN if either is NaN; -0 is less than +0.
DEVICE float maximum_f32(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

//! 80- maximum_f32
// NaN if either is NaN; -0 is less than +0.
DEVICE float maximum_f32(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) & __float_as_uint(b)) : a < b ? b : a;
}

//! maximum_f64
// NaN if either is NaN; -0 is less than +0.
DEVICE double maximum_f64(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b)) : a < b ? b : a;
}

//! shift_left_u32
// By the width or more: 0.
DEVICE unsigned shift_left_u32(unsigned a, unsigned n) { return n < 32u ? a << n : 0; }

//! shift_right_u32
// By the width or more: 0.
DEVICE unsigned shift_right_u32(unsigned a, unsigned n) { return n < 32u ? a >> n : 0; }

//! shift_left_i32
// By the width or more: 0.
DEVICE int shift_left_i32(int a, int n) { return (unsigned)n < 32u ? (int)((unsigned)a << n) : 0; }

//! shift_right_i32
// By the width or more: the sign.
DEVICE int shift_right_i32(int a, int n) { return a >> ((unsigned)n < 32u ? n : 31); }

//! shift_left_u64
// By the width or more: 0.
DEVICE unsigned long long shift_left_u64(unsigned long long a, unsigned long long n) { return n < 64u ? a << n : 0; }

//! shift_right_u64
// By the width or more: 0.
DEVICE unsigned long long shift_right_u64(unsigned long long a, unsigned long long n) { return n < 64u ? a >> n : 0; }

//! shift_left_i64
// By the width or more: 0.
DEVICE long long shift_left_i64(long long a, long long n) { return (unsigned long long)n < 64u ? (long long)((unsigned long long)a << n) : 0; }

//! shift_right_i64
// By the width or more: the sign.
DEVICE long long shift_right_i64(long long a, long long n) { return a >> ((unsigned long long)n < 64u ? n : 63); }

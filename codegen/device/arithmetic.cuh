// Arithmetic as the compiler states it (ir/expr.def), in pieces of which a kernel gets those it uses; see
// codegen/print_cuda_prelude.c for the lines that begin with "//!".

//! DEVICE
#define DEVICE static __device__ __forceinline__

//! infinity
#define infinity __int_as_float(0x7f800000)

//! wrap_add
DEVICE int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
DEVICE long long wrap_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
DEVICE long long wrap_add(long long a, int b) { return wrap_add(a, (long long)b); }
DEVICE long long wrap_add(int a, long long b) { return wrap_add((long long)a, b); }

//! wrap_sub
DEVICE int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
DEVICE long long wrap_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
DEVICE long long wrap_sub(long long a, int b) { return wrap_sub(a, (long long)b); }
DEVICE long long wrap_sub(int a, long long b) { return wrap_sub((long long)a, b); }

//! wrap_mul
DEVICE int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE long long wrap_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
DEVICE long long wrap_mul(long long a, int b) { return wrap_mul(a, (long long)b); }
DEVICE long long wrap_mul(int a, long long b) { return wrap_mul((long long)a, b); }

//! wrap_neg
DEVICE int wrap_neg(int a) { return (int)(0u - (unsigned)a); }
DEVICE long long wrap_neg(long long a) { return (long long)(0ull - (unsigned long long)a); }

//! wrap_abs
DEVICE int wrap_abs(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }
DEVICE long long wrap_abs(long long a) { return a < 0 ? (long long)(0ull - (unsigned long long)a) : a; }
DEVICE unsigned wrap_abs(unsigned a) { return a; }
DEVICE unsigned long long wrap_abs(unsigned long long a) { return a; }

//! index_div
// Nothing is negative, so the cheaper unsigned division serves.
DEVICE int index_div(int a, int b) { return (int)((unsigned)a / (unsigned)b); }
DEVICE long long index_div(long long a, long long b) { return (long long)((unsigned long long)a / (unsigned long long)b); }
DEVICE long long index_div(long long a, int b) { return index_div(a, (long long)b); }
DEVICE long long index_div(int a, long long b) { return index_div((long long)a, b); }

//! index_mod
DEVICE int index_mod(int a, int b) { return (int)((unsigned)a % (unsigned)b); }
DEVICE long long index_mod(long long a, long long b) { return (long long)((unsigned long long)a % (unsigned long long)b); }
DEVICE long long index_mod(long long a, int b) { return index_mod(a, (long long)b); }
DEVICE long long index_mod(int a, long long b) { return index_mod((long long)a, b); }

//! minimum
template <typename T> DEVICE T minimum(T a, T b) { return b < a ? b : a; }
DEVICE long long minimum(long long a, int b) { return b < a ? b : a; }
DEVICE long long minimum(int a, long long b) { return b < a ? b : a; }

//! 80+ minimum
// NaN if either is NaN; -0 is less than +0.
DEVICE float minimum(float a, float b)
{
    float least;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
    return least;
}

//! 80- minimum
// NaN if either is NaN; -0 is less than +0.
DEVICE float minimum(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) | __float_as_uint(b)) : a < b ? a : b;
}

//! minimum
DEVICE double minimum(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b)) : a < b ? a : b;
}

//! maximum
template <typename T> DEVICE T maximum(T a, T b) { return a < b ? b : a; }
DEVICE long long maximum(long long a, int b) { return a < b ? b : a; }
DEVICE long long maximum(int a, long long b) { return a < b ? b : a; }

//! 80+ maximum
// NaN if either is NaN; -0 is less than +0.
DEVICE float maximum(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}

//! 80- maximum
// NaN if either is NaN; -0 is less than +0.
DEVICE float maximum(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) & __float_as_uint(b)) : a < b ? b : a;
}

//! maximum
DEVICE double maximum(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b)) : a < b ? b : a;
}

//! shift_left
// By the width or more: 0.
DEVICE unsigned shift_left(unsigned a, unsigned n) { return n < 32u ? a << n : 0u; }
DEVICE int shift_left(int a, int n) { return (int)shift_left((unsigned)a, (unsigned)n); }
DEVICE unsigned long long shift_left(unsigned long long a, unsigned long long n) { return n < 64u ? a << n : 0u; }
DEVICE long long shift_left(long long a, long long n) { return (long long)shift_left((unsigned long long)a, (unsigned long long)n); }

//! shift_right
// By the width or more: 0, or the sign.
DEVICE unsigned shift_right(unsigned a, unsigned n) { return n < 32u ? a >> n : 0u; }
DEVICE int shift_right(int a, int n) { return a >> ((unsigned)n < 32u ? n : 31); }
DEVICE unsigned long long shift_right(unsigned long long a, unsigned long long n) { return n < 64u ? a >> n : 0u; }
DEVICE long long shift_right(long long a, long long n) { return a >> ((unsigned long long)n < 64u ? n : 63); }

// Arithmetic as the compiler states it: integers wrap, minima and maxima pass NaN on and know -0 from +0, shifts
// by the width or more give 0 or the sign.
#define DEVICE static __device__ __forceinline__
DEVICE int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
DEVICE int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
DEVICE int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
DEVICE int wrap_neg(int a) { return (int)(0u - (unsigned)a); }
DEVICE int wrap_abs(int a) { return a < 0 ? wrap_neg(a) : a; }
DEVICE long long wrap_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
DEVICE long long wrap_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
DEVICE long long wrap_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
DEVICE long long wrap_add(long long a, int b) { return wrap_add(a, (long long)b); }
DEVICE long long wrap_add(int a, long long b) { return wrap_add((long long)a, b); }
DEVICE long long wrap_sub(long long a, int b) { return wrap_sub(a, (long long)b); }
DEVICE long long wrap_sub(int a, long long b) { return wrap_sub((long long)a, b); }
DEVICE long long wrap_mul(long long a, int b) { return wrap_mul(a, (long long)b); }
DEVICE long long wrap_mul(int a, long long b) { return wrap_mul((long long)a, b); }
DEVICE long long wrap_neg(long long a) { return (long long)(0ull - (unsigned long long)a); }
DEVICE long long wrap_abs(long long a) { return a < 0 ? wrap_neg(a) : a; }
DEVICE unsigned wrap_abs(unsigned a) { return a; }
DEVICE unsigned long long wrap_abs(unsigned long long a) { return a; }
// Index arithmetic: nothing is negative, so the cheaper unsigned division serves.
DEVICE int index_div(int a, int b) { return (int)((unsigned)a / (unsigned)b); }
DEVICE int index_mod(int a, int b) { return (int)((unsigned)a % (unsigned)b); }
DEVICE long long index_div(long long a, long long b) { return (long long)((unsigned long long)a / (unsigned long long)b); }
DEVICE long long index_mod(long long a, long long b) { return (long long)((unsigned long long)a % (unsigned long long)b); }
DEVICE long long index_div(long long a, int b) { return index_div(a, (long long)b); }
DEVICE long long index_div(int a, long long b) { return index_div((long long)a, b); }
DEVICE long long index_mod(long long a, int b) { return index_mod(a, (long long)b); }
DEVICE long long index_mod(int a, long long b) { return index_mod((long long)a, b); }
template <typename T> DEVICE T minimum(T a, T b) { return b < a ? b : a; }
template <typename T> DEVICE T maximum(T a, T b) { return a < b ? b : a; }
DEVICE long long minimum(long long a, int b) { return b < a ? b : a; }
DEVICE long long minimum(int a, long long b) { return b < a ? b : a; }
DEVICE long long maximum(long long a, int b) { return a < b ? b : a; }
DEVICE long long maximum(int a, long long b) { return a < b ? b : a; }
DEVICE float minimum(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) | __float_as_uint(b)) : a < b ? a : b;
}
DEVICE float maximum(float a, float b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __uint_as_float(__float_as_uint(a) & __float_as_uint(b)) : a < b ? b : a;
}
DEVICE double minimum(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b)) : a < b ? a : b;
}
DEVICE double maximum(double a, double b)
{
    if (a != a || b != b)
        return a + b;
    return a == b ? __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b)) : a < b ? b : a;
}
DEVICE unsigned shift_left(unsigned a, unsigned n) { return n < 32u ? a << n : 0u; }
DEVICE unsigned shift_right(unsigned a, unsigned n) { return n < 32u ? a >> n : 0u; }
DEVICE int shift_left(int a, int n) { return (int)shift_left((unsigned)a, (unsigned)n); }
DEVICE int shift_right(int a, int n) { return a >> ((unsigned)n < 32u ? n : 31); }
DEVICE unsigned long long shift_left(unsigned long long a, unsigned long long n) { return n < 64u ? a << n : 0u; }
DEVICE unsigned long long shift_right(unsigned long long a, unsigned long long n) { return n < 64u ? a >> n : 0u; }
DEVICE long long shift_left(long long a, long long n) { return (long long)shift_left((unsigned long long)a, (unsigned long long)n); }
DEVICE long long shift_right(long long a, long long n) { return a >> ((unsigned long long)n < 64u ? n : 63); }
// Vectors of elements, for accesses of up to 16 bytes. The printer adds one line a type.
#define VECTOR(name, type, lanes)                                                                                      \
    struct __align__(sizeof(type) * lanes) name {                                                                      \
        type v[lanes];                                                                                                 \
    };                                                                                                                 \
    DEVICE name load_##name(const type *from) { return *(const name *)from; }                                          \
    DEVICE void store_##name(type *to, const name &value) { *(name *)to = value; }

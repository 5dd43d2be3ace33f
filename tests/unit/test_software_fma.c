/* The fma of processors without one, in scalars and in vectors, against the C library's, bit for bit:
 * cancellation, ties, results at and below the smallest normal number, overflow, zeros, infinities and NaN.
 */
#include "tests/unit/kernel_support.h"

#include "ir/support/hash.h"

#include <math.h>

enum { COUNT = 1 << 16, LANES = 4 };

/* y[i] = fma(a[i], b[i], c[i]), `lanes` at a time. */
static struct kernel *fma_kernel(struct arena *arena, struct dims *dims, enum dtype dtype, uint16_t lanes)
{
    struct kernel *kernel = kernel_new(arena, dims);
    struct exprs *pool = kernel->pool;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    expr arguments[3], i;
    for (int k = 0; k < 4; k++)
        kernel_memory_add(
            kernel, &(struct kernel_memory){.dtype = dtype, .read = k < 3, .written = k == 3, .label = "x"});
    build_for(&top, "i", expr_index(pool, 0), expr_index(pool, COUNT), expr_index(pool, lanes),
              lanes == 1 ? LOOP_VECTORISE : LOOP_SERIAL, &body, &i);
    for (uint32_t k = 0; k < 3; k++)
        arguments[k] = kernel_element(kernel, k, i, lanes);
    build_store(&body, 3, i, expr_fma(pool, arguments[0], arguments[1], arguments[2]));
    return kernel;
}

/* Bits that make the sum hard: c is often near -a * b, or half a unit of it, or far from it. */
static double hard(unsigned i, unsigned which, const double *before)
{
    static const double edges[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   0x1p-1022,
                                   0x1p-1074,
                                   -0x1p-1074,
                                   0x1.fffffffffffffp1023,
                                   0x1.fffffffffffffp-1023};
    const uint64_t word = hash_word(0x5151, (uint64_t)i * 3 + which);
    const unsigned kind = i % 8;
    double value;
    uint64_t bits = word;
    if (kind == 0)
        return edges[word % (sizeof edges / sizeof *edges)];
    if (kind <= 3 && which < 2) /* products around the smallest numbers, around 1, and around the largest */
        bits = (word & UINT64_C(0x800fffffffffffff)) | (uint64_t)(kind == 1   ? 480 + (word >> 53) % 40
                                                                  : kind == 2 ? 1020 + (word >> 53) % 6
                                                                              : 1520 + (word >> 53) % 20)
                                                           << 52;
    if (kind == 4 && which < 2) /* few bits: exact products and ties */
        bits = (word & UINT64_C(0x8000000000000000)) | UINT64_C(1023) << 52 | (word & 0x3f) << 46;
    memcpy(&value, &bits, sizeof value);
    if (which < 2 || kind > 5)
        return value;
    const double product = before[0] * before[1];
    const int exponent = (int)(word >> 8 & 0x7f) - 64;
    switch (word & 3) {
    case 0:
        return -product;
    case 1:
        return nextafter(-product, (word & 4) ? INFINITY : -INFINITY);
    case 2:
        return ldexp(product, exponent);
    default:
        return -ldexp(1, ilogb(product == 0 || !isfinite(product) ? 1 : product) + exponent);
    }
}

/* The same for f32, whose product is exact in f64. */
static float hard_single(unsigned i, unsigned which, const float *before)
{
    const uint64_t word = hash_word(0x7171, (uint64_t)i * 3 + which);
    uint32_t bits = (uint32_t)word;
    float value;
    if (i % 8 == 0)
        return (float)hard(i, which, (const double[]){0, 0});
    if (i % 8 <= 3)
        bits = (bits & 0x807fffff) | (uint32_t)(i % 8 == 1   ? 55 + (word >> 40) % 20
                                                : i % 8 == 2 ? 126 + (word >> 40) % 3
                                                             : 185 + (word >> 40) % 8)
                                         << 23;
    if (i % 8 == 4) /* products of a few bits beside a summand: ties */
        bits = (bits & 0x80000000) | 127u << 23 | (bits & 0xfff) << 11;
    memcpy(&value, &bits, sizeof value);
    if (which < 2 || i % 8 > 5)
        return value;
    const double product = (double)before[0] * before[1];
    return (word >> 32 & 3) == 0   ? (float)-product
           : (word >> 32 & 3) == 1 ? nextafterf((float)-product, 0)
                                   : (float)ldexp(product, (int)(word >> 34 & 0x3f) - 32);
}

static void compare_doubles(const double *a, const double *b, const double *c, const double *y)
{
    for (unsigned i = 0; i < COUNT; i++) {
        const double expected = fma(a[i], b[i], c[i]);
        if (memcmp(&y[i], &expected, sizeof expected) != 0 && !(isnan(y[i]) && isnan(expected)))
            fail_msg("fma(%a, %a, %a) is %a, expected %a", a[i], b[i], c[i], y[i], expected);
    }
}

static void compare_singles(const float *a, const float *b, const float *c, const float *y)
{
    for (unsigned i = 0; i < COUNT; i++) {
        const float expected = fmaf(a[i], b[i], c[i]);
        if (memcmp(&y[i], &expected, sizeof expected) != 0 && !(isnan(y[i]) && isnan(expected)))
            fail_msg("fmaf(%a, %a, %a) is %a, expected %a", (double)a[i], (double)b[i], (double)c[i],
                     (double)y[i], (double)expected);
    }
}

static void test_fma(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    static double doubles[4][COUNT];
    static float singles[4][COUNT];
    const struct machine *machine = machine_find("cpu-v2");
    const struct object_kernel kernels[] = {
        {fma_kernel(&arena, &dims, DTYPE_F64, 1), "f64", machine},
        {fma_kernel(&arena, &dims, DTYPE_F64, LANES), "f64_lanes", machine},
        {fma_kernel(&arena, &dims, DTYPE_F32, 1), "f32", machine},
        {fma_kernel(&arena, &dims, DTYPE_F32, LANES), "f32_lanes", machine}};
    struct library library = load_kernels(&arena, kernels, 4);
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned k = 0; k < 3; k++) {
            doubles[k][i] = hard(i, k, (const double[]){doubles[0][i], doubles[1][i]});
            singles[k][i] = hard_single(i, k, (const float[]){singles[0][i], singles[1][i]});
        }
    for (unsigned k = 0; k < 4; k++) {
        void *of_doubles[] = {doubles[0], doubles[1], doubles[2], doubles[3]};
        void *of_singles[] = {singles[0], singles[1], singles[2], singles[3]};
        library_kernel(&library, kernels[k].symbol)(k < 2 ? of_doubles : of_singles, NULL, 0, 1, NULL);
        if (k < 2)
            compare_doubles(doubles[0], doubles[1], doubles[2], doubles[3]);
        else
            compare_singles(singles[0], singles[1], singles[2], singles[3]);
        memset(doubles[3], 0xee, sizeof doubles[3]);
        memset(singles[3], 0xee, sizeof singles[3]);
    }
    dlclose(library.handle);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

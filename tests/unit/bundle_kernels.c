/* Kernels of the hand-made plans in tests of bundles, with the signature of runtime/bundle_format.h. Compiled
 * to an object that is linked into those bundles. */
#include <stdint.h>

void test_scale(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch);
void test_add(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch);

/* buffers: x [n, 4], w [4], t [n, 4]; a parallel loop over rows. Scratch that is not aligned shows as a wrong
 * result. */
void test_scale(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch)
{
    const float *x = buffers[0], *w = buffers[1];
    float *t = buffers[2];
    float *copy = scratch;
    float fault = (uintptr_t)scratch % 64 || end > dims[0] ? 1e30f : 0.0f;
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < 4; column++) {
            copy[column] = w[column];
            t[4 * row + column] = x[4 * row + column] * copy[column] + fault;
        }
}

/* buffers: t [n, 4], big [1000 ..], y [n, 4]. */
void test_add(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch)
{
    const float *t = buffers[0], *big = buffers[1];
    float *y = buffers[2];
    (void)dims;
    (void)scratch;
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < 4; column++)
            y[4 * row + column] = t[4 * row + column] + big[row % 1000];
}

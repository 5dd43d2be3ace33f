// Transposed through tiles over [70, 37], 1 stored.
// At the planned dims: 20720 bytes, 75110 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_transpose: tile=32x32.
extern "C" __global__ void __launch_bounds__(256)
kernel_0(const float *__restrict__ in_0, float *__restrict__ out_1)
{
    __shared__ __align__(16) float tile_2[1056];
    const int block1 = (int)blockIdx.x;
    const int from2 = index_mod(block1, 3) * 32;
    const int rest3 = index_div(block1, 3);
    const int to4 = rest3 * 32;
    #pragma unroll
    for (int step5 = 0; step5 < 32; step5 += 8) {
        const int row6 = (int)threadIdx.y + step5;
        const int fast7 = from2 + (int)threadIdx.x;
        const int slow8 = to4 + row6;
        if (fast7 < 70 && slow8 < 37) {
            tile_2[row6 * 33 + (int)threadIdx.x] = in_0[fast7 + slow8 * 70];
        }
    }
    __syncthreads();
    #pragma unroll
    for (int step9 = 0; step9 < 32; step9 += 8) {
        const int row10 = (int)threadIdx.y + step9;
        const int fast11 = to4 + (int)threadIdx.x;
        const int slow12 = from2 + row10;
        if (fast11 < 37 && slow12 < 70) {
            const float t1 = tile_2[(int)threadIdx.x * 33 + row10];
            const bool t2 = t1 < 0.0f;
            const float t3 = -fabsf(t1);
            const float t4 = __fmaf_rn(t3, 1.442695f, 12582912.0f);
            const float t5 = t4 + -12582912.0f;
            const float t6 = __fmaf_rn(t5, 1.9046542e-09f, __fmaf_rn(t5, -0.6931472f, t3));
            const int t7 = wrap_add(__float_as_int(t4), -1262485504);
            const int t8 = shift_right(t7, 1);
            const float t9 = 89.0f < t3 ? __uint_as_float(0x7f800000u) : t3 < -104.5f ? 0.0f : __fmaf_rn(__fmaf_rn(__fmaf_rn(__fmaf_rn(__fmaf_rn(__fmaf_rn(0.0013822317f, t6, 0.00836884f), t6, 0.04166825f), t6, 0.1666652f), t6, 0.49999994f), t6, 1.0f), t6, 1.0f) * __int_as_float(shift_left(wrap_add(t8, 127), 23)) * __int_as_float(shift_left(wrap_add(wrap_sub(t7, t8), 127), 23));
            const float t10 = 1.0f + t9;
            const float t11 = (t2 ? t9 : 1.0f) / t10;
            out_1[fast11 + slow12 * 37] = t1 * __fmaf_rn(t11 * (1.0f - t10 + t9), t2 ? t11 - 1.0f : -t11, t11);
        }
    }
}

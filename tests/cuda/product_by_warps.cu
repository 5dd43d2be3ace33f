// Matrix product on tensor cores over [s4, s5 | s1] (reduced behind the bar), 2 stored.
// Reads x f16[s0, s1], y f16[s2, s3], z f16[s5], w f16[s4, s5]; writes out f16[s4, s5], out2 f32[s4, s5].
// At the planned dims: 27422 bytes, 417693 operations; no less than 0.01 us on sm_90a (memory).
// Strategy gpu_matmul_mma: tile=128x64x32, warp=32x32, stages=4.
extern "C" __global__ void __launch_bounds__(256, 2)
kernel_0(const unsigned short *__restrict__ x, const unsigned short *__restrict__ y, unsigned short *__restrict__ out, const unsigned short *__restrict__ z, const unsigned short *__restrict__ w, float *__restrict__ out2, int size, int size2, int size3, int size4, int size5, int size6, int size7, int w_stride_0)
{
    float run[8];
    float sum[32];
    __shared__ __align__(128) unsigned short tiles_a[16384];
    __shared__ __align__(128) unsigned short tiles_b[8192];
    const int thread = threadIdx.x;
    const int block = blockIdx.x;
    const int first = index_div_i32(block, size) * 8;
    const int height = min(size2 - first, 8);
    const int inside = index_mod_i32(block, size);
    const int row0 = (first + index_mod_i32(inside, height)) * 128;
    const int column0 = index_div_i32(inside, height) * 64;
    const int warp = thread / 32;
    const int warp_row = warp / 2 * 32;
    const int warp_column = warp % 2 * 32;
    matmul_mma<0, 128, 64, 32, 4, 32, 32, 1, 0, 32>(sum, tiles_a, tiles_b, &x[0], &y[0], 1, 256, size3, size4 == 0, size5, size6 == 0, row0, column0, size7, w_stride_0, size3, warp_row, warp_column, thread);
    const int row1 = row0 + warp_row;
    const int column1 = column0 + warp_column;
    const int lane = thread % 32;
    const int lane_row = lane / 4;
    const int lane_run = lane % 4;
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        #pragma unroll
        for (int q = 0; q < 1; ++q) {
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                fragment_run(run, sum, half * 2 + (q * 4 + i * 4) * 4, thread);
                const int row = row1 + (lane_row + half * 8 + i * 16);
                const int column = column1 + (lane_run * 8 + q * 32);
                if (row < size7) {
                    #pragma unroll
                    for (int lane2 = 0; lane2 < 8; ++lane2) {
                        const int column2 = column + lane2;
                        if (column2 < w_stride_0) {
                            const int at = column2 + row * w_stride_0;
                            const float t = f32_from_f16(z[column2]) + run[lane2];
                            out[at] = f16_from_f32(t * 0.5f * (erf_f32(t * 0.70710677f) + 1.0f) + f32_from_f16(w[at]));
                            out2[column2 + row * w_stride_0] = f32_from_f16(z[column2]) + run[lane2];
                        }
                    }
                }
            }
        }
    }
}

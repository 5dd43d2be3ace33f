// Matrix product on tensor cores over [s4, s5 | s1] (reduced behind the bar), 2 stored.
// Reads x f16[s0, s1], y f16[s2, s3], z f16[s5], w f16[s4, s5]; writes out f16[s4, s5], out2 f32[s4, s5].
// At the planned dims: 36710 bytes, 869537 operations; no less than 0.01 us on sm_90a (arithmetic).
// Strategy gpu_matmul_wgmma: tile=64x64x64, stages=12.
extern "C" __global__ void __launch_bounds__(256, 1)
kernel_0(const unsigned short *__restrict__ x, const unsigned short *__restrict__ y, unsigned short *__restrict__ out, const unsigned short *__restrict__ z, const unsigned short *__restrict__ w, float *__restrict__ out2, int size, int size2, int size3, int size4, int size5, int size6, int w_stride_0, const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b)
{
    extern __shared__ __align__(1024) unsigned char shared_bytes_1024[];
    float run[8];
    float sum[32];
    unsigned short *const tiles_a = (unsigned short *)(shared_bytes_1024 + 0);
    unsigned short *const tiles_b = (unsigned short *)(shared_bytes_1024 + 98304);
    mbarrier *const full = (mbarrier *)(shared_bytes_1024 + 196608);
    mbarrier *const empty = (mbarrier *)(shared_bytes_1024 + 196704);
    const int thread = threadIdx.x;
    if (thread == 0) {
        ring_begin<12>(full, empty, 4);
    }
    __syncthreads();
    if (thread < 128) {
        // The copies, on one thread's word.
        registers_give<40>();
        if (thread == 0) {
            unsigned at = 0u;
            for (int tile = (int)blockIdx.x; tile < size; tile += size2) {
                const int first = index_div_i32(tile, size3) * 8;
                const int height = min(size4 - first, 8);
                const int inside = index_mod_i32(tile, size3);
                const int row0 = (first + index_mod_i32(inside, height)) * 64;
                const int column0 = index_div_i32(inside, height) * 64;
                matmul_wgmma_load<64, 64, 12, 1, 0, 2, 2>(map_a, map_b, tiles_a, tiles_b, full, empty, row0, column0, 0, 0, 0, 0, 0, 0, size5, at);
            }
        }
    } else {
        // The products.
        registers_take<232>();
        const int group = thread / 128 - 1;
        const int warp_row = thread / 32 * 16 - 64;
        unsigned at = 0u;
        for (int tile = (int)blockIdx.x; tile < size; tile += size2) {
            const int first = index_div_i32(tile, size3) * 8;
            const int height = min(size4 - first, 8);
            const int inside = index_mod_i32(tile, size3);
            const int row0 = (first + index_mod_i32(inside, height)) * 64;
            const int column0 = index_div_i32(inside, height) * 64;
            matmul_wgmma<0, 64, 64, 12, 1, 0>(sum, tiles_a, tiles_b, full, empty, group, size5, thread, at);
            const int row1 = row0 + warp_row;
            const int lane = thread % 32;
            const int lane_row = lane / 4;
            const int lane_run = lane % 4;
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                #pragma unroll
                for (int q = 0; q < 2; ++q) {
                    #pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        fragment_run(run, sum, half * 2 + (q * 4 + i * 8) * 4, thread);
                        const int row = row1 + (lane_row + half * 8 + i * 16);
                        const int column = column0 + (lane_run * 8 + q * 32);
                        if (row < size6) {
                            #pragma unroll
                            for (int lane2 = 0; lane2 < 8; ++lane2) {
                                const int column2 = column + lane2;
                                if (column2 < w_stride_0) {
                                    const int at2 = column2 + row * w_stride_0;
                                    const float t = f32_from_f16(z[column2]) + run[lane2];
                                    out[at2] = f16_from_f32(t * 0.5f * (erf_f32(t * 0.70710677f) + 1.0f) + f32_from_f16(w[at2]));
                                    out2[column2 + row * w_stride_0] = f32_from_f16(z[column2]) + run[lane2];
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

// Matrix product on tensor cores over [s4, s5 | s1] (reduced behind the bar), 2 stored.
// Reads x f16[s0, s1], y f16[s2, s3], z f16[s5], w f16[s4, s5]; writes out f16[s4, s5], out2 f32[s4, s5].
// At the planned dims: 36710 bytes, 869537 operations; no less than 0.01 us on sm_90a (arithmetic).
// Strategy gpu_matmul_mma: tile=32x64x64, warp=16x32, stages=4.
extern "C" __global__ void __launch_bounds__(128, 1)
kernel_1(const unsigned short *__restrict__ x, const unsigned short *__restrict__ y, unsigned short *__restrict__ out, const unsigned short *__restrict__ z, const unsigned short *__restrict__ w, float *__restrict__ out2, int size, int size2, int size3, int size4, int size5, int size6, int size7, int w_stride_0)
{
    float run[8];
    float sum[16];
    __shared__ __align__(128) unsigned short tiles_a[8192];
    __shared__ __align__(128) unsigned short tiles_b[16384];
    const int thread = threadIdx.x;
    const int block = blockIdx.x;
    const int first = index_div_i32(block, size) * 8;
    const int height = min(size2 - first, 8);
    const int inside = index_mod_i32(block, size);
    const int row0 = (first + index_mod_i32(inside, height)) * 32;
    const int column0 = index_div_i32(inside, height) * 64;
    const int warp = thread / 32;
    const int warp_row = warp / 2 * 16;
    const int warp_column = warp % 2 * 32;
    matmul_mma<0, 32, 64, 64, 4, 16, 32, 1, 0, 32>(sum, tiles_a, tiles_b, &x[0], &y[0], 1, 128, size3, size4 == 0, size5, size6 == 0, row0, column0, size7, w_stride_0, size3, warp_row, warp_column, thread);
    const int row1 = row0 + warp_row;
    const int column1 = column0 + warp_column;
    const int lane = thread % 32;
    const int lane_row = lane / 4;
    const int lane_run = lane % 4;
    #pragma unroll
    for (int i = 0; i < 1; ++i) {
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

// Matrix product on tensor cores over [130, 264 | 136] (reduced behind the bar), 2 stored.
// Reads x f16[130, 136], y f16[136, 264], z f16[264], w f16[130, 264]; writes out f16[130, 264], out2 f32[130, 264].
// At the planned dims: 382256 bytes, 20145840 operations; no less than 0.30 us on sm_90a (arithmetic).
// Strategy gpu_matmul_wgmma: tile=64x64x64, stages=12.
extern "C" __global__ void __launch_bounds__(256, 1)
kernel_0(const unsigned short *__restrict__ x, const unsigned short *__restrict__ y, unsigned short *__restrict__ out, const unsigned short *__restrict__ z, const unsigned short *__restrict__ w, float *__restrict__ out2, const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b)
{
    constexpr int W_STRIDE_0 = 264, OUT_STRIDE_0 = 264;
    extern __shared__ __align__(1024) unsigned char shared_bytes_1024[];
    float run[8];
    float sum[32];
    unsigned short *const tiles_a = (unsigned short *)(shared_bytes_1024 + 0);
    unsigned short *const tiles_b = (unsigned short *)(shared_bytes_1024 + 98304);
    mbarrier *const full = (mbarrier *)(shared_bytes_1024 + 196608);
    mbarrier *const empty = (mbarrier *)(shared_bytes_1024 + 196704);
    unsigned short with[8];
    unsigned short with2[8];
    unsigned short result[8];
    float result2[8];
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
            for (int tile = (int)blockIdx.x; tile < 15; tile += 15) {
                const int first = tile / 40 * 8;
                const int height = min(3 - first, 8);
                const int inside = tile % 40;
                const int row0 = (first + index_mod_i32(inside, height)) * 64;
                const int column0 = index_div_i32(inside, height) * 64;
                matmul_wgmma_load<64, 64, 12, 1, 0, 2, 2>(map_a, map_b, tiles_a, tiles_b, full, empty, row0, column0, 0, 0, 0, 0, 0, 0, 136, at);
            }
        }
    } else {
        // The products.
        registers_take<232>();
        const int group = thread / 128 - 1;
        const int warp_row = thread / 32 * 16 - 64;
        unsigned at = 0u;
        for (int tile = (int)blockIdx.x; tile < 15; tile += 15) {
            const int first = tile / 40 * 8;
            const int height = min(3 - first, 8);
            const int inside = tile % 40;
            const int row0 = (first + index_mod_i32(inside, height)) * 64;
            const int column0 = index_div_i32(inside, height) * 64;
            matmul_wgmma<0, 64, 64, 12, 1, 0>(sum, tiles_a, tiles_b, full, empty, group, 136, thread, at);
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
                        if (row < 130) {
                            if (column < 264) {
                                const f16x8 vector = *(const f16x8 *)&z[column];
                                with[0] = vector.v[0];
                                with[1] = vector.v[1];
                                with[2] = vector.v[2];
                                with[3] = vector.v[3];
                                with[4] = vector.v[4];
                                with[5] = vector.v[5];
                                with[6] = vector.v[6];
                                with[7] = vector.v[7];
                                const int at2 = column + row * W_STRIDE_0;
                                const f16x8 vector2 = *(const f16x8 *)&w[at2];
                                with2[0] = vector2.v[0];
                                with2[1] = vector2.v[1];
                                with2[2] = vector2.v[2];
                                with2[3] = vector2.v[3];
                                with2[4] = vector2.v[4];
                                with2[5] = vector2.v[5];
                                with2[6] = vector2.v[6];
                                with2[7] = vector2.v[7];
                                #pragma unroll
                                for (int lane2 = 0; lane2 < 8; ++lane2) {
                                    const float t = f32_from_f16(with[lane2]) + run[lane2];
                                    result[lane2] = f16_from_f32(t * 0.5f * (erf_f32(t * 0.70710677f) + 1.0f) + f32_from_f16(with2[lane2]));
                                    result2[lane2] = f32_from_f16(with[lane2]) + run[lane2];
                                }
                                const int to = column + row * OUT_STRIDE_0;
                                *(f16x8 *)&out[to] = f16x8{result[0], result[1], result[2], result[3], result[4], result[5], result[6], result[7]};
                                const int to2 = column + row * OUT_STRIDE_0;
                                *(f32x4 *)&out2[to2] = f32x4{result2[0], result2[1], result2[2], result2[3]};
                                *(f32x4 *)&out2[to2 + 4] = f32x4{result2[4], result2[5], result2[6], result2[7]};
                            }
                        }
                    }
                }
            }
        }
    }
}

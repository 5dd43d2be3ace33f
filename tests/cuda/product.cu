// Tiled contraction over [36, 140 | 28] (reduced behind the bar), 1 stored.
// At the planned dims: 60032 bytes, 292320 operations; no less than 0.01 us on sm_90a (memory).
// Strategy gpu_contraction: tile=64x64x16, thread=4x4, split=1.
extern "C" __global__ void __launch_bounds__(256)
kernel_0(const float *__restrict__ in_0, const float *__restrict__ in_1, float *__restrict__ out_2, const float *__restrict__ in_3)
{
    __shared__ __align__(16) float tile_a_4[1088];
    float next_a_5[4];
    __shared__ __align__(16) float tile_b_6[1088];
    float next_b_7[4];
    float sum_8[16];
    float own_a_9[4];
    float own_b_10[4];
    float result_11[4];
    const int thread1 = (int)threadIdx.x;
    const int tx2 = index_mod(thread1, 16);
    const int ty3 = index_div(thread1, 16);
    const int block4 = (int)blockIdx.x;
    const int column05 = block4 * 64;
    const int fill_at6 = index_div(thread1, 4);
    const int fill_depth7 = index_mod(thread1, 4) * 4;
    const int row8 = minimum(fill_at6, 35);
    const int fill_at9 = index_mod(thread1, 16) * 4;
    const int fill_depth10 = index_div(thread1, 16);
    const int column11 = minimum(column05 + fill_at9, 136);
    #pragma unroll
    for (int i12 = 0; i12 < 16; ++i12) {
        sum_8[i12] = 0.0f;
    }
    const f32x4 vector13 = load_f32x4(&in_0[fill_depth7 + row8 * 28]);
    next_a_5[0] = vector13.v[0];
    next_a_5[1] = vector13.v[1];
    next_a_5[2] = vector13.v[2];
    next_a_5[3] = vector13.v[3];
    #pragma unroll
    for (int round14 = 0; round14 < 1; ++round14) {
        const int depth15 = fill_depth10 + round14 * 16;
        const f32x4 vector16 = load_f32x4(&in_1[column11 + depth15 * 140]);
        next_b_7[round14 * 4] = vector16.v[0];
        next_b_7[round14 * 4 + 1] = vector16.v[1];
        next_b_7[round14 * 4 + 2] = vector16.v[2];
        next_b_7[round14 * 4 + 3] = vector16.v[3];
    }
    for (int depth17 = 0; depth17 < 28; depth17 += 16) {
        #pragma unroll
        for (int round18 = 0; round18 < 1; ++round18) {
            tile_a_4[fill_depth7 * 68 + (fill_at6 + round18 * 64)] = next_a_5[round18 * 4];
            tile_a_4[(fill_depth7 + 1) * 68 + (fill_at6 + round18 * 64)] = next_a_5[round18 * 4 + 1];
            tile_a_4[(fill_depth7 + 2) * 68 + (fill_at6 + round18 * 64)] = next_a_5[round18 * 4 + 2];
            tile_a_4[(fill_depth7 + 3) * 68 + (fill_at6 + round18 * 64)] = next_a_5[round18 * 4 + 3];
        }
        #pragma unroll
        for (int round19 = 0; round19 < 1; ++round19) {
            const int t1 = round19 * 4;
            store_f32x4(&tile_b_6[(fill_depth10 + round19 * 16) * 68 + fill_at9], f32x4{{next_b_7[t1], next_b_7[t1 + 1], next_b_7[t1 + 2], next_b_7[t1 + 3]}});
        }
        __syncthreads();
        const int next20 = depth17 + 16;
        if (next20 < 28) {
            const int depth21 = next20 + fill_depth7;
            const int place22 = minimum(depth21, 24);
            const f32x4 vector23 = load_f32x4(&in_0[place22 + row8 * 28]);
            next_a_5[0] = depth21 < 28 ? vector23.v[0] : 0.0f;
            next_a_5[1] = depth21 < 28 ? vector23.v[1] : 0.0f;
            next_a_5[2] = depth21 < 28 ? vector23.v[2] : 0.0f;
            next_a_5[3] = depth21 < 28 ? vector23.v[3] : 0.0f;
            #pragma unroll
            for (int round24 = 0; round24 < 1; ++round24) {
                const int depth25 = next20 + fill_depth10 + round24 * 16;
                const int place26 = minimum(depth25, 27);
                const f32x4 vector27 = load_f32x4(&in_1[column11 + place26 * 140]);
                next_b_7[round24 * 4] = depth25 < 28 ? vector27.v[0] : 0.0f;
                next_b_7[round24 * 4 + 1] = depth25 < 28 ? vector27.v[1] : 0.0f;
                next_b_7[round24 * 4 + 2] = depth25 < 28 ? vector27.v[2] : 0.0f;
                next_b_7[round24 * 4 + 3] = depth25 < 28 ? vector27.v[3] : 0.0f;
            }
        }
        #pragma unroll
        for (int k28 = 0; k28 < 16; ++k28) {
            const f32x4 a29 = load_f32x4(&tile_a_4[k28 * 68 + ty3 * 4]);
            own_a_9[0] = a29.v[0];
            own_a_9[1] = a29.v[1];
            own_a_9[2] = a29.v[2];
            own_a_9[3] = a29.v[3];
            const f32x4 b30 = load_f32x4(&tile_b_6[k28 * 68 + tx2 * 4]);
            own_b_10[0] = b30.v[0];
            own_b_10[1] = b30.v[1];
            own_b_10[2] = b30.v[2];
            own_b_10[3] = b30.v[3];
            #pragma unroll
            for (int r31 = 0; r31 < 4; ++r31) {
                #pragma unroll
                for (int c32 = 0; c32 < 4; ++c32) {
                    const int t2 = r31 * 4 + c32;
                    sum_8[t2] = __fmaf_rn(own_a_9[r31], own_b_10[c32], sum_8[t2]);
                }
            }
        }
        __syncthreads();
    }
    #pragma unroll
    for (int run33 = 0; run33 < 1; ++run33) {
        #pragma unroll
        for (int r34 = 0; r34 < 4; ++r34) {
            const int row35 = run33 * 64 + (ty3 * 4 + r34);
            if (row35 < 36) {
                #pragma unroll
                for (int c36 = 0; c36 < 1; ++c36) {
                    const int column37 = column05 + c36 * 64 + tx2 * 4;
                    if (column37 < 140) {
                        #pragma unroll
                        for (int lane38 = 0; lane38 < 4; ++lane38) {
                            result_11[lane38] = maximum(sum_8[(run33 * 4 + r34) * 4 + c36 * 4 + lane38] + in_3[column37 + lane38 + row35 * 140], 0.0f);
                        }
                        store_f32x4(&out_2[column37 + row35 * 140], f32x4{{result_11[0], result_11[1], result_11[2], result_11[3]}});
                    }
                }
            }
        }
    }
}

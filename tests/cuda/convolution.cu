// Tiled contraction over [1, 12, 9, 8 | 3, 3, 3] (reduced behind the bar), 1 stored.
// Reads b f32[1, 3, 17, 15], a f32[12, 3, 3, 3], z f32[12]; writes out f32[1, 12, 9, 8].
// At the planned dims: 7860 bytes, 212544 operations; no less than 0.00 us on sm_90a (arithmetic).
// Strategy gpu_contraction: tile=32x32x16, thread=4x4, stages=4, split=1.
extern "C" __global__ void __launch_bounds__(64)
kernel_0(const float *__restrict__ b, const float *__restrict__ a, const float *__restrict__ z, float *__restrict__ out)
{
    constexpr int TILE_COLUMNS = 32, DEPTH_END = 27, LOADS_A = 16, A_STRIDE_0 = 27, LOADS_B = 32;
    constexpr int OWN_COLUMNS = 4, OWN_ROWS = 4, PITCH_A = 16, STAGE_A = 512, B_STRIDE_2 = 15, B_STRIDE_1 = 255;
    constexpr int PITCH_B = 32, STAGE_B = 512, TILE_DEPTH = 16, THREADS_Y = 8, THREADS_X = 8, STAGES = 4;
    constexpr int ROWS = 12, COLUMNS = 72, OUT_STRIDE_1 = 72;
    __shared__ __align__(16) float tile_a[2048]; // stages x row x pitch: 4 x 32 x 16
    __shared__ __align__(16) float tile_b[2048]; // stages x depth x pitch: 4 x 16 x 32
    float sum[16];
    float left[16];
    float right[4];
    float result[4];
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int thread_x = lane % 8;
    const int thread_y = warp * 4 + lane / 8;
    const int block = blockIdx.x;
    const int first_column = block * TILE_COLUMNS;
    const int fill_a = thread / LOADS_A;
    const int depth_a = thread % LOADS_A;
    const int a_at = fill_a * A_STRIDE_0 + depth_a;
    const int row = fill_a + 4;
    const int a_at2 = row * A_STRIDE_0 + depth_a;
    const int row2 = min(fill_a + 8, 11);
    const int a_at3 = row2 * A_STRIDE_0 + depth_a;
    const int a_at4 = depth_a + 297;
    const int a_at5 = depth_a + 297;
    const int a_at6 = depth_a + 297;
    const int a_at7 = depth_a + 297;
    const int a_at8 = depth_a + 297;
    const int fill_b = thread % LOADS_B;
    const int depth_b = thread / LOADS_B;
    const int column = min(first_column + fill_b, 71);
    const int column2 = column % 8;
    const int rest = column / 8;
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        sum[i] = 0.0f;
    }
    copy_async_4(&tile_a[fill_a * PITCH_A + depth_a], &a[a_at]);
    copy_async_4(&tile_a[(fill_a + 4) * PITCH_A + depth_a], &a[a_at2]);
    copy_async_4(&tile_a[(fill_a + 8) * PITCH_A + depth_a], &a[a_at3]);
    copy_async_4(&tile_a[(fill_a + 12) * PITCH_A + depth_a], &a[a_at4]);
    copy_async_4(&tile_a[(fill_a + 16) * PITCH_A + depth_a], &a[a_at5]);
    copy_async_4(&tile_a[(fill_a + 20) * PITCH_A + depth_a], &a[a_at6]);
    copy_async_4(&tile_a[(fill_a + 24) * PITCH_A + depth_a], &a[a_at7]);
    copy_async_4(&tile_a[(fill_a + 28) * PITCH_A + depth_a], &a[a_at8]);
    #pragma unroll
    for (int round = 0; round < 8; ++round) {
        const int k = depth_b + round * 2;
        const int k2 = k % 3;
        const int rest2 = k / 3;
        const int k3 = rest2 % 3;
        const int rest3 = rest2 / 3;
        const int at = column2 * 2 + k2;
        const int at2 = rest * 2 + k3 - 1;
        const int at3 = at - 1;
        copy_async_4_or_zero(&tile_b[(depth_b + round * 2) * PITCH_B + fill_b], &b[at + at2 * B_STRIDE_2 + rest3 * B_STRIDE_1 - 1], 0 <= at2 && at2 < 17 && 0 <= at3 && at3 < 15);
    }
    commit_copies();
    const int k = depth_a + 16;
    copy_async_4_or_zero(&tile_a[fill_a * PITCH_A + depth_a + 512], &a[a_at + 16], k < DEPTH_END);
    const int k2 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 4) * PITCH_A + depth_a + 512], &a[a_at2 + 16], k2 < DEPTH_END);
    const int k3 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 8) * PITCH_A + depth_a + 512], &a[a_at3 + 16], k3 < DEPTH_END);
    const int k4 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 12) * PITCH_A + depth_a + 512], &a[a_at4 + 16], k4 < DEPTH_END);
    const int k5 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 16) * PITCH_A + depth_a + 512], &a[a_at5 + 16], k5 < DEPTH_END);
    const int k6 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 20) * PITCH_A + depth_a + 512], &a[a_at6 + 16], k6 < DEPTH_END);
    const int k7 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 24) * PITCH_A + depth_a + 512], &a[a_at7 + 16], k7 < DEPTH_END);
    const int k8 = depth_a + 16;
    copy_async_4_or_zero(&tile_a[(fill_a + 28) * PITCH_A + depth_a + 512], &a[a_at8 + 16], k8 < DEPTH_END);
    #pragma unroll
    for (int round = 0; round < 8; ++round) {
        const int k9 = depth_b + round * 2 + 16;
        const int k10 = k9 % 3;
        const int rest2 = k9 / 3;
        const int k11 = rest2 % 3;
        const int rest3 = rest2 / 3;
        const int at = column2 * 2 + k10;
        const int at2 = rest * 2 + k11 - 1;
        const int at3 = at - 1;
        copy_async_4_or_zero(&tile_b[(depth_b + round * 2) * PITCH_B + fill_b + 512], &b[at + at2 * B_STRIDE_2 + rest3 * B_STRIDE_1 - 1], k9 < DEPTH_END && (rest3 < 3 && 0 <= at2 && at2 < 17 && 0 <= at3 && at3 < 15));
    }
    commit_copies();
    commit_copies();
    int stage = 0;
    int filled = 3;
    for (int depth = 0; depth < DEPTH_END; depth += TILE_DEPTH) {
        wait_copies<2>();
        __syncthreads();
        const int next = depth + 48;
        if (next < DEPTH_END) {
            const int k9 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + next], k9 < DEPTH_END);
            const int k10 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 4) * PITCH_A + depth_a)], &a[a_at2 + next], k10 < DEPTH_END);
            const int k11 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 8) * PITCH_A + depth_a)], &a[a_at3 + next], k11 < DEPTH_END);
            const int k12 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 12) * PITCH_A + depth_a)], &a[a_at4 + next], k12 < DEPTH_END);
            const int k13 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at5 + next], k13 < DEPTH_END);
            const int k14 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 20) * PITCH_A + depth_a)], &a[a_at6 + next], k14 < DEPTH_END);
            const int k15 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 24) * PITCH_A + depth_a)], &a[a_at7 + next], k15 < DEPTH_END);
            const int k16 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 28) * PITCH_A + depth_a)], &a[a_at8 + next], k16 < DEPTH_END);
            #pragma unroll
            for (int round = 0; round < 8; ++round) {
                const int k17 = next + (depth_b + round * 2);
                const int k18 = k17 % 3;
                const int rest2 = k17 / 3;
                const int k19 = rest2 % 3;
                const int rest3 = rest2 / 3;
                const int at = column2 * 2 + k18;
                const int at2 = rest * 2 + k19 - 1;
                const int at3 = at - 1;
                copy_async_4_or_zero(&tile_b[filled * STAGE_B + ((depth_b + round * 2) * PITCH_B + fill_b)], &b[at + at2 * B_STRIDE_2 + rest3 * B_STRIDE_1 - 1], k17 < DEPTH_END && (rest3 < 3 && 0 <= at2 && at2 < 17 && 0 <= at3 && at3 < 15));
            }
        }
        commit_copies();
        #pragma unroll
        for (int k9 = 0; k9 < TILE_DEPTH; k9 += 4) {
            #pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) {
                const f32x4 vector = *(const f32x4 *)&tile_a[stage * STAGE_A + ((thread_y + i * THREADS_Y) * PITCH_A + k9)];
                left[i * 4] = vector.v[0];
                left[i * 4 + 1] = vector.v[1];
                left[i * 4 + 2] = vector.v[2];
                left[i * 4 + 3] = vector.v[3];
            }
            #pragma unroll
            for (int lane2 = 0; lane2 < 4; ++lane2) {
                const f32x4 vector = *(const f32x4 *)&tile_b[stage * STAGE_B + ((k9 + lane2) * PITCH_B + thread_x * 4)];
                right[0] = vector.v[0];
                right[1] = vector.v[1];
                right[2] = vector.v[2];
                right[3] = vector.v[3];
                #pragma unroll
                for (int r = 0; r < OWN_ROWS; ++r) {
                    #pragma unroll
                    for (int c = 0; c < OWN_COLUMNS; ++c) {
                        sum[r * OWN_COLUMNS + c] = fmaf(left[r * 4 + lane2], right[c], sum[r * OWN_COLUMNS + c]);
                    }
                }
            }
        }
        const int at = stage + 1;
        stage = at < STAGES ? at : 0;
        const int at2 = filled + 1;
        filled = at2 < STAGES ? at2 : 0;
    }
    #pragma unroll
    for (int r = 0; r < OWN_ROWS; ++r) {
        const int row3 = thread_y + r * THREADS_Y;
        if (row3 < ROWS) {
            #pragma unroll
            for (int c = 0; c < OWN_COLUMNS; c += 4) {
                const int column3 = first_column + c * THREADS_X + thread_x * 4;
                if (column3 < COLUMNS) {
                    #pragma unroll
                    for (int lane2 = 0; lane2 < 4; ++lane2) {
                        const float t = sum[r * OWN_COLUMNS + c + lane2] + z[row3];
                        result[lane2] = t * sigmoid_f32(t);
                    }
                    *(f32x4 *)&out[row3 * OUT_STRIDE_1 + column3] = f32x4{result[0], result[1], result[2], result[3]};
                }
            }
        }
    }
}

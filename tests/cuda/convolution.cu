// Tiled contraction over [1, 12, 9, 8 | 3, 3, 3] (reduced behind the bar), 1 stored.
// Reads b f32[1, 3, 17, 15], a f32[12, 3, 3, 3], z f32[12]; writes out f32[1, 12, 9, 8].
// At the planned dims: 7860 bytes, 72576 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_contraction: tile=32x32x16, thread=4x4, stages=4, split=1.
extern "C" __global__ void __launch_bounds__(64)
kernel_0(const float *__restrict__ b, const float *__restrict__ a, const float *__restrict__ z, float *__restrict__ out)
{
    constexpr int TILE_COLUMNS = 32, DEPTH_END = 27, LOADS_A = 16, A_STRIDE_0 = 27, LOADS_B = 32;
    constexpr int OWN_COLUMNS = 4, OWN_ROWS = 4, TILE_DEPTH = 16, PITCH_A = 16, STAGE_A = 512, B_STRIDE_2 = 15;
    constexpr int B_STRIDE_1 = 255, PITCH_B = 32, STAGE_B = 512, THREADS_Y = 8, THREADS_X = 8, STAGES = 4;
    constexpr int ROWS = 12, COLUMNS = 72, OUT_STRIDE_1 = 72;
    __shared__ __align__(16) float tile_a[2048]; // stages x row x pitch: 4 x 32 x 16
    __shared__ __align__(16) float tile_b[2048]; // stages x depth x pitch: 4 x 16 x 32
    __align__(16) float sum[16];
    __align__(16) float left[16];
    __align__(16) float right[4];
    __align__(16) float result[4];
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
    #pragma unroll
    for (int early = 0; early < 3; ++early) {
        const int first = early * TILE_DEPTH;
        if (first < DEPTH_END) {
            const int k = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + first], k < DEPTH_END);
            const int k2 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 4) * PITCH_A + depth_a)], &a[a_at2 + first], k2 < DEPTH_END);
            const int k3 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 8) * PITCH_A + depth_a)], &a[a_at3 + first], k3 < DEPTH_END);
            const int k4 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 12) * PITCH_A + depth_a)], &a[a_at4 + first], k4 < DEPTH_END);
            const int k5 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at5 + first], k5 < DEPTH_END);
            const int k6 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 20) * PITCH_A + depth_a)], &a[a_at6 + first], k6 < DEPTH_END);
            const int k7 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 24) * PITCH_A + depth_a)], &a[a_at7 + first], k7 < DEPTH_END);
            const int k8 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 28) * PITCH_A + depth_a)], &a[a_at8 + first], k8 < DEPTH_END);
            #pragma unroll
            for (int round = 0; round < 8; ++round) {
                const int k9 = first + (depth_b + round * 2);
                const int k10 = k9 % 3;
                const int rest2 = k9 / 3;
                const int k11 = rest2 % 3;
                const int rest3 = rest2 / 3;
                const int at = column2 * 2 + k10;
                const int at2 = rest * 2 + k11 - 1;
                const int at3 = at - 1;
                copy_async_4_or_zero(&tile_b[early * STAGE_B + ((depth_b + round * 2) * PITCH_B + fill_b)], &b[at + at2 * B_STRIDE_2 + rest3 * B_STRIDE_1 - 1], k9 < DEPTH_END && (0 <= at2 && at2 < 17 && 0 <= at3 && at3 < 15));
            }
        }
        commit_copies();
    }
    int stage = 0;
    int filled = 3;
    for (int depth = 0; depth < DEPTH_END; depth += TILE_DEPTH) {
        wait_copies<2>();
        __syncthreads();
        const int next = depth + 48;
        if (next < DEPTH_END) {
            const int k = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + next], k < DEPTH_END);
            const int k2 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 4) * PITCH_A + depth_a)], &a[a_at2 + next], k2 < DEPTH_END);
            const int k3 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 8) * PITCH_A + depth_a)], &a[a_at3 + next], k3 < DEPTH_END);
            const int k4 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 12) * PITCH_A + depth_a)], &a[a_at4 + next], k4 < DEPTH_END);
            const int k5 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at5 + next], k5 < DEPTH_END);
            const int k6 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 20) * PITCH_A + depth_a)], &a[a_at6 + next], k6 < DEPTH_END);
            const int k7 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 24) * PITCH_A + depth_a)], &a[a_at7 + next], k7 < DEPTH_END);
            const int k8 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 28) * PITCH_A + depth_a)], &a[a_at8 + next], k8 < DEPTH_END);
            #pragma unroll
            for (int round = 0; round < 8; ++round) {
                const int k9 = next + (depth_b + round * 2);
                const int k10 = k9 % 3;
                const int rest2 = k9 / 3;
                const int k11 = rest2 % 3;
                const int rest3 = rest2 / 3;
                const int at = column2 * 2 + k10;
                const int at2 = rest * 2 + k11 - 1;
                const int at3 = at - 1;
                copy_async_4_or_zero(&tile_b[filled * STAGE_B + ((depth_b + round * 2) * PITCH_B + fill_b)], &b[at + at2 * B_STRIDE_2 + rest3 * B_STRIDE_1 - 1], k9 < DEPTH_END && (0 <= at2 && at2 < 17 && 0 <= at3 && at3 < 15));
            }
        }
        commit_copies();
        #pragma unroll
        for (int k = 0; k < TILE_DEPTH; k += 4) {
            #pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) {
                *(f32x4 *)&left[i * 4] = *(const f32x4 *)&tile_a[stage * STAGE_A + ((thread_y + i * THREADS_Y) * PITCH_A + k)];
            }
            #pragma unroll
            for (int lane2 = 0; lane2 < 4; ++lane2) {
                *(f32x4 *)&right[0] = *(const f32x4 *)&tile_b[stage * STAGE_B + ((k + lane2) * PITCH_B + thread_x * 4)];
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
                    *(f32x4 *)&out[row3 * OUT_STRIDE_1 + column3] = *(const f32x4 *)&result[0];
                }
            }
        }
    }
}

// Tiled contraction over [36, 140 | 28] (reduced behind the bar), 1 stored.
// Reads a f32[36, 28], b f32[28, 140], z f32[36, 140]; writes out f32[36, 140].
// At the planned dims: 60032 bytes, 292320 operations; no less than 0.01 us on sm_90a (memory).
// Strategy gpu_contraction: tile=32x32x16, thread=4x4, stages=4, split=1.
extern "C" __global__ void __launch_bounds__(64)
kernel_0(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out, const float *__restrict__ z)
{
    constexpr int ROW_TILES = 2, TILE_ROWS = 32, TILE_COLUMNS = 32, DEPTH_END = 28, LOADS_A = 4, A_STRIDE_0 = 28;
    constexpr int LOADS_B = 8, OWN_COLUMNS = 4, OWN_ROWS = 4, TILE_DEPTH = 16, PITCH_A = 16, STAGE_A = 512;
    constexpr int B_STRIDE_0 = 140, PITCH_B = 32, STAGE_B = 512, THREADS_Y = 8, THREADS_X = 8, STAGES = 4;
    constexpr int ROWS = 36, COLUMNS = 140, Z_STRIDE_0 = 140, OUT_STRIDE_0 = 140;
    __shared__ __align__(16) float tile_a[2048]; // stages x row x pitch: 4 x 32 x 16
    __shared__ __align__(16) float tile_b[2048]; // stages x depth x pitch: 4 x 16 x 32
    __align__(16) float sum[16];
    __align__(16) float left[16];
    __align__(16) float right[4];
    __align__(16) float z_run[4];
    __align__(16) float result[4];
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int thread_x = lane % 8;
    const int thread_y = warp * 4 + lane / 8;
    const int block = blockIdx.x;
    const int rest = block / ROW_TILES;
    const int first_row = block % ROW_TILES * TILE_ROWS;
    const int first_column = rest * TILE_COLUMNS;
    const int fill_a = thread / LOADS_A;
    const int depth_a = thread % LOADS_A * 4;
    const int row = min(first_row + fill_a, 35);
    const int a_at = row * A_STRIDE_0 + depth_a;
    const int row2 = min(first_row + fill_a + 16, 35);
    const int a_at2 = row2 * A_STRIDE_0 + depth_a;
    const int fill_b = thread % LOADS_B * 4;
    const int depth_b = thread / LOADS_B;
    const int column = min(first_column + fill_b, 136);
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        sum[i] = 0.0f;
    }
    #pragma unroll
    for (int early = 0; early < 3; ++early) {
        const int first = early * TILE_DEPTH;
        if (first < DEPTH_END) {
            const int k = first + depth_a;
            copy_async_16_or_zero(&tile_a[early * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + first], k < DEPTH_END);
            const int k2 = first + depth_a;
            copy_async_16_or_zero(&tile_a[early * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at2 + first], k2 < DEPTH_END);
            #pragma unroll
            for (int round = 0; round < 2; ++round) {
                const int k3 = first + (depth_b + round * 8);
                copy_async_16_or_zero(&tile_b[early * STAGE_B + ((depth_b + round * 8) * PITCH_B + fill_b)], &b[column + k3 * B_STRIDE_0], k3 < DEPTH_END);
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
            copy_async_16_or_zero(&tile_a[filled * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + next], k < DEPTH_END);
            const int k2 = next + depth_a;
            copy_async_16_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at2 + next], k2 < DEPTH_END);
            #pragma unroll
            for (int round = 0; round < 2; ++round) {
                const int k3 = next + (depth_b + round * 8);
                copy_async_16_or_zero(&tile_b[filled * STAGE_B + ((depth_b + round * 8) * PITCH_B + fill_b)], &b[column + k3 * B_STRIDE_0], k3 < DEPTH_END);
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
        const int row3 = first_row + (thread_y + r * THREADS_Y);
        if (row3 < ROWS) {
            #pragma unroll
            for (int c = 0; c < OWN_COLUMNS; c += 4) {
                const int column2 = first_column + c * THREADS_X + thread_x * 4;
                if (column2 < COLUMNS) {
                    *(f32x4 *)&z_run[0] = *(const f32x4 *)&z[row3 * Z_STRIDE_0 + column2];
                    #pragma unroll
                    for (int lane2 = 0; lane2 < 4; ++lane2) {
                        result[lane2] = maximum_f32(sum[r * OWN_COLUMNS + c + lane2] + z_run[lane2], 0.0f);
                    }
                    *(f32x4 *)&out[row3 * OUT_STRIDE_0 + column2] = *(const f32x4 *)&result[0];
                }
            }
        }
    }
}

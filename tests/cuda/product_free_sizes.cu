// Tiled contraction over [s7, s8, s9, s10 | s3] (reduced behind the bar), 1 stored.
// Reads a f32[s0, s1, s2, s3], b f32[s4, s5, s6]; writes out f32[s7, s8, s9, s10].
// At the planned dims: 16728 bytes, 122958 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_contraction: tile=32x32x16, thread=4x4, stages=4, split=1.
extern "C" __global__ void __launch_bounds__(64)
kernel_0(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out, int row_tiles, int column_tiles, int size, int size2, int depth_end, int size3, int a_stride_1, int size4, int a_stride_0, int size5, int b_stride_1, int size6, int b_stride_0, int rows, int columns, int out_stride_1, int out_stride_0)
{
    constexpr int TILE_ROWS = 32, TILE_COLUMNS = 32, LOADS_A = 16, LOADS_B = 32, OWN_COLUMNS = 4, OWN_ROWS = 4;
    constexpr int TILE_DEPTH = 16, PITCH_A = 16, STAGE_A = 512, PITCH_B = 32, STAGE_B = 512, THREADS_Y = 8;
    constexpr int THREADS_X = 8, STAGES = 4;
    __shared__ __align__(16) float tile_a[2048]; // stages x row x pitch: 4 x 32 x 16
    __shared__ __align__(16) float tile_b[2048]; // stages x depth x pitch: 4 x 16 x 32
    __align__(16) float sum[16];
    __align__(16) float left[16];
    __align__(16) float right[4];
    const int thread = threadIdx.x;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int thread_x = lane % 8;
    const int thread_y = warp * 4 + lane / 8;
    const int block = blockIdx.x;
    const int rest = index_div_i32(block, row_tiles);
    const int first_row = index_mod_i32(block, row_tiles) * TILE_ROWS;
    const int first_column = index_mod_i32(rest, column_tiles) * TILE_COLUMNS;
    const int rest2 = index_div_i32(rest, column_tiles);
    const int fill_a = thread / LOADS_A;
    const int depth_a = thread % LOADS_A;
    const int row = min(first_row + fill_a, size);
    const int row2 = index_mod_i32(row, size2);
    const int rest3 = index_div_i32(row, size2);
    const int a_at = row2 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest3) * a_stride_0 + depth_a;
    const int row3 = min(first_row + fill_a + 4, size);
    const int row4 = index_mod_i32(row3, size2);
    const int rest4 = index_div_i32(row3, size2);
    const int a_at2 = row4 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest4) * a_stride_0 + depth_a;
    const int row5 = min(first_row + fill_a + 8, size);
    const int row6 = index_mod_i32(row5, size2);
    const int rest5 = index_div_i32(row5, size2);
    const int a_at3 = row6 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest5) * a_stride_0 + depth_a;
    const int row7 = min(first_row + fill_a + 12, size);
    const int row8 = index_mod_i32(row7, size2);
    const int rest6 = index_div_i32(row7, size2);
    const int a_at4 = row8 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest6) * a_stride_0 + depth_a;
    const int row9 = min(first_row + fill_a + 16, size);
    const int row10 = index_mod_i32(row9, size2);
    const int rest7 = index_div_i32(row9, size2);
    const int a_at5 = row10 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest7) * a_stride_0 + depth_a;
    const int row11 = min(first_row + fill_a + 20, size);
    const int row12 = index_mod_i32(row11, size2);
    const int rest8 = index_div_i32(row11, size2);
    const int a_at6 = row12 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest8) * a_stride_0 + depth_a;
    const int row13 = min(first_row + fill_a + 24, size);
    const int row14 = index_mod_i32(row13, size2);
    const int rest9 = index_div_i32(row13, size2);
    const int a_at7 = row14 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest9) * a_stride_0 + depth_a;
    const int row15 = min(first_row + fill_a + 28, size);
    const int row16 = index_mod_i32(row15, size2);
    const int rest10 = index_div_i32(row15, size2);
    const int a_at8 = row16 * depth_end + (size3 == 1 ? 0 : rest2) * a_stride_1 + (size4 == 1 ? 0 : rest10) * a_stride_0 + depth_a;
    const int fill_b = thread % LOADS_B;
    const int depth_b = thread / LOADS_B;
    const int column = min(first_column + fill_b, size5);
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        sum[i] = 0.0f;
    }
    #pragma unroll
    for (int early = 0; early < 3; ++early) {
        const int first = early * TILE_DEPTH;
        if (first < depth_end) {
            const int k = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + first], k < depth_end);
            const int k2 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 4) * PITCH_A + depth_a)], &a[a_at2 + first], k2 < depth_end);
            const int k3 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 8) * PITCH_A + depth_a)], &a[a_at3 + first], k3 < depth_end);
            const int k4 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 12) * PITCH_A + depth_a)], &a[a_at4 + first], k4 < depth_end);
            const int k5 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at5 + first], k5 < depth_end);
            const int k6 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 20) * PITCH_A + depth_a)], &a[a_at6 + first], k6 < depth_end);
            const int k7 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 24) * PITCH_A + depth_a)], &a[a_at7 + first], k7 < depth_end);
            const int k8 = first + depth_a;
            copy_async_4_or_zero(&tile_a[early * STAGE_A + ((fill_a + 28) * PITCH_A + depth_a)], &a[a_at8 + first], k8 < depth_end);
            #pragma unroll
            for (int round = 0; round < 8; ++round) {
                const int k9 = first + (depth_b + round * 2);
                copy_async_4_or_zero(&tile_b[early * STAGE_B + ((depth_b + round * 2) * PITCH_B + fill_b)], &b[column + k9 * b_stride_1 + (size6 == 1 ? 0 : rest2) * b_stride_0], k9 < depth_end);
            }
        }
        commit_copies();
    }
    int stage = 0;
    int filled = 3;
    for (int depth = 0; depth < depth_end; depth += TILE_DEPTH) {
        wait_copies<2>();
        __syncthreads();
        const int next = depth + 48;
        if (next < depth_end) {
            const int k = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + (fill_a * PITCH_A + depth_a)], &a[a_at + next], k < depth_end);
            const int k2 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 4) * PITCH_A + depth_a)], &a[a_at2 + next], k2 < depth_end);
            const int k3 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 8) * PITCH_A + depth_a)], &a[a_at3 + next], k3 < depth_end);
            const int k4 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 12) * PITCH_A + depth_a)], &a[a_at4 + next], k4 < depth_end);
            const int k5 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 16) * PITCH_A + depth_a)], &a[a_at5 + next], k5 < depth_end);
            const int k6 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 20) * PITCH_A + depth_a)], &a[a_at6 + next], k6 < depth_end);
            const int k7 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 24) * PITCH_A + depth_a)], &a[a_at7 + next], k7 < depth_end);
            const int k8 = next + depth_a;
            copy_async_4_or_zero(&tile_a[filled * STAGE_A + ((fill_a + 28) * PITCH_A + depth_a)], &a[a_at8 + next], k8 < depth_end);
            #pragma unroll
            for (int round = 0; round < 8; ++round) {
                const int k9 = next + (depth_b + round * 2);
                copy_async_4_or_zero(&tile_b[filled * STAGE_B + ((depth_b + round * 2) * PITCH_B + fill_b)], &b[column + k9 * b_stride_1 + (size6 == 1 ? 0 : rest2) * b_stride_0], k9 < depth_end);
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
        const int row17 = first_row + (thread_y + r * THREADS_Y);
        if (row17 < rows) {
            const int row18 = index_mod_i32(row17, size2);
            const int rest11 = index_div_i32(row17, size2);
            #pragma unroll
            for (int c = 0; c < OWN_COLUMNS; c += 4) {
                #pragma unroll
                for (int lane2 = 0; lane2 < 4; ++lane2) {
                    const int column2 = first_column + c * THREADS_X + thread_x * 4 + lane2;
                    if (column2 < columns) {
                        const float t = sum[r * OWN_COLUMNS + c + lane2];
                        out[column2 + row18 * columns + rest2 * out_stride_1 + rest11 * out_stride_0] = t * sigmoid_f32(t);
                    }
                }
            }
        }
    }
}

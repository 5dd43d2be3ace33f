// Rows over [s0, s1 | s2] (reduced behind the bar), 1 stored.
// Reads x f32[s0, s1, s2]; writes out f32[s3, s4, s5].
// At the planned dims: 12936 bytes, 71148 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_rows: threads=32, rows=4, kept=3.
extern "C" __global__ void __launch_bounds__(128)
kernel_0(const float *__restrict__ x, float *__restrict__ out, int rows, int rows_1, int length, int x_stride_0, int out_stride_1, int out_stride_0)
{
    constexpr int BLOCK_ROWS = 4, ROOM = 96, ACCESSES = 3, THREADS = 32;
    __align__(16) float x_kept[3];
    const int lane = threadIdx.x;
    const int row = (int)blockIdx.x * BLOCK_ROWS + (int)threadIdx.y;
    if (row < rows) {
        const int r = index_mod_i32(row, rows_1);
        const int rest = index_div_i32(row, rows_1);
        if (length <= ROOM) {
            #pragma unroll
            for (int j = 0; j < ACCESSES; ++j) {
                const int position = lane + j * THREADS;
                if (position < length) {
                    x_kept[j] = x[r * length + rest * x_stride_0 + position];
                }
            }
            float largest = -infinity;
            #pragma unroll
            for (int j = 0; j < ACCESSES; ++j) {
                const int position = lane + j * THREADS;
                if (position < length) {
                    largest = maximum_f32(largest, x_kept[j]);
                }
            }
            const float combined = maximum_f32(largest, __shfl_xor_sync(0xffffffffu, largest, 16));
            const float combined2 = maximum_f32(combined, __shfl_xor_sync(0xffffffffu, combined, 8));
            const float combined3 = maximum_f32(combined2, __shfl_xor_sync(0xffffffffu, combined2, 4));
            const float combined4 = maximum_f32(combined3, __shfl_xor_sync(0xffffffffu, combined3, 2));
            const float combined5 = maximum_f32(combined4, __shfl_xor_sync(0xffffffffu, combined4, 1));
            float sum = 0.0f;
            #pragma unroll
            for (int j = 0; j < ACCESSES; ++j) {
                const int position = lane + j * THREADS;
                if (position < length) {
                    sum += exp_f32(x_kept[j] - combined5);
                }
            }
            const float combined6 = sum + __shfl_xor_sync(0xffffffffu, sum, 16);
            const float combined7 = combined6 + __shfl_xor_sync(0xffffffffu, combined6, 8);
            const float combined8 = combined7 + __shfl_xor_sync(0xffffffffu, combined7, 4);
            const float combined9 = combined8 + __shfl_xor_sync(0xffffffffu, combined8, 2);
            const float combined10 = combined9 + __shfl_xor_sync(0xffffffffu, combined9, 1);
            #pragma unroll
            for (int j = 0; j < ACCESSES; ++j) {
                const int position = lane + j * THREADS;
                if (position < length) {
                    out[position + r * out_stride_1 + rest * out_stride_0] = exp_f32(x_kept[j] - combined5) / combined10;
                }
            }
        } else {
            float largest = -infinity;
            for (int i = lane; i < length; i += THREADS) {
                largest = maximum_f32(largest, x[i + r * length + rest * x_stride_0]);
            }
            const float combined = maximum_f32(largest, __shfl_xor_sync(0xffffffffu, largest, 16));
            const float combined2 = maximum_f32(combined, __shfl_xor_sync(0xffffffffu, combined, 8));
            const float combined3 = maximum_f32(combined2, __shfl_xor_sync(0xffffffffu, combined2, 4));
            const float combined4 = maximum_f32(combined3, __shfl_xor_sync(0xffffffffu, combined3, 2));
            const float combined5 = maximum_f32(combined4, __shfl_xor_sync(0xffffffffu, combined4, 1));
            float sum = 0.0f;
            for (int i = lane; i < length; i += THREADS) {
                sum += exp_f32(x[i + r * length + rest * x_stride_0] - combined5);
            }
            const float combined6 = sum + __shfl_xor_sync(0xffffffffu, sum, 16);
            const float combined7 = combined6 + __shfl_xor_sync(0xffffffffu, combined6, 8);
            const float combined8 = combined7 + __shfl_xor_sync(0xffffffffu, combined7, 4);
            const float combined9 = combined8 + __shfl_xor_sync(0xffffffffu, combined8, 2);
            const float combined10 = combined9 + __shfl_xor_sync(0xffffffffu, combined9, 1);
            for (int i = lane; i < length; i += THREADS) {
                out[i + r * out_stride_1 + rest * out_stride_0] = exp_f32(x[i + r * length + rest * x_stride_0] - combined5) / combined10;
            }
        }
    }
}

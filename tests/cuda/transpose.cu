// Transposed through tiles over [70, 37], 1 stored.
// Reads x f32[37, 70]; writes out f32[70, 37].
// At the planned dims: 20720 bytes, 75110 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_transpose: tile=32x32.
extern "C" __global__ void __launch_bounds__(256)
kernel_0(const float *__restrict__ x, float *__restrict__ out)
{
    constexpr int X_STRIDE_0 = 70, OUT_STRIDE_0 = 37;
    __shared__ __align__(16) float tile[1056];
    const int block = blockIdx.x;
    const int from = block % 3 * 32;
    const int rest = block / 3;
    const int to = rest * 32;
    #pragma unroll
    for (int step = 0; step < 32; step += 8) {
        const int row = (int)threadIdx.y + step;
        const int fast = from + (int)threadIdx.x;
        const int slow = to + row;
        if (fast < 70 && slow < 37) {
            tile[row * 33 + (int)threadIdx.x] = x[fast + slow * X_STRIDE_0];
        }
    }
    __syncthreads();
    #pragma unroll
    for (int step = 0; step < 32; step += 8) {
        const int row = (int)threadIdx.y + step;
        const int fast = to + (int)threadIdx.x;
        const int slow = from + row;
        if (fast < 37 && slow < 70) {
            const float t = tile[(int)threadIdx.x * 33 + row];
            out[fast + slow * OUT_STRIDE_0] = t * sigmoid_f32(t);
        }
    }
}

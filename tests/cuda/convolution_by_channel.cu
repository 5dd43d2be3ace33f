// One thread a point over [2, 6, 9, 7 | 3, 3] (reduced behind the bar), 1 stored.
// Reads x f32[2, 6, 9, 7], y f32[6, 1, 3, 3], z f32[6]; writes out f32[2, 6, 9, 7].
// At the planned dims: 6288 bytes, 14364 operations; no less than 0.00 us on sm_90a (memory).
// Strategy gpu_plain: threads=256.
extern "C" __global__ void __launch_bounds__(256)
kernel_0(const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, float *__restrict__ out)
{
    constexpr int X_STRIDE_2 = 7, X_STRIDE_1 = 63, X_STRIDE_0 = 378, Y_STRIDE_2 = 3, Y_STRIDE_0 = 9;
    constexpr int OUT_STRIDE_2 = 7, OUT_STRIDE_1 = 63, OUT_STRIDE_0 = 378;
    const int point = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (point < 756) {
        const int i = point % 7;
        const int rest = point / 7;
        const int i2 = rest % 9;
        const int rest2 = rest / 9;
        const int i3 = rest2 % 6;
        const int rest3 = rest2 / 6;
        float sum = 0.0f;
        #pragma unroll
        for (int k = 0; k < 3; ++k) {
            #pragma unroll
            for (int k2 = 0; k2 < 3; ++k2) {
                const int at = i2 + k - 1;
                const int at2 = i + k2;
                const int at3 = at2 - 1;
                sum += (0 <= at && at < 9 && 0 <= at3 && at3 < 7 ? x[at2 + at * X_STRIDE_2 + i3 * X_STRIDE_1 + rest3 * X_STRIDE_0 - 1] : 0.0f) * y[k2 + k * Y_STRIDE_2 + i3 * Y_STRIDE_0];
            }
        }
        out[i + i2 * OUT_STRIDE_2 + i3 * OUT_STRIDE_1 + rest3 * OUT_STRIDE_0] = sum + z[i3];
    }
}

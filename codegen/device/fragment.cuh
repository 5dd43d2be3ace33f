// Sums as tensor cores leave them: of each 16x8 tile a lane has row lane / 4 and columns 2 (lane % 4) and the next, then the
// same of row lane / 4 + 8.

//! fragment_run
// Eight neighbouring columns of one row: lane 4r + q gets columns 8q .. 8q+7 of the 32 columns of which sum[FIRST + 4i] and
// sum[FIRST + 4i + 1] are this lane's pair in tile i. All lanes of the warp take part.
template <int SUMS> DEVICE void fragment_run(float (&run)[8], const float (&sum)[SUMS], int first, int thread)
{
    float pair[4][2];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pair[i][0] = sum[first + 4 * i];
        pair[i][1] = sum[first + 4 * i + 1];
    }
    // A 4x4 transposition: first within pairs of lanes, then between them.
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!(i & bit)) {
                const bool upper = thread & bit;
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    const float sent = upper ? pair[i][k] : pair[i + bit][k];
                    const float got = __shfl_xor_sync(0xffffffffu, sent, bit);
                    pair[i][k] = upper ? got : pair[i][k];
                    pair[i + bit][k] = upper ? pair[i + bit][k] : got;
                }
            }
#pragma unroll
    for (int i = 0; i < 8; i++)
        run[i] = pair[i / 2][i % 2];
}

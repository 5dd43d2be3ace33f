// Products of 16-bit matrices by warpgroups: one thread copies tiles of both operands through a ring of STAGES slots in
// shared memory, warpgroups of 64 rows each multiply them. A slot is `full` when its bytes have come and `empty` when every
// consuming warp has done with it. An operand lies in memory with its depth side by side (ALONG) or with its rows or columns
// side by side; then its tile is one box a run of 64. A step is 64 of the depth: 128 bytes, the width of the swizzle.
// `at` counts the steps that went through the ring since the kernel began: both sides keep their own.

//! ring_begin
// By one thread. `warps`: of one block that consume.
template <int STAGES> DEVICE void ring_begin(mbarrier *full, mbarrier *empty, int warps)
{
    for (int i = 0; i < STAGES; i++) {
        mbarrier_begin(&full[i], 1);
        mbarrier_begin(&empty[i], warps);
    }
    mbarrier_publish();
}

//! ring_fill
template <int LENGTH, bool ALONG, int RANK>
DEVICE void ring_fill(unsigned short *tile, const tensor_map &map, mbarrier *full, int first, int depth, int c2, int c3, int c4)
{
    if (ALONG)
        tensor_load<RANK>(tile, map, full, depth, first, c2, c3, c4);
    else
#pragma unroll
        for (int run = 0; run < LENGTH; run += 64)
            tensor_load<RANK>(tile + run * 64, map, full, first + run, depth, c2, c3, c4);
}

//! matmul_wgmma_load
// By one thread: all steps of the tile at (row, column) and the operands' other coordinates.
template <int ROWS, int COLUMNS, int STAGES, bool A_ALONG, bool B_ALONG, int A_RANK, int B_RANK>
DEVICE void matmul_wgmma_load(const tensor_map &map_a, const tensor_map &map_b, unsigned short *tiles_a,
                              unsigned short *tiles_b, mbarrier *full, mbarrier *empty, int row, int column, int a2, int a3,
                              int a4, int b2, int b3, int b4, int depth, unsigned &at)
{
    const int steps = (depth + 63) / 64;
    int slot = (int)(at % STAGES), parity = (int)(at / STAGES & 1);
    for (int step = 0; step < steps; step++) {
        mbarrier_wait(&empty[slot], parity ^ 1);
        mbarrier_expect(&full[slot], (ROWS + COLUMNS) * 64 * 2);
        ring_fill<ROWS, A_ALONG, A_RANK>(tiles_a + slot * ROWS * 64, map_a, &full[slot], row, step * 64, a2, a3, a4);
        ring_fill<COLUMNS, B_ALONG, B_RANK>(tiles_b + slot * COLUMNS * 64, map_b, &full[slot], column, step * 64, b2, b3, b4);
        parity ^= slot + 1 == STAGES;
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    at += (unsigned)steps;
}

//! ring_free
// A warp has done with a slot.
DEVICE void ring_free(mbarrier *empty, int thread)
{
    if (thread % 32 == 0)
        mbarrier_arrive(empty);
}

//! matmul_wgmma
// By a warpgroup: sum = the product of the tile's rows 64 group .. 64 group + 63, summed over the whole depth, as
// sum[column / 8][4] of the warp's 16 rows (fragment.cuh).
template <int TYPE, int ROWS, int COLUMNS, int STAGES, bool A_ALONG, bool B_ALONG, int SUMS>
DEVICE void matmul_wgmma(float (&sum)[SUMS], const unsigned short *tiles_a, const unsigned short *tiles_b, mbarrier *full,
                         mbarrier *empty, int group, int depth, int thread, unsigned &at)
{
    const int steps = (depth + 63) / 64, LINES = 8 * 128;
    int slot = (int)(at % STAGES), parity = (int)(at / STAGES & 1), previous = slot;
    for (int step = 0; step < steps; step++) {
        mbarrier_wait(&full[slot], parity);
        const unsigned short *tile_a = tiles_a + slot * ROWS * 64 + group * 64 * 64, *tile_b = tiles_b + slot * COLUMNS * 64;
        warpgroup_begin();
#pragma unroll
        for (int k = 0; k < 64; k += 16)
            warpgroup_multiply<TYPE, !A_ALONG, !B_ALONG>(
                sum, warpgroup_operand(tile_a + (A_ALONG ? k : k * 64), A_ALONG ? 16 : 64 * 128, LINES),
                warpgroup_operand(tile_b + (B_ALONG ? k : k * 64), B_ALONG ? 16 : 64 * 128, LINES), step > 0 || k > 0);
        warpgroup_commit();
        warpgroup_wait<1>();
        if (step > 0)
            ring_free(&empty[previous], thread);
        previous = slot;
        parity ^= slot + 1 == STAGES;
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    warpgroup_wait<0>();
    if (steps > 0)
        ring_free(&empty[previous], thread);
    at += (unsigned)steps;
}

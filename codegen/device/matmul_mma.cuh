// Products of 16-bit matrices by warps: a tile of ROWS x COLUMNS sums, the depth in steps of DEPTH through a ring of STAGES
// tiles in shared memory. An operand lies in memory with its depth side by side (ALONG: a[row][k], b[column][k]) or with
// its rows or columns side by side (a[k][row], b[k][column]); its tile in shared memory has the same order, in chunks of
// 16 bytes whose places are permuted so that loads of 8x8 matrices meet no bank twice.

//! index_of
template <int BITS> struct index_of {
    typedef int type;
};
template <> struct index_of<64> {
    typedef long long type;
};

//! chunk_place
// Where a tile's chunk lies: `across` chunks a line.
template <int ACROSS> DEVICE int chunk_place(int line, int chunk)
{
    const int REPEAT = ACROSS >= 8 ? 1 : 8 / ACROSS, MASK = ACROSS >= 8 ? 7 : ACROSS - 1;
    return line * ACROSS + (chunk ^ (line / REPEAT & MASK));
}

//! eight_elements
struct __align__(16) eight_elements {
    unsigned short v[8];
};

//! tile_fill
// One operand's tile of one step: LENGTH of its rows or columns from `first` on, DEPTH from `depth0` on; zeros beyond
// `length` and `depth`. `aligned`: `from` and `stride` allow 16-byte copies.
template <int LENGTH, int DEPTH, bool ALONG, int THREADS, class INDEX>
DEVICE void tile_fill(unsigned short *tile, const unsigned short *from, long long stride, bool aligned, INDEX first,
                      INDEX length, INDEX depth0, INDEX depth, int thread)
{
    const int ACROSS = (ALONG ? DEPTH : LENGTH) / 8, LINES = ALONG ? LENGTH : DEPTH;
    const INDEX fast0 = ALONG ? depth0 : first, fast_end = ALONG ? depth : length;
    const INDEX slow0 = ALONG ? first : depth0, slow_end = ALONG ? length : depth;
#pragma unroll
    for (int i = 0; i < (LINES * ACROSS + THREADS - 1) / THREADS; i++) {
        const int at = i * THREADS + thread, line = at / ACROSS, chunk = at % ACROSS;
        if (LINES * ACROSS % THREADS && at >= LINES * ACROSS)
            break;
        const INDEX fast = fast0 + 8 * chunk, slow = slow0 + line, left = slow < slow_end ? fast_end - fast : 0;
        const int count = left < 0 ? 0 : left > 8 ? 8 : (int)left;
        const unsigned short *source = count ? from + slow * stride + fast : from;
        unsigned short *to = tile + 8 * chunk_place<ACROSS>(line, chunk);
        if (aligned) {
            copy_async_16_part(to, source, 2 * count);
        } else {
            eight_elements values;
#pragma unroll
            for (int k = 0; k < 8; k++)
                values.v[k] = k < count ? source[k] : (unsigned short)0;
            *(eight_elements *)to = values;
        }
    }
}

//! fragment_load
// The fragment of 16 rows (or columns) from `first` on and 16 of the depth from `depth` on. OUTER: rows come first, as the
// left operand has them; else the depth.
template <int LENGTH, int DEPTH, bool ALONG, bool OUTER>
DEVICE void fragment_load(unsigned (&to)[4], const unsigned short *tile, int first, int depth, int lane)
{
    const int low = lane & 7, inner = lane / 8 & 1, outer = lane / 16;
    const int row = first + 8 * (OUTER ? inner : outer), k = depth + 8 * (OUTER ? outer : inner);
    const int ACROSS = (ALONG ? DEPTH : LENGTH) / 8;
    const int place = ALONG ? chunk_place<ACROSS>(row + low, k / 8) : chunk_place<ACROSS>(k + low, row / 8);
    matrix_load<!ALONG>(to, tile + 8 * place);
}

//! matmul_mma
// sum = the product of the tile at (row, column), summed over the whole depth. All threads of the barrier take part; a warp
// has the WARP_ROWS x WARP_COLUMNS sums at (warp_row, warp_column) of the tile: sum[row / 16][column / 8][4], see fragment.cuh.
template <int TYPE, int ROWS, int COLUMNS, int DEPTH, int STAGES, int WARP_ROWS, int WARP_COLUMNS, bool A_ALONG, bool B_ALONG,
          int BITS, int SUMS>
DEVICE void matmul_mma(float (&sum)[SUMS], unsigned short *tiles_a, unsigned short *tiles_b, const unsigned short *a,
                       const unsigned short *b, int barrier, int threads, long long stride_a, bool aligned_a,
                       long long stride_b, bool aligned_b, typename index_of<BITS>::type row,
                       typename index_of<BITS>::type column, typename index_of<BITS>::type rows,
                       typename index_of<BITS>::type columns, typename index_of<BITS>::type depth, int warp_row,
                       int warp_column, int thread)
{
    typedef typename index_of<BITS>::type index;
    const int THREADS = ROWS / WARP_ROWS * (COLUMNS / WARP_COLUMNS) * 32;
    const int TALL = WARP_ROWS / 16, WIDE = WARP_COLUMNS / 16;
    const index steps = (depth + DEPTH - 1) / DEPTH;
    const int lane = thread % 32;
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;
#pragma unroll
    for (int step = 0; step < STAGES - 1; step++) {
        if (step < steps) {
            tile_fill<ROWS, DEPTH, A_ALONG, THREADS>(tiles_a + step * ROWS * DEPTH, a, stride_a, aligned_a, row, rows,
                                                     index(step * DEPTH), depth, thread);
            tile_fill<COLUMNS, DEPTH, B_ALONG, THREADS>(tiles_b + step * COLUMNS * DEPTH, b, stride_b, aligned_b, column,
                                                        columns, index(step * DEPTH), depth, thread);
        }
        commit_copies();
    }
    int slot = 0, free = STAGES - 1;
    for (index step = 0; step < steps; step++) {
        wait_copies<STAGES - 2>();
        barrier_meet(barrier, threads);
        if (step + STAGES - 1 < steps) {
            tile_fill<ROWS, DEPTH, A_ALONG, THREADS>(tiles_a + free * ROWS * DEPTH, a, stride_a, aligned_a, row, rows,
                                                     index((step + STAGES - 1) * DEPTH), depth, thread);
            tile_fill<COLUMNS, DEPTH, B_ALONG, THREADS>(tiles_b + free * COLUMNS * DEPTH, b, stride_b, aligned_b, column,
                                                        columns, index((step + STAGES - 1) * DEPTH), depth, thread);
        }
        commit_copies();
        const unsigned short *tile_a = tiles_a + slot * ROWS * DEPTH, *tile_b = tiles_b + slot * COLUMNS * DEPTH;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned left[TALL][4], right[WIDE][4];
#pragma unroll
            for (int i = 0; i < TALL; i++)
                fragment_load<ROWS, DEPTH, A_ALONG, true>(left[i], tile_a, warp_row + 16 * i, k, lane);
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                fragment_load<COLUMNS, DEPTH, B_ALONG, false>(right[j], tile_b, warp_column + 16 * j, k, lane);
#pragma unroll
            for (int i = 0; i < TALL; i++)
#pragma unroll
                for (int j = 0; j < 2 * WIDE; j++)
                    matrix_multiply<TYPE>(&sum[4 * (2 * WIDE * i + j)], left[i], right[j / 2][j % 2 * 2],
                                          right[j / 2][j % 2 * 2 + 1]);
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        free = free + 1 == STAGES ? 0 : free + 1;
    }
    wait_copies<0>();
    barrier_meet(barrier, threads); // the ring may be filled again
}

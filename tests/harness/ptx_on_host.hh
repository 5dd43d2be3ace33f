// The instructions of codegen/device/warp.cuh, warpgroup.cuh and convert.cuh on the host. What the copy engine brings is
// written when somebody waits for its barrier, so that a missing wait shows.
// Warps and warpgroups meet in their instructions; a warpgroup's products are done at once, from shared memory as the operand
// descriptors say, with a check that the swizzled addresses lie in the block's shared memory.
#include <map>

#define __grid_constant__

namespace host {

static float float_of_bits(unsigned bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

static float half_value(unsigned short bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                       : exponent == 0 ? ldexpf((float)fraction, -24)
                                       : ldexpf((float)(fraction + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static float operand_value(int type, unsigned short bits)
{
    return type == 0 ? half_value(bits) : float_of_bits((unsigned)bits << 16);
}

// ---- threads that meet for an instruction: each leaves what it has, the last to come does the work of all ----

struct meeting {
    int size, come;
    std::vector<void *> given;
    unsigned long long round;
};
static std::vector<meeting> meetings; // [warp], then [warpgroup]

static int flat_thread()
{
    return (int)(current - fibers.data());
}

template <class WORK> static void meet(int size, void *given, const WORK &work)
{
    const int warps = ((int)fibers.size() + 31) / 32, number = flat_thread() / size + (size == 32 ? 0 : warps);
    if (meetings.size() < (size_t)(2 * warps))
        meetings.resize((size_t)(2 * warps));
    meeting *m = &meetings[(size_t)number];
    if (m->given.empty())
        m->given.resize((size_t)size);
    m->given[(size_t)(flat_thread() % size)] = given;
    const unsigned long long round = m->round;
    if (++m->come == size) {
        work(m->given.data());
        m->come = 0;
        m->round++;
        return;
    }
    until([=] { return meetings[(size_t)number].round != round; });
}

// ---- barriers of a part of the block ----

struct named_barrier {
    int come;
    unsigned long long round;
};
static named_barrier barriers[16];

} // namespace host

static void barrier_meet(int number, int count)
{
    host::named_barrier &b = host::barriers[number];
    const unsigned long long round = b.round;
    if (++b.come == count) {
        b.come = 0;
        b.round++;
        return;
    }
    host::until([&] { return b.round != round; });
}

static void copy_async_16_part(void *to, const void *from, int bytes)
{
    if (((unsigned long long)to | (unsigned long long)from) % 16)
        __builtin_trap();
    host::current->open.push_back({to, from, 16, (size_t)(16 - bytes)});
}

template <bool TURNED> static void matrix_load(unsigned (&to)[4], const void *row)
{
    struct given {
        unsigned *to;
        const unsigned short *row;
    } own = {to, (const unsigned short *)row};
    if ((unsigned long long)row % 16)
        __builtin_trap();
    host::meet(32, &own, [](void **all) {
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                unsigned short pair[2];
                for (int k = 0; k < 2; k++) {
                    const int r = TURNED ? lane % 4 * 2 + k : lane / 4, c = TURNED ? lane / 4 : lane % 4 * 2 + k;
                    pair[k] = ((given *)all[8 * i + r])->row[c];
                }
                ((given *)all[lane])->to[i] = pair[0] | (unsigned)pair[1] << 16;
            }
    });
}

template <int TYPE> static void matrix_multiply(float *sum, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    struct given {
        float *sum;
        unsigned a[4], b[2];
    } own = {sum, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    host::meet(32, &own, [](void **all) {
        float left[16][16], right[16][8];
        for (int lane = 0; lane < 32; lane++) {
            const given *g = (const given *)all[lane];
            for (int i = 0; i < 4; i++)
                for (int k = 0; k < 2; k++) {
                    const int r = lane / 4 + i % 2 * 8, c = lane % 4 * 2 + i / 2 * 8 + k;
                    left[r][c] = host::operand_value(TYPE, (unsigned short)(g->a[i] >> 16 * k));
                    if (i < 2)
                        right[lane % 4 * 2 + i * 8 + k][lane / 4] =
                            host::operand_value(TYPE, (unsigned short)(g->b[i] >> 16 * k));
                }
        }
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++) {
                const int r = lane / 4 + i / 2 * 8, c = lane % 4 * 2 + i % 2;
                for (int k = 0; k < 16; k++)
                    ((given *)all[lane])->sum[i] += left[r][k] * right[k][c];
            }
    });
}

// ---- sm_90a ----

// A barrier: arrivals and bytes that are still to come in this phase. Copies wait in its list until somebody waits.
struct mbarrier {
    unsigned short parity, arrivals, left;
    short bytes; // in units of 128; may run below 0 before the arrival that expects them
};
static_assert(sizeof(mbarrier) == 8, "as on the device");

// tests fill it: what cuTensorMapEncodeTiled is given
struct tensor_map {
    const unsigned short *address;
    long long sizes[5], strides[5]; // in elements
    int box[5], rank;
};

namespace host {

struct engine_copy {
    unsigned short *to;
    tensor_map map; // a copy: here a parameter is gone when its thread is done
    int at[5];
};
static std::map<mbarrier *, std::vector<engine_copy>> engine_copies;

static void end_phase(mbarrier *b)
{
    if (b->left || b->bytes)
        return;
    b->parity ^= 1;
    b->left = b->arrivals;
}

static unsigned short *swizzled(const void *base, long long byte)
{
    // 128-byte swizzle by the address: bits 4..6 ^= bits 7..9.
    const unsigned long long at = (unsigned long long)base + (unsigned long long)byte;
    return (unsigned short *)(at ^ (at >> 7 & 7) << 4);
}

static void bring(const engine_copy &c)
{
    const tensor_map &m = c.map;
    long long count = 1;
    for (int i = 0; i < m.rank; i++)
        count *= m.box[i];
    if ((unsigned long long)c.to % 1024 || (unsigned long long)m.address % 16)
        __builtin_trap();
    for (long long n = 0; n < count; n++) {
        long long rest = n, from = 0;
        bool inside = true;
        for (int i = 0; i < m.rank; i++) {
            const long long at = c.at[i] + rest % m.box[i];
            rest /= m.box[i];
            inside = inside && at >= 0 && at < m.sizes[i];
            from += at * m.strides[i];
        }
        *swizzled(c.to, 2 * n) = inside ? m.address[from] : (unsigned short)0;
    }
}

} // namespace host

static void mbarrier_begin(mbarrier *b, int arrivals) { *b = {0, (unsigned short)arrivals, (unsigned short)arrivals, 0}; }
static void mbarrier_publish() {}
static void mbarrier_arrive(mbarrier *b)
{
    if (!b->left)
        __builtin_trap();
    b->left--;
    host::end_phase(b);
}
static void mbarrier_expect(mbarrier *b, int bytes)
{
    b->bytes = (short)(b->bytes + bytes / 128);
    mbarrier_arrive(b);
}
static bool mbarrier_is_over(mbarrier *b, int parity)
{
    std::vector<host::engine_copy> &late = host::engine_copies[b];
    if (b->parity == parity && !b->left) {
        for (const host::engine_copy &c : late) {
            long long bytes = 2;
            for (int i = 0; i < c.map.rank; i++)
                bytes *= c.map.box[i];
            host::bring(c);
            b->bytes = (short)(b->bytes - bytes / 128);
        }
        late.clear();
        host::end_phase(b);
    }
    return b->parity != parity;
}
static void mbarrier_wait(mbarrier *b, int parity)
{
    host::until([=] { return mbarrier_is_over(b, parity); });
}

template <int RANK>
static void tensor_load(void *to, const tensor_map &map, mbarrier *b, int c0, int c1, int c2, int c3, int c4)
{
    if (map.rank != RANK)
        __builtin_trap();
    host::engine_copies[b].push_back({(unsigned short *)to, map, {c0, c1, c2, c3, c4}});
}

template <int COUNT> static void registers_give() {}
template <int COUNT> static void registers_take() {}

// Descriptors hold 18 bits of an address; here the tile's own pointer goes along.
struct warpgroup_tile {
    const void *tile;
    int leading, stride;
};
static warpgroup_tile warpgroup_operand(const void *tile, int leading, int stride) { return {tile, leading, stride}; }
static void warpgroup_begin() {}
static void warpgroup_commit() {}
template <int LEFT> static void warpgroup_wait() {}

namespace host {

// Element (line, k) of an operand: K-major rows of 128 bytes in groups of eight lines `stride` apart; or lines side by side,
// 64 to a run of 128 bytes, runs `leading` apart, eight of the depth `stride` apart.
static float operand_element(const warpgroup_tile &t, int type, bool turned, int line, int k)
{
    const long long byte = turned ? line / 64 * t.leading + k / 8 * t.stride + k % 8 * 128 + line % 64 * 2
                                  : line / 8 * t.stride + line % 8 * 128 + k * 2;
    return operand_value(type, *swizzled(t.tile, byte));
}

} // namespace host

template <int TYPE, bool A_TURNED, bool B_TURNED, int SUMS>
static void warpgroup_multiply(float (&sum)[SUMS], warpgroup_tile a, warpgroup_tile b, bool add)
{
    struct given {
        float *sum;
        warpgroup_tile a, b;
        bool add;
    } own = {sum, a, b, add};
    host::meet(128, &own, [](void **all) {
        const int columns = 2 * SUMS;
        const given *first = (const given *)all[0];
        static float left[64][16], right[16][256];
        for (int k = 0; k < 16; k++) {
            for (int r = 0; r < 64; r++)
                left[r][k] = host::operand_element(first->a, TYPE, A_TURNED, r, k);
            for (int c = 0; c < columns; c++)
                right[k][c] = host::operand_element(first->b, TYPE, B_TURNED, c, k);
        }
        for (int thread = 0; thread < 128; thread++)
            for (int i = 0; i < SUMS; i++) {
                given *g = (given *)all[thread];
                const int r = thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8, c = i / 4 * 8 + thread % 4 * 2 + i % 2;
                float total = g->add ? g->sum[i] : 0.0f;
                for (int k = 0; k < 16; k++)
                    total += left[r][k] * right[k][c];
                g->sum[i] = total;
            }
    });
}

namespace host {

static void begin_block()
{
    meetings.clear();
    engine_copies.clear();
    for (named_barrier &b : barriers)
        b = {0, 0};
}

} // namespace host

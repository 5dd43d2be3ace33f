// CUDA C on the host, for tests without a GPU: what the printed kernels use of CUDA, for g++. Blocks run one after the
// other; a block's threads are fibers that switch at barriers, shuffles and the waits of ptx_on_host.hh alone. A barrier or
// shuffle that not all threads of the block or warp reach ends the launch with an error, as does nothing else here: indices
// are caught by guard pages around the buffers and by traps of the undefined behaviour sanitizer.
// Fibers switch by the compiler's own setjmp, which neither asks the kernel nor goes through a sanitizer: there are many
// millions of switches.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct index3 {
    unsigned x, y, z;
};
static index3 threadIdx, blockIdx;

namespace host {

enum state { READY, POLLING, AT_BARRIER, AT_SHUFFLE, DONE };
enum { STACK = 64 * 1024, WARP = 32, MOST_THREADS = 1024 };

struct copy {
    void *to;
    const void *from; // NULL: zeros
    size_t bytes, zeros; // of them, at the end
};

struct fiber {
    ucontext_t context; // until it is started
    void *place[5];     // where it waits
    bool started;
    index3 thread;
    state at;
    unsigned long long value; // of a shuffle
    unsigned mask;
    // Asynchronous copies, done as late as a wait allows: batches[0] is the oldest.
    std::vector<std::vector<copy>> batches;
    std::vector<copy> open;
};

static std::vector<fiber> fibers; // never moved
alignas(16) static char stacks[MOST_THREADS][STACK];
static void *scheduler[5];
static fiber *current;
static const std::function<void()> *body;

// A function of its own: only from a call can one come back to a setjmp.
__attribute__((noinline)) static void jump(void **to)
{
    __builtin_longjmp(to, 1);
}

// What others do in between the compiler cannot see: hence the barriers.
__attribute__((noinline)) static void change(void **from, void **to)
{
    asm volatile("" ::: "memory");
    if (!__builtin_setjmp(from))
        jump(to);
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void start(fiber &f)
{
    f.started = true;
    asm volatile("" ::: "memory");
    if (!__builtin_setjmp(scheduler))
        setcontext(&f.context);
    asm volatile("" ::: "memory");
}

static void wait(state at)
{
    fiber *self = current;
    self->at = at;
    change(self->place, scheduler);
}

// A fiber lives for a launch: block after block.
static void enter()
{
    for (;;) {
        (*body)();
        wait(DONE);
    }
}

// Others run until the condition holds; when nobody gets on any more, the launch ends with an error.
static unsigned long long events;
template <class CONDITION> static void until(const CONDITION &holds)
{
    while (!holds())
        wait(POLLING);
    events++;
}

static void begin_block(); // ptx_on_host.hh

static void resume(fiber &f)
{
    current = &f;
    threadIdx = f.thread;
    if (f.started)
        change(scheduler, f.place);
    else
        start(f);
}

// All lanes wait with the same mask: each gets its partner's value. Warps of fewer than 32 threads may not shuffle.
static bool shuffle_warp(size_t first)
{
    unsigned long long values[WARP];
    if (first + WARP > fibers.size())
        return false;
    for (size_t lane = 0; lane < WARP; lane++) {
        if (fibers[first + lane].at != AT_SHUFFLE || fibers[first + lane].mask != fibers[first].mask)
            return false;
        values[lane] = fibers[first + lane].value;
    }
    for (size_t lane = 0; lane < WARP; lane++) {
        fibers[first + lane].value = values[lane ^ fibers[first].mask];
        fibers[first + lane].at = READY;
    }
    return true;
}

static bool run_block()
{
    for (;;) {
        bool progress = false, all_wait = true, all_done = true;
        const unsigned long long before = events;
        for (fiber &f : fibers)
            if (f.at == READY) {
                resume(f);
                progress = true;
            } else if (f.at == POLLING) {
                resume(f);
                progress |= f.at != POLLING;
            }
        progress |= events != before;
        for (size_t first = 0; first < fibers.size(); first += WARP)
            if (fibers[first].at == AT_SHUFFLE)
                progress |= shuffle_warp(first);
        for (fiber &f : fibers) {
            all_wait = all_wait && f.at == AT_BARRIER;
            all_done = all_done && f.at == DONE;
        }
        if (all_done)
            return true;
        if (all_wait)
            for (fiber &f : fibers)
                f.at = READY;
        else if (!progress)
            return false;
    }
}

// 0: done; 1: threads parted at a barrier or shuffle.
static int run_grid(const long long *grid, const unsigned *block, const std::function<void()> &kernel)
{
    const size_t threads = (size_t)block[0] * block[1] * block[2];
    body = &kernel;
    fibers.reserve(MOST_THREADS);
    fibers.clear();
    fibers.resize(threads);
    for (size_t i = 0; i < threads; i++) {
        fiber &f = fibers[i];
        f.thread = {(unsigned)i % block[0], (unsigned)i / block[0] % block[1], (unsigned)i / block[0] / block[1]};
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = stacks[i];
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                begin_block();
                for (fiber &f : fibers) {
                    f.at = READY;
                    f.batches.clear();
                    f.open.clear();
                }
                if (!run_block())
                    return 1;
            }
    return 0;
}

} // namespace host

static void __syncthreads()
{
    host::wait(host::AT_BARRIER);
}

template <typename T> static T __shfl_xor_sync(unsigned, T value, int mask)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles are of 4 or 8 bytes");
    host::fiber *self = host::current;
    memcpy(&self->value, &value, sizeof value);
    self->mask = (unsigned)mask;
    host::wait(host::AT_SHUFFLE);
    memcpy(&value, &self->value, sizeof value);
    return value;
}

// Copies may be done any time before the wait: here at the last moment, so that a missing wait is seen.
static void copy_async(void *to, const void *from, size_t bytes)
{
    host::current->open.push_back({to, from, bytes, 0});
}
static void copy_async_4(void *to, const void *from) { copy_async(to, from, 4); }
static void copy_async_16(void *to, const void *from) { copy_async(to, from, 16); }
static void copy_async_4_or_zero(void *to, const void *from, bool condition) { copy_async(to, condition ? from : nullptr, 4); }
static void copy_async_16_or_zero(void *to, const void *from, bool condition) { copy_async(to, condition ? from : nullptr, 16); }
static void commit_copies()
{
    host::current->batches.push_back(host::current->open);
    host::current->open.clear();
}
template <int BATCHES> static void wait_copies()
{
    auto &batches = host::current->batches;
    while (batches.size() > BATCHES) {
        for (const host::copy &c : batches.front()) {
            if (((size_t)c.to | (size_t)c.from) % c.bytes)
                __builtin_trap(); // not aligned
            memset(c.to, 0, c.bytes);
            if (c.from)
                memcpy(c.to, c.from, c.bytes - c.zeros);
        }
        batches.erase(batches.begin());
    }
}
using std::max;
using std::min;

template <typename To, typename From> static To same_bits(From from)
{
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __uint_as_float(unsigned a) { return same_bits<float>(a); }
static inline float __int_as_float(int a) { return same_bits<float>(a); }
static inline unsigned __float_as_uint(float a) { return same_bits<unsigned>(a); }
static inline int __float_as_int(float a) { return same_bits<int>(a); }
static inline double __longlong_as_double(long long a) { return same_bits<double>(a); }
static inline long long __double_as_longlong(double a) { return same_bits<long long>(a); }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline double __dsqrt_rn(double a) { return sqrt(a); }

#include "ptx_on_host.hh"

/* A level holds when the processor has its instructions and the system keeps its registers. */
#include "runtime/cpu_level.h"

const char *cpu_level_name(uint32_t level)
{
    static const char *const names[] = {
        [1] = "x86-64", [2] = "x86-64-v2", [3] = "x86-64-v3", [4] = "x86-64-v4", [8] = "Armv8-A"};
    return level < sizeof names / sizeof *names && names[level] ? names[level] : "unknown";
}

#if defined(__aarch64__)
uint32_t cpu_level(void)
{
    return 8;
}
#elif defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

uint32_t cpu_level(void)
{
    uint32_t a, b, c1, d, b7, c7, d7, a7, c80, ignored;
    if (!__get_cpuid(1, &a, &b, &c1, &d))
        return 1;
    /* SSE3, SSSE3, SSE4.1, SSE4.2, POPCNT, CMPXCHG16B */
    if (!has(c1, 1u << 0 | 1u << 9 | 1u << 19 | 1u << 20 | 1u << 23 | 1u << 13))
        return 1;
    /* FMA, MOVBE, XSAVE in use, AVX, F16C */
    if (!has(c1, 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29) || (saved_registers() & 6) != 6)
        return 2;
    if (!__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7) ||
        !__get_cpuid(0x80000001u, &ignored, &ignored, &c80, &ignored))
        return 2;
    /* BMI1, AVX2, BMI2; LZCNT */
    if (!has(b7, 1u << 3 | 1u << 5 | 1u << 8) || !has(c80, 1u << 5))
        return 2;
    /* AVX512 F, DQ, CD, BW, VL; opmask and zmm registers */
    if (!has(b7, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) || (saved_registers() & 0xe6) != 0xe6)
        return 3;
    return 4;
}
#else
#error "the levels of this processor are not known"
#endif

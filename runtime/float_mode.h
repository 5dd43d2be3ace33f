/* The floating-point mode that kernels are compiled for: round to nearest, subnormal numbers kept, no traps.
 * Callers may run in another one (flush to zero is common), so entry points set it and put the old one back.
 */
#ifndef GPUCC_RUNTIME_FLOAT_MODE_H
#define GPUCC_RUNTIME_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef unsigned float_mode;

static inline float_mode float_mode_enter(void)
{
    float_mode saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}

static inline void float_mode_leave(float_mode saved)
{
    _mm_setcsr(saved);
}
#elif defined(__aarch64__)
#include <stdint.h>

typedef uint64_t float_mode;

static inline void float_mode_leave(float_mode saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}

static inline float_mode float_mode_enter(void)
{
    float_mode saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    float_mode_leave(0);
    return saved;
}
#else
#error "the floating-point mode of this processor is not known"
#endif

#endif

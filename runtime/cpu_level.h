/* The instruction set level of the processor that runs this, as bundle_plan.level: 1 .. 4 are those of x86-64
 * (psABI), 8 is Armv8-A with its vectors, which every AArch64 Linux has. A processor runs the code of lower
 * levels of its kind. */
#ifndef GPUCC_RUNTIME_CPU_LEVEL_H
#define GPUCC_RUNTIME_CPU_LEVEL_H

#include <stdint.h>

uint32_t cpu_level(void);
const char *cpu_level_name(uint32_t level);

#endif

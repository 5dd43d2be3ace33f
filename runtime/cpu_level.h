/* The x86-64 level (psABI) of the processor that runs this: 1 .. 4. */
#ifndef GPUCC_RUNTIME_CPU_LEVEL_H
#define GPUCC_RUNTIME_CPU_LEVEL_H

#include <stdint.h>

uint32_t cpu_level(void);

#endif

/* How often the process has called malloc and its kin, and dlopen and dlmopen: a program that links
 * counted_calls.c has its own, which count and pass on. The program must export its symbols (ENABLE_EXPORTS),
 * so that a bundle finds them. */
#ifndef GPUCC_TESTS_COUNTED_CALLS_H
#define GPUCC_TESTS_COUNTED_CALLS_H

#include <stdint.h>

uint64_t calls_allocated(void); /* and freed */
uint64_t calls_opened(void);

#endif

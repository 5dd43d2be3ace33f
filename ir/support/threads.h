/* Runs independent jobs on up to `threads` threads (0: one for each CPU that this process may use). job(user, index) is
 * called once for every index below count, in no stated order; results go to slots of their own, so the outcome does
 * not depend on the number of threads. Returns false when no thread could be made and count > 0 (then nothing ran on
 * others, and the caller's thread has done all jobs). Jobs must not jump out. */
#ifndef GPUCC_IR_SUPPORT_THREADS_H
#define GPUCC_IR_SUPPORT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

bool run_jobs(uint32_t count, uint32_t threads, void (*job)(void *user, uint32_t index), void *user);
uint32_t cpu_count(void); /* CPUs that this process may use, at least 1 */

#endif

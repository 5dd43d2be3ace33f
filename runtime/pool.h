/* Threads that wait for small jobs: the caller takes part, workers spin for a moment before they sleep. One
 * caller at a time. */
#ifndef GPUCC_RUNTIME_POOL_H
#define GPUCC_RUNTIME_POOL_H

#include <stdint.h>

struct pool;

/* `threads` includes the caller's. NULL when memory or threads run out. */
struct pool *pool_create(uint32_t threads);
void pool_destroy(struct pool *pool); /* NULL is allowed */
uint32_t pool_threads(const struct pool *pool);

/* Between begin and end workers stay awake between jobs. Neither allocates. */
void pool_begin(struct pool *pool);
void pool_end(struct pool *pool);

/* Runs job(user, i) once for each i below `parts` (at most pool_threads), part 0 on the caller's thread, and
 * waits. */
void pool_run(struct pool *pool, uint32_t parts, void (*job)(void *user, uint32_t part), void *user);

/* CPUs that this process may use, at least 1. */
uint32_t pool_cpu_count(void);

#endif

/* Runs a strategy's CUDA kernels on the host (cuda_on_host.hh) and compares them with the interpreter.
 * Kernels are collected in a batch, equal ones once, which is compiled by g++ in parts, as many at a time as
 * there are processors. Buffers end at a page that may not be touched. Test code only. */
#ifndef GPUCC_TESTS_HARNESS_CUDA_ON_HOST_H
#define GPUCC_TESTS_HARNESS_CUDA_ON_HOST_H

#include "codegen/printers.h"
#include "codegen/strategy.h"
#include "tests/unit/support.h"

enum { MOST_PARTS = 64 };

struct host_batch {
    struct arena *arena;
    struct host_source *sources; /* one a kernel */
    uint32_t kernel_count, room;
    uint32_t part_count;
    void *libraries[MOST_PARTS];
    char *folder;
};

/* A kernel of the batch. */
typedef int host_kernel(void *const *buffers, const long long *dims, const long long *grid,
                        const void *const *maps);
/* What stands for a tensor map: as in ptx_on_host.hh. */
struct host_map {
    const void *address;
    long long sizes[MAX_TENSOR_MAP_RANK], strides[MAX_TENSOR_MAP_RANK];
    int box[MAX_TENSOR_MAP_RANK], rank;
};

void host_batch_begin(struct host_batch *batch, struct arena *arena);
/* The kernel's number in the batch; an equal one's if there is one. Fails the test when the verifier refuses
 * it. */
uint32_t host_batch_add(struct host_batch *batch, const struct kernel *kernel, const struct machine *machine);
/* Compiles with g++. */
void host_batch_compile(struct host_batch *batch);
host_kernel *host_batch_kernel(const struct host_batch *batch, uint32_t number);
void host_batch_end(struct host_batch *batch);
/* The same kernels by NVRTC; skipped without it (false). Fails the test when it refuses one. `log` (may be
 * NULL): what ptxas says of each. */
bool host_batch_nvrtc(struct host_batch *batch, const struct machine *machine, char **log);
/* Any kernels' text. */
bool host_nvrtc(struct arena *arena, const char *kernels, const struct machine *machine, char **log);
/* Where ptxas's log tells of registers in memory, or of warpgroups' products made to wait for each other;
 * NULL: nowhere. */
const char *slow_code(const char *log);

/* 16-byte aligned memory whose end is followed by a page that may not be touched. */
void *guarded_alloc(size_t bytes);
void guarded_release(void *memory, size_t bytes);

#endif

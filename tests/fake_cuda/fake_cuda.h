/* A driver library that executes nothing: libcuda.so.1 for tests without a GPU. Device memory is host memory,
 * so copies are real; kernels are not run. Every call checks its arguments and the life of the objects it
 * gets; a wrong one ends the process. Calls are counted by name, and the nth call of any function can be made
 * to fail. For programs that know nothing of it: FAKE_CUDA_DEVICES, FAKE_CUDA_CAPABILITY (90) and
 * FAKE_CUDA_DRIVER (13000) say what the machine has. */
#ifndef GPUCC_TESTS_FAKE_CUDA_H
#define GPUCC_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

struct fake_launch {
    char kernel[64];
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    uint64_t arguments[8]; /* the first eight, as the kernel would read 8 bytes at each */
    int from_graph;
};

struct fake_controls {
    void (*reset)(void); /* counters and the plan to fail; objects stay */
    void (*device)(int count, int capability, int driver_version); /* what the machine has */
    unsigned (*calls)(const char *name);                           /* of one function, or of all for NULL */
    unsigned (*alive)(void);                   /* objects and allocations not given back */
    void (*fail_at)(unsigned nth, int result); /* the nth call from now on; 0: none */
    const char *(*failed)(void);               /* which one that was; "" when it did not come */
    void *(*stream)(void);                     /* a stream of the caller's */
    void *(*context)(void);    /* a CUDA context of the caller's, on device 0; ends as a stream does */
    unsigned (*current)(void); /* contexts on this thread's stack */
    void (*stream_end)(void *stream);
    void (*capture)(void *stream, int capturing); /* streams of the fake may be captured */
    void (*forget)(void); /* after an injected failure: contexts and objects that were lost */
    unsigned (*launches)(struct fake_launch *out, unsigned limit); /* since the reset, in order */
    void (*arguments)(const char *kernel, unsigned count); /* how many 8-byte arguments to read of it */
    void (*leave_copies)(int leave); /* copies within the device are checked and not made, as a device takes
                                        no host time for them */
};

/* The library's one extra symbol, "fake_cuda_controls". */
typedef const struct fake_controls *fake_cuda_controls_function(void);

#endif

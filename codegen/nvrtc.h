/* NVRTC by dlopen. See printers.h for opening it. */
#ifndef GPUCC_CODEGEN_NVRTC_H
#define GPUCC_CODEGEN_NVRTC_H

#include "ir/support/diag.h"

/* Opens $GPUCC_NVRTC, else libnvrtc by the loader's rules and under /usr/local/cuda. NULL: E0502 is recorded (nothing when
 * `diagnostics` is NULL). The caller closes it after the last use. */
struct nvrtc;
struct nvrtc *nvrtc_open(struct arena *arena, struct diagnostics *diagnostics);
void nvrtc_close(struct nvrtc *nvrtc);
void nvrtc_version(const struct nvrtc *nvrtc, int *major, int *minor);

/* What a compilation gives, in memory of malloc: threads may not share an arena. */
struct nvrtc_result {
    unsigned char *image;
    size_t bytes;
    char *log; /* may be NULL */
    int error; /* errno of what the machine lacked: memory, room on the disk; 0: the compiler refused the source */
};
/* Compiles one unit; thread safe. False: `error` or `log` says why. Release the result in either case. */
bool nvrtc_compile(const struct nvrtc *nvrtc, const char *source, const char *const *options, int option_count, bool ptx,
                   struct nvrtc_result *out);
void nvrtc_result_release(struct nvrtc_result *result);

#endif

/* The text of a failure, in memory of the caller: no allocation, no thread-local storage inside a bundle. */
#ifndef GPUCC_RUNTIME_ERROR_H
#define GPUCC_RUNTIME_ERROR_H

#include "gpucc/runtime.h"

struct runtime_error {
    char text[1024];
};

/* Writes the text and returns the status. */
gpucc_status runtime_fail(struct runtime_error *error, gpucc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Control bytes, quotes, backslashes and bytes beyond ASCII as \xNN; cut with "..." to fit. Returns `out`. */
const char *runtime_escape(const char *text, char *out, size_t bytes);

#endif

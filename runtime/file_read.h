/* Reads at an offset, complete or failed. */
#ifndef GPUCC_RUNTIME_FILE_READ_H
#define GPUCC_RUNTIME_FILE_READ_H

#include "runtime/error.h"

/* IO_ERROR with the system's reason; a short file says so. */
gpucc_status runtime_read_at(int fd, uint64_t offset, void *data, size_t bytes, struct runtime_error *error);

#endif

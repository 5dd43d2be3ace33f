/* pread until done. */
#include "runtime/file_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

gpucc_status runtime_read_at(int fd, uint64_t offset, void *data, size_t bytes, struct runtime_error *error)
{
    if (offset > INT64_MAX || bytes > INT64_MAX - offset)
        return runtime_fail(error, GPUCC_IO_ERROR, "an offset is too large");
    for (size_t done = 0; done < bytes;) {
        ssize_t part = pread(fd, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return runtime_fail(error, GPUCC_IO_ERROR, "cannot read: %s", strerror(errno));
        if (part == 0)
            return runtime_fail(error, GPUCC_IO_ERROR, "the file is cut short");
        done += (size_t)part;
    }
    return GPUCC_OK;
}

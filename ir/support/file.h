/* Files: checked reads at an offset, and output that is complete or absent. Every function returns true, or false with
 * errno set. Nothing here prints. */
#ifndef GPUCC_IR_SUPPORT_FILE_H
#define GPUCC_IR_SUPPORT_FILE_H

#include "ir/support/arena.h"

/* Opens a regular file for reading (O_CLOEXEC | O_NONBLOCK, so that a FIFO cannot hang; anything but a regular file is
 * refused with EINVAL) and tells its size in bytes. The caller closes *fd. */
bool file_open(const char *path, int *fd, uint64_t *bytes);
/* Reads exactly `bytes` at `offset`; a short file is an error (EIO). */
bool file_read_at(int fd, uint64_t offset, void *data, size_t bytes);
/* The whole file with a NUL behind it, at most `limit` bytes (EFBIG). */
bool file_read_all(struct arena *arena, const char *path, size_t limit, char **data, size_t *bytes);

/* Output under a temporary name in the target's folder; file_commit fsyncs and renames it, file_abandon removes it.
 * `path` is created with mode 0666 (or 0777 when executable) less the umask. */
struct output_file {
    char *path, *temporary; /* in the arena */
    int fd;
};
bool output_open(struct output_file *out, struct arena *arena, const char *path, bool executable);
bool output_write(struct output_file *out, const void *data, size_t bytes);
bool output_write_at(struct output_file *out, uint64_t offset, const void *data, size_t bytes);
bool output_commit(struct output_file *out);
/* Both or none, but for a crash between the two renames; on failure *failed is the one that could not be written. */
bool output_commit_both(struct output_file *first, struct output_file *second, struct arena *arena,
                        const struct output_file **failed);
void output_abandon(struct output_file *out); /* keeps errno; harmless after a commit */
/* A nameless file for reading and writing in the folder of `beside`; it is gone when *fd is closed. */
bool scratch_open(struct arena *arena, const char *beside, int *fd);
/* Writes exactly `bytes` at `offset`. */
bool file_write_at(int fd, uint64_t offset, const void *data, size_t bytes);
bool file_write_all(struct arena *arena, const char *path, const void *data, size_t bytes); /* open, write, commit */

/* Runs a program found by execvp rules without a shell; its stdout and stderr land in *log (arena, cut at 64 KiB).
 * *status: the exit status, or 128 + signal. False: it could not be started. */
bool run_program(struct arena *arena, char *const argv[], int *status, char **log);
/* Whether a program's log says that it could not write: the reason (static text of the system), or NULL. */
const char *log_tells_full_disk(const char *log);
/* A fresh folder of mode 0700 under $TMPDIR or /tmp; remove_folder deletes it with the files directly in it. */
bool temporary_folder(struct arena *arena, char **path);
void remove_folder(const char *path);

#endif

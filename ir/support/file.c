/* Files and programs, on POSIX. Output grows under a hidden temporary name beside its target and is renamed
 * at the end, so a reader sees the old file or the whole new one. No function here jumps to the arena's
 * recovery point while it holds a descriptor. */
#include "ir/support/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_LIMIT = 64 * 1024, NAME_TRIES = 100 };

static bool fail(int error)
{
    errno = error;
    return false;
}

/* Closes and keeps errno. */
static void close_quietly(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
}

bool file_open(const char *path, int *fd, uint64_t *bytes)
{
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0)
        return false;
    struct stat status;
    bool good = fstat(opened, &status) == 0 && (S_ISREG(status.st_mode) || fail(EINVAL));
    if (!good) {
        close_quietly(opened);
        return false;
    }
    *fd = opened;
    *bytes = (uint64_t)status.st_size;
    return true;
}

/* True when [offset, offset + bytes) can be named by off_t. */
static bool range_fits(uint64_t offset, size_t bytes)
{
    return offset <= INT64_MAX && bytes <= INT64_MAX - offset;
}

bool file_read_at(int fd, uint64_t offset, void *data, size_t bytes)
{
    if (!range_fits(offset, bytes))
        return fail(EINVAL);
    for (size_t done = 0; done < bytes;) {
        ssize_t part = pread(fd, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return false;
        if (part == 0)
            return fail(EIO);
        done += (size_t)part;
    }
    return true;
}

bool file_read_all(struct arena *arena, const char *path, size_t limit, char **data, size_t *bytes)
{
    int fd;
    uint64_t size;
    if (!file_open(path, &fd, &size))
        return false;
    char *text = NULL;
    bool good = size <= limit || fail(EFBIG);
    if (good) {
        text = size < SIZE_MAX ? arena_try_alloc(arena, (size_t)size + 1) : NULL;
        good = text || fail(ENOMEM);
    }
    good = good && file_read_at(fd, 0, text, (size_t)size);
    close_quietly(fd);
    if (!good)
        return false;
    text[size] = '\0';
    *data = text;
    *bytes = (size_t)size;
    return true;
}

/* Where the output really goes: a link stays and its target is replaced. What is not a regular file (a
 * device, a folder) or may not be written is refused here and not replaced by the rename. */
static bool output_target(struct arena *arena, const char *path, char **target)
{
    struct stat status;
    *target = arena_string(arena, path);
    if (stat(path, &status) != 0)
        return errno == ENOENT;
    if (S_ISDIR(status.st_mode))
        return fail(EISDIR);
    if (!S_ISREG(status.st_mode))
        return fail(EINVAL);
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    char *copy = arena_try_alloc(arena, strlen(real) + 1);
    if (copy)
        *target = strcpy(copy, real);
    free(real);
    return copy ? access(path, W_OK) == 0 : fail(ENOMEM);
}

bool output_open(struct output_file *out, struct arena *arena, const char *path, bool executable)
{
    *out = (struct output_file){.fd = -1};
    if (!*path)
        return fail(ENOENT);
    if (!output_target(arena, path, &out->path))
        return false;
    const char *slash = strrchr(out->path, '/');
    int folder = slash ? (int)(slash - out->path) + 1 : 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        char *name = arena_printf(arena, "%.*s.gpucc-%lx-%lx-%x.tmp", folder, out->path,
                                  (unsigned long)getpid(), (unsigned long)now.tv_nsec, i);
        /* The mode goes through the umask, which mkstemp would bypass. */
        out->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, executable ? 0777 : 0666);
        if (out->fd >= 0) {
            out->temporary = name;
            return true;
        }
        if (errno != EEXIST)
            return false;
    }
    return false;
}

bool output_write(struct output_file *out, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t part = write(out->fd, (const char *)data + done, bytes - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return false;
        done += (size_t)part;
    }
    return true;
}

bool file_write_at(int fd, uint64_t offset, const void *data, size_t bytes)
{
    if (!range_fits(offset, bytes))
        return fail(EINVAL);
    for (size_t done = 0; done < bytes;) {
        ssize_t part = pwrite(fd, (const char *)data + done, bytes - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return false;
        done += (size_t)part;
    }
    return true;
}

bool output_write_at(struct output_file *out, uint64_t offset, const void *data, size_t bytes)
{
    return file_write_at(out->fd, offset, data, bytes);
}

bool scratch_open(struct arena *arena, const char *beside, int *fd)
{
    struct output_file file;
    if (!output_open(&file, arena, beside, false))
        return false;
    if (unlink(file.temporary) != 0) {
        output_abandon(&file);
        return false;
    }
    *fd = file.fd;
    return true;
}

/* What was written is on the disk; the file is closed. Some file systems report a full disk only here. */
static bool settle(struct output_file *out)
{
    if (!out->temporary)
        return fail(EBADF);
    bool synced = fsync(out->fd) == 0;
    int error = errno;
    bool closed = close(out->fd) == 0;
    out->fd = -1;
    return (synced || fail(error)) && closed;
}

/* Gives it its name. */
static bool publish(struct output_file *out)
{
    if (rename(out->temporary, out->path) != 0)
        return false;
    out->temporary = NULL;
    return true;
}

bool output_commit(struct output_file *out)
{
    if (settle(out) && publish(out))
        return true;
    output_abandon(out);
    return false;
}

/* A second name for the old file, so that it can come back. False: there is none. */
static bool keep_old(const char *path, const char *backup)
{
    return link(path, backup) == 0 || (errno != ENOENT && rename(path, backup) == 0);
}

bool output_commit_both(struct output_file *first, struct output_file *second, struct arena *arena,
                        const struct output_file **failed)
{
    const char *backup = first->temporary ? arena_printf(arena, "%s.old", first->temporary) : "";
    bool good = settle(first);
    *failed = good ? second : first;
    good = good && settle(second);
    if (good) {
        bool kept = keep_old(first->path, backup);
        *failed = first;
        good = publish(first);
        if (good) {
            *failed = second;
            good = publish(second);
            int error = errno;
            if (!good && !kept)
                unlink(first->path);
            errno = error;
        }
        int error = errno;
        /* Between two names of one file a rename does nothing. */
        if (kept && (good || rename(backup, first->path) == 0))
            unlink(backup);
        errno = error;
    }
    if (!good) {
        output_abandon(first);
        output_abandon(second);
    }
    return good;
}

void output_abandon(struct output_file *out)
{
    int error = errno;
    if (out->fd >= 0)
        close(out->fd);
    if (out->temporary)
        unlink(out->temporary);
    out->fd = -1;
    out->temporary = NULL;
    errno = error;
}

bool file_write_all(struct arena *arena, const char *path, const void *data, size_t bytes)
{
    struct output_file out;
    if (!output_open(&out, arena, path, false))
        return false;
    if (!output_write(&out, data, bytes)) {
        output_abandon(&out);
        return false;
    }
    return output_commit(&out);
}

/* What programs get to see: nothing that changes what a compiler or linker does behind our back (LD_RUN_PATH,
 * LIBRARY_PATH, NVCC_APPEND_FLAGS, ...), and messages of one language. */
static char **clean_environment(struct arena *arena)
{
    static const char *const kept[] = {"PATH=", "HOME=", "TMPDIR=", "LD_LIBRARY_PATH="};
    const size_t room = sizeof kept / sizeof *kept;
    char **clean = arena_new_array(arena, char *, room + 2);
    size_t count = 0;
    for (size_t i = 0; environ && environ[i]; i++)
        for (size_t j = 0; j < room && count < room; j++)
            if (strncmp(environ[i], kept[j], strlen(kept[j])) == 0)
                clean[count++] = environ[i];
    clean[count] = arena_string(arena, "LC_ALL=C");
    return clean;
}

/* Starts argv[0] with no input and both outputs into `output`; 0 or an errno. */
static int spawn(char *const argv[], char *const environment[], int output, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(&attributes, &standard);
    if (!error)
        error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawnp(child, argv[0], &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads to the end; what passes the room is dropped, since the first messages say what went wrong. */
static size_t drain(int fd, char *buffer, size_t room)
{
    size_t kept = 0;
    for (;;) {
        char rest[4096];
        ssize_t part = kept < room ? read(fd, buffer + kept, room - kept) : read(fd, rest, sizeof rest);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return kept;
        if (kept < room)
            kept += (size_t)part;
    }
}

bool run_program(struct arena *arena, char *const argv[], int *status, char **log)
{
    char **environment = clean_environment(arena);
    char output[LOG_LIMIT + 1];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child;
    int error = spawn(argv, environment, ends[1], &child);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return fail(error);
    }
    size_t length = drain(ends[0], output, LOG_LIMIT);
    output[length] = '\0';
    close(ends[0]);
    int result;
    pid_t waited;
    do
        waited = waitpid(child, &result, 0);
    while (waited < 0 && errno == EINTR);
    if (waited < 0)
        return false;
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    *log = arena_copy(arena, output, length + 1);
    return true;
}

const char *log_tells_full_disk(const char *log)
{
    static const char *const reasons[] = {"No space left on device", "File too large", "Disk quota exceeded",
                                          "Read-only file system"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(log, reasons[i]))
            return reasons[i];
    return NULL;
}

bool temporary_folder(struct arena *arena, char **path)
{
    const char *base = getenv("TMPDIR");
    char *name = arena_printf(arena, "%s/gpucc-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(name))
        return false;
    *path = name;
    return true;
}

void remove_folder(const char *path)
{
    int error = errno;
    DIR *folder = opendir(path);
    if (folder) {
        struct dirent *entry;
        while ((entry = readdir(folder)) != NULL)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                unlinkat(dirfd(folder), entry->d_name, 0);
        closedir(folder);
    }
    rmdir(path);
    errno = error;
}

/* See source_files.h for the rule that this file enforces. */
#include "frontend/source_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/file.h"

void source_files_init(struct source_files *files, struct arena *arena)
{
    *files = (struct source_files){.arena = arena};
}

void source_files_close(struct source_files *files)
{
    for (uint32_t i = 0; i < files->files.count; i++)
        if (files->files.items[i].fd >= 0)
            close(files->files.items[i].fd);
    files->files.count = 0;
}

/* Real path of the folder that holds `path`, in the arena. */
static const char *folder_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *folder = ".";
    if (slash == path)
        folder = "/";
    else if (slash)
        folder = arena_printf(arena, "%.*s", (int)(slash - path), path);
    char *real = arena_alloc(arena, PATH_MAX);
    return realpath(folder, real);
}

bool source_files_open_model(struct source_files *files, const char *path, int *fd, uint64_t *bytes)
{
    if (strlen(path) > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    /* Room first: nothing may fail between the open and the record of it. */
    vec_push(files->arena, &files->files, ((struct source_file){.fd = -1}));
    struct source_file *file = &files->files.items[files->files.count - 1];
    files->folder = folder_of(files->arena, path);
    if (!file_open(path, &file->fd, &file->bytes)) {
        file->fd = -1;
        return false;
    }
    *fd = file->fd;
    *bytes = file->bytes;
    return true;
}

/* The text alone: relative, no way upwards, nothing that some system reads as a separator. */
static const char *check_location(const char *location)
{
    if (!*location)
        return "its location is empty";
    if (*location == '/')
        return "its location is absolute";
    if (strchr(location, '\\'))
        return "its location has a backslash";
    if (strlen(location) >= PATH_MAX / 2)
        return "its location is too long";
    for (const char *part = location; part;) {
        if (!strncmp(part, "..", 2) && (part[2] == '/' || part[2] == '\0'))
            return "its location leaves the model's folder";
        const char *slash = strchr(part, '/');
        part = slash ? slash + 1 : NULL;
    }
    return NULL;
}

/* Opens `path`, which has no links, below the folder, one part after the other. -1: errno is set. */
static int open_below(const char *folder, const char *path)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        size_t length = strcspn(path, "/");
        char part[NAME_MAX + 1];
        if (length > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, length);
        part[length] = '\0';
        bool last = path[length] == '\0';
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
        int next = openat(at, part, flags);
        int reason = errno;
        close(at);
        errno = reason;
        if (last)
            return next;
        at = next;
        path += length + 1;
    }
    return -1;
}

const char *source_files_open_data(struct source_files *files, const char *location, int *fd, uint64_t *bytes)
{
    if (!files->folder)
        return "a model that is not read from a file has no folder";
    for (uint32_t i = 0; i < files->files.count; i++) {
        const struct source_file *known = &files->files.items[i];
        if (known->fd >= 0 && known->location && !strcmp(known->location, location)) {
            *fd = known->fd;
            *bytes = known->bytes;
            return NULL;
        }
    }
    const char *refusal = check_location(location);
    if (refusal)
        return refusal;
    const char *location_copy = arena_string(files->arena, location);
    char *real = arena_alloc(files->arena, PATH_MAX);
    if (!realpath(arena_printf(files->arena, "%s/%s", files->folder, location), real))
        return strerror(errno);
    size_t length = strlen(files->folder);
    if (length == 1) /* the root folder ends in its slash */
        length = 0;
    if (strncmp(real, files->folder, length) != 0 || real[length] != '/')
        return "it is a link that leaves the model's folder";
    /* Room first: nothing may fail between the open and the record of it. */
    vec_push(files->arena, &files->files, ((struct source_file){.fd = -1}));
    struct source_file *file = &files->files.items[files->files.count - 1];
    struct stat status;
    file->fd = open_below(files->folder, real + length + 1);
    if (file->fd < 0)
        return strerror(errno);
    if (fstat(file->fd, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    file->bytes = (uint64_t)status.st_size;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->location = location_copy;
    for (uint32_t i = 0; i + 1 < files->files.count; i++) {
        const struct source_file *known = &files->files.items[i];
        if (known->fd >= 0 && known->device == file->device && known->inode == file->inode) {
            close(file->fd);
            files->files.count--;
            *fd = known->fd;
            *bytes = known->bytes;
            return NULL;
        }
    }
    *fd = file->fd;
    *bytes = file->bytes;
    return NULL;
}

bool source_files_hold(const struct source_files *files, const char *path)
{
    struct stat wanted, held;
    if (stat(path, &wanted) != 0)
        return false;
    for (uint32_t i = 0; i < files->files.count; i++)
        if (files->files.items[i].fd >= 0 && fstat(files->files.items[i].fd, &held) == 0 &&
            held.st_dev == wanted.st_dev && held.st_ino == wanted.st_ino)
            return true;
    return false;
}

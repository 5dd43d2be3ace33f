/* An entry's file: magic, length, sha256 of the data, data. Named by its key in hex. */
#include "codegen/kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/hash.h"

static const char magic[8] = "gpucck1";
static const uint64_t largest_cache = UINT64_C(2) << 30, largest_entry = UINT64_C(1) << 30;
enum { NAME_BYTES = 65 };

struct entry_header {
    char magic[8];
    uint64_t length;
    unsigned char digest[32];
};

/* Makes every folder of the path that is missing, the last with mode 0700. */
static bool make_folders(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        int made = mkdir(path, 0700);
        int error = errno;
        *at = '/';
        if (made != 0 && error != EEXIST)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static char *default_folder(struct arena *arena)
{
    const char *own = getenv("GPUCC_CACHE_DIR"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && own[0] == '/')
        return arena_string(arena, own);
    if (shared && shared[0] == '/')
        return arena_printf(arena, "%s/gpucc", shared);
    return home && home[0] == '/' ? arena_printf(arena, "%s/.cache/gpucc", home) : NULL;
}

struct kernel_cache kernel_cache_open(const char *wish, struct arena *arena)
{
    struct kernel_cache cache = {.folder = -1};
    char *path = wish ? (wish[0] ? arena_string(arena, wish) : NULL) : default_folder(arena);
    if (!path || !make_folders(path))
        return cache;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat facts;
    if (folder < 0)
        return cache;
    /* Others could plant code in a folder that is theirs to write. */
    if (fstat(folder, &facts) != 0 || facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
        close(folder);
        return cache;
    }
    cache.folder = folder;
    return cache;
}

void kernel_cache_key(const void *source, size_t length, const char *architecture, const char *compiler,
                      const char *const *options, uint32_t option_count, unsigned char key[32])
{
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, GPUCC_VERSION, sizeof GPUCC_VERSION);
    sha256_update(&hash, architecture, strlen(architecture) + 1);
    sha256_update(&hash, compiler, strlen(compiler) + 1);
    for (uint32_t i = 0; i < option_count; i++)
        sha256_update(&hash, options[i], strlen(options[i]) + 1);
    sha256_update(&hash, source, length);
    sha256_final(&hash, key);
}

static void digest_of(const unsigned char *bytes, size_t length, unsigned char digest[32])
{
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, bytes, length);
    sha256_final(&hash, digest);
}

static bool read_whole(int fd, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(fd, (char *)data + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool write_whole(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put = write(fd, (const char *)data + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

static bool read_entry(int fd, unsigned char **bytes, size_t *length)
{
    struct entry_header header;
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() ||
        !read_whole(fd, &header, sizeof header) || memcmp(header.magic, magic, sizeof magic) != 0 ||
        header.length > largest_entry || (uint64_t)facts.st_size != sizeof header + header.length)
        return false;
    unsigned char *data = malloc(header.length ? header.length : 1);
    unsigned char digest[32];
    if (!data)
        return false;
    if (read_whole(fd, data, header.length)) {
        digest_of(data, header.length, digest);
        if (memcmp(digest, header.digest, sizeof digest) == 0) {
            *bytes = data;
            *length = header.length;
            return true;
        }
    }
    free(data);
    return false;
}

bool kernel_cache_read(const struct kernel_cache *cache, const unsigned char key[32], unsigned char **bytes,
                       size_t *length)
{
    char name[NAME_BYTES];
    if (cache->folder < 0)
        return false;
    sha256_hex(key, name);
    int fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool good = read_entry(fd, bytes, length);
    if (good)
        futimens(fd, NULL); /* used now: not among the oldest; a read-only file system may refuse */
    close(fd);
    return good;
}

void kernel_cache_write(const struct kernel_cache *cache, const unsigned char key[32],
                        const unsigned char *bytes, size_t length)
{
    char name[NAME_BYTES], temporary[NAME_BYTES + 32];
    struct entry_header header = {.length = length};
    if (cache->folder < 0 || length > largest_entry)
        return;
    memcpy(header.magic, magic, sizeof magic);
    digest_of(bytes, length, header.digest);
    sha256_hex(key, name);
    /* Unique among processes and, by the key, among the threads of one: two units of one compilation differ.
     */
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", name, (long)getpid());
    int fd = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool good = write_whole(fd, &header, sizeof header) && write_whole(fd, bytes, length);
    good = close(fd) == 0 && good;
    if (!good || renameat(cache->folder, temporary, cache->folder, name) != 0)
        unlinkat(cache->folder, temporary, 0);
}

struct aged_file {
    char name[NAME_BYTES + 32];
    struct timespec used;
    uint64_t bytes;
};

static int by_age(const void *a, const void *b)
{
    const struct aged_file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* The folder's regular files; *total their bytes. The list is from malloc; NULL when memory ran out or it is
 * empty. */
static struct aged_file *list_files(DIR *list, int folder, size_t *count, uint64_t *total)
{
    struct aged_file *files = NULL;
    size_t room = 0;
    struct dirent *item;
    *count = 0;
    *total = 0;
    while ((item = readdir(list))) {
        struct stat facts;
        if (strlen(item->d_name) >= sizeof files->name ||
            fstatat(folder, item->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
            continue;
        if (*count == room) {
            struct aged_file *larger = realloc(files, (room ? room * 2 : 64) * sizeof *files);
            if (!larger)
                break;
            files = larger;
            room = room ? room * 2 : 64;
        }
        struct aged_file *file = &files[(*count)++];
        strcpy(file->name, item->d_name);
        file->used = facts.st_mtim;
        file->bytes = (uint64_t)facts.st_size;
        *total += file->bytes;
    }
    return files;
}

void kernel_cache_close(struct kernel_cache *cache)
{
    if (cache->folder < 0)
        return;
    int again = dup(cache->folder);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (list) {
        size_t count;
        uint64_t total;
        struct aged_file *files = list_files(list, cache->folder, &count, &total);
        if (files && total > largest_cache)
            qsort(files, count, sizeof *files, by_age);
        for (size_t i = 0; files && i < count && total > largest_cache; i++) {
            unlinkat(cache->folder, files[i].name, 0);
            total -= files[i].bytes;
        }
        free(files);
        closedir(list);
    } else if (again >= 0) {
        close(again);
    }
    close(cache->folder);
    cache->folder = -1;
}

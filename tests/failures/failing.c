/* A library to preload: makes the nth call of one kind fail, as the system would when memory or the disk runs
 * out. What counts is calls from our own code: of the program (the address ranges in a file) and of bundles;
 * what LLVM, NVRTC, the C library and the linker do for themselves is theirs. By the environment:
 *
 *     FAILING_KIND    memory, write, fsync, rename, read, open, truncate, folder
 *     FAILING_AT      the call that fails, from 1; 0: none
 *     FAILING_RANGES  file of lines "begin end", hexadecimal, relative to the program's base; without it: all
 * of the program FAILING_REPORT  file to be written at the end: "calls N", "lost N" (allocations that were
 * not given back)
 *
 * Memory that was counted is remembered, so that what is lost is known. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The C library's own names of its allocator: free to call while nothing is set up yet. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

EXPORT int posix_memalign(void **memory, size_t alignment, size_t bytes);

enum kind { MEMORY, WRITE, FSYNC, RENAME, READ, OPEN, TRUNCATE, FOLDER, KINDS };
static const char *const names[KINDS] = {"memory", "write", "fsync",    "rename",
                                         "read",   "open",  "truncate", "folder"};

enum { MOST_RANGES = 1 << 16, MOST_LIVING = 1 << 16 };

struct range {
    uintptr_t begin, end;
};

static struct {
    atomic_bool ready;
    enum kind kind;
    unsigned long at;
    atomic_ulong calls;
    struct range program; /* its executable part */
    struct range ranges[MOST_RANGES];
    size_t range_count;
    pthread_mutex_t lock;
    void *living[MOST_LIVING]; /* hash table of counted memory; (void *)1: was given back */
    unsigned long lost;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .kind = KINDS};

/* ---- whose call it is */

static bool in_ranges(uintptr_t address)
{
    size_t low = 0, high = state.range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (address < state.ranges[middle].begin)
            high = middle;
        else if (address >= state.ranges[middle].end)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

static bool is_ours(const void *caller)
{
    uintptr_t address = (uintptr_t)caller - 1; /* inside of the call */
    if (address >= state.program.begin && address < state.program.end)
        return !state.range_count || in_ranges(address);
    Dl_info facts;
    /* Bundles are loaded by their descriptor's name. */
    return dladdr(caller, &facts) && facts.dli_fname && strncmp(facts.dli_fname, "/proc/self/fd", 13) == 0;
}

/* True: this call fails. */
static bool fails(enum kind kind, const void *caller)
{
    if (!atomic_load(&state.ready) || kind != state.kind || !is_ours(caller))
        return false;
    return atomic_fetch_add(&state.calls, 1) + 1 == state.at;
}

/* ---- memory */

static size_t slot_of(const void *memory)
{
    return ((uintptr_t)memory >> 4) * 0x9E3779B1u % MOST_LIVING;
}

static void remember(void *memory)
{
    pthread_mutex_lock(&state.lock);
    size_t slot = slot_of(memory);
    for (size_t tries = 0; tries < MOST_LIVING; tries++, slot = (slot + 1) % MOST_LIVING)
        if (!state.living[slot] || state.living[slot] == (void *)1) {
            state.living[slot] = memory;
            state.lost++;
            break;
        }
    pthread_mutex_unlock(&state.lock);
}

static void forget(const void *memory)
{
    if (!memory || !atomic_load(&state.ready) || state.kind != MEMORY)
        return;
    pthread_mutex_lock(&state.lock);
    size_t slot = slot_of(memory);
    for (size_t tries = 0; tries < MOST_LIVING && state.living[slot];
         tries++, slot = (slot + 1) % MOST_LIVING)
        if (state.living[slot] == memory) {
            state.living[slot] = (void *)1;
            state.lost--;
            break;
        }
    pthread_mutex_unlock(&state.lock);
}

static bool counts(const void *caller)
{
    return atomic_load(&state.ready) && state.kind == MEMORY && is_ours(caller);
}

EXPORT void *malloc(size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    bool ours = counts(caller);
    if (ours && fails(MEMORY, caller)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = __libc_malloc(bytes);
    if (memory && ours)
        remember(memory);
    return memory;
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    bool ours = counts(caller);
    if (ours && fails(MEMORY, caller)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = __libc_calloc(count, bytes);
    if (memory && ours)
        remember(memory);
    return memory;
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    bool ours = counts(caller);
    if (ours && fails(MEMORY, caller)) {
        errno = ENOMEM;
        return NULL;
    }
    forget(memory);
    void *moved = __libc_realloc(memory, bytes);
    if (moved && ours)
        remember(moved);
    else if (!moved && memory && ours)
        remember(memory);
    return moved;
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    const void *caller = __builtin_return_address(0);
    bool ours = counts(caller);
    if (ours && fails(MEMORY, caller))
        return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    if (*memory && ours)
        remember(*memory);
    return *memory ? 0 : ENOMEM;
}

EXPORT void free(void *memory)
{
    forget(memory);
    __libc_free(memory);
}

/* ---- files */

/* The next definition of a function, by way of its bytes. */
static void find_next(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(function, &symbol, sizeof symbol);
}

#define FORWARD(kind, error, result, name, parameters, arguments)                                            \
    EXPORT result name parameters;                                                                           \
    EXPORT result name parameters                                                                            \
    {                                                                                                        \
        result(*next) parameters;                                                                            \
        if (fails(kind, __builtin_return_address(0))) {                                                      \
            errno = error;                                                                                   \
            return (result)-1;                                                                               \
        }                                                                                                    \
        find_next(#name, &next);                                                                             \
        return next arguments;                                                                               \
    }

FORWARD(WRITE, ENOSPC, ssize_t, write, (int fd, const void *data, size_t bytes), (fd, data, bytes))
FORWARD(WRITE, ENOSPC, ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t at),
        (fd, data, bytes, at))
FORWARD(WRITE, ENOSPC, ssize_t, pwrite64, (int fd, const void *data, size_t bytes, off_t at),
        (fd, data, bytes, at))
FORWARD(FSYNC, EIO, int, fsync, (int fd), (fd))
FORWARD(RENAME, EIO, int, rename, (const char *from, const char *to), (from, to))
FORWARD(READ, EIO, ssize_t, pread, (int fd, void *data, size_t bytes, off_t at), (fd, data, bytes, at))
FORWARD(READ, EIO, ssize_t, pread64, (int fd, void *data, size_t bytes, off_t at), (fd, data, bytes, at))
FORWARD(TRUNCATE, ENOSPC, int, ftruncate, (int fd, off_t bytes), (fd, bytes))
FORWARD(FOLDER, ENOSPC, int, mkdir, (const char *path, mode_t mode), (path, mode))

EXPORT int open(const char *path, int flags, ...);
EXPORT int open(const char *path, int flags, ...)
{
    int (*next)(const char *path, int flags, ...);
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    if (fails(OPEN, __builtin_return_address(0))) {
        errno = EMFILE;
        return -1;
    }
    find_next("open", &next);
    return next(path, flags, mode);
}

EXPORT char *mkdtemp(char *pattern);
EXPORT char *mkdtemp(char *pattern)
{
    char *(*next)(char *pattern);
    if (fails(FOLDER, __builtin_return_address(0))) {
        errno = ENOSPC;
        return NULL;
    }
    find_next("mkdtemp", &next);
    return next(pattern);
}

/* ---- begin and end */

static int find_program(struct dl_phdr_info *info, size_t bytes, void *user)
{
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
            state.program = (struct range){info->dlpi_addr + segment->p_vaddr,
                                           info->dlpi_addr + segment->p_vaddr + segment->p_memsz};
    }
    *(uintptr_t *)user = info->dlpi_addr;
    return 1; /* the first is the program */
}

static void read_ranges(const char *path, uintptr_t base)
{
    FILE *file = fopen(path, "r");
    unsigned long begin, end;
    while (file && state.range_count < MOST_RANGES && fscanf(file, "%lx %lx", &begin, &end) == 2)
        state.ranges[state.range_count++] = (struct range){base + begin, base + end};
    if (!file || !state.range_count) {
        fprintf(stderr, "failing: no ranges in %s\n", path);
        _exit(99);
    }
    fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
    const char *kind = getenv("FAILING_KIND"), *at = getenv("FAILING_AT"), *ranges = getenv("FAILING_RANGES");
    uintptr_t base = 0;
    if (!kind || !at)
        return;
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kind, names[i]) == 0)
            state.kind = (enum kind)i;
    state.at = strtoul(at, NULL, 10);
    dl_iterate_phdr(find_program, &base);
    if (ranges)
        read_ranges(ranges, base);
    atomic_store(&state.ready, true);
}

__attribute__((destructor)) static void end(void)
{
    const char *report = getenv("FAILING_REPORT");
    if (!atomic_exchange(&state.ready, false) || !report)
        return;
    FILE *file = fopen(report, "w");
    if (file) {
        fprintf(file, "calls %lu\nlost %lu\n", (unsigned long)state.calls, state.lost);
        fclose(file);
    }
}

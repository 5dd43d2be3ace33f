/* malloc and its kin, dlopen and dlmopen, counted. See counted_calls.h. */
#include "tests/harness/counted_calls.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static atomic_uint_fast64_t allocations, opened;

uint64_t calls_allocated(void)
{
    return atomic_load(&allocations);
}

uint64_t calls_opened(void)
{
    return atomic_load(&opened);
}

/* The bundle must find them. */
#pragma GCC visibility push(default)

/* glibc's own, under the names by which it exports them for this. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void *memalign(size_t alignment, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **memory, size_t alignment, size_t bytes);
void free(void *memory);

void *malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = memalign(alignment, bytes);
    return *memory ? 0 : 12; /* ENOMEM */
}

void free(void *memory)
{
    atomic_fetch_add(&allocations, memory != NULL);
    __libc_free(memory);
}

typedef void *open_function(const char *path, int mode);
typedef void *open_in_function(Lmid_t space, const char *path, int mode);

void *dlopen(const char *path, int mode)
{
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    open_function *next;
    memcpy(&next, &symbol, sizeof next);
    atomic_fetch_add(&opened, 1);
    return next(path, mode);
}

void *dlmopen(Lmid_t space, const char *path, int mode)
{
    void *symbol = dlsym(RTLD_NEXT, "dlmopen");
    open_in_function *next;
    memcpy(&next, &symbol, sizeof next);
    atomic_fetch_add(&opened, 1);
    return next(space, path, mode);
}

#pragma GCC visibility pop

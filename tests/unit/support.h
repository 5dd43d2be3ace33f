/* What the unit tests of ir/support share: cmocka with its prerequisites, an arena whose failures end the
 * test, an allocator that refuses on demand and a scratch folder. */
#ifndef GPUCC_TESTS_UNIT_SUPPORT_H
#define GPUCC_TESTS_UNIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/support/arena.h"

/* Declares `arena`, released by arena_release(&arena); running out of memory fails the test. */
#define TEST_ARENA(name)                                                                                     \
    struct recovery name##_recovery;                                                                         \
    struct arena name;                                                                                       \
    arena_init(&name, &system_allocator, &name##_recovery);                                                  \
    if (setjmp(name##_recovery.jump) != 0)                                                                   \
    fail_msg("out of memory")

/* Grants `left` allocations, then refuses; counts what is alive. */
struct counting {
    unsigned left, alive;
    size_t bytes;
};

static inline void *counting_allocate(void *user, size_t bytes)
{
    struct counting *counting = user;
    if (!counting->left)
        return NULL;
    counting->left--;
    counting->alive++;
    counting->bytes += bytes;
    return malloc(bytes);
}

static inline void counting_release(void *user, void *memory, size_t bytes)
{
    struct counting *counting = user;
    counting->alive--;
    counting->bytes -= bytes;
    free(memory);
}

#endif

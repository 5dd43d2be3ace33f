/* A pool of expressions for the tests of ir/expr*: globals, set up and released around each test. */
#ifndef GPUCC_TESTS_UNIT_EXPR_FIXTURE_H
#define GPUCC_TESTS_UNIT_EXPR_FIXTURE_H

#include "tests/unit/support.h"

#include "ir/expr.h"

static struct recovery recovery;
static struct arena arena;
static struct dims dims;
static struct exprs pool;

static inline int set_up(void **state)
{
    (void)state;
    arena_init(&arena, &system_allocator, &recovery);
    if (setjmp(recovery.jump) != 0)
        return 1;
    dims_init(&dims, &arena);
    exprs_init(&pool, &arena, &dims);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif

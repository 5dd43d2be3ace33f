/* The arena: alignment, zeroing, limits, refusal by the allocator at every step, overflow, growable arrays.
 */
#include "tests/unit/support.h"

#include <stdlib.h>
#include <string.h>

static void memory_is_aligned_zeroed_and_separate(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4096, 70000, 1, 5u << 20, 3};
    unsigned char *memory[sizeof sizes / sizeof *sizes];
    for (unsigned round = 0; round < 20; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            memory[i] = arena_alloc(&arena, sizes[i]);
            assert_int_equal((uintptr_t)memory[i] % 16, 0);
            for (size_t j = 0; j<sizes[i]; j += sizes[i]> 100 ? 97 : 1)
                assert_int_equal(memory[i][j], 0);
            memset(memory[i], (int)(i + 1), sizes[i]);
        }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            if (memory[i][j] != i + 1)
                fail_msg("allocation %zu was overwritten at %zu", i, j);
    arena_release(&arena);
}

static void a_limit_is_kept_and_jumps(void **state)
{
    (void)state;
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    arena.limit = 1u << 20;
    volatile unsigned taken = 0;
    if (setjmp(recovery.jump) == 0)
        for (;;) {
            arena_alloc(&arena, 10000);
            taken++;
            assert_true(taken < 200);
        }
    assert_true(arena.total <= arena.limit);
    assert_true(taken >= 50); /* most of the limit can be used */
    assert_null(arena_try_alloc(&arena, 2u << 20));
    arena_release(&arena);
    assert_int_equal(arena.total, 0);
    if (setjmp(recovery.jump) == 0)
        assert_non_null(arena_alloc(&arena, 16)); /* usable again */
    arena_release(&arena);
}

/* Uses every way to allocate. */
static void use_arena(struct arena *arena)
{
    VEC(int) numbers = {0};
    for (int i = 0; i < 40000; i++)
        vec_push(arena, &numbers, i);
    arena_string(arena, "text");
    arena_printf(arena, "%s %d", "text", 1);
    arena_array(arena, 1000, 1000);
    arena_copy(arena, "abc", 3);
}

/* Grants that many allocations; true when the arena needed no more. Nothing stays alive either way. */
static bool grants_suffice(unsigned grants)
{
    struct counting counting = {.left = grants};
    struct allocator allocator = {counting_allocate, counting_release, &counting};
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &allocator, &recovery);
    volatile bool refused = true;
    if (setjmp(recovery.jump) == 0) {
        use_arena(&arena);
        refused = false;
    }
    arena_release(&arena);
    assert_int_equal(counting.alive, 0);
    assert_int_equal(counting.bytes, 0);
    return !refused;
}

static void every_refusal_recovers_without_a_leak(void **state)
{
    (void)state;
    unsigned grants = 0;
    while (!grants_suffice(grants)) {
        grants++;
        assert_true(grants < 100);
    }
    assert_true(grants >= 3);
}

static bool array_is_refused(size_t count, size_t size)
{
    struct counting counting = {.left = 1};
    struct allocator allocator = {counting_allocate, counting_release, &counting};
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &allocator, &recovery);
    volatile bool refused = true;
    if (setjmp(recovery.jump) == 0) {
        arena_array(&arena, count, size);
        refused = false;
    }
    arena_release(&arena);
    return refused;
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    assert_false(array_is_refused(10, 10));
    assert_true(array_is_refused(SIZE_MAX, 2));
    assert_true(array_is_refused(SIZE_MAX / 2 + 1, 2)); /* the product wraps to 0 */
    assert_true(array_is_refused((size_t)1 << 32, (size_t)1 << 32));
    assert_true(array_is_refused(SIZE_MAX, 1));
    assert_true(array_is_refused(SIZE_MAX / 2, 2));
    TEST_ARENA(arena);
    assert_null(arena_try_alloc(&arena, SIZE_MAX));
    assert_null(arena_try_alloc(&arena, SIZE_MAX - 15));
    arena_release(&arena);
}

static void vectors_keep_their_items(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    VEC(uint64_t) numbers = {0};
    for (uint64_t i = 0; i < 100000; i++)
        vec_push(&arena, &numbers, i * i);
    assert_int_equal(numbers.count, 100000);
    for (uint32_t i = 0; i < numbers.count; i++)
        if (numbers.items[i] != (uint64_t)i * i)
            fail_msg("item %u changed", i);
    arena_release(&arena);
}

static void a_vector_that_would_wrap_jumps(void **state)
{
    (void)state;
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    volatile bool refused = false;
    char item = 0;
    uint32_t capacity = 1u << 31;
    if (setjmp(recovery.jump) == 0)
        vec_grow(&arena, &item, 1, 1u << 31, &capacity);
    else
        refused = true;
    assert_true(refused);
    arena_release(&arena);
}

static void strings_are_copied_and_formatted(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char source[] = "abc";
    char *copy = arena_string(&arena, source);
    source[0] = 'x';
    assert_string_equal(copy, "abc");
    assert_string_equal(arena_printf(&arena, "%s-%05d", "n", 42), "n-00042");
    char *wide = arena_printf(&arena, "%*d", 100000, 7);
    assert_int_equal(strlen(wide), 100000);
    assert_memory_equal(arena_copy(&arena, "\0a\0", 3), "\0a\0", 3);
    assert_non_null(arena_copy(&arena, NULL, 0));
    arena_release(&arena);
}

static void *count_allocate(void *user, size_t bytes)
{
    *(size_t *)user += bytes;
    return malloc(bytes);
}

static void count_release(void *user, void *memory, size_t bytes)
{
    *(size_t *)user -= bytes;
    free(memory);
}

/* Children are cleared, adopted and released with their parent; nothing is counted twice or lost. */
static void children_go_with_their_parent(void **state)
{
    (void)state;
    size_t taken = 0;
    const struct allocator allocator = {count_allocate, count_release, &taken};
    struct recovery recovery;
    struct arena parent;
    arena_init(&parent, &allocator, &recovery);
    if (setjmp(recovery.jump) != 0)
        fail_msg("no memory");
    struct arena *left = arena_child(&parent), *right = arena_child(&parent);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            memset(arena_alloc(left, 3000), 0xff, 3000);
        const size_t before = left->total;
        arena_clear(left);
        assert_true(left->total > 0 && left->total <= before);
        const unsigned char *again = arena_alloc(left, 3000);
        for (int i = 0; i < 3000; i++)
            assert_int_equal(again[i], 0);
    }
    assert_int_equal(taken, parent.total + left->total);
    for (int empty = 0; empty < 2; empty++) {
        unsigned char *kept = arena_alloc(right, 200000);
        memset(kept, 7, 200000);
        const size_t both = parent.total + right->total;
        arena_adopt(empty ? left : &parent, right);
        assert_int_equal(right->total, 0);
        if (!empty)
            assert_int_equal(parent.total, both);
        memset(arena_alloc(right, 200000), 9, 200000);
        for (int i = 0; i < 200000; i++)
            assert_int_equal(kept[i], 7);
    }
    assert_int_equal(taken, parent.total + left->total + right->total);
    arena_release(&parent);
    assert_int_equal(taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_zeroed_and_separate),
        cmocka_unit_test(a_limit_is_kept_and_jumps),
        cmocka_unit_test(every_refusal_recovers_without_a_leak),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(vectors_keep_their_items),
        cmocka_unit_test(a_vector_that_would_wrap_jumps),
        cmocka_unit_test(children_go_with_their_parent),
        cmocka_unit_test(strings_are_copied_and_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

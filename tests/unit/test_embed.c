/* Files that the build embeds: the same bytes, under their relative names, in order. */
#include "tests/unit/support.h"

#include <string.h>

#include "ir/support/embedded.h"
#include "ir/support/file.h"

extern const struct embedded_file embedded_fixture[];

static void text_files_are_embedded_byte_by_byte(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const char *const names[] = {"unit/support.h", "unit/test_embed.c"};
    for (size_t i = 0; i < 2; i++) {
        char *data;
        size_t bytes;
        assert_string_equal(embedded_fixture[i].name, names[i]);
        assert_true(file_read_all(&arena, arena_printf(&arena, "tests/%s", names[i]), (size_t)1 << 20, &data,
                                  &bytes));
        assert_int_equal(embedded_fixture[i].bytes, bytes);
        assert_memory_equal(embedded_fixture[i].data, data, bytes + 1); /* and the NUL */
    }
    arena_release(&arena);
}

static void empty_files_and_odd_bytes_survive(void **state)
{
    (void)state;
    assert_int_equal(embedded_fixture[2].bytes, 0);
    assert_int_equal(embedded_fixture[2].data[0], 0);
    assert_string_equal((const char *)embedded_fixture[3].data, "\\;[]\"$'0123456789\n");
    assert_int_equal(embedded_fixture[3].bytes, 18);
    assert_null(embedded_fixture[4].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_files_are_embedded_byte_by_byte),
        cmocka_unit_test(empty_files_and_odd_bytes_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

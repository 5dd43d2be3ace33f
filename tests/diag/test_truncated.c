/* A model cut at every offset: each piece is refused with exactly one error about the file, through the same
 * door as the program's. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/import.h"
#include "ir/support/file.h"
#include "tests/unit/support.h"

/* What the piece of the first `bytes` bytes is told. */
static void check_piece(const char *path, size_t bytes, size_t whole)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    struct source_files files;
    struct graph *graph;
    diagnostics_init(&diagnostics, &arena, path);
    source_files_init(&files, &arena);
    bool good = import_model(&arena, &diagnostics, path, NULL, &files, &graph);
    source_files_close(&files);
    if (good != (bytes == whole))
        fail_msg("%zu of %zu bytes: %s", bytes, whole, good ? "taken for a model" : "refused");
    if (!good) {
        assert_int_equal(diagnostics.items.count, 1);
        assert_int_equal(diag_status(&diagnostics), 1);
        const struct diagnostic *item = &diagnostics.items.items[0];
        if (item->code != DIAG_file_not_onnx && item->code != DIAG_model_version)
            fail_msg("%zu of %zu bytes: E%04u %s", bytes, whole, (unsigned)item->code, item->message);
    }
    arena_release(&arena);
}

static void every_offset_is_refused(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *data, *folder;
    size_t whole;
    assert_true(file_read_all(&arena, TEST_MODEL, 1 << 20, &data, &whole));
    assert_true(whole > 200);
    assert_true(temporary_folder(&arena, &folder));
    const char *path = arena_printf(&arena, "%s/model.onnx", folder);
    assert_true(file_write_all(&arena, path, data, whole));
    for (size_t bytes = whole + 1; bytes-- > 0;) {
        assert_int_equal(truncate(path, (off_t)bytes), 0);
        check_piece(path, bytes, whole);
    }
    remove_folder(folder);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_offset_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The reader: files that are no models get one error of the right code, a limit on memory holds, and a small
 * model comes out whole. */
#include "tests/unit/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend/reader.h"
#include "ir/support/file.h"
#include "tests/unit/onnx_bytes.h"

static struct bytes *small_model(void)
{
    struct bytes *graph = put_message(bytes_new(), 1, bytes_node("Add", "x", "w", "y"));
    put_text(graph, 2, "graph");
    put_message(graph, 5, put_data(bytes_tensor("w", 1, 1, (const int64_t[]){2}), 9, "01234567", 8));
    put_message(graph, 11, bytes_value("x", 1, 2, (const int64_t[]){3, 2}));
    put_message(graph, 12, bytes_value("y", 1, 2, (const int64_t[]){3, 2}));
    return bytes_model(17, graph);
}

/* The code of the one error, 0 when the model is read. */
static unsigned read_memory(const void *data, size_t bytes, const struct reader_limits *limits)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    struct source_files files;
    struct reader reader;
    diagnostics_init(&diagnostics, &arena, "model.onnx");
    source_files_init(&files, &arena);
    bool done = reader_open_memory(&reader, &diagnostics, &files, data, bytes, limits);
    assert_int_equal(diagnostics.items.count, done ? 0 : 1);
    unsigned code = done ? 0 : diagnostics.items.items[0].code;
    reader_close(&reader);
    arena_release(&arena);
    return code;
}

static unsigned read_path(const char *path)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    struct source_files files;
    struct reader reader;
    diagnostics_init(&diagnostics, &arena, path);
    source_files_init(&files, &arena);
    bool done = reader_open(&reader, &diagnostics, &files, path, &reader_default_limits);
    assert_int_equal(diagnostics.items.count, done ? 0 : 1);
    unsigned code = done ? 0 : diagnostics.items.items[0].code;
    reader_close(&reader);
    source_files_close(&files);
    arena_release(&arena);
    return code;
}

static void a_model_comes_out_whole(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    struct source_files files;
    struct reader reader;
    struct bytes *model = small_model();
    diagnostics_init(&diagnostics, &arena, "model.onnx");
    source_files_init(&files, &arena);
    assert_true(
        reader_open_memory(&reader, &diagnostics, &files, model->data, model->count, &reader_default_limits));
    const Onnx__GraphProto *graph = reader.model->graph;
    assert_int_equal(reader.model->ir_version, 8);
    assert_int_equal(reader.model->opset_import[0]->version, 17);
    assert_string_equal(graph->node[0]->op_type, "Add");
    assert_string_equal(graph->node[0]->input[1], "w");
    assert_int_equal(graph->input[0]->type->tensor_type->shape->dim[0]->dim_value, 3);
    assert_int_equal(graph->initializer[0]->dims[0], 2);
    assert_int_equal(reader.message.payload_count, 1);
    reader_close(&reader);
    arena_release(&arena);
    free(model);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    struct bytes *model = small_model();
    for (size_t cut = 0; cut < model->count; cut++)
        assert_int_equal(read_memory(model->data, cut, &reader_default_limits), DIAG_file_not_onnx);
    assert_int_equal(read_memory(model->data, model->count, &reader_default_limits), 0);
    free(model);
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    unsigned char noise[4096];
    uint32_t random = 1;
    for (unsigned round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof noise; i++) {
            random = random * 1664525U + 1013904223U;
            noise[i] = (unsigned char)(random >> 24);
        }
        assert_int_equal(read_memory(noise, sizeof noise, &reader_default_limits), DIAG_file_not_onnx);
    }
    memset(noise, 0, sizeof noise);
    assert_int_equal(read_memory(noise, sizeof noise, &reader_default_limits), DIAG_file_not_onnx);
    static const char text[] = "{\"producer\": \"json\", \"graph\": {}}";
    assert_int_equal(read_memory(text, sizeof text, &reader_default_limits), DIAG_file_not_onnx);
    assert_int_equal(read_memory("\x7f"
                                 "ELF",
                                 4, &reader_default_limits),
                     DIAG_file_not_onnx);
}

/* Ten thousand empty nodes take two bytes each in the file and far more in memory. */
static void memory_has_a_limit(void **state)
{
    (void)state;
    struct bytes *graph = bytes_new();
    for (unsigned i = 0; i < 10000; i++)
        put_message(graph, 1, bytes_new());
    struct bytes *model = bytes_model(17, graph);
    struct reader_limits limits = reader_default_limits;
    assert_int_equal(read_memory(model->data, model->count, &limits), 0);
    limits.memory_bytes = 1 << 20;
    assert_int_equal(read_memory(model->data, model->count, &limits), DIAG_file_limit);
    limits.memory_bytes = 1000;
    assert_int_equal(read_memory(model->data, model->count, &limits), DIAG_file_limit);
    free(model);
}

static void unreadable_files(void **state)
{
    (void)state;
    assert_int_equal(read_path("/tmp/gpucc-there-is-no-such-file.onnx"), DIAG_file_unreadable);
    assert_int_equal(read_path("/tmp"), DIAG_file_unreadable);
    assert_int_equal(read_path("/dev/null"), DIAG_file_unreadable);
    assert_int_equal(read_path(""), DIAG_file_unreadable);
    char path[] = "/tmp/gpucc-reader-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(read_path(path), DIAG_file_not_onnx); /* empty */
    struct bytes *model = small_model();
    assert_int_equal(write(fd, model->data, model->count), (ssize_t)model->count);
    assert_int_equal(read_path(path), 0);
    free(model);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_comes_out_whole),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(unreadable_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

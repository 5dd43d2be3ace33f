/* Tensor elements from every payload form, from memory and from files, with every length and value checked;
 * external data from inside the model's folder and nowhere else. */
#include "tests/unit/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/payload.h"
#include "ir/support/file.h"
#include "tests/unit/onnx_bytes.h"

struct fixture {
    struct arena *arena;
    struct diagnostics diagnostics;
    struct source_files files;
    struct reader reader;
    struct tensor_data tensor;
    bool done;
};

static struct bytes *model_of(struct bytes *tensor)
{
    return bytes_model(17, put_message(bytes_new(), 5, tensor));
}

static void start(struct fixture *f, struct arena *arena)
{
    memset(f, 0, sizeof *f);
    f->arena = arena;
    diagnostics_init(&f->diagnostics, arena, "model.onnx");
    source_files_init(&f->files, arena);
}

static void load(struct fixture *f)
{
    f->done = payload_tensor(&f->reader, f->arena, &f->diagnostics, NULL, "weight \"w\"",
                             f->reader.model->graph->initializer[0], &f->tensor);
    assert_int_equal(f->diagnostics.items.count, f->done ? 0 : 1);
}

static void finish(struct fixture *f)
{
    reader_close(&f->reader);
    source_files_close(&f->files);
}

/* In memory. The model lives in the arena, as its constants point into it. */
static void load_memory(struct fixture *f, struct arena *arena, struct bytes *tensor)
{
    start(f, arena);
    struct bytes *model = model_of(tensor);
    const void *data = arena_copy(arena, model->data, model->count);
    if (!reader_open_memory(&f->reader, &f->diagnostics, &f->files, data, model->count,
                            &reader_default_limits))
        fail_msg("%s", f->diagnostics.items.items[0].message);
    load(f);
    free(model);
}

static void load_file(struct fixture *f, struct arena *arena, struct bytes *tensor, const char *path)
{
    start(f, arena);
    struct bytes *model = model_of(tensor);
    assert_true(file_write_all(arena, path, model->data, model->count));
    free(model);
    assert_true(reader_open(&f->reader, &f->diagnostics, &f->files, path, &reader_default_limits));
    load(f);
}

static void expect_elements(struct fixture *f, enum dtype dtype, const void *expected, size_t bytes)
{
    if (!f->done)
        fail_msg("%s", f->diagnostics.items.items[0].message);
    unsigned char *data = arena_alloc(f->arena, bytes);
    assert_int_equal(f->tensor.dtype, dtype);
    assert_int_equal(f->tensor.blob->length, bytes);
    assert_true(blob_read(f->tensor.blob, 0, data, bytes));
    assert_memory_equal(data, expected, bytes);
    for (size_t at = 0; at < bytes; at++) { /* any single byte too */
        assert_true(blob_read(f->tensor.blob, at, data, 1));
        assert_memory_equal(data, (const unsigned char *)expected + at, 1);
    }
}

static char scratch[256];

static void expect_both(enum dtype dtype, struct bytes *tensor, const void *expected, size_t bytes)
{
    TEST_ARENA(arena);
    struct fixture f;
    struct bytes *again = put_raw(bytes_new(), tensor->data, tensor->count);
    load_memory(&f, &arena, tensor);
    expect_elements(&f, dtype, expected, bytes);
    finish(&f);
    load_file(&f, &arena, again, arena_printf(&arena, "%s/model.onnx", scratch));
    expect_elements(&f, dtype, expected, bytes);
    finish(&f);
    arena_release(&arena);
}

static void expect_refusal(struct bytes *tensor, enum diag_code code)
{
    TEST_ARENA(arena);
    struct fixture f;
    load_memory(&f, &arena, tensor);
    assert_false(f.done);
    assert_int_equal(f.diagnostics.items.items[0].code, code);
    finish(&f);
    arena_release(&arena);
}

static struct bytes *tensor_of(enum dtype dtype, int64_t size)
{
    return bytes_tensor("w", dtype, 1, &size);
}

/* A list of varints in one stretch, or one by one. */
static struct bytes *put_list(struct bytes *tensor, uint64_t field, size_t count, const int64_t *values,
                              bool packed)
{
    struct bytes *list = bytes_new();
    for (size_t i = 0; i < count; i++) {
        if (packed)
            put_varint(list, (uint64_t)values[i]);
        else
            put_number(tensor, field, (uint64_t)values[i]);
    }
    if (packed)
        put_data(tensor, field, list->data, list->count);
    free(list);
    return tensor;
}

static void raw_data(void **state)
{
    (void)state;
    static const unsigned char eight[8] = {1, 0x80, 3, 4, 5, 6, 7, 255}, bools[3] = {0, 7, 1};
    expect_both(DTYPE_F32, put_data(tensor_of(DTYPE_F32, 2), 9, eight, 8), eight, 8);
    expect_both(DTYPE_I64, put_data(tensor_of(DTYPE_I64, 1), 9, eight, 8), eight, 8);
    expect_both(DTYPE_C64, put_data(tensor_of(DTYPE_C64, 1), 9, eight, 8), eight, 8);
    expect_both(DTYPE_I4, put_data(tensor_of(DTYPE_I4, 15), 9, eight, 8), eight, 8);
    expect_both(DTYPE_U2, put_data(tensor_of(DTYPE_U2, 29), 9, eight, 8), eight, 8);
    expect_both(DTYPE_F6E2M3, put_data(tensor_of(DTYPE_F6E2M3, 10), 9, eight, 8), eight, 8);
    expect_both(DTYPE_BOOL, put_data(tensor_of(DTYPE_BOOL, 3), 9, bools, 3), "\0\1\1", 3);
    expect_both(DTYPE_F32, tensor_of(DTYPE_F32, 0), NULL, 0);
    for (int64_t wrong = 1; wrong < 4; wrong += 2)
        expect_refusal(put_data(tensor_of(DTYPE_F32, wrong), 9, eight, 8), DIAG_bad_tensor);
    expect_refusal(put_data(tensor_of(DTYPE_I4, 17), 9, eight, 8), DIAG_bad_tensor);
    expect_refusal(put_data(tensor_of(DTYPE_I4, 14), 9, eight, 8), DIAG_bad_tensor);
}

static void typed_lists(void **state)
{
    (void)state;
    static const int64_t numbers[4] = {-1, 0, 127, -128};
    static const int64_t wide[3] = {INT64_MIN, -1, INT64_MAX};
    static const int64_t halves[2] = {0x3c00, 0xffff};
    static const int64_t bools[3] = {0, 1, 2};
    static const unsigned char bytes[4] = {0xff, 0, 127, 0x80};
    static const int16_t shorts[4] = {-1, 0, 127, -128};
    static const int32_t words[4] = {-1, 0, 127, -128};
    static const uint16_t half_bits[2] = {0x3c00, 0xffff};
    static const uint32_t unsigned_words[1] = {UINT32_MAX};
    static const int64_t largest_word[1] = {UINT32_MAX};
    for (int packed = 0; packed < 2; packed++) {
        expect_both(DTYPE_I8, put_list(tensor_of(DTYPE_I8, 4), 5, 4, numbers, packed), bytes, 4);
        expect_both(DTYPE_I16, put_list(tensor_of(DTYPE_I16, 4), 5, 4, numbers, packed), shorts, 8);
        expect_both(DTYPE_I32, put_list(tensor_of(DTYPE_I32, 4), 5, 4, numbers, packed), words, 16);
        expect_both(DTYPE_F16, put_list(tensor_of(DTYPE_F16, 2), 5, 2, halves, packed), half_bits, 4);
        expect_both(DTYPE_BF16, put_list(tensor_of(DTYPE_BF16, 2), 5, 2, halves, packed), half_bits, 4);
        expect_both(DTYPE_BOOL, put_list(tensor_of(DTYPE_BOOL, 3), 5, 3, bools, packed), "\0\1\1", 3);
        expect_both(DTYPE_I64, put_list(tensor_of(DTYPE_I64, 3), 7, 3, wide, packed), wide, 24);
        expect_both(DTYPE_U64, put_list(tensor_of(DTYPE_U64, 3), 11, 3, wide, packed), wide, 24);
        expect_both(DTYPE_U32, put_list(tensor_of(DTYPE_U32, 1), 11, 1, largest_word, packed), unsigned_words,
                    4);
        /* 4-bit types: two elements an entry; the fifth element stands in the third byte */
        expect_both(DTYPE_U4, put_list(tensor_of(DTYPE_U4, 5), 5, 3, (int64_t[]){0x21, 0xf3, 4}, packed),
                    "\x21\xf3\x04", 3);
        expect_both(DTYPE_I2, put_list(tensor_of(DTYPE_I2, 5), 5, 2, (int64_t[]){0xe4, 1}, packed),
                    "\xe4\x01", 2);
        /* 6-bit types: one element an entry, four elements in three bytes */
        expect_both(DTYPE_F6E3M2,
                    put_list(tensor_of(DTYPE_F6E3M2, 5), 5, 5, (int64_t[]){1, 2, 3, 0x3f, 5}, packed),
                    "\x81\x30\xfc\x05", 4);
        expect_refusal(put_list(tensor_of(DTYPE_I8, 3), 5, 4, numbers, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_I8, 5), 5, 4, numbers, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_I8, 1), 5, 1, (int64_t[]){256}, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_I8, 1), 5, 1, (int64_t[]){-129}, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_U32, 1), 11, 1, wide, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_F6E2M3, 1), 5, 1, (int64_t[]){64}, packed), DIAG_bad_tensor);
        /* a field that the type does not use */
        expect_refusal(put_list(tensor_of(DTYPE_I64, 4), 5, 4, numbers, packed), DIAG_bad_tensor);
        expect_refusal(put_list(tensor_of(DTYPE_F32, 4), 5, 4, numbers, packed), DIAG_bad_tensor);
    }
}

static void float_lists(void **state)
{
    (void)state;
    static const float floats[4] = {1.5F, -2, 3, 4};
    static const double doubles[2] = {1.5, -2};
    expect_both(DTYPE_F32, put_data(tensor_of(DTYPE_F32, 4), 4, floats, 16), floats, 16);
    expect_both(DTYPE_C64, put_data(tensor_of(DTYPE_C64, 2), 4, floats, 16), floats, 16);
    expect_both(DTYPE_F64, put_data(tensor_of(DTYPE_F64, 2), 10, doubles, 16), doubles, 16);
    expect_both(DTYPE_C128, put_data(tensor_of(DTYPE_C128, 1), 10, doubles, 16), doubles, 16);
    /* in pieces: packed, one by one, packed */
    struct bytes *pieces = put_data(tensor_of(DTYPE_F32, 4), 4, floats, 4);
    put_f32(put_f32(pieces, 4, floats[1]), 4, floats[2]);
    expect_both(DTYPE_F32, put_data(pieces, 4, floats + 3, 4), floats, 16);
    expect_refusal(put_data(tensor_of(DTYPE_F32, 3), 4, floats, 16), DIAG_bad_tensor);
    expect_refusal(put_data(tensor_of(DTYPE_C64, 4), 4, floats, 16), DIAG_bad_tensor);
    /* two fields at once */
    expect_refusal(put_data(put_data(tensor_of(DTYPE_F32, 4), 4, floats, 16), 9, floats, 16),
                   DIAG_bad_tensor);
}

/* Longer than what is loaded at once: decoded in pieces, from anywhere. */
static void long_lists(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    TEST_ARENA(arena);
    unsigned char *list = arena_alloc(&arena, COUNT * 3 + 32), *at = list + 32;
    uint16_t *expected = arena_new_array(&arena, uint16_t, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        expected[i] = (uint16_t)(i * 40503U);
        uint32_t value = expected[i];
        for (; value > 0x7f; value >>= 7)
            *at++ = (unsigned char)(value | 0x80);
        *at++ = (unsigned char)value;
    }
    /* graph { initializer { dims type int32_data } }, written by hand: the buffer of onnx_bytes.h is small */
    size_t count = (size_t)(at - list) - 32;
    struct bytes *head =
        put_varint(put_tag(put_number(put_number(bytes_new(), 1, COUNT), 2, DTYPE_U16), 5, 2), count);
    struct bytes *outer = put_varint(put_tag(bytes_new(), 5, 2), head->count + count);
    struct bytes *model = put_varint(put_tag(bytes_new(), 7, 2), outer->count + head->count + count);
    put_raw(put_raw(model, outer->data, outer->count), head->data, head->count);
    char *path = arena_printf(&arena, "%s/long.onnx", scratch);
    unsigned char *whole = arena_alloc(&arena, model->count + count);
    memcpy(whole, model->data, model->count);
    memcpy(whole + model->count, list + 32, count);
    assert_true(file_write_all(&arena, path, whole, model->count + count));
    struct fixture f;
    start(&f, &arena);
    assert_true(reader_open(&f.reader, &f.diagnostics, &f.files, path, &reader_default_limits));
    load(&f);
    assert_true(f.done);
    assert_int_equal(f.tensor.blob->kind, BLOB_FILE);
    reader_close(&f.reader); /* the blob reads the file, not the reader */
    uint16_t *read = arena_new_array(&arena, uint16_t, COUNT);
    assert_true(blob_read(f.tensor.blob, 0, read, COUNT * sizeof *read));
    assert_memory_equal(read, expected, COUNT * sizeof *read);
    for (size_t from = 1; from < COUNT * sizeof *read - 1000; from += 37777) {
        assert_true(blob_read(f.tensor.blob, from, read, 1000));
        assert_memory_equal(read, (const unsigned char *)expected + from, 1000);
    }
    finish(&f);
    free(head);
    free(outer);
    free(model);
    arena_release(&arena);
}

/* A payload of three gigabytes in a file with holes: its last bytes are found, and nothing of it is kept in
 * memory. */
static void files_over_two_gigabytes(void **state)
{
    (void)state;
    const int64_t count = INT64_C(3) << 28, payload = count * 4;
    TEST_ARENA(arena);
    struct bytes *head =
        put_varint(put_tag(bytes_tensor("w", DTYPE_F32, 1, &count), 9, 2), (uint64_t)payload);
    struct bytes *outer = put_varint(put_tag(bytes_new(), 5, 2), head->count + (uint64_t)payload);
    struct bytes *model =
        put_varint(put_tag(bytes_new(), 7, 2), outer->count + head->count + (uint64_t)payload);
    put_raw(put_raw(model, outer->data, outer->count), head->data, head->count);
    const char *path = arena_printf(&arena, "%s/long.onnx", scratch);
    assert_true(file_write_all(&arena, path, model->data, model->count));
    assert_int_equal(truncate(path, (off_t)model->count + (off_t)payload), 0);
    struct fixture f;
    start(&f, &arena);
    assert_true(reader_open(&f.reader, &f.diagnostics, &f.files, path, &reader_default_limits));
    load(&f);
    assert_true(f.done);
    assert_int_equal(f.tensor.blob->length, payload);
    unsigned char last[4] = {1, 1, 1, 1};
    assert_true(blob_read(f.tensor.blob, (uint64_t)payload - 4, last, 4));
    assert_memory_equal(last, "\0\0\0\0", 4);
    assert_false(blob_read(f.tensor.blob, (uint64_t)payload - 3, last, 4));
    assert_true(arena.total < 1 << 20 && f.reader.arena.total < 1 << 20);
    finish(&f);
    free(head);
    free(outer);
    free(model);
    arena_release(&arena);
}

static void types_and_dims(void **state)
{
    (void)state;
    static const int64_t huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
    static const int64_t empty[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
    int64_t many[17];
    for (size_t i = 0; i < 17; i++)
        many[i] = 1;
    expect_refusal(tensor_of(0, 1), DIAG_bad_tensor);
    expect_refusal(tensor_of((enum dtype)29, 1), DIAG_bad_tensor);
    expect_refusal(bytes_tensor("w", (uint64_t)-1, 0, NULL), DIAG_bad_tensor);
    expect_refusal(put_text(tensor_of(DTYPE_STRING, 1), 6, "a"), DIAG_unsupported_case);
    expect_refusal(tensor_of(DTYPE_F32, 1), DIAG_bad_tensor);
    expect_refusal(tensor_of(DTYPE_F32, -1), DIAG_bad_tensor);
    expect_refusal(bytes_tensor("w", DTYPE_F32, 2, huge), DIAG_limit_exceeded);
    expect_refusal(tensor_of(DTYPE_F64, INT64_C(1) << 38), DIAG_limit_exceeded);
    expect_refusal(bytes_tensor("w", DTYPE_F32, 17, many), DIAG_limit_exceeded);
    expect_refusal(put_message(tensor_of(DTYPE_F32, 1), 3, put_number(bytes_new(), 1, 0)),
                   DIAG_unsupported_case);
    expect_refusal(put_number(tensor_of(DTYPE_F32, 1), 14, 2), DIAG_bad_tensor);
    expect_both(DTYPE_F32, bytes_tensor("w", DTYPE_F32, 3, empty), NULL, 0);
    /* dims that claim more than the file has are refused before memory is taken for them */
    expect_refusal(put_number(tensor_of(DTYPE_I32, INT64_C(1) << 37), 5, 1), DIAG_bad_tensor);
}

static struct bytes *external(int64_t size, const char *location, const char *offset, const char *length)
{
    struct bytes *tensor = put_number(tensor_of(DTYPE_U8, size), 14, 1);
    if (location)
        put_message(tensor, 13, put_text(put_text(bytes_new(), 1, "location"), 2, location));
    if (offset)
        put_message(tensor, 13, put_text(put_text(bytes_new(), 1, "offset"), 2, offset));
    if (length)
        put_message(tensor, 13, put_text(put_text(bytes_new(), 1, "length"), 2, length));
    return tensor;
}

/* 0: it is read and gives "3456". */
static void expect_external(struct bytes *tensor, int code)
{
    TEST_ARENA(arena);
    struct fixture f;
    load_file(&f, &arena, tensor, arena_printf(&arena, "%s/folder/model.onnx", scratch));
    if (code == 0) {
        expect_elements(&f, DTYPE_U8, "3456", 4);
    } else {
        assert_false(f.done);
        assert_int_equal(f.diagnostics.items.items[0].code, code);
    }
    finish(&f);
    arena_release(&arena);
}

static void make_folder(struct arena *arena)
{
    const char *folder = arena_printf(arena, "%s/folder", scratch);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(arena_printf(arena, "%s/sub", folder), 0700), 0);
    assert_true(file_write_all(arena, arena_printf(arena, "%s/data", folder), "0123456789", 10));
    assert_true(file_write_all(arena, arena_printf(arena, "%s/sub/data", folder), "0123456789", 10));
    assert_true(file_write_all(arena, arena_printf(arena, "%s/outside", scratch), "0123456789", 10));
    assert_int_equal(symlink("sub/data", arena_printf(arena, "%s/inward", folder)), 0);
    assert_int_equal(symlink("../outside", arena_printf(arena, "%s/outward", folder)), 0);
    assert_int_equal(symlink("..", arena_printf(arena, "%s/up", folder)), 0);
    assert_int_equal(symlink("loop", arena_printf(arena, "%s/loop", folder)), 0);
    assert_int_equal(mkfifo(arena_printf(arena, "%s/fifo", folder), 0600), 0);
}

static void external_data(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    make_folder(&arena);
    expect_external(external(4, "data", "3", "4"), 0);
    expect_external(external(4, "data", "3", NULL), 0);
    expect_external(external(4, "./sub/data", "3", "4"), 0);
    expect_external(external(4, "inward", "3", "4"), 0);
    static const char *const outside[] = {
        "../outside",  "sub/../../outside",
        "outward",     "up/outside",
        "/etc/passwd", "sub\\data",
        "..",          "",
        "fifo",        "sub",
        "loop",        "absent",
        "data/x",      "/dev/zero",
    };
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        expect_external(external(4, outside[i], "3", "4"), DIAG_external_data);
    static const char *const offsets[] = {
        "7", "11", "-1", "", "1x", "18446744073709551615", "99999999999999999999"};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        expect_external(external(4, "data", offsets[i], "4"), DIAG_external_data);
    expect_external(external(4, "data", "3", "5"), DIAG_bad_tensor);
    expect_external(external(4, "data", "3", "-4"), DIAG_external_data);
    expect_external(external(4, NULL, NULL, NULL), DIAG_external_data);
    expect_external(put_data(external(4, "data", "3", "4"), 9, "abcd", 4), DIAG_bad_tensor);
    struct bytes *twice = external(4, "data", "3", "4");
    expect_external(put_message(twice, 13, put_text(put_text(bytes_new(), 1, "offset"), 2, "0")),
                    DIAG_external_data);
    struct bytes *unknown = external(4, "data", "3", "4");
    expect_external(put_message(unknown, 13, put_text(put_text(bytes_new(), 1, "basepath"), 2, "/")),
                    DIAG_external_data);
    expect_refusal(external(4, "data", "3", "4"), DIAG_external_data); /* a model in memory has no folder */
    arena_release(&arena);
}

/* Two tensors and a link share one open file. */
static void files_are_opened_once(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct source_files files;
    int model, first, second, third;
    uint64_t bytes;
    source_files_init(&files, &arena);
    assert_true(
        source_files_open_model(&files, arena_printf(&arena, "%s/folder/data", scratch), &model, &bytes));
    assert_null(source_files_open_data(&files, "sub/data", &first, &bytes));
    assert_null(source_files_open_data(&files, "sub/data", &second, &bytes));
    assert_null(source_files_open_data(&files, "inward", &third, &bytes));
    assert_int_equal(first, second);
    assert_int_equal(first, third);
    assert_int_equal(bytes, 10);
    assert_int_equal(files.files.count, 2);
    source_files_close(&files);
    arena_release(&arena);
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/gpucc-payload-XXXXXX");
    return mkdtemp(scratch) ? 0 : 1;
}

static int remove_scratch(void **state)
{
    (void)state;
    static const char *const names[] = {"folder/sub/data", "folder/sub",
                                        "folder/inward",   "folder/outward",
                                        "folder/up",       "folder/loop",
                                        "folder/fifo",     "folder/model.onnx",
                                        "folder/data",     "folder",
                                        "outside",         "model.onnx",
                                        "long.onnx",       "."};
    char path[512];
    for (size_t i = 0; i + 1 < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
        remove(path);
    }
    return rmdir(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data),
        cmocka_unit_test(typed_lists),
        cmocka_unit_test(float_lists),
        cmocka_unit_test(long_lists),
        cmocka_unit_test(files_over_two_gigabytes),
        cmocka_unit_test(types_and_dims),
        cmocka_unit_test(external_data),
        cmocka_unit_test(files_are_opened_once),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

/* A .pb file is read by the model reader, behind a few bytes that make it the one initialiser of a model: so
 * the same checks hold for both. */
#include "frontend/driver/tensor_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/driver/driver.h"
#include "ir/support/checked.h"
#include "ir/support/file.h"

static const size_t largest_file = (size_t)1 << 40;

static const struct {
    const char *descr; /* numpy's */
    enum dtype dtype;
} npy_types[] = {
    {"<f4", DTYPE_F32}, {"<f8", DTYPE_F64}, {"<f2", DTYPE_F16}, {"|b1", DTYPE_BOOL},
    {"|i1", DTYPE_I8},  {"<i2", DTYPE_I16}, {"<i4", DTYPE_I32}, {"<i8", DTYPE_I64},
    {"|u1", DTYPE_U8},  {"<u2", DTYPE_U16}, {"<u4", DTYPE_U32}, {"<u8", DTYPE_U64},
};

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

static bool bad_file(struct diagnostics *diagnostics, const char *path, const char *reason)
{
    diag_error(diagnostics, DIAG_wrong_input, NULL, "%s: %s", diag_quote(diagnostics, path), reason);
    return false;
}

static bool element_bytes(struct file_tensor *tensor)
{
    int64_t count = 1;
    uint64_t bytes;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->sizes[i] < 0 || !mul_i64(count, tensor->sizes[i], &count))
            return false;
    if (!dtype_bytes(tensor->dtype, count, &bytes) || bytes > SIZE_MAX / 2)
        return false;
    tensor->bytes = (size_t)bytes;
    return true;
}

/* The value of a key in the header's dictionary: points behind the colon and blanks. */
static const char *npy_value(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':')
        at++;
    return at;
}

static bool npy_shape(const char *at, struct file_tensor *out)
{
    if (!at || *at++ != '(')
        return false;
    while (*at != ')') {
        char *end;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (errno || end == at || size < 0 || out->rank == MAX_RANK)
            return false;
        out->sizes[out->rank++] = size;
        for (at = end; *at == ' ' || *at == ','; at++)
            ;
    }
    return true;
}

static bool read_npy(const char *path, char *data, size_t bytes, struct arena *arena,
                     struct diagnostics *diagnostics, struct file_tensor *out)
{
    const unsigned char *raw = (const unsigned char *)data;
    if (bytes < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
        return bad_file(diagnostics, path, "not a .npy file");
    size_t start = raw[6] == 1 ? 10 : 12;
    size_t length = raw[8] | (size_t)raw[9] << 8;
    if (raw[6] != 1)
        length |= (size_t)raw[10] << 16 | (size_t)raw[11] << 24;
    if (raw[6] > 3 || length > bytes - start)
        return bad_file(diagnostics, path, "a .npy header that is cut short or of an unknown version");
    char *header = arena_alloc(arena, length + 1);
    memcpy(header, data + start, length);
    const char *descr = npy_value(header, "'descr'"), *order = npy_value(header, "'fortran_order'");
    *out = (struct file_tensor){0};
    for (size_t i = 0; descr && i < sizeof npy_types / sizeof npy_types[0]; i++)
        if (*descr == '\'' && strncmp(descr + 1, npy_types[i].descr, 3) == 0 && descr[4] == '\'')
            out->dtype = npy_types[i].dtype;
    if (out->dtype == DTYPE_NONE)
        return bad_file(diagnostics, path, "an element type that .npy input does not take here");
    if (!order || strncmp(order, "False", 5) != 0)
        return bad_file(diagnostics, path, "Fortran order is not taken: save it in C order");
    if (!npy_shape(npy_value(header, "'shape'"), out) || !element_bytes(out))
        return bad_file(diagnostics, path, "a shape that is malformed or too large");
    if (bytes - start - length != out->bytes)
        return bad_file(diagnostics, path, "the file's length does not fit its shape");
    out->data = arena_copy(arena, data + start + length, out->bytes);
    return true;
}

static size_t put_varint(unsigned char *out, uint64_t value)
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        out[count++] = (unsigned char)(value | 0x80);
    out[count++] = (unsigned char)value;
    return count;
}

/* ModelProto { graph (7) { initializer (5) { the file } } } */
static char *wrap_tensor(const char *data, size_t bytes, struct arena *arena, size_t *total)
{
    enum { GRAPH_TAG = 7 << 3 | 2, INITIALIZER_TAG = 5 << 3 | 2, LONGEST = 11 };
    unsigned char inner[LONGEST + 1], outer[LONGEST + 1];
    size_t inner_bytes = 1 + put_varint(inner + 1, bytes);
    inner[0] = INITIALIZER_TAG;
    size_t outer_bytes = 1 + put_varint(outer + 1, inner_bytes + bytes);
    outer[0] = GRAPH_TAG;
    *total = outer_bytes + inner_bytes + bytes;
    char *whole = arena_alloc(arena, *total);
    memcpy(whole, outer, outer_bytes);
    memcpy(whole + outer_bytes, inner, inner_bytes);
    memcpy(whole + outer_bytes + inner_bytes, data, bytes);
    return whole;
}

struct proto_read {
    struct source_files files;
    struct reader reader;
    struct diagnostics diagnostics; /* of its own: what is said stands behind the file's name */
    struct arena *arena;
    const char *whole;
    size_t total;
    struct file_tensor *out;
    bool good;
};

static void read_wrapped(void *user)
{
    struct proto_read *read = user;
    struct tensor_data tensor;
    if (!reader_open_memory(&read->reader, &read->diagnostics, &read->files, read->whole, read->total,
                            &reader_default_limits))
        return;
    const Onnx__GraphProto *graph = read->reader.model->graph;
    if (!graph || graph->n_initializer != 1 ||
        !payload_tensor(&read->reader, read->arena, &read->diagnostics, NULL, "tensor", graph->initializer[0],
                        &tensor))
        return;
    *read->out = (struct file_tensor){.dtype = tensor.dtype, .rank = tensor.rank};
    memcpy(read->out->sizes, tensor.sizes, sizeof tensor.sizes);
    if (!element_bytes(read->out))
        return;
    read->out->data = arena_alloc(read->arena, read->out->bytes);
    read->good = blob_read(tensor.blob, 0, read->out->data, read->out->bytes);
}

static void end_read(void *user)
{
    struct proto_read *read = user;
    if (read->reader.arena.allocator)
        reader_close(&read->reader);
    source_files_close(&read->files);
}

static bool read_proto(const char *path, const char *data, size_t bytes, struct arena *arena,
                       struct diagnostics *diagnostics, struct file_tensor *out)
{
    struct proto_read read = {.arena = arena, .out = out};
    read.whole = wrap_tensor(data, bytes, arena, &read.total);
    source_files_init(&read.files, arena);
    diagnostics_init(&read.diagnostics, arena, path);
    guarded(arena, read_wrapped, end_read, &read);
    if (read.good)
        return true;
    if (!read.diagnostics.items.count)
        return bad_file(diagnostics, path, "not a TensorProto of a dense tensor");
    const struct diagnostic *item = &read.diagnostics.items.items[0];
    if (diag_code_status(item->code) == 1)
        return bad_file(diagnostics, path, item->message);
    diag_error(diagnostics, item->code, NULL, "%s: %s", diag_quote(diagnostics, path), item->message);
    return false;
}

bool tensor_file_read(const char *path, struct arena *arena, struct diagnostics *diagnostics,
                      struct file_tensor *out)
{
    char *data;
    size_t bytes;
    if (!has_ending(path, ".npy") && !has_ending(path, ".pb"))
        return bad_file(diagnostics, path, "the name must end in .npy or .pb");
    if (!file_read_all(arena, path, largest_file, &data, &bytes)) {
        int reason = errno;
        diag_error(diagnostics, reason == ENOMEM ? DIAG_out_of_memory : DIAG_file_unreadable, NULL, "%s: %s",
                   diag_quote(diagnostics, path), strerror(reason));
        return false;
    }
    return has_ending(path, ".npy") ? read_npy(path, data, bytes, arena, diagnostics, out)
                                    : read_proto(path, data, bytes, arena, diagnostics, out);
}

static const char *npy_header(const struct file_tensor *tensor, struct arena *arena, size_t *length)
{
    enum { PREFIX = 10, ALIGNMENT = 64 };
    const char *descr = NULL;
    for (size_t i = 0; i < sizeof npy_types / sizeof npy_types[0]; i++)
        if (npy_types[i].dtype == tensor->dtype)
            descr = npy_types[i].descr;
    if (!descr)
        return NULL;
    struct text text;
    text_init(&text, arena);
    text_append(&text, "\x93NUMPY\x01\x00\x00\x00", PREFIX);
    text_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < tensor->rank; i++)
        text_printf(&text, "%" PRId64 "%s", tensor->sizes[i],
                    i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
    text_put(&text, "), }");
    while ((text.length + 1) % ALIGNMENT)
        text_put(&text, " ");
    text_put(&text, "\n");
    text.data[8] = (char)((text.length - PREFIX) & 0xff);
    text.data[9] = (char)((text.length - PREFIX) >> 8);
    *length = text.length;
    return text.data;
}

/* TensorProto: dims (1), data_type (2), name (8), raw_data (9); the elements follow the header. */
static const char *proto_header(const char *name, const struct file_tensor *tensor, struct arena *arena,
                                size_t *length)
{
    enum { DIMS = 1 << 3, DATA_TYPE = 2 << 3, NAME = 8 << 3 | 2, RAW_DATA = 9 << 3 | 2, LONGEST = 11 };
    size_t name_bytes = strlen(name);
    unsigned char *out = arena_alloc(arena, (MAX_RANK + 4) * (LONGEST + 1) + name_bytes);
    size_t at = 0;
    for (int i = 0; i < tensor->rank; i++) {
        out[at++] = DIMS;
        at += put_varint(out + at, (uint64_t)tensor->sizes[i]);
    }
    out[at++] = DATA_TYPE;
    at += put_varint(out + at, (uint64_t)tensor->dtype);
    out[at++] = NAME;
    at += put_varint(out + at, name_bytes);
    memcpy(out + at, name, name_bytes);
    at += name_bytes;
    out[at++] = RAW_DATA;
    at += put_varint(out + at, tensor->bytes);
    *length = at;
    return (const char *)out;
}

bool tensor_file_write(const char *path, const char *name, const struct file_tensor *tensor,
                       struct arena *arena, struct diagnostics *diagnostics)
{
    size_t length = 0;
    const char *header = has_ending(path, ".npy") ? npy_header(tensor, arena, &length)
                                                  : proto_header(name, tensor, arena, &length);
    if (!header) {
        diag_error(diagnostics, DIAG_unsupported_case, NULL,
                   "%s: numpy has no element type %s; use --output-format=pb", diag_quote(diagnostics, path),
                   dtype_name(tensor->dtype));
        return false;
    }
    struct output_file file;
    bool good = output_open(&file, arena, path, false) && output_write(&file, header, length) &&
                output_write(&file, tensor->data, tensor->bytes) && output_commit(&file);
    if (!good) {
        int error = errno;
        output_abandon(&file);
        diag_error(diagnostics, DIAG_output_unwritable, NULL, "%s: %s", diag_quote(diagnostics, path),
                   strerror(error));
    }
    return good;
}

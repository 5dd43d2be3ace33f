/* See payload.h. The typed lists hold *entries*: one element each, or, for 4- and 2-bit types, one byte of
 * packed elements. A decoder walks entries through a small window; because entries have no fixed length in
 * the file, every ENTRIES_A_MARK-th one's place is kept when the list is first checked, so that a read in the
 * middle starts near it. */
#include "frontend/payload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/checked.h"

enum {
    FIELD_FLOAT = 4,
    FIELD_INT32 = 5,
    FIELD_INT64 = 7,
    FIELD_RAW = 9,
    FIELD_DOUBLE = 10,
    FIELD_UINT64 = 11,
    WINDOW = 4096,
    SMALL = 4 * 1024, /* decoded bytes that are loaded at once */
    ENTRIES_A_MARK = 64 * 1024
};

#define LARGEST_TENSOR (UINT64_C(1) << 40)

/* Where an entry starts. */
struct mark {
    uint32_t chunk;
    uint64_t offset; /* in the source */
};

struct list {
    struct source source;
    const struct payload_chunk *chunks;
    uint32_t chunk_count;
    uint32_t field;
    unsigned entry_bits; /* of the decoded form */
    enum dtype dtype;
    const struct mark *marks;
    uint64_t entries;
};

struct walk {
    const struct list *list;
    struct mark at;
    uint64_t window_start, window_end;
    unsigned char window[WINDOW];
};

static bool walk_byte(struct walk *walk, uint64_t end, unsigned char *byte)
{
    if (walk->at.offset >= end)
        return false;
    if (walk->at.offset < walk->window_start || walk->at.offset >= walk->window_end) {
        uint64_t left = end - walk->at.offset;
        size_t bytes = left < WINDOW ? (size_t)left : WINDOW;
        if (!walk->list->source.read(walk->list->source.user, walk->at.offset, walk->window, bytes))
            return false;
        walk->window_start = walk->at.offset;
        walk->window_end = walk->at.offset + bytes;
    }
    *byte = walk->window[walk->at.offset++ - walk->window_start];
    return true;
}

static bool walk_varint(struct walk *walk, uint64_t end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char byte;
        if (!walk_byte(walk, end, &byte) || (shift == 63 && byte > 1))
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Moves to the next stretch when this one is used up; false behind the last. */
static bool walk_settle(struct walk *walk)
{
    const struct list *list = walk->list;
    while (walk->at.chunk < list->chunk_count) {
        const struct payload_chunk *chunk = &list->chunks[walk->at.chunk];
        if (walk->at.offset < chunk->offset + chunk->bytes)
            return true;
        walk->at.chunk++;
        if (walk->at.chunk < list->chunk_count)
            walk->at.offset = list->chunks[walk->at.chunk].offset;
    }
    return false;
}

/* The next entry as it stands in the file; false: unreadable or malformed. The caller has settled. */
static bool walk_entry(struct walk *walk, uint64_t *value)
{
    const struct payload_chunk *chunk = &walk->list->chunks[walk->at.chunk];
    uint64_t end = chunk->offset + chunk->bytes, tag;
    if (!chunk->packed && !walk_varint(walk, end, &tag))
        return false;
    unsigned fixed = walk->list->field == FIELD_FLOAT ? 4 : walk->list->field == FIELD_DOUBLE ? 8 : 0;
    if (!fixed)
        return walk_varint(walk, end, value);
    *value = 0;
    for (unsigned i = 0; i < fixed; i++) {
        unsigned char byte;
        if (!walk_byte(walk, end, &byte))
            return false;
        *value |= (uint64_t)byte << (8 * i);
    }
    return true;
}

/* The entry fits its decoded form. Signed and unsigned spellings of the same bits are both met in files. */
static bool entry_fits(const struct list *list, uint64_t value)
{
    int64_t number = (int64_t)value;
    switch (list->field) {
    case FIELD_INT32:
        if (number < INT32_MIN || number > UINT32_MAX)
            return false;
        if (list->dtype == DTYPE_BOOL)
            return true;
        return list->entry_bits >= 32 ||
               (number >= -(INT64_C(1) << (list->entry_bits - 1)) && number < INT64_C(1) << list->entry_bits);
    case FIELD_UINT64:
        return list->entry_bits == 64 || value >> list->entry_bits == 0;
    default:
        return true;
    }
}

/* Walks the whole list once: counts, checks, and keeps the marks (room for as many as the expected entries
 * need). */
static const char *check_list(struct list *list, struct mark *marks, uint64_t expected)
{
    struct walk walk = {.list = list, .at = {0, list->chunk_count ? list->chunks[0].offset : 0}};
    uint64_t entries = 0, value;
    while (walk_settle(&walk)) {
        if (entries == expected)
            return "has more elements than its dims say";
        if (entries % ENTRIES_A_MARK == 0)
            marks[entries / ENTRIES_A_MARK] = walk.at;
        if (!walk_entry(&walk, &value))
            return "has a payload that cannot be read";
        if (!entry_fits(list, value))
            return "has an element that its type cannot hold";
        entries++;
    }
    return entries == expected ? NULL : "has fewer elements than its dims say";
}

static bool decode_list(const struct blob *blob, uint64_t at, void *data, size_t bytes)
{
    const struct list *list = blob->decode_data;
    uint64_t bit = at * 8, entry = bit / list->entry_bits;
    struct walk walk = {.list = list};
    if (!bytes)
        return true;
    if (entry >= list->entries)
        return false;
    walk.at = list->marks[entry / ENTRIES_A_MARK];
    unsigned char *out = data;
    uint64_t value = 0;
    for (uint64_t i = 0; i <= entry % ENTRIES_A_MARK; i++)
        if (!walk_settle(&walk) || !walk_entry(&walk, &value))
            return false;
    if (list->dtype == DTYPE_BOOL)
        value = value != 0;
    unsigned used = (unsigned)(bit % list->entry_bits), left = list->entry_bits - used;
    value >>= used;
    for (size_t i = 0; i < bytes; i++) {
        unsigned filled = 0, byte = 0;
        while (filled < 8) {
            if (!left) {
                if (!walk_settle(&walk)) /* the last byte of a 6-bit list is padded */
                    break;
                if (!walk_entry(&walk, &value))
                    return false;
                if (list->dtype == DTYPE_BOOL)
                    value = value != 0;
                left = list->entry_bits;
            }
            unsigned take = left < 8 - filled ? left : 8 - filled;
            byte |= (unsigned)(value & ((1U << take) - 1)) << filled;
            value >>= take;
            left -= take;
            filled += take;
        }
        if (!filled)
            return false;
        out[i] = (unsigned char)byte;
    }
    return true;
}

/* Bools are 0 or 1 for everything behind the importer, whatever byte a file has for true. */
static bool decode_bools(const struct blob *blob, uint64_t at, void *data, size_t bytes)
{
    struct blob plain = *blob;
    plain.decode = NULL;
    unsigned char *out = data;
    if (!blob_read(&plain, at, data, bytes))
        return false;
    for (size_t i = 0; i < bytes; i++)
        out[i] = out[i] != 0;
    return true;
}

struct context {
    const struct reader *reader;
    struct arena *arena;
    struct diagnostics *diagnostics;
    const struct location *location;
    const char *what;
    const Onnx__TensorProto *tensor;
    struct tensor_data *out;
    uint64_t elements, bytes;
};

static bool refuse(const struct context *context, enum diag_code code, const char *reason)
{
    diag_error(context->diagnostics, code, context->location, "%s %s", context->what, reason);
    return false;
}

static bool check_type(struct context *context)
{
    const Onnx__TensorProto *tensor = context->tensor;
    struct tensor_data *out = context->out;
    int32_t type = tensor->has_data_type ? tensor->data_type : 0;
    if (type <= 0 || type >= DTYPE_COUNT || !strcmp(dtype_name((enum dtype)type), "none"))
        return refuse(context, DIAG_bad_tensor, "has no known element type");
    if (type == DTYPE_STRING)
        return refuse(context, DIAG_unsupported_case, "holds strings, which are not supported");
    if (tensor->segment)
        return refuse(context, DIAG_unsupported_case, "is a segment of a tensor, which is not supported");
    if (tensor->n_dims > MAX_RANK)
        return refuse(context, DIAG_limit_exceeded, "has more than 16 dims");
    out->dtype = (enum dtype)type;
    out->rank = (int)tensor->n_dims;
    int64_t elements = 1;
    bool empty = false, fits = true;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        out->sizes[i] = tensor->dims[i];
        if (tensor->dims[i] < 0)
            return refuse(context, DIAG_bad_tensor, "has a negative dim");
        empty = empty || tensor->dims[i] == 0;
        fits = fits && (tensor->dims[i] == 0 || mul_i64(elements, tensor->dims[i], &elements));
    }
    if (empty)
        elements = 0;
    if ((!fits && !empty) || !dtype_bytes(out->dtype, elements, &context->bytes) ||
        context->bytes > LARGEST_TENSOR)
        return refuse(context, DIAG_limit_exceeded, "has more than 2^40 bytes");
    context->elements = (uint64_t)elements;
    return true;
}

/* Small tensors are loaded; what cannot be read then is reported here, by name. */
static bool finish(struct context *context, struct blob *blob)
{
    if (blob->kind == BLOB_FILE && blob->length <= SMALL) {
        unsigned char *bytes = arena_alloc(context->arena, (size_t)blob->length);
        if (!blob_read(blob, 0, bytes, (size_t)blob->length))
            return refuse(context, DIAG_file_unreadable, "has a payload that cannot be read");
        *blob = (struct blob){.kind = BLOB_MEMORY, .length = blob->length, .bytes = bytes};
    }
    context->out->blob = blob;
    return true;
}

/* Plain bytes at an offset of a file (or of the model in memory, fd < 0). */
static bool finish_plain(struct context *context, int fd, uint64_t offset)
{
    struct blob *blob = arena_new(context->arena, struct blob);
    blob->length = context->bytes;
    if (fd >= 0) {
        blob->kind = BLOB_FILE;
        blob->fd = fd;
        blob->offset = offset;
    } else {
        blob->kind = BLOB_MEMORY;
        blob->bytes = context->reader->memory->data + offset;
    }
    if (context->out->dtype == DTYPE_BOOL) {
        if (blob->kind == BLOB_FILE) {
            blob->decode = decode_bools;
        } else {
            unsigned char *bytes = arena_copy(context->arena, blob->bytes, (size_t)blob->length);
            for (uint64_t i = 0; i < blob->length; i++)
                bytes[i] = bytes[i] != 0;
            blob->bytes = bytes;
        }
    }
    return finish(context, blob);
}

/* Which list may hold the elements of a type. */
static uint32_t field_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
    case DTYPE_C64:
        return FIELD_FLOAT;
    case DTYPE_F64:
    case DTYPE_C128:
        return FIELD_DOUBLE;
    case DTYPE_I64:
        return FIELD_INT64;
    case DTYPE_U32:
    case DTYPE_U64:
        return FIELD_UINT64;
    default:
        return FIELD_INT32;
    }
}

static unsigned entry_bits_of(enum dtype dtype)
{
    unsigned bits = dtype_bits(dtype);
    if (dtype == DTYPE_C64 || dtype == DTYPE_C128)
        return bits / 2;
    return bits == 4 || bits == 2 ? 8 : bits;
}

static bool typed_list(struct context *context, const struct payload *payload)
{
    const struct reader *reader = context->reader;
    const struct payload_chunk *chunks = reader->message.chunks + payload->first_chunk;
    enum dtype dtype = context->out->dtype;
    if (payload->field != field_of(dtype))
        return refuse(context, DIAG_bad_tensor, "has its elements in a field that its type does not use");
    bool fixed = payload->field == FIELD_FLOAT || payload->field == FIELD_DOUBLE;
    if (fixed && payload->chunk_count == 1 && chunks[0].packed) {
        if (chunks[0].bytes != context->bytes)
            return refuse(context, DIAG_bad_tensor, "has a payload that does not fit its dims");
        return finish_plain(context, reader->fd, chunks[0].offset);
    }
    struct list *list = arena_new(context->arena, struct list);
    *list = (struct list){
        .source = reader->source,
        .chunk_count = payload->chunk_count,
        .field = payload->field,
        .entry_bits = entry_bits_of(dtype),
        .dtype = dtype,
    };
    /* An entry takes at least a byte in the file, so the file's size bounds the memory for marks. */
    uint64_t expected = (context->bytes * 8) / list->entry_bits, stored = 0;
    if (list->entry_bits == 6)
        expected = context->elements;
    for (uint32_t i = 0; i < payload->chunk_count; i++)
        stored += chunks[i].bytes;
    if (expected > stored)
        return refuse(context, DIAG_bad_tensor, "has fewer elements than its dims say");
    list->chunks = arena_copy(context->arena, chunks, payload->chunk_count * sizeof *chunks);
    struct mark *marks =
        arena_new_array(context->arena, struct mark, (size_t)(expected / ENTRIES_A_MARK + 1));
    const char *reason = check_list(list, marks, expected);
    if (reason)
        return refuse(context, DIAG_bad_tensor, reason);
    list->marks = marks;
    list->entries = expected;
    struct blob *blob = arena_new(context->arena, struct blob);
    *blob = (struct blob){.kind = BLOB_FILE,
                          .length = context->bytes,
                          .fd = reader->fd,
                          .decode = decode_list,
                          .decode_data = list};
    return finish(context, blob);
}

static bool inline_payload(struct context *context)
{
    const Onnx__TensorProto *tensor = context->tensor;
    const struct wire_message *message = &context->reader->message;
    if (!tensor->has_payload_index || tensor->payload_index >= message->payload_count) {
        if (context->bytes)
            return refuse(context, DIAG_bad_tensor, "has no payload");
        return finish(context, arena_new(context->arena, struct blob));
    }
    const struct payload *payload = &message->payloads[tensor->payload_index];
    if (payload->mixed)
        return refuse(context, DIAG_bad_tensor, "has its elements in more than one field");
    if (payload->field != FIELD_RAW)
        return typed_list(context, payload);
    const struct payload_chunk *chunk = &message->chunks[payload->first_chunk];
    if (chunk->bytes != context->bytes) {
        diag_error(context->diagnostics, DIAG_bad_tensor, context->location,
                   "%s has %" PRIu64 " bytes of payload; its dims and type need %" PRIu64, context->what,
                   chunk->bytes, context->bytes);
        return false;
    }
    return finish_plain(context, context->reader->fd, chunk->offset);
}

/* A decimal number of an external_data entry. */
static bool parse_size(const char *text, uint64_t *value)
{
    uint64_t number = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *value = number;
    return true;
}

struct external {
    const char *location, *offset, *length, *checksum;
};

static bool external_entries(struct context *context, struct external *external)
{
    const Onnx__TensorProto *tensor = context->tensor;
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        const char *key = entry->key ? entry->key : "";
        const char **slot = !strcmp(key, "location")   ? &external->location
                            : !strcmp(key, "offset")   ? &external->offset
                            : !strcmp(key, "length")   ? &external->length
                            : !strcmp(key, "checksum") ? &external->checksum
                                                       : NULL;
        if (!slot)
            return refuse(context, DIAG_external_data, "has external data with an unknown key");
        if (*slot)
            return refuse(context, DIAG_external_data, "has external data with a key given twice");
        *slot = entry->value ? entry->value : "";
    }
    if (!external->location)
        return refuse(context, DIAG_external_data, "has external data without a location");
    return true;
}

static bool external_payload(struct context *context)
{
    struct external external = {0};
    uint64_t offset = 0, length = context->bytes, file_bytes;
    int fd;
    if (context->tensor->has_payload_index)
        return refuse(context, DIAG_bad_tensor, "has external data and a payload of its own");
    if (!external_entries(context, &external))
        return false;
    if ((external.offset && !parse_size(external.offset, &offset)) ||
        (external.length && !parse_size(external.length, &length)))
        return refuse(context, DIAG_external_data,
                      "has external data whose offset or length is not a number");
    if (length != context->bytes) {
        diag_error(context->diagnostics, DIAG_bad_tensor, context->location,
                   "%s has %" PRIu64 " bytes of external data; its dims and type need %" PRIu64,
                   context->what, length, context->bytes);
        return false;
    }
    const char *reason = source_files_open_data(context->reader->files, external.location, &fd, &file_bytes);
    if (reason) {
        diag_error(context->diagnostics, DIAG_external_data, context->location, "%s: external data %s: %s",
                   context->what, diag_quote(context->diagnostics, external.location), reason);
        return false;
    }
    if (offset > file_bytes || length > file_bytes - offset) {
        diag_error(context->diagnostics, DIAG_external_data, context->location,
                   "%s: external data %s has %" PRIu64 " bytes; %" PRIu64 " at offset %" PRIu64 " are needed",
                   context->what, diag_quote(context->diagnostics, external.location), file_bytes, length,
                   offset);
        return false;
    }
    return finish_plain(context, fd, offset);
}

bool payload_tensor(const struct reader *reader, struct arena *arena, struct diagnostics *diagnostics,
                    const struct location *location, const char *what, const Onnx__TensorProto *tensor,
                    struct tensor_data *out)
{
    *out = (struct tensor_data){0};
    struct context context = {
        .reader = reader,
        .arena = arena,
        .diagnostics = diagnostics,
        .location = location,
        .what = what,
        .tensor = tensor,
        .out = out,
    };
    if (!check_type(&context))
        return false;
    int32_t place = tensor->has_data_location ? (int32_t)tensor->data_location : 0;
    if (place == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return external_payload(&context);
    if (place != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT)
        return refuse(&context, DIAG_bad_tensor, "has its data at an unknown place");
    return inline_payload(&context);
}

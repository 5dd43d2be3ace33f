/* Two passes over the file with the same code: the first measures (no output), the second writes into buffers
 * of exactly that size. Skipped payloads are not read, so both are cheap. Lengths of messages are not known
 * before their end: each is written as a varint of five bytes, filled in when its frame closes. */
#include "frontend/wire.h"

#include <string.h>

#include "frontend/wire_table.h"
#include "ir/support/checked.h"

enum { WINDOW = 64 * 1024, LENGTH_BYTES = 5, MAX_FRAMES = 320 };
enum wire_type { TYPE_VARINT = 0, TYPE_FIXED64 = 1, TYPE_BYTES = 2, TYPE_FIXED32 = 5 };

struct frame {
    enum wire_kind kind;
    uint64_t end;     /* in the file */
    size_t length_at; /* in the output: its five length bytes */
    uint32_t seen;    /* rows of singular fields met, by position */
    uint32_t oneofs;  /* oneofs met, by number */
    bool has_payload;
};

struct scan {
    const struct source *source;
    const struct wire_limits *limits;
    struct wire_error *error;
    unsigned char *window;
    uint64_t window_start, window_end; /* which bytes of the file it holds */
    uint64_t cursor;                   /* next byte of the file */
    uint64_t field_start;              /* for messages */
    bool writing;
    size_t written; /* or measured */
    struct wire_message *out;
    size_t capacity; /* writing: of out->data */
    uint32_t payload_count, chunk_count;
    struct payload payload;    /* of the innermost tensor */
    struct payload_chunk last; /* its newest stretch, which may still grow */
    uint32_t graphs, types, nodes;
    uint32_t depth;
    struct frame frames[MAX_FRAMES];
};

static bool fail(struct scan *scan, enum diag_code code, const char *reason)
{
    *scan->error = (struct wire_error){code, scan->field_start, reason};
    return false;
}

static bool malformed(struct scan *scan, const char *reason)
{
    return fail(scan, DIAG_file_not_onnx, reason);
}

static bool beyond(struct scan *scan, const char *reason)
{
    return fail(scan, DIAG_file_limit, reason);
}

static bool changed(struct scan *scan)
{
    return fail(scan, DIAG_file_unreadable, "the file changed while it was read");
}

/* Brings the byte at the cursor into the window. */
static bool refill(struct scan *scan)
{
    uint64_t left = scan->source->bytes - scan->cursor;
    size_t bytes = left < WINDOW ? (size_t)left : WINDOW;
    if (!scan->source->read(scan->source->user, scan->cursor, scan->window, bytes)) {
        scan->window_start = scan->window_end = 0;
        return fail(scan, DIAG_file_unreadable, "the file cannot be read");
    }
    scan->window_start = scan->cursor;
    scan->window_end = scan->cursor + bytes;
    return true;
}

/* The caller has checked cursor < end <= the file's size. */
static bool take_byte(struct scan *scan, unsigned char *byte)
{
    if ((scan->cursor < scan->window_start || scan->cursor >= scan->window_end) && !refill(scan))
        return false;
    *byte = scan->window[scan->cursor++ - scan->window_start];
    return true;
}

static bool take_varint(struct scan *scan, uint64_t end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char byte;
        if (scan->cursor >= end)
            return malformed(scan, "a number is cut short");
        if (!take_byte(scan, &byte))
            return false;
        if (shift == 63 && byte > 1)
            return malformed(scan, "a number has more than 64 bits");
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *value = result;
            return true;
        }
    }
    return malformed(scan, "a number has more than 64 bits");
}

static bool take_length(struct scan *scan, uint64_t end, uint64_t *length)
{
    if (!take_varint(scan, end, length))
        return false;
    if (*length > end - scan->cursor)
        return malformed(scan, "a length passes the end of its message; the file is cut short or damaged");
    return true;
}

static bool put(struct scan *scan, const void *data, size_t bytes)
{
    if (bytes > scan->limits->message_bytes - scan->written)
        return beyond(scan, "the graph without its weights passes the limit on its size");
    if (scan->writing) {
        if (bytes > scan->capacity - scan->written)
            return changed(scan);
        memcpy(scan->out->data + scan->written, data, bytes);
    }
    scan->written += bytes;
    return true;
}

static bool put_varint(struct scan *scan, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        count++;
    } while (value);
    return put(scan, bytes, count);
}

static bool put_tag(struct scan *scan, uint32_t number, enum wire_type type)
{
    return put_varint(scan, (uint64_t)number << 3 | (uint64_t)type);
}

/* Copies from the file to the output; the first pass only counts. */
static bool copy(struct scan *scan, uint64_t bytes)
{
    if (bytes > scan->limits->message_bytes - scan->written)
        return beyond(scan, "the graph without its weights passes the limit on its size");
    if (!scan->writing) {
        scan->cursor += bytes;
        scan->written += (size_t)bytes;
        return true;
    }
    while (bytes) {
        if ((scan->cursor < scan->window_start || scan->cursor >= scan->window_end) && !refill(scan))
            return false;
        uint64_t there = scan->window_end - scan->cursor;
        size_t now = (size_t)(there < bytes ? there : bytes);
        if (!put(scan, scan->window + (scan->cursor - scan->window_start), now))
            return false;
        scan->cursor += now;
        bytes -= now;
    }
    return true;
}

/* Length of the well-formed UTF-8 sequence at text, 0 when there is none: no overlong forms, no surrogates.
 */
static size_t utf8_sequence(const unsigned char *text, size_t left)
{
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
        (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

static bool check_text(struct scan *scan, const unsigned char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        if (!text[i])
            return malformed(scan, "a name holds a NUL byte");
        size_t length = utf8_sequence(text + i, bytes - i);
        if (!length)
            return malformed(scan, "a name is not UTF-8");
        i += length;
    }
    return true;
}

static bool check_packed_varints(struct scan *scan, const unsigned char *data, size_t bytes)
{
    size_t run = 0;
    for (size_t i = 0; i < bytes; i++) {
        run++;
        if (run == 10 && data[i] > 1)
            return malformed(scan, "a number has more than 64 bits");
        if (!(data[i] & 0x80))
            run = 0;
    }
    return run == 0 || malformed(scan, "a number is cut short");
}

static enum wire_type native_type(enum wire_form form)
{
    switch (form) {
    case WIRE_INT64:
    case WIRE_INT32:
        return TYPE_VARINT;
    case WIRE_FIXED32:
        return TYPE_FIXED32;
    case WIRE_FIXED64:
        return TYPE_FIXED64;
    case WIRE_TEXT:
    case WIRE_BYTES:
    case WIRE_MESSAGE:
        break;
    }
    return TYPE_BYTES;
}

/* The value behind a tag whose field is not kept. */
static bool skip(struct scan *scan, uint64_t end, unsigned type)
{
    uint64_t bytes;
    if (type == TYPE_VARINT)
        return take_varint(scan, end, &bytes);
    if (type == TYPE_BYTES) {
        if (!take_length(scan, end, &bytes))
            return false;
    } else if (type == TYPE_FIXED32 || type == TYPE_FIXED64) {
        bytes = type == TYPE_FIXED32 ? 4 : 8;
        if (bytes > end - scan->cursor)
            return malformed(scan, "a number is cut short");
    } else {
        return malformed(scan, "a field has a wire type that the format does not use");
    }
    scan->cursor += bytes;
    return true;
}

static bool keep_message(struct scan *scan, uint64_t end, const struct wire_field *field)
{
    static const unsigned char room[LENGTH_BYTES];
    uint64_t length;
    if (!take_length(scan, end, &length) || !put_tag(scan, field->number, TYPE_BYTES))
        return false;
    if (field->child == WIRE_GRAPH && ++scan->graphs > scan->limits->graphs)
        return beyond(scan, "graphs are nested too deeply");
    if (field->child == WIRE_TYPE && ++scan->types > scan->limits->types)
        return beyond(scan, "types are nested too deeply");
    if (field->child == WIRE_NODE && ++scan->nodes > scan->limits->nodes)
        return beyond(scan, "the model has too many nodes");
    if (scan->depth == MAX_FRAMES)
        return beyond(scan, "messages are nested too deeply");
    struct frame *frame = &scan->frames[scan->depth++];
    *frame = (struct frame){.kind = field->child, .end = scan->cursor + length, .length_at = scan->written};
    return put(scan, room, sizeof room);
}

static bool keep_bytes(struct scan *scan, uint64_t end, const struct wire_field *field)
{
    uint64_t length;
    if (!take_length(scan, end, &length))
        return false;
    if (field->form == WIRE_TEXT && length > scan->limits->name_bytes)
        return beyond(scan, "a name is too long");
    if (!put_tag(scan, field->number, TYPE_BYTES) || !put_varint(scan, length))
        return false;
    size_t start = scan->written;
    if (!copy(scan, length))
        return false;
    return field->form != WIRE_TEXT || !scan->writing ||
           check_text(scan, scan->out->data + start, scan->written - start);
}

static bool keep_number(struct scan *scan, uint64_t end, const struct wire_field *field, unsigned type)
{
    if (!put_tag(scan, field->number, (enum wire_type)type))
        return false;
    if (type == TYPE_VARINT) {
        uint64_t value;
        if (!take_varint(scan, end, &value))
            return false;
        if (field->form == WIRE_INT32 && value > INT32_MAX && value < UINT64_C(0xffffffff80000000))
            return malformed(scan, "a number does not fit its field's 32 bits");
        return put_varint(scan, value);
    }
    uint64_t bytes = type == TYPE_FIXED32 ? 4 : 8;
    if (bytes > end - scan->cursor)
        return malformed(scan, "a number is cut short");
    return copy(scan, bytes);
}

/* Elements of a list in one length-delimited stretch. */
static bool check_packed_length(struct scan *scan, const struct wire_field *field, uint64_t length)
{
    uint64_t element = field->form == WIRE_FIXED32 ? 4 : field->form == WIRE_FIXED64 ? 8 : 1;
    return length % element == 0 || malformed(scan, "a list of numbers is cut short");
}

static bool keep_packed(struct scan *scan, uint64_t end, const struct wire_field *field)
{
    uint64_t length;
    if (!take_length(scan, end, &length) || !check_packed_length(scan, field, length))
        return false;
    if (!length)
        return true;
    if (!put_tag(scan, field->number, TYPE_BYTES) || !put_varint(scan, length))
        return false;
    size_t start = scan->written;
    if (!copy(scan, length))
        return false;
    return native_type(field->form) != TYPE_VARINT || !scan->writing ||
           check_packed_varints(scan, scan->out->data + start, scan->written - start);
}

/* Hands the newest stretch over to the list. */
static bool flush_chunk(struct scan *scan)
{
    if (!scan->last.bytes)
        return true;
    if (scan->chunk_count == UINT32_MAX)
        return beyond(scan, "the model has too many tensor payloads");
    if (scan->writing) {
        if (scan->chunk_count >= scan->out->chunk_count)
            return changed(scan);
        scan->out->chunks[scan->chunk_count] = scan->last;
    }
    scan->chunk_count++;
    scan->payload.chunk_count++;
    scan->last = (struct payload_chunk){0};
    return true;
}

static bool record_payload(struct scan *scan, struct frame *frame, const struct wire_field *field,
                           struct payload_chunk chunk)
{
    if (!chunk.bytes)
        return true;
    if (!frame->has_payload) {
        frame->has_payload = true;
        scan->payload = (struct payload){.field = field->number, .first_chunk = scan->chunk_count};
        scan->last = (struct payload_chunk){0};
    }
    if (scan->payload.field != field->number) { /* reported with the tensor's name by payload.c */
        scan->payload.mixed = true;
        return true;
    }
    if (!chunk.packed && scan->last.bytes && !scan->last.packed &&
        scan->last.offset + scan->last.bytes == chunk.offset) {
        scan->last.bytes += chunk.bytes;
        return true;
    }
    if (!flush_chunk(scan))
        return false;
    scan->last = chunk;
    return true;
}

static bool take_payload(struct scan *scan, struct frame *frame, const struct wire_field *field,
                         unsigned type)
{
    uint64_t start = scan->field_start;
    if (type != TYPE_BYTES) { /* one element with its tag */
        if (!skip(scan, frame->end, type))
            return false;
        return record_payload(scan, frame, field, (struct payload_chunk){start, scan->cursor - start, false});
    }
    uint64_t length;
    if (!take_length(scan, frame->end, &length) || !check_packed_length(scan, field, length))
        return false;
    start = scan->cursor;
    scan->cursor += length;
    return record_payload(scan, frame, field, (struct payload_chunk){start, length, true});
}

static bool close_frame(struct scan *scan)
{
    struct frame *frame = &scan->frames[scan->depth - 1];
    scan->field_start = scan->cursor;
    if (frame->has_payload) {
        if (!flush_chunk(scan))
            return false;
        if (scan->payload_count == UINT32_MAX)
            return beyond(scan, "the model has too many tensor payloads");
        if (!put_tag(scan, WIRE_PAYLOAD_INDEX, TYPE_VARINT) || !put_varint(scan, scan->payload_count))
            return false;
        if (scan->writing) {
            if (scan->payload_count >= scan->out->payload_count)
                return changed(scan);
            scan->out->payloads[scan->payload_count] = scan->payload;
        }
        scan->payload_count++;
    }
    scan->graphs -= frame->kind == WIRE_GRAPH;
    scan->types -= frame->kind == WIRE_TYPE;
    if (scan->writing && scan->depth > 1) {
        size_t length = scan->written - frame->length_at - LENGTH_BYTES;
        for (unsigned i = 0; i < LENGTH_BYTES; i++)
            scan->out->data[frame->length_at + i] =
                (unsigned char)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    }
    scan->depth--;
    return true;
}

/* A field that may stand once stands once: protobuf would merge messages and switch oneofs, and protobuf-c
 * has erred at both; no writer makes such files. */
static bool check_once(struct scan *scan, struct frame *frame, const struct wire_field *field, uint32_t row)
{
    if (field->repeated || field->use == WIRE_DROP)
        return true;
    uint32_t bit = UINT32_C(1) << row, choice = field->oneof ? UINT32_C(1) << field->oneof : 0;
    if ((frame->seen & bit) || (frame->oneofs & choice))
        return malformed(scan, "a field that may stand once stands twice");
    frame->seen |= bit;
    frame->oneofs |= choice;
    return true;
}

static bool scan_field(struct scan *scan)
{
    struct frame *frame = &scan->frames[scan->depth - 1];
    scan->field_start = scan->cursor;
    uint64_t tag;
    if (!take_varint(scan, frame->end, &tag))
        return false;
    if (tag > UINT32_MAX || tag >> 3 == 0)
        return malformed(scan, "a field number is out of range");
    unsigned type = (unsigned)(tag & 7);
    const struct wire_message_kind *kind = &wire_kinds[frame->kind];
    uint32_t row = 0;
    while (row < kind->count && kind->fields[row].number != tag >> 3)
        row++;
    if (row == kind->count)
        return skip(scan, frame->end, type);
    const struct wire_field *field = &kind->fields[row];
    enum wire_type native = native_type(field->form);
    bool packed = field->repeated && native != TYPE_BYTES && type == TYPE_BYTES;
    if (type != native && !packed)
        return malformed(scan, "a field has the wrong wire type");
    if (!check_once(scan, frame, field, row))
        return false;
    switch (field->use) {
    case WIRE_DROP:
        return skip(scan, frame->end, type);
    case WIRE_PAYLOAD:
        return take_payload(scan, frame, field, type);
    case WIRE_KEEP:
        break;
    }
    if (packed)
        return keep_packed(scan, frame->end, field);
    if (field->form == WIRE_MESSAGE)
        return keep_message(scan, frame->end, field);
    if (native == TYPE_BYTES)
        return keep_bytes(scan, frame->end, field);
    return keep_number(scan, frame->end, field, type);
}

static bool scan_all(struct scan *scan, bool writing)
{
    scan->writing = writing;
    scan->cursor = scan->written = 0;
    scan->payload_count = scan->chunk_count = 0;
    scan->graphs = scan->types = scan->nodes = 0;
    scan->depth = 1;
    scan->frames[0] = (struct frame){.kind = WIRE_MODEL, .end = scan->source->bytes};
    while (scan->depth) {
        bool done = scan->cursor == scan->frames[scan->depth - 1].end;
        if (!(done ? close_frame(scan) : scan_field(scan)))
            return false;
    }
    return true;
}

static bool take_memory(struct scan *scan, struct arena *arena, struct arena *scratch)
{
    struct wire_message *out = scan->out;
    size_t payload_bytes, chunk_bytes;
    if (!mul_size(scan->payload_count, sizeof *out->payloads, &payload_bytes) ||
        !mul_size(scan->chunk_count, sizeof *out->chunks, &chunk_bytes))
        return beyond(scan, "the model has too many tensor payloads");
    out->data = arena_try_alloc(scratch, scan->written);
    out->payloads = arena_try_alloc(arena, payload_bytes);
    out->chunks = arena_try_alloc(arena, chunk_bytes);
    if (!out->data || !out->payloads || !out->chunks)
        return beyond(scan, "reading the model takes more memory than the limit");
    out->bytes = scan->capacity = scan->written;
    out->payload_count = scan->payload_count;
    out->chunk_count = scan->chunk_count;
    return true;
}

bool wire_scan(const struct source *source, const struct wire_limits *limits, struct arena *arena,
               struct arena *scratch, struct wire_message *message, struct wire_error *error)
{
    *message = (struct wire_message){0};
    *error = (struct wire_error){0};
    struct scan *scan = arena_try_alloc(scratch, sizeof *scan);
    unsigned char *window = scan ? arena_try_alloc(scratch, WINDOW) : NULL;
    if (!window) {
        *error =
            (struct wire_error){DIAG_file_limit, 0, "reading the model takes more memory than the limit"};
        return false;
    }
    *scan =
        (struct scan){.source = source, .limits = limits, .error = error, .window = window, .out = message};
    if (!source->bytes)
        return malformed(scan, "the file is empty");
    if (!scan_all(scan, false) || !take_memory(scan, arena, scratch) || !scan_all(scan, true))
        return false;
    if (scan->written != message->bytes || scan->payload_count != message->payload_count ||
        scan->chunk_count != message->chunk_count)
        return changed(scan);
    return true;
}

/* The wire scan: its table agrees with the generated descriptors; malformed input of every kind is refused
 * with the right code; payloads leave the message and their places are recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/reader.h"
#include "frontend/wire_table.h"
#include "tests/unit/onnx_bytes.h"

struct memory {
    const unsigned char *data;
    size_t count;
};

static bool read_memory(void *user, uint64_t offset, void *data, size_t bytes)
{
    const struct memory *memory = user;
    if (offset > memory->count || bytes > memory->count - offset)
        return false;
    if (bytes)
        memcpy(data, memory->data + offset, bytes);
    return true;
}

static const struct wire_limits limits = WIRE_DEFAULT_LIMITS;

struct scanned {
    struct arena arena;
    struct wire_message message;
    struct wire_error error;
    bool done;
};

static struct scanned scan_with(const struct wire_limits *with, const void *data, size_t count)
{
    struct scanned s;
    struct memory memory = {data, count};
    struct source source = {read_memory, &memory, count};
    arena_init(&s.arena, &system_allocator, NULL);
    s.done = wire_scan(&source, with, &s.arena, &s.arena, &s.message, &s.error);
    return s;
}

static void expect(struct bytes *b, bool done, enum diag_code code)
{
    struct scanned s = scan_with(&limits, b->data, b->count);
    assert_int_equal(s.done, done);
    if (!done)
        assert_int_equal(s.error.code, code);
    arena_release(&s.arena);
    free(b);
}

static void refused(struct bytes *b)
{
    expect(b, false, DIAG_file_not_onnx);
}

/* Each kind's row beside protobuf-c's descriptor of the same message. */
static const ProtobufCMessageDescriptor *const descriptors[WIRE_KIND_COUNT] = {
    [WIRE_MODEL] = &onnx__model_proto__descriptor,
    [WIRE_GRAPH] = &onnx__graph_proto__descriptor,
    [WIRE_NODE] = &onnx__node_proto__descriptor,
    [WIRE_ATTRIBUTE] = &onnx__attribute_proto__descriptor,
    [WIRE_TENSOR] = &onnx__tensor_proto__descriptor,
    [WIRE_SPARSE_TENSOR] = &onnx__sparse_tensor_proto__descriptor,
    [WIRE_VALUE_INFO] = &onnx__value_info_proto__descriptor,
    [WIRE_TYPE] = &onnx__type_proto__descriptor,
    [WIRE_TYPE_TENSOR] = &onnx__type_proto__tensor__descriptor,
    [WIRE_TYPE_SPARSE_TENSOR] = &onnx__type_proto__sparse_tensor__descriptor,
    [WIRE_TYPE_SEQUENCE] = &onnx__type_proto__sequence__descriptor,
    [WIRE_TYPE_MAP] = &onnx__type_proto__map__descriptor,
    [WIRE_TYPE_OPTIONAL] = &onnx__type_proto__optional__descriptor,
    [WIRE_TYPE_OPAQUE] = &onnx__type_proto__opaque__descriptor,
    [WIRE_SHAPE] = &onnx__tensor_shape_proto__descriptor,
    [WIRE_DIMENSION] = &onnx__tensor_shape_proto__dimension__descriptor,
    [WIRE_FUNCTION] = &onnx__function_proto__descriptor,
    [WIRE_OPSET] = &onnx__operator_set_id_proto__descriptor,
    [WIRE_STRING_PAIR] = &onnx__string_string_entry_proto__descriptor,
    [WIRE_SEGMENT] = &onnx__tensor_proto__segment__descriptor,
};

static enum wire_form form_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return WIRE_INT64;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return WIRE_INT32;
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
        return WIRE_TEXT;
    case PROTOBUF_C_TYPE_BYTES:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_MESSAGE;
    default:
        fail_msg("a type that the format does not use: %d", (int)type);
        return WIRE_BYTES;
    }
}

static void test_table_is_the_format(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < WIRE_KIND_COUNT; kind++) {
        const ProtobufCMessageDescriptor *message = descriptors[kind];
        unsigned added = kind == WIRE_TENSOR; /* payload_index is no field of files */
        assert_int_equal(wire_kinds[kind].count + added, message->n_fields);
        assert_in_range(message->n_fields, 1, 32);
        for (unsigned i = 0; i < wire_kinds[kind].count; i++) {
            const struct wire_field *field = &wire_kinds[kind].fields[i];
            const ProtobufCFieldDescriptor *known =
                protobuf_c_message_descriptor_get_field(message, field->number);
            assert_non_null(known);
            assert_int_equal(field->form, form_of(known->type));
            assert_int_equal(field->repeated, known->label == PROTOBUF_C_LABEL_REPEATED);
            assert_int_equal(field->oneof != 0, (known->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0);
            if (field->form == WIRE_MESSAGE && field->use == WIRE_KEEP)
                assert_ptr_equal(descriptors[field->child], known->descriptor);
        }
    }
}

static struct bytes *small_graph(void)
{
    return put_message(bytes_new(), 1, bytes_node("Relu", "x", NULL, "y"));
}

static void test_refuses_malformed(void **state)
{
    (void)state;
    expect(bytes_model(17, small_graph()), true, 0);
    refused(bytes_new());                              /* empty */
    refused(put_raw(bytes_new(), "hello, world", 12)); /* text */
    refused(put_raw(bytes_new(), "\x08", 1));          /* no value behind the tag */
    refused(put_raw(bytes_new(), "\x08\x80", 2));      /* varint cut short */
    refused(put_raw(bytes_new(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11)); /* 65 bits */
    refused(put_raw(bytes_new(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12));
    refused(put_raw(bytes_new(), "\x00\x01", 2));        /* field number 0 */
    refused(put_varint(bytes_new(), UINT64_C(1) << 35)); /* field number too large */
    refused(put_tag(bytes_new(), 100, 3));               /* groups */
    refused(put_tag(bytes_new(), 100, 4));
    refused(put_tag(bytes_new(), 100, 6));
    refused(put_text(bytes_new(), 1, "wrong wire type")); /* ir_version as bytes */
    refused(put_number(bytes_new(), 7, 5));               /* graph as a number */
    refused(put_raw(put_tag(bytes_new(), 2, 2),
                    "\x05"
                    "abc",
                    4)); /* length past the end */
    refused(put_raw(put_tag(bytes_new(), 7, 2),
                    "\x04\x0a\x09"
                    "xx",
                    5));                                   /* length past the parent */
    refused(put_data(bytes_new(), 2, "a\0b", 3));          /* NUL in a name */
    refused(put_text(bytes_new(), 2, "\xc0\x80"));         /* overlong */
    refused(put_text(bytes_new(), 2, "\xed\xa0\x80"));     /* surrogate */
    refused(put_text(bytes_new(), 2, "\xf5\x80\x80\x80")); /* beyond Unicode */
    refused(put_text(bytes_new(), 2, "\xe2\x82"));         /* cut short */
    expect(put_text(bytes_new(), 2, "\xe2\x82\xac \xf0\x9f\x98\x80"), true, 0);
    refused(put_number(put_number(bytes_new(), 1, 8), 1, 8)); /* singular field twice */
    refused(put_message(put_message(bytes_new(), 7, small_graph()), 7, small_graph()));
}

static void test_refuses_oneof_twice(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct bytes *dimension = bytes_new();
        if (order)
            put_text(put_number(dimension, 1, 3), 2, "n");
        else
            put_number(put_text(dimension, 2, "n"), 1, 3);
        struct bytes *shape = put_message(bytes_new(), 1, dimension);
        struct bytes *type = put_message(bytes_new(), 1, put_message(bytes_new(), 2, shape));
        struct bytes *graph = put_message(bytes_new(), 11, put_message(bytes_new(), 2, type));
        refused(put_message(bytes_new(), 7, graph));
    }
}

static void test_refuses_bad_numbers(void **state)
{
    (void)state;
    /* data_type is 32 bits, in the sign-extended form or not at all */
    struct bytes *tensor = put_number(bytes_new(), 2, UINT64_C(1) << 32 | 1);
    refused(put_message(bytes_new(), 7, put_message(bytes_new(), 5, tensor)));
    tensor = put_number(bytes_new(), 2, (uint64_t)-1);
    expect(put_message(bytes_new(), 7, put_message(bytes_new(), 5, tensor)), true, 0);
    /* lists in one stretch: whole elements only */
    tensor = put_data(bytes_new(), 1, "\x01\x80", 2);
    refused(put_message(bytes_new(), 7, put_message(bytes_new(), 5, tensor)));
    tensor = put_data(bytes_new(), 4, "\x01\x02\x03", 3);
    refused(put_message(bytes_new(), 7, put_message(bytes_new(), 5, tensor)));
    tensor = put_data(bytes_new(), 10, "\x01\x02\x03\x04", 4);
    refused(put_message(bytes_new(), 7, put_message(bytes_new(), 5, tensor)));
}

/* `depth` graphs, each in an attribute of a node of the next. */
static struct bytes *nested(unsigned depth)
{
    struct bytes *graph = small_graph();
    for (unsigned i = 1; i < depth; i++) {
        struct bytes *attribute = put_message(put_text(bytes_new(), 1, "body"), 6, graph);
        struct bytes *node = put_message(put_text(bytes_new(), 4, "If"), 5, attribute);
        graph = put_message(bytes_new(), 1, node);
    }
    return put_message(bytes_new(), 7, graph);
}

static void test_limits(void **state)
{
    (void)state;
    expect(nested(64), true, 0);
    expect(nested(65), false, DIAG_file_limit);
    struct wire_limits small = limits;
    struct bytes *model = bytes_model(17, small_graph());
    small.nodes = 0;
    struct scanned s = scan_with(&small, model->data, model->count);
    assert_false(s.done);
    assert_int_equal(s.error.code, DIAG_file_limit);
    arena_release(&s.arena);
    small = limits;
    small.message_bytes = 8;
    s = scan_with(&small, model->data, model->count);
    assert_false(s.done);
    assert_int_equal(s.error.code, DIAG_file_limit);
    arena_release(&s.arena);
    small = limits;
    small.name_bytes = 3;
    s = scan_with(&small, model->data, model->count);
    assert_false(s.done);
    assert_int_equal(s.error.code, DIAG_file_limit);
    arena_release(&s.arena);
    free(model);
}

/* A tensor with its float_data in pieces: packed, single, single, packed. */
static void test_payload_places(void **state)
{
    (void)state;
    const float pair[2] = {1, 2};
    struct bytes *tensor = put_text(bytes_new(), 8, "w");
    put_data(tensor, 4, pair, sizeof pair);
    put_f32(put_f32(tensor, 4, 3), 4, 4);
    put_data(tensor, 4, pair, sizeof pair);
    put_data(tensor, 4, pair, 0);
    put_text(tensor, 12, "documentation");
    put_number(tensor, 1000, 77); /* a file may not choose its payload */
    struct bytes *graph = put_message(bytes_new(), 5, tensor);
    put_message(graph, 5, put_data(put_text(bytes_new(), 8, "r"), 9, "0123456789", 10));
    put_message(graph, 5, put_text(bytes_new(), 8, "none"));
    put_message(graph, 5, put_data(put_data(put_text(bytes_new(), 8, "mixed"), 9, "0123", 4), 5, "\x01", 1));
    struct bytes *model = bytes_model(17, graph);
    struct scanned s = scan_with(&limits, model->data, model->count);
    assert_true(s.done);
    Onnx__ModelProto *read = onnx__model_proto__unpack(NULL, s.message.bytes, s.message.data);
    assert_non_null(read);
    Onnx__TensorProto **tensors = read->graph->initializer;
    assert_int_equal(read->graph->n_initializer, 4);
    assert_int_equal(s.message.payload_count, 3);
    assert_int_equal(tensors[0]->n_float_data, 0);
    assert_null(tensors[0]->doc_string);
    assert_true(tensors[0]->has_payload_index);
    const struct payload *payload = &s.message.payloads[tensors[0]->payload_index];
    const struct payload_chunk *chunks = s.message.chunks + payload->first_chunk;
    assert_int_equal(payload->field, 4);
    assert_int_equal(payload->chunk_count, 3);
    assert_true(chunks[0].packed && !chunks[1].packed && chunks[2].packed);
    assert_int_equal(chunks[0].bytes, 8);
    assert_int_equal(chunks[1].bytes, 10);
    assert_memory_equal(model->data + chunks[0].offset, pair, 8);
    assert_memory_equal(model->data + chunks[2].offset, pair, 8);
    payload = &s.message.payloads[tensors[1]->payload_index];
    chunks = s.message.chunks + payload->first_chunk;
    assert_int_equal(payload->field, 9);
    assert_memory_equal(model->data + chunks[0].offset, "0123456789", 10);
    assert_false(tensors[2]->has_payload_index);
    assert_true(s.message.payloads[tensors[3]->payload_index].mixed);
    onnx__model_proto__free_unpacked(read, NULL);
    arena_release(&s.arena);
    free(model);
}

/* Every cut of a model, and every model with one byte changed, is refused or read; never anything else. */
static void test_damaged(void **state)
{
    (void)state;
    const float pair[2] = {1, 2};
    struct bytes *graph = small_graph();
    put_message(graph, 5, put_data(put_text(bytes_new(), 8, "w"), 4, pair, sizeof pair));
    put_message(graph, 11, bytes_value("x", 1, 2, (const int64_t[]){2, 300}));
    struct bytes *model = bytes_model(17, graph);
    for (size_t cut = 0; cut < model->count; cut++) {
        struct scanned s = scan_with(&limits, model->data, cut);
        assert_true(s.done || s.error.code == DIAG_file_not_onnx);
        arena_release(&s.arena);
    }
    for (size_t at = 0; at < model->count; at++)
        for (unsigned value = 0; value < 256; value += 5) {
            unsigned char kept = model->data[at];
            model->data[at] = (unsigned char)value;
            struct scanned s = scan_with(&limits, model->data, model->count);
            if (s.done) {
                Onnx__ModelProto *read = onnx__model_proto__unpack(NULL, s.message.bytes, s.message.data);
                assert_non_null(read);
                onnx__model_proto__free_unpacked(read, NULL);
            }
            arena_release(&s.arena);
            model->data[at] = kept;
        }
    free(model);
}

/* A file whose first field turns from documentation, which is dropped, into a name, which is kept, between
 * two reads: the scan must not write past the buffer that it measured. */
enum { FIELD_BYTES = 70000, SHIFTY_BYTES = 2 * (4 + FIELD_BYTES) };

static bool read_shifty(void *user, uint64_t offset, void *data, size_t bytes)
{
    unsigned *reads = user;
    unsigned char *out = data;
    struct bytes *head = put_varint(put_tag(bytes_new(), ++*reads > 2 ? 2 : 6, 2), FIELD_BYTES);
    assert_int_equal(head->count, 4);
    for (size_t i = 0; i < bytes; i++) {
        uint64_t at = (offset + i) % (SHIFTY_BYTES / 2);
        out[i] = at < 4 ? head->data[at] : 'a';
    }
    free(head);
    return true;
}

static void test_changing_file(void **state)
{
    (void)state;
    unsigned reads = 0;
    struct source source = {read_shifty, &reads, SHIFTY_BYTES};
    struct arena arena;
    struct wire_message message;
    struct wire_error error;
    struct wire_limits long_names = limits;
    long_names.name_bytes = 1 << 20;
    arena_init(&arena, &system_allocator, NULL);
    assert_false(wire_scan(&source, &long_names, &arena, &arena, &message, &error));
    assert_int_equal(error.code, DIAG_file_unreadable);
    assert_int_equal(reads, 3);
    arena_release(&arena);
}

static bool read_nothing(void *user, uint64_t offset, void *data, size_t bytes)
{
    (void)user;
    (void)offset;
    (void)data;
    (void)bytes;
    return false;
}

static void test_unreadable_and_out_of_memory(void **state)
{
    (void)state;
    struct source source = {read_nothing, NULL, 100};
    struct arena arena;
    struct wire_message message;
    struct wire_error error;
    arena_init(&arena, &system_allocator, NULL);
    assert_false(wire_scan(&source, &limits, &arena, &arena, &message, &error));
    assert_int_equal(error.code, DIAG_file_unreadable);
    arena_release(&arena);
    arena.limit = 1024;
    assert_false(wire_scan(&source, &limits, &arena, &arena, &message, &error));
    assert_int_equal(error.code, DIAG_file_limit);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_the_format),
        cmocka_unit_test(test_refuses_malformed),
        cmocka_unit_test(test_refuses_oneof_twice),
        cmocka_unit_test(test_refuses_bad_numbers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_payload_places),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_changing_file),
        cmocka_unit_test(test_unreadable_and_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Hand-written protobuf for the frontend's tests: bytes appended to a buffer, whole or wrong. */
#ifndef GPUCC_TESTS_UNIT_ONNX_BYTES_H
#define GPUCC_TESTS_UNIT_ONNX_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    unsigned char data[1 << 16];
    size_t count;
};

static inline struct bytes *bytes_new(void)
{
    return calloc(1, sizeof(struct bytes));
}

static inline struct bytes *put_raw(struct bytes *b, const void *data, size_t count)
{
    if (count > sizeof b->data - b->count)
        abort();
    if (count)
        memcpy(b->data + b->count, data, count);
    b->count += count;
    return b;
}

static inline struct bytes *put_varint(struct bytes *b, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put_raw(b, &byte, 1);
        value >>= 7;
    } while (value);
    return b;
}

static inline struct bytes *put_tag(struct bytes *b, uint64_t number, unsigned type)
{
    return put_varint(b, number << 3 | type);
}

static inline struct bytes *put_number(struct bytes *b, uint64_t number, uint64_t value)
{
    return put_varint(put_tag(b, number, 0), value);
}

static inline struct bytes *put_f32(struct bytes *b, uint64_t number, float value)
{
    return put_raw(put_tag(b, number, 5), &value, 4);
}

static inline struct bytes *put_data(struct bytes *b, uint64_t number, const void *data, size_t count)
{
    return put_raw(put_varint(put_tag(b, number, 2), count), data, count);
}

static inline struct bytes *put_text(struct bytes *b, uint64_t number, const char *text)
{
    return put_data(b, number, text, strlen(text));
}

/* Appends the child as a message and frees it. */
static inline struct bytes *put_message(struct bytes *b, uint64_t number, struct bytes *child)
{
    put_data(b, number, child->data, child->count);
    free(child);
    return b;
}

/* OperatorSetIdProto of the default domain */
static inline struct bytes *bytes_opset(uint64_t version)
{
    return put_number(bytes_new(), 2, version);
}

/* ValueInfoProto of a tensor with known dims */
static inline struct bytes *bytes_value(const char *name, uint64_t dtype, size_t rank, const int64_t *sizes)
{
    struct bytes *shape = bytes_new(), *tensor = put_number(bytes_new(), 1, dtype);
    for (size_t i = 0; i < rank; i++)
        put_message(shape, 1, put_number(bytes_new(), 1, (uint64_t)sizes[i]));
    put_message(tensor, 2, shape);
    return put_message(put_text(bytes_new(), 1, name), 2, put_message(bytes_new(), 1, tensor));
}

/* NodeProto with up to two inputs and one output; NULL: none */
static inline struct bytes *bytes_node(const char *op, const char *a, const char *b, const char *out)
{
    struct bytes *node = bytes_new();
    if (a)
        put_text(node, 1, a);
    if (b)
        put_text(node, 1, b);
    if (out)
        put_text(node, 2, out);
    return put_text(node, 4, op);
}

/* TensorProto without its payload */
static inline struct bytes *bytes_tensor(const char *name, uint64_t dtype, size_t rank, const int64_t *sizes)
{
    struct bytes *tensor = bytes_new();
    for (size_t i = 0; i < rank; i++)
        put_number(tensor, 1, (uint64_t)sizes[i]);
    return put_text(put_number(tensor, 2, dtype), 8, name);
}

/* ModelProto: IR version 8, the opset, then the graph, which is freed */
static inline struct bytes *bytes_model(uint64_t opset, struct bytes *graph)
{
    struct bytes *model = put_number(bytes_new(), 1, 8);
    put_message(model, 8, bytes_opset(opset));
    return put_message(model, 7, graph);
}

#endif

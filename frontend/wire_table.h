/* The messages and fields of the ONNX format as the wire scan treats them: one row a field, with its wire
 * form and what becomes of it. A unit test compares the rows with the descriptors that protoc-c makes of
 * onnx.proto. */
#ifndef GPUCC_FRONTEND_WIRE_TABLE_H
#define GPUCC_FRONTEND_WIRE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum wire_kind {
    WIRE_MODEL,
    WIRE_GRAPH,
    WIRE_NODE,
    WIRE_ATTRIBUTE,
    WIRE_TENSOR,
    WIRE_SPARSE_TENSOR,
    WIRE_VALUE_INFO,
    WIRE_TYPE,
    WIRE_TYPE_TENSOR,
    WIRE_TYPE_SPARSE_TENSOR,
    WIRE_TYPE_SEQUENCE,
    WIRE_TYPE_MAP,
    WIRE_TYPE_OPTIONAL,
    WIRE_TYPE_OPAQUE,
    WIRE_SHAPE,
    WIRE_DIMENSION,
    WIRE_FUNCTION,
    WIRE_OPSET,
    WIRE_STRING_PAIR,
    WIRE_SEGMENT,
    WIRE_KIND_COUNT,
    WIRE_NO_KIND = WIRE_KIND_COUNT
};

enum wire_form {
    WIRE_INT64,   /* varint, any value */
    WIRE_INT32,   /* varint, sign-extended 32 bits; enums too */
    WIRE_FIXED32, /* float */
    WIRE_FIXED64, /* double */
    WIRE_TEXT,    /* UTF-8 without NUL */
    WIRE_BYTES,
    WIRE_MESSAGE
};

enum wire_use {
    WIRE_KEEP,
    WIRE_PAYLOAD, /* stays in the file; its place is recorded */
    WIRE_DROP     /* of no meaning to a compiler: documentation, metadata, training */
};

struct wire_field {
    uint32_t number;
    enum wire_form form;
    bool repeated;
    enum wire_use use;
    enum wire_kind child; /* MESSAGE that is kept */
    uint8_t oneof;        /* members of one oneof share a number; 0: none */
};

struct wire_message_kind {
    const char *name; /* in the ONNX format */
    const struct wire_field *fields;
    uint32_t count; /* at most 32 */
};

extern const struct wire_message_kind wire_kinds[WIRE_KIND_COUNT];

/* The number of TensorProto.payload_index, which the scan adds. */
enum { WIRE_PAYLOAD_INDEX = 1000 };

#endif

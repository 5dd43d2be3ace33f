/* The rows of wire_table.h. What a compiler has no use for is dropped here, so that neither protobuf-c nor
 * the importer ever sees it: documentation strings, per-node metadata (exporters put whole stack traces
 * there), training graphs, quantisation annotations, device placement. */
#include "frontend/wire_table.h"

#define ONE(number, form)                                                                                    \
    {                                                                                                        \
        number, form, false, WIRE_KEEP, WIRE_NO_KIND, 0                                                      \
    }
#define MANY(number, form)                                                                                   \
    {                                                                                                        \
        number, form, true, WIRE_KEEP, WIRE_NO_KIND, 0                                                       \
    }
#define MESSAGE(number, child)                                                                               \
    {                                                                                                        \
        number, WIRE_MESSAGE, false, WIRE_KEEP, child, 0                                                     \
    }
#define MESSAGES(number, child)                                                                              \
    {                                                                                                        \
        number, WIRE_MESSAGE, true, WIRE_KEEP, child, 0                                                      \
    }
#define CHOICE(number, form, child)                                                                          \
    {                                                                                                        \
        number, form, false, WIRE_KEEP, child, 1                                                             \
    }
#define DATA(number, form, repeated)                                                                         \
    {                                                                                                        \
        number, form, repeated, WIRE_PAYLOAD, WIRE_NO_KIND, 0                                                \
    }
#define NOTHING(number, form, repeat)                                                                        \
    {                                                                                                        \
        number, form, repeat, WIRE_DROP, WIRE_NO_KIND, 0                                                     \
    }

static const struct wire_field model_fields[] = {
    ONE(1, WIRE_INT64),
    ONE(2, WIRE_TEXT),
    ONE(3, WIRE_TEXT),
    ONE(4, WIRE_TEXT),
    ONE(5, WIRE_INT64),
    NOTHING(6, WIRE_TEXT, false),
    MESSAGE(7, WIRE_GRAPH),
    MESSAGES(8, WIRE_OPSET),
    MESSAGES(14, WIRE_STRING_PAIR),
    NOTHING(20, WIRE_MESSAGE, true),
    MESSAGES(25, WIRE_FUNCTION),
    NOTHING(26, WIRE_MESSAGE, true),
};

static const struct wire_field graph_fields[] = {
    MESSAGES(1, WIRE_NODE),           ONE(2, WIRE_TEXT),
    MESSAGES(5, WIRE_TENSOR),         NOTHING(10, WIRE_TEXT, false),
    MESSAGES(11, WIRE_VALUE_INFO),    MESSAGES(12, WIRE_VALUE_INFO),
    MESSAGES(13, WIRE_VALUE_INFO),    NOTHING(14, WIRE_MESSAGE, true),
    MESSAGES(15, WIRE_SPARSE_TENSOR), NOTHING(16, WIRE_MESSAGE, true),
};

static const struct wire_field node_fields[] = {
    MANY(1, WIRE_TEXT),
    MANY(2, WIRE_TEXT),
    ONE(3, WIRE_TEXT),
    ONE(4, WIRE_TEXT),
    MESSAGES(5, WIRE_ATTRIBUTE),
    NOTHING(6, WIRE_TEXT, false),
    ONE(7, WIRE_TEXT),
    ONE(8, WIRE_TEXT),
    NOTHING(9, WIRE_MESSAGE, true),
    NOTHING(10, WIRE_MESSAGE, true),
};

static const struct wire_field attribute_fields[] = {
    ONE(1, WIRE_TEXT),
    ONE(2, WIRE_FIXED32),
    ONE(3, WIRE_INT64),
    ONE(4, WIRE_BYTES),
    MESSAGE(5, WIRE_TENSOR),
    MESSAGE(6, WIRE_GRAPH),
    MANY(7, WIRE_FIXED32),
    MANY(8, WIRE_INT64),
    MANY(9, WIRE_BYTES),
    MESSAGES(10, WIRE_TENSOR),
    MESSAGES(11, WIRE_GRAPH),
    NOTHING(13, WIRE_TEXT, false),
    MESSAGE(14, WIRE_TYPE),
    MESSAGES(15, WIRE_TYPE),
    ONE(20, WIRE_INT32),
    ONE(21, WIRE_TEXT),
    MESSAGE(22, WIRE_SPARSE_TENSOR),
    MESSAGES(23, WIRE_SPARSE_TENSOR),
};

static const struct wire_field tensor_fields[] = {
    MANY(1, WIRE_INT64),
    ONE(2, WIRE_INT32),
    MESSAGE(3, WIRE_SEGMENT),
    DATA(4, WIRE_FIXED32, true),
    DATA(5, WIRE_INT32, true),
    MANY(6, WIRE_BYTES),
    DATA(7, WIRE_INT64, true),
    ONE(8, WIRE_TEXT),
    DATA(9, WIRE_BYTES, false),
    DATA(10, WIRE_FIXED64, true),
    DATA(11, WIRE_INT64, true),
    NOTHING(12, WIRE_TEXT, false),
    MESSAGES(13, WIRE_STRING_PAIR),
    ONE(14, WIRE_INT32),
    NOTHING(16, WIRE_MESSAGE, true),
};

static const struct wire_field sparse_tensor_fields[] = {
    MESSAGE(1, WIRE_TENSOR),
    MESSAGE(2, WIRE_TENSOR),
    MANY(3, WIRE_INT64),
};

static const struct wire_field value_info_fields[] = {
    ONE(1, WIRE_TEXT),
    MESSAGE(2, WIRE_TYPE),
    NOTHING(3, WIRE_TEXT, false),
    NOTHING(4, WIRE_MESSAGE, true),
};

static const struct wire_field type_fields[] = {
    CHOICE(1, WIRE_MESSAGE, WIRE_TYPE_TENSOR),   CHOICE(4, WIRE_MESSAGE, WIRE_TYPE_SEQUENCE),
    CHOICE(5, WIRE_MESSAGE, WIRE_TYPE_MAP),      ONE(6, WIRE_TEXT),
    CHOICE(7, WIRE_MESSAGE, WIRE_TYPE_OPAQUE),   CHOICE(8, WIRE_MESSAGE, WIRE_TYPE_SPARSE_TENSOR),
    CHOICE(9, WIRE_MESSAGE, WIRE_TYPE_OPTIONAL),
};

static const struct wire_field type_tensor_fields[] = {ONE(1, WIRE_INT32), MESSAGE(2, WIRE_SHAPE)};
static const struct wire_field type_element_fields[] = {MESSAGE(1, WIRE_TYPE)};
static const struct wire_field type_map_fields[] = {ONE(1, WIRE_INT32), MESSAGE(2, WIRE_TYPE)};
static const struct wire_field type_opaque_fields[] = {ONE(1, WIRE_TEXT), ONE(2, WIRE_TEXT)};
static const struct wire_field shape_fields[] = {MESSAGES(1, WIRE_DIMENSION)};

static const struct wire_field dimension_fields[] = {
    CHOICE(1, WIRE_INT64, WIRE_NO_KIND),
    CHOICE(2, WIRE_TEXT, WIRE_NO_KIND),
    ONE(3, WIRE_TEXT),
};

static const struct wire_field function_fields[] = {
    ONE(1, WIRE_TEXT),
    MANY(4, WIRE_TEXT),
    MANY(5, WIRE_TEXT),
    MANY(6, WIRE_TEXT),
    MESSAGES(7, WIRE_NODE),
    NOTHING(8, WIRE_TEXT, false),
    MESSAGES(9, WIRE_OPSET),
    ONE(10, WIRE_TEXT),
    MESSAGES(11, WIRE_ATTRIBUTE),
    MESSAGES(12, WIRE_VALUE_INFO),
    ONE(13, WIRE_TEXT),
    NOTHING(14, WIRE_MESSAGE, true),
};

static const struct wire_field opset_fields[] = {ONE(1, WIRE_TEXT), ONE(2, WIRE_INT64)};
static const struct wire_field string_pair_fields[] = {ONE(1, WIRE_TEXT), ONE(2, WIRE_TEXT)};
static const struct wire_field segment_fields[] = {ONE(1, WIRE_INT64), ONE(2, WIRE_INT64)};

#define KIND(name, fields)                                                                                   \
    {                                                                                                        \
        name, fields, sizeof fields / sizeof *fields                                                         \
    }

const struct wire_message_kind wire_kinds[WIRE_KIND_COUNT] = {
    [WIRE_MODEL] = KIND("ModelProto", model_fields),
    [WIRE_GRAPH] = KIND("GraphProto", graph_fields),
    [WIRE_NODE] = KIND("NodeProto", node_fields),
    [WIRE_ATTRIBUTE] = KIND("AttributeProto", attribute_fields),
    [WIRE_TENSOR] = KIND("TensorProto", tensor_fields),
    [WIRE_SPARSE_TENSOR] = KIND("SparseTensorProto", sparse_tensor_fields),
    [WIRE_VALUE_INFO] = KIND("ValueInfoProto", value_info_fields),
    [WIRE_TYPE] = KIND("TypeProto", type_fields),
    [WIRE_TYPE_TENSOR] = KIND("TypeProto.Tensor", type_tensor_fields),
    [WIRE_TYPE_SPARSE_TENSOR] = KIND("TypeProto.SparseTensor", type_tensor_fields),
    [WIRE_TYPE_SEQUENCE] = KIND("TypeProto.Sequence", type_element_fields),
    [WIRE_TYPE_MAP] = KIND("TypeProto.Map", type_map_fields),
    [WIRE_TYPE_OPTIONAL] = KIND("TypeProto.Optional", type_element_fields),
    [WIRE_TYPE_OPAQUE] = KIND("TypeProto.Opaque", type_opaque_fields),
    [WIRE_SHAPE] = KIND("TensorShapeProto", shape_fields),
    [WIRE_DIMENSION] = KIND("TensorShapeProto.Dimension", dimension_fields),
    [WIRE_FUNCTION] = KIND("FunctionProto", function_fields),
    [WIRE_OPSET] = KIND("OperatorSetIdProto", opset_fields),
    [WIRE_STRING_PAIR] = KIND("StringStringEntryProto", string_pair_fields),
    [WIRE_SEGMENT] = KIND("TensorProto.Segment", segment_fields),
};

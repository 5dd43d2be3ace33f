/* The operator table (operators.def) as data: what the importer knows of each version of each operator. */
#ifndef GPUCC_FRONTEND_OPERATORS_H
#define GPUCC_FRONTEND_OPERATORS_H

#include "ir/graph.h"

/* The supported window of the default domain's opset and of the format's version. */
enum { OLDEST_OPSET = 7, NEWEST_OPSET = 28, OLDEST_IR_VERSION = 3, NEWEST_IR_VERSION = 14 };

/* Kinds of ONNX attributes; the numbers are AttributeProto.AttributeType's. */
enum onnx_attribute_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_INT = 2,
    ONNX_STRING = 3,
    ONNX_TENSOR = 4,
    ONNX_GRAPH = 5,
    ONNX_FLOATS = 6,
    ONNX_INTS = 7,
    ONNX_STRINGS = 8,
    ONNX_TENSORS = 9,
    ONNX_GRAPHS = 10,
    ONNX_SPARSE_TENSOR = 11,
    ONNX_SPARSE_TENSORS = 12,
    ONNX_TYPE_PROTO = 13,
    ONNX_TYPE_PROTOS = 14
};
const char *onnx_attribute_type_name(enum onnx_attribute_type type);

struct operator_attribute {
    const char *name;
    enum onnx_attribute_type type;
    enum attribute_name canonical; /* ATTR_NONE: for the import function alone */
    bool required, has_default;
    int64_t integer; /* the default */
    double number;
    const char *word;
};

struct importer;
struct import_node;
typedef bool import_function(struct importer *importer, struct import_node *node);

enum { ANY_NUMBER = 255 };

struct operator_row {
    const char *domain; /* "" for ai.onnx */
    const char *name;
    int64_t since;
    uint8_t least_inputs, most_inputs, least_outputs, most_outputs; /* ANY_NUMBER */
    dtype_set types;                                                /* of input 0; 0: it has no inputs */
    enum op op;
    import_function *import;
    const struct operator_attribute *attributes;
    uint32_t attribute_count;
};

/* The version of the operator that holds at an opset of its domain ("" for ai.onnx); NULL: there is none. */
const struct operator_row *operator_find(const char *domain, const char *name, int64_t opset);
/* An operator of the ONNX standard that has no row. */
bool operator_is_standard(const char *name);
/* All rows in order, for `gpucc ops`; NULL behind the last. */
const struct operator_row *operator_row(uint32_t index);

#endif

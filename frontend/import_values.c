/* What import functions build with: nodes that know their results' element types, and constants. */
#include <string.h>

#include "frontend/importer.h"
#include "frontend/payload.h"
#include "ir/expr_eval.h"

enum dtype import_dtype(const struct importer *importer, value_id value)
{
    return value && value < VALUE_UNAVAILABLE ? graph_value(importer->graph, value)->type.dtype : DTYPE_NONE;
}

/* The element type of a node's results: shapes are found later, types are needed here for constants and
 * checks. */
static enum dtype result_dtype(const struct importer *importer, enum op op, uint32_t input_count,
                               const value_id *inputs, uint32_t attribute_count,
                               const struct attribute *attributes)
{
    uint32_t from = 0;
    switch (op) {
    case OP_And:
    case OP_Or:
    case OP_Xor:
    case OP_Not:
    case OP_Equal:
    case OP_Greater:
    case OP_GreaterOrEqual:
    case OP_Less:
    case OP_LessOrEqual:
    case OP_IsInf:
    case OP_IsNaN:
        return DTYPE_BOOL;
    case OP_ConvInteger:
    case OP_MatMulInteger:
        return DTYPE_I32;
    case OP_ArgMax:
    case OP_ArgMin:
    case OP_Shape:
    case OP_Size:
        return DTYPE_I64;
    case OP_Cast:
        for (uint32_t i = 0; i < attribute_count; i++)
            if (attributes[i].name == ATTR_to)
                return (enum dtype)attributes[i].integer;
        return DTYPE_NONE;
    case OP_DequantizeLinear:
    case OP_QuantizeLinear:
        for (uint32_t i = 0; i < attribute_count; i++)
            if (attributes[i].name == ATTR_output_dtype && attributes[i].integer)
                return (enum dtype)attributes[i].integer;
        if (op == OP_QuantizeLinear)
            return input_count > 2 && inputs[2] ? import_dtype(importer, inputs[2]) : DTYPE_U8;
        from = 1;
        break;
    case OP_Where:
    case OP_ConstantOfShape:
        from = 1;
        break;
    default:
        break;
    }
    return from < input_count ? import_dtype(importer, inputs[from]) : DTYPE_NONE;
}

value_id import_emit(struct importer *importer, const struct import_node *node, enum op op,
                     uint32_t input_count, const value_id *inputs, uint32_t attribute_count,
                     const struct attribute *attributes)
{
    node_id made = graph_add_node(importer->graph, node->scope->region, 0, op, input_count, inputs, 1,
                                  attribute_count, attributes, node->location);
    value_id result = graph_node(importer->graph, made)->outputs[0];
    graph_value(importer->graph, result)->type.dtype =
        result_dtype(importer, op, input_count, inputs, attribute_count, attributes);
    return result;
}

value_id import_emit1(struct importer *importer, const struct import_node *node, enum op op, value_id input)
{
    return import_emit(importer, node, op, 1, &input, 0, NULL);
}

value_id import_emit2(struct importer *importer, const struct import_node *node, enum op op, value_id left,
                      value_id right)
{
    return import_emit(importer, node, op, 2, (value_id[]){left, right}, 0, NULL);
}

value_id import_int_list(struct importer *importer, uint32_t count, const int64_t *values)
{
    int64_t size = count;
    return graph_add_constant_data(importer->graph, DTYPE_I64, 1, &size, values);
}

value_id import_float_list(struct importer *importer, uint32_t count, const float *values)
{
    int64_t size = count;
    return graph_add_constant_data(importer->graph, DTYPE_F32, 1, &size, values);
}

value_id import_int_scalar(struct importer *importer, int64_t value)
{
    return graph_add_constant_data(importer->graph, DTYPE_I64, 0, NULL, &value);
}

value_id import_scalar(struct importer *importer, enum dtype dtype, double value)
{
    uint64_t bits, result = 0;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == DTYPE_F64)
        result = bits;
    else
        expr_eval_convert(dtype, DTYPE_F64, bits, &result);
    unsigned char bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(result >> (8 * i));
    return graph_add_constant_data(importer->graph, dtype, 0, NULL, bytes);
}

const Onnx__AttributeProto *import_given(const struct import_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->given_count; i++)
        if (!strcmp(node->given[i].name, name))
            return node->given[i].value;
    return NULL;
}

value_id import_given_ints(struct importer *importer, const struct import_node *node, const char *name)
{
    const Onnx__AttributeProto *given = import_given(node, name);
    return given ? import_int_list(importer, (uint32_t)given->n_ints, given->ints) : 0;
}

value_id import_tensor(struct importer *importer, const struct location *location, const char *what,
                       const Onnx__TensorProto *tensor)
{
    struct tensor_data data;
    if (!payload_tensor(importer->reader, importer->arena, importer->diagnostics, location, what, tensor,
                        &data)) {
        importer->failures++;
        return 0;
    }
    struct tensor_type type = tensor_type_constant(importer->graph, data.dtype, data.rank, data.sizes);
    return graph_add_constant(importer->graph, type, data.blob);
}

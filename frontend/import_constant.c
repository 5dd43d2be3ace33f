/* Import functions of operators that are constants, or make tensors of one. */
#include <string.h>

#include "frontend/importer.h"

bool import_constant(struct importer *importer, struct import_node *node)
{
    if (node->given_count != 1)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "exactly one attribute must give the value");
    const char *name = node->given[0].name;
    const Onnx__AttributeProto *value = node->given[0].value;
    struct graph *graph = importer->graph;
    if (!strcmp(name, "value") && value->t)
        node->outputs[0] = import_tensor(importer, node->location, "attribute value", value->t);
    else if (!strcmp(name, "value_int"))
        node->outputs[0] = import_int_scalar(importer, value->i);
    else if (!strcmp(name, "value_ints"))
        node->outputs[0] = import_int_list(importer, (uint32_t)value->n_ints, value->ints);
    else if (!strcmp(name, "value_float"))
        node->outputs[0] = graph_add_constant_data(graph, DTYPE_F32, 0, NULL, &value->f);
    else if (!strcmp(name, "value_floats"))
        node->outputs[0] = import_float_list(importer, (uint32_t)value->n_floats, value->floats);
    else if (!strcmp(name, "value"))
        return import_fail(importer, DIAG_wrong_attribute, node->location, "attribute value holds no tensor");
    else
        return import_fail(importer, DIAG_unsupported_case, node->location, "attribute %s is not supported",
                           name);
    return node->outputs[0] != 0;
}

/* ConstantOfShape(shape, value): the value becomes an input; it is 0 of f32 when not given. */
bool import_constant_of_shape(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *given = import_given(node, "value");
    if (given && !given->t)
        return import_fail(importer, DIAG_wrong_attribute, node->location, "attribute value holds no tensor");
    value_id value = given ? import_tensor(importer, node->location, "attribute value", given->t)
                           : import_scalar(importer, DTYPE_F32, 0);
    int64_t sizes[MAX_RANK], elements;
    if (!value)
        return false;
    const struct value *constant = graph_value(importer->graph, value);
    if (!tensor_constant_sizes(&importer->graph->dims, &constant->type, sizes, &elements) || elements != 1)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "attribute value must have one element");
    if (!(DTYPES_COMPUTE >> constant->type.dtype & 1))
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "attribute value is of type %s, which is not supported",
                           dtype_name(constant->type.dtype));
    node->outputs[0] = import_emit2(importer, node, OP_ConstantOfShape, node->inputs[0], value);
    return true;
}

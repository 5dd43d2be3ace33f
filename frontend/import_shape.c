/* Import functions of operators that move elements: what older opsets give as attributes becomes constant
 * inputs. */
#include "frontend/importer.h"
#include "ir/provenance.h"

/* Squeeze and Unsqueeze before opset 13. */
bool import_axes_attribute(struct importer *importer, struct import_node *node)
{
    value_id inputs[2] = {node->inputs[0], import_given_ints(importer, node, "axes")};
    node->outputs[0] = import_emit(importer, node, node->row->op, inputs[1] ? 2 : 1, inputs, 0, NULL);
    return true;
}

bool import_pad_attributes(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *value = import_given(node, "value");
    value_id inputs[3] = {node->inputs[0], import_given_ints(importer, node, "pads")};
    inputs[2] = import_scalar(importer, import_dtype(importer, inputs[0]), value ? (double)value->f : 0.0);
    node->outputs[0] =
        import_emit(importer, node, OP_Pad, 3, inputs, node->attribute_count, node->attributes);
    return true;
}

bool import_slice_attributes(struct importer *importer, struct import_node *node)
{
    const value_id inputs[4] = {
        node->inputs[0],
        import_given_ints(importer, node, "starts"),
        import_given_ints(importer, node, "ends"),
        import_given_ints(importer, node, "axes"),
    };
    node->outputs[0] = import_emit(importer, node, OP_Slice, inputs[3] ? 4 : 3, inputs, 0, NULL);
    return true;
}

/* The sizes come as an attribute (before opset 13), as an input, or are equal parts, one for each output. */
bool import_split(struct importer *importer, struct import_node *node)
{
    uint32_t outputs = (uint32_t)node->proto->n_output;
    const Onnx__AttributeProto *parts = import_given(node, "num_outputs");
    value_id inputs[2] = {node->inputs[0], node->input_count > 1 ? node->inputs[1] : 0};
    if (!inputs[1])
        inputs[1] = import_given_ints(importer, node, "split");
    if (parts && (inputs[1] || parts->i != (int64_t)outputs))
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           inputs[1] ? "num_outputs and split are both given"
                                     : "num_outputs is not the number of outputs");
    if (!parts && !inputs[1])
        node->attributes[node->attribute_count++] = attribute_int(ATTR_num_outputs, outputs);
    node_id made = graph_add_node(importer->graph, node->scope->region, 0, OP_Split, inputs[1] ? 2 : 1,
                                  inputs, outputs, node->attribute_count, node->attributes, node->location);
    for (uint32_t i = 0; i < outputs; i++) {
        node->outputs[i] = graph_node(importer->graph, made)->outputs[i];
        graph_value(importer->graph, node->outputs[i])->type.dtype = import_dtype(importer, inputs[0]);
    }
    return true;
}

bool import_space_to_depth(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *mode = import_given(node, "mode");
    if (mode && (mode->s.len != 3 || mode->s.data[0] != 'D'))
        return import_fail(importer, DIAG_unsupported_case, node->location, "only mode DCR is supported");
    return import_as_is(importer, node);
}

/* Resize(x, roi, scales) as it was before coordinate modes existed. */
static void emit_resize(struct importer *importer, struct import_node *node, value_id scales,
                        const char *nearest)
{
    const value_id inputs[3] = {node->inputs[0], 0, scales};
    node->attributes[node->attribute_count++] =
        attribute_word(ATTR_coordinate_transformation_mode, word_find("asymmetric"));
    node->attributes[node->attribute_count++] = attribute_word(ATTR_nearest_mode, word_find(nearest));
    node->outputs[0] =
        import_emit(importer, node, OP_Resize, 3, inputs, node->attribute_count, node->attributes);
}

bool import_upsample(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *given = import_given(node, "scales");
    value_id scales =
        given ? import_float_list(importer, (uint32_t)given->n_floats, given->floats) : node->inputs[1];
    emit_resize(importer, node, scales, "floor");
    return true;
}

/* Opset 10: nearest takes the lower neighbour where it enlarges and the upper one where it shrinks, so the
 * scales must be known and agree. */
bool import_resize_plain(struct importer *importer, struct import_node *node)
{
    enum { MOST = MAX_RANK };
    const struct value *scales = graph_value(importer->graph, node->inputs[1]);
    float factors[MOST];
    bool known = scales->kind == VALUE_CONSTANT && scales->type.dtype == DTYPE_F32 &&
                 scales->blob->length <= sizeof factors &&
                 blob_read(scales->blob, 0, factors, (size_t)scales->blob->length);
    const char *mode = "nearest";
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].name == ATTR_mode)
            mode = node->attributes[i].word;
    if (mode != word_find("nearest")) {
        emit_resize(importer, node, node->inputs[1], "floor");
        return true;
    }
    bool larger = false, smaller = false;
    for (size_t i = 0; known && i < scales->blob->length / sizeof *factors; i++) {
        larger = larger || factors[i] > 1;
        smaller = smaller || factors[i] < 1;
    }
    if (!known || (larger && smaller))
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "at opset 10 the scales must be constant, and all enlarge or all shrink");
    graph_freeze(importer->graph, node->inputs[1], node->location, "the rounding");
    emit_resize(importer, node, node->inputs[1], smaller ? "ceil" : "floor");
    return true;
}

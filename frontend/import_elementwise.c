/* Import functions of operators that work element by element, and the one for all that need no change. */
#include "frontend/importer.h"
#include "ir/provenance.h"

/* The element type of a result of an operator that has several. The further results of a normalisation are
 * its statistics, kept in f32; those of operators that order are places. */
static enum dtype further_dtype(enum op op, uint32_t result, enum dtype input)
{
    return result == 0 ? input : op == OP_LayerNormalization ? DTYPE_F32 : DTYPE_I64;
}

/* The canonical operator has the node's inputs, attributes and outputs. Outputs beyond those that it gives
 * stay absent: an error where they are used. */
bool import_as_is(struct importer *importer, struct import_node *node)
{
    uint32_t most = op_facts(node->row->op)->most_outputs, count = 1;
    for (uint32_t i = 1; i < node->proto->n_output; i++)
        if (*node->proto->output[i] && (i < most || most == ANY_NUMBER))
            count = i + 1;
    if (count == 1) {
        node->outputs[0] = import_emit(importer, node, node->row->op, node->input_count, node->inputs,
                                       node->attribute_count, node->attributes);
        return true;
    }
    node_id made =
        graph_add_node(importer->graph, node->scope->region, 0, node->row->op, node->input_count,
                       node->inputs, count, node->attribute_count, node->attributes, node->location);
    const value_id *results = graph_node(importer->graph, made)->outputs;
    for (uint32_t i = 0; i < count; i++) {
        graph_value(importer->graph, results[i])->type.dtype =
            further_dtype(node->row->op, i, import_dtype(importer, node->inputs[0]));
        node->outputs[i] = results[i];
    }
    return true;
}

/* Max, Min, Sum of a list: a chain of binary operators. */
bool import_variadic(struct importer *importer, struct import_node *node)
{
    value_id result = node->inputs[0];
    for (uint32_t i = 1; i < node->input_count; i++)
        result = import_emit2(importer, node, node->row->op, result, node->inputs[i]);
    if (node->input_count == 1)
        result = import_emit1(importer, node, OP_Identity, result);
    node->outputs[0] = result;
    return true;
}

bool import_mean(struct importer *importer, struct import_node *node)
{
    import_variadic(importer, node);
    if (node->input_count > 1) {
        enum dtype dtype = import_dtype(importer, node->outputs[0]);
        node->outputs[0] = import_emit2(importer, node, OP_Div, node->outputs[0],
                                        import_scalar(importer, dtype, node->input_count));
    }
    return true;
}

/* Opset 6: the bounds are attributes. A bound that is not given is absent, not the largest number. */
bool import_clip_attributes(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *least = import_given(node, "min"), *most = import_given(node, "max");
    enum dtype dtype = import_dtype(importer, node->inputs[0]);
    value_id inputs[3] = {node->inputs[0]};
    if (least)
        inputs[1] = import_scalar(importer, dtype, (double)least->f);
    if (most)
        inputs[2] = import_scalar(importer, dtype, (double)most->f);
    uint32_t count = most ? 3 : least ? 2 : 1;
    node->outputs[0] = import_emit(importer, node, OP_Clip, count, inputs, 0, NULL);
    return true;
}

/* In inference nothing is dropped: the result is the input, the mask is all true. */
bool import_dropout(struct importer *importer, struct import_node *node)
{
    value_id training = node->input_count > 2 ? node->inputs[2] : 0;
    int64_t flag = 1;
    uint32_t count = 0;
    if (training && (!value_constant_ints(importer->graph, training, &flag, 1, &count) || count != 1 || flag))
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "training_mode is not constantly false; training is not supported");
    graph_freeze(importer->graph, training, node->location, "the training mode");
    node->outputs[0] = import_emit1(importer, node, OP_Identity, node->inputs[0]);
    if (node->proto->n_output > 1 && *node->proto->output[1]) {
        enum dtype dtype = node->row->since >= 10 ? DTYPE_BOOL : import_dtype(importer, node->inputs[0]);
        value_id shape = import_emit1(importer, node, OP_Shape, node->inputs[0]);
        node->outputs[1] =
            import_emit2(importer, node, OP_ConstantOfShape, shape, import_scalar(importer, dtype, 1));
    }
    return true;
}

void import_quantised(struct importer *importer, const struct import_node *node, value_id x, value_id out[3])
{
    const node_id made = graph_add_node(importer->graph, node->scope->region, 0, OP_QuantizeRange, 1, &x, 2,
                                        0, NULL, node->location);
    for (uint32_t i = 0; i < 2; i++) {
        out[1 + i] = graph_node(importer->graph, made)->outputs[i];
        graph_value(importer->graph, out[1 + i])->type.dtype = i ? DTYPE_U8 : DTYPE_F32;
    }
    const value_id inputs[3] = {x, out[1], out[2]};
    out[0] = import_emit(importer, node, OP_QuantizeLinear, 3, inputs, 0, NULL);
}

bool import_dynamic_quantize(struct importer *importer, struct import_node *node)
{
    value_id results[3];
    import_quantised(importer, node, node->inputs[0], results);
    for (uint32_t i = 0; i < 3; i++)
        node->outputs[i] = results[i];
    return true;
}

bool import_cast_like(struct importer *importer, struct import_node *node)
{
    enum dtype dtype = import_dtype(importer, node->inputs[1]);
    if (dtype == DTYPE_NONE)
        return import_fail(importer, DIAG_unknown_shape, node->location, "the type of input 1 is not known");
    node->attributes[node->attribute_count++] = attribute_dtype(ATTR_to, dtype);
    node->outputs[0] =
        import_emit(importer, node, OP_Cast, 1, node->inputs, node->attribute_count, node->attributes);
    return true;
}

bool import_batch_normalization(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *training = import_given(node, "training_mode");
    const Onnx__AttributeProto *spatial = import_given(node, "spatial");
    if (training && training->i)
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "training_mode is set; training is not supported");
    if (spatial && !spatial->i)
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "spatial is 0: statistics for every element are not supported");
    return import_as_is(importer, node);
}

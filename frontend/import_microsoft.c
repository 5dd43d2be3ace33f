/* Import functions of operators of the domain com.microsoft, which ONNX Runtime's optimiser and quantiser
 * write: what they fuse becomes the canonical operators that it was made of. */
#include "frontend/importer.h"

static value_id optional_input(const struct import_node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : 0;
}

static value_id biased(struct importer *importer, const struct import_node *node, uint32_t bias)
{
    const value_id added = optional_input(node, bias);
    return added ? import_emit2(importer, node, OP_Add, node->inputs[0], added) : node->inputs[0];
}

/* FastGelu: the tanh form of x + bias. */
bool import_fast_gelu(struct importer *importer, struct import_node *node)
{
    const struct attribute form = attribute_word(ATTR_approximate, word_find("tanh"));
    const value_id x = biased(importer, node, 1);
    node->outputs[0] = import_emit(importer, node, OP_Gelu, 1, &x, 1, &form);
    return true;
}

/* Gelu and BiasGelu: the exact form. */
bool import_bias_gelu(struct importer *importer, struct import_node *node)
{
    node->outputs[0] = import_emit1(importer, node, OP_Gelu, biased(importer, node, 1));
    return true;
}

/* A batch of matrices that are turned with their batch axes is not what any exporter writes. */
bool import_fused_matmul(struct importer *importer, struct import_node *node)
{
    static const char *const names[] = {"transBatchA", "transBatchB"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const Onnx__AttributeProto *given = import_given(node, names[i]);
        if (given && given->i)
            return import_fail(importer, DIAG_unsupported_case, node->location, "%s is set", names[i]);
    }
    return import_as_is(importer, node);
}

/* The normalisation of input + skip + bias; the sum is the fourth output, the statistics are the second and
 * third. */
bool import_skip_layer_normalization(struct importer *importer, struct import_node *node)
{
    const value_id bias = optional_input(node, 4);
    value_id sum = import_emit2(importer, node, OP_Add, node->inputs[0], node->inputs[1]);
    if (bias)
        sum = import_emit2(importer, node, OP_Add, sum, bias);
    const value_id inputs[3] = {sum, node->inputs[2], optional_input(node, 3)};
    uint32_t results = 1;
    for (uint32_t i = 1; i < 3 && i < node->proto->n_output; i++)
        results = *node->proto->output[i] ? i + 1 : results;
    node->attributes[node->attribute_count++] = attribute_int(ATTR_axis, -1);
    const node_id made =
        graph_add_node(importer->graph, node->scope->region, 0, OP_LayerNormalization, inputs[2] ? 3 : 2,
                       inputs, results, node->attribute_count, node->attributes, node->location);
    for (uint32_t i = 0; i < results; i++) {
        node->outputs[i] = graph_node(importer->graph, made)->outputs[i];
        graph_value(importer->graph, node->outputs[i])->type.dtype =
            i ? DTYPE_F32 : import_dtype(importer, sum);
    }
    if (node->proto->n_output > 3)
        node->outputs[3] = sum;
    return true;
}

/* Control flow: If, Loop and Scan become nodes with bodies, one region each. A body sees the names around it,
 * so the values that it takes from there need no arguments. What the operators mean is left as ONNX has it:
 * shape inference, which knows types and sizes, decides branches and binds Loop and Scan to While
 * (ir/infer_control.c). */
#include <string.h>

#include "frontend/importer.h"

/* The attribute's graph; check_given and import_attributes have seen that it is there. */
static const Onnx__GraphProto *body_graph(const struct import_node *node, const char *attribute)
{
    const Onnx__AttributeProto *given = import_given(node, attribute);
    return given ? given->g : NULL;
}

static bool import_results(struct importer *importer, struct import_scope *scope,
                           const struct import_node *node, const Onnx__GraphProto *graph)
{
    bool good = true;
    for (size_t i = 0; i < graph->n_output; i++) {
        value_id value = import_use(importer, scope, node->location,
                                    arena_printf(importer->arena, "output %zu of a body", i),
                                    import_intern(importer, graph->output[i]->name));
        good &= value != VALUE_FAILED;
        struct region *region = &importer->graph->regions.items[scope->region];
        vec_push(importer->graph->arena, &region->results, value);
    }
    return good;
}

/* Imports the graph as the next body of the node `made`; its arguments get the element types, DTYPE_NONE
 * where not known.
 */
static bool import_body(struct importer *importer, struct import_node *node, node_id made,
                        const char *attribute, const enum dtype *arguments, uint32_t argument_count)
{
    const Onnx__GraphProto *graph = body_graph(node, attribute);
    const uint32_t before = importer->failures;
    if (!graph)
        return import_fail(importer, DIAG_wrong_attribute, node->location, "attribute %s holds no graph",
                           attribute);
    if (graph->n_input != argument_count)
        return import_fail(importer, DIAG_wrong_arity, node->location,
                           "the graph %s has %zu inputs, must have %u", attribute, graph->n_input,
                           argument_count);
    if (importer->body_depth == MAX_BODY_DEPTH)
        return import_fail(importer, DIAG_limit_exceeded, node->location,
                           "bodies are nested more than %d deep", MAX_BODY_DEPTH);
    struct import_scope scope = *node->scope;
    scope.outer = node->scope;
    scope.values = (struct name_map){0};
    scope.path = arena_printf(importer->arena, "%s%s#%u.%s/", node->scope->path, node->location->op_type,
                              node->location->number, attribute);
    scope.region = graph_add_region(importer->graph, made);
    import_weights(importer, &scope, graph);
    for (uint32_t i = 0; i < argument_count; i++)
        import_add_name(importer, &scope, "an input of a body",
                        import_intern(importer, graph->input[i]->name),
                        graph_add_argument(importer->graph, scope.region, arguments[i]));
    importer->body_depth++;
    import_nodes(importer, &scope, graph->node, graph->n_node);
    importer->body_depth--;
    return !importer->stopped && import_results(importer, &scope, node, graph) &&
           importer->failures == before;
}

/* The node with its results, which get their element types from the bodies. */
static node_id add_control(struct importer *importer, struct import_node *node, enum op op,
                           uint32_t output_count)
{
    return graph_add_node(importer->graph, node->scope->region, 0, op, node->input_count, node->inputs,
                          output_count, node->attribute_count, node->attributes, node->location);
}

static bool take_outputs(struct importer *importer, struct import_node *node, node_id made,
                         uint32_t first_result)
{
    const struct node *control = graph_node(importer->graph, made);
    const struct region *body = &importer->graph->regions.items[control->bodies[0]];
    if (node->proto->n_output > control->output_count)
        return import_fail(importer, DIAG_wrong_arity, node->location,
                           "the node has %zu outputs, its body gives %u", node->proto->n_output,
                           control->output_count);
    for (uint32_t i = 0; i < control->output_count; i++) {
        const value_id result = body->results.items[first_result + i];
        graph_value(importer->graph, control->outputs[i])->type.dtype = import_dtype(importer, result);
        if (i < node->proto->n_output)
            node->outputs[i] = control->outputs[i];
    }
    return true;
}

bool import_if(struct importer *importer, struct import_node *node)
{
    const uint32_t outputs = (uint32_t)node->proto->n_output;
    const node_id made = add_control(importer, node, OP_If, outputs);
    bool good = import_body(importer, node, made, "then_branch", NULL, 0);
    good &= import_body(importer, node, made, "else_branch", NULL, 0);
    for (uint32_t i = 0; good && i < 2; i++) {
        const struct node *control = graph_node(importer->graph, made);
        const uint32_t results = importer->graph->regions.items[control->bodies[i]].results.count;
        if (results != outputs)
            good = import_fail(importer, DIAG_wrong_arity, node->location,
                               "the graph %s has %u outputs, the node %u", i ? "else_branch" : "then_branch",
                               results, outputs);
    }
    return good && take_outputs(importer, node, made, 0);
}

/* Loop(M, cond, states...): the body takes the iteration's number, the condition and the states, and gives
 * the condition, the states, and one element of each scan output. */
bool import_loop(struct importer *importer, struct import_node *node)
{
    const Onnx__GraphProto *graph = body_graph(node, "body");
    const uint32_t arguments = node->proto->n_input > 2 ? (uint32_t)node->proto->n_input : 2;
    enum dtype *dtypes = arena_new_array(importer->arena, enum dtype, arguments);
    dtypes[0] = DTYPE_I64;
    dtypes[1] = DTYPE_BOOL;
    for (uint32_t i = 2; i < arguments; i++) {
        if (i >= node->input_count || !node->inputs[i])
            return import_fail(importer, DIAG_wrong_arity, node->location, "input %u must be given", i);
        dtypes[i] = import_dtype(importer, node->inputs[i]);
    }
    if (graph && graph->n_output < (size_t)arguments - 1)
        return import_fail(importer, DIAG_wrong_arity, node->location,
                           "the body has %zu outputs, must have a condition and %u states at least",
                           graph->n_output, arguments - 2);
    const node_id made = add_control(importer, node, OP_Loop, graph ? (uint32_t)graph->n_output - 1 : 0);
    return import_body(importer, node, made, "body", dtypes, arguments) &&
           take_outputs(importer, node, made, 1);
}

/* Scan(states..., scanned...): the body takes the states and one element of each scanned input, and gives the
 * states and one element of each scan output. */
bool import_scan(struct importer *importer, struct import_node *node)
{
    const Onnx__GraphProto *graph = body_graph(node, "body");
    const Onnx__AttributeProto *scanned = import_given(node, "num_scan_inputs");
    const uint32_t arguments = node->input_count;
    if (node->location->opset < 9)
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "Scan of opset 8, with a batch axis, is not supported");
    if (!scanned || scanned->i < 1 || scanned->i > (int64_t)arguments)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "num_scan_inputs must be from 1 to the number of inputs, %u", arguments);
    enum dtype *dtypes = arena_new_array(importer->arena, enum dtype, arguments);
    for (uint32_t i = 0; i < arguments; i++)
        dtypes[i] = import_dtype(importer, node->inputs[i]);
    const uint32_t states = arguments - (uint32_t)scanned->i;
    if (graph && graph->n_output < states)
        return import_fail(importer, DIAG_wrong_arity, node->location,
                           "the body has %zu outputs, must have %u states at least", graph->n_output, states);
    const node_id made = add_control(importer, node, OP_Scan, graph ? (uint32_t)graph->n_output : 0);
    return import_body(importer, node, made, "body", dtypes, arguments) &&
           take_outputs(importer, node, made, 0);
}

/* import_cleanup: what exporters leave behind and no later pass should look at. Needs no shapes.
 *
 *     %1 = Identity(%0)                 %2 = Relu(%0)
 *     %2 = Relu(%1)              ->
 *
 * Identity, a Concat of one tensor, a Cast to the type that its input is known to have; trailing outputs that
 * nobody reads (the statistics of LayerNormalization). It never changes what a graph output holds. */
#include "passes/passes.h"

static bool passes_through(const struct graph *graph, const struct node *node)
{
    if (node->output_count != 1 || !node_input(node, 0))
        return false;
    switch (node->op) {
    case OP_Identity:
        return true;
    case OP_Concat:
        return node->input_count == 1;
    case OP_Cast:
        return (enum dtype)node_int(node, ATTR_to, DTYPE_NONE) ==
               graph_value(graph, node->inputs[0])->type.dtype;
    default:
        return false;
    }
}

/* An input's declared type and a constant's are facts; a result's stands only after shape inference. */
static bool type_is_known(const struct graph *graph, const struct node *node)
{
    const struct value *input = graph_value(graph, node->inputs[0]);
    return node->op != OP_Cast || input->kind == VALUE_INPUT || input->kind == VALUE_CONSTANT ||
           input->type.rank >= 0;
}

bool pass_import_cleanup(struct pass_context *context)
{
    struct graph *graph = context->graph;
    struct forward forward;
    forward_init(&forward, context->scratch);
    const uint32_t *uses = graph_use_counts(graph, context->scratch);
    for (node_id n = 1; n < graph->nodes.count; n++) {
        struct node *node = graph_node(graph, n);
        if (node->removed)
            continue;
        if (passes_through(graph, node) && type_is_known(graph, node)) {
            forward_add(&forward, node->outputs[0], node->inputs[0]);
            graph_remove_node(graph, n);
            context->changes++;
            continue;
        }
        while (node->output_count > op_facts(node->op)->least_outputs && !node->body_count &&
               node->op != OP_Split && !uses[node->outputs[node->output_count - 1]]) {
            node->output_count--;
            context->changes++;
        }
    }
    forward_apply(&forward, graph);
    graph_sweep(graph);
    return true;
}

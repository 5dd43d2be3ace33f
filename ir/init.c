/* One walk over the body in its order: inputs stand before their uses. */
#include "ir/init.h"

static bool dims_constant(const struct graph *graph, uint32_t count, const dim *dims)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t value;
        if (!dim_is_constant(&graph->dims, dims[i], &value))
            return false;
    }
    return true;
}

static bool node_is_init(const struct graph *graph, const struct node *node, const bool *flags)
{
    if (node->removed || node->body_count || (op_facts(node->op)->traits & OP_RANDOM))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !flags[node->inputs[i]])
            return false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].kind == ATTR_DIMS &&
            !dims_constant(graph, node->attributes[i].count, node->attributes[i].dims))
            return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct value *result = graph_value(graph, node->outputs[i]);
        if (node->outputs[i] &&
            (result->type.rank < 0 || !dims_constant(graph, (uint32_t)result->type.rank, result->type.dims)))
            return false;
    }
    return true;
}

bool *init_values(const struct graph *graph, struct arena *arena)
{
    bool *flags = arena_new_array(arena, bool, graph->values.count);
    for (uint32_t i = 1; i < graph->values.count; i++)
        flags[i] = graph_value(graph, i)->kind == VALUE_CONSTANT;
    const struct region *body = &graph->regions.items[GRAPH_BODY];
    for (uint32_t i = 0; i < body->nodes.count; i++) {
        const struct node *node = graph_node(graph, body->nodes.items[i]);
        if (node_is_init(graph, node, flags))
            for (uint32_t k = 0; k < node->output_count; k++)
                flags[node->outputs[k]] = node->outputs[k] != 0;
    }
    return flags;
}

/* Values that stand for others: collected by a pass while it walks, applied to the whole graph in one walk.
 */
#include "passes/passes.h"

void forward_init(struct forward *forward, struct arena *arena)
{
    *forward = (struct forward){.arena = arena};
}

void forward_add(struct forward *forward, value_id old, value_id new_value)
{
    while (forward->to.count <= old)
        vec_push(forward->arena, &forward->to, 0);
    forward->to.items[old] = new_value;
}

value_id forward_of(const struct forward *forward, value_id value)
{
    while (value < forward->to.count && forward->to.items[value])
        value = forward->to.items[value];
    return value;
}

void forward_apply(const struct forward *forward, struct graph *graph)
{
    if (!forward->to.count)
        return;
    for (node_id n = 1; n < graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        for (uint32_t i = 0; !node->removed && i < node->input_count; i++)
            node->inputs[i] = forward_of(forward, node->inputs[i]);
    }
    for (region_id r = 1; r < graph->regions.count; r++) {
        const struct region *region = &graph->regions.items[r];
        for (uint32_t i = 0; i < region->results.count; i++)
            region->results.items[i] = forward_of(forward, region->results.items[i]);
    }
    for (uint32_t i = 0; i < graph->dims.symbols.count; i++) {
        struct symbol *symbol = &graph->dims.symbols.items[i];
        symbol->word = forward_of(forward, symbol->word);
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        graph->outputs.items[i].value = forward_of(forward, graph->outputs.items[i].value);
}

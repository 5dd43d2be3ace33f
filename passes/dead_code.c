/* dead_code: drops every node whose results nobody reads.
 *
 *     %1 = Relu(%x)
 *     %2 = Neg(%x)               ->     %2 = Neg(%x)
 *     output %2                         output %2
 *
 * A node stays when a graph output, a region's result or a node that stays reads one of its results; the
 * bodies of a node that stays are read through their results. Graph inputs always stay: they are the model's
 * interface. */
#include "passes/passes.h"

struct marking {
    const struct graph *graph;
    struct arena *arena;
    bool *live; /* [node] */
    VEC(node_id) todo;
};

static void mark(struct marking *marking, value_id value)
{
    if (!value || graph_value(marking->graph, value)->kind != VALUE_RESULT)
        return;
    const node_id producer = graph_value(marking->graph, value)->producer;
    if (marking->live[producer])
        return;
    marking->live[producer] = true;
    vec_push(marking->arena, &marking->todo, producer);
}

static void mark_region(struct marking *marking, region_id id)
{
    const struct region *region = &marking->graph->regions.items[id];
    for (uint32_t i = 0; i < region->results.count; i++)
        mark(marking, region->results.items[i]);
}

bool pass_dead_code(struct pass_context *context)
{
    struct graph *graph = context->graph;
    struct marking marking = {
        .graph = graph,
        .arena = context->scratch,
        .live = arena_new_array(context->scratch, bool, graph->nodes.count),
    };
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        mark(&marking, graph->outputs.items[i].value);
    mark_region(&marking, GRAPH_BODY);
    while (marking.todo.count) {
        const struct node *node = graph_node(graph, marking.todo.items[--marking.todo.count]);
        for (uint32_t i = 0; i < node->input_count; i++)
            mark(&marking, node->inputs[i]);
        for (uint32_t i = 0; i < node->body_count; i++)
            mark_region(&marking, node->bodies[i]);
        if (graph->regions.items[node->region].parent) {
            const node_id parent = graph->regions.items[node->region].parent;
            if (!marking.live[parent]) {
                marking.live[parent] = true;
                vec_push(marking.arena, &marking.todo, parent);
            }
        }
    }
    for (node_id n = 1; n < graph->nodes.count; n++) {
        if (marking.live[n] || graph_node(graph, n)->removed)
            continue;
        graph_remove_node(graph, n);
        context->changes++;
    }
    graph_sweep(graph);
    return true;
}

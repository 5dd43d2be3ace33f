/* dead_code: drops every node whose results nobody reads.
 *
 *     %1 = Relu(%x)
 *     %2 = Neg(%x)               ->     %2 = Neg(%x)
 *     output %2                         output %2
 *
 * A node stays when a graph output, a region's result or a node that stays reads one of its results; the
 * bodies of a node that stays are read through their results. Reading a value is reading the values that hold
 * its sizes. Graph inputs always stay: they are the model's
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

static void mark_words(struct marking *marking, const dim *list, uint32_t count)
{
    enum { MOST = 64 };
    uint32_t symbols[MOST];
    struct dims *dims = (struct dims *)&marking->graph->dims; /* grows by hash-consing; no dim changes */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t words = 0;
        (void)dim_words(dims, list[i], symbols, &words, MOST);
        for (uint32_t k = 0; k < words; k++)
            mark(marking, dims->symbols.items[symbols[k]].word);
    }
}

/* Values that hold the sizes of the node's results. */
static void mark_sizes(struct marking *marking, const struct node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct tensor_type *type = &graph_value(marking->graph, node->outputs[i])->type;
        if (node->outputs[i] && type->rank > 0)
            mark_words(marking, type->dims, (uint32_t)type->rank);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].kind == ATTR_DIMS)
            mark_words(marking, node->attributes[i].dims, node->attributes[i].count);
}

/* A size that was taken to equal another one: the run checks it, so that it is computed all the same. */
static void mark_replaced(struct marking *marking)
{
    for (uint32_t i = 0; i < marking->graph->dims.symbols.count; i++) {
        const struct symbol *symbol = &marking->graph->dims.symbols.items[i];
        if (symbol->source == SYMBOL_WORD && symbol->replacement != DIM_NONE)
            mark(marking, symbol->word);
    }
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
    mark_replaced(&marking);
    while (marking.todo.count) {
        const struct node *node = graph_node(graph, marking.todo.items[--marking.todo.count]);
        for (uint32_t i = 0; i < node->input_count; i++)
            mark(&marking, node->inputs[i]);
        mark_sizes(&marking, node);
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

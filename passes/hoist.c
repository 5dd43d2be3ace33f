/* hoist: what a loop's body computes from values around the loop alone is computed once, before it.
 *
 *     While(%c, %s)                          %t = Exp(%x)
 *       body (%a) {                          While(%c, %s)
 *         %t = Exp(%x)               ->        body (%a) {
 *         %b = Mul(%a, %t)                       %b = Mul(%a, %t)
 *         yield %on, %b                          yield %on, %b
 *       }                                      }
 *
 * Stays: what makes its elements of nothing (sizes, a number repeated), since it costs nothing inside the
 * kernel that reads it and memory before the loop. Inner loops are walked first, so that a node can leave
 * several. Behind shapes a loop is always a While; where it runs not at all, what was hoisted is not read. */
#include "passes/passes.h"

struct hoister {
    struct graph *graph;
    bool *inside; /* [value]: made in the body that is being walked */
};

static void mark_region(struct hoister *hoister, region_id id, bool inside)
{
    const struct graph *graph = hoister->graph;
    const struct region *region = &graph->regions.items[id];
    for (uint32_t i = 0; i < region->arguments.count; i++)
        hoister->inside[region->arguments.items[i]] = inside;
    for (uint32_t n = 0; n < region->nodes.count; n++) {
        const struct node *node = graph_node(graph, region->nodes.items[n]);
        for (uint32_t i = 0; i < node->output_count; i++)
            hoister->inside[node->outputs[i]] = inside;
    }
}

/* A size among them is computed in the body. */
static bool sizes_inside(const struct hoister *hoister, const dim *list, uint32_t count)
{
    enum { MOST = 64 };
    struct dims *dims = &hoister->graph->dims;
    uint32_t symbols[MOST];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t words = 0;
        if (!dim_words(dims, list[i], symbols, &words, MOST))
            return true;
        for (uint32_t k = 0; k < words; k++)
            if (hoister->inside[dims->symbols.items[symbols[k]].word])
                return true;
    }
    return false;
}

static bool may_leave(const struct hoister *hoister, const struct node *node)
{
    const struct graph *graph = hoister->graph;
    if (node->body_count || node->input_count == 0 || node->op == OP_Expand ||
        (op_facts(node->op)->traits & OP_RANDOM))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (hoister->inside[node->inputs[i]])
            return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct tensor_type *type = &graph_value(graph, node->outputs[i])->type;
        if (node->outputs[i] && type->rank > 0 && sizes_inside(hoister, type->dims, (uint32_t)type->rank))
            return false;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].kind == ATTR_DIMS &&
            sizes_inside(hoister, node->attributes[i].dims, node->attributes[i].count))
            return false;
    return true;
}

/* The loop's body gives up nodes to the region around it. Returns how many. */
static uint32_t hoist_from(struct hoister *hoister, node_id loop)
{
    struct graph *graph = hoister->graph;
    const region_id body = graph_node(graph, loop)->bodies[0], around = graph_node(graph, loop)->region;
    VEC(node_id) kept = {0}, order = {0}, left = {0};
    hoister->inside[0] = false;
    mark_region(hoister, body, true);
    for (uint32_t n = 0; n < graph->regions.items[body].nodes.count; n++) {
        const node_id id = graph->regions.items[body].nodes.items[n];
        struct node *node = graph_node(graph, id);
        if (node->removed || !may_leave(hoister, node)) {
            vec_push(graph->arena, &kept, id);
            continue;
        }
        node->region = around;
        for (uint32_t i = 0; i < node->output_count; i++)
            hoister->inside[node->outputs[i]] = false;
        vec_push(graph->arena, &left, id);
    }
    mark_region(hoister, body, false);
    if (!left.count)
        return 0;
    for (uint32_t n = 0; n < graph->regions.items[around].nodes.count; n++) {
        const node_id id = graph->regions.items[around].nodes.items[n];
        for (uint32_t i = 0; i < left.count && id == loop; i++)
            vec_push(graph->arena, &order, left.items[i]);
        vec_push(graph->arena, &order, id);
    }
    struct region *inner = &graph->regions.items[body], *outer = &graph->regions.items[around];
    inner->nodes.items = kept.items;
    inner->nodes.count = kept.count;
    inner->nodes.capacity = kept.capacity;
    outer->nodes.items = order.items;
    outer->nodes.count = order.count;
    outer->nodes.capacity = order.capacity;
    return left.count;
}

/* Bodies before what they stand in. Nesting is bounded by the importer. */
static uint32_t hoist_within(struct hoister *hoister, region_id region)
{
    struct graph *graph = hoister->graph;
    uint32_t moved = 0;
    const uint32_t count = graph->regions.items[region].nodes.count;
    const node_id *nodes =
        graph->regions.items[region].nodes.items; /* a new list replaces it, and leaves it as it was */
    for (uint32_t n = 0; n < count; n++) {
        const node_id id = nodes[n];
        if (graph_node(graph, id)->removed)
            continue;
        for (uint32_t b = 0; b < graph_node(graph, id)->body_count; b++)
            moved += hoist_within(hoister, graph_node(graph, id)->bodies[b]);
        if (graph_node(graph, id)->op == OP_While)
            moved += hoist_from(hoister, id);
    }
    return moved;
}

bool pass_hoist(struct pass_context *context)
{
    struct hoister hoister = {
        .graph = context->graph,
        .inside = arena_new_array(context->scratch, bool, context->graph->values.count),
    };
    context->changes += hoist_within(&hoister, GRAPH_BODY);
    return true;
}

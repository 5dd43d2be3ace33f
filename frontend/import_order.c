/* Depth-first over the producers of each node's inputs, with a stack of its own. A model that is in order
 * already keeps its order, node by node. */
#include <string.h>

#include "frontend/importer.h"

enum { UNSEEN, OPEN, DONE };

struct step {
    uint32_t node;
    size_t next; /* input to look at */
};

struct order {
    struct importer *importer;
    struct import_scope *scope;
    Onnx__NodeProto *const *nodes;
    struct name_map producers;
    unsigned char *states;
    struct step *stack;
    uint32_t depth;
    bool cyclic;
};

static bool find_producers(struct order *order, size_t count)
{
    struct importer *importer = order->importer;
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < order->nodes[i]->n_output; k++) {
            const char *name = import_intern(importer, order->nodes[i]->output[k]);
            uint32_t number = i, value;
            if (!*name)
                continue;
            if (name_map_find(&order->scope->values, name, &value))
                good = import_fail(importer, DIAG_duplicate_name,
                                   import_location(importer, order->scope, order->nodes[i], i),
                                   "output %zu has the name %s, which an input or weight has", k,
                                   import_quote(importer, name));
            else if (!name_map_add(importer->arena, &order->producers, name, &number))
                good = import_fail(importer, DIAG_duplicate_name,
                                   import_location(importer, order->scope, order->nodes[i], i),
                                   "output %zu has the name %s, which node #%u gives to an output of its own",
                                   k, import_quote(importer, name), number);
        }
    return good;
}

/* The nodes of the circle, from the one that closes it. */
static void report_cycle(struct order *order, uint32_t node)
{
    struct importer *importer = order->importer;
    struct text text;
    text_init(&text, importer->diagnostics->arena);
    uint32_t shown = 0;
    for (uint32_t i = order->depth; i-- > 0;) {
        if (shown++ < 8)
            text_printf(&text, " <- #%u", order->stack[i].node);
        else if (shown == 9)
            text_put(&text, " <- ...");
        if (order->stack[i].node == node)
            break;
    }
    import_fail(importer, DIAG_cyclic_graph,
                import_location(importer, order->scope, order->nodes[node], node),
                "the node needs its own result: #%u%s", node, text.data);
    order->cyclic = true;
}

/* Takes one step for the innermost open node; true when it is done. */
static bool advance(struct order *order)
{
    struct step *top = &order->stack[order->depth - 1];
    const Onnx__NodeProto *node = order->nodes[top->node];
    while (top->next < node->n_input) {
        uint32_t producer;
        const char *name = import_intern(order->importer, node->input[top->next++]);
        if (!name_map_find(&order->producers, name, &producer) || order->states[producer] == DONE)
            continue;
        if (order->states[producer] == OPEN) {
            report_cycle(order, producer);
            continue;
        }
        order->states[producer] = OPEN;
        order->stack[order->depth++] = (struct step){producer, 0};
        return false;
    }
    order->states[top->node] = DONE;
    return true;
}

bool import_order(struct importer *importer, struct import_scope *scope, Onnx__NodeProto *const *nodes,
                  size_t count, uint32_t *sorted)
{
    struct order order = {.importer = importer, .scope = scope, .nodes = nodes};
    uint32_t done = 0;
    order.states = arena_new_array(importer->arena, unsigned char, count);
    order.stack = arena_new_array(importer->arena, struct step, count);
    if (!find_producers(&order, count))
        return false;
    for (uint32_t root = 0; root < count; root++) {
        if (order.states[root] != UNSEEN)
            continue;
        order.states[root] = OPEN;
        order.stack[order.depth++] = (struct step){root, 0};
        while (order.depth)
            if (advance(&order))
                sorted[done++] = order.stack[--order.depth].node;
    }
    return !order.cyclic;
}

/* Depth-first over the producers of each node's inputs, with a stack of its own. A model that is in order
 * already keeps its order, node by node. A control-flow node also needs the names that its bodies take from
 * around them. */
#include <string.h>

#include "frontend/importer.h"

enum { UNSEEN, OPEN, DONE };

struct step {
    uint32_t node;
    size_t next; /* input to look at, then name of its bodies */
};

/* Names that the bodies of a node take from around them. */
struct body_names {
    VEC(const char *) names;
};

/* A graph in a node's attribute, or in one of a node in it. */
struct body {
    const Onnx__GraphProto *graph;
    uint32_t outer; /* of `bodies`; UINT32_MAX: none */
    struct name_map defined;
};

struct body_walk {
    struct importer *importer;
    VEC(struct body) bodies; /* a body stands behind the one around it */
    struct body_names *out;
};

struct order {
    struct importer *importer;
    struct import_scope *scope;
    Onnx__NodeProto *const *nodes;
    struct body_names *bodies; /* [node] */
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

static void define(struct importer *importer, struct body *body, const char *name)
{
    uint32_t number = 0;
    (void)name_map_add(importer->arena, &body->defined, import_intern(importer, name), &number);
}

static void add_bodies(struct body_walk *walk, const Onnx__NodeProto *node, uint32_t outer)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            vec_push(walk->importer->arena, &walk->bodies,
                     ((struct body){node->attribute[i]->g, outer, {0}}));
}

static void use(struct body_walk *walk, uint32_t body, const char *text)
{
    uint32_t number;
    const char *name = import_intern(walk->importer, text);
    for (uint32_t at = body; at != UINT32_MAX; at = walk->bodies.items[at].outer)
        if (name_map_find(&walk->bodies.items[at].defined, name, &number))
            return;
    vec_push(walk->importer->arena, &walk->out->names, name);
}

/* What body `at` defines, and the bodies in it. */
static bool open_body(struct body_walk *walk, uint32_t at)
{
    const Onnx__GraphProto *graph = walk->bodies.items[at].graph;
    struct body *body = &walk->bodies.items[at];
    for (size_t i = 0; i < graph->n_input; i++)
        define(walk->importer, body, graph->input[i]->name);
    for (size_t i = 0; i < graph->n_initializer; i++)
        define(walk->importer, body, graph->initializer[i]->name);
    for (size_t n = 0; n < graph->n_node; n++) {
        if (!import_work(walk->importer, NULL, graph->node[n]->n_output + graph->node[n]->n_attribute))
            return false;
        for (size_t i = 0; i < graph->node[n]->n_output; i++)
            define(walk->importer, body, graph->node[n]->output[i]);
    }
    for (size_t n = 0; n < graph->n_node; n++)
        add_bodies(walk, graph->node[n], at); /* `body` may have moved */
    return import_work(walk->importer, NULL, graph->n_input + graph->n_initializer + graph->n_output);
}

static bool list_body_names(struct importer *importer, const Onnx__NodeProto *node, struct body_names *out)
{
    struct body_walk walk = {.importer = importer, .out = out};
    add_bodies(&walk, node, UINT32_MAX);
    for (uint32_t at = 0; at < walk.bodies.count; at++) {
        const Onnx__GraphProto *graph = walk.bodies.items[at].graph;
        if (!open_body(&walk, at))
            return false;
        for (size_t i = 0; i < graph->n_output; i++)
            use(&walk, at, graph->output[i]->name);
        for (size_t n = 0; n < graph->n_node; n++) {
            if (!import_work(importer, NULL, graph->node[n]->n_input))
                return false;
            for (size_t i = 0; i < graph->node[n]->n_input; i++)
                use(&walk, at, graph->node[n]->input[i]);
        }
    }
    return true;
}

static bool has_body(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            return true;
    return false;
}

/* Takes one step for the innermost open node; true when it is done. */
static bool advance(struct order *order)
{
    struct step *top = &order->stack[order->depth - 1];
    const Onnx__NodeProto *node = order->nodes[top->node];
    const struct body_names *bodies = &order->bodies[top->node];
    while (top->next < node->n_input + bodies->names.count) {
        uint32_t producer;
        const size_t at = top->next++;
        const char *name = at < node->n_input ? import_intern(order->importer, node->input[at])
                                              : bodies->names.items[at - node->n_input];
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
    order.bodies = arena_new_array(importer->arena, struct body_names, count);
    if (!find_producers(&order, count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (has_body(nodes[i]) && !list_body_names(importer, nodes[i], &order.bodies[i]))
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

/* Nodes with bodies in grouping: each is a unit that reads what its bodies read and merges with nothing; a
 * body is grouped by itself, as if the values around it came from elsewhere. */
#include "passes/group_units.h"

enum { OUTSIDE, READ, INSIDE };

struct walk {
    struct grouper *grouper;
    unsigned char *states; /* [value] */
    struct reads *out;
};

static void read_value(struct walk *walk, value_id value)
{
    if (!value || walk->states[value] != OUTSIDE)
        return;
    walk->states[value] = READ;
    vec_push(walk->grouper->arena, &walk->out->values, value);
}

static void read_size(void *user, value_id value)
{
    read_value(user, value);
}

/* Calls back for the values that hold sizes of its inputs, results and attributes. */
static void each_node_size(struct grouper *grouper, const struct node *node,
                           void (*visit)(void *user, value_id value), void *user)
{
    const struct graph *graph = grouper->graph;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const value_id id =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        const struct tensor_type *type = &graph_value(graph, id)->type;
        if (id && type->rank > 0)
            each_size(grouper, type->dims, (uint32_t)type->rank, visit, user);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].kind == ATTR_DIMS)
            each_size(grouper, node->attributes[i].dims, node->attributes[i].count, visit, user);
}

/* Definitions stand before uses, so one walk in order tells what comes from outside. Nesting is bounded by
 * the importer. */
static void walk_node(struct walk *walk, const struct node *node)
{
    const struct graph *graph = walk->grouper->graph;
    for (uint32_t i = 0; i < node->input_count; i++)
        read_value(walk, node->inputs[i]);
    each_node_size(walk->grouper, node, read_size, walk);
    for (uint32_t b = 0; b < node->body_count; b++) {
        const struct region *body = &graph->regions.items[node->bodies[b]];
        for (uint32_t i = 0; i < body->arguments.count; i++)
            walk->states[body->arguments.items[i]] = INSIDE;
        for (uint32_t n = 0; n < body->nodes.count; n++) {
            const struct node *inner = graph_node(graph, body->nodes.items[n]);
            if (inner->removed)
                continue;
            walk_node(walk, inner);
            for (uint32_t i = 0; i < inner->output_count; i++)
                walk->states[inner->outputs[i]] = INSIDE;
        }
        for (uint32_t i = 0; i < body->results.count; i++)
            read_value(walk, body->results.items[i]);
    }
}

struct plain_reads {
    struct grouper *grouper;
    struct reads *out;
};

static void read_once(void *user, value_id value)
{
    const struct plain_reads *plain = user;
    for (uint32_t i = 0; i < plain->out->values.count; i++)
        if (plain->out->values.items[i] == value)
            return;
    vec_push(plain->grouper->arena, &plain->out->values, value);
}

void node_reads(struct grouper *grouper, node_id id, struct reads *out)
{
    const struct node *node = graph_node(grouper->graph, id);
    *out = (struct reads){0};
    if (node->body_count) {
        struct walk walk = {.grouper = grouper, .out = out};
        walk.states = arena_new_array(grouper->arena, unsigned char, grouper->graph->values.count);
        walk_node(&walk, node);
        return;
    }
    struct plain_reads plain = {grouper, out};
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i])
            read_once(&plain, node->inputs[i]);
    each_node_size(grouper, node, read_once, &plain);
}

static void add_buffer(struct grouper *grouper, struct unit *unit, enum buffer_role role, value_id value)
{
    (void)definition_buffer(&unit->body, role, graph_value(grouper->graph, value)->type);
    vec_push(grouper->arena, &unit->values, value);
    vec_push(grouper->arena, &unit->used, true);
    vec_push(grouper->arena, &unit->loaded, true);
}

struct unit *unit_of_control(struct grouper *grouper, node_id id)
{
    const uint32_t bodies = graph_node(grouper->graph, id)->body_count;
    struct unit *unit = arena_new(grouper->arena, struct unit);
    struct reads reads;
    unit->kind = UNIT_CONTROL;
    unit->body.pool = grouper->pool;
    unit->bodies = arena_new_array(grouper->arena, struct grouping, bodies);
    node_reads(grouper, id, &reads);
    for (uint32_t i = 0; i < reads.values.count; i++)
        add_buffer(grouper, unit, BUFFER_INPUT, reads.values.items[i]);
    for (uint32_t i = 0; i < graph_node(grouper->graph, id)->output_count; i++)
        if (graph_node(grouper->graph, id)->outputs[i])
            add_buffer(grouper, unit, BUFFER_OUTPUT, graph_node(grouper->graph, id)->outputs[i]);
    bool done = true;
    for (uint32_t i = 0; i < bodies; i++)
        done &= group_region(grouper->graph, graph_node(grouper->graph, id)->bodies[i], grouper->services,
                             grouper->optimisation, grouper->diagnostics, &unit->bodies[i]);
    return done ? unit : NULL;
}

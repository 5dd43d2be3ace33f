/* Walks from constants to what they were made of, without recursion. */
#include "ir/provenance.h"

node_id constant_maker(const struct graph *graph, value_id value)
{
    const struct value *v = graph_value(graph, value);
    return v->kind == VALUE_RESULT ? v->producer : v->kind == VALUE_CONSTANT ? v->folded_by : 0;
}

bool constant_is_weight(const struct graph *graph, value_id value)
{
    const struct value *v = graph_value(graph, value);
    return v->kind == VALUE_CONSTANT && v->weight_name && *v->weight_name && !v->frozen;
}

static const char *reason_text(struct graph *graph, const struct location *location, const char *what)
{
    if (!location)
        return arena_printf(graph->arena, "its value decides %s", what);
    const char *op = location->op_type ? location->op_type : "node";
    if (location->name && *location->name)
        return arena_printf(graph->arena, "its value decides %s of node %s (%s #%u)", what, location->name,
                            op, location->number);
    return arena_printf(graph->arena, "its value decides %s of node %s #%u", what, op, location->number);
}

/* Contents flow through small tensors only, and not out of those that tell a size. */
static bool carries_contents(const struct graph *graph, const struct value *value)
{
    int64_t elements;
    const enum op op = graph_node(graph, value->producer)->op;
    return op != OP_Shape && op != OP_Size && op != OP_Dims && value->type.rank >= 0 &&
           tensor_constant_sizes(&graph->dims, &value->type, NULL, &elements) && elements <= MAX_CONTENTS;
}

void graph_freeze(struct graph *graph, value_id value, const struct location *location, const char *what)
{
    VEC(value_id) todo = {0};
    const char *reason = NULL;
    VEC(value_id) seen = {0}; /* those with a maker: few, since contents are small */
    if (!value)
        return;
    vec_push(graph->arena, &todo, value);
    while (todo.count) {
        const value_id id = todo.items[--todo.count];
        struct value *item = graph_value(graph, id);
        const node_id maker = constant_maker(graph, id);
        if (item->kind == VALUE_CONSTANT && item->weight_name && !item->frozen)
            item->frozen = reason ? reason : (reason = reason_text(graph, location, what));
        if (!maker || (item->kind == VALUE_RESULT && !carries_contents(graph, item)))
            continue;
        uint32_t known = 0;
        while (known < seen.count && seen.items[known] != id)
            known++;
        if (known < seen.count)
            continue;
        vec_push(graph->arena, &seen, id);
        const struct node *node = graph_node(graph, maker);
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i])
                vec_push(graph->arena, &todo, node->inputs[i]);
    }
}

void graph_freeze_inputs(struct graph *graph, node_id node, const char *what)
{
    for (uint32_t i = 0; i < graph_node(graph, node)->input_count; i++) {
        const struct node *n = graph_node(graph, node);
        graph_freeze(graph, n->inputs[i], n->location, what);
    }
}

void graph_record_fold(struct graph *graph, value_id value, node_id node)
{
    const struct node *n = graph_node(graph, node);
    bool constants_only = n->body_count == 0 && !(op_facts(n->op)->traits & OP_RANDOM);
    for (uint32_t i = 0; i < n->input_count && constants_only; i++)
        constants_only = !n->inputs[i] || graph_value(graph, n->inputs[i])->kind == VALUE_CONSTANT;
    if (constants_only)
        graph_value(graph, value)->folded_by = node;
    else if (n->op != OP_Shape && n->op != OP_Size)
        graph_freeze_inputs(graph, node, "the result");
}

enum { UNKNOWN, OPEN, STILL, VARIES };

/* All of the maker's inputs are settled, or are pushed: then false. */
static bool settle(const struct graph *graph, value_id id, unsigned char *states, struct arena *arena,
                   value_id **stack, uint32_t *count, uint32_t *capacity)
{
    const struct node *node = graph_node(graph, constant_maker(graph, id));
    bool waits = false, varies = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const value_id input = node->inputs[i];
        if (!input)
            continue;
        varies = varies || states[input] == VARIES;
        if (states[input] != UNKNOWN)
            continue;
        if (*count == *capacity) {
            value_id *grown = arena_new_array(arena, value_id, 2 * (size_t)*capacity);
            for (uint32_t k = 0; k < *count; k++)
                grown[k] = (*stack)[k];
            *stack = grown;
            *capacity *= 2;
        }
        (*stack)[(*count)++] = input;
        waits = true;
    }
    if (!waits)
        states[id] = varies ? VARIES : STILL;
    return !waits;
}

bool *varying_values(const struct graph *graph, struct arena *arena)
{
    unsigned char *states = arena_new_array(arena, unsigned char, graph->values.count);
    bool *flags = arena_new_array(arena, bool, graph->values.count);
    uint32_t count = 0, capacity = 64;
    value_id *stack = arena_new_array(arena, value_id, capacity);
    for (value_id v = 1; v < graph->values.count; v++) {
        stack[count++] = v;
        while (count) {
            const value_id id = stack[count - 1];
            if (states[id] == STILL || states[id] == VARIES) {
                count--;
            } else if (constant_is_weight(graph, id)) {
                states[id] = VARIES;
            } else if (!constant_maker(graph, id)) {
                states[id] = STILL;
            } else {
                const bool again = states[id] == OPEN;
                states[id] = OPEN;
                if (!settle(graph, id, states, arena, &stack, &count, &capacity) && again)
                    states[id] = STILL; /* a circle: no constant */
            }
        }
        flags[v] = states[v] == VARIES;
    }
    return flags;
}

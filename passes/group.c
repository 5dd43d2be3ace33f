/* Grouping: nodes become groups, each of which one strategy turns into kernels.
 *
 * Nodes are visited in order. Each becomes a unit and pulls its producers: views always, arithmetic where it
 * is computed once (group_pull.c). An elementwise unit is then pushed into the store of a contraction, of
 * rows or of another elementwise unit (group_push.c), but for one case: when its only reader is the next
 * elementwise node over the same domain, it waits to be pulled by it, so that a chain is pushed as a whole.
 *
 * Level 0: one node a group. Level 1: views are pulled. Level 2 and 3: all. Nodes that hang on constants
 * alone belong to the init program (ir/init.h) and are left out, as are nodes whose results nobody reads. A
 * Reshape of a stored value that cannot be pulled or pushed is a group that copies. Each region is grouped by
 * itself. */
#include "passes/group_units.h"

#include "ir/init.h"

static bool wanted(const struct grouper *grouper, const struct node *node)
{
    if (node->removed)
        return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] && !grouper->init[node->outputs[i]] &&
            (grouper->ahead[node->outputs[i]] || grouper->output[node->outputs[i]]))
            return true;
    return false;
}

static void mark_output(void *user, value_id value)
{
    struct grouper *grouper = user;
    grouper->output[value] = true;
}

/* Backwards: which nodes are needed, and how many of them read each value. */
static void find_readers(struct grouper *grouper)
{
    const struct graph *graph = grouper->graph;
    const struct region *body = &graph->regions.items[grouper->region];
    for (uint32_t i = 0; i < graph->outputs.count && grouper->region == GRAPH_BODY; i++) {
        const value_id output = graph->outputs.items[i].value;
        const struct tensor_type *type = &graph_value(graph, output)->type;
        grouper->output[output] = true;
        if (type->rank > 0) /* the host asks for the actual sizes */
            each_size(grouper, type->dims, (uint32_t)type->rank, mark_output, grouper);
    }
    for (uint32_t i = 0; i < body->results.count; i++)
        grouper->output[body->results.items[i]] = true;
    for (uint32_t i = body->nodes.count; i-- > 0;) {
        const node_id id = body->nodes.items[i];
        const struct node *node = graph_node(graph, id);
        if (!wanted(grouper, node))
            continue;
        grouper->position[id] = i + 1;
        struct reads reads;
        node_reads(grouper, id, &reads);
        for (uint32_t k = 0; k < reads.values.count; k++)
            if (!grouper->ahead[reads.values.items[k]]++)
                grouper->last_user[reads.values.items[k]] = id;
    }
}

/* Its only reader is an elementwise node over the same domain, which comes later and will pull it. */
static bool waits(const struct grouper *grouper, const struct unit *unit)
{
    const struct graph *graph = grouper->graph;
    if (unit->kind != UNIT_MAP || unit->body.nests.items[0].store_count != 1)
        return false;
    const value_id value = unit->values.items[unit->body.nests.items[0].stores[0].buffer];
    if (value_readers(grouper, value) != 1 || grouper->ahead[value] != 1)
        return false;
    const struct node *reader = graph_node(graph, grouper->last_user[value]);
    if (!(op_facts(reader->op)->traits & OP_POINTWISE) || reader->output_count != 1)
        return false;
    struct tensor_type result = graph_value(graph, reader->outputs[0])->type;
    result.dtype = graph_value(graph, value)->type.dtype;
    return tensor_type_same(&graph->dims, &graph_value(graph, value)->type, &result);
}

static bool visit(struct grouper *grouper, node_id id)
{
    struct reads reads;
    node_reads(grouper, id, &reads);
    for (uint32_t k = 0; k < reads.values.count; k++)
        grouper->ahead[reads.values.items[k]]--;
    struct unit *unit = unit_of_node(grouper, id);
    if (!unit)
        return false;
    if (grouper->optimisation == 0 || unit->kind == UNIT_CONTROL)
        return true;
    pull_producers(grouper, unit, grouper->optimisation < 2 || unit->view);
    if (grouper->optimisation >= 2 && !waits(grouper, unit) && !push_into_producer(grouper, unit))
        (void)append_to_rows(grouper, unit);
    return true;
}

/* What still has readers will be stored: views move into their producer's store or take a producer along. */
static void settle(struct grouper *grouper)
{
    for (uint32_t i = 0; i < grouper->units.count; i++) {
        struct unit *unit = grouper->units.items[i];
        if (unit->dead || unit->kind != UNIT_MAP)
            continue;
        if (unit->view && !push_view(grouper, unit))
            pull_producers(grouper, unit, false);
        else if (!unit->view && !push_into_producer(grouper, unit))
            (void)append_to_rows(grouper, unit);
    }
}

bool group_region(struct graph *graph, region_id region, const struct target_services *services,
                  int optimisation, struct diagnostics *diagnostics, struct grouping *out)
{
    struct arena *arena = graph->arena;
    const uint32_t values = graph->values.count;
    struct grouper grouper = {
        .graph = graph,
        .region = region,
        .arena = arena,
        .services = services,
        .diagnostics = diagnostics,
        .optimisation = optimisation,
        .pool = arena_new(arena, struct exprs),
        .init = init_values(graph, arena),
        .loads = arena_new_array(arena, uint32_t, values),
        .ahead = arena_new_array(arena, uint32_t, values),
        .last_user = arena_new_array(arena, node_id, values),
        .output = arena_new_array(arena, bool, values),
        .stored_by = arena_new_array(arena, struct unit *, values),
        .position = arena_new_array(arena, uint32_t, graph->nodes.count),
    };
    for (uint32_t i = 0; i < graph->dims.symbols.count; i++)
        grouper.has_words = grouper.has_words || graph->dims.symbols.items[i].source == SYMBOL_WORD;
    *out = (struct grouping){0};
    exprs_init(grouper.pool, arena, &graph->dims);
    find_readers(&grouper);
    const struct region *body = &graph->regions.items[region];
    bool done = true;
    for (uint32_t i = 0; i < body->nodes.count; i++)
        if (grouper.position[body->nodes.items[i]])
            done = visit(&grouper, body->nodes.items[i]) && done;
    if (!done)
        return false;
    if (optimisation >= 2)
        settle(&grouper);
    for (uint32_t i = grouper.units.count; i-- > 0;)
        unit_kill(&grouper, grouper.units.items[i]);
    emit_groups(&grouper, out);
    return true;
}

bool group_graph(struct graph *graph, const struct target_services *services, int optimisation,
                 struct diagnostics *diagnostics, struct grouping *out)
{
    return group_region(graph, GRAPH_BODY, services, optimisation, diagnostics, out);
}

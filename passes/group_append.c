/* Appending: an elementwise unit that spreads a row's result over the row again becomes one more nest of the
 * rows' group, as in a hand-written normalisation. The result need not be stored for others then.
 *
 *     nest [r]: m[r] = reduced(0) / n             nest [r]: m[r] = reduced(0) / n      (m is a temporary)
 *     y[r, i] = x[r, i] * m[r]              ->    nest [r, i]: y[r, i] = x[r, i] * m[r]
 */
#include "passes/group_units.h"

struct append {
    struct grouper *grouper;
    const struct unit *consumer;
    const uint32_t *buffers; /* of the consumer: their numbers in the merged unit */
    uint32_t buffer;         /* of the consumer: the rows' result */
    bool spreads;            /* along at least one axis */
    bool refused;
};

/* Every load of the result must be at the consumer's own axes, or at 0 where the result has size 1. */
static void check_load(void *user, const struct expr_node *load)
{
    struct append *append = user;
    const struct nest *nest = &append->consumer->body.nests.items[0];
    const struct exprs *pool = append->grouper->pool;
    if ((uint32_t)load->value != append->buffer)
        return;
    append->refused = append->refused || load->op != EXPR_LOAD || load->count != nest->rank;
    for (uint32_t k = 0; !append->refused && k < load->count; k++) {
        const struct expr_node *index = expr_at(pool, load->arguments[k]);
        int64_t constant;
        if (index->op == EXPR_AXIS && index->value == k)
            continue;
        if (!expr_constant_int(pool, load->arguments[k], &constant) || constant != 0)
            append->refused = true;
        else if (!dim_equals_constant(pool->dims, nest->extents[k], 1))
            append->spreads = true;
    }
}

/* The consumer's rows are as long as those that were reduced. */
static bool same_rows(struct grouper *grouper, const struct unit *rows, const struct unit *consumer)
{
    struct dims *dims = &grouper->graph->dims;
    const struct nest *last = &rows->body.nests.items[rows->body.nests.count - 1];
    const struct nest *own = &consumer->body.nests.items[0];
    dim reduced = dim_constant(dims, 1), domain = reduced;
    for (uint32_t i = 0; i < last->rank + last->reduce_rank; i++)
        reduced = dim_mul(dims, reduced, last->extents[i]);
    for (uint32_t i = 0; i < own->rank; i++)
        domain = dim_mul(dims, domain, own->extents[i]);
    return reduced && domain && dim_equal(dims, reduced, domain) == 1;
}

static expr rename_buffers(void *user, struct exprs *into, const struct expr_node *node,
                           const expr *arguments)
{
    const struct append *append = user;
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    struct expr_node renamed = *node;
    renamed.value = append->buffers[node->value];
    renamed.arguments = arguments;
    return expr_make(into, &renamed);
}

static struct unit *merge(struct append *append, const struct unit *rows)
{
    struct grouper *grouper = append->grouper;
    const struct unit *consumer = append->consumer;
    struct unit *merged = unit_clone(grouper, rows);
    const uint32_t count = consumer->body.buffers.count;
    uint32_t *buffers = arena_new_array(grouper->arena, uint32_t, count);
    for (uint32_t b = 0; b < count; b++) {
        if (!consumer->used.items[b])
            continue;
        buffers[b] = unit_buffer(grouper, merged, consumer->values.items[b]);
        if (consumer->body.buffers.items[b].role == BUFFER_OUTPUT)
            merged->body.buffers.items[buffers[b]].role = BUFFER_OUTPUT;
    }
    append->buffers = buffers;
    const struct nest *own = &consumer->body.nests.items[0];
    struct nest *nest = definition_nest(&merged->body, own->rank, own->extents, 0, NULL);
    for (uint32_t i = 0; i < own->store_count; i++) {
        const expr value =
            expr_rewrite(grouper->pool, grouper->pool, own->stores[i].value, rename_buffers, append);
        nest_store(&merged->body, nest, buffers[own->stores[i].buffer], NULL, value);
    }
    const uint32_t result = buffers[append->buffer];
    if (value_readers(grouper, merged->values.items[result]) == 1) {
        merged->body.buffers.items[result].role = BUFFER_TEMPORARY;
        merged->values.items[result] = 0;
    }
    unit_absorb_nodes(grouper, merged, consumer);
    if (consumer->first < merged->first)
        merged->first = consumer->first;
    if (consumer->last > merged->last)
        merged->last = consumer->last;
    return merged;
}

static bool try_append(struct grouper *grouper, struct unit *consumer, uint32_t buffer, struct unit *rows)
{
    const value_id value = consumer->values.items[buffer];
    const enum dtype dtype = graph_value(grouper->graph, value)->type.dtype;
    uint32_t nest = 0, store = 0;
    struct append append = {.grouper = grouper, .consumer = consumer, .buffer = buffer};
    if (rows->dead || rows->kind != UNIT_ROWS || rows->body.nests.count >= GROUP_NESTS ||
        compute_dtype(dtype) != dtype || !unit_store_of(rows, value, &nest, &store) ||
        nest + 1 != rows->body.nests.count || rows->body.nests.items[nest].reduction_count == 0)
        return false;
    each_unit_load(grouper, consumer, check_load, &append);
    if (append.refused || !append.spreads || !same_rows(grouper, rows, consumer) ||
        makes_cycle(grouper, consumer, rows))
        return false;
    struct unit *merged = merge(&append, rows);
    if (unit_buffers_used(grouper, merged) > GROUP_BUFFERS || merged->nodes.count > GROUP_NODES ||
        unit_needs_itself(grouper, merged) || !unit_fits(grouper, merged))
        return false;
    unit_commit(grouper, rows, merged);
    unit_kill(grouper, consumer);
    return true;
}

bool append_to_rows(struct grouper *grouper, struct unit *unit)
{
    if (unit->dead || unit->kind != UNIT_MAP || unit->view)
        return false;
    for (uint32_t i = 0; i < unit->body.nests.items[0].store_count; i++)
        if (unit->body.nests.items[0].stores[i].indices)
            return false;
    for (uint32_t b = 0; b < unit->body.buffers.count; b++) {
        if (!unit->loaded.items[b] || unit->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        struct unit *producer = grouper->stored_by[unit->values.items[b]];
        if (producer && producer != unit && try_append(grouper, unit, b, producer))
            return true;
    }
    return false;
}

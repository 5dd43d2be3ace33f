/* Pushing: an elementwise consumer joins the nest that stores its input, so that the value never leaves the
 * registers.
 *
 *     nest: v[i] = reduced(0)              nest: y[i] = relu(reduced(0) + b[i])
 *     y[i] = relu(v[i] + b[i])      ->
 *
 * v keeps its own store when others read it too. The consumer's axes become the indices at which v is stored,
 * and a load of v counts as the stored element exactly when its indices then are those. Views of transposes
 * and reshapes are pushed as store indices. */
#include "passes/group_units.h"

#include <string.h>

struct push {
    struct grouper *grouper;
    struct unit *consumer;
    struct unit *merged; /* the producer's clone */
    uint32_t nest;
    uint32_t rank;     /* of the stored value */
    const expr *at;    /* [rank]: where the element is stored */
    uint32_t *buffers; /* of the consumer: their numbers in the merged unit */
    expr *values;      /* of the consumer: what is stored instead of loaded, or 0 */
    bool refused;
};

/* ---- dependencies
 * ------------------------------------------------------------------------------------------------- */

/* Does `from` read, through any number of units, what `unit` stores? True also when that is not found out. */
static bool depends_on(struct grouper *grouper, const struct unit *from, const struct unit *unit)
{
    VEC(const struct unit *) todo = {0};
    vec_push(grouper->arena, &todo, from);
    for (uint32_t i = 0; i < todo.count; i++) {
        const struct unit *item = todo.items[i];
        if (item == unit || i >= CYCLE_VISITS)
            return true;
        for (uint32_t b = 0; b < item->body.buffers.count; b++) {
            if (!item->used.items[b] || item->body.buffers.items[b].role != BUFFER_INPUT)
                continue;
            const struct unit *producer = grouper->stored_by[item->values.items[b]];
            bool known = !producer || producer->last < unit->first;
            for (uint32_t k = 0; k < todo.count && !known; k++)
                known = todo.items[k] == producer;
            if (!known)
                vec_push(grouper->arena, &todo, producer);
        }
    }
    return false;
}

bool makes_cycle(struct grouper *grouper, const struct unit *consumer, const struct unit *producer)
{
    for (uint32_t b = 0; b < consumer->body.buffers.count; b++) {
        if (!consumer->used.items[b] || consumer->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        const struct unit *other = grouper->stored_by[consumer->values.items[b]];
        if (other && other != producer && other->last > producer->first &&
            depends_on(grouper, other, producer))
            return true;
    }
    return false;
}

/* ---- merging
 * ------------------------------------------------------------------------------------------------------ */

static expr push_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    struct push *push = user;
    if (node->op == EXPR_AXIS)
        return push->at[node->value];
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    const uint32_t buffer = (uint32_t)node->value;
    if (!push->values[buffer]) {
        struct expr_node renamed = *node;
        renamed.value = push->buffers[buffer];
        renamed.arguments = arguments;
        return expr_make(into, &renamed);
    }
    bool here = node->op == EXPR_LOAD && node->count == push->rank;
    for (uint32_t k = 0; here && k < push->rank; k++)
        here = arguments[k] == push->at[k];
    push->refused = push->refused || !here;
    return push->values[buffer];
}

static bool same_indices(const struct nest_store *a, const struct nest_store *b, uint32_t rank)
{
    if (!a->indices || !b->indices)
        return a->indices == b->indices;
    for (uint32_t k = 0; k < rank; k++)
        if (a->indices[k] != b->indices[k])
            return false;
    return true;
}

/* Where the store writes, as indices. */
static const expr *store_indices(struct grouper *grouper, const struct nest *nest,
                                 const struct nest_store *store)
{
    if (store->indices)
        return store->indices;
    expr *axes = arena_new_array(grouper->arena, expr, nest->rank);
    for (uint32_t k = 0; k < nest->rank; k++)
        axes[k] = expr_axis(grouper->pool, k, nest->extents[k]);
    return axes;
}

/* Each input of the consumer: an element stored by this very nest, or a buffer of the merged unit. */
static bool bind_inputs(struct push *push, const struct nest_store *store)
{
    const struct nest *nest = &push->merged->body.nests.items[push->nest];
    for (uint32_t b = 0; b < push->consumer->body.buffers.count; b++) {
        const value_id value = push->consumer->values.items[b];
        if (!push->consumer->used.items[b] || push->consumer->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        for (uint32_t i = 0; i < nest->store_count; i++) {
            const struct nest_store *other = &nest->stores[i];
            if (push->merged->values.items[other->buffer] != value)
                continue;
            if (!same_indices(store, other, push->rank))
                return false;
            push->values[b] = other->value;
        }
        if (!push->values[b])
            push->buffers[b] = unit_buffer(push->grouper, push->merged, value);
    }
    return true;
}

/* Stores that nobody reads once the consumer is merged go. (No nest loads what it stores.) */
static void drop_stores(struct push *push)
{
    struct grouper *grouper = push->grouper;
    struct nest *nest = &push->merged->body.nests.items[push->nest];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const value_id value = push->merged->values.items[nest->stores[i].buffer];
        bool read_by_consumer = false;
        for (uint32_t b = 0; b < push->consumer->body.buffers.count; b++)
            read_by_consumer = read_by_consumer || (push->values[b] && push->consumer->used.items[b] &&
                                                    push->consumer->values.items[b] == value);
        uint32_t readers = value ? value_readers(grouper, value) : 1;
        if (read_by_consumer && readers)
            readers--;
        if (readers)
            nest->stores[kept++] = nest->stores[i];
    }
    nest->store_count = kept;
}

static uint32_t add_output(struct grouper *grouper, struct unit *unit, value_id value)
{
    const uint32_t buffer =
        definition_buffer(&unit->body, BUFFER_OUTPUT,
                          storage_type(&grouper->graph->dims, grouper->arena, &graph_value(grouper->graph, value)->type));
    vec_push(grouper->arena, &unit->values, value);
    vec_push(grouper->arena, &unit->used, true);
    vec_push(grouper->arena, &unit->loaded, true);
    return buffer;
}

/* The merged unit is worth having; then it takes the producer's place and the consumer dies. */
static bool finish(struct push *push, struct unit *producer)
{
    struct grouper *grouper = push->grouper;
    struct unit *merged = push->merged, *consumer = push->consumer;
    drop_stores(push);
    unit_absorb_nodes(grouper, merged, consumer);
    if (consumer->first < merged->first)
        merged->first = consumer->first;
    if (consumer->last > merged->last)
        merged->last = consumer->last;
    if (merged->body.nests.items[push->nest].store_count > GROUP_STORES ||
        unit_buffers_used(grouper, merged) > GROUP_BUFFERS || merged->nodes.count > GROUP_NODES ||
        unit_cost(grouper, merged) > GROUP_COST || unit_needs_itself(grouper, merged))
        return false;
    if (unit_fits(grouper, producer) && !unit_fits(grouper, merged))
        return false;
    unit_commit(grouper, producer, merged);
    unit_kill(grouper, consumer);
    return true;
}

/* The nest and store of the producer that a consumer may join. */
static bool can_join(const struct unit *producer, value_id value, uint32_t *nest, uint32_t *store)
{
    return !producer->dead && producer->kind != UNIT_OTHER && unit_store_of(producer, value, nest, store) &&
           *nest + 1 == producer->body.nests.count;
}

static bool same_extents(struct grouper *grouper, const struct nest *nest, const struct tensor_type *type)
{
    if ((int)nest->rank != type->rank)
        return false;
    for (uint32_t k = 0; k < nest->rank; k++)
        if (dim_equal(&grouper->graph->dims, nest->extents[k], type->dims[k]) != 1)
            return false;
    return true;
}

static bool try_push(struct grouper *grouper, struct unit *consumer, struct unit *producer, value_id value)
{
    uint32_t nest_number = 0, store_number = 0;
    const struct nest *own = &consumer->body.nests.items[0];
    if (!can_join(producer, value, &nest_number, &store_number) ||
        !same_extents(grouper, own, &graph_value(grouper->graph, value)->type) ||
        makes_cycle(grouper, consumer, producer))
        return false;
    const uint32_t count = consumer->body.buffers.count;
    struct push push = {
        .grouper = grouper,
        .consumer = consumer,
        .merged = unit_clone(grouper, producer),
        .nest = nest_number,
        .rank = own->rank,
        .buffers = arena_new_array(grouper->arena, uint32_t, count),
        .values = arena_new_array(grouper->arena, expr, count),
    };
    struct nest *nest = &push.merged->body.nests.items[nest_number];
    const struct nest_store store = nest->stores[store_number];
    push.at = store_indices(grouper, nest, &store);
    if (!bind_inputs(&push, &store))
        return false;
    for (uint32_t i = 0; i < own->store_count; i++) {
        const expr joined =
            expr_rewrite(grouper->pool, grouper->pool, own->stores[i].value, push_leaf, &push);
        if (push.refused)
            return false;
        const uint32_t buffer =
            add_output(grouper, push.merged, consumer->values.items[own->stores[i].buffer]);
        nest = &push.merged->body.nests.items[nest_number];
        nest_store(&push.merged->body, nest, buffer, store.indices, joined);
    }
    return finish(&push, producer);
}

/* Contractions and rows first, the latest of them: what the others compute is there by then. */
static bool better(const struct unit *a, const struct unit *b)
{
    if (!b)
        return true;
    if ((a->kind == UNIT_MAP) != (b->kind == UNIT_MAP))
        return b->kind == UNIT_MAP;
    return a->last > b->last;
}

bool push_into_producer(struct grouper *grouper, struct unit *unit)
{
    if (unit->dead || unit->kind != UNIT_MAP || unit->view)
        return false;
    for (uint32_t i = 0; i < unit->body.nests.items[0].store_count; i++)
        if (unit->body.nests.items[0].stores[i].indices)
            return false;
    const struct unit *tried[GROUP_BUFFERS] = {0};
    for (uint32_t attempt = 0; attempt < GROUP_BUFFERS; attempt++) {
        struct unit *best = NULL;
        value_id value = 0;
        for (uint32_t b = 0; b < unit->body.buffers.count; b++) {
            if (!unit->loaded.items[b] || unit->body.buffers.items[b].role != BUFFER_INPUT)
                continue;
            struct unit *producer = grouper->stored_by[unit->values.items[b]];
            bool skip = !producer || producer == unit || producer->view;
            for (uint32_t k = 0; k < attempt && !skip; k++)
                skip = tried[k] == producer;
            if (!skip && better(producer, best)) {
                best = producer;
                value = unit->values.items[b];
            }
        }
        if (!best)
            return false;
        if (try_push(grouper, unit, best, value))
            return true;
        tried[attempt] = best;
    }
    return false;
}

/* ---- views
 * -------------------------------------------------------------------------------------------------------- */

enum { VIEW_CHAIN = 16 };

/* The nodes from `value` to `result`, first to last; 0 when they are not all views that this file can invert.
 */
static uint32_t view_chain(const struct grouper *grouper, value_id value, value_id result,
                           node_id chain[VIEW_CHAIN])
{
    uint32_t count = 0;
    while (result != value) {
        const struct value *item = graph_value(grouper->graph, result);
        if (count == VIEW_CHAIN || item->kind != VALUE_RESULT)
            return 0;
        const struct node *node = graph_node(grouper->graph, item->producer);
        if (node->op != OP_Transpose && node->op != OP_Reshape && node->op != OP_DepthToSpace)
            return 0;
        chain[count++] = item->producer;
        result = node->inputs[0];
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        const node_id first = chain[i];
        chain[i] = chain[count - 1 - i];
        chain[count - 1 - i] = first;
    }
    return count;
}

/* Channel c * B * B + p * B + q ("CRD") or (p * B + q) * C + c goes to channel c, row h * B + p, column w * B
 * + q. */
static const expr *depth_to_space(struct grouper *grouper, const struct node *node, const expr *at)
{
    struct exprs *pool = grouper->pool;
    const expr side = expr_index(pool, node_int(node, ATTR_blocksize, 1));
    const expr area = expr_binary(pool, EXPR_MUL, side, side);
    const expr channels = expr_dim(pool, graph_value(grouper->graph, node->outputs[0])->type.dims[1]);
    const bool channel_first = strcmp(node_word(node, ATTR_mode, "DCR"), "CRD") == 0;
    const expr place = expr_binary(pool, channel_first ? EXPR_INDEX_MOD : EXPR_INDEX_DIV, at[1],
                                   channel_first ? area : channels);
    const expr row = expr_binary(pool, EXPR_INDEX_DIV, place, side);
    const expr column = expr_binary(pool, EXPR_INDEX_MOD, place, side);
    expr *moved = arena_new_array(grouper->arena, expr, 4);
    moved[0] = at[0];
    moved[1] = expr_binary(pool, channel_first ? EXPR_INDEX_DIV : EXPR_INDEX_MOD, at[1],
                           channel_first ? area : channels);
    moved[2] = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, at[2], side), row);
    moved[3] = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, at[3], side), column);
    return moved;
}

/* Where an element of the node's input stands in its result. */
static const expr *move_through(struct grouper *grouper, node_id id, const expr *at)
{
    struct exprs *pool = grouper->pool;
    const struct node *node = graph_node(grouper->graph, id);
    const struct tensor_type *from = &graph_value(grouper->graph, node->inputs[0])->type;
    const struct tensor_type *to = &graph_value(grouper->graph, node->outputs[0])->type;
    const uint32_t rank = (uint32_t)to->rank;
    if (node->op == OP_DepthToSpace)
        return depth_to_space(grouper, node, at);
    expr *moved = arena_new_array(grouper->arena, expr, rank);
    if (node->op == OP_Transpose) {
        const struct attribute *perm = node_attribute(node, ATTR_perm);
        for (uint32_t k = 0; k < rank; k++)
            moved[k] = at[perm ? (uint32_t)perm->integers[k] : rank - 1 - k];
        return moved;
    }
    expr flat = flat_index(pool, from, at);
    uint32_t first = 0;
    for (; first < rank && dim_equals_constant(pool->dims, to->dims[first], 1); first++)
        moved[first] = expr_index(pool, 0);
    for (uint32_t k = rank; k-- > first;) {
        const expr extent = expr_dim(pool, to->dims[k]);
        moved[k] = k == first ? flat : expr_binary(pool, EXPR_INDEX_MOD, flat, extent);
        flat = k == first ? flat : expr_binary(pool, EXPR_INDEX_DIV, flat, extent);
    }
    return moved;
}

bool push_view(struct grouper *grouper, struct unit *view)
{
    if (view->dead || !view->view)
        return false;
    const struct nest_store *own = &view->body.nests.items[0].stores[0];
    const value_id result = view->values.items[own->buffer];
    const value_id value = view->values.items[expr_at(grouper->pool, own->value)->value];
    struct unit *producer = grouper->stored_by[value];
    node_id chain[VIEW_CHAIN];
    uint32_t nest_number = 0, store_number = 0;
    const uint32_t links = view_chain(grouper, value, result, chain);
    if (!links || !producer || producer->kind == UNIT_MAP ||
        !can_join(producer, value, &nest_number, &store_number))
        return false;
    struct push push = {
        .grouper = grouper,
        .consumer = view,
        .merged = unit_clone(grouper, producer),
        .nest = nest_number,
        .values = arena_new_array(grouper->arena, expr, view->body.buffers.count),
    };
    struct nest *nest = &push.merged->body.nests.items[nest_number];
    const struct nest_store store = nest->stores[store_number];
    push.at = store_indices(grouper, nest, &store);
    for (uint32_t b = 0; b < view->body.buffers.count; b++)
        if (view->values.items[b] == value && view->body.buffers.items[b].role == BUFFER_INPUT)
            push.values[b] = store.value;
    for (uint32_t i = 0; i < links; i++)
        push.at = move_through(grouper, chain[i], push.at);
    const uint32_t buffer = add_output(grouper, push.merged, result);
    nest = &push.merged->body.nests.items[nest_number];
    nest_store(&push.merged->body, nest, buffer, push.at, store.value);
    return finish(&push, producer);
}

/* Values that are stored twice: a nest that stores the same element at the same place of two buffers, one for
 * those who read the value and one for those who read its reshape.
 *
 *     %1[i, j] = e,  %2[4 * i + j] = e      ->      %1[i, j] = e,  and %2 is another name of %1
 *
 * An output of the graph keeps its own store: it is the caller's memory. */
#include "passes/group_units.h"

static expr flat_store(struct grouper *grouper, const struct unit *unit, const struct nest *nest,
                       const struct nest_store *store)
{
    expr axes[MAX_AXES];
    for (uint32_t k = 0; k < nest->rank; k++)
        axes[k] = expr_axis(grouper->pool, k, nest->extents[k]);
    return flat_index(grouper->pool, &unit->body.buffers.items[store->buffer].type,
                      store->indices ? store->indices : axes);
}

static bool same_elements(struct grouper *grouper, const struct unit *unit, const struct nest *nest,
                          const struct nest_store *a, const struct nest_store *b)
{
    struct dims *dims = &grouper->graph->dims;
    const struct tensor_type *left = &unit->body.buffers.items[a->buffer].type;
    const struct tensor_type *right = &unit->body.buffers.items[b->buffer].type;
    return a->value == b->value && left->dtype == right->dtype &&
           dim_equal(dims, tensor_elements(dims, left), tensor_elements(dims, right)) == 1 &&
           expr_index_equal(grouper->pool, flat_store(grouper, unit, nest, a),
                            flat_store(grouper, unit, nest, b));
}

struct search {
    uint32_t buffer;
    bool found;
};

static void compare_load(void *user, const struct expr_node *load)
{
    struct search *search = user;
    search->found = search->found || (uint32_t)load->value == search->buffer;
}

/* A value of the graph that this store alone writes and that no nest of the unit reads; 0: none. */
static value_id lone_value(struct grouper *grouper, const struct unit *unit, const struct nest_store *store)
{
    uint32_t nest, position;
    struct search search = {.buffer = store->buffer};
    const value_id value = unit->values.items[store->buffer];
    if (!value || unit->body.buffers.items[store->buffer].role != BUFFER_OUTPUT ||
        !unit_store_of(unit, value, &nest, &position))
        return 0;
    each_unit_load(grouper, unit, compare_load, &search);
    return search.found ? 0 : value;
}

/* Drops one of the two stores. */
static bool drop_one(struct grouper *grouper, struct grouping *out, const struct unit *unit,
                     struct nest *nest, uint32_t i, uint32_t k)
{
    const value_id first = lone_value(grouper, unit, &nest->stores[i]);
    const value_id second = lone_value(grouper, unit, &nest->stores[k]);
    if (!first || !second || (grouper->output[first] && grouper->output[second]))
        return false;
    const uint32_t dropped = grouper->output[second] ? i : k;
    const struct value_view view = {.value = dropped == k ? second : first,
                                    .of = dropped == k ? first : second};
    vec_push(grouper->graph->arena, &out->views, view);
    for (uint32_t s = dropped; s + 1 < nest->store_count; s++)
        nest->stores[s] = nest->stores[s + 1];
    nest->store_count--;
    return true;
}

void drop_doubled_stores(struct grouper *grouper, struct unit *unit, struct grouping *out)
{
    for (uint32_t n = 0; n < unit->body.nests.count; n++) {
        struct nest *nest = &unit->body.nests.items[n];
        for (uint32_t i = 0; i < nest->store_count; i++)
            for (uint32_t k = i + 1; k < nest->store_count; k++)
                if (same_elements(grouper, unit, nest, &nest->stores[i], &nest->stores[k]) &&
                    drop_one(grouper, out, unit, nest, i, k)) {
                    i = UINT32_MAX; /* from the begin: the list has changed */
                    break;
                }
    }
}

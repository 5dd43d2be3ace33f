/* Pulling: the expression of an elementwise producer takes the place of its consumer's loads, at the indices
 * of each load. Views are always worth it; arithmetic only where it is computed once, or costs next to
 * nothing.
 *
 *     y[i, j] = x[j, i];  z[i, j] = exp(y[i, j])          ->     z[i, j] = exp(x[j, i])
 *
 * A pull never makes a cycle: the consumer comes to depend on what it depended on before. */
#include "passes/group_units.h"

struct pull {
    struct grouper *grouper;
    const struct unit *producer;
    struct unit *consumer;   /* the clone that is rewritten */
    expr value;              /* the producer's */
    const uint32_t *buffers; /* of the producer: their numbers in the consumer */
    uint32_t buffer;         /* of the consumer: whose loads are replaced */
    bool guard;              /* write loads as LOAD_OR: their indices may be out of range */
    const expr *indices;     /* of the load that is being replaced */
    uint32_t unsafe;         /* axes of the view that may leave their extents there */
    bool clamp;              /* an unsafe axis is divided */
    bool refused;
};

/* ---- substitution
 * ------------------------------------------------------------------------------------------------- */

static expr zero_of(struct exprs *pool, enum dtype dtype)
{
    const struct expr_node node = {.op = EXPR_CONSTANT, .dtype = dtype, .lanes = 1};
    return expr_make(pool, &node);
}

/* Leaves of the producer's expression. */
static expr producer_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    const struct pull *pull = user;
    if (node->op == EXPR_AXIS)
        return pull->indices[node->value];
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    const uint32_t buffer = pull->buffers[node->value];
    if (node->op == EXPR_LOAD && !pull->guard)
        return expr_load(into, buffer, node->dtype, node->count, arguments);
    if (node->op == EXPR_LOAD)
        return expr_load_or(into, buffer, node->dtype, node->count, arguments, zero_of(into, node->dtype));
    return expr_load_or(into, buffer, node->dtype, node->count - 1u, arguments, arguments[node->count - 1]);
}

static expr inline_at(struct pull *pull, const expr *indices, bool guard)
{
    pull->indices = indices;
    pull->guard = guard;
    return expr_rewrite(pull->grouper->pool, pull->grouper->pool, pull->value, producer_leaf, pull);
}

/* The view only permutes axes: an index is out of range of the view exactly when it is out of range of its
 * input. Axes of size 1 do not count as permuted, so the consumer must use them at 0. */
static bool is_permutation(const struct pull *pull, const expr *indices)
{
    const struct exprs *pool = pull->grouper->pool;
    const struct expr_node *load = expr_at(pool, pull->value);
    const struct nest *nest = &pull->producer->body.nests.items[0];
    const struct tensor_type *input = &pull->producer->body.buffers.items[load->value].type;
    uint32_t seen = 0;
    if (!pull->producer->view)
        return false;
    for (uint32_t k = 0; k < load->count; k++) {
        const struct expr_node *index = expr_at(pool, load->arguments[k]);
        int64_t constant;
        if (index->op == EXPR_AXIS && !(seen >> index->value & 1) &&
            dim_equal(pool->dims, nest->extents[index->value], input->dims[k]) == 1)
            seen |= UINT32_C(1) << index->value;
        else if (!expr_constant_int(pool, load->arguments[k], &constant) || constant != 0)
            return false;
    }
    for (uint32_t axis = 0; axis < nest->rank; axis++) {
        int64_t constant;
        if (!(seen >> axis & 1) && (!expr_constant_int(pool, indices[axis], &constant) || constant != 0))
            return false;
    }
    return true;
}

/* Axes of the view that the load takes out of their extents, as bits. */
static uint32_t unsafe_axes(const struct pull *pull, const struct tensor_type *type, const expr *indices)
{
    const struct exprs *pool = pull->grouper->pool;
    uint32_t axes = 0;
    for (int k = 0; k < type->rank; k++) {
        const struct expr_node *index = expr_at(pool, indices[k]);
        if (index->op != EXPR_AXIS || dim_equal(pool->dims, index->extent, type->dims[k]) != 1)
            axes |= UINT32_C(1) << k;
    }
    return axes;
}

static expr replace_unsafe(void *user, struct exprs *into, const struct expr_node *node,
                           const expr *arguments)
{
    const struct pull *pull = user;
    (void)arguments;
    return node->op == EXPR_AXIS && (pull->unsafe >> node->value & 1) ? expr_index(into, 0) : 0;
}

/* Divisions of indices are defined for axes within their extents only: an unsafe axis that takes part in one
 * must be clamped. (The loads are guarded in any case.) */
static void check_indices(void *user, const struct expr_node *load)
{
    struct pull *pull = user;
    struct exprs *pool = pull->grouper->pool;
    struct affine affine;
    const struct expr_node node = *load; /* the pool grows */
    const uint32_t rank = node.op == EXPR_LOAD_OR ? node.count - 1u : node.count;
    for (uint32_t i = 0; i < rank; i++)
        if (!expr_affine(pool, node.arguments[i], MAX_AXES, &affine) &&
            expr_rewrite(pool, pool, node.arguments[i], replace_unsafe, pull) != node.arguments[i])
            pull->clamp = true;
}

/* Unsafe indices moved to the nearest place within the extent; 0 where the extent is 0. */
static void clamp_indices(struct pull *pull, const struct tensor_type *type, const expr *indices,
                          expr *clamped)
{
    struct exprs *pool = pull->grouper->pool;
    const expr zero = expr_index(pool, 0);
    for (int k = 0; k < type->rank; k++) {
        clamped[k] = indices[k];
        if (!(pull->unsafe >> k & 1))
            continue;
        const expr last = expr_binary(pool, EXPR_SUB, expr_dim(pool, type->dims[k]), expr_index(pool, 1));
        clamped[k] = expr_binary(pool, EXPR_MAX, expr_binary(pool, EXPR_MIN, indices[k], last), zero);
    }
}

static expr in_range(struct exprs *pool, const struct tensor_type *type, const expr *indices)
{
    expr condition = 0;
    for (int k = 0; k < type->rank; k++) {
        const struct expr_node *index = expr_at(pool, indices[k]);
        if (index->op == EXPR_AXIS && dim_equal(pool->dims, index->extent, type->dims[k]) == 1)
            continue;
        const expr not_below = expr_binary(pool, EXPR_LESS_EQUAL, expr_index(pool, 0), indices[k]);
        const expr below = expr_binary(pool, EXPR_LESS, indices[k], expr_dim(pool, type->dims[k]));
        const expr both = expr_binary(pool, EXPR_AND, not_below, below);
        condition = condition ? expr_binary(pool, EXPR_AND, condition, both) : both;
    }
    return condition;
}

static expr inline_load_or(struct pull *pull, struct exprs *into, const struct expr_node *node,
                           const expr *arguments)
{
    const struct expr_node *value = expr_at(into, pull->value);
    const expr otherwise = arguments[node->count - 1];
    if (is_permutation(pull, arguments)) {
        expr indices[MAX_RANK];
        for (uint32_t k = 0; k < value->count; k++) {
            const struct expr_node *index = expr_at(into, value->arguments[k]);
            indices[k] = index->op == EXPR_AXIS ? arguments[index->value] : value->arguments[k];
        }
        return expr_load_or(into, pull->buffers[value->value], node->dtype, value->count, indices, otherwise);
    }
    if (pull->consumer->kind != UNIT_MAP) {
        pull->refused = true;
        return 0;
    }
    const struct tensor_type *type = &pull->consumer->body.buffers.items[pull->buffer].type;
    expr clamped[MAX_RANK];
    pull->unsafe = unsafe_axes(pull, type, arguments);
    pull->clamp = false;
    each_load(pull->grouper, pull->value, check_indices, pull);
    if (pull->clamp)
        clamp_indices(pull, type, arguments, clamped);
    const expr inside = inline_at(pull, pull->clamp ? clamped : arguments, true);
    const expr condition = in_range(into, type, arguments);
    return condition ? expr_select(into, condition, inside, otherwise) : inside;
}

static expr consumer_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    struct pull *pull = user;
    if ((node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR) || node->value != pull->buffer || pull->refused)
        return 0;
    if (node->op == EXPR_LOAD)
        return inline_at(pull, arguments, false);
    return inline_load_or(pull, into, node, arguments);
}

/* The consumer with the producer in it, or NULL. */
static struct unit *substitute(struct grouper *grouper, const struct unit *consumer, uint32_t buffer,
                               const struct unit *producer)
{
    struct pull pull = {
        .grouper = grouper,
        .producer = producer,
        .consumer = unit_clone(grouper, consumer),
        .value = producer->body.nests.items[0].stores[0].value,
        .buffer = buffer,
    };
    uint32_t *buffers = arena_new_array(grouper->arena, uint32_t, producer->body.buffers.count);
    for (uint32_t b = 0; b < producer->body.buffers.count; b++)
        if (producer->used.items[b] && producer->body.buffers.items[b].role == BUFFER_INPUT)
            buffers[b] = unit_buffer(grouper, pull.consumer, producer->values.items[b]);
    pull.buffers = buffers;
    unit_rewrite(grouper, pull.consumer, consumer_leaf, &pull);
    if (pull.refused)
        return NULL;
    unit_absorb_nodes(grouper, pull.consumer, producer);
    if (producer->first < pull.consumer->first)
        pull.consumer->first = producer->first;
    return pull.consumer;
}

/* ---- is it worth it?
 * ---------------------------------------------------------------------------------------------- */

static dim elements_of(struct grouper *grouper, const struct unit *unit, uint32_t nest)
{
    struct dims *dims = &grouper->graph->dims;
    dim elements = dim_constant(dims, 1);
    for (uint32_t i = 0; i < unit->body.nests.items[nest].rank + unit->body.nests.items[nest].reduce_rank;
         i++)
        elements = dim_mul(dims, elements, unit->body.nests.items[nest].extents[i]);
    return elements;
}

/* Computing it again in every consumer reads no more memory than loading the result. */
static bool is_cheap_copy(struct grouper *grouper, const struct unit *producer)
{
    struct dims *dims = &grouper->graph->dims;
    const dim result = elements_of(grouper, producer, 0);
    if (unit_cost(grouper, producer) > COPY_COST || !result)
        return false;
    for (uint32_t b = 0; b < producer->body.buffers.count; b++) {
        if (!producer->loaded.items[b] || producer->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        const dim input = tensor_elements(dims, &producer->body.buffers.items[b].type);
        if (!input || dim_less(dims, result, input) != 0)
            return false;
    }
    return true;
}

static bool same_domain(struct grouper *grouper, const struct unit *consumer, const struct unit *producer)
{
    const dim produced = elements_of(grouper, producer, 0);
    for (uint32_t n = 0; n < consumer->body.nests.count; n++) {
        const dim consumed = elements_of(grouper, consumer, n);
        if (!consumed || !produced || dim_equal(&grouper->graph->dims, consumed, produced) != 1)
            return false;
    }
    return true;
}

/* Arithmetic: by what it costs and how often it would be computed. */
static bool arithmetic_is_worth_it(struct grouper *grouper, const struct unit *consumer, value_id value,
                                   const struct unit *producer)
{
    const uint32_t cost = unit_cost(grouper, producer);
    if (value_readers(grouper, value) > 1)
        return consumer->kind == UNIT_MAP && !consumer->view && is_cheap_copy(grouper, producer);
    switch (consumer->kind) {
    case UNIT_MAP:
        return cost + unit_cost(grouper, consumer) <= GROUP_COST &&
               (cost <= BROADCAST_COST || same_domain(grouper, consumer, producer));
    case UNIT_ROWS:
        return cost <= ROWS_PROLOGUE && (cost <= BROADCAST_COST || same_domain(grouper, consumer, producer));
    case UNIT_CONTRACTION:
        return cost <= FACTOR_PROLOGUE;
    default:
        return false;
    }
}

static bool factors_are_affine(struct grouper *grouper, const struct unit *unit)
{
    struct contraction contraction;
    struct text why;
    struct affine affine;
    text_init(&why, grouper->arena);
    if (!find_contraction(&unit->body, 0, &contraction, &why))
        return false;
    const struct nest *nest = &unit->body.nests.items[0];
    const expr loads[2] = {contraction.left_load, contraction.right_load};
    for (uint32_t i = 0; i < 2; i++) {
        const struct expr_node load = *expr_at(grouper->pool, loads[i]);
        const uint32_t rank = load.op == EXPR_LOAD_OR ? load.count - 1u : load.count;
        for (uint32_t k = 0; k < rank; k++)
            if (!expr_affine(grouper->pool, load.arguments[k], nest->rank + nest->reduce_rank, &affine))
                return false;
    }
    return true;
}

/* What came out can still be built well. */
static bool result_is_good(struct grouper *grouper, struct unit *consumer, struct unit *changed, bool view)
{
    if (unit_buffers_used(grouper, changed) > GROUP_BUFFERS || changed->nodes.count > GROUP_NODES ||
        unit_cost(grouper, changed) > GROUP_COST)
        return false;
    const enum unit_kind kind = consumer->kind;
    unit_classify(grouper, changed);
    if (changed->kind != kind)
        return false;
    if (kind == UNIT_CONTRACTION && !factors_are_affine(grouper, changed))
        return false;
    if (kind == UNIT_MAP || kind == UNIT_OTHER)
        return true;
    return unit_fits(grouper, consumer) ? unit_fits(grouper, changed) : view;
}

static bool try_pull(struct grouper *grouper, struct unit *consumer, uint32_t buffer, struct unit *producer,
                     bool views_only)
{
    const value_id value = consumer->values.items[buffer];
    if (producer->kind != UNIT_MAP) /* a node with bodies has no nest */
        return false;
    const struct nest *nest = &producer->body.nests.items[0];
    if (nest->store_count != 1 || nest->stores[0].indices)
        return false;
    if (!producer->view && (views_only || !arithmetic_is_worth_it(grouper, consumer, value, producer)))
        return false;
    struct unit *changed = substitute(grouper, consumer, buffer, producer);
    if (!changed || !result_is_good(grouper, consumer, changed, producer->view))
        return false;
    unit_commit(grouper, consumer, changed);
    return true;
}

/* Neighbours along the view's last axis are neighbours in its input. */
static bool keeps_last_axis(struct grouper *grouper, const struct unit *view)
{
    const struct expr_node load = *expr_at(grouper->pool, view->body.nests.items[0].stores[0].value);
    const uint32_t rank = view->body.nests.items[0].rank;
    struct affine affine;
    int64_t step;
    return load.count > 0 && rank > 0 &&
           expr_affine(grouper->pool, load.arguments[load.count - 1], rank, &affine) &&
           expr_constant_int(grouper->pool, affine.coefficients[rank - 1], &step) && step == 1;
}

/* A view that a contraction has just stored is better written in the view's order when that lets an
 * elementwise consumer join the contraction, and when rows would else be read across memory, several times.
 */
static bool store_through_view(struct grouper *grouper, const struct unit *consumer, value_id value,
                               struct unit *producer)
{
    if (grouper->optimisation < 2 || !producer->view || value_readers(grouper, value) != 1)
        return false;
    const bool joins =
        consumer->kind == UNIT_MAP && !consumer->view && same_domain(grouper, consumer, producer);
    const bool strides = consumer->kind == UNIT_ROWS && !keeps_last_axis(grouper, producer);
    return (joins || strides) && push_view(grouper, producer);
}

void pull_producers(struct grouper *grouper, struct unit *unit, bool views_only)
{
    for (uint32_t b = 0; b < unit->body.buffers.count; b++) {
        if (unit->body.buffers.items[b].role != BUFFER_INPUT || !unit->loaded.items[b])
            continue;
        const value_id value = unit->values.items[b];
        struct unit *producer = grouper->stored_by[value];
        if (!producer || producer == unit || store_through_view(grouper, unit, value, producer))
            continue;
        (void)try_pull(grouper, unit, b, producer, views_only);
    }
}

/* Units and their bookkeeping: how a node becomes one, how changes are taken over, what it looks like as a
 * group. Decides nothing: that is group.c, group_pull.c and group_push.c. */
#include "passes/group_units.h"

#include "ir/expr_eval.h"
#include "ir/provenance.h"

#include <string.h>

/* ---- walking expressions
 * ------------------------------------------------------------------------------------------ */

static bool see(struct grouper *grouper, expr e)
{
    while (grouper->stamps.count < grouper->pool->nodes.count)
        vec_push(grouper->arena, &grouper->stamps, 0);
    if (!e || grouper->stamps.items[e] == grouper->stamp)
        return false;
    grouper->stamps.items[e] = grouper->stamp;
    return true;
}

static void walk(struct grouper *grouper, expr root, void (*visit)(void *user, const struct expr_node *load),
                 void *user)
{
    VEC(expr) todo = {0};
    if (see(grouper, root))
        vec_push(grouper->arena, &todo, root);
    while (todo.count) {
        const struct expr_node *node = expr_at(grouper->pool, todo.items[--todo.count]);
        if (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR)
            visit(user, node);
        for (uint32_t i = 0; i < node->count; i++)
            if (see(grouper, node->arguments[i]))
                vec_push(grouper->arena, &todo, node->arguments[i]);
    }
}

void each_load(struct grouper *grouper, expr e, void (*visit)(void *user, const struct expr_node *load),
               void *user)
{
    grouper->stamp++;
    walk(grouper, e, visit, user);
}

void each_unit_load(struct grouper *grouper, const struct unit *unit,
                    void (*visit)(void *user, const struct expr_node *load), void *user)
{
    grouper->stamp++;
    for (uint32_t n = 0; n < unit->body.nests.count; n++) {
        const struct nest *nest = &unit->body.nests.items[n];
        for (uint32_t i = 0; i < nest->reduction_count; i++)
            walk(grouper, nest->reductions[i].body, visit, user);
        for (uint32_t i = 0; i < nest->store_count; i++) {
            const struct nest_store *store = &nest->stores[i];
            walk(grouper, store->value, visit, user);
            walk(grouper, store->condition, visit, user);
            const int rank = unit->body.buffers.items[store->buffer].type.rank;
            for (int k = 0; store->indices && k < rank; k++)
                walk(grouper, store->indices[k], visit, user);
        }
    }
}

/* ---- sizes that the model computes
 * -------------------------------------------------------------------------------------- */

void each_size(struct grouper *grouper, const dim *dims, uint32_t count,
               void (*visit)(void *user, value_id value), void *user)
{
    enum { MOST = 64 };
    struct dims *table = &grouper->graph->dims;
    uint32_t symbols[MOST];
    for (uint32_t i = 0; i < count && grouper->has_words; i++) {
        uint32_t words = 0;
        (void)dim_words(table, dims[i], symbols, &words, MOST);
        for (uint32_t k = 0; k < words; k++)
            visit(user, table->symbols.items[symbols[k]].word);
    }
}

struct sizes {
    struct grouper *grouper;
    void (*visit)(void *user, value_id value);
    void *user;
};

static void sizes_of_expression(struct grouper *grouper, expr root, const struct sizes *sizes)
{
    VEC(expr) todo = {0};
    if (see(grouper, root))
        vec_push(grouper->arena, &todo, root);
    while (todo.count) {
        const struct expr_node *node = expr_at(grouper->pool, todo.items[--todo.count]);
        const dim d = node->op == EXPR_DIM ? (dim)node->value : node->op == EXPR_AXIS ? node->extent : DIM_NONE;
        if (d != DIM_NONE)
            each_size(grouper, &d, 1, sizes->visit, sizes->user);
        for (uint32_t i = 0; i < node->count; i++)
            if (see(grouper, node->arguments[i]))
                vec_push(grouper->arena, &todo, node->arguments[i]);
    }
}

/* Of its domains, its expressions and the buffers that it loads or stores. */
static void each_unit_size(struct grouper *grouper, const struct unit *unit,
                           void (*visit)(void *user, value_id value), void *user)
{
    const struct sizes sizes = {grouper, visit, user};
    if (!grouper->has_words || unit->kind == UNIT_CONTROL)
        return;
    grouper->stamp++;
    for (uint32_t n = 0; n < unit->body.nests.count; n++) {
        const struct nest *nest = &unit->body.nests.items[n];
        each_size(grouper, nest->extents, nest->rank + nest->reduce_rank, visit, user);
        for (uint32_t i = 0; i < nest->reduction_count; i++)
            sizes_of_expression(grouper, nest->reductions[i].body, &sizes);
        for (uint32_t i = 0; i < nest->store_count; i++) {
            const struct nest_store *store = &nest->stores[i];
            sizes_of_expression(grouper, store->value, &sizes);
            sizes_of_expression(grouper, store->condition, &sizes);
            const int rank = unit->body.buffers.items[store->buffer].type.rank;
            for (int k = 0; store->indices && k < rank; k++)
                sizes_of_expression(grouper, store->indices[k], &sizes);
        }
    }
    for (uint32_t b = 0; b < unit->body.buffers.count; b++)
        if (unit->loaded.items[b] && unit->body.buffers.items[b].type.rank > 0)
            each_size(grouper, unit->body.buffers.items[b].type.dims,
                      (uint32_t)unit->body.buffers.items[b].type.rank, visit, user);
}

struct own_sizes {
    const struct unit *unit;
    bool found;
};

static void compare_size(void *user, value_id value)
{
    struct own_sizes *own = user;
    for (uint32_t b = 0; b < own->unit->body.buffers.count; b++)
        if (own->unit->values.items[b] == value && own->unit->loaded.items[b] &&
            own->unit->body.buffers.items[b].role == BUFFER_OUTPUT)
            own->found = true;
}

void unit_rewrite(struct grouper *grouper, struct unit *unit, leaf_function *leaf, void *user)
{
    struct exprs *pool = grouper->pool;
    for (uint32_t n = 0; n < unit->body.nests.count; n++) {
        struct nest *nest = &unit->body.nests.items[n];
        for (uint32_t i = 0; i < nest->reduction_count; i++)
            nest->reductions[i].body = expr_rewrite(pool, pool, nest->reductions[i].body, leaf, user);
        for (uint32_t i = 0; i < nest->store_count; i++) {
            struct nest_store *store = &nest->stores[i];
            store->value = expr_rewrite(pool, pool, store->value, leaf, user);
            if (store->condition)
                store->condition = expr_rewrite(pool, pool, store->condition, leaf, user);
            if (!store->indices)
                continue;
            const uint32_t rank = (uint32_t)unit->body.buffers.items[store->buffer].type.rank;
            expr *indices = arena_new_array(grouper->arena, expr, rank);
            for (uint32_t k = 0; k < rank; k++)
                indices[k] = expr_rewrite(pool, pool, store->indices[k], leaf, user);
            store->indices = indices;
        }
    }
}

/* ---- from a node
 * -------------------------------------------------------------------------------------------------- */

struct renaming {
    const struct grouper *grouper;
    const struct unit *unit;
    const uint32_t *buffers; /* [buffer]: its new number */
    const expr *scalars;     /* [buffer]: a constant instead of any load, or 0 */
};

static expr rename_load(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    const struct renaming *renaming = user;
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    const uint32_t buffer = (uint32_t)node->value;
    if (renaming->scalars && renaming->scalars[buffer] && node->op == EXPR_LOAD)
        return renaming->scalars[buffer];
    struct expr_node renamed = *node;
    renamed.value = renaming->buffers[buffer];
    renamed.arguments = arguments;
    return expr_make(into, &renamed);
}

/* A constant of one element is written into the expressions; 0 when it is none or cannot be read. */
static expr scalar_constant(struct grouper *grouper, value_id id, const struct location *location)
{
    const struct value *value = graph_value(grouper->graph, id);
    int64_t sizes[MAX_RANK], elements;
    unsigned char bytes[8] = {0};
    const enum dtype dtype = value->type.dtype;
    if (value->kind != VALUE_CONSTANT || value->type.rank < 0 || value->type.rank > MAX_RANK ||
        !tensor_constant_sizes(&grouper->graph->dims, &value->type, sizes, &elements) || elements != 1)
        return 0;
    if (dtype_bits(dtype) < 8 || dtype_bits(dtype) > 64 ||
        !blob_read(value->blob, 0, bytes, dtype_bits(dtype) / 8))
        return 0;
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits |= (uint64_t)bytes[i] << (8 * i);
    if (dtype == DTYPE_BOOL)
        bits = bits != 0;
    graph_freeze(grouper->graph, id, location, "the code");
    const struct expr_node node = {
        .op = EXPR_CONSTANT, .dtype = dtype, .lanes = 1, .value = (int64_t)expr_eval_extend(dtype, bits)};
    return expr_make(grouper->pool, &node);
}

/* Buffers get their values; a value that stands twice among the inputs is one buffer. */
static void bind_values(struct grouper *grouper, struct unit *unit, node_id id)
{
    const struct node *node = graph_node(grouper->graph, id);
    const uint32_t count = unit->body.buffers.count;
    uint32_t *buffers = arena_new_array(grouper->arena, uint32_t, count);
    expr *scalars = arena_new_array(grouper->arena, expr, count);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i])
            vec_push(grouper->arena, &unit->values, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i])
            vec_push(grouper->arena, &unit->values, node->outputs[i]);
    while (unit->values.count < count)
        vec_push(grouper->arena, &unit->values, 0);
    for (uint32_t b = 0; b < count; b++) {
        buffers[b] = b;
        vec_push(grouper->arena, &unit->used, true);
        vec_push(grouper->arena, &unit->loaded, true);
        if (unit->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        for (uint32_t other = 0; other < b && buffers[b] == b; other++)
            if (unit->values.items[other] == unit->values.items[b])
                buffers[b] = other;
        if (grouper->optimisation > 0)
            scalars[b] = scalar_constant(grouper, unit->values.items[b], node->location);
    }
    struct renaming renaming = {grouper, unit, buffers, scalars};
    unit_rewrite(grouper, unit, rename_load, &renaming);
}

static void mark_load(void *user, const struct expr_node *load)
{
    struct unit *unit = user;
    unit->loaded.items[load->value] = true;
}

static void find_loaded(struct grouper *grouper, struct unit *unit)
{
    if (unit->kind == UNIT_CONTROL)
        return; /* all are */
    for (uint32_t b = 0; b < unit->loaded.count; b++)
        unit->loaded.items[b] = false;
    each_unit_load(grouper, unit, mark_load, unit);
    for (uint32_t n = 0; n < unit->body.nests.count; n++)
        for (uint32_t i = 0; i < unit->body.nests.items[n].store_count; i++)
            unit->loaded.items[unit->body.nests.items[n].stores[i].buffer] = true;
    for (uint32_t b = 0; b < unit->used.count; b++)
        unit->used.items[b] = unit->loaded.items[b];
}

struct marked_sizes {
    struct grouper *grouper;
    struct unit *unit;
};

static void mark_size(void *user, value_id value)
{
    const struct marked_sizes *marked = user;
    const uint32_t known = marked->unit->body.buffers.count;
    const uint32_t buffer = unit_buffer(marked->grouper, marked->unit, value);
    if (buffer >= known)
        marked->unit->loaded.items[buffer] = false;
    marked->unit->used.items[buffer] = true;
}

void unit_find_used(struct grouper *grouper, struct unit *unit)
{
    struct marked_sizes marked = {grouper, unit};
    find_loaded(grouper, unit);
    each_unit_size(grouper, unit, mark_size, &marked);
}

bool unit_needs_itself(struct grouper *grouper, const struct unit *unit)
{
    struct own_sizes own = {.unit = unit};
    each_unit_size(grouper, unit, compare_size, &own);
    return own.found;
}

static void count_loads(struct grouper *grouper, const struct unit *unit, int by)
{
    for (uint32_t b = 0; b < unit->body.buffers.count; b++)
        if (unit->used.items[b] && unit->body.buffers.items[b].role == BUFFER_INPUT)
            grouper->loads[unit->values.items[b]] += (uint32_t)by;
}

static void claim_stores(struct grouper *grouper, struct unit *unit)
{
    for (uint32_t b = 0; b < unit->body.buffers.count; b++)
        if (unit->used.items[b] && unit->body.buffers.items[b].role == BUFFER_OUTPUT)
            grouper->stored_by[unit->values.items[b]] = unit;
}

struct unit *unit_of_node(struct grouper *grouper, node_id node)
{
    const bool control = graph_node(grouper->graph, node)->body_count > 0;
    struct unit *unit = control ? unit_of_control(grouper, node) : arena_new(grouper->arena, struct unit);
    if (!unit || (!control && !define_node(grouper->graph, node, grouper->pool, grouper->diagnostics, &unit->body)))
        return NULL;
    unit->first = unit->last = grouper->position[node];
    unit->fits = -1;
    vec_push(grouper->arena, &unit->nodes, node);
    if (!control) {
        bind_values(grouper, unit, node);
        unit_find_used(grouper, unit);
        unit_classify(grouper, unit);
    }
    count_loads(grouper, unit, 1);
    claim_stores(grouper, unit);
    vec_push(grouper->arena, &grouper->units, unit);
    return unit;
}

/* ---- what it is
 * --------------------------------------------------------------------------------------------------- */

static void note_load(void *user, const struct expr_node *load)
{
    (void)load;
    *(bool *)user = true;
}

static bool is_bare_load(struct grouper *grouper, expr value)
{
    const struct expr_node *node = expr_at(grouper->pool, value);
    bool indirect = false;
    if (node->op != EXPR_LOAD)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        each_load(grouper, expr_at(grouper->pool, value)->arguments[i], note_load, &indirect);
    return !indirect;
}

void unit_classify(struct grouper *grouper, struct unit *unit)
{
    const struct definition *body = &unit->body;
    bool reduces = false;
    for (uint32_t n = 0; n < body->nests.count; n++)
        reduces = reduces || body->nests.items[n].reduction_count > 0;
    unit->view = false;
    unit->kind = reduces && definition_is_plain(body) ? UNIT_ROWS : UNIT_OTHER;
    if (body->nests.count != 1 || !definition_is_plain(body))
        return;
    const struct nest *nest = &body->nests.items[0];
    if (reduces) {
        struct contraction contraction;
        struct text why;
        text_init(&why, grouper->arena);
        if (find_contraction(body, 0, &contraction, &why))
            unit->kind = UNIT_CONTRACTION;
    } else if (nest->store_count > 0) {
        unit->kind = UNIT_MAP;
        unit->view = nest->store_count == 1 && !nest->stores[0].indices &&
                     is_bare_load(grouper, nest->stores[0].value);
    }
}

/* Loads become leaves, so that the arithmetic on their indices does not count. */
static expr forget_indices(void *user, struct exprs *into, const struct expr_node *node,
                           const expr *arguments)
{
    (void)user;
    if (node->op == EXPR_LOAD)
        return expr_reduced(into, MAX_AXES + (uint32_t)node->value, node->dtype);
    return node->op == EXPR_LOAD_OR ? arguments[node->count - 1] : 0;
}

uint32_t unit_cost(struct grouper *grouper, const struct unit *unit)
{
    uint32_t cost = 0;
    for (uint32_t n = 0; n < unit->body.nests.count; n++)
        for (uint32_t i = 0; i < unit->body.nests.items[n].store_count; i++) {
            const expr value = unit->body.nests.items[n].stores[i].value;
            cost += expr_cost(grouper->pool,
                              expr_rewrite(grouper->pool, grouper->pool, value, forget_indices, NULL));
        }
    return cost;
}

uint32_t unit_buffers_used(struct grouper *grouper, struct unit *unit)
{
    uint32_t count = 0;
    unit_find_used(grouper, unit);
    for (uint32_t b = 0; b < unit->used.count; b++)
        count += unit->used.items[b];
    return count;
}

uint32_t value_readers(const struct grouper *grouper, value_id value)
{
    return grouper->loads[value] + grouper->ahead[value] + grouper->output[value];
}

bool unit_store_of(const struct unit *unit, value_id value, uint32_t *nest, uint32_t *store)
{
    uint32_t found = 0;
    for (uint32_t n = 0; n < unit->body.nests.count; n++)
        for (uint32_t i = 0; i < unit->body.nests.items[n].store_count; i++) {
            const uint32_t buffer = unit->body.nests.items[n].stores[i].buffer;
            if (unit->values.items[buffer] != value)
                continue;
            found++;
            *nest = n;
            *store = i;
        }
    return found == 1;
}

/* ---- changes
 * ------------------------------------------------------------------------------------------------------ */

struct unit *unit_clone(struct grouper *grouper, const struct unit *unit)
{
    struct arena *arena = grouper->arena;
    struct unit *clone = arena_new(arena, struct unit);
    *clone = (struct unit){
        .kind = unit->kind, .first = unit->first, .last = unit->last, .fits = -1, .view = unit->view, .bodies = unit->bodies};
    clone->body.pool = unit->body.pool;
    for (uint32_t b = 0; b < unit->body.buffers.count; b++) {
        vec_push(arena, &clone->body.buffers, unit->body.buffers.items[b]);
        vec_push(arena, &clone->values, unit->values.items[b]);
        vec_push(arena, &clone->used, unit->used.items[b]);
        vec_push(arena, &clone->loaded, unit->loaded.items[b]);
    }
    for (uint32_t n = 0; n < unit->body.nests.count; n++) {
        struct nest nest = unit->body.nests.items[n];
        if (nest.reduction_count)
            nest.reductions =
                arena_copy(arena, nest.reductions, nest.reduction_count * sizeof *nest.reductions);
        if (nest.store_count)
            nest.stores = arena_copy(arena, nest.stores, nest.store_count * sizeof *nest.stores);
        vec_push(arena, &clone->body.nests, nest);
    }
    for (uint32_t i = 0; i < unit->nodes.count; i++)
        vec_push(arena, &clone->nodes, unit->nodes.items[i]);
    return clone;
}

uint32_t unit_buffer(struct grouper *grouper, struct unit *unit, value_id value)
{
    for (uint32_t b = 0; b < unit->body.buffers.count; b++)
        if (unit->values.items[b] == value)
            return b;
    const uint32_t buffer =
        definition_buffer(&unit->body, BUFFER_INPUT,
                          storage_type(&grouper->graph->dims, grouper->arena, &graph_value(grouper->graph, value)->type));
    vec_push(grouper->arena, &unit->values, value);
    vec_push(grouper->arena, &unit->used, true);
    vec_push(grouper->arena, &unit->loaded, true);
    return buffer;
}

static bool contains_node(const struct unit *unit, node_id node)
{
    for (uint32_t i = 0; i < unit->nodes.count; i++)
        if (unit->nodes.items[i] == node)
            return true;
    return false;
}

void unit_absorb_nodes(struct grouper *grouper, struct unit *unit, const struct unit *other)
{
    for (uint32_t i = 0; i < other->nodes.count; i++)
        if (!contains_node(unit, other->nodes.items[i]))
            vec_push(grouper->arena, &unit->nodes, other->nodes.items[i]);
}

void unit_kill(struct grouper *grouper, struct unit *unit)
{
    VEC(struct unit *) todo = {0};
    vec_push(grouper->arena, &todo, unit);
    while (todo.count) {
        struct unit *item = todo.items[--todo.count];
        if (item->dead)
            continue;
        bool read = false;
        for (uint32_t b = 0; b < item->body.buffers.count; b++)
            read = read || (item->used.items[b] && item->body.buffers.items[b].role == BUFFER_OUTPUT &&
                            grouper->stored_by[item->values.items[b]] == item &&
                            value_readers(grouper, item->values.items[b]) > 0);
        if (read)
            continue;
        item->dead = true;
        count_loads(grouper, item, -1);
        for (uint32_t b = 0; b < item->body.buffers.count; b++) {
            const value_id value = item->values.items[b];
            if (!item->used.items[b] || !value)
                continue;
            struct unit *producer = grouper->stored_by[value];
            if (item->body.buffers.items[b].role == BUFFER_INPUT && producer)
                vec_push(grouper->arena, &todo, producer);
            if (item->body.buffers.items[b].role == BUFFER_OUTPUT && producer == item)
                grouper->stored_by[value] = NULL;
        }
    }
}

void unit_commit(struct grouper *grouper, struct unit *unit, struct unit *changed)
{
    count_loads(grouper, unit, -1);
    const struct unit old = *unit;
    *unit = *changed;
    unit_find_used(grouper, unit);
    unit_classify(grouper, unit);
    count_loads(grouper, unit, 1);
    for (uint32_t b = 0; b < old.body.buffers.count; b++)
        if (old.body.buffers.items[b].role == BUFFER_OUTPUT &&
            grouper->stored_by[old.values.items[b]] == unit)
            grouper->stored_by[old.values.items[b]] = NULL;
    claim_stores(grouper, unit);
    for (uint32_t b = 0; b < old.body.buffers.count; b++) {
        struct unit *producer = old.values.items[b] ? grouper->stored_by[old.values.items[b]] : NULL;
        if (old.body.buffers.items[b].role == BUFFER_INPUT && producer && producer != unit)
            unit_kill(grouper, producer);
    }
}

/* ---- as a group
 * --------------------------------------------------------------------------------------------------- */

static const struct location *locations_of(struct grouper *grouper, const struct unit *unit)
{
    const struct location *chain = NULL;
    for (uint32_t i = unit->nodes.count; i-- > 0;) {
        const struct location *location = graph_node(grouper->graph, unit->nodes.items[i])->location;
        for (uint32_t hops = 0; location && hops < 32; location = location->also, hops++) {
            struct location *copy = arena_copy(grouper->arena, location, sizeof *location);
            copy->also = chain;
            chain = copy;
        }
    }
    return chain;
}

struct group unit_group(struct grouper *grouper, const struct unit *unit)
{
    static const enum buffer_role order[] = {BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_TEMPORARY};
    struct unit *clone = unit_clone(grouper, unit);
    struct group group = {.body = {.pool = grouper->pool}};
    const uint32_t count = clone->body.buffers.count;
    uint32_t *numbers = arena_new_array(grouper->arena, uint32_t, count);
    find_loaded(grouper, clone); /* sizes are the planner's business */
    group.values = arena_new_array(grouper->arena, value_id, count);
    for (uint32_t r = 0; r < 3; r++)
        for (uint32_t b = 0; b < count; b++) {
            if (!clone->used.items[b] || clone->body.buffers.items[b].role != order[r])
                continue;
            numbers[b] = group.body.buffers.count;
            group.values[numbers[b]] = clone->values.items[b];
            vec_push(grouper->arena, &group.body.buffers, clone->body.buffers.items[b]);
        }
    struct renaming renaming = {grouper, clone, numbers, NULL};
    unit_rewrite(grouper, clone, rename_load, &renaming);
    for (uint32_t n = 0; n < clone->body.nests.count; n++) {
        struct nest *nest = &clone->body.nests.items[n];
        for (uint32_t i = 0; i < nest->store_count; i++)
            nest->stores[i].buffer = numbers[nest->stores[i].buffer];
        vec_push(grouper->arena, &group.body.nests, *nest);
    }
    group.location = locations_of(grouper, unit);
    if (unit->kind == UNIT_CONTROL) {
        group.control = unit->nodes.items[0];
        group.bodies = unit->bodies;
    }
    for (uint32_t i = 0; i < unit->nodes.count; i++)
        vec_push(grouper->arena, &group.nodes, unit->nodes.items[i]);
    return group;
}

bool unit_fits(struct grouper *grouper, struct unit *unit)
{
    if (!grouper->services || !grouper->services->fits)
        return true;
    if (unit->fits < 0) {
        struct text why;
        text_init(&why, grouper->arena);
        const struct group group = unit_group(grouper, unit);
        unit->fits = grouper->services->fits(grouper->services->user, &group, &why);
    }
    return unit->fits == 1;
}

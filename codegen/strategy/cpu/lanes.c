/* Widening of expressions (lanes.h). Nodes have larger numbers than their arguments, so the facts of every
 * node are found in one ascending walk: does it depend on the lane, its value at lane 0, and by how much it
 * grows a lane. A second walk downwards marks what must exist as a vector, a third one upwards builds it. */
#include "codegen/strategy/cpu/lanes.h"

#include "ir/support/checked.h"

#include <string.h>

enum { MAX_LANE_COUNT = 64 };

struct fact {
    bool reached, depends, wanted, linear;
    int64_t growth; /* a lane, where linear */
    expr first;     /* the value at lane 0 */
    expr vector;
};

struct widening {
    const struct kernel *kernel;
    struct exprs *pool;
    uint16_t lanes;
    struct fact *facts;
};

expr lane_axis(const struct kernel *kernel, uint16_t lanes)
{
    return expr_axis(kernel->pool, 0, dim_constant(kernel->pool->dims, lanes));
}

static expr lane_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    (void)into;
    (void)arguments;
    return node->op == EXPR_AXIS ? *(const expr *)user : 0;
}

expr lane_substitute(const struct kernel *kernel, expr e, expr value)
{
    return expr_rewrite(kernel->pool, kernel->pool, e, lane_leaf, &value);
}

/* Growth of an i64 operation from that of its arguments. */
static void growth_of(const struct widening *w, const struct expr_node *node, struct fact *fact)
{
    int64_t factor;
    fact->linear = false;
    if (node->dtype != DTYPE_I64)
        return;
    const struct fact *a = node->count > 0 ? &w->facts[node->arguments[0]] : NULL;
    const struct fact *b = node->count > 1 ? &w->facts[node->arguments[1]] : NULL;
    switch (node->op) {
    case EXPR_AXIS:
        fact->linear = true;
        fact->growth = 1;
        break;
    case EXPR_ADD:
        fact->linear = a->linear && b->linear && add_i64(a->growth, b->growth, &fact->growth);
        break;
    case EXPR_SUB:
        fact->linear = a->linear && b->linear && sub_i64(a->growth, b->growth, &fact->growth);
        break;
    case EXPR_MUL:
        if (a->linear && !b->depends && expr_constant_int(w->pool, node->arguments[1], &factor))
            fact->linear = mul_i64(a->growth, factor, &fact->growth);
        break;
    default:
        break;
    }
}

static void find_facts(struct widening *w, expr root)
{
    w->facts = arena_new_array(w->pool->arena, struct fact, root + 1);
    w->facts[root].reached = true;
    for (expr e = root; e > 0; e--) {
        const struct expr_node *node = expr_at(w->pool, e);
        for (uint32_t i = 0; w->facts[e].reached && i < node->count; i++)
            w->facts[node->arguments[i]].reached = true;
    }
    const expr zero = expr_index(w->pool, 0);
    for (expr e = 1; e <= root; e++) {
        struct fact *fact = &w->facts[e];
        if (!fact->reached)
            continue;
        struct expr_node node = *expr_at(w->pool, e);
        fact->depends = node.op == EXPR_AXIS;
        for (uint32_t i = 0; i < node.count; i++)
            fact->depends = fact->depends || w->facts[node.arguments[i]].depends;
        fact->linear = true;
        fact->first = node.op == EXPR_AXIS ? zero : e;
        if (!fact->depends)
            continue;
        growth_of(w, &node, fact);
        if (node.op == EXPR_AXIS)
            continue;
        expr *arguments = arena_new_array(w->pool->arena, expr, node.count);
        for (uint32_t i = 0; i < node.count; i++)
            arguments[i] = w->facts[node.arguments[i]].first;
        node.arguments = arguments;
        fact->first = expr_make(w->pool, &node);
    }
}

static struct widening widening_of(const struct kernel *kernel, uint16_t lanes, expr root)
{
    struct widening w = {.kernel = kernel, .pool = kernel->pool, .lanes = lanes};
    find_facts(&w, root);
    return w;
}

bool lane_contiguous(const struct kernel *kernel, expr index)
{
    struct widening w = widening_of(kernel, 1, index);
    return w.facts[index].depends && w.facts[index].linear && w.facts[index].growth == 1;
}

static expr index_of(const struct expr_node *node)
{
    return node->arguments[node->op == EXPR_ELEMENT_OR];
}

static bool is_access(const struct expr_node *node)
{
    return node->op == EXPR_ELEMENT || node->op == EXPR_ELEMENT_OR;
}

static bool is_contiguous(const struct widening *w, const struct expr_node *node)
{
    const struct fact *index = &w->facts[index_of(node)];
    return index->depends && index->linear && index->growth == 1;
}

bool lane_loads_contiguous(const struct kernel *kernel, expr e)
{
    struct widening w = widening_of(kernel, 1, e);
    for (expr x = 1; x <= e; x++) {
        const struct expr_node *node = expr_at(w.pool, x);
        if (w.facts[x].reached && w.facts[x].depends && is_access(node) && !is_contiguous(&w, node))
            return false;
    }
    return true;
}

/* Marks what is needed as a vector, users before their arguments. */
static void mark_wanted(struct widening *w, expr root)
{
    w->facts[root].wanted = true;
    for (expr e = root; e > 0; e--) {
        const struct fact *fact = &w->facts[e];
        if (!fact->wanted || !fact->depends)
            continue;
        const struct expr_node *node = expr_at(w->pool, e);
        if (is_access(node) && !is_contiguous(w, node))
            continue;
        for (uint32_t i = 0; i < node->count; i++)
            if (!is_access(node) || node->arguments[i] != index_of(node) || i == 2)
                w->facts[node->arguments[i]].wanted = true;
    }
}

static expr vector_of(const struct widening *w, expr e)
{
    const struct fact *fact = &w->facts[e];
    return fact->depends ? fact->vector : kernel_broadcast(w->kernel, e, w->lanes);
}

static expr gather(const struct widening *w, expr e)
{
    expr scalars[MAX_LANE_COUNT];
    for (uint16_t i = 0; i < w->lanes; i++)
        scalars[i] = lane_substitute(w->kernel, e, expr_index(w->pool, i));
    return kernel_pack(w->kernel, scalars, w->lanes);
}

static expr widen_node(const struct widening *w, expr e)
{
    struct expr_node node = *expr_at(w->pool, e);
    if (node.op == EXPR_AXIS || (is_access(&node) && !is_contiguous(w, &node)))
        return gather(w, e);
    if (node.op == EXPR_ELEMENT)
        return kernel_element(w->kernel, (uint32_t)node.value, w->facts[node.arguments[0]].first, w->lanes);
    if (node.op == EXPR_ELEMENT_OR) {
        const struct fact *condition = &w->facts[node.arguments[0]];
        return kernel_element_or(
            w->kernel, (uint32_t)node.value, condition->depends ? condition->vector : node.arguments[0],
            w->facts[node.arguments[1]].first, vector_of(w, node.arguments[2]), w->lanes);
    }
    expr *arguments = arena_new_array(w->pool->arena, expr, node.count);
    for (uint32_t i = 0; i < node.count; i++) {
        const bool scalar = node.op == EXPR_SELECT && i == 0 && !w->facts[node.arguments[i]].depends;
        arguments[i] = scalar ? node.arguments[i] : vector_of(w, node.arguments[i]);
    }
    node.arguments = arguments;
    node.lanes = w->lanes;
    return expr_make(w->pool, &node);
}

expr lane_widen(const struct kernel *kernel, expr e, uint16_t lanes)
{
    struct widening w = widening_of(kernel, lanes, e);
    if (lanes == 1)
        return w.facts[e].first;
    mark_wanted(&w, e);
    for (expr x = 1; x <= e; x++)
        if (w.facts[x].wanted && w.facts[x].depends)
            w.facts[x].vector = widen_node(&w, x);
    return vector_of(&w, e);
}

void lane_store(struct block *block, uint32_t memory, expr index, expr vector, uint16_t lanes)
{
    struct kernel *kernel = block->kernel;
    const expr zero = expr_index(kernel->pool, 0);
    if (lanes == 1 || lane_contiguous(kernel, index)) {
        build_store(block, memory, lane_substitute(kernel, index, zero), vector);
        return;
    }
    const expr value = build_declare(block, "lanes", vector);
    for (uint16_t i = 0; i < lanes; i++)
        build_store(block, memory, lane_substitute(kernel, index, expr_index(kernel->pool, i)),
                    kernel_lane(kernel, value, i));
}

void lane_store_nest(struct block *block, const struct lowering *lowering, const struct nest *nest,
                     uint16_t lanes)
{
    struct arena *arena = block->kernel->pool->arena;
    expr *values = arena_new_array(arena, expr, nest->store_count);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        values[i] = lane_widen(block->kernel, lower_expr(lowering, nest->stores[i].value), lanes);
        if (nest->store_count > 1)
            values[i] = build_declare(block, "value", values[i]);
    }
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        const uint32_t rank = (uint32_t)lowering->definition->buffers.items[store->buffer].type.rank;
        expr *indices = arena_new_array(arena, expr, rank);
        for (uint32_t k = 0; k < rank; k++)
            indices[k] = lower_expr(lowering, store->indices[k]);
        lane_store(block, lowering->memories[store->buffer], lower_index(lowering, store->buffer, indices),
                   values[i], lanes);
    }
}

/* Analysis of one nest for the CPU strategies (nest.h). Merging asks the simplifier: two axes become the
 * quotient and the remainder of one, and where every index comes out without a division by it, they run
 * through memory as one. */
#include "codegen/strategy/cpu/nest.h"

#include "ir/support/checked.h"

#include <string.h>

enum { MAX_STRIDE_DEPTH = 48, MAX_STRIDE_STEPS = 4000 };

static bool is_load(const struct expr_node *node)
{
    return node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR;
}

/* ---- flat indices
 * ------------------------------------------------------------------------------------------------ */

struct flatten {
    const struct definition *definition;
    uint64_t kept;
};

static expr flatten_leaf(void *user, struct exprs *pool, const struct expr_node *node, const expr *arguments)
{
    const struct flatten *flatten = user;
    if (node->op != EXPR_LOAD || node->count == 0 || flatten->kept >> node->value & 1)
        return 0;
    const struct tensor_type *type = &flatten->definition->buffers.items[node->value].type;
    const expr flat = flat_index(pool, type, arguments);
    return expr_load(pool, (uint32_t)node->value, node->dtype, 1, &flat);
}

static struct nest_store flatten_store(struct flatten *flatten, const struct nest *nest,
                                       const struct nest_store *store)
{
    struct exprs *pool = flatten->definition->pool;
    const struct tensor_type *type = &flatten->definition->buffers.items[store->buffer].type;
    struct nest_store out = {.buffer = store->buffer};
    expr indices[MAX_AXES];
    for (int i = 0; i < type->rank; i++)
        indices[i] = store->indices ? expr_rewrite(pool, pool, store->indices[i], flatten_leaf, flatten)
                                    : expr_axis(pool, (uint32_t)i, nest->extents[i]);
    const expr flat = flat_index(pool, type, indices);
    out.indices = flatten->kept >> store->buffer & 1
                      ? arena_copy(pool->arena, indices, (size_t)type->rank * sizeof *indices)
                      : arena_copy(pool->arena, &flat, sizeof flat);
    out.value = expr_rewrite(pool, pool, store->value, flatten_leaf, flatten);
    if (store->condition)
        out.condition = expr_rewrite(pool, pool, store->condition, flatten_leaf, flatten);
    return out;
}

void flat_nest_init(struct flat_nest *out, const struct definition *definition, uint32_t number,
                    uint64_t kept)
{
    const struct nest *nest = &definition->nests.items[number];
    struct exprs *pool = definition->pool;
    struct flatten flatten = {.definition = definition, .kept = kept};
    *out = (struct flat_nest){.definition = definition,
                              .kept = kept,
                              .rank = nest->rank,
                              .reduce_rank = nest->reduce_rank,
                              .reduction_count = nest->reduction_count,
                              .store_count = nest->store_count};
    memcpy(out->extents, nest->extents, sizeof out->extents);
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++)
        out->extents[i] = dim_current(pool->dims, nest->extents[i]);
    out->reductions = arena_new_array(pool->arena, struct reduction, nest->reduction_count);
    out->stores = arena_new_array(pool->arena, struct nest_store, nest->store_count);
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        out->reductions[i] = (struct reduction){
            .op = nest->reductions[i].op,
            .body = expr_rewrite(pool, pool, nest->reductions[i].body, flatten_leaf, &flatten)};
    for (uint32_t i = 0; i < nest->store_count; i++)
        out->stores[i] = flatten_store(&flatten, nest, &nest->stores[i]);
}

/* ---- all expressions of a nest
 * ----------------------------------------------------------------------------------- */

struct walk {
    const struct exprs *pool;
    struct arena *arena;
    bool *seen;
    VEC(expr) stack;
};

static struct walk walk_new(const struct exprs *pool)
{
    struct walk walk = {.pool = pool, .arena = pool->arena};
    walk.seen = arena_new_array(walk.arena, bool, pool->nodes.count);
    return walk;
}

static void walk_push(struct walk *walk, expr e)
{
    if (walk->seen[e])
        return;
    walk->seen[e] = true;
    vec_push(walk->arena, &walk->stack, e);
}

static const struct expr_node *walk_next(struct walk *walk)
{
    if (!walk->stack.count)
        return NULL;
    const struct expr_node *node = expr_at(walk->pool, walk->stack.items[--walk->stack.count]);
    for (uint32_t i = 0; i < node->count; i++)
        walk_push(walk, node->arguments[i]);
    return node;
}

static uint32_t store_index_count(const struct flat_nest *nest, const struct nest_store *store)
{
    const bool kept = nest->kept >> store->buffer & 1;
    return kept ? (uint32_t)nest->definition->buffers.items[store->buffer].type.rank : 1;
}

static void push_values(struct walk *walk, const struct flat_nest *nest)
{
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        walk_push(walk, nest->reductions[i].body);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        walk_push(walk, nest->stores[i].value);
        if (nest->stores[i].condition)
            walk_push(walk, nest->stores[i].condition);
    }
}

uint64_t loaded_buffers(const struct definition *definition, const struct nest *nest)
{
    struct walk walk = walk_new(definition->pool);
    uint64_t buffers = 0;
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        walk_push(&walk, nest->reductions[i].body);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        walk_push(&walk, nest->stores[i].value);
        if (nest->stores[i].condition)
            walk_push(&walk, nest->stores[i].condition);
        const int rank = definition->buffers.items[nest->stores[i].buffer].type.rank;
        for (int k = 0; nest->stores[i].indices && k < rank; k++)
            walk_push(&walk, nest->stores[i].indices[k]);
    }
    for (const struct expr_node *node; (node = walk_next(&walk));)
        if (is_load(node))
            buffers |= UINT64_C(1) << node->value;
    return buffers;
}

/* ---- merging
 * ----------------------------------------------------------------------------------------------------- */

static expr replace_axis(void *user, struct exprs *pool, const struct expr_node *node, const expr *arguments)
{
    const expr *axes = user;
    (void)pool;
    (void)arguments;
    return node->op == EXPR_AXIS ? axes[node->value] : 0;
}

static struct flat_nest rewrite_nest(const struct flat_nest *nest, expr *axes)
{
    struct exprs *pool = nest->definition->pool;
    struct flat_nest out = *nest;
    out.reductions =
        arena_copy(pool->arena, nest->reductions, nest->reduction_count * sizeof *nest->reductions);
    out.stores = arena_copy(pool->arena, nest->stores, nest->store_count * sizeof *nest->stores);
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        out.reductions[i].body = expr_rewrite(pool, pool, nest->reductions[i].body, replace_axis, axes);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        const uint32_t count = store_index_count(nest, store);
        expr *indices = arena_new_array(pool->arena, expr, count);
        for (uint32_t k = 0; k < count; k++)
            indices[k] = expr_rewrite(pool, pool, store->indices[k], replace_axis, axes);
        out.stores[i].indices = indices;
        out.stores[i].value = expr_rewrite(pool, pool, store->value, replace_axis, axes);
        if (store->condition)
            out.stores[i].condition = expr_rewrite(pool, pool, store->condition, replace_axis, axes);
    }
    return out;
}

static uint32_t count_divisions(const struct flat_nest *nest)
{
    struct walk walk = walk_new(nest->definition->pool);
    uint32_t count = 0;
    push_values(&walk, nest);
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        for (uint32_t k = 0; k < store_index_count(nest, store); k++)
            walk_push(&walk, store->indices[k]);
    }
    for (const struct expr_node *node; (node = walk_next(&walk));)
        count += node->op == EXPR_INDEX_DIV || node->op == EXPR_INDEX_MOD;
    return count;
}

static void remove_axis(struct flat_nest *nest, uint32_t axis)
{
    const uint32_t total = nest->rank + nest->reduce_rank;
    memmove(&nest->extents[axis], &nest->extents[axis + 1], (total - axis - 1) * sizeof *nest->extents);
    if (axis < nest->rank)
        nest->rank--;
    else
        nest->reduce_rank--;
}

static void drop_axis(struct flat_nest *nest, uint32_t gone)
{
    struct exprs *pool = nest->definition->pool;
    expr axes[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++)
        axes[i] = i == gone ? expr_index(pool, 0) : expr_axis(pool, i - (i > gone), nest->extents[i]);
    *nest = rewrite_nest(nest, axes);
    remove_axis(nest, gone);
}

/* Axes `at` and `at` + 1 become one, if no index gets a division by it. */
static bool merge_pair(struct flat_nest *nest, uint32_t at)
{
    struct exprs *pool = nest->definition->pool;
    const dim inner = nest->extents[at + 1], extent = dim_mul(pool->dims, nest->extents[at], inner);
    if (extent == DIM_NONE)
        return false;
    const expr merged = expr_axis(pool, at, extent), size = expr_dim(pool, inner);
    expr axes[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank + nest->reduce_rank; i++)
        axes[i] = i == at       ? expr_binary(pool, EXPR_INDEX_DIV, merged, size)
                  : i == at + 1 ? expr_binary(pool, EXPR_INDEX_MOD, merged, size)
                                : expr_axis(pool, i - (i > at), nest->extents[i]);
    struct flat_nest out = rewrite_nest(nest, axes);
    if (count_divisions(&out) > count_divisions(nest))
        return false;
    out.extents[at] = extent;
    remove_axis(&out, at + 1);
    *nest = out;
    return true;
}

void flat_nest_merge(struct flat_nest *nest, uint32_t first)
{
    const struct dims *dims = nest->definition->pool->dims;
    for (uint32_t i = nest->rank + nest->reduce_rank; i > first; i--)
        if (dim_equals_constant(dims, nest->extents[i - 1], 1))
            drop_axis(nest, i - 1);
    for (uint32_t i = nest->rank + nest->reduce_rank; i > first + 1; i--)
        if (i - 1 != nest->rank) /* a parallel axis and a reduced one stay apart */
            merge_pair(nest, i - 2);
}

/* ---- strides
 * ----------------------------------------------------------------------------------------------------- */

static int64_t stride_of_sum(int64_t a, int64_t b, bool subtract)
{
    int64_t sum;
    if (a == STRIDE_UNKNOWN || b == STRIDE_UNKNOWN)
        return STRIDE_UNKNOWN;
    return (subtract ? sub_i64(a, b, &sum) : add_i64(a, b, &sum)) ? sum : STRIDE_UNKNOWN;
}

static int64_t stride_of_product(const struct exprs *pool, const struct expr_node *node, int64_t a, int64_t b)
{
    int64_t factor, product;
    const bool left = b == 0 && expr_constant_int(pool, node->arguments[1], &factor);
    if (a == STRIDE_UNKNOWN || b == STRIDE_UNKNOWN ||
        (!left && !(a == 0 && expr_constant_int(pool, node->arguments[0], &factor))))
        return STRIDE_UNKNOWN;
    return mul_i64(left ? a : b, factor, &product) ? product : STRIDE_UNKNOWN;
}

static int64_t stride_of(const struct exprs *pool, expr e, uint32_t axis, uint32_t depth, uint32_t *steps)
{
    const struct expr_node *node = expr_at(pool, e);
    int64_t strides[2] = {0, 0};
    bool still = true;
    if (depth > MAX_STRIDE_DEPTH || ++*steps > MAX_STRIDE_STEPS)
        return STRIDE_UNKNOWN;
    if (node->op == EXPR_AXIS)
        return node->value == axis;
    for (uint32_t i = 0; i < node->count; i++) {
        const int64_t stride = stride_of(pool, node->arguments[i], axis, depth + 1, steps);
        still = still && stride == 0;
        if (i < 2)
            strides[i] = stride;
    }
    if (still)
        return 0;
    switch (node->op) {
    case EXPR_ADD:
    case EXPR_SUB:
        return stride_of_sum(strides[0], strides[1], node->op == EXPR_SUB);
    case EXPR_MUL:
        return stride_of_product(pool, node, strides[0], strides[1]);
    default:
        return STRIDE_UNKNOWN;
    }
}

int64_t index_stride(const struct exprs *pool, expr index, uint32_t axis)
{
    uint32_t steps = 0;
    return stride_of(pool, index, axis, 0, &steps);
}

static int64_t load_stride(const struct flat_nest *nest, const struct expr_node *load, uint32_t axis)
{
    const struct exprs *pool = nest->definition->pool;
    const struct tensor_type *type = &nest->definition->buffers.items[load->value].type;
    const bool guarded = load->op == EXPR_LOAD_OR;
    const uint32_t count = load->count - guarded;
    int64_t sum = 0, size = 1, factor = 1;
    if (count == 1)
        return index_stride(pool, load->arguments[0], axis);
    for (uint32_t i = count; i > 0; i--) {
        const int64_t stride = index_stride(pool, load->arguments[i - 1], axis);
        int64_t scaled;
        if (stride == STRIDE_UNKNOWN || (stride != 0 && (factor == 0 || !mul_i64(stride, factor, &scaled) ||
                                                         !add_i64(sum, scaled, &sum))))
            return STRIDE_UNKNOWN;
        /* A factor of 0 stands for one that is no constant. */
        if (!dim_is_constant(pool->dims, type->dims[i - 1], &size) || !mul_i64(factor, size, &factor))
            factor = 0;
    }
    return sum;
}

struct access_count count_accesses(const struct flat_nest *nest, uint32_t axis)
{
    struct access_count count = {0};
    struct walk walk = walk_new(nest->definition->pool);
    push_values(&walk, nest);
    for (const struct expr_node *node; (node = walk_next(&walk));) {
        if (!is_load(node) || node->count == (node->op == EXPR_LOAD_OR))
            continue;
        const int64_t stride = load_stride(nest, node, axis);
        if (node->op == EXPR_LOAD_OR)
            count.guarded++;
        if (stride == 0 || stride == 1)
            count.good++;
        else
            count.bad++;
    }
    if (axis >= nest->rank)
        return count;
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const bool kept = nest->kept >> nest->stores[i].buffer & 1;
        if (kept || index_stride(nest->definition->pool, nest->stores[i].indices[0], axis) == 1)
            count.good++;
        else
            count.bad++;
    }
    return count;
}

bool has_unit_load(const struct flat_nest *nest, uint32_t axis)
{
    struct walk walk = walk_new(nest->definition->pool);
    push_values(&walk, nest);
    for (const struct expr_node *node; (node = walk_next(&walk));)
        if (node->op == EXPR_LOAD && node->count && load_stride(nest, node, axis) == 1)
            return true;
    return false;
}

bool has_unit_store(const struct flat_nest *nest, uint32_t axis)
{
    for (uint32_t i = 0; i < nest->store_count; i++)
        if (!(nest->kept >> nest->stores[i].buffer & 1) &&
            index_stride(nest->definition->pool, nest->stores[i].indices[0], axis) == 1)
            return true;
    return false;
}

/* ---- cost
 * -------------------------------------------------------------------------------------------------------- */

uint32_t body_cost(const struct flat_nest *nest)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < nest->reduction_count; i++)
        cost += expr_cost(nest->definition->pool, nest->reductions[i].body) + 1;
    return cost;
}

uint32_t store_cost(const struct flat_nest *nest)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < nest->store_count; i++)
        cost += expr_cost(nest->definition->pool, nest->stores[i].value) + 1;
    return cost;
}

int64_t hinted(const struct dims *dims, const dim *extents, uint32_t count)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < count; i++)
        if (!mul_i64(product, dim_hint(dims, extents[i]), &product))
            return INT64_MAX;
    return product;
}

int64_t constant_points(const struct dims *dims, const dim *extents, uint32_t count)
{
    int64_t product = 1, size;
    for (uint32_t i = 0; i < count; i++)
        if (!dim_is_constant(dims, extents[i], &size) || !mul_i64(product, size, &product))
            return -1;
    return product;
}

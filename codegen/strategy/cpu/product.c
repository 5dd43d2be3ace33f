/* Contractions as matrix products (product.h): groups are split, sides and their flattened axes are found by
 * how the flat index of the first store grows with each axis, and constant sides get the recipe of their
 * panels. */
#include "codegen/strategy/cpu/product.h"
#include "codegen/strategy/nest_parts.h"

#include <string.h>

enum { MAX_DEPTH_OF_INDEX = 48, MAX_WALK = 4000 };

/* ---- looking at expressions
 * -------------------------------------------------------------------------------------- */

bool product_uses(const struct product *product, expr e, uint32_t axis)
{
    return expr_uses_axis(product->arena, product->definition.pool, e, axis);
}

void product_mark_loads(const struct product *product, expr e, bool *used)
{
    expr_mark_loads(product->arena, product->definition.pool, e, used);
}

void product_mark_stores(const struct product *product, bool *used)
{
    for (uint32_t i = 0; i < product->nest->store_count; i++) {
        const struct nest_store *store = &product->nest->stores[i];
        product_mark_loads(product, store->value, used);
        for (int k = 0; k < product->definition.buffers.items[store->buffer].type.rank; k++)
            product_mark_loads(product, store->indices[k], used);
        used[store->buffer] = true;
    }
}

struct growth {
    const struct product *product;
    struct exprs *pool;
    uint32_t axis, steps;
};

static dim growth_of(struct growth *g, expr e, uint32_t depth);

static dim factor_of(const struct exprs *pool, expr e)
{
    const struct expr_node *node = expr_at(pool, e);
    return node->op == EXPR_CONSTANT ? dim_constant(pool->dims, node->value)
           : node->op == EXPR_DIM    ? dim_current(pool->dims, (dim)node->value)
                                     : DIM_NONE;
}

static dim growth_of(struct growth *g, expr e, uint32_t depth)
{
    const struct expr_node node = *expr_at(g->pool, e);
    struct dims *dims = g->pool->dims;
    if (depth > MAX_DEPTH_OF_INDEX || ++g->steps > MAX_WALK)
        return DIM_NONE;
    if (node.op == EXPR_AXIS && node.value == (int64_t)g->axis)
        return dim_constant(dims, 1);
    if (node.count == 0 || !expr_uses_axis(g->product->arena, g->pool, e, g->axis))
        return dim_constant(dims, 0);
    if (node.dtype != DTYPE_I64 || node.count != 2)
        return DIM_NONE;
    const dim a = growth_of(g, node.arguments[0], depth + 1);
    switch (node.op) {
    case EXPR_ADD:
        return dim_add(dims, a, growth_of(g, node.arguments[1], depth + 1));
    case EXPR_SUB:
        return dim_sub(dims, a, growth_of(g, node.arguments[1], depth + 1));
    case EXPR_MUL:
        if (dim_equals_constant(dims, a, 0))
            return dim_mul(dims, factor_of(g->pool, node.arguments[0]),
                           growth_of(g, node.arguments[1], depth + 1));
        return dim_mul(dims, a, factor_of(g->pool, node.arguments[1]));
    default:
        return DIM_NONE;
    }
}

dim product_growth(const struct product *product, expr index, uint32_t axis)
{
    struct growth growth = {.product = product, .pool = product->definition.pool, .axis = axis};
    return growth_of(&growth, index, 0);
}

dim product_load_growth(const struct product *product, expr load, uint32_t axis)
{
    const struct expr_node node = *expr_at(product->definition.pool, load);
    const struct tensor_type *type = &product->definition.buffers.items[node.value].type;
    return product_growth(product, flat_index(product->definition.pool, type, node.arguments), axis);
}

/* ---- groups
 * ------------------------------------------------------------------------------------------------------- */

/* The constant by which every use of the axis in the expression is divided; 0: none, or used otherwise. */
static int64_t only_divided_by(struct arena *arena, const struct exprs *pool, expr e, uint32_t axis)
{
    const bool *reached = expr_reached(arena, pool, e);
    int64_t divisor = 0;
    for (expr x = 1; x <= e; x++) {
        const struct expr_node *node = expr_at(pool, x);
        for (uint32_t i = 0; reached[x] && i < node->count; i++) {
            const struct expr_node *argument = expr_at(pool, node->arguments[i]);
            int64_t value;
            if (argument->op != EXPR_AXIS || argument->value != (int64_t)axis)
                continue;
            if (node->op != EXPR_INDEX_DIV || i != 0 ||
                !expr_constant_int(pool, node->arguments[1], &value) || (divisor && divisor != value))
                return 0;
            divisor = value;
        }
    }
    return divisor;
}

struct renumber {
    uint32_t split; /* axis that becomes two; UINT32_MAX: none */
    int64_t group;
    const dim *extents; /* new ones */
};

static expr renumber_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    const struct renumber *r = user;
    (void)arguments;
    if (node->op != EXPR_AXIS)
        return 0;
    const uint32_t axis = (uint32_t)node->value;
    if (axis != r->split) {
        const uint32_t number = axis + (axis > r->split ? 1 : 0);
        return expr_axis(into, number, r->extents[number]);
    }
    const expr high =
        expr_binary(into, EXPR_MUL, expr_axis(into, axis, r->extents[axis]), expr_index(into, r->group));
    return expr_binary(into, EXPR_ADD, high, expr_axis(into, axis + 1, r->extents[axis + 1]));
}

static void copy_nest(const struct nest *from, const struct exprs *from_pool, struct renumber *r,
                      struct definition *to, struct arena *arena)
{
    struct nest *nest = definition_nest(to, 0, NULL, 0, NULL);
    const bool splits = r->split != UINT32_MAX;
    nest->rank = from->rank + splits;
    nest->reduce_rank = from->reduce_rank;
    memcpy(nest->extents, r->extents, (nest->rank + nest->reduce_rank) * sizeof *nest->extents);
    for (uint32_t i = 0; i < from->reduction_count; i++)
        nest_reduce(to, nest, from->reductions[i].op,
                    expr_rewrite(to->pool, from_pool, from->reductions[i].body, renumber_leaf, r));
    for (uint32_t i = 0; i < from->store_count; i++) {
        const struct nest_store *store = &from->stores[i];
        const uint32_t rank = (uint32_t)to->buffers.items[store->buffer].type.rank;
        expr *indices = arena_new_array(arena, expr, rank);
        for (uint32_t k = 0; k < rank; k++) {
            const struct expr_node axis = {.op = EXPR_AXIS, .value = (int64_t)k};
            indices[k] = store->indices
                             ? expr_rewrite(to->pool, from_pool, store->indices[k], renumber_leaf, r)
                             : renumber_leaf(r, to->pool, &axis, NULL);
        }
        nest_store(to, nest, store->buffer, indices,
                   expr_rewrite(to->pool, from_pool, store->value, renumber_leaf, r));
    }
}

/* An axis that one factor sees only through its group number. */
static uint32_t find_split(struct arena *arena, const struct definition *body, const struct contraction *c,
                           int64_t *group)
{
    const struct nest *nest = &body->nests.items[c->nest];
    for (uint32_t axis = 0; axis < nest->rank; axis++) {
        int64_t extent;
        if (c->roles[axis] != AXIS_BATCH || !dim_is_constant(body->pool->dims, nest->extents[axis], &extent))
            continue;
        int64_t left = only_divided_by(arena, body->pool, c->left, axis);
        int64_t right = only_divided_by(arena, body->pool, c->right, axis);
        *group = left > 1 ? left : right;
        if (*group > 1 && (left > 1) != (right > 1) && extent % *group == 0)
            return axis;
    }
    return UINT32_MAX;
}

bool product_normalise(const struct strategy_context *context, struct definition *out, struct text *why)
{
    const struct definition *body = &context->group->body;
    struct arena *arena = context->arena;
    struct contraction contraction;
    if (body->nests.count != 1) {
        text_put(why, "the group has several stages");
        return false;
    }
    const struct nest *nest = &body->nests.items[0];
    if (nest->rank + nest->reduce_rank + 1 > MAX_AXES || !find_contraction(body, 0, &contraction, why))
        return false;
    struct exprs *pool = arena_new(arena, struct exprs);
    exprs_init(pool, arena, body->pool->dims);
    *out = (struct definition){.pool = pool};
    for (uint32_t i = 0; i < body->buffers.count; i++)
        definition_buffer(out, body->buffers.items[i].role, body->buffers.items[i].type);
    dim extents[MAX_AXES];
    struct renumber renumber = {.extents = extents};
    renumber.split = find_split(arena, body, &contraction, &renumber.group);
    for (uint32_t i = 0, to = 0; i < nest->rank + nest->reduce_rank; i++) {
        if (i == renumber.split) {
            const dim group = dim_constant(pool->dims, renumber.group);
            extents[to++] = dim_floor_div(pool->dims, nest->extents[i], group);
            extents[to++] = group;
        } else {
            extents[to++] = dim_current(pool->dims, nest->extents[i]);
        }
    }
    copy_nest(nest, body->pool, &renumber, out, arena);
    return true;
}

/* ---- sides
 * -------------------------------------------------------------------------------------------------------- */

/* How a flat store index grows with each parallel axis. */
static void store_growths(const struct product *product, dim *growths)
{
    const struct nest_store *store = &product->nest->stores[0];
    const struct tensor_type *type = &product->definition.buffers.items[store->buffer].type;
    const expr flat = flat_index(product->definition.pool, type, store->indices);
    for (uint32_t axis = 0; axis < product->nest->rank; axis++)
        growths[axis] = product_growth(product, flat, axis);
}

static bool is_one(const struct product *product, dim extent)
{
    return dim_equals_constant(product->dims, extent, 1);
}

/* The innermost axes of a role that lie behind each other in the output become the side's index; the rest are
 * outer. */
static void fill_side(struct product *product, const enum axis_role *roles, enum axis_role role,
                      const dim *growths, struct side *side)
{
    uint32_t chain[MAX_AXES], count = 0;
    side->extent = dim_constant(product->dims, 1);
    dim growth = DIM_NONE;
    for (uint32_t axis = product->nest->rank; axis-- > 0;) {
        const dim extent = product->nest->extents[axis];
        if (roles[axis] != role || is_one(product, extent))
            continue;
        const bool joins = count == 0 || (growth != DIM_NONE && growths[axis] == growth);
        if (!joins) {
            product->outer[product->outer_count++] = axis;
            growth = DIM_NONE;
            continue;
        }
        chain[count++] = axis;
        side->extent = dim_mul(product->dims, side->extent, extent);
        growth = dim_mul(product->dims, growths[axis], extent);
    }
    for (uint32_t i = 0; i < count; i++)
        side->axes[i] = chain[count - 1 - i];
    side->axis_count = count;
}

static bool constant_sizes(const struct product *product, const struct side *side)
{
    int64_t value;
    if (!dim_is_constant(product->dims, side->extent, &value) || value == 0 ||
        !dim_is_constant(product->dims, product->depth, &value) || value == 0)
        return false;
    for (uint32_t i = 0; i < product->outer_count; i++)
        if (product_uses(product, side->factor, product->outer[i]) &&
            (!dim_is_constant(product->dims, product->nest->extents[product->outer[i]], &value) ||
             value == 0))
            return false;
    return true;
}

/* One constant buffer feeds the factor, and nothing else. */
static bool is_constant_side(const struct strategy_context *context, const struct product *product,
                             const struct side *side)
{
    const struct exprs *pool = product->definition.pool;
    const bool *reached = expr_reached(product->arena, pool, side->factor);
    if (!context->is_constant(context, side->buffer) || !constant_sizes(product, side))
        return false;
    for (expr x = 1; x <= side->factor; x++) {
        const struct expr_node *node = expr_at(pool, x);
        if (reached[x] && (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) &&
            (uint32_t)node->value != side->buffer)
            return false;
        if (reached[x] && node->op == EXPR_DIM)
            return false;
    }
    return true;
}

static void set_factor(const struct product *product, struct side *side, expr factor, expr load)
{
    side->factor = factor;
    side->load = load;
    side->buffer = (uint32_t)expr_at(product->definition.pool, load)->value;
}

static bool find_accumulator(struct product *product, struct text *why)
{
    const struct nest *nest = product->nest;
    product->accumulator = expr_at(product->definition.pool, nest->reductions[0].body)->dtype;
    if (product->accumulator == DTYPE_F32 || product->accumulator == DTYPE_F64 ||
        product->accumulator == DTYPE_I32)
        return true;
    text_printf(why, "the sum is of type %s", dtype_name(product->accumulator));
    return false;
}

static bool multiply_extents(struct product *product, struct text *why)
{
    const struct nest *nest = product->nest;
    product->depth = product->outer_extent = dim_constant(product->dims, 1);
    for (uint32_t i = 0; i < nest->reduce_rank; i++) {
        const dim extent = nest->extents[nest->rank + i];
        product->digits[product->digit_count++] =
            (struct digit){.axis = nest->rank + i, .extent = extent, .step = 1};
        product->depth = dim_mul(product->dims, product->depth, extent);
    }
    for (uint32_t i = 0; i < product->outer_count; i++)
        product->outer_extent =
            dim_mul(product->dims, product->outer_extent, nest->extents[product->outer[i]]);
    if (product->depth && product->outer_extent && product->rows.extent && product->columns.extent)
        return true;
    text_put(why, "its sizes are too large");
    return false;
}

bool product_find(const struct strategy_context *context, bool swap, struct product *out, struct text *why)
{
    memset(out, 0, sizeof *out);
    out->arena = context->arena;
    out->dims = context->group->body.pool->dims;
    struct contraction contraction;
    if (!product_normalise(context, &out->definition, why) ||
        !find_contraction(&out->definition, 0, &contraction, why))
        return false;
    out->nest = &out->definition.nests.items[0];
    if (!find_accumulator(out, why))
        return false;
    dim growths[MAX_AXES];
    store_growths(out, growths);
    /* Columns are the side of the last axis with which the output is consecutive, or simply of the last one.
     */
    enum axis_role inner = AXIS_BATCH;
    for (uint32_t axis = 0; axis < out->nest->rank; axis++)
        if ((contraction.roles[axis] == AXIS_LEFT || contraction.roles[axis] == AXIS_RIGHT) &&
            !is_one(out, out->nest->extents[axis]))
            inner = contraction.roles[axis];
    for (uint32_t axis = 0; axis < out->nest->rank; axis++)
        if ((contraction.roles[axis] == AXIS_LEFT || contraction.roles[axis] == AXIS_RIGHT) &&
            dim_equals_constant(out->dims, growths[axis], 1) && !is_one(out, out->nest->extents[axis]))
            inner = contraction.roles[axis];
    if (inner == AXIS_BATCH)
        inner = AXIS_RIGHT;
    out->swapped = swap;
    const bool left_columns = (inner == AXIS_LEFT) != swap;
    set_factor(out, left_columns ? &out->columns : &out->rows, contraction.left, contraction.left_load);
    set_factor(out, left_columns ? &out->rows : &out->columns, contraction.right, contraction.right_load);
    for (uint32_t axis = 0; axis < out->nest->rank; axis++)
        if (contraction.roles[axis] == AXIS_BATCH && !is_one(out, out->nest->extents[axis]))
            out->outer[out->outer_count++] = axis;
    fill_side(out, contraction.roles, left_columns ? AXIS_LEFT : AXIS_RIGHT, growths, &out->columns);
    fill_side(out, contraction.roles, left_columns ? AXIS_RIGHT : AXIS_LEFT, growths, &out->rows);
    if (!multiply_extents(out, why))
        return false;
    out->rows.constant = is_constant_side(context, out, &out->rows);
    out->columns.constant = is_constant_side(context, out, &out->columns);
    return true;
}

dim product_bytes(const struct product *product)
{
    struct dims *dims = product->dims;
    const struct definition *d = &product->definition;
    dim total = dim_constant(dims, 0);
    bool *used = arena_new_array(product->arena, bool, d->buffers.count);
    product_mark_stores(product, used);
    product_mark_loads(product, product->rows.factor, used);
    product_mark_loads(product, product->columns.factor, used);
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        const struct tensor_type *type = &d->buffers.items[i].type;
        const dim bytes = dim_constant(dims, (int64_t)(dtype_bits(type->dtype) + 7) / 8);
        if (used[i])
            total = dim_add(dims, total, dim_mul(dims, tensor_elements(dims, type), bytes));
    }
    return total == DIM_NONE ? dim_constant(dims, 0) : total;
}

/* ---- flattened indices
 * -------------------------------------------------------------------------------------------- */

void side_axes(const struct side *side, const struct product *product, struct exprs *pool, expr index,
               expr *axes)
{
    for (uint32_t i = side->axis_count; i-- > 0;) {
        const expr extent = expr_dim(pool, product->nest->extents[side->axes[i]]);
        axes[side->axes[i]] = i ? expr_binary(pool, EXPR_INDEX_MOD, index, extent) : index;
        if (i)
            index = expr_binary(pool, EXPR_INDEX_DIV, index, extent);
    }
}

void depth_axes(const struct product *product, struct exprs *pool, expr depth, expr *axes)
{
    for (uint32_t i = 0; i < product->digit_count; i++)
        axes[product->digits[i].axis] = expr_index(pool, 0);
    for (uint32_t i = product->digit_count; i-- > 0;) {
        const struct digit *digit = &product->digits[i];
        const expr extent = expr_dim(pool, digit->extent);
        const expr value = i ? expr_binary(pool, EXPR_INDEX_MOD, depth, extent) : depth;
        const expr scaled = expr_binary(pool, EXPR_MUL, value, expr_index(pool, digit->step));
        axes[digit->axis] = expr_binary(pool, EXPR_ADD, axes[digit->axis], scaled);
        if (i)
            depth = expr_binary(pool, EXPR_INDEX_DIV, depth, extent);
    }
}

/* ---- panels of constants
 * ------------------------------------------------------------------------------------------ */

struct recipe {
    const expr *axes;
};

static expr recipe_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    const struct recipe *recipe = user;
    if (node->op == EXPR_AXIS)
        return recipe->axes[node->value];
    if (node->op != EXPR_LOAD && node->op != EXPR_LOAD_OR)
        return 0;
    struct expr_node renamed = *node;
    renamed.value = 0;
    renamed.arguments = arguments;
    return expr_make(into, &renamed);
}

struct derived product_recipe(const struct product *product, const struct side *side, uint32_t width)
{
    struct arena *arena = product->arena;
    struct dims *dims = product->dims;
    struct exprs *pool = arena_new(arena, struct exprs);
    exprs_init(pool, arena, dims);
    struct derived derived = {.source = side->buffer, .recipe = {.pool = pool}};
    const dim lanes = dim_constant(dims, (int64_t)width);
    dim extents[MAX_AXES];
    uint32_t rank = 0;
    expr axes[MAX_AXES] = {0};
    for (uint32_t i = 0; i < MAX_AXES; i++)
        axes[i] = expr_index(pool, 0);
    for (uint32_t i = 0; i < product->outer_count; i++) {
        const uint32_t axis = product->outer[i];
        if (!product_uses(product, side->factor, axis))
            continue;
        extents[rank] = product->nest->extents[axis];
        axes[axis] = expr_axis(pool, rank, extents[rank]);
        rank++;
    }
    extents[rank] = dim_ceil_div(dims, side->extent, lanes);
    const expr tile = expr_axis(pool, rank, extents[rank]);
    rank++;
    for (uint32_t i = 0; i < product->digit_count; i++) {
        const struct digit *digit = &product->digits[i];
        extents[rank] = digit->extent;
        const expr scaled =
            expr_binary(pool, EXPR_MUL, expr_axis(pool, rank, extents[rank]), expr_index(pool, digit->step));
        axes[digit->axis] = expr_binary(pool, EXPR_ADD, axes[digit->axis], scaled);
        rank++;
    }
    extents[rank] = lanes;
    expr index = expr_binary(pool, EXPR_MUL, tile, expr_index(pool, (int64_t)width));
    index = expr_binary(pool, EXPR_ADD, index, expr_axis(pool, rank, lanes));
    rank++;
    const expr limit = expr_dim(pool, side->extent);
    const expr inside = expr_binary(pool, EXPR_LESS, index, limit);
    side_axes(side, product, pool,
              expr_binary(pool, EXPR_MIN, index, expr_binary(pool, EXPR_SUB, limit, expr_index(pool, 1))),
              axes);
    struct recipe recipe = {.axes = axes};
    const expr value = expr_rewrite(pool, product->definition.pool, side->factor, recipe_leaf, &recipe);
    const enum dtype dtype = product->accumulator;
    const expr zero = dtype_is_float(dtype) ? expr_float(pool, dtype, 0) : expr_int(pool, dtype, 0);
    struct definition *d = &derived.recipe;
    definition_buffer(d, BUFFER_INPUT, product->definition.buffers.items[side->buffer].type);
    definition_buffer(d, BUFFER_OUTPUT, tensor_type_new(arena, dtype, (int)rank, extents));
    struct nest *nest = definition_nest(d, rank, extents, 0, NULL);
    nest_store(d, nest, 1, NULL, expr_select(pool, inside, value, zero));
    return derived;
}

expr product_outer_index(const struct product *product, const struct side *side, struct exprs *pool,
                         const expr *axes)
{
    expr index = expr_index(pool, 0);
    for (uint32_t i = 0; i < product->outer_count; i++) {
        const uint32_t axis = product->outer[i];
        if (!product_uses(product, side->factor, axis))
            continue;
        const expr extent = expr_dim(pool, product->nest->extents[axis]);
        index = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, index, extent), axes[axis]);
    }
    return index;
}

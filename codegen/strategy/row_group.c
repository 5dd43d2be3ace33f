/* See row_group.h. */
#include "codegen/strategy/row_group.h"

#include "codegen/strategy/nest_parts.h"

#include <string.h>

static bool no(struct text *why, const char *reason)
{
    text_put(why, reason);
    return false;
}

/* Temporaries that reduction nests store at their parallel axes. */
static void find_row_values(struct row_group *rows)
{
    for (uint32_t n = 0; n < rows->body->nests.count; n++) {
        const struct nest *nest = &rows->body->nests.items[n];
        for (uint32_t s = 0; nest->reduction_count && s < nest->store_count; s++)
            if (!nest->stores[s].indices &&
                rows->body->buffers.items[nest->stores[s].buffer].role == BUFFER_TEMPORARY)
                rows->is_row_value[nest->stores[s].buffer] = true;
    }
}

/* A load of a row's value at plain axes: they are the nest's row axes. */
static bool match_load(struct row_group *rows, uint32_t n, const struct expr_node *node, bool *found)
{
    const struct exprs *pool = rows->body->pool;
    if (node->op == EXPR_LOAD_OR || node->count != rows->rank)
        return false;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct expr_node *index = expr_at(pool, node->arguments[i]);
        int64_t value;
        if (expr_constant_int(pool, node->arguments[i], &value) && value == 0 &&
            dim_equals_constant(pool->dims, rows->extents[i], 1))
            continue;
        if (index->op != EXPR_AXIS || dim_equal(pool->dims, index->extent, rows->extents[i]) != 1 ||
            (*found && rows->row_axis[n][index->value] != (signed char)i))
            return false;
        rows->row_axis[n][index->value] = (signed char)i;
    }
    *found = true;
    return true;
}

static bool match_loads(struct row_group *rows, uint32_t n, expr e, bool *visited, bool *found)
{
    if (visited[e])
        return true;
    visited[e] = true;
    const struct expr_node *node = expr_at(rows->body->pool, e);
    bool is_load = node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR;
    if (is_load && rows->is_row_value[node->value] && !match_load(rows, n, node, found))
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!match_loads(rows, n, node->arguments[i], visited, found))
            return false;
    return true;
}

static bool match_map_nest(struct row_group *rows, uint32_t n, struct arena *arena)
{
    const struct nest *nest = &rows->body->nests.items[n];
    bool *visited = arena_new_array(arena, bool, rows->body->pool->nodes.count);
    bool found = false;
    for (uint32_t s = 0; s < nest->store_count; s++)
        if (!match_loads(rows, n, nest->stores[s].value, visited, &found))
            return false;
    return found;
}

/* A buffer that one nest stores and another loads must be a row's value: others would need their neighbours'
 * points. */
static bool flows_in_rows(const struct strategy_context *context, const struct row_group *rows)
{
    const struct definition *body = rows->body;
    bool stored[MAX_BUFFERS] = {false};
    for (uint32_t n = 0; n < body->nests.count; n++) {
        const struct nest *nest = &body->nests.items[n];
        bool loaded[MAX_BUFFERS] = {false};
        for (uint32_t r = 0; r < nest->reduction_count; r++)
            expr_mark_loads(context->arena, body->pool, nest->reductions[r].body, loaded);
        for (uint32_t s = 0; s < nest->store_count; s++)
            expr_mark_loads(context->arena, body->pool, nest->stores[s].value, loaded);
        for (uint32_t i = 0; i < body->buffers.count; i++)
            if (loaded[i] && stored[i] && !rows->is_row_value[i])
                return false;
        for (uint32_t s = 0; s < nest->store_count; s++)
            stored[nest->stores[s].buffer] = true;
    }
    return true;
}

/* The rows are the parallel axes of the first reduction; all others must agree. */
static bool agree_on_rows(struct row_group *rows, struct text *why)
{
    const struct definition *body = rows->body;
    struct dims *dims = body->pool->dims;
    bool found = false;
    for (uint32_t n = 0; n < body->nests.count; n++) {
        const struct nest *nest = &body->nests.items[n];
        if (!nest->reduction_count)
            continue;
        bool same = !found || nest->rank == rows->rank;
        for (uint32_t i = 0; found && same && i < nest->rank; i++)
            same = dim_equal(dims, nest->extents[i], rows->extents[i]) == 1;
        if (!same)
            return no(why, "reductions over different rows");
        rows->rank = nest->rank;
        memcpy(rows->extents, nest->extents, sizeof rows->extents);
        found = true;
        for (uint32_t i = 0; i < nest->rank; i++)
            rows->row_axis[n][i] = (signed char)i;
        dim length = dim_constant(dims, 1);
        for (uint32_t i = 0; i < nest->reduce_rank; i++)
            length = dim_mul(dims, length, nest->extents[nest->rank + i]);
        int64_t hint = dim_hint(dims, length);
        rows->length = hint > rows->length ? hint : rows->length;
    }
    return found || no(why, "no reduction");
}

bool find_row_group(const struct strategy_context *context, struct row_group *rows, struct text *why)
{
    const struct definition *body = &context->group->body;
    *rows = (struct row_group){.body = body};
    if (body->nests.count > MAX_ROW_NESTS)
        return no(why, "too many nests");
    memset(rows->row_axis, -1, sizeof rows->row_axis);
    if (!agree_on_rows(rows, why))
        return false;
    find_row_values(rows);
    for (uint32_t n = 0; n < body->nests.count; n++)
        if (!body->nests.items[n].reduction_count && !match_map_nest(rows, n, context->arena))
            return no(why, "a nest whose rows cannot be told");
    return flows_in_rows(context, rows) || no(why, "a nest reads what another nest computes at other points");
}

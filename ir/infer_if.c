/* If. Where its condition is known, the branch's nodes stand in its place. Where sizes decide it when they
 * are known (the condition has contents), the condition becomes an attribute:
 *
 *     If(Cast(Dims{c})) dims={c}
 *
 * so the host decides, and what a branch assumes (guards) holds only where it runs. Three things follow:
 *
 * - A branch that cannot be right, whatever the sizes, is dropped: the other one stands in the If's place,
 * under a guard that names the node that was wrong.
 * - Results whose dims differ have those of the branch that runs: c * a + (1 - c) * b.
 * - Results of different rank are those of the branch that runs where two sizes are equal ("is this dim 1?",
 * as torch.jit writes squeeze): it stands in the If's place, under that guard.
 *
 * A condition on a small integer input is of the same kind once a branch assumes something of sizes: the
 * input is then read on the host. */
#include "ir/infer_internal.h"

#include <string.h>

/* ---- where a branch runs
 * ----------------------------------------------------------------------------------------- */

/* A size that the host has: DIM_NONE for one that hangs on what the model computes. */
static dim of_host(struct infer *infer, dim size)
{
    uint32_t symbols[1], words = 0;
    return size != DIM_NONE && dim_words(&infer->graph->dims, size, symbols, &words, 1) && !words ? size
                                                                                                  : DIM_NONE;
}

static dim known_size(struct infer *infer, value_id value)
{
    uint32_t count = 0;
    const dim *contents = infer_value_contents(infer, value, &count);
    return contents && count == 1 ? of_host(infer, contents[0]) : DIM_NONE;
}

/* The same, where small integer inputs may become host inputs for it. */
static dim demanded_size(struct infer *infer, value_id value)
{
    return of_host(infer, infer_demand_size(infer, value));
}

/* dims.where: 1 or 0, whether what is walked runs. */
static dim path_holds(void *user, bool known)
{
    struct infer *infer = user;
    struct dims *dims = &infer->graph->dims;
    const dim one = dim_constant(dims, 1);
    dim all = one;
    dims->where = NULL;
    for (const struct infer_path *at = infer->path; at && all != DIM_NONE; at = at->around) {
        const dim condition = known ? known_size(infer, at->condition) : demanded_size(infer, at->condition);
        const dim holds = condition == DIM_NONE ? DIM_NONE
                          : at->holds           ? condition
                                                : dim_sub(dims, one, condition);
        all = holds == DIM_NONE ? DIM_NONE : dim_min(dims, all, holds);
    }
    dims->where = path_holds;
    return all;
}

/* What is wrong with a branch goes into `problems`. */
static bool infer_branch(struct infer *infer, node_id node, uint32_t branch, struct diagnostics *problems)
{
    struct dims *dims = &infer->graph->dims;
    struct diagnostics *const outer = infer->diagnostics;
    const struct infer_path path = {infer->path, graph_node(infer->graph, node)->inputs[0], branch == 0};
    const uint32_t before = infer->failures;
    diagnostics_init(problems, outer->arena, outer->file);
    infer->diagnostics = problems;
    infer->path = &path;
    infer->failures = 0;
    dims->where = path_holds;
    dims->where_user = infer;
    infer_region(infer, graph_node(infer->graph, node)->bodies[branch]);
    const bool good = infer->failures == 0;
    infer->failures = before;
    infer->path = path.around;
    dims->where = path.around ? path_holds : NULL;
    infer->diagnostics = outer;
    return good;
}

static void report(struct infer *infer, const struct diagnostics *problems)
{
    for (uint32_t i = 0; i < problems->items.count; i++)
        diag_error(infer->diagnostics, problems->items.items[i].code, problems->items.items[i].location, "%s",
                   problems->items.items[i].message);
    infer->failures += problems->items.count + problems->dropped;
}

/* ---- which branch
 * ------------------------------------------------------------------------------------------------ */

/* The condition is whether two sizes are equal, or, with *negated, whether they are not. */
static bool find_equality(struct infer *infer, value_id condition, dim *a, dim *b, bool *negated)
{
    enum { MOST_STEPS = 16 };
    const struct graph *graph = infer->graph;
    *negated = false;
    for (int step = 0; step < MOST_STEPS && graph_value(graph, condition)->kind == VALUE_RESULT; step++) {
        const struct node *node = graph_node(graph, graph_value(graph, condition)->producer);
        if (node->op == OP_Equal) {
            uint32_t counts[2] = {0, 0};
            const dim *left = infer_value_contents(infer, node->inputs[0], &counts[0]);
            const dim *right = infer_value_contents(infer, node->inputs[1], &counts[1]);
            if (!left || !right || counts[0] != 1 || counts[1] != 1)
                return false;
            *a = left[0];
            *b = right[0];
            return *a != DIM_NONE && *b != DIM_NONE;
        }
        if (node->op != OP_Not && node->op != OP_Cast && node->op != OP_Reshape && node->op != OP_Identity)
            return false;
        *negated ^= node->op == OP_Not;
        condition = node->inputs[0];
    }
    return false;
}

/* The branch alone, since the condition is assumed to choose it; `why` needs that. False: it never does. */
static bool take_branch(struct infer *infer, node_id node, uint32_t branch, dim condition,
                        const struct location *why)
{
    struct dims *dims = &infer->graph->dims;
    dim a = condition, b = dim_constant(dims, branch == 0);
    dim left, right;
    bool negated;
    if (find_equality(infer, graph_node(infer->graph, node)->inputs[0], &left, &right, &negated) &&
        negated == (branch == 1)) {
        a = left;
        b = right;
    }
    if (!dim_merge(dims, a, b, why))
        return false;
    infer_inline_body(infer, node, graph_node(infer->graph, node)->bodies[branch]);
    return true;
}

/* ---- both branches
 * ----------------------------------------------------------------------------------------------- */

static const struct tensor_type *branch_result(const struct infer *infer, node_id node, uint32_t branch,
                                               uint32_t result)
{
    const struct graph *graph = infer->graph;
    const struct region *body = &graph->regions.items[graph_node(graph, node)->bodies[branch]];
    return &graph_value(graph, body->results.items[result])->type;
}

/* a where the condition is 1, b where it is 0. */
static dim choose(struct dims *dims, dim condition, dim a, dim b)
{
    const dim difference = dim_sub(dims, a, b);
    return dim_equal(dims, a, b) == 1 ? a : dim_add(dims, b, dim_mul(dims, condition, difference));
}

static bool refuse_types(struct infer *infer, node_id node, uint32_t result)
{
    return infer_fail(infer, node, DIAG_unsupported_case,
                      "result %u is %s in one branch and %s in the other, which is not supported", result,
                      infer_type_text(infer, branch_result(infer, node, 0, result)),
                      infer_type_text(infer, branch_result(infer, node, 1, result)));
}

/* The host decides: the condition becomes an attribute, and what the device sees follows from it. */
static bool decide_by_sizes(struct infer *infer, node_id node, dim condition)
{
    struct graph *graph = infer->graph;
    const struct location *location = graph_node(graph, node)->location;
    const region_id region = graph_node(graph, node)->region;
    const node_id before = infer->appends ? 0 : node;
    const node_id size = graph_add_node(graph, region, before, OP_Dims, 0, NULL, 1, 0, NULL, location);
    infer_set(infer, size, 0, DTYPE_I64, 0, NULL);
    infer_set_dims(infer, size, ATTR_dims, 1, &condition);
    if (!infer_node(infer, size))
        return false;
    const value_id whole = graph_node(graph, size)->outputs[0];
    const struct attribute to = attribute_dtype(ATTR_to, DTYPE_BOOL);
    const node_id cast = graph_add_node(graph, region, before, OP_Cast, 1, &whole, 1, 1, &to, location);
    if (!infer_node(infer, cast))
        return false;
    graph_node(graph, node)->inputs[0] = graph_node(graph, cast)->outputs[0];
    infer_set_dims(infer, node, ATTR_dims, 1, &condition);
    return true;
}

/* The results' types, where the branches agree on them or sizes choose. */
static bool join_branches(struct infer *infer, node_id node)
{
    struct dims *dims = &infer->graph->dims;
    const uint32_t count = graph_node(infer->graph, node)->output_count;
    const value_id value = graph_node(infer->graph, node)->inputs[0];
    dim condition = known_size(infer, value);
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor_type *a = branch_result(infer, node, 0, i), *b = branch_result(infer, node, 1, i);
        dim joined[MAX_RANK], left, right;
        bool negated;
        if (a->rank != b->rank || a->dtype != b->dtype || a->rank < 0) {
            condition = demanded_size(infer, value);
            if (condition == DIM_NONE || !infer->appends || a->rank < 0 || b->rank < 0 ||
                !find_equality(infer, value, &left, &right, &negated))
                return refuse_types(infer, node, i);
            return take_branch(infer, node, negated, condition, graph_node(infer->graph, node)->location) ||
                   refuse_types(infer, node, i);
        }
        for (int k = 0; k < a->rank; k++) {
            joined[k] = a->dims[k];
            if (dim_equal(dims, a->dims[k], b->dims[k]) == 1)
                continue;
            condition = demanded_size(infer, value);
            if (condition == DIM_NONE)
                return refuse_types(infer, node, i);
            joined[k] = choose(dims, condition, a->dims[k], b->dims[k]);
        }
        infer_set(infer, node, i, a->dtype, a->rank, joined);
    }
    return condition == DIM_NONE || decide_by_sizes(infer, node, condition);
}

bool infer_if(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    const struct tensor_type *type = infer_input(infer, node, 0);
    const value_id value = graph_node(graph, node)->inputs[0];
    struct diagnostics problems[2];
    int64_t known = 0;
    if (type->dtype != DTYPE_BOOL)
        return infer_fail(infer, node, DIAG_wrong_type, "the condition is %s, must be bool",
                          infer_type_text(infer, type));
    if (!infer_equal(infer, node, tensor_elements(&graph->dims, type), dim_constant(&graph->dims, 1),
                     "the condition's number of elements"))
        return false;
    const dim size = known_size(infer, value);
    if (infer->appends && size != DIM_NONE && dim_is_constant(&graph->dims, size, &known)) {
        const uint32_t before = infer->failures;
        const region_id body = graph_node(graph, node)->bodies[known ? 0 : 1];
        infer_region(infer, body);
        if (infer->failures == before)
            infer_inline_body(infer, node, body);
        return infer->failures == before;
    }
    const bool good[2] = {infer_branch(infer, node, 0, &problems[0]),
                          infer_branch(infer, node, 1, &problems[1])};
    if (good[0] && good[1])
        return join_branches(infer, node);
    const uint32_t right = good[0] ? 0 : 1;
    if (infer->appends && good[right]) {
        const struct diagnostics *wrong = &problems[1 - right];
        const dim condition = demanded_size(infer, value);
        if (condition != DIM_NONE && wrong->items.count &&
            take_branch(infer, node, right, condition, wrong->items.items[0].location))
            return true;
    }
    report(infer, &problems[0]);
    report(infer, &problems[1]);
    return false;
}

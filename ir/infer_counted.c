/* Loops whose condition counts: TensorFlow writes `for` as a condition over counters that the body
 * increments. Then the number of iterations is a dim, scan outputs have a length, and nothing is decided with
 * the data.
 *
 * A counter is the iteration's number, or a state of one integer that begins at a known number and grows
 * by 1. The condition is a conjunction of comparisons of counters with known numbers: behind iteration j,
 * `base + j < n` lets the loop go on. */
#include "ir/infer_internal.h"

enum { MOST_TERMS = 16, MOST_STEPS = 16 };

/* The integer behind conversions that keep it. A float holds integers up to 2^24, so the bound is assumed to
 * be smaller. */
static value_id behind_casts(const struct graph *graph, value_id value, bool *floats)
{
    for (uint32_t steps = 0; steps < MOST_STEPS; steps++) {
        if (graph_value(graph, value)->kind != VALUE_RESULT)
            return value;
        const struct node *node = graph_node(graph, graph_value(graph, value)->producer);
        if (node->op != OP_Cast && node->op != OP_Identity && node->op != OP_Reshape)
            return value;
        *floats = *floats || (DTYPES_FLOAT >> graph_value(graph, value)->type.dtype & 1);
        value = node->inputs[0];
    }
    return value;
}

static bool known_number(struct infer *infer, value_id value, dim *out)
{
    uint32_t count = 0;
    const dim *contents = infer_value_contents(infer, value, &count);
    if (!contents || count != 1 || contents[0] == DIM_NONE)
        return false;
    *out = contents[0];
    return true;
}

/* The state is replaced by itself plus 1. */
static bool grows_by_one(struct infer *infer, value_id argument, value_id next)
{
    const struct graph *graph = infer->graph;
    if (graph_value(graph, next)->kind != VALUE_RESULT)
        return false;
    const struct node *node = graph_node(graph, graph_value(graph, next)->producer);
    dim step;
    if (node->op != OP_Add || (node->inputs[0] != argument && node->inputs[1] != argument))
        return false;
    return known_number(infer, node->inputs[node->inputs[0] == argument], &step) &&
           dim_equals_constant(&infer->graph->dims, step, 1);
}

/* The value at iteration j is *base + j. */
static bool is_counter(struct infer *infer, const struct counted_loop *loop, value_id value, dim *base)
{
    struct dims *dims = &infer->graph->dims;
    if (value == loop->iteration) {
        *base = dim_constant(dims, 0);
        return true;
    }
    for (uint32_t i = 0; i < loop->states; i++) {
        dim first;
        if ((value != loop->arguments[i] && value != loop->results[i]) ||
            !grows_by_one(infer, loop->arguments[i], loop->results[i]) ||
            !known_number(infer, loop->initial[i], &first))
            continue;
        *base = value == loop->arguments[i] ? first : dim_add(dims, first, dim_constant(dims, 1));
        return true;
    }
    return false;
}

/* A conjunction taken apart; 0: too many terms. */
static uint32_t find_terms(const struct graph *graph, value_id condition, value_id *terms)
{
    uint32_t found = 0, open = 1;
    value_id todo[MOST_TERMS] = {condition};
    while (open) {
        const value_id term = todo[--open];
        const struct value *value = graph_value(graph, term);
        if (value->kind != VALUE_RESULT || graph_node(graph, value->producer)->op != OP_And) {
            if (found == MOST_TERMS)
                return 0;
            terms[found++] = term;
            continue;
        }
        if (open + 2 > MOST_TERMS)
            return 0;
        for (uint32_t i = 0; i < 2; i++)
            todo[open++] = graph_node(graph, value->producer)->inputs[i];
    }
    return found;
}

/* A comparison as left < right, of numbers or counters; `reaches`: left <= right. False: it is none. */
static bool find_sides(const struct graph *graph, value_id term, value_id *left, value_id *right,
                       bool *reaches)
{
    if (graph_value(graph, term)->kind != VALUE_RESULT)
        return false;
    const struct node *node = graph_node(graph, graph_value(graph, term)->producer);
    const bool turned = node->op == OP_Greater || node->op == OP_GreaterOrEqual;
    if (!turned && node->op != OP_Less && node->op != OP_LessOrEqual)
        return false;
    *left = node->inputs[turned];
    *right = node->inputs[!turned];
    *reaches = node->op == OP_LessOrEqual || node->op == OP_GreaterOrEqual;
    return true;
}

/* How many iterations a comparison allows, the first taken for granted: the span, or 1. */
static bool find_span(struct infer *infer, const struct counted_loop *loop, value_id term, dim *span)
{
    struct dims *dims = &infer->graph->dims;
    value_id left, right;
    bool reaches, floats = false;
    dim base, bound;
    if (!find_sides(infer->graph, term, &left, &right, &reaches) ||
        !is_counter(infer, loop, behind_casts(infer->graph, left, &floats), &base) ||
        !known_number(infer, right, &bound))
        return false;
    const struct location *location =
        graph_node(infer->graph, graph_value(infer->graph, term)->producer)->location;
    if (floats && !dim_assume_at_least(dims, dim_sub(dims, dim_constant(dims, 1 << 24), bound), 0, location))
        return false;
    *span = dim_add(dims, dim_sub(dims, bound, base), dim_constant(dims, reaches ? 2 : 1));
    return true;
}

/* Before the loop: it runs where the span is positive. */
static bool find_first_span(struct infer *infer, value_id term, dim *span)
{
    struct dims *dims = &infer->graph->dims;
    value_id left, right;
    bool reaches;
    dim a, b;
    if (!find_sides(infer->graph, term, &left, &right, &reaches) || !known_number(infer, left, &a) ||
        !known_number(infer, right, &b))
        return false;
    *span = dim_add(dims, dim_sub(dims, b, a), dim_constant(dims, reaches));
    return true;
}

dim infer_count_trips(struct infer *infer, const struct counted_loop *loop, value_id condition,
                      value_id first)
{
    struct dims *dims = &infer->graph->dims;
    value_id terms[MOST_TERMS];
    dim spans[MOST_TERMS], least = DIM_NONE;
    bool from_zero[MOST_TERMS] = {false};
    const uint32_t count = find_terms(infer->graph, condition, terms);
    for (uint32_t i = 0; i < count; i++)
        if (!find_span(infer, loop, terms[i], &spans[i]))
            return DIM_NONE;
    /* What must hold before the loop is what must hold behind an iteration -1: then 0 trips come out by
     * themselves. */
    const uint32_t first_count = first ? find_terms(infer->graph, first, terms) : 0;
    if (first && !first_count)
        return DIM_NONE;
    for (uint32_t i = 0; i < first_count; i++) {
        dim span;
        bool matched = false;
        if (!find_first_span(infer, terms[i], &span))
            return DIM_NONE;
        for (uint32_t k = 0; k < count; k++)
            if (dim_equal(dims, span, spans[k]) == 1)
                matched = from_zero[k] = true;
        if (!matched)
            return DIM_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        const dim trips = dim_max(dims, spans[i], dim_constant(dims, from_zero[i] ? 0 : 1));
        least = least == DIM_NONE ? trips : dim_min(dims, least, trips);
    }
    return least;
}

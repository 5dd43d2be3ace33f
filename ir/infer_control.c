/* Loops. Loop and Scan are bound to While, the one loop of the canonical graph: a condition, and states that
 * the body turns into the next ones.
 *
 *     Loop(trips, condition, s)  body (i, c, s) -> (c', s', e)
 *     While(condition && 0 < trips, 0, s, zeros[trips, ..])
 *         body (i, s, a) -> (c' && i + 1 < trips, i + 1, s', SetElement(a, e, i))
 *
 * Scan is the same with a known number of trips and scanned inputs that the body takes by Gather. A state
 * keeps its type: a loop whose states grow, or that may end early and gives scan outputs, has sizes that only
 * a run would tell. */
#include "ir/infer_internal.h"

#include <string.h>

struct loop {
    struct infer *infer;
    node_id node;     /* the Loop or Scan */
    region_id parent; /* where it stands */
    region_id body;
    uint32_t states, scans;
    value_id trips;     /* scalar, 0: no bound */
    value_id condition; /* scalar, 0: true */
    dim length;         /* of scan outputs; DIM_NONE: not known */
    bool ends_early;    /* the body's condition may be false */
    bool counted;       /* how often it ran is known behind it: the length is a bound */
    value_id iteration; /* argument */
    value_id zero, one;
};

/* ---- making nodes
 * ------------------------------------------------------------------------------------------------------ */

/* A node at the end of the body, or before the loop; its type is inferred. 0: reported. */
static value_id emit(struct loop *loop, region_id region, enum op op, uint32_t input_count,
                     const value_id *inputs)
{
    struct graph *graph = loop->infer->graph;
    const node_id before = region == loop->parent && !loop->infer->appends ? loop->node : 0;
    const node_id made = graph_add_node(graph, region, before, op, input_count, inputs, 1, 0, NULL,
                                        graph_node(graph, loop->node)->location);
    if (!infer_node(loop->infer, made))
        return 0;
    return graph_node(graph, made)->outputs[0];
}

static value_id emit2(struct loop *loop, region_id region, enum op op, value_id a, value_id b)
{
    return a && b ? emit(loop, region, op, 2, (value_id[]){a, b}) : 0;
}

/* A node whose result's dims say all: Reshape, Expand, Dims. */
static value_id emit_typed(struct loop *loop, region_id region, enum op op, value_id input, enum dtype dtype,
                           int rank, const dim *dims)
{
    struct graph *graph = loop->infer->graph;
    const node_id before = region == loop->parent && !loop->infer->appends ? loop->node : 0;
    const node_id made = graph_add_node(graph, region, before, op, input != 0, &input, 1, 0, NULL,
                                        graph_node(graph, loop->node)->location);
    infer_set(loop->infer, made, 0, dtype, rank, dims);
    return graph_node(graph, made)->outputs[0];
}

static value_id dim_value(struct loop *loop, region_id region, dim d)
{
    const value_id value = emit_typed(loop, region, OP_Dims, 0, DTYPE_I64, 0, NULL);
    const node_id made = graph_value(loop->infer->graph, value)->producer;
    infer_set_dims(loop->infer, made, ATTR_dims, 1, &d);
    infer_find_contents(loop->infer, made);
    return value;
}

/* A bool or trip count of one element as a scalar. 0: reported. */
static value_id as_scalar(struct loop *loop, region_id region, value_id value, enum dtype dtype,
                          const char *what)
{
    struct infer *infer = loop->infer;
    const struct tensor_type *type = &graph_value(infer->graph, value)->type;
    if (type->dtype != dtype || type->rank < 0) {
        infer_fail(infer, loop->node, DIAG_wrong_type, "%s must be one %s, is %s", what, dtype_name(dtype),
                   infer_type_text(infer, type));
        return 0;
    }
    if (!infer_equal(infer, loop->node, tensor_elements(&infer->graph->dims, type),
                     dim_constant(&infer->graph->dims, 1), what))
        return 0;
    return type->rank == 0 ? value : emit_typed(loop, region, OP_Reshape, value, dtype, 0, NULL);
}

static bool is_true(struct infer *infer, value_id value)
{
    uint32_t count = 0;
    int64_t known = 0;
    const dim *contents = infer_value_contents(infer, value, &count);
    return contents && count == 1 && contents[0] != DIM_NONE &&
           dim_is_constant(&infer->graph->dims, contents[0], &known) && known != 0;
}

static value_id scalar_constant(struct graph *graph, enum dtype dtype)
{
    const unsigned char zeros[16] = {0};
    return graph_add_constant_data(graph, dtype, 0, NULL, zeros);
}

/* ---- bodies
 * -------------------------------------------------------------------------------------------------- */

void infer_inline_body(struct infer *infer, node_id node, region_id body)
{
    struct graph *graph = infer->graph;
    const region_id parent = graph_node(graph, node)->region;
    for (uint32_t i = 0; i < graph->regions.items[body].nodes.count; i++) {
        const node_id moved = graph->regions.items[body].nodes.items[i];
        graph_node(graph, moved)->region = parent;
        vec_push(graph->arena, &graph->regions.items[parent].nodes, moved);
    }
    graph->regions.items[body].nodes.count = 0;
    for (uint32_t i = 0; i < graph_node(graph, node)->output_count; i++)
        if (graph_node(graph, node)->outputs[i])
            graph_replace_uses(graph, graph_node(graph, node)->outputs[i],
                               graph->regions.items[body].results.items[i]);
    graph_node(graph, node)->output_count = 0;
    graph_remove_node(graph, node);
}

/* ---- loops
 * --------------------------------------------------------------------------------------------------- */

static void set_argument(struct graph *graph, value_id argument, const struct tensor_type *type)
{
    struct value *value = graph_value(graph, argument);
    value->type = tensor_type_new(graph->arena, type->dtype, type->rank, type->dims);
}

/* The state's dim stays as it is. It is assumed to where the other dim comes from an input or a broadcast; to
 * assume it of what the body computes would make a state that doubles an empty one. */
static bool stays(struct infer *infer, node_id node, dim now, dim next)
{
    struct dims *dims = &infer->graph->dims;
    now = dim_current(dims, now);
    next = dim_current(dims, next);
    if (now == DIM_NONE || next == DIM_NONE)
        return false;
    const enum dim_op op = dims->nodes.items[next].op;
    return dim_equal(dims, next, now) == 1 ||
           ((op == DIM_SYMBOL || op == DIM_MAX) &&
            dim_merge(dims, next, now, graph_node(infer->graph, node)->location));
}

/* Result `result` of the body is the next value of state `state`, which stood in `type`. */
static bool check_state(struct infer *infer, node_id node, uint32_t state, const struct tensor_type *type,
                        value_id result)
{
    const struct tensor_type *next = &graph_value(infer->graph, result)->type;
    if (next->rank < 0)
        return false; /* reported */
    bool same = next->dtype == type->dtype && next->rank == type->rank;
    for (int i = 0; same && i < type->rank; i++)
        same = stays(infer, node, type->dims[i], next->dims[i]);
    return same ||
           infer_fail(infer, node, DIAG_unsupported_case,
                      "state %u is %s and the body gives %s: a state that changes its shape is not supported",
                      state, infer_type_text(infer, type), infer_type_text(infer, next));
}

bool infer_while(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    const region_id body = graph_node(graph, node)->bodies[0];
    const uint32_t states = graph_node(graph, node)->input_count - 1, before = infer->failures;
    for (uint32_t i = 0; i < states; i++)
        set_argument(graph, graph->regions.items[body].arguments.items[i], infer_input(infer, node, 1 + i));
    infer_region(infer, body);
    if (infer->failures != before)
        return false;
    for (uint32_t i = 0; i < states; i++) {
        const struct tensor_type type = *infer_input(infer, node, 1 + i);
        if (!check_state(infer, node, i, &type, graph->regions.items[body].results.items[1 + i]))
            return false;
        infer_set(infer, node, i, type.dtype, type.rank, type.dims);
    }
    return true;
}

/* The scan output's states: zeros before the loop, an argument, and the argument with this iteration's
 * element. */
struct accumulator {
    value_id initial, argument, next;
};

static bool accumulate(struct loop *loop, value_id element, value_id index, struct accumulator *out)
{
    struct graph *graph = loop->infer->graph;
    const struct tensor_type type = graph_value(graph, element)->type;
    dim dims[MAX_RANK + 1];
    if (type.rank < 0)
        return false;
    if (loop->length == DIM_NONE || (loop->counted && loop->parent != GRAPH_BODY))
        return infer_fail(
            loop->infer, loop->node, DIAG_unsupported_case,
            loop->length == DIM_NONE
                ? "its scan outputs have no bound on their length, which is not supported"
                : "in a body, the length of its scan outputs hangs on data, which is not supported");
    if (type.rank == MAX_RANK)
        return infer_fail(loop->infer, loop->node, DIAG_limit_exceeded, "a scan output has more than %d dims",
                          (int)MAX_RANK);
    dims[0] = loop->length;
    for (int i = 0; i < type.rank; i++)
        dims[1 + i] = type.dims[i];
    out->initial = emit_typed(loop, loop->parent, OP_Expand, scalar_constant(graph, type.dtype), type.dtype,
                              type.rank + 1, dims);
    out->argument = graph_add_argument(graph, loop->body, type.dtype);
    const struct tensor_type whole = tensor_type_new(graph->arena, type.dtype, type.rank + 1, dims);
    set_argument(graph, out->argument, &whole);
    out->next = emit(loop, loop->body, OP_SetElement, 3, (value_id[]){out->argument, element, index});
    return out->next != 0;
}

/* Whether the loop goes on, before the first iteration and behind each. `next`: the iteration's number plus
 * 1; `condition`: the body's, 0: always true. */
static bool find_conditions(struct loop *loop, value_id next, value_id condition, value_id *first,
                            value_id *again)
{
    struct graph *graph = loop->infer->graph;
    const unsigned char yes = 1;
    *first = loop->condition;
    *again = loop->ends_early ? condition : 0;
    if (loop->trips) {
        const value_id some = emit2(loop, loop->parent, OP_Less, loop->zero, loop->trips);
        /* a number that sizes make stands in the body too, where it joins the comparison */
        int64_t constant;
        const bool sized =
            loop->length != DIM_NONE && !dim_is_constant(&graph->dims, loop->length, &constant);
        const value_id trips = sized ? dim_value(loop, loop->body, loop->length) : loop->trips;
        const value_id more = emit2(loop, loop->body, OP_Less, next, trips);
        if (!some || !more)
            return false;
        *first = *first ? emit2(loop, loop->parent, OP_And, *first, some) : some;
        *again = *again ? emit2(loop, loop->body, OP_And, *again, more) : more;
    }
    if (!*first && !loop->condition)
        *first = graph_add_constant_data(graph, DTYPE_BOOL, 0, NULL, &yes);
    if (!*again)
        return infer_fail(loop->infer, loop->node, DIAG_unsupported_case, "the loop never ends");
    return *first != 0;
}

/* The result gets another producer: it is result `index` of that node. */
static void adopt(struct graph *graph, value_id result, node_id producer, uint32_t index)
{
    graph_value(graph, result)->producer = producer;
    graph_value(graph, result)->index = index;
    graph_node(graph, producer)->outputs[index] = result;
}

/* Of a scan output as long as the bound: what the loop has filled, as often as it ran. 0: reported. */
static value_id filled(struct loop *loop, node_id made, value_id whole, value_id result)
{
    struct infer *infer = loop->infer;
    struct graph *graph = infer->graph;
    const struct tensor_type type = graph_value(graph, whole)->type;
    const char *name = graph_value(graph, result)->name;
    dim dims[MAX_RANK], starts[MAX_RANK];
    int64_t steps[MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        dims[i] = type.dims[i];
        starts[i] = dim_constant(&graph->dims, 0);
        steps[i] = 1;
    }
    dims[0] = infer_word(infer, graph_node(graph, made)->outputs[0], 0, loop->length,
                         name ? arena_printf(graph->arena, "%s[0]", name) : NULL);
    const value_id part = emit_typed(loop, loop->parent, OP_Slice, whole, type.dtype, type.rank, dims);
    const node_id slice = graph_value(graph, part)->producer;
    infer_set_dims(infer, slice, ATTR_starts, (uint32_t)type.rank, starts);
    infer_set_ints(infer, slice, ATTR_steps, (uint32_t)type.rank, steps);
    return part;
}

/* The loop's results become the While's, the scan outputs with their axis in its place. */
static bool hand_over(struct loop *loop, node_id made, const uint32_t *axes)
{
    struct infer *infer = loop->infer;
    struct graph *graph = infer->graph;
    const struct location *location = graph_node(graph, loop->node)->location;
    for (uint32_t i = 0; i < loop->states + loop->scans; i++) {
        const value_id result = graph_node(graph, loop->node)->outputs[i];
        const uint32_t axis = i < loop->states ? 0 : axes[i - loop->states];
        if (!result)
            continue;
        value_id stacked = graph_node(graph, made)->outputs[1 + i];
        const bool part = loop->counted && i >= loop->states;
        if (part)
            stacked = filled(loop, made, stacked, result);
        const struct tensor_type type = graph_value(graph, stacked)->type;
        if (!axis && part) {
            graph_value(graph, result)->type = type;
            adopt(graph, result, graph_value(graph, stacked)->producer, 0);
            continue;
        }
        if (!axis) {
            graph_value(graph, result)->type = type;
            adopt(graph, result, made, 1 + i);
            continue;
        }
        int64_t perm[MAX_RANK];
        for (uint32_t k = 0; k < (uint32_t)type.rank; k++)
            perm[k] = k < axis ? k + 1 : k == axis ? 0 : k;
        const struct attribute attribute =
            attribute_ints(ATTR_perm, (uint32_t)type.rank, arena_copy(graph->arena, perm, sizeof perm));
        const node_id moved = graph_add_node(graph, loop->parent, infer->appends ? 0 : loop->node,
                                             OP_Transpose, 1, &stacked, 1, 1, &attribute, location);
        if (!infer_node(infer, moved))
            return false;
        graph_value(graph, result)->type = graph_value(graph, graph_node(graph, moved)->outputs[0])->type;
        adopt(graph, result, moved, 0);
    }
    return true;
}

/* A loop that runs exactly once is its body. */
static bool become_straight(struct loop *loop, const value_id *initial, const value_id *results,
                            const uint32_t *axes)
{
    struct infer *infer = loop->infer;
    struct graph *graph = infer->graph;
    value_id *whole = arena_copy(graph->arena, results, (loop->states + loop->scans) * sizeof *whole);
    for (uint32_t i = 0; i < loop->scans; i++) {
        const struct tensor_type type = graph_value(graph, results[loop->states + i])->type;
        dim dims[MAX_RANK + 1];
        if (type.rank >= MAX_RANK)
            return infer_fail(infer, loop->node, DIAG_limit_exceeded, "a scan output has more than %d dims",
                              (int)MAX_RANK);
        for (uint32_t k = 0; k <= (uint32_t)type.rank; k++)
            dims[k] = k == axes[i] ? dim_constant(&graph->dims, 1) : type.dims[k - (k > axes[i])];
        whole[loop->states + i] = emit_typed(loop, loop->body, OP_Reshape, results[loop->states + i],
                                             type.dtype, type.rank + 1, dims);
    }
    struct region *body = &graph->regions.items[loop->body];
    graph_replace_uses(graph, loop->iteration, loop->zero);
    for (uint32_t i = 0; i < loop->states; i++)
        graph_replace_uses(graph, body->arguments.items[1 + i], initial[i]);
    body->results.count = 0;
    for (uint32_t i = 0; i < loop->states + loop->scans; i++) {
        /* a result that was an argument is what stands for it now */
        value_id result = whole[i];
        for (uint32_t k = 0; k < loop->states; k++)
            if (result == body->arguments.items[1 + k])
                result = initial[k];
        vec_push(graph->arena, &body->results, result == loop->iteration ? loop->zero : result);
    }
    infer_inline_body(infer, loop->node, loop->body);
    return true;
}

static bool runs_once(const struct loop *loop)
{
    return loop->infer->appends && !loop->ends_early && !loop->condition && loop->length != DIM_NONE &&
           dim_equals_constant(&loop->infer->graph->dims, loop->length, 1);
}

/* Makes the While before the loop, takes its body and results over and removes the loop. The body's results
 * are the states, then the elements of the scan outputs; `indices`: where each of these goes, `axes`: which
 * axis of the output it becomes. */
static bool become_while(struct loop *loop, value_id body_condition, const value_id *initial,
                         const value_id *results, const value_id *indices, const uint32_t *axes)
{
    struct infer *infer = loop->infer;
    struct graph *graph = infer->graph;
    if (runs_once(loop))
        return become_straight(loop, initial, results, axes);
    const uint32_t count = 1 + loop->states + loop->scans;
    value_id *inputs = arena_new_array(graph->arena, value_id, count + 1);
    value_id *next = arena_new_array(graph->arena, value_id, count + 1);
    value_id first, again;
    next[1] = emit2(loop, loop->body, OP_Add, loop->iteration, loop->one);
    if (!next[1] || !find_conditions(loop, next[1], body_condition, &first, &again))
        return false;
    inputs[0] = first;
    inputs[1] = loop->zero;
    next[0] = again;
    for (uint32_t i = 0; i < loop->states; i++) {
        inputs[2 + i] = initial[i];
        next[2 + i] = results[i];
    }
    for (uint32_t i = 0; i < loop->scans; i++) {
        struct accumulator made = {0};
        if (!accumulate(loop, results[loop->states + i], indices[i], &made))
            return false;
        inputs[2 + loop->states + i] = made.initial;
        next[2 + loop->states + i] = made.next;
    }
    const struct location *location = graph_node(graph, loop->node)->location;
    const node_id made = graph_add_node(graph, loop->parent, infer->appends ? 0 : loop->node, OP_While,
                                        count + 1, inputs, count, 0, NULL, location);
    graph_node(graph, made)->bodies = arena_copy(graph->arena, &loop->body, sizeof loop->body);
    graph_node(graph, made)->body_count = 1;
    struct region *body = &graph->regions.items[loop->body];
    body->parent = made;
    body->results.count = 0;
    for (uint32_t i = 0; i <= count; i++)
        vec_push(graph->arena, &body->results, next[i]);
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor_type *type = &graph_value(graph, inputs[1 + i])->type;
        infer_set(infer, made, i, type->dtype, type->rank, type->dims);
    }
    if (!hand_over(loop, made, axes))
        return false;
    graph_node(graph, loop->node)->output_count = 0;
    graph_node(graph, loop->node)->body_count = 0;
    graph_remove_node(graph, loop->node);
    return true;
}

static struct loop loop_of(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    const int64_t one = 1;
    return (struct loop){
        .infer = infer,
        .node = node,
        .parent = graph_node(graph, node)->region,
        .body = graph_node(graph, node)->bodies[0],
        .length = DIM_NONE,
        .zero = scalar_constant(graph, DTYPE_I64),
        .one = graph_add_constant_data(graph, DTYPE_I64, 0, NULL, &one),
    };
}

static void renumber_arguments(struct graph *graph, region_id body)
{
    const struct region *region = &graph->regions.items[body];
    for (uint32_t i = 0; i < region->arguments.count; i++)
        graph_value(graph, region->arguments.items[i])->index = i;
}

/* A condition that only counts becomes a number of trips. */
static void count_trips(struct loop *loop, value_id again, const value_id *results)
{
    struct dims *dims = &loop->infer->graph->dims;
    const struct counted_loop counted = {
        .iteration = loop->iteration,
        .states = loop->states,
        .initial = graph_node(loop->infer->graph, loop->node)->inputs + 2,
        .arguments = loop->infer->graph->regions.items[loop->body].arguments.items + 1,
        .results = results,
    };
    const dim trips = infer_count_trips(loop->infer, &counted, again, loop->condition);
    if (trips == DIM_NONE || (loop->trips && loop->length == DIM_NONE))
        return;
    loop->length = loop->trips ? dim_min(dims, loop->length, trips) : trips;
    loop->trips = dim_value(loop, loop->parent, loop->length);
    loop->condition = 0;
    loop->ends_early = false;
}

/* States that the body gives back as they are need not go round: TensorFlow passes weights so. */
static void drop_constant_states(struct infer *infer, node_id id)
{
    struct graph *graph = infer->graph;
    struct node *node = graph_node(graph, id);
    struct region *body = &graph->regions.items[node->bodies[0]];
    uint32_t kept = 0;
    const uint32_t states = body->arguments.count - 2;
    for (uint32_t i = 0; i < states; i++) {
        const value_id argument = body->arguments.items[2 + i], initial = node->inputs[2 + i];
        if (body->results.items[1 + i] == argument) {
            graph_replace_uses(graph, argument, initial);
            if (node->outputs[i])
                graph_replace_uses(graph, node->outputs[i], initial);
            continue;
        }
        body->arguments.items[2 + kept] = argument;
        body->results.items[1 + kept] = body->results.items[1 + i];
        node->inputs[2 + kept] = initial;
        node->outputs[kept++] = node->outputs[i];
    }
    const uint32_t dropped = states - kept;
    if (!dropped)
        return;
    for (uint32_t i = states; i < node->output_count; i++) {
        node->outputs[i - dropped] = node->outputs[i];
        body->results.items[1 + i - dropped] = body->results.items[1 + i];
    }
    node->output_count -= dropped;
    node->input_count -= dropped;
    body->arguments.count -= dropped;
    body->results.count -= dropped;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i])
            graph_value(graph, node->outputs[i])->index = i;
}

bool infer_loop(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    drop_constant_states(infer, node);
    struct loop loop = loop_of(infer, node);
    const struct tensor_type counter = tensor_type_new(graph->arena, DTYPE_I64, 0, NULL);
    const unsigned char yes = 1;
    const uint32_t before = infer->failures;
    struct region *body = &graph->regions.items[loop.body];
    loop.states = body->arguments.count - 2;
    loop.scans = body->results.count - 1 - loop.states;
    loop.iteration = body->arguments.items[0];
    set_argument(graph, loop.iteration, &counter);
    /* A body that runs has a true condition. */
    graph_replace_uses(graph, body->arguments.items[1],
                       graph_add_constant_data(graph, DTYPE_BOOL, 0, NULL, &yes));
    for (uint32_t i = 0; i < loop.states; i++) {
        const struct tensor_type type = *infer_input(infer, node, 2 + i);
        set_argument(graph, body->arguments.items[2 + i], &type);
        body->arguments.items[1 + i] = body->arguments.items[2 + i];
    }
    body->arguments.count--;
    renumber_arguments(graph, loop.body);
    infer_region(infer, loop.body);
    if (infer->failures != before)
        return false;
    if (node_input(graph_node(graph, node), 0)) {
        uint32_t count = 0;
        loop.trips = as_scalar(&loop, loop.parent, node_input(graph_node(graph, node), 0), DTYPE_I64,
                               "the trip count");
        if (!loop.trips)
            return false;
        const dim *contents = infer_value_contents(infer, loop.trips, &count);
        if (contents && count == 1 && contents[0] != DIM_NONE)
            loop.length = dim_max(&graph->dims, contents[0], dim_constant(&graph->dims, 0));
    }
    value_id condition = node_input(graph_node(graph, node), 1);
    if (condition && !is_true(infer, condition)) {
        loop.condition = as_scalar(&loop, loop.parent, condition, DTYPE_BOOL, "the condition");
        if (!loop.condition)
            return false;
    }
    const value_id *results = graph->regions.items[loop.body].results.items;
    value_id again = results[0];
    loop.ends_early = !is_true(infer, again);
    if (loop.ends_early)
        again = as_scalar(&loop, loop.body, again, DTYPE_BOOL, "the body's condition");
    if (!again)
        return false;
    value_id *next = arena_copy(graph->arena, results + 1, (loop.states + loop.scans) * sizeof *next);
    if (loop.ends_early)
        count_trips(&loop, again, next);
    loop.counted = loop.ends_early || loop.condition;
    for (uint32_t i = 0; i < loop.states; i++) {
        const struct tensor_type type = *infer_input(infer, node, 2 + i);
        if (!check_state(infer, node, i, &type, next[i]))
            return false;
    }
    value_id *indices = arena_new_array(graph->arena, value_id, loop.scans);
    for (uint32_t i = 0; i < loop.scans; i++)
        indices[i] = loop.iteration;
    return become_while(&loop, again, graph_node(graph, node)->inputs + 2, next, indices,
                        arena_new_array(graph->arena, uint32_t, loop.scans));
}

/* ---- Scan
 * ---------------------------------------------------------------------------------------------------- */

/* Number `index` of a list attribute of the Scan; `absent` where it is not given. False: reported. */
static bool listed(struct infer *infer, node_id node, enum attribute_name name, uint32_t index,
                   uint32_t count, int64_t *number)
{
    const struct attribute *attribute = node_attribute(graph_node(infer->graph, node), name);
    *number = 0;
    if (!attribute)
        return true;
    if (attribute->count != count)
        return infer_fail(infer, node, DIAG_wrong_attribute, "attribute %s has %u numbers, must have %u",
                          attribute_text(name), attribute->count, count);
    *number = attribute->integers[index];
    return true;
}

/* The iteration's number from the other end: length - 1 - i, at the front of the body. */
static value_id reversed(struct loop *loop, node_id front)
{
    struct graph *graph = loop->infer->graph;
    const value_id last =
        dim_value(loop, loop->parent, dim_sub(&graph->dims, loop->length, dim_constant(&graph->dims, 1)));
    const node_id made =
        graph_add_node(graph, loop->body, front, OP_Sub, 2, (value_id[]){last, loop->iteration}, 1, 0, NULL,
                       graph_node(graph, loop->node)->location);
    return graph_node(graph, made)->outputs[0];
}

/* The body takes its element of each scanned input by itself. */
static bool take_elements(struct loop *loop, uint32_t scanned, node_id front, value_id *backward)
{
    struct infer *infer = loop->infer;
    struct graph *graph = infer->graph;
    for (uint32_t i = 0; i < scanned; i++) {
        const value_id input = graph_node(graph, loop->node)->inputs[loop->states + i];
        const struct tensor_type *type = &graph_value(graph, input)->type;
        int64_t axis, direction;
        uint32_t at;
        if (!listed(infer, loop->node, ATTR_scan_input_axes, i, scanned, &axis) ||
            !listed(infer, loop->node, ATTR_scan_input_directions, i, scanned, &direction) ||
            !infer_axis(infer, loop->node, axis, type->rank, &at))
            return false;
        if (loop->length == DIM_NONE)
            loop->length = type->dims[at];
        else if (!infer_equal(infer, loop->node, loop->length, type->dims[at],
                              "the lengths of the scanned inputs"))
            return false;
        if (direction && !*backward)
            *backward = reversed(loop, front);
        const struct attribute attribute = attribute_int(ATTR_axis, at);
        const node_id made = graph_add_node(graph, loop->body, front, OP_Gather, 2,
                                            (value_id[]){input, direction ? *backward : loop->iteration}, 1,
                                            1, &attribute, graph_node(graph, loop->node)->location);
        graph_replace_uses(graph, graph->regions.items[loop->body].arguments.items[1 + loop->states + i],
                           graph_node(graph, made)->outputs[0]);
    }
    return true;
}

bool infer_scan(struct infer *infer, node_id node)
{
    struct graph *graph = infer->graph;
    struct loop loop = loop_of(infer, node);
    const struct tensor_type counter = tensor_type_new(graph->arena, DTYPE_I64, 0, NULL);
    const uint32_t before = infer->failures;
    const uint32_t scanned = (uint32_t)node_int(graph_node(graph, node), ATTR_num_scan_inputs, 0);
    struct region *body = &graph->regions.items[loop.body];
    loop.states = body->arguments.count - scanned;
    loop.scans = body->results.count - loop.states;
    loop.iteration = graph_add_argument(graph, loop.body, DTYPE_I64);
    set_argument(graph, loop.iteration, &counter);
    memmove(body->arguments.items + 1, body->arguments.items, (body->arguments.count - 1) * sizeof(value_id));
    body->arguments.items[0] = loop.iteration;
    const node_id front = body->nodes.count ? body->nodes.items[0] : 0;
    value_id backward = 0;
    for (uint32_t i = 0; i < loop.states; i++)
        set_argument(graph, body->arguments.items[1 + i], infer_input(infer, node, i));
    if (!take_elements(&loop, scanned, front, &backward))
        return false;
    graph->regions.items[loop.body].arguments.count = 1 + loop.states;
    renumber_arguments(graph, loop.body);
    loop.trips = dim_value(&loop, loop.parent, loop.length);
    uint32_t *axes = arena_new_array(graph->arena, uint32_t, loop.scans);
    value_id *indices = arena_new_array(graph->arena, value_id, loop.scans);
    for (uint32_t i = 0; i < loop.scans; i++) {
        int64_t direction;
        if (!listed(infer, node, ATTR_scan_output_directions, i, loop.scans, &direction))
            return false;
        if (direction && !backward)
            backward = reversed(&loop, front);
        indices[i] = direction ? backward : loop.iteration;
    }
    infer_region(infer, loop.body);
    if (infer->failures != before)
        return false;
    const value_id *results = graph->regions.items[loop.body].results.items;
    for (uint32_t i = 0; i < loop.states; i++) {
        const struct tensor_type type = *infer_input(infer, node, i);
        if (!check_state(infer, node, i, &type, results[i]))
            return false;
    }
    for (uint32_t i = 0; i < loop.scans; i++) {
        int64_t axis;
        const struct tensor_type *element = &graph_value(graph, results[loop.states + i])->type;
        if (!listed(infer, node, ATTR_scan_output_axes, i, loop.scans, &axis) || element->rank < 0 ||
            !infer_axis(infer, node, axis, element->rank + 1, &axes[i]))
            return false;
    }
    return become_while(&loop, 0, graph_node(graph, node)->inputs,
                        arena_copy(graph->arena, results, (loop.states + loop.scans) * sizeof *results),
                        indices, axes);
}

/* x with the element at the index replaced. */
bool infer_set_element(struct infer *infer, node_id node)
{
    const struct tensor_type x = *infer_input(infer, node, 0), element = *infer_input(infer, node, 1);
    const struct tensor_type *index = infer_input(infer, node, 2);
    if (index->dtype != DTYPE_I64 || index->rank != 0)
        return infer_fail(infer, node, DIAG_wrong_type, "the index is %s, must be one i64",
                          infer_type_text(infer, index));
    if (x.rank < 1 || x.dtype != element.dtype || element.rank != x.rank - 1)
        return infer_fail(infer, node, DIAG_wrong_shape, "%s is no element of %s",
                          infer_type_text(infer, &element), infer_type_text(infer, &x));
    for (int i = 0; i < element.rank; i++)
        if (!infer_equal(infer, node, element.dims[i], x.dims[1 + i], "the element's dims"))
            return false;
    infer_set(infer, node, 0, x.dtype, x.rank, x.dims);
    return true;
}

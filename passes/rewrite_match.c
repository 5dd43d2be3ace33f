/* Matching and replacing. The matcher tries both orders of commutative operators with full backtracking; it
 * writes to the graph only after the guard has agreed. The root is changed in place, so its value and all
 * uses of it hold. */
#include "passes/rewrite.h"

#include "ir/init.h"
#include "ir/provenance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void rewriter_init(struct rewriter *rewriter, struct graph *graph, struct arena *arena)
{
    *rewriter = (struct rewriter){.graph = graph, .arena = arena};
    forward_init(&rewriter->forward, arena);
    const uint32_t *uses = graph_use_counts(graph, arena);
    const bool *init = init_values(graph, arena);
    for (value_id v = 0; v < graph->values.count; v++) {
        vec_push(arena, &rewriter->uses, uses[v]);
        vec_push(arena, &rewriter->init, init[v]);
    }
}

/* Values that were added since: unused until counted, and not constant until found so. */
static void track(struct rewriter *rewriter)
{
    while (rewriter->uses.count < rewriter->graph->values.count) {
        const value_id value = rewriter->uses.count;
        vec_push(rewriter->arena, &rewriter->uses, 0);
        vec_push(rewriter->arena, &rewriter->init,
                 graph_value(rewriter->graph, value)->kind == VALUE_CONSTANT);
    }
}

/* ---- matching
 * ---------------------------------------------------------------------------------------------------- */

struct todo {
    uint8_t pattern;
    value_id value;
    const struct todo *next;
};

static bool solve(struct match *match, const struct todo *todo);

static bool solve_leaf(struct match *match, const struct pattern_node *pattern, const struct todo *todo)
{
    value_id *bound = &match->values[pattern->name - 1];
    if (pattern->kind == PATTERN_CONSTANT && !match->rewriter->init.items[todo->value])
        return false;
    if (*bound)
        return *bound == todo->value && solve(match, todo->next);
    *bound = todo->value;
    if (solve(match, todo->next))
        return true;
    *bound = 0;
    return false;
}

static bool solve_arguments(struct match *match, const struct pattern_node *pattern, const struct node *node,
                            bool swapped, const struct todo *next)
{
    struct todo items[PATTERN_ARGUMENTS];
    for (uint32_t i = pattern->count; i-- > 0;) {
        const uint32_t input = swapped && i < 2 ? 1 - i : i;
        items[i] = (struct todo){pattern->arguments[i], node->inputs[input],
                                 i + 1 < pattern->count ? &items[i + 1] : next};
    }
    return solve(match, pattern->count ? items : next);
}

static uint32_t present_inputs(const struct node *node)
{
    uint32_t count = node->input_count;
    while (count && !node->inputs[count - 1])
        count--;
    return count;
}

static bool node_fits(const struct match *match, const struct pattern_node *pattern, const struct todo *todo,
                      node_id *id)
{
    const struct graph *graph = match->rewriter->graph;
    const struct value *value = graph_value(graph, todo->value);
    if (value->kind != VALUE_RESULT || value->index != 0)
        return false;
    *id = value->producer;
    const struct node *node = graph_node(graph, *id);
    const bool op_fits =
        pattern->op == OP_NONE ? (op_facts(node->op)->traits & OP_POINTWISE) != 0 : node->op == pattern->op;
    if (node->removed || !op_fits || node->output_count != 1 || present_inputs(node) != pattern->count ||
        value->type.rank < 0 || node->region != graph_node(graph, match->root)->region)
        return false;
    for (uint32_t i = 0; i < pattern->count; i++)
        if (!node->inputs[i])
            return false;
    return *id == match->root || pattern->any_uses || match->rewriter->uses.items[todo->value] == 1;
}

static bool solve_operator(struct match *match, const struct pattern_node *pattern, const struct todo *todo)
{
    node_id id;
    if (!node_fits(match, pattern, todo, &id) || match->matched_count == MATCH_LOCATIONS)
        return false;
    const struct node *node = graph_node(match->rewriter->graph, id);
    match->matched[match->matched_count++] = id;
    if (pattern->name)
        match->nodes[pattern->name - 1] = id;
    if (solve_arguments(match, pattern, node, false, todo->next))
        return true;
    if ((op_facts(node->op)->traits & OP_COMMUTATIVE) && pattern->op != OP_NONE && pattern->count >= 2 &&
        solve_arguments(match, pattern, node, true, todo->next))
        return true;
    match->matched_count--;
    if (pattern->name)
        match->nodes[pattern->name - 1] = 0;
    return false;
}

static bool solve(struct match *match, const struct todo *todo)
{
    if (!todo)
        return true;
    const struct pattern_node *pattern = &match->rewrite->pattern.nodes[todo->pattern];
    return pattern->kind == PATTERN_OP ? solve_operator(match, pattern, todo)
                                       : solve_leaf(match, pattern, todo);
}

/* ---- for guards
 * -------------------------------------------------------------------------------------------------- */

static uint32_t name_of(const struct match *match, const char *name)
{
    const struct names *names = &match->rewrite->names;
    uint32_t i = 0;
    while (i < names->count && strcmp(names->text[i], name) != 0)
        i++;
    assert(i < names->count);
    return i;
}

value_id match_value(const struct match *match, const char *name)
{
    return match->values[name_of(match, name)];
}

struct node *match_node(const struct match *match, const char *name)
{
    return graph_node(match->rewriter->graph, match->nodes[name_of(match, name)]);
}

const struct tensor_type *match_type(const struct match *match, const char *name)
{
    return &graph_value(match->rewriter->graph, match_value(match, name))->type;
}

const struct tensor_type *match_root_type(const struct match *match)
{
    const struct graph *graph = match->rewriter->graph;
    return &graph_value(graph, graph_node(graph, match->root)->outputs[0])->type;
}

/* Half a unit in the last place of constants that exporters write, with some room. */
static double tolerance_of(enum dtype dtype)
{
    return dtype == DTYPE_F16 ? 1e-3 : dtype == DTYPE_BF16 ? 8e-3 : 1e-6;
}

static void note_read(struct match *match, value_id value)
{
    for (uint32_t i = 0; i < match->read_count; i++)
        if (match->read[i] == value)
            return;
    assert(match->read_count < PATTERN_NAMES);
    match->read[match->read_count++] = value;
}

bool match_float(struct match *match, const char *name, double *number)
{
    const value_id id = match_value(match, name);
    if (!value_constant_float(match->rewriter->graph, id, number))
        return false;
    note_read(match, id);
    return true;
}

bool match_ints(struct match *match, const char *name, int64_t *elements, uint32_t limit, uint32_t *count)
{
    const value_id id = match_value(match, name);
    if (!value_constant_ints(match->rewriter->graph, id, elements, limit, count))
        return false;
    note_read(match, id);
    return true;
}

bool match_is(struct match *match, const char *name, double number)
{
    double value;
    const struct tensor_type *type = match_type(match, name);
    return match_float(match, name, &value) &&
           fabs(value - number) <= fabs(number) * tolerance_of(type->dtype);
}

void match_set(struct match *match, const char *name, value_id value)
{
    match->values[name_of(match, name)] = value;
}

void match_attribute(struct match *match, struct attribute attribute)
{
    assert(match->attribute_count < MATCH_ATTRIBUTES);
    match->attributes[match->attribute_count++] = attribute;
}

value_id match_make(struct match *match, enum op op, uint32_t input_count, const value_id *inputs,
                    struct tensor_type type, uint32_t attribute_count, const struct attribute *attributes)
{
    struct rewriter *rewriter = match->rewriter;
    struct graph *graph = rewriter->graph;
    const struct node *root = graph_node(graph, match->root);
    const node_id id = graph_add_node(graph, root->region, match->root, op, input_count, inputs, 1,
                                      attribute_count, attributes, root->location);
    const value_id result = graph_node(graph, id)->outputs[0];
    track(rewriter);
    bool init = graph_node(graph, id)->region == GRAPH_BODY;
    for (uint32_t i = 0; i < input_count; i++) {
        rewriter->uses.items[inputs[i]]++;
        init = init && (!inputs[i] || rewriter->init.items[inputs[i]]);
    }
    rewriter->init.items[result] = init;
    graph_value(graph, result)->type = type;
    return result;
}

value_id match_reshape(struct match *match, value_id value, int rank, const dim *dims)
{
    struct graph *graph = match->rewriter->graph;
    const struct tensor_type type =
        tensor_type_new(graph->arena, graph_value(graph, value)->type.dtype, rank, dims);
    if (tensor_type_same(&graph->dims, &type, &graph_value(graph, value)->type))
        return value;
    return match_make(match, OP_Reshape, 1, &value, type, 0, NULL);
}

value_id match_binary(struct match *match, enum op op, value_id a, value_id b)
{
    const value_id inputs[2] = {a, b};
    return match_make(match, op, 2, inputs, graph_value(match->rewriter->graph, a)->type, 0, NULL);
}

value_id match_scalar(struct match *match, enum dtype dtype, double number)
{
    const float narrow = (float)number;
    assert(dtype == DTYPE_F32 || dtype == DTYPE_F64);
    const value_id value =
        graph_add_constant_data(match->rewriter->graph, dtype, 0, NULL,
                                dtype == DTYPE_F64 ? (const void *)&number : (const void *)&narrow);
    track(match->rewriter);
    return value;
}

/* ---- replacing
 * --------------------------------------------------------------------------------------------------- */

/* One use less; nodes that nobody reads any more go, with their inputs' uses. */
static void release_value(struct rewriter *rewriter, value_id value)
{
    VEC(value_id) todo = {0};
    vec_push(rewriter->arena, &todo, value);
    while (todo.count) {
        const value_id item = todo.items[--todo.count];
        if (!item || --rewriter->uses.items[item])
            continue;
        const struct value *released = graph_value(rewriter->graph, item);
        if (released->kind != VALUE_RESULT)
            continue;
        const struct node *node = graph_node(rewriter->graph, released->producer);
        if (node->removed || node->output_count != 1 || node->body_count)
            continue;
        graph_remove_node(rewriter->graph, released->producer);
        rewriter->removed++;
        for (uint32_t i = 0; i < node->input_count; i++)
            vec_push(rewriter->arena, &todo, node->inputs[i]);
    }
}

static value_id replacement_value(struct match *match, uint8_t index)
{
    const struct pattern_node *node = &match->rewrite->replacement.nodes[index];
    if (node->kind != PATTERN_OP)
        return match->values[node->name - 1];
    value_id inputs[PATTERN_ARGUMENTS];
    for (uint32_t i = 0; i < node->count; i++)
        inputs[i] = replacement_value(match, node->arguments[i]);
    return match_make(match, node->op, node->count, inputs, *match_root_type(match), 0, NULL);
}

/* The root's location, followed by those of the other nodes. */
static const struct location *merged_location(const struct match *match)
{
    struct graph *graph = match->rewriter->graph;
    const struct location *chain = NULL;
    for (uint32_t i = match->matched_count; i-- > 0;) {
        const struct location *location = graph_node(graph, match->matched[i])->location;
        for (uint32_t hops = 0; location && hops < MATCH_LOCATIONS; location = location->also, hops++) {
            bool known = false;
            for (const struct location *other = chain; other && !known; other = other->also)
                known = other->number == location->number && other->graph == location->graph;
            if (known)
                continue;
            struct location *copy = arena_copy(graph->arena, location, sizeof *location);
            copy->also = chain;
            chain = copy;
        }
    }
    return chain;
}

static void replace_root(struct match *match, const struct pattern_node *replacement)
{
    struct rewriter *rewriter = match->rewriter;
    struct graph *graph = rewriter->graph;
    value_id *inputs = arena_new_array(graph->arena, value_id, replacement->count);
    for (uint32_t i = 0; i < replacement->count; i++) {
        inputs[i] = replacement_value(match, replacement->arguments[i]);
        rewriter->uses.items[inputs[i]]++;
    }
    const struct location *location = merged_location(match);
    struct node *root = graph_node(graph, match->root);
    value_id *const old_inputs = root->inputs;
    const uint32_t old_count = root->input_count;
    if (replacement->kind == PATTERN_NAMED) {
        const struct node *model = graph_node(graph, match->nodes[replacement->name - 1]);
        root->op = model->op;
        root->attributes =
            arena_copy(graph->arena, model->attributes, model->attribute_count * sizeof *model->attributes);
        root->attribute_count = model->attribute_count;
    } else {
        root->op = replacement->op;
        root->attribute_count = 0;
    }
    root->inputs = inputs;
    root->input_count = replacement->count;
    root->location = location;
    for (uint32_t i = 0; i < match->attribute_count; i++)
        node_set_attribute(graph, match->root, &match->attributes[i]);
    for (uint32_t i = 0; i < old_count; i++)
        release_value(rewriter, old_inputs[i]);
}

static bool replace_by_value(struct match *match, value_id value)
{
    struct rewriter *rewriter = match->rewriter;
    struct graph *graph = rewriter->graph;
    const value_id old = graph_node(graph, match->root)->outputs[0];
    if (!tensor_type_same(&graph->dims, &graph_value(graph, old)->type, &graph_value(graph, value)->type))
        return false;
    forward_add(&rewriter->forward, old, value);
    rewriter->uses.items[value] += rewriter->uses.items[old];
    rewriter->uses.items[old] = 1;
    release_value(rewriter, old);
    return true;
}

bool rewrite_apply(struct rewriter *rewriter, const struct parsed_rewrite *rewrite, node_id root)
{
    const struct node *node = graph_node(rewriter->graph, root);
    if (node->output_count != 1 || !node->outputs[0] || !rewriter->uses.items[node->outputs[0]])
        return false;
    struct match match = {.rewriter = rewriter, .rewrite = rewrite, .root = root};
    const struct todo todo = {(uint8_t)rewrite->pattern.root, node->outputs[0], NULL};
    if (!solve(&match, &todo) || (rewrite->row->guard && !rewrite->row->guard(&match)))
        return false;
    for (uint32_t i = 0; i < match.read_count; i++)
        graph_freeze(rewriter->graph, match.read[i], graph_node(rewriter->graph, root)->location, "the form");
    const struct pattern_node *replacement = &rewrite->replacement.nodes[rewrite->replacement.root];
    if (replacement->kind == PATTERN_OP || replacement->kind == PATTERN_NAMED) {
        replace_root(&match, replacement);
        return true;
    }
    return replace_by_value(&match, match.values[replacement->name - 1]);
}

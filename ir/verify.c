/* The verifier: structure, arity, order, attributes and types of a graph, checked between passes in
 * development builds. Whatever it finds is a defect of gpucc, never of the model: all are E0902. It changes
 * nothing. */
#include "ir/graph.h"

#include <stdarg.h>

enum { MAX_FAULTS = 20 };

struct verifier {
    const struct graph *graph;
    struct diagnostics *diagnostics;
    const char *stage;
    bool shapes;
    uint32_t faults;
    bool *defined; /* [value]: may be used here */
    bool *listed;  /* [node]: stands in a region's list */
    bool *entered; /* [region] */
};

static void fault(struct verifier *v, const struct location *location, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(struct verifier *v, const struct location *location, const char *format, ...)
{
    if (v->faults++ >= MAX_FAULTS)
        return;
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(v->diagnostics->arena, format, arguments);
    va_end(arguments);
    diag_error(v->diagnostics, DIAG_internal, location, "after %s: %s", v->stage, message);
}

static bool known_dims(const struct verifier *v, const dim *dims, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (dims[i] == DIM_NONE || dims[i] >= v->graph->dims.nodes.count)
            return false;
    return true;
}

static void verify_type(struct verifier *v, value_id id, const struct location *location)
{
    const struct value *value = graph_value(v->graph, id);
    const struct tensor_type *type = &value->type;
    int64_t elements;
    if (type->rank > MAX_RANK || (unsigned)type->dtype >= DTYPE_COUNT)
        fault(v, location, "value %u has no valid type", id);
    else if (type->rank > 0 && !known_dims(v, type->dims, (uint32_t)type->rank))
        fault(v, location, "value %u has an invalid dim", id);
    else if (v->shapes && (type->rank < 0 || type->dtype == DTYPE_NONE))
        fault(v, location, "value %u has no type", id);
    else if (value->contents && tensor_constant_sizes(&v->graph->dims, type, NULL, &elements) &&
             elements != (int64_t)value->content_count)
        fault(v, location, "value %u has %u known elements and %lld in all", id, value->content_count,
              (long long)elements);
}

static void verify_constant(struct verifier *v, value_id id)
{
    const struct value *value = graph_value(v->graph, id);
    int64_t elements;
    uint64_t bytes;
    verify_type(v, id, NULL);
    if (!value->blob)
        fault(v, NULL, "constant %u has no data", id);
    else if (!tensor_constant_sizes(&v->graph->dims, &value->type, NULL, &elements) ||
             !dtype_bytes(value->type.dtype, elements, &bytes))
        fault(v, NULL, "constant %u has dims that are not constant", id);
    else if (bytes != value->blob->length && dtype_bits(value->type.dtype))
        fault(v, NULL, "constant %u has %llu bytes of data instead of %llu", id,
              (unsigned long long)value->blob->length, (unsigned long long)bytes);
}

static void verify_attributes(struct verifier *v, const struct node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct attribute *attribute = &node->attributes[i];
        const char *name = attribute_text(attribute->name);
        if (attribute->name == ATTR_NONE || (unsigned)attribute->name >= ATTR_COUNT)
            fault(v, node->location, "attribute %u has no name", i);
        else if (i && attribute->name <= node->attributes[i - 1].name)
            fault(v, node->location, "attribute %s is not in order", name);
        else if (attribute->kind != attribute_kind_of(attribute->name) &&
                 !(node->op == OP_Pad && attribute->name == ATTR_pads && attribute->kind == ATTR_DIMS))
            fault(v, node->location, "attribute %s is of the wrong kind", name);
        else if (attribute->kind == ATTR_DIMS && !known_dims(v, attribute->dims, attribute->count))
            fault(v, node->location, "attribute %s has an invalid dim", name);
        else if (attribute->kind == ATTR_WORD && !attribute->word)
            fault(v, node->location, "attribute %s has no word", name);
    }
}

static void verify_use(struct verifier *v, value_id id, const struct location *location)
{
    if (id >= v->graph->values.count)
        fault(v, location, "value %u does not exist", id);
    else if (!v->defined[id])
        fault(v, location, "value %u is used before it is defined", id);
}

static void verify_node(struct verifier *v, node_id id, region_id region)
{
    const struct node *node = graph_node(v->graph, id);
    const struct op_facts *facts = op_facts(node->op);
    if (node->op == OP_NONE || (unsigned)node->op >= OP_COUNT)
        fault(v, node->location, "node %u has no operator", id);
    if (node->region != region)
        fault(v, node->location, "node %u stands in a region that is not its own", id);
    if (node->input_count < facts->least_inputs ||
        (node->input_count > facts->most_inputs && facts->most_inputs != 255))
        fault(v, node->location, "%s has %u inputs", facts->name, node->input_count);
    if (node->output_count < facts->least_outputs ||
        (node->output_count > facts->most_outputs && facts->most_outputs != 255))
        fault(v, node->location, "%s has %u results", facts->name, node->output_count);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i])
            verify_use(v, node->inputs[i], node->location);
        else if (i < facts->least_inputs)
            fault(v, node->location, "%s lacks input %u", facts->name, i);
    }
    verify_attributes(v, node);
}

static void verify_results(struct verifier *v, node_id id)
{
    const struct node *node = graph_node(v->graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const value_id output = node->outputs[i];
        if (output == 0)
            continue;
        if (output >= v->graph->values.count) {
            fault(v, node->location, "value %u does not exist", output);
            continue;
        }
        const struct value *value = graph_value(v->graph, output);
        if (value->kind != VALUE_RESULT || value->producer != id || value->index != i)
            fault(v, node->location, "value %u is not result %u of node %u", output, i, id);
        if (v->defined[output])
            fault(v, node->location, "value %u is defined twice", output);
        v->defined[output] = true;
        verify_type(v, output, node->location);
    }
}

static void verify_region(struct verifier *v, region_id id);

static void verify_bodies(struct verifier *v, node_id id)
{
    const struct node *node = graph_node(v->graph, id);
    for (uint32_t i = 0; i < node->body_count; i++) {
        const region_id body = node->bodies[i];
        if (body == 0 || body >= v->graph->regions.count || v->entered[body] ||
            v->graph->regions.items[body].parent != id)
            fault(v, node->location, "region %u is not a body of node %u", body, id);
        else
            verify_region(v, body);
    }
}

/* What a region defines is out of reach behind it. */
static void leave_region(struct verifier *v, const struct region *region)
{
    for (uint32_t i = 0; i < region->arguments.count; i++)
        v->defined[region->arguments.items[i]] = false;
    for (uint32_t n = 0; n < region->nodes.count; n++) {
        if (region->nodes.items[n] >= v->graph->nodes.count)
            continue;
        const struct node *node = graph_node(v->graph, region->nodes.items[n]);
        for (uint32_t i = 0; i < node->output_count; i++)
            if (node->outputs[i] < v->graph->values.count)
                v->defined[node->outputs[i]] = false;
    }
}

static void verify_region(struct verifier *v, region_id id)
{
    const struct region *region = &v->graph->regions.items[id];
    v->entered[id] = true;
    for (uint32_t i = 0; i < region->arguments.count; i++) {
        if (region->arguments.items[i] >= v->graph->values.count ||
            graph_value(v->graph, region->arguments.items[i])->kind != VALUE_ARGUMENT) {
            fault(v, NULL, "argument %u of region %u is none", i, id);
            return;
        }
        v->defined[region->arguments.items[i]] = true;
        verify_type(v, region->arguments.items[i], NULL);
    }
    for (uint32_t i = 0; i < region->nodes.count; i++) {
        const node_id node = region->nodes.items[i];
        if (node == 0 || node >= v->graph->nodes.count || v->listed[node]) {
            fault(v, NULL, "node %u stands in region %u without being one of its nodes", node, id);
            continue;
        }
        v->listed[node] = true;
        if (graph_node(v->graph, node)->removed)
            continue;
        verify_node(v, node, id);
        verify_bodies(v, node);
        verify_results(v, node);
    }
    for (uint32_t i = 0; i < region->results.count; i++)
        verify_use(v, region->results.items[i], NULL);
    if (id != GRAPH_BODY)
        leave_region(v, region);
}

bool graph_verify(const struct graph *graph, struct diagnostics *diagnostics, const char *stage, bool shapes)
{
    struct verifier v = {.graph = graph, .diagnostics = diagnostics, .stage = stage, .shapes = shapes};
    v.defined = arena_new_array(diagnostics->arena, bool, graph->values.count);
    v.listed = arena_new_array(diagnostics->arena, bool, graph->nodes.count);
    v.entered = arena_new_array(diagnostics->arena, bool, graph->regions.count);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const value_id id = graph->inputs.items[i];
        if (id == 0 || id >= graph->values.count || graph_value(graph, id)->kind != VALUE_INPUT ||
            graph_value(graph, id)->index != i) {
            fault(&v, NULL, "input %u is not an input value", i);
            continue;
        }
        v.defined[id] = true;
        verify_type(&v, id, NULL);
    }
    for (value_id id = 1; id < graph->values.count; id++)
        if (graph_value(graph, id)->kind == VALUE_CONSTANT) {
            v.defined[id] = true;
            verify_constant(&v, id);
        }
    verify_region(&v, GRAPH_BODY);
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        verify_use(&v, graph->outputs.items[i].value, NULL);
    for (uint32_t i = 0; i < graph->aliases.count; i++)
        if (graph->aliases.items[i].output >= graph->outputs.count ||
            graph->aliases.items[i].input >= graph->inputs.count)
            fault(&v, NULL, "alias %u names no output or no input", i);
    return v.faults == 0;
}

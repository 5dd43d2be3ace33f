/* cse: nodes that compute the same are one node; small constants with the same elements are one constant.
 *
 *     %1 = Exp(%x)
 *     %2 = Exp(%x)               ->     %1 = Exp(%x)
 *     %3 = Add(%1, %2)                  %3 = Add(%1, %1)
 *
 * Same: operator, inputs (the first two of commutative operators in either order), attributes and result
 * types, in the same region. Random nodes and nodes with bodies are never the same. An initialiser keeps its
 * own name, so that it can be replaced by it: only constants that hang on none are merged. */
#include "passes/passes.h"

#include "ir/provenance.h"
#include "ir/support/hash.h"

#include <string.h>

enum { CONSTANT_LIMIT = 4096 }; /* bytes of constants that are compared */

struct table {
    uint32_t *slots; /* 0: free, else an item's id */
    uint32_t mask;
};

static struct table table_new(struct arena *arena, uint32_t items)
{
    uint32_t size = 16;
    while (size / 2 < items && size < (UINT32_C(1) << 31))
        size *= 2;
    return (struct table){.slots = arena_new_array(arena, uint32_t, size), .mask = size - 1};
}

/* ---- constants
 * --------------------------------------------------------------------------------------------------- */

static const unsigned char *small_bytes(struct arena *arena, const struct value *value)
{
    if (value->kind != VALUE_CONSTANT || value->weight_name || !value->blob ||
        value->blob->length > CONSTANT_LIMIT)
        return NULL;
    unsigned char *bytes = arena_alloc(arena, (size_t)value->blob->length);
    return blob_read(value->blob, 0, bytes, (size_t)value->blob->length) ? bytes : NULL;
}

static bool same_constant(const struct graph *graph, const unsigned char *const *bytes, value_id a,
                          value_id b)
{
    const struct value *left = graph_value(graph, a), *right = graph_value(graph, b);
    return left->blob->length == right->blob->length &&
           tensor_type_same(&graph->dims, &left->type, &right->type) &&
           !memcmp(bytes[a], bytes[b], (size_t)left->blob->length);
}

static void merge_constants(struct pass_context *context, struct forward *forward)
{
    const struct graph *graph = context->graph;
    const bool *varying = varying_values(graph, context->scratch);
    const unsigned char **bytes =
        arena_new_array(context->scratch, const unsigned char *, graph->values.count);
    struct table table = table_new(context->scratch, graph->values.count);
    for (value_id v = 1; v < graph->values.count; v++) {
        const struct value *value = graph_value(graph, v);
        bytes[v] = varying[v] ? NULL : small_bytes(context->scratch, value);
        if (!bytes[v])
            continue;
        uint32_t slot = (uint32_t)hash_bytes(value->type.dtype, bytes[v], (size_t)value->blob->length);
        for (;; slot++) {
            uint32_t *entry = &table.slots[slot & table.mask];
            if (!*entry) {
                *entry = v;
                break;
            }
            if (same_constant(graph, bytes, *entry, v)) {
                forward_add(forward, v, *entry);
                break;
            }
        }
    }
}

/* ---- nodes
 * ------------------------------------------------------------------------------------------------------- */

static size_t attribute_item(enum attribute_kind kind)
{
    switch (kind) {
    case ATTR_INTS:
        return sizeof(int64_t);
    case ATTR_FLOATS:
        return sizeof(double);
    case ATTR_DIMS:
        return sizeof(dim);
    default:
        return 0;
    }
}

static uint64_t attribute_hash(uint64_t hash, const struct attribute *attribute)
{
    hash = hash_word(hash, (uint64_t)attribute->name << 8 | attribute->kind);
    const size_t item = attribute_item(attribute->kind);
    if (item)
        return hash_bytes(hash, attribute->integers, attribute->count * item);
    if (attribute->kind == ATTR_WORD)
        return hash_bytes(hash, attribute->word, strlen(attribute->word));
    if (attribute->kind == ATTR_FLOAT)
        return hash_bytes(hash, &attribute->number, sizeof attribute->number);
    return hash_word(hash, (uint64_t)attribute->integer);
}

static bool attribute_same(const struct attribute *a, const struct attribute *b)
{
    if (a->name != b->name || a->kind != b->kind || a->count != b->count)
        return false;
    const size_t item = attribute_item(a->kind);
    if (item)
        return !a->count || !memcmp(a->integers, b->integers, a->count * item);
    if (a->kind == ATTR_WORD)
        return !strcmp(a->word, b->word);
    if (a->kind == ATTR_FLOAT)
        return !memcmp(&a->number, &b->number, sizeof a->number);
    return a->integer == b->integer;
}

static void order_inputs(const struct node *node)
{
    if (!(op_facts(node->op)->traits & OP_COMMUTATIVE) || node->input_count < 2 ||
        node->inputs[0] <= node->inputs[1])
        return;
    const value_id first = node->inputs[0];
    node->inputs[0] = node->inputs[1];
    node->inputs[1] = first;
}

static uint64_t node_hash(const struct node *node)
{
    uint64_t hash = hash_word(node->region, (uint64_t)node->op);
    hash = hash_bytes(hash, node->inputs, node->input_count * sizeof *node->inputs);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        hash = attribute_hash(hash, &node->attributes[i]);
    return hash;
}

static bool same_node(const struct graph *graph, const struct node *a, const struct node *b)
{
    if (a->op != b->op || a->region != b->region || a->input_count != b->input_count ||
        a->output_count != b->output_count || a->attribute_count != b->attribute_count)
        return false;
    if (a->input_count && memcmp(a->inputs, b->inputs, a->input_count * sizeof *a->inputs) != 0)
        return false;
    for (uint32_t i = 0; i < a->attribute_count; i++)
        if (!attribute_same(&a->attributes[i], &b->attributes[i]))
            return false;
    for (uint32_t i = 0; i < a->output_count; i++) {
        if (!a->outputs[i] || !b->outputs[i]) {
            if (a->outputs[i] != b->outputs[i])
                return false;
            continue;
        }
        const struct tensor_type *left = &graph_value(graph, a->outputs[i])->type;
        const struct tensor_type *right = &graph_value(graph, b->outputs[i])->type;
        if (left->rank < 0 || right->rank < 0 || !tensor_type_same(&graph->dims, left, right))
            return false;
    }
    return true;
}

static void merge_node(struct pass_context *context, struct forward *forward, struct table *table, node_id id)
{
    struct graph *graph = context->graph;
    const struct node *node = graph_node(graph, id);
    for (uint32_t i = 0; i < node->input_count; i++)
        node->inputs[i] = forward_of(forward, node->inputs[i]);
    if (node->body_count || (op_facts(node->op)->traits & OP_RANDOM))
        return;
    order_inputs(node);
    for (uint32_t slot = (uint32_t)node_hash(node);; slot++) {
        uint32_t *entry = &table->slots[slot & table->mask];
        if (!*entry) {
            *entry = id;
            return;
        }
        const struct node *first = graph_node(graph, *entry);
        if (!same_node(graph, first, node))
            continue;
        for (uint32_t i = 0; i < node->output_count; i++)
            if (node->outputs[i])
                forward_add(forward, node->outputs[i], first->outputs[i]);
        graph_remove_node(graph, id);
        context->changes++;
        return;
    }
}

bool pass_cse(struct pass_context *context)
{
    struct graph *graph = context->graph;
    struct forward forward;
    forward_init(&forward, context->scratch);
    merge_constants(context, &forward);
    for (region_id r = 1; r < graph->regions.count; r++) {
        const struct region *region = &graph->regions.items[r];
        struct table table = table_new(context->scratch, region->nodes.count);
        for (uint32_t i = 0; i < region->nodes.count; i++)
            if (!graph_node(graph, region->nodes.items[i])->removed)
                merge_node(context, &forward, &table, region->nodes.items[i]);
    }
    forward_apply(&forward, graph);
    graph_sweep(graph);
    return true;
}

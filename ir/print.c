/* The text of a graph (docs/ir.md is its grammar). Values are numbered in the order in which they appear, so
 * equal graphs have equal text whatever passes made them, and reading the text gives the same graph. Names of
 * the model are printed only on request, escaped. */
#include "ir/graph.h"

#include <inttypes.h>

enum { INLINE_BYTES = 64, QUOTE_LIMIT = 200 };

struct printer {
    const struct graph *graph;
    struct text *out;
    bool names;
    uint32_t *numbers; /* [value]: 0 until it appears */
    uint32_t next;
};

static void put_value(struct printer *p, value_id id)
{
    if (id == 0) {
        text_put(p->out, "_");
        return;
    }
    if (p->numbers[id] == 0)
        p->numbers[id] = ++p->next;
    text_printf(p->out, "%%%" PRIu32, p->numbers[id]);
}

/* The value that holds a size; `_` where it is no longer computed. */
static void put_word(struct printer *p, const struct symbol *symbol)
{
    const struct value *value = graph_value(p->graph, symbol->word);
    const bool gone = value->kind == VALUE_RESULT && graph_node(p->graph, value->producer)->removed;
    text_put(p->out, " : word ");
    put_value(p, gone || value->kind == VALUE_CONSTANT ? 0 : symbol->word);
    text_printf(p->out, " %" PRIu32 ", %" PRId64 "..%" PRId64 ", hint %" PRId64 ", most ", symbol->axis,
                symbol->low, symbol->high, symbol->hint);
    dim_print(&p->graph->dims, symbol->bound, p->out);
    text_put(p->out, "\n");
}

static void put_name(struct printer *p, const char *name)
{
    if (!p->names || !name)
        return;
    text_put(p->out, " ");
    text_quote(p->out, name, QUOTE_LIMIT);
}

static void put_dim_list(struct printer *p, const dim *dims, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        text_put(p->out, i ? ", " : "");
        dim_print(&p->graph->dims, dims[i], p->out);
    }
}

static void put_type(struct printer *p, const struct value *value)
{
    const struct tensor_type *type = &value->type;
    text_put(p->out, dtype_name(type->dtype));
    if (type->rank < 0) {
        text_put(p->out, "[*]");
        return;
    }
    text_put(p->out, "[");
    put_dim_list(p, type->dims, (uint32_t)type->rank);
    text_put(p->out, "]");
    if (value->contents && value->kind != VALUE_CONSTANT) {
        text_put(p->out, " {");
        put_dim_list(p, value->contents, value->content_count);
        text_put(p->out, "}");
    }
}

static void put_place(struct printer *p, const struct location *location)
{
    for (const char *lead = " ; "; location; location = location->also, lead = ", ")
        text_printf(p->out, "%s#%" PRIu32, lead, location->number);
}

static void put_blob(struct printer *p, const struct blob *blob)
{
    unsigned char bytes[INLINE_BYTES];
    bool readable = false;
    if (blob->length <= INLINE_BYTES && blob_read(blob, 0, bytes, (size_t)blob->length)) {
        text_put(p->out, " hex ");
        for (uint64_t i = 0; i < blob->length; i++)
            text_printf(p->out, "%02x", bytes[i]);
        return;
    }
    const uint64_t hash = blob_hash(blob, &readable);
    if (readable)
        text_printf(p->out, " blob %016" PRIx64, hash);
    else
        text_put(p->out, " blob unreadable");
}

static void put_constant(struct printer *p, value_id id)
{
    const struct value *value = graph_value(p->graph, id);
    text_put(p->out, "  weight ");
    put_value(p, id);
    put_name(p, value->weight_name);
    text_put(p->out, " : ");
    put_type(p, value);
    if (value->blob)
        put_blob(p, value->blob);
    text_put(p->out, "\n");
}

static void put_attribute(struct printer *p, const struct attribute *attribute)
{
    text_printf(p->out, " %s=", attribute_text(attribute->name));
    switch (attribute->kind) {
    case ATTR_INT:
        text_printf(p->out, "%" PRId64, attribute->integer);
        break;
    case ATTR_FLOAT:
        text_put_f64(p->out, attribute->number);
        break;
    case ATTR_WORD:
        text_put(p->out, attribute->word);
        break;
    case ATTR_DTYPE:
        text_put(p->out, dtype_name((enum dtype)attribute->integer));
        break;
    case ATTR_INTS:
    case ATTR_FLOATS:
        text_put(p->out, "[");
        for (uint32_t i = 0; i < attribute->count; i++) {
            text_put(p->out, i ? ", " : "");
            if (attribute->kind == ATTR_INTS)
                text_printf(p->out, "%" PRId64, attribute->integers[i]);
            else
                text_put_f64(p->out, attribute->numbers[i]);
        }
        text_put(p->out, "]");
        break;
    case ATTR_DIMS:
        text_put(p->out, "{");
        put_dim_list(p, attribute->dims, attribute->count);
        text_put(p->out, "}");
        break;
    }
}

static void put_values(struct printer *p, const value_id *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        text_put(p->out, i ? ", " : "");
        put_value(p, values[i]);
    }
}

static void put_indent(struct printer *p, int depth)
{
    for (int i = 0; i < depth; i++)
        text_put(p->out, "  ");
}

static void put_nodes(struct printer *p, const struct region *region, int depth);

static void put_body(struct printer *p, const struct region *region, int depth)
{
    put_indent(p, depth);
    text_put(p->out, "body (");
    for (uint32_t i = 0; i < region->arguments.count; i++) {
        text_put(p->out, i ? ", " : "");
        put_value(p, region->arguments.items[i]);
        text_put(p->out, " : ");
        put_type(p, graph_value(p->graph, region->arguments.items[i]));
    }
    text_put(p->out, ") {\n");
    put_nodes(p, region, depth + 1);
    put_indent(p, depth + 1);
    text_put(p->out, "yield");
    for (uint32_t i = 0; i < region->results.count; i++) {
        text_put(p->out, i ? ", " : " ");
        put_value(p, region->results.items[i]);
    }
    text_put(p->out, "\n");
    put_indent(p, depth);
    text_put(p->out, "}\n");
}

static void put_node(struct printer *p, const struct node *node, int depth)
{
    put_indent(p, depth);
    put_values(p, node->outputs, node->output_count);
    text_printf(p->out, " = %s(", op_facts(node->op)->name);
    put_values(p, node->inputs, node->input_count);
    text_put(p->out, ")");
    for (uint32_t i = 0; i < node->attribute_count; i++)
        put_attribute(p, &node->attributes[i]);
    text_put(p->out, " :");
    for (uint32_t i = 0; i < node->output_count; i++) {
        text_put(p->out, i ? ", " : " ");
        if (node->outputs[i])
            put_type(p, graph_value(p->graph, node->outputs[i]));
        else
            text_put(p->out, "_");
    }
    put_place(p, node->location);
    text_put(p->out, "\n");
    for (uint32_t i = 0; i < node->body_count; i++)
        put_body(p, &p->graph->regions.items[node->bodies[i]], depth + 1);
}

/* The deepest nesting is bounded by the frontend's limit. */
static void put_nodes(struct printer *p, const struct region *region, int depth)
{
    for (uint32_t i = 0; i < region->nodes.count; i++)
        if (!graph_node(p->graph, region->nodes.items[i])->removed)
            put_node(p, graph_node(p->graph, region->nodes.items[i]), depth);
}

static void put_symbols(struct printer *p)
{
    const struct dims *dims = &p->graph->dims;
    for (uint32_t i = 0; i < dims->symbols.count; i++) {
        const struct symbol *symbol = &dims->symbols.items[i];
        text_printf(p->out, "  dim s%" PRIu32, i);
        put_name(p, symbol->name);
        if (symbol->source == SYMBOL_WORD) {
            put_word(p, symbol);
            continue;
        }
        if (symbol->source == SYMBOL_BOUND) {
            text_printf(p->out, " : bound %" PRId64 "..%" PRId64 ", hint %" PRId64 "\n", symbol->low,
                        symbol->high, symbol->hint);
            continue;
        }
        text_printf(p->out,
                    " : input %" PRIu32 " %s %" PRIu32 ", %" PRId64 "..%" PRId64 ", hint %" PRId64 "\n",
                    symbol->input, symbol->source == SYMBOL_INPUT_AXIS ? "axis" : "value", symbol->axis,
                    symbol->low, symbol->high, symbol->hint);
    }
    for (uint32_t i = 0; i < dims->guards.count; i++) {
        text_put(p->out, "  guard ");
        dim_print(dims, dims->guards.items[i].left, p->out);
        text_put(p->out, " == ");
        dim_print(dims, dims->guards.items[i].right, p->out);
        put_place(p, dims->guards.items[i].location);
        text_put(p->out, "\n");
    }
    for (uint32_t i = 0; i < dims->symbols.count; i++)
        if (dims->symbols.items[i].replacement != DIM_NONE) {
            text_printf(p->out, "  merge s%" PRIu32 " = ", i);
            dim_print(dims, dims->symbols.items[i].replacement, p->out);
            text_put(p->out, "\n");
        }
}

void graph_print(const struct graph *graph, bool names, struct text *out)
{
    struct printer p = {.graph = graph, .out = out, .names = names};
    p.numbers = arena_new_array(out->arena, uint32_t, graph->values.count);
    text_put(out, "model");
    put_name(&p, graph->producer);
    text_printf(out, " opset %" PRId64 " {\n", graph->opset);
    put_symbols(&p);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const struct value *value = graph_value(graph, graph->inputs.items[i]);
        text_put(out, "  input ");
        put_value(&p, graph->inputs.items[i]);
        put_name(&p, value->name);
        text_put(out, " : ");
        put_type(&p, value);
        text_put(out, "\n");
    }
    const uint32_t *uses = graph_use_counts(graph, out->arena);
    for (value_id id = 1; id < graph->values.count; id++)
        if (graph_value(graph, id)->kind == VALUE_CONSTANT && uses[id])
            put_constant(&p, id);
    put_nodes(&p, &graph->regions.items[GRAPH_BODY], 1);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        text_put(out, "  output ");
        put_value(&p, graph->outputs.items[i].value);
        put_name(&p, graph->outputs.items[i].name);
        text_put(out, "\n");
    }
    for (uint32_t i = 0; i < graph->aliases.count; i++)
        text_printf(out, "  alias %" PRIu32 " = %" PRIu32 "\n", graph->aliases.items[i].output,
                    graph->aliases.items[i].input);
    text_put(out, "}\n");
}

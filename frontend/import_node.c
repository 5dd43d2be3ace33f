/* One node: its names, its row in the operator table, the checks that every operator shares, then the row's
 * function. A node with a problem gives failed results, and everything else about it is checked all the same.
 */
#include <inttypes.h>
#include <string.h>

#include "frontend/importer.h"

static const char *const known_domains[] = {
    "com.microsoft",
    "com.microsoft.nchwc",
    "com.microsoft.experimental",
    "com.ms.internal.nhwc",
    "ai.onnx.ml",
    "ai.onnx.training",
    "ai.onnx.preview",
    "ai.onnx.preview.training",
    "ai.onnx.contrib",
};

static int64_t opset_of(const struct import_scope *scope, const char *domain)
{
    if (!strcmp(domain, "ai.onnx"))
        domain = "";
    for (uint32_t i = 0; i < scope->opset_count; i++)
        if (!strcmp(scope->opsets[i].domain, domain))
            return scope->opsets[i].version;
    return 0;
}

const struct location *import_location(struct importer *importer, const struct import_scope *scope,
                                       const Onnx__NodeProto *node, uint32_t number)
{
    struct location *location = arena_new(importer->arena, struct location);
    location->op_type = import_intern(importer, node->op_type);
    location->domain = import_intern(importer, node->domain);
    location->name = import_intern(importer, node->name);
    location->graph = scope->path;
    location->opset = opset_of(scope, location->domain);
    location->number = number;
    return location;
}

bool import_find(const struct import_scope *scope, const char *name, uint32_t *value)
{
    for (; scope; scope = scope->outer)
        if (name_map_find(&scope->values, name, value))
            return true;
    return false;
}

value_id import_use(struct importer *importer, struct import_scope *scope, const struct location *location,
                    const char *what, const char *name)
{
    uint32_t value;
    if (!import_find(scope, name, &value)) {
        import_fail(importer, DIAG_undefined_name, location, "%s is %s, which nothing defines", what,
                    import_quote(importer, name));
        return VALUE_FAILED;
    }
    if (value == VALUE_UNAVAILABLE) {
        import_fail(importer, DIAG_unsupported_case, location,
                    "%s is %s, an output that is not supported of the operator that gives it", what,
                    import_quote(importer, name));
        return VALUE_FAILED;
    }
    return value;
}

static enum onnx_attribute_type attribute_type(const Onnx__AttributeProto *attribute)
{
    if (attribute->has_type && attribute->type != 0)
        return (enum onnx_attribute_type)attribute->type;
    /* old writers leave the type out: it is what is there */
    return attribute->has_f           ? ONNX_FLOAT
           : attribute->has_i         ? ONNX_INT
           : attribute->has_s         ? ONNX_STRING
           : attribute->t             ? ONNX_TENSOR
           : attribute->g             ? ONNX_GRAPH
           : attribute->n_floats      ? ONNX_FLOATS
           : attribute->n_ints        ? ONNX_INTS
           : attribute->n_strings     ? ONNX_STRINGS
           : attribute->n_tensors     ? ONNX_TENSORS
           : attribute->n_graphs      ? ONNX_GRAPHS
           : attribute->sparse_tensor ? ONNX_SPARSE_TENSOR
           : attribute->tp            ? ONNX_TYPE_PROTO
                                      : ONNX_UNDEFINED;
}

/* Follows a reference to an attribute of the function being inlined; NULL: the call does not give it. */
static const Onnx__AttributeProto *resolve(const struct import_scope *scope,
                                           const Onnx__AttributeProto *attribute)
{
    for (uint32_t i = 0; i < scope->attribute_count; i++)
        if (!strcmp(scope->attributes[i].name, attribute->ref_attr_name))
            return scope->attributes[i].value;
    return NULL;
}

static bool bind_attributes(struct importer *importer, const struct import_scope *scope,
                            const Onnx__NodeProto *node, const struct location *location,
                            struct bound_attribute **attributes, uint32_t *count)
{
    struct bound_attribute *bound =
        arena_new_array(importer->arena, struct bound_attribute, node->n_attribute);
    *attributes = bound;
    *count = 0;
    if (node->n_attribute > MAX_NODE_ATTRIBUTES)
        return import_fail(importer, DIAG_limit_exceeded, location, "the node has more than %d attributes",
                           MAX_NODE_ATTRIBUTES);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *value = node->attribute[i];
        const char *name = import_intern(importer, value->name);
        bool refers = value->ref_attr_name && *value->ref_attr_name;
        if (!*name)
            return import_fail(importer, DIAG_wrong_attribute, location, "an attribute has no name");
        for (uint32_t k = 0; k < *count; k++)
            if (bound[k].name == name)
                return import_fail(importer, DIAG_wrong_attribute, location, "attribute %s is given twice",
                                   import_quote(importer, name));
        if (refers && !scope->in_function)
            return import_fail(importer, DIAG_wrong_attribute, location,
                               "attribute %s refers to a function's attribute, outside of a function",
                               import_quote(importer, name));
        if (refers)
            value = resolve(scope, value);
        if (value)
            bound[(*count)++] = (struct bound_attribute){name, value};
    }
    return true;
}

static const struct bound_attribute *given_attribute(const struct import_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->given_count; i++)
        if (!strcmp(node->given[i].name, name))
            return &node->given[i];
    return NULL;
}

/* Every attribute of the node is one of the row's, of its type. */
static bool check_given(struct importer *importer, const struct import_node *node)
{
    const struct operator_row *row = node->row;
    bool good = true;
    for (uint32_t i = 0; i < node->given_count; i++) {
        const struct operator_attribute *known = NULL;
        for (uint32_t k = 0; k < row->attribute_count && !known; k++)
            if (!strcmp(row->attributes[k].name, node->given[i].name))
                known = &row->attributes[k];
        enum onnx_attribute_type type = attribute_type(node->given[i].value);
        if (!known)
            good = import_fail(importer, DIAG_wrong_attribute, node->location,
                               "the operator has no attribute %s at opset %" PRId64,
                               import_quote(importer, node->given[i].name), node->opset);
        else if (type != known->type)
            good = import_fail(importer, DIAG_wrong_attribute, node->location,
                               "attribute %s is %s, must be %s", known->name, onnx_attribute_type_name(type),
                               onnx_attribute_type_name(known->type));
    }
    return good;
}

static bool add_word(struct importer *importer, struct import_node *node,
                     const struct operator_attribute *row, const Onnx__AttributeProto *value)
{
    const char *word = row->word;
    if (value) {
        char *text = arena_alloc(importer->arena, value->s.len + 1);
        if (value->s.len)
            memcpy(text, value->s.data, value->s.len);
        word = strlen(text) == value->s.len ? text : "";
    }
    const char *known = word_find(word);
    if (!known)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "attribute %s is %s, an unknown word", row->name, import_quote(importer, word));
    node->attributes[node->attribute_count++] = attribute_word(row->canonical, known);
    return true;
}

static bool add_dtype(struct importer *importer, struct import_node *node,
                      const struct operator_attribute *row, int64_t number)
{
    if (number == 0 && row->has_default && row->integer == 0)
        return true; /* not stated */
    if (number <= 0 || number >= DTYPE_COUNT)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "attribute %s is %" PRId64 ", no element type", row->name, number);
    if (!(DTYPES_STORED >> number & 1))
        return import_fail(importer, DIAG_unsupported_case, node->location,
                           "attribute %s is the type %s, which is not supported", row->name,
                           dtype_name((enum dtype)number));
    node->attributes[node->attribute_count++] = attribute_dtype(row->canonical, (enum dtype)number);
    return true;
}

/* One attribute of the row as a canonical one. */
static bool add_attribute(struct importer *importer, struct import_node *node,
                          const struct operator_attribute *row, const Onnx__AttributeProto *value)
{
    struct attribute *attribute = &node->attributes[node->attribute_count];
    int64_t integer = value ? value->i : row->integer;
    switch (row->type) {
    case ONNX_STRING:
        return add_word(importer, node, row, value);
    case ONNX_INT:
        if (attribute_kind_of(row->canonical) == ATTR_DTYPE)
            return add_dtype(importer, node, row, integer);
        *attribute = attribute_int(row->canonical, integer);
        break;
    case ONNX_FLOAT:
        *attribute = attribute_float(row->canonical, value ? (double)value->f : row->number);
        break;
    case ONNX_INTS: {
        if (value->n_ints > MAX_CONTENTS)
            return import_fail(importer, DIAG_wrong_attribute, node->location, "attribute %s has %zu numbers",
                               row->name, value->n_ints);
        const int64_t *copy = arena_copy(importer->arena, value->ints, value->n_ints * sizeof *value->ints);
        *attribute = attribute_ints(row->canonical, (uint32_t)value->n_ints, copy);
        break;
    }
    default:
        return import_fail(importer, DIAG_internal, node->location, "attribute %s has no import", row->name);
    }
    node->attribute_count++;
    return true;
}

static bool import_attributes(struct importer *importer, struct import_node *node)
{
    const struct operator_row *row = node->row;
    bool good = check_given(importer, node);
    node->attributes = arena_new_array(importer->arena, struct attribute, row->attribute_count + 2);
    for (uint32_t i = 0; good && i < row->attribute_count; i++) {
        const struct operator_attribute *wanted = &row->attributes[i];
        const struct bound_attribute *given = given_attribute(node, wanted->name);
        if (!given && wanted->required)
            good = import_fail(importer, DIAG_wrong_attribute, node->location, "attribute %s is missing",
                               wanted->name);
        else if (wanted->canonical != ATTR_NONE && (given || wanted->has_default))
            good = add_attribute(importer, node, wanted, given ? given->value : NULL);
    }
    return good;
}

static bool check_count(struct importer *importer, const struct import_node *node, const char *what,
                        size_t count, uint8_t least, uint8_t most)
{
    if (count >= least && (most == ANY_NUMBER || count <= most))
        return true;
    if (least == most)
        return import_fail(importer, DIAG_wrong_arity, node->location, "the node has %zu %ss, must have %u",
                           count, what, least);
    if (most == ANY_NUMBER)
        return import_fail(importer, DIAG_wrong_arity, node->location,
                           "the node has %zu %ss, must have at least %u", count, what, least);
    return import_fail(importer, DIAG_wrong_arity, node->location, "the node has %zu %ss, must have %u to %u",
                       count, what, least, most);
}

/* Inputs behind the least number may be absent, but for those of a list; a Loop's trip count and condition
 * may be. */
static bool may_be_absent(const struct operator_row *row, uint32_t input)
{
    return row->op == OP_Loop ? input < 2 : input >= row->least_inputs && row->most_inputs != ANY_NUMBER;
}

static bool check_arity(struct importer *importer, const struct import_node *node)
{
    const struct operator_row *row = node->row;
    /* absent inputs at the end count where the operator needs a place for them */
    const size_t given = node->proto->n_input < row->least_inputs ? node->proto->n_input : row->least_inputs;
    const size_t inputs = node->input_count > given ? node->input_count : given;
    bool good = check_count(importer, node, "input", inputs, row->least_inputs, row->most_inputs);
    good &=
        check_count(importer, node, "output", node->proto->n_output, row->least_outputs, row->most_outputs);
    for (uint32_t i = 0; good && i < inputs; i++)
        if (!node->inputs[i] && !may_be_absent(row, i))
            good = import_fail(importer, DIAG_wrong_arity, node->location, "input %u must be given", i);
    return good;
}

/* "f32, f64" */
static const char *types_text(struct importer *importer, dtype_set types)
{
    struct text text;
    text_init(&text, importer->arena);
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++)
        if (types >> dtype & 1)
            text_printf(&text, "%s%s", text.length ? ", " : "", dtype_name((enum dtype)dtype));
    return text.data;
}

/* Element types, where they are known. */
static bool check_types(struct importer *importer, const struct import_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        enum dtype dtype = import_dtype(importer, node->inputs[i]);
        if (dtype == DTYPE_NONE)
            continue;
        if (i == 0 && !(node->row->types >> dtype & 1))
            return import_fail(importer, DIAG_wrong_type, node->location,
                               "input 0 is %s, must be one of %s at opset %" PRId64, dtype_name(dtype),
                               types_text(importer, node->row->types), node->opset);
        if (!(DTYPES_STORED >> dtype & 1))
            return import_fail(importer, DIAG_unsupported_case, node->location,
                               "input %u is of type %s, which is not supported", i, dtype_name(dtype));
    }
    return true;
}

/* The row of an operator of a domain that is not the standard's, or why there is none. */
static bool find_foreign_row(struct importer *importer, struct import_node *node)
{
    const char *name = node->location->op_type, *domain = node->location->domain;
    node->row = operator_find(domain, name, node->opset);
    if (node->row)
        return true;
    if (operator_find(domain, name, INT64_MAX))
        return import_fail(importer, DIAG_model_version, node->location,
                           "no version of the domain that has the operator is stated");
    for (size_t i = 0; i < sizeof known_domains / sizeof *known_domains; i++)
        if (!strcmp(domain, known_domains[i]))
            return import_fail(importer, DIAG_unsupported_operator, node->location,
                               "the operator of domain %s is not supported", domain);
    return import_fail(importer, DIAG_unknown_operator, node->location,
                       "domain %s is not known and the model has no function of that name",
                       import_quote(importer, domain));
}

/* The row, or why there is none. */
static bool find_row(struct importer *importer, struct import_node *node)
{
    const char *name = node->location->op_type, *domain = node->location->domain;
    if (!*name)
        return import_fail(importer, DIAG_model_structure, node->location, "the node states no operator");
    if (*domain && strcmp(domain, "ai.onnx") != 0)
        return find_foreign_row(importer, node);
    if (!node->opset)
        return import_fail(importer, DIAG_model_version, node->location,
                           "no opset is stated for the node's domain");
    if (node->opset < OLDEST_OPSET || node->opset > NEWEST_OPSET)
        return import_fail(importer, DIAG_model_version, node->location,
                           "opset %" PRId64 " is not supported, %d to %d are", node->opset, OLDEST_OPSET,
                           NEWEST_OPSET);
    node->row = operator_find("", name, node->opset);
    if (node->row)
        return true;
    if (operator_find("", name, NEWEST_OPSET))
        return import_fail(importer, DIAG_unknown_operator, node->location,
                           "the operator does not exist at opset %" PRId64, node->opset);
    if (operator_is_standard(name))
        return import_fail(importer, DIAG_unsupported_operator, node->location,
                           "the operator is not supported yet");
    return import_fail(importer, DIAG_unknown_operator, node->location, "ONNX has no such operator");
}

/* The node's inputs as values; trailing absent ones are cut. False: one of them failed, here or before. */
static bool import_node_inputs(struct importer *importer, struct import_node *node)
{
    const Onnx__NodeProto *proto = node->proto;
    value_id *inputs = arena_new_array(importer->arena, value_id, proto->n_input);
    bool good = true;
    for (uint32_t i = 0; i < proto->n_input; i++) {
        if (*proto->input[i])
            inputs[i] = import_use(importer, node->scope, node->location,
                                   arena_printf(importer->arena, "input %u", i),
                                   import_intern(importer, proto->input[i]));
        good &= inputs[i] != VALUE_FAILED;
        if (inputs[i])
            node->input_count = i + 1;
    }
    node->inputs = inputs;
    return good;
}

static bool import_operator(struct importer *importer, struct import_node *node, bool inputs_good)
{
    if (!find_row(importer, node))
        return false;
    bool good = check_arity(importer, node);
    good &= import_attributes(importer, node);
    return good && inputs_good && check_types(importer, node) && node->row->import(importer, node);
}

static void define_outputs(struct importer *importer, struct import_node *node, bool good)
{
    for (size_t i = 0; i < node->proto->n_output; i++) {
        const char *name = import_intern(importer, node->proto->output[i]);
        uint32_t value = VALUE_FAILED;
        if (good)
            value = node->outputs[i] ? node->outputs[i] : VALUE_UNAVAILABLE;
        if (!*name)
            continue;
        name_map_add(importer->arena, &node->scope->values, name, &value);
        if (value < VALUE_UNAVAILABLE && !graph_value(importer->graph, value)->name)
            graph_value(importer->graph, value)->name = name;
    }
}

bool import_work(struct importer *importer, const struct location *location, size_t names)
{
    importer->work += names;
    if (importer->work <= MAX_WORK)
        return true;
    importer->stopped = true;
    return import_fail(importer, DIAG_limit_exceeded, location, "the model has more than %d names", MAX_WORK);
}

static void import_one(struct importer *importer, struct import_scope *scope, const Onnx__NodeProto *proto,
                       uint32_t number)
{
    struct import_node node = {.scope = scope, .proto = proto};
    struct bound_attribute *given;
    node.location = import_location(importer, scope, proto, number);
    node.opset = node.location->opset;
    node.outputs = arena_new_array(importer->arena, value_id, proto->n_output);
    if (++importer->node_count > MAX_IMPORTED_NODES) {
        import_fail(importer, DIAG_limit_exceeded, node.location, "the model has more than %d nodes",
                    MAX_IMPORTED_NODES);
        importer->stopped = true;
        return;
    }
    if (!import_work(importer, node.location, proto->n_input + proto->n_output + proto->n_attribute))
        return;
    bool inputs_good = import_node_inputs(importer, &node);
    bool good = bind_attributes(importer, scope, proto, node.location, &given, &node.given_count);
    node.given = given;
    const Onnx__FunctionProto *function = import_find_function(importer, proto);
    if (function)
        good = good && import_call(importer, scope, function, &node);
    else
        good = good && import_operator(importer, &node, inputs_good);
    define_outputs(importer, &node, good);
}

void import_nodes(struct importer *importer, struct import_scope *scope, Onnx__NodeProto *const *nodes,
                  size_t count)
{
    uint32_t *order = arena_new_array(importer->arena, uint32_t, count);
    if (!import_order(importer, scope, nodes, count, order)) {
        importer->stopped = true;
        return;
    }
    for (size_t i = 0; i < count && !importer->stopped; i++)
        import_one(importer, scope, nodes[order[i]], order[i]);
}

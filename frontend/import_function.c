/* Model functions: each call is imported in a scope of its own, as if its nodes stood in the graph. */
#include <string.h>

#include "frontend/importer.h"

static const char *function_key(struct importer *importer, const char *domain, const char *name,
                                const char *overload)
{
    domain = domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
    return import_intern(importer, arena_printf(importer->arena, "%s\n%s\n%s", domain, name ? name : "",
                                                overload ? overload : ""));
}

bool import_list_functions(struct importer *importer)
{
    const Onnx__ModelProto *model = importer->reader->model;
    bool good = true;
    for (uint32_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *function = model->functions[i];
        const char *key = function_key(importer, function->domain, function->name, function->overload);
        uint32_t number = i;
        if (!name_map_add(importer->arena, &importer->functions, key, &number))
            good = import_fail(importer, DIAG_bad_function, NULL, "function %s is defined twice",
                               import_quote(importer, function->name));
        if (function->n_opset_import > MAX_OPSETS ||
            function->n_attribute + function->n_attribute_proto > MAX_NODE_ATTRIBUTES)
            good = import_fail(importer, DIAG_limit_exceeded, NULL,
                               "function %s has too many opsets or attributes",
                               import_quote(importer, function->name));
    }
    return good;
}

const Onnx__FunctionProto *import_find_function(struct importer *importer, const Onnx__NodeProto *node)
{
    uint32_t number;
    if (!importer->functions.count)
        return NULL;
    const char *key = function_key(importer, node->domain, node->op_type, node->overload);
    return name_map_find(&importer->functions, key, &number) ? importer->reader->model->functions[number]
                                                             : NULL;
}

/* The call itself: not recursive, not too deep, no more inputs and outputs than the function has. */
static bool check_call(struct importer *importer, const Onnx__FunctionProto *function,
                       const struct import_node *node)
{
    const Onnx__NodeProto *proto = node->proto;
    for (uint32_t i = 0; i < importer->call_count; i++)
        if (importer->calls[i] == function)
            return import_fail(importer, DIAG_bad_function, node->location, "the function calls itself");
    if (importer->call_count == MAX_FUNCTION_DEPTH)
        return import_fail(importer, DIAG_bad_function, node->location, "functions are nested too deeply");
    if (proto->n_input > function->n_input || proto->n_output > function->n_output)
        return import_fail(importer, DIAG_bad_function, node->location,
                           "the call has %zu inputs and %zu outputs, the function %zu and %zu",
                           proto->n_input, proto->n_output, function->n_input, function->n_output);
    return import_work(importer, node->location, function->n_input + function->n_attribute);
}

static const struct bound_attribute *find_given(const struct import_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->given_count; i++)
        if (!strcmp(node->given[i].name, name))
            return &node->given[i];
    return NULL;
}

/* The function's attributes: what the call gives, else the declared default, else nothing. */
static bool bind_attributes(struct importer *importer, const Onnx__FunctionProto *function,
                            const struct import_node *node, struct import_scope *scope)
{
    size_t most = function->n_attribute + function->n_attribute_proto;
    struct bound_attribute *bound = arena_new_array(importer->arena, struct bound_attribute, most);
    uint32_t count = 0, taken = 0;
    for (size_t i = 0; i < function->n_attribute; i++) {
        const struct bound_attribute *given = find_given(node, function->attribute[i]);
        if (given) {
            bound[count++] = *given;
            taken++;
        }
    }
    for (size_t i = 0; i < function->n_attribute_proto; i++) {
        const char *name = import_intern(importer, function->attribute_proto[i]->name);
        const struct bound_attribute *given = find_given(node, name);
        bound[count++] = given ? *given : (struct bound_attribute){name, function->attribute_proto[i]};
        taken += given != NULL;
    }
    scope->attributes = bound;
    scope->attribute_count = count;
    return taken >= node->given_count || import_fail(importer, DIAG_bad_function, node->location,
                                                     "the call gives an attribute that the function lacks");
}

static void take_opsets(struct importer *importer, const Onnx__FunctionProto *function,
                        struct import_scope *scope)
{
    struct opset *opsets = arena_new_array(importer->arena, struct opset, function->n_opset_import);
    for (size_t i = 0; i < function->n_opset_import; i++) {
        const char *domain = function->opset_import[i]->domain;
        if (domain && !strcmp(domain, "ai.onnx"))
            domain = "";
        opsets[i] = (struct opset){import_intern(importer, domain), function->opset_import[i]->version};
    }
    scope->opsets = opsets;
    scope->opset_count = (uint32_t)function->n_opset_import;
}

bool import_call(struct importer *importer, struct import_scope *caller, const Onnx__FunctionProto *function,
                 struct import_node *node)
{
    struct import_scope scope = {.region = caller->region, .in_function = true};
    uint32_t before = importer->failures;
    if (!check_call(importer, function, node) || !bind_attributes(importer, function, node, &scope))
        return false;
    scope.path = arena_printf(importer->arena, "%s%s#%u/", caller->path, node->location->op_type,
                              node->location->number);
    take_opsets(importer, function, &scope);
    for (uint32_t i = 0; i < function->n_input; i++) {
        uint32_t value = i < node->input_count ? node->inputs[i] : 0;
        if (!name_map_add(importer->arena, &scope.values, import_intern(importer, function->input[i]),
                          &value))
            return import_fail(importer, DIAG_duplicate_name, node->location,
                               "the function has two inputs of the name %s",
                               import_quote(importer, function->input[i]));
    }
    importer->calls[importer->call_count++] = function;
    import_nodes(importer, &scope, function->node, function->n_node);
    importer->call_count--;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (*node->proto->output[i] && !importer->stopped)
            node->outputs[i] = import_use(importer, &scope, node->location, "an output of the function",
                                          import_intern(importer, function->output[i]));
    return importer->failures == before;
}

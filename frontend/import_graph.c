/* The top graph: opsets, inputs with their symbols, weights, nodes, outputs. */
#include <inttypes.h>
#include <string.h>

#include "frontend/importer.h"

#define LARGEST_SIZE (INT64_MAX >> 16)

static bool default_domain(const char *domain)
{
    return !*domain || !strcmp(domain, "ai.onnx");
}

/* Each domain once; the default one inside the window. Whether a node's domain is there is checked at the
 * node. */
static bool import_opsets(struct importer *importer, struct import_scope *scope)
{
    const Onnx__ModelProto *model = importer->reader->model;
    if (model->n_opset_import > MAX_OPSETS)
        return import_fail(importer, DIAG_limit_exceeded, NULL, "the model imports more than %d domains",
                           MAX_OPSETS);
    struct opset *opsets = arena_new_array(importer->arena, struct opset, model->n_opset_import);
    uint32_t count = 0;
    int64_t newest = 0;
    bool stated = false;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *import = model->opset_import[i];
        const char *domain = import_intern(importer, import->domain);
        if (default_domain(domain)) {
            domain = import_intern(importer, "");
            newest = import->version;
            stated = true;
        }
        for (uint32_t k = 0; k < count; k++)
            if (opsets[k].domain == domain && opsets[k].version != import->version)
                return import_fail(importer, DIAG_model_structure, NULL,
                                   "the opset of domain %s is stated twice", import_quote(importer, domain));
        opsets[count++] = (struct opset){domain, import->version};
    }
    scope->opsets = opsets;
    scope->opset_count = count;
    importer->graph->opset = newest;
    if (!count)
        return import_fail(importer, DIAG_model_version, NULL,
                           "the model does not state its opset; it is no ONNX model, or is cut short");
    if (stated && (newest < OLDEST_OPSET || newest > NEWEST_OPSET))
        return import_fail(importer, DIAG_model_version, NULL,
                           "opset %" PRId64 " is not supported, %d to %d are", newest, OLDEST_OPSET,
                           NEWEST_OPSET);
    return true;
}

/* What --dim says of the axis, NULL for nothing. */
static const struct import_dim *find_option(struct importer *importer, const char *input, uint32_t axis,
                                            const char *name)
{
    const struct import_options *options = importer->options;
    for (uint32_t i = 0; i < options->dim_count; i++) {
        const char *wanted = options->dims[i].name;
        if (name && *name && !strcmp(wanted, name))
            return &options->dims[i];
        size_t length = strlen(input);
        if (!strncmp(wanted, input, length) &&
            !strcmp(wanted + length, arena_printf(importer->arena, "[%u]", axis)))
            return &options->dims[i];
    }
    return NULL;
}

static dim import_dim_of(struct importer *importer, const Onnx__TensorShapeProto__Dimension *dimension,
                         const char *input, uint32_t axis, bool *used)
{
    struct dims *dims = &importer->graph->dims;
    bool known = dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    /* exporters write -1 for a size that is not known */
    if (known && dimension->dim_value >= 0)
        return dim_constant(dims, dimension->dim_value);
    const char *name = NULL;
    if (dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        *dimension->dim_param)
        name = import_intern(importer, dimension->dim_param);
    struct symbol symbol = {
        .name = name,
        .source = SYMBOL_INPUT_AXIS,
        .input = importer->graph->inputs.count,
        .axis = axis,
        .low = 0,
        .high = LARGEST_SIZE,
        .hint = 1,
    };
    const struct import_dim *option = find_option(importer, input, axis, name);
    if (option) {
        used[option - importer->options->dims] = true;
        if (option->low == option->high)
            return dim_constant(dims, option->low);
        symbol.low = option->low;
        symbol.high = option->high;
        symbol.hint = option->hint;
    }
    return dim_symbol(dims, &symbol);
}

/* The type of a graph input. False: reported. */
static bool import_input_type(struct importer *importer, const Onnx__ValueInfoProto *info, const char *name,
                              bool *used, struct tensor_type *type)
{
    const char *quoted = import_quote(importer, name);
    if (!info->type || info->type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return import_fail(importer, DIAG_model_structure, NULL, "input %s has no type", quoted);
    if (info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return import_fail(importer, DIAG_unsupported_case, NULL,
                           "input %s is not a dense tensor, which is not supported", quoted);
    const Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    int32_t element = tensor->has_elem_type ? tensor->elem_type : 0;
    if (element <= 0 || element >= DTYPE_COUNT)
        return import_fail(importer, DIAG_model_structure, NULL, "input %s has no known element type",
                           quoted);
    if (!(DTYPES_STORED >> element & 1))
        return import_fail(importer, DIAG_unsupported_case, NULL,
                           "input %s is of type %s, which is not supported", quoted,
                           dtype_name((enum dtype)element));
    if (!tensor->shape)
        return import_fail(importer, DIAG_unknown_shape, NULL,
                           "input %s has no shape: its number of dims must be known", quoted);
    if (tensor->shape->n_dim > MAX_RANK)
        return import_fail(importer, DIAG_limit_exceeded, NULL, "input %s has more than %d dims", quoted,
                           MAX_RANK);
    dim sizes[MAX_RANK] = {0};
    uint32_t rank = (uint32_t)tensor->shape->n_dim;
    for (uint32_t axis = 0; axis < rank; axis++)
        sizes[axis] = import_dim_of(importer, tensor->shape->dim[axis], name, axis, used);
    *type = tensor_type_new(importer->arena, (enum dtype)element, (int)rank, sizes);
    return true;
}

void import_add_name(struct importer *importer, struct import_scope *scope, const char *what,
                     const char *name, value_id value)
{
    uint32_t number = value;
    if (!*name)
        import_fail(importer, DIAG_model_structure, NULL, "%s has no name", what);
    else if (!name_map_add(importer->arena, &scope->values, name, &number))
        import_fail(importer, DIAG_duplicate_name, NULL, "two inputs or weights have the name %s",
                    import_quote(importer, name));
}

/* Weights first: an input of the same name is the weight, as IR version 3 lists them. Those of a body may
 * have the names of those of another, so they are no weights that could be replaced by name. */
void import_weights(struct importer *importer, struct import_scope *scope, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = import_intern(importer, graph->initializer[i]->name);
        const char *what = arena_printf(importer->arena, "weight %s", import_quote(importer, name));
        value_id value = import_tensor(importer, NULL, what, graph->initializer[i]);
        if (value) {
            graph_value(importer->graph, value)->name = name;
            graph_value(importer->graph, value)->weight_name = scope->outer ? NULL : name;
        }
        import_add_name(importer, scope, "a weight", name, value ? value : VALUE_FAILED);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__TensorProto *values = graph->sparse_initializer[i]->values;
        const char *name = import_intern(importer, values ? values->name : NULL);
        import_fail(importer, DIAG_unsupported_case, NULL, "weight %s is sparse, which is not supported",
                    import_quote(importer, name));
        import_add_name(importer, scope, "a sparse weight", name, VALUE_FAILED);
    }
}

static void import_inputs(struct importer *importer, struct import_scope *scope,
                          const Onnx__GraphProto *graph)
{
    const struct import_options *options = importer->options;
    bool *used = arena_new_array(importer->arena, bool, options->dim_count);
    struct name_map weights = scope->values, inputs = {0};
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = import_intern(importer, graph->input[i]->name);
        uint32_t number = 0;
        if (!name_map_add(importer->arena, &inputs, name, &number)) {
            import_fail(importer, DIAG_duplicate_name, NULL, "two inputs have the name %s",
                        import_quote(importer, name));
            continue;
        }
        if (name_map_find(&weights, name, &number))
            continue;
        struct tensor_type type;
        bool good = import_input_type(importer, graph->input[i], name, used, &type);
        import_add_name(importer, scope, "an input", name,
                        good ? graph_add_input(importer->graph, name, type) : VALUE_FAILED);
    }
    for (uint32_t i = 0; i < options->dim_count; i++) {
        const struct import_dim *option = &options->dims[i];
        if (used[i])
            continue;
        /* Perhaps a size that the model computes: shape inference finds those. */
        const struct size_wish wish = {
            .name = option->name, .low = option->low, .high = option->high, .hint = option->hint};
        vec_push(importer->arena, &importer->graph->wishes, wish);
    }
}

static void import_outputs(struct importer *importer, struct import_scope *scope,
                           const Onnx__GraphProto *graph)
{
    const struct import_options *options = importer->options;
    size_t count = options->output_count ? options->output_count : graph->n_output;
    if (!count)
        import_fail(importer, DIAG_model_structure, NULL, "the graph has no outputs");
    for (size_t i = 0; i < count; i++) {
        const char *name =
            import_intern(importer, options->output_count ? options->outputs[i] : graph->output[i]->name);
        value_id value;
        if (options->output_count && !import_find(scope, name, &value)) {
            import_fail(importer, DIAG_bad_option, NULL, "no value is named %s",
                        import_quote(importer, name));
            continue;
        }
        value = import_use(importer, scope, NULL, arena_printf(importer->arena, "output %zu", i), name);
        if (value && value != VALUE_FAILED)
            graph_add_output(importer->graph, value, name);
    }
}

/* One buffer holds one output. */
static void add_alias(struct importer *importer, struct alias alias, const struct import_alias *wanted)
{
    struct graph *graph = importer->graph;
    for (uint32_t i = 0; i < graph->aliases.count; i++)
        if (graph->aliases.items[i].output == alias.output || graph->aliases.items[i].input == alias.input) {
            import_fail(importer, DIAG_bad_option, NULL,
                        "--alias %s=%s: the output or the input stands in another --alias already",
                        import_quote(importer, wanted->output), import_quote(importer, wanted->input));
            return;
        }
    vec_push(graph->arena, &graph->aliases, alias);
}

static void import_aliases(struct importer *importer)
{
    struct graph *graph = importer->graph;
    for (uint32_t i = 0; i < importer->options->alias_count; i++) {
        const struct import_alias *wanted = &importer->options->aliases[i];
        struct alias alias = {UINT32_MAX, UINT32_MAX};
        for (uint32_t k = 0; k < graph->outputs.count; k++)
            if (!strcmp(graph->outputs.items[k].name, wanted->output))
                alias.output = k;
        for (uint32_t k = 0; k < graph->inputs.count; k++)
            if (!strcmp(graph_value(graph, graph->inputs.items[k])->name, wanted->input))
                alias.input = k;
        if (alias.output == UINT32_MAX)
            import_fail(importer, DIAG_bad_option, NULL, "no output is named %s",
                        import_quote(importer, wanted->output));
        else if (alias.input == UINT32_MAX)
            import_fail(importer, DIAG_bad_option, NULL, "no input is named %s",
                        import_quote(importer, wanted->input));
        else
            add_alias(importer, alias, wanted);
    }
}

bool import_top_graph(struct importer *importer)
{
    const Onnx__GraphProto *graph = importer->reader->model->graph;
    struct import_scope scope = {.path = "", .region = GRAPH_BODY};
    if (!import_opsets(importer, &scope) || !import_list_functions(importer))
        return false;
    import_weights(importer, &scope, graph);
    import_inputs(importer, &scope, graph);
    import_nodes(importer, &scope, graph->node, graph->n_node);
    if (importer->stopped)
        return false;
    if ((uint64_t)importer->graph->regions.count * importer->graph->nodes.count > MAX_BODY_WORK &&
        importer->graph->regions.count > GRAPH_BODY + 1)
        import_fail(importer, DIAG_limit_exceeded, NULL,
                    "the model has %u bodies and %u nodes, which is too many",
                    importer->graph->regions.count - GRAPH_BODY - 1, importer->graph->nodes.count);
    import_outputs(importer, &scope, graph);
    if (!importer->failures)
        import_aliases(importer);
    return !importer->failures;
}

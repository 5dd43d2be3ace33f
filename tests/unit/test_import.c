/* The importer: what old opsets mean in the newest form, model functions, the order of nodes, options, and
 * one clear error of the right code for every way in which a model can be wrong. */
#include "tests/unit/support.h"

#include <stdio.h>
#include <string.h>

#include "frontend/import.h"
#include "tests/unit/onnx_bytes.h"

enum { F32 = 1, I64 = 7, STRING = 8, BOOL = 9, F16 = 10 };

/* ---- models ------------------------------------------------------------------------------------------ */

static struct bytes *attribute(const char *name, uint64_t type)
{
    return put_number(put_text(bytes_new(), 1, name), 20, type);
}

static struct bytes *with_int(struct bytes *node, const char *name, int64_t value)
{
    return put_message(node, 5, put_number(attribute(name, 2), 3, (uint64_t)value));
}

static struct bytes *with_float(struct bytes *node, const char *name, float value)
{
    return put_message(node, 5, put_f32(attribute(name, 1), 2, value));
}

static struct bytes *with_text(struct bytes *node, const char *name, const char *value)
{
    return put_message(node, 5, put_text(attribute(name, 3), 4, value));
}

static struct bytes *with_ints(struct bytes *node, const char *name, size_t count, const int64_t *values)
{
    struct bytes *a = attribute(name, 7);
    for (size_t i = 0; i < count; i++)
        put_number(a, 8, (uint64_t)values[i]);
    return put_message(node, 5, a);
}

static struct bytes *with_reference(struct bytes *node, const char *name, uint64_t type, const char *to)
{
    return put_message(node, 5, put_text(attribute(name, type), 21, to));
}

static struct bytes *i64_weight(const char *name, size_t count, const int64_t *values)
{
    int64_t size = (int64_t)count;
    return put_data(bytes_tensor(name, I64, 1, &size), 9, values, count * sizeof *values);
}

/* A graph of x: f32[2, 3, 4] to y; nodes follow. */
static struct bytes *x_to_y(void)
{
    struct bytes *graph = bytes_new();
    put_message(graph, 11, bytes_value("x", F32, 3, (const int64_t[]){2, 3, 4}));
    return put_message(graph, 12, bytes_value("y", F32, 0, NULL));
}

static struct bytes *one_node(struct bytes *node)
{
    return put_message(x_to_y(), 1, node);
}

/* ---- running ----------------------------------------------------------------------------------------- */

/* Imports and frees the model; the graph's text, or NULL. */
static const char *import(struct arena *arena, struct diagnostics *diagnostics, struct bytes *model,
                          const struct import_options *options)
{
    struct source_files files;
    struct graph *graph;
    diagnostics_init(diagnostics, arena, "model.onnx");
    source_files_init(&files, arena);
    const void *data = arena_copy(arena, model->data, model->count);
    size_t bytes = model->count;
    free(model);
    bool done = import_model_bytes(arena, diagnostics, data, bytes, options, &files, &graph);
    assert_int_equal(done, graph != NULL);
    assert_int_equal(done, diagnostics->items.count == 0);
    source_files_close(&files);
    if (!done)
        return NULL;
    assert_true(graph_verify(graph, diagnostics, "import", false));
    struct text text;
    text_init(&text, arena);
    graph_print(graph, false, &text);
    return text.data;
}

static void expect_with(struct bytes *model, const struct import_options *options, const char *nodes)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    const char *text = import(&arena, &diagnostics, model, options);
    if (!text)
        fail_msg("%s", diagnostics.items.items[0].message);
    if (!strstr(text, nodes))
        fail_msg("wanted:\n%sgot:\n%s", nodes, text);
    arena_release(&arena);
}

static void expect(uint64_t opset, struct bytes *graph, const char *nodes)
{
    expect_with(bytes_model(opset, graph), NULL, nodes);
}

/* The codes of all diagnostics, in order, 0 at the end. */
static void expect_codes(struct bytes *model, const struct import_options *options, const unsigned *codes)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    assert_null(import(&arena, &diagnostics, model, options));
    for (uint32_t i = 0; i < diagnostics.items.count; i++)
        if (diagnostics.items.items[i].code != codes[i])
            fail_msg("E%04u, wanted E%04u: %s", diagnostics.items.items[i].code, codes[i],
                     diagnostics.items.items[i].message);
    assert_int_equal(codes[diagnostics.items.count], 0);
    arena_release(&arena);
}

static void refuse(uint64_t opset, struct bytes *graph, unsigned code)
{
    expect_codes(bytes_model(opset, graph), NULL, (const unsigned[]){code, 0});
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void plain_operators(void **state)
{
    (void)state;
    expect(17, one_node(bytes_node("Relu", "x", NULL, "y")), "  %2 = Relu(%1) : f32[*] ; #0\n  output %2");
    expect(13, one_node(with_int(bytes_node("Softmax", "x", NULL, "y"), "axis", 1)),
           "%2 = Softmax(%1) axis=1 : f32[*] ; #0\n");
    expect(13, one_node(bytes_node("Softmax", "x", NULL, "y")), "%2 = Softmax(%1) axis=-1 :");
    expect(17, one_node(with_int(bytes_node("Cast", "x", NULL, "y"), "to", F16)),
           "%2 = Cast(%1) to=f16 : f16[*]");
    expect(20, one_node(with_text(bytes_node("Gelu", "x", NULL, "y"), "approximate", "tanh")),
           "%2 = Gelu(%1) approximate=tanh :");
    expect(11, one_node(bytes_node("Equal", "x", "x", "y")), "Equal(%1, %1) : bool[*]");
}

static void old_forms(void **state)
{
    (void)state;
    static const int64_t one[1] = {1}, pads[6] = {0, 0, 1, 0, 0, 1}, parts[2] = {1, 2};
    struct bytes *node = with_float(with_float(bytes_node("Clip", "x", NULL, "y"), "min", 0), "max", 6);
    expect(7, one_node(node),
           "weight %2 : f32[] hex 00000000\n  weight %3 : f32[] hex 0000c040\n"
           "  %4 = Clip(%1, %2, %3) : f32[*] ; #0\n");
    expect(7, one_node(with_float(bytes_node("Clip", "x", NULL, "y"), "max", 6)), "%3 = Clip(%1, _, %2) :");
    expect(11, one_node(with_ints(bytes_node("Unsqueeze", "x", NULL, "y"), "axes", 1, one)),
           "weight %2 : i64[1] hex 0100000000000000\n  %3 = Unsqueeze(%1, %2) :");
    expect(7, one_node(bytes_node("Squeeze", "x", NULL, "y")), "%2 = Squeeze(%1) :");
    expect(9,
           one_node(
               with_ints(with_ints(bytes_node("Slice", "x", NULL, "y"), "starts", 1, one), "ends", 2, parts)),
           "%4 = Slice(%1, %2, %3) :");
    expect(9, one_node(with_float(with_ints(bytes_node("Pad", "x", NULL, "y"), "pads", 6, pads), "value", 1)),
           "weight %3 : f32[] hex 0000803f\n  %4 = Pad(%1, %2, %3) mode=constant :");
    struct bytes *split =
        with_ints(with_int(bytes_node("Split", "x", NULL, "y"), "axis", 1), "split", 2, parts);
    expect(11, one_node(put_text(split, 2, "z")), "%3, %4 = Split(%1, %2) axis=1 :");
    expect(13, one_node(put_text(bytes_node("Split", "x", NULL, "y"), 2, "z")),
           "%2, %3 = Split(%1) axis=0 num_outputs=2 :");
    expect(11, one_node(bytes_node("Softmax", "x", NULL, "y")),
           "%2 = Flatten(%1) axis=1 : f32[*] ; #0\n  %3 = Softmax(%2) axis=1 : f32[*] ; #0\n"
           "  %4 = Shape(%1) : i64[*] ; #0\n  %5 = Reshape(%3, %4) : f32[*] ; #0\n");
    expect(11, one_node(with_int(bytes_node("Softmax", "x", NULL, "y"), "axis", -1)),
           "%2 = Softmax(%1) axis=-1 :");
    expect(11, one_node(with_ints(bytes_node("ReduceMax", "x", NULL, "y"), "axes", 1, one)),
           "%3 = ReduceMax(%1, %2) keepdims=1 :");
    expect(9, one_node(bytes_node("Sum", "x", "x", "y")), "%2 = Add(%1, %1) :");
    expect(9, one_node(bytes_node("Sum", "x", NULL, "y")), "%2 = Identity(%1) :");
    expect(9, one_node(put_text(bytes_node("Max", "x", "x", "y"), 1, "x")),
           "%2 = Max(%1, %1) : f32[*] ; #0\n  %3 = Max(%2, %1) :");
    expect(9, one_node(bytes_node("Mean", "x", "x", "y")),
           "hex 00000040\n  %3 = Add(%1, %1) : f32[*] ; #0\n  %4 = Div(%3, %2) :");
    expect(9, one_node(bytes_node("ReduceL2", "x", NULL, "y")),
           "%2 = Mul(%1, %1) : f32[*] ; #0\n"
           "  %3 = ReduceSum(%2) keepdims=1 : f32[*] ; #0\n"
           "  %4 = Sqrt(%3) :");
    expect(9, one_node(bytes_node("GlobalAveragePool", "x", NULL, "y")),
           "%4 = Shape(%1) : i64[*] ; #0\n  %5 = Size(%4) : i64[*] ; #0\n"
           "  %6 = Range(%2, %5, %3) : i64[*] ; #0\n  %7 = ReduceMean(%1, %6) keepdims=1 :");
    struct bytes *upsample = bytes_node("Upsample", "x", NULL, "y");
    struct bytes *scales = put_f32(put_f32(put_f32(attribute("scales", 6), 7, 1), 7, 1), 7, 2);
    expect(
        7, one_node(put_message(upsample, 5, scales)),
        "%3 = Resize(%1, _, %2) coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=floor :");
    expect(15, one_node(bytes_node("CastLike", "x", "x", "y")), "%2 = Cast(%1) to=f32 :");
}

static void dropout(void **state)
{
    (void)state;
    expect(13, one_node(bytes_node("Dropout", "x", NULL, "y")), "%2 = Identity(%1) :");
    expect(13, one_node(put_text(bytes_node("Dropout", "x", NULL, "y"), 2, "mask")),
           "%4 = Shape(%1) : i64[*] ; #0\n  %5 = ConstantOfShape(%4, %2) : bool[*]");
    struct bytes *node = put_text(put_text(bytes_node("Dropout", "x", "", "y"), 1, "training"), 2, "");
    struct bytes *flag = put_data(bytes_tensor("training", BOOL, 0, NULL), 9, "\1", 1);
    refuse(13, put_message(one_node(node), 5, flag), DIAG_unsupported_case);
    node = put_text(bytes_node("Dropout", "x", "", "y"), 1, "training");
    flag = put_data(bytes_tensor("training", BOOL, 0, NULL), 9, "\0", 1);
    expect(13, put_message(one_node(node), 5, flag), "= Identity(");
}

static void constants(void **state)
{
    (void)state;
    static const int64_t list[2] = {1, 2};
    struct bytes *node = with_ints(bytes_node("Constant", NULL, NULL, "c"), "value_ints", 2, list);
    struct bytes *graph = put_message(one_node(node), 1, bytes_node("Reshape", "x", "c", "y"));
    expect(13, graph, "weight %2 : i64[2] hex 01000000000000000200000000000000\n  %3 = Reshape(%1, %2) :");
    node = put_message(bytes_node("Constant", NULL, NULL, "c"), 5,
                       put_message(attribute("value", 4), 5, i64_weight("", 2, list)));
    graph = put_message(one_node(node), 1, bytes_node("Expand", "x", "c", "y"));
    expect(8, graph, "%3 = Expand(%1, %2) :");
    refuse(13, one_node(bytes_node("Constant", NULL, NULL, "y")), DIAG_wrong_attribute);
    refuse(13, one_node(with_text(bytes_node("Constant", NULL, NULL, "y"), "value_string", "a")),
           DIAG_unsupported_case);
    graph = put_message(x_to_y(), 5, i64_weight("s", 2, list));
    expect(9, put_message(graph, 1, bytes_node("ConstantOfShape", "s", NULL, "y")),
           "ConstantOfShape(%2, %3) : f32[*]");
    node = put_message(bytes_node("ConstantOfShape", "s", NULL, "y"), 5,
                       put_message(attribute("value", 4), 5, i64_weight("", 2, list)));
    refuse(9, put_message(put_message(x_to_y(), 5, i64_weight("s", 2, list)), 1, node), DIAG_wrong_attribute);
}

static void weights_and_inputs(void **state)
{
    (void)state;
    static const int64_t three[1] = {3};
    /* IR version 3 lists weights as inputs too */
    struct bytes *graph = put_message(x_to_y(), 11, bytes_value("w", I64, 1, (const int64_t[]){1}));
    put_message(graph, 5, i64_weight("w", 1, three));
    expect(17, put_message(graph, 1, bytes_node("Tile", "x", "w", "y")),
           "weight %2 : i64[1] hex 0300000000000000\n  %3 = Tile(%1, %2)");
    /* free dims: named, unnamed, negative */
    struct bytes *shape = put_message(bytes_new(), 1, put_text(bytes_new(), 2, "batch"));
    put_message(put_message(shape, 1, bytes_new()), 1, put_number(bytes_new(), 1, (uint64_t)-1));
    struct bytes *type = put_message(put_number(bytes_new(), 1, F32), 2, shape);
    struct bytes *value = put_message(put_text(bytes_new(), 1, "x"), 2, put_message(bytes_new(), 1, type));
    graph = put_message(put_message(bytes_new(), 11, value), 12, bytes_value("y", F32, 0, NULL));
    put_message(graph, 1, bytes_node("Relu", "x", NULL, "y"));
    struct bytes *model = bytes_model(17, graph), *again = put_raw(bytes_new(), model->data, model->count);
    expect_with(model, NULL, "input %1 : f32[s0, s1, s2]\n");
    const struct import_dim dims[] = {{"batch", 1, 8, 64}, {"x[2]", 5, 5, 5}};
    const struct import_options options = {.dims = dims, .dim_count = 2};
    model = put_raw(bytes_new(), again->data, again->count);
    expect_with(model, &options, "  dim s0 : input 0 axis 0, 1..64, hint 8\n");
    model = put_raw(bytes_new(), again->data, again->count);
    expect_with(model, &options, "input %1 : f32[s0, s1, 5]\n");
    /* one that no input has may be a size that the model computes: shape inference looks for it */
    const struct import_dim absent = {"sequence", 1, 1, 2};
    expect_with(again, &(const struct import_options){.dims = &absent, .dim_count = 1},
                "input %1 : f32[s0, s1, s2]\n");
}

static void options(void **state)
{
    (void)state;
    const char *const names[] = {"t", "missing"};
    for (uint32_t count = 1; count < 3; count++) {
        struct bytes *graph = put_message(x_to_y(), 1, bytes_node("Relu", "x", NULL, "t"));
        struct bytes *model = bytes_model(17, put_message(graph, 1, bytes_node("Neg", "t", NULL, "y")));
        const struct import_options chosen = {.outputs = names, .output_count = count};
        if (count == 1)
            expect_with(model, &chosen, "  output %2\n");
        else
            expect_codes(model, &chosen, (const unsigned[]){DIAG_bad_option, 0});
    }
    const struct import_alias aliases[] = {{"y", "x"}, {"y", "z"}};
    for (uint32_t count = 1; count < 3; count++) {
        struct bytes *model = bytes_model(17, one_node(bytes_node("Relu", "x", NULL, "y")));
        const struct import_options chosen = {.aliases = aliases, .alias_count = count};
        if (count == 1)
            expect_with(model, &chosen, "alias");
        else
            expect_codes(model, &chosen, (const unsigned[]){DIAG_bad_option, 0});
    }
}

static void order(void **state)
{
    (void)state;
    struct bytes *graph = put_message(x_to_y(), 1, bytes_node("Add", "b", "a", "y"));
    put_message(put_message(graph, 1, bytes_node("Neg", "a", NULL, "b")), 1,
                bytes_node("Relu", "x", NULL, "a"));
    expect(17, graph,
           "%2 = Relu(%1) : f32[*] ; #2\n  %3 = Neg(%2) : f32[*] ; #1\n  %4 = Add(%3, %2) : f32[*] ; #0\n");
    graph = put_message(x_to_y(), 1, bytes_node("Add", "b", "x", "a"));
    put_message(put_message(graph, 1, bytes_node("Neg", "a", NULL, "b")), 1,
                bytes_node("Relu", "b", NULL, "y"));
    refuse(17, graph, DIAG_cyclic_graph);
    refuse(17, one_node(bytes_node("Add", "x", "y", "y")), DIAG_cyclic_graph);
}

static void names(void **state)
{
    (void)state;
    struct bytes *graph = put_message(x_to_y(), 1, bytes_node("Relu", "x", NULL, "y"));
    refuse(17, put_message(graph, 1, bytes_node("Neg", "x", NULL, "y")), DIAG_duplicate_name);
    refuse(17,
           put_message(one_node(bytes_node("Relu", "x", NULL, "y")), 1, bytes_node("Neg", "x", NULL, "x")),
           DIAG_duplicate_name);
    graph = put_message(x_to_y(), 11, bytes_value("x", F32, 0, NULL));
    refuse(17, put_message(graph, 1, bytes_node("Relu", "x", NULL, "y")), DIAG_duplicate_name);
    graph = put_message(put_message(x_to_y(), 5, i64_weight("w", 0, NULL)), 5, i64_weight("w", 0, NULL));
    refuse(17, put_message(graph, 1, bytes_node("Relu", "x", NULL, "y")), DIAG_duplicate_name);
    refuse(17, one_node(bytes_node("Add", "x", "nowhere", "y")), DIAG_undefined_name);
    refuse(17, one_node(bytes_node("Relu", "x", NULL, "other")),
           DIAG_undefined_name); /* the graph's output */
    refuse(17,
           put_message(put_message(bytes_new(), 11, bytes_value("x", F32, 0, NULL)), 1,
                       bytes_node("Relu", "x", NULL, "y")),
           DIAG_model_structure); /* no outputs */
    /* an output that is not given matters only when it is used */
    struct bytes *pool =
        with_ints(bytes_node("MaxPool", "x", NULL, "y"), "kernel_shape", 1, (const int64_t[]){2});
    expect(12, one_node(put_text(pool, 2, "indices")), "%2 = MaxPool(%1)");
    pool = with_ints(bytes_node("MaxPool", "x", NULL, "t"), "kernel_shape", 1, (const int64_t[]){2});
    graph = one_node(put_text(pool, 2, "indices"));
    refuse(12, put_message(graph, 1, bytes_node("Neg", "indices", NULL, "y")), DIAG_unsupported_case);
}

static void operators(void **state)
{
    (void)state;
    refuse(17, one_node(bytes_node("Frobnicate", "x", NULL, "y")), DIAG_unknown_operator);
    refuse(19, one_node(bytes_node("Gelu", "x", NULL, "y")), DIAG_unknown_operator); /* since 20 */
    refuse(17, one_node(bytes_node("TfIdfVectorizer", "x", NULL, "y")), DIAG_unsupported_operator);
    refuse(17, one_node(put_text(bytes_node("RotaryEmbedding", "x", "x", "y"), 7, "com.microsoft")),
           DIAG_unsupported_operator);
    refuse(17, one_node(put_text(bytes_node("FusedMatMul", "x", "x", "y"), 7, "com.microsoft")),
           DIAG_model_version); /* the model does not import the domain */
    refuse(17, one_node(put_text(bytes_node("Thing", "x", NULL, "y"), 7, "my.domain")),
           DIAG_unknown_operator);
    expect(17, one_node(put_text(bytes_node("Relu", "x", NULL, "y"), 7, "ai.onnx")), "Relu(%1)");
    /* all of them in one run, and what hangs on them is silent */
    struct bytes *graph = put_message(x_to_y(), 1, bytes_node("TfIdfVectorizer", "x", NULL, "a"));
    put_message(graph, 1, bytes_node("Neg", "a", NULL, "b"));
    put_message(graph, 1, bytes_node("Frobnicate", "b", NULL, "c"));
    put_message(graph, 1, bytes_node("Relu", "x", "x", "d"));
    put_message(graph, 1, bytes_node("Add", "c", "d", "y"));
    expect_codes(bytes_model(17, graph), NULL,
                 (const unsigned[]){DIAG_unsupported_operator, DIAG_unknown_operator, DIAG_wrong_arity, 0});
}

static void arity_attributes_types(void **state)
{
    (void)state;
    refuse(17, one_node(bytes_node("Add", "x", NULL, "y")), DIAG_wrong_arity);
    refuse(17, one_node(bytes_node("Add", "", "x", "y")), DIAG_wrong_arity);
    refuse(17, one_node(put_text(bytes_node("Relu", "x", NULL, "y"), 2, "z")), DIAG_wrong_arity);
    refuse(17, one_node(with_int(bytes_node("Relu", "x", NULL, "y"), "axis", 0)), DIAG_wrong_attribute);
    refuse(17, one_node(bytes_node("Concat", "x", "x", "y")), DIAG_wrong_attribute); /* axis missing */
    refuse(17, one_node(with_float(bytes_node("Concat", "x", "x", "y"), "axis", 0)), DIAG_wrong_attribute);
    refuse(17, one_node(with_int(with_int(bytes_node("Concat", "x", "x", "y"), "axis", 0), "axis", 0)),
           DIAG_wrong_attribute);
    refuse(20, one_node(with_text(bytes_node("Gelu", "x", NULL, "y"), "approximate", "rough")),
           DIAG_wrong_attribute);
    refuse(17, one_node(with_int(bytes_node("Cast", "x", NULL, "y"), "to", 99)), DIAG_wrong_attribute);
    refuse(17, one_node(with_int(bytes_node("Cast", "x", NULL, "y"), "to", STRING)), DIAG_unsupported_case);
    refuse(17, one_node(bytes_node("And", "x", "x", "y")), DIAG_wrong_type);
    refuse(17, one_node(with_reference(bytes_node("Gelu", "x", NULL, "y"), "approximate", 3, "outer")),
           DIAG_wrong_attribute);
    refuse(14,
           one_node(with_int(
               put_text(put_text(put_text(bytes_node("BatchNormalization", "x", "x", "y"), 1, "x"), 1, "x"),
                        1, "x"),
               "training_mode", 1)),
           DIAG_unsupported_case);
    struct bytes *graph = put_message(bytes_new(), 11, bytes_value("x", STRING, 0, NULL));
    put_message(graph, 12, bytes_value("y", STRING, 0, NULL));
    expect_codes(bytes_model(17, put_message(graph, 1, bytes_node("Identity", "x", NULL, "y"))), NULL,
                 (const unsigned[]){DIAG_unsupported_case, 0});
}

static void versions(void **state)
{
    (void)state;
    static const struct {
        uint64_t ir, opset;
        unsigned code;
    } cases[] = {
        {2, 7, DIAG_model_version},
        {3, 7, 0},
        {14, 28, 0},
        {15, 17, DIAG_model_version},
        {8, 6, DIAG_model_version},
        {8, 29, DIAG_model_version},
        {8, 0, DIAG_model_version},
        {0, 17, DIAG_model_version},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes *model = bytes_new();
        if (cases[i].ir)
            put_number(model, 1, cases[i].ir);
        put_message(model, 7, one_node(bytes_node("Relu", "x", NULL, "y")));
        if (cases[i].opset)
            put_message(model, 8, bytes_opset(cases[i].opset));
        /* a domain that no node uses */
        put_message(model, 8, put_number(put_text(bytes_new(), 1, "unused.domain"), 2, 77));
        if (cases[i].code)
            expect_codes(model, NULL, (const unsigned[]){cases[i].code, 0});
        else
            expect_with(model, NULL, "Relu(%1)");
    }
    struct bytes *model = bytes_model(17, one_node(bytes_node("Relu", "x", NULL, "y")));
    expect_codes(put_message(model, 8, bytes_opset(16)), NULL, (const unsigned[]){DIAG_model_structure, 0});
}

/* FunctionProto: name, one input "a", one output "b"; nodes, attributes follow. */
static struct bytes *function(const char *name)
{
    struct bytes *f = put_text(put_text(put_text(bytes_new(), 1, name), 4, "a"), 5, "b");
    return put_message(put_text(f, 10, "my.domain"), 9, bytes_opset(17));
}

static struct bytes *call(const char *name, const char *in, const char *out)
{
    return put_text(bytes_node(name, in, NULL, out), 7, "my.domain");
}

static void functions(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        struct bytes *f = put_message(
            function("F"), 7, with_reference(bytes_node("LeakyRelu", "a", NULL, "t"), "alpha", 1, "slope"));
        put_message(f, 7, bytes_node("Neg", "t", NULL, "b"));
        put_message(f, 11, put_f32(attribute("slope", 1), 2, 0.5F)); /* the default */
        struct bytes *node = call("F", "x", "y");
        if (given)
            with_float(node, "slope", 0.25F);
        expect_with(put_message(bytes_model(17, one_node(node)), 25, f), NULL,
                    given ? "%2 = LeakyRelu(%1) alpha=0.25 : f32[*] ; #0\n  %3 = Neg(%2)"
                          : "%2 = LeakyRelu(%1) alpha=0.5 : f32[*] ; #0\n  %3 = Neg(%2)");
    }
    struct bytes *f = put_message(function("F"), 7, call("F", "a", "b"));
    expect_codes(put_message(bytes_model(17, one_node(call("F", "x", "y"))), 25, f), NULL,
                 (const unsigned[]){DIAG_bad_function, 0});
    f = put_message(function("F"), 7, bytes_node("Neg", "a", NULL, "b"));
    expect_codes(put_message(bytes_model(17, one_node(put_text(call("F", "x", "y"), 1, "x"))), 25, f), NULL,
                 (const unsigned[]){DIAG_bad_function, 0});
    f = put_message(function("F"), 7, bytes_node("Neg", "a", NULL, "b"));
    expect_codes(put_message(bytes_model(17, one_node(with_int(call("F", "x", "y"), "k", 1))), 25, f), NULL,
                 (const unsigned[]){DIAG_bad_function, 0});
    f = put_message(function("F"), 7,
                    bytes_node("Neg", "x", NULL, "b")); /* the caller's names are not visible */
    expect_codes(put_message(bytes_model(17, one_node(call("F", "x", "y"))), 25, f), NULL,
                 (const unsigned[]){DIAG_undefined_name, 0});
}

/* Each of 30 functions calls the next ten times: the limit on nodes ends it. */
static void functions_cannot_multiply(void **state)
{
    (void)state;
    struct bytes *model = bytes_model(17, one_node(call("F0", "x", "y")));
    for (unsigned i = 0; i < 30; i++) {
        char name[16], next[16], from[16], to[16];
        snprintf(name, sizeof name, "F%u", i);
        snprintf(next, sizeof next, "F%u", i + 1);
        struct bytes *f = function(name);
        for (unsigned k = 0; k < 10; k++) {
            snprintf(from, sizeof from, "v%u", k);
            snprintf(to, sizeof to, "v%u", k + 1);
            put_message(f, 7, call(next, k ? from : "a", k < 9 ? to : "b"));
        }
        put_message(model, 25, f);
    }
    put_message(model, 25, put_message(function("F30"), 7, bytes_node("Neg", "a", NULL, "b")));
    expect_codes(model, NULL, (const unsigned[]){DIAG_limit_exceeded, 0});
}

/* Memory refused at every step: a jump to the caller's recovery point, nothing left behind. */
static void memory_refused_at_every_step(void **state)
{
    (void)state;
    struct bytes *graph = put_message(x_to_y(), 5, i64_weight("w", 3, (const int64_t[]){1, 1, 1}));
    struct bytes *model = bytes_model(17, put_message(graph, 1, bytes_node("Tile", "x", "w", "y")));
    volatile bool done = false;
    for (volatile unsigned granted = 0; !done; granted++) {
        struct counting counting = {granted, 0, 0};
        const struct allocator allocator = {counting_allocate, counting_release, &counting};
        struct recovery recovery;
        struct arena arena;
        struct diagnostics diagnostics;
        struct source_files files;
        struct graph *result;
        arena_init(&arena, &allocator, &recovery);
        if (setjmp(recovery.jump) == 0) {
            diagnostics_init(&diagnostics, &arena, "model.onnx");
            source_files_init(&files, &arena);
            done = import_model_bytes(&arena, &diagnostics, model->data, model->count, NULL, &files, &result);
        }
        arena_release(&arena);
        assert_int_equal(counting.alive, 0);
        assert_true(granted < 1000);
    }
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_operators),
        cmocka_unit_test(old_forms),
        cmocka_unit_test(dropout),
        cmocka_unit_test(constants),
        cmocka_unit_test(weights_and_inputs),
        cmocka_unit_test(options),
        cmocka_unit_test(order),
        cmocka_unit_test(names),
        cmocka_unit_test(operators),
        cmocka_unit_test(arity_attributes_types),
        cmocka_unit_test(versions),
        cmocka_unit_test(functions),
        cmocka_unit_test(functions_cannot_multiply),
        cmocka_unit_test(memory_refused_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

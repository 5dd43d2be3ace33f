/* The verifier accepts a sound graph and finds each kind of fault. Every case damages one thing. */
#include "tests/unit/ir_fixture.h"

static const char sound[] = "model opset 17 {\n"
                            "  dim s0 : input 0 axis 0, 0..9\n"
                            "  input %x : f32[s0, 3]\n"
                            "  input %y : f32[s0, 3]\n"
                            "  weight %w : f32[1] hex 0000803f\n"
                            "  %a = Add(%x, %w) : f32[s0, 3]\n"
                            "  %b = Slice(%a) starts={0, 0} steps=[1, 1] : f32[s0, 3]\n"
                            "  %c = Identity(%b) : f32[s0, 3]\n"
                            "    body (%i : i64[1] {s0}) {\n"
                            "      %d = Neg(%a) : f32[s0, 3]\n"
                            "      yield %d, %i\n"
                            "    }\n"
                            "  output %c\n"
                            "  alias 0 = 1\n"
                            "}\n";

/* Values in order: 1 x, 2 y, 3 w, 4 a, 5 b, 6 c, 7 i, 8 d. Nodes: 1 Add, 2 Slice, 3 Identity, 4 Neg. */
enum { X = 1, Y, W, A, B, C, I, D };
enum { ADD = 1, SLICE, IDENTITY, NEG };

static void no_operator(struct graph *g)
{
    graph_node(g, ADD)->op = OP_NONE;
}
static void wrong_region(struct graph *g)
{
    graph_node(g, ADD)->region = 2;
}
static void few_inputs(struct graph *g)
{
    graph_node(g, ADD)->input_count = 1;
}
static void absent_input(struct graph *g)
{
    graph_node(g, ADD)->inputs[1] = 0;
}
static void no_value(struct graph *g)
{
    graph_node(g, ADD)->inputs[1] = 99;
}
static void before_definition(struct graph *g)
{
    graph_node(g, ADD)->inputs[1] = B;
}
static void out_of_region(struct graph *g)
{
    g->outputs.items[0].value = D;
}
static void many_results(struct graph *g)
{
    graph_node(g, ADD)->output_count = 2;
}
static void not_its_result(struct graph *g)
{
    graph_node(g, SLICE)->outputs[0] = A;
}
static void wrong_index(struct graph *g)
{
    graph_value(g, A)->index = 1;
}
static void listed_twice(struct graph *g)
{
    g->regions.items[1].nodes.items[1] = ADD;
}
static void no_node(struct graph *g)
{
    g->regions.items[1].nodes.items[1] = 77;
}
static void attribute_order(struct graph *g)
{
    const struct attribute first = graph_node(g, SLICE)->attributes[0];
    graph_node(g, SLICE)->attributes[0] = graph_node(g, SLICE)->attributes[1];
    graph_node(g, SLICE)->attributes[1] = first;
}
static void attribute_kind(struct graph *g)
{
    graph_node(g, SLICE)->attributes[0].kind = ATTR_INTS;
}
static void attribute_dim(struct graph *g)
{
    static const dim none[2] = {DIM_NONE, DIM_NONE};
    graph_node(g, SLICE)->attributes[0].dims = none;
}
static void no_type(struct graph *g)
{
    graph_value(g, A)->type.rank = -1;
}
static void no_dtype(struct graph *g)
{
    graph_value(g, A)->type.dtype = DTYPE_NONE;
}
static void high_rank(struct graph *g)
{
    graph_value(g, A)->type.rank = MAX_RANK + 1;
}
static void invalid_dim(struct graph *g)
{
    graph_value(g, A)->type.dims[0] = 100000;
}
static void wrong_contents(struct graph *g)
{
    graph_value(g, I)->content_count = 2;
}
static void no_data(struct graph *g)
{
    graph_value(g, W)->blob = NULL;
}
static void short_data(struct graph *g)
{
    static const struct blob blob = {.kind = BLOB_MEMORY, .length = 3};
    graph_value(g, W)->blob = &blob;
}
static void symbolic_constant(struct graph *g)
{
    graph_value(g, W)->type.dims[0] = graph_value(g, X)->type.dims[0];
}
static void no_input(struct graph *g)
{
    g->inputs.items[1] = A;
}
static void no_argument(struct graph *g)
{
    g->regions.items[2].arguments.items[0] = A;
}
static void not_its_body(struct graph *g)
{
    g->regions.items[2].parent = ADD;
}
static void undefined_result(struct graph *g)
{
    g->regions.items[2].results.items[0] = C;
}
static void no_alias(struct graph *g)
{
    g->aliases.items[0].input = 5;
}

static const struct {
    void (*damage)(struct graph *graph);
    const char *message;
} faults[] = {
    {no_operator, "has no operator"},
    {wrong_region, "region that is not its own"},
    {few_inputs, "Add has 1 inputs"},
    {absent_input, "Add lacks input 1"},
    {no_value, "value 99 does not exist"},
    {before_definition, "used before it is defined"},
    {out_of_region, "used before it is defined"},
    {many_results, "Add has 2 results"},
    {not_its_result, "is not result 0 of node 2"},
    {wrong_index, "is not result 0 of node 1"},
    {listed_twice, "without being one of its nodes"},
    {no_node, "without being one of its nodes"},
    {attribute_order, "is not in order"},
    {attribute_kind, "attribute starts is of the wrong kind"},
    {attribute_dim, "attribute starts has an invalid dim"},
    {no_type, "has no type"},
    {no_dtype, "has no type"},
    {high_rank, "has no valid type"},
    {invalid_dim, "has an invalid dim"},
    {wrong_contents, "known elements"},
    {no_data, "has no data"},
    {short_data, "3 bytes of data instead of 4"},
    {symbolic_constant, "dims that are not constant"},
    {no_input, "input 1 is not an input value"},
    {no_argument, "argument 0 of region 2 is none"},
    {not_its_body, "is not a body of node 3"},
    {undefined_result, "used before it is defined"},
    {no_alias, "alias 0 names no output or no input"},
};

static void test_sound_graph(void **state)
{
    struct fixture *fixture = *state;
    assert_true(graph_verify(fixture_parse(fixture, sound), &fixture->diagnostics, "a test", true));
    assert_int_equal(fixture->diagnostics.items.count, 0);
}

static void test_faults(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct graph *graph = fixture_parse(fixture, sound);
        if (faults[i].damage == many_results) { /* room for a second result */
            value_id *two = arena_new_array(&fixture->arena, value_id, 2);
            two[0] = A;
            graph_node(graph, ADD)->outputs = two;
        }
        fixture->diagnostics.items.count = 0;
        faults[i].damage(graph);
        assert_false(graph_verify(graph, &fixture->diagnostics, "a test", true));
        assert_true(fixture->diagnostics.items.count > 0);
        assert_int_equal(fixture->diagnostics.items.items[0].code, DIAG_internal);
        if (!strstr(fixture_messages(fixture), faults[i].message) ||
            !strstr(fixture_messages(fixture), "after a test"))
            fail_msg("fault %zu: %s", i, fixture_messages(fixture));
    }
}

static void test_unknown_types_before_inference(void **state)
{
    struct fixture *fixture = *state;
    struct graph *graph = fixture_parse(fixture, sound);
    no_type(graph);
    assert_true(graph_verify(graph, &fixture->diagnostics, "import", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_sound_graph),
        FIXTURE_TEST(test_faults),
        FIXTURE_TEST(test_unknown_types_before_inference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

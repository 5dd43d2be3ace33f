/* Building and changing graphs; reading constants; facts of the tables. */
#include "tests/unit/ir_fixture.h"

#include "ir/target.h"

static void test_nodes_stand_where_they_were_put(void **state)
{
    struct fixture *fixture = *state;
    struct graph *graph = fixture_parse(
        fixture, "model opset 17 {\n  input %x : f32[2]\n  %a = Abs(%x)\n  %b = Neg(%a)\n  output %b\n}");
    const value_id x = graph->inputs.items[0];
    const node_id neg = graph_value(graph, graph->outputs.items[0].value)->producer;
    const struct attribute attributes[] = {attribute_float(ATTR_gamma, 2), attribute_float(ATTR_alpha, 1)};
    const node_id selu = graph_add_node(graph, GRAPH_BODY, neg, OP_Selu, 1, &x, 1, 2, attributes, NULL);
    assert_int_equal(graph->regions.items[GRAPH_BODY].nodes.items[1], selu);
    assert_int_equal(graph_node(graph, selu)->attributes[0].name, ATTR_alpha);
    graph_node(graph, neg)->inputs[0] = graph_node(graph, selu)->outputs[0];
    graph_remove_node(graph, graph->regions.items[GRAPH_BODY].nodes.items[0]);
    graph_sweep(graph);
    assert_int_equal(graph->regions.items[GRAPH_BODY].nodes.count, 2);
    assert_string_equal(fixture_print(fixture, graph, false),
                        "model opset 17 {\n  input %1 : f32[2]\n  %2 = Selu(%1) alpha=1 gamma=2 : none[*]\n"
                        "  %3 = Neg(%2) : none[*]\n  output %3\n}\n");
    graph_replace_uses(graph, graph->outputs.items[0].value, x);
    assert_int_equal(graph->outputs.items[0].value, x);
    const uint32_t *uses = graph_use_counts(graph, &fixture->arena);
    assert_int_equal(uses[x], 2);
}

static void test_attributes(void **state)
{
    struct fixture *fixture = *state;
    struct graph *graph = graph_new(&fixture->arena);
    const node_id node = graph_add_node(graph, GRAPH_BODY, 0, OP_Dims, 0, NULL, 1, 0, NULL, NULL);
    const struct attribute values[] = {attribute_int(ATTR_upper, 1), attribute_int(ATTR_axis, -2),
                                       attribute_word(ATTR_mode, word_find("edge")),
                                       attribute_int(ATTR_axis, 3)};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        node_set_attribute(graph, node, &values[i]);
    struct node *n = graph_node(graph, node);
    assert_int_equal(n->attribute_count, 3);
    assert_int_equal(node_int(n, ATTR_axis, 0), 3);
    assert_int_equal(node_int(n, ATTR_group, 7), 7);
    assert_string_equal(node_word(n, ATTR_mode, "none"), "edge");
    assert_true(node_float(n, ATTR_alpha, 0.5) == 0.5);
    node_remove_attribute(n, ATTR_axis);
    assert_null(node_attribute(n, ATTR_axis));
    assert_int_equal(n->attribute_count, 2);
}

static void test_constants(void **state)
{
    struct fixture *fixture = *state;
    struct graph *graph = graph_new(&fixture->arena);
    int64_t elements[4];
    uint32_t count;
    double number;
    const int64_t three = 3;
    const signed char small[3] = {-1, 0, 127};
    const value_id bytes = graph_add_constant_data(graph, DTYPE_I8, 1, &three, small);
    assert_true(value_constant_ints(graph, bytes, elements, 4, &count));
    assert_int_equal(count, 3);
    assert_int_equal(elements[0], -1);
    assert_int_equal(elements[2], 127);
    assert_false(value_constant_ints(graph, bytes, elements, 2, &count));
    assert_false(value_constant_float(graph, bytes, &number));
    const uint64_t large = UINT64_MAX;
    assert_false(value_constant_ints(graph, graph_add_constant_data(graph, DTYPE_U64, 0, NULL, &large),
                                     elements, 4, &count));
    static const struct {
        enum dtype dtype;
        uint16_t bits;
        double value;
    } halves[] = {{DTYPE_F16, 0x3C00, 1},     {DTYPE_F16, 0xC500, -5}, {DTYPE_F16, 0x0001, 0x1p-24},
                  {DTYPE_F16, 0x7BFF, 65504}, {DTYPE_BF16, 0x3F80, 1}, {DTYPE_BF16, 0xC0A0, -5}};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        assert_true(value_constant_float(
            graph, graph_add_constant_data(graph, halves[i].dtype, 0, NULL, &halves[i].bits), &number));
        assert_true(number == halves[i].value);
    }
    unsigned char beyond[8];
    assert_false(blob_read(graph_value(graph, bytes)->blob, 2, beyond, 2));
    assert_false(blob_read(graph_value(graph, bytes)->blob, UINT64_MAX, beyond, 2));
}

static void test_tables(void **state)
{
    (void)state;
    for (unsigned i = 1; i < OP_COUNT; i++)
        assert_int_equal(op_from_name(op_facts((enum op)i)->name), i);
    for (unsigned i = 1; i < ATTR_COUNT; i++)
        assert_int_equal(attribute_from_text(attribute_text((enum attribute_name)i)), i);
    for (unsigned i = 1; i < DTYPE_COUNT; i++)
        assert_int_equal(dtype_from_name(dtype_name((enum dtype)i)), i);
    assert_int_equal(op_from_name("Nothing"), OP_NONE);
    assert_int_equal(attribute_from_text("nothing"), ATTR_NONE);
    assert_int_equal(dtype_from_name("nothing"), DTYPE_NONE);
    assert_null(word_find("nothing"));
    assert_string_equal(dtype_name((enum dtype)99), "none");
    uint64_t bytes;
    assert_true(dtype_bytes(DTYPE_I4, 3, &bytes));
    assert_int_equal(bytes, 2);
    assert_true(dtype_bytes(DTYPE_U2, 5, &bytes));
    assert_int_equal(bytes, 2);
    assert_false(dtype_bytes(DTYPE_F64, INT64_MAX, &bytes));
    assert_false(dtype_bytes(DTYPE_F32, -1, &bytes));
    assert_null(machine_find("sm_10"));
    for (uint32_t i = 0; machine_row(i); i++)
        assert_ptr_equal(machine_find(machine_row(i)->name), machine_row(i));
    assert_true(machine_find("sm_90a")->architecture_specific);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_nodes_stand_where_they_were_put),
        FIXTURE_TEST(test_attributes),
        FIXTURE_TEST(test_constants),
        FIXTURE_TEST(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

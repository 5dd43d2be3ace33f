/* The text of graphs: what is printed reads back as the same graph; what is no graph is refused with its
 * line. */
#include "tests/unit/ir_fixture.h"

/* Every construct of the grammar, as the printer writes it. */
static const char everything[] =
    "model \"py\\x22torch\" opset 17 {\n"
    "  dim s0 \"batch\" : input 0 axis 0, 1..64, hint 8\n"
    "  dim s1 \"batch\" : input 1 axis 0, 0..100, hint 1\n"
    "  dim s2 : input 2 value 1, 0..100, hint 1\n"
    "  guard s0 == s1 ; #3\n"
    "  merge s1 = s0\n"
    "  input %1 \"x\" : f32[s0, 3]\n"
    "  input %2 : f32[s0]\n"
    "  input %3 : i64[2] {?, s2}\n"
    "  weight %4 \"w\" : f32[1] hex 0000803f\n"
    "  weight %5 : i64[0] hex \n"
    "  weight %6 : bf16[] hex 803f\n"
    "  %7 = Add(%1, %4) : f32[s0, 3] ; #0\n"
    "  %8 = Clip(%7, _, %4) : f32[s0, 3] ; #1, #2\n"
    "  %9 = Cast(%8) to=f16 : f16[s0, 3]\n"
    "  %10 = Gelu(%8) approximate=tanh : f32[s0, 3]\n"
    "  %11 = LeakyRelu(%10) alpha=-0.25 : f32[s0, 3]\n"
    "  %12 = Slice(%11) starts={0, 1} steps=[1, -1] : f32[s0, 2]\n"
    "  %13 = Dims() dims={4 * s0, (s0 + 1) / 2, max(s2, 3)} : i64[3] {4 * s0, (s0 + 1) / 2, max(s2, 3)}\n"
    "  %14, _, %15 = LayerNormalization(%12, %4) axis=1 : f32[s0, 2], _, f32[s0, 1]\n"
    "  %16 = Resize(%14) scales=[1, 2.5] : f32[s0, 5]\n"
    "  %17 = Identity(%16) : none[*]\n"
    "  %18 = Identity(%16) : f32[s0, 5] ; #9\n"
    "    body (%19 : f32[2], %20 : i64[]) {\n"
    "      %21 = Neg(%19) : f32[2]\n"
    "      yield %21, %20\n"
    "    }\n"
    "    body () {\n"
    "      yield %16\n"
    "    }\n"
    "  output %16 \"scores\"\n"
    "  output %3\n"
    "  alias 1 = 2\n"
    "}\n";

static void test_identity(void **state)
{
    struct fixture *fixture = *state;
    const struct graph *graph = fixture_parse(fixture, everything);
    /* weights that nothing uses are not printed */
    const char *once = fixture_print(fixture, graph, true);
    const char *twice = fixture_print(fixture, fixture_parse(fixture, once), true);
    assert_string_equal(once, twice);
    char expected[sizeof everything];
    memcpy(expected, everything, sizeof everything);
    for (const char *drop = "  weight %5 : i64[0] hex \n  weight %6 : bf16[] hex 803f\n"; drop; drop = NULL) {
        char *at = strstr(expected, drop);
        assert_non_null(at);
        memmove(at, at + strlen(drop), strlen(at + strlen(drop)) + 1);
    }
    /* up to the numbers of the values behind them, the text is as it was written */
    assert_int_equal(strlen(once) < strlen(expected), true);
    assert_memory_equal(once, expected, (size_t)(strstr(expected, "  %7 =") - expected));
}

static void test_names_are_printed_on_request_only(void **state)
{
    struct fixture *fixture = *state;
    const char *text = fixture_print(fixture, fixture_parse(fixture, everything), false);
    assert_null(strchr(text, '"'));
    const char *again = fixture_print(fixture, fixture_parse(fixture, text), false);
    assert_string_equal(text, again);
}

static void test_by_hand(void **state)
{
    struct fixture *fixture = *state;
    const struct graph *graph =
        fixture_parse(fixture, "; a comment\nmodel opset 13 { input %x : f32[2]  ; another\n"
                               "weight %w' : f32[2] zeros\n%sum = Add(%x, %w')\n; more\noutput %sum }");
    assert_string_equal(fixture_print(fixture, graph, false),
                        "model opset 13 {\n  input %1 : f32[2]\n  weight %2 : f32[2] hex 0000000000000000\n"
                        "  %3 = Add(%1, %2) : none[*]\n  output %3\n}\n");
    const struct value *sum = graph_value(graph, graph->outputs.items[0].value);
    assert_int_equal(sum->type.rank, -1);
    assert_int_equal(graph_node(graph, sum->producer)->op, OP_Add);
}

static const struct blob *find_blob(void *user, uint64_t hash, uint64_t length)
{
    const struct blob *blob = user;
    bool readable;
    return blob->length == length && blob_hash(blob, &readable) == hash ? blob : NULL;
}

static void test_large_constants_are_found_by_hash(void **state)
{
    struct fixture *fixture = *state;
    float data[32];
    for (int i = 0; i < 32; i++)
        data[i] = (float)i;
    struct graph *graph = graph_new(&fixture->arena), *again = NULL;
    const int64_t size = 32;
    const value_id weight = graph_add_constant_data(graph, DTYPE_F32, 1, &size, data);
    graph_add_output(graph, weight, "w");
    const char *text = fixture_print(fixture, graph, false);
    assert_non_null(strstr(text, " blob "));
    assert_false(graph_parse(&fixture->arena, &fixture->diagnostics, text, NULL, &again));
    const struct blob_finder finder = {find_blob, (void *)(uintptr_t)graph_value(graph, weight)->blob};
    assert_true(graph_parse(&fixture->arena, &fixture->diagnostics, text, &finder, &again));
    assert_string_equal(fixture_print(fixture, again, false), text);
}

static void test_refusals(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1: expected model"},
        {"model opset 17 {", "expected"},
        {"model opset 17 {\n%1 = Add(%2)\n}", "line 2: expected a value that is defined before its use"},
        {"model opset 17 {\ninput %x : f32[2]\ninput %x : f32[2]\n}", "expected a new value name"},
        {"model opset 17 {\ninput %x : f33[2]\n}", "expected an element type"},
        {"model opset 17 {\ninput %x : f32[s0]\n}", "expected a dim"},
        {"model opset 17 { input %x : f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] }", "a shorter list"},
        {"model opset 17 {\ninput %x : f32[2]\n%y = Frobnicate(%x)\n}", "line 3: expected an operator"},
        {"model opset 17 {\ninput %x : f32[2]\n%y = Abs(%x) colour=2\n}", "the name of an attribute"},
        {"model opset 17 {\ninput %x : f32[2]\n%y = Gelu(%x) approximate=sometimes\n}",
         "a word of the vocabulary"},
        {"model opset 17 { weight %w : f32[2] hex 00 }", "as many hex digits as the type has"},
        {"model opset 17 { weight %w : f32[1] hex 0000000000 }", "the end of the line"},
        {"model opset 17 { weight %w : f32[99999999] hex 00 }", "hex digits"},
        {"model opset 17 { weight %w : f32[1] blob 00 }", "a blob that is known"},
        {"model opset 17 { dim s1 : input 0 axis 0, 0..1 }", "the next symbol, in order"},
        {"model opset 17 { dim s0 : input 0 axis 0, 5..1 }", "a range"},
        {"model opset 17 { } x", "the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph *graph = NULL;
        fixture->diagnostics.items.count = 0;
        assert_false(graph_parse(&fixture->arena, &fixture->diagnostics, cases[i].text, NULL, &graph));
        assert_int_equal(fixture->diagnostics.items.count, 1);
        if (!strstr(fixture_messages(fixture), cases[i].message))
            fail_msg("case %zu: %s", i, fixture_messages(fixture));
    }
    /* cut short anywhere: refused, never read beyond the end */
    for (size_t length = 0; length + 2 < sizeof everything; length++) {
        char *cut = malloc(length + 1);
        assert_non_null(cut);
        memcpy(cut, everything, length);
        cut[length] = 0;
        struct graph *graph = NULL;
        assert_false(graph_parse(&fixture->arena, &fixture->diagnostics, cut, NULL, &graph));
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_identity), FIXTURE_TEST(test_names_are_printed_on_request_only),
        FIXTURE_TEST(test_by_hand),  FIXTURE_TEST(test_large_constants_are_found_by_hash),
        FIXTURE_TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

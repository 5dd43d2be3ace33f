/* Shape inference as text: statements of a graph, and a line that its text must hold afterwards; or a fault
 * and its message. Symbols: s0, s1 are axes 0 and 1 of input 0 (0 .. 1000), s2 is axis 0 of input 1. */
#include "tests/unit/ir_fixture.h"

#include "ir/infer.h"

#include <stdio.h>

#define SYMBOLS                                                                                              \
    "dim s0 \"a\" : input 0 axis 0, 0..1000\ndim s1 \"b\" : input 0 axis 1, 0..1000\n"                       \
    "dim s2 \"c\" : input 1 axis 0, 0..1000\n"

struct infer_case {
    const char *statements, *expected;
};

static struct graph *infer_text(struct fixture *fixture, const char *statements, bool *done)
{
    char text[8192];
    snprintf(text, sizeof text, "model opset 17 {\n%s%s\n}", SYMBOLS, statements);
    struct graph *graph = fixture_parse(fixture, text);
    *done = infer_graph(graph, &fixture->diagnostics);
    return graph;
}

static void check_cases(struct fixture *fixture, const struct infer_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool done;
        struct graph *graph = infer_text(fixture, cases[i].statements, &done);
        if (!done)
            fail_msg("case %zu: %s\n%s", i, cases[i].statements, fixture_messages(fixture));
        assert_true(graph_verify(graph, &fixture->diagnostics, "inference", true));
        const char *text = fixture_print(fixture, graph, false);
        if (!strstr(text, cases[i].expected))
            fail_msg("case %zu: %s\nis not in\n%s", i, cases[i].expected, text);
        /* what was inferred once stays, and its text is the graph */
        assert_true(infer_graph(graph, &fixture->diagnostics));
        const char *again = fixture_print(fixture, graph, false);
        assert_string_equal(text, again);
        struct graph *parsed = NULL;
        if (strstr(text, " blob "))
            continue;
        assert_true(graph_parse(&fixture->arena, &fixture->diagnostics, text, NULL, &parsed));
        assert_string_equal(fixture_print(fixture, parsed, false), text);
    }
}

#define I64(n, hex)  "weight %" n " hex " hex "\n"
#define X            "input %x : f32[s0, s1]\ninput %y : f32[s2]\n"
#define IN(type)     "input %x : " type "\n"
#define OUT          "\noutput %r"
#define CHECK(array) check_cases(*state, array, sizeof(array) / sizeof *(array))

static void test_pointwise(void **state)
{
    static const struct infer_case cases[] = {
        {X "%r = Exp(%x)" OUT, "= Exp(%1) : f32[s0, s1]"},
        {IN("f32[]") "%r = Sqrt(%x)" OUT, ": f32[]"},
        {IN("f32[0, 3]") "%r = Relu(%x)" OUT, ": f32[0, 3]"},
        {IN("i32[2]") "%r = Abs(%x)" OUT, ": i32[2]"},
        {IN("f32[2]") "%r = Cast(%x) to=i8" OUT, ": i8[2]"},
        {IN("f16[2]") "%r = IsNaN(%x)" OUT, ": bool[2]"},
        {X "%r = Add(%x, %y)" OUT, ": f32[s0, max(s1, s2)]"},
        {"input %x : f32[4, 1, 3]\ninput %y : f32[5, 1]\n%r = Mul(%x, %y)" OUT, ": f32[4, 5, 3]"},
        {"input %x : f32[s0, 1]\ninput %y : f32[1, s2]\n%r = Sub(%x, %y)" OUT, ": f32[s0, s2]"},
        {"input %x : f32[s0, 7]\ninput %y : f32[7]\n%r = Div(%x, %y)" OUT, ": f32[s0, 7]"},
        {"input %x : f32[s0]\ninput %y : f32[7]\n%r = Add(%x, %y)" OUT, ": f32[7]"},
        {"input %x : i64[2, 1]\ninput %y : i64[3]\n%r = Less(%x, %y)" OUT, ": bool[2, 3]"},
        {"input %x : f32[2]\ninput %y : i64[1]\n%r = Pow(%x, %y)" OUT, ": f32[2]"},
        {"input %x : bool[3, 1]\ninput %y : f32[2]\ninput %z : f32[4, 1, 1]\n%r = Where(%x, %y, %z)" OUT,
         ": f32[4, 3, 2]"},
        {IN("f32[s0]") I64("k : f32[]", "00000000") "%r = Clip(%x, _, %k)" OUT, ": f32[s0]"},
        {IN("f32[2, 3]") "%r = Softmax(%x) axis=-1" OUT, "axis=1 : f32[2, 3]"},
        {IN("f32[2, 3, 4]") "%r = Trilu(%x) upper=0" OUT, ": f32[2, 3, 4]"},
        {IN("f16[2, 3, 4]") "%r = ArgMax(%x) axis=-2 keepdims=0" OUT, "axis=1 keepdims=0 : i64[2, 4]"},
        {IN("u8[s0, 3]") "%r = ArgMin(%x)" OUT, ": i64[1, 3]"},
        /* a range of one value */
        {"dim s3 : input 1 axis 0, 8..8\ninput %x : f32[s0]\ninput %y : f32[s3]\n%r = Exp(%y)" OUT,
         ": f32[8]"},
        /* the same name: equal sizes */
        {"dim s3 \"b\" : input 1 axis 0, 0..50\ninput %x : f32[s0, s1]\ninput %y : f32[s3]\n%r = Add(%x, "
         "%y)" OUT,
         ": f32[s0, s1]"},
    };
    CHECK(cases);
}

static void test_movement(void **state)
{
    static const struct infer_case cases[] = {
        {X "%r = Transpose(%x)" OUT, "perm=[1, 0] : f32[s1, s0]"},
        {IN("f32[2, s0, 4]") "%r = Transpose(%x) perm=[2, 0, 1]" OUT, ": f32[4, 2, s0]"},
        {"input %x : f32[s0, 3]\ninput %y : f32[s2, 3]\n%r = Concat(%x, %y) axis=-2" OUT,
         "axis=0 : f32[s0 + s2, 3]"},
        {"input %x : f32[s0, 3]\ninput %y : i64[2, 2]\n%r = Gather(%x, %y) axis=0" OUT, ": f32[2, 2, 3]"},
        {"input %x : f32[s0, 3]\ninput %y : i32[]\n%r = Gather(%x, %y) axis=1" OUT, ": f32[s0]"},
        {"input %x : f32[2, s0, 3]\ninput %y : i64[2, 5, 1]\n%r = GatherND(%x, %y) batch_dims=1" OUT,
         ": f32[2, 5, 3]"},
        {IN("f32[2, 8, 3, 3]") "%r = DepthToSpace(%x) blocksize=2 mode=CRD" OUT, ": f32[2, 2, 6, 6]"},
        {IN("f32[2, 8, 4, 6]") "%r = SpaceToDepth(%x) blocksize=2" OUT, ": f32[2, 32, 2, 3]"},
        {IN("f32[3, s0]") "weight %p : i64[4] hex "
                          "01000000000000000000000000000000ffffffffffffffff0200000000000000\n"
                          "%r = Pad(%x, %p)" OUT,
         "pads={1, 0, -1, 2} : f32[3, s0 + 2]"},
        {IN("f32[s0, 7]") "weight %n : i64[2] hex 02000000000000000500000000000000\n"
                          "%q, %r = Split(%x, %n) axis=1\noutput %q" OUT,
         "Slice(%1) starts={0, 2} steps=[1, 1] : f32[s0, 5]"},
        {IN("f32[7]") "%q, %r = Split(%x) num_outputs=2\noutput %q" OUT, "starts={4} steps=[1] : f32[3]"},
    };
    CHECK(cases);
}

#define N(v) v "00000000000000"

static void test_slices(void **state)
{
    static const struct infer_case cases[] = {
        /* x[:, 1:] of a size that can be 0 */
        {X "weight %s : i64[1] hex " N("01") "\nweight %e : i64[1] hex ffffffffffffff7f\nweight %a : i64[1] "
                                             "hex " N("01") "\n%r = Slice(%x, %s, %e, %a)" OUT,
         "starts={0, min(s1, 1)} steps=[1, 1] : f32[s0, s1 - min(s1, 1)]"},
        /* x[-2:] of 5, x[4:1:-2] of 5, x[::-1], and an empty one */
        {IN("f32[5]") "weight %s : i64[1] hex feffffffffffffff\nweight %e : i64[1] hex ffffffffffffff7f\n"
                      "%r = Slice(%x, %s, %e)" OUT,
         "starts={3} steps=[1] : f32[2]"},
        {IN("f32[5]") "weight %s : i64[1] hex " N("04") "\nweight %e : i64[1] hex " N(
             "01") "\nweight %a : i64[1] hex " N("00") "\nweight %t : i64[1] hex feffffffffffffff\n"
                                                       "%r = Slice(%x, %s, %e, %a, %t)" OUT,
         "starts={4} steps=[-2] : f32[2]"},
        {IN("f32[s0]") "weight %s : i64[1] hex ffffffffffffffff\nweight %e : i64[1] hex 0100000000000080\n"
                       "weight %a : i64[1] hex " N("00") "\nweight %t : i64[1] hex ffffffffffffffff\n"
                                                         "%r = Slice(%x, %s, %e, %a, %t)" OUT,
         "starts={s0 - 1} steps=[-1] : f32[s0]"},
        {IN("f32[5]") "weight %s : i64[1] hex " N("04") "\nweight %e : i64[1] hex " N(
             "02") "\n%r = Slice(%x, %s, %e)" OUT,
         ": f32[0]"},
    };
    CHECK(cases);
}

static void test_shapes(void **state)
{
    static const struct infer_case cases[] = {
        {X "%r = Shape(%x)" OUT, "= Dims() dims={s0, s1} : i64[2] {s0, s1}"},
        {X "%r = Shape(%x) start=-1" OUT, "= Dims() dims={s1} : i64[1] {s1}"},
        {X "%r = Size(%x)" OUT, "= Dims() dims={s0 * s1} : i64[] {s0 * s1}"},
        {IN("f32[2, s0, 4]") "%r = Flatten(%x) axis=2" OUT, "= Reshape(%1) : f32[2 * s0, 4]"},
        {IN("f32[2, 3]") "%r = Flatten(%x) axis=0" OUT, "= Reshape(%1) : f32[1, 6]"},
        {IN("f32[s0, 6]") "weight %n : i64[3] hex 0000000000000000ffffffffffffffff0300000000000000\n"
                          "%r = Reshape(%x, %n)" OUT,
         "= Reshape(%1) : f32[s0, 2, 3]"},
        {IN("f32[0, 6]") "weight %n : i64[2] hex 06000000000000000000000000000000\n"
                         "%r = Reshape(%x, %n) allowzero=1" OUT,
         "= Reshape(%1) : f32[6, 0]"},
        {IN("f32[1]") "weight %n : i64[0] hex \n%r = Reshape(%x, %n)" OUT, ": f32[]"},
        /* x.view(b, t // 4, -1) by shape arithmetic: Shape, Gather, Div, Concat */
        {IN("f32[s0, 8]") "weight %z : i64[] hex " N(
             "00") "\nweight %m : i64[1] hex ffffffffffffffff\n"
                   "weight %f : i64[1] hex " N(
                       "04") "\n"
                             "%h = Shape(%x)\n%g = Gather(%h, %z) axis=0\n"
                             "weight %u : i64[1] hex " N(
                                 "00") "\n"
                                       "%q = Unsqueeze(%g, %u)\n%c = Concat(%q, %f, %m) axis=0\n"
                                       "%r = Reshape(%x, %c)" OUT,
         ": f32[s0, 4, 2]"},
        {IN("f32[1, s0, 1]") "weight %a : i64[1] hex ffffffffffffffff\n%r = Squeeze(%x, %a)" OUT,
         "= Reshape(%1) : f32[1, s0]"},
        {IN("f32[1, 3, 1]") "%r = Squeeze(%x)" OUT, ": f32[3]"},
        {IN("f32[s0]") "weight %a : i64[2] hex 0000000000000000ffffffffffffffff\n%r = Unsqueeze(%x, %a)" OUT,
         "= Reshape(%1) : f32[1, s0, 1]"},
        {IN("f32[3, 1]") "weight %n : i64[3] hex 020000000000000001000000000000000600000000000000\n"
                         "%r = Expand(%x, %n)" OUT,
         "= Expand(%1) : f32[2, 3, 6]"},
        {X "%h = Shape(%y)\nweight %o : f32[1] hex 0000803f\n%r = ConstantOfShape(%h, %o)" OUT, "= Expand(%"},
        {X "%h = Shape(%y)\n%r = ConstantOfShape(%h)" OUT, ": f32[s2]"},
        {IN("f32[s0, 2]") "weight %n : i64[2] hex 03000000000000000100000000000000\n%r = Tile(%x, %n)" OUT,
         "= Tile(%1) : f32[3 * s0, 2]"},
        {X "%h = Size(%y)\nweight %o : i64[] hex " N("00") "\nweight %d : i64[] hex " N(
             "02") "\n%r = Range(%o, %h, %d)" OUT,
         ": i64[(s2 + 1) / 2]"},
        {"weight %a : f32[] hex 0000803f\nweight %b : f32[] hex 00002040\nweight %c : f32[] hex 0000003f\n"
         "%r = Range(%a, %b, %c)" OUT,
         ": f32[3]"},
    };
    CHECK(cases);
}

static void test_host_inputs(void **state)
{
    static const struct infer_case cases[] = {
        {"input %x : f32[s0, s1]\ninput %n : i64[2]\n%r = Reshape(%x, %n)" OUT, "dim s3 : input 1 value 0"},
        {"input %x : f32[1]\ninput %n : i64[2]\n%r = Expand(%x, %n)" OUT, "= Expand(%1) : f32[s3, s4]"},
        {"input %x : f32[1]\ninput %n : i32[1]\n%m = Cast(%n) to=i64\n%r = Expand(%x, %m)" OUT, ": f32[s3]"},
        /* an input that feeds no shape stays on the device */
        {"input %n : i64[2]\n%r = Neg(%n)" OUT, "input %1 : i64[2]\n"},
    };
    CHECK(cases);
}

static void test_reductions_and_rows(void **state)
{
    static const struct infer_case cases[] = {
        {IN("f32[s0, 3, 4]") "%r = ReduceMean(%x) axes=[-1]" OUT, "axes=[2] keepdims=1 : f32[s0, 3, 1]"},
        {IN("f32[s0, 3, 4]") "weight %a : i64[2] hex 02000000000000000000000000000000\n"
                             "%r = ReduceSum(%x, %a) keepdims=0" OUT,
         "axes=[0, 2] keepdims=0 : f32[3]"},
        {IN("f32[s0, 3]") "%r = ReduceMax(%x) keepdims=0" OUT, "axes=[0, 1] keepdims=0 : f32[]"},
        {IN("f32[s0, 3]") "%r = ReduceSum(%x) noop_with_empty_axes=1" OUT, "= Identity(%1) : f32[s0, 3]"},
        {"input %x : f32[s0, 3, 8]\ninput %g : f32[8]\n%r, %m = LayerNormalization(%x, %g) axis=-1\noutput "
         "%m" OUT,
         "axis=2 : f32[s0, 3, 8], f32[s0, 3, 1]"},
        {"input %x : f32[s0, 3, 8]\ninput %g : f32[3]\n%r = InstanceNormalization(%x, %g, %g)" OUT,
         ": f32[s0, 3, 8]"},
    };
    CHECK(cases);
}

static void test_windows(void **state)
{
    static const struct infer_case cases[] = {
        {"input %x : f32[s0, 3, 224, 224]\ninput %w : f32[32, 3, 3, 3]\n"
         "%r = Conv(%x, %w) strides=[2, 2] pads=[1, 1, 1, 1]" OUT,
         "dilations=[1, 1] group=1 kernel_shape=[3, 3] pads=[1, 1, 1, 1] strides=[2, 2] : f32[s0, 32, 112, "
         "112]"},
        {"input %x : f32[1, 4, s0]\ninput %w : f32[8, 2, 3]\n%r = Conv(%x, %w) group=2 dilations=[2]" OUT,
         ": f32[1, 8, s0 - 4]"},
        {"input %x : f32[1, 4, s0]\ninput %w : f32[8, 4, 4]\n%r = Conv(%x, %w) auto_pad=SAME_UPPER" OUT,
         "pads=[1, 2] strides=[1] : f32[1, 8, s0]"},
        {"input %x : f32[1, 4, 5]\ninput %w : f32[8, 4, 3]\n%r = Conv(%x, %w) auto_pad=SAME_LOWER "
         "strides=[2]" OUT,
         "pads=[1, 1] strides=[2] : f32[1, 8, 3]"},
        {IN("f32[1, 2, 7, 7]") "%r = MaxPool(%x) kernel_shape=[2, 2] strides=[2, 2]" OUT,
         ": f32[1, 2, 3, 3]"},
        {IN("f32[1, 2, 7, 7]") "%r = MaxPool(%x) kernel_shape=[2, 2] strides=[2, 2] ceil_mode=1" OUT,
         ": f32[1, 2, 4, 4]"},
        /* the last window would start in the right pad */
        {IN("f32[1, 1, 3]") "%r = AveragePool(%x) kernel_shape=[1] strides=[2] pads=[0, 1] ceil_mode=1" OUT,
         ": f32[1, 1, 2]"},
        {IN("f32[1, 2, s0, 5]") "weight %s : f32[4] hex 0000803f0000803f0000004000000040\n%r = Resize(%x, _, "
                                "%s)" OUT,
         "scales=[1, 1, 2, 2] : f32[1, 2, 2 * s0, 10]"},
        {IN("f32[1, 2, 4, 5]") "weight %s : i64[4] hex " N("01") N("02") N("08")
             N("07") "\n%r = Resize(%x, _, _, %s)" OUT,
         "= Resize(%1) : f32[1, 2, 8, 7]"},
        {"input %x : f32[s0, 4]\ninput %w : f32[7, s2]\n%r = Gemm(%x, %w) transB=1" OUT, ": f32[s0, 7]"},
        {"input %x : f32[s0, 1, 5, 4]\ninput %w : f32[2, 4, 3]\n%r = MatMul(%x, %w)" OUT,
         ": f32[s0, 2, 5, 3]"},
        {"input %x : f32[4]\ninput %w : f32[s2, 3]\n%r = MatMul(%x, %w)" OUT, ": f32[3]"},
        {"input %x : f32[5, 4]\ninput %w : f32[4]\n%r = MatMul(%x, %w)" OUT, ": f32[5]"},
    };
    CHECK(cases);
}

static void test_faults(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *statements, *code, *message;
    } cases[] = {
        {IN("i32[2]") "%r = Exp(%x) ; #4" OUT, "E0301", "(#4, Exp"},
        {"input %x : f32[2]\ninput %y : f64[2]\n%r = Add(%x, %y)" OUT, "E0301",
         "the element types must agree"},
        {"input %x : f32[2]\ninput %y : f32[3]\n%r = Add(%x, %y)" OUT, "E0302",
         "f32[2] and f32[3] do not broadcast"},
        {"input %x : f32[12, 7, 9]\ninput %y : f32[12, 64, 9]\n%r = MatMul(%x, %y)" OUT, "E0302",
         "input 1 is f32[12, 64, 9]; its dim 1 must be 9 to match input 0, f32[12, 7, 9]"},
        {"input %x : f32[2, 0]\n%r = ArgMax(%x) axis=1" OUT, "E0302", "no largest element"},
        {"input %x : f32[s0, 3]\ninput %y : f32[2, 4]\n%r = Concat(%x, %y) axis=0" OUT, "E0302",
         "3 and 4 must be equal"},
        {"input %x : f32[2, 3]\nweight %n : i64[1] hex 0500000000000000\n%r = Reshape(%x, %n)" OUT, "E0302",
         "6 and 5 must be equal"},
        {"input %x : f32[2, 3]\nweight %n : i64[2] hex 0400000000000000ffffffffffffffff\n%r = Reshape(%x, "
         "%n)" OUT,
         "E0302", "-1 stands for no size"},
        {"input %x : f32[2, 3]\nweight %n : i64[2] hex ffffffffffffffffffffffffffffffff\n%r = Reshape(%x, "
         "%n)" OUT,
         "E0302", "-1 twice"},
        {"input %n : f32[]\n%r = Range(%n, %n, %n)" OUT, "E0304", "input 0 of a range of floats"},
        {"input %x : i64[2]\ninput %n : i64[s0]\n%r = Expand(%x, %n)" OUT, "E0304", "of unknown length"},
        {"input %x : f32[2, 3]\n%r = Softmax(%x) axis=2" OUT, "E0207",
         "axis 2 is outside an input of rank 2"},
        {"input %x : f32[1, 3, 8]\ninput %w : f32[4, 2, 3]\n%r = Conv(%x, %w)" OUT, "E0302", "channels"},
        {"input %x : f32[1, 3, 2]\ninput %w : f32[4, 3, 5]\n%r = Conv(%x, %w)" OUT, "E0302", "does not fit"},
        {"input %x : f32[s0, 2]\nweight %n : i64[2] hex 00000000000000400100000000000000\n%r = Tile(%x, %n)\n"
         "%q = Tile(%r, %n)" OUT,
         "E0404", "overflows"},
        {"input %x : f32[256]\nweight %n : i64[1] hex 0000000000000001\n%r = Tile(%x, %n)" OUT, "E0404", ""},
        {"input %x : f32[2, 3]\n%r = Transpose(%x) perm=[0, 0]" OUT, "E0207", "perm names axis 0 twice"},
        /* results of a failed node are unknown, and those fed by them silent */
        {"input %x : f32[2]\ninput %y : f32[3]\n%q = Add(%x, %y)\n%r = Exp(%q)" OUT, "E0302",
         "do not broadcast"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool done;
        fixture->diagnostics.items.count = 0;
        infer_text(fixture, cases[i].statements, &done);
        if (done)
            fail_msg("case %zu: %s", i, cases[i].statements);
        const char *messages = fixture_messages(fixture);
        if (fixture->diagnostics.items.count != 1 || !strstr(messages, cases[i].code) ||
            !strstr(messages, cases[i].message))
            fail_msg("case %zu: %s %s\nis not in %s", i, cases[i].code, cases[i].message, messages);
    }
}

static void test_all_faults_in_one_run(void **state)
{
    struct fixture *fixture = *state;
    bool done;
    infer_text(fixture, "input %x : i32[2]\n%q = Exp(%x)\n%p = Log(%x)\n%r = Sin(%q)" OUT, &done);
    assert_false(done);
    assert_int_equal(fixture->diagnostics.items.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_pointwise),
        FIXTURE_TEST(test_movement),
        FIXTURE_TEST(test_slices),
        FIXTURE_TEST(test_shapes),
        FIXTURE_TEST(test_host_inputs),
        FIXTURE_TEST(test_reductions_and_rows),
        FIXTURE_TEST(test_windows),
        FIXTURE_TEST(test_faults),
        FIXTURE_TEST(test_all_faults_in_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

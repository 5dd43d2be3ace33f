/* What a kernel computes hangs neither on the instruction set level nor on how many workers share it:
 * reductions, rows and contractions give the same bits on every level that this machine has, in one share and
 * in five; and few long rows are cut into pieces for the workers. */
#include "tests/unit/definition_support.h"
#include "tests/unit/strategy_support.h"

enum { MOST_OUTPUT_BYTES = 1 << 20 };

struct level_case {
    const char *what;
    enum op op;
    int rank;
    int64_t input[4], output[4];
    uint32_t axis_count;
    int64_t axes[4];
    bool in_pieces;
};

static const struct level_case cases[] = {
    {"all of a matrix", OP_ReduceSum, 2, {131, 1003}, {1, 1}, 2, {0, 1}, true},
    {"three long rows", OP_ReduceSum, 2, {3, 70001}, {3, 1}, 1, {1}, true},
    {"a mean of long rows", OP_ReduceMean, 3, {2, 300, 401}, {2, 1, 1}, 2, {1, 2}, true},
    {"five long columns", OP_ReduceSum, 2, {70001, 5}, {1, 5}, 1, {0}, true},
    {"wide columns", OP_ReduceSum, 2, {70001, 33}, {1, 33}, 1, {0}, true},
    {"a maximum of long columns", OP_ReduceMax, 2, {70001, 12}, {1, 12}, 1, {0}, true},
    {"the least of one long row", OP_ReduceMin, 1, {200003}, {1}, 1, {0}, true},
    {"short rows", OP_ReduceSum, 2, {50, 5}, {50, 1}, 1, {1}, false},
    {"rows of one vector and a rest", OP_ReduceMean, 2, {50, 47}, {50, 1}, 1, {1}, false},
    {"rows", OP_ReduceMean, 2, {64, 1029}, {64, 1}, 1, {1}, false},
    {"a middle axis", OP_ReduceSum, 3, {4, 77, 19}, {4, 1, 19}, 1, {1}, false},
};

static void define_case(struct arena *arena, struct graph *graph, const struct level_case *row,
                        struct definition *out)
{
    struct symbols symbols = {.dims = &graph->dims, .symbolic = false};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena, "case");
    struct op_case c = {.op = row->op, .input_count = 1, .output_count = 1, .constant_only = true};
    c.inputs[0] = tensor_new(arena, DTYPE_F32, row->rank, row->input);
    c.outputs[0] = tensor_new(arena, DTYPE_F32, row->rank, row->output);
    add_attribute(&c, attribute_ints(ATTR_axes, row->axis_count, row->axes));
    struct exprs *pool = arena_new(arena, struct exprs);
    exprs_init(pool, arena, &graph->dims);
    assert_true(define_node(graph, case_node(arena, &c, &symbols, graph), pool, &diagnostics, out));
}

/* Runs on a level; the first run of all is `expected`, which the others must equal. */
static void run_on(struct arena *arena, const struct definition *definition, const struct level_case *row,
                     const struct machine *machine, unsigned char *expected, bool first)
{
    struct group_test *test = arena_new(arena, struct group_test);
    assert_true(group_test_build(test, arena, definition, machine, NULL, 0));
    if (row->in_pieces != (test->lowered.launches.count == 2))
        fail_msg("%s: %u launches by %s", row->what, test->lowered.launches.count, test->strategy->name);
    const struct tensor_type *input = &definition->buffers.items[0].type;
    uint32_t output = 0;
    for (uint32_t i = 0; i < definition->buffers.count; i++)
        output = definition->buffers.items[i].role == BUFFER_OUTPUT ? i : output;
    const uint64_t bytes = type_bytes(definition->pool->dims, input, NULL);
    const uint64_t result_bytes =
        type_bytes(definition->pool->dims, &definition->buffers.items[output].type, NULL);
    assert_true(result_bytes <= MOST_OUTPUT_BYTES);
    void *buffers[MAX_BUFFERS] = {0};
    for (uint32_t i = 0; i < definition->buffers.count; i++)
        buffers[i] =
            arena_alloc(arena, type_bytes(definition->pool->dims, &definition->buffers.items[i].type, NULL));
    fill_random(buffers[0], DTYPE_F32, bytes, 7);
    for (int64_t shares = 1; shares <= 5; shares += 4) {
        memset(buffers[output], 0xa5, result_bytes);
        group_test_run(test, NULL, buffers, group_test_scratch(test), shares);
        if (first)
            memcpy(expected, buffers[output], result_bytes);
        first = false;
        if (memcmp(expected, buffers[output], result_bytes) != 0)
            fail_msg("%s: other bits on %s in %d shares", row->what, machine->name, (int)shares);
    }
    group_test_close(test);
}

static void test_reductions_agree(void **state)
{
    (void)state;
    static unsigned char expected[MOST_OUTPUT_BYTES];
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        TEST_ARENA(arena);
        struct definition definition;
        struct graph *graph = graph_new(&arena);
        define_case(&arena, graph, &cases[i], &definition);
        for (unsigned l = 0; l < TEST_LEVELS; l++)
            if (test_level(l))
                run_on(&arena, &definition, &cases[i], test_level(l), expected, l == 0);
        arena_release(&arena);
    }
}

/* And they are right: against the interpreter, between pages that nobody may touch. */
static void test_reductions_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        TEST_ARENA(arena);
        struct definition definition;
        struct graph *graph = graph_new(&arena);
        struct group_test *test = arena_new(&arena, struct group_test);
        define_case(&arena, graph, &cases[i], &definition);
        assert_true(group_test_build(test, &arena, &definition, test_level(0), NULL, 0));
        group_test_check(test, NULL, cases[i].what);
        group_test_close(test);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reductions_agree),
                                       cmocka_unit_test(test_reductions_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

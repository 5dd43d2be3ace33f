/* The CPU strategies for contractions against the interpreter: matrix products and convolutions at odd sizes,
 * every candidate, on each ISA level that this machine has, with constant and with free sizes, constant and
 * computed operands.
 */
#include "tests/unit/definition_support.h"
#include "tests/unit/strategy_support.h"

static const char *const levels[] = {"cpu", "cpu-v4"};

static const struct machine *level(unsigned index)
{
    return index == 0 || machine_has_v4() ? machine_find(levels[index]) : NULL;
}

enum finish { FINISH_NONE, FINISH_RESIDUAL, FINISH_SIGMOID };

struct problem {
    struct arena *arena;
    struct graph *graph;
    struct exprs pool;
    struct definition definition;
    struct symbols symbols;
    bool constant[MAX_BUFFERS];
};

/* The Definition of one node, with another operation behind its sum. */
static void define_problem(struct problem *p, struct arena *arena, const struct op_case *c, bool symbolic,
                           enum finish finish)
{
    memset(p, 0, sizeof *p);
    p->arena = arena;
    p->graph = graph_new(arena);
    p->symbols = (struct symbols){.dims = &p->graph->dims, .symbolic = symbolic};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena, "case");
    const node_id node = case_node(arena, c, &p->symbols, p->graph);
    exprs_init(&p->pool, arena, &p->graph->dims);
    assert_true(define_node(p->graph, node, &p->pool, &diagnostics, &p->definition));
    if (finish == FINISH_NONE)
        return;
    struct nest *nest = &p->definition.nests.items[0];
    struct nest_store *store = &nest->stores[0];
    expr value = store->value;
    if (finish == FINISH_SIGMOID) {
        value = expr_binary(&p->pool, EXPR_MUL, value, expr_unary(&p->pool, EXPR_SIGMOID, value));
    } else {
        const struct tensor_type type = p->definition.buffers.items[store->buffer].type;
        const uint32_t buffer = definition_buffer(&p->definition, BUFFER_INPUT, type);
        expr axes[MAX_RANK];
        for (uint32_t i = 0; i < nest->rank; i++)
            axes[i] = nest_axis(&p->definition, nest, i);
        value =
            expr_binary(&p->pool, EXPR_ADD, value, expr_load(&p->pool, buffer, type.dtype, nest->rank, axes));
        value = expr_binary(&p->pool, EXPR_MAX, value, expr_float(&p->pool, type.dtype, 0));
    }
    store->value = value;
}

static void check_problem(struct problem *p, const char *strategy, uint32_t which, const char *what)
{
    for (unsigned i = 0; i < 2; i++) {
        struct group_test *test = arena_new(p->arena, struct group_test);
        if (!level(i))
            continue;
        memcpy(test->constant, p->constant, sizeof test->constant);
        if (!group_test_build(test, p->arena, &p->definition, level(i), strategy, which))
            fail_msg("%s does not fit %s", strategy, what);
        group_test_check(test, p->symbols.values, what);
        group_test_close(test);
    }
}

static struct op_case matmul_case(struct arena *arena, int rank, const int64_t *left, int right_rank,
                                  const int64_t *right, const int64_t *result)
{
    struct op_case c = {.op = OP_MatMul, .input_count = 2, .output_count = 1};
    c.inputs[0] = tensor_new(arena, DTYPE_F32, rank, left);
    c.inputs[1] = tensor_new(arena, DTYPE_F32, right_rank, right);
    c.outputs[0] = tensor_new(arena, DTYPE_F32, rank > right_rank ? rank : right_rank, result);
    return c;
}

static void check_matmul(const int64_t *size, unsigned mode, uint32_t which)
{
    TEST_ARENA(arena);
    const int64_t m = size[0], n = size[1], k = size[2];
    struct op_case c = matmul_case(&arena, SIZES(m, k), SIZES(k, n), (const int64_t[]){m, n});
    struct problem p;
    define_problem(&p, &arena, &c, mode & 1, (enum finish)(mode % 3));
    p.constant[1] = mode >= 2 && !(mode & 1);
    p.constant[0] = mode == 4;
    check_problem(&p, "cpu_matmul", which, "MatMul");
    arena_release(&arena);
}

static void test_matmul_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 2, 3},      {1, 17, 40},  {3, 5, 7},     {8, 48, 33},
                                       {13, 33, 129},  {40, 39, 37}, {29, 16, 600}, {64, 130, 2},
                                       {5, 257, 1030}, {31, 9, 0}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned mode = 0; mode < 6; mode++)
            check_matmul(sizes[i], mode, mode == 5 ? i : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kernel IR: its text form (the example of docs/kernel-ir.md), lowering of loads and dims, and one refusal
 * for each rule of the verifier. */
#include "tests/unit/support.h"

#include <string.h>

#include "codegen/kernel_ir.h"
#include "ir/definition.h"

struct fixture {
    struct arena *arena;
    struct dims dims;
    dim rows;
    struct kernel *kernel;
    struct block top;
};

static void fixture_init(struct fixture *f, struct arena *arena)
{
    const struct symbol symbol = {.low = 0, .high = 1000, .hint = 8};
    f->arena = arena;
    dims_init(&f->dims, arena);
    f->rows = dim_symbol(&f->dims, &symbol);
    f->kernel = kernel_new(arena, &f->dims);
    f->kernel->strategy = "example";
    f->kernel->config = "lanes=8";
    f->top = (struct block){.kernel = f->kernel, .at = &f->kernel->body};
    kernel_memory_add(f->kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .read = true, .label = "x"});
    kernel_memory_add(f->kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .label = "y", .alignment = 64});
}

static expr number(const struct fixture *f, int64_t value)
{
    return expr_index(f->kernel->pool, value);
}

static expr binary(const struct fixture *f, enum expr_op op, expr a, expr b)
{
    return expr_binary(f->kernel->pool, op, a, b);
}

/* y[row] = the sum of a row of 100, where it is positive. */
static void build_example(struct fixture *f)
{
    struct kernel *kernel = f->kernel;
    struct block row, element, then;
    expr r, i;
    build_for(&f->top, "row", number(f, 0), kernel_dim(kernel, f->rows), 0, LOOP_PARALLEL, &row, &r);
    const uint32_t sum = build_mutable(&row, "sum", expr_float(kernel->pool, DTYPE_F32, 0));
    build_for(&row, "i", number(f, 0), number(f, 100), 0, LOOP_SERIAL, &element, &i);
    const expr at = binary(f, EXPR_ADD, binary(f, EXPR_MUL, r, number(f, 100)), i);
    const expr x = kernel_element(kernel, 0, at, 1);
    build_assign(&element, sum, binary(f, EXPR_ADD, kernel_variable(kernel, sum), binary(f, EXPR_MUL, x, x)));
    const expr total = kernel_variable(kernel, sum);
    build_if(&row, binary(f, EXPR_LESS, expr_float(kernel->pool, DTYPE_F32, 0), total), &then, NULL);
    build_store(&then, 1, r, total);
}

static const char example_text[] = "kernel example (lanes=8) dims 1 {\n"
                                   "  global m0 : f32 read \"x\"\n"
                                   "  global m1 : f32 written aligned 64 \"y\"\n"
                                   "  parallel v1 = 0 .. d0 step 1 {\n"
                                   "    var v2 : f32 = 0:f32\n"
                                   "    for v3 = 0 .. 100 step 1 {\n"
                                   "      t1 = m0[+(*(v1, 100), v3)]\n"
                                   "      v2 = +(v2, *(t1, t1))\n"
                                   "    }\n"
                                   "    if <(0:f32, v2) {\n"
                                   "      m1[v1] = v2\n"
                                   "    }\n"
                                   "  }\n"
                                   "}\n";

static void test_text(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    struct text text;
    fixture_init(&f, &arena);
    build_example(&f);
    text_init(&text, &arena);
    if (!kernel_verify(f.kernel, machine_find("cpu"), &text))
        fail_msg("%s", text.data);
    kernel_print(f.kernel, &text);
    assert_string_equal(text.data, example_text);
    assert_int_equal(f.kernel->work, f.rows);
    arena_release(&arena);
}

/* The same kernel for another dim prints the same: that is how equal kernels are found. */
static void test_text_is_canonical(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    struct text text;
    fixture_init(&f, &arena);
    const struct symbol other = {.low = 1, .high = 5, .hint = 2};
    f.rows = dim_symbol(&f.dims, &other);
    build_example(&f);
    text_init(&text, &arena);
    kernel_print(f.kernel, &text);
    assert_string_equal(text.data, example_text);
    arena_release(&arena);
}

/* A chain in which each step uses the one before twice: text and checks stay as long as the chain. */
static void test_shared_nodes(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    struct text text;
    fixture_init(&f, &arena);
    expr e = kernel_element(f.kernel, 0, number(&f, 0), 1);
    for (int i = 0; i < 5000; i++)
        e = i % 2 ? binary(&f, EXPR_MUL, e, e) : expr_unary(f.kernel->pool, EXPR_NEG, e);
    build_store(&f.top, 1, number(&f, 0), e);
    text_init(&text, &arena);
    assert_true(kernel_verify(f.kernel, machine_find("cpu"), &text));
    kernel_print(f.kernel, &text);
    assert_true(text.length > 2500 && text.length < 5000 * 40);
    arena_release(&arena);
}

static void test_lowering(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    struct exprs pool;
    exprs_init(&pool, &arena, &f.dims);
    struct definition d = {.pool = &pool};
    const dim wide = dim_constant(&f.dims, 10);
    definition_buffer(&d, BUFFER_INPUT, tensor_type_new(&arena, DTYPE_F32, 2, (const dim[]){f.rows, wide}));
    const uint32_t memories[] = {0};
    struct block row, column;
    expr axes[2];
    build_for(&f.top, "r", number(&f, 0), kernel_dim(f.kernel, f.rows), 0, LOOP_SERIAL, &row, &axes[0]);
    build_for(&row, "c", number(&f, 0), number(&f, 10), 0, LOOP_SERIAL, &column, &axes[1]);
    const struct lowering lowering = {
        .kernel = f.kernel, .definition = &d, .memories = memories, .axes = axes};
    const expr a0 = expr_axis(&pool, 0, f.rows), a1 = expr_axis(&pool, 1, wide);
    const expr otherwise = expr_float(&pool, DTYPE_F32, 7);
    /* In range by the extents: no guard. */
    const expr plain =
        lower_expr(&lowering, expr_load_or(&pool, 0, DTYPE_F32, 2, (const expr[]){a0, a1}, otherwise));
    assert_int_equal(expr_at(f.kernel->pool, plain)->op, EXPR_ELEMENT);
    /* Shifted by one along the second axis: one test is left. */
    const expr shifted = expr_binary(&pool, EXPR_ADD, a1, expr_index(&pool, 1));
    const expr guarded =
        lower_expr(&lowering, expr_load_or(&pool, 0, DTYPE_F32, 2, (const expr[]){a0, shifted}, otherwise));
    const struct expr_node *node = expr_at(f.kernel->pool, guarded);
    assert_int_equal(node->op, EXPR_ELEMENT_OR);
    assert_int_equal(expr_at(f.kernel->pool, node->arguments[0])->op, EXPR_LESS);
    /* Never in range: no memory. */
    const expr outside = expr_binary(&pool, EXPR_ADD, a1, expr_index(&pool, 10));
    const expr constant =
        lower_expr(&lowering, expr_load_or(&pool, 0, DTYPE_F32, 2, (const expr[]){a0, outside}, otherwise));
    assert_int_equal(expr_at(f.kernel->pool, constant)->op, EXPR_CONSTANT);
    /* A dim that arithmetic made is a parameter once a statement uses it. */
    const expr product = lower_expr(&lowering, expr_dim(&pool, dim_mul(&f.dims, f.rows, wide)));
    const uint32_t before = f.kernel->dims.count;
    build_store(&column, 1, product, plain);
    assert_int_equal(f.kernel->dims.count, before + 1);
    arena_release(&arena);
}

/* ---- refusals
 * ---------------------------------------------------------------------------------------------------- */

static void refuse_barrier(struct fixture *f)
{
    build_barrier(&f->top);
}

static void refuse_scope(struct fixture *f)
{
    struct block body;
    expr i;
    build_for(&f->top, "i", number(f, 0), number(f, 4), 0, LOOP_SERIAL, &body, &i);
    build_store(&f->top, 1, i, expr_float(f->kernel->pool, DTYPE_F32, 1));
}

static void refuse_type(struct fixture *f)
{
    build_store(&f->top, 1, number(f, 0), expr_int(f->kernel->pool, DTYPE_I32, 1));
}

static void refuse_function(struct fixture *f)
{
    build_store(&f->top, 1, number(f, 0),
                expr_unary(f->kernel->pool, EXPR_EXP, kernel_element(f->kernel, 0, number(f, 0), 1)));
}

static void refuse_axis(struct fixture *f)
{
    build_store(&f->top, 1, expr_axis(f->kernel->pool, 0, f->rows),
                expr_float(f->kernel->pool, DTYPE_F32, 1));
}

static void refuse_unread(struct fixture *f)
{
    build_store(&f->top, 1, number(f, 0), kernel_element(f->kernel, 1, number(f, 1), 1));
    f->kernel->memories.items[1].read = false;
}

static void refuse_parallel(struct fixture *f)
{
    struct block outer, inner;
    expr i, k;
    build_for(&f->top, "i", number(f, 0), number(f, 4), 0, LOOP_PARALLEL, &outer, &i);
    build_for(&outer, "k", number(f, 0), number(f, 4), 0, LOOP_PARALLEL, &inner, &k);
}

static void refuse_unroll(struct fixture *f)
{
    struct block body;
    expr i;
    build_for(&f->top, "i", number(f, 0), kernel_dim(f->kernel, f->rows), 0, LOOP_UNROLL, &body, &i);
}

static void refuse_register(struct fixture *f)
{
    const struct kernel_memory memory = {
        .space = MEMORY_REGISTER, .dtype = DTYPE_F32, .count = 4, .label = "r"};
    const uint32_t registers = kernel_memory_add(f->kernel, &memory);
    struct block body;
    expr i;
    build_for(&f->top, "i", number(f, 0), number(f, 4), 0, LOOP_SERIAL, &body, &i);
    build_store(&body, registers, i, expr_float(f->kernel->pool, DTYPE_F32, 1));
}

static void refuse_iteration(struct fixture *f)
{
    struct block body;
    expr i;
    const uint32_t sum = build_mutable(&f->top, "sum", number(f, 0));
    build_for(&f->top, "i", number(f, 0), number(f, 8), 0, LOOP_VECTORISE, &body, &i);
    build_assign(&body, sum, binary(f, EXPR_ADD, kernel_variable(f->kernel, sum), i));
}

static void refuse_immutable(struct fixture *f)
{
    const expr x = build_declare(&f->top, "x", kernel_element(f->kernel, 0, number(f, 0), 1));
    const uint32_t variable = (uint32_t)expr_at(f->kernel->pool, x)->value;
    f->kernel->variables.items[variable].mutable = true;
    build_assign(&f->top, variable, x);
    f->kernel->variables.items[variable].mutable = false;
}

static void refuse_shared(struct fixture *f)
{
    const struct kernel_memory memory = {
        .space = MEMORY_SHARED, .dtype = DTYPE_F32, .count = 4, .label = "s"};
    kernel_memory_add(f->kernel, &memory);
}

static void refuse_comment(struct fixture *f)
{
    build_comment(&f->top, "ends */ here");
}

static void refuse_lanes(struct fixture *f)
{
    struct kernel *kernel = f->kernel;
    const expr wide = kernel_element(kernel, 0, number(f, 0), 4);
    const struct expr_node node = {
        .op = EXPR_SELECT,
        .dtype = DTYPE_F32,
        .lanes = 4,
        .count = 3,
        .arguments = (const expr[]){binary(f, EXPR_LESS, kernel_dim(kernel, f->rows), number(f, 4)), wide,
                                    kernel_element(kernel, 0, number(f, 0), 1)}};
    build_store(&f->top, 1, number(f, 0), expr_make(kernel->pool, &node));
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        void (*build)(struct fixture *f);
        const char *why;
    } cases[] = {
        {refuse_barrier, "a barrier on a CPU"},
        {refuse_scope, "out of its scope"},
        {refuse_type, "type is not its memory's"},
        {refuse_function, "was not expanded"},
        {refuse_axis, "does not have"},
        {refuse_unread, "not said to be read"},
        {refuse_parallel, "inside another statement"},
        {refuse_unroll, "without constant bounds"},
        {refuse_register, "not constant after unrolling"},
        {refuse_immutable, "not mutable"},
        {refuse_iteration, "hangs on another one"},
        {refuse_shared, "does not have"},
        {refuse_comment, "more than one line"},
        {refuse_lanes, "different vector lengths"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recovery recovery;
        struct arena arena;
        struct fixture f;
        struct text why;
        arena_init(&arena, &system_allocator, &recovery);
        fixture_init(&f, &arena);
        cases[i].build(&f);
        text_init(&why, &arena);
        assert_false(kernel_verify(f.kernel, machine_find("cpu"), &why));
        if (!strstr(why.data, cases[i].why))
            fail_msg("case %u: %s", i, why.data);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),         cmocka_unit_test(test_text_is_canonical),
        cmocka_unit_test(test_shared_nodes), cmocka_unit_test(test_lowering),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

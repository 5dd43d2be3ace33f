/* Symbolic execution: the shape arithmetic that exporters write, over symbols, compared as dims. Each case is
 * a node whose inputs have known contents; unknown stays unknown. */
#include "tests/unit/definition_support.h"

struct fixture {
    struct arena *arena;
    struct graph *graph;
    struct dims *dims;
    dim batch, length, wide; /* 1 .. 64; 1 .. 4096; 0 .. large */
};

static dim new_symbol(struct fixture *f, uint32_t axis, int64_t low, int64_t high)
{
    const struct symbol symbol = {.axis = axis, .low = low, .high = high, .hint = low};
    return dim_symbol(f->dims, &symbol);
}

static void fixture_init(struct fixture *f, struct arena *arena)
{
    f->arena = arena;
    f->graph = graph_new(arena);
    f->dims = &f->graph->dims;
    f->batch = new_symbol(f, 0, 1, 64);
    f->length = new_symbol(f, 1, 1, 4096);
    f->wide = new_symbol(f, 2, 0, INT64_MAX >> 16);
}

/* One tensor: a vector of `count` elements, or a scalar when count is negative; contents NULL: unknown. */
struct known_tensor {
    enum dtype dtype;
    int count;
    const dim *contents;
};

static struct tensor_type vector_type(struct fixture *f, enum dtype dtype, int count)
{
    const dim size = dim_constant(f->dims, count < 0 ? 1 : count);
    return tensor_type_new(f->arena, dtype, count < 0 ? 0 : 1, &size);
}

/* True when anything is known; out: [count or 1]. */
static bool run(struct fixture *f, enum op op, uint32_t inputs, const struct known_tensor *tensors,
                uint32_t attribute_count, const struct attribute *attributes, enum dtype dtype, int count,
                dim *out)
{
    value_id values[4];
    const dim *contents[MAX_BUFFERS] = {NULL};
    for (uint32_t i = 0; i < inputs; i++) {
        values[i] = graph_add_input(f->graph, NULL, vector_type(f, tensors[i].dtype, tensors[i].count));
        contents[i] = tensors[i].contents;
    }
    const node_id node =
        graph_add_node(f->graph, GRAPH_BODY, 0, op, inputs, values, 1, attribute_count, attributes, NULL);
    graph_value(f->graph, graph_node(f->graph, node)->outputs[0])->type = vector_type(f, dtype, count);
    struct exprs pool;
    struct definition definition;
    struct diagnostics diagnostics;
    exprs_init(&pool, f->arena, f->dims);
    diagnostics_init(&diagnostics, f->arena, "symbolic");
    assert_true(define_node(f->graph, node, &pool, &diagnostics, &definition));
    return interpret_symbolic(&definition, contents, inputs, out, count < 0 ? 1 : (uint32_t)count);
}

static dim constant(struct fixture *f, int64_t value)
{
    return dim_constant(f->dims, value);
}

/* One element each. */
static dim binary(struct fixture *f, enum op op, enum dtype dtype, dim a, dim b)
{
    dim out;
    const bool compares = op == OP_Equal || op == OP_Less || op == OP_Greater || op == OP_LessOrEqual;
    const struct known_tensor tensors[] = {{dtype, -1, &a}, {dtype, -1, &b}};
    (void)run(f, op, 2, tensors, 0, NULL, compares ? DTYPE_BOOL : dtype, -1, &out);
    return out;
}

static void test_arithmetic(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const dim b = f.batch, s = f.length, two = constant(&f, 2), minus = constant(&f, -1);
    assert_int_equal(binary(&f, OP_Add, DTYPE_I64, b, s), dim_add(f.dims, b, s));
    assert_int_equal(binary(&f, OP_Sub, DTYPE_I64, s, two), dim_sub(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Mul, DTYPE_I64, b, s), dim_mul(f.dims, b, s));
    assert_int_equal(binary(&f, OP_Div, DTYPE_I64, s, two), dim_floor_div(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Mod, DTYPE_I64, s, two), dim_mod(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Max, DTYPE_I64, s, two), dim_max(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Min, DTYPE_I32, s, two), dim_min(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Div, DTYPE_I64, constant(&f, -7), two), constant(&f, -3));
    assert_int_equal(binary(&f, OP_Div, DTYPE_I64, dim_sub(f.dims, s, constant(&f, 9)), two), DIM_NONE);
    assert_int_equal(binary(&f, OP_Pow, DTYPE_I64, s, two), dim_mul(f.dims, s, s));
    assert_int_equal(binary(&f, OP_Add, DTYPE_I64, s, DIM_NONE), DIM_NONE);
    assert_int_equal(binary(&f, OP_Mul, DTYPE_F32, s, two), dim_mul(f.dims, s, two));
    assert_int_equal(binary(&f, OP_Div, DTYPE_F32, dim_mul(f.dims, s, two), two), s);
    assert_int_equal(binary(&f, OP_Div, DTYPE_F32, s, two), DIM_NONE);
    assert_int_equal(binary(&f, OP_Div, DTYPE_F32, constant(&f, 7), two), DIM_NONE);
    assert_int_equal(binary(&f, OP_Add, DTYPE_I32, constant(&f, INT32_MAX), two),
                     constant(&f, INT32_MIN + 1));
    assert_int_equal(binary(&f, OP_Mul, DTYPE_I64, minus, s), dim_sub(f.dims, constant(&f, 0), s));
    arena_release(&arena);
}

static void test_three_values(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const dim yes = constant(&f, 1), no = constant(&f, 0), s = f.length;
    assert_int_equal(binary(&f, OP_Equal, DTYPE_I64, s, constant(&f, -1)), no);
    assert_int_equal(binary(&f, OP_Equal, DTYPE_I64, s, s), yes);
    /* what the sizes decide at run time: 1 or 0 by an expression of them */
    const dim off = dim_is_not_zero(f.dims, dim_sub(f.dims, s, yes)), is_one = dim_sub(f.dims, yes, off);
    assert_int_equal(binary(&f, OP_Equal, DTYPE_I64, s, yes), is_one);
    assert_int_equal(binary(&f, OP_Less, DTYPE_I64, s, constant(&f, 5000)), yes);
    assert_int_equal(binary(&f, OP_Greater, DTYPE_I64, s, constant(&f, 0)), yes);
    assert_int_equal(binary(&f, OP_LessOrEqual, DTYPE_I64, constant(&f, 1), s), yes);
    const dim few = dim_is_less(f.dims, s, constant(&f, 5));
    assert_int_equal(binary(&f, OP_Less, DTYPE_I64, s, constant(&f, 5)), few);
    assert_int_equal(binary(&f, OP_LessOrEqual, DTYPE_I64, constant(&f, 5), s), dim_sub(f.dims, yes, few));
    assert_int_equal(binary(&f, OP_And, DTYPE_BOOL, few, is_one), dim_min(f.dims, few, is_one));
    assert_int_equal(binary(&f, OP_Or, DTYPE_BOOL, few, is_one), dim_max(f.dims, few, is_one));
    const struct known_tensor truth = {DTYPE_BOOL, -1, &few};
    dim negated;
    assert_true(run(&f, OP_Not, 1, &truth, 0, NULL, DTYPE_BOOL, -1, &negated));
    assert_int_equal(negated, dim_sub(f.dims, yes, few));
    for (int64_t length = 1; length < 9; length++) {
        int64_t values[8] = {0}, value;
        for (uint32_t i = 0; i < f.dims->symbols.count && i < 8; i++)
            values[i] = length;
        assert_true(dim_evaluate(f.dims, few, values, &value) && value == (length < 5));
        assert_true(dim_evaluate(f.dims, is_one, values, &value) && value == (length == 1));
    }
    assert_int_equal(binary(&f, OP_And, DTYPE_BOOL, DIM_NONE, no), no);
    assert_int_equal(binary(&f, OP_Or, DTYPE_BOOL, yes, DIM_NONE), yes);
    assert_int_equal(binary(&f, OP_And, DTYPE_BOOL, yes, DIM_NONE), DIM_NONE);
    /* Where(Equal(shape, -1), ones, shape), as Expand is exported; the unknown condition leaves its element
     * unknown */
    const dim condition[] = {no, yes, DIM_NONE, DIM_NONE}, ones[] = {yes, yes, yes, s},
              shape[] = {s, s, s, s};
    const struct known_tensor tensors[] = {
        {DTYPE_BOOL, 4, condition}, {DTYPE_I64, 4, ones}, {DTYPE_I64, 4, shape}};
    dim out[4];
    assert_true(run(&f, OP_Where, 3, tensors, 0, NULL, DTYPE_I64, 4, out));
    assert_int_equal(out[0], s);
    assert_int_equal(out[1], yes);
    assert_int_equal(out[2], DIM_NONE);
    assert_int_equal(out[3], s);
    arena_release(&arena);
}

/* Shape -> Gather -> Concat -> Reshape, in its parts. */
static void test_movement(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const dim shape[] = {f.batch, f.length, constant(&f, 768)}, last = constant(&f, -1);
    dim out[8];
    const struct attribute dims = attribute_dims(ATTR_dims, 3, shape);
    assert_true(run(&f, OP_Dims, 0, NULL, 1, &dims, DTYPE_I64, 3, out));
    assert_memory_equal(out, shape, sizeof shape);
    const struct known_tensor gather[] = {{DTYPE_I64, 3, shape}, {DTYPE_I64, -1, &last}};
    assert_true(run(&f, OP_Gather, 2, gather, 0, NULL, DTYPE_I64, -1, out));
    assert_int_equal(out[0], shape[2]);
    const struct known_tensor concat[] = {{DTYPE_I64, 3, shape}, {DTYPE_I64, 2, NULL}, {DTYPE_I64, 1, &last}};
    const struct attribute axis = attribute_int(ATTR_axis, 0);
    assert_true(run(&f, OP_Concat, 3, concat, 1, &axis, DTYPE_I64, 6, out));
    const dim joined[] = {shape[0], shape[1], shape[2], DIM_NONE, DIM_NONE, last};
    assert_memory_equal(out, joined, sizeof joined);
    const dim start = constant(&f, 2);
    static const int64_t step = -2;
    const struct attribute slice[] = {attribute_dims(ATTR_starts, 1, &start),
                                      attribute_ints(ATTR_steps, 1, &step)};
    assert_true(run(&f, OP_Slice, 1, concat, 2, slice, DTYPE_I64, 2, out));
    assert_int_equal(out[0], shape[2]);
    assert_int_equal(out[1], shape[0]);
    assert_true(run(&f, OP_Reshape, 1, gather + 1, 0, NULL, DTYPE_I64, 1, out));
    assert_int_equal(out[0], last);
    assert_false(run(&f, OP_Gather, 2,
                     (const struct known_tensor[]){{DTYPE_I64, 3, NULL}, {DTYPE_I64, -1, &last}}, 0, NULL,
                     DTYPE_I64, -1, out));
    assert_int_equal(out[0], DIM_NONE);
    arena_release(&arena);
}

static void test_reductions(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const dim shape[] = {f.batch, f.length, constant(&f, 3)};
    const struct known_tensor tensor = {DTYPE_I64, 3, shape};
    const struct attribute keep = attribute_int(ATTR_keepdims, 0);
    dim out;
    assert_true(run(&f, OP_ReduceProd, 1, &tensor, 1, &keep, DTYPE_I64, -1, &out));
    assert_int_equal(out, dim_mul(f.dims, dim_mul(f.dims, shape[0], shape[1]), shape[2]));
    assert_true(run(&f, OP_ReduceSum, 1, &tensor, 1, &keep, DTYPE_I64, -1, &out));
    assert_int_equal(out, dim_add(f.dims, dim_add(f.dims, shape[0], shape[1]), shape[2]));
    assert_true(run(&f, OP_ReduceMax, 1, &tensor, 1, &keep, DTYPE_I64, -1, &out));
    assert_int_equal(out, dim_max(f.dims, dim_max(f.dims, shape[0], shape[1]), shape[2]));
    const struct known_tensor empty = {DTYPE_I64, 0, shape};
    assert_true(run(&f, OP_ReduceProd, 1, &empty, 1, &keep, DTYPE_I64, -1, &out));
    assert_int_equal(out, constant(&f, 1));
    const dim partly[] = {f.batch, DIM_NONE, f.length};
    const struct known_tensor unknown = {DTYPE_I64, 3, partly};
    assert_false(run(&f, OP_ReduceProd, 1, &unknown, 1, &keep, DTYPE_I64, -1, &out));
    arena_release(&arena);
}

/* Scale factors in floats: Cast, Mul, Floor, Cast. */
static void test_floats(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    dim out;
    struct known_tensor tensor = {DTYPE_I64, -1, &f.wide};
    const struct attribute to = attribute_dtype(ATTR_to, DTYPE_F32);
    assert_true(run(&f, OP_Cast, 1, &tensor, 1, &to, DTYPE_F32, -1, &out));
    assert_int_equal(out, f.wide);
    tensor.dtype = DTYPE_F32;
    const enum op same[] = {OP_Floor, OP_Ceil, OP_Round, OP_Identity};
    for (int i = 0; i < 4; i++) {
        assert_true(run(&f, same[i], 1, &tensor, 0, NULL, DTYPE_F32, -1, &out));
        assert_int_equal(out, f.wide);
    }
    const dim nine = constant(&f, 9), ten = constant(&f, 10);
    tensor.contents = &nine;
    assert_true(run(&f, OP_Sqrt, 1, &tensor, 0, NULL, DTYPE_F32, -1, &out));
    assert_int_equal(out, constant(&f, 3));
    tensor.contents = &ten;
    assert_false(run(&f, OP_Sqrt, 1, &tensor, 0, NULL, DTYPE_F32, -1, &out));
    assert_false(run(&f, OP_Exp, 1, &tensor, 0, NULL, DTYPE_F32, -1, &out));
    const struct attribute to_bool = attribute_dtype(ATTR_to, DTYPE_BOOL);
    tensor = (struct known_tensor){DTYPE_I64, -1, &f.batch};
    assert_true(run(&f, OP_Cast, 1, &tensor, 1, &to_bool, DTYPE_BOOL, -1, &out));
    assert_int_equal(out, constant(&f, 1));
    tensor.contents = &f.wide;
    assert_true(run(&f, OP_Cast, 1, &tensor, 1, &to_bool, DTYPE_BOOL, -1, &out));
    assert_int_equal(out, dim_is_not_zero(f.dims, f.wide));
    arena_release(&arena);
}

static void test_range(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const dim start = f.length, limit = DIM_NONE, step = constant(&f, 2);
    const struct known_tensor tensors[] = {
        {DTYPE_I64, -1, &start}, {DTYPE_I64, -1, &limit}, {DTYPE_I64, -1, &step}};
    dim out[3];
    assert_true(run(&f, OP_Range, 3, tensors, 0, NULL, DTYPE_I64, 3, out));
    for (int i = 0; i < 3; i++)
        assert_int_equal(out[i], dim_add(f.dims, f.length, constant(&f, 2 * i)));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_three_values),
        cmocka_unit_test(test_movement),   cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_floats),     cmocka_unit_test(test_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Definitions of operators that move elements, against index arithmetic written out here; and the index maps
 * of Reshape as expressions, since fusion lives on their form. */
#include "tests/unit/definition_support.h"

static const enum dtype some_types[] = {DTYPE_F32, DTYPE_F16, DTYPE_I64, DTYPE_U8, DTYPE_BOOL};
enum { SOME_TYPES = sizeof some_types / sizeof *some_types };

static void test_transpose(void **state)
{
    (void)state;
    static const int64_t perms[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}};
    TEST_ARENA(arena);
    for (int p = -1; p < 5; p++)
        for (int t = 0; t < SOME_TYPES; t++) {
            const struct tensor x = tensor_random(&arena, some_types[t], 1, 0, 50, SIZES(5, 37, 6));
            const int64_t *perm = perms[p < 0 ? 1 : p];
            struct op_case c = {.op = OP_Transpose, .input_count = 1, .output_count = 1, .inputs = {x}};
            const int64_t sizes[3] = {x.sizes[perm[0]], x.sizes[perm[1]], x.sizes[perm[2]]};
            c.outputs[0] = tensor_new(&arena, x.dtype, 3, sizes);
            if (p >= 0)
                add_attribute(&c, attribute_ints(ATTR_perm, 3, perm));
            double *expected = arena_new_array(&arena, double, (size_t)tensor_count(&x));
            for (int64_t i = 0; i < tensor_count(&x); i++) {
                int64_t index[3], from[3];
                index_of(&c.outputs[0], i, index);
                for (int k = 0; k < 3; k++)
                    from[perm[k]] = index[k];
                expected[i] = value_at(&x, from);
            }
            run_case(&arena, &c, expected, 0);
        }
    arena_release(&arena);
}

static void check_reshape(struct arena *arena, int rank, const int64_t *from, int to_rank, const int64_t *to)
{
    const struct tensor x = tensor_random(arena, DTYPE_I32, 1, 0, 1e6, rank, from);
    struct op_case c = {.op = OP_Reshape, .input_count = 1, .output_count = 1, .inputs = {x}};
    c.outputs[0] = tensor_new(arena, DTYPE_I32, to_rank, to);
    run_case(arena, &c, x.values, 0);
}

static void test_reshape(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    check_reshape(&arena, SIZES(4, 6, 5), SIZES(24, 5));
    check_reshape(&arena, SIZES(24, 5), SIZES(4, 6, 5));
    check_reshape(&arena, SIZES(2, 3, 4, 5), SIZES(6, 20));
    check_reshape(&arena, SIZES(6, 20), SIZES(2, 3, 4, 5));
    check_reshape(&arena, SIZES(4, 6), SIZES(8, 3));
    check_reshape(&arena, SIZES(4, 6), SIZES(3, 8));
    check_reshape(&arena, SIZES(12, 10), SIZES(5, 24));
    check_reshape(&arena, SIZES(1, 7, 1), SIZES(7));
    check_reshape(&arena, SIZES(7), SIZES(1, 1, 7, 1));
    check_reshape(&arena, SIZES(1, 1), SCALAR);
    check_reshape(&arena, SCALAR, SIZES(1, 1, 1));
    check_reshape(&arena, SIZES(3, 0, 2), SIZES(0, 7));
    check_reshape(&arena, SIZES(0), SIZES(4, 0));
    check_reshape(&arena, SIZES(1100, 3), SIZES(3300));
    arena_release(&arena);
}

/* Counts the operations of one kind in the only store of a definition. */
static uint32_t count_operations(const struct definition *d, enum expr_op op)
{
    uint32_t count = 0;
    VEC(expr) stack = {0};
    vec_push(d->pool->arena, &stack, d->nests.items[0].stores[0].value);
    while (stack.count) {
        const struct expr_node *node = expr_at(d->pool, stack.items[--stack.count]);
        count += node->op == op;
        for (uint32_t i = 0; i < node->count; i++)
            vec_push(d->pool->arena, &stack, node->arguments[i]);
    }
    return count;
}

/* [b * s, 12 * 64] and the like, with b and s symbols: no division of the whole tensor. */
static void test_reshape_maps(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct graph *graph = graph_new(&arena);
    struct dims *dims = &graph->dims;
    const struct symbol symbol = {.low = 1, .high = 4096, .hint = 8};
    struct symbol other = symbol;
    other.axis = 1;
    const dim b = dim_symbol(dims, &symbol), s = dim_symbol(dims, &other), heads = dim_constant(dims, 12);
    const dim width = dim_constant(dims, 64), both = dim_constant(dims, 768);
    const struct {
        int rank, to_rank;
        dim from[4], to[4];
        uint32_t divisions, remainders;
    } rows[] = {
        {3, 4, {b, s, both}, {b, s, heads, width}, 0, 0},
        {4, 3, {b, s, heads, width}, {b, s, both}, 1, 1},
        {3, 2, {b, s, both}, {dim_mul(dims, b, s), both}, 1, 1},
        {2, 3, {dim_mul(dims, b, s), both}, {b, s, both}, 0, 0},
        {3, 3, {b, s, both}, {b, s, both}, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct exprs pool;
        struct definition definition;
        struct diagnostics diagnostics;
        exprs_init(&pool, &arena, dims);
        diagnostics_init(&diagnostics, &arena, "reshape");
        const value_id x =
            graph_add_input(graph, NULL, tensor_type_new(&arena, DTYPE_F32, rows[i].rank, rows[i].from));
        const node_id node = graph_add_node(graph, GRAPH_BODY, 0, OP_Reshape, 1, &x, 1, 0, NULL, NULL);
        graph_value(graph, graph_node(graph, node)->outputs[0])->type =
            tensor_type_new(&arena, DTYPE_F32, rows[i].to_rank, rows[i].to);
        assert_true(define_node(graph, node, &pool, &diagnostics, &definition));
        assert_int_equal(count_operations(&definition, EXPR_INDEX_DIV), rows[i].divisions);
        assert_int_equal(count_operations(&definition, EXPR_INDEX_MOD), rows[i].remainders);
    }
    arena_release(&arena);
}

static void test_slice(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const struct tensor x = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(9, 10));
    static const int64_t starts[] = {8, 1}, steps[] = {-2, 3};
    struct op_case c = {.op = OP_Slice, .input_count = 1, .output_count = 1, .inputs = {x}};
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(5, 3));
    add_dims(&c, ATTR_starts, 2, starts);
    add_attribute(&c, attribute_ints(ATTR_steps, 2, steps));
    double expected[15];
    for (int i = 0; i < 15; i++)
        expected[i] = x.values[(8 - 2 * (i / 3)) * 10 + 1 + 3 * (i % 3)];
    run_case(&arena, &c, expected, 0);
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(5, 0));
    run_case(&arena, &c, expected, 0);
    arena_release(&arena);
}

static void test_concat(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const int64_t lengths[] = {3, 0, 1, 5};
    for (int axis = -2; axis < 2; axis++)
        for (uint32_t count = 1; count <= 4; count++)
            for (int t = 0; t < SOME_TYPES; t++) {
                const bool rows = axis == 0 || axis == -2;
                struct op_case c = {.op = OP_Concat, .input_count = count, .output_count = 1};
                int64_t total = 0;
                for (uint32_t i = 0; i < count; i++) {
                    const int64_t sizes[] = {rows ? lengths[i] : 7, rows ? 7 : lengths[i]};
                    c.inputs[i] = tensor_random(&arena, some_types[t], i, 0, 99, 2, sizes);
                    total += lengths[i];
                }
                add_attribute(&c, attribute_int(ATTR_axis, axis));
                c.outputs[0] = tensor_new(&arena, some_types[t], 2,
                                          (const int64_t[]){rows ? total : 7, rows ? 7 : total});
                double *expected = arena_new_array(&arena, double, (size_t)tensor_count(&c.outputs[0]));
                for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
                    int64_t index[2];
                    index_of(&c.outputs[0], i, index);
                    uint32_t part = 0;
                    int64_t *place = &index[rows ? 0 : 1];
                    while (*place >= lengths[part])
                        *place -= lengths[part++];
                    expected[i] = value_at(&c.inputs[part], index);
                }
                run_case(&arena, &c, expected, 0);
            }
    struct op_case c = {.op = OP_Concat, .input_count = 70, .output_count = 1, .refused = true};
    for (uint32_t i = 0; i < 70; i++)
        c.inputs[i] = tensor_random(&arena, DTYPE_F32, i, 0, 1, SIZES(1));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(70));
    run_case(&arena, &c, NULL, 0);
    arena_release(&arena);
}

static void test_expand_and_tile(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct op_case c = {.op = OP_Expand, .input_count = 1, .output_count = 1};
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(3, 1, 2));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2, 3, 4, 2));
    double expected[60];
    for (int i = 0; i < 48; i++) {
        int64_t index[4];
        index_of(&c.outputs[0], i, index);
        expected[i] = broadcast_at(&c.inputs[0], 4, index);
    }
    run_case(&arena, &c, expected, 0);
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SCALAR);
    for (int i = 0; i < 48; i++)
        expected[i] = c.inputs[0].values[0];
    run_case(&arena, &c, expected, 0);
    c.op = OP_Tile;
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 3, 1));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2, 6, 5));
    for (int i = 0; i < 60; i++)
        expected[i] = c.inputs[0].values[i / 30 * 3 + i / 5 % 6 % 3];
    run_case(&arena, &c, expected, 0);
    arena_release(&arena);
}

static void test_depth_and_space(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    /* y = 2 x 3 channels x 4 x 6, x = 2 x 12 x 2 x 3 */
    const struct tensor x = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 12, 2, 3));
    double expected[2 * 12 * 2 * 3];
    for (int mode = 0; mode < 2; mode++) {
        struct op_case c = {.op = OP_DepthToSpace, .input_count = 1, .output_count = 1, .inputs = {x}};
        add_attribute(&c, attribute_int(ATTR_blocksize, 2));
        if (mode)
            add_attribute(&c, attribute_word(ATTR_mode, word_find("CRD")));
        c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2, 3, 4, 6));
        for (int i = 0; i < 144; i++) {
            int64_t y[4];
            index_of(&c.outputs[0], i, y);
            const int64_t p = y[2] % 2, q = y[3] % 2;
            const int64_t channel = mode ? y[1] * 4 + p * 2 + q : (p * 2 + q) * 3 + y[1];
            expected[i] = value_at(&x, (const int64_t[]){y[0], channel, y[2] / 2, y[3] / 2});
        }
        run_case(&arena, &c, expected, 0);
    }
    const struct tensor image = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 3, 4, 6));
    struct op_case c = {.op = OP_SpaceToDepth, .input_count = 1, .output_count = 1, .inputs = {image}};
    add_attribute(&c, attribute_int(ATTR_blocksize, 2));
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2, 12, 2, 3));
    for (int i = 0; i < 144; i++) {
        int64_t y[4];
        index_of(&c.outputs[0], i, y);
        const int64_t place = y[1] / 3;
        expected[i] =
            value_at(&image, (const int64_t[]){y[0], y[1] % 3, y[2] * 2 + place / 2, y[3] * 2 + place % 2});
    }
    run_case(&arena, &c, expected, 0);
    arena_release(&arena);
}

/* ---- gathers
 * ----------------------------------------------------------------------------------------------------- */

static int64_t stated_position(double index, int64_t size)
{
    int64_t at = (int64_t)index;
    if (at < 0)
        at += size;
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static void test_gather(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const double values[] = {0, 4, -1, -5, 99, -99};
    for (int axis = -3; axis < 3; axis++)
        for (int type = 0; type < 2; type++) {
            struct op_case c = {.op = OP_Gather, .input_count = 2, .output_count = 1};
            c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(5, 6, 7));
            c.inputs[1] = tensor_of(&arena, type ? DTYPE_I64 : DTYPE_I32, SIZES(2, 3), values);
            add_attribute(&c, attribute_int(ATTR_axis, axis));
            const int at = axis < 0 ? axis + 3 : axis;
            int64_t sizes[4] = {5, 6, 7, 0};
            for (int i = 3; i > at; i--)
                sizes[i] = sizes[i - 1];
            sizes[at] = 2;
            sizes[at + 1] = 3;
            c.outputs[0] = tensor_new(&arena, DTYPE_F32, 4, sizes);
            double expected[5 * 6 * 7 * 6];
            for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
                int64_t y[4], from[3];
                index_of(&c.outputs[0], i, y);
                for (int k = 0; k < 3; k++)
                    from[k] = k < at ? y[k] : k > at ? y[k + 1] : 0;
                from[at] = stated_position(value_at(&c.inputs[1], &y[at]), c.inputs[0].sizes[at]);
                expected[i] = value_at(&c.inputs[0], from);
            }
            run_case(&arena, &c, expected, 0);
        }
    /* a scalar index drops the axis; an empty axis gives 0 */
    struct op_case c = {.op = OP_Gather, .input_count = 2, .output_count = 1};
    c.inputs[0] = tensor_random(&arena, DTYPE_I64, 1, 0, 9, SIZES(4));
    c.inputs[1] = tensor_of(&arena, DTYPE_I64, SCALAR, (const double[]){-2});
    c.outputs[0] = tensor_new(&arena, DTYPE_I64, SCALAR);
    run_case(&arena, &c, &c.inputs[0].values[2], 0);
    c.inputs[0] = tensor_random(&arena, DTYPE_I64, 1, 0, 9, SIZES(0));
    run_case(&arena, &c, (const double[]){0}, 0);
    arena_release(&arena);
}

static void test_gather_nd(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct op_case c = {.op = OP_GatherND, .input_count = 2, .output_count = 1, .constant_only = true};
    c.inputs[0] = tensor_random(&arena, DTYPE_F32, 1, 0, 1, SIZES(2, 3, 4));
    c.inputs[1] = tensor_of(&arena, DTYPE_I64, SIZES(2, 2), (const double[]){0, -1, 1, 7});
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2, 4));
    double expected[8];
    for (int i = 0; i < 4; i++) {
        expected[i] = c.inputs[0].values[2 * 4 + i];
        expected[4 + i] = c.inputs[0].values[12 + 2 * 4 + i];
    }
    run_case(&arena, &c, expected, 0);
    add_attribute(&c, attribute_int(ATTR_batch_dims, 1));
    c.inputs[1] = tensor_of(&arena, DTYPE_I64, SIZES(2, 1), (const double[]){1, -3});
    for (int i = 0; i < 4; i++) {
        expected[i] = c.inputs[0].values[4 + i];
        expected[4 + i] = c.inputs[0].values[12 + i];
    }
    run_case(&arena, &c, expected, 0);
    c.inputs[1] = tensor_of(&arena, DTYPE_I64, SIZES(2, 2), (const double[]){1, 3, 0, 0});
    c.outputs[0] = tensor_new(&arena, DTYPE_F32, SIZES(2));
    expected[0] = c.inputs[0].values[4 + 3];
    expected[1] = c.inputs[0].values[12];
    run_case(&arena, &c, expected, 0);
    arena_release(&arena);
}

/* ---- pads
 * -------------------------------------------------------------------------------------------------------- */

static int64_t pad_position(const char *mode, int64_t at, int64_t size)
{
    if (strcmp(mode, "edge") == 0)
        return at < 0 ? 0 : at >= size ? size - 1 : at;
    while (at < 0 || at >= size) {
        if (strcmp(mode, "wrap") == 0)
            at += at < 0 ? size : -size;
        else if (strcmp(mode, "reflect") == 0)
            at = size == 1 ? 0 : at < 0 ? -at : 2 * (size - 1) - at;
        else
            return -1;
    }
    return at;
}

static void test_pad(void **state)
{
    (void)state;
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    static const int64_t sets[][4] = {{1, 2, 3, 0}, {0, 0, 0, 0}, {-1, 4, 0, -2}, {9, 7, 8, 13}};
    TEST_ARENA(arena);
    for (int m = 0; m < 4; m++)
        for (int s = 0; s < 4; s++)
            for (int fill = 0; fill < 2; fill++) {
                struct op_case c = {.op = OP_Pad, .input_count = 1, .output_count = 1};
                c.inputs[0] = tensor_random(&arena, DTYPE_F16, 1, 0, 1, SIZES(4, 5));
                if (fill) {
                    c.input_count = 2;
                    c.inputs[1] = tensor_of(&arena, DTYPE_F16, SCALAR, (const double[]){-3});
                }
                add_attribute(&c, attribute_word(ATTR_mode, word_find(modes[m])));
                add_dims(&c, ATTR_pads, 4, sets[s]);
                const int64_t sizes[] = {4 + sets[s][0] + sets[s][2], 5 + sets[s][1] + sets[s][3]};
                c.outputs[0] = tensor_new(&arena, DTYPE_F16, 2, sizes);
                double *expected = arena_new_array(&arena, double, (size_t)tensor_count(&c.outputs[0]));
                for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
                    int64_t y[2];
                    index_of(&c.outputs[0], i, y);
                    for (int k = 0; k < 2; k++)
                        y[k] = pad_position(modes[m], y[k] - sets[s][k], c.inputs[0].sizes[k]);
                    expected[i] = y[0] < 0 || y[1] < 0 ? (fill ? -3 : 0) : value_at(&c.inputs[0], y);
                }
                run_case(&arena, &c, expected, 0);
            }
    arena_release(&arena);
}

/* ---- sources
 * ----------------------------------------------------------------------------------------------------- */

static void test_sources(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const int64_t dims[] = {7, 0, 3};
    struct op_case c = {.op = OP_Dims, .output_count = 1};
    add_dims(&c, ATTR_dims, 3, dims);
    c.outputs[0] = tensor_new(&arena, DTYPE_I64, SIZES(3));
    run_case(&arena, &c, (const double[]){7, 0, 3}, 0);
    c.attributes[0].count = 1;
    c.outputs[0] = tensor_new(&arena, DTYPE_I64, SCALAR);
    run_case(&arena, &c, (const double[]){7}, 0);
    c.attributes[0].count = 0;
    c.outputs[0] = tensor_new(&arena, DTYPE_I64, SIZES(0));
    run_case(&arena, &c, NULL, 0);
    static const enum dtype types[] = {DTYPE_F32, DTYPE_I64, DTYPE_I16, DTYPE_F64};
    for (int t = 0; t < 4; t++) {
        struct op_case range = {.op = OP_Range, .input_count = 3, .output_count = 1};
        range.inputs[0] = tensor_of(&arena, types[t], SCALAR, (const double[]){10});
        range.inputs[1] = tensor_of(&arena, types[t], SCALAR, (const double[]){-3});
        range.inputs[2] = tensor_of(&arena, types[t], SCALAR, (const double[]){-3});
        range.outputs[0] = tensor_new(&arena, types[t], SIZES(5));
        run_case(&arena, &range, (const double[]){10, 7, 4, 1, -2}, 0);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose),       cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_reshape_maps),    cmocka_unit_test(test_slice),
        cmocka_unit_test(test_concat),          cmocka_unit_test(test_expand_and_tile),
        cmocka_unit_test(test_depth_and_space), cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_nd),       cmocka_unit_test(test_pad),
        cmocka_unit_test(test_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The interpreter itself: blocks and runs at sizes around their edges, reductions in both orders, limits,
 * indices out of range, a refusing allocator; and what definition_verify refuses. Definitions are built by
 * hand. */
#include "tests/unit/definition_support.h"

struct fixture {
    struct arena *arena;
    struct dims dims;
    struct exprs pool;
    struct definition d;
};

static void fixture_init(struct fixture *f, struct arena *arena)
{
    memset(f, 0, sizeof *f);
    f->arena = arena;
    dims_init(&f->dims, arena);
    exprs_init(&f->pool, arena, &f->dims);
    f->d.pool = &f->pool;
}

static uint32_t add_buffer(struct fixture *f, enum buffer_role role, enum dtype dtype, int rank,
                           const int64_t *sizes)
{
    dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = dim_constant(&f->dims, sizes[i]);
    return definition_buffer(&f->d, role, tensor_type_new(f->arena, dtype, rank, dims));
}

static struct nest *add_nest(struct fixture *f, uint32_t rank, uint32_t reduce_rank, const int64_t *sizes)
{
    dim dims[MAX_AXES];
    for (uint32_t i = 0; i < rank + reduce_rank; i++)
        dims[i] = dim_constant(&f->dims, sizes[i]);
    return definition_nest(&f->d, rank, dims, reduce_rank, dims + rank);
}

static enum interp_status run(struct fixture *f, void *const *buffers, const struct interp_limits *limits)
{
    struct text why;
    text_init(&why, f->arena);
    if (!definition_verify(&f->d, &why))
        fail_msg("%s", why.data);
    return interpret(&f->d, NULL, buffers, limits, &system_allocator);
}

/* y[i, j] = x[j, i] + 1000 i: loads at a stride, an axis as a value, runs that end inside blocks. */
static void test_block_edges(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 511, 512, 513, 1025};
    TEST_ARENA(arena);
    for (int n = 0; n < 7; n++)
        for (int m = 0; m < 4; m++) {
            struct fixture f;
            fixture_init(&f, &arena);
            const int64_t rows = lengths[m], columns = lengths[n];
            const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_I64, SIZES(columns, rows));
            const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I64, SIZES(rows, columns));
            struct nest *nest = add_nest(&f, 2, 0, (const int64_t[]){rows, columns});
            expr i = nest_axis(&f.d, nest, 0), j = nest_axis(&f.d, nest, 1);
            expr load = expr_load(&f.pool, x, DTYPE_I64, 2, (const expr[]){j, i});
            expr value = expr_binary(&f.pool, EXPR_ADD, load,
                                     expr_binary(&f.pool, EXPR_MUL, i, expr_index(&f.pool, 1000)));
            nest_store(&f.d, nest, y, NULL, value);
            int64_t *from = arena_new_array(&arena, int64_t, (size_t)(rows * columns));
            int64_t *to = arena_new_array(&arena, int64_t, (size_t)(rows * columns));
            for (int64_t k = 0; k < rows * columns; k++)
                from[k] = k * 7919;
            assert_int_equal(run(&f, (void *const[]){from, to}, NULL), INTERP_DONE);
            for (int64_t k = 0; k < rows * columns; k++)
                assert_int_equal(to[k], from[k % columns * rows + k / columns] + 1000 * (k / columns));
        }
    arena_release(&arena);
}

/* A store at computed indices: a rotated, reversed copy, affine and not. */
static void test_scattered_stores(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (int affine = 0; affine < 2; affine++) {
        struct fixture f;
        fixture_init(&f, &arena);
        const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_I16, SIZES(1000));
        const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I16, SIZES(1000));
        struct nest *nest = add_nest(&f, 1, 0, (const int64_t[]){1000});
        expr i = nest_axis(&f.d, nest, 0);
        expr place = expr_binary(&f.pool, EXPR_SUB, expr_index(&f.pool, 999), i);
        if (!affine)
            place = expr_binary(&f.pool, EXPR_INDEX_MOD,
                                expr_binary(&f.pool, EXPR_ADD, place, expr_index(&f.pool, 13)),
                                expr_index(&f.pool, 1000));
        nest_store(&f.d, nest, y, &place, expr_load(&f.pool, x, DTYPE_I16, 1, &i));
        int16_t from[1000], to[1000] = {0};
        for (int k = 0; k < 1000; k++)
            from[k] = (int16_t)k;
        assert_int_equal(run(&f, (void *const[]){from, to}, NULL), INTERP_DONE);
        for (int k = 0; k < 1000; k++)
            assert_int_equal(to[(999 - k + (affine ? 0 : 13)) % 1000], k);
    }
    arena_release(&arena);
}

/* Sums of many floats are those of f64: 1 and 2^20 values of 2^-30. */
static void test_sum_accuracy(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    enum { COUNT = 1 << 20 };
    float *from = arena_new_array(&arena, float, COUNT + 1);
    from[0] = 1;
    for (int i = 1; i <= COUNT; i++)
        from[i] = 0x1p-30f;
    struct fixture f;
    fixture_init(&f, &arena);
    const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_F32, SIZES(COUNT + 1));
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_F32, SCALAR);
    struct nest *nest = add_nest(&f, 0, 1, (const int64_t[]){COUNT + 1});
    expr i = nest_axis(&f.d, nest, 0);
    const uint32_t sum = nest_reduce(&f.d, nest, REDUCE_SUM, expr_load(&f.pool, x, DTYPE_F32, 1, &i));
    nest_store(&f.d, nest, y, NULL, expr_reduced(&f.pool, sum, DTYPE_F32));
    float to = 0;
    assert_int_equal(run(&f, (void *const[]){from, &to}, NULL), INTERP_DONE);
    assert_true(to == 1 + 0x1p-10f);
    arena_release(&arena);
}

/* Two reductions in one nest, and a temporary between two nests. */
static void test_reductions_and_temporaries(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const int64_t shapes[][2] = {{3, 2000}, {2000, 3}, {600, 600}, {1, 1}, {5, 0}};
    for (int s = 0; s < 5; s++) {
        const int64_t rows = shapes[s][0], columns = shapes[s][1];
        struct fixture f;
        fixture_init(&f, &arena);
        const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_I32, SIZES(rows, columns));
        const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I32, SIZES(rows));
        const uint32_t t = add_buffer(&f, BUFFER_TEMPORARY, DTYPE_I32, SIZES(rows));
        struct nest *nest = add_nest(&f, 1, 1, shapes[s]);
        const expr axes[] = {nest_axis(&f.d, nest, 0), nest_axis(&f.d, nest, 1)};
        expr load = expr_load(&f.pool, x, DTYPE_I32, 2, axes);
        const uint32_t sum = nest_reduce(&f.d, nest, REDUCE_SUM, load);
        const uint32_t high = nest_reduce(&f.d, nest, REDUCE_MAX, load);
        nest_store(&f.d, nest, t, NULL,
                   expr_binary(&f.pool, EXPR_SUB, expr_reduced(&f.pool, sum, DTYPE_I32),
                               expr_reduced(&f.pool, high, DTYPE_I32)));
        nest = add_nest(&f, 1, 0, shapes[s]);
        expr row = nest_axis(&f.d, nest, 0);
        nest_store(&f.d, nest, y, NULL,
                   expr_unary(&f.pool, EXPR_NEG, expr_load(&f.pool, t, DTYPE_I32, 1, &row)));
        int32_t *from = arena_new_array(&arena, int32_t, (size_t)(rows * columns)), *to;
        to = arena_new_array(&arena, int32_t, (size_t)rows);
        for (int64_t k = 0; k < rows * columns; k++)
            from[k] = (int32_t)(k * 2654435761 % 100003);
        assert_int_equal(run(&f, (void *const[]){from, to, NULL}, NULL), INTERP_DONE);
        for (int64_t r = 0; r < rows; r++) {
            uint32_t total = 0;
            int32_t largest = INT32_MIN;
            for (int64_t k = 0; k < columns; k++) {
                const int32_t value = from[r * columns + k];
                total += (uint32_t)value;
                largest = value > largest ? value : largest;
            }
            assert_int_equal((uint32_t)to[r], 0 - (total - (uint32_t)largest));
        }
        const struct interp_limits small = {.bytes = 3};
        assert_int_equal(run(&f, (void *const[]){from, to, NULL}, &small), INTERP_MEMORY);
    }
    arena_release(&arena);
}

/* x[i + offset], plain or with an alternative; by run and by element. */
static enum interp_status run_offset(struct arena *arena, int64_t offset, bool alternative, bool affine,
                                     int32_t *to)
{
    struct fixture f;
    fixture_init(&f, arena);
    const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_I32, SIZES(600));
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I32, SIZES(600));
    struct nest *nest = add_nest(&f, 1, 0, (const int64_t[]){600});
    expr i = nest_axis(&f.d, nest, 0);
    expr moved = affine ? i
                        : expr_binary(&f.pool, EXPR_REMAINDER, expr_binary(&f.pool, EXPR_MUL, i, i),
                                      expr_index(&f.pool, 601));
    moved = expr_binary(&f.pool, EXPR_ADD, moved, expr_index(&f.pool, offset));
    expr value = alternative
                     ? expr_load_or(&f.pool, x, DTYPE_I32, 1, &moved, expr_int(&f.pool, DTYPE_I32, -7))
                     : expr_load(&f.pool, x, DTYPE_I32, 1, &moved);
    nest_store(&f.d, nest, y, NULL, value);
    int32_t *from = arena_new_array(arena, int32_t, 600);
    for (int k = 0; k < 600; k++)
        from[k] = k;
    return run(&f, (void *const[]){from, to}, NULL);
}

static void test_out_of_range(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, -1, 599, 600, -600, INT64_MAX, INT64_MIN, INT64_MAX - 599};
    TEST_ARENA(arena);
    int32_t to[600];
    for (int o = 0; o < 9; o++)
        for (int affine = 0; affine < 2; affine++) {
            const int64_t offset = offsets[o];
            const enum interp_status plain = run_offset(&arena, offset, false, affine, to);
            assert_int_equal(plain, offset == 0 && affine ? INTERP_DONE : INTERP_OUT_OF_RANGE);
            assert_int_equal(run_offset(&arena, offset, true, affine, to), INTERP_DONE);
            for (int k = 0; k < 600; k++) {
                const uint64_t index = (uint64_t)(affine ? k : k * k % 601) + (uint64_t)offset;
                assert_int_equal(to[k], index < 600 ? (int32_t)index : -7);
            }
        }
    arena_release(&arena);
}

static void test_limits(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I64, SIZES(1000));
    struct nest *nest = add_nest(&f, 1, 0, (const int64_t[]){1000});
    nest_store(&f.d, nest, y, NULL, nest_axis(&f.d, nest, 0));
    int64_t to[1000];
    const struct interp_limits few = {.steps = 999}, enough = {.steps = 10000};
    assert_int_equal(run(&f, (void *const[]){to}, &few), INTERP_STEPS);
    assert_int_equal(run(&f, (void *const[]){to}, &enough), INTERP_DONE);
    /* every number of allocations that may be granted */
    enum interp_status status = INTERP_MEMORY;
    for (unsigned granted = 0; status == INTERP_MEMORY && granted < 100; granted++) {
        struct counting counting = {.left = granted};
        const struct allocator allocator = {counting_allocate, counting_release, &counting};
        status = interpret(&f.d, NULL, (void *const[]){to}, NULL, &allocator);
        assert_int_equal(counting.alive, 0);
    }
    assert_int_equal(status, INTERP_DONE);
    arena_release(&arena);
}

static void test_dims_that_overflow(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const struct symbol symbol = {.low = 0, .high = INT64_MAX >> 16, .hint = 1};
    const dim s = dim_symbol(&f.dims, &symbol);
    const dim dims[] = {s, s, s};
    const uint32_t y = definition_buffer(&f.d, BUFFER_OUTPUT, tensor_type_new(&arena, DTYPE_I64, 3, dims));
    struct nest *nest = definition_nest(&f.d, 3, dims, 0, NULL);
    nest_store(&f.d, nest, y, NULL, nest_axis(&f.d, nest, 0));
    int64_t to[8], large = INT64_MAX >> 16, two = 2;
    assert_int_equal(interpret(&f.d, &large, (void *const[]){to}, NULL, &system_allocator), INTERP_DIMS);
    assert_int_equal(interpret(&f.d, &two, (void *const[]){to}, NULL, &system_allocator), INTERP_DONE);
    assert_int_equal(to[3], 0);
    assert_int_equal(to[4], 1);
    arena_release(&arena);
}

/* Bytes of a bool buffer other than 0 and 1 are true. */
static void test_bool_bytes(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_BOOL, SIZES(3));
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_BOOL, SIZES(3));
    struct nest *nest = add_nest(&f, 1, 0, (const int64_t[]){3});
    expr i = nest_axis(&f.d, nest, 0);
    nest_store(&f.d, nest, y, NULL, expr_load(&f.pool, x, DTYPE_BOOL, 1, &i));
    unsigned char from[] = {0, 200, 1}, to[3] = {9, 9, 9};
    assert_int_equal(run(&f, (void *const[]){from, to}, NULL), INTERP_DONE);
    assert_memory_equal(to, ((unsigned char[]){0, 1, 1}), 3);
    arena_release(&arena);
}

/* ---- the verifier
 * ------------------------------------------------------------------------------------------------ */

static void check_wrong(struct fixture *f, const char *expected)
{
    struct text why;
    text_init(&why, f->arena);
    assert_false(definition_verify(&f->d, &why));
    if (!strstr(why.data, expected))
        fail_msg("\"%s\" does not say \"%s\"", why.data, expected);
}

static void test_verifier(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    const int64_t four[] = {4};
    for (int kind = 0; kind < 8; kind++) {
        fixture_init(&f, &arena);
        const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_F32, 1, four);
        const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_F32, 1, four);
        struct nest *nest = add_nest(&f, 1, 1, (const int64_t[]){4, 4});
        expr i = nest_axis(&f.d, nest, 0), k = nest_axis(&f.d, nest, 1);
        expr good = expr_load(&f.pool, x, DTYPE_F32, 1, &i);
        switch (kind) {
        case 0:
            nest_store(&f.d, nest, x, NULL, good);
            check_wrong(&f, "is an input");
            break;
        case 1:
            nest_store(&f.d, nest, y, NULL, expr_load(&f.pool, x, DTYPE_F32, 1, &k));
            check_wrong(&f, "does not have here");
            break;
        case 2:
            nest_store(&f.d, nest, y, NULL, expr_load(&f.pool, y, DTYPE_F32, 1, &i));
            check_wrong(&f, "no earlier nest");
            break;
        case 3:
            nest_store(&f.d, nest, y, NULL, i);
            check_wrong(&f, "type is not its buffer's");
            break;
        case 4:
            nest_store(&f.d, nest, y, NULL, expr_load(&f.pool, x, DTYPE_F32, 0, NULL));
            check_wrong(&f, "rank");
            break;
        case 5:
            nest_store(&f.d, nest, y, NULL, expr_reduced(&f.pool, 0, DTYPE_F32));
            check_wrong(&f, "does not exist");
            break;
        case 6:
            nest_reduce(&f.d, nest, REDUCE_SUM, good);
            check_wrong(&f, "no store");
            break;
        default:
            nest_store(&f.d, nest, y, NULL, good);
            add_buffer(&f, BUFFER_OUTPUT, DTYPE_F32, 1, four);
            check_wrong(&f, "never stored");
            break;
        }
    }
    arena_release(&arena);
}

/* Storage in memory that counts what is moved, and fails when told to. */
struct counted {
    unsigned char *bytes;
    uint64_t size, reads, writes;
    bool broken;
};

static bool counted_read(void *user, uint64_t at, void *data, size_t bytes)
{
    struct counted *c = user;
    assert_true(at + bytes <= c->size);
    memcpy(data, c->bytes + at, bytes);
    c->reads++;
    return !c->broken;
}

static bool counted_write(void *user, uint64_t at, const void *data, size_t bytes)
{
    struct counted *c = user;
    assert_true(at + bytes <= c->size);
    memcpy(c->bytes + at, data, bytes);
    c->writes++;
    return !c->broken;
}

static bool take_counted(void *user, uint64_t bytes, struct interp_storage *out)
{
    struct counted *c = user;
    assert_true(bytes <= c->size);
    *out = (struct interp_storage){counted_read, counted_write, c};
    return true;
}

/* t = transpose(x); y[i] = sum over j of t[i, j] and z[j, i] = t[i, j] gathered by an index that is not
 * affine: from memory and behind storage, through a window of 256 pages. The transpose moves each page a few
 * times, not once a row. */
static void test_storage(void **state)
{
    (void)state;
    enum { ROWS = 700, COLUMNS = 900, PAGE = 4096 };
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_I32, SIZES(ROWS, COLUMNS));
    const uint32_t t = add_buffer(&f, BUFFER_TEMPORARY, DTYPE_I32, SIZES(COLUMNS, ROWS));
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I32, SIZES(COLUMNS));
    const uint32_t z = add_buffer(&f, BUFFER_OUTPUT, DTYPE_I32, SIZES(ROWS, COLUMNS));
    struct nest *nest = add_nest(&f, 2, 0, (const int64_t[]){COLUMNS, ROWS});
    const expr turned[] = {nest_axis(&f.d, nest, 1), nest_axis(&f.d, nest, 0)};
    nest_store(&f.d, nest, t, NULL, expr_load(&f.pool, x, DTYPE_I32, 2, turned));
    nest = add_nest(&f, 1, 1, (const int64_t[]){COLUMNS, ROWS});
    const expr straight[] = {nest_axis(&f.d, nest, 0), nest_axis(&f.d, nest, 1)};
    const uint32_t sum = nest_reduce(&f.d, nest, REDUCE_SUM, expr_load(&f.pool, t, DTYPE_I32, 2, straight));
    nest_store(&f.d, nest, y, NULL, expr_reduced(&f.pool, sum, DTYPE_I32));
    nest = add_nest(&f, 2, 0, (const int64_t[]){ROWS, COLUMNS});
    const expr last = expr_index(&f.pool, COLUMNS - 1);
    const expr gathered[] = {expr_binary(&f.pool, EXPR_MIN, last, nest_axis(&f.d, nest, 1)),
                             nest_axis(&f.d, nest, 0)};
    nest_store(&f.d, nest, z, NULL, expr_load(&f.pool, t, DTYPE_I32, 2, gathered));
    static int32_t from[ROWS * COLUMNS], to[COLUMNS], wide[ROWS * COLUMNS], spilled[ROWS * COLUMNS];
    static int32_t held_sums[COLUMNS], held_wide[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        from[i] = i % 7919 * 31 - i;
    assert_int_equal(run(&f, (void *const[]){from, NULL, held_sums, held_wide}, NULL), INTERP_DONE);
    assert_memory_equal(from, held_wide, sizeof from);
    struct counted counts[] = {{(unsigned char *)from, sizeof from, 0, 0, false},
                               {(unsigned char *)spilled, sizeof spilled, 0, 0, false},
                               {(unsigned char *)to, sizeof to, 0, 0, false},
                               {(unsigned char *)wide, sizeof wide, 0, 0, false}};
    struct interp_storage storages[4];
    struct interp_buffer buffers[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        storages[i] = (struct interp_storage){counted_read, i ? counted_write : NULL, &counts[i]};
        buffers[i].storage = i == 1 ? NULL : &storages[i];
    }
    const struct interp_spill spill = {.pages = 256, .held = 1000, .take = take_counted, .user = &counts[1]};
    memset(wide, 0xa5, sizeof wide);
    assert_int_equal(interpret_stored(&f.d, NULL, buffers, &spill, NULL, &system_allocator), INTERP_DONE);
    assert_memory_equal(to, held_sums, sizeof to);
    assert_memory_equal(wide, held_wide, sizeof wide);
    const uint64_t pages = sizeof from / PAGE + 1;
    assert_true(counts[0].reads >= pages && counts[0].reads <= 12 * pages);
    assert_true(counts[3].writes >= pages && counts[3].writes <= 4 * pages);
    for (int i = 0; i < 4; i++) {
        counts[i].broken = true;
        assert_int_equal(interpret_stored(&f.d, NULL, buffers, &spill, NULL, &system_allocator),
                         INTERP_STORAGE);
        counts[i].broken = false;
    }
    arena_release(&arena);
}

static void test_print(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct fixture f;
    fixture_init(&f, &arena);
    const uint32_t x = add_buffer(&f, BUFFER_INPUT, DTYPE_F32, SIZES(4, 5));
    const uint32_t y = add_buffer(&f, BUFFER_OUTPUT, DTYPE_F32, SIZES(4));
    struct nest *nest = add_nest(&f, 1, 1, (const int64_t[]){4, 5});
    const expr axes[] = {nest_axis(&f.d, nest, 0), nest_axis(&f.d, nest, 1)};
    const uint32_t sum = nest_reduce(&f.d, nest, REDUCE_SUM, expr_load(&f.pool, x, DTYPE_F32, 2, axes));
    nest_store(&f.d, nest, y, NULL, expr_reduced(&f.pool, sum, DTYPE_F32));
    struct text text;
    text_init(&text, &arena);
    definition_print(&f.d, &text);
    assert_non_null(
        strstr(text.data, "b0 : input f32[4, 5]\nb1 : output f32[4]\nfor [4] over [5] {\n  reduced0 = sum "));
    assert_non_null(strstr(text.data, "\n  b1[a0] = "));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_edges),
        cmocka_unit_test(test_scattered_stores),
        cmocka_unit_test(test_sum_accuracy),
        cmocka_unit_test(test_reductions_and_temporaries),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_dims_that_overflow),
        cmocka_unit_test(test_bool_bytes),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_verifier),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

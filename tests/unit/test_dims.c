/* Dims: the canonical form, exact division, ranges, merges, text; and that an expression built through the
 * API has the value of direct arithmetic. */
#include "ir/dims.h"
#include "ir/support/checked.h"
#include "tests/unit/support.h"

static struct arena arena;
static struct dims dims;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, &system_allocator, NULL);
    dims_init(&dims, &arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static dim symbol_in(int64_t low, int64_t high)
{
    return dim_symbol(&dims, &(struct symbol){.low = low, .high = high, .hint = low > 1 ? low : 1});
}

static dim size(void)
{
    return symbol_in(0, INT64_MAX >> 16);
}

static dim constant(int64_t value)
{
    return dim_constant(&dims, value);
}

static dim parse(const char *text)
{
    dim d;
    assert_true(dim_parse(&dims, &text, &d));
    assert_int_equal(*text, 0);
    return d;
}

static void check_text(dim d, const char *expected)
{
    struct text text;
    text_init(&text, &arena);
    dim_print(&dims, d, &text);
    assert_string_equal(text.data, expected);
    if (d != DIM_NONE)
        assert_int_equal(parse(text.data), d);
}

static void test_canonical_form(void **state)
{
    (void)state;
    const dim a = size(), b = size();
    assert_int_equal(dim_add(&dims, a, b), dim_add(&dims, b, a));
    assert_int_equal(dim_mul(&dims, a, b), dim_mul(&dims, b, a));
    assert_int_equal(dim_sub(&dims, dim_add(&dims, a, b), b), a);
    assert_int_equal(dim_sub(&dims, a, a), constant(0));
    assert_int_equal(parse("(s0 + 1) * (s1 + 2)"), parse("s0 * s1 + s1 + 2 * s0 + 2"));
    check_text(parse("(s0 + 1) * (s1 + 2)"), "s0 * s1 + 2 * s0 + s1 + 2");
    check_text(parse("3 - s1 * 4"), "-4 * s1 + 3");
    check_text(parse("s0 / 2 * 3"), "3 * (s0 / 2)");
    check_text(DIM_NONE, "?");
    assert_int_equal(dim_add(&dims, a, DIM_NONE), DIM_NONE);
    assert_int_equal(dim_add(&dims, constant(INT64_MAX), constant(1)), DIM_NONE);
    assert_int_equal(dim_mul(&dims, constant(INT64_MAX), constant(2)), DIM_NONE);
}

static void test_exact_division(void **state)
{
    (void)state;
    size(), size(), size();
    assert_int_equal(parse("(s0 * 196 * 768) / (s0 * 768)"), constant(196));
    assert_int_equal(parse("(s0 * s1 * 768) / (s1 * 12)"), parse("s0 * 64"));
    assert_int_equal(parse("(s0 * s0 + 2 * s0 * s1 + s1 * s1) / (s0 + s1)"), parse("s0 + s1"));
    assert_int_equal(parse("(s0 * s1 + s0) / (s1 + 1)"), parse("s0"));
    const char *text = "s0 * 3 / s1"; /* s1 can be 0 */
    dim d;
    assert_false(dim_parse(&dims, &text, &d));
    assert_int_equal(dim_floor_div(&dims, constant(1), constant(0)), DIM_NONE);
    check_text(parse("(s0 * 3) / max(s1, 1)"), "(3 * s0) / max(s1, 1)");
    check_text(parse("(s0 * s2 * 4) / (2 * s2 * max(s1, 1))"), "(2 * s0) / max(s1, 1)");
}

static void test_floor_division(void **state)
{
    (void)state;
    size(), size();
    /* a convolution's arithmetic by two routes */
    assert_int_equal(parse("(4 * s0 + 2 - 1 - 2) / 2 + 1"), parse("2 * s0"));
    assert_int_equal(parse("(s0 + 2 - 3) / 2 + 1"), parse("(s0 + 1) / 2"));
    assert_int_equal(parse("((s0 + 1) / 2 + 1) / 2"), parse("(s0 + 3) / 4"));
    assert_int_equal(parse("(s0 / 2 + s1) / 3"), parse("(s0 + 2 * s1) / 6"));
    assert_int_equal(parse("(5 * s0) / 2"), parse("2 * s0 + s0 / 2"));
    assert_int_equal(parse("(6 * s0 + 3) / 4"), parse("s0 + (2 * s0 + 3) / 4"));
    assert_int_equal(parse("(2 * s0 + 1) / 4"), parse("s0 / 2"));
    assert_int_equal(parse("s0 / 7 * 7 + s0 % 7"), parse("s0"));
    assert_int_equal(parse("(s0 % 7) / 7"), constant(0));
    assert_int_equal(parse("(0 - 7) / 2"), constant(-4));
    assert_int_equal(dim_floor_div(&dims, parse("s0"), constant(-2)), parse("-s0 + s0 / 2"));
    assert_int_equal(parse("s0 / (s0 + 1)"), constant(0));
    assert_int_equal(dim_ceil_div(&dims, parse("s0"), constant(2)), parse("(s0 + 1) / 2"));
    assert_int_equal(dim_ceil_div(&dims, parse("6 * s0"), constant(3)), parse("2 * s0"));
    assert_int_equal(dim_ceil_div(&dims, constant(-7), constant(2)), constant(-3));
}

static void test_extremes(void **state)
{
    (void)state;
    size();
    symbol_in(1, 64);
    symbol_in(1, 64);
    assert_int_equal(parse("max(1, s1)"), parse("s1"));
    check_text(parse("max(1, s0)"), "max(s0, 1)");
    assert_int_equal(parse("min(64, s1)"), parse("s1"));
    assert_int_equal(parse("max(s0, s0 + 1)"), parse("s0 + 1"));
    assert_int_equal(parse("max(s0, max(s1, s2))"), parse("max(max(s2, s0), s1)"));
    assert_int_equal(parse("max(s0 - min(s0, 1), 0)"), parse("s0 - min(s0, 1)"));
    assert_int_equal(parse("min(9223372036854775807, s0)"), parse("s0"));
}

static void test_ranges(void **state)
{
    (void)state;
    symbol_in(2, 10);
    symbol_in(3, 3);
    int64_t low, high;
    dim_range(&dims, parse("4 * s0 - 1"), &low, &high);
    assert_int_equal(low, 7);
    assert_int_equal(high, 39);
    dim_range(&dims, parse("s0 * s0"), &low, &high);
    assert_int_equal(low, 4);
    assert_int_equal(high, 100);
    dim_range(&dims, parse("s0 % 4"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 3);
    dim_range(&dims, parse("2 * ((s0 + 1) / 2) - s0"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 1);
    assert_int_equal(dim_less(&dims, parse("s0"), constant(11)), 1);
    assert_int_equal(dim_less(&dims, parse("s0"), constant(2)), 0);
    assert_int_equal(dim_less(&dims, parse("s0"), constant(5)), -1);
    assert_int_equal(dim_equal(&dims, parse("2 * s0"), constant(5)), 0);
    assert_int_equal(dim_equal(&dims, parse("s0"), constant(5)), -1);
    assert_int_equal(dim_equal(&dims, parse("s0 + 1"), parse("1 + s0")), 1);
    assert_true(dim_divisible(&dims, parse("4 * s0 + 8"), 4));
    assert_true(dim_divisible(&dims, parse("max(4 * s0, 8)"), 4));
    assert_false(dim_divisible(&dims, parse("4 * s0 + 2"), 4));
    const dim infinite = size();
    dim_range(&dims, dim_mul(&dims, infinite, dim_mul(&dims, infinite, infinite)), &low, &high);
    assert_int_equal(low, 0);
    assert_true(high == INT64_MAX);
}

static void test_merges(void **state)
{
    (void)state;
    const dim a = size(), b = size(), c = symbol_in(1, 8);
    const dim sum = dim_add(&dims, dim_mul(&dims, a, constant(2)), b);
    assert_true(dim_merge(&dims, a, b, NULL));
    assert_int_equal(dims.guards.count, 1);
    assert_int_equal(dim_current(&dims, sum), dim_mul(&dims, a, constant(3)));
    assert_true(dim_merge(&dims, a, b, NULL)); /* known by now */
    assert_int_equal(dims.guards.count, 1);
    assert_int_equal(dim_current(&dims, b), a);
    assert_true(dim_merge(&dims, dim_mul(&dims, a, constant(12)), dim_mul(&dims, c, constant(12)), NULL));
    assert_int_equal(dim_current(&dims, a), dim_current(&dims, c));
    int64_t low, high;
    dim_range(&dims, dim_current(&dims, b), &low, &high);
    assert_int_equal(low, 1);
    assert_int_equal(high, 8);
    assert_false(dim_merge(&dims, a, constant(9), NULL));
    assert_false(dim_merge(&dims, constant(3), constant(4), NULL));
    assert_true(dim_merge(&dims, c, constant(4), NULL));
    assert_int_equal(dim_current(&dims, sum), constant(12));
    int64_t value;
    assert_true(dim_evaluate(&dims, sum, (const int64_t[]){0, 0, 0}, &value));
    assert_int_equal(value, 12);
}

static void test_merge_products(void **state)
{
    (void)state;
    const dim a = size(), b = size(), c = size();
    assert_true(dim_merge(&dims, dim_mul(&dims, a, b), dim_mul(&dims, a, c), NULL));
    assert_int_equal(dim_current(&dims, b), dim_current(&dims, c));
    /* no symbol can be solved for: only the guard stays */
    const dim half = dim_floor_div(&dims, a, constant(2));
    assert_true(dim_merge(&dims, half, constant(7), NULL));
    assert_int_equal(dims.guards.count, 2);
    assert_int_equal(dim_current(&dims, half), half);
}

static void test_names(void **state)
{
    (void)state;
    const dim a = dim_symbol(&dims, &(struct symbol){.name = "batch", .high = 9});
    const dim b = dim_symbol(&dims, &(struct symbol){.name = "batch", .high = 9});
    const dim c = dim_symbol(&dims, &(struct symbol){.name = "length", .high = 9});
    dim_merge_names(&dims, a, c, NULL);
    assert_int_equal(dims.guards.count, 0);
    dim_merge_names(&dims, dim_mul(&dims, a, c), dim_mul(&dims, b, constant(4)), NULL);
    assert_int_equal(dims.guards.count, 1);
    assert_int_equal(dim_current(&dims, b), a);
    assert_int_equal(dim_current(&dims, c), c);
}

static void test_assumptions(void **state)
{
    (void)state;
    const dim a = size(), b = size(), c = size(), d = size();
    int64_t low, high;
    assert_true(dim_assume_at_least(&dims, parse("s0 / 5 - 1"), 0, NULL));
    dim_range(&dims, a, &low, &high);
    assert_int_equal(low, 5);
    assert_true(dim_merge(&dims, parse("min(s1, 512)"), b, NULL)); /* says s1 <= 512 */
    dim_range(&dims, b, &low, &high);
    assert_int_equal(high, 512);
    assert_int_equal(parse("min(s1, 512)"), b);
    assert_true(dim_merge(&dims, parse("s2 - min(s2, 1) + 1"), c, NULL)); /* says s2 >= 1 */
    dim_range(&dims, c, &low, &high);
    assert_int_equal(low, 1);
    assert_int_equal(dims.guards.count, 0);
    assert_false(dim_assume_at_least(&dims, b, 513, NULL));
    assert_true(dim_assume_at_least(&dims, parse("s2 - s3"), 0, NULL)); /* no range can say it */
    assert_int_equal(dims.guards.count, 1);
    assert_true(dim_assume_not_empty(&dims, d));
    assert_false(dim_assume_not_empty(&dims, d));
}

static void test_limits(void **state)
{
    (void)state;
    dim d = symbol_in(1, 100);
    for (int i = 0; i < 20000 && d != DIM_NONE; i++) /* nothing simplifies: must end, not hang */
        d = dim_add(&dims, dim_mul(&dims, d, d), dim_floor_div(&dims, d, symbol_in(1, 100)));
    assert_int_equal(d, DIM_NONE);
    const char *text = "(((((((((";
    assert_false(dim_parse(&dims, &text, &d));
    text = "s99";
    assert_false(dim_parse(&dims, &text, &d));
}

/* ---- random expressions
 * ------------------------------------------------------------------------------------------ */

enum { SYMBOLS = 3, POOL = 40, ROUNDS = 400, POINTS = 6 };

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % limit;
}

struct pair {
    dim d;
    int64_t values[POINTS];
};

/* One more expression from two of the pool, and its values by direct arithmetic; false: not defined. */
static bool combine(const struct pair *a, const struct pair *b, unsigned op, struct pair *out)
{
    dim (*const make[])(struct dims *, dim, dim) = {dim_add,      dim_sub, dim_mul, dim_floor_div,
                                                    dim_ceil_div, dim_mod, dim_min, dim_max};
    for (unsigned i = 0; i < POINTS; i++) {
        const int64_t x = a->values[i], y = b->values[i];
        int64_t *result = &out->values[i];
        if ((op >= 3 && op <= 5 && y == 0) || x > 1000000 || x < -1000000 || y > 1000000 || y < -1000000)
            return false;
        *result = op == 0   ? x + y
                  : op == 1 ? x - y
                  : op == 2 ? x * y
                  : op == 3 ? floor_div_i64(x, y)
                  : op == 4 ? -floor_div_i64(-x, y)
                  : op == 5 ? x - y * floor_div_i64(x, y)
                  : op == 6 ? (x < y ? x : y)
                            : (x > y ? x : y);
    }
    out->d = make[op](&dims, a->d, b->d);
    return out->d != DIM_NONE;
}

static void test_random_expressions(void **state)
{
    unsigned checked = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        tear_down(state);
        set_up(state);
        int64_t points[POINTS][SYMBOLS];
        struct pair pool[POOL];
        for (unsigned s = 0; s < SYMBOLS; s++) {
            pool[s].d = symbol_in((int64_t)s, 40 + (int64_t)s);
            for (unsigned i = 0; i < POINTS; i++)
                pool[s].values[i] = points[i][s] = (int64_t)(s + random_below(41));
        }
        for (unsigned s = SYMBOLS; s < 2 * SYMBOLS; s++) {
            const int64_t value = (int64_t)random_below(9) - 2;
            pool[s].d = constant(value);
            for (unsigned i = 0; i < POINTS; i++)
                pool[s].values[i] = value;
        }
        for (unsigned n = 2 * SYMBOLS, tries = 0; n < POOL && tries < 4 * POOL; tries++) {
            if (!combine(&pool[random_below(n)], &pool[random_below(n)], (unsigned)random_below(8), &pool[n]))
                continue;
            int64_t low, high;
            dim_range(&dims, pool[n].d, &low, &high);
            for (unsigned i = 0; i < POINTS; i++) {
                int64_t value;
                assert_true(dim_evaluate(&dims, pool[n].d, points[i], &value));
                assert_int_equal(value, pool[n].values[i]);
                assert_true(low <= value && value <= high);
            }
            struct text text;
            text_init(&text, &arena);
            dim_print(&dims, pool[n].d, &text);
            assert_int_equal(parse(text.data), pool[n].d);
            n++;
            checked++;
        }
    }
    assert_true(checked > ROUNDS * POOL / 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_canonical_form),
        TEST(test_exact_division),
        TEST(test_floor_division),
        TEST(test_extremes),
        TEST(test_ranges),
        TEST(test_merges),
        TEST(test_merge_products),
        TEST(test_names),
        TEST(test_assumptions),
        TEST(test_limits),
        TEST(test_random_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

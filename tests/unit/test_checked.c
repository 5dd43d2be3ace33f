/* Checked arithmetic at its edges: every pair of edge values against 128-bit arithmetic done by hand. */
#include "tests/unit/support.h"

#include "ir/support/checked.h"

static const int64_t edges[] = {INT64_MIN,
                                INT64_MIN + 1,
                                INT64_MIN / 2,
                                INT64_MIN / 2 - 1,
                                -4294967297,
                                -4294967296,
                                -3037000500,
                                -3037000499,
                                -3,
                                -2,
                                -1,
                                0,
                                1,
                                2,
                                3,
                                3037000499,
                                3037000500,
                                4294967296,
                                4294967297,
                                INT64_MAX / 2,
                                INT64_MAX / 2 + 1,
                                INT64_MAX - 1,
                                INT64_MAX};
enum { EDGES = sizeof edges / sizeof *edges };

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* |a| * |b| in two words, by 32-bit parts. */
static void wide_product(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
    uint64_t a0 = a & 0xFFFFFFFF, a1 = a >> 32, b0 = b & 0xFFFFFFFF, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t carry = (middle & 0xFFFFFFFF) + a0 * b1;
    *high = a1 * b1 + (middle >> 32) + (carry >> 32);
    *low = a * b;
}

static void products_agree_with_wide_ones(void **state)
{
    (void)state;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            uint64_t high, low;
            wide_product(magnitude(edges[i]), magnitude(edges[j]), &high, &low);
            bool negative = (edges[i] < 0) != (edges[j] < 0);
            bool fits = !high && low <= (uint64_t)INT64_MAX + (negative ? 1 : 0);
            int64_t product = 77;
            if (mul_i64(edges[i], edges[j], &product) != fits)
                fail_msg("%lld * %lld", (long long)edges[i], (long long)edges[j]);
            if (fits)
                assert_true((uint64_t)product == (negative ? 0 - low : low));
            else
                assert_int_equal(product, 77); /* untouched */
        }
}

static void sums_and_differences_agree_with_wrapped_ones(void **state)
{
    (void)state;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            int64_t a = edges[i], b = edges[j], result = 77;
            uint64_t sum = (uint64_t)a + (uint64_t)b, difference = (uint64_t)a - (uint64_t)b;
            /* Overflow: the sign of the wrapped result differs from what the operands' signs allow. */
            bool sum_fits = !((~((uint64_t)a ^ (uint64_t)b) & ((uint64_t)a ^ sum)) >> 63);
            bool difference_fits = !((((uint64_t)a ^ (uint64_t)b) & ((uint64_t)a ^ difference)) >> 63);
            assert_int_equal(add_i64(a, b, &result), sum_fits);
            assert_true(sum_fits ? (uint64_t)result == sum : result == 77);
            result = 77;
            assert_int_equal(sub_i64(a, b, &result), difference_fits);
            assert_true(difference_fits ? (uint64_t)result == difference : result == 77);
        }
}

static void sizes(void **state)
{
    (void)state;
    size_t result = 77;
    assert_true(add_size(SIZE_MAX, 0, &result) && result == SIZE_MAX);
    assert_true(add_size(SIZE_MAX - 1, 1, &result) && result == SIZE_MAX);
    result = 77;
    assert_false(add_size(SIZE_MAX, 1, &result));
    assert_false(add_size(1, SIZE_MAX, &result));
    assert_false(mul_size(SIZE_MAX, 2, &result));
    assert_false(mul_size(SIZE_MAX / 2 + 1, 2, &result));
    assert_false(mul_size((size_t)1 << 32, (size_t)1 << 32, &result));
    assert_int_equal(result, 77);
    assert_true(mul_size(SIZE_MAX, 0, &result) && result == 0);
    assert_true(mul_size(0, SIZE_MAX, &result) && result == 0);
    assert_true(mul_size(SIZE_MAX, 1, &result) && result == SIZE_MAX);
    assert_true(mul_size(SIZE_MAX / 2, 2, &result) && result == SIZE_MAX - 1);
}

static void quotients_round_down(void **state)
{
    (void)state;
    static const int64_t rows[][3] = {{7, 2, 3},
                                      {-7, 2, -4},
                                      {7, -2, -4},
                                      {-7, -2, 3},
                                      {0, 5, 0},
                                      {6, 3, 2},
                                      {-6, 3, -2},
                                      {6, -3, -2},
                                      {-1, 9, -1},
                                      {1, -9, -1},
                                      {INT64_MIN, 1, INT64_MIN},
                                      {INT64_MAX, -1, -INT64_MAX},
                                      {INT64_MIN, 3, -3074457345618258603},
                                      {INT64_MAX, INT64_MIN, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(floor_div_i64(rows[i][0], rows[i][1]) == rows[i][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree_with_wide_ones),
        cmocka_unit_test(sums_and_differences_agree_with_wrapped_ones),
        cmocka_unit_test(sizes),
        cmocka_unit_test(quotients_round_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

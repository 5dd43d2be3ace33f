/* The runtime's pure parts: evaluation of dims (values and ranges), the arena planner, the hash, the thread
 * pool. */
#include <stdatomic.h>
#include <string.h>

#include "ir/support/hash.h"
#include "runtime/arena_plan.h"
#include "runtime/dim_text.h"
#include "runtime/dims_program.h"
#include "runtime/pool.h"
#include "runtime/sha256.h"

#include "tests/unit/support.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ---- dims
 * ----------------------------------------------------------------------------------------------------------
 */

enum { MAX_ROWS = 64, SYMBOLS = 3 };

struct program {
    struct bundle_term terms[4 * MAX_ROWS];
    struct bundle_dim rows[MAX_ROWS];
    struct bundle_symbol symbols[SYMBOLS];
    struct bundle_tensor input;
    struct bundle_tables tables;
    uint32_t term_count;
};

static void begin_program(struct program *p)
{
    memset(p, 0, sizeof *p);
    p->tables.strings = "\0x";
    p->input.name = 1;
    p->tables.terms = p->terms;
    p->tables.dims = p->rows;
    p->tables.symbols = p->symbols;
    p->tables.inputs = &p->input;
    p->tables.symbol_count = SYMBOLS;
    for (uint32_t i = 0; i < SYMBOLS; i++)
        p->symbols[i].axis = i;
}

static uint32_t leaf(struct program *p, uint32_t op, int64_t value)
{
    p->rows[p->tables.dim_count] = (struct bundle_dim){.op = op, .value = value};
    return p->tables.dim_count++;
}

static uint32_t binary(struct program *p, uint32_t op, uint32_t a, uint32_t b, int64_t scale, int64_t offset)
{
    p->rows[p->tables.dim_count] =
        (struct bundle_dim){.op = op, .first_term = p->term_count, .term_count = 2, .value = offset};
    p->terms[p->term_count++] = (struct bundle_term){.coefficient = 1, .dim = a};
    p->terms[p->term_count++] =
        (struct bundle_term){.coefficient = op == BUNDLE_DIM_SUM ? scale : 1, .dim = b};
    return p->tables.dim_count++;
}

static void dims_are_evaluated(void **state)
{
    (void)state;
    struct program p;
    struct runtime_error error;
    int64_t values[MAX_ROWS], symbols[SYMBOLS] = {-7, 2, INT64_MAX};
    begin_program(&p);
    uint32_t a = leaf(&p, BUNDLE_DIM_SYMBOL, 0), b = leaf(&p, BUNDLE_DIM_SYMBOL, 1);
    uint32_t div = binary(&p, BUNDLE_DIM_FLOOR_DIV, a, b, 0, 0), mod = binary(&p, BUNDLE_DIM_MOD, a, b, 0, 0);
    uint32_t sum = binary(&p, BUNDLE_DIM_SUM, a, b, -3, 100),
             product = binary(&p, BUNDLE_DIM_PRODUCT, a, b, 0, 0);
    uint32_t min = binary(&p, BUNDLE_DIM_MIN, a, b, 0, 0), max = binary(&p, BUNDLE_DIM_MAX, a, b, 0, 0);
    assert_int_equal(dims_evaluate(&p.tables, symbols, values, &error), GPUCC_OK);
    assert_int_equal(values[div], -4);
    assert_int_equal(values[mod], 1);
    assert_int_equal(values[sum], 87);
    assert_int_equal(values[product], -14);
    assert_int_equal(values[min], -7);
    assert_int_equal(values[max], 2);
    char text[64];
    assert_string_equal(bundle_dim_text(&p.tables, sum, text, sizeof text), "x[0] + -3 * x[1] + 100");
    assert_string_equal(bundle_dim_text(&p.tables, max, text, sizeof text), "max(x[0], x[1])");
    assert_string_equal(bundle_dim_text(&p.tables, sum, text, 12), "x[0] + ...");
    symbols[1] = 0;
    assert_int_equal(dims_evaluate(&p.tables, symbols, values, &error), GPUCC_OUT_OF_RANGE);
    symbols[0] = INT64_MIN;
    symbols[1] = -1;
    assert_int_equal(dims_evaluate(&p.tables, symbols, values, &error), GPUCC_OUT_OF_RANGE);
    symbols[0] = INT64_MAX / 2;
    symbols[1] = 3;
    assert_int_equal(dims_evaluate(&p.tables, symbols, values, &error), GPUCC_OUT_OF_RANGE);
}

/* Random programs: each value lies within the bounds, and the bounds of single values are exact. */
static void bounds_hold_every_value(void **state)
{
    (void)state;
    struct program p;
    struct runtime_error error;
    int64_t values[MAX_ROWS], symbols[SYMBOLS];
    struct dim_interval ranges[SYMBOLS], bounds[MAX_ROWS];
    for (unsigned round = 0; round < 3000; round++) {
        begin_program(&p);
        for (uint32_t i = 0; i < SYMBOLS; i++)
            leaf(&p, BUNDLE_DIM_SYMBOL, i);
        leaf(&p, BUNDLE_DIM_CONSTANT, (int64_t)(random_word() % 9) - 2);
        for (uint32_t i = 0; i < 12; i++) {
            static const uint32_t ops[] = {BUNDLE_DIM_SUM, BUNDLE_DIM_PRODUCT, BUNDLE_DIM_FLOOR_DIV,
                                           BUNDLE_DIM_MOD, BUNDLE_DIM_MIN,     BUNDLE_DIM_MAX};
            uint32_t count = p.tables.dim_count;
            binary(&p, ops[random_word() % 6], (uint32_t)(random_word() % count),
                   (uint32_t)(random_word() % count), (int64_t)(random_word() % 7) - 3,
                   (int64_t)(random_word() % 7) - 3);
        }
        for (uint32_t i = 0; i < SYMBOLS; i++) {
            ranges[i].low = (int64_t)(random_word() % 20);
            ranges[i].high = ranges[i].low + (round % 2 ? (int64_t)(random_word() % 6) : 0);
        }
        dims_bounds(&p.tables, ranges, bounds);
        for (unsigned trial = 0; trial < 10; trial++) {
            for (uint32_t i = 0; i < SYMBOLS; i++)
                symbols[i] =
                    ranges[i].low + (int64_t)(random_word() % (uint64_t)(ranges[i].high - ranges[i].low + 1));
            if (dims_evaluate(&p.tables, symbols, values, &error) != GPUCC_OK)
                continue;
            for (uint32_t i = 0; i < p.tables.dim_count; i++) {
                if (dim_interval_known(bounds[i]) &&
                    (values[i] < bounds[i].low || values[i] > bounds[i].high))
                    fail_msg("round %u, row %u: %lld is not in %lld:%lld", round, i, (long long)values[i],
                             (long long)bounds[i].low, (long long)bounds[i].high);
                if (round % 2 == 0)
                    assert_true(bounds[i].low == values[i] && bounds[i].high == values[i]);
            }
        }
    }
}

/* ---- arena
 * ---------------------------------------------------------------------------------------------------------
 */

enum { MAX_ITEMS = 1000, ALIGNMENT = 256 };

static struct arena_item items[MAX_ITEMS];
static uint32_t order[2 * MAX_ITEMS];

/* Plans, checks that nothing overlaps, returns total / live. */
static double plan_items(uint32_t count)
{
    uint64_t total;
    assert_true(arena_plan(items, count, ALIGNMENT, order, &total));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(items[i].offset % ALIGNMENT, 0);
        assert_true(items[i].offset + items[i].bytes <= total);
        for (uint32_t k = 0; k < i; k++)
            if (items[i].first <= items[k].last && items[k].first <= items[i].last &&
                items[i].offset < items[k].offset + items[k].bytes &&
                items[k].offset < items[i].offset + items[i].bytes)
                fail_msg("items %u and %u overlap", k, i);
    }
    uint64_t live = arena_plan_live(items, count, ALIGNMENT, order);
    assert_true(live <= total);
    return live ? (double)total / (double)live : 1;
}

static uint64_t live_by_definition(uint32_t count, uint32_t times)
{
    uint64_t most = 0;
    for (uint32_t time = 0; time < times; time++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++)
            if (items[i].first <= time && time <= items[i].last)
                sum += (items[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        most = sum > most ? sum : most;
    }
    return most;
}

static void random_ranges_never_overlap(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        uint32_t count = (uint32_t)(random_word() % 100);
        for (uint32_t i = 0; i < count; i++) {
            items[i].first = (uint32_t)(random_word() % 50);
            items[i].last = items[i].first + (uint32_t)(random_word() % 12);
            items[i].bytes = random_word() % 5 ? random_word() % (1u << random_word() % 20) : 0;
        }
        assert_true(plan_items(count) < 2);
        assert_int_equal(arena_plan_live(items, count, ALIGNMENT, order), live_by_definition(count, 64));
    }
    items[0] = items[1] = (struct arena_item){.bytes = UINT64_MAX / 8};
    items[0].bytes = UINT64_MAX / 2;
    uint64_t total;
    assert_false(arena_plan(items, 2, ALIGNMENT, order, &total));
}

/* What models look like: chains with residual connections, U-shaped skips, branches that are joined,
 * attention. */
static void models_stay_within_a_tenth(void **state)
{
    (void)state;
    for (uint32_t depth = 10; depth <= 300; depth += 29) {
        for (uint32_t i = 0; i < depth;
             i++) /* residual: every third value lives over its block; sizes fall */
            items[i] = (struct arena_item){
                .bytes = (uint64_t)(1 << 20) >> 4 * i / depth, .first = i, .last = i + (i % 3 ? 1 : 3)};
        assert_true(plan_items(depth) <= 1.1);
        for (uint32_t i = 0; i < depth; i++) /* the way down lives until its mirror on the way up */
            items[i] = (struct arena_item){.bytes = (uint64_t)(4 << 20) >>
                                                    (i < depth / 2 ? i : depth - 1 - i) * 8 / depth,
                                           .first = i,
                                           .last = i < depth / 2 && i % 2 == 0 ? depth - 1 - i : i + 1};
        assert_true(plan_items(depth) <= 1.1);
        for (uint32_t i = 0; i < depth; i++) /* four branches into one concatenation */
            items[i] = (struct arena_item){.bytes = 100000 + 30000 * (uint64_t)(i % 5),
                                           .first = i,
                                           .last = i % 5 == 4 ? i + 5 : i + 4 - i % 5};
        assert_true(plan_items(depth) <= 1.1);
        for (uint32_t i = 0; i < depth;
             i++) { /* attention: q, k, v, scores, context, hidden states of four times */
            static const uint64_t sizes[] = {768, 768, 768, 1536, 768, 3072};
            static const uint32_t lives[] = {3, 2, 2, 1, 1, 1};
            items[i] = (struct arena_item){.bytes = sizes[i % 6] * 512, .first = i, .last = i + lives[i % 6]};
        }
        assert_true(plan_items(depth) <= 1.1);
    }
}

/* ---- hash and pool
 * ------------------------------------------------------------------------------------------------- */

static void the_hash_is_sha256(void **state)
{
    (void)state;
    static unsigned char data[1000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)random_word();
    for (size_t bytes = 0; bytes < sizeof data; bytes++) {
        unsigned char digest[32], expected[32];
        struct bundle_hash hash;
        struct sha256 reference;
        bundle_hash_begin(&hash);
        bundle_hash_add(&hash, data, bytes / 3);
        bundle_hash_add(&hash, data + bytes / 3, bytes - bytes / 3);
        bundle_hash_end(&hash, digest);
        sha256_init(&reference);
        sha256_update(&reference, data, bytes);
        sha256_final(&reference, expected);
        assert_memory_equal(digest, expected, 32);
    }
}

struct count {
    _Atomic uint32_t parts[16], calls;
};

static void count_part(void *user, uint32_t part)
{
    struct count *count = user;
    atomic_fetch_add(&count->parts[part], 1);
    atomic_fetch_add(&count->calls, 1);
}

static void every_part_runs_once(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_create(threads);
        assert_non_null(pool);
        assert_int_equal(pool_threads(pool), threads);
        for (uint32_t round = 0; round < 2000; round++) {
            struct count count = {0};
            uint32_t parts = round % (threads + 1);
            if (round % 50 == 0)
                pool_begin(pool);
            pool_run(pool, parts, count_part, &count);
            if (round % 50 == 25)
                pool_end(pool);
            assert_int_equal(count.calls, parts);
            for (uint32_t i = 0; i < parts; i++)
                assert_int_equal(count.parts[i], 1);
        }
        pool_destroy(pool);
    }
    pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_are_evaluated),          cmocka_unit_test(bounds_hold_every_value),
        cmocka_unit_test(random_ranges_never_overlap), cmocka_unit_test(models_stay_within_a_tenth),
        cmocka_unit_test(the_hash_is_sha256),          cmocka_unit_test(every_part_runs_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

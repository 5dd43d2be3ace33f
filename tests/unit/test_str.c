/* Text building, quoting, numbers and interning. */
#include "tests/unit/support.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "ir/support/str.h"

static void text_grows_and_ends_with_a_nul(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct text text;
    text_init(&text, &arena);
    assert_string_equal(text.data, "");
    for (int i = 0; i < 10000; i++) {
        text_printf(&text, "%d,", i % 10);
        assert_int_equal(text.length, strlen(text.data));
    }
    assert_int_equal(text.length, 20000);
    text_printf(&text, "%*d", 5000, 1);
    assert_int_equal(text.length, 25000);
    text_append(&text, NULL, 0);
    text_append(&text, "xyz", 2);
    assert_string_equal(text.data + 25000, "xy");
    arena_release(&arena);
}

static void a_length_that_overflows_is_refused(void **state)
{
    (void)state;
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    volatile bool refused = false;
    if (setjmp(recovery.jump) == 0) {
        struct text text;
        text_init(&text, &arena);
        text_put(&text, "abc");
        text_append(&text, "", SIZE_MAX - 2);
    } else {
        refused = true;
    }
    assert_true(refused);
    arena_release(&arena);
}

static void check_quote(struct arena *arena, const char *string, size_t limit, const char *expected)
{
    struct text text;
    text_init(&text, arena);
    text_quote(&text, string, limit);
    assert_string_equal(text.data, expected);
}

static void quoting_escapes_what_could_do_harm(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    check_quote(&arena, "", 10, "\"\"");
    check_quote(&arena, "/enc/0/MatMul", 100, "\"/enc/0/MatMul\"");
    check_quote(&arena, "a\"b\\c", 100, "\"a\\x22b\\x5Cc\"");
    check_quote(&arena, "\n\r\t\x1b[2J\x7f", 100, "\"\\x0A\\x0D\\x09\\x1B[2J\\x7F\"");
    check_quote(&arena, "\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80", 100,
                "\"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80\"");
    check_quote(&arena, "\xc2\x9b", 100, "\"\\xC2\\x9B\"");                   /* C1 control */
    check_quote(&arena, "\xe2\x80\xae", 100, "\"\\xE2\\x80\\xAE\"");          /* right to left */
    check_quote(&arena, "\xe2\x80\xa8", 100, "\"\\xE2\\x80\\xA8\"");          /* line separator */
    check_quote(&arena, "\x80", 100, "\"\\x80\"");                            /* stray continuation */
    check_quote(&arena, "\xc3", 100, "\"\\xC3\"");                            /* cut short */
    check_quote(&arena, "\xc3(", 100, "\"\\xC3(\"");                          /* wrong continuation */
    check_quote(&arena, "\xc0\x80", 100, "\"\\xC0\\x80\"");                   /* overlong */
    check_quote(&arena, "\xe0\x80\xaf", 100, "\"\\xE0\\x80\\xAF\"");          /* overlong */
    check_quote(&arena, "\xed\xa0\x80", 100, "\"\\xED\\xA0\\x80\"");          /* surrogate */
    check_quote(&arena, "\xf4\x90\x80\x80", 100, "\"\\xF4\\x90\\x80\\x80\""); /* beyond U+10FFFF */
    check_quote(&arena, "\xf8\x88\x80\x80\x80", 100, "\"\\xF8\\x88\\x80\\x80\\x80\""); /* five bytes */
    check_quote(&arena, "\xff\xfe", 100, "\"\\xFF\\xFE\"");
    arena_release(&arena);
}

static void quoting_cuts_between_characters(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    check_quote(&arena, "abcdef", 6, "\"abcdef\"");
    check_quote(&arena, "abcdef", 5, "\"abcde\"...");
    check_quote(&arena, "abcdef", 0, "\"\"...");
    check_quote(&arena, "a\xe4\xb8\xad", 3, "\"a\"...");
    check_quote(&arena, "a\xe4\xb8\xad", 4, "\"a\xe4\xb8\xad\"");
    struct text text;
    text_init(&text, &arena);
    text_escape(&text, "a\nb", 2);
    assert_string_equal(text.data, "a\\x0A...");
    arena_release(&arena);
}

static const char *number_text(struct arena *arena, double value, bool single)
{
    struct text text;
    text_init(&text, arena);
    if (single)
        text_put_f32(&text, (float)value);
    else
        text_put_f64(&text, value);
    return text.data;
}

static void json_strings_are_valid(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "\"\""},
        {"a/b 1", "\"a/b 1\""},
        {"\"\\", "\"\\\"\\\\\""},
        {"\x1b\n\x7f", "\"\\u001b\\u000a\\u007f\""},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {"\xe2\x80\xae", "\"\\u202e\""},
        {"a\xff\xc3", "\"a\\ufffd\\ufffd\""},
    };
    TEST_ARENA(arena);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text text;
        text_init(&text, &arena);
        text_put_json(&text, rows[i][0]);
        assert_string_equal(text.data, rows[i][1]);
    }
    arena_release(&arena);
}

static void numbers_are_shortest(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const struct {
        double value;
        const char *single, *wide;
    } rows[] = {
        {0.0, "0", "0"},          {-0.0, "-0", "-0"},          {1.0, "1", "1"},
        {0.5, "0.5", "0.5"},      {-1e30, "-1e+30", "-1e+30"}, {16777216.0, "16777216", "16777216"},
        {HUGE_VAL, "inf", "inf"}, {-HUGE_VAL, "-inf", "-inf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(number_text(&arena, rows[i].value, true), rows[i].single);
        assert_string_equal(number_text(&arena, rows[i].value, false), rows[i].wide);
    }
    assert_string_equal(number_text(&arena, (double)0.1f, true), "0.1");
    assert_string_equal(number_text(&arena, 0.1, false), "0.1");
    assert_string_equal(number_text(&arena, (double)0.1f, false), "0.10000000149011612");
    assert_string_equal(number_text(&arena, (double)(1.0f / 3), true), "0.33333334");
    assert_string_equal(number_text(&arena, 1.0 / 3, false), "0.3333333333333333");
    assert_string_equal(number_text(&arena, (double)FLT_MAX, true), "3.4028235e+38");
    assert_string_equal(number_text(&arena, DBL_MAX, false), "1.7976931348623157e+308");
    assert_string_equal(number_text(&arena, (double)FLT_TRUE_MIN, true), "1e-45");
    assert_string_equal(number_text(&arena, DBL_TRUE_MIN, false), "5e-324");
    assert_string_equal(number_text(&arena, (double)NAN, true), "nan");
    assert_string_equal(number_text(&arena, (double)NAN, false), "nan");
    arena_release(&arena);
}

static void numbers_read_back(void **state)
{
    (void)state;
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint32_t bits = (uint32_t)(random >> 32);
        float single;
        double wide;
        memcpy(&single, &bits, sizeof single);
        memcpy(&wide, &random, sizeof wide);
        if (setjmp(recovery.jump) != 0)
            fail_msg("out of memory");
        if (isfinite(single)) {
            float back = strtof(number_text(&arena, (double)single, true), NULL);
            assert_memory_equal(&back, &single, sizeof back);
        }
        if (isfinite(wide)) {
            double back = strtod(number_text(&arena, wide, false), NULL);
            assert_memory_equal(&back, &wide, sizeof back);
        }
        if (i % 1000 == 0)
            arena_release(&arena);
    }
    arena_release(&arena);
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_NUMERIC, names[i]))
            continue;
        found = true;
        assert_string_equal(number_text(&arena, 1234.5, false), "1234.5");
        assert_string_equal(number_text(&arena, -0.25, true), "-0.25");
    }
    arena_release(&arena);
    setlocale(LC_NUMERIC, "C");
    if (!found)
        skip(); /* no locale with a comma is installed */
}

static void interned_strings_are_equal_by_pointer(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct interner interner;
    interner_init(&interner, &arena);
    const char *first = intern(&interner, "abc");
    char copy[] = "abcdef";
    assert_ptr_equal(intern_range(&interner, copy, 3), first);
    assert_ptr_not_equal(intern(&interner, copy), first);
    assert_ptr_not_equal(intern_range(&interner, copy, 2), first);
    assert_ptr_equal(intern(&interner, ""), intern_range(&interner, NULL, 0));
    assert_ptr_equal(intern_range(&interner, "abc\0def", 7), first); /* a string ends at its NUL */
    assert_int_equal(interner.count, 4);
    arena_release(&arena);
}

static void interning_survives_growth(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct interner interner;
    interner_init(&interner, &arena);
    enum { NAMES = 50000 };
    const char **names = arena_new_array(&arena, const char *, NAMES);
    for (int i = 0; i < NAMES; i++)
        names[i] = intern(&interner, arena_printf(&arena, "node_%d", i));
    for (int i = 0; i < NAMES; i++)
        if (intern(&interner, arena_printf(&arena, "node_%d", i)) != names[i])
            fail_msg("name %d moved", i);
    assert_int_equal(interner.count, NAMES);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows_and_ends_with_a_nul),
        cmocka_unit_test(a_length_that_overflows_is_refused),
        cmocka_unit_test(quoting_escapes_what_could_do_harm),
        cmocka_unit_test(quoting_cuts_between_characters),
        cmocka_unit_test(json_strings_are_valid),
        cmocka_unit_test(numbers_are_shortest),
        cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(interned_strings_are_equal_by_pointer),
        cmocka_unit_test(interning_survives_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Diagnostics: the form of a line, the cap, exit status, and names made to deceive whoever reads the
 * terminal. */
#include "tests/unit/support.h"

#include <string.h>

#include "ir/support/diag.h"

static const char *printed(struct arena *arena, const struct diagnostics *diagnostics, uint32_t index)
{
    struct text out;
    text_init(&out, arena);
    diag_print(diagnostics, &diagnostics->items.items[index], &out);
    return out.data;
}

static void a_line_has_the_stated_form(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "model.onnx");
    const struct location third = {.op_type = "Relu", .domain = "", .name = "r", .graph = "", .number = 44};
    const struct location second = {
        .op_type = "Gelu", .domain = "com.microsoft", .name = "", .graph = "", .number = 43, .also = &third};
    struct location location = {
        .op_type = "MatMul", .domain = "", .name = "/enc/0/MatMul", .graph = "", .opset = 17, .number = 42};
    diag_error(&diagnostics, DIAG_wrong_shape, &location, "input %d is %s", 1, "f32[12, 64, 9]");
    assert_string_equal(printed(&arena, &diagnostics, 0),
                        "model.onnx: error E0302: node \"/enc/0/MatMul\" (#42, MatMul, opset 17): "
                        "input 1 is f32[12, 64, 9]\n");
    diag_error(&diagnostics, DIAG_file_not_onnx, NULL, "cut short at byte %d", 7);
    assert_string_equal(printed(&arena, &diagnostics, 1), "model.onnx: error E0102: cut short at byte 7\n");
    location.domain = "com.microsoft";
    location.graph = "If_3/then";
    location.also = &second;
    location.name = "";
    diag_error(&diagnostics, DIAG_unsupported_case, &location, "m");
    assert_string_equal(
        printed(&arena, &diagnostics, 2),
        "model.onnx: error E0403: node \"\" (#42, com.microsoft.MatMul, opset 17, in \"If_3/then\", "
        "merged with #43 com.microsoft.Gelu, #44 Relu): m\n");
    arena_release(&arena);
}

static void a_chain_of_merged_nodes_is_cut(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct location chain[50] = {{0}};
    for (uint32_t i = 0; i < 50; i++)
        chain[i] =
            (struct location){.op_type = "Add", .number = i, .also = i + 1 < 50 ? &chain[i + 1] : NULL};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, NULL);
    diag_error(&diagnostics, DIAG_internal, chain, "m");
    assert_string_equal(
        printed(&arena, &diagnostics, 0),
        "gpucc: error E0902: node \"\" (#0, Add, opset 0, merged with #1 Add, #2 Add, #3 Add, #4 Add, "
        "#5 Add, #6 Add, #7 Add, #8 Add, ...): m\n");
    arena_release(&arena);
}

static void the_list_is_capped_and_the_first_decides(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "m");
    assert_int_equal(diag_status(&diagnostics), 0);
    for (int i = 0; i < 250; i++)
        diag_error(&diagnostics, i ? DIAG_internal : DIAG_no_linker, NULL, "%d", i);
    assert_int_equal(diagnostics.items.count, 100);
    assert_int_equal(diagnostics.dropped, 150);
    assert_int_equal(diag_status(&diagnostics), 3);
    assert_string_equal(diagnostics.items.items[99].message, "99");
    arena_release(&arena);
}

static void every_row_is_well_formed(void **state)
{
    (void)state;
    unsigned before = 0;
    uint32_t count = 0;
    for (const struct diag_row *row; (row = diag_row(count)) != NULL; count++) {
        assert_true(row->number > before && row->number < 1000); /* ascending, so never stated twice */
        assert_in_range(row->status, 1, 4);
        assert_true(*row->name && row->meaning[strlen(row->meaning) - 1] == '.');
        assert_true(row->remedy[strlen(row->remedy) - 1] == '.');
        before = row->number;
    }
    assert_true(count > 20);
}

/* No byte of the line but its last may act on a terminal or end the line. */
static void check_harmless(const char *line)
{
    size_t length = strlen(line);
    assert_true(length > 0 && length < 5000);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        if ((byte < 0x20 || byte > 0x7E) && !(byte == '\n' && i == length - 1))
            fail_msg("byte 0x%02X at %zu of \"%s\"", byte, i, line);
    }
}

static void hostile_names_cannot_act(void **state)
{
    (void)state;
    static const char *const names[] = {
        "\x1b]0;owned\x07",
        "\x1b[2J\x1b[1;1H",
        "a\nmodel.onnx: error E0902: forged",
        "\r\x1b[K",
        "\xc2\x9b"
        "31m",
        "\xe2\x80\xae"
        "evil",
        "\xff\xfe\xc0\xaf\xed\xa0\x80",
        "\xf0\x9f\x98", /* cut short */
        "\" (#1, Add, opset 1): forged",
        "\\x41",
        "%s%n%d",
    };
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        diagnostics_init(&diagnostics, &arena, names[i]);
        const struct location also = {.op_type = names[i], .domain = names[i], .name = names[i]};
        const struct location location = {.op_type = names[i],
                                          .domain = names[i],
                                          .name = names[i],
                                          .graph = names[i],
                                          .opset = INT64_MIN,
                                          .number = UINT32_MAX,
                                          .also = &also};
        diag_error(&diagnostics, DIAG_undefined_name, &location, "%s", diag_quote(&diagnostics, names[i]));
        check_harmless(printed(&arena, &diagnostics, 0));
    }
    /* A quote inside a name stays inside the quotes. */
    assert_string_equal(diag_quote(&diagnostics, "a\" (#1"), "\"a\\x22 (#1\"");
    assert_string_equal(diag_quote(&diagnostics, "\\x41"), "\"\\x5Cx41\"");
    arena_release(&arena);
}

static void every_byte_is_harmless(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "m");
    for (int first = 1; first < 256; first++)
        for (int second = 0x7E; second < 0x84; second++) {
            char name[3] = {(char)first, (char)second, '\0'};
            const char *quoted = diag_quote(&diagnostics, name);
            for (const char *at = quoted; *at; at++)
                assert_true((unsigned char)*at >= 0x20 && *at != 0x7F);
            if (first >= 0x80 && first < 0xC2) /* never the start of a character */
                assert_non_null(strstr(quoted, "\\x"));
        }
    arena_release(&arena);
}

static void long_names_cost_little(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    static char name[LONG + 1];
    static const unsigned char fills[] = {'a', '\n', 0xFF, '"'};
    TEST_ARENA(arena);
    for (size_t i = 0; i < sizeof fills; i++) {
        memset(name, fills[i], LONG);
        struct diagnostics diagnostics;
        diagnostics_init(&diagnostics, &arena, "model.onnx");
        const struct location location = {.op_type = name, .domain = name, .name = name, .graph = name};
        size_t before = arena.total;
        diag_error(&diagnostics, DIAG_undefined_name, &location, "nothing defines %s",
                   diag_quote(&diagnostics, name));
        const char *line = printed(&arena, &diagnostics, 0);
        check_harmless(line);
        assert_non_null(strstr(line, "..."));
        assert_true(arena.total - before < 256 * 1024);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_stated_form),
        cmocka_unit_test(a_chain_of_merged_nodes_is_cut),
        cmocka_unit_test(the_list_is_capped_and_the_first_decides),
        cmocka_unit_test(every_row_is_well_formed),
        cmocka_unit_test(hostile_names_cannot_act),
        cmocka_unit_test(every_byte_is_harmless),
        cmocka_unit_test(long_names_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

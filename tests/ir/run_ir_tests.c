/* Text tests of passes: run_ir_tests FILE... Each file holds cases:
 *
 *     # what the case shows
 *     passes: canonicalise, dead_code
 *     model opset 17 { ... }
 *     ---
 *     model opset 17 { ... }        what must come out; `same` when nothing may change; `fails CODE` when the
 * last pass must refuse it with that diagnostic
 *     ====
 *
 * Both graphs are read and printed again, so names and layout of the text do not matter. The verifier runs
 * behind every pass. */
#include "passes/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/file.h"

struct test_case {
    const char *file;
    const char *title, *passes, *input, *expected;
};

struct run {
    struct arena arena;
    unsigned cases, failures;
    VEC(const char *) titles;
};

static bool fail(struct run *run, const struct test_case *test, const char *what, const char *detail)
{
    run->failures++;
    fprintf(stderr, "%s: %s: %s\n%s\n", test->file, test->title, what, detail);
    return false;
}

static const char *diagnostics_text(struct arena *arena, const struct diagnostics *diagnostics)
{
    struct text text;
    text_init(&text, arena);
    for (uint32_t i = 0; i < diagnostics->items.count; i++)
        diag_print(diagnostics, &diagnostics->items.items[i], &text);
    return text.data;
}

static const char *printed(struct arena *arena, const struct graph *graph)
{
    struct text text;
    text_init(&text, arena);
    graph_print(graph, false, &text);
    return text.data;
}

static bool run_pass(struct run *run, const struct test_case *test, const char *name, struct graph *graph,
                     struct diagnostics *diagnostics)
{
    const struct pass *pass = pipeline_find(name);
    if (!pass)
        return fail(run, test, "no such pass", name);
    struct pass_context context = {
        .graph = graph,
        .scratch = &run->arena,
        .diagnostics = diagnostics,
        .optimisation = 3,
        .fold_limit = 4096,
    };
    if (!pass->run(&context) || !graph_verify(graph, diagnostics, name, true))
        return fail(run, test, name, diagnostics_text(&run->arena, diagnostics));
    return true;
}

/* Expected: `fails CODE`. */
static bool run_refused(struct run *run, const struct test_case *test, struct graph *graph,
                        struct diagnostics *diagnostics)
{
    const struct pass *pass = pipeline_find(test->passes);
    struct pass_context context = {.graph = graph,
                                   .scratch = &run->arena,
                                   .diagnostics = diagnostics,
                                   .optimisation = 3,
                                   .fold_limit = 4096};
    if (!pass)
        return fail(run, test, "no such pass", test->passes);
    if (pass->run(&context))
        return fail(run, test, "is not refused", printed(&run->arena, graph));
    const char *text = diagnostics_text(&run->arena, diagnostics);
    const size_t length = strcspn(test->expected + 6, "\n");
    const char *code = arena_printf(&run->arena, "%.*s", (int)length, test->expected + 6);
    return strstr(text, code) ? true : fail(run, test, "is refused by another diagnostic", text);
}

static bool run_case(struct run *run, const struct test_case *test)
{
    struct diagnostics diagnostics;
    struct graph *graph, *expected;
    diagnostics_init(&diagnostics, &run->arena, test->file);
    const bool same = !strncmp(test->expected, "same", 4);
    if (!strncmp(test->expected, "fails ", 6))
        return graph_parse(&run->arena, &diagnostics, test->input, NULL, &graph)
                   ? run_refused(run, test, graph, &diagnostics)
                   : fail(run, test, "cannot be read", diagnostics_text(&run->arena, &diagnostics));
    if (!graph_parse(&run->arena, &diagnostics, test->input, NULL, &graph) ||
        !graph_parse(&run->arena, &diagnostics, same ? test->input : test->expected, NULL, &expected))
        return fail(run, test, "cannot be read", diagnostics_text(&run->arena, &diagnostics));
    char *list = arena_string(&run->arena, test->passes);
    for (char *name = strtok(list, ", "); name; name = strtok(NULL, ", "))
        if (!run_pass(run, test, name, graph, &diagnostics))
            return false;
    const char *got = printed(&run->arena, graph), *wanted = printed(&run->arena, expected);
    if (strcmp(got, wanted) == 0)
        return true;
    return fail(run, test, "differs", arena_printf(&run->arena, "--- expected\n%s--- got\n%s", wanted, got));
}

/* Cuts the text at the line `separator`; NULL when there is none. */
static char *cut(char *text, const char *separator)
{
    char *found = strstr(text, separator);
    if (!found)
        return NULL;
    *found = 0;
    return found + strlen(separator);
}

static void run_file(struct run *run, const char *path)
{
    char *text;
    size_t bytes;
    if (!file_read_all(&run->arena, path, 1 << 22, &text, &bytes)) {
        perror(path);
        run->failures++;
        return;
    }
    while (text) {
        char *next = cut(text, "\n====\n");
        struct test_case test = {.file = path};
        while (*text == '\n')
            text++;
        test.title = text;
        char *passes = strstr(text, "\npasses: ");
        if (!passes)
            break;
        *passes = 0;
        passes += strlen("\npasses: ");
        char *input = cut(passes, "\n");
        char *expected = input ? cut(input, "\n---\n") : NULL;
        test.passes = passes;
        test.input = input;
        test.expected = expected;
        run->cases++;
        vec_push(&run->arena, &run->titles, test.title);
        if (!expected)
            (void)fail(run, &test, "no expected text", "");
        else
            (void)run_case(run, &test);
        text = next;
    }
}

static void need_title(struct run *run, const char *row, const char *kind)
{
    const char *title = arena_printf(&run->arena, "# %s: %s", row, kind);
    for (uint32_t i = 0; i < run->titles.count; i++)
        if (!strncmp(run->titles.items[i], title, strlen(title)))
            return;
    fprintf(stderr, "no case \"%s\"\n", title);
    run->failures++;
}

int main(int argc, char **argv)
{
    static struct run run;
    static struct recovery recovery;
    arena_init(&run.arena, &system_allocator, &recovery);
    if (setjmp(recovery.jump) != 0) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (int i = 1; i < argc; i++)
        run_file(&run, argv[i]);
    for (uint32_t i = 0; rewrite_row(i); i++) {
        need_title(&run, rewrite_row(i)->name, "fires");
        need_title(&run, rewrite_row(i)->name, "near miss");
    }
    printf("%u cases, %u failures\n", run.cases, run.failures);
    const bool good = run.cases > 0 && run.failures == 0;
    arena_release(&run.arena);
    return good ? 0 : 1;
}

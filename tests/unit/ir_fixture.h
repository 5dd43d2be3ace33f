/* What the tests of the Graph IR share: an arena with diagnostics, graphs from text and back. */
#ifndef GPUCC_TESTS_UNIT_IR_FIXTURE_H
#define GPUCC_TESTS_UNIT_IR_FIXTURE_H

#include <string.h>

#include "ir/graph.h"
#include "tests/unit/support.h"

struct fixture {
    struct recovery recovery;
    struct arena arena;
    struct diagnostics diagnostics;
};

static inline int fixture_start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture)
        return -1;
    arena_init(&fixture->arena, &system_allocator, &fixture->recovery);
    if (setjmp(fixture->recovery.jump) != 0)
        abort();
    diagnostics_init(&fixture->diagnostics, &fixture->arena, "model.onnx");
    *state = fixture;
    return 0;
}

static inline int fixture_end(void **state)
{
    struct fixture *fixture = *state;
    arena_release(&fixture->arena);
    free(fixture);
    return 0;
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_end)

/* All messages so far, one a line. */
static inline const char *fixture_messages(struct fixture *fixture)
{
    struct text text;
    text_init(&text, &fixture->arena);
    for (uint32_t i = 0; i < fixture->diagnostics.items.count; i++) {
        diag_print(&fixture->diagnostics, &fixture->diagnostics.items.items[i], &text);
        text_put(&text, "\n");
    }
    return text.data ? text.data : "";
}

static inline struct graph *fixture_parse(struct fixture *fixture, const char *text)
{
    struct graph *graph = NULL;
    if (!graph_parse(&fixture->arena, &fixture->diagnostics, text, NULL, &graph))
        fail_msg("%s", fixture_messages(fixture));
    return graph;
}

static inline const char *fixture_print(struct fixture *fixture, const struct graph *graph, bool names)
{
    struct text text;
    text_init(&text, &fixture->arena);
    graph_print(graph, names, &text);
    return text.data;
}

#endif

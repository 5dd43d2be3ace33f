/* The pass manager: runs the pipeline at an optimisation level, verifies between passes, hands dumps to its
 * caller. It knows no pass by name and prints nothing. */
#include "passes/pass.h"

#include <string.h>

/* The run as one object, so that the recovery below has nothing in local variables. */
struct run {
    struct graph *graph;
    struct diagnostics *diagnostics;
    const struct pipeline_options *options;
    struct arena scratch;
    bool shapes; /* types are known from here on */
};

static void dump(struct run *run, const struct pass *pass)
{
    const struct pipeline_options *options = run->options;
    if (!options->dump || !options->dump_sink)
        return;
    if (strcmp(options->dump, "all") != 0 && strcmp(options->dump, pass->name) != 0)
        return;
    struct text text;
    text_init(&text, &run->scratch);
    graph_print(run->graph, false, &text);
    options->dump_sink(options->dump_user, pass->name, text.data);
}

static bool run_pass(struct run *run, const struct pass *pass)
{
    struct pass_context context = {
        .graph = run->graph,
        .scratch = &run->scratch,
        .diagnostics = run->diagnostics,
        .optimisation = run->options->optimisation,
        .fold_limit = run->options->fold_limit ? run->options->fold_limit : UINT64_C(1) << 20,
    };
    if (!pass->run(&context))
        return false;
    run->shapes = run->shapes || !strcmp(pass->name, "shapes");
    if (run->options->verify && !graph_verify(run->graph, run->diagnostics, pass->name, run->shapes))
        return false;
    dump(run, pass);
    arena_release(&run->scratch);
    return true;
}

static bool run_all(struct run *run)
{
    if (run->options->verify && !graph_verify(run->graph, run->diagnostics, "import", false))
        return false;
    for (uint32_t i = 0; pipeline_pass(i); i++)
        if (pipeline_pass(i)->from_level <= run->options->optimisation && !run_pass(run, pipeline_pass(i)))
            return false;
    return true;
}

/* When the graph's arena runs dry, the scratch arena must go before the owner's recovery is entered. */
bool run_pipeline(struct graph *graph, struct diagnostics *diagnostics,
                  const struct pipeline_options *options)
{
    struct recovery recovery;
    struct recovery *const outer = graph->arena->recovery;
    struct run run = {.graph = graph, .diagnostics = diagnostics, .options = options};
    arena_init(&run.scratch, graph->arena->allocator, &recovery);
    if (setjmp(recovery.jump) != 0) {
        arena_release(&run.scratch);
        graph->arena->recovery = outer;
        longjmp(outer->jump, 1);
    }
    graph->arena->recovery = &recovery;
    const bool done = run_all(&run);
    graph->arena->recovery = outer;
    arena_release(&run.scratch);
    return done;
}

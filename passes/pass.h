/* Passes: functions from a graph to the same graph, better. The pipeline (pipeline.c) is a list one can read;
 * the manager runs it, dumps IR, verifies between passes, counts and times. No pass calls another.
 *
 * What passes need of code generation comes as a table of functions (struct target_services, declared in
 * ir/), handed in by the driver. */
#ifndef GPUCC_PASSES_PASS_H
#define GPUCC_PASSES_PASS_H

#include "ir/graph.h"
#include "ir/group.h"
#include "ir/target.h"

struct pass_context {
    struct graph *graph;
    struct arena *scratch; /* reset between passes */
    struct diagnostics *diagnostics;
    int optimisation;    /* -O: 0..3 */
    uint64_t fold_limit; /* bytes: constants above are left to the init program */
    uint32_t changes;    /* the pass counts what it changed */
};

struct pass {
    const char *name;
    bool (*run)(struct pass_context *context); /* false: reported */
    int from_level;                            /* runs at -O from this level on */
    const char *summary;                       /* one line for --print-pipeline */
};

struct pipeline_options {
    int optimisation;
    bool verify;      /* between passes */
    const char *dump; /* pass name, "all" or NULL */
    void (*dump_sink)(void *user, const char *pass, const char *text);
    void *dump_user;
    uint64_t fold_limit;
};

/* Runs the shared passes on the graph. */
bool run_pipeline(struct graph *graph, struct diagnostics *diagnostics,
                  const struct pipeline_options *options);
/* Rows of the pipeline in order; NULL behind the last. */
const struct pass *pipeline_pass(uint32_t index);
const struct pass *pipeline_find(const char *name);

/* After the pipeline, once a target: nodes become groups. `services` says what the target's strategies can
 * take. */
bool group_graph(struct graph *graph, const struct target_services *services, int optimisation,
                 struct diagnostics *diagnostics, struct grouping *out);

#endif

/* Groups for the GPU strategies' tests, at sizes that reach every tail: one list for the run on the host and
 * for the run on a GPU. */
#ifndef GPUCC_TESTS_HARNESS_GPU_CASES_H
#define GPUCC_TESTS_HARNESS_GPU_CASES_H

#include "codegen/kernel_words.h"
#include "codegen/strategy.h"

struct gpu_case {
    const char *name;
    struct graph *graph;
    struct exprs pool;
    struct definition definition;
    const int64_t *symbols; /* values of the graph's symbols */
    const int64_t *bounds;  /* of symbols that the model computes; NULL: it computes none */
    const char *strategy;   /* that must fit */
    uint32_t candidates;    /* how many of its candidates are run */
    bool constant;          /* buffer 1 is a constant */
    bool suppresses;        /* buffer 1 holds places */
};

/* The list's case, or NULL behind the last: each row with known sizes, with free ones, and one of each strategy's rows of an
 * operator with sizes that the model computes. */
struct gpu_case *gpu_case_make(struct arena *arena, uint32_t index);

/* Sizes of real models, for timing: never run by the interpreter. */
struct gpu_case *gpu_speed_case_make(struct arena *arena, uint32_t index);

/* A case under one configuration: kernels, and buffers with random inputs. */
struct gpu_run {
    struct strategy_context context;
    struct group group;
    const struct gpu_case *from;
    struct config config;
    struct lowered_group lowered;
    void *buffers[MAX_BUFFERS];  /* inputs filled, others poisoned */
    void *expected[MAX_BUFFERS]; /* by the interpreter */
    uint64_t bytes[MAX_BUFFERS];
    void *derived[4]; /* by the interpreter, once the expected results are there */
    uint64_t derived_bytes[4];
    uint32_t (*words)[MAX_KERNEL_WORDS]; /* [launch]: symbols behind the kernel's words */
};

/* Of the largest element of the result: one in the last place of what is stored, or what sums in another
 * order may differ. */
double gpu_case_tolerance(enum dtype dtype);
/* Does the machine have what the case's strategy is for? */
bool gpu_case_runs(const struct gpu_case *made, const struct machine *machine);
/* False: there is no such run: the case's candidates, then the first one with 64-bit indices. `machine`: a
 * CUDA one. */
bool gpu_run_make(struct gpu_run *run, struct arena *arena, const struct gpu_case *from,
                  const struct machine *machine, uint32_t number);
/* Of all candidates, the cheapest `each` of every tile (the configuration's first four numbers); returns how
 * many. */
uint32_t gpu_run_variety(struct arena *arena, const struct gpu_case *from, const struct machine *machine,
                         uint32_t each, struct config *out, uint32_t limit);
void gpu_run_build(struct gpu_run *run, struct arena *arena, const struct gpu_case *from,
                   const struct machine *machine, const struct config *config);
uint64_t gpu_run_bytes(const struct gpu_run *run, const struct tensor_type *type);
void gpu_run_describe(const struct gpu_run *run, struct text *out);
void gpu_run_expect(struct gpu_run *run);
/* Fails the test where an output differs. */
void gpu_run_compare(const struct gpu_run *run, uint32_t buffer, const void *result);
int64_t gpu_run_dim(const struct gpu_run *run, dim d);
/* Of a launch: at the bounds of sizes that the model computes. */
int64_t gpu_run_grid(const struct gpu_run *run, dim d);
/* Is the launch made at the case's sizes? */
bool gpu_run_launches(const struct gpu_run *run, const struct kernel *kernel);

#endif

/* One nest as the interpreter runs it: shared by interpret.c and ordered.c. */
#ifndef GPUCC_IR_INTERP_NEST_H
#define GPUCC_IR_INTERP_NEST_H

#include "ir/interp/program.h"

struct interpretation {
    struct arena arena;
    struct recovery recovery;
    const struct definition *definition;
    const int64_t *symbol_values;
    const struct interp_limits *limits;
    const struct interp_spill *spill;
    struct interp_storage spilled[MAX_BUFFERS];
    struct dims dims;  /* constants only */
    struct exprs pool; /* rewritten expressions */
    struct executor executor;
    struct place places[MAX_BUFFERS];
    bool dims_failed;
};

struct nest_store_plan {
    const struct access *access;
    uint32_t indices[MAX_RANK]; /* registers, when there is no access */
    uint32_t value, condition;  /* registers; NO_REGISTER: always */
};

struct nest_plan {
    struct interpretation *run;
    const struct nest *nest;
    int64_t extents[MAX_AXES];
    int64_t parallel_count, reduce_count;
    bool blocks_of_parallel; /* the reductions' blocks are those of the parallel points */
    struct program body, store;
    uint32_t *body_results;
    enum dtype *body_dtypes;
    struct nest_store_plan *stores;
    union accumulator **accumulators;
    unsigned char *body_registers, *store_registers;
};

/* ---- interpret.c
 * ------------------------------------------------------------------------------------------------ */

/* The axes first .. last-1 at a flat position of theirs. */
void nest_unflatten(const int64_t *extents, uint32_t first, uint32_t last, int64_t position, int64_t *axes);
/* Runs the stores of `count` points from flat position `start` of the varying axes; REDUCED is set by then.
 */
bool nest_run_stores(struct nest_plan *plan, const int64_t *fixed, int64_t start, uint32_t count);

/* ---- ordered.c
 * -------------------------------------------------------------------------------------------------- */

enum interp_status nest_run_scan(struct nest_plan *plan);
enum interp_status nest_run_sort(struct nest_plan *plan);
enum interp_status nest_run_filter(struct nest_plan *plan);

#endif

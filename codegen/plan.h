/* Plan: all decisions for one target, ready to be written into a bundle: buffers, kernels, launches. Built from the
 * groups by plan_build; read by the bundle writer. Sizes stay dims; offsets in the arena are found in `prepare` by the
 * runtime's planner from the live ranges here. */
#ifndef GPUCC_CODEGEN_PLAN_H
#define GPUCC_CODEGEN_PLAN_H

#include "codegen/strategy.h"
#include "ir/group.h"

enum plan_buffer_kind {
    PLAN_INPUT,    /* index: of the graph's inputs */
    PLAN_OUTPUT,   /* index: of the graph's outputs */
    PLAN_CONSTANT, /* index: of `constants` */
    PLAN_ARENA,
    PLAN_WEIGHT, /* init plans only; index: of `weights` */
};

struct plan_buffer {
    enum plan_buffer_kind kind;
    uint32_t index;
    enum dtype dtype;
    dim elements;
    /* ARENA: launches during which it holds something, inclusive. */
    uint32_t first, last;
    /* ARENA: lives in the memory of another arena buffer (in place); UINT32_MAX: its own. The other one's range covers
     * both. */
    uint32_t shares;
};

/* A constant as it stands in the bundle: a value of the graph (an initialiser, or computed from initialisers alone by the
 * nodes before it), optionally repacked. */
struct plan_constant {
    value_id value;
    const struct definition *recipe; /* NULL: as it is */
    enum dtype dtype;
    int64_t elements;
};

struct plan_launch {
    uint32_t kernel;          /* of `kernels` */
    const uint32_t *buffers;  /* [kernel_buffer_count]: plan buffers */
    const dim *dims;          /* [kernel's dims count]: this launch's dims, in the kernel's parameter order */
    dim grid[3];
    dim work;
    dim condition;            /* launched where it is not 0; DIM_NONE: always */
    const struct kernel_tensor_map *tensor_maps; /* `buffer`: among the kernel's parameters */
    uint32_t tensor_map_count;
    const struct location *location; /* nodes that it computes */
};

struct plan_kernel {
    struct kernel *kernel;    /* the first of those that are equal; its name is final */
    const struct machine *machine; /* that it is compiled for: the plan's, or its reference (strategy.retarget) */
    char hash[65];            /* design.md section 9, "kernel hash" (hex, NUL) */
    const char *source;       /* CUDA C; NULL for CPU kernels */
    uint32_t dim_count;
};

/* A size that the model computes, as an element of what the plan's last launches collect for the host. */
struct plan_word {
    uint32_t symbol;
};

/* An output that needs no launch: the same memory as an input or a constant of the graph; copied by the runtime. */
struct plan_copy {
    uint32_t from, to; /* plan buffers */
};

/* Launches that run by a condition: a buffer of one bool. They nest; outer ones stand before those in them, and every one
 * has a launch at least. */
enum plan_control_kind {
    PLAN_IF,   /* [first, middle) where it is true, else [middle, end) */
    PLAN_WHILE /* [first, end) again and again while it is true; middle is end */
};
struct plan_control {
    enum plan_control_kind kind;
    uint32_t condition;
    uint32_t first, middle, end; /* launches */
    uint32_t inner;              /* how many of the next ones are in this one */
};

struct plan {
    const struct machine *machine;
    VEC(struct plan_buffer) buffers;
    VEC(struct plan_constant) constants;
    VEC(struct plan_kernel) kernels;
    VEC(struct plan_launch) launches;
    VEC(struct plan_control) controls;
    VEC(struct plan_copy) copies;
    VEC(struct plan_word) words; /* elements of word_buffer, in order */
    uint32_t word_buffer;        /* i64; UINT32_MAX without words */
    VEC(value_id) weights; /* init plans: initialisers that may be replaced */
};

struct plan_options {
    int optimisation;
    uint32_t threads;
    void (*explain)(void *user, const char *line); /* decisions, or NULL */
    void *explain_user;
};

/* The hash by which equal kernels are one, of a kernel alone. */
void plan_kernel_hash(const struct kernel *kernel, const struct machine *machine, struct arena *arena, char hex[65]);

/* Groups -> strategies -> unique kernels -> launches, live ranges, in-place sharing. */
bool plan_build(const struct graph *graph, const struct grouping *grouping, const struct machine *machine,
                const struct plan_options *options, struct arena *arena, struct diagnostics *diagnostics,
                struct plan *out);

/* plan_init.c: the steps from initialisers to the constants of all the plans, for a weight that is replaced at run time. Each
 * is a kernel of the Definition that the compiler evaluated itself, so the results are the same to the bit. Launches write
 * PLAN_CONSTANT buffers; copies take weights that stand in the bundle as they are, which are also those that others are
 * combined with. */
bool plan_init(const struct graph *graph, const struct plan *const *plans, uint32_t plan_count,
               const struct machine *machine, struct arena *arena, struct diagnostics *diagnostics, struct plan *out);

/* Largest sum of live arena bytes, and the arena's size by the runtime's planner, with every symbol at its hint. False: the
 * sizes do not fit 64 bits. */
bool plan_memory(const struct graph *graph, const struct plan *plan, struct arena *scratch, uint64_t *live,
                 uint64_t *arena_bytes);

/* The strategies' table of functions for passes/ (ir/target.h). `optimisation` as -O. */
struct target_services plan_services(const struct graph *graph, const struct machine *machine, int optimisation,
                                     struct arena *arena);

#endif

/* Strategies: named functions that turn a group into kernels for one kind of machine. A strategy sees nests, anchors and
 * expressions, never operator names. One file each under strategy/cpu and strategy/gpu; a row in the list there. */
#ifndef GPUCC_CODEGEN_STRATEGY_H
#define GPUCC_CODEGEN_STRATEGY_H

#include "codegen/kernel_ir.h"
#include "ir/group.h"

/* A strategy's own parameters, as numbers whose meaning is the strategy's (its header says which); printed by
 * `describe`. */
enum { MAX_CONFIG = 12 };
struct config {
    int32_t value[MAX_CONFIG];
};

/* Where a kernel's buffer parameter comes from. */
enum argument_kind {
    ARGUMENT_BUFFER,    /* index: a buffer of the group */
    ARGUMENT_DERIVED,   /* index: of `derived`: a constant in another layout, made when the bundle is written */
    ARGUMENT_TEMPORARY, /* index: of `temporaries`: memory of the arena for the time of this group */
};
struct argument {
    enum argument_kind kind;
    uint32_t index;
};

/* A constant buffer of the group repacked: one nest that reads buffer 0 (the source, in its own type) and stores
 * buffer 1. Part of the init program. */
struct derived {
    uint32_t source; /* buffer of the group; the graph's value behind it must be constant */
    struct definition recipe;
};

struct temporary {
    struct tensor_type type;
};

struct kernel_launch {
    struct kernel *kernel;
    const struct argument *arguments; /* [kernel->global_count] */
};

/* What build gives: launches in order. */
struct lowered_group {
    VEC(struct kernel_launch) launches;
    VEC(struct derived) derived;
    VEC(struct temporary) temporaries;
};

struct strategy_context {
    const struct graph *graph;
    const struct group *group;
    const struct machine *machine;
    struct arena *arena;
    /* buffer of the group: is the value behind it constant (an initialiser or made from initialisers alone)? */
    bool (*is_constant)(const struct strategy_context *context, uint32_t buffer);
    uint32_t index_bits; /* CUDA: 64: whatever the sizes; 0: as they need */
    bool exact_order; /* sums in the Definition's order, so that results are the interpreter's to the bit; plain only */
};

struct strategy {
    const char *name;
    /* The group can be built for every size that its dims may take; the reason when not. */
    bool (*fits)(const struct strategy_context *context, struct text *why);
    /* Configurations worth trying, best first by cost; at least one when `fits`. Returns how many. */
    uint32_t (*candidates)(const struct strategy_context *context, struct config *out, uint32_t limit);
    /* Estimated seconds on the machine at the hinted dims. */
    double (*cost)(const struct strategy_context *context, const struct config *config);
    bool (*build)(const struct strategy_context *context, const struct config *config, struct lowered_group *out,
                  struct text *why);
    void (*describe)(const struct config *config, struct text *out);
    /* CPU: turns a configuration that was chosen on the reference machine into the best one on the context's machine that
     * reads constants in the same layout and sums in the same order. NULL: kernels are built for the reference machine
     * and only compiled for others. */
    void (*retarget)(const struct strategy_context *context, struct config *config);
    int from_level; /* usable at -O from this level on; the plain strategy: 0 */
    bool any_nest;  /* takes scans, sorts and conditional stores too; others are not asked about them */
};

/* The strategies of a machine's kind, in order; NULL behind the last. The last one is plain and fits everything. */
const struct strategy *cpu_strategy(uint32_t index);
const struct strategy *gpu_strategy(uint32_t index);
const struct strategy *strategy_row(const struct machine *machine, uint32_t index);

/* The strategy takes the group at the level; else the reason. */
bool strategy_takes(const struct strategy *strategy, const struct strategy_context *context, int optimisation,
                    struct text *why);
/* The cheapest that fits at the level; never NULL. `why_not` may be NULL or gets one line for each
 * other strategy of the level: what it refuses, or what it would cost. */
const struct strategy *strategy_choose(const struct strategy_context *context, int optimisation,
                                       struct config *config, struct text *why_not);
/* From the reference, for which the context is made and the strategy chosen, to the machine itself. Returns what the kernels
 * are compiled for: those that gain nothing by being built anew are the reference's, and so is their code where the machine
 * runs it. */
const struct machine *strategy_retarget(struct strategy_context *context, const struct machine *machine,
                                        const struct strategy *strategy, struct config *config);

#endif

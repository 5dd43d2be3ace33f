/* What the files of the plan builder share. */
#ifndef GPUCC_CODEGEN_PLAN_INTERNAL_H
#define GPUCC_CODEGEN_PLAN_INTERNAL_H

#include "codegen/kernel_words.h"
#include "codegen/plan.h"

struct plan_strategy_context {
    struct strategy_context base; /* first: strategies get a pointer to it */
    const bool *init;             /* [value]: of init_values */
};

struct known_derived {
    value_id value;
    const char *recipe; /* as text */
    uint32_t buffer;
};

/* The launch may write `output` over `input`. */
struct in_place_pair {
    uint32_t launch;
    uint32_t input, output; /* plan buffers */
};

struct planner {
    const struct graph *graph;
    struct dims *dims;
    struct arena *arena;
    struct diagnostics *diagnostics;
    const struct plan_options *options;
    struct plan *plan;
    const bool *init;
    uint32_t *value_buffers; /* [value]: plan buffer, UINT32_MAX: none yet */
    value_id *same_as;       /* [value]: the value whose memory it is; itself where it has its own */
    uint32_t *group_buffers; /* [buffer of the group that is being planned], for those without a value */
    uint32_t depth;          /* control-flow nodes around what is being planned */
    dim runs;                /* 1 where it runs, 0 where sizes say that it does not; DIM_NONE: it always does */
    VEC(struct known_derived) derived;
    VEC(const char *) kernel_keys; /* [kernel]: canonical text that equal kernels share */
    uint32_t *slots, slot_count;   /* hash table of the keys: number + 1 */
    struct arena *scratch;         /* of the choice for one group */
    struct arena *built;           /* what is built for it: the plan's when any of it is new */
    bool keep;                     /* it is */
    VEC(struct in_place_pair) pairs;
    const uint32_t *uses; /* [value]: of graph_use_counts; NULL: not asked for yet */
};

struct plan_strategy_context plan_strategy_context(const struct graph *graph, const struct group *group,
                                                   const struct machine *machine, const bool *init,
                                                   struct arena *arena);
uint32_t planner_add_constant(struct planner *planner, value_id value, const struct definition *recipe,
                              enum dtype dtype, int64_t elements);
/* Launches of a lowered group, whose kernels are compiled for `machine`. `bound` as for planner_add_group. */
bool planner_add_launches(struct planner *planner, const struct group *group, const struct lowered_group *lowered,
                          const struct machine *machine, const uint32_t *bound);
/* An array of UINT32_MAX. */
uint32_t *planner_unset(struct arena *arena, uint32_t count);
uint32_t planner_derived_buffer(struct planner *planner, const struct group *group, const struct derived *derived);

/* plan.c */
uint32_t planner_add_buffer(struct planner *planner, enum plan_buffer_kind kind, uint32_t index, enum dtype dtype,
                            dim elements);
/* The plan buffer of a graph value, made on first use. */
uint32_t planner_value_buffer(struct planner *planner, value_id value);
void planner_mark_use(struct planner *planner, uint32_t buffer, uint32_t launch);
/* Groups in order. `bound`: plan buffers of the group's buffers that have no value, or NULL. */
/* Behind each group: what was built for it stays if any of it is new. */
void planner_end_group(struct planner *planner);
bool planner_add_group(struct planner *planner, const struct group *group, const uint32_t *bound);
bool planner_add_grouping(struct planner *planner, const struct grouping *grouping);

/* plan_control.c: the launches of a node with bodies. */
bool planner_add_control(struct planner *planner, const struct group *group);

/* plan_update.c: a loop's state that its body replaces by `result` may be that memory: the body only sets an element, and
 * nothing else reads the state. */
bool planner_may_update(struct planner *planner, const struct grouping *grouping, value_id state, value_id result);
/* The group; where its result stands in the state's memory, one that stores the element alone. */
const struct group *planner_update(struct planner *planner, const struct group *group);

/* plan_kernels.c: the number of the kernel's equal in the plan; added, named and hashed when it is new. */
bool planner_add_kernel(struct planner *planner, const struct group *group, struct kernel *kernel,
                        const struct machine *machine, uint32_t *number);

/* plan_memory.c: before launches are added, marks parameters that may share memory; afterwards, shares them. */
void planner_allow_in_place(struct planner *planner, const struct group *group, struct lowered_group *lowered);
void planner_share_in_place(struct planner *planner);

/* plan_words.c: sizes that the model computes. A kernel that hangs on some gets the buffers that hold them behind its own. */
bool planner_bind_words(struct planner *planner, const struct group *group, struct kernel *kernel, uint32_t *buffers);
/* Behind all launches: those that hand the words to the host. */
bool planner_collect_words(struct planner *planner);

/* plan_alias.c: the input whose buffer an output lives in, UINT32_MAX: none. */
uint32_t planner_alias_of(const struct graph *graph, uint32_t output);
/* False: an alias is impossible (reported). */
bool planner_check_aliases(struct planner *planner);
/* Behind all launches: results go straight into aliased outputs where they can; orders the copies that are left. */
bool planner_place_outputs(struct planner *planner);

#endif

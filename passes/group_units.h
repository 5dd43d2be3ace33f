/* Units: groups in the making. Grouping visits the nodes in order; each becomes a unit of its own, pulls
 * producers into its loads and is pushed into a producer's store. A unit whose results nobody loads any more
 * is dead.
 *
 * Counts that decide everything: how many live units load a value, how many nodes yet to be visited will, and
 * whether it is an output of the graph. All expressions live in one pool. */
#ifndef GPUCC_PASSES_GROUP_UNITS_H
#define GPUCC_PASSES_GROUP_UNITS_H

#include "passes/pass.h"

enum {
    GROUP_BUFFERS = 24,  /* of a fused group */
    GROUP_STORES = 4,    /* of one nest */
    GROUP_COST = 400,    /* of one elementwise group, in expr_cost */
    ROWS_PROLOGUE = 40,  /* of what is pulled into rows and reductions */
    FACTOR_PROLOGUE = 3, /* of what is pulled into a contraction's factor */
    COPY_COST = 4,       /* may be computed again in every consumer */
    BROADCAST_COST = 16, /* may be computed again for every element of a larger domain */
    CYCLE_VISITS = 256,  /* units that a search for cycles looks at; beyond: taken for a cycle */
    GROUP_NODES = 128,   /* nodes of one unit */
    GROUP_NESTS = 6,     /* of rows */
};

enum unit_kind {
    UNIT_MAP,         /* one nest without reductions, one store */
    UNIT_CONTRACTION, /* one nest, a sum of products */
    UNIT_ROWS,        /* nests with reductions */
    UNIT_OTHER,
    UNIT_CONTROL, /* a node with bodies: no nests, merges with nothing */
};

struct unit {
    bool dead;
    bool view; /* MAP whose store is a bare load: moves elements only */
    enum unit_kind kind;
    struct definition body;
    VEC(value_id) values;    /* [buffer]; 0 for temporaries */
    VEC(bool) used;          /* [buffer]: loaded or stored at all, or it holds a size of the unit */
    VEC(bool) loaded;        /* [buffer]: not only for a size */
    VEC(node_id) nodes;      /* in the order in which they were visited */
    uint32_t first, last;    /* positions of the first and the last node */
    struct grouping *bodies; /* CONTROL */
    int8_t fits;             /* a better strategy than the plain one takes it: 1, 0, -1 not asked yet */
};

struct grouper {
    struct graph *graph;
    region_id region;
    struct arena *arena;
    const struct target_services *services;
    struct diagnostics *diagnostics;
    int optimisation;
    struct exprs *pool;
    VEC(struct unit *) units;
    bool *init;              /* [value] */
    uint32_t *loads;         /* [value]: live units */
    uint32_t *ahead;         /* [value]: nodes not visited yet */
    node_id *last_user;      /* [value] */
    bool *output;            /* [value]: of the region */
    struct unit **stored_by; /* [value] */
    uint32_t *position;      /* [node]: in the region's order, from 1; 0: left out */
    bool has_words;          /* the model computes sizes */
    VEC(uint32_t) stamps;    /* [expr]: of the last walk that saw it */
    uint32_t stamp;
};

/* ---- group_units.c
 * ------------------------------------------------------------------------------------------------ */

/* NULL: the operator has no Definition (reported). */
struct unit *unit_of_node(struct grouper *grouper, node_id node);
/* Who reads the value: units, nodes ahead, and the graph's outputs. */
uint32_t value_readers(const struct grouper *grouper, value_id value);
/* A copy whose nests may be changed freely. Buffers and nodes are copied too. */
struct unit *unit_clone(struct grouper *grouper, const struct unit *unit);
/* `changed` takes the place of `unit`: counts follow, producers that nobody reads die. */
void unit_commit(struct grouper *grouper, struct unit *unit, struct unit *changed);
/* Unless somebody reads it. */
void unit_kill(struct grouper *grouper, struct unit *unit);
/* The buffer of the value, added as an input when the unit does not have it. */
uint32_t unit_buffer(struct grouper *grouper, struct unit *unit, value_id value);
/* The nest and store that write the value, when exactly one store does. */
bool unit_store_of(const struct unit *unit, value_id value, uint32_t *nest, uint32_t *store);
/* Its sizes hang on a value that it stores itself, which no kernel could read in time. */
bool unit_needs_itself(struct grouper *grouper, const struct unit *unit);
/* Calls back for the values that hold sizes which the dims hang on, each once or more. */
void each_size(struct grouper *grouper, const dim *dims, uint32_t count, void (*visit)(void *user, value_id value),
               void *user);
/* Which buffers the expressions load or store or hold sizes; how many they are. */
void unit_find_used(struct grouper *grouper, struct unit *unit);
uint32_t unit_buffers_used(struct grouper *grouper, struct unit *unit);
void unit_classify(struct grouper *grouper, struct unit *unit);
/* Arithmetic of its stores, without that on indices. */
uint32_t unit_cost(struct grouper *grouper, const struct unit *unit);
void unit_absorb_nodes(struct grouper *grouper, struct unit *unit, const struct unit *other);
/* The unit as a group: unused buffers gone, inputs first, then outputs, then temporaries. */
struct group unit_group(struct grouper *grouper, const struct unit *unit);
/* Some strategy better than the plain one takes it; true without services. */
bool unit_fits(struct grouper *grouper, struct unit *unit);
/* Calls back for every LOAD and LOAD_OR below the expression, once each. */
void each_load(struct grouper *grouper, expr e, void (*visit)(void *user, const struct expr_node *load),
               void *user);
/* The same for all expressions of the unit. */
void each_unit_load(struct grouper *grouper, const struct unit *unit,
                    void (*visit)(void *user, const struct expr_node *load), void *user);
/* Replaces leaves in all expressions of the unit, in place. */
typedef expr leaf_function(void *user, struct exprs *into, const struct expr_node *node,
                           const expr *arguments);
void unit_rewrite(struct grouper *grouper, struct unit *unit, leaf_function *leaf, void *user);

/* ---- group.c
 * ------------------------------------------------------------------------------------------------ */

bool group_region(struct graph *graph, region_id region, const struct target_services *services,
                  int optimisation, struct diagnostics *diagnostics, struct grouping *out);

/* ---- group_control.c
 * ------------------------------------------------------------------------------------------------ */

/* The values that a node reads, each once: its inputs, and what its bodies take from around them. */
struct reads {
    VEC(value_id) values;
};
void node_reads(struct grouper *grouper, node_id id, struct reads *out);
/* The unit of a node with bodies, which are grouped. NULL: reported. */
struct unit *unit_of_control(struct grouper *grouper, node_id id);

/* ---- group_pull.c: producers into loads
 * --------------------------------------------------------------------------- */

/* Pulls whatever is worth it into the unit's loads. */
void pull_producers(struct grouper *grouper, struct unit *unit, bool views_only);

/* ---- group_push.c: consumers into stores
 * --------------------------------------------------------------------------- */

/* Merges an elementwise unit into the store of a producer where that is possible. */
bool push_into_producer(struct grouper *grouper, struct unit *unit);
/* Merges a view into the store of its producer: the elements are written where the view has them. */
bool push_view(struct grouper *grouper, struct unit *view);

/* Merging of an elementwise consumer into a producer would make groups depend on each other in a circle. True
 * also when that is not found out in bounded time. */
bool makes_cycle(struct grouper *grouper, const struct unit *consumer, const struct unit *producer);

/* ---- group_append.c: consumers of rows as a further nest
 * ---------------------------------------------------------- */

/* Appends an elementwise unit that spreads the result of rows over the rows again. */
bool append_to_rows(struct grouper *grouper, struct unit *unit);

/* ---- group_views.c
 * ------------------------------------------------------------------------------------------------- */

/* Of two stores that put the same elements in the same flat order one goes; noted in out->views. */
void drop_doubled_stores(struct grouper *grouper, struct unit *unit, struct grouping *out);

/* ---- group_finish.c
 * ------------------------------------------------------------------------------------------------ */

/* Live units in an order that respects their dependencies. */
void emit_groups(struct grouper *grouper, struct grouping *out);

#endif

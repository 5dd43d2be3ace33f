/* Rewrite rows: a pattern, what stands in its place, and a guard. rewrite_rows.def is the list;
 * canonicalise.c runs it.
 *
 * Patterns, over one value:
 *     ?x            any value; the same name is the same value
 *     #c            a value that hangs on constants alone
 *     Op(a, b, ...) the result of that operator; an inner one must have no other use
 *     Op+(a, ...)   the same, other uses allowed
 *     n=Op(a, ...)  the same, the node gets a name
 *     Pointwise(..) any elementwise operator with that many inputs
 * Inputs of commutative operators match in either order. An operator matches only with exactly as many
 * inputs.
 *
 * Replacements: ?x or #c as matched, $m as the guard made it (match_set), Op(...) a new node, n(...) a node
 * with the operator and the attributes of the node named n. The root keeps its value, type and place; an
 * inner new node gets the root's type. Attributes for the root come from the guard (match_attribute). */
#ifndef GPUCC_PASSES_REWRITE_H
#define GPUCC_PASSES_REWRITE_H

#include "passes/passes.h"

enum {
    PATTERN_NODES = 32,
    PATTERN_ARGUMENTS = 6,
    PATTERN_NAMES = 20,
    PATTERN_NAME_LENGTH = 15,
    MATCH_ATTRIBUTES = 8,
    MATCH_LOCATIONS = 24,
};

enum pattern_kind { PATTERN_VALUE, PATTERN_CONSTANT, PATTERN_MADE, PATTERN_OP, PATTERN_NAMED };

struct pattern_node {
    enum pattern_kind kind;
    enum op op;    /* PATTERN_OP; OP_NONE: any pointwise one */
    bool any_uses; /* PATTERN_OP: may have uses outside the match */
    uint8_t name;  /* index of names + 1; 0: none */
    uint8_t count;
    uint8_t arguments[PATTERN_ARGUMENTS]; /* indices of nodes */
};

struct pattern {
    uint32_t count, root;
    struct pattern_node nodes[PATTERN_NODES];
};

struct names {
    uint32_t count;
    char text[PATTERN_NAMES][PATTERN_NAME_LENGTH + 1];
};

struct match;
struct rewrite {
    const char *name, *pattern, *replacement;
    bool (*guard)(struct match *match); /* NULL: none */
};

struct parsed_rewrite {
    const struct rewrite *row;
    struct pattern pattern, replacement;
    struct names names;
};

/* False with the place of the mistake in `why`: a defect of the row. */
bool rewrite_parse(const struct rewrite *row, struct parsed_rewrite *out, struct text *why);
/* Rows in the order in which they are tried; NULL behind the last. */
const struct rewrite *rewrite_row(uint32_t index);

/* What rewriting keeps about the graph while it changes it. */
struct rewriter {
    struct graph *graph;
    struct arena *arena;
    struct forward forward;
    VEC(uint32_t) uses; /* [value], kept up to date */
    VEC(bool) init;     /* [value]: as init_values */
    uint32_t removed;   /* nodes */
};

struct match {
    struct rewriter *rewriter;
    const struct parsed_rewrite *rewrite;
    node_id root;
    value_id values[PATTERN_NAMES];
    node_id nodes[PATTERN_NAMES];
    struct attribute attributes[MATCH_ATTRIBUTES];
    uint32_t attribute_count;
    node_id matched[MATCH_LOCATIONS]; /* all nodes of the match */
    uint32_t matched_count;
    value_id read[PATTERN_NAMES]; /* constants whose value the guard read: they freeze when the row fires */
    uint32_t read_count;
};

void rewriter_init(struct rewriter *rewriter, struct graph *graph, struct arena *arena);
/* Tries one row at a node; rewrites and returns true when it fires. */
bool rewrite_apply(struct rewriter *rewriter, const struct parsed_rewrite *rewrite, node_id root);

/* ---- for guards
 * -------------------------------------------------------------------------------------------------- */

value_id match_value(const struct match *match, const char *name);
struct node *match_node(const struct match *match, const char *name);
const struct tensor_type *match_type(const struct match *match, const char *name);
const struct tensor_type *match_root_type(const struct match *match);
/* The one element of a constant, and its elements: false when the value is none, or none of that kind. */
bool match_float(struct match *match, const char *name, double *number);
bool match_ints(struct match *match, const char *name, int64_t *elements, uint32_t limit, uint32_t *count);
/* The value is one constant float element that equals `number` within the rounding of its type. */
bool match_is(struct match *match, const char *name, double number);
/* For $name, and attributes of the replacement's root. */
void match_set(struct match *match, const char *name, value_id value);
void match_attribute(struct match *match, struct attribute attribute);
/* A node before the root. */
value_id match_make(struct match *match, enum op op, uint32_t input_count, const value_id *inputs,
                    struct tensor_type type, uint32_t attribute_count, const struct attribute *attributes);
value_id match_reshape(struct match *match, value_id value, int rank, const dim *dims);
value_id match_binary(struct match *match, enum op op, value_id a, value_id b); /* the type is a's */
/* A constant scalar of a float type. */
value_id match_scalar(struct match *match, enum dtype dtype, double number);

#endif

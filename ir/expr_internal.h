/* Shared by the files ir/expr*.c (the walk also by ir/interp/): walking an expression's nodes, and the index
 * rules that the builder applies. */
#ifndef GPUCC_IR_EXPR_INTERNAL_H
#define GPUCC_IR_EXPR_INTERNAL_H

#include "ir/expr.h"

/* The nodes that an expression reaches, each once, arguments before their users. Position of a node:
 * walk_position. */
struct expr_walk {
    struct arena *arena;
    VEC(expr) order;
    uint32_t *slots; /* hash table: position + 1 */
    uint32_t slot_count;
};
void expr_walk_init(struct expr_walk *walk, struct arena *arena);
/* Adds what `root` reaches and is not there yet; several roots may share a walk, but only after the last one
 * is the order final: expr_walk_finish sorts. */
void expr_walk_add(struct expr_walk *walk, const struct exprs *pool, expr root);
void expr_walk_finish(struct expr_walk *walk);
uint32_t expr_walk_position(const struct expr_walk *walk, expr e);

/* Simpler equal of an i64 operation, or 0. For INDEX_DIV, INDEX_MOD, ADD, MIN, MAX and comparisons of i64. */
expr expr_simplify_index(struct exprs *pool, enum expr_op op, expr a, expr b);

#endif

/* Runs an expression over blocks of inputs with expr_eval_op, one operation at a time; for tests. Input k is
 * a load of rank 0 from buffer k. */
#ifndef GPUCC_TESTS_UNIT_EXPR_RUNNER_H
#define GPUCC_TESTS_UNIT_EXPR_RUNNER_H

#include "ir/expr.h"
#include "ir/expr_eval.h"
#include "ir/expr_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNNER_BLOCK = 256 };

struct runner {
    const struct exprs *pool;
    struct expr_walk walk;
    uint64_t (*values)[RUNNER_BLOCK];
    const int64_t *axes;    /* values of AXIS nodes, or NULL */
    const int64_t *symbols; /* of DIM nodes */
};

static inline float runner_f32(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline uint64_t runner_bits(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static inline void runner_init(struct runner *runner, struct exprs *exprs, expr e)
{
    memset(runner, 0, sizeof *runner);
    runner->pool = exprs;
    expr_walk_init(&runner->walk, exprs->arena);
    expr_walk_add(&runner->walk, exprs, e);
    expr_walk_finish(&runner->walk);
    runner->values = arena_array(exprs->arena, runner->walk.order.count, sizeof *runner->values);
}

/* The common operations without a call an element. */
static inline bool runner_fast(const struct expr_node *node, enum dtype from, uint64_t *out,
                               uint64_t *const *in, uint32_t n)
{
#define EACH(value)                                                                                          \
    for (uint32_t i = 0; i < n; i++)                                                                         \
        out[i] = (value);                                                                                    \
    return true
    if (node->dtype == DTYPE_F32 && from == DTYPE_F32) {
        switch (node->op) {
        case EXPR_ADD:
            EACH(runner_bits(runner_f32(in[0][i]) + runner_f32(in[1][i])));
        case EXPR_SUB:
            EACH(runner_bits(runner_f32(in[0][i]) - runner_f32(in[1][i])));
        case EXPR_MUL:
            EACH(runner_bits(runner_f32(in[0][i]) * runner_f32(in[1][i])));
        case EXPR_FMA:
            EACH(runner_bits(fmaf(runner_f32(in[0][i]), runner_f32(in[1][i]), runner_f32(in[2][i]))));
        default:
            break;
        }
    }
    if (node->op == EXPR_SELECT) {
        EACH(in[0][i] ? in[1][i] : in[2][i]);
    }
    if (node->op == EXPR_BITCAST) {
        EACH(expr_eval_extend(node->dtype, in[0][i]));
    }
    if (node->op == EXPR_AND) {
        EACH(in[0][i] & in[1][i]);
    }
    if (node->op == EXPR_OR) {
        EACH(in[0][i] | in[1][i]);
    }
    if (node->op == EXPR_LESS && from == DTYPE_F32) {
        EACH(runner_f32(in[0][i]) < runner_f32(in[1][i]));
    }
#undef EACH
    return false;
}

/* Values of `root` for n inputs (at most RUNNER_BLOCK); false when an operation is not defined. */
static inline bool runner_run(struct runner *runner, expr root, const uint64_t *const *inputs, uint32_t n,
                              uint64_t *out)
{
    for (uint32_t k = 0; k < runner->walk.order.count; k++) {
        const struct expr_node *node = expr_at(runner->pool, runner->walk.order.items[k]);
        uint64_t *values = runner->values[k], *in[3] = {NULL, NULL, NULL}, arguments[3] = {0};
        for (uint32_t j = 0; j < node->count && j < 3; j++)
            in[j] = runner->values[expr_walk_position(&runner->walk, node->arguments[j])];
        int64_t dim_value = 0;
        if (node->op == EXPR_DIM &&
            !dim_evaluate(runner->pool->dims, (dim)node->value, runner->symbols, &dim_value))
            return false;
        enum dtype from = node->count ? expr_at(runner->pool, node->arguments[node->op == EXPR_SELECT])->dtype
                                      : node->dtype;
        if (node->count && runner_fast(node, from, values, in, n))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            if (node->op == EXPR_CONSTANT) {
                values[i] = (uint64_t)node->value;
            } else if (node->op == EXPR_LOAD) {
                values[i] = inputs[node->value][i];
            } else if (node->op == EXPR_AXIS) {
                values[i] = (uint64_t)runner->axes[node->value];
            } else if (node->op == EXPR_DIM) {
                values[i] = (uint64_t)dim_value;
            } else {
                for (uint32_t j = 0; j < node->count && j < 3; j++)
                    arguments[j] = in[j][i];
                if (!expr_eval_op(node->op, node->dtype, from, arguments, &values[i]))
                    return false;
            }
        }
    }
    memcpy(out, runner->values[expr_walk_position(&runner->walk, root)], n * sizeof *out);
    return true;
}

#endif

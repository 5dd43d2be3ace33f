/* Scalar expressions: the one place where elementwise semantics live. Shared by Definitions, prologues,
 * epilogues and Kernel IR. A pool holds hash-consed nodes, so equal expressions are the same number; building
 * simplifies what is exactly the same for every input (constants of integer type, x + 0, x * 1 on integers,
 * select with a known condition, index division by ranges), never float algebra.
 *
 * CONVERT, stated for every pair of types: float to narrower float rounds to nearest even, overflow to
 * infinity (to the largest value for the types without infinity when `saturate` was asked for by the
 * operator, done by its Definition); float to integer truncates, out of range and NaN saturate (NaN gives 0);
 * float to bool is x != 0 (NaN is true); integer to narrower integer wraps; integer to float rounds to
 * nearest even; bool to number is 0 or 1. */
#ifndef GPUCC_IR_EXPR_H
#define GPUCC_IR_EXPR_H

#include "ir/dims.h"
#include "ir/types.h"

typedef uint32_t expr; /* 0: none */

enum expr_op {
    EXPR_NONE,
#define EXPR(name, arguments, class, printed) EXPR_##name,
#include "ir/expr.def"
#undef EXPR
    EXPR_COUNT
};

enum expr_class {
    EXPR_LEAF,
    EXPR_ARITHMETIC,
    EXPR_LOGIC,
    EXPR_COMPARE,
    EXPR_CONVERSION,
    EXPR_FUNCTION,
    EXPR_KERNEL
};

struct expr_node {
    enum expr_op op;
    enum dtype dtype;
    uint16_t lanes; /* 1 everywhere but in Kernel IR */
    uint16_t count; /* arguments */
    dim extent;     /* AXIS */
    int64_t value;  /* as expr.def says */
    const expr *arguments;
};

struct exprs {
    struct arena *arena;
    struct dims *dims;
    VEC(struct expr_node) nodes; /* node 0 is unused */
    uint32_t *slots;
    uint32_t slot_count;
};

void exprs_init(struct exprs *pool, struct arena *arena, struct dims *dims);
static inline const struct expr_node *expr_at(const struct exprs *pool, expr e)
{
    return &pool->nodes.items[e];
}
enum expr_class expr_class_of(enum expr_op op);
const char *expr_op_name(enum expr_op op);

/* The general builder; all others call it. Checks operand types by assert: callers are our own code. */
expr expr_make(struct exprs *pool, const struct expr_node *node);

expr expr_int(struct exprs *pool, enum dtype dtype, int64_t value); /* integer or bool constant, wrapped */
expr expr_float(struct exprs *pool, enum dtype dtype,
                double value);                      /* rounded to F32 or F64 (others: by CONVERT's rule) */
expr expr_index(struct exprs *pool, int64_t value); /* an i64 constant */
expr expr_dim(struct exprs *pool, dim d);           /* a constant when the dim is one */
expr expr_axis(struct exprs *pool, uint32_t axis, dim extent); /* 0 when the extent is the constant 1 */
expr expr_load(struct exprs *pool, uint32_t buffer, enum dtype dtype, uint32_t rank, const expr *indices);
expr expr_load_or(struct exprs *pool, uint32_t buffer, enum dtype dtype, uint32_t rank, const expr *indices,
                  expr otherwise);
expr expr_reduced(struct exprs *pool, uint32_t which, enum dtype dtype);
expr expr_unary(struct exprs *pool, enum expr_op op, expr a);
expr expr_binary(struct exprs *pool, enum expr_op op, expr a, expr b);
expr expr_fma(struct exprs *pool, expr a, expr b, expr c);
expr expr_select(struct exprs *pool, expr condition, expr then, expr otherwise);
expr expr_convert(struct exprs *pool, enum dtype to,
                  expr a); /* the argument itself when the type is the same */
expr expr_bitcast(struct exprs *pool, enum dtype to, expr a);

/* The type in which arithmetic on elements of a storage type is done: f16 and bf16 in f32, small integers in
 * i32/u32, bool in bool. */
enum dtype compute_dtype(enum dtype storage);

bool expr_constant_int(const struct exprs *pool, expr e, int64_t *value);
bool expr_constant_float(const struct exprs *pool, expr e, double *value);
/* Bounds of an i64 index expression from constants, axes' extents and dims' ranges; false: nothing is known.
 */
bool expr_index_range(const struct exprs *pool, expr e, int64_t *low, int64_t *high);
/* The same as dims, for all values of the symbols; false: not known. */
bool expr_index_bounds(struct exprs *pool, expr e, dim *low, dim *high);
/* The two are equal by algebra, whatever their form; false also where that is not found out. */
bool expr_index_equal(struct exprs *pool, expr a, expr b);

/* A copy with each leaf replaced: call-back returns the new expression, or 0 to keep the leaf. Arguments of
 * LOAD are rewritten before the call-back sees the load. `into` may be another pool. */
expr expr_rewrite(struct exprs *into, const struct exprs *from, expr e,
                  expr (*leaf)(void *user, struct exprs *into, const struct expr_node *node,
                               const expr *arguments),
                  void *user);

/* Replaces FUNCTIONs (and conversions that no machine does exactly: f16, bf16, f8, f4, saturating float to
 * integer) by arithmetic: same rounding on every executor. Accuracy in ulp: docs/kernel-ir.md.
 *
 * What stays after expr_expand, and every executor does natively: integer or bool to integer (wrapping),
 * integer or bool to f32 and f64 (round to nearest even), f32 to f64, f64 to f32 (nearest even), and f32 or
 * f64 to i32, u32, i64, u64 of values that a select has proven in range; BITCAST; integer DIV and REMAINDER
 * whose divisor is neither 0 nor -1; float REMAINDER and every FUNCTION are gone. SHIFT by the width or more,
 * MIN and MAX of floats keep their stated results and are the executor's duty. */
expr expr_expand(struct exprs *pool, expr e);
/* The same, but what expr_is_call says stays, for a printer that defines and calls functions. */
expr expr_expand_inline(struct exprs *pool, expr e);
/* A FUNCTION, or a conversion from or to a float type in which nothing computes; no argument is a constant. */
bool expr_is_call(const struct exprs *pool, const struct expr_node *node);
/* Estimated cost of one evaluation in simple operations, loads excluded; each shared node once. */
uint32_t expr_cost(const struct exprs *pool, expr e);
void expr_print(const struct exprs *pool, expr e, struct text *out);

/* An i64 index as  offset + sum of coefficient[axis] * axis, coefficients free of axes. False: not affine (a
 * division, a load, a product of axes). Coefficients and offset are expressions over constants and DIMs. */
struct affine {
    expr offset;
    uint32_t count;     /* axes 0 .. count-1 */
    expr *coefficients; /* [count], never 0: the constant zero where the axis is absent */
};
bool expr_affine(struct exprs *pool, expr index, uint32_t axis_count, struct affine *out);

#endif

/* From a Definition's expressions to Kernel IR: axes become the kernel's variables, loads become ELEMENTs at
 * a flat index, functions are expanded. A load that may be out of range becomes ELEMENT_OR under the AND of
 * those range tests that ranges do not decide; each index is simplified by the extents of the variables it is
 * made of. */
#include "codegen/kernel_ir.h"
#include "ir/definition.h"

/* A stride, by name where the buffer is a parameter of a kernel that people read. */
static expr stride_of(const struct lowering *lowering, uint32_t buffer, dim stride, int axis)
{
    struct kernel *kernel = lowering->kernel;
    const uint32_t memory = lowering->memories ? lowering->memories[buffer] : UINT32_MAX;
    if (!kernel->calls_functions || memory == UINT32_MAX || memory >= kernel->global_count)
        return kernel_dim(kernel, stride);
    const char *label = kernel->memories.items[memory].label;
    return kernel_size(kernel, stride, arena_printf(kernel->pool->arena, "%s_stride_%d", label, axis));
}

/* Row-major: sum of index times the product of the dims behind it. */
expr lower_index(const struct lowering *lowering, uint32_t buffer, const expr *indices)
{
    struct exprs *pool = lowering->kernel->pool;
    const struct tensor_type *type = &lowering->definition->buffers.items[buffer].type;
    expr flat = expr_index(pool, 0);
    dim stride = dim_constant(pool->dims, 1);
    for (int i = type->rank - 1; i >= 0; i--) {
        const expr scaled = expr_binary(pool, EXPR_MUL, indices[i], stride_of(lowering, buffer, stride, i));
        flat = expr_binary(pool, EXPR_ADD, flat, scaled);
        stride = dim_mul(pool->dims, stride, type->dims[i]);
    }
    return flat;
}

/* True where every index is inside its dim. */
static expr inside(const struct lowering *lowering, const struct tensor_type *type, const expr *indices)
{
    struct exprs *pool = lowering->kernel->pool;
    const expr zero = expr_index(pool, 0);
    expr all = expr_int(pool, DTYPE_BOOL, 1);
    for (int i = 0; i < type->rank; i++) {
        const expr limit = kernel_dim(lowering->kernel, type->dims[i]);
        all = expr_binary(pool, EXPR_AND, all, expr_binary(pool, EXPR_LESS_EQUAL, zero, indices[i]));
        all = expr_binary(pool, EXPR_AND, all, expr_binary(pool, EXPR_LESS, indices[i], limit));
    }
    return all;
}

static expr lower_load(const struct lowering *lowering, const struct expr_node *node, const expr *arguments)
{
    struct kernel *kernel = lowering->kernel;
    const uint32_t buffer = (uint32_t)node->value, memory = lowering->memories[buffer];
    const struct tensor_type *type = &lowering->definition->buffers.items[buffer].type;
    const bool guarded = node->op == EXPR_LOAD_OR;
    const expr condition = guarded ? inside(lowering, type, arguments) : 0;
    if (memory == UINT32_MAX) {
        const expr value = lowering->value(lowering->user, buffer, (uint32_t)type->rank, arguments);
        return guarded ? expr_select(kernel->pool, condition, value, arguments[type->rank]) : value;
    }
    if (kernel->memories.items[memory].space == MEMORY_GLOBAL)
        kernel->memories.items[memory].read = true;
    /* A LOAD with one index has it flat, whatever the buffer's rank (strategies merge axes that way). */
    const expr index = !guarded && node->count == 1 ? arguments[0] : lower_index(lowering, buffer, arguments);
    return guarded ? kernel_element_or(kernel, memory, condition, index, arguments[type->rank], 1)
                   : kernel_element(kernel, memory, index, 1);
}

static expr lower_leaf(void *user, struct exprs *into, const struct expr_node *node, const expr *arguments)
{
    const struct lowering *lowering = user;
    (void)into;
    switch (node->op) {
    case EXPR_AXIS:
        return lowering->axes[node->value];
    case EXPR_REDUCED:
        return lowering->reduced[node->value];
    case EXPR_DIM:
        return kernel_dim(lowering->kernel, (dim)node->value);
    case EXPR_LOAD:
    case EXPR_LOAD_OR:
        return lower_load(lowering, node, arguments);
    default:
        return 0;
    }
}

expr lower_expr(const struct lowering *lowering, expr e)
{
    struct lowering copy = *lowering;
    struct exprs *pool = lowering->kernel->pool;
    const expr lowered = expr_rewrite(pool, lowering->definition->pool, e, lower_leaf, &copy);
    return lowering->kernel->calls_functions ? expr_expand_inline(pool, lowered) : expr_expand(pool, lowered);
}

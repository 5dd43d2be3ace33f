/* Kernels as data: a new kernel, its memories and variables, and the expressions that only Kernel IR has.
 *
 * A kernel owns its pool of expressions. Its dims table is the graph's: dims are parameters, and those that
 * its statements use are listed in order of first use (kernel_note), whatever simplification made of them. */
#include "codegen/kernel_ir.h"

#include "ir/support/checked.h"

#include <assert.h>
#include <string.h>

enum { SCRATCH_ALIGNMENT = 64 };

struct kernel *kernel_new(struct arena *arena, struct dims *dims)
{
    struct kernel *kernel = arena_new(arena, struct kernel);
    kernel->pool = arena_new(arena, struct exprs);
    exprs_init(kernel->pool, arena, dims);
    const struct kernel_variable unused = {0};
    vec_push(arena, &kernel->variables, unused);
    const dim one = dim_constant(dims, 1);
    for (int i = 0; i < 3; i++) {
        kernel->grid[i] = one;
        kernel->block[i] = 1;
    }
    kernel->work = one;
    kernel->index_bits = 64;
    return kernel;
}

uint32_t kernel_memory_add(struct kernel *kernel, const struct kernel_memory *memory)
{
    struct kernel_memory copy = *memory;
    if (!copy.lanes)
        copy.lanes = 1;
    vec_push(kernel->pool->arena, &kernel->memories, copy);
    if (copy.space == MEMORY_GLOBAL) {
        assert(kernel->global_count == kernel->memories.count - 1);
        kernel->global_count++;
    }
    uint64_t bytes;
    if (copy.space == MEMORY_SCRATCH && dtype_bytes(copy.dtype, copy.count, &bytes))
        kernel->scratch_bytes += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    return kernel->memories.count - 1;
}

uint32_t kernel_tensor_map_add(struct kernel *kernel, const struct kernel_tensor_map *map, const char *label)
{
    struct kernel_tensor_map copy = *map;
    copy.memory =
        kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_TENSOR_MAP,
                                                          .dtype = kernel->memories.items[map->buffer].dtype,
                                                          .count = 1,
                                                          .label = label});
    kernel->memories.items[map->buffer].read = true;
    vec_push(kernel->pool->arena, &kernel->tensor_maps, copy);
    return copy.memory;
}

uint32_t kernel_variable_add(struct kernel *kernel, enum dtype dtype, uint16_t lanes, bool mutable,
                             const char *label)
{
    const struct kernel_variable variable = {
        .dtype = dtype, .lanes = lanes, .mutable = mutable, .label = label};
    vec_push(kernel->pool->arena, &kernel->variables, variable);
    return kernel->variables.count - 1;
}

static expr make(const struct kernel *kernel, enum expr_op op, enum dtype dtype, uint16_t lanes,
                 int64_t value, uint16_t count, const expr *arguments)
{
    const struct expr_node node = {
        .op = op, .dtype = dtype, .lanes = lanes, .value = value, .count = count, .arguments = arguments};
    return expr_make(kernel->pool, &node);
}

expr kernel_variable(const struct kernel *kernel, uint32_t variable)
{
    const struct kernel_variable *v = &kernel->variables.items[variable];
    const struct expr_node node = {
        .op = EXPR_VARIABLE, .dtype = v->dtype, .lanes = v->lanes, .extent = v->extent, .value = variable};
    return expr_make(kernel->pool, &node);
}

expr kernel_element(const struct kernel *kernel, uint32_t memory, expr index, uint16_t lanes)
{
    const struct kernel_memory *m = &kernel->memories.items[memory];
    const uint16_t width = m->lanes > 1 ? m->lanes : lanes;
    return make(kernel, EXPR_ELEMENT, m->dtype, width, memory, 1, &index);
}

expr kernel_element_or(const struct kernel *kernel, uint32_t memory, expr condition, expr index,
                       expr otherwise, uint16_t lanes)
{
    int64_t known;
    if (expr_constant_int(kernel->pool, condition, &known))
        return known ? kernel_element(kernel, memory, index, lanes) : otherwise;
    const expr arguments[] = {condition, index, otherwise};
    return make(kernel, EXPR_ELEMENT_OR, kernel->memories.items[memory].dtype, lanes, memory, 3, arguments);
}

expr kernel_broadcast(const struct kernel *kernel, expr scalar, uint16_t lanes)
{
    return lanes == 1
               ? scalar
               : make(kernel, EXPR_BROADCAST, expr_at(kernel->pool, scalar)->dtype, lanes, 0, 1, &scalar);
}

expr kernel_lane(const struct kernel *kernel, expr vector, uint32_t lane)
{
    const struct expr_node *node = expr_at(kernel->pool, vector);
    if (node->lanes == 1)
        return vector;
    if (node->op == EXPR_BROADCAST)
        return node->arguments[0];
    if (node->op == EXPR_PACK)
        return node->arguments[lane];
    return make(kernel, EXPR_LANE, node->dtype, 1, lane, 1, &vector);
}

expr kernel_pack(const struct kernel *kernel, const expr *scalars, uint16_t lanes)
{
    return lanes == 1
               ? scalars[0]
               : make(kernel, EXPR_PACK, expr_at(kernel->pool, scalars[0])->dtype, lanes, 0, lanes, scalars);
}

static expr hardware_index(const struct kernel *kernel, enum expr_op op, uint32_t axis, dim extent)
{
    const struct expr_node node = {.op = op, .dtype = DTYPE_I64, .lanes = 1, .extent = extent, .value = axis};
    return dim_equals_constant(kernel->pool->dims, extent, 1) ? expr_index(kernel->pool, 0)
                                                              : expr_make(kernel->pool, &node);
}

expr kernel_thread_index(const struct kernel *kernel, uint32_t axis, dim extent)
{
    return hardware_index(kernel, EXPR_THREAD_INDEX, axis, extent);
}

expr kernel_block_index(const struct kernel *kernel, uint32_t axis, dim extent)
{
    return hardware_index(kernel, EXPR_BLOCK_INDEX, axis, extent);
}

expr kernel_dim(struct kernel *kernel, dim d)
{
    return expr_dim(kernel->pool, dim_current(kernel->pool->dims, d));
}

expr kernel_named(struct kernel *kernel, int64_t value, const char *label)
{
    uint32_t tag = 0;
    while (tag < kernel->constants.count && (kernel->constants.items[tag].value != value ||
                                             strcmp(kernel->constants.items[tag].label, label) != 0))
        tag++;
    if (tag == kernel->constants.count) {
        const struct kernel_constant constant = {.label = label, .value = value};
        vec_push(kernel->pool->arena, &kernel->constants, constant);
    }
    /* A constant's extent has no other use: with it the named one is a node of its own. */
    const struct expr_node node = {
        .op = EXPR_CONSTANT, .dtype = DTYPE_I64, .lanes = 1, .extent = (dim)(tag + 1), .value = value};
    return expr_make(kernel->pool, &node);
}

expr kernel_size(struct kernel *kernel, dim d, const char *label)
{
    int64_t value;
    const expr size = kernel_dim(kernel, d);
    if (expr_constant_int(kernel->pool, size, &value))
        return value < 2 ? size : kernel_named(kernel, value, label); /* 0 and 1 need no name */
    const dim parameter = (dim)expr_at(kernel->pool, size)->value;
    for (uint32_t i = 0; i < kernel->dim_labels.count; i++)
        if (kernel->dim_labels.items[i].d == parameter)
            return size;
    const struct kernel_dim_label row = {.d = parameter, .label = label};
    vec_push(kernel->pool->arena, &kernel->dim_labels, row);
    return size;
}

uint32_t kernel_dim_position(const struct kernel *kernel, dim d)
{
    for (uint32_t i = 0; i < kernel->computed.count; i++)
        if (kernel->computed.items[i].d == d)
            return kernel->dims.count + i;
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        if (kernel->dims.items[i] == d)
            return i;
    return UINT32_MAX;
}

static void note_dim(struct kernel *kernel, dim d)
{
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        if (kernel->dims.items[i] == d)
            return;
    vec_push(kernel->pool->arena, &kernel->dims, d);
}

/* Each node of the pool is looked at once in a kernel's life; first use is first in the order of arguments.
 */
void kernel_note(struct kernel *kernel, expr e)
{
    struct exprs *pool = kernel->pool;
    while (kernel->noted.count < pool->nodes.count)
        vec_push(pool->arena, &kernel->noted, 0);
    VEC(expr) stack = {0};
    if (e)
        vec_push(pool->arena, &stack, e);
    while (stack.count) {
        const expr next = stack.items[--stack.count];
        if (kernel->noted.items[next])
            continue;
        kernel->noted.items[next] = 1;
        const struct expr_node *node = expr_at(pool, next);
        if (node->op == EXPR_DIM)
            note_dim(kernel, (dim)node->value);
        for (uint32_t i = node->count; i > 0; i--)
            vec_push(pool->arena, &stack, node->arguments[i - 1]);
    }
}

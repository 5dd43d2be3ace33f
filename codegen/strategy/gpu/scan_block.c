/* A scan of one tile by the threads of a block: each takes a few neighbouring items, the threads' totals are
 * scanned in shared memory (log2 steps, each thread adds what stands 2^i before it), and each thread goes
 * over its items again. */
#include "codegen/strategy/gpu/ordered.h"

void block_scan_memories(struct block_scan *scan)
{
    for (uint32_t r = 0; r < scan->count; r++) {
        scan->shared[r] = kernel_memory_add(scan->kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                                  .dtype = scan->dtypes[r],
                                                                                  .lanes = 1,
                                                                                  .count = SCAN_THREADS,
                                                                                  .label = "totals",
                                                                                  .alignment = 16});
        scan->items[r] = kernel_memory_add(scan->kernel, &(struct kernel_memory){.space = MEMORY_REGISTER,
                                                                                 .dtype = scan->dtypes[r],
                                                                                 .lanes = 1,
                                                                                 .count = SCAN_ITEMS,
                                                                                 .label = "items"});
    }
}

/* Opens an unrolled loop over the thread's items, and in it the branch of those that exist. */
static struct block each_item(struct block_scan *scan, struct block *at, expr first, expr length, expr *item,
                              expr *position)
{
    struct exprs *pool = scan->kernel->pool;
    struct block body, inside;
    build_for(at, "item", expr_index(pool, 0), expr_index(pool, SCAN_ITEMS), 0, LOOP_UNROLL, &body, item);
    *position = build_declare(&body, "k", expr_binary(pool, EXPR_ADD, first, *item));
    build_if(&body, expr_binary(pool, EXPR_LESS, *position, length), &inside, NULL);
    return inside;
}

/* shared[r][thread]: the combination of the threads up to it. */
static void scan_totals(struct block_scan *scan, struct block *at)
{
    struct exprs *pool = scan->kernel->pool;
    for (int64_t distance = 1; distance < SCAN_THREADS; distance *= 2) {
        expr sums[SCAN_MOST];
        build_barrier(at);
        const expr reach = expr_index(pool, distance);
        for (uint32_t r = 0; r < scan->count; r++) {
            const expr before = kernel_element_or(scan->kernel, scan->shared[r],
                                                  expr_binary(pool, EXPR_LESS_EQUAL, reach, scan->thread),
                                                  expr_binary(pool, EXPR_SUB, scan->thread, reach),
                                                  reduce_neutral(pool, scan->ops[r], scan->dtypes[r]), 1);
            sums[r] =
                build_declare(at, "sum",
                              reduce_combine(pool, scan->ops[r], before,
                                          kernel_element(scan->kernel, scan->shared[r], scan->thread, 1)));
        }
        build_barrier(at);
        for (uint32_t r = 0; r < scan->count; r++)
            build_store(at, scan->shared[r], scan->thread, sums[r]);
    }
    build_barrier(at);
}

void block_scan_tile(struct block_scan *scan, struct block *at, expr begin, expr length)
{
    struct kernel *kernel = scan->kernel;
    struct exprs *pool = kernel->pool;
    uint32_t running[SCAN_MOST];
    expr values[SCAN_MOST], before[SCAN_MOST], after[SCAN_MOST], item, position;
    const expr first =
        build_declare(at, "first",
                      expr_binary(pool, EXPR_ADD, begin,
                                  expr_binary(pool, EXPR_MUL, scan->thread, expr_index(pool, SCAN_ITEMS))));
    for (uint32_t r = 0; r < scan->count; r++)
        running[r] = build_mutable(at, "own", reduce_neutral(pool, scan->ops[r], scan->dtypes[r]));
    struct block inside = each_item(scan, at, first, length, &item, &position);
    scan->load(scan, &inside, position, values);
    for (uint32_t r = 0; r < scan->count; r++) {
        const expr value = build_declare(&inside, "x", values[r]);
        build_store(&inside, scan->items[r], item, value);
        build_assign(&inside, running[r],
                     reduce_combine(pool, scan->ops[r], kernel_variable(kernel, running[r]), value));
    }
    build_barrier(at); /* the tile before has read its totals */
    for (uint32_t r = 0; r < scan->count; r++)
        build_store(at, scan->shared[r], scan->thread, kernel_variable(kernel, running[r]));
    scan_totals(scan, at);
    for (uint32_t r = 0; r < scan->count; r++) {
        const expr carry = kernel_variable(kernel, scan->carries[r]);
        const expr others = kernel_element_or(kernel, scan->shared[r],
                                              expr_binary(pool, EXPR_LESS, expr_index(pool, 0), scan->thread),
                                              expr_binary(pool, EXPR_SUB, scan->thread, expr_index(pool, 1)),
                                              reduce_neutral(pool, scan->ops[r], scan->dtypes[r]), 1);
        build_assign(at, running[r], reduce_combine(pool, scan->ops[r], carry, others));
        const expr all = kernel_element(kernel, scan->shared[r], expr_index(pool, SCAN_THREADS - 1), 1);
        build_assign(at, scan->carries[r], reduce_combine(pool, scan->ops[r], carry, all));
    }
    if (!scan->store)
        return;
    inside = each_item(scan, at, first, length, &item, &position);
    for (uint32_t r = 0; r < scan->count; r++) {
        before[r] = build_declare(&inside, "before", kernel_variable(kernel, running[r]));
        const expr value = kernel_element(kernel, scan->items[r], item, 1);
        build_assign(&inside, running[r], reduce_combine(pool, scan->ops[r], before[r], value));
        after[r] = kernel_variable(kernel, running[r]);
    }
    scan->store(scan, &inside, position, before, after);
}

/* Scatters on a GPU. A thread goes through the updates in their order, so that equal indices combine as the
 * Definition says and equal inputs give equal bits. Where the parallel axes have too few points for the
 * machine, the elements are dealt out: every point has as many owners as OWNERS, each of which takes the
 * updates of those elements whose number is its own modulo OWNERS. Owners of a warp read the same index. */
#include "codegen/strategy/gpu/ordered.h"

enum { THREADS = 256, OWNERS = 4096 };
static const double enough_points = 8192;

/* The store, under its condition and that of the owner. */
static void store_owned(struct gpu_kernel *k, struct block *at, const struct nest_store *store,
                        const expr *axes, expr owner)
{
    struct exprs *pool = k->kernel->pool;
    const struct lowering lowering = gpu_lowering(k, axes, NULL);
    const int rank = lowering.definition->buffers.items[store->buffer].type.rank;
    expr indices[MAX_RANK];
    struct block where = *at, owned;
    if (store->condition)
        build_if(at, build_declare(at, "inside", lower_expr(&lowering, store->condition)), &where, NULL);
    for (int i = 0; i < rank; i++)
        indices[i] = lower_expr(&lowering, store->indices[i]);
    const expr place = build_declare(&where, "place", lower_index(&lowering, store->buffer, indices));
    owned = where;
    if (owner) {
        const expr whose = expr_binary(pool, EXPR_INDEX_MOD, place, expr_index(pool, OWNERS));
        build_if(&where, expr_binary(pool, EXPR_EQUAL, whose, owner), &owned, NULL);
    }
    build_store(&owned, k->memories[store->buffer], place, lower_expr(&lowering, store->value));
}

void gpu_build_scatter(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct gpu_kernel k;
    expr axes[MAX_AXES] = {0};
    uint32_t order[MAX_AXES];
    gpu_kernel_begin(&k, context, "gpu_plain", number, 1, NULL);
    struct kernel *kernel = k.kernel;
    struct exprs *pool = kernel->pool;
    const dim points = gpu_extent_product(context, nest, 0, nest->rank);
    const dim dealt = dim_mul(pool->dims, points, dim_constant(pool->dims, OWNERS));
    const bool deals = dealt && gpu_size(context, points) < enough_points;
    const dim threads = deals ? dealt : points;
    kernel->memories.items[k.memories[nest->stores[0].buffer]].read = true;
    kernel->summary =
        gpu_summary(context, deals ? "Scatter, elements dealt out" : "Scatter, a thread a point", number);
    kernel->config = deals ? "scatter, owners=4096" : "scatter, threads=256";
    kernel->grid[0] = dim_ceil_div(pool->dims, threads, dim_constant(pool->dims, THREADS));
    kernel->block[0] = THREADS;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside, body;
    const expr flat = gpu_flat_thread(&k, &top, "thread", THREADS);
    build_if(&top, expr_binary(pool, EXPR_LESS, flat, kernel_dim(kernel, threads)), &inside, NULL);
    expr point = flat, owner = 0;
    if (deals) {
        owner = build_declare(&inside, "owner",
                              expr_binary(pool, EXPR_INDEX_MOD, flat, expr_index(pool, OWNERS)));
        point = build_declare(&inside, "point",
                              expr_binary(pool, EXPR_INDEX_DIV, flat, expr_index(pool, OWNERS)));
    }
    for (uint32_t i = 0; i < nest->rank; i++)
        order[i] = i;
    gpu_split_position(&k, &inside, nest, point, order, nest->rank, "i", axes);
    build_for(&inside, "k", expr_index(pool, 0), kernel_dim(kernel, nest->extents[nest->rank]), 0,
              LOOP_SERIAL, &body, &axes[nest->rank]);
    store_owned(&k, &body, &nest->stores[0], axes, owner);
    gpu_kernel_end(&k, out);
}

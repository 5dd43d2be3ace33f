/* One map nest that stores side by side along its last axis what it loads side by side along another: the
 * load goes through a tile of 32 x 32 elements in shared memory (and a column more, so that neither way of
 * reading it meets one bank), so that both sides move whole transactions. Everything else of the nest is
 * computed at the store. */
#include <math.h>

#include "codegen/strategy/gpu/gpu_common.h"

enum { TILE = 32, STEP = 8 };

struct turn {
    const struct nest *nest;
    expr load;         /* the one that is turned */
    uint32_t from, to; /* axes: along which it is read, stored */
};

/* The only load of its buffer, whose last index is an axis other than the last one, which it also uses. */
static void find_load(const struct strategy_context *context, struct turn *turn, expr e, uint32_t *loads,
                      unsigned char *visited)
{
    const struct definition *body = &context->group->body;
    if (visited[e])
        return;
    visited[e] = 1;
    const struct expr_node *node = expr_at(body->pool, e);
    if (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR)
        loads[node->value]++;
    if (node->op == EXPR_LOAD && node->count > 1) {
        const struct expr_node *last = expr_at(body->pool, node->arguments[node->count - 1]);
        if (last->op == EXPR_AXIS && last->value != turn->to && gpu_uses_axis(context, e, turn->to)) {
            turn->load = e;
            turn->from = (uint32_t)last->value;
        }
    }
    for (uint32_t i = 0; i < node->count; i++)
        find_load(context, turn, node->arguments[i], loads, visited);
}

static bool find_turn(const struct strategy_context *context, struct turn *turn, struct text *why)
{
    const struct definition *body = &context->group->body;
    const struct nest *nest = &body->nests.items[0];
    uint32_t loads[MAX_BUFFERS] = {0};
    *turn = (struct turn){.nest = nest};
    if (body->nests.count != 1 || nest->reduction_count || nest->rank < 2) {
        text_put(why, "not one nest without reductions, of two axes at least");
        return false;
    }
    /* The last axis that is not of size 1 by its kind. */
    turn->to = nest->rank - 1;
    while (turn->to > 0 && dim_equals_constant(body->pool->dims, nest->extents[turn->to], 1))
        turn->to--;
    unsigned char *visited = arena_new_array(context->arena, unsigned char, body->pool->nodes.count);
    for (uint32_t s = 0; s < nest->store_count; s++)
        find_load(context, turn, nest->stores[s].value, loads, visited);
    bool packed = turn->load && dtype_bits(expr_at(body->pool, turn->load)->dtype) < 8;
    if (!turn->load || loads[expr_at(body->pool, turn->load)->value] != 1 || packed) {
        text_put(why, "no load across the order of the store");
        return false;
    }
    return true;
}

static bool transpose_fits(const struct strategy_context *context, struct text *why)
{
    struct turn turn;
    return find_turn(context, &turn, why);
}

static uint32_t transpose_candidates(const struct strategy_context *context, struct config *out,
                                     uint32_t limit)
{
    (void)context;
    if (limit)
        out[0] = (struct config){.value = {TILE}};
    return limit ? 1 : 0;
}

/* Tiles that reach beyond short axes are idle there. */
static double transpose_cost(const struct strategy_context *context, const struct config *config)
{
    struct turn turn;
    struct text why;
    text_init(&why, context->arena);
    (void)config;
    if (!find_turn(context, &turn, &why))
        return 1;
    double from = gpu_size(context, turn.nest->extents[turn.from]),
           to = gpu_size(context, turn.nest->extents[turn.to]);
    const double tile = TILE;
    double used = fmin(from / tile, 1) * fmin(to / tile, 1);
    return gpu_roofline(context, 0.75 * (used > 0.01 ? used : 0.01), 0.2);
}

struct transposer {
    struct gpu_kernel k;
    struct turn turn;
    uint32_t tile;
    expr x, y; /* of the element at the store: tile[y of the load][x of the load] */
};

static expr tile_element(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    struct transposer *t = user;
    struct exprs *pool = t->k.kernel->pool;
    (void)buffer;
    (void)rank;
    (void)indices;
    expr row = expr_binary(pool, EXPR_MUL, t->x, expr_index(pool, TILE + 1));
    return kernel_element(t->k.kernel, t->tile, expr_binary(pool, EXPR_ADD, row, t->y), 1);
}

/* Four elements of a thread; `fast` and `slow`: the axes along x and y of the block. */
static struct block open_elements(struct transposer *t, struct block *at, expr first_fast, expr first_slow,
                                  uint32_t fast, uint32_t slow, expr *axes, expr *row)
{
    struct kernel *kernel = t->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body, inside;
    expr step;
    expr x = kernel_thread_index(kernel, 0, dim_constant(pool->dims, TILE));
    expr y = kernel_thread_index(kernel, 1, dim_constant(pool->dims, STEP));
    build_for(at, "step", expr_index(pool, 0), expr_index(pool, TILE), expr_index(pool, STEP), LOOP_UNROLL,
              &body, &step);
    *row = build_declare(&body, "row", expr_binary(pool, EXPR_ADD, y, step));
    axes[fast] = build_declare(&body, "fast", expr_binary(pool, EXPR_ADD, first_fast, x));
    axes[slow] = build_declare(&body, "slow", expr_binary(pool, EXPR_ADD, first_slow, *row));
    expr in_fast = expr_binary(pool, EXPR_LESS, axes[fast], kernel_dim(kernel, t->turn.nest->extents[fast]));
    expr in_slow = expr_binary(pool, EXPR_LESS, axes[slow], kernel_dim(kernel, t->turn.nest->extents[slow]));
    build_if(&body, expr_binary(pool, EXPR_AND, in_fast, in_slow), &inside, NULL);
    return inside;
}

static bool transpose_build(const struct strategy_context *context, const struct config *config,
                            struct lowered_group *out, struct text *why)
{
    struct transposer *t = arena_new(context->arena, struct transposer);
    (void)config;
    if (!find_turn(context, &t->turn, why))
        return false;
    const struct definition *body = &context->group->body;
    const struct nest *nest = t->turn.nest;
    const struct expr_node *load = expr_at(body->pool, t->turn.load);
    gpu_kernel_begin(&t->k, context, "gpu_transpose", 0, 1, NULL);
    struct kernel *kernel = t->k.kernel;
    struct exprs *pool = kernel->pool;
    struct dims *dims = pool->dims;
    uint32_t others[MAX_AXES], other_count = 0;
    dim tile = dim_constant(dims, TILE), blocks = dim_constant(dims, 1);
    for (uint32_t i = 0; i < nest->rank; i++)
        if (i != t->turn.from && i != t->turn.to) {
            others[other_count++] = i;
            blocks = dim_mul(dims, blocks, nest->extents[i]);
        }
    dim from_tiles = dim_ceil_div(dims, nest->extents[t->turn.from], tile),
        to_tiles = dim_ceil_div(dims, nest->extents[t->turn.to], tile);
    kernel->summary = gpu_summary(context, "Transposed through tiles", 0);
    kernel->config = "tile=32x32";
    kernel->grid[0] = dim_mul(dims, blocks, dim_mul(dims, from_tiles, to_tiles));
    kernel->block[0] = TILE;
    kernel->block[1] = STEP;
    t->tile = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                .dtype = load->dtype,
                                                                .lanes = 1,
                                                                .count = TILE * (TILE + 1),
                                                                .label = "tile",
                                                                .alignment = 16});
    struct block top = {.kernel = kernel, .at = &kernel->body};
    expr block = build_declare(&top, "block", kernel_block_index(kernel, 0, kernel->grid[0])),
         tiles = kernel_dim(kernel, from_tiles);
    expr side = expr_index(pool, TILE), axes[MAX_AXES] = {0};
    expr from = build_declare(
        &top, "from", expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, block, tiles), side));
    expr rest = build_declare(&top, "rest", expr_binary(pool, EXPR_INDEX_DIV, block, tiles));
    tiles = kernel_dim(kernel, to_tiles);
    expr to = build_declare(
        &top, "to", expr_binary(pool, EXPR_MUL, expr_binary(pool, EXPR_INDEX_MOD, rest, tiles), side));
    rest = build_declare(&top, "rest", expr_binary(pool, EXPR_INDEX_DIV, rest, tiles));
    gpu_split_position(&t->k, &top, nest, rest, others, other_count, "i", axes);
    expr row, x = kernel_thread_index(kernel, 0, tile);
    struct block inside = open_elements(t, &top, from, to, t->turn.from, t->turn.to, axes, &row);
    struct lowering lowering = gpu_lowering(&t->k, axes, NULL);
    expr place = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, row, expr_index(pool, TILE + 1)), x);
    build_store(&inside, t->tile, place, lower_expr(&lowering, t->turn.load));
    build_barrier(&top);
    inside = open_elements(t, &top, to, from, t->turn.to, t->turn.from, axes, &row);
    t->x = x; /* the load's row is the store's x */
    t->y = row;
    uint32_t *memories = arena_copy(context->arena, t->k.memories, body->buffers.count * sizeof *memories);
    memories[load->value] = UINT32_MAX;
    lowering.memories = memories;
    lowering.value = tile_element;
    lowering.user = t;
    for (uint32_t s = 0; s < nest->store_count; s++)
        gpu_store(&t->k, &inside, &lowering, &nest->stores[s], axes,
                  lower_expr(&lowering, nest->stores[s].value));
    gpu_kernel_end(&t->k, out);
    return true;
}

static void transpose_describe(const struct config *config, struct text *out)
{
    text_printf(out, "tile=%dx%d", (int)config->value[0], (int)config->value[0]);
}

const struct strategy gpu_transpose = {
    .name = "gpu_transpose",
    .fits = transpose_fits,
    .candidates = transpose_candidates,
    .cost = transpose_cost,
    .build = transpose_build,
    .describe = transpose_describe,
    .from_level = 1,
};

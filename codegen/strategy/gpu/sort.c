/* Sorts on a GPU. Rows that can never be longer than a block holds are sorted in shared memory by a block
 * each, bitonically, the place breaking ties. Others go through memory by digits of four bits from the lowest
 * on: for each digit the counts of every tile, their scan along the row, and each tile's keys moved to their
 * places. A moved key is turned by a digit, so that every pass is the same kernel and the last one leaves the
 * keys as they were. */
#include "codegen/strategy/gpu/ordered.h"

#include <string.h>

enum {
    THREADS = 256,
    ITEMS = 8,
    TILE = THREADS * ITEMS,
    BITS = 4,
    DIGITS = 1 << BITS,
    PARTS = THREADS / DIGITS
};
enum { LONGEST_IN_BLOCK = 2048, MOST_THREADS = 512 };

struct sort {
    struct gpu_kernel k;
    const struct strategy_context *context;
    uint32_t number;
    const struct nest *nest;
    struct lowered_group *out;
    enum dtype key, place;
    dim rows, length, taken, tiles;
    expr axes[MAX_AXES];
    uint32_t keys[2], places[2], counts; /* temporaries */
};

static struct kernel *begin(struct sort *s, const char *what, uint32_t threads)
{
    struct kernel *kernel = s->k.kernel;
    kernel->summary = gpu_summary(s->context, what, s->number);
    kernel->config = arena_printf(s->context->arena, "sort, threads=%u", (unsigned)threads);
    kernel->block[0] = threads;
    return kernel;
}

static void split_row(struct sort *s, struct block *at, expr row)
{
    uint32_t order[MAX_AXES];
    for (uint32_t i = 0; i < s->nest->rank; i++)
        order[i] = i;
    gpu_split_position(&s->k, at, s->nest, row, order, s->nest->rank, "i", s->axes);
}

static expr key_at(struct sort *s, expr position)
{
    s->axes[s->nest->rank] = position;
    const struct lowering lowering = gpu_lowering(&s->k, s->axes, NULL);
    return lower_expr(&lowering, s->nest->reductions[0].body);
}

static void store_at(struct sort *s, struct block *at, expr position, expr place)
{
    struct exprs *pool = s->k.kernel->pool;
    const expr reduced = build_declare(at, "place", expr_convert(pool, DTYPE_I64, place));
    s->axes[s->nest->rank + 1] = position;
    gpu_store_point(&s->k, at, s->number, s->axes, &reduced);
}

/* ---- in a block
 * ------------------------------------------------------------------------------------------------------ */

/* One step of the network: pairs `stride` apart, ascending where the bit `size` of the first's position is
 * clear. */
static void exchange(struct sort *s, struct block *at, expr thread, uint32_t threads, uint32_t slots,
                     uint32_t keys, uint32_t places, expr size, expr stride, expr shift)
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body, swap;
    expr pair;
    build_for(at, "pair", thread, expr_index(pool, slots / 2), expr_index(pool, threads), LOOP_SERIAL, &body,
              &pair);
    const expr group = expr_binary(pool, EXPR_SHIFT_RIGHT, pair, shift);
    const expr within =
        expr_binary(pool, EXPR_AND, pair, expr_binary(pool, EXPR_SUB, stride, expr_index(pool, 1)));
    const expr first =
        build_declare(&body, "first",
                      expr_binary(pool, EXPR_ADD,
                                  expr_binary(pool, EXPR_SHIFT_LEFT, group,
                                              expr_binary(pool, EXPR_ADD, shift, expr_index(pool, 1))),
                                  within));
    const expr second = build_declare(&body, "second", expr_binary(pool, EXPR_ADD, first, stride));
    const expr a = build_declare(&body, "a", kernel_element(kernel, keys, first, 1));
    const expr b = build_declare(&body, "b", kernel_element(kernel, keys, second, 1));
    const expr place_a = build_declare(&body, "of_a", kernel_element(kernel, places, first, 1));
    const expr place_b = build_declare(&body, "of_b", kernel_element(kernel, places, second, 1));
    const expr behind = expr_binary(pool, EXPR_OR, expr_binary(pool, EXPR_LESS, b, a),
                                    expr_binary(pool, EXPR_AND, expr_binary(pool, EXPR_EQUAL, a, b),
                                                expr_binary(pool, EXPR_LESS, place_b, place_a)));
    const expr ascends =
        expr_binary(pool, EXPR_EQUAL, expr_binary(pool, EXPR_AND, first, size), expr_index(pool, 0));
    build_if(&body, expr_binary(pool, EXPR_EQUAL, behind, ascends), &swap, NULL);
    build_store(&swap, keys, first, b);
    build_store(&swap, keys, second, a);
    build_store(&swap, places, first, place_b);
    build_store(&swap, places, second, place_a);
}

static void build_in_block(struct sort *s, uint32_t slots)
{
    const uint32_t threads = slots / 2 < WARP ? WARP : slots / 2 > MOST_THREADS ? MOST_THREADS : slots / 2;
    gpu_kernel_begin(&s->k, s->context, "gpu_plain", s->number, 1, NULL);
    struct kernel *kernel = begin(s, "Sort, a block a row", threads);
    struct exprs *pool = kernel->pool;
    uint32_t memories[2];
    for (uint32_t m = 0; m < 2; m++)
        memories[m] = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                        .dtype = m ? DTYPE_I32 : s->key,
                                                                        .lanes = 1,
                                                                        .count = slots,
                                                                        .label = m ? "places" : "keys",
                                                                        .alignment = 16});
    kernel->grid[0] = s->rows;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body, inside, inner;
    const expr thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, threads)));
    split_row(s, &top, build_declare(&top, "row", kernel_block_index(kernel, 0, s->rows)));
    const expr length = kernel_dim(kernel, s->length), step = expr_index(pool, threads);
    expr i, level, down;
    build_for(&top, "i", thread, expr_index(pool, slots), step, LOOP_SERIAL, &body, &i);
    build_store(&body, memories[0], i, expr_int(pool, s->key, -1)); /* behind all others, by its place */
    build_store(&body, memories[1], i, expr_convert(pool, DTYPE_I32, i));
    build_if(&body, expr_binary(pool, EXPR_LESS, i, length), &inside, NULL);
    build_store(&inside, memories[0], i, key_at(s, i));
    int64_t levels = 0;
    while (INT64_C(1) << levels < (int64_t)slots)
        levels++;
    build_for(&top, "level", expr_index(pool, 1), expr_index(pool, levels + 1), 0, LOOP_SERIAL, &body,
              &level);
    const expr one = expr_index(pool, 1);
    const expr size = build_declare(&body, "size", expr_binary(pool, EXPR_SHIFT_LEFT, one, level));
    build_for(&body, "down", one, expr_binary(pool, EXPR_ADD, level, one), 0, LOOP_SERIAL, &inner, &down);
    const expr shift = build_declare(&inner, "shift", expr_binary(pool, EXPR_SUB, level, down));
    const expr stride = build_declare(&inner, "stride", expr_binary(pool, EXPR_SHIFT_LEFT, one, shift));
    build_barrier(&inner);
    exchange(s, &inner, thread, threads, slots, memories[0], memories[1], size, stride, shift);
    build_barrier(&top);
    build_for(&top, "k", thread, kernel_dim(kernel, s->taken), step, LOOP_SERIAL, &body, &i);
    store_at(s, &body, i, kernel_element(kernel, memories[1], i, 1));
    gpu_kernel_end(&s->k, s->out);
}

/* ---- through memory
 * -------------------------------------------------------------------------------------------------- */

/* A thread for each of `length` positions of each row. */
static struct block begin_points(struct sort *s, const char *what, dim length, expr *row, expr *position)
{
    struct kernel *kernel = begin(s, what, THREADS);
    struct exprs *pool = kernel->pool;
    const dim total = dim_mul(pool->dims, s->rows, length);
    kernel->grid[0] = dim_ceil_div(pool->dims, total, dim_constant(pool->dims, THREADS));
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside;
    const expr start =
        expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, DIM_NONE), expr_index(pool, THREADS));
    const expr point =
        build_declare(&top, "point",
                      expr_binary(pool, EXPR_ADD, start,
                                  kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS))));
    build_if(&top, expr_binary(pool, EXPR_LESS, point, kernel_dim(kernel, total)), &inside, NULL);
    *row =
        build_declare(&inside, "row", expr_binary(pool, EXPR_INDEX_DIV, point, kernel_dim(kernel, length)));
    *position =
        build_declare(&inside, "at", expr_binary(pool, EXPR_INDEX_MOD, point, kernel_dim(kernel, length)));
    split_row(s, &inside, *row);
    return inside;
}

static expr place_in_row(struct sort *s, expr row, expr position)
{
    struct exprs *pool = s->k.kernel->pool;
    return expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, row, kernel_dim(s->k.kernel, s->length)),
                       position);
}

static void build_keys(struct sort *s)
{
    expr row, position;
    gpu_kernel_begin_reductions(&s->k, s->context, "gpu_plain", s->number, NULL);
    const uint32_t keys = gpu_temporary_parameter(&s->k, s->keys[0], s->key, "keys");
    const uint32_t places = gpu_temporary_parameter(&s->k, s->places[0], s->place, "places");
    struct block at = begin_points(s, "Keys", s->length, &row, &position);
    const expr to = place_in_row(s, row, position);
    build_store(&at, keys, to, key_at(s, position));
    build_store(&at, places, to, expr_convert(s->k.kernel->pool, s->place, position));
    gpu_kernel_end(&s->k, s->out);
}

static void build_results(struct sort *s)
{
    expr row, position;
    gpu_kernel_begin_stores(&s->k, s->context, "gpu_plain", s->number);
    const uint32_t places = gpu_temporary_parameter(&s->k, s->places[0], s->place, "places");
    struct block at = begin_points(s, "Results of a sort", s->taken, &row, &position);
    store_at(s, &at, position, kernel_element(s->k.kernel, places, place_in_row(s, row, position), 1));
    gpu_kernel_end(&s->k, s->out);
}

/* A block's tile, and its threads' counts of each digit: counters[digit * THREADS + thread]. */
struct tile {
    struct block at;
    uint32_t counters, sums;
    expr thread, row, number, first; /* number: of the tile in its row; first: of the thread's items */
};

static void begin_tile(struct sort *s, const char *what, uint32_t keys, struct tile *t)
{
    struct kernel *kernel = begin(s, what, THREADS);
    struct exprs *pool = kernel->pool;
    const dim blocks = dim_mul(pool->dims, s->rows, s->tiles);
    struct block body, inside;
    expr item;
    kernel->grid[0] = blocks;
    t->counters = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                    .dtype = DTYPE_I32,
                                                                    .lanes = 1,
                                                                    .count = DIGITS * THREADS,
                                                                    .label = "counters",
                                                                    .alignment = 16});
    t->sums = kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_SHARED,
                                                                .dtype = DTYPE_I32,
                                                                .lanes = 1,
                                                                .count = THREADS,
                                                                .label = "sums",
                                                                .alignment = 16});
    t->at = (struct block){.kernel = kernel, .at = &kernel->body};
    t->thread =
        build_declare(&t->at, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, THREADS)));
    const expr block = build_declare(&t->at, "block", kernel_block_index(kernel, 0, blocks));
    t->row =
        build_declare(&t->at, "row", expr_binary(pool, EXPR_INDEX_DIV, block, kernel_dim(kernel, s->tiles)));
    t->number =
        build_declare(&t->at, "tile", expr_binary(pool, EXPR_INDEX_MOD, block, kernel_dim(kernel, s->tiles)));
    t->first = build_declare(&t->at, "first",
                             expr_binary(pool, EXPR_ADD,
                                         expr_binary(pool, EXPR_MUL, t->number, expr_index(pool, TILE)),
                                         expr_binary(pool, EXPR_MUL, t->thread, expr_index(pool, ITEMS))));
    build_for(&t->at, "digit", expr_index(pool, 0), expr_index(pool, DIGITS), 0, LOOP_UNROLL, &body, &item);
    build_store(
        &body, t->counters,
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, item, expr_index(pool, THREADS)), t->thread),
        expr_int(pool, DTYPE_I32, 0));
    build_for(&t->at, "item", expr_index(pool, 0), expr_index(pool, ITEMS), 0, LOOP_UNROLL, &body, &item);
    const expr position = build_declare(&body, "at", expr_binary(pool, EXPR_ADD, t->first, item));
    build_if(&body, expr_binary(pool, EXPR_LESS, position, kernel_dim(kernel, s->length)), &inside, NULL);
    const expr key = kernel_element(kernel, keys, place_in_row(s, t->row, position), 1);
    const expr digit = expr_binary(pool, EXPR_AND, key, expr_int(pool, s->key, DIGITS - 1));
    const expr counter =
        build_declare(&inside, "counter",
                      expr_binary(pool, EXPR_ADD,
                                  expr_binary(pool, EXPR_MUL, expr_convert(pool, DTYPE_I64, digit),
                                              expr_index(pool, THREADS)),
                                  t->thread));
    build_store(&inside, t->counters, counter,
                expr_binary(pool, EXPR_ADD, kernel_element(kernel, t->counters, counter, 1),
                            expr_int(pool, DTYPE_I32, 1)));
}

/* sums[thread]: of its digit (thread / PARTS), the counters of DIGITS threads. Barriers on both sides. */
static void sum_parts(struct sort *s, struct tile *t)
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body;
    expr i;
    build_barrier(&t->at);
    const uint32_t sum = build_mutable(&t->at, "sum", expr_int(pool, DTYPE_I32, 0));
    build_for(&t->at, "i", expr_index(pool, 0), expr_index(pool, DIGITS), 0, LOOP_UNROLL, &body, &i);
    const expr at =
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, t->thread, expr_index(pool, DIGITS)), i);
    build_assign(&body, sum,
                 expr_binary(pool, EXPR_ADD, kernel_variable(kernel, sum),
                             kernel_element(kernel, t->counters, at, 1)));
    build_store(&t->at, t->sums, t->thread, kernel_variable(kernel, sum));
    build_barrier(&t->at);
}

/* Of the digit's counts along the row's tiles. */
static expr count_place(struct sort *s, const struct tile *t, expr digit)
{
    struct exprs *pool = s->k.kernel->pool;
    const expr line =
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, t->row, expr_index(pool, DIGITS)), digit);
    return expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, line, kernel_dim(s->k.kernel, s->tiles)),
                       t->number);
}

static void build_count(struct sort *s, uint32_t from)
{
    struct tile t;
    struct block first, body;
    expr i;
    gpu_kernel_begin(&s->k, s->context, "gpu_plain", s->number, 0, NULL);
    const uint32_t keys = gpu_temporary_parameter(&s->k, s->keys[from], s->key, "keys");
    const uint32_t counts = gpu_temporary_parameter(&s->k, s->counts, s->place, "counts");
    begin_tile(s, "Counts of a digit", keys, &t);
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    sum_parts(s, &t);
    build_if(&t.at, expr_binary(pool, EXPR_LESS, t.thread, expr_index(pool, DIGITS)), &first, NULL);
    const uint32_t sum = build_mutable(&first, "total", expr_int(pool, DTYPE_I32, 0));
    build_for(&first, "part", expr_index(pool, 0), expr_index(pool, PARTS), 0, LOOP_UNROLL, &body, &i);
    const expr at =
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, t.thread, expr_index(pool, PARTS)), i);
    build_assign(
        &body, sum,
        expr_binary(pool, EXPR_ADD, kernel_variable(kernel, sum), kernel_element(kernel, t.sums, at, 1)));
    build_store(&first, counts, count_place(s, &t, t.thread),
                expr_convert(pool, s->place, kernel_variable(kernel, sum)));
    gpu_kernel_end(&s->k, s->out);
}

/* Turns the counters into what stands before each thread's keys of the digit, in the tile. */
static void scan_counters(struct sort *s, struct tile *t)
{
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    struct block body;
    expr i;
    sum_parts(s, t);
    const expr part = expr_binary(pool, EXPR_INDEX_MOD, t->thread, expr_index(pool, PARTS));
    const expr group = build_declare(&t->at, "group", expr_binary(pool, EXPR_SUB, t->thread, part));
    const uint32_t before = build_mutable(&t->at, "before", expr_int(pool, DTYPE_I32, 0));
    build_for(&t->at, "i", group, t->thread, 0, LOOP_SERIAL, &body, &i);
    build_assign(
        &body, before,
        expr_binary(pool, EXPR_ADD, kernel_variable(kernel, before), kernel_element(kernel, t->sums, i, 1)));
    build_for(&t->at, "i", expr_index(pool, 0), expr_index(pool, DIGITS), 0, LOOP_UNROLL, &body, &i);
    const expr at = build_declare(
        &body, "at",
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, t->thread, expr_index(pool, DIGITS)), i));
    const expr count = build_declare(&body, "count", kernel_element(kernel, t->counters, at, 1));
    build_store(&body, t->counters, at, kernel_variable(kernel, before));
    build_assign(&body, before, expr_binary(pool, EXPR_ADD, kernel_variable(kernel, before), count));
    build_barrier(&t->at);
}

static expr turned(struct sort *s, expr key)
{
    struct exprs *pool = s->k.kernel->pool;
    return expr_binary(
        pool, EXPR_OR, expr_binary(pool, EXPR_SHIFT_RIGHT, key, expr_int(pool, s->key, BITS)),
        expr_binary(pool, EXPR_SHIFT_LEFT, key, expr_int(pool, s->key, dtype_bits(s->key) - BITS)));
}

static void build_move(struct sort *s, uint32_t from)
{
    static const char *const labels[] = {"keys", "places", "counts", "to_keys", "to_places"};
    const uint32_t temporaries[] = {s->keys[from], s->places[from], s->counts, s->keys[!from],
                                    s->places[!from]};
    const enum dtype dtypes[] = {s->key, s->place, s->place, s->key, s->place};
    uint32_t memories[5];
    struct tile t;
    struct block body, inside;
    expr item;
    gpu_kernel_begin(&s->k, s->context, "gpu_plain", s->number, 0, NULL);
    for (uint32_t i = 0; i < 5; i++)
        memories[i] = gpu_temporary_parameter(&s->k, temporaries[i], dtypes[i], labels[i]);
    begin_tile(s, "Keys to their places by a digit", memories[0], &t);
    struct kernel *kernel = s->k.kernel;
    struct exprs *pool = kernel->pool;
    scan_counters(s, &t);
    build_for(&t.at, "item", expr_index(pool, 0), expr_index(pool, ITEMS), 0, LOOP_UNROLL, &body, &item);
    const expr position = build_declare(&body, "at", expr_binary(pool, EXPR_ADD, t.first, item));
    build_if(&body, expr_binary(pool, EXPR_LESS, position, kernel_dim(kernel, s->length)), &inside, NULL);
    const expr place = build_declare(&inside, "own", place_in_row(s, t.row, position));
    const expr key = build_declare(&inside, "key", kernel_element(kernel, memories[0], place, 1));
    const expr digit = build_declare(
        &inside, "digit",
        expr_convert(pool, DTYPE_I64, expr_binary(pool, EXPR_AND, key, expr_int(pool, s->key, DIGITS - 1))));
    const expr counter = build_declare(
        &inside, "counter",
        expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, digit, expr_index(pool, THREADS)), t.thread));
    const expr within = build_declare(&inside, "within", kernel_element(kernel, t.counters, counter, 1));
    build_store(&inside, t.counters, counter,
                expr_binary(pool, EXPR_ADD, within, expr_int(pool, DTYPE_I32, 1)));
    const expr offset = kernel_element(kernel, memories[2], count_place(s, &t, digit), 1);
    const expr sum = expr_binary(pool, EXPR_ADD, expr_convert(pool, DTYPE_I64, offset),
                                 expr_convert(pool, DTYPE_I64, within));
    const expr to = build_declare(&inside, "to", place_in_row(s, t.row, sum));
    build_store(&inside, memories[3], to, turned(s, key));
    build_store(&inside, memories[4], to, kernel_element(kernel, memories[1], place, 1));
    gpu_kernel_end(&s->k, s->out);
}

/* ---- the scan of the counts: a block a row
 * ---------------------------------------------------------------------------- */

struct count_scan {
    struct block_scan scan;
    uint32_t counts;
    expr base;
};

static void load_count(struct block_scan *scan, struct block *at, expr position, expr *values)
{
    struct count_scan *s = scan->user;
    (void)at;
    values[0] = kernel_element(scan->kernel, s->counts,
                               expr_binary(scan->kernel->pool, EXPR_ADD, s->base, position), 1);
}

static void store_count(struct block_scan *scan, struct block *at, expr position, const expr *before,
                        const expr *running)
{
    struct count_scan *s = scan->user;
    (void)running;
    build_store(at, s->counts, expr_binary(scan->kernel->pool, EXPR_ADD, s->base, position), before[0]);
}

static void build_offsets(struct sort *s)
{
    struct count_scan c = {.scan = {.count = 1,
                                    .ops = {REDUCE_SUM},
                                    .dtypes = {s->place},
                                    .user = &c,
                                    .load = load_count,
                                    .store = store_count}};
    gpu_kernel_begin(&s->k, s->context, "gpu_plain", s->number, 0, NULL);
    c.counts = gpu_temporary_parameter(&s->k, s->counts, s->place, "counts");
    struct kernel *kernel = begin(s, "Offsets of a digit", SCAN_THREADS);
    struct exprs *pool = kernel->pool;
    c.scan.kernel = kernel;
    block_scan_memories(&c.scan);
    kernel->grid[0] = s->rows;
    struct block top = {.kernel = kernel, .at = &kernel->body}, body;
    c.scan.thread =
        build_declare(&top, "thread", kernel_thread_index(kernel, 0, dim_constant(pool->dims, SCAN_THREADS)));
    const dim all = dim_mul(pool->dims, s->tiles, dim_constant(pool->dims, DIGITS));
    const expr length = kernel_dim(kernel, all);
    c.base = build_declare(&top, "base",
                           expr_binary(pool, EXPR_MUL, kernel_block_index(kernel, 0, s->rows), length));
    c.scan.carries[0] = build_mutable(&top, "carry", expr_int(pool, s->place, 0));
    expr first;
    build_for(&top, "begin", expr_index(pool, 0), length, expr_index(pool, SCAN_TILE), LOOP_SERIAL, &body,
              &first);
    block_scan_tile(&c.scan, &body, first, length);
    gpu_kernel_end(&s->k, s->out);
}

void gpu_build_sort(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    struct sort s = {.context = context,
                     .number = number,
                     .nest = nest,
                     .out = out,
                     .key = expr_at(context->group->body.pool, nest->reductions[0].body)->dtype,
                     .place = gpu_index_bits(context, NULL) == 32 ? DTYPE_I32 : DTYPE_I64,
                     .rows = gpu_extent_product(context, nest, 0, nest->rank),
                     .length = dim_current(dims, nest->extents[nest->rank]),
                     .taken = dim_current(dims, nest->extents[nest->rank + 1])};
    int64_t low, high;
    dim_range(dims, s.length, &low, &high);
    if (high <= LONGEST_IN_BLOCK) {
        uint32_t slots = 2;
        while ((int64_t)slots < high)
            slots *= 2;
        build_in_block(&s, slots);
        return;
    }
    s.tiles = dim_ceil_div(dims, s.length, dim_constant(dims, TILE));
    const dim elements = dim_mul(dims, s.rows, s.length);
    const dim counts = dim_mul(dims, dim_mul(dims, s.rows, s.tiles), dim_constant(dims, DIGITS));
    for (uint32_t i = 0; i < 2; i++) {
        s.keys[i] = gpu_temporary(context, out, s.key, elements);
        s.places[i] = gpu_temporary(context, out, s.place, elements);
    }
    s.counts = gpu_temporary(context, out, s.place, counts);
    build_keys(&s);
    for (uint32_t pass = 0; pass < dtype_bits(s.key) / BITS; pass++) {
        build_count(&s, pass % 2);
        build_offsets(&s);
        build_move(&s, pass % 2);
    }
    build_results(&s);
}

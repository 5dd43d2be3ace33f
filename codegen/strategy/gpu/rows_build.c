/* Kernel IR of rows: see rows.h. */
#include <string.h>

#include "codegen/strategy/gpu/rows.h"
#include "codegen/strategy/gpu/stretch.h"

/* What lies along the row: a buffer's elements in registers. */
struct kept {
    uint32_t buffer;
    expr base;     /* flat index of the row's first element */
    uint32_t copy; /* memory: the registers */
};

struct row_builder {
    struct gpu_kernel k;
    struct rows_plan plan;
    const int32_t *config;
    expr row_axes[MAX_AXES];
    expr lane; /* thread within the row */
    expr row_values[MAX_BUFFERS];
    uint32_t shared[DTYPE_COUNT]; /* [accumulator type]: one slot a warp; UINT32_MAX: none yet */
    bool keeps;                   /* in the branch that is being built */
    VEC(struct kept) kept;
    /* Of the nest and element that are being built. */
    uint32_t copies[MAX_BUFFERS]; /* [buffer]: its registers, UINT32_MAX: it is loaded */
    expr element;                 /* index into them */
    uint32_t results[MAX_AXES];
};

static expr number(const struct row_builder *b, int64_t value)
{
    return expr_index(b->k.kernel->pool, value);
}

static expr named(struct row_builder *b, int64_t value, const char *label)
{
    return value < 2 ? number(b, value) : kernel_named(b->k.kernel, value, label);
}

static expr binary(const struct row_builder *b, enum expr_op op, expr left, expr right)
{
    return expr_binary(b->k.kernel->pool, op, left, right);
}

static expr row_value(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    const struct row_builder *b = user;
    (void)rank;
    (void)indices;
    return b->copies[buffer] != UINT32_MAX ? kernel_element(b->k.kernel, b->copies[buffer], b->element, 1)
                                           : b->row_values[buffer];
}

static struct lowering row_lowering(struct row_builder *b, const expr *axes, const expr *reduced)
{
    struct lowering lowering = gpu_lowering(&b->k, axes, reduced);
    uint32_t *memories =
        arena_copy(b->k.context->arena, b->k.memories, b->plan.group.body->buffers.count * sizeof *memories);
    for (uint32_t i = 0; i < b->plan.group.body->buffers.count; i++)
        memories[i] = b->copies[i] != UINT32_MAX ? UINT32_MAX : memories[i];
    lowering.memories = memories;
    lowering.value = row_value;
    lowering.user = b;
    return lowering;
}

/* ---- combining
 * ------------------------------------------------------------------------------------------------------ */

static expr combine_warp(struct row_builder *b, struct block *at, enum reduce_op op, expr partial)
{
    struct exprs *pool = b->k.kernel->pool;
    for (int mask = WARP / 2; mask > 0; mask /= 2) {
        const struct expr_node shuffle = {.op = EXPR_SHUFFLE_XOR,
                                          .dtype = expr_at(pool, partial)->dtype,
                                          .lanes = 1,
                                          .count = 1,
                                          .value = mask,
                                          .arguments = &partial};
        partial = build_declare(at, "combined", reduce_combine(pool, op, partial, expr_make(pool, &shuffle)));
    }
    return partial;
}

/* Every thread of the row gets the combination of all its threads' values. */
static expr combine_row(struct row_builder *b, struct block *at, enum reduce_op op, expr partial)
{
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    const enum dtype dtype = expr_at(pool, partial)->dtype;
    const int threads = b->config[ROWS_THREADS];
    partial = combine_warp(b, at, op, partial);
    if (threads == WARP)
        return partial;
    uint32_t *slot = &b->shared[dtype];
    const int64_t warps = threads / WARP;
    if (*slot == UINT32_MAX)
        *slot = kernel_memory_add(
            kernel,
            &(struct kernel_memory){.space = MEMORY_SHARED,
                                    .dtype = dtype,
                                    .lanes = 1,
                                    .count = warps,
                                    .label = arena_printf(b->k.context->arena, "warps_%s", dtype_name(dtype)),
                                    .shape = "one a warp",
                                    .alignment = 16});
    const expr warp = binary(b, EXPR_INDEX_DIV, b->lane, number(b, WARP));
    const expr leads =
        binary(b, EXPR_EQUAL, binary(b, EXPR_INDEX_MOD, b->lane, number(b, WARP)), number(b, 0));
    struct block then, body;
    build_barrier(at); /* the slots may still be read for the reduction before */
    build_if(at, leads, &then, NULL);
    build_store(&then, *slot, warp, partial);
    build_barrier(at);
    const uint32_t total = build_mutable(at, "total", kernel_element(kernel, *slot, number(b, 0), 1));
    expr w;
    build_for(at, "w", number(b, 1), named(b, warps, "warps"), 0, LOOP_UNROLL, &body, &w);
    build_assign(&body, total,
                 reduce_combine(pool, op, kernel_variable(kernel, total), kernel_element(kernel, *slot, w, 1)));
    return kernel_variable(kernel, total);
}

/* ---- keeping
 * -------------------------------------------------------------------------------------------------------- */

struct find {
    struct row_builder *b;
    uint32_t nest;
    unsigned char *visited;
    expr loads[MAX_BUFFERS];  /* the one load of a buffer, along the row */
    bool others[MAX_BUFFERS]; /* it is loaded in another way too */
};

static void find_loads(struct find *f, expr e)
{
    const struct exprs *pool = f->b->plan.group.body->pool;
    if (f->visited[e])
        return;
    f->visited[e] = 1;
    const struct expr_node *node = expr_at(pool, e);
    if (node->op == EXPR_LOAD || node->op == EXPR_LOAD_OR) {
        const uint32_t buffer = (uint32_t)node->value;
        const bool along = node->op == EXPR_LOAD && !f->b->plan.group.is_row_value[buffer] &&
                           rows_load_is_along(f->b->k.context, &f->b->plan, f->nest, buffer, node->arguments);
        f->others[buffer] |= !along || f->loads[buffer];
        f->loads[buffer] = e;
    }
    for (uint32_t i = 0; i < node->count; i++)
        find_loads(f, node->arguments[i]);
}

/* Position in the row of access j's first element. */
static expr access_position(struct row_builder *b, expr j)
{
    const int64_t vector = b->plan.vector;
    const expr access =
        binary(b, EXPR_ADD, b->lane, binary(b, EXPR_MUL, j, named(b, b->config[ROWS_THREADS], "threads")));
    return binary(b, EXPR_MUL, access, number(b, vector));
}

/* The threads' accesses are exactly the row. */
static bool covers_exactly(const struct row_builder *b)
{
    return dim_equals_constant(b->k.kernel->pool->dims, b->plan.length,
                               (int64_t)b->config[ROWS_THREADS] * b->config[ROWS_KEPT]);
}

/* The loop over a thread's accesses, within the row; `position`: of the first element. */
static struct block open_accesses(struct row_builder *b, struct block *at, expr *j, expr *position)
{
    struct block body, inside;
    const int64_t accesses = b->config[ROWS_KEPT] / (int32_t)b->plan.vector;
    *j = number(b, 0);
    body = *at;
    if (accesses > 1)
        build_for(at, "j", number(b, 0), named(b, accesses, "accesses"), 0, LOOP_UNROLL, &body, j);
    *position = build_declare(&body, "position", access_position(b, *j));
    inside = body;
    if (!covers_exactly(b))
        build_if(&body, binary(b, EXPR_LESS, *position, kernel_size(b->k.kernel, b->plan.length, "length")),
                 &inside, NULL);
    return inside;
}

static void load_kept(struct row_builder *b, struct block *at, const struct kept *kept)
{
    struct kernel *kernel = b->k.kernel;
    const uint16_t vector = (uint16_t)b->plan.vector;
    const uint32_t memory = b->k.memories[kept->buffer];
    expr j, position;
    struct block inside = open_accesses(b, at, &j, &position);
    kernel->memories.items[memory].read = true;
    const expr value = kernel_element(kernel, memory, binary(b, EXPR_ADD, kept->base, position), vector);
    const expr place = binary(b, EXPR_MUL, j, number(b, vector));
    build_store(&inside, kept->copy, place, value);
}

/* Registers for the buffers that the nest loads along the row, loaded where no nest before did. */
static void keep_loads(struct row_builder *b, struct block *at, uint32_t n, const expr *axes)
{
    const struct definition *body = b->plan.group.body;
    const struct nest *nest = &body->nests.items[n];
    struct find find = {.b = b,
                        .nest = n,
                        .visited =
                            arena_new_array(b->k.context->arena, unsigned char, body->pool->nodes.count)};
    memset(b->copies, 0xff, sizeof b->copies);
    if (!b->keeps)
        return;
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        find_loads(&find, nest->reductions[r].body);
    for (uint32_t s = 0; s < nest->store_count; s++)
        find_loads(&find, nest->stores[s].value);
    for (uint32_t i = 0; i < body->buffers.count; i++) {
        if (!find.loads[i] || find.others[i])
            continue;
        expr first_axes[MAX_AXES], indices[MAX_RANK];
        memcpy(first_axes, axes, sizeof first_axes);
        for (uint32_t k = 0; k < b->plan.inner_count[n]; k++)
            first_axes[b->plan.inner[n][k]] = number(b, 0);
        const struct expr_node *load = expr_at(body->pool, find.loads[i]);
        struct lowering lowering = gpu_lowering(&b->k, first_axes, NULL);
        lowering.value = row_value;
        lowering.user = b;
        for (uint32_t k = 0; k < load->count; k++)
            indices[k] = lower_expr(&lowering, load->arguments[k]);
        const expr base = lower_index(&lowering, i, indices);
        uint32_t at_kept = 0;
        while (at_kept < b->kept.count &&
               (b->kept.items[at_kept].buffer != i || b->kept.items[at_kept].base != base))
            at_kept++;
        if (at_kept == b->kept.count) {
            const char *label = b->k.kernel->memories.items[b->k.memories[i]].label;
            const struct kept kept = {.buffer = i,
                                      .base = base,
                                      .copy =
                                          gpu_registers(&b->k, load->dtype, b->config[ROWS_KEPT],
                                                        arena_printf(b->k.context->arena, "%s_kept", label))};
            vec_push(b->k.context->arena, &b->kept, kept);
            load_kept(b, at, &kept);
        }
        b->copies[i] = b->kept.items[at_kept].copy;
    }
}

/* ---- nests
 * ----------------------------------------------------------------------------------------------------------
 */

/* Values of the nest's inner axes at a position in the row. */
static void split_inner(struct row_builder *b, struct block *at, uint32_t n, expr position, expr *axes)
{
    gpu_split_position(&b->k, at, &b->plan.group.body->nests.items[n], position, b->plan.inner[n],
                       b->plan.inner_count[n], "i", axes);
}

/* The loop of a row's threads over its elements, for what is done with one element at a time. */
static struct block open_elements(struct row_builder *b, struct block *at, uint32_t n, expr *axes)
{
    struct kernel *kernel = b->k.kernel;
    const struct nest *nest = &b->plan.group.body->nests.items[n];
    struct block body;
    expr position;
    if (!b->keeps) {
        dim length = dim_constant(kernel->pool->dims, 1);
        for (uint32_t i = 0; i < b->plan.inner_count[n]; i++)
            length = dim_mul(kernel->pool->dims, length, nest->extents[b->plan.inner[n][i]]);
        build_for(at, "i", b->lane, kernel_size(kernel, length, "length"),
                  named(b, b->config[ROWS_THREADS], "threads"), LOOP_SERIAL, &body, &position);
        split_inner(b, &body, n, position, axes);
        return body;
    }
    expr j, v = number(b, 0);
    struct block inside = open_accesses(b, at, &j, &position);
    body = inside;
    if (b->plan.vector > 1)
        build_for(&inside, "v", number(b, 0), number(b, b->plan.vector), 0, LOOP_UNROLL, &body, &v);
    b->element = binary(b, EXPR_ADD, binary(b, EXPR_MUL, j, number(b, b->plan.vector)), v);
    split_inner(b, &body, n, binary(b, EXPR_ADD, position, v), axes);
    return body;
}

static void store_row_values(struct row_builder *b, struct block *at, uint32_t n, const expr *axes,
                             const expr *reduced)
{
    const struct nest *nest = &b->plan.group.body->nests.items[n];
    struct lowering lowering = row_lowering(b, axes, reduced);
    struct block first;
    bool guarded = false;
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const struct nest_store *store = &nest->stores[s];
        const expr value = lower_expr(&lowering, store->value);
        if (b->plan.group.is_row_value[store->buffer]) {
            b->row_values[store->buffer] = build_declare(at, "row_value", value);
            continue;
        }
        if (!guarded)
            build_if(at, binary(b, EXPR_EQUAL, b->lane, number(b, 0)), &first, NULL);
        guarded = true;
        gpu_store(&b->k, &first, &lowering, store, axes, value);
    }
}

static void build_reduction_nest(struct row_builder *b, struct block *at, uint32_t n)
{
    static const char *const labels[] = {[REDUCE_SUM] = "sum",
                                         [REDUCE_PRODUCT] = "product",
                                         [REDUCE_MAX] = "largest",
                                         [REDUCE_MIN] = "smallest"};
    const struct nest *nest = &b->plan.group.body->nests.items[n];
    struct kernel *kernel = b->k.kernel;
    struct exprs *pool = kernel->pool;
    expr axes[MAX_AXES] = {0}, reduced[MAX_AXES] = {0};
    uint32_t partials[MAX_AXES];
    memcpy(axes, b->row_axes, sizeof axes);
    keep_loads(b, at, n, axes);
    for (uint32_t r = 0; r < nest->reduction_count; r++) {
        const enum dtype dtype = expr_at(b->plan.group.body->pool, nest->reductions[r].body)->dtype;
        partials[r] = build_mutable(at, labels[nest->reductions[r].op],
                                    reduce_neutral(pool, nest->reductions[r].op, dtype));
    }
    struct block body = open_elements(b, at, n, axes);
    struct lowering lowering = row_lowering(b, axes, NULL);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        build_assign(&body, partials[r],
                     reduce_combine(pool, nest->reductions[r].op, kernel_variable(kernel, partials[r]),
                                 lower_expr(&lowering, nest->reductions[r].body)));
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        reduced[r] = combine_row(b, at, nest->reductions[r].op, kernel_variable(kernel, partials[r]));
    /* Behind the loop there is no element. */
    memset(b->copies, 0xff, sizeof b->copies);
    store_row_values(b, at, n, b->row_axes, reduced);
}

/* Every store of the nest lies along the row, so that whole accesses can be stored. */
static bool stores_vectors(const struct row_builder *b, uint32_t n)
{
    const struct definition *body = b->plan.group.body;
    const struct nest *nest = &body->nests.items[n];
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const struct nest_store *store = &nest->stores[s];
        expr own[MAX_AXES];
        for (uint32_t axis = 0; axis < nest->rank; axis++)
            own[axis] = expr_axis(body->pool, axis, nest->extents[axis]);
        if (!rows_load_is_along(b->k.context, &b->plan, n, store->buffer,
                                store->indices ? store->indices : own))
            return false;
    }
    return b->keeps && b->plan.vector > 1 && nest->store_count <= MAX_AXES;
}

static void store_vectors(struct row_builder *b, struct block *at, uint32_t n, expr *axes)
{
    const struct definition *definition = b->plan.group.body;
    const struct nest *nest = &definition->nests.items[n];
    struct kernel *kernel = b->k.kernel;
    const uint16_t vector = (uint16_t)b->plan.vector;
    struct block body;
    expr j, v, position;
    struct block inside = open_accesses(b, at, &j, &position);
    build_for(&inside, "v", number(b, 0), number(b, vector), 0, LOOP_UNROLL, &body, &v);
    b->element = binary(b, EXPR_ADD, binary(b, EXPR_MUL, j, number(b, vector)), v);
    split_inner(b, &body, n, binary(b, EXPR_ADD, position, v), axes);
    struct lowering lowering = row_lowering(b, axes, NULL);
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const expr value = lower_expr(&lowering, nest->stores[s].value);
        b->results[s] = gpu_registers(&b->k, expr_at(kernel->pool, value)->dtype, vector, "result");
        build_store(&body, b->results[s], v, value);
    }
    for (uint32_t i = 0; i < b->plan.inner_count[n]; i++)
        axes[b->plan.inner[n][i]] = number(b, 0);
    struct lowering first = row_lowering(b, axes, NULL);
    for (uint32_t s = 0; s < nest->store_count; s++) {
        const struct nest_store *store = &nest->stores[s];
        const int rank = definition->buffers.items[store->buffer].type.rank;
        expr indices[MAX_RANK];
        for (int i = 0; i < rank; i++)
            indices[i] = store->indices ? lower_expr(&first, store->indices[i]) : axes[i];
        build_store(&inside, b->k.memories[store->buffer],
                    binary(b, EXPR_ADD, lower_index(&first, store->buffer, indices), position),
                    kernel_element(kernel, b->results[s], number(b, 0), vector));
    }
}

static void build_map_nest(struct row_builder *b, struct block *at, uint32_t n)
{
    const struct nest *nest = &b->plan.group.body->nests.items[n];
    expr axes[MAX_AXES] = {0};
    for (uint32_t i = 0; i < nest->rank; i++)
        if (b->plan.group.row_axis[n][i] >= 0)
            axes[i] = b->row_axes[b->plan.group.row_axis[n][i]];
    keep_loads(b, at, n, axes);
    if (stores_vectors(b, n)) {
        store_vectors(b, at, n, axes);
        return;
    }
    struct block body = open_elements(b, at, n, axes);
    struct lowering lowering = row_lowering(b, axes, NULL);
    for (uint32_t s = 0; s < nest->store_count; s++)
        gpu_store(&b->k, &body, &lowering, &nest->stores[s], axes,
                  lower_expr(&lowering, nest->stores[s].value));
}

/* ---- kernels
 * -------------------------------------------------------------------------------------------------------- */

/* Opens the kernel: which row this is, and whether it exists. */
static struct block begin_row(struct row_builder *b)
{
    struct kernel *kernel = b->k.kernel;
    struct dims *dims = kernel->pool->dims;
    const int threads = b->config[ROWS_THREADS], rows = b->config[ROWS_ROWS];
    dim count = dim_constant(dims, 1);
    for (uint32_t i = 0; i < b->plan.group.rank; i++)
        count = dim_mul(dims, count, b->plan.group.extents[i]);
    kernel->grid[0] = dim_ceil_div(dims, count, dim_constant(dims, rows));
    kernel->block[0] = (uint32_t)threads;
    kernel->block[1] = (uint32_t)rows;
    struct block top = {.kernel = kernel, .at = &kernel->body}, inside = top;
    b->lane = build_declare(&top, "lane", kernel_thread_index(kernel, 0, dim_constant(dims, threads)));
    expr row = kernel_block_index(kernel, 0, rows == 1 ? count : DIM_NONE);
    if (rows > 1) {
        const expr first = binary(b, EXPR_MUL, row, named(b, rows, "block_rows"));
        row = build_declare(
            &top, "row",
            binary(b, EXPR_ADD, first, kernel_thread_index(kernel, 1, dim_constant(dims, rows))));
        build_if(&top, binary(b, EXPR_LESS, row, kernel_size(kernel, count, "rows")), &inside, NULL);
    } else {
        row = build_declare(&top, "row", row);
    }
    expr rest = row;
    for (uint32_t i = b->plan.group.rank; i-- > 0;) {
        const expr extent =
            kernel_size(kernel, b->plan.group.extents[i], arena_printf(b->k.context->arena, "rows_%u", i));
        b->row_axes[i] = i ? build_declare(&inside, "r", binary(b, EXPR_INDEX_MOD, rest, extent)) : rest;
        if (i)
            rest = build_declare(&inside, "rest", binary(b, EXPR_INDEX_DIV, rest, extent));
    }
    return inside;
}

static void build_nests(struct row_builder *b, struct block *at, bool keeps)
{
    b->keeps = keeps;
    b->kept.count = 0;
    for (uint32_t n = 0; n < b->plan.group.body->nests.count; n++) {
        if (b->plan.group.body->nests.items[n].reduction_count)
            build_reduction_nest(b, at, n);
        else
            build_map_nest(b, at, n);
    }
}

bool rows_build(const struct strategy_context *context, const struct config *config,
                struct lowered_group *out, struct text *why)
{
    struct row_builder *b = arena_new(context->arena, struct row_builder);
    b->config = config->value;
    memset(b->shared, 0xff, sizeof b->shared);
    memset(b->copies, 0xff, sizeof b->copies);
    if (!rows_plan_make(context, &b->plan, why))
        return false;
    gpu_kernel_begin(&b->k, context, "gpu_rows", 0, b->plan.group.body->nests.count,
                     b->plan.group.is_row_value);
    struct kernel *kernel = b->k.kernel;
    struct text text;
    text_init(&text, context->arena);
    gpu_rows.describe(config, &text);
    kernel->summary = gpu_summary(context, "Rows", 0);
    kernel->config = text.data;
    struct block at = begin_row(b), kept, strided;
    const int64_t room = (int64_t)config->value[ROWS_THREADS] * config->value[ROWS_KEPT];
    int64_t length;
    if (room == 0) {
        build_nests(b, &at, false);
    } else if (dim_is_constant(kernel->pool->dims, b->plan.length, &length) && length <= room) {
        build_nests(b, &at, true);
    } else {
        const expr fits =
            binary(b, EXPR_LESS_EQUAL, kernel_size(kernel, b->plan.length, "length"), named(b, room, "room"));
        build_if(&at, fits, &kept, &strided);
        build_nests(b, &kept, true);
        build_nests(b, &strided, false);
    }
    gpu_kernel_end(&b->k, out);
    return true;
}

/* See gpu_cases.h. */
#include "tests/harness/gpu_cases.h"

#include "tests/unit/definition_support.h"

enum finish { PLAIN, RESIDUAL, SIGMOID, EPILOGUE, POSITIONS };

/* Flags of a row: of Gemm, and which of its two cases there are. */
enum { RIGHT_TURNED = 1, LEFT_TURNED = 2, SIZES_KNOWN = 1 << 20, SIZES_FREE = 1 << 21 };

struct conv_shape {
    int64_t n, c, h, w, m, kernel, stride, pad, group;
};

/* One row a case. `sizes`: up to three tensors' sizes, -1 ends each. */
struct row {
    const char *name;
    enum op op;
    enum dtype dtype;
    enum finish finish;
    const char *strategy;
    uint32_t candidates;
    int64_t sizes[3][5];
    struct conv_shape conv;
    int64_t axis;
    int flags; /* Conv: 1: the weights are known when the bundle is written; others: see make_case */
};

static const struct row rows[] = {
#include "tests/harness/gpu_cases.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct row speed_rows[] = {
#include "tests/harness/gpu_speed_cases.def"
};

static struct tensor tensor_row(struct arena *arena, enum dtype dtype, const int64_t *sizes)
{
    int rank = 0;
    while (rank < 5 && sizes[rank] >= 0)
        rank++;
    return tensor_new(arena, dtype, rank, sizes);
}

static void conv_case(struct arena *arena, const struct row *row, struct op_case *c)
{
    const struct conv_shape *s = &row->conv;
    const int64_t x[] = {s->n, s->c, s->h, s->w}, w[] = {s->m, s->c / s->group, s->kernel, s->kernel},
                  bias[] = {s->m};
    const int64_t y[] = {s->n, s->m, (s->h + 2 * s->pad - s->kernel) / s->stride + 1,
                         (s->w + 2 * s->pad - s->kernel) / s->stride + 1};
    int64_t *pads = arena_new_array(arena, int64_t, 4), *strides = arena_new_array(arena, int64_t, 2);
    for (int i = 0; i < 4; i++)
        pads[i] = s->pad;
    strides[0] = strides[1] = s->stride;
    c->input_count = 3;
    c->inputs[0] = tensor_new(arena, row->dtype, 4, x);
    c->inputs[1] = tensor_new(arena, row->dtype, 4, w);
    c->inputs[2] = tensor_new(arena, row->dtype, 1, bias);
    c->outputs[0] = tensor_new(arena, row->dtype, 4, y);
    add_attribute(c, attribute_ints(ATTR_pads, 4, pads));
    add_attribute(c, attribute_ints(ATTR_strides, 2, strides));
    add_attribute(c, attribute_int(ATTR_group, s->group));
}

/* Sizes: data, indices, updates; the axis; 1: add. Some indices are out of range. */
static void scatter_case(struct arena *arena, const struct row *row, struct op_case *c)
{
    c->input_count = 3;
    c->inputs[1] = tensor_row(arena, DTYPE_I64, row->sizes[1]);
    c->inputs[2] = tensor_row(arena, row->dtype, row->sizes[2]);
    c->outputs[0] = tensor_row(arena, row->dtype, row->sizes[0]);
    add_attribute(c, attribute_word(ATTR_reduction, word_find(row->flags ? "add" : "none")));
    if (row->op == OP_ScatterElements)
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
}

/* Sizes: boxes, places, result. No least score. */
static void suppression_case(struct arena *arena, const struct row *row, struct op_case *c)
{
    c->input_count = 5;
    c->inputs[1].dtype = c->inputs[3].dtype = DTYPE_I64;
    c->inputs[2] = tensor_row(arena, DTYPE_F32, row->sizes[1]);
    c->inputs[3] = tensor_row(arena, DTYPE_I64, (const int64_t[]){-1});
    c->inputs[4] = tensor_row(arena, DTYPE_F32, (const int64_t[]){-1});
    c->outputs[0].dtype = DTYPE_BOOL;
}

/* Sizes: input, weights, result; the stride in `axis`, the dilation in `flags`. */
static void conv_transpose_case(struct arena *arena, const struct row *row, struct op_case *c)
{
    int64_t *numbers = arena_new_array(arena, int64_t, 6);
    for (int i = 0; i < 2; i++) {
        numbers[i] = row->axis;
        numbers[2 + i] = row->flags;
        numbers[4 + i] = row->sizes[1][2 + i];
    }
    add_attribute(c, attribute_ints(ATTR_strides, 2, numbers));
    add_attribute(c, attribute_ints(ATTR_dilations, 2, numbers + 2));
    add_attribute(c, attribute_ints(ATTR_kernel_shape, 2, numbers + 4));
    add_attribute(c, attribute_int(ATTR_group, row->sizes[0][1] / row->sizes[1][0]));
}

/* Factors of 8 bits, each with one zero point. */
static void integer_case(struct op_case *c)
{
    c->input_count = 4;
    c->inputs[1].dtype = DTYPE_I8;
    c->inputs[2] = (struct tensor){.dtype = DTYPE_U8};
    c->inputs[3] = (struct tensor){.dtype = DTYPE_I8};
    c->outputs[0].dtype = DTYPE_I32;
}

static void quantize_range_case(struct op_case *c)
{
    c->output_count = 2;
    c->outputs[0] = (struct tensor){.dtype = DTYPE_F32};
    c->outputs[1] = (struct tensor){.dtype = DTYPE_U8};
}

static void make_case(struct arena *arena, const struct row *row, struct op_case *c)
{
    *c = (struct op_case){.op = row->op, .output_count = 1};
    if (row->op == OP_Conv) {
        conv_case(arena, row, c);
        return;
    }
    c->inputs[0] = tensor_row(arena, row->dtype, row->sizes[0]);
    c->input_count = 1;
    if (row->sizes[1][0] > 0 || row->op == OP_MatMul || row->op == OP_Gemm || row->op == OP_Add) {
        c->inputs[1] = tensor_row(arena, row->dtype, row->sizes[1]);
        c->input_count = 2;
    }
    c->outputs[0] = tensor_row(arena, row->dtype, row->sizes[2]);
    if (row->op == OP_Gemm) {
        add_attribute(c, attribute_int(ATTR_transB, (row->flags & RIGHT_TURNED) != 0));
        add_attribute(c, attribute_int(ATTR_transA, (row->flags & LEFT_TURNED) != 0));
    }
    if (row->op == OP_LayerNormalization) {
        c->inputs[2] = tensor_row(arena, row->dtype, row->sizes[1]);
        c->input_count = 3;
    }
    if (row->op == OP_Softmax || row->op == OP_LayerNormalization)
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
    if (row->op == OP_ReduceSum || row->op == OP_ReduceMean || row->op == OP_ReduceMax) {
        int64_t *axes = arena_new_array(arena, int64_t, 1);
        axes[0] = row->axis;
        add_attribute(c, attribute_ints(ATTR_axes, 1, axes));
        add_attribute(c, attribute_int(ATTR_keepdims, 0));
    }
    if (row->op == OP_ArgMax || row->op == OP_ArgMin) {
        c->outputs[0].dtype = DTYPE_I64;
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
        add_attribute(c, attribute_int(ATTR_keepdims, 0));
        add_attribute(c, attribute_int(ATTR_select_last_index, row->flags));
    }
    if (row->op == OP_CumSum || row->op == OP_CumProd) {
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
        add_attribute(c, attribute_int(ATTR_exclusive, row->flags & 1));
        add_attribute(c, attribute_int(ATTR_reverse, row->flags >> 1));
    }
    if (row->op == OP_TopK) {
        c->outputs[1] = c->outputs[0];
        c->outputs[1].dtype = DTYPE_I64;
        c->output_count = 2;
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
        add_attribute(c, attribute_int(ATTR_largest, row->flags));
    }
    if (row->op == OP_Cast) {
        c->outputs[0].dtype = (enum dtype)row->flags;
        add_attribute(c, attribute_dtype(ATTR_to, c->outputs[0].dtype));
    }
    if (row->op == OP_DequantizeLinear) {
        c->inputs[1].dtype = c->outputs[0].dtype = DTYPE_F32;
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
        add_attribute(c, attribute_int(ATTR_block_size, row->flags));
    }
    if (row->op == OP_DFT) {
        add_attribute(c, attribute_int(ATTR_axis, row->axis));
        add_attribute(c, attribute_int(ATTR_dft_length, row->flags));
    }
    if (row->op == OP_ScatterND || row->op == OP_ScatterElements)
        scatter_case(arena, row, c);
    if (row->op == OP_NonMaxSuppression)
        suppression_case(arena, row, c);
    if (row->op == OP_ConvTranspose)
        conv_transpose_case(arena, row, c);
    if (row->op == OP_MatMulInteger || row->op == OP_ConvInteger)
        integer_case(c);
    if (row->op == OP_QuantizeRange)
        quantize_range_case(c);
    if (row->op == OP_Transpose) {
        int64_t *order = arena_new_array(arena, int64_t, (size_t)c->inputs[0].rank);
        for (int i = 0; i < c->inputs[0].rank; i++)
            order[i] = row->flags / (int[]){1, 10, 100, 1000}[c->inputs[0].rank - 1 - i] % 10;
        add_attribute(c, attribute_ints(ATTR_perm, (uint32_t)c->inputs[0].rank, order));
    }
}

/* What stands behind a matrix product in real networks: bias, GELU and residual, with the biased sum as a
 * second result. */
static void finish_epilogue(struct gpu_case *made, struct nest *nest)
{
    struct definition *d = &made->definition;
    struct exprs *pool = &made->pool;
    struct nest_store *store = &nest->stores[0];
    const struct tensor_type type = d->buffers.items[store->buffer].type;
    expr axes[MAX_RANK];
    for (uint32_t i = 0; i < nest->rank; i++)
        axes[i] = nest_axis(d, nest, i);
    const struct tensor_type row = tensor_type_new(pool->arena, type.dtype, 1, &type.dims[type.rank - 1]);
    const struct tensor_type sums = tensor_type_new(pool->arena, DTYPE_F32, type.rank, type.dims);
    const uint32_t bias = definition_buffer(d, BUFFER_INPUT, row),
                   residual = definition_buffer(d, BUFFER_INPUT, type);
    const uint32_t second = definition_buffer(d, BUFFER_OUTPUT, sums);
    const expr sum = expr_binary(
        pool, EXPR_ADD, expr_reduced(pool, 0, DTYPE_F32),
        expr_convert(pool, DTYPE_F32, expr_load(pool, bias, type.dtype, 1, &axes[type.rank - 1])));
    const expr half = expr_binary(pool, EXPR_MUL, sum, expr_float(pool, DTYPE_F32, 0.5));
    const expr error = expr_unary(
        pool, EXPR_ERF, expr_binary(pool, EXPR_MUL, sum, expr_float(pool, DTYPE_F32, 0.70710678118654752)));
    const expr gelu =
        expr_binary(pool, EXPR_MUL, half, expr_binary(pool, EXPR_ADD, error, expr_float(pool, DTYPE_F32, 1)));
    const expr other = expr_convert(pool, DTYPE_F32, expr_load(pool, residual, type.dtype, nest->rank, axes));
    store->value = expr_convert(pool, type.dtype, expr_binary(pool, EXPR_ADD, gelu, other));
    nest_store(d, nest, second, NULL, sum);
}

/* Another operation behind the result. */
static void finish_case(struct gpu_case *made, enum finish finish)
{
    struct definition *d = &made->definition;
    struct nest *nest = &d->nests.items[d->nests.count - 1];
    struct nest_store *store = &nest->stores[0];
    struct exprs *pool = &made->pool;
    const struct tensor_type type = d->buffers.items[store->buffer].type;
    if (finish == SIGMOID)
        store->value =
            expr_binary(pool, EXPR_MUL, store->value, expr_unary(pool, EXPR_SIGMOID, store->value));
    if (finish == EPILOGUE)
        finish_epilogue(made, nest);
    /* Data, not an index: it passes 32 bits where no buffer does. */
    if (finish == POSITIONS)
        store->value =
            expr_binary(pool, EXPR_ADD, store->value,
                        expr_binary(pool, EXPR_MUL, nest_axis(d, nest, 0), expr_index(pool, 1000003)));
    if (finish != RESIDUAL)
        return;
    const uint32_t buffer = definition_buffer(d, BUFFER_INPUT, type);
    expr axes[MAX_RANK];
    for (uint32_t i = 0; i < nest->rank; i++)
        axes[i] = nest_axis(d, nest, i);
    expr value =
        expr_binary(pool, EXPR_ADD, store->value, expr_load(pool, buffer, type.dtype, nest->rank, axes));
    store->value = expr_binary(pool, EXPR_MAX, value, expr_float(pool, type.dtype, 0));
}

static unsigned rank_of(const int64_t *sizes)
{
    unsigned rank = 0;
    while (rank < 5 && sizes[rank] >= 0)
        rank++;
    return rank;
}

/* Sizes that operators need known, as bits in the order of the inputs' dims. */
static uint64_t known_sizes(const struct row *row)
{
    const unsigned first = rank_of(row->sizes[0]), second = rank_of(row->sizes[1]);
    if (row->op == OP_ScatterND) /* the length of an index */
        return UINT64_C(1) << (first + second - 1);
    if (row->op == OP_ConvTranspose ||
        row->op == OP_ConvInteger) /* the weights, and the channels that meet them */
        return ((UINT64_C(1) << second) - 1) << first | UINT64_C(2) | UINT64_C(2) << (first + second);
    return 0;
}

static struct gpu_case *build_case(struct arena *arena, const struct row *row, bool symbolic, bool words)
{
    struct gpu_case *made = arena_new(arena, struct gpu_case);
    struct symbols *symbols = arena_new(arena, struct symbols);
    struct op_case c;
    struct diagnostics diagnostics;
    made->graph = graph_new(arena);
    made->name = arena_printf(arena, "%s%s", row->name, words ? ", words" : symbolic ? ", symbols" : "");
    made->strategy = row->strategy;
    /* Free sizes prove no run. */
    made->candidates = symbolic && strcmp(row->strategy, "gpu_pointwise") == 0 ? 0 : row->candidates;
    if (words && (made->candidates > 1 || strcmp(row->strategy, "gpu_matmul_wgmma") == 0))
        made->candidates = strcmp(row->strategy, "gpu_matmul_wgmma") != 0; /* which refuses them */
    if (row->flags & (symbolic ? SIZES_KNOWN : SIZES_FREE))
        made->candidates = 0;
    made->constant = row->op == OP_Conv && (row->flags & RIGHT_TURNED);
    /* Of a constant's sizes and the channels that meet them nothing is open. */
    enum {
        OPEN = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 9 | 1 << 11 | 1 << 12
    }; /* n, h, w of the input and of the result */
    *symbols = (struct symbols){.dims = &made->graph->dims,
                                .symbolic = symbolic,
                                .words = words ? made->graph : NULL,
                                .known = made->constant ? ~(uint64_t)OPEN : known_sizes(row)};
    made->suppresses = row->op == OP_NonMaxSuppression;
    made->symbols = symbols->values;
    made->bounds = words ? symbols->bounds : NULL;
    make_case(arena, row, &c);
    diagnostics_init(&diagnostics, arena, row->name);
    node_id node = case_node(arena, &c, symbols, made->graph);
    exprs_init(&made->pool, arena, &made->graph->dims);
    if (!define_node(made->graph, node, &made->pool, &diagnostics, &made->definition))
        fail_msg("%s: %s", row->name, diagnostics.items.items[0].message);
    finish_case(made, row->finish);
    struct text printed;
    text_init(&printed, arena); /* as --explain prints it */
    definition_print(&made->definition, &printed);
    assert_non_null(strstr(printed.data, "for ["));
    return made;
}

/* No row before it has the strategy and the operator, in this form. */
static bool is_first_of_kind(uint32_t row)
{
    for (uint32_t i = 0; i < row; i++)
        if (rows[i].op == rows[row].op && strcmp(rows[i].strategy, rows[row].strategy) == 0 &&
            (rows[i].op != OP_TopK && rows[i].op != OP_CumSum))
            return false;
    return true;
}

struct gpu_case *gpu_case_make(struct arena *arena, uint32_t index)
{
    if (index < 2 * ROWS)
        return build_case(arena, &rows[index / 2], index % 2, false);
    for (uint32_t row = 0, left = index - 2 * ROWS; row < ROWS; row++)
        if (is_first_of_kind(row) && left-- == 0)
            return build_case(arena, &rows[row], true, true);
    return NULL;
}

struct gpu_case *gpu_speed_case_make(struct arena *arena, uint32_t index)
{
    return index < sizeof speed_rows / sizeof speed_rows[0] ? build_case(arena, &speed_rows[index], false, false)
                                                            : NULL;
}

/* ---- runs
 * -----------------------------------------------------------------------------------------------------------
 */

static bool nothing_constant(const struct strategy_context *context, uint32_t buffer)
{
    (void)context;
    (void)buffer;
    return false;
}

static bool second_constant(const struct strategy_context *context, uint32_t buffer)
{
    (void)context;
    return buffer == 1;
}

static const struct strategy *named(const char *name)
{
    for (uint32_t i = 0; gpu_strategy(i); i++)
        if (strcmp(gpu_strategy(i)->name, name) == 0)
            return gpu_strategy(i);
    fail_msg("no strategy %s", name);
    return NULL;
}

double gpu_case_tolerance(enum dtype dtype)
{
    return dtype == DTYPE_F32      ? 2e-6
           : dtype == DTYPE_F64    ? 1e-14
           : dtype == DTYPE_BF16   ? 8e-3
           : dtype_is_float(dtype) ? 1e-3
                                   : 0;
}

bool gpu_case_runs(const struct gpu_case *made, const struct machine *machine)
{
    if (strcmp(made->strategy, "gpu_matmul_mma") == 0)
        return machine->asynchronous_copies && machine->compute_capability >= 80;
    return strcmp(made->strategy, "gpu_matmul_wgmma") != 0 ||
           (machine->compute_capability == 90 && machine->architecture_specific);
}

bool gpu_run_launches(const struct gpu_run *run, const struct kernel *kernel)
{
    return !kernel->condition || gpu_run_dim(run, kernel->condition) != 0;
}

int64_t gpu_run_dim(const struct gpu_run *run, dim d)
{
    int64_t value = 0;
    assert_true(dim_evaluate(&run->from->graph->dims, d, run->from->symbols, &value));
    return value;
}

int64_t gpu_run_grid(const struct gpu_run *run, dim d)
{
    int64_t value = gpu_run_dim(run, d), most = value;
    if (run->from->bounds)
        assert_true(dim_evaluate(&run->from->graph->dims, d, run->from->bounds, &most));
    return most > value ? most : value;
}

uint64_t gpu_run_bytes(const struct gpu_run *run, const struct tensor_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= gpu_run_dim(run, type->dims[i]);
    return (uint64_t)count * dtype_bits(type->dtype) / 8;
}

static void fill(void *data, enum dtype dtype, uint64_t bytes, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1, step = dtype_bits(dtype) / 8;
    for (uint64_t i = 0; i < bytes; i += step) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value = (double)(state >> 40) / 8388608.0 - 1;
        uint64_t bits = encode(dtype, dtype_is_float(dtype) ? value : floor(value * 100));
        memcpy((unsigned char *)data + i, &bits, step);
    }
}

static void open_run(struct gpu_run *run, struct arena *arena, const struct gpu_case *from,
                     const struct machine *machine)
{
    *run = (struct gpu_run){.from = from, .group = {.body = from->definition}};
    run->group.values = arena_new_array(arena, value_id, from->definition.buffers.count);
    run->context =
        (struct strategy_context){.graph = from->graph,
                                  .group = &run->group,
                                  .machine = machine,
                                  .arena = arena,
                                  .is_constant = from->constant ? second_constant : nothing_constant};
}

/* As the planner does. */
static void bind_words(struct gpu_run *run)
{
    struct arena *arena = run->context.arena;
    struct dims *dims = &run->from->graph->dims;
    run->words = arena_alloc(arena, (run->lowered.launches.count + 1) * sizeof *run->words);
    for (uint32_t i = 0; i < run->lowered.launches.count; i++) {
        const struct kernel_launch *launch = &run->lowered.launches.items[i];
        dim touched[MAX_KERNEL_MEMORIES];
        uint32_t count = 0;
        for (uint32_t k = 0; k < launch->kernel->global_count; k++) {
            const uint32_t index = launch->arguments[k].index;
            if (launch->arguments[k].kind != ARGUMENT_DERIVED)
                touched[count++] = tensor_elements(dims, launch->arguments[k].kind == ARGUMENT_BUFFER
                                                             ? &run->group.body.buffers.items[index].type
                                                             : &run->lowered.temporaries.items[index].type);
        }
        if (!kernel_bind_words(launch->kernel, run->from->graph, touched, count, run->words[i]))
            fail_msg("%s: too many words", run->from->name);
    }
}

static void build_run(struct gpu_run *run)
{
    struct text why;
    text_init(&why, run->context.arena);
    if (!named(run->from->strategy)->build(&run->context, &run->config, &run->lowered, &why))
        fail_msg("%s: %s", run->from->name, why.data);
    if (run->from->bounds)
        bind_words(run);
}

bool gpu_run_make(struct gpu_run *run, struct arena *arena, const struct gpu_case *from,
                  const struct machine *machine, uint32_t number)
{
    struct text why;
    struct config candidates[64];
    text_init(&why, arena);
    open_run(run, arena, from, machine);
    const struct strategy *strategy = named(from->strategy);
    if (from->candidates == 0)
        return false;
    if (!strategy->fits(&run->context, &why))
        fail_msg("%s does not fit %s: %s", from->strategy, from->name, why.data);
    uint32_t count = strategy->candidates(&run->context, candidates, 64);
    assert_true(count > 0);
    count = count < from->candidates ? count : from->candidates;
    if (number > count)
        return false;
    run->context.index_bits = number == count ? 64 : 0;
    run->config = candidates[number == count ? 0 : number];
    build_run(run);
    return true;
}

void gpu_run_build(struct gpu_run *run, struct arena *arena, const struct gpu_case *from,
                   const struct machine *machine, const struct config *config)
{
    open_run(run, arena, from, machine);
    run->config = *config;
    build_run(run);
}

uint32_t gpu_run_variety(struct arena *arena, const struct gpu_case *from, const struct machine *machine,
                         uint32_t each, struct config *out, uint32_t limit)
{
    enum { ALL = 1024, TILE_NUMBERS = 5 };
    struct gpu_run run;
    struct config *all = arena_new_array(arena, struct config, ALL);
    open_run(&run, arena, from, machine);
    const uint32_t count = named(from->strategy)->candidates(&run.context, all, ALL);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count && kept < limit; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < kept; k++)
            same += memcmp(out[k].value, all[i].value, TILE_NUMBERS * sizeof all[i].value[0]) == 0;
        if (same < each)
            out[kept++] = all[i];
    }
    return kept;
}

void gpu_run_describe(const struct gpu_run *run, struct text *out)
{
    named(run->from->strategy)->describe(&run->config, out);
}

/* Places must be places, a limit and a threshold such that some are kept and some are not. */
static void fill_suppression(const struct gpu_run *run)
{
    const int64_t count = gpu_run_dim(run, run->group.body.buffers.items[1].type.dims[2]), most = 90;
    const float overlap = 0.02F;
    for (uint64_t i = 0; i < run->bytes[1] / sizeof count; i++) {
        const int64_t place = ((int64_t)i * 7 + 3) % count;
        memcpy((unsigned char *)run->buffers[1] + i * sizeof place, &place, sizeof place);
    }
    memcpy(run->buffers[3], &most, sizeof most);
    memcpy(run->buffers[4], &overlap, sizeof overlap);
}

void gpu_run_expect(struct gpu_run *run)
{
    struct arena *arena = run->context.arena;
    const struct definition *d = &run->group.body;
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        const struct buffer *buffer = &d->buffers.items[i];
        run->bytes[i] = gpu_run_bytes(run, &buffer->type);
        run->buffers[i] = run->expected[i] = arena_alloc(arena, run->bytes[i]);
        if (buffer->role == BUFFER_INPUT) {
            fill(run->buffers[i], buffer->type.dtype, run->bytes[i], i + 1);
            continue;
        }
        run->expected[i] = arena_alloc(arena, run->bytes[i]);
        memset(run->buffers[i], 0xA5, run->bytes[i]);
    }
    if (run->from->suppresses)
        fill_suppression(run);
    assert_int_equal(interpret(d, run->from->symbols, run->expected, NULL, &system_allocator), INTERP_DONE);
    for (uint32_t i = 0; i < run->lowered.derived.count; i++) {
        const struct derived *derived = &run->lowered.derived.items[i];
        run->derived_bytes[i] = gpu_run_bytes(run, &derived->recipe.buffers.items[1].type);
        run->derived[i] = arena_alloc(arena, run->derived_bytes[i]);
        void *buffers[] = {run->expected[derived->source], run->derived[i]};
        assert_int_equal(interpret(&derived->recipe, run->from->symbols, buffers, NULL, &system_allocator),
                         INTERP_DONE);
    }
}

void gpu_run_compare(const struct gpu_run *run, uint32_t number, const void *result)
{
    const struct tensor_type *type = &run->group.body.buffers.items[number].type;
    unsigned width = dtype_bits(type->dtype) / 8;
    uint64_t count = run->bytes[number] / width;
    double largest = 0;
    struct text config;
    text_init(&config, run->context.arena);
    const struct strategy *strategy = named(run->from->strategy);
    strategy->describe(&run->config, &config);
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < count; i++) {
            uint64_t want_bits = 0, got_bits = 0;
            memcpy(&want_bits, (const unsigned char *)run->expected[number] + i * width, width);
            memcpy(&got_bits, (const unsigned char *)result + i * width, width);
            double want = decode(type->dtype, expr_eval_extend(type->dtype, want_bits));
            double got = decode(type->dtype, expr_eval_extend(type->dtype, got_bits));
            if (pass == 0) {
                largest = isfinite(want) && fabs(want) > largest ? fabs(want) : largest;
                continue;
            }
            const double tolerance = gpu_case_tolerance(type->dtype);
            if (!(got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance * largest))
                fail_msg("%s (%s %s): element %llu of %llu is %.9g, expected %.9g", run->from->name,
                         run->from->strategy, config.data, (unsigned long long)i, (unsigned long long)count,
                         got, want);
        }
}

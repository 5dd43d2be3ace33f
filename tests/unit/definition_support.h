/* What the tests of Definitions share. A case is one node with its inputs as lists of doubles and the dims of
 * its results; it runs through define_node, the verifier and the interpreter twice: with constant dims, and
 * with every dim a symbol of its own, about whose relations the Definition knows nothing. Outputs are
 * poisoned before each run. */
#ifndef GPUCC_TESTS_UNIT_DEFINITION_SUPPORT_H
#define GPUCC_TESTS_UNIT_DEFINITION_SUPPORT_H

#include "tests/unit/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/expr_eval.h"
#include "ir/interp.h"

enum { MOST_DIMS = 8, MOST_SYMBOLS = 64, MOST_TENSORS = 72 };

struct tensor {
    enum dtype dtype;
    int rank;
    int64_t sizes[MOST_DIMS];
    double *values; /* NULL: an absent input */
};

static inline int64_t tensor_count(const struct tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->sizes[i];
    return count;
}

/* The value as the type holds it. */
static inline uint64_t encode(enum dtype dtype, double value)
{
    uint64_t bits, result = 0;
    memcpy(&bits, &value, sizeof bits);
    assert_true(expr_eval_convert(dtype, DTYPE_F64, bits, &result));
    return result;
}

static inline double decode(enum dtype dtype, uint64_t bits)
{
    uint64_t result = 0;
    double value;
    assert_true(expr_eval_convert(DTYPE_F64, dtype, bits, &result));
    memcpy(&value, &result, sizeof value);
    return value;
}

#define SIZES(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define SCALAR 0, NULL

static inline struct tensor tensor_new(struct arena *arena, enum dtype dtype, int rank, const int64_t *sizes)
{
    struct tensor tensor = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        tensor.sizes[i] = sizes[i];
    tensor.values = arena_new_array(arena, double, (size_t)tensor_count(&tensor) + 1);
    return tensor;
}

/* Values given in order; rounded to the type. */
static inline struct tensor tensor_of(struct arena *arena, enum dtype dtype, int rank, const int64_t *sizes,
                                      const double *values)
{
    struct tensor tensor = tensor_new(arena, dtype, rank, sizes);
    for (int64_t i = 0; i < tensor_count(&tensor); i++)
        tensor.values[i] = decode(dtype, encode(dtype, values[i]));
    return tensor;
}

/* Values between low and high, whole ones for integers; the same for the same seed. */
static inline struct tensor tensor_random(struct arena *arena, enum dtype dtype, uint32_t seed, double low,
                                          double high, int rank, const int64_t *sizes)
{
    struct tensor tensor = tensor_new(arena, dtype, rank, sizes);
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (int64_t i = 0; i < tensor_count(&tensor); i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value = low + (high - low) * ((double)(state >> 40) / 16777216.0);
        if (!dtype_is_float(dtype))
            value = floor(value + 0.5);
        tensor.values[i] = decode(dtype, encode(dtype, value));
    }
    return tensor;
}

/* The multi-dimensional index of a flat one. */
static inline void index_of(const struct tensor *tensor, int64_t flat, int64_t *index)
{
    for (int i = tensor->rank; i-- > 0;) {
        index[i] = flat % tensor->sizes[i];
        flat /= tensor->sizes[i];
    }
}

static inline double value_at(const struct tensor *tensor, const int64_t *index)
{
    int64_t flat = 0;
    for (int i = 0; i < tensor->rank; i++) {
        assert_true(index[i] >= 0 && index[i] < tensor->sizes[i]);
        flat = flat * tensor->sizes[i] + index[i];
    }
    return tensor->values[flat];
}

/* The element that broadcasts to this index of a result of the given rank. */
static inline double broadcast_at(const struct tensor *tensor, int rank, const int64_t *index)
{
    int64_t own[MOST_DIMS];
    for (int i = 0; i < tensor->rank; i++) {
        const int64_t at = index[rank - tensor->rank + i];
        own[i] = tensor->sizes[i] == 1 ? 0 : at;
    }
    return value_at(tensor, own);
}

struct op_case {
    enum op op;
    uint32_t input_count, output_count, attribute_count;
    struct tensor inputs[MOST_TENSORS];
    struct tensor outputs[3]; /* type and sizes given; values are filled in; dtype NONE: absent */
    struct attribute attributes[12];
    /* An attribute of kind DIMS holds sizes here; they become dims of the graph. */
    const int64_t *dims_values[12];
    bool constant_only; /* the operator needs a constant dim */
    bool refused;       /* define_node must say no */
};

static inline void add_attribute(struct op_case *c, struct attribute attribute)
{
    c->attributes[c->attribute_count++] = attribute;
}

static inline void add_dims(struct op_case *c, enum attribute_name name, uint32_t count,
                            const int64_t *values)
{
    c->dims_values[c->attribute_count] = values;
    add_attribute(c, (struct attribute){.name = name, .kind = ATTR_DIMS, .count = count});
}

struct symbols {
    struct dims *dims;
    bool symbolic;
    struct graph *words; /* symbolic: sizes are computed by the model; their values are inputs of this graph. NULL: free ones */
    uint64_t known; /* symbolic: bit i: the size that is asked for as the i-th one is known all the same */
    uint32_t calls;
    uint32_t count;
    int64_t values[MOST_SYMBOLS * MOST_DIMS], bounds[MOST_SYMBOLS * MOST_DIMS];
};

static inline dim size_dim(struct symbols *symbols, int64_t size)
{
    const uint32_t call = symbols->calls++;
    if (!symbols->symbolic || (call < 64 && symbols->known >> call & 1))
        return dim_constant(symbols->dims, size);
    struct symbol symbol = {.source = SYMBOL_INPUT_AXIS,
                                  .input = symbols->count,
                                  .low = size < 0 ? INT64_MIN >> 16 : 0,
                                  .high = INT64_MAX >> 16,
                                  .hint = size};
    symbols->values[symbols->count] = size;
    if (symbols->words) {
        const struct tensor_type word = {.dtype = DTYPE_I64};
        symbol.source = SYMBOL_WORD;
        symbol.word = graph_add_input(symbols->words, NULL, word);
        symbol.bound = dim_constant(symbols->dims, size + 3 + (size > 0 ? size / 2 : 0));
        symbols->bounds[symbols->count] = size + 3 + (size > 0 ? size / 2 : 0);
    }
    symbols->count++;
    return dim_symbol(symbols->dims, &symbol);
}

static inline struct tensor_type type_of(struct arena *arena, struct symbols *symbols,
                                         const struct tensor *tensor)
{
    dim dims[MOST_DIMS];
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = size_dim(symbols, tensor->sizes[i]);
    return tensor_type_new(arena, tensor->dtype, tensor->rank, dims);
}

static inline unsigned char *pack(struct arena *arena, const struct tensor *tensor)
{
    const unsigned width = dtype_bits(tensor->dtype) / 8;
    unsigned char *bytes = arena_alloc(arena, (size_t)tensor_count(tensor) * width);
    for (int64_t i = 0; i < tensor_count(tensor); i++) {
        const uint64_t bits = encode(tensor->dtype, tensor->values[i]);
        for (unsigned k = 0; k < width; k++)
            bytes[(size_t)i * width + k] = (unsigned char)(bits >> 8 * k);
    }
    return bytes;
}

static inline void unpack(const unsigned char *bytes, struct tensor *tensor)
{
    const unsigned width = dtype_bits(tensor->dtype) / 8;
    for (int64_t i = 0; i < tensor_count(tensor); i++) {
        uint64_t bits = 0;
        for (unsigned k = 0; k < width; k++)
            bits |= (uint64_t)bytes[(size_t)i * width + k] << 8 * k;
        tensor->values[i] = decode(tensor->dtype, expr_eval_extend(tensor->dtype, bits));
    }
}

/* The node in a graph of its own, with the types of its results set. */
static inline node_id case_node(struct arena *arena, const struct op_case *c, struct symbols *symbols,
                                struct graph *graph)
{
    value_id inputs[MOST_TENSORS] = {0};
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].values)
            inputs[i] = graph_add_input(graph, NULL, type_of(arena, symbols, &c->inputs[i]));
    struct attribute attributes[12];
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        attributes[i] = c->attributes[i];
        if (attributes[i].kind != ATTR_DIMS)
            continue;
        dim *dims = arena_new_array(arena, dim, attributes[i].count);
        for (uint32_t k = 0; k < attributes[i].count; k++)
            dims[k] = size_dim(symbols, c->dims_values[i][k]);
        attributes[i].dims = dims;
    }
    const node_id node = graph_add_node(graph, GRAPH_BODY, 0, c->op, c->input_count, inputs, c->output_count,
                                        c->attribute_count, attributes, NULL);
    for (uint32_t i = 0; i < c->output_count; i++) {
        value_id *output = &graph_node(graph, node)->outputs[i];
        if (c->outputs[i].dtype == DTYPE_NONE)
            *output = 0;
        else {
            const struct tensor_type type = type_of(arena, symbols, &c->outputs[i]); /* may add values */
            graph_value(graph, *output)->type = type;
        }
    }
    return node;
}

static inline void run_once(struct arena *arena, struct op_case *c, bool symbolic)
{
    struct graph *graph = graph_new(arena);
    struct symbols symbols = {.dims = &graph->dims, .symbolic = symbolic};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena, "case");
    const node_id node = case_node(arena, c, &symbols, graph);
    struct exprs pool;
    struct definition definition;
    exprs_init(&pool, arena, &graph->dims);
    const bool defined = define_node(graph, node, &pool, &diagnostics, &definition);
    struct text text;
    text_init(&text, arena);
    if (defined == c->refused) {
        if (!defined)
            diag_print(&diagnostics, &diagnostics.items.items[0], &text);
        fail_msg("%s: %s", op_facts(c->op)->name, defined ? "should be refused" : text.data);
    }
    if (c->refused) {
        assert_int_equal(diagnostics.items.items[0].code, DIAG_unsupported_case);
        return;
    }
    if (!definition_verify(&definition, &text)) {
        text_put(&text, "\n");
        definition_print(&definition, &text);
        fail_msg("%s: %s", op_facts(c->op)->name, text.data);
    }
    void *buffers[MAX_BUFFERS] = {NULL};
    uint32_t next = 0;
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i].values)
            buffers[next++] = pack(arena, &c->inputs[i]);
    const uint32_t first_output = next;
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (c->outputs[i].dtype == DTYPE_NONE)
            continue;
        const size_t bytes = (size_t)tensor_count(&c->outputs[i]) * dtype_bits(c->outputs[i].dtype) / 8;
        buffers[next] = arena_alloc(arena, bytes);
        memset(buffers[next++], 0xA5, bytes);
    }
    const enum interp_status status =
        interpret(&definition, symbols.values, buffers, NULL, &system_allocator);
    if (status != INTERP_DONE) {
        definition_print(&definition, &text);
        fail_msg("%s%s: status %d\n%s", op_facts(c->op)->name, symbolic ? " symbolic" : "", (int)status,
                 text.data);
    }
    next = first_output;
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (c->outputs[i].dtype == DTYPE_NONE)
            continue;
        struct tensor *output = &c->outputs[i];
        output->values = arena_new_array(arena, double, (size_t)tensor_count(output) + 1);
        unpack(buffers[next++], output);
    }
}

/* Compares a result; `tolerance` is relative to the largest reference, 0: exact (any NaN for NaN). */
static inline void check_values(const char *what, const struct tensor *result, const double *expected,
                                double tolerance)
{
    double largest = 0;
    const int64_t count = tensor_count(result);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i]) && fabs(expected[i]) > largest)
            largest = fabs(expected[i]);
    for (int64_t i = 0; i < count; i++) {
        const double got = result->values[i], want = expected[i];
        const bool same = got == want || (isnan(got) && isnan(want)) ||
                          (isfinite(want) && fabs(got - want) <= tolerance * largest);
        if (!same)
            fail_msg("%s: element %lld is %.9g, expected %.9g", what, (long long)i, got, want);
    }
}

/* Runs both ways and compares the first output with the expected values each time. */
static inline void run_case(struct arena *arena, struct op_case *c, const double *expected, double tolerance)
{
    for (int symbolic = 0; symbolic < (c->constant_only ? 1 : 2); symbolic++) {
        run_once(arena, c, symbolic == 1);
        if (!c->refused && expected)
            check_values(op_facts(c->op)->name, &c->outputs[0], expected, tolerance);
    }
}

/* One input, one output of the same dims. */
static inline struct op_case unary_case(enum op op, struct tensor x, enum dtype result)
{
    struct op_case c = {.op = op, .input_count = 1, .output_count = 1, .inputs = {x}, .outputs = {x}};
    c.outputs[0].dtype = result;
    return c;
}

#endif

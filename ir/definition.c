/* Definitions: the builders that the files of ir/definitions/ use, the table from operators to their
 * Definitions, the text form and the verifier. Operators themselves are defined in ir/definitions/. */
#include "ir/definition.h"

#include "ir/definitions/build.h"

#include <string.h>

/* ---- building
 * ---------------------------------------------------------------------------------------------------- */

uint32_t definition_buffer(struct definition *d, enum buffer_role role, struct tensor_type type)
{
    const struct buffer buffer = {.role = role, .type = type};
    vec_push(d->pool->arena, &d->buffers, buffer);
    return d->buffers.count - 1;
}

struct nest *definition_nest(struct definition *d, uint32_t rank, const dim *extents, uint32_t reduce_rank,
                             const dim *reduce_extents)
{
    struct nest nest = {.rank = rank, .reduce_rank = reduce_rank};
    for (uint32_t i = 0; i < rank; i++)
        nest.extents[i] = extents[i];
    for (uint32_t i = 0; i < reduce_rank; i++)
        nest.extents[rank + i] = reduce_extents[i];
    vec_push(d->pool->arena, &d->nests, nest);
    return &d->nests.items[d->nests.count - 1];
}

expr nest_axis(const struct definition *d, const struct nest *nest, uint32_t axis)
{
    return expr_axis(d->pool, axis, nest->extents[axis]);
}

uint32_t nest_reduce(struct definition *d, struct nest *nest, enum reduce_op op, expr body)
{
    struct reduction *grown = arena_new_array(d->pool->arena, struct reduction, nest->reduction_count + 1);
    if (nest->reduction_count)
        memcpy(grown, nest->reductions, nest->reduction_count * sizeof *grown);
    grown[nest->reduction_count] = (struct reduction){.op = op, .body = body};
    nest->reductions = grown;
    return nest->reduction_count++;
}

void nest_store(struct definition *d, struct nest *nest, uint32_t buffer, const expr *indices, expr value)
{
    struct nest_store *grown = arena_new_array(d->pool->arena, struct nest_store, nest->store_count + 1);
    if (nest->store_count)
        memcpy(grown, nest->stores, nest->store_count * sizeof *grown);
    const size_t rank = (size_t)d->buffers.items[buffer].type.rank;
    grown[nest->store_count] = (struct nest_store){
        .buffer = buffer,
        .indices = indices ? arena_copy(d->pool->arena, indices, rank * sizeof *indices) : NULL,
        .value = value,
    };
    nest->stores = grown;
    nest->store_count++;
}

void nest_store_where(struct definition *d, struct nest *nest, uint32_t buffer, const expr *indices,
                      expr value, expr condition)
{
    int64_t always;
    nest_store(d, nest, buffer, indices, value);
    if (!expr_constant_int(d->pool, condition, &always) || !always)
        nest->stores[nest->store_count - 1].condition = condition;
}

uint32_t nest_store_axes(const struct nest *nest)
{
    return nest->kind == NEST_REDUCE   ? nest->rank
           : nest->kind == NEST_FILTER ? nest->rank + 1
                                       : nest->rank + nest->reduce_rank;
}

enum dtype nest_reduced_dtype(const struct definition *d, const struct nest *nest, uint32_t reduction)
{
    return nest->kind == NEST_SORT     ? DTYPE_I64
           : nest->kind == NEST_FILTER ? DTYPE_U32
                                       : expr_at(d->pool, nest->reductions[reduction].body)->dtype;
}

bool definition_is_plain(const struct definition *definition)
{
    for (uint32_t n = 0; n < definition->nests.count; n++) {
        const struct nest *nest = &definition->nests.items[n];
        if (nest->kind != NEST_REDUCE)
            return false;
        for (uint32_t i = 0; i < nest->store_count; i++)
            if (nest->stores[i].condition)
                return false;
    }
    return true;
}

/* ---- operators
 * --------------------------------------------------------------------------------------------------- */

int definition_input(const struct graph *graph, node_id id, uint32_t input)
{
    const struct node *node = graph_node(graph, id);
    if (!node_input(node, input))
        return -1;
    int buffer = 0;
    for (uint32_t i = 0; i < input; i++)
        buffer += node->inputs[i] != 0;
    return buffer;
}

static bool define_none(struct build *b)
{
    return build_refuse(b, "the operator stands behind shape inference, which should have replaced it");
}

static define_function *const define_functions[OP_COUNT] = {
#define OP(name, least_in, most_in, least_out, most_out, traits, shape, definition)                          \
    [OP_##name] = define_##definition,
#include "ir/ops.def"
#undef OP
};

/* Operators whose Definitions read and write packed elements. */
static bool takes_packed(enum op op)
{
    return op == OP_Cast || op == OP_DequantizeLinear || op == OP_QuantizeLinear || op == OP_Identity ||
           op == OP_Reshape;
}

/* Values become buffers: inputs, then outputs. Types whose elements expressions cannot load are refused here.
 */
static bool add_node_buffers(struct build *b)
{
    const struct node *node = b->node;
    const uint32_t total = node->input_count + node->output_count;
    if (total > MAX_BUFFERS - 4)
        return build_refuse(b, "%u inputs and outputs are more than one operator may have", (unsigned)total);
    for (uint32_t i = 0; i < total; i++) {
        const bool is_input = i < node->input_count;
        const value_id value = is_input ? node->inputs[i] : node->outputs[i - node->input_count];
        if (!value)
            continue;
        const struct tensor_type type = graph_value(b->graph, value)->type;
        if (type.rank < 0 || type.rank > MAX_RANK)
            return build_refuse(b, "a value has no known rank within %d", (int)MAX_RANK);
        const struct tensor_type stored = storage_type(b->dims, b->pool->arena, &type);
        if (dtype_bits(stored.dtype) < 8 || dtype_bits(type.dtype) > 64 ||
            dtype_class(type.dtype) == DTYPE_CLASS_OTHER ||
            (stored.dtype != type.dtype && !takes_packed(node->op)))
            return build_refuse(b, "elements of type %s are not implemented", dtype_name(type.dtype));
        if (stored.rank && !stored.dims[0])
            return build_refuse(b, "the number of elements overflows");
        definition_buffer(b->d, is_input ? BUFFER_INPUT : BUFFER_OUTPUT, stored);
    }
    return true;
}

bool define_node(const struct graph *graph, node_id id, struct exprs *pool, struct diagnostics *diagnostics,
                 struct definition *out)
{
    *out = (struct definition){.pool = pool};
    struct build b = {
        .graph = graph,
        .node = graph_node(graph, id),
        .id = id,
        .pool = pool,
        .dims = pool->dims,
        .diagnostics = diagnostics,
        .d = out,
    };
    define_function *define = b.node->op < OP_COUNT ? define_functions[b.node->op] : NULL;
    if (!define)
        return build_refuse(&b, "the operator has no Definition");
    return add_node_buffers(&b) && define(&b);
}

/* ---- text
 * -------------------------------------------------------------------------------------------------------- */

const char *reduce_op_name(enum reduce_op op)
{
    static const char *const names[] = {"sum", "product", "max", "min"};
    return names[op];
}

static void print_dims(const struct dims *dims, uint32_t count, const dim *list, struct text *out)
{
    text_put(out, "[");
    for (uint32_t i = 0; i < count; i++) {
        text_put(out, i ? ", " : "");
        dim_print(dims, list[i], out);
    }
    text_put(out, "]");
}

static void print_nest(const struct definition *d, const struct nest *nest, struct text *out)
{
    static const char *const orders[] = {[NEST_REDUCE] = " over ",
                                         [NEST_SCAN] = " in order over ",
                                         [NEST_SORT] = " sorted over ",
                                         [NEST_SCATTER] = " scattered over ",
                                         [NEST_FILTER] = " filtered over "};
    text_put(out, "for ");
    print_dims(d->pool->dims, nest->rank, nest->extents, out);
    if (nest->reduce_rank) {
        text_put(out, orders[nest->kind]);
        print_dims(d->pool->dims, nest->reduce_rank, nest->extents + nest->rank, out);
    }
    text_put(out, " {\n");
    for (uint32_t i = 0; i < nest->reduction_count; i++) {
        text_printf(out, "  reduced%u = %s ", (unsigned)i,
                    nest->kind == NEST_SORT ? "place of" : reduce_op_name(nest->reductions[i].op));
        expr_print(d->pool, nest->reductions[i].body, out);
        text_put(out, "\n");
    }
    for (uint32_t i = 0; i < nest->store_count; i++) {
        const struct nest_store *store = &nest->stores[i];
        text_printf(out, "  b%u[", (unsigned)store->buffer);
        const uint32_t rank = (uint32_t)d->buffers.items[store->buffer].type.rank;
        for (uint32_t k = 0; k < rank; k++) {
            text_put(out, k ? ", " : "");
            if (store->indices)
                expr_print(d->pool, store->indices[k], out);
            else
                text_printf(out, "a%u", (unsigned)k);
        }
        text_put(out, "] = ");
        expr_print(d->pool, store->value, out);
        if (store->condition) {
            text_put(out, " where ");
            expr_print(d->pool, store->condition, out);
        }
        text_put(out, "\n");
    }
    text_put(out, "}\n");
}

void definition_print(const struct definition *definition, struct text *out)
{
    static const char *const roles[] = {"input", "output", "temporary"};
    for (uint32_t i = 0; i < definition->buffers.count; i++) {
        const struct buffer *buffer = &definition->buffers.items[i];
        text_printf(out, "b%u : %s %s", (unsigned)i, roles[buffer->role], dtype_name(buffer->type.dtype));
        print_dims(definition->pool->dims, (uint32_t)buffer->type.rank, buffer->type.dims, out);
        text_put(out, "\n");
    }
    for (uint32_t i = 0; i < definition->nests.count; i++)
        print_nest(definition, &definition->nests.items[i], out);
}

/* ---- verifier
 * ---------------------------------------------------------------------------------------------------- */

struct verifier {
    const struct definition *d;
    const struct nest *nest;
    struct text *why;
    uint32_t nest_number;
    bool in_store;       /* else in a reduction's body */
    const bool *stored;  /* [buffer]: by an earlier nest */
    unsigned char *seen; /* [node] of the pool: checked already under these rules */
};

static bool wrong(struct verifier *v, const char *what)
{
    text_printf(v->why, "nest %u: %s", (unsigned)v->nest_number, what);
    return false;
}

static bool verify_load(struct verifier *v, const struct expr_node *node)
{
    if (node->value < 0 || node->value >= v->d->buffers.count)
        return wrong(v, "a load from a buffer that does not exist");
    const struct buffer *buffer = &v->d->buffers.items[node->value];
    const uint32_t indices = (uint32_t)node->count - (node->op == EXPR_LOAD_OR);
    if (indices != (uint32_t)buffer->type.rank)
        return wrong(v, "a load whose indices do not match its buffer's rank");
    if (node->dtype != buffer->type.dtype)
        return wrong(v, "a load whose type is not its buffer's");
    for (uint32_t i = 0; i < indices; i++)
        if (expr_at(v->d->pool, node->arguments[i])->dtype != DTYPE_I64)
            return wrong(v, "an index that is no i64");
    if (buffer->role != BUFFER_INPUT && !v->stored[node->value])
        return wrong(v, "a load from a buffer that no earlier nest stores");
    return true;
}

static bool verify_leaf(struct verifier *v, const struct expr_node *node)
{
    switch (node->op) {
    case EXPR_AXIS: {
        const bool sorts = v->nest->kind == NEST_SORT;
        const uint32_t axes =
            v->in_store ? nest_store_axes(v->nest) : v->nest->rank + (sorts ? 1 : v->nest->reduce_rank);
        if (node->value < 0 || node->value >= axes || (sorts && v->in_store && node->value == v->nest->rank))
            return wrong(v, "an axis that the nest does not have here");
        if (node->extent != v->nest->extents[node->value])
            return wrong(v, "an axis whose extent is not the nest's");
        return true;
    }
    case EXPR_REDUCED:
        if (!v->in_store)
            return wrong(v, "a reduction that sees a reduced value");
        if (node->value < 0 || node->value >= v->nest->reduction_count)
            return wrong(v, "a reduced value that does not exist");
        if (node->dtype != nest_reduced_dtype(v->d, v->nest, (uint32_t)node->value))
            return wrong(v, "a reduced value whose type is not its reduction's");
        return true;
    case EXPR_LOAD:
    case EXPR_LOAD_OR:
        return verify_load(v, node);
    default:
        return true;
    }
}

/* Iterative: expressions come from operators with many inputs and may be deep. */
static bool verify_expr(struct verifier *v, expr root)
{
    const struct exprs *pool = v->d->pool;
    VEC(expr) stack = {0};
    vec_push(v->why->arena, &stack, root);
    while (stack.count) {
        const expr e = stack.items[--stack.count];
        if (!e || e >= pool->nodes.count)
            return wrong(v, "an expression that does not exist");
        if (v->seen[e])
            continue;
        v->seen[e] = 1;
        const struct expr_node *node = expr_at(pool, e);
        if (expr_class_of(node->op) == EXPR_KERNEL || node->lanes > 1)
            return wrong(v, "an expression of Kernel IR");
        if (!verify_leaf(v, node))
            return false;
        for (uint32_t i = 0; i < node->count; i++)
            vec_push(v->why->arena, &stack, node->arguments[i]);
    }
    return true;
}

static bool verify_store(struct verifier *v, const struct nest_store *store)
{
    if (store->buffer >= v->d->buffers.count || v->d->buffers.items[store->buffer].role == BUFFER_INPUT)
        return wrong(v, "a store to a buffer that is an input or does not exist");
    const struct buffer *buffer = &v->d->buffers.items[store->buffer];
    if (!store->indices && ((uint32_t)buffer->type.rank != v->nest->rank || v->nest->kind != NEST_REDUCE))
        return wrong(v, "a store of the parallel axes to a buffer of another rank");
    for (int i = 0; store->indices && i < buffer->type.rank; i++) {
        if (!verify_expr(v, store->indices[i]))
            return false;
        if (expr_at(v->d->pool, store->indices[i])->dtype != DTYPE_I64)
            return wrong(v, "a stored index that is no i64");
    }
    if (!verify_expr(v, store->value) || (store->condition && !verify_expr(v, store->condition)))
        return false;
    if (store->condition && expr_at(v->d->pool, store->condition)->dtype != DTYPE_BOOL)
        return wrong(v, "a condition that is no bool");
    if (expr_at(v->d->pool, store->value)->dtype != buffer->type.dtype)
        return wrong(v, "a stored value whose type is not its buffer's");
    return true;
}

static bool verify_nest(struct verifier *v)
{
    const struct nest *nest = v->nest;
    if (nest->rank > MAX_AXES || nest->reduce_rank > MAX_AXES - nest->rank)
        return wrong(v, "too many axes");
    if (!nest->store_count)
        return wrong(v, "no store");
    if (nest->kind == NEST_SCAN && (nest->reduce_rank != 1 || !nest->reduction_count))
        return wrong(v, "a scan without its one ordered axis");
    if (nest->kind == NEST_SCATTER &&
        (nest->reduce_rank != 1 || nest->reduction_count || nest->store_count != 1))
        return wrong(v, "a scatter without its one ordered axis and one store");
    if (nest->kind == NEST_FILTER &&
        (nest->reduce_rank != 2 || nest->reduction_count != 3 ||
         nest->extents[nest->rank] != nest->extents[nest->rank + 1] ||
         expr_at(v->d->pool, nest->reductions[0].body)->dtype != DTYPE_U32 ||
         expr_at(v->d->pool, nest->reductions[1].body)->dtype != DTYPE_U32 ||
         expr_at(v->d->pool, nest->reductions[2].body)->dtype != DTYPE_I64))
        return wrong(v, "a filter without its two equal axes, two conditions and limit");
    if (nest->kind == NEST_SORT && (nest->reduce_rank != 2 || nest->reduction_count != 1))
        return wrong(v, "a sort without its one key and two axes");
    const size_t nodes = v->d->pool->nodes.count;
    v->in_store = false;
    memset(v->seen, 0, nodes);
    for (uint32_t i = 0; i < nest->reduction_count; i++) {
        if (!verify_expr(v, nest->reductions[i].body))
            return false;
        const enum dtype dtype = expr_at(v->d->pool, nest->reductions[i].body)->dtype;
        if (compute_dtype(dtype) != dtype || dtype == DTYPE_BOOL)
            return wrong(v, "a reduction whose body is not of a type that accumulates");
        if (nest->kind == NEST_SORT && dtype != DTYPE_U32 && dtype != DTYPE_U64)
            return wrong(v, "a key that is no unsigned integer");
    }
    v->in_store = true;
    memset(v->seen, 0, nodes);
    for (uint32_t i = 0; i < nest->store_count; i++)
        if (!verify_store(v, &nest->stores[i]))
            return false;
    return true;
}

bool definition_verify(const struct definition *definition, struct text *why)
{
    if (definition->buffers.count > MAX_BUFFERS) {
        text_put(why, "too many buffers");
        return false;
    }
    bool stored[MAX_BUFFERS] = {false};
    struct verifier v = {
        .d = definition,
        .why = why,
        .stored = stored,
        .seen = arena_alloc(why->arena, definition->pool->nodes.count),
    };
    for (uint32_t i = 0; i < definition->nests.count; i++) {
        v.nest = &definition->nests.items[i];
        v.nest_number = i;
        if (!verify_nest(&v))
            return false;
        for (uint32_t k = 0; k < v.nest->store_count; k++)
            stored[v.nest->stores[k].buffer] = true;
    }
    for (uint32_t i = 0; i < definition->buffers.count; i++)
        if (definition->buffers.items[i].role != BUFFER_INPUT && !stored[i]) {
            text_printf(why, "buffer %u is never stored", (unsigned)i);
            return false;
        }
    return true;
}

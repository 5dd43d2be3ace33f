/* The graph's two arrays and its regions: building, changing, reading attributes and constants. Ids are
 * positions; nothing is freed before the arena. Knows no operator. */
#include "ir/graph.h"

#include "ir/support/checked.h"
#include "ir/support/file.h"
#include "ir/support/hash.h"

#include <stdlib.h>
#include <string.h>

struct graph *graph_new(struct arena *arena)
{
    struct graph *graph = arena_new(arena, struct graph);
    graph->arena = arena;
    interner_init(&graph->names, arena);
    dims_init(&graph->dims, arena);
    vec_push(arena, &graph->values, ((struct value){.kind = VALUE_RESULT}));
    vec_push(arena, &graph->nodes, ((struct node){.op = OP_NONE}));
    vec_push(arena, &graph->regions, ((struct region){.parent = 0}));
    vec_push(arena, &graph->regions, ((struct region){.parent = 0}));
    return graph;
}

/* ---- building
 * ---------------------------------------------------------------------------------------------------- */

static value_id add_value(struct graph *graph, const struct value *value)
{
    vec_push(graph->arena, &graph->values, *value);
    return graph->values.count - 1;
}

value_id graph_add_input(struct graph *graph, const char *name, struct tensor_type type)
{
    const value_id id = add_value(
        graph,
        &(struct value){.type = type, .kind = VALUE_INPUT, .index = graph->inputs.count, .name = name});
    vec_push(graph->arena, &graph->inputs, id);
    return id;
}

value_id graph_add_constant(struct graph *graph, struct tensor_type type, const struct blob *blob)
{
    return add_value(graph, &(struct value){.type = type, .kind = VALUE_CONSTANT, .blob = blob});
}

value_id graph_add_constant_data(struct graph *graph, enum dtype dtype, int rank, const int64_t *sizes,
                                 const void *data)
{
    struct blob *blob = arena_new(graph->arena, struct blob);
    int64_t count = 1;
    uint64_t bytes = 0;
    for (int i = 0; i < rank; i++)
        count *= sizes[i];
    (void)dtype_bytes(dtype, count, &bytes);
    *blob = (struct blob){.kind = BLOB_MEMORY, .length = bytes, .fd = -1};
    blob->bytes = arena_copy(graph->arena, data, (size_t)bytes);
    return graph_add_constant(graph, tensor_type_constant(graph, dtype, rank, sizes), blob);
}

static int attribute_order(const void *a, const void *b)
{
    const enum attribute_name x = ((const struct attribute *)a)->name,
                              y = ((const struct attribute *)b)->name;
    return (x > y) - (x < y);
}

static void insert_before(struct graph *graph, struct region *region, node_id before, node_id node)
{
    vec_push(graph->arena, &region->nodes, node);
    uint32_t at = region->nodes.count - 1;
    for (uint32_t i = at; before && i-- > 0;)
        if (region->nodes.items[i] == before) {
            memmove(&region->nodes.items[i + 1], &region->nodes.items[i], (at - i) * sizeof node);
            region->nodes.items[i] = node;
            break;
        }
}

node_id graph_add_node(struct graph *graph, region_id region, node_id before, enum op op,
                       uint32_t input_count, const value_id *inputs, uint32_t output_count,
                       uint32_t attribute_count, const struct attribute *attributes,
                       const struct location *location)
{
    const node_id id = graph->nodes.count;
    struct node node = {
        .op = op,
        .region = region,
        .input_count = input_count,
        .output_count = output_count,
        .attribute_count = attribute_count,
        .inputs = arena_copy(graph->arena, inputs, input_count * sizeof *inputs),
        .outputs = arena_new_array(graph->arena, value_id, output_count),
        .attributes = arena_copy(graph->arena, attributes, attribute_count * sizeof *attributes),
        .location = location,
    };
    if (attribute_count > 1)
        qsort(node.attributes, attribute_count, sizeof *node.attributes, attribute_order);
    for (uint32_t i = 0; i < output_count; i++)
        node.outputs[i] = add_value(
            graph, &(struct value){.type = {.rank = -1}, .kind = VALUE_RESULT, .producer = id, .index = i});
    vec_push(graph->arena, &graph->nodes, node);
    insert_before(graph, &graph->regions.items[region], before, id);
    return id;
}

region_id graph_add_region(struct graph *graph, node_id parent)
{
    const region_id id = graph->regions.count;
    vec_push(graph->arena, &graph->regions, ((struct region){.parent = parent}));
    struct node *node = graph_node(graph, parent);
    region_id *bodies = arena_new_array(graph->arena, region_id, node->body_count + 1);
    if (node->body_count)
        memcpy(bodies, node->bodies, node->body_count * sizeof *bodies);
    bodies[node->body_count++] = id;
    node->bodies = bodies;
    return id;
}

value_id graph_add_argument(struct graph *graph, region_id region, enum dtype dtype)
{
    struct region *body = &graph->regions.items[region];
    const value_id id = add_value(graph, &(struct value){.type = {.dtype = dtype, .rank = -1},
                                                         .kind = VALUE_ARGUMENT,
                                                         .index = body->arguments.count});
    vec_push(graph->arena, &body->arguments, id);
    return id;
}

void graph_add_output(struct graph *graph, value_id value, const char *name)
{
    vec_push(graph->arena, &graph->outputs, ((struct graph_output){value, name}));
}

void graph_replace_uses(struct graph *graph, value_id old, value_id new_value)
{
    for (uint32_t n = 1; n < graph->nodes.count; n++) {
        struct node *node = graph_node(graph, n);
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] == old)
                node->inputs[i] = new_value;
    }
    for (uint32_t r = 1; r < graph->regions.count; r++)
        for (uint32_t i = 0; i < graph->regions.items[r].results.count; i++)
            if (graph->regions.items[r].results.items[i] == old)
                graph->regions.items[r].results.items[i] = new_value;
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].value == old)
            graph->outputs.items[i].value = new_value;
    for (uint32_t i = 0; i < graph->dims.symbols.count; i++)
        if (graph->dims.symbols.items[i].word == old)
            graph->dims.symbols.items[i].word = new_value;
}

bool graph_is_word(const struct graph *graph, value_id value)
{
    for (uint32_t i = 0; i < graph->dims.symbols.count; i++)
        if (graph->dims.symbols.items[i].source == SYMBOL_WORD && graph->dims.symbols.items[i].word == value)
            return true;
    return false;
}

bool graph_settle_words(struct graph *graph, value_id value)
{
    enum { MOST = 64 };
    int64_t elements[MOST];
    uint32_t count = 0;
    bool possible = true;
    if (!graph_is_word(graph, value) || !value_constant_ints(graph, value, elements, MOST, &count))
        return true;
    for (uint32_t i = 0; i < graph->dims.symbols.count && possible; i++) {
        const struct symbol symbol = graph->dims.symbols.items[i];
        if (symbol.source != SYMBOL_WORD || symbol.word != value || symbol.axis >= count)
            continue;
        possible = elements[symbol.axis] >= symbol.low && elements[symbol.axis] <= symbol.high &&
                   dim_merge(&graph->dims, dim_of_symbol(&graph->dims, i),
                             dim_constant(&graph->dims, elements[symbol.axis]), NULL);
    }
    return possible;
}

void graph_remove_node(struct graph *graph, node_id node)
{
    graph_node(graph, node)->removed = true;
}

void graph_sweep(struct graph *graph)
{
    for (uint32_t r = 1; r < graph->regions.count; r++) {
        struct region *region = &graph->regions.items[r];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < region->nodes.count; i++)
            if (!graph_node(graph, region->nodes.items[i])->removed)
                region->nodes.items[kept++] = region->nodes.items[i];
        region->nodes.count = kept;
    }
}

uint32_t *graph_use_counts(const struct graph *graph, struct arena *arena)
{
    uint32_t *counts = arena_new_array(arena, uint32_t, graph->values.count);
    for (uint32_t n = 1; n < graph->nodes.count; n++) {
        const struct node *node = graph_node(graph, n);
        for (uint32_t i = 0; i < node->input_count && !node->removed; i++)
            counts[node->inputs[i]]++;
    }
    for (uint32_t r = 1; r < graph->regions.count; r++)
        for (uint32_t i = 0; i < graph->regions.items[r].results.count; i++)
            counts[graph->regions.items[r].results.items[i]]++;
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        counts[graph->outputs.items[i].value]++;
    counts[0] = 0;
    return counts;
}

/* ---- attributes
 * -------------------------------------------------------------------------------------------------- */

const struct attribute *node_attribute(const struct node *node, enum attribute_name name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].name == name)
            return &node->attributes[i];
    return NULL;
}

int64_t node_int(const struct node *node, enum attribute_name name, int64_t absent)
{
    const struct attribute *attribute = node_attribute(node, name);
    return attribute && (attribute->kind == ATTR_INT || attribute->kind == ATTR_DTYPE) ? attribute->integer
                                                                                       : absent;
}

double node_float(const struct node *node, enum attribute_name name, double absent)
{
    const struct attribute *attribute = node_attribute(node, name);
    return attribute && attribute->kind == ATTR_FLOAT ? attribute->number : absent;
}

const char *node_word(const struct node *node, enum attribute_name name, const char *absent)
{
    const struct attribute *attribute = node_attribute(node, name);
    return attribute && attribute->kind == ATTR_WORD ? attribute->word : absent;
}

void node_set_attribute(struct graph *graph, node_id id, const struct attribute *attribute)
{
    struct node *node = graph_node(graph, id);
    uint32_t at = 0;
    while (at < node->attribute_count && node->attributes[at].name < attribute->name)
        at++;
    if (at == node->attribute_count || node->attributes[at].name != attribute->name) {
        struct attribute *list = arena_new_array(graph->arena, struct attribute, node->attribute_count + 1);
        for (uint32_t i = 0; i < node->attribute_count; i++)
            list[i < at ? i : i + 1] = node->attributes[i];
        node->attributes = list;
        node->attribute_count++;
    }
    node->attributes[at] = *attribute;
}

void node_remove_attribute(struct node *node, enum attribute_name name)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].name != name)
            node->attributes[kept++] = node->attributes[i];
    node->attribute_count = kept;
}

struct attribute attribute_int(enum attribute_name name, int64_t value)
{
    return (struct attribute){.name = name, .kind = ATTR_INT, .integer = value};
}

struct attribute attribute_float(enum attribute_name name, double value)
{
    return (struct attribute){.name = name, .kind = ATTR_FLOAT, .number = value};
}

struct attribute attribute_word(enum attribute_name name, const char *word)
{
    return (struct attribute){.name = name, .kind = ATTR_WORD, .word = word};
}

struct attribute attribute_dtype(enum attribute_name name, enum dtype value)
{
    return (struct attribute){.name = name, .kind = ATTR_DTYPE, .integer = (int64_t)value};
}

struct attribute attribute_ints(enum attribute_name name, uint32_t count, const int64_t *values)
{
    return (struct attribute){.name = name, .kind = ATTR_INTS, .count = count, .integers = values};
}

struct attribute attribute_floats(enum attribute_name name, uint32_t count, const double *values)
{
    return (struct attribute){.name = name, .kind = ATTR_FLOATS, .count = count, .numbers = values};
}

struct attribute attribute_dims(enum attribute_name name, uint32_t count, const dim *values)
{
    return (struct attribute){.name = name, .kind = ATTR_DIMS, .count = count, .dims = values};
}

/* ---- types
 * ------------------------------------------------------------------------------------------------------- */

struct tensor_type tensor_type_new(struct arena *arena, enum dtype dtype, int rank, const dim *dims)
{
    struct tensor_type type = {.dtype = dtype, .rank = rank};
    if (rank >= 0)
        type.dims = arena_copy(arena, dims, (size_t)rank * sizeof *dims);
    return type;
}

struct tensor_type tensor_type_constant(struct graph *graph, enum dtype dtype, int rank, const int64_t *sizes)
{
    dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = dim_constant(&graph->dims, sizes[i]);
    return tensor_type_new(graph->arena, dtype, rank, dims);
}

bool tensor_type_same(const struct dims *dims, const struct tensor_type *a, const struct tensor_type *b)
{
    (void)dims; /* equal dims are the same number */
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

dim tensor_elements(struct dims *dims, const struct tensor_type *type)
{
    dim product = dim_constant(dims, 1);
    for (int i = 0; i < type->rank; i++)
        product = dim_mul(dims, product, type->dims[i]);
    return type->rank < 0 ? DIM_NONE : product;
}

bool tensor_constant_sizes(const struct dims *dims, const struct tensor_type *type, int64_t *sizes,
                           int64_t *elements)
{
    int64_t product = 1;
    if (type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        if (!dim_is_constant(dims, type->dims[i], &size) || size < 0 || !mul_i64(product, size, &product))
            return false;
        if (sizes)
            sizes[i] = size;
    }
    if (elements)
        *elements = product;
    return true;
}

/* ---- constants
 * --------------------------------------------------------------------------------------------------- */

bool blob_read(const struct blob *blob, uint64_t at, void *data, size_t bytes)
{
    if (at > blob->length || bytes > blob->length - at)
        return false;
    if (bytes == 0)
        return true;
    if (blob->kind == BLOB_MEMORY) {
        memcpy(data, blob->bytes + at, bytes);
        return true;
    }
    return blob->decode ? blob->decode(blob, at, data, bytes)
                        : file_read_at(blob->fd, blob->offset + at, data, bytes);
}

uint64_t blob_hash(const struct blob *blob, bool *readable)
{
    unsigned char chunk[16384], digest[32];
    struct sha256 hash;
    uint64_t result = 0;
    sha256_init(&hash);
    *readable = true;
    for (uint64_t at = 0; at < blob->length;) {
        const size_t bytes = blob->length - at < sizeof chunk ? (size_t)(blob->length - at) : sizeof chunk;
        if (!blob_read(blob, at, chunk, bytes)) {
            *readable = false;
            return 0;
        }
        sha256_update(&hash, chunk, bytes);
        at += bytes;
    }
    sha256_final(&hash, digest);
    for (int i = 0; i < 8; i++)
        result = result << 8 | digest[i];
    return result;
}

/* The little-endian integer of `bytes` bytes, sign-extended when the type is signed. */
static bool decode_integer(enum dtype dtype, const unsigned char *data, unsigned bytes, int64_t *value)
{
    uint64_t bits = 0;
    for (unsigned i = bytes; i-- > 0;)
        bits = bits << 8 | data[i];
    const unsigned width = bytes * 8;
    if (dtype_class(dtype) == DTYPE_CLASS_BOOL)
        bits = bits != 0;
    if (dtype_class(dtype) == DTYPE_CLASS_INT && width < 64 && (bits >> (width - 1) & 1))
        bits |= UINT64_MAX << width;
    if (dtype_class(dtype) != DTYPE_CLASS_INT && bits > INT64_MAX)
        return false;
    memcpy(value, &bits, sizeof bits);
    return true;
}

bool value_constant_ints(const struct graph *graph, value_id id, int64_t *elements, uint32_t limit,
                         uint32_t *count)
{
    const struct value *value = graph_value(graph, id);
    const enum dtype dtype = value->type.dtype;
    const unsigned bytes = dtype_bits(dtype) / 8;
    if (id == 0 || value->kind != VALUE_CONSTANT || !value->blob || bytes == 0 ||
        !(dtype_is_integer(dtype) || dtype == DTYPE_BOOL) || value->blob->length / bytes > limit)
        return false;
    *count = (uint32_t)(value->blob->length / bytes);
    for (uint32_t i = 0; i < *count; i++) {
        unsigned char data[8];
        if (!blob_read(value->blob, (uint64_t)i * bytes, data, bytes) ||
            !decode_integer(dtype, data, bytes, &elements[i]))
            return false;
    }
    return true;
}

static float float_from_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static float half_to_float(uint32_t half)
{
    const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FFu;
    if (exponent == 0) { /* zero and subnormals: exact in f32 */
        const float size = (float)fraction * 0x1p-24f;
        return sign ? -size : size;
    }
    return float_from_bits(sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13);
}

bool value_constant_float(const struct graph *graph, value_id id, double *number)
{
    const struct value *value = graph_value(graph, id);
    const enum dtype dtype = value->type.dtype;
    const unsigned bytes = dtype_bits(dtype) / 8;
    unsigned char data[8];
    int64_t bits;
    if (id == 0 || value->kind != VALUE_CONSTANT || !value->blob || value->blob->length != bytes ||
        (dtype != DTYPE_F32 && dtype != DTYPE_F64 && dtype != DTYPE_F16 && dtype != DTYPE_BF16) ||
        !blob_read(value->blob, 0, data, bytes) || !decode_integer(DTYPE_I64, data, bytes, &bits))
        return false;
    if (dtype == DTYPE_F64)
        memcpy(number, &bits, sizeof bits);
    else if (dtype == DTYPE_F32)
        *number = (double)float_from_bits((uint32_t)bits);
    else if (dtype == DTYPE_BF16)
        *number = (double)float_from_bits((uint32_t)bits << 16);
    else
        *number = (double)half_to_float((uint32_t)bits & 0xFFFFu);
    return true;
}

/* Grouping: groups compute what the nodes compute. Random graphs over operators of every kind, with odd,
 * empty and symbolic sizes, are interpreted node by node and group by group at every level; results must be
 * the same bits. Then counts of groups for shapes of graphs that must fuse. */
#include "tests/unit/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/interp.h"
#include "passes/pass.h"

enum { MOST_VALUES = 64, NODES = 14, SEEDS = 400, POOL_DIMS = 5 };

struct world {
    struct arena *arena;
    struct graph *graph;
    struct diagnostics diagnostics;
    uint64_t random;
    value_id made[MOST_VALUES];
    uint32_t count;
    int64_t symbols[1];
};

static uint32_t draw(struct world *world, uint32_t limit)
{
    world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(world->random >> 33) % limit;
}

static float draw_float(struct world *world)
{
    return (float)draw(world, 4001) / 1000.0f - 2.0f;
}

/* ---- making graphs
 * ------------------------------------------------------------------------------------------------ */

static struct tensor_type *type_of(const struct world *world, value_id value)
{
    return &graph_value(world->graph, value)->type;
}

static dim constant(struct world *world, int64_t size)
{
    return dim_constant(&world->graph->dims, size);
}

static value_id node_of(struct world *world, enum op op, uint32_t inputs, const value_id *values,
                        enum dtype dtype, int rank, const dim *dims, uint32_t attributes,
                        const struct attribute *list)
{
    const node_id node =
        graph_add_node(world->graph, GRAPH_BODY, 0, op, inputs, values, 1, attributes, list, NULL);
    const value_id result = graph_node(world->graph, node)->outputs[0];
    graph_value(world->graph, result)->type = tensor_type_new(world->arena, dtype, rank, dims);
    if (world->count < MOST_VALUES)
        world->made[world->count++] = result;
    return result;
}

static value_id weight(struct world *world, int rank, const int64_t *sizes)
{
    float data[256];
    for (uint32_t i = 0; i < 256; i++)
        data[i] = draw_float(world);
    int64_t elements = 1;
    for (int i = 0; i < rank; i++)
        elements *= sizes[i];
    const struct tensor_type type = tensor_type_constant(world->graph, DTYPE_F32, rank, sizes);
    struct blob *blob = arena_new(world->arena, struct blob);
    *blob = (struct blob){.kind = BLOB_MEMORY, .length = (uint64_t)elements * 4, .fd = -1};
    blob->bytes = arena_copy(world->arena, data, (size_t)elements * 4);
    return graph_add_constant(world->graph, type, blob);
}

static value_id pick(struct world *world)
{
    /* recent values more often, so that chains grow */
    const uint32_t back = draw(world, 2) ? draw(world, 3) : draw(world, world->count);
    return world->made[world->count - 1 - (back < world->count ? back : 0)];
}

static void add_pointwise(struct world *world, value_id x)
{
    static const enum op unary[] = {OP_Relu, OP_Neg, OP_Tanh, OP_Exp, OP_Abs, OP_Sigmoid};
    static const enum op binary[] = {OP_Add, OP_Mul, OP_Sub, OP_Max};
    const struct tensor_type type = *type_of(world, x);
    if (draw(world, 2)) {
        node_of(world, unary[draw(world, 6)], 1, &x, DTYPE_F32, type.rank, type.dims, 0, NULL);
        return;
    }
    value_id inputs[2] = {x, x};
    for (uint32_t i = world->count; i-- > 0 && inputs[1] == x;)
        if (world->made[i] != x && draw(world, 2) &&
            tensor_type_same(&world->graph->dims, type_of(world, world->made[i]), &type))
            inputs[1] = world->made[i];
    if (inputs[1] == x && draw(world, 2))
        inputs[1] = weight(world, 0, NULL);
    node_of(world, binary[draw(world, 4)], 2, inputs, DTYPE_F32, type.rank, type.dims, 0, NULL);
}

/* A vector along the last axis, or a broadcast one. */
static void add_broadcast(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t size;
    if (!type.rank || !dim_is_constant(&world->graph->dims, type.dims[type.rank - 1], &size))
        return;
    const value_id inputs[2] = {x, weight(world, 1, &size)};
    node_of(world, draw(world, 2) ? OP_Add : OP_Mul, 2, inputs, DTYPE_F32, type.rank, type.dims, 0, NULL);
}

static void add_transpose(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t *perm = arena_new_array(world->arena, int64_t, (size_t)type.rank);
    dim dims[MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        perm[i] = i;
    for (int i = type.rank - 1; i > 0; i--) {
        const uint32_t other = draw(world, (uint32_t)i + 1);
        const int64_t kept = perm[i];
        perm[i] = perm[other];
        perm[other] = kept;
    }
    for (int i = 0; i < type.rank; i++)
        dims[i] = type.dims[perm[i]];
    const struct attribute attribute = attribute_ints(ATTR_perm, (uint32_t)type.rank, perm);
    node_of(world, OP_Transpose, 1, &x, DTYPE_F32, type.rank, dims, 1, &attribute);
}

static void add_depth_to_space(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    struct dims *table = &world->graph->dims;
    int64_t channels;
    if (type.rank != 3 || !dim_is_constant(table, type.dims[0], &channels) || channels % 4 || !channels)
        return;
    const dim wide[4] = {constant(world, 1), type.dims[0], type.dims[1], type.dims[2]};
    const value_id image = node_of(world, OP_Reshape, 1, &x, DTYPE_F32, 4, wide, 0, NULL);
    const dim dims[4] = {wide[0], constant(world, channels / 4), dim_mul(table, wide[2], constant(world, 2)),
                         dim_mul(table, wide[3], constant(world, 2))};
    const struct attribute list[] = {attribute_int(ATTR_blocksize, 2),
                                     attribute_word(ATTR_mode, word_find(draw(world, 2) ? "CRD" : "DCR"))};
    node_of(world, OP_DepthToSpace, 1, &image, DTYPE_F32, 4, dims, 2, list);
}

/* Merges two axes, splits one by 2, or adds an axis of 1. */
static void add_reshape(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    struct dims *table = &world->graph->dims;
    dim dims[MAX_RANK];
    int rank = 0;
    const int at = type.rank ? (int)draw(world, (uint32_t)type.rank) : 0;
    const uint32_t way = draw(world, 3);
    for (int i = 0; i < type.rank; i++) {
        dims[rank++] = type.dims[i];
        if (i != at)
            continue;
        if (way == 0 && i + 1 < type.rank) {
            dims[rank - 1] = dim_mul(table, type.dims[i], type.dims[i + 1]);
            i++;
        } else if (way == 1 && dim_divisible(table, type.dims[i], 2)) {
            dims[rank - 1] = dim_floor_div(table, type.dims[i], constant(world, 2));
            dims[rank++] = constant(world, 2);
        }
    }
    if (rank < 4 && way == 2)
        dims[rank++] = constant(world, 1);
    node_of(world, OP_Reshape, 1, &x, DTYPE_F32, rank, dims, 0, NULL);
}

static void add_slice(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t size;
    const int at = type.rank - 1;
    if (at < 0 || !dim_is_constant(&world->graph->dims, type.dims[at], &size) || size < 2)
        return;
    dim dims[MAX_RANK], *starts = arena_new_array(world->arena, dim, (size_t)type.rank);
    int64_t *steps = arena_new_array(world->arena, int64_t, (size_t)type.rank);
    for (int i = 0; i < type.rank; i++) {
        dims[i] = type.dims[i];
        starts[i] = constant(world, 0);
        steps[i] = 1;
    }
    if (draw(world, 2)) {
        starts[at] = constant(world, size - 1);
        steps[at] = -1;
    } else {
        starts[at] = constant(world, 1);
        dims[at] = constant(world, size - 1);
    }
    const struct attribute list[] = {attribute_dims(ATTR_starts, (uint32_t)type.rank, starts),
                                     attribute_ints(ATTR_steps, (uint32_t)type.rank, steps)};
    node_of(world, OP_Slice, 1, &x, DTYPE_F32, type.rank, dims, 2, list);
}

static void add_concat(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    if (!type.rank)
        return;
    dim dims[MAX_RANK];
    value_id inputs[2] = {x, x};
    for (uint32_t i = 0; i < world->count; i++)
        if (draw(world, 2) && tensor_type_same(&world->graph->dims, type_of(world, world->made[i]), &type))
            inputs[1] = world->made[i];
    const uint32_t axis = draw(world, (uint32_t)type.rank);
    for (int i = 0; i < type.rank; i++)
        dims[i] = type.dims[i];
    dims[axis] = dim_add(&world->graph->dims, dims[axis], dims[axis]);
    const struct attribute attribute = attribute_int(ATTR_axis, axis);
    node_of(world, OP_Concat, 2, inputs, DTYPE_F32, type.rank, dims, 1, &attribute);
}

static void add_matmul(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t size;
    if (type.rank < 2)
        return;
    dim dims[MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        dims[i] = type.dims[i];
    if (!dim_is_constant(&world->graph->dims, type.dims[type.rank - 1], &size)) {
        /* x by its own transpose */
        int64_t *perm = arena_new_array(world->arena, int64_t, (size_t)type.rank);
        for (int i = 0; i < type.rank; i++)
            perm[i] = i;
        perm[type.rank - 1] = type.rank - 2;
        perm[type.rank - 2] = type.rank - 1;
        dims[type.rank - 1] = type.dims[type.rank - 2];
        dims[type.rank - 2] = type.dims[type.rank - 1];
        const struct attribute attribute = attribute_ints(ATTR_perm, (uint32_t)type.rank, perm);
        const value_id turned =
            node_of(world, OP_Transpose, 1, &x, DTYPE_F32, type.rank, dims, 1, &attribute);
        const value_id inputs[2] = {x, turned};
        dims[type.rank - 2] = dims[type.rank - 1];
        node_of(world, OP_MatMul, 2, inputs, DTYPE_F32, type.rank, dims, 0, NULL);
        return;
    }
    const int64_t sizes[2] = {size, 4};
    if (size * 4 > 256)
        return;
    const value_id inputs[2] = {x, weight(world, 2, sizes)};
    dims[type.rank - 1] = constant(world, 4);
    node_of(world, OP_MatMul, 2, inputs, DTYPE_F32, type.rank, dims, 0, NULL);
}

static void add_conv(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t channels;
    if (type.rank != 3 || !dim_is_constant(&world->graph->dims, type.dims[1], &channels) || channels < 1 ||
        channels > 16)
        return;
    const int64_t sizes[3] = {4, channels, 3};
    const value_id inputs[2] = {x, weight(world, 3, sizes)};
    static const int64_t three[] = {3}, one[] = {1}, pads[] = {1, 1};
    const struct attribute list[] = {attribute_ints(ATTR_dilations, 1, one), attribute_int(ATTR_group, 1),
                                     attribute_ints(ATTR_kernel_shape, 1, three),
                                     attribute_ints(ATTR_pads, 2, pads),
                                     attribute_ints(ATTR_strides, 1, one)};
    const dim dims[3] = {type.dims[0], constant(world, 4), type.dims[2]};
    node_of(world, OP_Conv, 2, inputs, DTYPE_F32, 3, dims, 5, list);
}

static void add_reduction(struct world *world, value_id x)
{
    static const enum op ops[] = {OP_ReduceSum, OP_ReduceMax, OP_ReduceMean};
    const struct tensor_type type = *type_of(world, x);
    if (!type.rank)
        return;
    dim dims[MAX_RANK];
    for (int i = 0; i < type.rank; i++)
        dims[i] = type.dims[i];
    int64_t *axes = arena_new(world->arena, int64_t);
    *axes = type.rank - 1;
    dims[type.rank - 1] = constant(world, 1);
    const struct attribute list[] = {attribute_ints(ATTR_axes, 1, axes), attribute_int(ATTR_keepdims, 1)};
    const value_id reduced = node_of(world, ops[draw(world, 3)], 1, &x, DTYPE_F32, type.rank, dims, 2, list);
    if (draw(world, 2)) {
        const value_id inputs[2] = {x, reduced};
        node_of(world, OP_Sub, 2, inputs, DTYPE_F32, type.rank, type.dims, 0, NULL);
    }
}

static void add_softmax(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    if (!type.rank)
        return;
    const struct attribute attribute = attribute_int(ATTR_axis, type.rank - 1);
    node_of(world, OP_Softmax, 1, &x, DTYPE_F32, type.rank, type.dims, 1, &attribute);
}

static void add_cast(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    struct attribute attribute = attribute_dtype(ATTR_to, DTYPE_F16);
    const value_id half = node_of(world, OP_Cast, 1, &x, DTYPE_F16, type.rank, type.dims, 1, &attribute);
    world->count--; /* f16 values are not operands of the others */
    attribute = attribute_dtype(ATTR_to, DTYPE_F32);
    node_of(world, OP_Cast, 1, &half, DTYPE_F32, type.rank, type.dims, 1, &attribute);
}

/* x + x backwards: the second load is not at the place that is stored. */
static void add_mirrored(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    int64_t size;
    if (!type.rank || !dim_is_constant(&world->graph->dims, type.dims[type.rank - 1], &size) || size < 2)
        return;
    dim *starts = arena_new_array(world->arena, dim, (size_t)type.rank);
    int64_t *steps = arena_new_array(world->arena, int64_t, (size_t)type.rank);
    for (int i = 0; i < type.rank; i++) {
        starts[i] = constant(world, i == type.rank - 1 ? size - 1 : 0);
        steps[i] = i == type.rank - 1 ? -1 : 1;
    }
    const struct attribute list[] = {attribute_dims(ATTR_starts, (uint32_t)type.rank, starts),
                                     attribute_ints(ATTR_steps, (uint32_t)type.rank, steps)};
    const value_id turned = node_of(world, OP_Slice, 1, &x, DTYPE_F32, type.rank, type.dims, 2, list);
    const value_id inputs[2] = {x, turned};
    node_of(world, OP_Add, 2, inputs, DTYPE_F32, type.rank, type.dims, 0, NULL);
}

static void add_pad(struct world *world, value_id x)
{
    const struct tensor_type type = *type_of(world, x);
    dim dims[MAX_RANK], *pads = arena_new_array(world->arena, dim, 2 * (size_t)type.rank);
    for (int i = 0; i < type.rank; i++) {
        const uint32_t before = draw(world, 2), after = draw(world, 2);
        pads[i] = constant(world, before);
        pads[i + type.rank] = constant(world, after);
        dims[i] = dim_add(&world->graph->dims, type.dims[i], constant(world, before + after));
    }
    const struct attribute attribute = attribute_dims(ATTR_pads, 2 * (uint32_t)type.rank, pads);
    node_of(world, OP_Pad, 1, &x, DTYPE_F32, type.rank, dims, 1, &attribute);
}

static void add_random_node(struct world *world)
{
    static void (*const kinds[])(struct world * world, value_id x) = {
        add_pointwise, add_pointwise, add_pointwise, add_broadcast, add_transpose,      add_reshape,
        add_slice,     add_concat,    add_matmul,    add_matmul,    add_conv,           add_reduction,
        add_softmax,   add_cast,      add_mirrored,  add_pad,       add_depth_to_space,
    };
    kinds[draw(world, sizeof kinds / sizeof kinds[0])](world, pick(world));
}

static void make_world(struct world *world, struct arena *arena, uint64_t seed)
{
    *world = (struct world){.arena = arena, .graph = graph_new(arena), .random = seed * 7919 + 17};
    diagnostics_init(&world->diagnostics, arena, "test");
    const struct symbol symbol = {.source = SYMBOL_INPUT_AXIS, .high = 8, .hint = 4};
    const dim s = dim_symbol(&world->graph->dims, &symbol);
    const dim sizes[POOL_DIMS] = {s, constant(world, 4), constant(world, 6), constant(world, 1),
                                  constant(world, 3)};
    for (int i = 0; i < 2; i++) {
        dim dims[3];
        const int rank = 2 + (int)draw(world, 2);
        for (int k = 0; k < rank; k++)
            dims[k] = sizes[draw(world, POOL_DIMS)];
        world->made[world->count++] =
            graph_add_input(world->graph, "x", tensor_type_new(arena, DTYPE_F32, rank, dims));
    }
    for (uint32_t i = 0; i < NODES; i++)
        add_random_node(world);
    graph_add_output(world->graph, world->made[world->count - 1], "y");
    graph_add_output(world->graph, world->made[world->count / 2], "z");
}

/* ---- running them
 * ------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct world *world, value_id value)
{
    const struct tensor_type *type = type_of(world, value);
    int64_t elements = 1;
    uint64_t bytes = 0;
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        assert_true(dim_evaluate(&world->graph->dims, type->dims[i], world->symbols, &size));
        elements *= size;
    }
    assert_true(dtype_bytes(type->dtype, elements, &bytes));
    return (size_t)bytes;
}

static void **new_memory(struct world *world)
{
    void **memory = arena_new_array(world->arena, void *, world->graph->values.count);
    for (value_id v = 1; v < world->graph->values.count; v++) {
        const struct value *value = graph_value(world->graph, v);
        memory[v] = arena_alloc(world->arena, bytes_of(world, v) + 1);
        memset(memory[v], 0xA5, bytes_of(world, v) + 1);
        if (value->kind == VALUE_CONSTANT)
            assert_true(blob_read(value->blob, 0, memory[v], bytes_of(world, v)));
    }
    return memory;
}

static void run_definition(struct world *world, const struct definition *definition, const value_id *values,
                           void **memory)
{
    void **buffers = arena_new_array(world->arena, void *, definition->buffers.count);
    for (uint32_t b = 0; b < definition->buffers.count; b++)
        buffers[b] = values[b] ? memory[values[b]] : NULL;
    const struct interp_limits limits = {0};
    assert_int_equal(interpret(definition, world->symbols, buffers, &limits, &system_allocator), INTERP_DONE);
}

static void run_nodes(struct world *world, void **memory)
{
    struct exprs pool;
    exprs_init(&pool, world->arena, &world->graph->dims);
    const struct region *body = &world->graph->regions.items[GRAPH_BODY];
    for (uint32_t i = 0; i < body->nodes.count; i++) {
        struct definition definition;
        const struct node *node = graph_node(world->graph, body->nodes.items[i]);
        assert_true(define_node(world->graph, body->nodes.items[i], &pool, &world->diagnostics, &definition));
        value_id *values = arena_new_array(world->arena, value_id, definition.buffers.count);
        for (uint32_t k = 0; k < node->input_count; k++)
            values[k] = node->inputs[k];
        values[node->input_count] = node->outputs[0];
        run_definition(world, &definition, values, memory);
    }
}

static void check_group(struct world *world, const struct group *group, bool *stored)
{
    struct text why;
    text_init(&why, world->arena);
    if (!definition_verify(&group->body, &why)) {
        group_print(world->graph, group, &why);
        fail_msg("%s", why.data);
    }
    for (uint32_t b = 0; b < group->body.buffers.count; b++) {
        const value_id value = group->values[b];
        if (group->body.buffers.items[b].role == BUFFER_INPUT)
            assert_true(graph_value(world->graph, value)->kind != VALUE_RESULT || stored[value]);
    }
    for (uint32_t b = 0; b < group->body.buffers.count; b++)
        if (group->body.buffers.items[b].role == BUFFER_OUTPUT) {
            assert_false(stored[group->values[b]]);
            stored[group->values[b]] = true;
        }
}

static bool same_bits(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        float x, y;
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        if (memcmp(&x, &y, 4) != 0 && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

static bool fits_some(void *user, const struct group *group, struct text *why)
{
    (void)why;
    return (group->body.buffers.count * 7 + group->body.nests.count + group->nodes.count) %
               *(unsigned *)user !=
           0;
}

static void compare(struct world *world, const struct grouping *grouping, int level)
{
    void **expected = new_memory(world), **got = new_memory(world);
    for (uint32_t i = 0; i < 2; i++) {
        const value_id input = world->graph->inputs.items[i];
        const size_t count = bytes_of(world, input) / 4;
        for (size_t k = 0; k < count; k++)
            ((float *)expected[input])[k] = draw_float(world);
        memcpy(got[input], expected[input], count * 4);
    }
    run_nodes(world, expected);
    bool *stored = arena_new_array(world->arena, bool, world->graph->values.count);
    for (uint32_t i = 0; i < grouping->groups.count; i++) {
        const struct group *group = &grouping->groups.items[i];
        check_group(world, group, stored);
        run_definition(world, &group->body, group->values, got);
        for (uint32_t k = 0; k < grouping->views.count; k++) {
            const struct value_view view = grouping->views.items[k];
            assert_int_equal(bytes_of(world, view.value), bytes_of(world, view.of));
            if (stored[view.of] && !stored[view.value])
                memcpy(got[view.value], got[view.of], bytes_of(world, view.of));
            stored[view.value] = stored[view.value] || stored[view.of];
        }
    }
    for (uint32_t i = 0; i < world->graph->outputs.count; i++) {
        const value_id output = world->graph->outputs.items[i].value;
        if (same_bits(expected[output], got[output], bytes_of(world, output)))
            continue;
        struct text text;
        text_init(&text, world->arena);
        graph_print(world->graph, false, &text);
        for (uint32_t k = 0; k < grouping->groups.count; k++)
            group_print(world->graph, &grouping->groups.items[k], &text);
        fail_msg("level %d, size %d, output %u differs\n%s", level, (int)world->symbols[0], i, text.data);
    }
}

static void test_random_graphs(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const int64_t sizes[] = {4, 1, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int level = 0; level <= 3; level++) {
            struct world world;
            struct grouping grouping;
            make_world(&world, &arena, seed);
            unsigned refuse = 2 + (unsigned)(seed % 3);
            struct target_services services = {.user = &refuse, .fits = fits_some};
            if (!group_graph(world.graph, seed % 2 ? &services : NULL, level, &world.diagnostics, &grouping))
                fail_msg("%s", world.diagnostics.items.items[0].message);
            for (uint32_t i = 0; i < 3; i++) {
                world.symbols[0] = sizes[i];
                compare(&world, &grouping, level);
            }
        }
        arena_release(&arena);
    }
}

/* ---- what must fuse
 * ----------------------------------------------------------------------------------------------- */

static uint32_t groups_of(struct arena *arena, const char *text, int level)
{
    struct diagnostics diagnostics;
    struct graph *graph;
    struct grouping grouping;
    diagnostics_init(&diagnostics, arena, "test");
    if (!graph_parse(arena, &diagnostics, text, NULL, &graph) ||
        !group_graph(graph, NULL, level, &diagnostics, &grouping))
        fail_msg("%s", diagnostics.items.items[0].message);
    return grouping.groups.count;
}

struct fusion {
    const char *text;
    uint32_t at_0, at_1, at_3;
};

#define ATTENTION                                                                                            \
    "model opset 17 {\n"                                                                                     \
    "  dim s0 : input 0 axis 0, 1..64, hint 8\n"                                                             \
    "  dim s1 : input 0 axis 1, 1..64, hint 8\n"                                                             \
    "  input %x : f32[s0, s1, 16]\n"                                                                         \
    "  input %m : f32[s0, 1, 1, s1]\n"                                                                       \
    "  weight %w : f32[16, 16] zeros\n"                                                                      \
    "  weight %v : f32[16, 16] zeros\n"                                                                      \
    "  weight %b : f32[16] zeros\n"                                                                          \
    "  weight %h : f32[] hex 0000003f\n"                                                                     \
    "  %1 = MatMul(%x, %w) : f32[s0, s1, 16]\n"                                                              \
    "  %2 = Add(%1, %b) : f32[s0, s1, 16]\n"                                                                 \
    "  %3 = Reshape(%2) : f32[s0, s1, 4, 4]\n"                                                               \
    "  %4 = Transpose(%3) perm=[0, 2, 1, 3] : f32[s0, 4, s1, 4]\n"                                           \
    "  %5 = Transpose(%3) perm=[0, 2, 3, 1] : f32[s0, 4, 4, s1]\n"                                           \
    "  %6 = MatMul(%4, %5) : f32[s0, 4, s1, s1]\n"                                                           \
    "  %7 = Mul(%6, %h) : f32[s0, 4, s1, s1]\n"                                                              \
    "  %8 = Add(%7, %m) : f32[s0, 4, s1, s1]\n"                                                              \
    "  %9 = Softmax(%8) axis=3 : f32[s0, 4, s1, s1]\n"                                                       \
    "  %10 = MatMul(%9, %4) : f32[s0, 4, s1, 4]\n"                                                           \
    "  %11 = Transpose(%10) perm=[0, 2, 1, 3] : f32[s0, s1, 4, 4]\n"                                         \
    "  %12 = Reshape(%11) : f32[s0, s1, 16]\n"                                                               \
    "  %13 = MatMul(%12, %v) : f32[s0, s1, 16]\n"                                                            \
    "  %14 = Add(%13, %b) : f32[s0, s1, 16]\n"                                                               \
    "  %15 = Add(%14, %x) : f32[s0, s1, 16]\n"                                                               \
    "  output %15\n"                                                                                         \
    "}\n"

static const struct fusion fusions[] = {
    /* matmul + bias; scores with scale and mask; softmax; matmul stored through the view; matmul + bias +
       residual */
    {ATTENTION, 15, 11, 5},
    /* a chain of elementwise nodes is one group */
    {"model opset 17 {\n  input %x : f32[3, 4]\n  %1 = Relu(%x) : f32[3, 4]\n  %2 = Exp(%1) : f32[3, 4]\n"
     "  %3 = Neg(%2) : f32[3, 4]\n  output %3\n}\n",
     3, 3, 1},
    /* x * sigmoid(x) behind a matmul */
    {"model opset 17 {\n  input %x : f32[3, 4]\n  input %w : f32[4, 5]\n  %1 = MatMul(%x, %w) : f32[3, 5]\n"
     "  %2 = Sigmoid(%1) : f32[3, 5]\n  %3 = Mul(%1, %2) : f32[3, 5]\n  output %3\n}\n",
     3, 3, 1},
    /* the value behind the matmul is an output too: two stores, one group */
    {"model opset 17 {\n  input %x : f32[3, 4]\n  input %w : f32[4, 5]\n  %1 = MatMul(%x, %w) : f32[3, 5]\n"
     "  %2 = Relu(%1) : f32[3, 5]\n  output %1\n  output %2\n}\n",
     2, 2, 1},
    /* the sum needs both matmuls: it joins the later one */
    {"model opset 17 {\n  input %x : f32[3, 4]\n  input %w : f32[4, 5]\n  input %v : f32[4, 5]\n"
     "  %1 = MatMul(%x, %w) : f32[3, 5]\n  %2 = MatMul(%x, %v) : f32[3, 5]\n  %3 = Add(%1, %2) : f32[3, 5]\n"
     "  output %3\n}\n",
     3, 3, 2},
    /* joining the sum to the first matmul would make a circle: softmax reads it */
    {"model opset 17 {\n  input %x : f32[3, 5]\n  input %w : f32[5, 5]\n  %1 = MatMul(%x, %w) : f32[3, 5]\n"
     "  %2 = Softmax(%1) axis=1 : f32[3, 5]\n  %3 = Add(%1, %2) : f32[3, 5]\n  output %3\n}\n",
     3, 3, 2},
    /* x / sqrt(mean(x * x) + e) * g: one group of rows with two nests */
    {"model opset 17 {\n  dim s0 : input 0 axis 0, 1..64, hint 8\n  input %x : f32[s0, 8]\n"
     "  input %g : f32[8]\n  weight %e : f32[] hex 0000003f\n  %1 = Mul(%x, %x) : f32[s0, 8]\n"
     "  %2 = ReduceMean(%1) axes=[1] keepdims=1 : f32[s0, 1]\n  %3 = Add(%2, %e) : f32[s0, 1]\n"
     "  %4 = Sqrt(%3) : f32[s0, 1]\n  %5 = Div(%x, %4) : f32[s0, 8]\n  %6 = Mul(%5, %g) : f32[s0, 8]\n"
     "  output %6\n}\n",
     6, 6, 1},
    /* the rows' result is spread over longer rows: two groups */
    {"model opset 17 {\n  input %x : f32[4, 8]\n  input %y : f32[4, 9]\n"
     "  %1 = ReduceMean(%x) axes=[1] keepdims=1 : f32[4, 1]\n  %2 = Sub(%y, %1) : f32[4, 9]\n"
     "  output %2\n}\n",
     2, 2, 2},
    /* a matmul's result as an image, written in blocks */
    {"model opset 17 {\n  input %x : f32[1, 4, 2, 3]\n  input %w : f32[4, 4, 1, 1]\n"
     "  %1 = Conv(%x, %w) dilations=[1, 1] group=1 kernel_shape=[1, 1] pads=[0, 0, 0, 0] strides=[1, 1] : "
     "f32[1, 4, 2, 3]\n"
     "  %2 = DepthToSpace(%1) blocksize=2 mode=DCR : f32[1, 1, 4, 6]\n  output %2\n}\n",
     2, 2, 1},
    /* nodes on constants alone are the init program's */
    {"model opset 17 {\n  input %x : f32[3]\n  weight %w : f32[3] zeros\n  %1 = Neg(%w) : f32[3]\n"
     "  %2 = Add(%x, %1) : f32[3]\n  output %2\n}\n",
     1, 1, 1},
    /* a result that nobody reads is left out */
    {"model opset 17 {\n  input %x : f32[3]\n  %1 = Neg(%x) : f32[3]\n  %2 = Exp(%x) : f32[3]\n"
     "  output %2\n}\n",
     1, 1, 1},
};

static void test_what_fuses(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    for (uint32_t i = 0; i < sizeof fusions / sizeof fusions[0]; i++) {
        print_message("fusion %u\n", i);
        assert_int_equal(groups_of(&arena, fusions[i].text, 0), fusions[i].at_0);
        assert_int_equal(groups_of(&arena, fusions[i].text, 1), fusions[i].at_1);
        assert_int_equal(groups_of(&arena, fusions[i].text, 3), fusions[i].at_3);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_what_fuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

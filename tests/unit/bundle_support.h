/* A small model with a plan made by hand, for tests of the bundle writer, the loader and the runtime:
 *     y[n, 4] = x[n, 4] * w[4] + big[row % 1000],   z = x
 * in two launches with an arena buffer between them and a copy. */
#ifndef GPUCC_TESTS_UNIT_BUNDLE_SUPPORT_H
#define GPUCC_TESTS_UNIT_BUNDLE_SUPPORT_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_writer.h"
#include "gpucc/runtime.h"
#include "ir/support/file.h"

#include "tests/harness/bundle_elf.h"
#include "tests/unit/support.h"

enum { BIG_ELEMENTS = 1500 * 1000 };

struct bundle_world {
    struct arena *arena;
    struct graph *graph;
    struct diagnostics diagnostics;
    struct plan plan;
    struct bundle_target target;
    struct object_file object;
    struct bundle_inputs inputs;
    char *folder;
};

static inline float world_big(int64_t index)
{
    return (float)(index % 1009) * 0.25f;
}

static const float world_w[4] = {1.0f, -2.0f, 0.5f, 3.0f};

static inline const struct blob *world_blob(struct arena *arena, const void *bytes, size_t length)
{
    struct blob *blob = arena_new(arena, struct blob);
    *blob = (struct blob){.kind = BLOB_MEMORY, .length = length, .bytes = bytes, .fd = -1};
    return blob;
}

static inline value_id world_constant(struct bundle_world *world, const char *name, int64_t elements,
                                      const float *data)
{
    struct tensor_type type = tensor_type_constant(world->graph, DTYPE_F32, 1, &elements);
    value_id id =
        graph_add_constant(world->graph, type, world_blob(world->arena, data, (size_t)elements * 4));
    graph_value(world->graph, id)->weight_name = name;
    return id;
}

static inline struct kernel *world_kernel(struct bundle_world *world, const char *name, dim n)
{
    struct kernel *kernel = kernel_new(world->arena, &world->graph->dims);
    kernel->name = name;
    kernel->strategy = "by hand";
    kernel->config = "";
    kernel->summary = "a test";
    for (int i = 0; i < 3; i++)
        kernel_memory_add(kernel, &(struct kernel_memory){.space = MEMORY_GLOBAL,
                                                          .dtype = DTYPE_F32,
                                                          .lanes = 1,
                                                          .read = i < 2,
                                                          .written = i == 2,
                                                          .label = i == 0   ? "a"
                                                                   : i == 1 ? "b"
                                                                            : "c",
                                                          .alignment = 4});
    vec_push(world->arena, &kernel->dims, n);
    kernel->work = n;
    kernel->scratch_bytes = 20;
    kernel->index_bits = 32;
    kernel->bytes = dim_mul(&world->graph->dims, n, dim_constant(&world->graph->dims, 32));
    kernel->operations = kernel->bytes;
    kernel->block[0] = 128;
    kernel->block[1] = kernel->block[2] = 1;
    return kernel;
}

static inline void world_launch(struct bundle_world *world, uint32_t kernel, uint32_t a, uint32_t b,
                                uint32_t c, dim n)
{
    struct dims *dims = &world->graph->dims;
    uint32_t *buffers = arena_new_array(world->arena, uint32_t, 3);
    dim *launch_dims = arena_new_array(world->arena, dim, 1);
    struct location *location = arena_new(world->arena, struct location);
    *location =
        (struct location){.op_type = "Mul", .domain = "", .name = "/mul\n", .graph = "", .number = kernel};
    buffers[0] = a, buffers[1] = b, buffers[2] = c;
    launch_dims[0] = n;
    struct plan_launch launch = {.kernel = kernel,
                                 .buffers = buffers,
                                 .dims = launch_dims,
                                 .grid = {dim_ceil_div(dims, n, dim_constant(dims, 128)),
                                          dim_constant(dims, 1), dim_constant(dims, 1)},
                                 .work = n,
                                 .location = location};
    vec_push(world->arena, &world->plan.launches, launch);
}

/* `launches`: 2, or more that repeat the second one through further arena buffers. */
static inline void world_make(struct bundle_world *world, struct arena *arena, const char *machine,
                              uint32_t launches)
{
    *world = (struct bundle_world){.arena = arena, .graph = graph_new(arena)};
    struct graph *graph = world->graph;
    diagnostics_init(&world->diagnostics, arena, "test");
    dim n = dim_symbol(
        &graph->dims,
        &(struct symbol){.name = "batch", .source = SYMBOL_INPUT_AXIS, .low = 0, .high = 1 << 20, .hint = 8});
    dim four = dim_constant(&graph->dims, 4), elements = dim_mul(&graph->dims, n, four);
    struct tensor_type type = tensor_type_new(arena, DTYPE_F32, 2, (dim[]){n, four});
    value_id x = graph_add_input(graph, "x", type);
    float *big = arena_new_array(arena, float, BIG_ELEMENTS);
    for (int64_t i = 0; i < BIG_ELEMENTS; i++)
        big[i] = world_big(i);
    value_id w = world_constant(world, "w", 4, world_w), b = world_constant(world, "big", BIG_ELEMENTS, big);
    /* Outputs stand for results of nodes; the plan is what counts. */
    node_id node = graph_add_node(graph, GRAPH_BODY, 0, OP_Add, 2, (value_id[]){x, x}, 1, 0, NULL, NULL);
    value_id y = graph_node(graph, node)->outputs[0];
    graph_value(graph, y)->type = type;
    graph_add_output(graph, y, "y");
    graph_add_output(graph, x, "z");

    struct plan *plan = &world->plan;
    plan->machine = machine_find(machine);
    vec_push(arena, &plan->constants,
             ((struct plan_constant){.value = w, .dtype = DTYPE_F32, .elements = 4}));
    vec_push(arena, &plan->constants,
             ((struct plan_constant){.value = b, .dtype = DTYPE_F32, .elements = BIG_ELEMENTS}));
    enum { X, Y, Z, W, BIG, T };
    struct plan_buffer row = {.dtype = DTYPE_F32, .elements = elements, .shares = UINT32_MAX};
    static const enum plan_buffer_kind kinds[] = {PLAN_INPUT, PLAN_OUTPUT, PLAN_OUTPUT, PLAN_CONSTANT,
                                                  PLAN_CONSTANT};
    static const uint32_t indices[] = {0, 0, 1, 0, 1};
    for (uint32_t i = X; i <= BIG; i++) {
        row.kind = kinds[i];
        row.index = indices[i];
        row.elements = i == W ? four : i == BIG ? dim_constant(&graph->dims, BIG_ELEMENTS) : elements;
        vec_push(arena, &plan->buffers, row);
    }
    row.kind = PLAN_ARENA;
    row.elements = elements;
    for (uint32_t i = 0; i + 1 < launches; i++) {
        row.first = i;
        row.last = i + 1;
        vec_push(arena, &plan->buffers, row);
    }
    static const char *const names[] = {"test_scale", "test_add"};
    for (uint32_t i = 0; i < 2; i++)
        vec_push(arena, &plan->kernels,
                 ((struct plan_kernel){.kernel = world_kernel(world, names[i], n), .dim_count = 1}));
    world_launch(world, 0, X, W, T, n);
    for (uint32_t i = 1; i < launches; i++)
        world_launch(world, 1, T + i - 1, BIG, i + 1 == launches ? Y : T + i, n);
    vec_push(arena, &plan->copies, ((struct plan_copy){X, Z}));

    static const char *const symbols[] = {"test_scale", "test_add"};
    char *bytes;
    size_t length;
    assert_true(file_read_all(arena, TEST_KERNELS_OBJECT, 1 << 20, &bytes, &length));
    world->object = (struct object_file){(const unsigned char *)bytes, length};
    world->target = (struct bundle_target){.plan = plan, .symbols = symbols};
    world->inputs = (struct bundle_inputs){.graph = graph,
                                           .targets = &world->target,
                                           .target_count = 1,
                                           .objects = &world->object,
                                           .object_count = plan->machine->kind == TARGET_CPU,
                                           .nvrtc_major = 13};
    assert_true(temporary_folder(arena, &world->folder));
}

static inline const char *world_path(struct bundle_world *world, const char *name)
{
    return arena_printf(world->arena, "%s/%s", world->folder, name);
}

/* Writes the bundle and reads its ELF; messages end the test. */
static inline const char *world_write(struct bundle_world *world, const char *name)
{
    const char *path = world_path(world, name);
    if (!bundle_write(&world->inputs, path, &world->diagnostics)) {
        struct text text;
        text_init(&text, world->arena);
        for (uint32_t i = 0; i < world->diagnostics.items.count; i++)
            diag_print(&world->diagnostics, &world->diagnostics.items.items[i], &text);
        fail_msg("%s", text.data ? text.data : "no reason");
    }
    assert_int_equal(bundle_elf_problems(path, stderr), 0);
    return path;
}

static inline void world_end(struct bundle_world *world)
{
    remove_folder(world->folder);
    arena_release(world->arena);
}

static inline gpucc_tensor world_tensor(float *data, int64_t rows)
{
    gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor);
    tensor.data = data;
    tensor.bytes = (size_t)rows * 16;
    tensor.dtype = GPUCC_F32;
    tensor.rank = 2;
    tensor.dims[0] = rows;
    tensor.dims[1] = 4;
    return tensor;
}

#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        gpucc_status assert_ok_status = (call);                                                              \
        if (assert_ok_status != GPUCC_OK)                                                                    \
            fail_msg("%s: %s: %s", #call, gpucc_status_name(assert_ok_status), gpucc_last_error());          \
    } while (0)

static inline gpucc_dims world_dims(gpucc_dim *named, int64_t low, int64_t high)
{
    *named = (gpucc_dim){"batch", low, high};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = named;
    dims.count = 1;
    return dims;
}

#endif

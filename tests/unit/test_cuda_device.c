/* The CUDA path on the fake driver: what is allocated, built, patched and launched, with which arguments;
 * errors at every call. */
#include <dlfcn.h>

#include "runtime/info.h"
#include "tests/fake_cuda/fake_cuda.h"

#include "tests/unit/bundle_support.h"

static const struct fake_controls *fake;

enum { ROWS = 300, LAUNCHES = 60 };

/* Images that no one reads: the fake executes nothing. */
static void world_make_cuda(struct bundle_world *world, struct arena *arena, const char *machine,
                            uint32_t launches)
{
    static const unsigned char image[] = "a cubin", text[] = "some PTX";
    struct cuda_image *images = arena_new_array(arena, struct cuda_image, 2);
    world_make(world, arena, machine, launches);
    images[0] = (struct cuda_image){image, sizeof image, 0, 2};
    images[1] = (struct cuda_image){text, sizeof text - 1, 0, 2};
    world->target.symbols = NULL;
    world->target.cubins = &images[0];
    world->target.cubin_count = 1;
    world->target.ptx = &images[1];
    world->target.ptx_count = 1;
}

struct device_world {
    struct bundle_world bundle;
    gpucc_model *model;
    gpucc_context *context;
    gpucc_tensor input, outputs[2];
};

/* Device memory is host memory for the fake. */
static void device_tensors(struct device_world *d, int64_t rows)
{
    static float x[ROWS * 8] __attribute__((aligned(16))), y[ROWS * 8] __attribute__((aligned(16)));
    d->input = world_tensor(x, rows);
    d->outputs[0] = world_tensor(y, rows);
    d->outputs[1] = world_tensor(y + ROWS * 4, rows);
}

static void device_open(struct device_world *d, struct arena *arena, uint32_t launches, bool copies)
{
    *d = (struct device_world){0};
    world_make_cuda(&d->bundle, arena, "sm_90a", launches);
    /* The caller's tensors are no memory of the fake's: without the copied output no call looks at them. */
    if (!copies)
        d->bundle.plan.copies.count = 0;
    assert_ok(gpucc_open(world_write(&d->bundle, "model.so"), NULL, &d->model));
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    assert_ok(gpucc_context_create(d->model, &options, &d->context));
    device_tensors(d, ROWS);
}

static void device_close(struct device_world *d)
{
    gpucc_context_destroy(d->context);
    gpucc_close(d->model);
    assert_int_equal(fake->alive(), 0);
    world_end(&d->bundle);
}

static gpucc_status prepare_rows(struct device_world *d, int64_t low, int64_t high)
{
    gpucc_dim named;
    gpucc_dims dims = world_dims(&named, low, high);
    return gpucc_prepare(d->context, &dims, NULL);
}

static void launches_get_their_arguments(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    struct fake_launch launches[8];
    device_open(&d, &arena, 3, false);
    assert_ok(prepare_rows(&d, 0, ROWS));
    for (int round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= ROWS; rows = rows * 2 + 1) {
            device_tensors(&d, rows);
            fake->reset();
            assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
            assert_int_equal(fake->launches(launches, 8), 3);
            assert_string_equal(launches[0].kernel, "test_scale");
            assert_string_equal(launches[2].kernel, "test_add");
            assert_true(launches[0].arguments[0] == (uintptr_t)d.input.data);
            assert_true(launches[2].arguments[2] == (uintptr_t)d.outputs[0].data);
            assert_true(launches[0].arguments[2] == launches[1].arguments[0]);
            assert_true(launches[1].arguments[2] == launches[2].arguments[0]);
            assert_true(launches[1].arguments[0] != launches[1].arguments[2]);
            assert_memory_equal((void *)(uintptr_t)launches[0].arguments[1], world_w, sizeof world_w);
            for (int i = 0; i < 3; i++) {
                assert_int_equal((uint32_t)launches[i].arguments[3], rows);
                assert_int_equal(launches[i].grid[0], (rows + 127) / 128);
                assert_int_equal(launches[i].block[0], 128);
                assert_int_equal(launches[i].from_graph, 1);
            }
            assert_int_equal(fake->calls("cuMemcpyDtoDAsync_v2"), 0);
            /* Nothing moved: nothing is patched. */
            fake->reset();
            assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
            assert_int_equal(fake->calls("cuGraphExecKernelNodeSetParams"), 0);
            assert_int_equal(fake->launches(launches, 8), 3);
        }
    device_close(&d);
}

static void empty_launches_are_skipped(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    device_open(&d, &arena, 3, false);
    assert_ok(prepare_rows(&d, 0, ROWS));
    static const int64_t rows[] = {0, 5, 0, 0, ROWS};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        device_tensors(&d, rows[i]);
        fake->reset();
        assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
        assert_int_equal(fake->launches(NULL, 0), rows[i] ? 3 : 0);
    }
    device_close(&d);
}

/* Launches of the hand-made plan that see their first buffer through a tensor map: [n, 4] in boxes of 4 by 8.
 */
static void add_maps(struct bundle_world *world)
{
    struct dims *dims = &world->graph->dims;
    for (uint32_t i = 0; i < world->plan.launches.count; i++) {
        struct plan_launch *launch = &world->plan.launches.items[i];
        struct kernel_tensor_map *map = arena_new(world->arena, struct kernel_tensor_map);
        *map = (struct kernel_tensor_map){.buffer = 0, .rank = 2, .box = {4, 8}};
        map->sizes[0] = map->strides[1] = dim_constant(dims, 4);
        map->sizes[1] = launch->dims[0];
        map->strides[0] = dim_constant(dims, 1);
        launch->tensor_maps = map;
        launch->tensor_map_count = 1;
    }
}

static void tensor_maps_follow_their_buffers(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d = {0};
    struct fake_launch launches[8];
    world_make_cuda(&d.bundle, &arena, "sm_90a", 3);
    d.bundle.plan.copies.count = 0;
    add_maps(&d.bundle);
    assert_ok(gpucc_open(world_write(&d.bundle, "model.so"), NULL, &d.model));
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    assert_ok(gpucc_context_create(d.model, &options, &d.context));
    assert_ok(prepare_rows(&d, 0, ROWS));
    fake->arguments("test_scale", 5);
    fake->arguments("test_add", 5);
    static const struct {
        int64_t rows;
        size_t moved; /* of the input, in rows */
        unsigned encodings;
    } rows[] = {{100, 0, 3}, {100, 0, 0}, {100, 10, 1}, {0, 10, 0}, {100, 10, 0}, {7, 10, 3}, {7, 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        device_tensors(&d, rows[i].rows);
        d.input.data = (char *)d.input.data + 16 * rows[i].moved;
        fake->reset();
        assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
        assert_int_equal(fake->calls("cuTensorMapEncodeTiled"), rows[i].encodings);
        assert_int_equal(fake->launches(launches, 8), rows[i].rows ? 3 : 0);
        for (unsigned k = 0; k < 3 && rows[i].rows; k++)
            assert_true(launches[k].arguments[4] == launches[k].arguments[0]);
    }
    /* Into a capturing stream each launch gets maps of its own. */
    void *stream = fake->stream();
    fake->capture(stream, 1);
    fake->reset();
    assert_ok(gpucc_enqueue(d.context, stream, &d.input, d.outputs));
    assert_int_equal(fake->launches(launches, 8), 3);
    for (unsigned k = 0; k < 3; k++)
        assert_true(launches[k].arguments[4] == launches[k].arguments[0]);
    fake->stream_end(stream);
    fake->arguments("test_scale", 4);
    fake->arguments("test_add", 4);
    device_close(&d);
}

static void conditions_choose_launches(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d = {0};
    struct fake_launch launches[8];
    world_make_cuda(&d.bundle, &arena, "sm_90a", 3);
    d.bundle.plan.copies.count = 0;
    /* The second where the rows are odd, the third where they are even. */
    struct dims *dims = &d.bundle.graph->dims;
    struct plan_launch *launch = d.bundle.plan.launches.items;
    launch[1].condition = dim_mod(dims, launch[1].dims[0], dim_constant(dims, 2));
    launch[2].condition = dim_sub(dims, dim_constant(dims, 1), launch[1].condition);
    assert_ok(gpucc_open(world_write(&d.bundle, "model.so"), NULL, &d.model));
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    assert_ok(gpucc_context_create(d.model, &options, &d.context));
    assert_ok(prepare_rows(&d, 1, ROWS));
    for (int64_t rows = 1; rows < 9; rows++) {
        device_tensors(&d, rows);
        fake->reset();
        assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
        assert_int_equal(fake->launches(launches, 8), 2);
        assert_string_equal(launches[0].kernel, "test_scale");
        /* Both are the same kernel; the last one writes the output. */
        assert_true((launches[1].arguments[2] == (uintptr_t)d.outputs[0].data) == (rows % 2 == 0));
    }
    device_close(&d);
}

static void damaged_maps_are_refused(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    struct bundle_file file;
    struct runtime_error error;
    struct bundle_tables tables;
    world_make_cuda(&world, &arena, "sm_90a", 3);
    add_maps(&world);
    assert_int_equal(bundle_file_open(world_write(&world, "model.so"), &file, &error), GPUCC_OK);
    assert_int_equal(bundle_file_check_image(&file, &error), GPUCC_OK);
    const uint64_t bytes = file.tables.header->blob_bytes;
    unsigned char *copy = arena_copy(&arena, file.blob, bytes);
    struct bundle_header *header = (struct bundle_header *)(void *)copy;
    struct bundle_tensor_map *map = (struct bundle_tensor_map *)(void *)(copy + header->maps.offset);
    struct bundle_launch *launch = (struct bundle_launch *)(void *)(copy + header->launches.offset);
    assert_int_equal(tables_open(copy, bytes, &tables, &error), GPUCC_OK);
    const struct {
        uint32_t *field, wrong;
    } rows[] = {{&map->buffer, 3},
                {&map->dtype, 99},
                {&map->rank, 1},
                {&map->rank, 6},
                {&map->swizzle, 96},
                {&map->swizzle, 256},
                {&map->first_dim, 1u << 30},
                {&map->box[1], 0},
                {&map->box[1], 257},
                {&launch->map_count, 9},
                {&launch->first_map, 77},
                {&launch->condition, 1u << 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t right = *rows[i].field;
        *rows[i].field = rows[i].wrong;
        if (tables_open(copy, bytes, &tables, &error) != GPUCC_BAD_BUNDLE)
            fail_msg("row %zu is taken", i);
        *rows[i].field = right;
    }
    assert_int_equal(tables_open(copy, bytes, &tables, &error), GPUCC_OK);
    bundle_file_close(&file);
    world_end(&world);
}

static void enqueue_never_allocates_or_waits(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    device_open(&d, &arena, LAUNCHES, false);
    assert_ok(prepare_rows(&d, 1, ROWS));
    unsigned alive = fake->alive();
    fake->reset();
    for (int64_t rows = 1; rows <= ROWS; rows += 7) {
        device_tensors(&d, rows);
        assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
    }
    assert_int_equal(fake->alive(), alive);
    static const char *const never[] = {
        "cuMemAlloc_v2",   "cuMemHostAlloc", "cuStreamSynchronize",         "cuCtxSynchronize",
        "cuMemcpyHtoD_v2", "cuGraphCreate",  "cuGraphInstantiateWithFlags", "cuModuleLoadDataEx"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_int_equal(fake->calls(never[i]), 0);
    device_close(&d);
}

static void recent_graphs_are_kept(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    gpucc_statistics statistics = GPUCC_INIT(gpucc_statistics);
    device_open(&d, &arena, 3, false);
    for (int round = 0; round < 3; round++)
        for (int64_t rows = 1; rows <= 8; rows++) {
            assert_ok(prepare_rows(&d, rows, rows));
            device_tensors(&d, rows);
            assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
        }
    assert_ok(gpucc_context_statistics(d.context, &statistics));
    assert_int_equal(statistics.graphs_built, 8);
    assert_int_equal(statistics.prepares, 24);
    for (int64_t rows = 1; rows <= 9; rows++)
        assert_ok(prepare_rows(&d, rows, rows));
    assert_ok(gpucc_context_statistics(d.context, &statistics));
    assert_int_equal(statistics.graphs_built, 9);
    device_close(&d);
}

static void run_moves_host_memory(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    device_open(&d, &arena, 2, true);
    float x[40], y[40], z[40];
    for (int i = 0; i < 40; i++)
        x[i] = (float)i;
    gpucc_tensor input = world_tensor(x, 10), outputs[2] = {world_tensor(y, 10), world_tensor(z, 10)};
    memset(z, 0, sizeof z);
    assert_ok(gpucc_run(d.context, &input, outputs));
    fake->reset();
    assert_ok(gpucc_run(d.context, &input, outputs));
    assert_int_equal(fake->calls("cuMemAlloc_v2"), 0);
    assert_int_equal(fake->calls("cuStreamSynchronize"), 1);
    assert_int_equal(fake->launches(NULL, 0), 2);
    assert_memory_equal(x, z, sizeof x); /* the copied output needs no kernel */
    device_close(&d);
}

/* More than the pinned ring holds: each half is filled many times, and neither an input nor an output is
 * touched before the copies of it are made. */
static void large_tensors_stream_through_pinned_memory(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    enum { LARGE = (1 << 20) - 3, RING_BYTES = 8 << 20 };
    device_open(&d, &arena, 2, true);
    float *x = malloc(LARGE * 4 * sizeof *x), *y = malloc(LARGE * 4 * sizeof *y),
          *z = malloc(LARGE * 4 * sizeof *z);
    assert_true(x && y && z);
    for (size_t i = 0; i < (size_t)LARGE * 4; i++)
        x[i] = (float)i;
    for (int64_t rows = 10; rows <= LARGE; rows += LARGE - 10) {
        const size_t bytes = (size_t)rows * 4 * sizeof *x;
        gpucc_tensor input = world_tensor(x, rows),
                     outputs[2] = {world_tensor(y, rows), world_tensor(z, rows)};
        memset(z, 0, bytes);
        fake->reset();
        assert_ok(gpucc_run(d.context, &input, outputs));
        assert_memory_equal(x, z, bytes);
        assert_int_equal(fake->calls("cuMemHostAlloc"), 1);
        assert_int_equal(fake->calls("cuEventSynchronize") > 0, bytes > RING_BYTES);
        assert_int_equal(fake->calls("cuStreamSynchronize"), 1);
    }
    free(x);
    free(y);
    free(z);
    device_close(&d);
}

static void a_captured_stream_gets_launches(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct device_world d;
    struct fake_launch launches[4];
    device_open(&d, &arena, 2, false);
    assert_ok(prepare_rows(&d, 1, ROWS));
    void *stream = fake->stream();
    fake->reset();
    fake->capture(stream, 1);
    assert_ok(gpucc_enqueue(d.context, stream, &d.input, d.outputs));
    assert_int_equal(fake->launches(launches, 4), 2);
    assert_int_equal(launches[0].from_graph, 0);
    assert_true(launches[0].arguments[0] == (uintptr_t)d.input.data);
    fake->capture(stream, 0);
    assert_ok(gpucc_enqueue(d.context, stream, &d.input, d.outputs));
    assert_int_equal(fake->launches(launches, 4), 4);
    assert_int_equal(launches[2].from_graph, 1);
    fake->stream_end(stream);
    device_close(&d);
}

/* Everything once; the status of what failed. */
static gpucc_status whole_life(const char *path, gpucc_status *enqueued)
{
    gpucc_model *model;
    gpucc_context *context = NULL;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    assert_ok(gpucc_open(path, NULL, &model));
    gpucc_status status = gpucc_context_create(model, &options, &context);
    gpucc_dim named;
    gpucc_dims dims = world_dims(&named, 1, 10);
    struct device_world d;
    device_tensors(&d, 7);
    if (status == GPUCC_OK)
        status = gpucc_prepare(context, &dims, NULL);
    *enqueued = GPUCC_OK;
    if (status == GPUCC_OK)
        status = *enqueued = gpucc_enqueue(context, NULL, &d.input, d.outputs);
    if (*enqueued == GPUCC_DEVICE_ERROR)
        assert_int_equal(gpucc_enqueue(context, NULL, &d.input, d.outputs), GPUCC_DEVICE_ERROR);
    float x[28] = {0}, y[28], z[28];
    gpucc_tensor input = world_tensor(x, 7), outputs[2] = {world_tensor(y, 7), world_tensor(z, 7)};
    if (status == GPUCC_OK)
        status = gpucc_run(context, &input, outputs);
    gpucc_context_destroy(context);
    gpucc_close(model);
    return status;
}

static void every_driver_error_is_reported(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make_cuda(&world, &arena, "sm_90a", 3);
    world.plan.copies.count = 0;
    const char *path = world_write(&world, "model.so");
    gpucc_status enqueued;
    static const int results[] = {700, 2 /* out of memory */};
    fake->reset();
    assert_int_equal(whole_life(path, &enqueued), GPUCC_OK);
    unsigned calls = fake->calls(NULL), reported = 0;
    assert_int_equal(fake->alive(), 0);
    for (size_t kind = 0; kind < sizeof results / sizeof *results; kind++)
        for (unsigned nth = 1; nth <= calls; nth++) {
            fake->reset();
            fake->fail_at(nth, results[kind]);
            gpucc_status status = whole_life(path, &enqueued);
            fake->fail_at(0, 0);
            reported += status != GPUCC_OK;
            if (status != GPUCC_OK && !strstr(gpucc_last_error(), "CUDA_ERROR_OF_A_TEST") &&
                !strstr(gpucc_last_error(), "device error before"))
                fail_msg("call %u: %s: %s", nth, gpucc_status_name(status), gpucc_last_error());
            fake->forget();
        }
    /* Giving back and popping cannot be reported; all the others must be. */
    assert_true(reported > calls);
    world_end(&world);
}

static void the_plan_suits_the_device(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world, other;
    world_make_cuda(&world, &arena, "sm_90a", 2);
    world_make_cuda(&other, &arena, "sm_80", 2);
    /* Both plans in one bundle: the graphs are made alike. */
    struct bundle_target targets[2] = {other.target, world.target};
    other.inputs.targets = targets;
    other.inputs.target_count = 2;
    targets[1].plan = world.target.plan;
    const char *path = world_write(&other, "model.so");
    static const struct {
        int devices, capability, driver;
        gpucc_status status;
        const char *words;
    } rows[] = {
        {1, 90, 13000, GPUCC_OK, ""},
        {1, 80, 13000, GPUCC_OK, ""},
        {1, 86, 13000, GPUCC_OK, ""},
        {1, 100, 13000, GPUCC_OK, ""},
        {1, 75, 13000, GPUCC_NO_PLAN, "compute capability 7.5"},
        {1, 90, 12080, GPUCC_NO_DEVICE, "supports CUDA 12.8; the bundle's code for this device needs 13.0"},
        {0, 90, 13000, GPUCC_NO_DEVICE, "cannot initialise"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpucc_model *model;
        gpucc_context *context;
        gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
        fake->device(rows[i].devices, rows[i].capability, rows[i].driver);
        assert_ok(gpucc_open(path, NULL, &model));
        gpucc_status status = gpucc_context_create(model, &options, &context);
        if (status != rows[i].status || (status != GPUCC_OK && !strstr(gpucc_last_error(), rows[i].words)))
            fail_msg("row %zu: %s: %s", i, gpucc_status_name(status), gpucc_last_error());
        gpucc_context_destroy(context);
        options.device = 1;
        assert_int_equal(gpucc_context_create(model, &options, &context), GPUCC_NO_DEVICE);
        gpucc_close(model);
        assert_int_equal(fake->alive(), 0);
    }
    fake->device(1, 90, 13000);
    remove_folder(world.folder);
    world_end(&other);
}

/* All CUDA targets in one bundle, PTX with the lowest alone, as the compiler does it: kernels that bear the
 * targets' names tell which code runs on which chip. */
static void every_chip_runs_the_code_that_suits_it_best(void **state)
{
    (void)state;
    enum { MOST_TARGETS = 16 };
    static const struct {
        int capability;
        const char *target;
    } rows[] = {{75, "sm_75"},   {80, "sm_80"},  {86, "sm_86"},   {87, "sm_87"},
                {88, "sm_87"},   {89, "sm_89"},  {90, "sm_90a"},  {100, "sm_100"},
                {103, "sm_100"}, {110, "sm_75"}, {120, "sm_120"}, {121, "sm_120"}};
    TEST_ARENA(arena);
    struct bundle_world worlds[MOST_TARGETS];
    struct bundle_target targets[MOST_TARGETS];
    struct plan plans[MOST_TARGETS];
    uint32_t count = 0;
    for (uint32_t i = 0; machine_row(i); i++) {
        const struct machine *machine = machine_row(i);
        if (machine->kind != TARGET_CUDA)
            continue;
        assert_true(count < MOST_TARGETS);
        world_make_cuda(&worlds[count], &arena, machine->name, 2);
        worlds[count].plan.copies.count = 0;
        plans[count] = worlds[count].plan;
        plans[count].kernels.items[0].kernel->name = machine->name;
        targets[count] = worlds[count].target;
        targets[count].plan = &plans[count];
        targets[count].ptx_count = count == 0 ? targets[count].ptx_count : 0;
        count++;
    }
    assert_int_equal(count, 9);
    worlds[0].inputs.targets = targets;
    worlds[0].inputs.target_count = count;
    const char *path = world_write(&worlds[0], "model.so");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_world d = {0};
        struct fake_launch launches[4];
        gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
        fake->device(1, rows[i].capability, 13000);
        assert_ok(gpucc_open(path, NULL, &d.model));
        assert_ok(gpucc_context_create(d.model, &options, &d.context));
        device_tensors(&d, 5);
        assert_ok(prepare_rows(&d, 0, ROWS));
        fake->reset();
        assert_ok(gpucc_enqueue(d.context, NULL, &d.input, d.outputs));
        assert_int_equal(fake->launches(launches, 4), 2);
        assert_string_equal(launches[0].kernel, rows[i].target);
        gpucc_context_destroy(d.context);
        gpucc_close(d.model);
        assert_int_equal(fake->alive(), 0);
    }
    fake->device(1, 90, 13000);
    world_end(&worlds[0]);
}

int main(void)
{
    /* Loaded first under the driver's name, it is what dlopen gives for that name from then on. */
    void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *symbol = dlsym(library, "fake_cuda_controls");
    fake_cuda_controls_function *controls;
    memcpy(&controls, &symbol, sizeof controls);
    fake = controls();
    fake->arguments("test_scale", 4);
    fake->arguments("test_add", 4);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_get_their_arguments),
        cmocka_unit_test(empty_launches_are_skipped),
        cmocka_unit_test(tensor_maps_follow_their_buffers),
        cmocka_unit_test(conditions_choose_launches),
        cmocka_unit_test(damaged_maps_are_refused),
        cmocka_unit_test(enqueue_never_allocates_or_waits),
        cmocka_unit_test(recent_graphs_are_kept),
        cmocka_unit_test(run_moves_host_memory),
        cmocka_unit_test(large_tensors_stream_through_pinned_memory),
        cmocka_unit_test(a_captured_stream_gets_launches),
        cmocka_unit_test(every_driver_error_is_reported),
        cmocka_unit_test(the_plan_suits_the_device),
        cmocka_unit_test(every_chip_runs_the_code_that_suits_it_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A bundle from end to end on the CPU: written from a hand-made plan, linked, opened, prepared and run; what
 * its ELF file may ask of the system; damage; misuse. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <xmmintrin.h>

#include "runtime/dims_program.h"
#include "runtime/info.h"

#include "tests/unit/bundle_support.h"

static void fill(float *x, int64_t rows)
{
    for (int64_t i = 0; i < rows * 4; i++)
        x[i] = (float)((i * 37 + 11) % 101) - 50.0f;
}

static void check(const float *x, const float *y, const float *z, int64_t rows)
{
    for (int64_t i = 0; i < rows * 4; i++) {
        float expected = x[i] * world_w[i % 4] + world_big(i / 4 % 1000);
        if (y[i] != expected || z[i] != x[i])
            fail_msg("element %lld of %lld rows: y %g, expected %g; z %g, expected %g", (long long)i,
                     (long long)rows, (double)y[i], (double)expected, (double)z[i], (double)x[i]);
    }
}

static gpucc_context *cpu_context(gpucc_model *model, int threads)
{
    gpucc_context *context;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = threads;
    assert_ok(gpucc_context_create(model, &options, &context));
    assert_int_equal(gpucc_context_device(context), GPUCC_CPU);
    return context;
}

enum { MOST_ROWS = 5000 };

/* Enqueues `rows` rows with fresh, poisoned outputs. */
static void enqueue_rows(gpucc_context *context, int64_t rows)
{
    float *x = malloc(MOST_ROWS * 16), *y = malloc(MOST_ROWS * 16), *z = malloc(MOST_ROWS * 16);
    fill(x, rows);
    memset(y, 0xff, MOST_ROWS * 16);
    memset(z, 0xff, MOST_ROWS * 16);
    gpucc_tensor input = world_tensor(x, rows), outputs[2] = {world_tensor(y, rows), world_tensor(z, rows)};
    outputs[0].dims[0] = -5;
    assert_ok(gpucc_enqueue(context, NULL, &input, outputs));
    assert_int_equal(outputs[0].dims[0], rows);
    assert_int_equal(outputs[1].rank, 2);
    check(x, y, z, rows);
    free(x);
    free(y);
    free(z);
}

static void runs_at_all_sizes_of_a_range(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    const char *path = world_write(&world, "model.so");
    gpucc_model *model;
    assert_ok(gpucc_open(path, NULL, &model));
    assert_int_equal(gpucc_input_count(model), 1);
    assert_int_equal(gpucc_output_count(model), 2);
    gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
    assert_ok(gpucc_output_info(model, 0, &info));
    assert_string_equal(info.name, "y");
    assert_int_equal(info.dims[0], -1);
    assert_string_equal(info.symbols[0], "batch");
    assert_int_equal(info.dims[1], 4);
    for (int threads = 0; threads <= 3; threads++) {
        gpucc_context *context = cpu_context(model, threads);
        gpucc_dim named;
        gpucc_dims dims = world_dims(&named, 0, MOST_ROWS);
        size_t workspace;
        assert_ok(gpucc_workspace_size(model, NULL, &dims, &workspace));
        assert_int_equal(workspace, (MOST_ROWS * 16 + 255) / 256 * 256);
        assert_ok(gpucc_prepare(context, &dims, NULL));
        gpucc_statistics before = GPUCC_INIT(gpucc_statistics), after = GPUCC_INIT(gpucc_statistics);
        assert_ok(gpucc_context_statistics(context, &before));
        for (int64_t rows = 0; rows < MOST_ROWS; rows = rows * 3 + 1)
            enqueue_rows(context, rows);
        enqueue_rows(context, MOST_ROWS);
        assert_ok(gpucc_context_statistics(context, &after));
        assert_int_equal(before.allocations, after.allocations);
        assert_int_equal(after.launches, 2);
        int32_t rank;
        int64_t sizes[GPUCC_MAX_RANK];
        assert_ok(gpucc_output_dims(context, 0, &rank, sizes));
        assert_int_equal(sizes[0], MOST_ROWS);
        gpucc_context_destroy(context);
    }
    gpucc_close(model);
    world_end(&world);
}

static void run_prepares_by_itself(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 5);
    gpucc_model *model;
    gpucc_context *context;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    assert_ok(gpucc_context_create(model, NULL, &context));
    assert_int_equal(gpucc_context_device(context), GPUCC_CPU);
    float x[40], y[40], z[40];
    fill(x, 10);
    for (int64_t rows = 1; rows <= 10; rows++) {
        gpucc_tensor input = world_tensor(x, rows),
                     outputs[2] = {world_tensor(y, rows), world_tensor(z, rows)};
        assert_ok(gpucc_run(context, &input, outputs));
        for (int64_t i = 0; i < rows * 4; i++)
            assert_true(y[i] == x[i] * world_w[i % 4] + 4 * world_big(i / 4));
    }
    gpucc_statistics statistics = GPUCC_INIT(gpucc_statistics);
    assert_ok(gpucc_context_statistics(context, &statistics));
    assert_int_equal(statistics.prepares, 10);
    gpucc_context_destroy(context);
    gpucc_close(model);
    world_end(&world);
}

/* ---- the file
 * ------------------------------------------------------------------------------------------------------ */

static void the_file_asks_little_of_the_system(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    static const char *const linkers[] = {NULL, "ld.lld", "ld", "cc", "gcc"};
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++) {
        if (linkers[i] && !bundle_find_linker(HOST_X86_64, linkers[i], &arena, NULL))
            continue;
        world.inputs.linker = linkers[i];
        const char *path = world_write(&world, "model.so"); /* reads its ELF, as for every bundle */
        gpucc_model *model;
        assert_ok(gpucc_open(path, NULL, &model));
        gpucc_close(model);
    }
    world_end(&world);
}

static char *contents(struct bundle_world *world, const char *path, size_t *bytes)
{
    char *data;
    assert_true(file_read_all(world->arena, path, 64 << 20, &data, bytes));
    return data;
}

/* Constants with the same bytes are stored once, others are not; what follows them still stands right. */
static void equal_constants_are_stored_once(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    const char *path = world_write(&world, "one.so");
    struct stat one, three;
    assert_int_equal(stat(path, &one), 0);
    float *same = arena_new_array(&arena, float, BIG_ELEMENTS),
          *other = arena_new_array(&arena, float, BIG_ELEMENTS);
    for (int64_t i = 0; i < BIG_ELEMENTS; i++)
        same[i] = other[i] = world_big(i);
    other[BIG_ELEMENTS - 1] += 1;
    const float *const data[] = {same, other};
    for (int i = 0; i < 2; i++) {
        const value_id value = world_constant(&world, i ? "other" : "same", BIG_ELEMENTS, data[i]);
        vec_push(&arena, &world.plan.constants,
                 ((struct plan_constant){.value = value, .dtype = DTYPE_F32, .elements = BIG_ELEMENTS}));
        vec_push(&arena, &world.plan.buffers,
                 ((struct plan_buffer){.kind = PLAN_CONSTANT,
                                       .index = 2 + (uint32_t)i,
                                       .dtype = DTYPE_F32,
                                       .elements = dim_constant(&world.graph->dims, BIG_ELEMENTS),
                                       .shares = UINT32_MAX}));
    }
    path = world_write(&world, "three.so");
    assert_int_equal(stat(path, &three), 0);
    const int64_t bytes = BIG_ELEMENTS * 4, more = (int64_t)(three.st_size - one.st_size);
    assert_true(more >= bytes && more < bytes + bytes / 2);
    gpucc_model *model = NULL;
    assert_ok(gpucc_open(path, NULL, &model));
    gpucc_close(model);
    world_end(&world);
}

static void equal_inputs_give_equal_bytes(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    size_t first_bytes, second_bytes;
    const char *first = contents(&world, world_write(&world, "a.so"), &first_bytes);
    world.inputs.threads = 1;
    const char *second = contents(&world, world_write(&world, "another.so"), &second_bytes);
    assert_int_equal(first_bytes, second_bytes);
    assert_memory_equal(first, second, first_bytes);
    world_end(&world);
}

static void no_linker_leaves_nothing(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    const char *path = world_path(&world, "model.so");
    struct stat facts;
    world.inputs.linker = "/nonexistent/ld";
    assert_false(bundle_write(&world.inputs, path, &world.diagnostics));
    assert_int_equal(world.diagnostics.items.items[0].code, DIAG_no_linker);
    world.inputs.linker = "false";
    assert_false(bundle_write(&world.inputs, path, &world.diagnostics));
    world.inputs.linker = NULL;
    assert_false(bundle_write(&world.inputs, world_path(&world, "none/model.so"), &world.diagnostics));
    assert_int_equal(world.diagnostics.items.items[world.diagnostics.items.count - 1].code,
                     DIAG_output_unwritable);
    static const char *const missing[] = {"test_scale", "nowhere"};
    world.target.symbols = missing;
    assert_false(bundle_write(&world.inputs, path, &world.diagnostics));
    assert_int_equal(world.diagnostics.items.items[world.diagnostics.items.count - 1].code, DIAG_tool_failed);
    assert_int_not_equal(stat(path, &facts), 0);
    world_end(&world);
}

static void a_sidecar_holds_the_weights(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    world.inputs.weights_path = world_path(&world, "model.weights");
    const char *path = world_write(&world, "model.so");
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_true(facts.st_size < 1 << 20);
    for (int beside = 0; beside < 2; beside++) {
        gpucc_model *model;
        gpucc_open_options options = GPUCC_INIT(gpucc_open_options);
        options.weights = beside ? NULL : world.inputs.weights_path;
        assert_ok(gpucc_open(path, &options, &model));
        gpucc_context *context = cpu_context(model, 1);
        gpucc_dim named;
        gpucc_dims dims = world_dims(&named, 7, 7);
        assert_ok(gpucc_prepare(context, &dims, NULL));
        enqueue_rows(context, 7);
        gpucc_context_destroy(context);
        gpucc_close(model);
    }
    unlink(world.inputs.weights_path);
    gpucc_model *model;
    assert_int_equal(gpucc_open(path, NULL, &model), GPUCC_IO_ERROR);
    world_end(&world);
}

/* ---- damage
 * -------------------------------------------------------------------------------------------------------- */

/* Open and prepare; the status of the one that failed. */
static gpucc_status try_bundle(const char *path)
{
    gpucc_model *model;
    gpucc_status status = gpucc_open(path, NULL, &model);
    if (status != GPUCC_OK)
        return status;
    gpucc_context *context;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 2;
    gpucc_dim named;
    gpucc_dims dims = world_dims(&named, 4, 4);
    status = gpucc_context_create(model, &options, &context);
    if (status == GPUCC_OK) {
        status = gpucc_prepare(context, &dims, NULL);
        gpucc_context_destroy(context);
    }
    gpucc_close(model);
    return status;
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
}

static void a_changed_byte_is_refused(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    size_t bytes;
    const char *path = world_write(&world, "model.so");
    char *data = contents(&world, path, &bytes);
    const char *damaged = world_path(&world, "damaged.so");
    write_file(damaged, data, bytes);
    assert_int_equal(try_bundle(damaged), GPUCC_OK);
    int fd = open(damaged, O_WRONLY);
    for (size_t i = 0; i < 400; i++) {
        size_t at = i < 300 ? i * 257 : bytes - 1 - (i - 300) * (bytes / 101);
        if (at >= bytes)
            continue;
        char flipped = (char)(data[at] ^ (1 << i % 8));
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        gpucc_status status = try_bundle(damaged);
        if (status == GPUCC_OK)
            fail_msg("byte %zu of %zu was changed unseen", at, bytes);
        assert_true(*gpucc_last_error());
        assert_int_equal(pwrite(fd, &data[at], 1, (off_t)at), 1);
    }
    close(fd);
    for (size_t cut = 0; cut < bytes; cut = cut * 3 / 2 + 97) {
        write_file(damaged, data, cut);
        assert_true(try_bundle(damaged) != GPUCC_OK);
    }
    write_file(damaged, data, bytes - 1);
    assert_true(try_bundle(damaged) != GPUCC_OK);
    assert_int_equal(try_bundle(world.folder), GPUCC_IO_ERROR);
    assert_int_equal(try_bundle(world_path(&world, "nothing")), GPUCC_IO_ERROR);
    write_file(damaged, "", 0);
    assert_int_equal(try_bundle(damaged), GPUCC_BAD_BUNDLE);
    world_end(&world);
}

/* Everything that reads tables, on tables that were accepted. */
static void use_tables(const struct bundle_tables *tables)
{
    char text[64];
    struct runtime_error error;
    struct bundle_memory memory;
    for (uint32_t i = 0; i < tables->dim_count; i++)
        bundle_dim_text(tables, i, text, sizeof text);
    for (uint32_t i = 0; i < tables->plan_count; i++)
        bundle_plan_memory(tables, i, &memory, &error);
    int64_t *symbols = calloc(tables->symbol_count + 1, sizeof *symbols);
    int64_t *values = calloc(tables->dim_count + 1, sizeof *values);
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        symbols[i] = INT64_MAX - i;
    dims_evaluate(tables, symbols, values, &error);
    free(symbols);
    free(values);
}

static void damaged_tables_are_refused_or_harmless(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    struct bundle_file file;
    struct runtime_error error;
    world_make(&world, &arena, "cpu", 3);
    assert_int_equal(bundle_file_open(world_write(&world, "model.so"), &file, &error), GPUCC_OK);
    assert_int_equal(bundle_file_check_image(&file, &error), GPUCC_OK);
    assert_int_equal(bundle_file_check_weights(&file, NULL, &error), GPUCC_OK);
    uint64_t bytes = file.tables.header->blob_bytes;
    unsigned char *copy = malloc(bytes);
    memcpy(copy, file.blob, bytes);
    struct bundle_tables tables;
    assert_int_equal(tables_open(copy, bytes, &tables, &error), GPUCC_OK);
    unsigned refused = 0;
    static const unsigned char patterns[] = {0x01, 0x80, 0xff, 0x10};
    for (uint64_t at = 0; at < bytes; at++)
        for (size_t k = 0; k < sizeof patterns; k++) {
            copy[at] ^= patterns[k];
            if (tables_open(copy, bytes, &tables, &error) == GPUCC_OK)
                use_tables(&tables);
            else
                refused++;
            copy[at] ^= patterns[k];
        }
    assert_true(refused > bytes / 10);
    for (uint64_t cut = 0; cut < bytes; cut++) {
        unsigned char *part = malloc(cut + 1);
        memcpy(part, copy, cut);
        assert_int_equal(tables_open(part, cut, &tables, &error), GPUCC_BAD_BUNDLE);
        free(part);
    }
    free(copy);
    bundle_file_close(&file);
    world_end(&world);
}

/* ---- use
 * -----------------------------------------------------------------------------------------------------------
 */

static void bundles_live_beside_each_other(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world two, five;
    world_make(&two, &arena, "cpu", 2);
    world_make(&five, &arena, "cpu", 5);
    const char *first = world_write(&two, "two.so"), *second = world_write(&five, "five.so");
    /* Descriptors are used again by other files: names of /proc/self/fd must not be mixed up. */
    for (int round = 0; round < 3; round++) {
        gpucc_model *a, *b, *c;
        assert_ok(gpucc_open(first, NULL, &a));
        assert_ok(gpucc_open(first, NULL, &b));
        gpucc_close(b);
        assert_ok(gpucc_open(second, NULL, &c));
        gpucc_context *of_a = cpu_context(a, 1), *of_c = cpu_context(c, 2);
        gpucc_dim named;
        gpucc_dims dims = world_dims(&named, 3, 9);
        assert_ok(gpucc_prepare(of_a, &dims, NULL));
        assert_ok(gpucc_prepare(of_c, &dims, NULL));
        gpucc_statistics statistics = GPUCC_INIT(gpucc_statistics);
        assert_ok(gpucc_context_statistics(of_a, &statistics));
        assert_int_equal(statistics.launches, 2);
        assert_ok(gpucc_context_statistics(of_c, &statistics));
        assert_int_equal(statistics.launches, 5);
        enqueue_rows(of_a, 5);
        gpucc_context_destroy(of_a);
        gpucc_context_destroy(of_c);
        gpucc_close(a);
        gpucc_close(c);
    }
    remove_folder(five.folder);
    world_end(&two);
}

static void *thread_of_a_model(void *argument)
{
    gpucc_context *context = cpu_context(argument, 2);
    for (int64_t rows = 1; rows < 200; rows += 13) {
        gpucc_dim named;
        gpucc_dims dims = world_dims(&named, rows, 2 * rows);
        assert_ok(gpucc_prepare(context, &dims, NULL));
        enqueue_rows(context, rows);
        enqueue_rows(context, 2 * rows);
    }
    gpucc_context_destroy(context);
    return NULL;
}

static void contexts_run_in_threads(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    gpucc_model *model;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread_of_a_model, model), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    gpucc_close(model);
    world_end(&world);
}

struct misuse {
    gpucc_context *context;
    float x[44], y[44], z[44];
    gpucc_tensor input, outputs[2];
};

static void reset(struct misuse *m)
{
    fill(m->x, 10);
    m->input = world_tensor(m->x, 10);
    m->outputs[0] = world_tensor(m->y, 10);
    m->outputs[1] = world_tensor(m->z, 10);
}

static void expect(struct misuse *m, gpucc_status status, const char *words)
{
    assert_int_equal(gpucc_enqueue(m->context, NULL, &m->input, m->outputs), status);
    if (!strstr(gpucc_last_error(), words))
        fail_msg("\"%s\" does not say \"%s\"", gpucc_last_error(), words);
    reset(m);
}

static void wrong_tensors_are_named(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    struct misuse m;
    world_make(&world, &arena, "cpu", 2);
    gpucc_model *model;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    m.context = cpu_context(model, 1);
    reset(&m);
    expect(&m, GPUCC_NOT_PREPARED, "gpucc_prepare");
    gpucc_dim named;
    gpucc_dims dims = world_dims(&named, 5, 10);
    assert_ok(gpucc_prepare(m.context, &dims, NULL));
    m.input.dtype = GPUCC_F16;
    expect(&m, GPUCC_INVALID_ARGUMENT, "input 0 \"x\": element type is f16, the model has f32");
    m.input.rank = 3;
    expect(&m, GPUCC_INVALID_ARGUMENT, "rank is 3");
    m.input.dims[1] = 5;
    expect(&m, GPUCC_OUT_OF_RANGE, "dim 1 is 5, must be 4");
    m.input.dims[0] = 11;
    expect(&m, GPUCC_OUT_OF_RANGE, "\"batch\" is 11, prepared for 5:10");
    m.input.dims[0] = -1;
    expect(&m, GPUCC_OUT_OF_RANGE, "\"batch\" is -1");
    m.input.bytes = 159;
    expect(&m, GPUCC_INVALID_ARGUMENT, "has 159 bytes, its dims need 160");
    m.input.data = NULL;
    expect(&m, GPUCC_INVALID_ARGUMENT, "its dims need 160");
    m.input.data = (char *)m.x + 1;
    expect(&m, GPUCC_INVALID_ARGUMENT, "not aligned");
    m.input.size = 0;
    expect(&m, GPUCC_INVALID_ARGUMENT, "GPUCC_INIT");
    m.outputs[1].size = 0;
    expect(&m, GPUCC_INVALID_ARGUMENT, "output 1");
    m.outputs[1].bytes = 100;
    expect(&m, GPUCC_INVALID_ARGUMENT, "output 1 \"z\": the buffer has 100 bytes");
    m.outputs[1].data = m.y + 39;
    expect(&m, GPUCC_INVALID_ARGUMENT, "output 1 \"z\" overlaps output 0 \"y\"");
    m.outputs[0].data = m.x;
    expect(&m, GPUCC_INVALID_ARGUMENT, "output 0 \"y\" overlaps input 0 \"x\"");
    assert_int_equal(gpucc_enqueue(m.context, NULL, NULL, m.outputs), GPUCC_INVALID_ARGUMENT);
    assert_int_equal(gpucc_enqueue(m.context, &m, &m.input, m.outputs), GPUCC_INVALID_ARGUMENT);
    assert_int_equal(gpucc_enqueue(NULL, NULL, &m.input, m.outputs), GPUCC_INVALID_ARGUMENT);
    assert_ok(gpucc_enqueue(m.context, NULL, &m.input, m.outputs));
    check(m.x, m.y, m.z, 10);
    gpucc_context_destroy(m.context);
    gpucc_close(model);
    world_end(&world);
}

static void wrong_dims_are_named(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    gpucc_model *model;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    gpucc_context *context = cpu_context(model, 1);
    static const struct {
        const char *name;
        int64_t low, high;
        gpucc_status status;
    } rows[] = {{"batch", 1, 2, GPUCC_OK},
                {"x[0]", 3, 3, GPUCC_OK},
                {"batch", 4, 3, GPUCC_INVALID_ARGUMENT},
                {"batch", -4, 3, GPUCC_INVALID_ARGUMENT},
                {"batch", 0, (1 << 20) + 1, GPUCC_OUT_OF_RANGE},
                {"width", 4, 4, GPUCC_INVALID_ARGUMENT},
                {"x[2]", 4, 4, GPUCC_INVALID_ARGUMENT},
                {"x[1]", 4, 4, GPUCC_INVALID_ARGUMENT}, /* batch is not named */
                {NULL, 4, 4, GPUCC_INVALID_ARGUMENT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpucc_dim named = {rows[i].name, rows[i].low, rows[i].high};
        gpucc_dims dims = GPUCC_INIT(gpucc_dims);
        dims.items = &named;
        dims.count = 1;
        gpucc_status status = gpucc_prepare(context, &dims, NULL);
        if (status != rows[i].status)
            fail_msg("row %zu: status %d: %s", i, (int)status, gpucc_last_error());
    }
    gpucc_dim two[] = {{"batch", 4, 4}, {"x[1]", 5, 5}};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = two;
    dims.count = 2;
    assert_int_equal(gpucc_prepare(context, &dims, NULL), GPUCC_OUT_OF_RANGE);
    two[1].name = "x[0]";
    assert_int_equal(gpucc_prepare(context, &dims, NULL), GPUCC_INVALID_ARGUMENT);
    assert_int_equal(gpucc_prepare(context, NULL, NULL), GPUCC_INVALID_ARGUMENT);
    assert_non_null(strstr(gpucc_last_error(), "batch"));
    gpucc_context_destroy(context);
    gpucc_close(model);
    world_end(&world);
}

static void *counted_allocate(void *user, size_t bytes, size_t alignment)
{
    void *memory;
    ++*(int *)user;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void counted_release(void *user, void *memory, size_t bytes)
{
    (void)bytes;
    --*(int *)user;
    free(memory);
}

static void memory_may_be_the_callers(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    gpucc_model *model;
    gpucc_context *context;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    int alive = 0;
    gpucc_allocator allocator = {sizeof allocator, &alive, counted_allocate, counted_release};
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.allocator = &allocator;
    assert_ok(gpucc_context_create(model, &options, &context));
    gpucc_dim named;
    gpucc_dims dims = world_dims(&named, 100, 100);
    gpucc_workspace workspace = GPUCC_INIT(gpucc_workspace);
    assert_ok(gpucc_workspace_size(model, &options, &dims, &workspace.bytes));
    workspace.memory = aligned_alloc(256, workspace.bytes);
    assert_ok(gpucc_prepare(context, &dims, &workspace));
    assert_int_equal(alive, 1); /* the weights */
    enqueue_rows(context, 100);
    workspace.bytes--;
    assert_int_equal(gpucc_prepare(context, &dims, &workspace), GPUCC_INVALID_ARGUMENT);
    assert_ok(gpucc_prepare(context, &dims, NULL));
    assert_int_equal(alive, 2);
    enqueue_rows(context, 100);
    gpucc_context_destroy(context);
    assert_int_equal(alive, 0);
    gpucc_close(model);
    free(workspace.memory);
    world_end(&world);
}

static void the_callers_float_mode_does_not_matter(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct bundle_world world;
    world_make(&world, &arena, "cpu", 2);
    gpucc_model *model;
    assert_ok(gpucc_open(world_write(&world, "model.so"), NULL, &model));
    gpucc_context *context = cpu_context(model, 1);
    /* 0.5 times a subnormal is one more; flushed to zero it would vanish. Row 0 adds big[0] = 0. */
    float x[4] = {0, 0, 4e-39f, 0}, y[4], z[4];
    gpucc_tensor input = world_tensor(x, 1), outputs[2] = {world_tensor(y, 1), world_tensor(z, 1)};
    unsigned saved = _mm_getcsr(), flushing = saved | 0x8040;
    _mm_setcsr(flushing);
    gpucc_status status = gpucc_run(context, &input, outputs);
    unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    assert_ok(status);
    assert_int_equal(after & 0x8040, 0x8040);
    assert_true(y[2] > 1.9e-39f && y[2] < 2.1e-39f);
    gpucc_context_destroy(context);
    gpucc_close(model);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_at_all_sizes_of_a_range),
        cmocka_unit_test(run_prepares_by_itself),
        cmocka_unit_test(the_file_asks_little_of_the_system),
        cmocka_unit_test(equal_constants_are_stored_once),
        cmocka_unit_test(equal_inputs_give_equal_bytes),
        cmocka_unit_test(no_linker_leaves_nothing),
        cmocka_unit_test(a_sidecar_holds_the_weights),
        cmocka_unit_test(a_changed_byte_is_refused),
        cmocka_unit_test(damaged_tables_are_refused_or_harmless),
        cmocka_unit_test(bundles_live_beside_each_other),
        cmocka_unit_test(contexts_run_in_threads),
        cmocka_unit_test(wrong_tensors_are_named),
        cmocka_unit_test(wrong_dims_are_named),
        cmocka_unit_test(memory_may_be_the_callers),
        cmocka_unit_test(the_callers_float_mode_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Wrong calls of the runtime on a compiled model, x[batch, 4] -> y[batch, 3]: each is refused with its status
 * and a text that names the input and what it must be, and the context works afterwards. */
#include <string.h>

#include "gpucc/runtime.h"
#include "tests/unit/support.h"

enum { BATCH = 2, INPUT_BYTES = BATCH * 4 * sizeof(float), OUTPUT_BYTES = BATCH * 3 * sizeof(float) };

struct call {
    gpucc_tensor input, output;
    const gpucc_tensor *inputs; /* &input, or NULL */
    gpucc_tensor *outputs;
};

static float x[BATCH * 4], y[BATCH * 3];

static struct call good_call(void)
{
    struct call call = {
        .input = {.size = sizeof(gpucc_tensor),
                  .data = x,
                  .bytes = INPUT_BYTES,
                  .dtype = GPUCC_F32,
                  .rank = 2,
                  .dims = {BATCH, 4}},
        .output = {.size = sizeof(gpucc_tensor), .data = y, .bytes = OUTPUT_BYTES, .dtype = GPUCC_F32},
    };
    return call;
}

static void wrong_dtype(struct call *call)
{
    call->input.dtype = GPUCC_F64;
}
static void unknown_dtype(struct call *call)
{
    call->input.dtype = 1000;
}
static void wrong_rank(struct call *call)
{
    call->input.rank = 3;
}
static void negative_rank(struct call *call)
{
    call->input.rank = -1;
}
static void wrong_dim(struct call *call)
{
    call->input.dims[1] = 5;
}
static void negative_dim(struct call *call)
{
    call->input.dims[0] = -2;
}
static void huge_dim(struct call *call)
{
    call->input.dims[0] = INT64_MAX;
}
static void unprepared_dim(struct call *call)
{
    call->input.dims[0] = BATCH + 1;
}
static void null_input(struct call *call)
{
    call->input.data = NULL;
}
static void short_input(struct call *call)
{
    call->input.bytes = INPUT_BYTES - 1;
}
static void crooked_input(struct call *call)
{
    call->input.data = (char *)x + 1;
}
static void input_without_size(struct call *call)
{
    call->input.size = 0;
}
static void null_inputs(struct call *call)
{
    call->inputs = NULL;
}
static void null_output(struct call *call)
{
    call->output.data = NULL;
}
static void short_output(struct call *call)
{
    call->output.bytes = OUTPUT_BYTES - 1;
}
static void wrong_output_dtype(struct call *call)
{
    call->output.dtype = GPUCC_I64;
}
static void output_over_input(struct call *call)
{
    call->output.data = x;
}
static void output_without_size(struct call *call)
{
    call->output.size = 8;
}
static void null_outputs(struct call *call)
{
    call->outputs = NULL;
}

static const struct row {
    void (*spoil)(struct call *call);
    gpucc_status enqueue, run; /* OK: not tried, or fine there */
    const char *text;          /* part of the message */
} rows[] = {
    {wrong_dtype, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "input 0 \"x\": element type is f64, the model has f32"},
    {unknown_dtype, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "input 0 \"x\": element type is"},
    {wrong_rank, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "input 0 \"x\": rank is 3, the model has 2"},
    {negative_rank, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "input 0 \"x\": rank is -1, the model has 2"},
    {wrong_dim, GPUCC_OUT_OF_RANGE, GPUCC_OUT_OF_RANGE, "input 0 \"x\": dim 1 is 5, must be 4"},
    {negative_dim, GPUCC_OUT_OF_RANGE, GPUCC_OUT_OF_RANGE, "batch"},
    {huge_dim, GPUCC_OUT_OF_RANGE, GPUCC_OUT_OF_RANGE, "batch"},
    {unprepared_dim, GPUCC_OUT_OF_RANGE, GPUCC_INVALID_ARGUMENT, ""},
    {null_input, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "input 0 \"x\": the buffer has 0 bytes, its dims need 32"},
    {short_input, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "input 0 \"x\": the buffer has 31 bytes, its dims need 32"},
    {crooked_input, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "input 0 \"x\": its memory is not aligned to 4 bytes"},
    {input_without_size, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "struct size"},
    {null_inputs, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "NULL"},
    {null_output, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "output 0 \"y\": the buffer has 0 bytes, its dims need 24"},
    {short_output, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "output 0 \"y\": the buffer has 23 bytes, its dims need 24"},
    {wrong_output_dtype, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT,
     "output 0 \"y\": element type is i64, the model has f32"},
    {output_over_input, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "output 0 \"y\""},
    {output_without_size, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "struct size"},
    {null_outputs, GPUCC_INVALID_ARGUMENT, GPUCC_INVALID_ARGUMENT, "NULL"},
};

static void check_status(size_t row, const char *function, gpucc_status status, gpucc_status expected,
                         const char *text)
{
    if (status != expected || (status != GPUCC_OK && !strstr(gpucc_last_error(), text)))
        fail_msg("row %zu, %s: %s: %s", row, function, gpucc_status_name(status), gpucc_last_error());
}

struct world {
    gpucc_model *model;
    gpucc_context *context;
};

static struct world world_open(void)
{
    struct world world;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 1;
    assert_int_equal(gpucc_open(TEST_BUNDLE, NULL, &world.model), GPUCC_OK);
    assert_int_equal(gpucc_context_create(world.model, &options, &world.context), GPUCC_OK);
    return world;
}

static void world_close(struct world *world)
{
    gpucc_context_destroy(world->context);
    gpucc_close(world->model);
}

static gpucc_status prepare(struct world *world, const char *name, int64_t low, int64_t high)
{
    gpucc_dim dim = {.name = name, .low = low, .high = high};
    gpucc_dims dims = {.size = sizeof dims, .items = &dim, .count = 1};
    return gpucc_prepare(world->context, &dims, NULL);
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    struct world world = world_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int round = 0; round < 2; round++) {
            struct call call = good_call();
            call.inputs = &call.input;
            call.outputs = &call.output;
            assert_int_equal(prepare(&world, "batch", 1, BATCH), GPUCC_OK);
            rows[i].spoil(&call);
            if (round)
                check_status(i, "run", gpucc_run(world.context, call.inputs, call.outputs), rows[i].run,
                             rows[i].text);
            else
                check_status(i, "enqueue", gpucc_enqueue(world.context, NULL, call.inputs, call.outputs),
                             rows[i].enqueue, rows[i].text);
            struct call good = good_call();
            check_status(i, "enqueue of a good call",
                         prepare(&world, "batch", 1, BATCH) == GPUCC_OK
                             ? gpucc_enqueue(world.context, NULL, &good.input, &good.output)
                             : GPUCC_NOT_PREPARED,
                         GPUCC_OK, "");
        }
    world_close(&world);
}

static void wrong_dims_are_refused(void **state)
{
    (void)state;
    struct world world = world_open();
    struct call call = good_call();
    check_status(0, "enqueue", gpucc_enqueue(world.context, NULL, &call.input, &call.output),
                 GPUCC_NOT_PREPARED, "gpucc_prepare");
    check_status(1, "prepare", gpucc_prepare(world.context, NULL, NULL), GPUCC_INVALID_ARGUMENT, "batch");
    check_status(2, "prepare", prepare(&world, "sequence", 1, 2), GPUCC_INVALID_ARGUMENT, "sequence");
    check_status(3, "prepare", prepare(&world, "batch", 3, 2), GPUCC_INVALID_ARGUMENT, "batch");
    check_status(4, "prepare", prepare(&world, "batch", -1, 2), GPUCC_INVALID_ARGUMENT, "batch");
    check_status(5, "prepare", prepare(&world, "batch", 1, 65), GPUCC_OUT_OF_RANGE, "batch");
    gpucc_dim both[] = {{.name = "batch", .low = 1, .high = 1}, {.name = "x[1]", .low = 5, .high = 5}};
    gpucc_dims dims = {.size = sizeof dims, .items = both, .count = 2};
    check_status(6, "prepare", gpucc_prepare(world.context, &dims, NULL), GPUCC_OUT_OF_RANGE, "x[1]");
    check_status(7, "prepare", prepare(&world, "x[9]", 5, 5), GPUCC_INVALID_ARGUMENT, "x[9]");
    check_status(8, "prepare", prepare(&world, NULL, 1, 1), GPUCC_INVALID_ARGUMENT, "no name");
    check_status(9, "prepare", prepare(&world, "x[0]", 1, 64), GPUCC_OK, "");
    world_close(&world);
}

static void null_pointers_are_refused(void **state)
{
    (void)state;
    struct world world = world_open();
    gpucc_model *model;
    gpucc_context *context;
    gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info), bare = {0};
    size_t bytes;
    int32_t rank;
    int64_t dims[GPUCC_MAX_RANK];
    gpucc_statistics statistics = {0};
    const gpucc_status expected = GPUCC_INVALID_ARGUMENT;
    check_status(0, "open", gpucc_open(NULL, NULL, &model), expected, "NULL");
    check_status(1, "open", gpucc_open(TEST_BUNDLE, NULL, NULL), expected, "NULL");
    check_status(2, "input_info", gpucc_input_info(NULL, 0, &info), expected, "NULL");
    check_status(3, "input_info", gpucc_input_info(world.model, 0, NULL), expected, "NULL");
    check_status(4, "input_info", gpucc_input_info(world.model, 1, &info), expected, "1");
    check_status(5, "input_info", gpucc_input_info(world.model, 0, &bare), expected, "size");
    check_status(6, "output_info", gpucc_output_info(NULL, 0, &info), expected, "NULL");
    check_status(7, "context_create", gpucc_context_create(NULL, NULL, &context), expected, "NULL");
    check_status(8, "context_create", gpucc_context_create(world.model, NULL, NULL), expected, "NULL");
    check_status(9, "workspace_size", gpucc_workspace_size(NULL, NULL, NULL, &bytes), expected, "NULL");
    check_status(10, "workspace_size", gpucc_workspace_size(world.model, NULL, NULL, NULL), expected, "NULL");
    check_status(11, "prepare", gpucc_prepare(NULL, NULL, NULL), expected, "NULL");
    check_status(12, "enqueue", gpucc_enqueue(NULL, NULL, NULL, NULL), expected, "NULL");
    check_status(13, "run", gpucc_run(NULL, NULL, NULL), expected, "NULL");
    check_status(14, "output_dims", gpucc_output_dims(NULL, 0, &rank, dims), expected, "NULL");
    check_status(15, "output_dims", gpucc_output_dims(world.context, 0, NULL, dims), expected, "NULL");
    check_status(16, "output_dims", gpucc_output_dims(world.context, 0, &rank, NULL), expected, "NULL");
    check_status(17, "statistics", gpucc_context_statistics(NULL, &statistics), expected, "NULL");
    check_status(18, "statistics", gpucc_context_statistics(world.context, NULL), expected, "NULL");
    check_status(19, "statistics", gpucc_context_statistics(world.context, &statistics), expected, "size");
    assert_int_equal(gpucc_input_count(NULL), 0);
    assert_int_equal(gpucc_output_count(NULL), 0);
    gpucc_context_destroy(NULL);
    gpucc_close(NULL);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tensors_are_refused),
        cmocka_unit_test(wrong_dims_are_refused),
        cmocka_unit_test(null_pointers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

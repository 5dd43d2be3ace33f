/* Weights replaced in an opened model: results equal, to the bit, those of a model compiled with them,
 * whatever the compiler made of them; what a decision was made by is refused; contexts see the old or the
 * new. */
#include "tests/unit/model_support.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_VALUES = 256, MOST_WEIGHTS = 8 };

struct weight {
    const char *name;
    int32_t dtype;
    int64_t dims[5]; /* -1 behind the last */
    size_t element;
};

static size_t count_of(const struct weight *weight)
{
    size_t count = 1;
    for (int i = 0; weight->dims[i] >= 0; i++)
        count *= (size_t)weight->dims[i];
    return count;
}

/* Elements of a weight, different for each seed; f16 ones are whole eighths. */
static void fill_weight(const struct weight *weight, unsigned seed, void *data)
{
    for (size_t i = 0; i < count_of(weight); i++) {
        const unsigned number = (unsigned)(i * 37 + seed * 101 + 11) % 97;
        const float single = 0.125f + (float)number * 0.0625f;
        const uint16_t half = (uint16_t)(0x3400 + (number << 4));
        if (weight->dtype == GPUCC_F16)
            memcpy((char *)data + 2 * i, &half, 2);
        else
            memcpy((char *)data + 4 * i, &single, 4);
    }
}

/* Puts the weights' statements where the text has '@'. */
static const char *with_weights(struct arena *arena, const char *text, const struct weight *weights,
                                const unsigned *seeds)
{
    struct text out;
    text_init(&out, arena);
    const char *at = strchr(text, '@');
    text_printf(&out, "%.*s", (int)(at - text), text);
    for (const struct weight *w = weights; w->name; w++) {
        unsigned char data[MOST_VALUES * 4];
        fill_weight(w, seeds[w - weights], data);
        text_printf(&out, "  weight %%%s \"%s\" : %s[", w->name, w->name,
                    w->dtype == GPUCC_F16 ? "f16" : "f32");
        for (int i = 0; w->dims[i] >= 0; i++)
            text_printf(&out, "%s%d", i ? ", " : "", (int)w->dims[i]);
        text_put(&out, "] hex ");
        for (size_t i = 0; i < count_of(w) * w->element; i++)
            text_printf(&out, "%02x", data[i]);
        text_put(&out, "\n");
    }
    text_put(&out, at + 1);
    return out.data;
}

static gpucc_model *open_with(struct model *world, struct arena *arena, uint64_t fold_limit, const char *text)
{
    gpucc_model *model;
    if (!model_plan(world, arena, "cpu", fold_limit, text) || !model_write(world))
        model_fail(world, "the model");
    assert_ok(gpucc_open(world->path, NULL, &model));
    return model;
}

struct example {
    const char *text;
    struct weight weights[MOST_WEIGHTS + 1];
    int64_t input_dims[5], output_dims[5];
};

static size_t product(const int64_t *dims)
{
    size_t count = 1;
    for (; *dims >= 0; dims++)
        count *= (size_t)*dims;
    return count;
}

static void run(gpucc_context *context, const struct example *e, float *y)
{
    float x[MOST_VALUES];
    for (size_t i = 0; i < product(e->input_dims); i++)
        x[i] = (float)(i % 13) - 6.25f;
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, e->input_dims),
                 output = tensor_over(y, GPUCC_F32, 4, e->output_dims);
    memset(y, 0xff, product(e->output_dims) * 4);
    assert_ok(gpucc_run(context, &input, &output));
}

static gpucc_status replace(gpucc_model *model, const struct weight *weight, unsigned seed)
{
    unsigned char data[MOST_VALUES * 4];
    fill_weight(weight, seed, data);
    gpucc_tensor tensor = tensor_over(data, weight->dtype, weight->element, weight->dims);
    return gpucc_replace_weights(model, &weight->name, &tensor, 1);
}

/* The result of a model that is compiled with these weights. */
static void run_fresh(const struct example *e, uint64_t fold_limit, const unsigned *seeds, float *y)
{
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model =
        open_with(&world, &arena, fold_limit, with_weights(&arena, e->text, e->weights, seeds));
    gpucc_context *context = model_context(model, GPUCC_CPU, 2);
    run(context, e, y);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* Each weight in turn, then the first one again: equal to a fresh compile every time. */
static void check_example(const struct example *e, uint64_t fold_limit)
{
    TEST_ARENA(arena);
    struct model world;
    unsigned seeds[MOST_WEIGHTS] = {0};
    float y[MOST_VALUES], expected[MOST_VALUES], before[MOST_VALUES];
    gpucc_model *model =
        open_with(&world, &arena, fold_limit, with_weights(&arena, e->text, e->weights, seeds));
    gpucc_context *context = model_context(model, GPUCC_CPU, 2);
    run(context, e, before);
    uint32_t weights = 0;
    while (e->weights[weights].name)
        weights++;
    for (uint32_t step = 0; step <= weights; step++) {
        const uint32_t w = step % weights;
        seeds[w] += 1 + step;
        if (replace(model, &e->weights[w], seeds[w]) != GPUCC_OK)
            fail_msg("%s", gpucc_last_error());
        run(context, e, y);
        assert_memory_not_equal(y, before, product(e->output_dims) * 4);
        memcpy(before, y, sizeof y);
        run_fresh(e, fold_limit, seeds, expected);
        if (memcmp(y, expected, product(e->output_dims) * 4) != 0)
            fail_msg("weight \"%s\": the result differs from a fresh compile", e->weights[w].name);
    }
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* ---- what becomes of weights
 * --------------------------------------------------------------------------------------- */

static const struct example packed = {
    .text = "model opset 17 {\n"
            "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
            "  input %x \"x\" : f32[s0, 8]\n@"
            "  %y = MatMul(%x, %w) : f32[s0, 16] ; #0\n"
            "  %z = Add(%y, %b) : f32[s0, 16] ; #1\n"
            "  output %z \"z\"\n}\n",
    .weights = {{"w", GPUCC_F32, {8, 16, -1}, 4}, {"b", GPUCC_F32, {16, -1}, 4}, {.name = NULL}},
    .input_dims = {5, 8, -1},
    .output_dims = {5, 16, -1}};

static const struct example folded = {
    .text = "model opset 17 {\n"
            "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
            "  input %x \"x\" : f32[s0, 8]\n@"
            "  %t = Transpose(%w) perm=[1, 0] : f32[8, 16] ; #0\n"
            "  %m = Mul(%t, %c) : f32[8, 16] ; #1\n"
            "  %r = ReduceSum(%m) axes=[0] keepdims=1 : f32[1, 16] ; #2\n"
            "  %e = Exp(%r) : f32[1, 16] ; #3\n"
            "  %n = Div(%m, %e) : f32[8, 16] ; #4\n"
            "  %y = MatMul(%x, %n) : f32[s0, 16] ; #5\n"
            "  output %y \"y\"\n}\n",
    .weights = {{"w", GPUCC_F32, {16, 8, -1}, 4}, {"c", GPUCC_F32, {8, 1, -1}, 4}, {.name = NULL}},
    .input_dims = {5, 8, -1},
    .output_dims = {5, 16, -1}};

static const struct example cast = {.text = "model opset 17 {\n"
                                            "  input %x \"x\" : f32[4, 8]\n@"
                                            "  %f = Cast(%w) to=f32 : f32[8, 16] ; #0\n"
                                            "  %y = MatMul(%x, %f) : f32[4, 16] ; #1\n"
                                            "  %g = Cast(%w) to=f32 : f32[8, 16] ; #2\n"
                                            "  %r = ReduceMax(%g) axes=[0] keepdims=1 : f32[1, 16] ; #3\n"
                                            "  %z = Sub(%y, %r) : f32[4, 16] ; #4\n"
                                            "  output %z \"z\"\n}\n",
                                    .weights = {{"w", GPUCC_F16, {8, 16, -1}, 2}, {.name = NULL}},
                                    .input_dims = {4, 8, -1},
                                    .output_dims = {4, 16, -1}};

static const struct example normalised = {
    .text =
        "model opset 17 {\n"
        "  input %x \"x\" : f32[1, 3, 6, 6]\n@"
        "  %c = Conv(%x, %w) dilations=[1, 1] group=1 kernel_shape=[3, 3] pads=[1, 1, 1, 1] strides=[2, 2] : "
        "f32[1, 4, 3, 3] ; #0\n"
        "  %n = BatchNormalization(%c, %s, %b, %m, %v) : f32[1, 4, 3, 3] ; #1\n"
        "  output %n \"n\"\n}\n",
    .weights = {{"w", GPUCC_F32, {4, 3, 3, 3, -1}, 4},
                {"s", GPUCC_F32, {4, -1}, 4},
                {"b", GPUCC_F32, {4, -1}, 4},
                {"m", GPUCC_F32, {4, -1}, 4},
                {"v", GPUCC_F32, {4, -1}, 4},
                {.name = NULL}},
    .input_dims = {1, 3, 6, 6, -1},
    .output_dims = {1, 4, 3, 3, -1}};

static void packed_weights(void **state)
{
    (void)state;
    check_example(&packed, FOLD_LIMIT);
}

static void folded_weights(void **state)
{
    (void)state;
    check_example(&folded, FOLD_LIMIT);
}

static void computed_weights(void **state)
{
    (void)state;
    check_example(&folded, 0);
}

static void cast_weights(void **state)
{
    (void)state;
    check_example(&cast, FOLD_LIMIT);
}

static void normalised_weights(void **state)
{
    (void)state;
    check_example(&normalised, FOLD_LIMIT);
}

/* ---- lists and refusals
 * -------------------------------------------------------------------------------------------- */

static const char frozen_text[] = "model opset 17 {\n"
                                  "  dim s0 : input 0 axis 0, 1..64, hint 4\n"
                                  "  input %x \"x\" : f32[s0, 8]\n"
                                  "  weight %shape \"shape\" : i64[2] hex ffffffffffffffff0400000000000000\n"
                                  "  weight %half \"half\" : f32[] hex 0000003f\n"
                                  "  weight %bias \"bias\" : f32[4] hex 0000803f0000803f0000803f0000803f\n"
                                  "  %r = Reshape(%x, %shape) ; #0\n"
                                  "  %m = Mul(%r, %half) ; #1\n"
                                  "  %a = Add(%m, %bias) ; #2\n"
                                  "  output %a \"a\"\n}\n";

static void frozen_weights_say_why(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    gpucc_model *model = open_with(&world, &arena, FOLD_LIMIT, frozen_text);
    static const struct {
        const char *name, *frozen;
        int32_t dtype, rank;
    } rows[] = {{"shape", "its value decides the shape of node Reshape #0", GPUCC_I64, 1},
                {"half", "its value decides the code of node Mul #1", GPUCC_F32, 0},
                {"bias", NULL, GPUCC_F32, 1}};
    assert_int_equal(gpucc_weight_count(model), 3);
    for (size_t i = 0; i < 3; i++) {
        gpucc_weight info = GPUCC_INIT(gpucc_weight);
        assert_ok(gpucc_weight_info(model, i, &info));
        assert_string_equal(info.name, rows[i].name);
        assert_int_equal(info.dtype, rows[i].dtype);
        assert_int_equal(info.rank, rows[i].rank);
        if (rows[i].frozen)
            assert_string_equal(info.frozen, rows[i].frozen);
        else
            assert_null(info.frozen);
    }
    gpucc_weight info = GPUCC_INIT(gpucc_weight);
    assert_fails(gpucc_weight_info(model, 3, &info), GPUCC_INVALID_ARGUMENT, "the model has 3 weights");
    int64_t shape[2] = {-1, 2};
    float bias[4] = {2, 2, 2, 2}, half = 0.25f;
    const char *name = "shape";
    gpucc_tensor tensor = tensor_over(shape, GPUCC_I64, 8, DIMS(2));
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT,
                 "weight \"shape\" cannot be replaced: its value decides the shape of node Reshape #0");
    name = "half";
    tensor = tensor_over(&half, GPUCC_F32, 4, DIMS(-1));
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT,
                 "its value decides the code of node Mul #1");
    name = "nothing";
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT,
                 "no weight \"nothing\"");
    name = "bias";
    tensor = tensor_over(bias, GPUCC_F16, 4, DIMS(4));
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT,
                 "element type is f16, the model has f32");
    tensor = tensor_over(bias, GPUCC_F32, 4, DIMS(1, 4));
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT, "rank is 2");
    tensor = tensor_over(bias, GPUCC_F32, 4, DIMS(3));
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT,
                 "dim 0 is 3, the model has 4");
    tensor = tensor_over(bias, GPUCC_F32, 4, DIMS(4));
    tensor.bytes--;
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT, "has 15 bytes");
    tensor.size = 0;
    assert_fails(gpucc_replace_weights(model, &name, &tensor, 1), GPUCC_INVALID_ARGUMENT, "GPUCC_INIT");
    /* One of several is wrong: none is replaced. */
    const char *names[] = {"bias", "bias"};
    gpucc_tensor two[] = {tensor_over(bias, GPUCC_F32, 4, DIMS(4)), tensor_over(bias, GPUCC_F32, 4, DIMS(4))};
    assert_fails(gpucc_replace_weights(model, names, two, 2), GPUCC_INVALID_ARGUMENT, "given twice");
    names[1] = "half";
    assert_int_equal(gpucc_replace_weights(model, names, two, 2), GPUCC_INVALID_ARGUMENT);
    gpucc_context *context = model_context(model, GPUCC_CPU, 1);
    float x[8] = {0}, a[8];
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(1, 8)),
                 output = tensor_over(a, GPUCC_F32, 4, DIMS(2, 4));
    assert_ok(gpucc_run(context, &input, &output));
    assert_true(a[0] == 1 && a[7] == 1);
    assert_ok(gpucc_replace_weights(model, names, two, 1));
    assert_ok(gpucc_run(context, &input, &output));
    assert_true(a[0] == 2 && a[7] == 2);
    assert_ok(gpucc_replace_weights(model, NULL, NULL, 0));
    assert_int_equal(gpucc_replace_weights(model, NULL, two, 1), GPUCC_INVALID_ARGUMENT);
    gpucc_context_destroy(context);
    gpucc_close(model);
    model_end(&world);
}

/* ---- contexts that run
 * --------------------------------------------------------------------------------------------- */

static void contexts_change_in_prepare(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    const unsigned seeds[MOST_WEIGHTS] = {0};
    gpucc_model *model =
        open_with(&world, &arena, FOLD_LIMIT, with_weights(&arena, packed.text, packed.weights, seeds));
    gpucc_context *contexts[2];
    float x[40] = {1, 2, 3}, y[2][80], old[80];
    gpucc_dim rows = {"x[0]", 5, 5};
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = &rows;
    dims.count = 1;
    gpucc_tensor input = tensor_over(x, GPUCC_F32, 4, DIMS(5, 8));
    for (int i = 0; i < 2; i++) {
        contexts[i] = model_context(model, GPUCC_CPU, 1);
        assert_ok(gpucc_prepare(contexts[i], &dims, NULL));
    }
    gpucc_tensor outputs[2] = {tensor_over(y[0], GPUCC_F32, 4, DIMS(5, 16)),
                               tensor_over(y[1], GPUCC_F32, 4, DIMS(5, 16))};
    assert_ok(gpucc_enqueue(contexts[0], NULL, &input, &outputs[0]));
    memcpy(old, y[0], sizeof old);
    assert_ok(replace(model, &packed.weights[0], 7));
    /* Until prepare the old one; then the new one, in this context only. */
    assert_ok(gpucc_enqueue(contexts[0], NULL, &input, &outputs[0]));
    assert_memory_equal(y[0], old, sizeof old);
    assert_ok(gpucc_prepare(contexts[0], &dims, NULL));
    for (int i = 0; i < 2; i++)
        assert_ok(gpucc_enqueue(contexts[i], NULL, &input, &outputs[i]));
    assert_memory_not_equal(y[0], old, sizeof old);
    assert_memory_equal(y[1], old, sizeof old);
    /* A context that is made now has the new ones. */
    gpucc_context_destroy(contexts[1]);
    contexts[1] = model_context(model, GPUCC_CPU, 1);
    assert_ok(gpucc_prepare(contexts[1], &dims, NULL));
    assert_ok(gpucc_enqueue(contexts[1], NULL, &input, &outputs[1]));
    assert_memory_equal(y[0], y[1], sizeof old);
    for (int i = 0; i < 2; i++)
        gpucc_context_destroy(contexts[i]);
    gpucc_close(model);
    model_end(&world);
}

enum { RUNNERS = 3, STATES = 4, ROUNDS = 60 };

struct race {
    gpucc_model *model;
    float expected[STATES][80];
    atomic_bool stop;
};

static void *run_until_stopped(void *user)
{
    struct race *race = user;
    gpucc_context *context = model_context(race->model, GPUCC_CPU, 1);
    float y[80];
    while (!atomic_load(&race->stop)) {
        run(context, &packed, y);
        int match = 0;
        for (int i = 0; i < STATES; i++)
            match += memcmp(y, race->expected[i], sizeof y) == 0;
        if (match != 1)
            fail_msg("a result of mixed weights");
    }
    gpucc_context_destroy(context);
    return NULL;
}

/* Both weights change together: a result is of one state, whatever the threads do. */
static void results_are_never_mixed(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct model world;
    struct race race = {0};
    const unsigned seeds[MOST_WEIGHTS] = {0};
    unsigned char data[2][MOST_VALUES * 4];
    const char *names[2] = {packed.weights[0].name, packed.weights[1].name};
    race.model =
        open_with(&world, &arena, FOLD_LIMIT, with_weights(&arena, packed.text, packed.weights, seeds));
    gpucc_context *context = model_context(race.model, GPUCC_CPU, 1);
    pthread_t threads[RUNNERS];
    for (unsigned round = 0; round < STATES + ROUNDS; round++) {
        gpucc_tensor tensors[2];
        for (int w = 0; w < 2; w++) {
            const struct weight *weight = &packed.weights[w];
            fill_weight(weight, round % STATES, data[w]);
            tensors[w] = tensor_over(data[w], weight->dtype, weight->element, weight->dims);
        }
        assert_ok(gpucc_replace_weights(race.model, names, tensors, 2));
        if (round < STATES)
            run(context, &packed, race.expected[round]);
        for (int i = 0; i < RUNNERS && round + 1 == STATES; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_until_stopped, &race), 0);
    }
    atomic_store(&race.stop, true);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    gpucc_context_destroy(context);
    gpucc_close(race.model);
    model_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights),
        cmocka_unit_test(folded_weights),
        cmocka_unit_test(computed_weights),
        cmocka_unit_test(cast_weights),
        cmocka_unit_test(normalised_weights),
        cmocka_unit_test(frozen_weights_say_why),
        cmocka_unit_test(contexts_change_in_prepare),
        cmocka_unit_test(results_are_never_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

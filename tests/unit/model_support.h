/* Models for tests of the runtime: from Graph IR text through all passes, plans and printers to an opened
 * bundle. Code for CUDA devices is made up: only the fake driver sees it. */
#ifndef GPUCC_TESTS_UNIT_MODEL_SUPPORT_H
#define GPUCC_TESTS_UNIT_MODEL_SUPPORT_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_writer.h"
#include "gpucc/runtime.h"
#include "ir/support/file.h"
#include "passes/pass.h"

#include "tests/unit/support.h"

struct model {
    struct arena *arena;
    struct graph *graph;
    struct diagnostics diagnostics;
    struct plan plan, init;
    char *folder;
    const char *path;
};

static inline void model_fail(struct model *model, const char *what)
{
    struct text text;
    text_init(&text, model->arena);
    for (uint32_t i = 0; i < model->diagnostics.items.count; i++)
        diag_print(&model->diagnostics, &model->diagnostics.items.items[i], &text);
    fail_msg("%s: %s", what, text.data ? text.data : "no reason");
}

enum { FOLD_LIMIT = 1 << 20 };

/* Reads the text, runs the passes, plans for the machine. */
static inline bool model_plan(struct model *model, struct arena *arena, const char *machine_name,
                              uint64_t fold_limit, const char *text)
{
    const struct machine *machine = machine_find(machine_name);
    *model = (struct model){.arena = arena};
    diagnostics_init(&model->diagnostics, arena, "test");
    if (!graph_parse(arena, &model->diagnostics, text, NULL, &model->graph))
        model_fail(model, "the text");
    struct pipeline_options pipeline = {.optimisation = 3, .verify = true, .fold_limit = fold_limit};
    if (!run_pipeline(model->graph, &model->diagnostics, &pipeline))
        return false;
    struct target_services services = plan_services(model->graph, machine, 3, arena);
    struct grouping grouping = {0};
    struct plan_options options = {.optimisation = 3, .threads = 1};
    return group_graph(model->graph, &services, 3, &model->diagnostics, &grouping) &&
           plan_build(model->graph, &grouping, machine, &options, arena, &model->diagnostics, &model->plan) &&
           plan_init(model->graph, (const struct plan *const[]){&model->plan}, 1, machine_lowest(HOST_X86_64),
                     arena, &model->diagnostics, &model->init);
}

/* Adds the plan's CPU kernels; their symbols. */
static inline const char **model_kernels(struct model *model, const struct plan *plan, const char *suffix,
                                         struct object_kernel *kernels, uint32_t *count)
{
    const char **symbols = arena_new_array(model->arena, const char *, plan->kernels.count + 1);
    for (uint32_t i = 0; i < plan->kernels.count; i++) {
        symbols[i] = arena_printf(model->arena, "%s%s", plan->kernels.items[i].kernel->name, suffix);
        kernels[(*count)++] =
            (struct object_kernel){plan->kernels.items[i].kernel, symbols[i], plan->machine};
    }
    return symbols;
}

/* The bundle of a planned model; false: diagnosed. */
static inline bool model_write(struct model *model)
{
    static const unsigned char image_bytes[] = "a cubin";
    struct bundle_target target = {.plan = &model->plan}, init = {.plan = &model->init};
    struct bundle_inputs inputs = {
        .graph = model->graph, .targets = &target, .target_count = 1, .init = &init, .nvrtc_major = 13};
    struct object_file *objects = NULL;
    struct object_kernel *kernels = arena_new_array(
        model->arena, struct object_kernel, model->plan.kernels.count + model->init.kernels.count + 1);
    uint32_t count = 0;
    if (model->plan.machine->kind == TARGET_CUDA) {
        struct cuda_image *image = arena_new(model->arena, struct cuda_image);
        *image = (struct cuda_image){image_bytes, sizeof image_bytes, 0, model->plan.kernels.count};
        target.cubins = image;
        target.cubin_count = model->plan.kernels.count > 0;
    } else {
        target.symbols = model_kernels(model, &model->plan, "", kernels, &count);
    }
    init.symbols = model_kernels(model, &model->init, "_init", kernels, &count);
    if (!llvm_objects(kernels, count, 1, "", model->arena, &model->diagnostics, &objects, &inputs.object_count))
        model_fail(model, "machine code");
    inputs.objects = objects;
    if (!model->folder)
        assert_true(temporary_folder(model->arena, &model->folder));
    model->path = arena_printf(model->arena, "%s/model.so", model->folder);
    return bundle_write(&inputs, model->path, &model->diagnostics);
}

/* All of it; any message fails the test. */
static inline gpucc_model *open_model(struct model *model, struct arena *arena, const char *machine,
                                      const char *text)
{
    gpucc_model *opened = NULL;
    if (!model_plan(model, arena, machine, FOLD_LIMIT, text) || !model_write(model))
        model_fail(model, "the model");
    if (gpucc_open(model->path, NULL, &opened) != GPUCC_OK)
        fail_msg("%s", gpucc_last_error());
    return opened;
}

static inline void model_end(struct model *model)
{
    if (model->folder)
        remove_folder(model->folder);
    arena_release(model->arena);
}

static inline gpucc_context *model_context(gpucc_model *model, int32_t device, int32_t threads)
{
    gpucc_context *context;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = device;
    options.threads = threads;
    if (gpucc_context_create(model, &options, &context) != GPUCC_OK)
        fail_msg("%s", gpucc_last_error());
    return context;
}

/* A dense tensor over the caller's memory; dims end at the first negative one. */
static inline gpucc_tensor tensor_over(void *data, int32_t dtype, size_t element, const int64_t *dims)
{
    gpucc_tensor tensor = GPUCC_INIT(gpucc_tensor);
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.bytes = element;
    for (; dims[tensor.rank] >= 0; tensor.rank++) {
        tensor.dims[tensor.rank] = dims[tensor.rank];
        tensor.bytes *= (size_t)dims[tensor.rank];
    }
    return tensor;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, -1})

#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        gpucc_status assert_ok_status = (call);                                                              \
        if (assert_ok_status != GPUCC_OK)                                                                    \
            fail_msg("%s: %s: %s", #call, gpucc_status_name(assert_ok_status), gpucc_last_error());          \
    } while (0)

#define assert_fails(call, status, words)                                                                    \
    do {                                                                                                     \
        gpucc_status assert_fails_status = (call);                                                           \
        if (assert_fails_status != (status) || !strstr(gpucc_last_error(), (words)))                         \
            fail_msg("%s: %s: \"%s\" does not say \"%s\"", #call, gpucc_status_name(assert_fails_status),    \
                     gpucc_last_error(), (words));                                                           \
    } while (0)

#endif

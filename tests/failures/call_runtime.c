/* A program of a user of the runtime: opens a bundle of x[batch, 4] -> y[batch, 3], prepares, enqueues, runs,
 * closes. Each step that fails is said with its status and made once more: then it must work, since one
 * failure breaks nothing.
 *
 *     call_runtime BUNDLE
 *
 * Exit status 0: all was done and both ways gave the same result; 1: a step failed twice, or its text says
 * nothing. */
#include <stdio.h>
#include <string.h>

#include "gpucc/runtime.h"

struct run {
    const char *path;
    gpucc_model *model;
    gpucc_context *context;
    gpucc_tensor input, output;
    float x[8], y[6];
};

static gpucc_status open_bundle(struct run *run)
{
    return gpucc_open(run->path, NULL, &run->model);
}

static gpucc_status create(struct run *run)
{
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 2;
    return gpucc_context_create(run->model, &options, &run->context);
}

static gpucc_status ask_workspace(struct run *run)
{
    gpucc_dim dim = {.name = "batch", .low = 1, .high = 2};
    gpucc_dims dims = {.size = sizeof dims, .items = &dim, .count = 1};
    size_t bytes;
    return gpucc_workspace_size(run->model, NULL, &dims, &bytes);
}

static gpucc_status prepare(struct run *run)
{
    gpucc_dim dim = {.name = "batch", .low = 1, .high = 2};
    gpucc_dims dims = {.size = sizeof dims, .items = &dim, .count = 1};
    return gpucc_prepare(run->context, &dims, NULL);
}

static gpucc_status enqueue(struct run *run)
{
    return gpucc_enqueue(run->context, NULL, &run->input, &run->output);
}

static gpucc_status run_whole(struct run *run)
{
    return gpucc_run(run->context, &run->input, &run->output);
}

static const struct step {
    const char *name;
    gpucc_status (*make)(struct run *run);
} steps[] = {{"open", open_bundle}, {"create", create},   {"workspace", ask_workspace},
             {"prepare", prepare},  {"enqueue", enqueue}, {"run", run_whole}};

/* False: it failed twice, or without a word. */
static int make_step(const struct step *step, struct run *run)
{
    gpucc_status status = step->make(run);
    if (status == GPUCC_OK)
        return 1;
    fprintf(stderr, "%s: %s: %s\n", step->name, gpucc_status_name(status), gpucc_last_error());
    if (!*gpucc_last_error())
        return 0;
    status = step->make(run);
    if (status != GPUCC_OK)
        fprintf(stderr, "%s, again: %s: %s\n", step->name, gpucc_status_name(status), gpucc_last_error());
    return status == GPUCC_OK;
}

int main(int argc, char **argv)
{
    struct run run = {.path = argc == 2 ? argv[1] : ""};
    float expected[6] = {0};
    int good = 1;
    for (int i = 0; i < 8; i++)
        run.x[i] = (float)(i % 4 + 1);
    run.input = (gpucc_tensor){.size = sizeof(gpucc_tensor),
                               .data = run.x,
                               .bytes = sizeof run.x,
                               .dtype = GPUCC_F32,
                               .rank = 2,
                               .dims = {2, 4}};
    run.output = (gpucc_tensor){
        .size = sizeof(gpucc_tensor), .data = run.y, .bytes = sizeof run.y, .dtype = GPUCC_F32};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && good; i++) {
        good = make_step(&steps[i], &run);
        if (good && steps[i].make == enqueue) {
            memcpy(expected, run.y, sizeof expected);
            memset(run.y, 0, sizeof run.y);
        }
    }
    if (good && (memcmp(expected, run.y, sizeof expected) != 0 || run.y[0] != run.y[3])) {
        fprintf(stderr, "the results differ\n");
        good = 0;
    }
    gpucc_context_destroy(run.context);
    gpucc_close(run.model);
    return !good;
}

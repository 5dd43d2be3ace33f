/* run_bundle BUNDLE FOLDER NAME=FILE:DIMS...: one inference on the CPU, for hosts that have no gpucc of their
 * own. Each input is a file of bare elements with its dims (3x224x224; nothing for a scalar); output i
 * becomes FOLDER/output_i. Built for AArch64 and run by tests/models/aarch64.py under an emulator. */
#include <gpucc/runtime.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 16, MOST_DIMS = MOST_TENSORS * GPUCC_MAX_RANK, NAME_BYTES = 256 };

struct run {
    gpucc_model *model;
    gpucc_context *context;
    gpucc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    gpucc_dim dims[MOST_DIMS];
    char names[MOST_DIMS][NAME_BYTES];
    size_t dim_count;
};

static bool failed(const char *what, const char *why)
{
    fprintf(stderr, "run_bundle: %s: %s\n", what, why);
    return false;
}

static bool read_file(const char *path, gpucc_tensor *tensor)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return failed(path, "cannot be opened");
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    tensor->bytes = bytes < 0 ? 0 : (size_t)bytes;
    tensor->data = malloc(tensor->bytes + 1);
    const bool good = tensor->data && fread(tensor->data, 1, tensor->bytes, file) == tensor->bytes;
    fclose(file);
    return good || failed(path, "cannot be read");
}

/* "3x224x224" */
static bool read_dims(const char *text, gpucc_tensor *tensor)
{
    tensor->rank = 0;
    while (*text) {
        char *end;
        if (tensor->rank == GPUCC_MAX_RANK)
            return failed(text, "too many dims");
        tensor->dims[tensor->rank++] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != 'x'))
            return failed(text, "no dims");
        text = *end ? end + 1 : end;
    }
    return true;
}

static bool read_input(struct run *run, size_t index, int count, char **words)
{
    gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
    gpucc_tensor *tensor = &run->inputs[index];
    if (gpucc_input_info(run->model, index, &info) != GPUCC_OK)
        return failed("input", gpucc_last_error());
    const size_t length = strlen(info.name);
    for (int i = 0; i < count; i++) {
        char *colon = strrchr(words[i], ':');
        if (strncmp(words[i], info.name, length) != 0 || words[i][length] != '=' || !colon)
            continue;
        *colon = '\0';
        tensor->size = sizeof *tensor;
        tensor->dtype = info.dtype;
        if (!read_file(words[i] + length + 1, tensor) || !read_dims(colon + 1, tensor))
            return false;
        for (int32_t axis = 0; axis < info.rank && axis < tensor->rank; axis++) {
            if (info.dims[axis] >= 0)
                continue;
            char *name = run->names[run->dim_count];
            snprintf(name, NAME_BYTES, "%s[%d]", info.name, (int)axis);
            run->dims[run->dim_count++] = (gpucc_dim){name, tensor->dims[axis], tensor->dims[axis]};
        }
        return true;
    }
    return failed(info.name, "no file for this input");
}

/* Outputs of at most 8 bytes an element. */
static bool make_output(struct run *run, size_t index)
{
    gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
    gpucc_tensor *tensor = &run->outputs[index];
    enum { MOST_ELEMENT_BYTES = 8 };
    tensor->size = sizeof *tensor;
    if (gpucc_output_info(run->model, index, &info) != GPUCC_OK ||
        gpucc_output_dims(run->context, index, &tensor->rank, tensor->dims) != GPUCC_OK)
        return failed("output", gpucc_last_error());
    tensor->dtype = info.dtype;
    tensor->bytes = MOST_ELEMENT_BYTES;
    for (int32_t i = 0; i < tensor->rank; i++)
        tensor->bytes *= (size_t)tensor->dims[i];
    tensor->data = malloc(tensor->bytes + 1);
    return tensor->data || failed("output", "out of memory");
}

static size_t element_bytes(int32_t dtype)
{
    switch (dtype) {
    case GPUCC_F64:
    case GPUCC_I64:
    case GPUCC_U64:
        return 8;
    case GPUCC_F16:
    case GPUCC_BF16:
    case GPUCC_I16:
    case GPUCC_U16:
        return 2;
    case GPUCC_BOOL:
    case GPUCC_I8:
    case GPUCC_U8:
        return 1;
    default:
        return 4;
    }
}

static bool write_output(const struct run *run, size_t index, const char *folder)
{
    const gpucc_tensor *tensor = &run->outputs[index];
    char path[4096];
    size_t bytes = element_bytes(tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++)
        bytes *= (size_t)tensor->dims[i];
    snprintf(path, sizeof path, "%s/output_%zu", folder, index);
    FILE *file = fopen(path, "wb");
    const bool good = file && fwrite(tensor->data, 1, bytes, file) == bytes;
    return (file && fclose(file) == 0 && good) || failed(path, "cannot be written");
}

static bool run_model(struct run *run, const char *folder, int count, char **words)
{
    const size_t inputs = gpucc_input_count(run->model), outputs = gpucc_output_count(run->model);
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 2;
    if (inputs > MOST_TENSORS || outputs > MOST_TENSORS)
        return failed("the model", "too many inputs or outputs");
    for (size_t i = 0; i < inputs; i++)
        if (!read_input(run, i, count, words))
            return false;
    const gpucc_dims dims = {sizeof dims, run->dims, run->dim_count};
    if (gpucc_context_create(run->model, &options, &run->context) != GPUCC_OK ||
        gpucc_prepare(run->context, &dims, NULL) != GPUCC_OK)
        return failed("prepare", gpucc_last_error());
    for (size_t i = 0; i < outputs; i++)
        if (!make_output(run, i))
            return false;
    if (gpucc_run(run->context, run->inputs, run->outputs) != GPUCC_OK)
        return failed("run", gpucc_last_error());
    for (size_t i = 0; i < outputs; i++)
        if (!write_output(run, i, folder))
            return false;
    return true;
}

int main(int count, char **words)
{
    static struct run run;
    if (count < 3) {
        fprintf(stderr, "usage: run_bundle BUNDLE FOLDER NAME=FILE:DIMS...\n");
        return 2;
    }
    bool good = gpucc_open(words[1], NULL, &run.model) == GPUCC_OK || failed(words[1], gpucc_last_error());
    good = good && run_model(&run, words[2], count - 3, words + 3);
    gpucc_context_destroy(run.context);
    gpucc_close(run.model);
    for (size_t i = 0; i < MOST_TENSORS; i++) {
        free(run.inputs[i].data);
        free(run.outputs[i].data);
    }
    return good ? 0 : 1;
}

/* Names the type of files by their content: python, png, elf, ... A whole program around
 * include/gpucc/runtime.h.
 *
 *     file_type MODEL.so LABELS.json FILE...
 *
 * The model (magika) takes the first and the last 1024 bytes of a file, white space around them left out, as
 * 2048 integers, and gives a score for each of its labels. All files go through it as one batch. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpucc/runtime.h>

enum {
    HALF = 1024,
    FEATURES = 2 * HALF,
    BLOCK = 4096,
    PADDING = 256,
    MOST_LABELS = 1024,
    MOST_CONFIG = 1 << 20
};

struct labels {
    char *text;
    const char *names[MOST_LABELS];
    size_t count;
};

static int complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("file_type: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return 1;
}

/* The strings of the array "target_labels_space" in the model's configuration; they hold no escapes. */
static int read_labels(const char *path, struct labels *labels)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain("cannot open %s", path);
    labels->count = 0;
    labels->text = calloc(1, MOST_CONFIG + 1);
    if (labels->text && fread(labels->text, 1, MOST_CONFIG, file) > 0) {
        char *list = strstr(labels->text, "\"target_labels_space\"");
        char *next = list ? strchr(list, '[') : NULL;
        char *end = next ? strchr(next, ']') : NULL;
        while (end && labels->count < MOST_LABELS) {
            char *open = strchr(next, '"'), *close = open ? strchr(open + 1, '"') : NULL;
            if (!close || close > end)
                break;
            *close = '\0';
            labels->names[labels->count++] = open + 1;
            next = close + 1;
        }
    }
    fclose(file);
    return labels->count ? 0 : complain("%s holds no labels", path);
}

/* Fills one row of the model's input from a file. */
static int read_features(const char *path, int32_t *features)
{
    unsigned char first[BLOCK], last[BLOCK];
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain("cannot open %s", path);
    size_t begin = 0, first_count = fread(first, 1, BLOCK, file), last_count = 0;
    if (fseek(file, -BLOCK, SEEK_END) != 0)
        rewind(file); /* shorter than a block */
    last_count = fread(last, 1, BLOCK, file);
    int failed = ferror(file);
    fclose(file);
    if (failed)
        return complain("cannot read %s", path);

    while (begin < first_count && isspace(first[begin]))
        begin++;
    while (last_count && isspace(last[last_count - 1]))
        last_count--;
    size_t last_begin = last_count > HALF ? last_count - HALF : 0;
    for (size_t i = 0; i < FEATURES; i++)
        features[i] = PADDING;
    for (size_t i = 0; i < HALF && begin + i < first_count; i++)
        features[i] = first[begin + i];
    for (size_t i = last_begin; i < last_count; i++)
        features[FEATURES - last_count + i] = last[i];
    return 0;
}

/* The model must have one input of 2048 integers a row and one output with a score for each label. */
static int check_model(const gpucc_model *model, size_t label_count)
{
    gpucc_tensor_info input = GPUCC_INIT(gpucc_tensor_info), output = GPUCC_INIT(gpucc_tensor_info);
    if (gpucc_input_count(model) != 1 || gpucc_output_count(model) != 1 ||
        gpucc_input_info(model, 0, &input) || gpucc_output_info(model, 0, &output))
        return complain("expected a model with one input and one output");
    if (input.dtype != GPUCC_I32 || input.rank != 2 || input.dims[0] != -1 || input.dims[1] != FEATURES ||
        output.dtype != GPUCC_F32 || output.rank != 2 || output.dims[1] != (int64_t)label_count)
        return complain("this is another model than the labels are for");
    return 0;
}

static int classify(gpucc_context *context, const struct labels *labels, char **paths, size_t count)
{
    int result = 1;
    int32_t *features = calloc(count, FEATURES * sizeof *features);
    float *scores = calloc(count, labels->count * sizeof *scores);
    gpucc_tensor input = GPUCC_INIT(gpucc_tensor), output = GPUCC_INIT(gpucc_tensor);
    if (!features || !scores) {
        complain("out of memory");
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        if (read_features(paths[i], features + i * FEATURES) != 0)
            goto done;

    input.data = features;
    input.bytes = count * FEATURES * sizeof *features;
    input.dtype = GPUCC_I32;
    input.rank = 2;
    input.dims[0] = (int64_t)count;
    input.dims[1] = FEATURES;
    output.data = scores;
    output.bytes = count * labels->count * sizeof *scores;
    output.dtype = GPUCC_F32;
    output.rank = 2;
    /* On host memory, and prepares by itself; see gpucc_prepare and gpucc_enqueue for device memory and
     * streams. */
    if (gpucc_run(context, &input, &output)) {
        complain("%s", gpucc_last_error());
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        const float *row = scores + i * labels->count;
        size_t best = 0;
        for (size_t k = 1; k < labels->count; k++)
            if (row[k] > row[best])
                best = k;
        printf("%s: %s (%.4f)\n", paths[i], labels->names[best], row[best]);
    }
    result = 0;
done:
    free(features);
    free(scores);
    return result;
}

int main(int argc, char **argv)
{
    struct labels labels = {0};
    gpucc_model *model = NULL;
    gpucc_context *context = NULL;
    int result = 1;
    if (argc < 4)
        return complain("expected: file_type MODEL.so LABELS.json FILE...");
    if (read_labels(argv[2], &labels) == 0) {
        /* No options: the GPU where there is one and the bundle has code for it, else the CPU. */
        if (gpucc_open(argv[1], NULL, &model) || gpucc_context_create(model, NULL, &context))
            complain("%s", gpucc_last_error());
        else if (check_model(model, labels.count) == 0)
            result = classify(context, &labels, argv + 3, (size_t)argc - 3);
    }
    gpucc_context_destroy(context);
    gpucc_close(model);
    free(labels.text);
    return result;
}

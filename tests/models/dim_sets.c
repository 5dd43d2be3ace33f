/* One bundle at many dim sets, and what it calls meanwhile:
 *
 *     dim_sets BUNDLE < SETS
 *
 * SETS, one line each:   input DTYPE PATH DIM ...      raw elements of the next input, in the model's order
 *                        output PATH                   where the next output's raw elements go
 *                        run                           prepare for these dims, enqueue three times, write the
 * outputs
 *
 * malloc and its kin, dlopen and dlmopen are those of this program, which count and pass on. It fails when an
 * enqueue allocates, when a library is opened or mapped after the bundle was opened, or when two enqueues
 * differ. Outputs are filled with 0xa5 before each. Prints one line a set, with the outputs' dims. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/counted_calls.h"
#include "gpucc/runtime.h"

enum { MOST_TENSORS = 32, MOST_DIMS = MOST_TENSORS * GPUCC_MAX_RANK, LINE = 4096 };

static void fail(const char *what)
{
    fprintf(stderr, "dim_sets: %s: %s\n", what, gpucc_last_error());
    exit(1);
}

static void need(gpucc_status status, const char *what)
{
    if (status != GPUCC_OK)
        fail(what);
}

struct set {
    gpucc_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    char names[MOST_TENSORS][LINE];
    size_t input_count, output_count;
};

static void *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    *bytes = (size_t)ftell(file);
    void *data = aligned_alloc(64, (*bytes + 127) / 64 * 64);
    if (!data || fseek(file, 0, SEEK_SET) || fread(data, 1, *bytes, file) != *bytes)
        fail(path);
    fclose(file);
    return data;
}

static void write_whole(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file))
        fail(path);
}

/* DTYPE PATH DIM ... */
static void read_input(struct set *set, char *line)
{
    gpucc_tensor *tensor = &set->inputs[set->input_count++];
    char *rest = line;
    *tensor = (gpucc_tensor){.size = sizeof *tensor, .dtype = (int32_t)strtol(line, &rest, 10)};
    char *path = strtok(rest, " \n"), *word;
    if (!path)
        fail("an input without a path");
    while ((word = strtok(NULL, " \n")) && tensor->rank < GPUCC_MAX_RANK)
        tensor->dims[tensor->rank++] = atoll(word);
    tensor->data = read_whole(path, &tensor->bytes);
}

static void prepare(gpucc_model *model, gpucc_context *context, const struct set *set)
{
    static char names[MOST_DIMS][64];
    static gpucc_dim items[MOST_DIMS];
    gpucc_dims dims = GPUCC_INIT(gpucc_dims);
    dims.items = items;
    for (size_t i = 0; i < set->input_count; i++) {
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        need(gpucc_input_info(model, i, &info), "input");
        for (int32_t axis = 0; axis < info.rank; axis++) {
            if (info.dims[axis] >= 0)
                continue;
            snprintf(names[dims.count], sizeof names[0], "%.40s[%d]", info.name, axis);
            const int64_t size = set->inputs[i].dims[axis];
            items[dims.count] = (gpucc_dim){names[dims.count], size, size};
            dims.count++;
        }
    }
    const uint64_t before = calls_allocated();
    need(gpucc_prepare(context, &dims, NULL), "prepare");
    if (before == calls_allocated())
        fail("prepare allocates, but nothing was counted");
}

static size_t bits_of(int32_t dtype)
{
    static const unsigned char bits[] = {
        [GPUCC_F32] = 32, [GPUCC_U8] = 8,   [GPUCC_I8] = 8,   [GPUCC_U16] = 16, [GPUCC_I16] = 16,
        [GPUCC_I32] = 32, [GPUCC_I64] = 64, [GPUCC_BOOL] = 8, [GPUCC_F16] = 16, [GPUCC_F64] = 64};
    if ((size_t)dtype >= sizeof bits || !bits[dtype])
        fail("an output of a type that this program does not know");
    return bits[dtype];
}

static void make_outputs(gpucc_model *model, gpucc_context *context, struct set *set)
{
    for (size_t i = 0; i < set->output_count; i++) {
        gpucc_tensor *tensor = &set->outputs[i];
        gpucc_tensor_info info = GPUCC_INIT(gpucc_tensor_info);
        need(gpucc_output_info(model, i, &info), "output");
        *tensor = (gpucc_tensor){.size = sizeof *tensor, .dtype = info.dtype};
        need(gpucc_output_dims(context, i, &tensor->rank, tensor->dims), "output dims");
        tensor->bytes = bits_of(info.dtype) / 8;
        for (int32_t axis = 0; axis < tensor->rank; axis++)
            tensor->bytes *= (size_t)tensor->dims[axis];
        tensor->data = aligned_alloc(64, (tensor->bytes + 127) / 64 * 64);
        if (!tensor->data)
            fail("no memory");
    }
}

static void run_set(gpucc_model *model, gpucc_context *context, struct set *set, unsigned number)
{
    enum { ROUNDS = 3 };
    void *first[MOST_TENSORS];
    if (set->input_count != gpucc_input_count(model) || set->output_count != gpucc_output_count(model))
        fail("a set with other tensors than the model's");
    prepare(model, context, set);
    make_outputs(model, context, set);
    for (size_t i = 0; i < set->output_count; i++)
        if (!(first[i] = malloc(set->outputs[i].bytes + 1)))
            fail("no memory");
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < set->output_count; i++)
            memset(set->outputs[i].data, 0xa5, set->outputs[i].bytes);
        const uint64_t before = calls_allocated();
        const gpucc_status status = gpucc_enqueue(context, NULL, set->inputs, set->outputs);
        const uint64_t after = calls_allocated();
        need(status, "enqueue");
        if (before != after)
            fail("an enqueue allocated or freed memory");
        for (size_t i = 0; i < set->output_count; i++) {
            if (round && memcmp(first[i], set->outputs[i].data, set->outputs[i].bytes) != 0)
                fail("two enqueues gave different results");
            memcpy(first[i], set->outputs[i].data, set->outputs[i].bytes);
        }
    }
    printf("set %u:", number);
    for (size_t i = 0; i < set->output_count; i++) {
        printf(" output %zu", i);
        for (int32_t axis = 0; axis < set->outputs[i].rank; axis++)
            printf(" %" PRId64, set->outputs[i].dims[axis]);
        write_whole(set->names[i], set->outputs[i].data, set->outputs[i].bytes);
        free(set->outputs[i].data);
        free(first[i]);
    }
    printf("\n");
    for (size_t i = 0; i < set->input_count; i++)
        free(set->inputs[i].data);
    set->input_count = set->output_count = 0;
}

/* Libraries that are mapped: lines of the map that execute. */
static unsigned mapped_libraries(void)
{
    char line[LINE];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        fail("/proc/self/maps");
    while (fgets(line, sizeof line, maps)) {
        count += strstr(line, " r-xp ") != NULL;
        if (strstr(line, "nvrtc") || strstr(line, "LLVM"))
            fail("a compiler is in the process");
    }
    fclose(maps);
    return count;
}

int main(int count, char **arguments)
{
    static struct set set;
    char line[LINE];
    gpucc_model *model;
    gpucc_context *context;
    unsigned sets = 0;
    if (count != 2) {
        fprintf(stderr, "usage: dim_sets BUNDLE < SETS\n");
        return 2;
    }
    const uint64_t none = calls_opened();
    need(gpucc_open(arguments[1], NULL, &model), "open");
    if (none || calls_opened() != 1)
        fail("opening the bundle did not go through the counted dlopen once");
    const unsigned mapped = mapped_libraries();
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    need(gpucc_context_create(model, &options, &context), "create");
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "input ", 6) && set.input_count < MOST_TENSORS) {
            read_input(&set, line + 6);
        } else if (!strncmp(line, "output ", 7) && set.output_count < MOST_TENSORS) {
            line[strcspn(line, "\n")] = '\0';
            strcpy(set.names[set.output_count++], line + 7);
        } else if (!strncmp(line, "run", 3)) {
            run_set(model, context, &set, sets++);
        } else {
            fail("a line that is not understood");
        }
    }
    if (calls_opened() != 1 || mapped_libraries() != mapped)
        fail("a library was opened behind the bundle");
    printf("%u sets, %" PRIu64 " library opened, no allocation in enqueue\n", sets, (uint64_t)calls_opened());
    gpucc_context_destroy(context);
    gpucc_close(model);
    return 0;
}

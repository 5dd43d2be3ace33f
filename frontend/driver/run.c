/* The command run: one inference through the public runtime API, on files or on random data (floats: normal
 * with mean 0 and deviation 1; integers and bools: 0 or 1, so that they are valid indices and masks). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/driver/driver.h"
#include "frontend/driver/tensor_file.h"
#include "gpucc/runtime.h"
#include "ir/support/checked.h"
#include "runtime/info.h"

#define LARGEST_TENSOR (UINT64_C(1) << 40)

/* --dim NAME=N: names are symbols or INPUT[AXIS]. */
struct named_size {
    const char *name;
    int64_t size;
};

struct run {
    const struct options *options;
    const char *path; /* of the bundle */
    struct arena *arena;
    struct diagnostics *diagnostics;
    gpucc_model *model;
    gpucc_context *context;
    size_t input_count, output_count;
    gpucc_tensor_info *input_infos, *output_infos;
    gpucc_tensor *inputs, *outputs;
    VEC(struct named_size) sizes;
    VEC(struct named_size) grown; /* bounds of computed sizes that nobody stated */
    VEC(const char *) written;    /* output files */
    const char *made_folder;      /* NULL: it was there */
    bool complete;
    gpucc_context_options context_options;
    bool device_chosen;
    int64_t repeat;
    uint64_t random;
};

enum diag_code status_code(gpucc_status status)
{
    enum diag_code code = DIAG_run_failed;
    if (status == GPUCC_BAD_BUNDLE)
        code = DIAG_bad_bundle;
    else if (status == GPUCC_IO_ERROR)
        code = DIAG_file_unreadable;
    else if (status == GPUCC_NO_PLAN)
        code = DIAG_no_plan;
    else if (status == GPUCC_NO_DEVICE)
        code = DIAG_no_device;
    else if (status == GPUCC_OUT_OF_MEMORY)
        code = DIAG_out_of_memory;
    else if (status == GPUCC_INVALID_ARGUMENT || status == GPUCC_OUT_OF_RANGE)
        code = DIAG_wrong_input;
    return code;
}

static bool run_failed(struct run *run, gpucc_status status)
{
    diag_error(run->diagnostics, status_code(status), NULL, "%s", gpucc_last_error());
    return false;
}

/* splitmix64: the same numbers for the same seed on every machine. */
static uint64_t random_bits(struct run *run)
{
    uint64_t z = run->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double random_normal(struct run *run)
{
    const double tau = 6.283185307179586, scale = 1.0 / 9007199254740992.0;
    double radius = ((double)(random_bits(run) >> 11) + 1) * scale,
           angle = (double)(random_bits(run) >> 11) * scale;
    return sqrt(-2 * log(radius)) * cos(tau * angle);
}

static uint16_t half_of(float value, bool brain)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (brain)
        return (uint16_t)(bits >> 16);
    int exponent =
        (int)(bits >> 23 & 0xff) - 127 + 15; /* random data: truncation is fine, subnormals become 0 */
    return exponent <= 0
               ? 0
               : (uint16_t)((bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff));
}

static void fill_random(struct run *run, struct file_tensor *tensor, size_t count)
{
    unsigned bits = dtype_bits(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char *at = (unsigned char *)tensor->data + i * bits / 8;
        if (tensor->dtype == DTYPE_F32) {
            float value = (float)random_normal(run);
            memcpy(at, &value, sizeof value);
        } else if (tensor->dtype == DTYPE_F64) {
            double value = random_normal(run);
            memcpy(at, &value, sizeof value);
        } else if (tensor->dtype == DTYPE_F16 || tensor->dtype == DTYPE_BF16) {
            uint16_t value = half_of((float)random_normal(run), tensor->dtype == DTYPE_BF16);
            memcpy(at, &value, sizeof value);
        } else if (bits >= 8) {
            at[0] = (unsigned char)(random_bits(run) & 1); /* little endian; the other bytes are zero */
        }
    }
}

static bool parse_sizes(struct run *run)
{
    bool good = true;
    for (uint32_t i = 0; i < run->options->of[OPTION_DIM].values.count; i++) {
        const char *text = run->options->of[OPTION_DIM].values.items[i], *number;
        struct named_size named = {0};
        if (!split_pair(run->arena, text, true, &named.name, &number) ||
            !parse_integer(number, &named.size) || named.size < 0) {
            diag_error(run->diagnostics, DIAG_bad_option, NULL,
                       "--dim takes NAME=N here, with 0 <= N, not %s", diag_quote(run->diagnostics, text));
            good = false;
        }
        vec_push(run->arena, &run->sizes, named);
    }
    return good;
}

static bool is_name_of(struct run *run, const gpucc_tensor_info *info, int axis, const char *name)
{
    const char *place = arena_printf(run->arena, "%s[%d]", info->name, axis);
    return info->dims[axis] < 0 &&
           (strcmp(name, place) == 0 || (info->symbols[axis] && strcmp(name, info->symbols[axis]) == 0));
}

/* Every --dim must name a free dim. */
static bool check_size_names(struct run *run)
{
    bool good = true;
    for (uint32_t i = 0; i < run->sizes.count; i++) {
        bool found = false;
        for (size_t k = 0; k < run->input_count; k++)
            for (int axis = 0; axis < run->input_infos[k].rank; axis++)
                found |= is_name_of(run, &run->input_infos[k], axis, run->sizes.items[i].name);
        for (size_t k = 0; k < gpucc_computed_size_count(run->context) && !found; k++) {
            gpucc_computed_size info = {.size = sizeof info};
            found = gpucc_computed_size_info(run->context, k, &info) == GPUCC_OK && info.stated &&
                    strcmp(info.name, run->sizes.items[i].name) == 0;
        }
        if (found)
            continue;
        diag_error(run->diagnostics, DIAG_bad_option, NULL, "no input has a free dim %s",
                   diag_quote(run->diagnostics, run->sizes.items[i].name));
        good = false;
    }
    return good;
}

/* The size that --dim gives a free dim. */
static bool named_size(struct run *run, const gpucc_tensor_info *info, int axis, int64_t *size)
{
    for (uint32_t i = 0; i < run->sizes.count; i++)
        if (is_name_of(run, info, axis, run->sizes.items[i].name)) {
            *size = run->sizes.items[i].size;
            return true;
        }
    const char *place = arena_printf(run->arena, "%s[%d]", info->name, axis);
    diag_error(run->diagnostics, DIAG_wrong_input, NULL,
               "dim %d of input %s is free: give a file, or --dim %s=N", axis,
               diag_quote(run->diagnostics, info->name),
               diag_quote(run->diagnostics, info->symbols[axis] ? info->symbols[axis] : place));
    return false;
}

static bool random_input(struct run *run, const gpucc_tensor_info *info, struct file_tensor *out)
{
    *out = (struct file_tensor){.dtype = (enum dtype)info->dtype, .rank = info->rank};
    bool good = true;
    int64_t count = 1;
    uint64_t bytes;
    for (int i = 0; i < info->rank; i++) {
        out->sizes[i] = info->dims[i];
        if (info->dims[i] < 0)
            good &= named_size(run, info, i, &out->sizes[i]);
    }
    if (!good)
        return false;
    for (int i = 0; i < info->rank; i++)
        good = good && mul_i64(count, out->sizes[i], &count);
    if (!good || !dtype_bytes(out->dtype, count, &bytes) || bytes > LARGEST_TENSOR) {
        diag_error(run->diagnostics, DIAG_wrong_input, NULL, "input %s would be larger than a tensor may be",
                   diag_quote(run->diagnostics, info->name));
        return false;
    }
    out->bytes = (size_t)bytes;
    out->data = arena_alloc(run->arena, out->bytes + 8);
    fill_random(run, out, (size_t)count);
    return true;
}

static const char *input_file(struct run *run, const char *input)
{
    for (uint32_t i = 0; i < run->options->of[OPTION_INPUT].values.count; i++) {
        const char *text = run->options->of[OPTION_INPUT].values.items[i];
        size_t length = strlen(input);
        if (strncmp(text, input, length) == 0 && text[length] == '=')
            return text + length + 1;
    }
    return NULL;
}

/* Every --input must name an input of the model. */
static bool check_input_names(struct run *run)
{
    bool good = true;
    for (uint32_t i = 0; i < run->options->of[OPTION_INPUT].values.count; i++) {
        const char *text = run->options->of[OPTION_INPUT].values.items[i];
        bool found = false;
        for (size_t k = 0; k < run->input_count; k++) {
            size_t length = strlen(run->input_infos[k].name);
            found |= strncmp(text, run->input_infos[k].name, length) == 0 && text[length] == '=';
        }
        if (!found) {
            diag_error(run->diagnostics, DIAG_wrong_input, NULL, "--input %s names no input of the model",
                       diag_quote(run->diagnostics, text));
            good = false;
        }
    }
    return good;
}

static bool make_inputs(struct run *run)
{
    bool good = check_input_names(run);
    good &= check_size_names(run); /* both, so that all problems are told */
    for (size_t i = 0; i < run->input_count; i++) {
        struct file_tensor tensor;
        const char *path = input_file(run, run->input_infos[i].name);
        bool made = path ? tensor_file_read(path, run->arena, run->diagnostics, &tensor)
                         : random_input(run, &run->input_infos[i], &tensor);
        good &= made;
        if (!made)
            continue;
        run->inputs[i] = (gpucc_tensor){.size = sizeof(gpucc_tensor),
                                        .data = tensor.data,
                                        .bytes = tensor.bytes,
                                        .dtype = (int32_t)tensor.dtype,
                                        .rank = tensor.rank};
        memcpy(run->inputs[i].dims, tensor.sizes, sizeof tensor.sizes);
    }
    return good;
}

/* The most that a computed size may be: what --dim says, or what was enough for the last attempt. */
static int64_t bound_of(struct run *run, const char *name)
{
    enum { FIRST_BOUND = 1024 };
    for (uint32_t i = 0; i < run->sizes.count; i++)
        if (strcmp(run->sizes.items[i].name, name) == 0)
            return run->sizes.items[i].size;
    for (uint32_t i = 0; i < run->grown.count; i++)
        if (strcmp(run->grown.items[i].name, name) == 0)
            return run->grown.items[i].size;
    const struct named_size first = {name, FIRST_BOUND};
    vec_push(run->arena, &run->grown, first);
    return first.size;
}

/* After a run whose computed sizes passed their bounds: those that nobody stated grow. False: none did. */
static bool grow_bounds(struct run *run)
{
    bool grew = false;
    for (size_t i = 0; i < gpucc_computed_size_count(run->context); i++) {
        gpucc_computed_size info = {.size = sizeof info};
        if (gpucc_computed_size_info(run->context, i, &info) != GPUCC_OK || !info.stated)
            continue;
        for (uint32_t k = 0; k < run->grown.count; k++)
            if (strcmp(run->grown.items[k].name, info.name) == 0 && info.value > run->grown.items[k].size) {
                run->grown.items[k].size = info.value;
                grew = true;
            }
    }
    return grew;
}

struct named_dims {
    VEC(gpucc_dim) items;
};

/* An element of an integer input, which is a size. False: it is not there. */
static bool element_of(const gpucc_tensor *tensor, uint32_t element, int64_t *value)
{
    const size_t bytes = tensor->dtype == GPUCC_I64 ? sizeof(int64_t) : sizeof(int32_t);
    int32_t narrow;
    if ((tensor->dtype != GPUCC_I64 && tensor->dtype != GPUCC_I32) || tensor->bytes / bytes <= element)
        return false;
    const char *data = (const char *)tensor->data + element * bytes;
    if (tensor->dtype == GPUCC_I64) {
        memcpy(value, data, sizeof *value);
    } else {
        memcpy(&narrow, data, sizeof narrow);
        *value = narrow;
    }
    return true;
}

/* Values of inputs that decide sizes: INPUT[ELEMENT]. */
static bool name_values(struct run *run, struct named_dims *dims)
{
    struct bundle_file file = {0};
    struct runtime_error error;
    const gpucc_status status = bundle_file_open(run->path, &file, &error);
    if (status != GPUCC_OK) {
        diag_error(run->diagnostics, status_code(status), NULL, "%s", error.text);
        return false;
    }
    for (uint32_t i = 0; i < file.tables.symbol_count; i++) {
        const struct bundle_symbol *symbol = &file.tables.symbols[i];
        int64_t value;
        if (symbol->source != BUNDLE_INPUT_VALUE || symbol->input >= run->input_count ||
            !element_of(&run->inputs[symbol->input], symbol->axis, &value))
            continue;
        gpucc_dim item = {
            .name = arena_printf(run->arena, "%s[%u]", run->input_infos[symbol->input].name, symbol->axis),
            .low = value,
            .high = value};
        vec_push(run->arena, &dims->items, item);
    }
    bundle_file_close(&file);
    return true;
}

/* Names every free dim by its place and prepares, so that the outputs' sizes are known. */
static bool prepare(struct run *run)
{
    struct named_dims dims = {0};
    if (!name_values(run, &dims))
        return false;
    for (size_t i = 0; i < run->input_count; i++)
        for (int axis = 0; axis < run->input_infos[i].rank && axis < run->inputs[i].rank; axis++)
            if (run->input_infos[i].dims[axis] < 0) {
                gpucc_dim item = {.name = arena_printf(run->arena, "%s[%d]", run->input_infos[i].name, axis),
                                  .low = run->inputs[i].dims[axis],
                                  .high = run->inputs[i].dims[axis]};
                vec_push(run->arena, &dims.items, item);
            }
    for (size_t i = 0; i < gpucc_computed_size_count(run->context); i++) {
        gpucc_computed_size info = {.size = sizeof info};
        if (gpucc_computed_size_info(run->context, i, &info) != GPUCC_OK || !info.stated)
            continue;
        const int64_t bound = bound_of(run, info.name);
        vec_push(run->arena, &dims.items, ((gpucc_dim){.name = info.name, .low = bound, .high = bound}));
    }
    gpucc_dims named = {.size = sizeof named, .items = dims.items.items, .count = dims.items.count};
    gpucc_status status = gpucc_prepare(run->context, &named, NULL);
    return status == GPUCC_OK || run_failed(run, status);
}

static bool make_outputs(struct run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        gpucc_tensor *tensor = &run->outputs[i];
        *tensor = (gpucc_tensor){.size = sizeof *tensor, .dtype = run->output_infos[i].dtype};
        gpucc_status status = gpucc_output_dims(run->context, i, &tensor->rank, tensor->dims);
        if (status != GPUCC_OK)
            return run_failed(run, status);
        int64_t count = 1;
        uint64_t bytes = 0;
        bool fits = true;
        for (int axis = 0; axis < tensor->rank; axis++)
            fits = fits && mul_i64(count, tensor->dims[axis], &count);
        if (!fits || !dtype_bytes((enum dtype)tensor->dtype, count, &bytes) || bytes > LARGEST_TENSOR) {
            diag_error(run->diagnostics, DIAG_wrong_input, NULL,
                       "output %s would be larger than a tensor may be",
                       diag_quote(run->diagnostics, run->output_infos[i].name));
            return false;
        }
        tensor->bytes = (size_t)bytes;
        tensor->data = arena_alloc(run->arena, tensor->bytes);
        memset(tensor->data, 0xff, tensor->bytes);
    }
    return true;
}

static void print_output(struct run *run, size_t index)
{
    const gpucc_tensor *tensor = &run->outputs[index];
    struct text line;
    text_init(&line, run->arena);
    text_quote(&line, run->output_infos[index].name, 200);
    text_printf(&line, ": %s[", dtype_name((enum dtype)tensor->dtype));
    for (int axis = 0; axis < tensor->rank; axis++)
        text_printf(&line, "%s%" PRId64, axis ? ", " : "", tensor->dims[axis]);
    text_put(&line, "]");
    printf("%s\n", line.data);
}

static bool write_output(struct run *run, size_t index, const char *path)
{
    const gpucc_tensor *from = &run->outputs[index];
    struct file_tensor tensor = {.dtype = (enum dtype)from->dtype, .rank = from->rank, .data = from->data};
    memcpy(tensor.sizes, from->dims, sizeof tensor.sizes);
    int64_t count = 1;
    uint64_t bytes = 0;
    for (int axis = 0; axis < from->rank; axis++) /* no more than the buffer has */
        count *= from->dims[axis];
    dtype_bytes(tensor.dtype, count, &bytes);
    tensor.bytes = (size_t)bytes;
    return tensor_file_write(path, run->output_infos[index].name, &tensor, run->arena, run->diagnostics);
}

/* All outputs, or none: end_run takes back what is there when not all are. */
static bool write_outputs(struct run *run)
{
    const char *folder = option_value(run->options, OPTION_OUTPUT_DIR, NULL);
    const char *format = option_value(run->options, OPTION_OUTPUT_FORMAT, "npy");
    run->made_folder = folder && mkdir(folder, 0777) == 0 ? folder : NULL;
    if (folder && !run->made_folder && errno != EEXIST) {
        diag_error(run->diagnostics, DIAG_output_unwritable, NULL, "%s: %s",
                   diag_quote(run->diagnostics, folder), strerror(errno));
        return false;
    }
    for (size_t i = 0; folder && i < run->output_count; i++) {
        const char *path = arena_printf(run->arena, "%s/output_%zu.%s", folder, i, format);
        vec_push(run->arena, &run->written, path);
        if (!write_output(run, i, path)) {
            run->written.count--; /* what stood there before still does */
            return false;
        }
    }
    for (size_t i = 0; i < run->output_count; i++)
        print_output(run, i);
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool run_model(struct run *run)
{
    const int64_t repeat = run->repeat;
    double *seconds = arena_new_array(run->arena, double, (size_t)repeat);
    for (int64_t i = 0; i < repeat; i++) {
        double start = seconds_now();
        gpucc_status status = gpucc_run(run->context, run->inputs, run->outputs);
        seconds[i] = seconds_now() - start;
        if (status == GPUCC_OUT_OF_RANGE && grow_bounds(run)) {
            if (!prepare(run) || !make_outputs(run))
                return false;
            i--; /* the same again, with room */
            continue;
        }
        if (status != GPUCC_OK)
            return run_failed(run, status);
    }
    if (run->options->of[OPTION_REPEAT].given) {
        qsort(seconds, (size_t)repeat, sizeof *seconds, compare_doubles);
        printf("median of %" PRId64 " runs: %.3f ms\n", repeat, 1e3 * seconds[repeat / 2]);
    }
    return true;
}

static void say_what_ran(struct run *run)
{
    gpucc_statistics facts = {.size = sizeof facts};
    if (!run->options->of[OPTION_VERBOSE].given || gpucc_context_statistics(run->context, &facts) != GPUCC_OK)
        return;
    int32_t device = gpucc_context_device(run->context);
    fprintf(stderr,
            "device %s: weights %" PRIu64 ", arena %" PRIu64 ", code %" PRIu64 " bytes; %" PRIu64
            " launches\n",
            device == GPUCC_CPU ? "cpu" : arena_printf(run->arena, "cuda:%d", device), facts.weight_bytes,
            facts.arena_bytes, facts.code_bytes, facts.launches);
}

static bool describe_model(struct run *run)
{
    run->input_count = gpucc_input_count(run->model);
    run->output_count = gpucc_output_count(run->model);
    run->input_infos = arena_new_array(run->arena, gpucc_tensor_info, run->input_count);
    run->output_infos = arena_new_array(run->arena, gpucc_tensor_info, run->output_count);
    run->inputs = arena_new_array(run->arena, gpucc_tensor, run->input_count);
    run->outputs = arena_new_array(run->arena, gpucc_tensor, run->output_count);
    gpucc_status status = GPUCC_OK;
    for (size_t i = 0; i < run->input_count && status == GPUCC_OK; i++) {
        run->input_infos[i].size = sizeof(gpucc_tensor_info);
        status = gpucc_input_info(run->model, i, &run->input_infos[i]);
    }
    for (size_t i = 0; i < run->output_count && status == GPUCC_OK; i++) {
        run->output_infos[i].size = sizeof(gpucc_tensor_info);
        status = gpucc_output_info(run->model, i, &run->output_infos[i]);
    }
    return status == GPUCC_OK || run_failed(run, status);
}

/* cpu, cpu:LEVEL or cuda:N. False: reported. */
static bool choose_device(struct run *run)
{
    const char *text = option_value(run->options, OPTION_DEVICE, NULL);
    int64_t number, threads = 0;
    bool good = option_integer(run->options, OPTION_THREADS, 0, 1024, 0, &threads, run->diagnostics);
    run->device_chosen = text != NULL;
    run->context_options =
        (gpucc_context_options){.size = sizeof run->context_options, .threads = (int32_t)threads};
    if (!text)
        return good;
    if (strcmp(text, "cpu") == 0) {
        run->context_options.device = GPUCC_CPU;
        return good;
    }
    if (strncmp(text, "cpu:", 4) == 0 && parse_integer(text + 4, &number) && number > 0 && number < 1024) {
        run->context_options.device = GPUCC_CPU;
        run->context_options.cpu_level = (int32_t)number;
        return good;
    }
    if (strncmp(text, "cuda:", 5) == 0 && parse_integer(text + 5, &number) && number >= 0 && number < 1024) {
        run->context_options.device = (int32_t)number;
        return good;
    }
    diag_error(run->diagnostics, DIAG_bad_option, NULL, "--device takes cpu, cpu:LEVEL or cuda:N, not %s",
               diag_quote(run->diagnostics, text));
    return false;
}

/* Without --device: the GPU where there is one that the bundle has code for, else the CPU. */
static bool create_context(struct run *run)
{
    gpucc_status status = gpucc_context_create(run->model, &run->context_options, &run->context);
    if (status == GPUCC_OK)
        return true;
    if (run->device_chosen || (status != GPUCC_NO_DEVICE && status != GPUCC_NO_PLAN))
        return run_failed(run, status);
    const char *reason = arena_string(run->arena, gpucc_last_error());
    run->context_options.device = GPUCC_CPU;
    gpucc_status second = gpucc_context_create(run->model, &run->context_options, &run->context);
    if (second == GPUCC_OK)
        return true;
    if (status == GPUCC_NO_PLAN || second != GPUCC_NO_PLAN)
        return run_failed(run, second);
    diag_error(run->diagnostics, DIAG_no_device, NULL, "%s",
               reason); /* all that is in the bundle is for GPUs */
    return false;
}

static bool run_settings(struct run *run)
{
    const char *format = option_value(run->options, OPTION_OUTPUT_FORMAT, "npy");
    int64_t seed = 0;
    bool good = parse_sizes(run);
    good &= option_integer(run->options, OPTION_SEED, 0, INT64_MAX, 0, &seed, run->diagnostics);
    good &= option_integer(run->options, OPTION_REPEAT, 1, 1000000, 1, &run->repeat, run->diagnostics);
    good &= choose_device(run);
    if (strcmp(format, "npy") != 0 && strcmp(format, "pb") != 0) {
        diag_error(run->diagnostics, DIAG_bad_option, NULL, "--output-format takes npy or pb, not %s",
                   diag_quote(run->diagnostics, format));
        good = false;
    }
    run->random = (uint64_t)seed;
    return good;
}

static void run_bundle(void *user)
{
    struct run *run = user;
    if (describe_model(run) && create_context(run) && make_inputs(run) && prepare(run) && make_outputs(run) &&
        run_model(run) && write_outputs(run)) {
        say_what_ran(run);
        run->complete = true;
    }
}

static void end_run(void *user)
{
    struct run *run = user;
    for (uint32_t i = 0; i < run->written.count && !run->complete; i++)
        unlink(run->written.items[i]);
    if (run->made_folder && !run->complete)
        rmdir(run->made_folder);
    gpucc_context_destroy(run->context);
    gpucc_close(run->model);
}

void command_run(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    const char *path = command_file(options, "the bundle", diagnostics);
    struct run run = {.options = options, .path = path, .arena = arena, .diagnostics = diagnostics};
    if (!path || !run_settings(&run))
        return;
    gpucc_open_options open = {.size = sizeof open, .weights = option_value(options, OPTION_WEIGHTS, NULL)};
    gpucc_status status = gpucc_open(path, &open, &run.model);
    if (status == GPUCC_OK)
        guarded(arena, run_bundle, end_run, &run);
    else
        run_failed(&run, status);
}

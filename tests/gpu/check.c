/* Runs where there is a GPU and nothing else is needed.
 *
 *     check pack FILE HASHES                    runs the cases of a pack; appends the hashes of kernels of
 * right cases check npy RESULT EXPECTED TOLERANCE       compares two .npy files: max |difference| / max
 * |reference|
 *
 *     check time FILE                           times the cases of a speed pack: us of a case, then its name
 *
 * Exit status 0: all right; 1: not. Results are printed one a line. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/expr_eval.h"
#include "runtime/cuda_tensor_map.h"
#include "tests/gpu/pack.h"

enum { MOST = 96, POISON = 0xA5 };

struct pack_buffer {
    uint64_t role, dtype, bytes;
    double tolerance;
    const unsigned char *content;
    cuda_pointer memory;
};

static struct cuda_functions *cuda;
static const unsigned char *at, *end;

static void stop(const char *what)
{
    fprintf(stderr, "check: %s\n", what);
    exit(1);
}

static bool good(cuda_result result, const char *what)
{
    const char *text = "?";
    if (result == 0)
        return true;
    cuda->error_name(result, &text);
    printf("      %s: %s\n", what, text);
    return false;
}

static const unsigned char *take(uint64_t bytes)
{
    const unsigned char *from = at;
    if (bytes > (uint64_t)(end - at))
        stop("the pack ends early");
    at += bytes;
    return from;
}

static uint64_t take_number(void)
{
    uint64_t value;
    memcpy(&value, take(sizeof value), sizeof value);
    return value;
}

static void take_text(char *out, size_t size)
{
    uint64_t length = take_number();
    if (length >= size)
        stop("a text that is too long");
    memcpy(out, take(length), length);
    out[length] = '\0';
}

static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        stop(path);
    long length = ftell(file);
    rewind(file);
    unsigned char *data = malloc(length > 0 ? (size_t)length : 1);
    if (!data || length < 0 || fread(data, 1, (size_t)length, file) != (size_t)length)
        stop(path);
    fclose(file);
    *bytes = (size_t)length;
    return data;
}

static double element(const unsigned char *data, enum dtype dtype, uint64_t index)
{
    unsigned width = dtype_bits(dtype) / 8;
    uint64_t bits = 0, converted = 0;
    double value;
    memcpy(&bits, data + index * width, width);
    expr_eval_convert(DTYPE_F64, dtype, expr_eval_extend(dtype, bits), &converted);
    memcpy(&value, &converted, sizeof value);
    return value;
}

/* max |difference| / max |reference|; infinity where one is not finite and the other is something else. */
static double difference(const unsigned char *got, const unsigned char *want, enum dtype dtype,
                         uint64_t bytes)
{
    double largest = 0, error = 0;
    for (uint64_t i = 0; i < bytes / (dtype_bits(dtype) / 8); i++) {
        double a = element(got, dtype, i), b = element(want, dtype, i);
        if (a == b || (isnan(a) && isnan(b)))
            largest = isfinite(b) && fabs(b) > largest ? fabs(b) : largest;
        else if (!isfinite(a) || !isfinite(b))
            return INFINITY;
        else {
            largest = fabs(b) > largest ? fabs(b) : largest;
            error = fabs(a - b) > error ? fabs(a - b) : error;
        }
    }
    return largest > 0 ? error / largest : error;
}

/* One launch of a case, with what its arguments point to. */
struct pack_launch {
    struct cuda_kernel_node node;
    char hash[65];
    void *arguments[MOST];
    int64_t wide[MOST];
    int32_t narrow[MOST];
    struct cuda_tensor_map maps[BUNDLE_MAX_TENSOR_MAPS];
};

/* The launch's tensor maps, arguments behind the others. `parameters`: which buffers its first arguments are.
 */
static bool take_maps(const struct pack_buffer *buffers, const uint64_t *parameters,
                      struct pack_launch *launch, uint64_t arguments)
{
    bool right = true;
    const uint64_t count = take_number();
    if (count > BUNDLE_MAX_TENSOR_MAPS || arguments + count > MOST)
        stop("too many tensor maps");
    for (uint64_t i = 0; i < count; i++) {
        struct bundle_tensor_map row = {0};
        struct cuda_map_key key = {.address = buffers[parameters[take_number()]].memory};
        row.dtype = (uint32_t)take_number();
        row.swizzle = (uint32_t)take_number();
        row.rank = (uint32_t)take_number();
        for (uint32_t k = 0; k < row.rank && k < BUNDLE_MAX_MAP_RANK; k++) {
            key.sizes[k] = take_number();
            key.strides[k] = take_number();
            row.box[k] = (uint32_t)take_number();
        }
        right = good(cuda_map_encode(cuda, &row, &key, &launch->maps[i]), "tensor map") && right;
        launch->arguments[arguments + i] = &launch->maps[i];
    }
    return right;
}

static bool take_launch(cuda_module module, struct pack_buffer *buffers, struct pack_launch *launch)
{
    char name[64];
    struct cuda_kernel_node *node = &launch->node;
    take_text(name, sizeof name);
    take_text(launch->hash, sizeof launch->hash);
    for (int i = 0; i < 3; i++)
        node->grid[i] = (unsigned)take_number();
    for (int i = 0; i < 3; i++)
        node->block[i] = (unsigned)take_number();
    node->shared_bytes = (unsigned)take_number();
    uint64_t count = take_number(), parameters[MOST];
    for (uint64_t i = 0; i < count; i++) {
        parameters[i] = take_number();
        launch->arguments[i] = &buffers[parameters[i]].memory;
    }
    uint64_t bits = take_number(), dims = take_number();
    for (uint64_t i = 0; i < dims; i++) {
        launch->wide[i] = (int64_t)take_number();
        launch->narrow[i] = (int32_t)launch->wide[i];
        launch->arguments[count + i] = bits == 32 ? (void *)&launch->narrow[i] : (void *)&launch->wide[i];
    }
    node->arguments = launch->arguments;
    node->extra = NULL;
    return take_maps(buffers, parameters, launch, count + dims) &&
           good(cuda->module_function(&node->function, module, name), "kernel") &&
           (!node->shared_bytes ||
            good(cuda->function_set(node->function, CUDA_FUNCTION_DYNAMIC_SHARED, (int)node->shared_bytes),
                 "shared memory"));
}

static bool has_blocks(const struct cuda_kernel_node *node)
{
    return node->grid[0] && node->grid[1] && node->grid[2];
}

static bool launch(cuda_module module, struct pack_buffer *buffers, char hash[65])
{
    struct pack_launch one;
    const struct cuda_kernel_node *node = &one.node;
    bool right = take_launch(module, buffers, &one);
    memcpy(hash, one.hash, sizeof one.hash);
    if (!right || !has_blocks(node))
        return right;
    return good(cuda->launch(node->function, node->grid[0], node->grid[1], node->grid[2], node->block[0],
                             node->block[1], node->block[2], node->shared_bytes, NULL, node->arguments, NULL),
                "launch");
}

static bool run_launches(cuda_module module, struct pack_buffer *buffers, char hashes[MOST][65],
                         uint64_t *count)
{
    bool right = true;
    *count = take_number();
    for (uint64_t i = 0; i < *count; i++)
        right = launch(module, buffers, hashes[i]) && right;
    return right && good(cuda->context_synchronise(), "run");
}

static bool compare_outputs(const struct pack_buffer *buffers, uint64_t count)
{
    bool right = true;
    for (uint64_t i = 0; i < count; i++) {
        const struct pack_buffer *b = &buffers[i];
        if (b->role != PACK_OUTPUT || b->bytes == 0)
            continue;
        unsigned char *result = malloc(b->bytes);
        if (!result || !good(cuda->copy_out(result, b->memory, b->bytes, NULL), "copy") ||
            !good(cuda->context_synchronise(), "copy"))
            return false;
        double error = difference(result, b->content, (enum dtype)b->dtype, b->bytes);
        if (!(error <= b->tolerance)) {
            printf("      buffer %u: error %.3g, allowed %.3g\n", (unsigned)i, error, b->tolerance);
            right = false;
        }
        free(result);
    }
    return right;
}

/* Poison in what is computed; a fence of poison behind every buffer, which must survive. */
static bool make_buffer(struct pack_buffer *b)
{
    enum { FENCE = 1024 };
    unsigned char *image = malloc(b->bytes + FENCE);
    if (!image || !good(cuda->allocate(&b->memory, b->bytes + FENCE), "allocate"))
        return false;
    memset(image, POISON, b->bytes + FENCE);
    if (b->role == PACK_INPUT || b->role == PACK_SCRATCH)
        memcpy(image, b->content, b->bytes);
    bool done = good(cuda->copy_in_now(b->memory, image, b->bytes + FENCE), "copy");
    free(image);
    return done;
}

static bool fence_holds(const struct pack_buffer *b)
{
    enum { FENCE = 1024 };
    unsigned char fence[FENCE];
    if (!good(cuda->copy_out(fence, b->memory + b->bytes, FENCE, NULL), "copy") ||
        !good(cuda->context_synchronise(), "copy"))
        return false;
    for (unsigned i = 0; i < FENCE; i++)
        if (fence[i] != POISON) {
            printf("      byte %u behind a buffer was written\n", i);
            return false;
        }
    return true;
}

static bool run_case(FILE *hashes_out)
{
    char name[256], hashes[MOST][65];
    struct pack_buffer buffers[MOST] = {{0}};
    uint64_t launches = 0;
    cuda_module module = NULL;
    take_text(name, sizeof name);
    uint64_t image_bytes = take_number();
    const unsigned char *image = take(image_bytes);
    uint64_t count = take_number();
    bool right = count <= MOST;
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        struct pack_buffer *b = &buffers[i];
        b->role = take_number();
        b->dtype = take_number();
        memcpy(&b->tolerance, take(sizeof b->tolerance), sizeof b->tolerance);
        b->bytes = take_number();
        b->content = take(b->bytes);
        right = make_buffer(b) && right;
    }
    right = good(cuda->module_load(&module, image, 0, NULL, NULL), "load") && right;
    right = run_launches(module, buffers, hashes, &launches) && right;
    right = right && compare_outputs(buffers, count);
    for (uint64_t i = 0; i < count; i++) {
        right = right && fence_holds(&buffers[i]);
        cuda->release(buffers[i].memory);
    }
    if (module)
        cuda->module_unload(module);
    printf("%s  %s\n", right ? "ok  " : "FAIL", name);
    for (uint64_t i = 0; right && i < launches; i++)
        fprintf(hashes_out, "%s\n", hashes[i]);
    return right;
}

/* ---- timing
 * ---------------------------------------------------------------------------------------------------------
 */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Random numbers in [-1, 1): zeros would run at other clocks. */
static bool make_random_buffer(struct pack_buffer *b)
{
    static const size_t slack = 1024;
    float *image = malloc(b->bytes + slack);
    uint64_t state = b->bytes + 1;
    if (!image || !good(cuda->allocate(&b->memory, b->bytes + slack), "allocate"))
        return false;
    for (uint64_t i = 0; i < b->bytes / sizeof *image; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        image[i] = (float)(state >> 40) / 8388608.0f - 1;
    }
    bool done = good(cuda->copy_in_now(b->memory, image, b->bytes), "copy");
    free(image);
    return done;
}

/* Seconds of one run: the case's launches, chained many times over in a graph. */
static bool time_launches(struct pack_launch *launches, uint64_t count, double *seconds)
{
    enum { TURNS = 7, MOST_COPIES = 200 };
    cuda_graph_handle graph;
    cuda_executable executable;
    cuda_node last = NULL, node;
    double times[TURNS];
    uint64_t copies = 10;
    for (int pass = 0; pass < 2; pass++) {
        bool done = good(cuda->graph_create(&graph, 0), "graph");
        last = NULL;
        for (uint64_t i = 0; done && i < copies; i++)
            for (uint64_t k = 0; done && k < count; k++) {
                done = good(cuda->graph_add_kernel(&node, graph, &last, last ? 1 : 0, &launches[k].node),
                            "node");
                last = node;
            }
        if (!done || !good(cuda->graph_instantiate(&executable, graph, 0), "instantiate"))
            return false;
        for (int turn = -2; turn < TURNS; turn++) {
            const double start = now();
            if (!good(cuda->graph_launch(executable, NULL), "launch") ||
                !good(cuda->context_synchronise(), "run"))
                return false;
            if (turn >= 0)
                times[turn] = (now() - start) / (double)copies;
        }
        cuda->executable_destroy(executable);
        cuda->graph_destroy(graph);
        for (int i = 1; i < TURNS; i++)
            for (int k = i; k > 0 && times[k] < times[k - 1]; k--) {
                const double swapped = times[k];
                times[k] = times[k - 1];
                times[k - 1] = swapped;
            }
        *seconds = times[TURNS / 2];
        /* Long enough that one launch and one wait say nothing. */
        copies =
            *seconds > 0 && 0.004 / *seconds < MOST_COPIES ? (uint64_t)(0.004 / *seconds) + 4 : MOST_COPIES;
    }
    return true;
}

static bool time_case(void)
{
    char name[256];
    static struct pack_buffer buffers[MOST];
    static struct pack_launch launches[4];
    cuda_module module = NULL;
    double seconds = 0;
    take_text(name, sizeof name);
    uint64_t image_bytes = take_number();
    const unsigned char *image = take(image_bytes);
    uint64_t count = take_number();
    bool done = count <= MOST;
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        struct pack_buffer *b = &buffers[i];
        b->role = take_number();
        b->dtype = take_number();
        memcpy(&b->tolerance, take(sizeof b->tolerance), sizeof b->tolerance);
        b->bytes = take_number();
        done = make_random_buffer(b) && done;
    }
    done = good(cuda->module_load(&module, image, 0, NULL, NULL), "load") && done;
    uint64_t launch_count = take_number();
    for (uint64_t i = 0; i < launch_count && i < 4; i++)
        done = take_launch(module, buffers, &launches[i]) && done;
    done = done && launch_count <= 4 && time_launches(launches, launch_count, &seconds);
    for (uint64_t i = 0; i < count && i < MOST; i++)
        cuda->release(buffers[i].memory);
    if (module)
        cuda->module_unload(module);
    if (done)
        printf("%10.2f us  %s\n", 1e6 * seconds, name);
    else
        printf("FAIL           %s\n", name);
    fflush(stdout);
    return done;
}

static void open_pack(const char *path)
{
    size_t bytes;
    struct runtime_error error = {0};
    cuda_device_number device;
    cuda_context context;
    if (cuda_driver_open(&cuda, &error) != GPUCC_OK)
        stop("no CUDA driver");
    if (!good(cuda->device_get(&device, 0), "device") ||
        !good(cuda->primary_retain(&context, device), "context") ||
        !good(cuda->context_push(context), "context"))
        stop("no CUDA device");
    at = read_file(path, &bytes);
    end = at + bytes;
    if (memcmp(take(sizeof PACK_MAGIC - 1), PACK_MAGIC, sizeof PACK_MAGIC - 1) != 0)
        stop("not a pack");
}

static int time_pack(const char *path)
{
    unsigned failed = 0;
    open_pack(path);
    while (take_number() == 1)
        failed += !time_case();
    return failed ? 1 : 0;
}

static int run_pack(const char *path, const char *hashes_path)
{
    unsigned failed = 0, count = 0;
    open_pack(path);
    FILE *hashes = fopen(hashes_path, "a");
    if (!hashes)
        stop(hashes_path);
    for (; take_number() == 1; count++)
        failed += !run_case(hashes);
    fclose(hashes);
    printf("%u of %u cases right\n", count - failed, count);
    return failed ? 1 : 0;
}

/* The elements of a .npy file of version 1: "<f4", "<i8", "<i4", "<f8", "|u1", "|b1". */
static const unsigned char *npy_elements(const unsigned char *file, size_t bytes, enum dtype *dtype,
                                         size_t *length)
{
    static const struct {
        const char *text;
        enum dtype dtype;
    } rows[] = {{"<f4", DTYPE_F32}, {"<f8", DTYPE_F64}, {"<f2", DTYPE_F16}, {"<i8", DTYPE_I64},
                {"<i4", DTYPE_I32}, {"|u1", DTYPE_U8},  {"|i1", DTYPE_I8},  {"|b1", DTYPE_BOOL}};
    if (bytes < 10 || memcmp(file, "\x93NUMPY\x01", 7) != 0)
        stop("not a .npy file of version 1");
    size_t header = 10u + file[8] + 256u * file[9];
    if (header > bytes)
        stop("a .npy file that ends early");
    char text[512] = "";
    memcpy(text, file + 10, header - 10 < sizeof text - 1 ? header - 10 : sizeof text - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(text, rows[i].text)) {
            *dtype = rows[i].dtype;
            *length = bytes - header;
            return file + header;
        }
    stop("a .npy file of a type that is not known here");
    return NULL;
}

static int compare_npy(const char *result, const char *expected, double tolerance)
{
    size_t bytes, lengths[2];
    enum dtype dtypes[2];
    const unsigned char *data[2];
    const char *paths[] = {result, expected};
    for (int i = 0; i < 2; i++) {
        const unsigned char *file = read_file(paths[i], &bytes);
        data[i] = npy_elements(file, bytes, &dtypes[i], &lengths[i]);
    }
    double error = dtypes[0] == dtypes[1] && lengths[0] == lengths[1]
                       ? difference(data[0], data[1], dtypes[0], lengths[0])
                       : INFINITY;
    if (!dtype_is_float(dtypes[1]) && error > 0)
        error = INFINITY;
    printf("error %.3g, allowed %.3g\n", error, tolerance);
    return error <= tolerance ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        return run_pack(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "npy") == 0)
        return compare_npy(argv[2], argv[3], strtod(argv[4], NULL));
    if (argc == 3 && strcmp(argv[1], "time") == 0)
        return time_pack(argv[2]);
    stop("usage: check pack FILE HASHES | check time FILE | check npy RESULT EXPECTED TOLERANCE");
    return 2;
}

/* See fake_cuda.h. Objects of all kinds are one struct with a magic word: a wrong kind, a released object or
 * a stray pointer is seen at once. */
#include "tests/fake_cuda/fake_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_cuda_internal.h"

static struct {
    pthread_mutex_t lock;
    int devices, capability, version;
    unsigned alive, until_failure, total;
    int failure;
    const char *failed; /* the call that was made to fail */
    struct {
        const char *name;
        unsigned count;
    } counts[MAX_NAMES];
    struct {
        char kernel[64];
        unsigned count;
    } argument_counts[16];
    struct memory memory[MAX_MEMORY];
    struct fake_launch launches[MAX_LAUNCHES];
    unsigned launch_count;
    struct copy copies[MAX_COPIES]; /* in order */
    unsigned copy_count;
    struct object *objects;
    struct {
        struct object *context;
        unsigned references;
    } primary[MAX_DEVICES];
    bool leaves_copies;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .devices = 1, .capability = 90, .version = 13000};

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct object *current[16];
static _Thread_local unsigned current_count;

bool fake_has_context(void)
{
    return current_count > 0;
}

void fake_wrong(const char *function, const char *what)
{
    fprintf(stderr, "fake_cuda: %s: %s\n", function, what);
    abort();
}

static void set_from_environment(const char *name, int *value)
{
    const char *text = getenv(name);
    if (text)
        *value = (int)strtol(text, NULL, 10);
}

__attribute__((constructor)) static void read_environment(void)
{
    set_from_environment("FAKE_CUDA_DEVICES", &fake.devices);
    if (fake.devices < 0 || fake.devices > MAX_DEVICES)
        fake_wrong("FAKE_CUDA_DEVICES", "the fake has no so many devices");
    set_from_environment("FAKE_CUDA_CAPABILITY", &fake.capability);
    set_from_environment("FAKE_CUDA_DRIVER", &fake.version);
}

/* Counts a call; the result that it must give instead of working. */
int fake_enter(const char *name)
{
    pthread_mutex_lock(&fake.lock);
    fake.total++;
    for (size_t i = 0; i < MAX_NAMES; i++) {
        if (!fake.counts[i].name)
            fake.counts[i].name = name;
        if (strcmp(fake.counts[i].name, name) == 0) {
            fake.counts[i].count++;
            break;
        }
    }
    int result = fake.until_failure && --fake.until_failure == 0 ? fake.failure : 0;
    if (result)
        fake.failed = name;
    pthread_mutex_unlock(&fake.lock);
    return result;
}
struct object *fake_make(enum kind kind, struct object *parent)
{
    struct object *object = calloc(1, sizeof *object);
    if (!object)
        abort();
    object->kind = kind;
    object->parent = parent;
    pthread_mutex_lock(&fake.lock);
    fake.alive++;
    object->made_before = fake.objects;
    fake.objects = object;
    pthread_mutex_unlock(&fake.lock);
    return object;
}

/* Released objects are kept as marked memory, so that late uses are seen; the process is short-lived. */
void fake_unmake(struct object *object)
{
    free(object->nodes);
    free(object->launches);
    free(object->disabled);
    object->nodes = NULL;
    object->launches = NULL;
    object->disabled = NULL;
    pthread_mutex_lock(&fake.lock);
    object->kind = 0; /* others look through the list of all */
    fake.alive--;
    pthread_mutex_unlock(&fake.lock);
}

struct object *fake_need(const char *function, const void *pointer, enum kind kind)
{
    struct object *object = (struct object *)(uintptr_t)pointer;
    if (!object || object->kind != (uint32_t)kind)
        fake_wrong(function, "an object is NULL, released or of the wrong kind");
    return object;
}

/* [data, data + bytes) lies in one living allocation of the wanted side. */
static void need_memory(const char *function, uint64_t address, size_t bytes, bool host)
{
    pthread_mutex_lock(&fake.lock);
    bool found = false;
    for (size_t i = 0; i < MAX_MEMORY && !found; i++) {
        uint64_t begin = (uintptr_t)fake.memory[i].data;
        found = begin && fake.memory[i].host == host && address >= begin &&
                address - begin <= fake.memory[i].bytes && bytes <= fake.memory[i].bytes - (address - begin);
    }
    pthread_mutex_unlock(&fake.lock);
    if (!found)
        fake_wrong(function,
                   host ? "host memory is not pinned, released or too small" : "no such device memory");
}

static void *take_memory(size_t bytes, bool host)
{
    void *data = NULL;
    if (!bytes || posix_memalign(&data, 512, bytes) != 0)
        return NULL;
    memset(data, 0xa5, bytes);
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < MAX_MEMORY; i++)
        if (!fake.memory[i].data) {
            fake.memory[i] = (struct memory){data, bytes, host};
            fake.alive++;
            break;
        }
    pthread_mutex_unlock(&fake.lock);
    return data;
}

/* Queued copies are made as late as the driver may: so host memory that is touched too early gives wrong
 * results. All streams are one queue. */
static void queue_copy(const char *function, void *to, const void *from, size_t bytes)
{
    pthread_mutex_lock(&fake.lock);
    if (fake.copy_count == MAX_COPIES)
        fake_wrong(function, "more copies are queued than the fake holds");
    fake.copies[fake.copy_count++] = (struct copy){to, from, bytes};
    pthread_mutex_unlock(&fake.lock);
}

/* Makes the first `count` queued copies. */
static void make_copies(unsigned count)
{
    pthread_mutex_lock(&fake.lock);
    if (count > fake.copy_count)
        count = fake.copy_count;
    for (unsigned i = 0; i < count; i++)
        memcpy(fake.copies[i].to, fake.copies[i].from, fake.copies[i].bytes);
    fake.copy_count -= count;
    memmove(fake.copies, fake.copies + count, fake.copy_count * sizeof *fake.copies);
    for (struct object *object = fake.objects; object; object = object->made_before)
        if (object->kind == KIND_EVENT)
            object->count = object->count > count ? object->count - count : 0;
    pthread_mutex_unlock(&fake.lock);
}

static void give_memory(const char *function, uint64_t address, bool host)
{
    void *data = NULL;
    make_copies(UINT32_MAX); /* the driver waits too */
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < MAX_MEMORY; i++)
        if ((uintptr_t)fake.memory[i].data == address && fake.memory[i].host == host && address) {
            data = fake.memory[i].data;
            fake.memory[i].data = NULL;
            fake.alive--;
        }
    pthread_mutex_unlock(&fake.lock);
    if (!data)
        fake_wrong(function, "memory that was not allocated is given back");
    free(data);
}

/* ---- devices and contexts
 * ------------------------------------------------------------------------------------------ */

cuda_result cuInit(unsigned flags)
{
    ENTER();
    return flags ? INVALID : fake.devices ? 0 : 100;
}

cuda_result cuDriverGetVersion(int *version)
{
    ENTER();
    *version = fake.version;
    return 0;
}

cuda_result cuDeviceGetCount(int *count)
{
    ENTER();
    *count = fake.devices;
    return 0;
}

cuda_result cuDeviceGet(cuda_device_number *device, int ordinal)
{
    ENTER();
    if (ordinal < 0 || ordinal >= fake.devices)
        return 101;
    *device = ordinal + 40;
    return 0;
}

cuda_result cuDeviceGetAttribute(int *value, int attribute, cuda_device_number device)
{
    ENTER();
    if (device < 40 || device >= 40 + fake.devices)
        fake_wrong(__func__, "no such device");
    *value = attribute == CUDA_ATTRIBUTE_MAJOR   ? fake.capability / 10
             : attribute == CUDA_ATTRIBUTE_MINOR ? fake.capability % 10
                                                 : 0;
    return 0;
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device_number device)
{
    ENTER();
    if (device < 40 || device >= 40 + fake.devices)
        fake_wrong(__func__, "no such device");
    pthread_mutex_lock(&primary_lock);
    if (!fake.primary[device - 40].references++) {
        fake.primary[device - 40].context = fake_make(KIND_CONTEXT, NULL);
        fake.primary[device - 40].context->count = (uint32_t)device;
    }
    *context = (cuda_context)fake.primary[device - 40].context;
    pthread_mutex_unlock(&primary_lock);
    return 0;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device_number device)
{
    ENTER();
    pthread_mutex_lock(&primary_lock);
    if (device < 40 || device >= 40 + fake.devices || !fake.primary[device - 40].references)
        fake_wrong(__func__, "released more often than retained");
    if (--fake.primary[device - 40].references == 0)
        fake_unmake(fake.primary[device - 40].context);
    pthread_mutex_unlock(&primary_lock);
    return 0;
}

cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    ENTER();
    if (current_count == sizeof current / sizeof *current)
        fake_wrong(__func__, "contexts are pushed and not popped");
    current[current_count++] = fake_need(__func__, context, KIND_CONTEXT);
    return 0;
}

cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    NEEDS_CONTEXT();
    ENTER();
    *context = (cuda_context)current[--current_count];
    return 0;
}

cuda_result cuCtxGetDevice(cuda_device_number *device)
{
    NEEDS_CONTEXT();
    ENTER();
    *device = (cuda_device_number)current[current_count - 1]->count;
    return 0;
}

cuda_result cuCtxSynchronize(void)
{
    NEEDS_CONTEXT();
    ENTER();
    make_copies(UINT32_MAX);
    return 0;
}

/* ---- modules and memory
 * -------------------------------------------------------------------------------------------- */

cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count, int *options,
                               void **values)
{
    NEEDS_CONTEXT();
    ENTER();
    if (!image || (count && (!options || !values)))
        fake_wrong(__func__, "an argument is NULL");
    *module = (cuda_module)fake_make(KIND_MODULE, current[current_count - 1]);
    return 0;
}

cuda_result cuModuleUnload(cuda_module module)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *object = fake_need(__func__, module, KIND_MODULE);
    for (struct object *function = object->next; function; function = function->next)
        fake_unmake(function);
    fake_unmake(object);
    return 0;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    NEEDS_CONTEXT();
    ENTER();
    struct object *parent = fake_need(__func__, module, KIND_MODULE),
                  *made = fake_make(KIND_FUNCTION, parent);
    snprintf(made->name, sizeof made->name, "%s", name);
    made->next = parent->next;
    parent->next = made;
    *function = (cuda_function)made;
    return 0;
}

cuda_result cuFuncSetAttribute(cuda_function function, int attribute, int value)
{
    ENTER();
    fake_need(__func__, function, KIND_FUNCTION);
    return attribute == CUDA_FUNCTION_DYNAMIC_SHARED && value > 0 ? 0 : INVALID;
}

cuda_result cuFuncGetAttribute(int *value, int attribute, cuda_function function)
{
    ENTER();
    fake_need(__func__, function, KIND_FUNCTION);
    *value = attribute;
    return 0;
}

cuda_result cuMemAlloc_v2(cuda_pointer *memory, size_t bytes)
{
    NEEDS_CONTEXT();
    ENTER();
    void *data = take_memory(bytes, false);
    *memory = (uintptr_t)data;
    return data ? 0 : CUDA_NO_MEMORY;
}

cuda_result cuMemFree_v2(cuda_pointer memory)
{
    NEEDS_CONTEXT();
    ENTER();
    give_memory(__func__, memory, false);
    return 0;
}

cuda_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    NEEDS_CONTEXT();
    ENTER();
    (void)flags;
    *memory = take_memory(bytes, true);
    return *memory ? 0 : CUDA_NO_MEMORY;
}

cuda_result cuMemFreeHost(void *memory)
{
    NEEDS_CONTEXT();
    ENTER();
    give_memory(__func__, (uintptr_t)memory, true);
    return 0;
}

cuda_result cuMemcpyHtoD_v2(cuda_pointer to, const void *from, size_t bytes)
{
    NEEDS_CONTEXT();
    ENTER();
    need_memory(__func__, to, bytes, false);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_pointer to, const void *from, size_t bytes, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    if (stream)
        fake_need(__func__, stream, KIND_STREAM);
    need_memory(__func__, to, bytes, false);
    need_memory(__func__, (uintptr_t)from, bytes, true);
    queue_copy(__func__, (void *)(uintptr_t)to, from, bytes);
    return 0;
}

cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t bytes, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    if (stream)
        fake_need(__func__, stream, KIND_STREAM);
    need_memory(__func__, from, bytes, false);
    need_memory(__func__, (uintptr_t)to, bytes, true);
    queue_copy(__func__, to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

cuda_result cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t bytes, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    if (stream)
        fake_need(__func__, stream, KIND_STREAM);
    need_memory(__func__, to, bytes, false);
    need_memory(__func__, from, bytes, false);
    make_copies(UINT32_MAX); /* those before it in the stream */
    if (!fake.leaves_copies)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

/* ---- streams and launches
 * ------------------------------------------------------------------------------------------ */

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    NEEDS_CONTEXT();
    ENTER();
    (void)flags;
    *stream = (cuda_stream)fake_make(KIND_STREAM, current[current_count - 1]);
    return 0;
}

cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    fake_unmake(fake_need(__func__, stream, KIND_STREAM));
    return 0;
}

cuda_result cuStreamSynchronize(cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    if (stream && fake_need(__func__, stream, KIND_STREAM)->capturing)
        return 900;
    make_copies(UINT32_MAX);
    return 0;
}

cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    NEEDS_CONTEXT();
    ENTER();
    (void)flags;
    *event = (cuda_event)fake_make(KIND_EVENT, current[current_count - 1]);
    return 0;
}

cuda_result cuEventDestroy_v2(cuda_event event)
{
    ENTER();
    fake_unmake(fake_need(__func__, event, KIND_EVENT));
    return 0;
}

/* An event's count: queued copies before it. */
cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    NEEDS_CONTEXT();
    ENTER();
    fake_need(__func__, stream, KIND_STREAM);
    fake_need(__func__, event, KIND_EVENT)->count = fake.copy_count;
    return 0;
}

cuda_result cuEventSynchronize(cuda_event event)
{
    NEEDS_CONTEXT();
    ENTER();
    make_copies(fake_need(__func__, event, KIND_EVENT)->count);
    return 0;
}

cuda_result cuStreamIsCapturing(cuda_stream stream, int *status)
{
    NEEDS_CONTEXT();
    ENTER();
    *status = fake_need(__func__, stream, KIND_STREAM)->capturing;
    return 0;
}

static unsigned argument_count(const char *kernel)
{
    for (size_t i = 0; i < sizeof fake.argument_counts / sizeof *fake.argument_counts; i++)
        if (strcmp(fake.argument_counts[i].kernel, kernel) == 0)
            return fake.argument_counts[i].count;
    return 0;
}

/* The driver's rules for tiled maps; what is written is the address and the second size. */
cuda_result cuTensorMapEncodeTiled(struct cuda_tensor_map *map, int dtype, unsigned rank, void *address,
                                   const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                   const uint32_t *steps, int interleave, int swizzle, int promotion,
                                   int fill)
{
    ENTER();
    if ((uintptr_t)map % 64 || !address || (uintptr_t)address % 16 || rank < 1 || rank > 5 || dtype < 0 ||
        dtype > 12 || interleave || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill)
        return INVALID;
    for (unsigned i = 0; i < rank; i++)
        if (sizes[i] < 1 || sizes[i] > UINT64_C(1) << 32 || box[i] < 1 || box[i] > 256 || steps[i] != 1)
            return INVALID;
    for (unsigned i = 0; i + 1 < rank; i++)
        if (strides[i] % 16 || !strides[i] || strides[i] >= UINT64_C(1) << 40)
            return INVALID;
    memset(map, 0, sizeof *map);
    map->opaque[0] = (uintptr_t)address;
    map->opaque[1] = rank > 1 ? sizes[1] : 0;
    return 0;
}

/* Copies the arguments at once, as the driver does. */
void fake_set_launch(const char *caller, struct fake_launch *launch, const struct cuda_kernel_node *node)
{
    const struct object *function = fake_need(caller, node->function, KIND_FUNCTION);
    uint64_t threads = (uint64_t)node->block[0] * node->block[1] * node->block[2];
    if (!node->grid[0] || !node->grid[1] || !node->grid[2] || !threads || threads > 1024)
        fake_wrong(caller, "a grid or block is empty or too large");
    memcpy(launch->kernel, function->name, sizeof launch->kernel);
    memcpy(launch->grid, node->grid, sizeof launch->grid);
    memcpy(launch->block, node->block, sizeof launch->block);
    launch->shared_bytes = node->shared_bytes;
    for (unsigned i = 0; i < argument_count(launch->kernel); i++)
        memcpy(&launch->arguments[i], node->arguments[i], 8);
}

void fake_record(const struct fake_launch *launch, int from_graph)
{
    pthread_mutex_lock(&fake.lock);
    if (fake.launch_count < MAX_LAUNCHES) {
        fake.launches[fake.launch_count] = *launch;
        fake.launches[fake.launch_count++].from_graph = from_graph;
    }
    pthread_mutex_unlock(&fake.lock);
}

cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                           cuda_stream stream, void **arguments, void **extra)
{
    NEEDS_CONTEXT();
    ENTER();
    if (stream)
        fake_need(__func__, stream, KIND_STREAM);
    struct fake_launch launch = {0};
    fake_set_launch(
        __func__, &launch,
        &(struct cuda_kernel_node){
            function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, arguments, extra});
    fake_record(&launch, 0);
    return 0;
}

/* ---- errors
 * -------------------------------------------------------------------------------------------------------- */

cuda_result cuGetErrorName(cuda_result result, const char **text)
{
    (void)result;
    *text = "CUDA_ERROR_OF_A_TEST";
    return 0;
}

cuda_result cuGetErrorString(cuda_result result, const char **text)
{
    (void)result;
    *text = "made by fake_cuda";
    return 0;
}

/* ---- controls
 * ------------------------------------------------------------------------------------------------------ */

static void reset(void)
{
    memset(fake.counts, 0, sizeof fake.counts);
    fake.total = fake.until_failure = fake.launch_count = 0;
    fake.failed = NULL;
}

static void set_device(int count, int capability, int driver_version)
{
    fake.devices = count;
    fake.capability = capability;
    fake.version = driver_version;
}

static unsigned calls(const char *name)
{
    for (size_t i = 0; i < MAX_NAMES && name && fake.counts[i].name; i++)
        if (strcmp(fake.counts[i].name, name) == 0)
            return fake.counts[i].count;
    return name ? 0 : fake.total;
}

static unsigned alive(void)
{
    return fake.alive;
}

static void fail(unsigned nth, int result)
{
    fake.until_failure = nth;
    fake.failure = result;
}

static const char *failed(void)
{
    return fake.failed ? fake.failed : "";
}

static void *stream(void)
{
    return fake_make(KIND_STREAM, NULL);
}

static void *caller_context(void)
{
    struct object *context = fake_make(KIND_CONTEXT, NULL);
    context->count = 40;
    return context;
}

static unsigned current_contexts(void)
{
    return current_count;
}

static void stream_end(void *ended)
{
    struct object *object = ended;
    fake_unmake(fake_need(__func__, ended, object->kind == KIND_CONTEXT ? KIND_CONTEXT : KIND_STREAM));
}

/* A call that fails on the way out leaves its object, as it would in a driver. */
static void forget(void)
{
    current_count = 0;
    fake.alive = 0;
    fake.copy_count = 0;
    memset(fake.primary, 0, sizeof fake.primary);
    for (size_t i = 0; i < MAX_MEMORY; i++) {
        free(fake.memory[i].data);
        fake.memory[i].data = NULL;
    }
}

static void capture(void *captured, int capturing)
{
    fake_need(__func__, captured, KIND_STREAM)->capturing = capturing != 0;
}

static unsigned launches(struct fake_launch *out, unsigned limit)
{
    for (unsigned i = 0; i < fake.launch_count && i < limit; i++)
        out[i] = fake.launches[i];
    return fake.launch_count;
}

static void arguments(const char *kernel, unsigned count)
{
    for (size_t i = 0; i < sizeof fake.argument_counts / sizeof *fake.argument_counts; i++)
        if (!*fake.argument_counts[i].kernel || strcmp(fake.argument_counts[i].kernel, kernel) == 0) {
            snprintf(fake.argument_counts[i].kernel, sizeof fake.argument_counts[i].kernel, "%s", kernel);
            fake.argument_counts[i].count = count;
            return;
        }
}

static void leave_copies(int leave)
{
    fake.leaves_copies = leave != 0;
}

const struct fake_controls *fake_cuda_controls(void)
{
    static const struct fake_controls controls = {
        reset,          set_device,       calls,      alive,   fail,   failed,   stream,
        caller_context, current_contexts, stream_end, capture, forget, launches, arguments,
        leave_copies};
    return &controls;
}

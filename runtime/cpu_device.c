/* The CPU: launches run one after the other on the caller's thread and the context's pool, each split evenly
 * over as many threads as its cost pays for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/context.h"
#include "runtime/float_mode.h"
#include "runtime/pool.h"

struct cpu_state {
    struct pool *pool;
    unsigned char *scratch; /* of all threads */
    size_t scratch_bytes;   /* of one */
};

/* A thread is worth waking for this much work, in nanoseconds, by these rough rates of one thread. */
static const double grain_nanoseconds = 3000, operations_per_nanosecond = 8, bytes_per_nanosecond = 8;

enum { LARGE_PAGE = 2 * 1024 * 1024 };

struct job {
    bundle_cpu_kernel *function;
    void *const *buffers;
    const int64_t *dims;
    int64_t work;
    uint32_t parts;
    const struct cpu_state *state;
};

static void run_part(void *user, uint32_t part)
{
    const struct job *job = user;
    int64_t each = job->work / job->parts, more = job->work % job->parts;
    int64_t begin = each * part + (part < more ? part : more), end = begin + each + (part < more);
    unsigned char *scratch = job->state->scratch;
    job->function(job->buffers, job->dims, begin, end,
                  scratch ? scratch + part * job->state->scratch_bytes : NULL);
}

static uint32_t parts_for(const struct bundle_kernel *kernel, int64_t work, uint32_t threads)
{
    double scale = (double)work / (double)(kernel->hint_work > 0 ? kernel->hint_work : 1);
    double nanoseconds = ((double)kernel->hint_operations / operations_per_nanosecond +
                          (double)kernel->hint_bytes / bytes_per_nanosecond) *
                         scale;
    double parts = 1 + nanoseconds / grain_nanoseconds;
    uint32_t most = work < (int64_t)threads ? (uint32_t)work : threads;
    return parts >= most ? most : (uint32_t)parts;
}

static void run_launch(const struct runtime_context *context, const struct bundle_launch *launch)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_kernel *kernel = &tables->kernels[context->plan->first_kernel + launch->kernel];
    const struct cpu_state *state = context->device_state;
    void *buffers[BUNDLE_MAX_KERNEL_BUFFERS];
    int64_t dims[BUNDLE_MAX_KERNEL_DIMS];
    int64_t work = context->values[launch->work];
    if (work <= 0)
        return;
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        buffers[i] = context->buffers[tables->indices[launch->first_buffer + i]];
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        dims[i] = context->values[tables->indices[launch->first_dim + i]];
    struct job job = {.function = context->model->kernels[kernel->function],
                      .buffers = buffers,
                      .dims = dims,
                      .work = work,
                      .parts = parts_for(kernel, work, pool_threads(state->pool)),
                      .state = state};
    pool_run(state->pool, job.parts, run_part, &job);
}

static void run_copies(const struct runtime_context *context, bool early)
{
    for (uint32_t i = 0; i < context->plan->copy_count; i++) {
        const struct bundle_copy *copy = &context->model->tables.copies[context->plan->first_copy + i];
        uint64_t bytes = buffer_bytes_now(context, copy->to);
        if (copy_is_early(context, copy) == early && bytes)
            memmove(context->buffers[copy->to], context->buffers[copy->from], (size_t)bytes);
    }
}

/* Launches [first, end); `control`: the first one at or behind `first`, out of those that stand in the range.
 * Bounded by BUNDLE_MAX_DEPTH. */
static void run_launches(const struct runtime_context *context, uint32_t first, uint32_t end,
                         uint32_t control)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_control *controls = &tables->controls[context->plan->first_control];
    for (uint32_t i = first; i < end;) {
        const struct bundle_control *here = &controls[control];
        if (control == context->plan->control_count || here->first != i || here->end > end) {
            run_launch(context, &tables->launches[context->plan->first_launch + i++]);
            continue;
        }
        const unsigned char *condition = context->buffers[here->condition];
        uint32_t inner = control + 1;
        if (here->kind == BUNDLE_WHILE) {
            while (*condition)
                run_launches(context, here->first, here->end, inner);
        } else if (*condition) {
            run_launches(context, here->first, here->middle, inner);
        } else {
            while (inner <= control + here->inner && controls[inner].first < here->middle)
                inner++;
            run_launches(context, here->middle, here->end, inner);
        }
        i = here->end;
        control += 1 + here->inner;
    }
}

static gpucc_status enqueue(struct runtime_context *context, void *stream, struct runtime_error *error)
{
    const struct cpu_state *state = context->device_state;
    if (stream)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the stream of a CPU context must be NULL");
    float_mode saved = float_mode_enter();
    pool_begin(state->pool);
    run_copies(context, true);
    run_launches(context, 0, context->plan->launch_count, 0);
    run_copies(context, false);
    pool_end(state->pool);
    float_mode_leave(saved);
    if (context->plan->word_count)
        memcpy(context->words, context->buffers[context->plan->word_buffer],
               context->plan->word_count * sizeof *context->words);
    return GPUCC_OK;
}

static gpucc_status run(struct runtime_context *context, struct runtime_error *error)
{
    bind_buffers(context);
    const gpucc_status status = enqueue(context, NULL, error);
    context->words_ran = status == GPUCC_OK && context->plan->word_count;
    return status;
}

static gpucc_status prepare(struct runtime_context *context, struct prepared *prepared,
                            struct runtime_error *error)
{
    (void)prepared;
    if (context->plan->word_count && !context->words) {
        context->words = calloc(context->plan->word_count, sizeof *context->words);
        if (!context->words)
            return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    }
    return GPUCC_OK;
}

static void forget(struct runtime_context *context, struct prepared *prepared)
{
    (void)context;
    (void)prepared;
}

static void *allocate(struct runtime_context *context, size_t bytes, struct runtime_error *error)
{
    (void)context;
    void *memory = NULL;
    bool large = bytes >= 2 * (size_t)LARGE_PAGE;
    if (posix_memalign(&memory, large ? LARGE_PAGE : BUNDLE_ALIGNMENT, bytes ? bytes : 1) != 0) {
        runtime_fail(error, GPUCC_OUT_OF_MEMORY, "no %zu bytes of memory", bytes);
        return NULL;
    }
    if (large)
        madvise(memory, bytes / LARGE_PAGE * LARGE_PAGE,
                MADV_HUGEPAGE); /* a wish: its failure does not matter */
    return memory;
}

static void release(struct runtime_context *context, void *memory, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(memory);
}

static gpucc_status put(struct runtime_context *context, void *to, const void *data, size_t bytes,
                        struct runtime_error *error)
{
    (void)context;
    (void)error;
    memcpy(to, data, bytes);
    return GPUCC_OK;
}

static void wait(struct runtime_context *context)
{
    (void)context; /* enqueue has waited */
}

static void destroy(struct runtime_context *context)
{
    struct cpu_state *state = context->device_state;
    free(context->words);
    if (!state)
        return;
    pool_destroy(state->pool);
    free(state->scratch);
    free(state);
}

const struct device cpu_device = {prepare, forget, enqueue, allocate, release, put, run, wait, destroy};

static size_t scratch_need(const struct runtime_context *context)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < context->plan->kernel_count; i++) {
        uint64_t bytes = context->model->tables.kernels[context->plan->first_kernel + i].scratch_bytes;
        most = bytes > most ? bytes : most;
    }
    return (size_t)((most + 63) / 64 * 64);
}

gpucc_status cpu_device_create(struct runtime_context *context, const gpucc_context_options *options,
                               struct runtime_error *error)
{
    gpucc_status status = model_cpu_plan(context->model, options->cpu_level, &context->plan, error);
    if (status != GPUCC_OK)
        return status;
    if (options->cuda_context)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "a CPU context takes no CUDA context");
    struct cpu_state *state = calloc(1, sizeof *state);
    context->device = &cpu_device;
    context->device_state = state;
    context->ordinal = GPUCC_CPU;
    if (!state)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    state->pool = pool_create(options->threads ? (uint32_t)options->threads : pool_cpu_count());
    if (!state->pool)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "cannot start %d threads", options->threads);
    state->scratch_bytes = scratch_need(context);
    void *scratch = NULL;
    size_t threads = pool_threads(state->pool);
    if (state->scratch_bytes && (state->scratch_bytes > SIZE_MAX / threads ||
                                 posix_memalign(&scratch, 64, state->scratch_bytes * threads) != 0))
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "no %zu bytes of scratch for each of %zu threads",
                            state->scratch_bytes, threads);
    state->scratch = scratch;
    return GPUCC_OK;
}

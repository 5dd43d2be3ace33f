/* gpucc_run on CUDA: host memory goes through pinned memory, so that copies are asynchronous, and into device
 * buffers that are kept from call to call. */
#include <string.h>

#include "runtime/cuda_device.h"

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
}

/* Both blocks hold all inputs, then all outputs: here one that lives in an input's buffer may have its own.
 */
static uint64_t total_bytes(const struct runtime_context *context)
{
    const struct bundle_tables *tables = &context->model->tables;
    uint64_t total = 0;
    for (uint32_t i = 0; i < tables->input_count; i++)
        total += rounded(context->input_bytes[i]);
    for (uint32_t i = 0; i < tables->output_count; i++)
        total += rounded(context->output_bytes[i]);
    return total;
}

static gpucc_status grow(struct runtime_context *context, uint64_t bytes, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    if (state->io_bytes < bytes) {
        context_release(context, state->io, state->io_bytes);
        state->io_bytes = 0;
        state->io = context_allocate(context, (size_t)bytes, error);
        if (!state->io)
            return GPUCC_OUT_OF_MEMORY;
        state->io_bytes = (size_t)bytes;
    }
    if (state->pinned_bytes >= bytes)
        return GPUCC_OK;
    if (state->pinned)
        state->cuda->host_release(state->pinned);
    state->pinned = NULL;
    state->pinned_bytes = 0;
    gpucc_status status = cuda_done(context, state->cuda->host_allocate(&state->pinned, (size_t)bytes, 0),
                                    "cannot allocate pinned memory", error);
    if (status == GPUCC_OK) {
        state->pinned_bytes = (size_t)bytes;
        context->statistics.allocations++;
    }
    return status;
}

static gpucc_status move_in(struct runtime_context *context, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    uint64_t at = 0;
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < context->model->tables.input_count && status == GPUCC_OK; i++) {
        size_t bytes = (size_t)context->input_bytes[i];
        char *staged = (char *)state->pinned + at, *to = (char *)state->io + at;
        if (bytes) {
            memcpy(staged, context->input_data[i], bytes);
            status = cuda_done(context, state->cuda->copy_in((uintptr_t)to, staged, bytes, state->stream),
                               "cannot copy an input", error);
        }
        context->input_data[i] = to;
        at += rounded(bytes);
    }
    return status;
}

/* Where an output stands in both blocks. */
static uint64_t output_offset(const struct runtime_context *context, uint32_t output)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < context->model->tables.input_count; i++)
        at += rounded(context->input_bytes[i]);
    for (uint32_t i = 0; i < output; i++)
        at += rounded(context->output_bytes[i]);
    return at;
}

static gpucc_status run_on_device(struct runtime_context *context, void **host, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = move_in(context, error);
    for (uint32_t i = 0; i < tables->output_count; i++) {
        host[i] = context->output_data[i];
        context->output_data[i] = (char *)state->io + output_offset(context, i);
    }
    if (status == GPUCC_OK) {
        bind_buffers(context);
        status = cuda_graph_run(context, context->current->device_prepared, state->stream, error);
    }
    for (uint32_t i = 0; i < tables->output_count && status == GPUCC_OK; i++)
        if (context->output_bytes[i])
            status = cuda_done(context,
                               state->cuda->copy_out((char *)state->pinned + output_offset(context, i),
                                                     (uintptr_t)context->output_data[i],
                                                     (size_t)context->output_bytes[i], state->stream),
                               "cannot copy an output", error);
    /* Waits even after a failure: the pinned block must be idle. */
    gpucc_status waited = cuda_done(context, state->cuda->stream_synchronise(state->stream),
                                    "the kernels failed", status == GPUCC_OK ? error : NULL);
    status = status == GPUCC_OK ? waited : status;
    for (uint32_t i = 0; i < tables->output_count && status == GPUCC_OK; i++)
        if (context->output_bytes[i])
            memcpy(host[i], (char *)state->pinned + output_offset(context, i),
                   (size_t)context->output_bytes[i]);
    return status;
}

gpucc_status cuda_run(struct runtime_context *context, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = cuda_enter_for(context, error);
    if (status != GPUCC_OK)
        return status;
    status = grow(context, total_bytes(context), error);
    if (status == GPUCC_OK)
        status = run_on_device(context, state->host_outputs, error);
    cuda_leave(state);
    return status;
}

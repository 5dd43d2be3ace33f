/* gpucc_run on CUDA: host memory streams through pinned memory (cuda_stage.c) into device buffers that are
 * kept from call to call. */
#include "runtime/cuda_device.h"

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
}

/* The device block holds all inputs, then all outputs: here one that lives in an input's buffer may have its
 * own. */
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
    return cuda_stage_grow(context, error);
}

/* Waits for the sizes that the model computes: outputs are no longer than they say. */
static gpucc_status take_words(struct runtime_context *context, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    gpucc_status status = cuda_done(context, state->cuda->stream_synchronise(state->stream),
                                    CUDA_NAME(stream_synchronise), "the kernels failed", error);
    if (status != GPUCC_OK)
        return status;
    context->words_ran = true;
    status = words_take(context, error);
    if (status == GPUCC_OK)
        shrink_outputs(context);
    return status;
}

static gpucc_status run_on_device(struct runtime_context *context, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct cuda_state *state = cuda_state_of(context);
    char *at = state->io;
    for (uint32_t i = 0; i < tables->input_count; i++) {
        state->device_inputs[i] = at;
        at += rounded(context->input_bytes[i]);
    }
    gpucc_status status = cuda_stage_in(context, state->device_inputs, error);
    for (uint32_t i = 0; i < tables->input_count; i++)
        context->input_data[i] = state->device_inputs[i];
    for (uint32_t i = 0; i < tables->output_count; i++) {
        state->host_outputs[i] = context->output_data[i];
        context->output_data[i] = at;
        at += rounded(context->output_bytes[i]);
    }
    if (status == GPUCC_OK) {
        bind_buffers(context);
        status = cuda_graph_run(context, context->current->device_prepared, state->stream, error);
    }
    if (status == GPUCC_OK && context->plan->word_count)
        status = take_words(context, error);
    if (status == GPUCC_OK)
        status = cuda_stage_out(context, state->host_outputs, error);
    if (status != GPUCC_OK) /* the pinned memory must be idle all the same */
        cuda_done(context, state->cuda->stream_synchronise(state->stream), CUDA_NAME(stream_synchronise), "",
                  NULL);
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
        status = run_on_device(context, error);
    cuda_leave(state);
    return status;
}

/* gpucc_run: inputs and outputs on the host, prepared for their dims when needed. */
#include <string.h>

#include "runtime/context.h"

/* Does the current preparation cover what the tensors are? */
static bool covered(const struct runtime_context *context, const int64_t *symbol_values)
{
    const struct prepared *current = context->current;
    for (uint32_t i = 0; current && i < context->model->tables.symbol_count; i++)
        if (context->model->tables.symbols[i].source != BUNDLE_WORD &&
            (symbol_values[i] < current->sizes.symbols[i].low ||
             symbol_values[i] > current->sizes.symbols[i].high))
            return false;
    return current != NULL;
}

static gpucc_status prepare_for(struct runtime_context *context, const gpucc_tensor *inputs,
                                struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    struct sizes sizes = {0};
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < tables->input_count && status == GPUCC_OK; i++)
        status = check_input(context, i, inputs, error);
    if (status != GPUCC_OK)
        return status;
    if (!sizes_allocate(tables, &sizes))
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    status = bind_symbols(context, inputs, true, context->symbol_values, error);
    context->values_valid = false;
    if (status == GPUCC_OK && !covered(context, context->symbol_values)) {
        for (uint32_t i = 0; i < tables->symbol_count; i++)
            sizes.symbols[i] =
                tables->symbols[i].source < BUNDLE_WORD || context->current
                    ? (struct dim_interval){context->symbol_values[i], context->symbol_values[i]}
                    : (struct dim_interval){1, 0}; /* not known: nobody stated the most that it may be */
        status = sizes_settle(tables, &sizes, error);
        if (status == GPUCC_OK)
            status = context_prepare_sizes(context, &sizes, NULL, error);
    }
    sizes_release(&sizes);
    return status;
}

gpucc_status context_run(struct runtime_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs,
                         struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    if (context->broken != GPUCC_OK)
        return runtime_fail(error, context->broken, "the context had a device error before");
    if ((!inputs && tables->input_count) || (!outputs && tables->output_count))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the inputs or outputs are NULL");
    gpucc_status status = prepare_for(context, inputs, error);
    if (status == GPUCC_OK)
        status = context_take_weights(context, error);
    if (status == GPUCC_OK)
        status = bind_tensors(context, inputs, outputs, false, 1, error);
    if (status == GPUCC_OK)
        status = context->device->run(context, error);
    context->statistics.enqueues += status == GPUCC_OK;
    if (status == GPUCC_OK && context->words_ran) {
        if (!context->words_taken)
            status = words_take(context, error);
        if (status == GPUCC_OK)
            words_write_dims(context, outputs);
    }
    return context_end(context, status);
}

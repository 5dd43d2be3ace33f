/* From the caller's tensors to dims and buffers, without allocation: what every enqueue does before the
 * device's part. Dims are evaluated anew only when a size differs from the last call's. */
#include <string.h>

#include "runtime/context.h"
#include "runtime/dim_text.h"

static const gpucc_tensor *tensor_at(const gpucc_tensor *tensors, uint32_t index)
{
    return (const gpucc_tensor *)(const void *)((const char *)tensors + index * tensors->size);
}

/* "input 2 \"ids\"", in `text`. */
static const char *tensor_text(const struct runtime_context *context, bool output, uint32_t index,
                               char text[160])
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_tensor *row = output ? &tables->outputs[index] : &tables->inputs[index];
    struct runtime_error line;
    char name[96];
    runtime_escape(tables->strings + row->name, name, sizeof name);
    runtime_fail(&line, GPUCC_OK, "%s %u \"%s\"", output ? "output" : "input", index, name);
    memcpy(text, line.text, 160);
    text[159] = '\0';
    return text;
}

/* What does not hang on the dims: struct, dtype, rank. */
static gpucc_status check_tensor(const struct runtime_context *context, bool output, uint32_t index,
                                 const gpucc_tensor *tensors, size_t alignment, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_tensor *row = output ? &tables->outputs[index] : &tables->inputs[index];
    const gpucc_tensor *tensor = tensor_at(tensors, index);
    char text[160];
    if (tensors->size < sizeof *tensor || tensor->size != tensors->size)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: its struct size is not set",
                            tensor_text(context, output, index, text));
    if (tensor->dtype != (int32_t)row->dtype)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: element type is %s, the model has %s",
                            tensor_text(context, output, index, text),
                            tables_dtype_name((uint32_t)tensor->dtype), tables_dtype_name(row->dtype));
    if (!output && tensor->rank != (int32_t)row->rank)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: rank is %d, the model has %u",
                            tensor_text(context, output, index, text), tensor->rank, row->rank);
    size_t element = tables_dtype_bits(row->dtype) / 8;
    size_t needed = alignment > element ? alignment : element;
    if (needed > 1 && (uintptr_t)tensor->data % needed)
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: its memory is not aligned to %zu bytes",
                            tensor_text(context, output, index, text), needed);
    return GPUCC_OK;
}

gpucc_status check_input(const struct runtime_context *context, uint32_t index, const gpucc_tensor *inputs,
                         struct runtime_error *error)
{
    return check_tensor(context, false, index, inputs, 1, error);
}

/* One element of a host input, as an integer. */
static bool read_element(const gpucc_tensor *tensor, uint32_t element, int64_t *value)
{
    uint64_t need;
    if (!tables_dtype_bytes((uint32_t)tensor->dtype, (int64_t)element + 1, &need) || !tensor->data ||
        tensor->bytes < need)
        return false;
    int32_t narrow;
    switch (tensor->dtype) {
    case GPUCC_I64:
        memcpy(value, (const char *)tensor->data + 8 * (size_t)element, 8);
        return true;
    case GPUCC_I32:
        memcpy(&narrow, (const char *)tensor->data + 4 * (size_t)element, 4);
        *value = narrow;
        return true;
    default:
        return false;
    }
}

gpucc_status bind_symbols(const struct runtime_context *context, const gpucc_tensor *inputs, bool host,
                          int64_t *symbol_values, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    char text[160];
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        const struct bundle_symbol *symbol = &tables->symbols[i];
        if (symbol->source >= BUNDLE_WORD) { /* of a bound: what was prepared */
            symbol_values[i] = symbol->source == BUNDLE_BOUND && context->current
                                   ? context->current->sizes.symbols[i].high
                                   : 0;
            continue;
        }
        const gpucc_tensor *tensor = tensor_at(inputs, symbol->input);
        if (symbol->source == BUNDLE_INPUT_AXIS) {
            symbol_values[i] = tensor->dims[symbol->axis];
        } else if (host) {
            if (!read_element(tensor, symbol->axis, &symbol_values[i]))
                return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                                    "%s: its element %u gives a size but is not there",
                                    tensor_text(context, false, symbol->input, text), symbol->axis);
        } else {
            /* On a device the value cannot be read without waiting: the prepared one holds. */
            struct dim_interval prepared = context->current->sizes.symbols[i];
            if (prepared.low != prepared.high)
                return runtime_fail(
                    error, GPUCC_OUT_OF_RANGE,
                    "%s: the size in its element %u must be prepared as one value, not a range",
                    tensor_text(context, false, symbol->input, text), symbol->axis);
            symbol_values[i] = prepared.low;
        }
    }
    return GPUCC_OK;
}

static gpucc_status evaluate(struct runtime_context *context, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct prepared *prepared = context->current;
    char text[128];
    context->values_valid = false;
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        struct dim_interval range = prepared->sizes.symbols[i];
        int64_t value = context->symbol_values[i];
        if (tables->symbols[i].source == BUNDLE_WORD)
            continue;
        if (value < range.low || value > range.high)
            return runtime_fail(error, GPUCC_OUT_OF_RANGE, "dim \"%s\" is %lld, prepared for %lld:%lld",
                                bundle_symbol_text(tables, i, text, sizeof text), (long long)value,
                                (long long)range.low, (long long)range.high);
    }
    gpucc_status status = context->has_words
                              ? words_evaluate(context, error)
                              : dims_evaluate(tables, context->symbol_values, context->values, error);
    if (status != GPUCC_OK)
        return status;
    for (uint32_t i = 0; i < tables->guard_count && !context->has_words; i++) {
        const struct bundle_guard *guard = &tables->guards[i];
        int64_t left = context->values[guard->left];
        if (guard->kind == BUNDLE_GUARD_EQUAL ? left != context->values[guard->right] : left < 0)
            return sizes_guard_fails(tables, i, error);
    }
    context->values_valid = true;
    return GPUCC_OK;
}

/* Bytes that a tensor's dims need. False: negative or too large. */
static bool tensor_bytes(const struct runtime_context *context, const struct bundle_tensor *row,
                         uint64_t *bytes)
{
    const struct bundle_tables *tables = &context->model->tables;
    int64_t elements = 1;
    for (uint32_t i = 0; i < row->rank; i++) {
        int64_t dim = context->values[tables->indices[row->first_dim + i]];
        if (dim < 0 || (dim > 0 && elements > INT64_MAX / 64 / dim))
            return false;
        elements *= dim;
    }
    return tables_dtype_bytes(row->dtype, elements, bytes);
}

static gpucc_status bind_input(struct runtime_context *context, uint32_t index, const gpucc_tensor *inputs,
                               struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_tensor *row = &tables->inputs[index];
    const gpucc_tensor *tensor = tensor_at(inputs, index);
    char text[160], expected[256];
    for (uint32_t i = 0; i < row->rank; i++) {
        uint32_t dim = tables->indices[row->first_dim + i];
        if (tensor->dims[i] != context->values[dim])
            return runtime_fail(error, GPUCC_OUT_OF_RANGE, "%s: dim %u is %lld, must be %lld (%s)",
                                tensor_text(context, false, index, text), i, (long long)tensor->dims[i],
                                (long long)context->values[dim],
                                bundle_dim_text(tables, dim, expected, sizeof expected));
    }
    if (!tensor_bytes(context, row, &context->input_bytes[index]))
        return runtime_fail(error, GPUCC_OUT_OF_RANGE, "%s: its dims are negative or too large",
                            tensor_text(context, false, index, text));
    if (tensor->bytes < context->input_bytes[index] || (!tensor->data && context->input_bytes[index]))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: the buffer has %zu bytes, its dims need %llu",
                            tensor_text(context, false, index, text), tensor->data ? tensor->bytes : 0,
                            (unsigned long long)context->input_bytes[index]);
    context->input_data[index] = tensor->data;
    return GPUCC_OK;
}

static gpucc_status bind_output(struct runtime_context *context, uint32_t index, gpucc_tensor *outputs,
                                struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    const struct bundle_tensor *row = &tables->outputs[index];
    gpucc_tensor *tensor = (gpucc_tensor *)(void *)((char *)outputs + index * outputs->size);
    char text[160];
    if (!tensor_bytes(context, row, &context->output_bytes[index]))
        return runtime_fail(error, GPUCC_OUT_OF_RANGE, "%s: its dims are negative or too large",
                            tensor_text(context, true, index, text));
    tensor->rank = (int32_t)row->rank;
    for (uint32_t i = 0; i < row->rank; i++)
        tensor->dims[i] = context->values[tables->indices[row->first_dim + i]];
    if (tensor->bytes < context->output_bytes[index] || (!tensor->data && context->output_bytes[index]))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s: the buffer has %zu bytes, its dims need %llu",
                            tensor_text(context, true, index, text), tensor->data ? tensor->bytes : 0,
                            (unsigned long long)context->output_bytes[index]);
    context->output_data[index] = tensor->data;
    return GPUCC_OK;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes && b_bytes && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

/* An output may not lie over an input or another output, but on its own alias exactly. `aliases`: it must. */
static gpucc_status check_overlap(const struct runtime_context *context, bool aliases,
                                  struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    char text[160], other[160];
    for (uint32_t i = 0; i < tables->output_count; i++) {
        uint32_t alias = tables->outputs[i].alias_input;
        const void *data = context->output_data[i];
        uint64_t bytes = context->output_bytes[i];
        if (aliases && alias != BUNDLE_NONE && data != context->input_data[alias] && bytes)
            return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s must be the buffer of %s (--alias)",
                                tensor_text(context, true, i, text),
                                tensor_text(context, false, alias, other));
        for (uint32_t j = 0; j < tables->input_count; j++)
            if (!(j == alias && data == context->input_data[j]) &&
                overlap(data, bytes, context->input_data[j], context->input_bytes[j]))
                return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s overlaps %s",
                                    tensor_text(context, true, i, text),
                                    tensor_text(context, false, j, other));
        for (uint32_t j = 0; j < i; j++)
            if (overlap(data, bytes, context->output_data[j], context->output_bytes[j]))
                return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "%s overlaps %s",
                                    tensor_text(context, true, i, text),
                                    tensor_text(context, true, j, other));
    }
    return GPUCC_OK;
}

static gpucc_status check_tensors(const struct runtime_context *context, const gpucc_tensor *inputs,
                                  const gpucc_tensor *outputs, size_t alignment, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    if ((!inputs && tables->input_count) || (!outputs && tables->output_count))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT, "the inputs or outputs are NULL");
    if ((tables->input_count && inputs->size < sizeof *inputs) ||
        (tables->output_count && outputs->size < sizeof *outputs))
        return runtime_fail(error, GPUCC_INVALID_ARGUMENT,
                            "the struct size of the tensors is not set (use GPUCC_INIT)");
    gpucc_status status = GPUCC_OK;
    for (uint32_t i = 0; i < tables->input_count && status == GPUCC_OK; i++)
        status = check_tensor(context, false, i, inputs, alignment, error);
    for (uint32_t i = 0; i < tables->output_count && status == GPUCC_OK; i++)
        status = check_tensor(context, true, i, outputs, alignment, error);
    return status;
}

gpucc_status bind_tensors(struct runtime_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs,
                          bool aliases, size_t alignment, struct runtime_error *error)
{
    const struct bundle_tables *tables = &context->model->tables;
    gpucc_status status = check_tensors(context, inputs, outputs, alignment, error);
    if (status != GPUCC_OK)
        return status;
    bool same = context->values_valid;
    for (uint32_t i = 0; i < tables->symbol_count && same; i++)
        same = tables->symbols[i].source >= BUNDLE_WORD || /* as prepared */
               (tables->symbols[i].source == BUNDLE_INPUT_AXIS &&
                context->symbol_values[i] ==
                    tensor_at(inputs, tables->symbols[i].input)->dims[tables->symbols[i].axis]);
    if (!same) {
        context->values_valid = false;
        status = bind_symbols(context, inputs, context->ordinal == GPUCC_CPU, context->symbol_values, error);
        if (status == GPUCC_OK)
            status = evaluate(context, error);
    }
    if (status == GPUCC_OK && same && context->words_narrowed) /* ranges once more */
        status = words_evaluate(context, error);
    for (uint32_t i = 0; i < tables->input_count && status == GPUCC_OK; i++)
        status = bind_input(context, i, inputs, error);
    for (uint32_t i = 0; i < tables->output_count && status == GPUCC_OK; i++)
        status = bind_output(context, i, outputs, error);
    return status == GPUCC_OK ? check_overlap(context, aliases, error) : status;
}

/* An empty arena is NULL, and offsets in it are 0. */
static void *memory_at(void *memory, uint64_t offset)
{
    return offset ? (char *)memory + offset : memory;
}

void bind_buffers(struct runtime_context *context)
{
    const struct bundle_buffer *buffers = plan_buffers(context);
    for (uint32_t i = 0; i < context->plan->buffer_count; i++) {
        switch (buffers[i].kind) {
        case BUNDLE_INPUT:
            context->buffers[i] = context->input_data[buffers[i].index];
            break;
        case BUNDLE_OUTPUT:
            context->buffers[i] = context->output_data[buffers[i].index];
            break;
        case BUNDLE_CONSTANT:
            context->buffers[i] = weights_constant(context->weights, buffers[i].index);
            break;
        default:
            context->buffers[i] = memory_at(context->arena, context->current->offsets[i]);
            break;
        }
    }
}

bool copy_is_early(const struct runtime_context *context, const struct bundle_copy *copy)
{
    const struct bundle_buffer *from = &plan_buffers(context)[copy->from],
                               *to = &plan_buffers(context)[copy->to];
    bool aliased =
        to->kind != BUNDLE_OUTPUT || context->model->tables.outputs[to->index].alias_input != BUNDLE_NONE;
    return (from->kind == BUNDLE_INPUT || from->kind == BUNDLE_CONSTANT) && !aliased;
}

uint64_t buffer_bytes_now(const struct runtime_context *context, uint32_t buffer)
{
    const struct bundle_buffer *row = &plan_buffers(context)[buffer];
    uint64_t bytes = 0;
    tables_dtype_bytes(row->dtype, context->values[row->elements], &bytes);
    return bytes;
}

void shrink_outputs(struct runtime_context *context)
{
    const struct bundle_tables *tables = &context->model->tables;
    for (uint32_t i = 0; i < tables->output_count; i++) {
        const struct bundle_tensor *row = &tables->outputs[i];
        int64_t elements = 1; /* no more than there is memory for */
        for (uint32_t k = 0; k < row->rank; k++)
            elements *= context->words_now.bounds[tables->indices[row->first_dim + k]].high;
        tables_dtype_bytes(row->dtype, elements, &context->output_bytes[i]);
    }
}

gpucc_status context_enqueue(struct runtime_context *context, void *stream, const gpucc_tensor *inputs,
                             gpucc_tensor *outputs, struct runtime_error *error)
{
    if (context->broken != GPUCC_OK)
        return runtime_fail(error, context->broken, "the context had a device error before");
    if (!context->current)
        return runtime_fail(error, GPUCC_NOT_PREPARED, "gpucc_prepare was not called, or failed");
    gpucc_status status =
        bind_tensors(context, inputs, outputs, true, context->ordinal == GPUCC_CPU ? 1 : 16, error);
    if (status != GPUCC_OK)
        return status;
    bind_buffers(context);
    status = context->device->enqueue(context, stream, error);
    context->statistics.enqueues += status == GPUCC_OK;
    context->words_ran = status == GPUCC_OK && context->plan->word_count;
    if (context->words_ran && context->ordinal == GPUCC_CPU) { /* it has run */
        status = words_take(context, error);
        if (status == GPUCC_OK)
            words_write_dims(context, outputs);
    }
    return context_end(context, status);
}

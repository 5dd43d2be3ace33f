/* Arena buffers become items of the arena planner; those that share memory become one item of the larger
 * size. */
#include "runtime/plan_memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/arena_plan.h"

static gpucc_status buffer_bytes(const struct bundle_buffer *buffer, const struct dim_interval *bounds,
                                 uint64_t *bytes, struct runtime_error *error)
{
    struct dim_interval elements = bounds[buffer->elements];
    /* A branch that does not run at these sizes may hold tensors that there are not. */
    const int64_t most = elements.high > 0 ? elements.high : 0;
    if (!dim_interval_known(elements) || !tables_dtype_bytes(buffer->dtype, most, bytes) ||
        *bytes > INT64_MAX / 4)
        return runtime_fail(error, GPUCC_OUT_OF_RANGE,
                            "the size of an intermediate tensor does not fit 64 bits");
    return GPUCC_OK;
}

gpucc_status plan_memory_place(const struct bundle_tables *tables, const struct bundle_plan *plan,
                               const struct dim_interval *bounds, uint64_t *offsets, uint64_t *arena_bytes,
                               struct runtime_error *error)
{
    const struct bundle_buffer *buffers = &tables->buffers[plan->first_buffer];
    uint32_t count = plan->buffer_count;
    /* One item a buffer; those without memory of their own have no bytes. */
    struct arena_item *items = calloc((size_t)count + 1, sizeof *items);
    uint32_t *order = calloc(2 * (size_t)count + 2, sizeof *order);
    gpucc_status status = GPUCC_OK;
    if (!items || !order)
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while planning the arena");
    for (uint32_t i = 0; i < count && status == GPUCC_OK; i++) {
        if (buffers[i].kind != BUNDLE_ARENA)
            continue;
        struct arena_item *item = &items[buffers[i].shares == BUNDLE_NONE ? i : buffers[i].shares];
        uint64_t bytes = 0;
        status = buffer_bytes(&buffers[i], bounds, &bytes, error);
        item->bytes = bytes > item->bytes ? bytes : item->bytes;
        if (buffers[i].shares == BUNDLE_NONE) {
            item->first = buffers[i].first;
            item->last = buffers[i].last;
        }
    }
    if (status == GPUCC_OK && !arena_plan(items, count, BUNDLE_ALIGNMENT, order, arena_bytes))
        status = runtime_fail(error, GPUCC_OUT_OF_RANGE, "the arena's size does not fit 64 bits");
    for (uint32_t i = 0; i < count && status == GPUCC_OK; i++)
        if (buffers[i].kind == BUNDLE_ARENA)
            offsets[i] = items[buffers[i].shares == BUNDLE_NONE ? i : buffers[i].shares].offset;
    free(items);
    free(order);
    return status;
}

uint64_t plan_memory_weights(const struct bundle_tables *tables, const struct bundle_plan *plan,
                             unsigned char *used)
{
    memset(used, 0, tables->constant_count);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const struct bundle_buffer *buffer = &tables->buffers[plan->first_buffer + i];
        if (buffer->kind != BUNDLE_CONSTANT || used[buffer->index])
            continue;
        used[buffer->index] = 1;
        sum += (tables->constants[buffer->index].bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT *
               BUNDLE_ALIGNMENT;
    }
    return sum;
}

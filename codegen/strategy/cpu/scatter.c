/* Scatters on a CPU: the ordered axis is a serial loop, so that updates come in their order. Workers share
 * the parallel axes, of which the last one is the vector axis where the slices are long. */
#include "codegen/strategy/cpu/ordered.h"

enum { WIDE = 8 };

void cpu_build_scatter(const struct strategy_context *context, uint32_t number, struct lowered_group *out)
{
    const struct nest *nest = &context->group->body.nests.items[number];
    struct dims *dims = context->group->body.pool->dims;
    struct emitter emitter;
    struct flat_nest flat;
    struct block body, inner;
    uint32_t axes[MAX_AXES], count = nest->rank;
    flat_nest_init(&flat, &context->group->body, number, 0);
    ordered_begin(&emitter, context, number, true, true, "scatter");
    emitter.kernel->memories.items[emitter.memories[nest->stores[0].buffer]].read = true;
    const bool wide =
        count > 0 && dim_hint(dims, flat.extents[count - 1]) >= WIDE && has_unit_store(&flat, count - 1);
    const uint32_t vector = wide ? --count : NO_AXIS;
    for (uint32_t i = 0; i < count; i++)
        axes[i] = i;
    struct block top = {.kernel = emitter.kernel, .at = &emitter.kernel->body};
    emit_parallel(&emitter, &top, &flat, count, axes, vector, wide ? COLUMN_CHUNK : 0, &body);
    emit_axis(&emitter, &body, &flat, nest->rank, LOOP_SERIAL, &inner);
    body = inner;
    if (wide)
        emit_axis(&emitter, &body, &flat, vector, LOOP_VECTORISE, &inner);
    emit_stores(&emitter, &inner, &flat);
    ordered_end(&emitter, nest, out);
}

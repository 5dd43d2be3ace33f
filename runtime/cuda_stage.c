/* Host memory to the device and back through a ring of pinned memory, so that copies are asynchronous and the
 * CPU's part of a piece overlaps with the device's part of the piece before. The ring has two halves; a half
 * is filled again when the event that was recorded behind its last copy has passed. What fits into the ring
 * waits for nothing.
 *
 * How tensors are cut into pieces hangs on their sizes alone: outputs are walked over twice, once to queue
 * the copies and once behind it to take the pieces out. */
#include <string.h>

#include "runtime/cuda_device.h"

enum { MOST_RING_BYTES = 8 << 20, EVENT_WITHOUT_TIME = 2 /* CU_EVENT_DISABLE_TIMING */ };

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
}

/* The bytes of some tensors, piece by piece. */
struct walk {
    const struct cuda_stage *stage;
    const uint64_t *sizes; /* [count] */
    uint32_t count, tensor;
    uint64_t offset; /* in the tensor */
    uint64_t turn;   /* halves that were filled before the current one */
    size_t used;     /* of the current half */
};

struct piece {
    uint32_t tensor;
    uint64_t offset;
    size_t bytes;
    char *staged;
    uint64_t turn;
};

static bool next_piece(struct walk *walk, struct piece *piece)
{
    const size_t half = walk->stage->half_bytes;
    while (walk->tensor < walk->count && walk->offset == walk->sizes[walk->tensor]) {
        walk->tensor++;
        walk->offset = 0;
    }
    if (walk->tensor == walk->count)
        return false;
    if (walk->used == half) {
        walk->turn++;
        walk->used = 0;
    }
    const uint64_t left = walk->sizes[walk->tensor] - walk->offset;
    const size_t room = half - walk->used;
    piece->tensor = walk->tensor;
    piece->offset = walk->offset;
    piece->bytes = left < room ? (size_t)left : room;
    piece->staged = (char *)walk->stage->memory + (walk->turn & 1) * half + walk->used;
    piece->turn = walk->turn;
    walk->offset += piece->bytes;
    walk->used += (size_t)rounded(piece->bytes);
    return true;
}

static uint64_t sum(const uint64_t *sizes, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += rounded(sizes[i]);
    return total;
}

void cuda_stage_release(const struct cuda_functions *cuda, struct cuda_stage *stage)
{
    if (stage->memory)
        cuda->host_release(stage->memory);
    for (int i = 0; i < 2; i++)
        if (stage->left[i])
            cuda->event_destroy(stage->left[i]);
    *stage = (struct cuda_stage){0};
}

gpucc_status cuda_stage_grow(struct runtime_context *context, struct runtime_error *error)
{
    struct cuda_state *state = cuda_state_of(context);
    struct cuda_stage *stage = &state->stage;
    const struct bundle_tables *tables = &context->model->tables;
    uint64_t in = sum(context->input_bytes, tables->input_count),
             out = sum(context->output_bytes, tables->output_count), need = in > out ? in : out;
    if (need > MOST_RING_BYTES)
        need = MOST_RING_BYTES;
    const size_t half = (size_t)rounded((need + 1) / 2);
    gpucc_status status = GPUCC_OK;
    if (stage->half_bytes >= half)
        return status;
    cuda_stage_release(state->cuda, stage);
    for (int i = 0; i < 2 && status == GPUCC_OK; i++)
        status = cuda_done(context, state->cuda->event_create(&stage->left[i], EVENT_WITHOUT_TIME),
                           CUDA_NAME(event_create), "cannot create an event", error);
    if (status == GPUCC_OK)
        status = cuda_done(context, state->cuda->host_allocate(&stage->memory, 2 * half, 0),
                           CUDA_NAME(host_allocate), "cannot allocate pinned memory", error);
    if (status != GPUCC_OK) {
        cuda_stage_release(state->cuda, stage);
        return status;
    }
    stage->half_bytes = half;
    context->statistics.allocations++;
    return GPUCC_OK;
}

/* From one half to the next: marks the end of the old one's copies, and waits for those that were in the new
 * one. */
static gpucc_status change_half(struct runtime_context *context, uint64_t turn, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    gpucc_status status =
        cuda_done(context, state->cuda->event_record(state->stage.left[(turn - 1) & 1], state->stream),
                  CUDA_NAME(event_record), "cannot record an event", error);
    if (status == GPUCC_OK && turn >= 2)
        status = cuda_done(context, state->cuda->event_synchronise(state->stage.left[turn & 1]),
                           CUDA_NAME(event_synchronise), "a copy failed", error);
    return status;
}

gpucc_status cuda_stage_in(struct runtime_context *context, char *const *to, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct walk walk = {
        .stage = &state->stage, .sizes = context->input_bytes, .count = context->model->tables.input_count};
    struct piece piece;
    uint64_t turn = 0;
    gpucc_status status = GPUCC_OK;
    while (status == GPUCC_OK && next_piece(&walk, &piece)) {
        if (piece.turn != turn)
            status = change_half(context, turn = piece.turn, error);
        if (status != GPUCC_OK)
            break;
        memcpy(piece.staged, (const char *)context->input_data[piece.tensor] + piece.offset, piece.bytes);
        status = cuda_done(context,
                           state->cuda->copy_in((uintptr_t)to[piece.tensor] + piece.offset, piece.staged,
                                                piece.bytes, state->stream),
                           CUDA_NAME(copy_in), "cannot copy an input", error);
    }
    return status;
}

/* Takes the pieces of turns below `limit` to where they belong. */
static void deliver(struct walk *walk, uint64_t limit, void *const *host)
{
    struct walk ahead = *walk;
    struct piece piece;
    while (next_piece(&ahead, &piece) && piece.turn < limit) {
        memcpy((char *)host[piece.tensor] + piece.offset, piece.staged, piece.bytes);
        *walk = ahead;
    }
}

gpucc_status cuda_stage_out(struct runtime_context *context, void *const *host, struct runtime_error *error)
{
    const struct cuda_state *state = cuda_state_of(context);
    struct walk ahead = {.stage = &state->stage,
                         .sizes = context->output_bytes,
                         .count = context->model->tables.output_count},
                behind = ahead;
    struct piece piece;
    uint64_t turn = 0;
    gpucc_status status = GPUCC_OK;
    while (status == GPUCC_OK && next_piece(&ahead, &piece)) {
        if (piece.turn != turn) {
            status = change_half(context, turn = piece.turn, error);
            if (status != GPUCC_OK)
                break;
            deliver(&behind, turn - 1, host);
        }
        status = cuda_done(context,
                           state->cuda->copy_out(piece.staged,
                                                 (uintptr_t)context->output_data[piece.tensor] + piece.offset,
                                                 piece.bytes, state->stream),
                           CUDA_NAME(copy_out), "cannot copy an output", error);
    }
    if (status == GPUCC_OK)
        status = cuda_done(context, state->cuda->stream_synchronise(state->stream),
                           CUDA_NAME(stream_synchronise), "the kernels failed", error);
    if (status == GPUCC_OK)
        deliver(&behind, UINT64_MAX, host);
    return status;
}

/* One thread's execution state. Common to both kinds of device: sizes, arena, weights, binding of the
 * caller's tensors; a device is a table of functions. */
#ifndef GPUCC_RUNTIME_CONTEXT_H
#define GPUCC_RUNTIME_CONTEXT_H

#include "runtime/model.h"
#include "runtime/sizes.h"
#include "runtime/weights.h"
#include "runtime/words.h"

enum { PREPARED_KEPT = 8 };

/* What `prepare` made for one range of sizes. */
struct prepared {
    struct sizes sizes;
    uint64_t *offsets; /* [plan's buffers]: in the arena */
    uint64_t arena_bytes;
    uint64_t stamp;        /* of its last use; 0: an empty slot */
    void *device_prepared; /* the device's own, or NULL */
};

struct device {
    gpucc_status (*prepare)(struct runtime_context *context, struct prepared *prepared,
                            struct runtime_error *error);
    void (*forget)(struct runtime_context *context, struct prepared *prepared);
    /* All of the plan's buffers are in context->buffers, all dims in context->values. The words are in
     * context->words when the stream has come there. */
    gpucc_status (*enqueue)(struct runtime_context *context, void *stream, struct runtime_error *error);
    void *(*allocate)(struct runtime_context *context, size_t bytes, struct runtime_error *error);
    void (*release)(struct runtime_context *context, void *memory, size_t bytes);
    gpucc_status (*put)(struct runtime_context *context, void *to, const void *data, size_t bytes,
                        struct runtime_error *error);
    /* Moves inputs, runs, moves outputs, waits. The tensors are bound; input_data and output_data are the
     * host's. */
    gpucc_status (*run)(struct runtime_context *context, struct runtime_error *error);
    void (*wait)(struct runtime_context *context); /* until memory may be given back */
    void (*destroy)(struct runtime_context *context);
};

struct runtime_context {
    struct runtime_model *model;
    const struct bundle_plan *plan;
    const struct device *device;
    void *device_state;
    int32_t ordinal; /* CUDA device or GPUCC_CPU */
    bool own_allocator;
    gpucc_allocator allocator;
    void *weights_owner; /* see weights_place */
    struct weights *weights;
    struct prepared kept[PREPARED_KEPT];
    struct prepared *current; /* NULL: not prepared */
    uint64_t clock;
    void *arena;
    uint64_t arena_bytes;
    bool arena_owned;
    gpucc_status broken; /* a device error: every later call returns it */

    /* Of the last binding. */
    int64_t *symbol_values, *values; /* [symbol_count], [dim_count] */
    bool values_valid;
    void **input_data, **output_data;     /* [inputs], [outputs] */
    uint64_t *input_bytes, *output_bytes; /* what the dims need */
    void **buffers;                       /* [plan's buffers] */
    /* Sizes that the model computes, when it does. */
    bool has_words;
    struct sizes words_now; /* ranges of all symbols and dims, those of one value once taken */
    int64_t *words; /* [plan's words]: what the last run computed, when it is done; the device's memory */
    bool words_ran, words_taken;
    bool words_narrowed; /* words_now is no longer what may be but what was */
    gpucc_statistics statistics;
};

extern const struct device cpu_device;
extern const struct device cuda_device;
/* Choose the plan and fill context's plan, device, device_state, ordinal, weights_owner. */
gpucc_status cpu_device_create(struct runtime_context *context, const gpucc_context_options *options,
                               struct runtime_error *error);
gpucc_status cuda_device_create(struct runtime_context *context, const gpucc_context_options *options,
                                struct runtime_error *error);
/* The driver's functions, opened once a model. */
gpucc_status cuda_functions_of(struct runtime_model *model, const struct cuda_functions **functions,
                               struct runtime_error *error);

/* What prepare, enqueue and run return: a device error, wherever it came from, is the context's last word,
 * also where all that was seen of it is memory that was not given. */
static inline gpucc_status context_end(struct runtime_context *context, gpucc_status status)
{
    if (status == GPUCC_DEVICE_ERROR)
        context->broken = status;
    return status != GPUCC_OK && context->broken != GPUCC_OK ? context->broken : status;
}

gpucc_status context_create(struct runtime_model *model, const gpucc_context_options *options,
                            struct runtime_context **context, struct runtime_error *error);
void context_destroy(struct runtime_context *context);
gpucc_status context_prepare(struct runtime_context *context, const gpucc_dims *dims,
                             const gpucc_workspace *workspace, struct runtime_error *error);
/* The model's weights as they are now; what is enqueued keeps the old ones until it is done. */
gpucc_status context_take_weights(struct runtime_context *context, struct runtime_error *error);
/* context_prepare for symbols that are known already; takes `sizes` over (and empties it). */
gpucc_status context_prepare_sizes(struct runtime_context *context, struct sizes *sizes,
                                   const gpucc_workspace *workspace, struct runtime_error *error);
gpucc_status context_workspace_size(const struct runtime_model *model, const gpucc_context_options *options,
                                    const gpucc_dims *dims, size_t *bytes, struct runtime_error *error);
gpucc_status context_enqueue(struct runtime_context *context, void *stream, const gpucc_tensor *inputs,
                             gpucc_tensor *outputs, struct runtime_error *error);
gpucc_status context_run(struct runtime_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs,
                         struct runtime_error *error);
gpucc_status context_output_dims(struct runtime_context *context, size_t index, int32_t *rank, int64_t *dims,
                                 struct runtime_error *error);
gpucc_status context_statistics(const struct runtime_context *context, gpucc_statistics *statistics,
                                struct runtime_error *error);

/* Memory by the caller's allocator or the device's; counted. */
void *context_allocate(struct runtime_context *context, size_t bytes, struct runtime_error *error);
void context_release(struct runtime_context *context, void *memory, size_t bytes);

/* enqueue.c: checks what does not hang on the dims of one input: struct size, element type, rank. */
gpucc_status check_input(const struct runtime_context *context, uint32_t index, const gpucc_tensor *inputs,
                         struct runtime_error *error);
/* Checks the tensors, evaluates the dims, writes the outputs' dims, fills the arrays "of the last
 * binding" but `buffers`. `aliases`: aliased tensors must be the same memory (else `run` copies). */
gpucc_status bind_tensors(struct runtime_context *context, const gpucc_tensor *inputs, gpucc_tensor *outputs,
                          bool aliases, size_t alignment, struct runtime_error *error);
/* Reads what the symbols are from the inputs: axes, and values where `host` says that data can be read. */
gpucc_status bind_symbols(const struct runtime_context *context, const gpucc_tensor *inputs, bool host,
                          int64_t *symbol_values, struct runtime_error *error);
/* Fills context->buffers from the bound data, the arena and the weights. */
void bind_buffers(struct runtime_context *context);
/* Whether a copy runs before the launches (see struct bundle_copy). */
bool copy_is_early(const struct runtime_context *context, const struct bundle_copy *copy);
/* The outputs' bytes at the sizes that the run had. */
void shrink_outputs(struct runtime_context *context);
/* Bytes of a buffer at the bound dims. */
uint64_t buffer_bytes_now(const struct runtime_context *context, uint32_t buffer);

static inline const struct bundle_buffer *plan_buffers(const struct runtime_context *context)
{
    return &context->model->tables.buffers[context->plan->first_buffer];
}

#endif

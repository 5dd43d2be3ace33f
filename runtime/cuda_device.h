/* CUDA: what the files of the device share. */
#ifndef GPUCC_RUNTIME_CUDA_DEVICE_H
#define GPUCC_RUNTIME_CUDA_DEVICE_H

#include "runtime/context.h"
#include "runtime/cuda_driver.h"

struct cuda_graph;

/* Pinned memory in two halves, used in turn. */
struct cuda_stage {
    void *memory; /* 2 * half_bytes */
    size_t half_bytes;
    cuda_event left[2]; /* recorded behind the last copy of a half */
};

struct cuda_state {
    const struct cuda_functions *cuda;
    cuda_device_number device;
    cuda_context context;
    bool retained; /* the primary context, to be released */
    uint32_t image_kind;
    cuda_module *modules;     /* [images of the plan]; NULL where not loaded */
    cuda_function *functions; /* [kernels of the plan] */
    bool modules_loaded;
    cuda_stream stream; /* of gpucc_run, uploads and waits */
    /* gpucc_run: device memory of the inputs and outputs, and pinned memory on the way. */
    void *io;
    size_t io_bytes;
    struct cuda_stage stage;
    char **device_inputs; /* [inputs] */
    void **host_outputs;  /* [outputs] */
};

static inline struct cuda_state *cuda_state_of(const struct runtime_context *context)
{
    return context->device_state;
}

/* Makes the context current, and gives the caller's back. */
gpucc_status cuda_enter(const struct cuda_state *state, struct runtime_error *error);
/* The same for work that must not go on after a failure: it breaks the context. */
gpucc_status cuda_enter_for(struct runtime_context *context, struct runtime_error *error);
void cuda_leave(const struct cuda_state *state);
/* The status of an operation on the device; remembers errors that break the context. */
gpucc_status cuda_done(struct runtime_context *context, cuda_result result, const char *function,
                       const char *action, struct runtime_error *error);

/* cuda_graph.c: one launch graph for one prepared range. */
gpucc_status cuda_graph_build(struct runtime_context *context, const struct prepared *prepared,
                              struct cuda_graph **graph, struct runtime_error *error);
/* `cuda` NULL: the CUDA context is lost, only our own memory can be given back. */
void cuda_graph_release(const struct cuda_functions *cuda, struct cuda_graph *graph);
/* Patches what changed since the last launch, then launches; into a capturing stream kernel by kernel. */
gpucc_status cuda_graph_run(struct runtime_context *context, struct cuda_graph *graph, cuda_stream stream,
                            struct runtime_error *error);
/* cuda_stage.c: for the bound dims, pinned memory; the inputs' data into `to`; the outputs' data into `host`,
 * which waits for the stream. */
gpucc_status cuda_stage_grow(struct runtime_context *context, struct runtime_error *error);
gpucc_status cuda_stage_in(struct runtime_context *context, char *const *to, struct runtime_error *error);
gpucc_status cuda_stage_out(struct runtime_context *context, void *const *host, struct runtime_error *error);
void cuda_stage_release(const struct cuda_functions *cuda, struct cuda_stage *stage);
/* cuda_run.c */
gpucc_status cuda_run(struct runtime_context *context, struct runtime_error *error);

#endif

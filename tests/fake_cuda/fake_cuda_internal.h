/* What the files of the fake driver share. */
#ifndef GPUCC_TESTS_FAKE_CUDA_INTERNAL_H
#define GPUCC_TESTS_FAKE_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/cuda_driver.h"
#include "tests/fake_cuda/fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))

/* Prototypes, from the table that the runtime uses. */
#define CUDA_SYMBOL(field, name, parameters)     EXPORT cuda_result name parameters;
#define CUDA_NEW_SYMBOL(field, name, parameters) CUDA_SYMBOL(field, name, parameters)
#include "runtime/cuda_symbols.def"
#undef CUDA_SYMBOL
#undef CUDA_NEW_SYMBOL
EXPORT const struct fake_controls *fake_cuda_controls(void);

enum kind {
    KIND_CONTEXT = 0x4c0de01,
    KIND_MODULE,
    KIND_FUNCTION,
    KIND_STREAM,
    KIND_GRAPH,
    KIND_NODE,
    KIND_EXECUTABLE,
    KIND_EVENT
};

enum {
    MAX_NODES = 4096,
    MAX_MEMORY = 4096,
    MAX_LAUNCHES = 4096,
    MAX_NAMES = 64,
    MAX_COPIES = 1024,
    MAX_DEVICES = 8,
    INVALID = 1
};

struct object {
    uint32_t kind; /* 0 when released */
    struct object *parent;
    char name[64];
    struct object *next;        /* functions of a module */
    struct object *made_before; /* the list of all, so that none is lost */
    uint32_t count;
    bool capturing, enabled;
    /* nodes and what executables hold of them */
    struct fake_launch launch;
    struct object *function;
    struct object **nodes; /* of a graph; of an executable: those of its graph and of the bodies in it */
    struct object *body;   /* conditional nodes: a graph */
    unsigned handles;      /* graphs: conditional handles made for it */
    struct fake_launch *launches;
    bool *disabled;
};

/* A copy between host and device that was queued and not yet made. */
struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

struct memory {
    void *data;
    size_t bytes;
    bool host;
};

/* What went wrong stands in the message; ends the program. */
void fake_wrong(const char *function, const char *what);
/* Counts the call; the error that it must give, or 0. */
int fake_enter(const char *name);
bool fake_has_context(void);
struct object *fake_make(enum kind kind, struct object *parent);
void fake_unmake(struct object *object);
/* The object, which must be alive and of that kind. */
struct object *fake_need(const char *function, const void *pointer, enum kind kind);
void fake_set_launch(const char *caller, struct fake_launch *launch, const struct cuda_kernel_node *node);
void fake_record(const struct fake_launch *launch, int from_graph);

#define ENTER()                                                                                              \
    do {                                                                                                     \
        int enter_result = fake_enter(__func__);                                                             \
        if (enter_result)                                                                                    \
            return enter_result;                                                                             \
    } while (0)
#define NEEDS_CONTEXT()                                                                                      \
    do {                                                                                                     \
        if (!fake_has_context())                                                                             \
            fake_wrong(__func__, "no context is current");                                                   \
    } while (0)

#endif

/* The wire scan: what stands between an untrusted file and protobuf-c.
 *
 * It walks the protobuf message with an explicit stack and a table of message kinds, refuses everything that
 * is malformed or beyond a limit, and writes a smaller message for protobuf-c: without unknown fields,
 * without what a compiler has no use for (see wire_table.c), and without tensor payloads. A payload is never
 * loaded: where it stands in the file is recorded, and the tensor carries the record's index as
 * TensorProto.payload_index.
 *
 * It must not trust that two reads of the file give the same bytes: a file that changes underneath is
 * refused, never written past a buffer. */
#ifndef GPUCC_FRONTEND_WIRE_H
#define GPUCC_FRONTEND_WIRE_H

#include "ir/support/arena.h"
#include "ir/support/diag.h"

/* Where the bytes come from: a file or memory. read: exactly `bytes` at `offset`, or false. */
struct source {
    bool (*read)(void *user, uint64_t offset, void *data, size_t bytes);
    void *user;
    uint64_t bytes;
};

/* A stretch of a tensor's payload in the file. Packed: the elements alone. Not packed: each element with its
 * tag. */
struct payload_chunk {
    uint64_t offset, bytes;
    bool packed;
};

/* One tensor's payload. */
struct payload {
    uint32_t field; /* its number in TensorProto: 4, 5, 7, 9, 10 or 11 */
    bool mixed;     /* more than one payload field has data: not a valid tensor */
    uint32_t first_chunk, chunk_count;
};

struct wire_limits {
    uint32_t graphs;        /* nested graphs */
    uint32_t types;         /* nested types */
    uint32_t nodes;         /* in the whole file */
    uint64_t name_bytes;    /* of one string */
    uint64_t message_bytes; /* of the rewritten message */
};
/* protobuf-c keeps lengths in an int and recurses once a message; 64 graphs, each inside an attribute of a
 * node, and 64 types are some 320 frames. */
#define WIRE_DEFAULT_LIMITS                                                                                  \
    {                                                                                                        \
        .graphs = 64, .types = 64, .nodes = 1000000, .name_bytes = 64 * 1024,                                \
        .message_bytes = 512 * 1024 * 1024                                                                   \
    }

struct wire_message {
    unsigned char *data; /* the message for protobuf-c */
    size_t bytes;
    struct payload *payloads;
    struct payload_chunk *chunks;
    uint32_t payload_count, chunk_count;
};

struct wire_error {
    enum diag_code code;
    uint64_t offset;    /* in the file */
    const char *reason; /* static text */
};

/* Memory comes by arena_try_alloc; a refusal is E0103. The records of payloads live in `arena`, the message
 * itself and what the scan needs in `scratch`, which protobuf-c's copy makes needless. */
bool wire_scan(const struct source *source, const struct wire_limits *limits, struct arena *arena,
               struct arena *scratch, struct wire_message *message, struct wire_error *error);

#endif

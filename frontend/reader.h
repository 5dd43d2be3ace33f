/* From a file to protobuf-c's structs. This is the one door through which protobuf-c enters the program:
 * importer files get the message types by including this header. Everything untrusted passes the wire scan
 * first; protobuf-c's memory comes from an arena with a limit and a refusal reaches it as NULL, never as a
 * jump through its frames.
 *
 * The model's structs live until reader_close; source files (struct source_files) outlive it. */
#ifndef GPUCC_FRONTEND_READER_H
#define GPUCC_FRONTEND_READER_H

#include "frontend/onnx.pb-c.h"
#include "frontend/source_files.h"
#include "frontend/wire.h"

struct memory_source {
    const unsigned char *data;
    uint64_t bytes;
};

struct reader {
    struct arena arena; /* with a limit; arena_try_alloc only */
    struct source_files *files;
    int fd;                       /* of the model; -1: it is in memory */
    struct memory_source *memory; /* NULL: it is in a file */
    struct source source;
    struct wire_message message; /* its payload records; the bytes are gone */
    const Onnx__ModelProto *model;
};

struct reader_limits {
    struct wire_limits wire;
    size_t memory_bytes; /* beyond payloads */
};
extern const struct reader_limits reader_default_limits;

/* Opens and reads the model at `path`. False: reported (E0101, E0102, E0103). reader_close in either case. */
bool reader_open(struct reader *reader, struct diagnostics *diagnostics, struct source_files *files,
                 const char *path, const struct reader_limits *limits);
/* The same for a model in memory, which must outlive the graph. */
bool reader_open_memory(struct reader *reader, struct diagnostics *diagnostics, struct source_files *files,
                        const void *data, size_t bytes, const struct reader_limits *limits);
void reader_close(struct reader *reader);

#endif

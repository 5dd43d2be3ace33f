/* Scan, unpack, and the errors of both in words. */
#include "frontend/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ir/support/file.h"

const struct reader_limits reader_default_limits = {
    .wire = WIRE_DEFAULT_LIMITS,
    .memory_bytes = (size_t)2 * 1024 * 1024 * 1024,
};

static bool read_file(void *user, uint64_t offset, void *data, size_t bytes)
{
    const int *fd = user;
    return file_read_at(*fd, offset, data, bytes);
}

static bool read_memory(void *user, uint64_t offset, void *data, size_t bytes)
{
    const struct memory_source *memory = user;
    if (offset > memory->bytes || bytes > memory->bytes - offset)
        return false;
    if (bytes)
        memcpy(data, memory->data + offset, bytes);
    return true;
}

/* protobuf-c's view of the arena. */
struct budget {
    struct arena *arena;
    bool refused;
};

static void *budget_allocate(void *user, size_t bytes)
{
    struct budget *budget = user;
    void *memory = arena_try_alloc(budget->arena, bytes);
    budget->refused = budget->refused || !memory;
    return memory;
}

static void budget_free(void *user, void *memory)
{
    (void)user;
    (void)memory;
}

/* Must not jump: the scratch arena is live. */
static bool unpack(struct reader *reader, const struct reader_limits *limits, struct arena *scratch,
                   struct wire_error *error)
{
    if (!wire_scan(&reader->source, &limits->wire, &reader->arena, scratch, &reader->message, error))
        return false;
    reader->arena.limit = limits->memory_bytes > scratch->total ? limits->memory_bytes - scratch->total : 1;
    struct budget budget = {&reader->arena, false};
    ProtobufCAllocator allocator = {budget_allocate, budget_free, &budget};
    reader->model = onnx__model_proto__unpack(&allocator, reader->message.bytes, reader->message.data);
    if (reader->model && reader->model->graph)
        return true;
    *error = (struct wire_error){.code = DIAG_file_not_onnx};
    if (reader->model)
        error->reason = "the file holds no graph";
    else if (budget.refused)
        *error =
            (struct wire_error){DIAG_file_limit, 0, "reading the model takes more memory than the limit"};
    else
        error->reason = "protobuf cannot read it";
    return false;
}

static bool scan_and_unpack(struct reader *reader, struct diagnostics *diagnostics,
                            const struct reader_limits *limits)
{
    struct arena scratch;
    struct wire_error error;
    arena_init(&scratch, reader->arena.allocator, NULL);
    scratch.limit = reader->arena.limit = limits->memory_bytes;
    bool done = unpack(reader, limits, &scratch, &error);
    if (!done && (scratch.exhausted || reader->arena.exhausted))
        error = (struct wire_error){DIAG_out_of_memory, 0, "out of memory while reading the model"};
    reader->message.data = NULL;
    arena_release(&scratch);
    if (!done) {
        const char *what = error.code == DIAG_file_not_onnx ? "this is no ONNX model, or is damaged: " : "";
        if (error.offset)
            diag_error(diagnostics, error.code, NULL, "%s%s (at byte %" PRIu64 ")", what, error.reason,
                       error.offset);
        else
            diag_error(diagnostics, error.code, NULL, "%s%s", what, error.reason);
    }
    return done;
}

static void start(struct reader *reader, struct source_files *files)
{
    *reader = (struct reader){.files = files, .fd = -1};
    arena_init(&reader->arena, files->arena->allocator, NULL);
}

bool reader_open(struct reader *reader, struct diagnostics *diagnostics, struct source_files *files,
                 const char *path, const struct reader_limits *limits)
{
    start(reader, files);
    uint64_t bytes;
    int *fd = arena_new(files->arena, int);
    if (!source_files_open_model(files, path, fd, &bytes)) {
        diag_error(diagnostics, DIAG_file_unreadable, NULL, "the model cannot be opened: %s",
                   errno == EINVAL ? "not a regular file" : strerror(errno));
        return false;
    }
    reader->fd = *fd;
    reader->source = (struct source){read_file, fd, bytes};
    return scan_and_unpack(reader, diagnostics, limits);
}

bool reader_open_memory(struct reader *reader, struct diagnostics *diagnostics, struct source_files *files,
                        const void *data, size_t bytes, const struct reader_limits *limits)
{
    start(reader, files);
    reader->memory = arena_new(files->arena, struct memory_source);
    *reader->memory = (struct memory_source){data, bytes};
    reader->source = (struct source){read_memory, reader->memory, bytes};
    return scan_and_unpack(reader, diagnostics, limits);
}

void reader_close(struct reader *reader)
{
    arena_release(&reader->arena);
    reader->model = NULL;
}

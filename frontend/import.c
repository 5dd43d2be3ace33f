/* The entry points, the checks of the model's header, and the small helpers that all import files share. */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/importer.h"

static size_t slot_of(const struct name_map *map, const char *name)
{
    uintptr_t key = (uintptr_t)name;
    size_t slot = (size_t)((key >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (map->capacity - 1);
    while (map->keys[slot] && map->keys[slot] != name)
        slot = (slot + 1) & (map->capacity - 1);
    return slot;
}

static void name_map_grow(struct arena *arena, struct name_map *map)
{
    struct name_map larger = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 64};
    larger.keys = arena_new_array(arena, const char *, larger.capacity);
    larger.numbers = arena_new_array(arena, uint32_t, larger.capacity);
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->keys[i]) {
            size_t slot = slot_of(&larger, map->keys[i]);
            larger.keys[slot] = map->keys[i];
            larger.numbers[slot] = map->numbers[i];
        }
    *map = larger;
}

bool name_map_add(struct arena *arena, struct name_map *map, const char *name, uint32_t *number)
{
    if (map->count >= map->capacity / 2)
        name_map_grow(arena, map);
    size_t slot = slot_of(map, name);
    if (map->keys[slot]) {
        *number = map->numbers[slot];
        return false;
    }
    map->keys[slot] = name;
    map->numbers[slot] = *number;
    map->count++;
    return true;
}

bool name_map_find(const struct name_map *map, const char *name, uint32_t *number)
{
    if (!map->count)
        return false;
    size_t slot = slot_of(map, name);
    if (map->keys[slot])
        *number = map->numbers[slot];
    return map->keys[slot] != NULL;
}

bool import_fail(struct importer *importer, enum diag_code code, const struct location *location,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(importer->diagnostics->arena, format, arguments);
    va_end(arguments);
    diag_error(importer->diagnostics, code, location, "%s", message);
    importer->failures++;
    return false;
}

const char *import_intern(struct importer *importer, const char *text)
{
    return intern(&importer->graph->names, text ? text : "");
}

const char *import_quote(struct importer *importer, const char *text)
{
    return diag_quote(importer->diagnostics, text ? text : "");
}

static bool import_read_model(struct importer *importer)
{
    const Onnx__ModelProto *model = importer->reader->model;
    if (!model->has_ir_version)
        return import_fail(importer, DIAG_model_version, NULL, "the model does not state its IR version");
    if (model->ir_version < OLDEST_IR_VERSION || model->ir_version > NEWEST_IR_VERSION)
        return import_fail(importer, DIAG_model_version, NULL,
                           "IR version %" PRId64 " is not supported, %d to %d are", model->ir_version,
                           OLDEST_IR_VERSION, NEWEST_IR_VERSION);
    importer->graph = graph_new(importer->arena);
    if (model->producer_name)
        importer->graph->producer = import_intern(importer, model->producer_name);
    return import_top_graph(importer);
}

/* Runs the importer with the reader's memory safe against a jump out of it: the reader is closed first, then
 * the jump goes on to whom it was meant for. */
static bool import_guarded(struct importer *importer, struct reader *reader)
{
    struct recovery *outer = importer->arena->recovery;
    struct recovery inner;
    if (setjmp(inner.jump) != 0) {
        reader_close(reader);
        importer->arena->recovery = outer;
        longjmp(outer->jump, 1);
    }
    importer->arena->recovery = &inner;
    bool done = import_read_model(importer);
    importer->arena->recovery = outer;
    return done;
}

static bool import_opened(struct reader *reader, bool opened, struct arena *arena,
                          struct diagnostics *diagnostics, const struct import_options *options,
                          struct graph **graph)
{
    static const struct import_options none;
    struct importer importer = {
        .arena = arena,
        .diagnostics = diagnostics,
        .options = options ? options : &none,
        .reader = reader,
    };
    *graph = NULL;
    bool done = opened && import_guarded(&importer, reader);
    reader_close(reader);
    if (done)
        *graph = importer.graph;
    return done;
}

bool import_model(struct arena *arena, struct diagnostics *diagnostics, const char *path,
                  const struct import_options *options, struct source_files *files, struct graph **graph)
{
    struct reader reader;
    bool opened = reader_open(&reader, diagnostics, files, path, &reader_default_limits);
    return import_opened(&reader, opened, arena, diagnostics, options, graph);
}

bool import_model_bytes(struct arena *arena, struct diagnostics *diagnostics, const void *data, size_t bytes,
                        const struct import_options *options, struct source_files *files,
                        struct graph **graph)
{
    struct reader reader;
    bool opened = reader_open_memory(&reader, diagnostics, files, data, bytes, &reader_default_limits);
    return import_opened(&reader, opened, arena, diagnostics, options, graph);
}

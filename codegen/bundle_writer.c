/* The order of work: tables, link, weights, hashes, commit. Whatever fails, temporary files go and the old
 * bundle stays. */
#include "codegen/bundle_writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_internal.h"
#include "runtime/sha256.h"

static bool fail_output(struct bundle_writer *writer, const char *path)
{
    int reason = errno;
    diag_error(writer->diagnostics, reason == ENOMEM ? DIAG_out_of_memory : DIAG_output_unwritable, NULL,
               "cannot write %s: %s", diag_quote(writer->diagnostics, path), strerror(reason));
    return false;
}

static bool write_image(struct bundle_writer *writer)
{
    struct bundle_header *header = writer->header;
    const char *sidecar = writer->inputs->weights_path;
    header->image_bytes = writer->image_bytes;
    if (!output_open(&writer->output, writer->arena, writer->path, true))
        return fail_output(writer, writer->path);
    if (sidecar && !output_open(&writer->sidecar, writer->arena, sidecar, false))
        return fail_output(writer, sidecar);
    if (!bundle_write_weights(writer, sidecar ? &writer->sidecar : &writer->output,
                              sidecar ? 0 : writer->image_bytes))
        return false;
    memset(header->image_hash, 0, sizeof header->image_hash);
    unsigned char digest[32];
    bundle_hash_of(writer->image, writer->image_bytes, digest);
    memcpy(header->image_hash, digest, sizeof digest);
    return output_write_at(&writer->output, 0, writer->image, writer->image_bytes) ||
           fail_output(writer, writer->path);
}

static bool commit(struct bundle_writer *writer)
{
    const struct output_file *failed = &writer->output;
    if (!writer->inputs->weights_path)
        return output_commit(&writer->output) || fail_output(writer, writer->path);
    return output_commit_both(&writer->sidecar, &writer->output, writer->arena, &failed) ||
           fail_output(writer, failed == &writer->output ? writer->path : writer->inputs->weights_path);
}

static void clean_up(struct bundle_writer *writer)
{
    if (writer->output.temporary)
        output_abandon(&writer->output);
    if (writer->sidecar.temporary)
        output_abandon(&writer->sidecar);
    if (writer->spill >= 0)
        close(writer->spill);
    if (writer->folder)
        remove_folder(writer->folder);
    for (uint32_t i = 0; i < writer->held.count; i++)
        bundle_drop(writer, writer->held.items[i].memory);
    arena_release(&writer->scratch);
    arena_release(writer->arena);
}

/* The graph's dims and the messages grow in arenas of others: while a bundle is written their failures come
 * here too, so that cleaning up is never skipped. NULL gives them back what they had. */
static void borrow_recovery(struct bundle_writer *writer, struct recovery *recovery)
{
    struct arena *graph = writer->inputs->graph->arena, *messages = writer->diagnostics->arena;
    if (recovery) {
        writer->graph_recovery = graph->recovery;
        writer->message_recovery = messages->recovery;
        graph->recovery = messages->recovery = recovery;
    } else {
        messages->recovery = writer->message_recovery;
        graph->recovery = writer->graph_recovery;
    }
}

/* `writer` is the caller's, so that its fields survive the jump. */
static bool write_all(struct bundle_writer *writer, struct recovery *recovery)
{
    if (setjmp(recovery->jump) != 0) {
        borrow_recovery(writer, NULL);
        diag_error(writer->diagnostics, DIAG_out_of_memory, NULL, "no memory to write the bundle");
        return false;
    }
    return bundle_find_tools(writer) && bundle_make_tables(writer) && bundle_link(writer) &&
           write_image(writer) && commit(writer);
}

bool bundle_write(const struct bundle_inputs *inputs, const char *path, struct diagnostics *diagnostics)
{
    struct recovery recovery;
    struct arena arena;
    struct bundle_writer writer = {
        .inputs = inputs, .path = path, .arena = &arena, .diagnostics = diagnostics, .spill = -1};
    arena_init(&arena, inputs->graph->arena->allocator, &recovery);
    arena_init(&writer.scratch, inputs->graph->arena->allocator, &recovery);
    borrow_recovery(&writer, &recovery);
    bool done = write_all(&writer, &recovery);
    borrow_recovery(&writer, NULL);
    clean_up(&writer);
    return done;
}

/* Weights behind the image: constants one at a time, equal ones once (levels of a target often pack alike),
 * then the hash tree over what stands in the file. The file is read back for it (from the page cache) by all
 * threads at once. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_internal.h"
#include "ir/support/hash.h"
#include "ir/support/threads.h"
#include "runtime/sha256.h"

struct weight_writer {
    struct bundle_writer *writer;
    struct output_file *file;
    uint64_t base, offset; /* of the weights in the file; of this constant in the weights */
    uint64_t hash;
    uint32_t *slots; /* hash table: a written constant's number + 1 */
    uint32_t mask;
    uint64_t *hashes; /* [constant] */
};

static bool cannot_write(struct bundle_writer *writer)
{
    int reason = errno;
    const char *path = writer->inputs->weights_path ? writer->inputs->weights_path : writer->path;
    diag_error(writer->diagnostics, DIAG_output_unwritable, NULL, "cannot write %s: %s",
               diag_quote(writer->diagnostics, path), strerror(reason));
    return false;
}

static bool unwritable(const struct weight_writer *w)
{
    return cannot_write(w->writer);
}

static bool put(void *user, uint64_t at, const void *data, size_t bytes)
{
    struct weight_writer *w = user;
    w->hash = hash_bytes(w->hash, data, bytes);
    return output_write_at(w->file, w->base + w->offset + at, data, bytes) || unwritable(w);
}

/* Two stretches of the weights hold the same bytes; *readable: false is an error of the file. */
static bool same_bytes(const struct weight_writer *w, uint64_t a, uint64_t b, uint64_t bytes, bool *readable)
{
    struct arena *scratch = &w->writer->scratch;
    unsigned char *left = arena_alloc(scratch, BUNDLE_PIECE), *right = arena_alloc(scratch, BUNDLE_PIECE);
    bool same = true;
    *readable = true;
    for (uint64_t at = 0; at < bytes && same; at += BUNDLE_PIECE) {
        const size_t piece = bytes - at < BUNDLE_PIECE ? (size_t)(bytes - at) : BUNDLE_PIECE;
        *readable = file_read_at(w->file->fd, w->base + a + at, left, piece) &&
                    file_read_at(w->file->fd, w->base + b + at, right, piece);
        same = *readable && memcmp(left, right, piece) == 0;
    }
    arena_release(scratch);
    return same;
}

/* Behind the constants so far stands constant `index`: it stays, or an earlier one with the same bytes
 * serves. */
static bool place_constant(struct weight_writer *w, uint32_t index)
{
    struct bundle_weight *weights = w->writer->blob.weights.items, *weight = &weights[index];
    static const unsigned char zeros[BUNDLE_ALIGNMENT];
    w->hashes[index] = w->hash;
    for (uint32_t slot = (uint32_t)w->hash;; slot++) {
        uint32_t *entry = &w->slots[slot & w->mask];
        if (!*entry) {
            *entry = index + 1;
            break;
        }
        const uint32_t known = *entry - 1;
        bool readable = true;
        if (w->hashes[known] != w->hash || weights[known].bytes != weight->bytes ||
            !same_bytes(w, weights[known].offset, w->offset, weight->bytes, &readable)) {
            if (!readable)
                return unwritable(w);
            continue;
        }
        weight->offset = weights[known].offset;
        return true;
    }
    weight->offset = w->offset;
    w->offset += weight->bytes;
    const size_t padding = (size_t)(BUNDLE_ALIGNMENT - w->offset % BUNDLE_ALIGNMENT) % BUNDLE_ALIGNMENT;
    if (padding && !output_write_at(w->file, w->base + w->offset, zeros, padding))
        return unwritable(w);
    w->offset += padding;
    return true;
}

static bool write_constants(struct weight_writer *w)
{
    struct bundle_writer *writer = w->writer;
    struct bundle_header *header = writer->header;
    struct bundle_constant *rows = (void *)((unsigned char *)header + header->constants.offset);
    const uint32_t count = writer->blob.weights.count;
    uint32_t slots = 16;
    while (slots / 2 < count)
        slots *= 2;
    w->slots = arena_new_array(writer->arena, uint32_t, slots);
    w->hashes = arena_new_array(writer->arena, uint64_t, count);
    w->mask = slots - 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct bundle_weight *weight = &writer->blob.weights.items[i];
        w->hash = weight->bytes;
        if (!bundle_evaluate(writer, weight, &(struct weight_sink){put, w}) || !place_constant(w, i))
            return false;
        rows[i].offset = weight->offset;
    }
    return ftruncate(w->file->fd, (off_t)(w->base + w->offset)) == 0 || unwritable(w);
}

struct hashing {
    const struct output_file *file;
    uint64_t at, bytes;
    unsigned char *pieces, *leaves;
    uint32_t workers;
    _Atomic uint64_t next;
    atomic_int error;
};

static void hash_leaves(void *user, uint32_t worker)
{
    struct hashing *h = user;
    unsigned char *piece = h->pieces + (size_t)worker * BUNDLE_LEAF;
    for (;;) {
        uint64_t leaf = atomic_fetch_add(&h->next, 1), begin = leaf * BUNDLE_LEAF;
        if (begin >= h->bytes || atomic_load(&h->error))
            return;
        size_t bytes = h->bytes - begin < BUNDLE_LEAF ? (size_t)(h->bytes - begin) : BUNDLE_LEAF;
        if (!file_read_at(h->file->fd, h->at + begin, piece, bytes)) {
            atomic_store(&h->error, errno ? errno : EIO);
            return;
        }
        bundle_hash_of(piece, bytes, h->leaves + 32 * leaf);
    }
}

static bool write_leaves(struct bundle_writer *writer, struct output_file *file, uint64_t at)
{
    struct bundle_header *header = writer->header;
    uint32_t workers = writer->inputs->threads ? writer->inputs->threads : cpu_count();
    workers = workers > 8 ? 8 : workers;
    workers = workers > header->leaf_count ? (uint32_t)header->leaf_count : workers;
    struct hashing h = {.file = file, .at = at, .bytes = header->weights_bytes, .workers = workers};
    h.pieces = bundle_hold(writer, (uint64_t)workers * BUNDLE_LEAF);
    h.leaves = bundle_hold(writer, header->leaf_count * 32);
    if (!h.pieces || !h.leaves)
        return false;
    run_jobs(workers, workers, hash_leaves, &h);
    errno = atomic_load(&h.error);
    bool good =
        !errno && output_write_at(file, header->leaves_offset, h.leaves, (size_t)header->leaf_count * 32);
    if (good)
        bundle_hash_of(h.leaves, (size_t)header->leaf_count * 32, header->weights_root);
    else
        cannot_write(writer);
    bundle_drop(writer, h.pieces);
    bundle_drop(writer, h.leaves);
    return good;
}

bool bundle_write_weights(struct bundle_writer *writer, struct output_file *file, uint64_t at)
{
    struct bundle_header *header = writer->header;
    struct weight_writer w = {.writer = writer, .file = file, .base = at};
    header->weights_offset = at;
    if (!write_constants(&w))
        return false;
    header->weights_bytes = w.offset;
    header->leaves_offset = at + w.offset;
    header->leaf_count = (w.offset + BUNDLE_LEAF - 1) / BUNDLE_LEAF;
    if (!header->weights_bytes) {
        bundle_hash_of("", 0, header->weights_root);
        return true;
    }
    return write_leaves(writer, file, at);
}

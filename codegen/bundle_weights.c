/* Weights behind the image: constants one at a time, then the hash tree over what stands in the file. The
 * file is read back for it (from the page cache) by all threads at once. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "codegen/bundle_internal.h"
#include "ir/support/threads.h"
#include "runtime/sha256.h"

struct weight_writer {
    struct bundle_writer *writer;
    struct output_file *file;
    uint64_t at;
};

static bool put(void *user, uint64_t at, const void *data, size_t bytes)
{
    struct weight_writer *w = user;
    if (output_write_at(w->file, w->at + at, data, bytes))
        return true;
    diag_error(w->writer->diagnostics, DIAG_output_unwritable, NULL, "cannot write the weights: %s",
               strerror(errno));
    return false;
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
        diag_error(writer->diagnostics, DIAG_output_unwritable, NULL, "cannot write the weights: %s",
                   strerror(errno));
    bundle_drop(writer, h.pieces);
    bundle_drop(writer, h.leaves);
    return good;
}

bool bundle_write_weights(struct bundle_writer *writer, struct output_file *file, uint64_t at)
{
    struct bundle_header *header = writer->header;
    header->weights_offset = at;
    header->weights_bytes = writer->blob.weight_bytes;
    header->leaves_offset = at + header->weights_bytes;
    header->leaf_count = (header->weights_bytes + BUNDLE_LEAF - 1) / BUNDLE_LEAF;
    if (!header->weights_bytes) {
        bundle_hash_of("", 0, header->weights_root);
        return true;
    }
    /* The last byte first: the file has its size, and gaps between constants read as zeros. */
    struct weight_writer sink = {writer, file, at + header->weights_bytes - 1};
    if (!put(&sink, 0, "", 1))
        return false;
    for (uint32_t i = 0; i < writer->blob.weights.count; i++) {
        const struct bundle_weight *weight = &writer->blob.weights.items[i];
        sink.at = at + weight->offset;
        if (!bundle_evaluate(writer, weight, &(struct weight_sink){put, &sink}))
            return false;
    }
    return write_leaves(writer, file, at);
}

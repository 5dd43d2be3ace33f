/* Constants of a plan are packed in the file's order, so neighbours in the file are neighbours in memory and
 * are moved in long runs. The unit of reading is a leaf of the hash tree (4 MiB): leaves that hold nothing of
 * the plan are not read; the others are read, hashed and moved by several threads. */
#include "runtime/weights.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file_read.h"
#include "runtime/plan_memory.h"
#include "runtime/pool.h"
#include "runtime/sha256.h"

enum { MAX_READERS = 8 };

/* Bytes [at, at + bytes) of the weights go to `to` in memory. Sorted by `at`. */
struct run {
    uint64_t at, to, bytes;
};

struct loader {
    const struct runtime_model *model;
    const struct weights_place *place;
    unsigned char *memory;
    const struct run *runs;
    size_t run_count;
    const unsigned char *leaves; /* hashes; NULL: trusted */
    _Atomic uint64_t next_leaf;
    atomic_bool failed;
    unsigned char *pieces[MAX_READERS];
    gpucc_status status[MAX_READERS];
    struct runtime_error errors[MAX_READERS];
};

static gpucc_status load_leaf(struct loader *loader, uint64_t leaf, unsigned char *piece,
                              struct runtime_error *error)
{
    const struct bundle_header *header = loader->model->tables.header;
    uint64_t begin = leaf * BUNDLE_LEAF, left = header->weights_bytes - begin;
    uint64_t end = begin + (left < BUNDLE_LEAF ? left : BUNDLE_LEAF);
    size_t low = 0, high = loader->run_count; /* the first run that ends behind `begin` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (loader->runs[middle].at + loader->runs[middle].bytes <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == loader->run_count || loader->runs[low].at >= end)
        return GPUCC_OK;
    gpucc_status status = runtime_read_at(loader->model->weights_fd, header->weights_offset + begin, piece,
                                          (size_t)(end - begin), error);
    if (status == GPUCC_OK && loader->leaves) {
        unsigned char digest[32];
        bundle_hash_of(piece, (size_t)(end - begin), digest);
        if (memcmp(digest, loader->leaves + 32 * leaf, sizeof digest) != 0)
            return runtime_fail(error, GPUCC_BAD_BUNDLE,
                                "the weights are damaged: the hash of leaf %llu does not fit",
                                (unsigned long long)leaf);
    }
    for (size_t i = low; i < loader->run_count && loader->runs[i].at < end && status == GPUCC_OK; i++) {
        const struct run *run = &loader->runs[i];
        uint64_t from = run->at > begin ? run->at : begin, to = run->at + run->bytes;
        to = to < end ? to : end;
        status = loader->place->put(loader->place->user, loader->memory + run->to + (from - run->at),
                                    piece + (from - begin), (size_t)(to - from), error);
    }
    return status;
}

static void load_part(void *user, uint32_t part)
{
    struct loader *loader = user;
    uint64_t count = loader->model->tables.header->leaf_count;
    while (!atomic_load(&loader->failed)) {
        uint64_t leaf = atomic_fetch_add(&loader->next_leaf, 1);
        if (leaf >= count)
            return;
        loader->status[part] = load_leaf(loader, leaf, loader->pieces[part], &loader->errors[part]);
        if (loader->status[part] != GPUCC_OK)
            atomic_store(&loader->failed, true);
    }
}

/* Hashes of the leaves, checked against the root; *leaves is malloc's. */
static gpucc_status read_leaves(const struct runtime_model *model, unsigned char **leaves,
                                struct runtime_error *error)
{
    const struct bundle_header *header = model->tables.header;
    size_t bytes = (size_t)header->leaf_count * 32;
    *leaves = malloc(bytes + 1);
    if (!*leaves)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory for the hashes of the weights");
    gpucc_status status = runtime_read_at(model->weights_fd, header->leaves_offset, *leaves, bytes, error);
    unsigned char digest[32];
    bundle_hash_of(*leaves, bytes, digest);
    if (status == GPUCC_OK && memcmp(digest, header->weights_root, sizeof digest) != 0)
        status =
            runtime_fail(error, GPUCC_BAD_BUNDLE, "the weights are damaged: their hash tree does not fit");
    return status;
}

static gpucc_status load(const struct runtime_model *model, const struct weights_place *place,
                         unsigned char *memory, const struct run *runs, size_t run_count,
                         struct runtime_error *error)
{
    struct loader *loader = calloc(1, sizeof *loader);
    unsigned char *leaves = NULL;
    struct pool *pool = NULL;
    gpucc_status status = GPUCC_OK;
    if (!loader)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while reading weights");
    if (!model->trusted)
        status = read_leaves(model, &leaves, error);
    loader->model = model;
    loader->place = place;
    loader->memory = memory;
    loader->runs = runs;
    loader->run_count = run_count;
    loader->leaves = leaves;
    uint64_t count = model->tables.header->leaf_count;
    uint32_t parts = pool_cpu_count();
    parts = parts > MAX_READERS ? MAX_READERS : parts;
    parts = parts > count ? (uint32_t)count : parts;
    for (uint32_t i = 0; i < parts && status == GPUCC_OK; i++)
        if (!(loader->pieces[i] = malloc(BUNDLE_LEAF)))
            status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while reading weights");
    if (status == GPUCC_OK && !(pool = pool_create(parts)))
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "cannot start threads to read weights");
    if (status == GPUCC_OK)
        pool_run(pool, parts, load_part, loader);
    pool_destroy(pool);
    for (uint32_t i = 0; i < MAX_READERS; i++) {
        if (status == GPUCC_OK && loader->status[i] != GPUCC_OK)
            status = runtime_fail(error, loader->status[i], "%s", loader->errors[i].text);
        free(loader->pieces[i]);
    }
    free(leaves);
    free(loader);
    return status;
}

struct constant_at {
    uint64_t offset;
    uint32_t constant;
};

static int by_offset(const void *a, const void *b)
{
    const struct constant_at *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->constant < y->constant ? -1 : x->constant > y->constant;
}

/* Lays the plan's constants out in memory and lists the runs. */
static size_t lay_out(const struct bundle_tables *tables, struct weights_base *base,
                      const unsigned char *used, struct constant_at *sorted, struct run *runs)
{
    size_t count = 0, run_count = 0;
    for (uint32_t i = 0; i < tables->constant_count; i++) {
        base->offsets[i] = UINT64_MAX;
        if (used[i])
            sorted[count++] = (struct constant_at){tables->constants[i].offset, i};
    }
    qsort(sorted, count, sizeof *sorted, by_offset);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bundle_constant *constant = &tables->constants[sorted[i].constant];
        struct run *last = run_count ? &runs[run_count - 1] : NULL;
        base->offsets[sorted[i].constant] = at;
        if (last && constant->offset - last->at == at - last->to)
            last->bytes = constant->offset + constant->bytes - last->at;
        else if (constant->bytes)
            runs[run_count++] = (struct run){constant->offset, at, constant->bytes};
        at += (constant->bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
    }
    base->bytes = at;
    return run_count;
}

static void drop_base(struct weights_base *base, const struct weights_place *place)
{
    if (!base || --base->references)
        return;
    if (base->memory)
        place->release(place->user, base->memory, (size_t)base->bytes);
    free(base->offsets);
    free(base);
}

/* Reads the plan's constants from the file. */
static gpucc_status create_base(const struct runtime_model *model, const struct bundle_plan *plan,
                                const struct weights_place *place, struct weights_base **out,
                                struct runtime_error *error)
{
    const struct bundle_tables *tables = &model->tables;
    size_t count = (size_t)tables->constant_count + 1;
    struct weights_base *base = calloc(1, sizeof *base);
    unsigned char *used = calloc(count, 1);
    struct constant_at *sorted = calloc(count, sizeof *sorted);
    struct run *runs = calloc(count, sizeof *runs);
    gpucc_status status = GPUCC_OK;
    if (base) {
        base->references = 1;
        base->offsets = calloc(count, sizeof *base->offsets);
    }
    if (!base || !used || !sorted || !runs || !base->offsets) {
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    } else {
        plan_memory_weights(tables, plan, used);
        size_t run_count = lay_out(tables, base, used, sorted, runs);
        if (base->bytes) {
            base->memory = place->allocate(place->user, (size_t)base->bytes, error);
            status =
                base->memory ? load(model, place, base->memory, runs, run_count, error) : GPUCC_OUT_OF_MEMORY;
        }
    }
    free(used);
    free(sorted);
    free(runs);
    if (status == GPUCC_OK)
        *out = base;
    else
        drop_base(base, place);
    return status;
}

static void discard(struct runtime_model *model, struct weights *weights, const struct weights_place *place)
{
    for (uint32_t i = 0; weights->replaced && i < model->tables.constant_count; i++)
        if (weights->replaced[i])
            place->release(place->user, weights->replaced[i], (size_t)model->tables.constants[i].bytes);
    free(weights->replaced);
    drop_base(weights->base, place);
    free(weights);
}

/* Copies what was replaced until now into the place. */
static gpucc_status take_replaced(const struct runtime_model *model, struct weights *weights,
                                  const struct weights_place *place, struct runtime_error *error)
{
    const struct bundle_tables *tables = &model->tables;
    if (!model->replaced)
        return GPUCC_OK;
    weights->replaced = calloc((size_t)tables->constant_count + 1, sizeof *weights->replaced);
    if (!weights->replaced)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    for (uint32_t i = 0; i < tables->constant_count; i++) {
        size_t bytes = (size_t)tables->constants[i].bytes;
        if (!model->replaced[i] || weights->base->offsets[i] == UINT64_MAX || !bytes)
            continue;
        weights->replaced[i] = place->allocate(place->user, bytes, error);
        if (!weights->replaced[i])
            return GPUCC_OUT_OF_MEMORY;
        gpucc_status status = place->put(place->user, weights->replaced[i], model->replaced[i], bytes, error);
        if (status != GPUCC_OK)
            return status;
    }
    return GPUCC_OK;
}

/* `base` is shared when there is one. */
static gpucc_status create(struct runtime_model *model, const struct bundle_plan *plan,
                           const struct weights_place *place, struct weights_base *base, struct weights **out,
                           struct runtime_error *error)
{
    struct weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    *weights = (struct weights){.plan = plan,
                                .place = *place,
                                .generation = atomic_load(&model->generation),
                                .references = 1,
                                .base = base};
    gpucc_status status = GPUCC_OK;
    if (base)
        base->references++;
    else
        status = create_base(model, plan, place, &weights->base, error);
    if (status == GPUCC_OK)
        status = take_replaced(model, weights, place, error);
    if (status == GPUCC_OK)
        *out = weights;
    else
        discard(model, weights, place);
    return status;
}

gpucc_status weights_acquire(struct runtime_model *model, const struct bundle_plan *plan,
                             const struct weights_place *place, const struct weights *old,
                             struct weights **weights, struct runtime_error *error)
{
    gpucc_status status = GPUCC_OK;
    /* Under the lock until the set is complete: a second context waits instead of loading it again. */
    pthread_mutex_lock(&model->lock);
    struct weights_base *base = old ? old->base : NULL;
    struct weights *found = NULL;
    for (struct weights *set = place->shared ? model->weights : NULL; set; set = set->next) {
        if (set->plan != plan || set->place.owner != place->owner)
            continue;
        base = set->base;
        if (set->generation == atomic_load(&model->generation))
            found = set;
    }
    if (found) {
        found->references++;
    } else {
        status = create(model, plan, place, base, &found, error);
        if (status == GPUCC_OK && place->shared) {
            found->next = model->weights;
            model->weights = found;
        }
    }
    pthread_mutex_unlock(&model->lock);
    if (status == GPUCC_OK)
        *weights = found;
    return status;
}

void weights_release(struct runtime_model *model, struct weights *weights, const struct weights_place *place)
{
    if (!weights)
        return;
    /* Bases are counted under the lock too. */
    pthread_mutex_lock(&model->lock);
    bool last = --weights->references == 0;
    for (struct weights **link = &model->weights; last && *link; link = &(*link)->next)
        if (*link == weights) {
            *link = weights->next;
            break;
        }
    if (last)
        discard(model, weights, place);
    pthread_mutex_unlock(&model->lock);
}

void *weights_constant(const struct weights *weights, uint32_t constant)
{
    if (weights->replaced && weights->replaced[constant])
        return weights->replaced[constant];
    return weights->base->memory ? weights->base->memory + weights->base->offsets[constant] : NULL;
}

static gpucc_status put_on_host(void *user, void *to, const void *data, size_t bytes,
                                struct runtime_error *error)
{
    (void)user;
    (void)error;
    memcpy(to, data, bytes);
    return GPUCC_OK;
}

gpucc_status weights_read(const struct runtime_model *model, uint32_t constant, void *to,
                          struct runtime_error *error)
{
    const struct bundle_constant *row = &model->tables.constants[constant];
    const struct weights_place host = {.put = put_on_host};
    const struct run run = {row->offset, 0, row->bytes};
    return row->bytes ? load(model, &host, to, &run, 1, error) : GPUCC_OK;
}

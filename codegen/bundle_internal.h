/* What the files of the bundle writer share. */
#ifndef GPUCC_CODEGEN_BUNDLE_INTERNAL_H
#define GPUCC_CODEGEN_BUNDLE_INTERNAL_H

#include "codegen/bundle_writer.h"
#include "ir/support/file.h"
#include "runtime/bundle_format.h"

/* A constant of the bundle. */
struct bundle_weight {
    struct plan_constant constant;
    const char *recipe_text; /* NULL without a recipe: with the value, the key of equality */
    uint64_t offset, bytes;  /* in the weights */
};

struct bundle_blob {
    unsigned char *bytes;
    size_t length;
    VEC(const char *) symbols; /* the pointer table: a CPU kernel each */
    VEC(struct bundle_weight) weights;
    uint64_t weight_bytes; /* an upper bound until they are written */
};

/* Memory of the allocator that cleaning up must find. */
struct bundle_held {
    void *memory;
    size_t bytes;
};

struct bundle_writer {
    const struct bundle_inputs *inputs;
    const char *path;
    struct arena *arena; /* of this call */
    struct diagnostics *diagnostics;
    const char *linker, *linker_version;
    struct bundle_blob blob;
    unsigned char *image; /* the linked file */
    size_t image_bytes;
    struct bundle_header *header; /* in `image` */
    char *folder;                 /* of temporary files, or NULL */
    struct output_file output, sidecar;
    struct arena scratch; /* of one constant */
    VEC(struct bundle_held) held;
    int spill;             /* nameless file beside the output for what is too large to be held, or -1 */
    uint64_t spilled;      /* bytes of it that are in use */
    const struct value *unread; /* whose data could not be read */
    struct recovery *graph_recovery, *message_recovery; /* what the caller's arenas had */
};

/* bundle_tables.c: everything of the header but what stands behind linking and hashing. */
bool bundle_make_tables(struct bundle_writer *writer);
/* elf_object.c: a relocatable object with the section .gpucc and the pointer table. */
struct object_file elf_tables_object(struct arena *arena, const struct bundle_blob *blob, enum host host);
uint32_t bundle_machine(enum host host); /* bundle_header.machine */
/* Where the section's bytes are in a linked file; false: it has none. */
bool elf_find_section(const unsigned char *file, size_t bytes, const char *name, size_t *offset,
                      size_t *length);
/* bundle_link.c: `image` and `header`. */
bool bundle_find_tools(struct bundle_writer *writer);
bool bundle_link(struct bundle_writer *writer);
/* bundle_weights.c: writes the constants at `at` and their leaves behind, and fills the header's fields and the
 * constants' offsets; those with equal bytes are stored once. */
bool bundle_write_weights(struct bundle_writer *writer, struct output_file *file, uint64_t at);
/* bundle_init.c: hands out a constant's bytes in order, in pieces of BUNDLE_PIECE; `sink` returns false to stop. */
enum { BUNDLE_PIECE = 1 << 20 };
struct weight_sink {
    bool (*put)(void *user, uint64_t at, const void *data, size_t bytes);
    void *user;
};
void bundle_drop(struct bundle_writer *writer, const void *memory); /* NULL is allowed */
void *bundle_hold(struct bundle_writer *writer, uint64_t bytes);    /* NULL: E0901 is recorded */
bool bundle_evaluate(struct bundle_writer *writer, const struct bundle_weight *weight,
                     const struct weight_sink *sink);

#endif

/* Reading a bundle file: finds .gpucc through the ELF section headers, copies it, validates it; the rest of
 * the file is only hashed. Nothing here maps or executes the file. */
#include "runtime/info.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file_read.h"
#include "runtime/plan_memory.h"
#include "runtime/sha256.h"

enum { MAX_SECTIONS = 256, PIECE = 1 << 20 };

static gpucc_status not_a_bundle(struct runtime_error *error)
{
    return runtime_fail(error, GPUCC_BAD_BUNDLE, "not a gpucc bundle");
}

/* The section's place in the file. */
static gpucc_status find_section(int fd, uint64_t file_bytes, uint64_t *offset, uint64_t *bytes,
                                 struct runtime_error *error)
{
    Elf64_Ehdr header;
    if (file_bytes < sizeof header)
        return not_a_bundle(error);
    gpucc_status status = runtime_read_at(fd, 0, &header, sizeof header, error);
    if (status != GPUCC_OK)
        return status;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
        !header.e_shnum || header.e_shnum > MAX_SECTIONS || header.e_shstrndx >= header.e_shnum)
        return not_a_bundle(error);
    Elf64_Shdr sections[MAX_SECTIONS];
    if (header.e_shoff > file_bytes || header.e_shnum * sizeof *sections > file_bytes - header.e_shoff)
        return not_a_bundle(error);
    status = runtime_read_at(fd, header.e_shoff, sections, header.e_shnum * sizeof *sections, error);
    const Elf64_Shdr *names = &sections[header.e_shstrndx];
    for (unsigned i = 1; i < header.e_shnum && status == GPUCC_OK; i++) {
        char name[sizeof BUNDLE_SECTION];
        if (sections[i].sh_type != SHT_PROGBITS || names->sh_size < sizeof name ||
            sections[i].sh_name > names->sh_size - sizeof name || names->sh_offset > file_bytes ||
            names->sh_size > file_bytes - names->sh_offset)
            continue;
        status = runtime_read_at(fd, names->sh_offset + sections[i].sh_name, name, sizeof name, error);
        if (status != GPUCC_OK || memcmp(name, BUNDLE_SECTION, sizeof name) != 0)
            continue;
        if (sections[i].sh_offset > file_bytes || sections[i].sh_size > file_bytes - sections[i].sh_offset)
            break;
        *offset = sections[i].sh_offset;
        *bytes = sections[i].sh_size;
        return GPUCC_OK;
    }
    return status != GPUCC_OK ? status : not_a_bundle(error);
}

/* The header's figures against the file. */
static gpucc_status check_extent(const struct bundle_file *file, struct runtime_error *error)
{
    const struct bundle_header *header = file->tables.header;
    uint64_t end = header->image_bytes;
    if (!header->sidecar && header->weights_bytes) {
        if (header->weights_offset < header->image_bytes ||
            header->leaves_offset < header->weights_offset + header->weights_bytes)
            return runtime_fail(error, GPUCC_BAD_BUNDLE, "the bundle is damaged: its parts overlap");
        end = header->leaves_offset + 32 * header->leaf_count;
    }
    if (file->section_offset > header->image_bytes ||
        header->blob_bytes > header->image_bytes - file->section_offset)
        return runtime_fail(error, GPUCC_BAD_BUNDLE,
                            "the bundle is damaged: its tables lie outside its image");
    if (end != file->file_bytes)
        return runtime_fail(error, GPUCC_BAD_BUNDLE, "the bundle has %llu bytes, its header says %llu",
                            (unsigned long long)file->file_bytes, (unsigned long long)end);
    return GPUCC_OK;
}

static gpucc_status read_tables(struct bundle_file *file, struct runtime_error *error)
{
    uint64_t bytes;
    gpucc_status status = find_section(file->fd, file->file_bytes, &file->section_offset, &bytes, error);
    if (status != GPUCC_OK)
        return status;
    if (bytes < sizeof(struct bundle_header))
        return not_a_bundle(error);
    file->blob = malloc((size_t)bytes);
    if (!file->blob)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory for the bundle's tables");
    status = runtime_read_at(file->fd, file->section_offset, file->blob, (size_t)bytes, error);
    if (status == GPUCC_OK)
        status = tables_open(file->blob, bytes, &file->tables, error);
    return status == GPUCC_OK ? check_extent(file, error) : status;
}

gpucc_status bundle_file_open(const char *path, struct bundle_file *file, struct runtime_error *error)
{
    *file = (struct bundle_file){.fd = -1};
    struct stat facts;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0 || fstat(file->fd, &facts) != 0) {
        int reason = errno;
        bundle_file_close(file);
        return runtime_fail(error, GPUCC_IO_ERROR, "cannot open the bundle: %s", strerror(reason));
    }
    gpucc_status status = GPUCC_OK;
    if (!S_ISREG(facts.st_mode))
        status = runtime_fail(error, GPUCC_IO_ERROR, "cannot open the bundle: not a regular file");
    file->file_bytes = (uint64_t)facts.st_size;
    if (status == GPUCC_OK)
        status = read_tables(file, error);
    if (status != GPUCC_OK)
        bundle_file_close(file);
    return status;
}

void bundle_file_close(struct bundle_file *file)
{
    if (file->blob) {
        free(file->blob);
        file->blob = NULL;
        close(file->fd);
    } else if (file->fd > 0) {
        close(file->fd);
    }
    *file = (struct bundle_file){.fd = -1};
}

gpucc_status bundle_file_check_image(const struct bundle_file *file, struct runtime_error *error)
{
    unsigned char *piece = malloc(PIECE);
    if (!piece)
        return runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while hashing the bundle");
    const struct bundle_header *header = file->tables.header;
    uint64_t hole = file->section_offset + offsetof(struct bundle_header, image_hash);
    struct bundle_hash hash;
    bundle_hash_begin(&hash);
    gpucc_status status = GPUCC_OK;
    for (uint64_t at = 0; at < header->image_bytes && status == GPUCC_OK; at += PIECE) {
        size_t bytes = header->image_bytes - at < PIECE ? (size_t)(header->image_bytes - at) : PIECE;
        status = runtime_read_at(file->fd, at, piece, bytes, error);
        for (uint64_t i = hole; i < hole + 32; i++)
            if (i >= at && i - at < bytes)
                piece[i - at] = 0;
        if (status == GPUCC_OK)
            bundle_hash_add(&hash, piece, bytes);
    }
    free(piece);
    unsigned char digest[32];
    bundle_hash_end(&hash, digest);
    if (status == GPUCC_OK && memcmp(digest, header->image_hash, sizeof digest) != 0)
        status =
            runtime_fail(error, GPUCC_BAD_BUNDLE, "the bundle is damaged: the hash of its code does not fit");
    return status;
}

gpucc_status bundle_file_code(const struct bundle_file *file, uint64_t *bytes, struct runtime_error *error)
{
    Elf64_Ehdr header;
    *bytes = 0;
    gpucc_status status = runtime_read_at(file->fd, 0, &header, sizeof header, error);
    for (unsigned i = 0; i < header.e_phnum && status == GPUCC_OK; i++) {
        Elf64_Phdr segment;
        if (header.e_phentsize != sizeof segment || header.e_phoff > file->file_bytes)
            return not_a_bundle(error);
        status =
            runtime_read_at(file->fd, header.e_phoff + i * sizeof segment, &segment, sizeof segment, error);
        if (status == GPUCC_OK && segment.p_type == PT_LOAD && (segment.p_flags & PF_X))
            *bytes += segment.p_filesz;
    }
    return status;
}

static gpucc_status check_leaves(const struct bundle_header *header, int fd, unsigned char *leaves,
                                 unsigned char *piece, struct runtime_error *error)
{
    unsigned char digest[32];
    gpucc_status status =
        runtime_read_at(fd, header->leaves_offset, leaves, (size_t)header->leaf_count * 32, error);
    if (status != GPUCC_OK)
        return status;
    bundle_hash_of(leaves, (size_t)header->leaf_count * 32, digest);
    if (memcmp(digest, header->weights_root, sizeof digest) != 0)
        return runtime_fail(error, GPUCC_BAD_BUNDLE, "the weights are damaged: their hash tree does not fit");
    for (uint64_t i = 0; i < header->leaf_count; i++) {
        uint64_t at = i * BUNDLE_LEAF, left = header->weights_bytes - at;
        size_t bytes = left < BUNDLE_LEAF ? (size_t)left : BUNDLE_LEAF;
        status = runtime_read_at(fd, header->weights_offset + at, piece, bytes, error);
        if (status != GPUCC_OK)
            return status;
        bundle_hash_of(piece, bytes, digest);
        if (memcmp(digest, leaves + 32 * i, sizeof digest) != 0)
            return runtime_fail(error, GPUCC_BAD_BUNDLE,
                                "the weights are damaged: the hash of leaf %llu does not fit",
                                (unsigned long long)i);
    }
    return GPUCC_OK;
}

gpucc_status bundle_file_check_weights(const struct bundle_file *file, const char *sidecar,
                                       struct runtime_error *error)
{
    const struct bundle_header *header = file->tables.header;
    int fd = file->fd;
    if (header->sidecar && sidecar)
        fd = open(sidecar, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (header->sidecar && (!sidecar || fd < 0))
        return runtime_fail(error, GPUCC_IO_ERROR, "cannot open the file with the weights: %s",
                            sidecar ? strerror(errno) : "it is not named");
    unsigned char *leaves = malloc((size_t)header->leaf_count * 32 + 1), *piece = malloc(BUNDLE_LEAF);
    gpucc_status status =
        leaves && piece ? check_leaves(header, fd, leaves, piece, error)
                        : runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory while hashing the weights");
    free(leaves);
    free(piece);
    if (header->sidecar)
        close(fd);
    return status;
}

gpucc_status bundle_plan_memory(const struct bundle_tables *tables, uint32_t plan,
                                struct bundle_memory *memory, struct runtime_error *error)
{
    const struct bundle_plan *row = &tables->plans[plan];
    struct dim_interval *symbols = calloc((size_t)tables->symbol_count + 1, sizeof *symbols);
    struct dim_interval *bounds = calloc((size_t)tables->dim_count + 1, sizeof *bounds);
    uint64_t *offsets = calloc((size_t)row->buffer_count + 1, sizeof *offsets);
    unsigned char *used = calloc((size_t)tables->constant_count + 1, 1);
    gpucc_status status = GPUCC_OK;
    if (!symbols || !bounds || !offsets || !used)
        status = runtime_fail(error, GPUCC_OUT_OF_MEMORY, "out of memory");
    if (status == GPUCC_OK) {
        for (uint32_t i = 0; i < tables->symbol_count; i++)
            symbols[i] = (struct dim_interval){tables->symbols[i].hint, tables->symbols[i].hint};
        dims_bounds(tables, symbols, bounds);
        memory->weight_bytes = plan_memory_weights(tables, row, used);
        memory->code_bytes = 0;
        for (uint32_t i = 0; i < row->image_count; i++)
            memory->code_bytes += tables->images[row->first_image + i].bytes;
        status = plan_memory_place(tables, row, bounds, offsets, &memory->arena_bytes, error);
    }
    free(symbols);
    free(bounds);
    free(offsets);
    free(used);
    return status;
}

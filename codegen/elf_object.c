/* A relocatable ELF object of our own making: the tables as the section .gpucc, and a table of
 * pointers to the CPU kernels that the linker fills in. Small enough to be written by hand; LLVM need not see
 * megabytes of tables. */
#include <elf.h>
#include <string.h>

#include "codegen/bundle_internal.h"

enum section { SECTION_NONE, TABLES, POINTERS, RELOCATIONS, SYMBOLS, STRINGS, NAMES, STACK, SECTION_COUNT };

enum { FIRST_KERNEL_SYMBOL = 3 }; /* behind the null symbol, the tables and the pointer table */

/* Names of sections, each after a NUL; offsets by search. */
static const char section_names[] =
    "\0" BUNDLE_SECTION "\0.data.rel.ro\0.rela.data.rel.ro\0.symtab\0.strtab\0.shstrtab\0"
    ".note.GNU-stack";

static Elf64_Word name_offset(const char *name)
{
    for (size_t at = 1; at < sizeof section_names; at += strlen(section_names + at) + 1)
        if (strcmp(section_names + at, name) == 0)
            return (Elf64_Word)at;
    return 0;
}

struct object_builder {
    struct arena *arena;
    struct text bytes;
    Elf64_Shdr sections[SECTION_COUNT];
};

static void add_section(struct object_builder *builder, enum section which, const char *name,
                        const Elf64_Shdr *shape, const void *data, size_t bytes)
{
    static const char zeros[64];
    size_t misalign = builder->bytes.length % shape->sh_addralign;
    if (misalign)
        text_append(&builder->bytes, zeros, shape->sh_addralign - misalign);
    Elf64_Shdr *section = &builder->sections[which];
    *section = *shape;
    section->sh_name = name_offset(name);
    section->sh_offset = builder->bytes.length;
    section->sh_size = bytes;
    text_append(&builder->bytes, data, bytes);
}

static Elf64_Word add_name(struct text *strings, const char *name)
{
    Elf64_Word at = (Elf64_Word)strings->length;
    text_append(strings, name, strlen(name) + 1);
    return at;
}

/* The global symbols: both tables, then a reference to each kernel. Hidden: they must be found in the same
 * bundle. */
static void add_symbols(struct object_builder *builder, const struct bundle_blob *blob)
{
    uint32_t count = FIRST_KERNEL_SYMBOL + blob->symbols.count;
    Elf64_Sym *symbols = arena_new_array(builder->arena, Elf64_Sym, count);
    struct text strings;
    text_init(&strings, builder->arena);
    add_name(&strings, "");
    for (uint32_t i = 1; i < count; i++) {
        symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, i < FIRST_KERNEL_SYMBOL ? STT_OBJECT : STT_NOTYPE);
        symbols[i].st_other = STV_HIDDEN;
        symbols[i].st_name = add_name(&strings, i == 1   ? "gpucc_bundle_tables"
                                                : i == 2 ? "gpucc_bundle_kernels"
                                                         : blob->symbols.items[i - FIRST_KERNEL_SYMBOL]);
        symbols[i].st_shndx = i == 1 ? TABLES : i == 2 ? POINTERS : SHN_UNDEF;
        symbols[i].st_size = i == 1 ? blob->length : i == 2 ? 8 * ((uint64_t)blob->symbols.count + 1) : 0;
    }
    add_section(builder, SYMBOLS, ".symtab",
                &(Elf64_Shdr){.sh_type = SHT_SYMTAB,
                              .sh_link = STRINGS,
                              .sh_info = 1,
                              .sh_addralign = 8,
                              .sh_entsize = sizeof(Elf64_Sym)},
                symbols, count * sizeof *symbols);
    add_section(builder, STRINGS, ".strtab", &(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1},
                strings.data, strings.length);
}

uint32_t bundle_machine(enum host host)
{
    return host == HOST_AARCH64 ? BUNDLE_AARCH64 : BUNDLE_X86_64;
}

static void add_pointers(struct object_builder *builder, const struct bundle_blob *blob, enum host host)
{
    size_t bytes = 8 * ((size_t)blob->symbols.count + 1); /* one more, so that it is never empty */
    Elf64_Rela *relocations = arena_new_array(builder->arena, Elf64_Rela, blob->symbols.count);
    const uint64_t address = host == HOST_AARCH64 ? R_AARCH64_ABS64 : R_X86_64_64;
    for (uint32_t i = 0; i < blob->symbols.count; i++)
        relocations[i] = (Elf64_Rela){.r_offset = 8 * (uint64_t)i,
                                      .r_info = ELF64_R_INFO((uint64_t)i + FIRST_KERNEL_SYMBOL, address)};
    add_section(builder, POINTERS, ".data.rel.ro",
                &(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_addralign = 8},
                arena_alloc(builder->arena, bytes), bytes);
    add_section(builder, RELOCATIONS, ".rela.data.rel.ro",
                &(Elf64_Shdr){.sh_type = SHT_RELA,
                              .sh_flags = SHF_INFO_LINK,
                              .sh_link = SYMBOLS,
                              .sh_info = POINTERS,
                              .sh_addralign = 8,
                              .sh_entsize = sizeof(Elf64_Rela)},
                relocations, blob->symbols.count * sizeof *relocations);
}

struct object_file elf_tables_object(struct arena *arena, const struct bundle_blob *blob, enum host host)
{
    struct object_builder builder = {.arena = arena};
    Elf64_Ehdr header = {.e_type = ET_REL,
                         .e_machine = (Elf64_Half)bundle_machine(host),
                         .e_version = EV_CURRENT,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTION_COUNT,
                         .e_shstrndx = NAMES};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    text_init(&builder.bytes, arena);
    text_append(&builder.bytes, (const char *)&header, sizeof header);
    add_section(&builder, TABLES, BUNDLE_SECTION,
                &(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addralign = 64},
                blob->bytes, blob->length);
    add_pointers(&builder, blob, host);
    add_symbols(&builder, blob);
    add_section(&builder, NAMES, ".shstrtab", &(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1},
                section_names, sizeof section_names);
    /* Its presence says that the stack need not be executable; empty. */
    add_section(&builder, STACK, ".note.GNU-stack", &(Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addralign = 8},
                "", 0);
    header.e_shoff = builder.bytes.length;
    text_append(&builder.bytes, (const char *)builder.sections, sizeof builder.sections);
    memcpy(builder.bytes.data, &header, sizeof header);
    return (struct object_file){(const unsigned char *)builder.bytes.data, builder.bytes.length};
}

bool elf_find_section(const unsigned char *file, size_t bytes, const char *name, size_t *offset,
                      size_t *length)
{
    Elf64_Ehdr header;
    Elf64_Shdr section, names;
    if (bytes < sizeof header)
        return false;
    memcpy(&header, file, sizeof header);
    if (header.e_shentsize != sizeof section || header.e_shstrndx >= header.e_shnum ||
        header.e_shoff > bytes || header.e_shnum > (bytes - header.e_shoff) / sizeof section)
        return false;
    memcpy(&names, file + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
    if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset)
        return false;
    for (unsigned i = 1; i < header.e_shnum; i++) {
        memcpy(&section, file + header.e_shoff + i * sizeof section, sizeof section);
        size_t need = strlen(name) + 1;
        if (section.sh_name > names.sh_size || names.sh_size - section.sh_name < need ||
            memcmp(file + names.sh_offset + section.sh_name, name, need) != 0)
            continue;
        if (section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset)
            return false;
        *offset = (size_t)section.sh_offset;
        *length = (size_t)section.sh_size;
        return true;
    }
    return false;
}

#include "tests/harness/bundle_elf.h"

#include <elf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GLIBC_MINOR = 17, MOST_HEADERS = 4096 };

struct elf {
    const char *path;
    FILE *report;
    unsigned problems;
    const unsigned char *bytes;
    size_t count;
    Elf64_Ehdr header;
    /* From the dynamic section. */
    uint64_t strings, strings_size, symbols, versions, needed_versions, needed_version_count, got;
};

__attribute__((format(printf, 2, 3))) static void problem(struct elf *elf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(elf->report, "%s: ", elf->path);
    vfprintf(elf->report, format, arguments);
    fputc('\n', elf->report);
    va_end(arguments);
    elf->problems++;
}

/* Copies a record out of the file; false when it does not lie inside. */
static bool take(const struct elf *elf, uint64_t offset, void *record, size_t size)
{
    if (offset > elf->count || size > elf->count - offset)
        return false;
    memcpy(record, elf->bytes + offset, size);
    return true;
}

static bool segment_at(const struct elf *elf, unsigned index, Elf64_Phdr *segment)
{
    return index < elf->header.e_phnum &&
           take(elf, elf->header.e_phoff + (uint64_t)index * sizeof *segment, segment, sizeof *segment);
}

/* The place in the file of an address of the loaded image; UINT64_MAX when none holds it. */
static uint64_t offset_of(const struct elf *elf, uint64_t address)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; segment_at(elf, i, &segment); i++)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return UINT64_MAX;
}

/* A string of the dynamic string table; "" when it does not end inside. */
static const char *string_at(const struct elf *elf, uint64_t index)
{
    uint64_t start = offset_of(elf, elf->strings);
    if (start > elf->count || index >= elf->strings_size || elf->strings_size > elf->count - start ||
        !memchr(elf->bytes + start + index, 0, elf->strings_size - index))
        return "";
    return (const char *)elf->bytes + start + index;
}

static bool read_header(struct elf *elf)
{
    Elf64_Ehdr *header = &elf->header;
    if (!take(elf, 0, header, sizeof *header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_phnum > MOST_HEADERS) {
        problem(elf, "no 64-bit little-endian ELF file");
        return false;
    }
    if (header->e_type != ET_DYN)
        problem(elf, "no shared object");
    if (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64)
        problem(elf, "for machine %u", header->e_machine);
    return true;
}

/* The segments; returns the dynamic one and the RELRO one, of type PT_NULL where there is none. */
static void check_segments(struct elf *elf, Elf64_Phdr *dynamic, Elf64_Phdr *relro)
{
    bool stack = false;
    Elf64_Phdr segment;
    dynamic->p_type = relro->p_type = PT_NULL;
    for (unsigned i = 0; i < elf->header.e_phnum; i++) {
        if (!segment_at(elf, i, &segment)) {
            problem(elf, "program header %u is cut off", i);
            return;
        }
        if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
            problem(elf, "segment %u is writable and executable", i);
        if (segment.p_type == PT_GNU_STACK) {
            stack = true;
            if (segment.p_flags & PF_X)
                problem(elf, "asks for an executable stack");
        }
        if (segment.p_type == PT_INTERP)
            problem(elf, "names an interpreter");
        if (segment.p_type == PT_DYNAMIC)
            *dynamic = segment;
        if (segment.p_type == PT_GNU_RELRO)
            *relro = segment;
    }
    if (!stack)
        problem(elf, "no PT_GNU_STACK: the stack may become executable");
    if (relro->p_type == PT_NULL)
        problem(elf, "no RELRO");
    if (dynamic->p_type == PT_NULL)
        problem(elf, "no dynamic section");
}

static void check_library(struct elf *elf, const char *name)
{
    static const char *const allowed[] = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(name, allowed[i]) == 0)
            return;
    problem(elf, "needs the library \"%s\"", name);
}

static bool dynamic_at(const struct elf *elf, const Elf64_Phdr *dynamic, uint64_t index, Elf64_Dyn *entry)
{
    return index < dynamic->p_filesz / sizeof *entry &&
           take(elf, dynamic->p_offset + index * sizeof *entry, entry, sizeof *entry) &&
           entry->d_tag != DT_NULL;
}

static void check_dynamic(struct elf *elf, const Elf64_Phdr *dynamic)
{
    bool now = false, text = false;
    Elf64_Dyn entry;
    for (uint64_t i = 0; dynamic_at(elf, dynamic, i, &entry); i++) {
        const uint64_t value = entry.d_un.d_val;
        now |= entry.d_tag == DT_BIND_NOW || (entry.d_tag == DT_FLAGS && (value & DF_BIND_NOW)) ||
               (entry.d_tag == DT_FLAGS_1 && (value & DF_1_NOW));
        text |= entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && (value & DF_TEXTREL));
        elf->strings = entry.d_tag == DT_STRTAB ? value : elf->strings;
        elf->strings_size = entry.d_tag == DT_STRSZ ? value : elf->strings_size;
        elf->symbols = entry.d_tag == DT_SYMTAB ? value : elf->symbols;
        elf->versions = entry.d_tag == DT_VERSYM ? value : elf->versions;
        elf->needed_versions = entry.d_tag == DT_VERNEED ? value : elf->needed_versions;
        elf->needed_version_count = entry.d_tag == DT_VERNEEDNUM ? value : elf->needed_version_count;
        elf->got = entry.d_tag == DT_PLTGOT ? value : elf->got;
    }
    if (!now)
        problem(elf, "not bound at load (BIND_NOW)");
    if (text)
        problem(elf, "has relocations in its code");
    for (uint64_t i = 0; dynamic_at(elf, dynamic, i, &entry); i++) {
        if (entry.d_tag == DT_NEEDED)
            check_library(elf, string_at(elf, entry.d_un.d_val));
        if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH)
            problem(elf, "has a %s: \"%s\"", entry.d_tag == DT_RPATH ? "RPATH" : "RUNPATH",
                    string_at(elf, entry.d_un.d_val));
        if (entry.d_tag == DT_AUXILIARY || entry.d_tag == DT_FILTER)
            problem(elf, "is a filter for \"%s\"", string_at(elf, entry.d_un.d_val));
    }
}

static void check_relro(struct elf *elf, const Elf64_Phdr *dynamic, const Elf64_Phdr *relro)
{
    if (relro->p_type == PT_NULL)
        return;
    uint64_t end = relro->p_vaddr + relro->p_memsz;
    if (dynamic->p_vaddr < relro->p_vaddr || dynamic->p_vaddr + dynamic->p_memsz > end)
        problem(elf, "the dynamic section is outside of RELRO");
    if (elf->got && (elf->got < relro->p_vaddr || elf->got >= end))
        problem(elf, "the GOT is outside of RELRO");
}

/* GLIBC_2.N or GLIBC_2.N.M with N at most 17. */
static bool is_old_version(const char *name)
{
    unsigned minor;
    return sscanf(name, "GLIBC_2.%u", &minor) == 1 && minor <= MOST_GLIBC_MINOR;
}

/* Name of the needed version that symbols call `index`; NULL when there is none. With index 0: checks them
 * all. */
static const char *needed_version(struct elf *elf, unsigned index)
{
    uint64_t at = offset_of(elf, elf->needed_versions);
    Elf64_Verneed need;
    Elf64_Vernaux version;
    for (uint64_t i = 0; i < elf->needed_version_count && i < MOST_HEADERS; i++) {
        if (!take(elf, at, &need, sizeof need))
            return NULL;
        uint64_t inner = at + need.vn_aux;
        for (unsigned k = 0; k < need.vn_cnt && take(elf, inner, &version, sizeof version); k++) {
            const char *name = string_at(elf, version.vna_name);
            if (!index && !is_old_version(name))
                problem(elf, "needs version \"%s\" of %s", name, string_at(elf, need.vn_file));
            if (index && (version.vna_other & 0x7fff) == index)
                return name;
            inner += version.vna_next;
        }
        at += need.vn_next;
    }
    return NULL;
}

static void check_symbol(struct elf *elf, const Elf64_Sym *symbol, uint64_t index, unsigned *exported)
{
    static const char *const refused[] = {"mmap", "mmap64", "mprotect", "pkey_mprotect", "mremap"};
    const char *name = string_at(elf, symbol->st_name);
    if (ELF64_ST_BIND(symbol->st_info) == STB_LOCAL)
        return;
    if (symbol->st_shndx != SHN_UNDEF) {
        if (strcmp(name, "gpucc_bundle_query") == 0 && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
            ++*exported;
        else
            problem(elf, "exports \"%s\"", name);
        return;
    }
    uint16_t version = 0;
    if (!elf->versions || !take(elf, offset_of(elf, elf->versions) + 2 * index, &version, sizeof version) ||
        !needed_version(elf, version & 0x7fff ? version & 0x7fff : 0xffff))
        problem(elf, "needs \"%s\" without a version", name);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(name, refused[i]) == 0)
            problem(elf, "needs \"%s\"", name);
}

static void check_symbols(struct elf *elf)
{
    uint64_t found = 0;
    unsigned exported = 0;
    for (unsigned i = 0; i < elf->header.e_shnum; i++) {
        Elf64_Shdr section;
        Elf64_Sym symbol;
        if (!take(elf, elf->header.e_shoff + (uint64_t)i * sizeof section, &section, sizeof section))
            break;
        if (section.sh_type != SHT_DYNSYM || section.sh_addr != elf->symbols)
            continue;
        for (uint64_t k = 1; k < section.sh_size / sizeof symbol; k++, found++) {
            if (!take(elf, section.sh_offset + k * sizeof symbol, &symbol, sizeof symbol))
                break;
            check_symbol(elf, &symbol, k, &exported);
        }
    }
    if (!found)
        problem(elf, "no dynamic symbols");
    if (exported != 1)
        problem(elf, "does not export gpucc_bundle_query");
}

/* The whole file; weights behind the image are not looked at, so the first part is enough. */
static bool read_file(struct elf *elf, unsigned char **memory)
{
    const size_t room = (size_t)64 << 20;
    FILE *file = fopen(elf->path, "rb");
    *memory = file ? malloc(room) : NULL;
    if (*memory)
        elf->count = fread(*memory, 1, room, file);
    if (file)
        fclose(file);
    elf->bytes = *memory;
    if (!*memory || !elf->count)
        problem(elf, "cannot be read");
    return *memory && elf->count;
}

unsigned bundle_elf_problems(const char *path, FILE *report)
{
    struct elf elf = {.path = path, .report = report};
    unsigned char *memory = NULL;
    Elf64_Phdr dynamic, relro;
    if (read_file(&elf, &memory) && read_header(&elf)) {
        check_segments(&elf, &dynamic, &relro);
        if (dynamic.p_type != PT_NULL) {
            check_dynamic(&elf, &dynamic);
            check_relro(&elf, &dynamic, &relro);
            needed_version(&elf, 0);
            check_symbols(&elf);
        }
    }
    free(memory);
    return elf.problems;
}

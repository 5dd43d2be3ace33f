/* Kernels of Kernel IR made runnable in a test: compiled by LLVM, linked by ld.lld into a library in a
 * scratch folder, and found there by name (their symbols are hidden, so the ELF symbol table is read). */
#ifndef GPUCC_TESTS_UNIT_KERNEL_SUPPORT_H
#define GPUCC_TESTS_UNIT_KERNEL_SUPPORT_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "codegen/printers.h"
#include "ir/support/file.h"

#include "tests/unit/support.h"

typedef void kernel_function(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                             void *scratch);

struct library {
    void *handle;
    const char *image; /* the linked file */
    uintptr_t base;
};

static inline bool machine_has_v4(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/* The levels of x86-64 that kernels are made for; NULL: this machine cannot run it. */
enum { TEST_LEVELS = 3 };
static inline const struct machine *test_level(unsigned index)
{
    static const char *const names[TEST_LEVELS] = {"cpu", "cpu-v2", "cpu-v4"};
    return index < 2 || machine_has_v4() ? machine_find(names[index]) : NULL;
}

/* Symbols that an object needs from elsewhere. */
static inline unsigned undefined_symbols(const unsigned char *object)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)object;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(object + header->e_shoff);
    unsigned count = 0;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(object + sections[i].sh_offset);
        for (size_t k = 1; k < sections[i].sh_size / sizeof *symbols; k++)
            count += symbols[k].st_shndx == SHN_UNDEF && symbols[k].st_name != 0;
    }
    return count;
}

static inline kernel_function *library_kernel(const struct library *library, const char *name)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)library->image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(library->image + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(library->image + sections[i].sh_offset);
        const char *names = library->image + sections[sections[i].sh_link].sh_offset;
        for (size_t k = 1; k < sections[i].sh_size / sizeof *symbols; k++)
            if (strcmp(names + symbols[k].st_name, name) == 0) {
                void *address = (void *)(library->base + symbols[k].st_value);
                kernel_function *function;
                memcpy(&function, &address, sizeof function);
                return function;
            }
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

/* Compiles, checks that nothing is missing, links and loads; any failure fails the test. */
static inline struct library load_kernels(struct arena *arena, const struct object_kernel *kernels,
                                          uint32_t count)
{
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena, "test");
    struct object_file *objects;
    uint32_t object_count;
    if (!llvm_objects(kernels, count, 1, "", arena, &diagnostics, &objects, &object_count))
        fail_msg("%s", diagnostics.items.items[0].message);
    char *folder, *log;
    assert_true(temporary_folder(arena, &folder));
    const char *output = arena_printf(arena, "%s/kernels.so", folder);
    char **arguments = arena_new_array(arena, char *, object_count + 8);
    uint32_t at = 0;
    arguments[at++] = arena_string(arena, "ld.lld-19");
    arguments[at++] = arena_string(arena, "-shared");
    arguments[at++] = arena_string(arena, "-o");
    arguments[at++] = arena_string(arena, output);
    for (uint32_t i = 0; i < object_count; i++) {
        assert_int_equal(undefined_symbols(objects[i].bytes), 0);
        char *path = arena_printf(arena, "%s/%u.o", folder, (unsigned)i);
        assert_true(file_write_all(arena, path, objects[i].bytes, objects[i].length));
        arguments[at++] = path;
    }
    int status;
    assert_true(run_program(arena, arguments, &status, &log));
    if (status != 0)
        fail_msg("%s", log);
    struct library library = {.handle = dlopen(output, RTLD_NOW | RTLD_LOCAL)};
    if (!library.handle)
        fail_msg("%s", dlerror());
    size_t bytes;
    char *image;
    struct link_map *map;
    assert_true(file_read_all(arena, output, SIZE_MAX, &image, &bytes));
    assert_int_equal(dlinfo(library.handle, RTLD_DI_LINKMAP, &map), 0);
    library.image = image;
    library.base = map->l_addr;
    remove_folder(folder);
    return library;
}

#endif

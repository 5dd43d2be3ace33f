/* Links a bundle: our tables, LLVM's objects and the embedded runtime, against stubs of the C library that
 * know nothing newer than glibc 2.17. All inputs stand in a fresh folder under fixed names, so the result
 * hangs on their bytes and on the linker alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/bundle_internal.h"
#include "ir/support/embedded.h"

/* HOST/runtime.o and HOST/lib*.so, the stubs; see runtime/CMakeLists.txt. */
extern const struct embedded_file runtime_files[];

enum { MAX_IMAGE_BYTES = 1 << 30 };

static const char version_script[] = "{ global: gpucc_bundle_query; local: *; };\n";

/* Compilers are told the linker's flags one by one behind -Xlinker. */
static const char *const flags[] = {"-shared",
                                    "--version-script=exports",
                                    "--strip-all",
                                    "--build-id=none",
                                    "--hash-style=gnu",
                                    "--gc-sections",
                                    "--no-undefined",
                                    "--as-needed",
                                    "-z",
                                    "relro",
                                    "-z",
                                    "now",
                                    "-z",
                                    "noexecstack",
                                    "-z",
                                    "text",
                                    "-z",
                                    "separate-code"};

/* The file that a name means: itself when it has a slash, else the first on PATH. */
static const char *find_program(const char *name, struct arena *arena)
{
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? name : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        char *candidate = arena_printf(arena, "%.*s/%s", (int)length, at, name);
        if (length && access(candidate, X_OK) == 0)
            return candidate;
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* The name in the host's folder; NULL: the file is another host's. */
static const char *host_file(const struct embedded_file *file, enum host host)
{
    const size_t length = strlen(host_name(host));
    return strncmp(file->name, host_name(host), length) == 0 && file->name[length] == '/'
               ? file->name + length + 1
               : NULL;
}

bool bundle_check_host(enum host host, struct diagnostics *diagnostics)
{
    for (const struct embedded_file *file = runtime_files; file->name; file++)
        if (host_file(file, host))
            return true;
    diag_error(diagnostics, DIAG_no_host, NULL, "this gpucc was built without the runtime for %s hosts",
               host_name(host));
    return false;
}

const char *bundle_find_linker(enum host host, const char *wish, struct arena *arena,
                               struct diagnostics *diagnostics)
{
    static const char *const names[] = {"ld.lld-19", "ld.lld", "ld", "cc"};
    enum { FOR_EVERY_HOST = 2 }; /* the first ones link for any processor */
    const size_t count = host == HOST_X86_64 ? sizeof names / sizeof *names : FOR_EVERY_HOST;
    const char *found = wish ? find_program(wish, arena) : NULL;
    for (size_t i = 0; i < count && !wish && !found; i++)
        found = find_program(names[i], arena);
    if (!found && diagnostics && wish)
        diag_error(diagnostics, DIAG_no_linker, NULL, "the linker %s cannot be run",
                   diag_quote(diagnostics, wish));
    else if (!found && diagnostics)
        diag_error(diagnostics, DIAG_no_linker, NULL, "no linker was found on PATH (%s)",
                   host == HOST_X86_64 ? "ld.lld-19, ld.lld, ld or cc" : "ld.lld-19 or ld.lld");
    return found;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* cc, gcc-12, clang, ...: drives a linker instead of being one. */
static bool is_compiler(const char *linker)
{
    const char *name = base_name(linker);
    return strncmp(name, "ld", 2) != 0 && strstr(name, "-ld") == NULL && strncmp(name, "mold", 4) != 0;
}

bool bundle_find_tools(struct bundle_writer *writer)
{
    writer->linker =
        bundle_find_linker(writer->inputs->host, writer->inputs->linker, writer->arena, writer->diagnostics);
    if (!writer->linker)
        return false;
    char *arguments[] = {arena_string(writer->arena, writer->linker),
                         arena_string(writer->arena, "--version"), NULL};
    char *log;
    int status;
    if (!run_program(writer->arena, arguments, &status, &log) || status != 0) {
        diag_error(writer->diagnostics, DIAG_no_linker, NULL, "the linker %s cannot be run",
                   diag_quote(writer->diagnostics, writer->linker));
        return false;
    }
    log[strcspn(log, "\r\n")] = '\0';
    writer->linker_version = log;
    return true;
}

static bool unwritable(struct bundle_writer *writer, const char *what)
{
    int reason = errno;
    diag_error(writer->diagnostics, reason == ENOMEM ? DIAG_out_of_memory : DIAG_output_unwritable, NULL,
               "cannot write %s: %s", what, strerror(reason));
    return false;
}

static bool write_input(struct bundle_writer *writer, const char *name, const void *data, size_t bytes)
{
    const char *path = arena_printf(writer->arena, "%s/%s", writer->folder, name);
    return file_write_all(writer->arena, path, data, bytes) ||
           unwritable(writer, "a temporary file for the linker");
}

struct command {
    struct arena *arena;
    VEC(char *) words;
};

static void add_word(struct command *command, const char *word)
{
    vec_push(command->arena, &command->words, arena_string(command->arena, word));
}

static void add_path(struct command *command, const char *folder, const char *name)
{
    vec_push(command->arena, &command->words, arena_printf(command->arena, "%s/%s", folder, name));
}

static void add_flags(struct command *command, const struct bundle_writer *writer)
{
    bool compiler = is_compiler(writer->linker);
    if (compiler) {
        add_word(command, "-shared");
        add_word(command, "-nostdlib");
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *flag = flags[i];
        if (compiler)
            add_word(command, "-Xlinker");
        if (strncmp(flag, "--version-script=", 17) == 0)
            vec_push(command->arena, &command->words,
                     arena_printf(command->arena, "--version-script=%s/exports", writer->folder));
        else
            add_word(command, flag);
    }
    if (compiler)
        add_word(command, "-Xlinker");
    add_word(command, "--undefined=gpucc_bundle_query");
}

static bool write_inputs(struct bundle_writer *writer, struct command *command)
{
    const struct object_file tables = elf_tables_object(writer->arena, &writer->blob, writer->inputs->host);
    if (!write_input(writer, "exports", version_script, sizeof version_script - 1) ||
        !write_input(writer, "tables.o", tables.bytes, tables.length))
        return false;
    add_path(command, writer->folder, "tables.o");
    for (uint32_t i = 0; i < writer->inputs->object_count; i++) {
        const struct object_file *object = &writer->inputs->objects[i];
        const char *name = arena_printf(writer->arena, "kernels%u.o", i);
        if (!write_input(writer, name, object->bytes, object->length))
            return false;
        add_path(command, writer->folder, name);
    }
    for (const struct embedded_file *file = runtime_files; file->name; file++) {
        const char *name = host_file(file, writer->inputs->host);
        if (name && !write_input(writer, name, file->data, file->bytes))
            return false;
        if (name)
            add_path(command, writer->folder, name);
    }
    return true;
}

static bool run_linker(struct bundle_writer *writer, struct command *command)
{
    char *log;
    int status;
    vec_push(command->arena, &command->words, NULL);
    if (!run_program(writer->arena, command->words.items, &status, &log)) {
        diag_error(writer->diagnostics, DIAG_no_linker, NULL, "the linker %s cannot be run: %s",
                   diag_quote(writer->diagnostics, writer->linker), strerror(errno));
        return false;
    }
    if (status == 0)
        return true;
    const char *full = log_tells_full_disk(log);
    if (full) {
        diag_error(writer->diagnostics, DIAG_output_unwritable, NULL, "the linker cannot write in %s: %s",
                   diag_quote(writer->diagnostics, writer->folder), full);
        return false;
    }
    struct text text;
    text_init(&text, writer->arena);
    text_escape(&text, log, 2000);
    diag_error(writer->diagnostics, DIAG_tool_failed, NULL, "the linker %s failed with status %d: %s",
               diag_quote(writer->diagnostics, writer->linker), status, text.data);
    return false;
}

static bool read_image(struct bundle_writer *writer)
{
    const char *path = arena_printf(writer->arena, "%s/image", writer->folder);
    char *data;
    size_t bytes, offset, length;
    if (!file_read_all(writer->arena, path, MAX_IMAGE_BYTES, &data, &bytes)) {
        if (errno != ENOENT)
            return unwritable(writer, "the linked image");
        diag_error(writer->diagnostics, DIAG_no_linker, NULL, "the linker %s made no file",
                   diag_quote(writer->diagnostics, writer->linker));
        return false;
    }
    /* Zeros up to the page where weights may begin are part of the image, so that its hash covers them. */
    writer->image_bytes = (bytes + BUNDLE_PAGE - 1) / BUNDLE_PAGE * BUNDLE_PAGE;
    writer->image = arena_alloc(writer->arena, writer->image_bytes);
    memcpy(writer->image, data, bytes);
    if (!elf_find_section(writer->image, writer->image_bytes, BUNDLE_SECTION, &offset, &length) ||
        length != writer->blob.length || offset % 8 != 0) {
        diag_error(writer->diagnostics, DIAG_tool_failed, NULL,
                   "the linker %s lost the section " BUNDLE_SECTION,
                   diag_quote(writer->diagnostics, writer->linker));
        return false;
    }
    writer->header = (struct bundle_header *)(void *)(writer->image + offset);
    return true;
}

bool bundle_link(struct bundle_writer *writer)
{
    struct command command = {.arena = writer->arena};
    if (!temporary_folder(writer->arena, &writer->folder))
        return unwritable(writer, "a temporary folder for the linker");
    add_word(&command, writer->linker);
    add_flags(&command, writer);
    add_word(&command, "-o");
    add_path(&command, writer->folder, "image");
    return write_inputs(writer, &command) && run_linker(writer, &command) && read_image(writer);
}

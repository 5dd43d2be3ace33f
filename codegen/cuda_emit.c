/* --emit-cuda: every kernel's source as one file that compiles alone, a script that rebuilds the cubins with
 * nvcc, and a map from kernels to the model's nodes. Only the map holds text of the model, escaped; file
 * names are our own. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/printers.h"
#include "ir/support/file.h"

static bool write_text(struct cuda_emission *e, const char *name, bool executable, const struct text *text)
{
    const char *path = arena_printf(e->arena, "%s/%s", e->folder, name);
    struct output_file file;
    vec_push(e->arena, &e->files, path);
    if (output_open(&file, e->arena, path, executable) && output_write(&file, text->data, text->length) &&
        output_commit(&file))
        return true;
    int error = errno;
    output_abandon(&file);
    e->files.count--;
    diag_error(e->diagnostics, DIAG_output_unwritable, NULL, "%s: %s", diag_quote(e->diagnostics, path),
               strerror(error));
    return false;
}

static void put_build_script(const struct plan *plan, struct text *out)
{
    text_printf(out,
                "#!/bin/sh\n"
                "# Rebuilds the cubins of this folder's kernels as gpucc does: every fma is written, "
                "division and roots are\n"
                "# exact, subnormals stay. Needs nvcc of CUDA 12 or newer in PATH.\n"
                "set -eu\n"
                "cd \"$(dirname \"$0\")\"\n"
                "for source in *.cu; do\n"
                "    nvcc --cubin --gpu-architecture=%s --fmad=false --prec-div=true --prec-sqrt=true "
                "--ftz=false \\\n"
                "        --diag-suppress=177 `# helpers that a kernel does not use` \\\n"
                "        -o \"${source%%.cu}.cubin\" \"$source\"\n"
                "done\n",
                plan->machine->name);
}

/* kernel <tab> nodes: one line a launch, in order. */
static void put_map(const struct plan *plan, struct text *out)
{
    text_put(out, "# launch, kernel, nodes (number, operator, name)\n");
    for (uint32_t i = 0; i < plan->launches.count; i++) {
        const struct plan_launch *launch = &plan->launches.items[i];
        text_printf(out, "%u\t%s\t", i, plan->kernels.items[launch->kernel].kernel->name);
        for (const struct location *at = launch->location; at; at = at->also) {
            text_printf(out, "%s#%u ", at == launch->location ? "" : ", ", at->number);
            text_quote(out, at->op_type ? at->op_type : "", 80);
            text_put(out, " ");
            text_quote(out, at->name ? at->name : "", 400);
        }
        text_put(out, "\n");
    }
}

/* By these tests/gpu tells which kernels have run on a GPU. */
static void put_hashes(const struct plan *plan, struct text *out)
{
    for (uint32_t i = 0; i < plan->kernels.count; i++)
        text_printf(out, "%s %s\n", plan->kernels.items[i].hash, plan->kernels.items[i].kernel->name);
}

static bool make_folder(struct cuda_emission *e, const char *path)
{
    vec_push(e->arena, &e->folders,
             arena_string(e->arena, path)); /* room first: nothing may fail behind it */
    if (mkdir(path, 0777) == 0)
        return true;
    e->folders.count--;
    return errno == EEXIST;
}

/* The folder and those above it that are missing. */
static bool make_folders(struct cuda_emission *e)
{
    char *path = arena_string(e->arena, e->folder);
    bool good = true;
    for (char *at = path; *at && good; at++)
        if (*at == '/' && at > path) {
            *at = '\0';
            good = make_folder(e, path);
            *at = '/';
        }
    if (good && make_folder(e, path))
        return true;
    diag_error(e->diagnostics, DIAG_output_unwritable, NULL, "%s: %s", diag_quote(e->diagnostics, e->folder),
               strerror(errno));
    return false;
}

static bool write_files(struct cuda_emission *e)
{
    const struct plan *plan = e->plan;
    struct text text;
    for (uint32_t i = 0; i < plan->kernels.count; i++) {
        text_init(&text, e->arena);
        print_cuda_prelude(plan->kernels.items[i].source, plan->machine, &text);
        text_put(&text, plan->kernels.items[i].source);
        const char *name = arena_printf(e->arena, "%s.cu", plan->kernels.items[i].kernel->name);
        if (!write_text(e, name, false, &text))
            return false;
    }
    text_init(&text, e->arena);
    put_build_script(plan, &text);
    if (!write_text(e, "build.sh", true, &text))
        return false;
    text_init(&text, e->arena);
    put_hashes(plan, &text);
    if (!write_text(e, "kernels.hash", false, &text))
        return false;
    text_init(&text, e->arena);
    put_map(plan, &text);
    return write_text(e, "kernels.map", false, &text);
}

void cuda_emit_remove(struct cuda_emission *e)
{
    while (e->files.count)
        unlink(e->files.items[--e->files.count]);
    while (e->folders.count)
        rmdir(e->folders.items[--e->folders.count]);
}

bool cuda_emit(const struct plan *plan, const char *folder, struct arena *arena,
               struct diagnostics *diagnostics, struct cuda_emission *e)
{
    struct recovery *outer = arena->recovery, inner;
    *e = (struct cuda_emission){.plan = plan, .folder = folder, .arena = arena, .diagnostics = diagnostics};
    if (setjmp(inner.jump) != 0) {
        arena->recovery = outer;
        cuda_emit_remove(e);
        longjmp(outer->jump, 1);
    }
    arena->recovery = &inner;
    bool good = make_folders(e) && write_files(e);
    arena->recovery = outer;
    if (!good)
        cuda_emit_remove(e);
    return good;
}

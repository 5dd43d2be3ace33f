/* --emit-cuda: every kernel's source as one file that compiles alone, a script that rebuilds the cubins with
 * nvcc, and a map from kernels to the model's nodes. Only the map holds text of the model, escaped; file
 * names are our own. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/printers.h"
#include "ir/support/file.h"

static bool write_text(const char *folder, const char *name, bool executable, const struct text *text,
                       struct arena *arena, struct diagnostics *diagnostics)
{
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    struct output_file file;
    if (output_open(&file, arena, path, executable) && output_write(&file, text->data, text->length) &&
        output_commit(&file))
        return true;
    int error = errno;
    output_abandon(&file);
    diag_error(diagnostics, DIAG_output_unwritable, NULL, "%s: %s", diag_quote(diagnostics, path),
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

bool cuda_emit(const struct plan *plan, const char *folder, struct arena *arena,
               struct diagnostics *diagnostics)
{
    char *path = arena_string(arena, folder);
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0777);
            *at = '/';
        }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        diag_error(diagnostics, DIAG_output_unwritable, NULL, "%s: %s", diag_quote(diagnostics, folder),
                   strerror(errno));
        return false;
    }
    struct text text;
    for (uint32_t i = 0; i < plan->kernels.count; i++) {
        text_init(&text, arena);
        print_cuda_prelude(&text);
        text_put(&text, plan->kernels.items[i].source);
        const char *name = arena_printf(arena, "%s.cu", plan->kernels.items[i].kernel->name);
        if (!write_text(folder, name, false, &text, arena, diagnostics))
            return false;
    }
    text_init(&text, arena);
    put_build_script(plan, &text);
    if (!write_text(folder, "build.sh", true, &text, arena, diagnostics))
        return false;
    text_init(&text, arena);
    put_hashes(plan, &text);
    if (!write_text(folder, "kernels.hash", false, &text, arena, diagnostics))
        return false;
    text_init(&text, arena);
    put_map(plan, &text);
    return write_text(folder, "kernels.map", false, &text, arena, diagnostics);
}

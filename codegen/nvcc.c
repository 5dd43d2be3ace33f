/* Runs nvcc without a shell on a file in a fresh folder of mode 0700, which is removed afterwards. Each call
 * has an arena and a recovery point of its own: calls come from several threads. */
#include "codegen/nvcc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/file.h"

enum { LARGEST_IMAGE = 1 << 30, OLDEST_MAJOR = 12 };

static const char program[] = "nvcc";

const char *nvcc_version(int *major, int *minor, struct arena *arena, struct diagnostics *diagnostics)
{
    char name[sizeof program], flag[] = "--version";
    memcpy(name, program, sizeof program);
    char *argv[] = {name, flag, NULL};
    int status = 0;
    char *log = NULL;
    const char *at = NULL;
    if (run_program(arena, argv, &status, &log) && status == 0 && log)
        at = strstr(log, ", V");
    if (!at) {
        diag_error(diagnostics, DIAG_no_compiler, NULL,
                   "nvcc was not found in PATH, or does not tell its version");
        return NULL;
    }
    char *end;
    *major = (int)strtol(at + 3, &end, 10);
    *minor = *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
    if (*major < OLDEST_MAJOR) {
        diag_error(diagnostics, DIAG_no_compiler, NULL, "nvcc is of CUDA %d.%d; %d.0 or newer is needed",
                   *major, *minor, OLDEST_MAJOR);
        return NULL;
    }
    size_t length = strspn(at + 3, "0123456789.");
    return arena_printf(arena, "nvcc %.*s", (int)length, at + 3);
}

/* In memory of malloc, as nvrtc_result wants it. */
static void *duplicate(const void *data, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    return copy ? memcpy(copy, data, bytes) : NULL;
}

static bool machine_lacks(struct nvrtc_result *out, int error)
{
    out->error = error ? error : EIO;
    return false;
}

static bool compile_in(struct arena *arena, const char *folder, const char *source,
                       const char *const *options, uint32_t option_count, const char *architecture, bool ptx,
                       struct nvrtc_result *out)
{
    char *input = arena_printf(arena, "%s/kernels.cu", folder),
         *output = arena_printf(arena, "%s/kernels.out", folder);
    VEC(char *) argv = {0};
    vec_push(arena, &argv, arena_string(arena, program));
    vec_push(arena, &argv, arena_string(arena, ptx ? "--ptx" : "--cubin"));
    vec_push(arena, &argv, arena_string(arena, architecture));
    for (uint32_t i = 0; i < option_count; i++)
        vec_push(arena, &argv, arena_string(arena, options[i]));
    vec_push(arena, &argv, arena_string(arena, "-o"));
    vec_push(arena, &argv, output);
    vec_push(arena, &argv, input);
    vec_push(arena, &argv, (char *)NULL);
    int status = 0;
    char *log = NULL, *image = NULL;
    size_t bytes = 0;
    if (!file_write_all(arena, input, source, strlen(source)) ||
        !run_program(arena, argv.items, &status, &log))
        return machine_lacks(out, errno);
    if (log)
        out->log = duplicate(log, strlen(log) + 1);
    if (status != 0)
        return log && log_tells_full_disk(log) ? machine_lacks(out, ENOSPC) : false;
    if (!file_read_all(arena, output, LARGEST_IMAGE, &image, &bytes))
        return machine_lacks(out, errno);
    out->bytes = bytes + (ptx ? 1 : 0); /* PTX is loaded as a string: with its NUL */
    out->image = duplicate(image, out->bytes);
    return out->image ? true : machine_lacks(out, ENOMEM);
}

static bool compile_in_arena(struct arena *arena, struct recovery *recovery, const char *source,
                             const char *const *options, uint32_t option_count, const char *architecture,
                             bool ptx, struct nvrtc_result *out)
{
    char *volatile folder = NULL;
    volatile bool good = false;
    if (setjmp(recovery->jump) == 0) {
        char *made = NULL;
        if (temporary_folder(arena, &made)) {
            folder = made;
            good = compile_in(arena, made, source, options, option_count, architecture, ptx, out);
        } else {
            machine_lacks(out, errno);
        }
    } else {
        machine_lacks(out, ENOMEM);
    }
    if (folder)
        remove_folder(folder);
    return good;
}

bool nvcc_compile(const char *source, const char *const *options, uint32_t option_count,
                  const char *architecture, bool ptx, struct nvrtc_result *out)
{
    struct arena arena;
    struct recovery recovery;
    *out = (struct nvrtc_result){0};
    arena_init(&arena, &system_allocator, &recovery);
    bool good = compile_in_arena(&arena, &recovery, source, options, option_count, architecture, ptx, out);
    arena_release(&arena);
    return good;
}

const char *cuda_save_failure(const char *source, const char *log, struct arena *arena)
{
    char *folder = NULL;
    if (!temporary_folder(arena, &folder))
        return NULL;
    const char *text = log ? log : "";
    bool good = file_write_all(arena, arena_printf(arena, "%s/kernels.cu", folder), source, strlen(source)) &&
                file_write_all(arena, arena_printf(arena, "%s/kernels.log", folder), text, strlen(text));
    return good ? folder : NULL;
}

/* Compiles a plan's CUDA kernels: several small kernels a unit (a unit costs NVRTC a fixed time), units in
 * parallel, each through the kernel cache. A unit's text and so its place in the cache hang on its kernels
 * alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/kernel_cache.h"
#include "codegen/nvcc.h"
#include "codegen/nvrtc.h"
#include "codegen/printers.h"
#include "ir/support/threads.h"

enum {
    UNIT_KERNELS = 8,       /* at most */
    UNIT_BYTES = 24 * 1024, /* of source: then the next unit begins */
};

struct unit {
    const struct compile_work *work;
    const char *source; /* prelude and kernels */
    uint32_t first, count;
    struct nvrtc_result result;
    bool good;
};

struct compile_work {
    const struct plan *plan;
    const struct cuda_options *options;
    struct nvrtc *nvrtc; /* NULL: nvcc compiles */
    struct kernel_cache cache;
    bool cache_open;
    const char *architecture; /* --gpu-architecture=... */
    const char *compiler;     /* name and version, for the cache's key */
    bool ptx;
    struct unit *units;
    uint32_t unit_count;
};

/* The same arithmetic from both compilers: every fma is written, divisions and roots are exact, subnormals
 * stay. */
static const char *const exact_options[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                            "--ftz=false"};
enum { EXACT_OPTIONS = sizeof exact_options / sizeof exact_options[0] };

static uint32_t split_units(const struct plan *plan, struct arena *arena, struct unit **out)
{
    VEC(struct unit) units = {0};
    for (uint32_t i = 0; i < plan->kernels.count;) {
        struct text kernels, source;
        struct unit unit = {.first = i};
        text_init(&kernels, arena);
        while (i < plan->kernels.count && unit.count < UNIT_KERNELS &&
               (unit.count == 0 || kernels.length < UNIT_BYTES)) {
            text_printf(&kernels, "%s\n", plan->kernels.items[i++].source);
            unit.count++;
        }
        text_init(&source, arena);
        print_cuda_prelude(kernels.data, plan->machine, &source);
        text_put(&source, kernels.data);
        unit.source = source.data;
        vec_push(arena, &units, unit);
    }
    *out = units.items;
    return units.count;
}

static void compile_unit(void *user, uint32_t index)
{
    const struct compile_work *work = user;
    struct unit *unit = &work->units[index];
    unsigned char key[32];
    kernel_cache_key(unit->source, strlen(unit->source), work->architecture, work->compiler, exact_options,
                     EXACT_OPTIONS, key);
    if (kernel_cache_read(&work->cache, key, &unit->result.image, &unit->result.bytes)) {
        unit->good = true;
        return;
    }
    if (work->nvrtc) {
        const char *options[EXACT_OPTIONS + 1];
        memcpy(options, exact_options, sizeof exact_options);
        options[EXACT_OPTIONS] = work->architecture;
        unit->good =
            nvrtc_compile(work->nvrtc, unit->source, options, EXACT_OPTIONS + 1, work->ptx, &unit->result);
    } else {
        unit->good = nvcc_compile(unit->source, exact_options, EXACT_OPTIONS, work->architecture, work->ptx,
                                  &unit->result);
    }
    if (unit->good)
        kernel_cache_write(&work->cache, key, unit->result.image, unit->result.bytes);
}

/* A defect of ours: what was compiled and what the compiler said are kept for the report. */
static void report_unit(const struct compile_work *work, const struct unit *unit, struct arena *arena,
                        struct diagnostics *diagnostics)
{
    const struct plan_kernel *kernel = &work->plan->kernels.items[unit->first];
    if (unit->result.error) {
        bool memory = unit->result.error == ENOMEM;
        diag_error(diagnostics, memory ? DIAG_out_of_memory : DIAG_output_unwritable, NULL,
                   "%s cannot compile kernels: %s", work->compiler, strerror(unit->result.error));
        return;
    }
    const char *saved = cuda_save_failure(unit->source, unit->result.log, arena);
    diag_error(diagnostics, DIAG_tool_failed, kernel->kernel->location,
               "%s refused the code of kernel %s (and %u others of its unit); source and log are in %s",
               work->compiler, kernel->kernel->name, unit->count - 1,
               saved ? diag_quote(diagnostics, saved) : "(not saved)");
}

static bool collect_images(struct compile_work *work, uint32_t count, struct arena *arena,
                           struct diagnostics *diagnostics, struct cuda_image **images)
{
    bool good = true;
    *images = arena_new_array(arena, struct cuda_image, count);
    for (uint32_t i = 0; i < count; i++) {
        struct unit *unit = &work->units[i];
        if (!unit->good) {
            report_unit(work, unit, arena, diagnostics);
            good = false;
            continue;
        }
        (*images)[i] = (struct cuda_image){.bytes = arena_copy(arena, unit->result.image, unit->result.bytes),
                                           .length = unit->result.bytes,
                                           .first_kernel = unit->first,
                                           .kernel_count = unit->count};
    }
    return good;
}

static bool open_compiler(struct compile_work *work, struct arena *arena, struct diagnostics *diagnostics)
{
    int major = 0, minor = 0;
    if (work->options->compiler == COMPILER_NVCC) {
        work->compiler = nvcc_version(&major, &minor, arena, diagnostics);
        return work->compiler != NULL;
    }
    work->nvrtc = nvrtc_open(arena, diagnostics);
    if (!work->nvrtc)
        return false;
    nvrtc_version(work->nvrtc, &major, &minor);
    work->compiler = arena_printf(arena, "NVRTC %d.%d", major, minor);
    return true;
}

static bool compile_units(struct compile_work *work, struct arena *arena, struct diagnostics *diagnostics,
                          struct cuda_image **images)
{
    const char *machine = work->plan->machine->name;
    if (!open_compiler(work, arena, diagnostics))
        return false;
    work->architecture = arena_printf(arena, "--gpu-architecture=%s%s", work->ptx ? "compute_" : "",
                                      machine + (work->ptx ? strlen("sm_") : 0));
    work->cache = kernel_cache_open(work->options->cache_folder, arena);
    work->cache_open = true;
    work->unit_count = split_units(work->plan, arena, &work->units);
    run_jobs(work->unit_count, work->options->threads, compile_unit, work);
    return collect_images(work, work->unit_count, arena, diagnostics, images);
}

static void end_work(struct compile_work *work)
{
    for (uint32_t i = 0; i < work->unit_count; i++)
        nvrtc_result_release(&work->units[i].result);
    if (work->cache_open)
        kernel_cache_close(&work->cache);
    nvrtc_close(work->nvrtc);
}

/* What is not the arena's is given back before the arena's failure goes on to whom it is meant for. */
bool cuda_compile(const struct plan *plan, const struct cuda_options *options, bool ptx, struct arena *arena,
                  struct diagnostics *diagnostics, struct cuda_image **images, uint32_t *image_count)
{
    struct compile_work work = {.plan = plan, .options = options, .ptx = ptx};
    struct recovery *outer = arena->recovery, inner;
    *images = NULL;
    *image_count = 0;
    if (setjmp(inner.jump) != 0) {
        arena->recovery = outer;
        end_work(&work);
        longjmp(outer->jump, 1);
    }
    arena->recovery = &inner;
    bool good = compile_units(&work, arena, diagnostics, images);
    arena->recovery = outer;
    *image_count = good ? work.unit_count : 0;
    end_work(&work);
    return good;
}

const char *cuda_compiler_name(enum cuda_compiler compiler, int *major, int *minor, struct arena *arena,
                               struct diagnostics *diagnostics)
{
    *major = *minor = 0;
    if (compiler == COMPILER_NVCC)
        return nvcc_version(major, minor, arena, diagnostics);
    struct nvrtc *nvrtc = nvrtc_open(arena, diagnostics);
    if (!nvrtc)
        return NULL;
    nvrtc_version(nvrtc, major, minor);
    nvrtc_close(nvrtc);
    return arena_printf(arena, "NVRTC %d.%d", *major, *minor);
}

/* Compiles a plan's CUDA kernels: several small kernels a unit (a unit costs NVRTC a fixed time), units in
 * parallel, each through the kernel cache. A unit's text and so its place in the cache hang on its kernels
 * alone. */
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda_cache.h"
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
    const struct nvrtc *nvrtc; /* NULL: nvcc compiles */
    struct cuda_cache cache;
    const char *architecture; /* --gpu-architecture=... */
    const char *compiler;     /* name and version, for the cache's key */
    bool ptx;
    struct unit *units;
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
        while (i < plan->kernels.count && unit.count < UNIT_KERNELS && (unit.count == 0 || kernels.length < UNIT_BYTES)) {
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
    cuda_cache_key(unit->source, work->architecture, work->compiler, exact_options, EXACT_OPTIONS, key);
    if (cuda_cache_read(&work->cache, key, &unit->result.image, &unit->result.bytes)) {
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
        cuda_cache_write(&work->cache, key, unit->result.image, unit->result.bytes);
}

/* A defect of ours: what was compiled and what the compiler said are kept for the report. */
static void report_unit(const struct compile_work *work, const struct unit *unit, struct arena *arena,
                        struct diagnostics *diagnostics)
{
    const struct plan_kernel *kernel = &work->plan->kernels.items[unit->first];
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

bool cuda_compile(const struct plan *plan, const struct cuda_options *options, bool ptx, struct arena *arena,
                  struct diagnostics *diagnostics, struct cuda_image **images, uint32_t *image_count)
{
    const struct machine *machine = plan->machine;
    struct compile_work work = {.plan = plan, .options = options, .ptx = ptx};
    struct nvrtc *nvrtc = NULL;
    int major = 0, minor = 0;
    *images = NULL;
    *image_count = 0;
    if (options->compiler == COMPILER_NVRTC) {
        work.nvrtc = nvrtc = nvrtc_open(arena, diagnostics);
        if (!nvrtc)
            return false;
        nvrtc_version(nvrtc, &major, &minor);
        work.compiler = arena_printf(arena, "NVRTC %d.%d", major, minor);
    } else {
        work.compiler = nvcc_version(&major, &minor, arena, diagnostics);
        if (!work.compiler)
            return false;
    }
    work.architecture =
        arena_printf(arena, "--gpu-architecture=%s%s", ptx ? "compute_" : "", machine->name + (ptx ? 3 : 0));
    work.cache = cuda_cache_open(options->cache_folder, arena);
    uint32_t count = split_units(plan, arena, &work.units);
    run_jobs(count, options->threads, compile_unit, &work);
    bool good = collect_images(&work, count, arena, diagnostics, images);
    for (uint32_t i = 0; i < count; i++)
        nvrtc_result_release(&work.units[i].result);
    cuda_cache_close(&work.cache);
    nvrtc_close(nvrtc);
    *image_count = good ? count : 0;
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

/* Writes a bundle: tables, a pointer table of the CPU kernels, device code and weights become one shared
 * library.
 *
 *   1. bundle_tables.c  graph + plans -> the tables of runtime/bundle_format.h
 *   2. elf_object.c     tables + kernel symbols -> one relocatable ELF object
 *   3. bundle_link.c    that object + LLVM's objects + the embedded runtime -> the linked image, against our
 * own stubs
 *   4. bundle_weights.c constants behind the image, one at a time, and their hash tree
 *
 * Equal inputs and the same linker give equal bytes. Nothing stays behind on failure. */
#ifndef GPUCC_CODEGEN_BUNDLE_WRITER_H
#define GPUCC_CODEGEN_BUNDLE_WRITER_H

#include "codegen/plan.h"
#include "codegen/printers.h"

/* One plan of the bundle with its code. */
struct bundle_target {
    const struct plan *plan;
    /* CPU: symbol of each of the plan's kernels in `objects` (functions with the signature of
     * bundle_format.h). */
    const char *const *symbols; /* [plan->kernels.count] */
    /* CUDA: cubins for exactly this machine, and PTX for it and later ones; either may be empty. Each kernel
     * of the plan is in exactly one image of each kind that is present. */
    const struct cuda_image *cubins;
    uint32_t cubin_count;
    const struct cuda_image *ptx;
    uint32_t ptx_count;
};

/* One line of provenance: "LLVM", "19.1.7". `info` shows it. */
struct bundle_fact {
    const char *key, *value;
};

struct bundle_inputs {
    struct graph *graph;                 /* its dims may grow, nothing else changes */
    const struct bundle_target *targets; /* in the order asked for; CPU levels are targets of their own */
    uint32_t target_count;
    const struct bundle_target *init; /* of plan_init, for a CPU that every host has; NULL: weights are not listed */
    const struct object_file *objects; /* relocatable objects that hold the CPU kernels */
    uint32_t object_count;
    const struct bundle_fact
        *facts; /* versions and options; the writer adds its own version and the linker's */
    uint32_t fact_count;
    int nvrtc_major, nvrtc_minor; /* of the CUDA images: gives the driver version that is needed */
    enum host host;               /* that the CPU code is for */
    const char *linker;       /* program to use; NULL: ld.lld-19, ld.lld, ld, cc, the first that is found */
    const char *weights_path; /* weights go into this file; NULL: into the bundle */
    uint32_t threads;         /* for hashing; 0: one a CPU */
};

/* Records E0503 (no linker), E0504 (the linker refused), E0105 (output), E0101 (a weight cannot be read),
 * E0404 (too large), E0901 (memory). Uses the allocator of the graph's arena and gives all of it back. */
bool bundle_write(const struct bundle_inputs *inputs, const char *path, struct diagnostics *diagnostics);

/* The linker that bundle_write would use, as a path; NULL when there is none: E0503, unless `diagnostics` is
 * NULL. */
const char *bundle_find_linker(enum host host, const char *wish, struct arena *arena,
                               struct diagnostics *diagnostics);
/* E0506 when this gpucc has no runtime for the host. */
bool bundle_check_host(enum host host, struct diagnostics *diagnostics);

#endif

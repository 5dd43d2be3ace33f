/* Targets and machine descriptions, and the table of functions through which passes ask code generation. */
#ifndef GPUCC_IR_TARGET_H
#define GPUCC_IR_TARGET_H

#include "ir/group.h"

enum target_kind { TARGET_CPU, TARGET_CUDA };
enum host { HOST_X86_64, HOST_AARCH64, HOST_COUNT };

/* What a strategy may assume of the machine. Figures per multiprocessor where not said otherwise. */
struct machine {
    const char *name; /* "cpu", "sm_80", "sm_90a" */
    enum target_kind kind;
    /* CUDA */
    int compute_capability;      /* 80, 90 */
    bool architecture_specific;  /* the `a` suffix */
    uint32_t multiprocessors;
    bool asynchronous_copies;    /* cp.async: from global to shared memory past the registers */
    bool compiled_only;          /* its code has not run on such a chip: `info` says so */
    uint32_t threads;            /* resident at most */
    uint32_t blocks;             /* resident at most */
    uint32_t shared_bytes_block; /* that one block may have, dynamic limit */
    uint32_t shared_bytes;
    uint32_t registers;
    double clock;                /* cycles a second under load */
    double memory_bytes_per_second;
    double fp32_per_second;      /* operations, an fma is 2 */
    double tensor_per_second;    /* of tensor cores on 16-bit floats, summed in f32; CUDA */
    /* CPU */
    enum host host;              /* that the bundle is for */
    uint32_t level;              /* bundle_plan.level: 2, 3, 4 of x86-64; 8 for Armv8-A */
    const char *instruction_set; /* as LLVM names it */
    bool software_fma;           /* it has no fma instruction */
    uint32_t vector_bytes;
    uint32_t vector_registers;
};
const struct machine *machine_find(const char *target);
const struct machine *machine_row(uint32_t index); /* all, in order; NULL behind the last */
/* The machine for which groups and strategies are chosen: results must not hang on the level that runs, so what decides
 * the order of sums is decided once for all CPUs. A CUDA machine is its own. */
const struct machine *machine_reference(const struct machine *machine);

/* The CPU whose code all machines of the host run. */
const struct machine *machine_lowest(enum host host);

const char *host_name(enum host host);           /* as --host takes it */
bool host_find(const char *name, enum host *host);

struct target_services {
    const struct machine *machine;
    void *user;
    /* Some strategy better than the plain one takes the group: then fusing into it is allowed. `why` gets the reason
     * when not. */
    bool (*fits)(void *user, const struct group *group, struct text *why);
    /* Estimated seconds of the group by the best strategy. */
    double (*cost)(void *user, const struct group *group);
};

#endif

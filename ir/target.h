/* Targets and machine descriptions, and the table of functions through which passes ask code generation. */
#ifndef GPUCC_IR_TARGET_H
#define GPUCC_IR_TARGET_H

#include "ir/group.h"

enum target_kind { TARGET_CPU, TARGET_CUDA };

/* What a strategy may assume of the machine. Figures per multiprocessor where not said otherwise. */
struct machine {
    const char *name; /* "cpu", "sm_80", "sm_90a" */
    enum target_kind kind;
    /* CUDA */
    int compute_capability;      /* 80, 90 */
    bool architecture_specific;  /* the `a` suffix */
    uint32_t multiprocessors;
    uint32_t shared_bytes_block; /* that one block may have, dynamic limit */
    uint32_t shared_bytes;
    uint32_t registers;
    double memory_bytes_per_second;
    double fp32_per_second;      /* operations, an fma is 2 */
    /* CPU */
    uint32_t vector_bytes;       /* 32 for x86-64-v3, 64 for v4 */
    uint32_t vector_registers;
};
const struct machine *machine_find(const char *target);
const struct machine *machine_row(uint32_t index); /* all, in order; NULL behind the last */

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

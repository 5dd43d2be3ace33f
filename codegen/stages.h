/* Device stages: functions of the files in codegen/device that a kernel calls by STATEMENT_STAGE. A stage
 * owns no kernel, shared memory or barrier: it is given them, with its threads' roles and tile coordinates.
 * codegen/stages.def lists them. */
#ifndef GPUCC_CODEGEN_STAGES_H
#define GPUCC_CODEGEN_STAGES_H

#include <stdbool.h>
#include <stdint.h>

enum stage_number {
#define STAGE(name, capability, specific, constants, operands) STAGE_##name,
#include "codegen/stages.def"
#undef STAGE
    STAGE_COUNT
};

struct stage {
    const char *name;
    int capability;
    bool architecture_specific;
    uint32_t constants;
    const char *operands;
};
const struct stage *stage_row(enum stage_number number);

#endif

/* The table of device stages. */
#include "codegen/stages.h"

static const struct stage stages[] = {
#define STAGE(name, capability, specific, constants, operands)                                               \
    {#name, capability, specific, constants, operands},
#include "codegen/stages.def"
#undef STAGE
};

const struct stage *stage_row(enum stage_number number)
{
    return &stages[number];
}

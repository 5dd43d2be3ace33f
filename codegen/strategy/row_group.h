/* Groups of nests that share their leading points, the rows: softmax, norms, reductions with what stands around them. For
 * the strategies of every machine that give one row to one worker. */
#ifndef GPUCC_CODEGEN_STRATEGY_ROW_GROUP_H
#define GPUCC_CODEGEN_STRATEGY_ROW_GROUP_H

#include "codegen/strategy.h"

enum { MAX_ROW_NESTS = 64 };

struct row_group {
    const struct definition *body;
    uint32_t rank;                                 /* axes of the rows */
    dim extents[MAX_AXES];                         /* of the rows */
    bool is_row_value[MAX_BUFFERS];                /* a temporary with one element a row: needs no memory */
    signed char row_axis[MAX_ROW_NESTS][MAX_AXES]; /* [nest][axis]: which axis of the rows it is, -1: within the row */
    int64_t length;                                /* of a row at the hinted dims, the longest reduction's */
};

/* True when every nest with reductions has the same parallel axes, every other nest tells by its loads of the rows' values
 * which of its axes are the rows', and nothing else flows from nest to nest; else the reason. */
bool find_row_group(const struct strategy_context *context, struct row_group *rows, struct text *why);

#endif

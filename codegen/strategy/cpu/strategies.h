/* The CPU strategies, for the list in codegen/strategy.c. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_STRATEGIES_H
#define GPUCC_CODEGEN_STRATEGY_CPU_STRATEGIES_H

#include "codegen/strategy.h"

extern const struct strategy cpu_conv, cpu_depthwise, cpu_matmul, cpu_rows, cpu_columns, cpu_transpose, cpu_plain;

#endif

/* The guards of rewrite_rows.def: what a row needs beyond its shape. A guard may add nodes on constants
 * before the root, but only once it is sure to agree. */
#ifndef GPUCC_PASSES_REWRITE_GUARDS_H
#define GPUCC_PASSES_REWRITE_GUARDS_H

#include "passes/rewrite.h"

typedef bool rewrite_guard(struct match *match);

/* rewrite_guards.c */
rewrite_guard guard_same_type, guard_transpose_same, guard_slice_same, guard_where_true, guard_where_false,
    guard_cast_cast, guard_transpose_transpose, guard_slice_slice, guard_broadcast_two, guard_broadcast_three;
/* rewrite_arithmetic.c */
rewrite_guard guard_div_power_of_two, guard_pow_square, guard_gelu_div, guard_gelu_mul, guard_gelu_tanh,
    guard_gelu_tanh_pow, guard_layer_normalization;
/* rewrite_conv.c */
rewrite_guard guard_conv_batch_norm, guard_conv_bias_batch_norm, guard_conv_add, guard_conv_bias_add,
    guard_conv_mul, guard_conv_bias_mul, guard_batch_norm;

#endif

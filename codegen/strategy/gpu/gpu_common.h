/* What the GPU strategies share: parameters of a kernel from the buffers that its nests touch, index width,
 * reductions, figures for the comment block. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_COMMON_H
#define GPUCC_CODEGEN_STRATEGY_GPU_COMMON_H

#include "codegen/strategy.h"
#include "codegen/strategy/nest_parts.h"

enum { WARP = 32, LONGEST_GRID_YZ = 65535 };

/* A kernel under construction over some nests of the group. */
struct gpu_kernel {
    const struct strategy_context *context;
    struct kernel *kernel;
    uint32_t *memories; /* [buffer of the group]: kernel memory, UINT32_MAX: not a parameter */
    VEC(struct argument) arguments;
};

/* A new kernel whose parameters are the buffers that the nests first .. first+count-1 load or store, in the
 * group's order. Buffers in `inside` (may be NULL; [buffer]) are not parameters: the strategy keeps them in
 * registers or shared memory. */
void gpu_kernel_begin(struct gpu_kernel *k, const struct strategy_context *context, const char *strategy,
                      uint32_t first_nest, uint32_t nest_count, const bool *inside);
/* The same for a kernel that computes only the nest's reductions, or only its stores from given reductions.
 */
void gpu_kernel_begin_reductions(struct gpu_kernel *k, const struct strategy_context *context,
                                 const char *strategy, uint32_t nest, const bool *inside);
void gpu_kernel_begin_stores(struct gpu_kernel *k, const struct strategy_context *context,
                             const char *strategy, uint32_t nest);
/* One more parameter that is not a buffer of the group: a derived constant or a temporary. Before any other
 * memory. */
uint32_t gpu_kernel_parameter(struct gpu_kernel *k, enum argument_kind kind, uint32_t index, enum dtype dtype,
                              const char *label);
/* Appends the launch. */
void gpu_kernel_end(struct gpu_kernel *k, struct lowered_group *out);

/* 64 when an element count that the group indexes, or a number that it computes from axes and dims, may pass
 * 2^31 - 1 by the ranges of its dims, or does at the hints. Of what may only at other dims, prepare checks
 * the counts, and the numbers as further dims of `kernel` (NULL: the answer alone is wanted). */
uint32_t gpu_index_bits(const struct strategy_context *context, struct kernel *kernel);

/* The value to plan for: every symbol at its hint, but sizes that nobody bounded at a usual one at least,
 * since their hint says nothing. */
double gpu_size(const struct strategy_context *context, dim d);

/* Product of the extents from .. to-1. */
dim gpu_extent_product(const struct strategy_context *context, const struct nest *nest, uint32_t from,
                       uint32_t to);
/* "f32[s0, 64, 56, 56] from 3 buffers" for the comment block. */
const char *gpu_summary(const struct strategy_context *context, const char *what, uint32_t nest);
/* Bytes of every buffer that the nests touch, once; operations of all points. At the hinted dims. */
void gpu_figures(const struct strategy_context *context, uint32_t first_nest, uint32_t nest_count, dim *bytes,
                 dim *operations);
/* The larger of memory and arithmetic time at the hinted dims, plus what a launch costs. */
double gpu_roofline(const struct strategy_context *context, double memory_share, double arithmetic_share);

/* What the loads of a group cost when neighbouring threads follow `inner`: the last reduced axis of nests
 * that have one (threads along rows), else each nest's last parallel axis. Neighbours that read side by side
 * share a transaction, those that read the same element too; far apart, each has its own. Every read is
 * counted, as by the second-level cache, but for the buffers in `kept` (by index; NULL: none): the first nest
 * that loads one keeps what it read. */
double gpu_traffic(const struct strategy_context *context, bool along_reduced, const bool *kept);
/* "[s0, 64, 56]" */
const char *gpu_shape_text(const struct strategy_context *context, const struct tensor_type *type);
/* A variable that is known to lie in [0, extent): index tests vanish by it. */
expr gpu_declare_within(struct gpu_kernel *k, struct block *at, const char *label, expr value, dim extent);
/* blockIdx.x * THREADS + threadIdx.x, declared. */
expr gpu_flat_thread(struct gpu_kernel *k, struct block *at, const char *label, int64_t threads);
/* Registers of a thread, of which neighbours may be moved at once. */
uint32_t gpu_registers(struct gpu_kernel *k, enum dtype dtype, int64_t count, const char *label);
/* Does e use the axis? */
bool gpu_uses_axis(const struct strategy_context *context, expr e, uint32_t axis);
/* The values of axes[] at a flat position below the product of their extents, the last one fastest; count 0:
 * nothing. */
void gpu_split_position(struct gpu_kernel *k, struct block *at, const struct nest *nest, expr position,
                        const uint32_t *axes, uint32_t count, const char *label, expr *values);

/* Serial loops over the nest's reduced axes: one accumulator a reduction; `axes` gets the loop variables. The
 * reduced values (VARIABLEs) are in reduced[]. `begin` and `step` split the first reduced axis (0 and 1: all
 * of it). */
void gpu_reduce_serial(struct gpu_kernel *k, struct block *at, uint32_t nest, expr *axes, expr begin,
                       expr step, expr *reduced);
/* The nest's stores at the point `axes` with the reduced values. */
void gpu_store_point(struct gpu_kernel *k, struct block *at, uint32_t nest, const expr *axes,
                     const expr *reduced);
/* One store of a nest at the point `axes`, its value already lowered. */
void gpu_store(struct gpu_kernel *k, struct block *at, const struct lowering *lowering,
               const struct nest_store *store, const expr *axes, expr value);
/* loaded[buffer] becomes true for every buffer that the nest loads. */
void gpu_mark_loads(const struct strategy_context *context, const struct nest *nest, bool *loaded);
struct lowering gpu_lowering(const struct gpu_kernel *k, const expr *axes, const expr *reduced);

extern const struct strategy gpu_columns, gpu_contraction, gpu_matmul_mma, gpu_matmul_wgmma, gpu_plain,
    gpu_pointwise, gpu_rows, gpu_split, gpu_transpose, gpu_window;

#endif

/* How the CPU strategies write loops: one nest at a time into a kernel, under whatever loops the strategy has
 * opened around it. A nest takes one of five forms by its vector axis, the one that LLVM vectorises:
 *
 *   MAP     no reduction: the vector axis is a parallel one, innermost
 *   ROW     the vector axis is reduced, innermost; one accumulator a reduction
 *   UNROLL  a reduction over a few constant points, written out in a loop over a parallel axis
 *   COLUMN  the vector axis is parallel, inside the reduced loops; accumulators stand in scratch
 *   WINDOW  the same over one guarded load that counts for nothing outside its buffer: each run along the
 * vector axis is cut to where the load is inside, so that no load is guarded */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_EMIT_H
#define GPUCC_CODEGEN_STRATEGY_CPU_EMIT_H

#include "codegen/strategy.h"
#include "codegen/strategy/nest_parts.h"
#include "codegen/strategy/cpu/nest.h"

enum nest_form_kind { FORM_MAP, FORM_ROW, FORM_UNROLL, FORM_COLUMN, FORM_WINDOW };

struct nest_form {
    enum nest_form_kind kind;
    uint32_t vector; /* axis, or NO_AXIS when there is none to loop over */
    uint32_t bad;    /* accesses that the vector axis does not take in order */
};

enum { COLUMN_CHUNK = 256 };

/* Where a buffer of the group lives that is not in memory. */
struct local {
    bool used;
    expr value;      /* a variable; 0: none yet, or an array */
    uint32_t memory; /* scratch array over the vector axis' chunk; UINT32_MAX: none */
};

struct emitter {
    const struct strategy_context *context;
    struct kernel *kernel;
    struct lowering lowering;
    uint32_t memories[MAX_BUFFERS];
    struct local locals[MAX_BUFFERS];
    struct argument arguments[MAX_KERNEL_MEMORIES];
    expr axes[MAX_AXES]; /* of the nest being written; 0: not fixed, emit_nest loops over it */
    expr reduced[MAX_BUFFERS];
    /* The range of one axis that is split into chunks, and a chunk's length; NO_AXIS: none. */
    uint32_t chunk_axis;
    expr chunk_begin, chunk_end;
    int64_t chunk;
};

/* A new kernel whose parameters are the given buffers (bits) of the group, in order. */
void emitter_init(struct emitter *emitter, const struct strategy_context *context, const char *strategy,
                  const char *config, uint64_t buffers);
/* Forgets the axes of the nest written before. */
void emitter_reset(struct emitter *emitter);
struct kernel_launch emitter_launch(const struct emitter *emitter);

/* The best form with these axes fixed (bit a: axis a). COLUMN and WINDOW only where a chunk or a small
 * constant extent bounds it. */
struct nest_form choose_form(const struct flat_nest *nest, uint32_t fixed, bool allow_column);
/* Writes the nest: loops over the axes that are not set in `emitter->axes`, then stores. */
void emit_nest(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
               struct nest_form form);

/* Opens the parallel loop over the given axes (outermost first) and, when chunk > 0, over chunks of
 * `chunk_axis`; sets those axes. No axes and no chunk: *body is *block. */
void emit_parallel(struct emitter *emitter, struct block *block, const struct flat_nest *nest, uint32_t count,
                   const uint32_t *axes, uint32_t chunk_axis, int64_t chunk, struct block *body);

/* row_sums.c: reduces along `vector` (or its chunk), under loops over the nest's other reduced axes; sets
 * `emitter->reduced`. */
void emit_row_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                   uint32_t vector);

/* The same in columns: along `vector`, whose extent or chunk is at most COLUMN_CHUNK; `sums` get scratch
 * memories. */
void emit_column_sums(struct emitter *emitter, struct block *block, const struct flat_nest *nest,
                      uint32_t vector, uint32_t *sums);

/* A loop over one axis of the nest; sets it. */
void emit_axis(struct emitter *emitter, struct block *block, const struct flat_nest *nest, uint32_t axis,
               enum loop_kind loop, struct block *body);

/* The nest's stores at the point that the axes and `reduced` of the emitter say. */
void emit_stores(struct emitter *emitter, struct block *block, const struct flat_nest *nest);


/* Bytes of the kernel's buffers and operations of the nest, added to the kernel's figures. */
void emit_figures(struct emitter *emitter, const struct flat_nest *nest);

/* Seconds: bytes of the buffers at the machine's bandwidth, or operations at a share of its peak, whichever
 * is longer. */
double nest_seconds(const struct strategy_context *context, const struct flat_nest *nest,
                    struct nest_form form);

#endif

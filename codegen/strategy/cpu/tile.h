/* Register-blocked products on a CPU: the kernel that matmul.c and conv.c share.
 *
 *     parallel over (outer, block of columns, block of rows):
 *         for each block of the depth:
 *             pack the columns' panels [tile][depth][columns of a tile], and the rows', unless they are
 * constants that were packed when the bundle was written, or rows whose elements are broadcast straight from
 * memory for each tile of columns, for each tile of rows: rows x vectors accumulators in registers: the inner
 * loop over the depth is loads, broadcasts and fmas accumulators -> a small buffer; behind the last block of
 * the depth the stores' expressions run over it
 *
 * Panels may hold garbage behind their last row or column: what is computed from it is never stored. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_TILE_H
#define GPUCC_CODEGEN_STRATEGY_CPU_TILE_H

#include "codegen/strategy/cpu/lanes.h"
#include "codegen/strategy/cpu/product.h"

/* Meaning of the numbers in struct config. */
enum tile_number {
    TILE_SWAP,      /* 1: outputs are consecutive along the rows */
    TILE_ROWS,      /* of a tile: accumulators one above the other */
    TILE_VECTORS,   /* of a tile: accumulators side by side */
    TILE_DEPTH,     /* of a block of the depth */
    TILE_ROW_BLOCK, /* tiles that one work item takes */
    TILE_COLUMN_BLOCK,
    TILE_CHANNELS, /* conv.c: channels of a block of the depth; 0: the depth is not split by channels */
};

enum operand_mode {
    OPERAND_CONSTANT, /* panels made when the bundle is written */
    OPERAND_DIRECT,   /* broadcast from the buffer itself; rows only */
    OPERAND_PACKED,   /* panels in scratch, one block of the depth at a time */
};

struct tiler;
struct packer;
struct operand {
    const struct side *side;
    enum operand_mode mode;
    uint32_t memory;
    uint32_t width;  /* rows or columns of a tile */
    uint32_t panel;  /* of a panel: CONSTANT: the same for all machines; else width */
    uint32_t stride; /* elements from one depth to the next in a panel: its width, or more where packing
                        overruns */
    dim tiles, panels;
    dim row_growth, depth_growth; /* DIRECT: elements to the next row, to the next depth */
    expr outer;                   /* CONSTANT: number of the outer axes' combination */
};

struct tiler {
    const struct strategy_context *context;
    const struct product *product;
    const struct config *config;
    const struct packer *packer;
    struct kernel *kernel;
    struct lowering lowering;
    uint32_t memories[MAX_BUFFERS];
    expr axes[MAX_AXES], reduced[1];
    struct argument arguments[MAX_BUFFERS + 2];
    uint16_t lanes;
    struct operand rows, columns;
    uint32_t accumulators;                             /* SCRATCH */
    bool blocked;                                      /* the depth has several blocks */
    expr row_first, row_end, column_first, column_end; /* tiles of the work item */
    expr depth_block, depth_begin, depth_count;
};

/* Packs tiles first .. end-1 of an operand for the current block of the depth; panel of tile t at
 * (t - first) * TILE_DEPTH * stride. */
typedef void pack_function(struct tiler *tiler, struct block *block, const struct operand *operand,
                           expr first, expr end);
struct packer {
    pack_function *pack; /* of pixels; NULL: tile_pack */
    bool columns;        /* the side that it packs */
    uint32_t slack;      /* elements that it may write behind each depth of a panel */
};

uint16_t tile_lanes(const struct machine *machine, enum dtype accumulator);
bool tile_build(const struct strategy_context *context, const struct product *product,
                const struct config *config, const struct packer *packer, struct lowered_group *out,
                struct text *why);
void tile_describe(const struct config *config, struct text *out);

/* Rows may be broadcast from memory: the factor is a load that grows evenly. */
bool tile_direct(const struct product *product, struct operand *operand);

pack_function tile_pack;
/* The stores' expressions over one tile of results; tile: first element in the accumulators' buffer. */
void tile_store(struct tiler *tiler, struct block *block, expr tile, expr row_tile, expr column_tile,
                expr rows, expr columns);

/* Figures for choosing a configuration, by the sizes' hints. */
struct tile_sizes {
    int64_t outer, rows, columns, depth;
    bool free_rows, free_columns; /* not known: the figures above are guesses */
    bool direct;                  /* rows may be broadcast from memory, if they are not too many: */
    int64_t row_growth;           /* elements to the next one; 0: not known */
    double column_cost, row_cost; /* cycles to pack an element; 0: not packed at run time */
    double store_cost;            /* cycles to store an element */
    uint32_t channels, taps;      /* conv.c: the depth is channels x taps; else 0 */
};
/* Rows that far apart can be read side by side without losing each other's cache lines. */
bool tile_rows_fit(int64_t rows, int64_t growth, uint32_t bytes);
struct tile_sizes tile_sizes_of(const struct product *product);
/* Elements of a panel of constants: what every machine's tiles are multiples of. A line of the cache along
 * vectors; rows, which are broadcast one by one, in fours. */
uint32_t tile_panel(const struct product *product, const struct side *side);
/* Keeps `out` sorted by cycles; returns the new count. */
uint32_t tile_candidates(const struct strategy_context *context, const struct product *product,
                         const struct tile_sizes *sizes, struct config *out, double *cycles, uint32_t count,
                         uint32_t limit);
/* strategy.retarget: among the configurations of the same order. */
void tile_retarget(const struct strategy_context *context, const struct product *product,
                   const struct tile_sizes *sizes, struct config *config);
double tile_seconds(const struct strategy_context *context, const struct product *product,
                    const struct tile_sizes *sizes, const struct config *config);

/* Shared small builders. */
static inline expr index_add(const struct tiler *t, expr a, expr b)
{
    return expr_binary(t->kernel->pool, EXPR_ADD, a, b);
}
static inline expr index_sub(const struct tiler *t, expr a, expr b)
{
    return expr_binary(t->kernel->pool, EXPR_SUB, a, b);
}
static inline expr index_mul(const struct tiler *t, expr a, int64_t b)
{
    return expr_binary(t->kernel->pool, EXPR_MUL, a, expr_index(t->kernel->pool, b));
}
static inline expr index_scale(const struct tiler *t, expr a, expr b)
{
    return expr_binary(t->kernel->pool, EXPR_MUL, a, b);
}
static inline expr index_min(const struct tiler *t, expr a, expr b)
{
    return expr_binary(t->kernel->pool, EXPR_MIN, a, b);
}
static inline expr index_constant(const struct tiler *t, int64_t value)
{
    return expr_index(t->kernel->pool, value);
}

#endif

/* Tiled contractions on CUDA cores: matrix products and convolutions alike, by the roles of a nest's axes.
 * The axes of one factor, flattened, are the tile's rows, those of the other its columns, the summed ones its
 * depth.
 *
 *     fill    shared tiles of both factors for one step of the depth, zero beyond the depth
 *     sum     each thread: sum[its rows][its columns] += a[its rows][k] * b[k][its columns]
 *     store   the nest's stores (epilogue included) at each point
 *
 * Factors that are plain loads are copied asynchronously, some steps ahead; others pass the registers, one
 * step ahead. A tile lies as its factor does in memory, along the rows (or columns) or along the depth, so
 * that both ways of filling and reading it move 16 bytes. Rows and columns beyond the end are computed at the
 * last one's place and not stored.
 *
 * A window (a convolution's) is summed with its taps outside and the channels inside, so that a step of the
 * depth has one tap: its shift and bounds are computed once a step. The other factor is repacked for that
 * order when the bundle is written. A small problem's depth may be split over blocks; a second kernel adds
 * the parts in order. */
#ifndef GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_H
#define GPUCC_CODEGEN_STRATEGY_GPU_CONTRACTION_H

#include "codegen/strategy/gpu/stretch.h"

/* What the numbers of a configuration mean. */
enum {
    CONFIG_ROWS, /* tile */
    CONFIG_COLUMNS,
    CONFIG_DEPTH,
    CONFIG_OWN_ROWS, /* of a thread */
    CONFIG_OWN_COLUMNS,
    CONFIG_STAGES, /* steps of the depth in shared memory */
    CONFIG_SPLIT,  /* parts of the depth */
};

enum side { SIDE_ROWS, SIDE_COLUMNS };

/* One factor. */
struct operand {
    expr factor, load;       /* in the definition's pool */
    uint32_t buffer;         /* of the load */
    uint32_t axes[MAX_AXES]; /* its own parallel axes, the last one fastest */
    uint32_t count;
    dim extent; /* their product */
    bool
        along_depth; /* neighbours in memory are neighbours along the depth, else along the rows or columns */
    bool plain;      /* the load alone, of 4-byte elements, zero where it is out of range */
    bool flat_depth; /* along_depth: the whole depth is one stretch of memory */
    bool packed;     /* read from a derived constant [depth][own, padded to whole vectors] */
    uint32_t vector; /* elements that one load brings */
};

struct contraction_plan {
    const struct definition *body;
    const struct nest *nest;
    enum dtype dtype;           /* of the products and sums */
    struct operand operands[2]; /* [side] */
    uint32_t batch[MAX_AXES], batch_count;
    uint32_t depth[MAX_AXES], depth_count; /* in the order of the sum, the last one fastest */
    uint32_t taps;    /* of the depth's axes, the first are a window's; 0: the nest's own order */
    int64_t channels; /* extent of the axis behind the taps */
    dim batches, depth_extent;
    uint32_t lanes;         /* elements of 16 bytes */
    bool asynchronous;      /* both factors are copied as they are */
    struct stretch stretch; /* of the stores, over trailing axes of the columns */
    bool has_stretch;       /* of runs of `lanes` columns */
};

bool contraction_plan_make(const struct strategy_context *context, struct contraction_plan *plan,
                           struct text *why);
/* Tiles of this depth are possible: a step has one tap. */
bool contraction_depth_fits(const struct contraction_plan *plan, int64_t depth);
/* Of __launch_bounds__; 0: as the compiler likes. */
uint32_t contraction_resident_blocks(const int32_t *config);
uint64_t contraction_shared_bytes(const struct contraction_plan *plan, const struct config *config);
bool contraction_build(const struct strategy_context *context, const struct contraction_plan *plan,
                       const struct config *config, struct lowered_group *out);

#endif

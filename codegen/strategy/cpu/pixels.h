/* Convolutions: a product one side of which loads pixels, rows of an image shifted by taps. */
#ifndef GPUCC_CODEGEN_STRATEGY_CPU_PIXELS_H
#define GPUCC_CODEGEN_STRATEGY_CPU_PIXELS_H

#include "codegen/strategy/cpu/product.h"

/* What the load of the pixels looks like. */
struct pixels {
    struct product *product;
    const struct side *side;
    uint32_t run;   /* the axis of outputs in one row */
    uint32_t along; /* the load's index that moves with it */
    int64_t stride; /* positions in a row of the image to the next output of the run */
    dim gap;        /* elements to the next position: 1 where the rows lie along the last index */
    bool has_channel;
    struct digit channel; /* the reduced axis that is in no index together with a pixel axis */
    uint32_t tap_count;
    struct digit taps[MAX_DIGITS];
    int64_t tap_points; /* product of the taps' extents */
};

bool pixels_find(const struct strategy_context *context, bool swap, struct pixels *p, struct text *why);
/* Lanes whose position in a row of the image, `position` for lane 0, is in it; none where not `inside`. */
expr pixel_mask(struct block *block, expr inside, expr width, expr position, uint16_t lanes);

#endif

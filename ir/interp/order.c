/* The order of a nest's points when buffers are behind storage. In row-major order a transpose of a large
 * matrix would read every page again for each row: the parallel axes are cut into pieces whose pages fit the
 * window. Loads whose place is not affine are not counted. */
#include "ir/interp/program.h"

struct stride {
    uint64_t bytes;
    int64_t extent;
};

/* Pages of the place that the points of a box touch at an access. */
static double touched_pages(const struct place *place, const struct access *access, const int64_t *extents)
{
    struct stride strides[MAX_AXES];
    uint32_t count = 0;
    int64_t flat[MAX_AXES] = {0};
    for (uint32_t i = 0; i < access->term_count; i++) {
        const struct access_term *term = &access->terms[i];
        flat[term->axis] += term->coefficient * place->strides[term->dim];
    }
    for (uint32_t axis = 0; axis < MAX_AXES; axis++) {
        if (!flat[axis] || extents[axis] <= 1)
            continue;
        const struct stride stride = {(uint64_t)(flat[axis] < 0 ? -flat[axis] : flat[axis]) * place->width,
                                      extents[axis]};
        uint32_t at = count++;
        for (; at > 0 && strides[at - 1].bytes > stride.bytes; at--)
            strides[at] = strides[at - 1];
        strides[at] = stride;
    }
    const double page = PAGE_BYTES;
    double span = place->width, pieces = 1;
    for (uint32_t i = 0; i < count; i++) {
        if ((double)strides[i].bytes <= span + page)
            span += (double)strides[i].bytes * (double)(strides[i].extent - 1);
        else
            pieces *= (double)strides[i].extent;
    }
    return pieces * (span / page + 1);
}

struct order {
    const struct place *places;
    const struct program *programs[2];
    const struct access *const *stores;
    uint32_t store_count;
};

static double pages_of(const struct order *order, const int64_t *extents)
{
    double pages = 0;
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t i = 0; i < order->programs[p]->instruction_count; i++) {
            const struct instruction *instruction = &order->programs[p]->instructions[i];
            if ((instruction->op == EXPR_LOAD || instruction->op == EXPR_LOAD_OR) && instruction->access &&
                order->places[instruction->value].storage)
                pages += touched_pages(&order->places[instruction->value], instruction->access, extents);
        }
    for (uint32_t i = 0; i < order->store_count; i++)
        if (order->stores[i] && order->places[order->stores[i]->place].storage)
            pages += touched_pages(&order->places[order->stores[i]->place], order->stores[i], extents);
    return pages;
}

void order_tiles(const struct place *places, const struct program *body, const struct program *store,
                 const struct access *const *stores, uint32_t store_count, uint32_t rank, uint32_t axes,
                 const int64_t *extents, uint32_t window, int64_t *tile)
{
    const struct order order = {places, {body, store}, stores, store_count};
    int64_t box[MAX_AXES];
    for (uint32_t i = 0; i < MAX_AXES; i++)
        box[i] = i < axes ? extents[i] : 1;
    while (pages_of(&order, box) > (double)window / 2) {
        uint32_t best = rank;
        double fewest = 0;
        for (uint32_t i = 0; i < rank; i++) {
            const int64_t whole = box[i];
            if (whole <= 1)
                continue;
            box[i] = (whole + 1) / 2;
            const double pages = pages_of(&order, box);
            box[i] = whole;
            if (best == rank || pages < fewest) {
                best = i;
                fewest = pages;
            }
        }
        if (best == rank)
            break;
        box[best] = (box[best] + 1) / 2;
    }
    for (uint32_t i = 0; i < rank; i++)
        tile[i] = box[i];
}

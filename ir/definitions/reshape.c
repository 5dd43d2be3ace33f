/* Reshape: y and x hold the same elements in the same row-major order.
 *
 * The dims of both are cut into the smallest groups whose products are provably equal, from the left; inside
 * a group the index of x is that of y, merged (sums of products) or split (divisions). So [B, S, 768] -> [B *
 * S, 12, 64] divides by S once and never by the whole. Where nothing can be proven, the rest is one group. */
#include "ir/definitions/build.h"

struct reshape {
    struct build *b;
    const struct tensor_type *from, *to;
    const expr *axes; /* of y */
    expr *indices;    /* of x */
};

/* The indices of x's dims first..last-1, whose elements are those of y's dims to_first..to_last-1. */
static void map_group(struct reshape *r, uint32_t first, uint32_t last, uint32_t to_first, uint32_t to_last)
{
    struct build *b = r->b;
    /* Dims of x that need an index; dims of 1 have index 0. */
    uint32_t wide[MAX_RANK], count = 0;
    for (uint32_t i = first; i < last; i++) {
        r->indices[i] = position(b, 0);
        if (!dim_equals_constant(b->dims, r->from->dims[i], 1))
            wide[count++] = i;
    }
    if (!count)
        return;
    expr flat = position(b, 0);
    for (uint32_t i = to_first; i < to_last; i++)
        flat = add(b, mul(b, flat, size(b, r->to->dims[i])), r->axes[i]);
    for (uint32_t k = count; k-- > 1;) {
        expr extent = size(b, r->from->dims[wide[k]]);
        r->indices[wide[k]] = index_mod(b, flat, extent);
        flat = index_div(b, flat, extent);
    }
    r->indices[wide[0]] = flat;
}

static bool all_ones(const struct build *b, const struct tensor_type *type, uint32_t first)
{
    for (uint32_t i = first; i < (uint32_t)type->rank; i++)
        if (!dim_equals_constant(b->dims, type->dims[i], 1))
            return false;
    return true;
}

/* The nearest ends at which the products of both sides agree and what follows can still be mapped. */
static bool find_group(struct reshape *r, uint32_t first, uint32_t to_first, uint32_t *last,
                       uint32_t *to_last)
{
    struct dims *dims = r->b->dims;
    const uint32_t rank = (uint32_t)r->from->rank, to_rank = (uint32_t)r->to->rank;
    dim products[MAX_RANK + 1], to_products[MAX_RANK + 1];
    products[first] = to_products[to_first] = dim_constant(dims, 1);
    for (uint32_t i = first; i < rank; i++)
        products[i + 1] = dim_mul(dims, products[i], r->from->dims[i]);
    for (uint32_t i = to_first; i < to_rank; i++)
        to_products[i + 1] = dim_mul(dims, to_products[i], r->to->dims[i]);
    for (uint32_t length = 2; length <= rank - first + to_rank - to_first; length++)
        for (uint32_t i = 1; i < length && first + i <= rank; i++) {
            const uint32_t k = length - i;
            if (to_first + k > to_rank)
                continue;
            const dim left = products[first + i], right = to_products[to_first + k];
            if (!left || !right || dim_equal(dims, left, right) != 1)
                continue;
            const bool from_ends = all_ones(r->b, r->from, first + i);
            const bool to_ends = all_ones(r->b, r->to, to_first + k);
            if (from_ends != to_ends && (first + i == rank || to_first + k == to_rank))
                continue;
            *last = first + i;
            *to_last = to_first + k;
            return true;
        }
    return false;
}

bool define_reshape(struct build *b)
{
    if (move_packed(b))
        return true;
    struct nest *nest = nest_over(b, build_output(b, 0));
    expr axes[MAX_RANK], indices[MAX_RANK];
    nest_axes(b, nest, nest->rank, axes);
    struct reshape r = {
        .b = b, .from = build_input(b, 0), .to = build_output(b, 0), .axes = axes, .indices = indices};
    const uint32_t rank = (uint32_t)r.from->rank, to_rank = (uint32_t)r.to->rank;
    uint32_t first = 0, to_first = 0;
    while (first < rank) {
        uint32_t last = rank, to_last = to_rank;
        if (to_first < to_rank)
            (void)find_group(&r, first, to_first, &last, &to_last);
        map_group(&r, first, last, to_first, to_last);
        first = last;
        to_first = to_last;
    }
    store_output(b, nest, 0, NULL, load_stored(b, 0, indices));
    return true;
}

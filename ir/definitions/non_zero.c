/* NonZero: where the elements stand that are not 0, in row-major order.
 *
 *   y[k, places[flat(i ..)] - 1] = i_k        for every point i .. of x where x is not 0
 *
 * `places` counts the elements that are not 0 up to and with each, `count` them all; the importer makes both.
 * y has `count` columns: a store behind them, which only a count that is not true could ask for, is not made.
 */
#include "ir/definitions/build.h"

bool define_non_zero(struct build *b)
{
    const struct tensor_type *type = build_input(b, 0);
    const uint32_t rank = (uint32_t)type->rank;
    struct nest *nest = nest_over(b, rank ? type : build_output(b, 0));
    if (!rank) { /* a scalar has no coordinates: no rows, but a definition that stores them */
        store_output(b, nest, 0, NULL, position(b, 0));
        return true;
    }
    expr axes[MAX_RANK], to[2], flat = position(b, 0);
    nest_axes(b, nest, rank, axes);
    for (uint32_t i = 0; i < rank; i++)
        flat = add(b, mul(b, flat, size(b, type->dims[i])), axes[i]);
    const expr set = convert(b, DTYPE_BOOL, load_stored(b, 0, axes));
    to[1] = sub(b, load_stored(b, 1, &flat), position(b, 1));
    const expr inside =
        expr_binary(b->pool, EXPR_AND, expr_binary(b->pool, EXPR_LESS_EQUAL, position(b, 0), to[1]),
                    less(b, to[1], size(b, build_output(b, 0)->dims[1])));
    for (uint32_t k = 0; k < rank; k++) {
        to[0] = position(b, k);
        const expr *indices = arena_copy(b->pool->arena, to, sizeof to);
        nest_store_where(b->d, nest, build_output_buffer(b, 0), indices, axes[k],
                         expr_binary(b->pool, EXPR_AND, set, inside));
    }
    return true;
}

/* Operators without tensors to read.
 *
 *   Dims   y[i] = dims[i]; a scalar when the result has no dims
 *   Range  y[i] = start + i * delta, in the compute type */
#include "ir/definitions/build.h"

bool define_dims(struct build *b)
{
    const struct attribute *dims = node_attribute(b->node, ATTR_dims);
    struct nest *nest = nest_over(b, build_output(b, 0));
    const uint32_t count = dims ? dims->count : 0;
    if (!count && nest->rank) { /* an empty vector: nothing is ever stored, but each output needs its store */
        store_output(b, nest, 0, NULL, position(b, 0));
        return true;
    }
    if (!count)
        return build_refuse(b, "a scalar needs its value");
    expr value = size(b, dims->dims[count - 1]);
    for (uint32_t i = count - 1; nest->rank && i-- > 0;)
        value = choose(b, equal(b, nest_axis(b->d, nest, 0), position(b, i)), size(b, dims->dims[i]), value);
    store_output(b, nest, 0, NULL, value);
    return true;
}

bool define_range(struct build *b)
{
    struct nest *nest = nest_over(b, build_output(b, 0));
    const enum dtype dtype = compute_dtype(build_output(b, 0)->dtype);
    expr steps = convert(b, dtype, nest_axis(b->d, nest, 0));
    store_output(
        b, nest, 0, NULL,
        add(b, convert(b, dtype, load_scalar(b, 0)), mul(b, steps, convert(b, dtype, load_scalar(b, 2)))));
    return true;
}

/* Import functions of reductions. The canonical ones are sum, mean, max, min and product over axes given as
 * an input; the others are written with these. */
#include <string.h>

#include "frontend/importer.h"

/* The axes: an input in newer opsets, an attribute in older ones, 0 for none. */
static value_id axes_of(struct importer *importer, const struct import_node *node)
{
    if (node->input_count > 1)
        return node->inputs[1];
    return import_given_ints(importer, node, "axes");
}

static value_id emit_reduce(struct importer *importer, const struct import_node *node, enum op op, value_id x)
{
    const value_id inputs[2] = {x, axes_of(importer, node)};
    return import_emit(importer, node, op, inputs[1] ? 2 : 1, inputs, node->attribute_count,
                       node->attributes);
}

bool import_reduce(struct importer *importer, struct import_node *node)
{
    node->outputs[0] = emit_reduce(importer, node, node->row->op, node->inputs[0]);
    return true;
}

static value_id emit_cast(struct importer *importer, const struct import_node *node, value_id x,
                          enum dtype dtype)
{
    const struct attribute to = attribute_dtype(ATTR_to, dtype);
    return import_emit(importer, node, OP_Cast, 1, &x, 1, &to);
}

/* ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum. Squares and sums of half types need the range of f32. */
bool import_reduce_composed(struct importer *importer, struct import_node *node)
{
    const char *name = node->row->name;
    enum dtype dtype = import_dtype(importer, node->inputs[0]);
    bool half = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
    value_id x = half ? emit_cast(importer, node, node->inputs[0], DTYPE_F32) : node->inputs[0];
    if (!strcmp(name, "ReduceL1"))
        x = import_emit1(importer, node, OP_Abs, x);
    else if (strcmp(name, "ReduceLogSum") != 0)
        x = import_emit2(importer, node, OP_Mul, x, x);
    x = emit_reduce(importer, node, OP_ReduceSum, x);
    if (!strcmp(name, "ReduceL2") || !strcmp(name, "ReduceLogSum")) {
        enum op op = !strcmp(name, "ReduceL2") ? OP_Sqrt : OP_Log;
        enum dtype computed = import_dtype(importer, x);
        bool integer = dtype_is_integer(computed);
        if (integer)
            x = emit_cast(importer, node, x, DTYPE_F64);
        x = import_emit1(importer, node, op, x);
        if (integer)
            x = emit_cast(importer, node, x, computed);
    }
    node->outputs[0] = half ? emit_cast(importer, node, x, dtype) : x;
    return true;
}

/* Over all dims behind the second, whose number is not known here: axes = Range(2, rank, 1). */
bool import_global_pool(struct importer *importer, struct import_node *node)
{
    value_id shape = import_emit1(importer, node, OP_Shape, node->inputs[0]);
    value_id rank = import_emit1(importer, node, OP_Size, shape);
    const value_id range[3] = {import_int_scalar(importer, 2), rank, import_int_scalar(importer, 1)};
    const value_id inputs[2] = {node->inputs[0], import_emit(importer, node, OP_Range, 3, range, 0, NULL)};
    const struct attribute keep = attribute_int(ATTR_keepdims, 1);
    node->outputs[0] = import_emit(importer, node, node->row->op, 2, inputs, 1, &keep);
    return true;
}

/* Before opset 10 K is an attribute. */
bool import_top_k_attribute(struct importer *importer, struct import_node *node)
{
    const int64_t taken = import_given(node, "k")->i;
    const value_id inputs[2] = {node->inputs[0], import_int_list(importer, 1, &taken)};
    node->inputs = arena_copy(importer->arena, inputs, sizeof inputs);
    node->input_count = 2;
    return import_as_is(importer, node);
}

/* Before opset 13 all dims from the axis on are one row. */
bool import_softmax_flattened(struct importer *importer, struct import_node *node)
{
    int64_t axis = 1;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].name == ATTR_axis)
            axis = node->attributes[i].integer;
    if (axis == -1)
        return import_as_is(importer, node);
    const struct attribute outer = attribute_int(ATTR_axis, axis), inner = attribute_int(ATTR_axis, 1);
    value_id flat = import_emit(importer, node, OP_Flatten, 1, node->inputs, 1, &outer);
    value_id rows = import_emit(importer, node, node->row->op, 1, &flat, 1, &inner);
    value_id shape = import_emit1(importer, node, OP_Shape, node->inputs[0]);
    node->outputs[0] = import_emit2(importer, node, OP_Reshape, rows, shape);
    return true;
}

/* Import functions of operators whose results are as long as their data says: written with NonZero, whose
 * canonical form takes the count and each element's place among those that are not 0. */
#include <string.h>

#include "frontend/importer.h"

static value_id emit_cast(struct importer *importer, const struct import_node *node, value_id x,
                          enum dtype dtype)
{
    const struct attribute to = attribute_dtype(ATTR_to, dtype);
    return import_emit(importer, node, OP_Cast, 1, &x, 1, &to);
}

static value_id emit_reshape(struct importer *importer, const struct import_node *node, value_id x,
                             uint32_t count, const int64_t *sizes)
{
    return import_emit2(importer, node, OP_Reshape, x, import_int_list(importer, count, sizes));
}

static value_id emit_flat(struct importer *importer, const struct import_node *node, value_id x)
{
    const int64_t all = -1;
    return emit_reshape(importer, node, x, 1, &all);
}

static value_id emit_gather(struct importer *importer, const struct import_node *node, value_id x,
                            value_id indices, int64_t axis)
{
    const value_id inputs[2] = {x, indices};
    const struct attribute along = attribute_int(ATTR_axis, axis);
    return import_emit(importer, node, OP_Gather, 2, inputs, 1, &along);
}

/* Where the elements are that are not 0: [rank of x, count]. */
static value_id emit_non_zero(struct importer *importer, const struct import_node *node, value_id x)
{
    const struct attribute drop = attribute_int(ATTR_keepdims, 0);
    const value_id set = emit_cast(importer, node, x, DTYPE_BOOL);
    const value_id ones = emit_cast(importer, node, emit_flat(importer, node, set), DTYPE_I64);
    const value_id inputs[3] = {set,
                                import_emit2(importer, node, OP_CumSum, ones, import_int_scalar(importer, 0)),
                                import_emit(importer, node, OP_ReduceSum, 1, &ones, 1, &drop)};
    const value_id result = import_emit(importer, node, OP_NonZero, 3, inputs, 0, NULL);
    graph_value(importer->graph, result)->type.dtype = DTYPE_I64;
    return result;
}

bool import_non_zero(struct importer *importer, struct import_node *node)
{
    node->outputs[0] = emit_non_zero(importer, node, node->inputs[0]);
    return true;
}

/* A condition that is shorter than the axis drops the rest; what is behind the axis counts for nothing. */
bool import_compress(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *given = import_given(node, "axis");
    const int64_t axis = given ? given->i : 0;
    const value_id x = given ? node->inputs[0] : emit_flat(importer, node, node->inputs[0]);
    const struct attribute ends[2] = {attribute_int(ATTR_start, axis), attribute_int(ATTR_end, axis + 1)};
    /* The shape from the last axis on has no end to be named. */
    const value_id length = import_emit(importer, node, OP_Shape, 1, &x, axis == -1 ? 1 : 2, ends);
    const int64_t zero = 0;
    const value_id parts[3] = {node->inputs[1], import_int_list(importer, 1, &zero), length};
    const value_id condition = import_emit(importer, node, OP_Slice, 3, parts, 0, NULL);
    const value_id places = emit_flat(importer, node, emit_non_zero(importer, node, condition));
    node->outputs[0] = emit_gather(importer, node, x, places, axis);
    return true;
}

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

/* The size of one axis, as a vector of one. */
static value_id emit_size(struct importer *importer, const struct import_node *node, value_id x, int64_t axis)
{
    const struct attribute ends[2] = {attribute_int(ATTR_start, axis), attribute_int(ATTR_end, axis + 1)};
    return import_emit(importer, node, OP_Shape, 1, &x, axis == -1 ? 1 : 2, ends);
}

static value_id emit_scalar(struct importer *importer, const struct import_node *node, value_id x)
{
    return import_emit2(importer, node, OP_Reshape, x, import_int_list(importer, 0, NULL));
}

/* Both results of a stable sort of all elements along the axis. */
static void emit_sort(struct importer *importer, const struct import_node *node, value_id x, int64_t axis,
                      bool falling, value_id *values, value_id *places)
{
    const value_id inputs[2] = {x, emit_size(importer, node, x, axis)};
    const struct attribute attributes[2] = {attribute_int(ATTR_axis, axis),
                                            attribute_int(ATTR_largest, falling)};
    const node_id made = graph_add_node(importer->graph, node->scope->region, 0, OP_TopK, 2, inputs, 2, 2,
                                        attributes, node->location);
    *values = graph_node(importer->graph, made)->outputs[0];
    *places = graph_node(importer->graph, made)->outputs[1];
    graph_value(importer->graph, *values)->type.dtype = import_dtype(importer, x);
    graph_value(importer->graph, *places)->type.dtype = DTYPE_I64;
}

static value_id emit_concat(struct importer *importer, const struct import_node *node, value_id a, value_id b,
                            int64_t axis)
{
    const value_id inputs[2] = {a, b};
    const struct attribute along = attribute_int(ATTR_axis, axis);
    return import_emit(importer, node, OP_Concat, 2, inputs, 1, &along);
}

static value_id optional_input(const struct import_node *node, uint32_t input)
{
    return input < node->input_count ? node->inputs[input] : 0;
}

/* Sorts the scores of each batch and class, keeps what may stay, and lists [batch, class, box] of what is
 * kept: row-major in the order of the scores, which is ONNX's. */
bool import_non_max_suppression(struct importer *importer, struct import_node *node)
{
    const value_id boxes = node->inputs[0], scores = node->inputs[1];
    const value_id most = optional_input(node, 2), overlap = optional_input(node, 3),
                   least = optional_input(node, 4);
    const int64_t last = 2, zero = 0, two = 2;
    value_id sorted, places;
    emit_sort(importer, node, scores, last, true, &sorted, &places);
    const value_id inputs[6] = {boxes,
                                places,
                                sorted,
                                most ? emit_scalar(importer, node, most) : import_int_scalar(importer, 0),
                                overlap ? emit_scalar(importer, node, overlap)
                                        : import_scalar(importer, DTYPE_F32, 0),
                                least ? emit_scalar(importer, node, least) : 0};
    const value_id kept = import_emit(importer, node, OP_NonMaxSuppression, least ? 6 : 5, inputs,
                                      node->attribute_count, node->attributes);
    graph_value(importer->graph, kept)->type.dtype = DTYPE_BOOL;
    const int64_t swapped[2] = {1, 0};
    const struct attribute perm =
        attribute_ints(ATTR_perm, 2, arena_copy(importer->arena, swapped, sizeof swapped));
    const value_id found = emit_non_zero(importer, node, kept);
    const value_id rows = import_emit(importer, node, OP_Transpose, 1, &found, 1, &perm);
    const value_id box = import_emit2(importer, node, OP_GatherND, places, rows);
    const value_id cut[4] = {rows, import_int_list(importer, 1, &zero), import_int_list(importer, 1, &two),
                             import_int_list(importer, 1, (const int64_t[]){1})};
    const value_id batch_and_class = import_emit(importer, node, OP_Slice, 4, cut, 0, NULL);
    const value_id column = emit_reshape(importer, node, box, 2, (const int64_t[]){-1, 1});
    node->outputs[0] = emit_concat(importer, node, batch_and_class, column, 1);
    return true;
}

/* ---- Unique
 * ------------------------------------------------------------------------------------------------------ */

/* Equal elements as Unique sees them stand side by side: in an order, which of them differ from the one
 * before. */
struct runs {
    value_id order; /* places of the elements, i64 [n] */
    value_id first; /* bool [n] */
};

/* 0, 1, .. count - 1; `count` is a scalar. */
static value_id emit_range(struct importer *importer, const struct import_node *node, value_id count)
{
    const value_id inputs[3] = {import_int_scalar(importer, 0), count, import_int_scalar(importer, 1)};
    const value_id range = import_emit(importer, node, OP_Range, 3, inputs, 0, NULL);
    graph_value(importer->graph, range)->type.dtype = DTYPE_I64;
    return range;
}

static value_id emit_before(struct importer *importer, const struct import_node *node, value_id places)
{
    const value_id less = import_emit2(importer, node, OP_Sub, places, import_int_scalar(importer, 1));
    return import_emit2(importer, node, OP_Max, less, import_int_scalar(importer, 0));
}

/* Not equal, and not both NaN. */
static value_id emit_differ(struct importer *importer, const struct import_node *node, value_id x, value_id y)
{
    value_id differ = import_emit1(importer, node, OP_Not, import_emit2(importer, node, OP_Equal, x, y));
    if (!dtype_is_float(import_dtype(importer, x)))
        return differ;
    const value_id both = import_emit2(importer, node, OP_And, import_emit1(importer, node, OP_IsNaN, x),
                                       import_emit1(importer, node, OP_IsNaN, y));
    return import_emit2(importer, node, OP_And, differ, import_emit1(importer, node, OP_Not, both));
}

static value_id emit_is_first(struct importer *importer, const struct import_node *node, value_id places,
                              value_id differ)
{
    const value_id begins = import_emit2(importer, node, OP_Equal, places, import_int_scalar(importer, 0));
    return import_emit2(importer, node, OP_Or, begins, differ);
}

static struct runs emit_flat_runs(struct importer *importer, const struct import_node *node, value_id x)
{
    struct runs runs;
    value_id sorted;
    emit_sort(importer, node, x, 0, false, &sorted, &runs.order);
    const value_id count = emit_scalar(importer, node, emit_size(importer, node, x, 0));
    const value_id places = emit_range(importer, node, count);
    const value_id before = emit_gather(importer, node, sorted, emit_before(importer, node, places), 0);
    runs.first = emit_is_first(importer, node, places, emit_differ(importer, node, sorted, before));
    return runs;
}

/* Rows [n, m] in lexicographic order: a stable sort by each column, the last one first. A Loop over the
 * columns carries the order. */
static value_id emit_row_order(struct importer *importer, const struct import_node *node, value_id rows,
                               value_id count)
{
    struct graph *graph = importer->graph;
    const value_id columns = emit_scalar(importer, node, emit_size(importer, node, rows, 1));
    const value_id inputs[3] = {columns, 0, emit_range(importer, node, count)};
    const node_id made =
        graph_add_node(graph, node->scope->region, 0, OP_Loop, 3, inputs, 1, 0, NULL, node->location);
    struct import_scope scope = *node->scope;
    struct import_node inner = *node;
    inner.scope = &scope;
    scope.region = graph_add_region(graph, made);
    const value_id step = graph_add_argument(graph, scope.region, DTYPE_I64);
    const value_id condition = graph_add_argument(graph, scope.region, DTYPE_BOOL);
    const value_id order = graph_add_argument(graph, scope.region, DTYPE_I64);
    const value_id last = import_emit2(importer, &inner, OP_Sub, columns, import_int_scalar(importer, 1));
    const value_id column =
        emit_gather(importer, &inner, rows, import_emit2(importer, &inner, OP_Sub, last, step), 1);
    value_id sorted, places;
    emit_sort(importer, &inner, emit_gather(importer, &inner, column, order, 0), 0, false, &sorted, &places);
    const value_id next = emit_gather(importer, &inner, order, places, 0);
    struct region *region = &graph->regions.items[scope.region];
    vec_push(graph->arena, &region->results, condition);
    vec_push(graph->arena, &region->results, next);
    const value_id result = graph_node(graph, made)->outputs[0];
    graph_value(graph, result)->type.dtype = DTYPE_I64;
    return result;
}

/* To sizes of which some may be 0. */
static value_id emit_to_sizes(struct importer *importer, const struct import_node *node, value_id x,
                              value_id sizes)
{
    const value_id inputs[2] = {x, sizes};
    const struct attribute exactly = attribute_int(ATTR_allowzero, 1);
    return import_emit(importer, node, OP_Reshape, 2, inputs, 1, &exactly);
}

/* The slices along the axis, each as a row. */
static struct runs emit_slice_runs(struct importer *importer, const struct import_node *node, value_id x,
                                   int64_t axis)
{
    struct runs runs;
    const struct attribute ends[2] = {attribute_int(ATTR_start, 0), attribute_int(ATTR_end, axis)};
    const struct attribute drop = attribute_int(ATTR_keepdims, 1);
    const value_id outer_sizes = import_emit(importer, node, OP_Shape, 1, &x, 2, ends);
    const value_id outer = import_emit(importer, node, OP_ReduceProd, 1, &outer_sizes, 1, &drop);
    const value_id length = emit_size(importer, node, x, axis);
    const struct attribute from = attribute_int(ATTR_start, axis == -1 ? INT64_MAX : axis + 1);
    const value_id inner_sizes = import_emit(importer, node, OP_Shape, 1, &x, 1, &from);
    const value_id inner = import_emit(importer, node, OP_ReduceProd, 1, &inner_sizes, 1, &drop);
    const value_id sizes =
        emit_concat(importer, node, emit_concat(importer, node, outer, length, 0), inner, 0);
    const value_id blocks = emit_to_sizes(importer, node, x, sizes);
    const int64_t moved[3] = {1, 0, 2};
    const struct attribute perm =
        attribute_ints(ATTR_perm, 3, arena_copy(importer->arena, moved, sizeof moved));
    const value_id front = import_emit(importer, node, OP_Transpose, 1, &blocks, 1, &perm);
    const value_id width = import_emit2(importer, node, OP_Mul, outer, inner);
    const value_id rows = emit_to_sizes(importer, node, front, emit_concat(importer, node, length, width, 0));
    const value_id count = emit_scalar(importer, node, length);
    runs.order = emit_row_order(importer, node, rows, count);
    const value_id places = emit_range(importer, node, count);
    const value_id sorted = emit_gather(importer, node, rows, runs.order, 0);
    const value_id before = emit_gather(importer, node, sorted, emit_before(importer, node, places), 0);
    const value_id differ = emit_cast(importer, node, emit_differ(importer, node, sorted, before), DTYPE_I32);
    const value_id axes[2] = {differ, import_int_list(importer, 1, (const int64_t[]){1})};
    const struct attribute gone = attribute_int(ATTR_keepdims, 0);
    const value_id any = import_emit(importer, node, OP_ReduceSum, 2, axes, 1, &gone);
    runs.first = emit_is_first(importer, node, places, emit_cast(importer, node, any, DTYPE_BOOL));
    return runs;
}

/* data[indices] = updates, for i64 vectors. */
static value_id emit_scatter(struct importer *importer, const struct import_node *node, value_id like,
                             value_id indices, value_id updates)
{
    const value_id inputs[3] = {like, indices, updates};
    const struct attribute axis = attribute_int(ATTR_axis, 0);
    return import_emit(importer, node, OP_ScatterElements, 3, inputs, 1, &axis);
}

/* How long each run is: from its first place to the next one's, the last to the end. */
static value_id emit_counts(struct importer *importer, const struct import_node *node, value_id begins,
                            value_id run_count, value_id all)
{
    const value_id one = import_int_scalar(importer, 1);
    const value_id behind = import_emit2(importer, node, OP_Add, emit_range(importer, node, run_count), one);
    const value_id last = import_emit2(importer, node, OP_Sub, run_count, one);
    const value_id next =
        emit_gather(importer, node, begins, import_emit2(importer, node, OP_Min, behind, last), 0);
    const value_id choice[3] = {import_emit2(importer, node, OP_Less, behind, run_count), next, all};
    const value_id ends = import_emit(importer, node, OP_Where, 3, choice, 0, NULL);
    return import_emit2(importer, node, OP_Sub, ends, begins);
}

/* By runs of equal elements (or slices) in sorted order. Without `sorted` the runs are put into the order of
 * their first elements. */
bool import_unique(struct importer *importer, struct import_node *node)
{
    const Onnx__AttributeProto *given = import_given(node, "axis"), *wish = import_given(node, "sorted");
    const enum dtype dtype = import_dtype(importer, node->inputs[0]);
    const bool flat = !given;
    const value_id x = flat ? emit_flat(importer, node, node->inputs[0]) : node->inputs[0];
    const value_id keys = dtype == DTYPE_BOOL ? emit_cast(importer, node, x, DTYPE_U8) : x;
    const int64_t axis = flat ? 0 : given->i;
    const struct runs runs =
        flat ? emit_flat_runs(importer, node, keys) : emit_slice_runs(importer, node, keys, axis);
    const struct attribute drop = attribute_int(ATTR_keepdims, 0);
    const value_id ones = emit_cast(importer, node, runs.first, DTYPE_I64);
    const value_id places = import_emit2(importer, node, OP_CumSum, ones, import_int_scalar(importer, 0));
    const value_id count = import_emit(importer, node, OP_ReduceSum, 1, &ones, 1, &drop);
    const value_id inputs[3] = {runs.first, places, count};
    const value_id found = import_emit(importer, node, OP_NonZero, 3, inputs, 0, NULL);
    graph_value(importer->graph, found)->type.dtype = DTYPE_I64;
    const value_id begins = emit_flat(importer, node, found);
    const value_id all = emit_scalar(importer, node, emit_size(importer, node, keys, axis));
    value_id indices = emit_gather(importer, node, runs.order, begins, 0);
    value_id counts = emit_counts(importer, node, begins, count, all);
    /* order is a permutation, so every place of the copy is written */
    value_id inverse =
        emit_scatter(importer, node, runs.order, runs.order,
                     import_emit2(importer, node, OP_Sub, places, import_int_scalar(importer, 1)));
    if (wish && !wish->i) {
        value_id turn, sorted;
        emit_sort(importer, node, indices, 0, false, &sorted, &turn);
        const value_id ranks = emit_scatter(importer, node, turn, turn, emit_range(importer, node, count));
        indices = sorted;
        counts = emit_gather(importer, node, counts, turn, 0);
        inverse = emit_gather(importer, node, ranks, inverse, 0);
    }
    const value_id results[4] = {emit_gather(importer, node, x, indices, axis), indices, inverse, counts};
    for (size_t i = 0; i < node->proto->n_output && i < 4; i++)
        node->outputs[i] = results[i];
    return true;
}

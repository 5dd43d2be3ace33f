/* Guards of the rows that move elements, convert them or choose between them. */
#include "passes/rewrite_guards.h"

#include "ir/support/checked.h"

bool guard_same_type(struct match *match)
{
    return tensor_type_same(&match->rewriter->graph->dims, match_type(match, "x"), match_root_type(match));
}

/* ---- Transpose
 * --------------------------------------------------------------------------------------------------- */

/* perm of a Transpose of that rank; absent: the axes reversed. */
static bool permutation_of(const struct node *node, int rank, int64_t perm[MAX_RANK])
{
    const struct attribute *attribute = node_attribute(node, ATTR_perm);
    if (rank < 0 || rank > MAX_RANK || (attribute && attribute->count != (uint32_t)rank))
        return false;
    for (int i = 0; i < rank; i++) {
        perm[i] = attribute ? attribute->integers[i] : rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= rank)
            return false;
    }
    return true;
}

bool guard_transpose_same(struct match *match)
{
    int64_t perm[MAX_RANK];
    const int rank = match_type(match, "x")->rank;
    if (!permutation_of(match_node(match, "outer"), rank, perm))
        return false;
    for (int i = 0; i < rank; i++)
        if (perm[i] != i)
            return false;
    return true;
}

bool guard_transpose_transpose(struct match *match)
{
    int64_t outer[MAX_RANK], inner[MAX_RANK];
    const int rank = match_type(match, "x")->rank;
    if (!permutation_of(match_node(match, "outer"), rank, outer) ||
        !permutation_of(match_node(match, "inner"), rank, inner))
        return false;
    int64_t *both = arena_new_array(match->rewriter->graph->arena, int64_t, (size_t)rank);
    for (int i = 0; i < rank; i++)
        both[i] = inner[outer[i]];
    match_attribute(match, attribute_ints(ATTR_perm, (uint32_t)rank, both));
    return true;
}

/* ---- Slice
 * ------------------------------------------------------------------------------------------------------- */

static bool slice_of(const struct node *node, int rank, const dim **starts, const int64_t **steps)
{
    const struct attribute *start = node_attribute(node, ATTR_starts);
    const struct attribute *step = node_attribute(node, ATTR_steps);
    if (!start || !step || start->count != (uint32_t)rank || step->count != (uint32_t)rank)
        return false;
    *starts = start->dims;
    *steps = step->integers;
    return true;
}

/* As many elements forwards, one by one, can only be all of them. */
bool guard_slice_same(struct match *match)
{
    const dim *starts;
    const int64_t *steps;
    const int rank = match_type(match, "x")->rank;
    if (!guard_same_type(match) || !slice_of(match_node(match, "outer"), rank, &starts, &steps))
        return false;
    for (int i = 0; i < rank; i++)
        if (steps[i] != 1 || !dim_equals_constant(&match->rewriter->graph->dims, starts[i], 0))
            return false;
    return true;
}

bool guard_slice_slice(struct match *match)
{
    const dim *outer_starts, *inner_starts;
    const int64_t *outer_steps, *inner_steps;
    struct graph *graph = match->rewriter->graph;
    const int rank = match_type(match, "x")->rank;
    if (!slice_of(match_node(match, "outer"), rank, &outer_starts, &outer_steps) ||
        !slice_of(match_node(match, "inner"), rank, &inner_starts, &inner_steps))
        return false;
    dim *starts = arena_new_array(graph->arena, dim, (size_t)rank);
    int64_t *steps = arena_new_array(graph->arena, int64_t, (size_t)rank);
    for (int i = 0; i < rank; i++) {
        const dim moved = dim_mul(&graph->dims, outer_starts[i], dim_constant(&graph->dims, inner_steps[i]));
        starts[i] = dim_add(&graph->dims, inner_starts[i], moved);
        if (!starts[i] || !mul_i64(outer_steps[i], inner_steps[i], &steps[i]))
            return false;
    }
    match_attribute(match, attribute_dims(ATTR_starts, (uint32_t)rank, starts));
    match_attribute(match, attribute_ints(ATTR_steps, (uint32_t)rank, steps));
    return true;
}

/* ---- Cast
 * -------------------------------------------------------------------------------------------------------- */

static unsigned mantissa_bits(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F64:
        return 53;
    case DTYPE_F32:
        return 24;
    case DTYPE_F16:
        return 11;
    case DTYPE_BF16:
        return 8;
    default:
        return 0;
    }
}

/* Every value of `from` is a value of `to`. */
static bool lossless(enum dtype from, enum dtype to)
{
    if (from == to || from == DTYPE_BOOL)
        return from == to || dtype_is_integer(to) || mantissa_bits(to) > 0;
    if (mantissa_bits(from))
        return to == DTYPE_F64 ? true : to == DTYPE_F32 && dtype_bits(from) == 16;
    if (!dtype_is_integer(from))
        return false;
    const bool is_signed = dtype_class(from) == DTYPE_CLASS_INT;
    if (mantissa_bits(to))
        return to != DTYPE_F16 && to != DTYPE_BF16 && dtype_bits(from) - is_signed <= mantissa_bits(to);
    if (!dtype_is_integer(to))
        return false;
    if (dtype_class(from) == dtype_class(to))
        return dtype_bits(from) <= dtype_bits(to);
    return !is_signed && dtype_bits(from) < dtype_bits(to);
}

/* The first cast loses nothing, and the second one means the same from the first type: integers wrap but
 * floats saturate, so number classes may not change between the two unless nothing is lost at all. */
bool guard_cast_cast(struct match *match)
{
    const enum dtype from = match_type(match, "x")->dtype;
    const enum dtype middle = (enum dtype)node_int(match_node(match, "inner"), ATTR_to, DTYPE_NONE);
    const enum dtype to = match_root_type(match)->dtype;
    if (!lossless(from, middle))
        return false;
    const bool same_class =
        mantissa_bits(from) ? mantissa_bits(middle) > 0 : dtype_is_integer(from) && dtype_is_integer(middle);
    return same_class || from == DTYPE_BOOL || mantissa_bits(to) || lossless(from, to);
}

/* ---- Where
 * ------------------------------------------------------------------------------------------------------- */

enum { CONDITION_LIMIT = 1 << 16 };

static bool condition_is(struct match *match, int64_t expected, const char *chosen)
{
    const struct graph *graph = match->rewriter->graph;
    uint32_t count;
    int64_t *elements = arena_new_array(match->rewriter->arena, int64_t, CONDITION_LIMIT);
    if (!tensor_type_same(&graph->dims, match_type(match, chosen), match_root_type(match)) ||
        !match_ints(match, "c", elements, CONDITION_LIMIT, &count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if ((elements[i] != 0) != expected)
            return false;
    return count > 0;
}

bool guard_where_true(struct match *match)
{
    return condition_is(match, 1, "x");
}

bool guard_where_false(struct match *match)
{
    return condition_is(match, 0, "y");
}

/* ---- broadcasting
 * ------------------------------------------------------------------------------------------------ */

/* The inputs alone broadcast to the root's dims, provably: each result dim is an input's dim, all others
 * there are 1 or the same. */
static bool broadcasts_alone(const struct match *match, uint32_t count, const char *const *names)
{
    struct dims *dims = &match->rewriter->graph->dims;
    const struct tensor_type *result = match_root_type(match);
    for (int axis = 0; axis < result->rank; axis++) {
        bool reached = dim_equals_constant(dims, result->dims[axis], 1);
        for (uint32_t i = 0; i < count; i++) {
            const struct tensor_type *input = match_type(match, names[i]);
            const int at = axis - (result->rank - input->rank);
            if (input->rank > result->rank)
                return false;
            if (at < 0)
                continue;
            if (dim_equal(dims, input->dims[at], result->dims[axis]) == 1)
                reached = true;
            else if (!dim_equals_constant(dims, input->dims[at], 1))
                return false;
        }
        if (!reached)
            return false;
    }
    return true;
}

bool guard_broadcast_two(struct match *match)
{
    static const char *const names[] = {"x", "y"};
    return broadcasts_alone(match, 2, names);
}

bool guard_broadcast_three(struct match *match)
{
    static const char *const names[] = {"x", "y", "z"};
    return broadcasts_alone(match, 3, names);
}

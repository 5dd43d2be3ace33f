/* What the define_<name> functions share: access to the node that is being defined, and short names for the
 * expressions that Definitions are full of. Arithmetic is in the compute type of the element type; loads
 * convert to it and stores convert from it. Definitions that only move elements use the *_stored helpers,
 * which do not convert.
 *
 * Nothing here knows an operator. */
#ifndef GPUCC_IR_DEFINITIONS_BUILD_H
#define GPUCC_IR_DEFINITIONS_BUILD_H

#include "ir/definition.h"

struct build {
    const struct graph *graph;
    const struct node *node;
    node_id id;
    struct exprs *pool;
    struct dims *dims;
    struct diagnostics *diagnostics;
    struct definition *d;
};

/* False: refused, and recorded by build_refuse. */
typedef bool define_function(struct build *b);

define_function define_arg_reduce, define_average_pool, define_batch_normalization, define_binary,
    define_cast, define_clip, define_concat, define_conv, define_conv_integer, define_conv_transpose,
    define_cumulative, define_depth_to_space, define_dequantize, define_quantize_range, define_dft,
    define_stft, define_dims, define_expand, define_gather, define_gather_nd, define_gemm,
    define_instance_normalization, define_layer_normalization, define_matmul, define_matmul_integer,
    define_max_pool, define_non_max_suppression, define_non_zero, define_pad, define_quantize, define_range,
    define_reduce, define_reshape, define_resize, define_scatter_elements, define_scatter_nd,
    define_set_element, define_slice, define_softmax, define_space_to_depth, define_tile, define_top_k,
    define_transpose, define_trilu, define_unary, define_where;

/* Records E0403 and returns false. */
bool build_refuse(struct build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool build_has_input(const struct build *b, uint32_t input);
bool build_has_output(const struct build *b, uint32_t output);
const struct tensor_type *build_input(const struct build *b, uint32_t input);
const struct tensor_type *build_output(const struct build *b, uint32_t output);
uint32_t build_input_buffer(const struct build *b, uint32_t input);
uint32_t build_output_buffer(const struct build *b, uint32_t output);

/* A nest with one parallel axis for each dim of the type. */
struct nest *nest_over(struct build *b, const struct tensor_type *type);
/* The axes 0 .. count-1 of a nest. */
void nest_axes(const struct build *b, const struct nest *nest, uint32_t count, expr *axes);

/* Elements of an input: as stored, or converted to the compute type. `otherwise` has the element type. */
expr load_stored(struct build *b, uint32_t input, const expr *indices);
expr load_stored_or(struct build *b, uint32_t input, const expr *indices, expr otherwise);
expr load_input(struct build *b, uint32_t input, const expr *indices);
expr load_input_or(struct build *b, uint32_t input, const expr *indices, expr otherwise);
/* The single element of an input that is a scalar or has one element: as stored, or in the compute type. */
expr load_stored_scalar(struct build *b, uint32_t input);
expr load_scalar(struct build *b, uint32_t input);
/* The same for elements of every type: what is packed is unpacked (packed.c). */
expr load_number(struct build *b, uint32_t input, const expr *indices);
/* A nest that stores the first output: the number of a compute type at its axes, as the element type. */
void store_numbers(struct build *b, expr (*number_at)(struct build *b, const expr *axes));
/* Output 0 is input 0 in its flat order: false, and nothing done, where the elements are not packed. */
bool move_packed(struct build *b);
/* An element of a temporary, whose element type is a compute type. */
expr load_buffer(struct build *b, uint32_t buffer, const expr *indices);

/* Converts the value to the buffer's element type and stores it; indices NULL: the parallel axes. */
void store_output(struct build *b, struct nest *nest, uint32_t output, const expr *indices, expr value);
/* A temporary of a compute type. */
uint32_t build_temporary(struct build *b, enum dtype dtype, uint32_t rank, const dim *dims);

/* Index of an input's axis of size `from` at position `axis` of a result's axis of size `to`: 0 where it
 * broadcasts. */
expr broadcast_axis(struct build *b, expr axis, dim from, dim to);
/* The same for a whole input whose axes align with the last ones of a result. indices: [rank of the input].
 */
void broadcast_indices(struct build *b, const struct tensor_type *from, uint32_t to_rank, const dim *to,
                       const expr *axes, expr *indices);

/* Attributes. */
int64_t attribute_at(const struct attribute *attribute, uint32_t index,
                     int64_t absent); /* of a list of integers */
bool build_axis(struct build *b, enum attribute_name name, int64_t absent, int rank, uint32_t *axis);

/* Constants. */
expr number(struct build *b, enum dtype dtype, double value); /* of any element type */
expr lowest(struct build *b, enum dtype dtype);               /* -inf or the smallest integer */
expr size(struct build *b, dim d);                            /* a dim as an i64 */
expr size_as(struct build *b, enum dtype dtype, dim d);       /* a dim as a number of another type */

/* i64 index arithmetic by dims and constants. */
static inline expr position(struct build *b, int64_t value)
{
    return expr_index(b->pool, value);
}
static inline expr add(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_ADD, x, y);
}
static inline expr sub(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_SUB, x, y);
}
static inline expr mul(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_MUL, x, y);
}
static inline expr divide(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_DIV, x, y);
}
static inline expr minimum(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_MIN, x, y);
}
static inline expr maximum(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_MAX, x, y);
}
static inline expr index_div(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_INDEX_DIV, x, y);
}
static inline expr index_mod(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_INDEX_MOD, x, y);
}
static inline expr less(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_LESS, x, y);
}
static inline expr equal(struct build *b, expr x, expr y)
{
    return expr_binary(b->pool, EXPR_EQUAL, x, y);
}
static inline expr function(struct build *b, enum expr_op op, expr x)
{
    return expr_unary(b->pool, op, x);
}
static inline expr choose(struct build *b, expr condition, expr then, expr otherwise)
{
    return expr_select(b->pool, condition, then, otherwise);
}
static inline expr convert(struct build *b, enum dtype to, expr x)
{
    return expr_convert(b->pool, to, x);
}
/* The dim can be 0: then even a clamped position is outside. */
bool may_be_empty(const struct build *b, dim d);
/* x within [0, size - 1]; 0 when the size is 0. */
expr clamp_position(struct build *b, expr x, dim size);
/* A number of a compute type as an unsigned integer that orders as it does (sort.c). */
expr ordered_key(struct build *b, expr x);
/* Inverse and hyperbolic functions of the node's operator (inverse.c); 0: it is none of them. */
expr inverse_function(struct build *b, expr x);
/* x modulo a positive size, in [0, size), for negative x too. */
expr wrap_position(struct build *b, expr x, expr size);

#endif

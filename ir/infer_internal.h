/* What the infer_<shape> functions share. Each finds the result types of one node whose inputs have types,
 * and binds it: true, or false after infer_fail. */
#ifndef GPUCC_IR_INFER_INTERNAL_H
#define GPUCC_IR_INFER_INTERNAL_H

#include "ir/infer.h"

#define OP(name, least_inputs, most_inputs, least_outputs, most_outputs, traits, shape, definition)          \
    infer_function infer_##shape;
#include "ir/ops.def"
#undef OP

/* Records an error at the node; always false. */
bool infer_fail(struct infer *infer, node_id node, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "f32[12, 7, s0]" for messages, in the diagnostics' arena. */
const char *infer_type_text(struct infer *infer, const struct tensor_type *type);
const char *infer_dim_text(struct infer *infer, dim d);

void infer_set(struct infer *infer, node_id node, uint32_t output, enum dtype dtype, int rank,
               const dim *dims);
/* Type of an input; NULL when the node does not have it. */
const struct tensor_type *infer_input(const struct infer *infer, node_id node, uint32_t input);
/* The input's element type is in the set; else E0301. */
bool infer_takes(struct infer *infer, node_id node, uint32_t input, dtype_set types);
bool infer_same_dtype(struct infer *infer, node_id node, uint32_t a, uint32_t b);

/* An axis counted from the front; negative ones count from the end. */
bool infer_axis(struct infer *infer, node_id node, int64_t axis, int rank, uint32_t *out);
/* Axes stated by the input (a vector of known integers) or, when it is absent, by attribute `axes`:
 * normalised, sorted, without repeats. *given is false when neither is there. */
bool infer_axes(struct infer *infer, node_id node, uint32_t input, int rank, uint32_t *axes, uint32_t *count,
                bool *given);
/* The broadcast of two shapes by ONNX's rule and design.md section 6; dims has room for MAX_RANK. */
bool infer_broadcast_dims(struct infer *infer, node_id node, const struct tensor_type *a,
                          const struct tensor_type *b, int *rank, dim *dims);
/* The first shape broadcasts to the second, whose dims do not change. */
bool infer_broadcasts_to(struct infer *infer, node_id node, const struct tensor_type *from,
                         const struct tensor_type *to);
/* a and b must be equal: merge or report. */
bool infer_equal(struct infer *infer, node_id node, dim a, dim b, const char *what);

/* The elements of an input that is a vector or scalar of integers and feeds a shape: all known, or E0304.
 * Small graph inputs behind it become host inputs. */
const dim *infer_shape_input(struct infer *infer, node_id node, uint32_t input, uint32_t *count);
/* The size that element `element` of a value is, a word (ir/dims.h), or what is known of it. `bound`: it is never more; DIM_NONE:
 * whoever runs the model says. `name`: by which --dim calls it, or NULL. */
dim infer_word(struct infer *infer, value_id value, uint32_t element, dim bound, const char *name);
/* The same for elements that must be constants. */
bool infer_constant_input(struct infer *infer, node_id node, uint32_t input, int64_t *values, uint32_t limit,
                          uint32_t *count);

/* One integer or bool as a size: known from constants and shapes, or, read on the host, from small graph inputs, which
 * become host inputs. DIM_NONE: it hangs on computed data. */
dim infer_demand_size(struct infer *infer, value_id value);
/* infer_control.c: the body's nodes move in front of the node, whose results are the body's from now on. */
void infer_inline_body(struct infer *infer, node_id node, region_id body);
/* Every node of a body, in order, whose arguments have types. */
void infer_region(struct infer *infer, region_id region);
/* A Loop for infer_count_trips: the iteration's number, and of each state its first value, the body's argument and result. */
struct counted_loop {
    value_id iteration;
    uint32_t states;
    const value_id *initial, *arguments, *results;
};
/* How often a loop's body runs until the condition that it computes is false, where `first` (0: true) lets it begin; DIM_NONE:
 * not known. */
dim infer_count_trips(struct infer *infer, const struct counted_loop *loop, value_id condition, value_id first);

/* Applies merges to a value's dims and contents. False: a dim of its type is no longer representable. */
bool infer_refresh_value(struct graph *graph, value_id value);

/* Changing the node. Lists are copied. */
void infer_keep_inputs(struct infer *infer, node_id node, uint32_t count);
void infer_set_ints(struct infer *infer, node_id node, enum attribute_name name, uint32_t count,
                    const int64_t *values);
void infer_set_dims(struct infer *infer, node_id node, enum attribute_name name, uint32_t count,
                    const dim *values);
void infer_set_int(struct infer *infer, node_id node, enum attribute_name name, int64_t value);
/* The node is a bare `op` of its first input from now on: no attributes. */
void infer_become(struct infer *infer, node_id node, enum op op);

/* Contents of a node's result from those of its inputs, through its Definition. */
void infer_find_contents(struct infer *infer, node_id node);
/* Nodes whose results are known become Dims or constants: what is left of shape arithmetic. */
void infer_settle_known(struct infer *infer);

#endif

/* The importer's own parts, for the import_*.c files.
 *
 * A scope holds the names of one graph or of one call of a model function. A name stands for a value of the
 * Graph IR, or for one of two marks: FAILED, the result of something already reported, which spreads
 * silently; UNAVAILABLE, an output that its operator's implementation does not give, which is an error only
 * where it is used. The body of a control-flow node has a scope of its own, from which the names of the
 * scopes around it can be seen; a function's scope stands alone. */
#ifndef GPUCC_FRONTEND_IMPORTER_H
#define GPUCC_FRONTEND_IMPORTER_H

#include "frontend/import.h"
#include "frontend/operators.h"
#include "frontend/reader.h"

/* `work` counts names looked at, so that functions that call functions cannot multiply without end. */
enum {
    MAX_FUNCTION_DEPTH = 64,
    MAX_BODY_DEPTH = 64,     /* of bodies in bodies, whatever functions they stand in */
    MAX_BODY_WORK = 1 << 26, /* bodies times nodes: each body is looked at beside the whole graph */
    MAX_IMPORTED_NODES = 1000000,
    MAX_WORK = 100000000,
    MAX_NODE_ATTRIBUTES = 1024,
    MAX_OPSETS = 256
};

#define VALUE_FAILED      ((value_id)UINT32_MAX)
#define VALUE_UNAVAILABLE ((value_id)(UINT32_MAX - 1))

/* From interned strings to numbers. */
struct name_map {
    const char **keys;
    uint32_t *numbers;
    uint32_t count, capacity;
};
/* False when the name is already there; then *number is what it stands for. */
bool name_map_add(struct arena *arena, struct name_map *map, const char *name, uint32_t *number);
bool name_map_find(const struct name_map *map, const char *name, uint32_t *number);

struct opset {
    const char *domain; /* "" for ai.onnx */
    int64_t version;
};

/* An attribute under the name that a node gives it; its value may come from the call of a model function. */
struct bound_attribute {
    const char *name;
    const Onnx__AttributeProto *value;
};

struct import_scope {
    struct import_scope *outer; /* whose names a body sees; NULL for the top graph and for functions */
    const char *path;           /* for locations: "" at the top */
    region_id region;
    const struct opset *opsets;
    uint32_t opset_count;
    bool in_function; /* then nodes may refer to `attributes` by name */
    const struct bound_attribute *attributes;
    uint32_t attribute_count;
    struct name_map values;
};

struct importer {
    struct arena *arena;
    struct diagnostics *diagnostics;
    const struct import_options *options;
    const struct reader *reader;
    struct graph *graph;
    uint32_t failures;
    uint32_t node_count; /* after inlining */
    uint64_t work;
    struct name_map functions; /* "domain\nname\noverload" -> index in the model */
    bool stopped;              /* a limit was passed: what follows is not looked at */
    const Onnx__FunctionProto *calls[MAX_FUNCTION_DEPTH]; /* being inlined, outermost first */
    uint32_t call_count;
    uint32_t body_depth; /* bodies being imported */
};

struct import_node {
    struct import_scope *scope;
    const Onnx__NodeProto *proto;
    const struct location *location;
    const struct operator_row *row;
    int64_t opset;
    const value_id *inputs; /* 0: absent; none absent at the end */
    uint32_t input_count;
    const struct bound_attribute *given; /* all attributes of the node */
    uint32_t given_count;
    struct attribute *attributes; /* canonical ones, with room for two more */
    uint32_t attribute_count;
    value_id *outputs; /* [proto->n_output]; what the import function fills in */
};

/* Reports and counts; always false. */
bool import_fail(struct importer *importer, enum diag_code code, const struct location *location,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
const char *import_intern(struct importer *importer, const char *text); /* NULL reads as "" */
const char *import_quote(struct importer *importer, const char *text);  /* for messages */

/* import_graph.c: the top graph; initialisers into a scope; names that a graph defines besides its nodes'
 * results. */
bool import_top_graph(struct importer *importer);
void import_weights(struct importer *importer, struct import_scope *scope, const Onnx__GraphProto *graph);
void import_add_name(struct importer *importer, struct import_scope *scope, const char *what,
                     const char *name, value_id value);

/* import_order.c: the nodes in an order in which every one stands behind those that it needs. False:
 * reported. */
bool import_order(struct importer *importer, struct import_scope *scope, Onnx__NodeProto *const *nodes,
                  size_t count, uint32_t *order);

/* import_node.c */
const struct location *import_location(struct importer *importer, const struct import_scope *scope,
                                       const Onnx__NodeProto *node, uint32_t number);
void import_nodes(struct importer *importer, struct import_scope *scope, Onnx__NodeProto *const *nodes,
                  size_t count);
/* What a name stands for in the scope or one around it; false: nothing. */
bool import_find(const struct import_scope *scope, const char *name, uint32_t *value);
/* The value that a name stands for, VALUE_FAILED when it is reported or was before. */
value_id import_use(struct importer *importer, struct import_scope *scope, const struct location *location,
                    const char *what, const char *name);
/* Counts work; false: the limit is passed, which is reported and stops the import. */
bool import_work(struct importer *importer, const struct location *location, size_t names);

/* import_function.c */
bool import_list_functions(struct importer *importer); /* once, first; false: reported */
const Onnx__FunctionProto *import_find_function(struct importer *importer, const Onnx__NodeProto *node);
/* Inlines one call. False: reported. */
bool import_call(struct importer *importer, struct import_scope *scope, const Onnx__FunctionProto *function,
                 struct import_node *node);

/* import_values.c: what import functions build with. */
value_id import_emit(struct importer *importer, const struct import_node *node, enum op op,
                     uint32_t input_count, const value_id *inputs, uint32_t attribute_count,
                     const struct attribute *attributes);
value_id import_emit1(struct importer *importer, const struct import_node *node, enum op op, value_id input);
value_id import_emit2(struct importer *importer, const struct import_node *node, enum op op, value_id left,
                      value_id right);
enum dtype import_dtype(const struct importer *importer, value_id value); /* DTYPE_NONE: not known */
value_id import_int_list(struct importer *importer, uint32_t count, const int64_t *values);
value_id import_float_list(struct importer *importer, uint32_t count, const float *values);
value_id import_int_scalar(struct importer *importer, int64_t value);
/* A scalar of any number type, rounded to it. */
value_id import_scalar(struct importer *importer, enum dtype dtype, double value);
/* The attribute as the node has it, NULL when absent. */
const Onnx__AttributeProto *import_given(const struct import_node *node, const char *name);
/* What DynamicQuantizeLinear gives: bytes, scale, zero point. */
void import_quantised(struct importer *importer, const struct import_node *node, value_id x, value_id out[3]);
/* An INTS attribute as a constant vector; 0 when absent. */
value_id import_given_ints(struct importer *importer, const struct import_node *node, const char *name);
/* A TensorProto as a constant. 0: reported. */
value_id import_tensor(struct importer *importer, const struct location *location, const char *what,
                       const Onnx__TensorProto *tensor);

/* The import functions of operators.def. Each fills node->outputs; false: reported. */
import_function import_as_is, import_variadic, import_mean, import_clip_attributes, import_dropout,
    import_cast_like, import_batch_normalization;
import_function import_axes_attribute, import_pad_attributes, import_slice_attributes, import_split,
    import_space_to_depth, import_upsample, import_resize_plain;
import_function import_reduce, import_reduce_composed, import_top_k_attribute, import_global_pool,
    import_softmax_flattened;
import_function import_constant, import_constant_of_shape;
import_function import_if, import_loop, import_scan;
import_function import_rnn, import_gru, import_lstm, import_dynamic_quantize_lstm;
import_function import_dynamic_quantize, import_fast_gelu, import_bias_gelu, import_fused_matmul,
    import_skip_layer_normalization;
import_function import_non_zero, import_compress, import_non_max_suppression, import_unique;

#endif

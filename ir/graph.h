/* Graph IR: what the model computes, free of opsets, names and protobuf.
 *
 * A graph owns values and nodes in two arrays; ids are positions in them, 0 is "none". Nodes stand in regions: the
 * graph's body, and the bodies of control-flow nodes. Within a region a node's inputs are defined before it, in it or in
 * an enclosing region. Every value has one producer. All memory is the graph's arena.
 *
 * Shapes are lists of dims. A small integer or bool tensor may also carry its *contents*: one dim for each element
 * (DIM_NONE where unknown); that is how shape arithmetic is evaluated symbolically. */
#ifndef GPUCC_IR_GRAPH_H
#define GPUCC_IR_GRAPH_H

#include "ir/dims.h"
#include "ir/support/diag.h"
#include "ir/types.h"

typedef uint32_t value_id; /* 0: none, an optional input or output that is absent */
typedef uint32_t node_id;
typedef uint32_t region_id;

enum { MAX_RANK = 16, MAX_CONTENTS = 256 };

/* One row an operator in ops.def. */
enum op {
    OP_NONE,
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
#undef OP
    OP_COUNT
};

enum attribute_name {
    ATTR_NONE,
#define ATTRIBUTE(name, kind) ATTR_##name,
#include "ir/attributes.def"
#undef ATTRIBUTE
    ATTR_COUNT
};

enum attribute_kind {
    ATTR_INT,    /* integer */
    ATTR_INTS,   /* integers, count */
    ATTR_FLOAT,  /* number */
    ATTR_FLOATS, /* numbers, count */
    ATTR_WORD,   /* word: one of the enumeration words of attributes.def's rows, interned by pointer (see word_find) */
    ATTR_DTYPE,  /* integer holds an enum dtype */
    ATTR_DIMS,   /* dims, count: sizes or offsets that may hang on symbols */
};

struct attribute {
    enum attribute_name name;
    enum attribute_kind kind;
    uint32_t count; /* of the list kinds */
    union {
        int64_t integer;
        double number;
        const int64_t *integers;
        const double *numbers;
        const char *word;
        const dim *dims;
    };
};

/* A tensor's type. rank < 0: not known yet (before shape inference only). */
struct tensor_type {
    enum dtype dtype;
    int rank;
    dim *dims; /* [rank] */
};

enum value_kind {
    VALUE_RESULT,   /* of a node */
    VALUE_INPUT,    /* of the graph, in the caller's memory */
    VALUE_CONSTANT, /* has data: an initialiser, a Constant, a fold's result */
    VALUE_ARGUMENT, /* of a region: loop-carried state and the like */
};

/* Where a constant's elements are: little endian, packed, in the order of its dims. */
enum blob_kind {
    BLOB_MEMORY, /* bytes[length], in an arena */
    BLOB_FILE,   /* `length` bytes at `offset` of the file `fd`, in the encoding that `decode` turns into elements */
};

struct blob {
    enum blob_kind kind;
    uint64_t length; /* of the decoded elements, bytes; equals dtype_bytes of the type */
    const unsigned char *bytes;
    int fd; /* open for the life of the graph's source; closed by its owner (import's struct source_files) */
    uint64_t offset;
    /* NULL: the file's bytes are the elements. Else reads `bytes` decoded bytes at decoded position `at`. */
    bool (*decode)(const struct blob *blob, uint64_t at, void *data, size_t bytes);
    const void *decode_data;
};

struct value {
    struct tensor_type type;
    enum value_kind kind;
    node_id producer;         /* RESULT */
    uint32_t index;           /* which output, input or argument */
    const struct blob *blob;  /* CONSTANT */
    const dim *contents;      /* [element count] when symbolically known, else NULL */
    uint32_t content_count;
    const char *name;         /* the model's name or NULL; untrusted; for messages, --dim, info and I/O tables only */
    const char *weight_name;  /* CONSTANT: initialiser that it is, or NULL */
    node_id folded_by;        /* CONSTANT: the removed node whose result it is, see ir/provenance.h; 0: none */
    const char *frozen;       /* CONSTANT: why the initialiser cannot be replaced; NULL: it can */
};

struct node {
    enum op op;
    region_id region;
    uint32_t input_count, output_count, attribute_count, body_count;
    value_id *inputs;
    value_id *outputs;
    struct attribute *attributes;  /* sorted by name */
    region_id *bodies;             /* control flow only */
    const struct location *location;
    bool removed;                  /* no longer in its region's list */
};

struct region {
    node_id parent;           /* the control-flow node, 0 for the graph's body */
    VEC(value_id) arguments;
    VEC(node_id) nodes;       /* in an order that respects dependencies */
    VEC(value_id) results;
};

struct graph_output {
    value_id value;
    const char *name; /* the model's */
};

/* What --dim says of a size that the model computes: known by name only when inference finds it. */
struct size_wish {
    const char *name;
    int64_t low, high, hint;
    bool used;
};

struct alias { /* output `output` lives in the buffer of input `input` (--alias) */
    uint32_t output, input;
};

struct graph {
    struct arena *arena;
    struct interner names;
    struct dims dims;
    VEC(struct value) values; /* value 0 is unused */
    VEC(struct node) nodes;   /* node 0 is unused */
    VEC(struct region) regions; /* region 1 is the body, 0 is unused */
    VEC(value_id) inputs;
    VEC(struct graph_output) outputs;
    VEC(struct alias) aliases;
    VEC(struct size_wish) wishes;
    const char *producer; /* the model's producer_name, untrusted, may be NULL */
    int64_t opset;        /* of the default domain, for `info` */
};

enum { GRAPH_BODY = 1 };

struct graph *graph_new(struct arena *arena);

/* Pointers into the arrays hold until the next graph_add_*. */
static inline struct value *graph_value(const struct graph *graph, value_id id)
{
    return &graph->values.items[id];
}
static inline struct node *graph_node(const struct graph *graph, node_id id)
{
    return &graph->nodes.items[id];
}

value_id graph_add_input(struct graph *graph, const char *name, struct tensor_type type);
value_id graph_add_constant(struct graph *graph, struct tensor_type type, const struct blob *blob);
/* Scalars and small lists: rank 0 or 1, bytes copied. */
value_id graph_add_constant_data(struct graph *graph, enum dtype dtype, int rank, const int64_t *sizes,
                                 const void *data);
/* Appends a node to the region (before `before`, when not 0) with fresh results of unknown type. Input and attribute
 * lists are copied; attributes need not be sorted. */
node_id graph_add_node(struct graph *graph, region_id region, node_id before, enum op op, uint32_t input_count,
                       const value_id *inputs, uint32_t output_count, uint32_t attribute_count,
                       const struct attribute *attributes, const struct location *location);
region_id graph_add_region(struct graph *graph, node_id parent);
/* The next argument of a body, of unknown shape. */
value_id graph_add_argument(struct graph *graph, region_id region, enum dtype dtype);
void graph_add_output(struct graph *graph, value_id value, const char *name);
/* Every use of `old` (node inputs, region results, graph outputs) becomes `new`. */
void graph_replace_uses(struct graph *graph, value_id old, value_id new_value);
/* Elements of the value are sizes (SYMBOL_WORD). */
bool graph_is_word(const struct graph *graph, value_id value);
/* The value has become a constant: sizes that its elements are become numbers. False: a size cannot be what it is. */
bool graph_settle_words(struct graph *graph, value_id value);
void graph_remove_node(struct graph *graph, node_id node);
/* Drops removed nodes from the region lists. */
void graph_sweep(struct graph *graph);
/* Uses of each value as node inputs, region results and graph outputs: counts[value]. */
uint32_t *graph_use_counts(const struct graph *graph, struct arena *arena);

static inline value_id node_input(const struct node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : 0;
}

const struct attribute *node_attribute(const struct node *node, enum attribute_name name); /* NULL: absent */
int64_t node_int(const struct node *node, enum attribute_name name, int64_t absent);
double node_float(const struct node *node, enum attribute_name name, double absent);
const char *node_word(const struct node *node, enum attribute_name name, const char *absent);
void node_set_attribute(struct graph *graph, node_id node, const struct attribute *attribute);
void node_remove_attribute(struct node *node, enum attribute_name name);
struct attribute attribute_int(enum attribute_name name, int64_t value);
struct attribute attribute_float(enum attribute_name name, double value);
struct attribute attribute_word(enum attribute_name name, const char *word); /* word: from word_find */
struct attribute attribute_dtype(enum attribute_name name, enum dtype value);
/* Lists are kept by pointer: the caller's array must live in the graph's arena. */
struct attribute attribute_ints(enum attribute_name name, uint32_t count, const int64_t *values);
struct attribute attribute_floats(enum attribute_name name, uint32_t count, const double *values);
struct attribute attribute_dims(enum attribute_name name, uint32_t count, const dim *values);

/* The fixed vocabulary of word attributes: "linear", "nearest", ... NULL when the text is not in it. Words are compared
 * by pointer after word_find, or by strcmp. */
const char *word_find(const char *text);

struct tensor_type tensor_type_new(struct arena *arena, enum dtype dtype, int rank, const dim *dims);
struct tensor_type tensor_type_constant(struct graph *graph, enum dtype dtype, int rank, const int64_t *sizes);
bool tensor_type_same(const struct dims *dims, const struct tensor_type *a, const struct tensor_type *b);
dim tensor_elements(struct dims *dims, const struct tensor_type *type); /* product of dims */
/* All dims constant: the sizes and their product. */
bool tensor_constant_sizes(const struct dims *dims, const struct tensor_type *type, int64_t *sizes,
                           int64_t *elements);

/* Reads a constant's elements (decoded bytes at..at+bytes). False: the file cannot be read; the caller reports it. */
bool blob_read(const struct blob *blob, uint64_t at, void *data, size_t bytes);
/* A constant integer or bool value's elements as i64; false when it is no constant, not integer, or longer than
 * `limit`. */
bool value_constant_ints(const struct graph *graph, value_id value, int64_t *elements, uint32_t limit,
                         uint32_t *count);
/* A constant of exactly one float element (any float type), as a double. */
bool value_constant_float(const struct graph *graph, value_id value, double *number);

/* Facts of ops.def. */
struct op_facts {
    const char *name;
    uint8_t least_inputs, most_inputs; /* 255: any number */
    uint8_t least_outputs, most_outputs;
    uint32_t traits;
};
enum op_trait {
    OP_POINTWISE = 1,    /* one output element depends on one element of each (broadcast) input */
    OP_VIEW = 2,         /* moves elements only; each output element is one input element */
    OP_COMMUTATIVE = 4,  /* the first two inputs may be swapped */
    OP_REDUCTION = 8,
    OP_ANCHOR = 16,      /* matmul, convolution */
    OP_RANDOM = 32,      /* two equal nodes are not the same value */
    OP_CONTROL = 64,     /* has bodies */
};
const struct op_facts *op_facts(enum op op);
enum op op_from_name(const char *name); /* OP_NONE when unknown */
const char *attribute_text(enum attribute_name name);
enum attribute_name attribute_from_text(const char *text);
enum attribute_kind attribute_kind_of(enum attribute_name name);

/* The text form; docs/ir.md is its grammar. Names are printed only when `names` is set, escaped. Constants up to 64
 * bytes stand inline in hex; longer ones as a sha256 prefix, to be found by the parser's `blobs` call-back. */
void graph_print(const struct graph *graph, bool names, struct text *out);
struct blob_finder {
    const struct blob *(*find)(void *user, uint64_t hash, uint64_t length); /* NULL: unknown; may be a NULL pointer */
    void *user;
};
bool graph_parse(struct arena *arena, struct diagnostics *diagnostics, const char *text,
                 const struct blob_finder *blobs, struct graph **out);
uint64_t blob_hash(const struct blob *blob, bool *readable); /* first 8 bytes of its sha256 */

/* Structure, arity, types and dominance; `stage` is named in the message (E0902). With `shapes`, every type must be
 * known. */
bool graph_verify(const struct graph *graph, struct diagnostics *diagnostics, const char *stage, bool shapes);

#endif

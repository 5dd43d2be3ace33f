/* Diagnostics: what is wrong with the user's input or machine, with its place in the ONNX model. Recorded in order,
 * printed by the driver alone. A function that fails because of its input records at least one and returns false. */
#ifndef GPUCC_IR_SUPPORT_DIAG_H
#define GPUCC_IR_SUPPORT_DIAG_H

#include "ir/support/arena.h"
#include "ir/support/str.h"

/* One row a code. */
enum diag_code {
#define DIAG(number, name, status, meaning, remedy) DIAG_##name = number,
#include "ir/support/diag.def"
#undef DIAG
};

/* Where in the user's model. All text is the model's own, unescaped; the printer escapes it. */
struct location {
    const char *op_type;         /* NULL: not about one node */
    const char *domain;          /* "" for the default domain */
    const char *name;            /* the node's name, may be empty */
    const char *graph;           /* path of nested graphs and functions, "" at the top */
    int64_t opset;               /* of the domain */
    uint32_t number;             /* the node's position in its graph */
    const struct location *also; /* further nodes that a rewrite merged into this one, or NULL */
};

struct diagnostic {
    enum diag_code code;
    const struct location *location; /* NULL: about the file as a whole */
    const char *message;             /* no newline at the end; names in it already quoted by text_quote */
};

struct diagnostics {
    struct arena *arena;
    const char *file; /* the model's path, as the user gave it */
    VEC(struct diagnostic) items;
    uint32_t most;    /* items that are kept; diagnostics_init sets MOST_DIAGNOSTICS */
    uint32_t dropped; /* beyond */
};

enum { MOST_DIAGNOSTICS = 100 };

void diagnostics_init(struct diagnostics *diagnostics, struct arena *arena, const char *file);
void diag_error(struct diagnostics *diagnostics, enum diag_code code, const struct location *location,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A model's name, quoted and escaped, for use in a message. */
const char *diag_quote(struct diagnostics *diagnostics, const char *name);
/* `model.onnx: error E0312: node "/a" (#42, MatMul, opset 17): message`, one line with its newline. A domain other than
 * the default one stands before the operator with a dot; a nested graph's path and merged nodes behind the opset. */
void diag_print(const struct diagnostics *diagnostics, const struct diagnostic *item, struct text *out);
/* Exit status of the first diagnostic's row; 0 when there is none. */
int diag_status(const struct diagnostics *diagnostics);
/* Exit status of one code's row. */
int diag_code_status(enum diag_code code);

/* Rows of diag.def in order, for docs/diagnostics.md; NULL behind the last. */
struct diag_row {
    unsigned number;
    const char *name;
    int status;
    const char *meaning, *remedy;
};
const struct diag_row *diag_row(uint32_t index);

#endif

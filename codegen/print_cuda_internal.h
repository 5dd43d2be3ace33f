/* Shared by the two files of the CUDA printer. */
#ifndef GPUCC_CODEGEN_PRINT_CUDA_INTERNAL_H
#define GPUCC_CODEGEN_PRINT_CUDA_INTERNAL_H

#include "codegen/kernel_ir.h"

struct cuda_printer {
    const struct kernel *kernel;
    struct text *out;
    unsigned depth;        /* of blocks, for indentation */
    bool *wide_variable;   /* [variable]: an i64 that may not fit 32 bits */
    signed char *narrow;   /* [node]: 1 fits 32 bits, 0 not, -1 not known yet */
    uint32_t *uses;        /* [node]: within this statement */
    uint32_t *names;       /* [node]: number of its temporary, 0: none */
    uint32_t next_name;    /* unique in the kernel */
    VEC(expr) order;       /* nodes of this statement, arguments before users */
};

/* The C type that holds a value in registers, and the one that holds it in memory. */
const char *cuda_value_type(enum dtype dtype);
const char *cuda_storage_type(enum dtype dtype);
/* The type of an expression's value: int for a narrow i64. */
const char *cuda_expr_type(struct cuda_printer *p, expr e);
bool cuda_is_narrow(struct cuda_printer *p, expr e);

void cuda_indent(struct cuda_printer *p);
/* Declares the temporaries of a statement's expressions, then cuda_put_expr may print them. */
void cuda_begin_statement(struct cuda_printer *p, uint32_t count, const expr *roots);
void cuda_end_statement(struct cuda_printer *p);
/* `precedence`: of the place it stands in; parentheses where they are needed. */
void cuda_put_expr(struct cuda_printer *p, expr e, int precedence);
void cuda_put_variable(struct cuda_printer *p, uint32_t variable);
void cuda_put_memory(struct cuda_printer *p, uint32_t memory);

enum cuda_precedence {
    CUDA_ANY = 0,
    CUDA_CONDITIONAL,
    CUDA_LOGICAL_OR,
    CUDA_LOGICAL_AND,
    CUDA_OR,
    CUDA_XOR,
    CUDA_AND,
    CUDA_EQUALITY,
    CUDA_RELATION,
    CUDA_SHIFT,
    CUDA_SUM,
    CUDA_TERM,
    CUDA_UNARY,
    CUDA_PRIMARY
};

#endif

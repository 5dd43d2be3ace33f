/* Shared by the two files of the CUDA printer. */
#ifndef GPUCC_CODEGEN_PRINT_CUDA_INTERNAL_H
#define GPUCC_CODEGEN_PRINT_CUDA_INTERNAL_H

#include "codegen/kernel_ir.h"

struct cuda_printer {
    const struct kernel *kernel;
    struct text *out;
    unsigned depth;          /* of blocks, for indentation */
    bool *wide_variable;     /* [variable]: an i64 that may not fit 32 bits */
    signed char *index;      /* [node]: 1 index arithmetic alone, 0 not, -1 not known yet */
    uint32_t *uses;          /* [node]: within this statement */
    const char **names;      /* [node]: of its temporary within this statement; NULL: none */
    const char **variables;  /* [variable]: its name, once declared */
    const char **memories;   /* [memory] */
    const char **words;      /* [word] */
    const char **dims;       /* [kernel_dim_position] */
    const char **constants;  /* [tag - 1]: names of those that are used; NULL: not yet */
    bool *unrolled;          /* [variable]: of an unrolled loop */
    VEC(const char *) taken; /* names that are visible here */
    VEC(expr) order;         /* nodes of this statement, arguments before users */
};

/* A name made of the label that nothing visible has; taken until the scope ends. */
const char *cuda_new_name(struct cuda_printer *p, const char *label);
/* The C type that holds a value in registers, and the one that holds it in memory. */
const char *cuda_value_type(enum dtype dtype);
const char *cuda_storage_type(enum dtype dtype);
/* The type of an expression's value: int for a narrow i64. */
const char *cuda_expr_type(struct cuda_printer *p, expr e);
bool cuda_is_index(struct cuda_printer *p, expr e);
bool cuda_is_narrow(struct cuda_printer *p, expr e); /* of 32 bits */

/* DEVICE float name(float x): the value over the kernel's variables, which are the parameters. */
void cuda_put_function(const struct kernel *kernel, const char *name, expr value, struct text *out);
void cuda_indent(struct cuda_printer *p);
/* "exp_f32", "f32_from_f16": what stands for a node that expr_is_call names. */
const char *cuda_function_name(struct arena *arena, enum expr_op op, enum dtype to, enum dtype from);
void cuda_put_declaration_value(struct cuda_printer *p, expr e); /* the right side of a declaration */
/* Declares the temporaries of a statement's expressions, then cuda_put_expr may print them. */
void cuda_begin_statement(struct cuda_printer *p, uint32_t count, const expr *roots);
void cuda_end_statement(struct cuda_printer *p);
/* `precedence`: of the place it stands in; parentheses where they are needed. */
void cuda_put_expr(struct cuda_printer *p, expr e, int precedence);

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

/* Shared by the files that speak to LLVM-C (print_llvm*.c, llvm_object.c) and included by no other: the state
 * of printing one kernel into a module. */
#ifndef GPUCC_CODEGEN_PRINT_LLVM_H
#define GPUCC_CODEGEN_PRINT_LLVM_H

#include <llvm-c/Core.h>

#include "codegen/kernel_ir.h"

/* The value of an expression within the statement `stamp`. `index`: made of loop variables, dims and
 * constants alone, so that its arithmetic does not wrap (kernel_ir.h). */
struct llvm_value {
    LLVMValueRef value;
    uint32_t stamp;
    bool index;
};

struct llvm_printer {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const struct kernel *kernel;
    const struct machine *machine;
    struct arena *arena;
    LLVMValueRef function;
    LLVMBasicBlockRef entry;
    LLVMValueRef begin, end;   /* of the parallel loop */
    LLVMValueRef *memories;    /* [memory]: base pointer; REGISTER: the alloca */
    LLVMValueRef *words;       /* [word] */
    LLVMValueRef *dims;        /* [kernel_dim_position] */
    LLVMValueRef *variables;   /* [variable]: its value, or its alloca when it is mutable */
    bool *variable_is_index;   /* [variable] */
    struct llvm_value *values; /* [node of the pool] */
    LLVMMetadataRef loop;      /* the vectorised loop whose body is being printed, or NULL */
    uint32_t stamp;            /* of the statement being printed */
    const char *problem;       /* first thing that could not be printed, NULL: none */
};

LLVMTypeRef llvm_type(LLVMContextRef context, enum dtype dtype, uint16_t lanes); /* of a value: bool is i1 */
LLVMTypeRef llvm_stored_type(LLVMContextRef context, enum dtype dtype,
                             uint16_t lanes); /* in memory: bool is i8 */

/* Prints what the expression needs at the builder's place; each node once a statement. */
LLVMValueRef llvm_expr(struct llvm_printer *printer, expr e);
/* Address of an element, and a value brought into the form in which memory holds it. */
LLVMValueRef llvm_address(struct llvm_printer *printer, uint32_t memory, LLVMValueRef index, uint16_t lanes);
LLVMValueRef llvm_to_memory(struct llvm_printer *printer, enum dtype dtype, uint16_t lanes,
                            LLVMValueRef value);
/* Says of a load or store that it does not depend on other iterations of the vectorised loop around it, if
 * any. */
void llvm_mark_access(struct llvm_printer *printer, LLVMValueRef instruction);
unsigned llvm_alignment(const struct llvm_printer *printer, uint32_t memory);

/* Attributes that every function needs which is compiled for the machine. */
void llvm_function_attributes(LLVMContextRef context, LLVMValueRef function, const struct machine *machine);
void llvm_add_flag(LLVMContextRef context, LLVMValueRef function, LLVMAttributeIndex place, const char *name,
                   uint64_t value);

/* print_llvm_fma.c: a * b + c, rounded once, without an fma instruction. */
LLVMValueRef llvm_software_fma(struct llvm_printer *printer, enum dtype dtype, uint16_t lanes,
                               LLVMValueRef *arguments);

/* Adds the kernel to the module as `symbol`. False: *problem says what Kernel IR asked for that is not there.
 */
bool llvm_print_kernel(LLVMContextRef context, LLVMModuleRef module, const struct kernel *kernel,
                       const struct machine *machine, const char *symbol, struct arena *arena,
                       const char **problem);

#endif

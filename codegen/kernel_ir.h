/* Kernel IR: one kernel as structured statements over memory objects, for one target. The printers (print_cuda,
 * print_llvm) see only this and decide nothing.
 *
 * Expressions are those of ir/expr.h in the kernel's own pool. AXIS, LOAD, LOAD_OR, REDUCED and FUNCTIONs are gone:
 * loops define VARIABLEs, memory is read by ELEMENT at a flat index (ELEMENT_OR where an index may be out of range: memory
 * is then not touched), functions are expanded (expr_expand). DIM is a kernel parameter. Index arithmetic is i64; where `index_bits` is 32 the CUDA printer narrows every i64 expression that
 * hangs on variables of loops, thread and block indices, dims and constants alone, and `prepare` refuses sizes beyond.
 *
 * Lanes. A CPU kernel may compute on vectors (`lanes` > 1): every arithmetic operation takes equal lanes. A CUDA kernel
 * may only load, store, PACK and LANE them (16-byte accesses).
 *
 * Stages. What needs instructions that expressions do not have (tensor cores, the copy engine, asynchronous barriers) is
 * a call of a device stage, codegen/stages.def. The kernel owns the memories and hands them over; what a stage leaves in
 * registers is known to the strategy that calls it (strategy/gpu/fragment.h). Roles of warps are branches on the thread. */
#ifndef GPUCC_CODEGEN_KERNEL_IR_H
#define GPUCC_CODEGEN_KERNEL_IR_H

#include "codegen/stages.h"
#include "ir/expr.h"
#include "ir/target.h"

enum memory_space {
    MEMORY_GLOBAL,   /* a kernel parameter: one of the caller's buffers */
    MEMORY_SHARED,   /* CUDA: of the block */
    MEMORY_REGISTER, /* of the thread; indices must be constants after unrolling */
    MEMORY_SCRATCH,  /* CPU: of the worker thread, given by the runtime, 64-byte aligned, contents undefined at entry */
    /* CUDA, for stages alone: */
    MEMORY_TENSOR_MAP, /* a kernel parameter: how the copy engine sees a buffer (struct kernel_tensor_map) */
    MEMORY_MBARRIER,   /* shared: `count` barriers at which threads and copies arrive */
    MEMORY_BARRIER,    /* one of the block's 15 barriers by number, of `count` threads */
};

struct kernel_memory {
    enum memory_space space;
    enum dtype dtype;    /* of an element, as stored; f16 and bf16 stay bits until converted */
    uint16_t lanes;      /* REGISTER: each element is a vector of so many; else 1 */
    bool read, written;  /* GLOBAL */
    bool in_place;       /* GLOBAL: may be the same memory as another one, read before it is written at each index:
                            printers promise the compiler nothing about it (no restrict, no noalias) */
    int64_t count;       /* elements; GLOBAL: 0 */
    const char *label;   /* an identifier of our own ("x", "tile_a"), never the model's text */
    const char *shape;   /* GLOBAL: its dims as text, for the comment block; may be NULL */
    uint32_t alignment;  /* bytes that the base is known to have; GLOBAL buffers have 256, views of I/O at least the element's */
};

struct kernel_variable {
    enum dtype dtype;
    uint16_t lanes;
    bool mutable;        /* may be assigned after its declaration */
    dim extent;          /* an i64 in [0, extent); DIM_NONE: not known. Index arithmetic simplifies by it. */
    const char *label;
};

enum statement_kind {
    STATEMENT_DECLARE,   /* variable = value: the variable's one declaration; its scope is the rest of the list */
    STATEMENT_ASSIGN,    /* variable = value */
    STATEMENT_FOR,       /* for variable = begin; variable < end; variable += step: body */
    STATEMENT_IF,        /* if condition: body, else otherwise */
    STATEMENT_STORE,     /* memory[index ..] = value (value's lanes elements) */
    STATEMENT_BARRIER,   /* CUDA: all threads of the block */
    STATEMENT_COMMIT,    /* CUDA: the asynchronous stores since the last one are a batch */
    STATEMENT_WAIT,      /* CUDA: until at most `batches` of this thread's batches are under way */
    STATEMENT_SET_CONDITION, /* CUDA: whether the launches behind a handle run: `memory` is the parameter that holds it
                                 in place of an address, `value` a bool */
    STATEMENT_STAGE,     /* CUDA: a call of a device stage */
    STATEMENT_COMMENT,   /* text of our own, one line */
};

enum loop_kind {
    LOOP_SERIAL,
    LOOP_UNROLL,     /* constant bounds; fully */
    LOOP_VECTORISE,  /* CPU: iterations are independent: no variable from outside is assigned */
    LOOP_PARALLEL,   /* CPU, outermost, once: begin .. end is split over workers by the runtime */
};

/* What a letter of the stage's operands takes: `memory` (with `value`, its first element, where the letter says so), `value`
 * alone, or `variable`. */
struct stage_operand {
    uint32_t memory, variable;
    expr value;
};

/* A buffer as the copy engine sees it; part of the launch, encoded by the runtime. Fastest dim first. */
enum { MAX_TENSOR_MAPS = 8, MAX_TENSOR_MAP_RANK = 5 };
struct kernel_tensor_map {
    uint32_t memory;  /* TENSOR_MAP */
    uint32_t buffer;  /* GLOBAL: its elements are 16 bits wide so far */
    uint32_t rank;    /* 2 .. 5 */
    dim sizes[MAX_TENSOR_MAP_RANK];
    dim strides[MAX_TENSOR_MAP_RANK]; /* in elements; of the first: 1. Others make multiples of 16 bytes wherever the
                                         kernel's condition holds. */
    uint32_t box[MAX_TENSOR_MAP_RANK]; /* elements that one copy brings */
    uint32_t swizzle;                  /* bytes: 0, 32, 64, 128 */
};

struct statement;
struct statement_list {
    struct statement *first, *last;
};

struct statement {
    enum statement_kind kind;
    struct statement *next;
    uint32_t variable;           /* DECLARE, ASSIGN, FOR */
    expr value;                  /* DECLARE, ASSIGN, STORE; IF: the condition */
    enum loop_kind loop;
    expr begin, end, step;       /* FOR */
    struct statement_list body, otherwise;
    uint32_t memory;             /* STORE, SET_CONDITION */
    expr index;
    bool asynchronous;           /* STORE to SHARED of one global ELEMENT (or ELEMENT_OR with zeros) of 4 or 16 bytes:
                                    done after a WAIT */
    uint32_t batches;            /* WAIT */
    const char *text;            /* COMMENT */
    enum stage_number stage;     /* STAGE */
    const int64_t *constants;    /* STAGE: [its constants] */
    const struct stage_operand *operands; /* STAGE: [its operands] */
};

enum { MAX_KERNEL_MEMORIES = 64, MAX_KERNEL_DIMS = 64 };

/* A number that the printed kernel calls by name. Names stay where an expression still holds the constant as it was
 * given: arithmetic on constants gives nameless ones. */
struct kernel_constant {
    const char *label; /* "tile_rows"; CUDA C: TILE_ROWS */
    int64_t value;
};
struct kernel_dim_label {
    dim d;
    const char *label;
};

/* A buffer behind the memories that holds a size, which is read once (codegen/kernel_words.h). */
struct kernel_word {
    uint32_t element;
    enum dtype dtype;
};
/* A dim that is no parameter but computed when the kernel begins. */
struct kernel_computed {
    dim d;
    expr value; /* of words, parameters and dims computed before */
};

struct kernel {
    struct exprs *pool;
    const char *name;            /* set when the kernel is unique: anchor's operator type + 8 hex digits of its hash */
    const char *strategy;        /* the strategy's name */
    const char *config;          /* its parameters as text, "tile=64x64, threads=256" */
    VEC(struct kernel_memory) memories; /* GLOBAL ones first, in parameter order */
    uint32_t global_count;
    VEC(struct kernel_variable) variables; /* variable 0 is unused */
    VEC(struct kernel_word) words;         /* parameters behind the memories */
    VEC(dim) dims;               /* parameters behind the buffers, in order of first use by a statement */
    VEC(struct kernel_computed) computed;  /* what else DIM may be */
    VEC(struct kernel_constant) constants;   /* by the tag of kernel_named, less 1 */
    VEC(struct kernel_dim_label) dim_labels; /* of those dims that have a name */
    bool calls_functions;        /* CUDA: functions and conversions stay as calls (expr_expand_inline) */
    struct statement_list body;

    dim grid[3];                 /* CUDA: blocks */
    uint32_t block[3];           /* CUDA: threads */
    uint32_t min_blocks;         /* CUDA: of __launch_bounds__, 0: not stated */
    dim condition;               /* CUDA: launched where it is not 0; DIM_NONE: always */
    VEC(struct kernel_tensor_map) tensor_maps; /* CUDA: in the order of their memories */
    uint32_t index_bits;         /* CUDA: 32 or 64 */
    dim work;                    /* CPU: end of the LOOP_PARALLEL loop; 1 when there is none */
    uint64_t scratch_bytes;      /* CPU: a worker needs */

    /* For the comment block and for `info`: what it does and what that costs. */
    const char *summary;         /* "Conv + Relu: f32[s0, 64, 56, 56], 3x3" built from our own words and numbers */
    dim bytes, operations;       /* moved to and from memory at least; arithmetic */
    const struct location *location;

    VEC(unsigned char) noted;    /* [expression of the pool]: its dims are among `dims` (kernel_note) */
};

struct kernel *kernel_new(struct arena *arena, struct dims *dims);
/* SCRATCH adds to scratch_bytes; GLOBAL ones must come first. */
uint32_t kernel_memory_add(struct kernel *kernel, const struct kernel_memory *memory);
/* The TENSOR_MAP memory of a map, whose own `memory` is filled in. */
uint32_t kernel_tensor_map_add(struct kernel *kernel, const struct kernel_tensor_map *map, const char *label);
uint32_t kernel_variable_add(struct kernel *kernel, enum dtype dtype, uint16_t lanes, bool mutable, const char *label);
expr kernel_variable(const struct kernel *kernel, uint32_t variable); /* VARIABLE expression */
expr kernel_element(const struct kernel *kernel, uint32_t memory, expr index, uint16_t lanes);
/* The element, or `otherwise` without touching memory where the condition is false. `lanes` > 1: the condition has one
 * lane for all, or one each. */
expr kernel_element_or(const struct kernel *kernel, uint32_t memory, expr condition, expr index, expr otherwise,
                       uint16_t lanes);
expr kernel_broadcast(const struct kernel *kernel, expr scalar, uint16_t lanes);
expr kernel_lane(const struct kernel *kernel, expr vector, uint32_t lane);
expr kernel_pack(const struct kernel *kernel, const expr *scalars, uint16_t lanes);
expr kernel_thread_index(const struct kernel *kernel, uint32_t axis, dim extent); /* extent: DIM_NONE when not known */
expr kernel_block_index(const struct kernel *kernel, uint32_t axis, dim extent);
expr kernel_dim(struct kernel *kernel, dim d); /* a DIM parameter, or a constant */
/* The same by name: a named constant, or a parameter whose name this is where it has none yet. */
expr kernel_size(struct kernel *kernel, dim d, const char *label);
expr kernel_named(struct kernel *kernel, int64_t value, const char *label); /* an i64 constant */
void kernel_note(struct kernel *kernel, expr e); /* records the dims that it uses; the build_* functions call it */

/* Building statements: `at` is the list they are appended to. */
struct block {
    struct kernel *kernel;
    struct statement_list *at;
};
expr build_declare(struct block *block, const char *label, expr value);           /* returns the VARIABLE */
uint32_t build_mutable(struct block *block, const char *label, expr value);       /* returns the variable's number */
void build_assign(struct block *block, uint32_t variable, expr value);
/* The loop variable's extent is `end` where begin is 0 and end a dim. Zero step: 1. */
struct statement *build_for(struct block *block, const char *label, expr begin, expr end, expr step,
                            enum loop_kind loop, struct block *body, expr *variable);
void build_if(struct block *block, expr condition, struct block *then, struct block *otherwise); /* otherwise: may be NULL */
void build_store(struct block *block, uint32_t memory, expr index, expr value);
void build_store_async(struct block *block, uint32_t memory, expr index, expr value);
void build_commit(struct block *block);
void build_wait(struct block *block, uint32_t batches);
void build_barrier(struct block *block);
void build_set_condition(struct block *block, uint32_t handle, expr value);
/* `constants` and `operands`: as many as the stage has. */
void build_stage(struct block *block, enum stage_number stage, const int64_t *constants,
                 const struct stage_operand *operands);
void build_comment(struct block *block, const char *text);

/* Lowering of a Definition's expression into the kernel: AXIS by the given variables, loads to ELEMENTs of the memories
 * bound to the buffers (LOAD_OR with its range tests; a LOAD with one index has it flat, whatever the buffer's rank), REDUCED by the given expressions, then expr_expand (or expr_expand_inline, in a kernel that
 * calls functions). */
struct lowering {
    struct kernel *kernel;
    const struct definition *definition;
    const uint32_t *memories;  /* [buffer]: kernel memory, or UINT32_MAX where the buffer is not in memory */
    const expr *axes;          /* [axis] */
    const expr *reduced;       /* [reduction] */
    /* Buffers not in memory: their value at the given indices (of this kernel's pool); may be NULL. */
    expr (*value)(void *user, uint32_t buffer, uint32_t rank, const expr *indices);
    void *user;
};
expr lower_expr(const struct lowering *lowering, expr e);
expr lower_index(const struct lowering *lowering, uint32_t buffer, const expr *indices); /* flat, row-major, lowered */

/* Where a DIM is: its number among dims, then computed ones, which come first where it is both. UINT32_MAX: nowhere. */
uint32_t kernel_dim_position(const struct kernel *kernel, dim d);
/* Buffers that a launch gives: memories, then words. */
static inline uint32_t kernel_buffer_count(const struct kernel *kernel)
{
    return kernel->global_count + kernel->words.count;
}

bool kernel_verify(const struct kernel *kernel, const struct machine *machine, struct text *why);
void kernel_print(const struct kernel *kernel, struct text *out); /* docs/kernel-ir.md */

#endif

/* The interpreter's inside: a nest's expressions become a linear program over registers, and each instruction
 * runs over a block of points at once. Shared by the files of ir/interp/ only.
 *
 * A register holds BLOCK_POINTS values of one element type in their natural width. Points are those of the
 * *varying* axes in row-major order, the other axes are fixed while a block runs. A block falls into *runs*,
 * along which only the run axis moves: an index that is affine in the axes is an offset and a step in each
 * run. */
#ifndef GPUCC_IR_INTERP_PROGRAM_H
#define GPUCC_IR_INTERP_PROGRAM_H

#include "ir/interp.h"

enum { BLOCK_POINTS = 512, REGISTER_BYTES = BLOCK_POINTS * 8 };
#define NO_REGISTER UINT32_MAX

/* A buffer in memory. */
struct place {
    unsigned char *bytes; /* NULL: behind storage */
    const struct interp_storage *storage;
    enum dtype dtype;
    uint32_t width, rank; /* bytes of an element */
    int64_t count;
    int64_t sizes[MAX_RANK], strides[MAX_RANK]; /* in elements, row-major */
};

/* The axes of a nest as a program sees them. */
struct space {
    uint32_t axis_count, first, last; /* axes first .. last-1 vary */
    uint32_t run_axis;                /* the last varying axis of more than one point; axis_count: none */
    int64_t extents[MAX_AXES];
};

struct access_term {
    uint32_t dim, axis;
    int64_t coefficient;
};

/* Indices that are affine in the axes, for one buffer. Nothing overflows for any point of the space. */
struct access {
    uint32_t place, term_count;
    const struct access_term *terms;
    int64_t offsets[MAX_RANK];
    int64_t steps[MAX_RANK]; /* along a run */
    int64_t step;            /* of the flat index, along a run */
    bool safe;               /* in range at every point of the space */
    bool linear; /* safe, and over the varying axes in order the flat index moves by linear_step each */
    int64_t linear_step;
};

struct instruction {
    enum expr_op op;
    enum dtype dtype, from; /* as expr_eval_op has them */
    uint32_t result, argument_count;
    const uint32_t *arguments;   /* registers; of a load with an access: only the alternative of a LOAD_OR */
    int64_t value;               /* AXIS: which; LOAD, LOAD_OR: which place */
    const struct access *access; /* of a load, or NULL: the arguments are its indices */
};

struct preset { /* a register that no instruction writes */
    uint32_t result;
    enum dtype dtype;
    int64_t value; /* a constant's bits, or which reduction */
};

struct program {
    struct space space;
    uint32_t instruction_count, register_count, constant_count, reduced_count;
    struct instruction *instructions;
    struct preset *constants, *reduced;
    bool needs_runs; /* else a block counts as one run */
};

/* What a program runs on. */
struct pages;
struct executor {
    struct place *places;
    struct pages *pages;      /* NULL: all places are in memory */
    unsigned char *registers; /* of the program that runs now */
    uint32_t run_count;
    uint32_t run_starts[BLOCK_POINTS], run_lengths[BLOCK_POINTS];
    int64_t *run_axes; /* [BLOCK_POINTS * MAX_AXES]: the axes at the start of each run, axis_count a run */
    int64_t flat[BLOCK_POINTS];
    unsigned char inside[BLOCK_POINTS];
    uint64_t steps, step_limit;
    enum interp_status status;
};

static inline void *register_at(const struct executor *x, uint32_t number)
{
    return x->registers + (size_t)number * REGISTER_BYTES;
}

/* ---- compile.c: expressions of one pool, all of whose dims are constants, become a program
 * ------------------------ */

void space_init(struct space *space, uint32_t axis_count, const int64_t *extents, uint32_t first,
                uint32_t last);
/* The access of these indices to a place, or NULL when they are not affine or could overflow. */
const struct access *access_new(struct exprs *pool, const struct space *space, const struct place *places,
                                uint32_t place, uint32_t rank, const expr *indices);
/* results[i]: the register of roots[i]. */
void program_compile(struct exprs *pool, const struct place *places, const struct space *space,
                     uint32_t root_count, const expr *roots, uint32_t *results, struct program *out);

/* ---- execute.c
 * ---------------------------------------------------------------------------------------------------- */

/* Fills the registers of constants; once for each block of memory that holds registers. */
void program_prepare(struct executor *x, const struct program *program);
/* Runs `count` points from flat position `start` of the varying axes; `fixed` holds the values of the others.
 * False: x->status says why. */
bool program_run(struct executor *x, const struct program *program, const int64_t *fixed, int64_t start,
                 uint32_t count);
/* ---- memory.c
 * ----------------------------------------------------------------------------------------------------- */

bool load_block(struct executor *x, const struct program *program, const struct instruction *i,
                uint32_t count);
/* Stores a register to a place after program_run, at an access or at the indices in registers; `condition`: a
 * register of bools (then there is no access), or NO_REGISTER. */
bool store_block(struct executor *x, const struct program *program, uint32_t place,
                 const struct access *access, const uint32_t *indices, uint32_t value, uint32_t condition,
                 uint32_t count);

/* ---- pages.c: the window onto places behind storage
 * -------------------------------------------------------------- */

enum { PAGE_BYTES = 4096, PAGE_COUNT = 16384 };

struct pages *pages_new(struct arena *arena, uint32_t count); /* count: at least 8 */
/* `count` elements from flat position `flat` on, `step` apart, all of them inside: from the place to
 * `values`, or to the place. False: x->status says why. */
bool pages_move(struct executor *x, uint32_t place, uint64_t flat, int64_t step, unsigned char *values,
                uint32_t count, bool store);
/* Writes what is not yet written. */
bool pages_flush(struct executor *x);

/* ---- order.c
 * ------------------------------------------------------------------------------------------------------ */

/* tile[axis]: extents of the pieces of the parallel axes that are run one after the other, so that the pages
 * that a piece touches fit. All of the axes when nothing is behind storage. */
void order_tiles(const struct place *places, const struct program *body, const struct program *store,
                 const struct access *const *stores, uint32_t store_count, uint32_t rank, uint32_t axes,
                 const int64_t *extents, uint32_t window, int64_t *tile);

/* ---- operations.c
 * ------------------------------------------------------------------------------------------------- */

/* One operation over `count` elements. */
void operate_block(const struct instruction *i, uint32_t count, void *result, const void *const *arguments);
/* An element of a register as expr_eval.h holds values, and back. */
uint64_t read_element(enum dtype dtype, const void *values, uint32_t index);
void write_element(enum dtype dtype, void *values, uint32_t index, uint64_t bits);

/* ---- reduce.c
 * ----------------------------------------------------------------------------------------------------- */

/* Accumulators: f64 for floats, 64-bit integers for integers. */
union accumulator {
    double number;
    uint64_t bits;
};
void accumulator_init(enum reduce_op op, enum dtype dtype, union accumulator *accumulators, uint32_t count);
/* accumulators[i] = combine(accumulators[i], values[i]), or all values into accumulators[0]. */
void accumulate(enum reduce_op op, enum dtype dtype, union accumulator *accumulators, bool into_one,
                const void *values, uint32_t count);
/* Rounds or wraps the accumulators to the type. */
void accumulator_finish(enum dtype dtype, const union accumulator *accumulators, void *values,
                        uint32_t count);

#endif

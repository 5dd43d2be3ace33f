/* Dims: sizes that are known, or named, or computed from named ones. A dim is an index into a table of
 * hash-consed expressions in a canonical form, so two dims that are provably equal are the same number.
 *
 * Canonical form: a sum of integer multiples of products of atoms, sorted; an atom is a symbol or a floor
 * division, modulo, min or max whose arguments are dims. Division simplifies when it is provably exact. All
 * values are i64; an expression whose value leaves i64 is an error found in prepare (see runtime) or DIM_NONE
 * when it is constant.
 *
 * Symbols: each (input, axis) is a symbol of its own; so is each element of a host input's value that feeds a
 * shape. Where an operator needs two dims equal they merge, and the merge is kept as a guard.
 *
 * Words: sizes that the model itself computes (how many elements are not zero, the end of a range). Such a
 * symbol is an element of a value of the graph, known only while the model runs. Its bound is known before:
 * buffers and grids have room for it, kernels read the word. What the host decides never hangs on a word:
 * merges replace words by other sizes, not the other way round, and younger words by older ones only, so that
 * no size hangs on what is computed from it.
 *
 * A table belongs to one thread. Dims never dangle: the table lives in the graph's arena. */
#ifndef GPUCC_IR_DIMS_H
#define GPUCC_IR_DIMS_H

#include "ir/support/arena.h"
#include "ir/support/str.h"

typedef uint32_t dim; /* 0: no dim */
enum { DIM_NONE = 0, MAX_DIM_WEIGHT = 2048 };

enum dim_op { DIM_CONSTANT, DIM_SYMBOL, DIM_SUM, DIM_PRODUCT, DIM_FLOOR_DIV, DIM_MOD, DIM_MIN, DIM_MAX };

/* CONSTANT: value. SYMBOL: value is the symbol's index. SUM: arguments[i] with coefficient[i] each, plus
 * value. PRODUCT: arguments, all atoms (repeats for powers). FLOOR_DIV, MIN, MAX: two arguments. MOD is never
 * stored: a % b is a - b * (a / b), so that (a / b) * b + a % b is a. */
struct dim_node {
    enum dim_op op;
    int64_t value;
    uint32_t count;
    const dim *arguments;
    const int64_t *coefficients; /* SUM only */
    int64_t low, high;   /* inclusive range of values, from the symbols' ranges; INT64_MIN, MAX: no bound */
    bool word;           /* it hangs on a word, as long as that is not replaced */
    uint32_t weight;     /* nodes of the tree; bounded, so that walks need no limit of their own */
    uint32_t current_at; /* `current` is this dim as of that many merges */
    dim current;
};

enum symbol_source {
    SYMBOL_INPUT_AXIS,  /* dim `axis` of graph input `input` */
    SYMBOL_INPUT_VALUE, /* element `axis` (flat) of graph input `input`, which is a host input */
    SYMBOL_WORD,        /* element `axis` (flat) of the value `word`, computed by the model */
    SYMBOL_BOUND,       /* the most that a word may be, stated by whoever runs the model */
};

struct symbol {
    const char *name; /* the model's own dim_param, or NULL; untrusted text, for messages and --dim only */
    enum symbol_source source;
    uint32_t input, axis;
    uint32_t word; /* WORD: value of the graph */
    dim bound;     /* WORD: never less than its value; made before it */
    int64_t low, high; /* inclusive; sizes start at 0 .. INT64_MAX >> 16 */
    int64_t hint;      /* the size to plan for */
    dim replacement;   /* after a merge: what this symbol equals; DIM_NONE: itself */
};

/* left == right was assumed. `why` points at the node that needs it. */
struct guard {
    dim left, right; /* as stated, before the merge replaced them */
    const struct location *location;
};

struct dims {
    struct arena *arena;
    VEC(struct dim_node) nodes; /* node 0 is unused */
    VEC(struct symbol) symbols;
    VEC(struct guard) guards;
    uint32_t *slots; /* hash table of node numbers */
    uint32_t slot_count;
    uint32_t merges; /* raised by each merge: cached results older than this must be brought up to date */
    /* Where equalities that are assumed from now on must hold: where the dim that this gives is not 0. NULL, or DIM_NONE
     * from it: everywhere. `known`: asks for it only if it is known already. */
    dim (*where)(void *user, bool known);
    void *where_user;
};

void dims_init(struct dims *dims, struct arena *arena);

dim dim_constant(struct dims *dims, int64_t value);
/* A new symbol; `low`..`high` as in struct symbol. */
dim dim_symbol(struct dims *dims, const struct symbol *symbol);

dim dim_add(struct dims *dims, dim a, dim b);
dim dim_sub(struct dims *dims, dim a, dim b);
dim dim_mul(struct dims *dims, dim a, dim b);
dim dim_floor_div(struct dims *dims, dim a, dim b); /* towards minus infinity; DIM_NONE when b can be 0 */
dim dim_ceil_div(struct dims *dims, dim a, dim b);
dim dim_mod(struct dims *dims, dim a, dim b); /* a - b * floor(a / b) */
dim dim_min(struct dims *dims, dim a, dim b);
dim dim_max(struct dims *dims, dim a, dim b);
/* |a - b|, and 1 or 0: whether a < b, whether a is not 0. */
dim dim_distance(struct dims *dims, dim a, dim b);
dim dim_is_less(struct dims *dims, dim a, dim b);
dim dim_is_not_zero(struct dims *dims, dim a);
/* Any argument DIM_NONE, a constant that overflows, or an expression beyond MAX_DIM_WEIGHT gives DIM_NONE.
 * Merges are applied to the arguments first. Division cancels common factors before it asks whether b can be
 * 0: a quotient that is exact as a polynomial holds wherever it is defined. */

bool dim_is_constant(const struct dims *dims, dim d, int64_t *value);
bool dim_equals_constant(const struct dims *dims, dim d, int64_t value);
void dim_range(const struct dims *dims, dim d, int64_t *low, int64_t *high);
/* Three-valued facts by ranges: 1 true, 0 false, -1 unknown. */
int dim_less(struct dims *dims, dim a, dim b);
int dim_equal(struct dims *dims, dim a, dim b);
/* a is a multiple of the positive constant for every value of the symbols. */
bool dim_divisible(const struct dims *dims, dim a, int64_t divisor);

/* Assumes a == b: replaces a symbol on one side by the other side where it can, and records the guard. Where that need not
 * hold everywhere (dims.where), only symbols that must equal symbols are replaced.
 * Returns false when the two can never be equal (no overlap of ranges, unequal constants): the caller reports
 * it. */
bool dim_merge(struct dims *dims, dim a, dim b, const struct location *location);
/* Assumes that d >= bound: narrows the range of the symbol that d hangs on, which prepare checks with the symbols'
 * ranges, or records a guard where that cannot say it. False: it can never be. */
bool dim_assume_at_least(struct dims *dims, dim d, int64_t bound, const struct location *location);
/* Every input axis that d hangs on has one element at least from now on, which prepare checks with the
 * symbols' ranges. False: that was known. */
bool dim_assume_not_empty(struct dims *dims, dim d);
/* a and b meet where an operator needs or hopes them to be equal: symbols of theirs that have the same name merge. */
void dim_merge_names(struct dims *dims, dim a, dim b, const struct location *location);
/* Symbols whose range is one value (--dim batch=8) become constants, under a guard. */
void dims_fix_symbols(struct dims *dims);
/* The dim with all merges applied. */
dim dim_current(struct dims *dims, dim d);

/* With all merges applied, it hangs on a word. */
bool dim_hangs_on_word(struct dims *dims, dim d);
/* Adds the words (symbols' numbers) that it hangs on, each once, to the `count` that are there; at most `limit`.
 * False: there are more. */
bool dim_words(struct dims *dims, dim d, uint32_t *symbols, uint32_t *count, uint32_t limit);
/* The dim that is the symbol itself. */
dim dim_of_symbol(struct dims *dims, uint32_t symbol);

/* The value under the given symbol values (indexed by symbol; merged ones are read through their
 * replacement). False on overflow or division by zero. */
bool dim_evaluate(const struct dims *dims, dim d, const int64_t *symbol_values, int64_t *value);
/* The value with every symbol at its hint. */
int64_t dim_hint(const struct dims *dims, dim d);

/* As the IR text writes it: `4 * batch + s1 / 2`, with operators + - * / % min() max(); symbols as `s0`,
 * `s1`, ... (numbers, never the model's text). dim_parse reads the same at *text and moves it behind. */
void dim_print(const struct dims *dims, dim d, struct text *out);
bool dim_parse(struct dims *dims, const char **text, dim *out);

#endif

/* Words in a kernel:
 *
 *     word      w = max(least, min(buffer[element], most))       never outside what memory is there for
 *     dim       computed from words, earlier ones and parameters, with every operation as it stands
 *     body      if (block < the actual grid && what the sizes must agree in) ...
 *
 * The arithmetic is on COMPUTED words, not on DIMs: the builder of expressions would fold that into the very
 * dim that is to be computed. Guards between sizes that no merge settled (ir/dims.h) are tested here, since
 * the host sees them only after the run: a kernel that works on sizes which contradict each other does
 * nothing. */
#include "codegen/kernel_words.h"

#include "ir/support/checked.h"

static const int64_t largest_size = INT64_MAX >> 16; /* of any size */

struct binding {
    struct kernel *kernel;
    const struct graph *graph;
    struct dims *dims;
    uint32_t symbols[MAX_KERNEL_WORDS], count;
    bool failed;
};

/* ---- expressions
 * ---------------------------------------------------------------------------------------------------- */

static expr make(const struct binding *b, enum expr_op op, enum dtype dtype, uint16_t count, expr x, expr y)
{
    const expr arguments[2] = {x, y};
    const struct expr_node node = {
        .op = op, .dtype = dtype, .lanes = 1, .count = count, .arguments = arguments};
    return expr_make(b->kernel->pool, &node);
}

static expr make_i64(const struct binding *b, enum expr_op op, expr x, expr y)
{
    return make(b, op, DTYPE_I64, 2, x, y);
}

static expr make_select(const struct binding *b, expr condition, expr then, expr otherwise)
{
    const expr arguments[3] = {condition, then, otherwise};
    const struct expr_node node = {
        .op = EXPR_SELECT, .dtype = DTYPE_I64, .lanes = 1, .count = 3, .arguments = arguments};
    return expr_make(b->kernel->pool, &node);
}

/* Towards minus infinity. A divisor of 0 gives 0: then a guard does not hold. */
static expr floor_quotient(const struct binding *b, expr x, expr y, dim dividend, dim divisor)
{
    int64_t low, divisor_low, high;
    dim_range(b->dims, dividend, &low, &high);
    dim_range(b->dims, divisor, &divisor_low, &high);
    if (low >= 0 && divisor_low > 0)
        return make_i64(b, EXPR_INDEX_DIV, x, y);
    const expr zero = expr_index(b->kernel->pool, 0);
    const expr quotient = make_i64(b, EXPR_DIV, x, y), rest = make_i64(b, EXPR_REMAINDER, x, y);
    const expr signs = make(b, EXPR_NOT_EQUAL, DTYPE_BOOL, 2, make(b, EXPR_LESS, DTYPE_BOOL, 2, rest, zero),
                            make(b, EXPR_LESS, DTYPE_BOOL, 2, y, zero));
    const expr rounded =
        make(b, EXPR_AND, DTYPE_BOOL, 2, signs, make(b, EXPR_NOT_EQUAL, DTYPE_BOOL, 2, rest, zero));
    return make_select(b, rounded, make_i64(b, EXPR_SUB, quotient, expr_index(b->kernel->pool, 1)), quotient);
}

/* A word, which was computed before what hangs on it. */
static expr word_of(const struct binding *b, dim d)
{
    uint32_t number = 0;
    while (number < b->kernel->computed.count && b->kernel->computed.items[number].d != d)
        number++;
    const struct expr_node node = {.op = EXPR_COMPUTED, .dtype = DTYPE_I64, .lanes = 1, .value = number};
    return expr_make(b->kernel->pool, &node);
}

/* A parameter, a computed dim that is there, or the arithmetic. Bounded by MAX_DIM_WEIGHT. */
static expr value_of(struct binding *b, dim d)
{
    const struct dim_node node = b->dims->nodes.items[d];
    expr result;
    if (!node.word)
        return expr_dim(b->kernel->pool, d);
    if (node.op == DIM_SYMBOL)
        return word_of(b, d);
    switch (node.op) {
    case DIM_SUM:
        result = node.value ? expr_index(b->kernel->pool, node.value) : 0;
        for (uint32_t i = 0; i < node.count; i++) {
            expr part = value_of(b, node.arguments[i]);
            if (node.coefficients[i] != 1)
                part = make_i64(b, EXPR_MUL, part, expr_index(b->kernel->pool, node.coefficients[i]));
            result = result ? make_i64(b, EXPR_ADD, result, part) : part;
        }
        return result;
    case DIM_PRODUCT:
        result = value_of(b, node.arguments[0]);
        for (uint32_t i = 1; i < node.count; i++)
            result = make_i64(b, EXPR_MUL, result, value_of(b, node.arguments[i]));
        return result;
    case DIM_MIN:
    case DIM_MAX:
        return make_i64(b, node.op == DIM_MIN ? EXPR_MIN : EXPR_MAX, value_of(b, node.arguments[0]),
                        value_of(b, node.arguments[1]));
    default:
        return floor_quotient(b, value_of(b, node.arguments[0]), value_of(b, node.arguments[1]),
                              node.arguments[0], node.arguments[1]);
    }
}

/* ---- words
 * ----------------------------------------------------------------------------------------------------------
 */

/* The words of the dim, and those that bound them, older ones first. */
static void want(struct binding *b, dim d)
{
    uint32_t found[MAX_KERNEL_WORDS], count = 0;
    if (!dim_words(b->dims, d, found, &count, MAX_KERNEL_WORDS)) {
        b->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < b->count; k++)
            known = known || b->symbols[k] == found[i];
        if (known)
            continue;
        want(b, b->dims->symbols.items[found[i]].bound); /* of older symbols alone */
        if (b->failed || b->count == MAX_KERNEL_WORDS) {
            b->failed = true;
            return;
        }
        b->symbols[b->count++] = found[i];
    }
}

static void add_computed(struct binding *b, dim d, expr value)
{
    kernel_note(b->kernel, value);
    vec_push(b->kernel->pool->arena, &b->kernel->computed, ((struct kernel_computed){d, value}));
}

static void add_word(struct binding *b, uint32_t symbol)
{
    const struct symbol row = b->dims->symbols.items[symbol];
    struct exprs *pool = b->kernel->pool;
    const struct kernel_word word = {.element = row.axis,
                                     .dtype = graph_value(b->graph, row.word)->type.dtype};
    const struct expr_node load = {
        .op = EXPR_WORD, .dtype = DTYPE_I64, .lanes = 1, .value = b->kernel->words.count};
    vec_push(pool->arena, &b->kernel->words, word);
    const expr most = value_of(b, dim_current(b->dims, row.bound));
    expr value = make_i64(b, EXPR_MIN, expr_make(pool, &load), most);
    value = make_i64(b, EXPR_MAX, value, expr_index(pool, row.low));
    int64_t most_low, most_high;
    dim_range(b->dims, dim_current(b->dims, row.bound), &most_low, &most_high);
    if (row.high < most_high && row.high < largest_size) /* else no memory has room for more */
        value = make_i64(b, EXPR_MIN, value, expr_index(pool, row.high));
    add_computed(b, dim_of_symbol(b->dims, symbol), value);
}

/* ---- what must hold
 * ------------------------------------------------------------------------------------------------- */

/* All of the dim's words are at hand. */
static bool is_at_hand(const struct binding *b, dim d)
{
    uint32_t found[MAX_KERNEL_WORDS], count = 0;
    if (!dim_words(b->dims, d, found, &count, MAX_KERNEL_WORDS))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < b->count; k++)
            known = known || b->symbols[k] == found[i];
        if (!known)
            return false;
    }
    return true;
}

static expr both(const struct binding *b, expr x, expr y)
{
    return !x ? y : !y ? x : make(b, EXPR_AND, DTYPE_BOOL, 2, x, y);
}

/* 0: nothing is left to be tested. */
static expr guards_hold(struct binding *b)
{
    expr all = 0;
    for (uint32_t i = 0; i < b->dims->guards.count; i++) {
        const dim left = dim_current(b->dims, b->dims->guards.items[i].left);
        const dim right = dim_current(b->dims, b->dims->guards.items[i].right);
        if (left == right || left == DIM_NONE || right == DIM_NONE ||
            (!dim_hangs_on_word(b->dims, left) && !dim_hangs_on_word(b->dims, right)) ||
            !is_at_hand(b, left) || !is_at_hand(b, right))
            continue;
        all = both(b, all, make(b, EXPR_EQUAL, DTYPE_BOOL, 2, value_of(b, left), value_of(b, right)));
    }
    return all;
}

/* This block is one of the actual grid's; 0: it always is. */
static expr in_grid(const struct binding *b)
{
    expr all = 0;
    for (int i = 0; i < 3; i++) {
        const dim size = dim_current(b->dims, b->kernel->grid[i]);
        if (!b->dims->nodes.items[size].word)
            continue;
        const struct expr_node block = {
            .op = EXPR_BLOCK_INDEX, .dtype = DTYPE_I64, .lanes = 1, .value = i}; /* of no known extent */
        all = both(b, all,
                   make(b, EXPR_LESS, DTYPE_BOOL, 2, expr_make(b->kernel->pool, &block),
                        expr_dim(b->kernel->pool, size)));
    }
    return all;
}

/* ---- the body
 * ------------------------------------------------------------------------------------------------------- */

static void put_into_if(struct binding *b, struct statement_list *list, expr condition)
{
    const struct statement_list inner = *list;
    struct block block = {.kernel = b->kernel, .at = list}, then;
    *list = (struct statement_list){0};
    build_if(&block, condition, &then, NULL);
    *then.at = inner;
}

static struct statement *parallel_loop(const struct statement_list *list)
{
    for (struct statement *s = list->first; s; s = s->next)
        if (s->kind == STATEMENT_FOR && s->loop == LOOP_PARALLEL)
            return s;
    return NULL;
}

/* Statements beside a parallel loop only declare: what they load is there whatever the sizes. */
static void enclose(struct binding *b)
{
    struct statement *loop = parallel_loop(&b->kernel->body);
    const expr holds = guards_hold(b);
    expr condition = both(b, in_grid(b), holds);
    if (loop && b->dims->nodes.items[dim_current(b->dims, b->kernel->work)].word) {
        const struct expr_node at = {
            .op = EXPR_VARIABLE, .dtype = DTYPE_I64, .lanes = 1, .value = loop->variable};
        condition =
            both(b, make(b, EXPR_LESS, DTYPE_BOOL, 2, expr_make(b->kernel->pool, &at), loop->end), condition);
    }
    if (condition)
        put_into_if(b, loop ? &loop->body : &b->kernel->body, condition);
}

bool kernel_bind_words(struct kernel *kernel, const struct graph *graph, const dim *touched,
                       uint32_t touched_count, uint32_t symbols[MAX_KERNEL_WORDS])
{
    struct binding b = {.kernel = kernel, .graph = graph, .dims = kernel->pool->dims};
    for (uint32_t i = 0; i < touched_count; i++)
        want(&b, touched[i]);
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        want(&b, kernel->dims.items[i]);
    for (int i = 0; i < 3; i++)
        want(&b, kernel->grid[i]);
    want(&b, kernel->work);
    if (b.failed || b.count == 0)
        return !b.failed;
    for (uint32_t i = 0; i < b.count; i++) {
        symbols[i] = b.symbols[i];
        add_word(&b, b.symbols[i]);
    }
    enclose(&b);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < kernel->dims.count; i++) { /* grows: what is computed needs parameters */
        const dim d = kernel->dims.items[i];
        if (!b.dims->nodes.items[d].word)
            continue;
        if (b.dims->nodes.items[d].op != DIM_SYMBOL)
            add_computed(&b, d, value_of(&b, dim_current(b.dims, d)));
    }
    /* Where indices are narrow the others stay, at their bounds: prepare checks that those fit. */
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        if (kernel->index_bits == 32 || !b.dims->nodes.items[kernel->dims.items[i]].word)
            kernel->dims.items[kept++] = kernel->dims.items[i];
    kernel->dims.count = kept;
    return true;
}

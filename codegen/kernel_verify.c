/* The rules of Kernel IR, checked on a finished kernel: what its target has, scopes, types, lanes, and where
 * loops may stand. What it accepts both printers can print. Indices are not proven to be in range: that is
 * the strategy's duty. */
#include "codegen/kernel_ir.h"

#include <string.h>

enum { MAX_STATEMENT_DEPTH = 48, MAX_UNROLLED = 1024, MAX_LANES = 64 };

struct verifier {
    const struct kernel *kernel;
    const struct machine *machine;
    bool cuda;
    struct text *why;
    bool *in_scope;                      /* [variable] */
    uint32_t vector_loops, *vector_loop; /* around the statement; [variable]: around its declaration */
    bool *unrolled;                      /* [variable]: of an UNROLL loop */
    uint32_t *seen;                      /* [node]: statement that checked it last */
    uint32_t statement;
    bool seen_parallel;
};

static bool wrong(struct verifier *v, const char *what)
{
    text_printf(v->why, "statement %u: %s", (unsigned)v->statement, what);
    return false;
}

static const struct expr_node *at(const struct verifier *v, expr e)
{
    return expr_at(v->kernel->pool, e);
}

static bool index_is_scalar(const struct verifier *v, expr e)
{
    return at(v, e)->dtype == DTYPE_I64 && at(v, e)->lanes == 1;
}

/* Made of constants and variables of unrolled loops alone. Indices of registers are small: a plain recursion.
 */
static bool constant_index(const struct verifier *v, expr e, unsigned depth)
{
    const struct expr_node *node = at(v, e);
    if (node->op == EXPR_CONSTANT)
        return true;
    if (node->op == EXPR_VARIABLE)
        return v->unrolled[node->value];
    if (expr_class_of(node->op) != EXPR_ARITHMETIC || depth > 16)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!constant_index(v, node->arguments[i], depth + 1))
            return false;
    return true;
}

static bool check_access(struct verifier *v, int64_t number, expr index, enum dtype dtype, uint16_t lanes)
{
    if (number < 0 || number >= v->kernel->memories.count)
        return wrong(v, "a memory that does not exist");
    const struct kernel_memory *memory = &v->kernel->memories.items[number];
    if (memory->space >= MEMORY_TENSOR_MAP)
        return wrong(v, "an access to what stages alone may use");
    if (!index_is_scalar(v, index))
        return wrong(v, "an index that is no i64");
    if (memory->dtype != dtype)
        return wrong(v, "an access whose type is not its memory's");
    /* On CUDA several neighbouring registers may be moved at once. */
    const bool lanes_fit = lanes == memory->lanes || (v->cuda && memory->lanes == 1 && memory->alignment >= 16);
    if (memory->space == MEMORY_REGISTER && (!lanes_fit || !constant_index(v, index, 0)))
        return wrong(v,
                     "registers with another vector length or an index that is not constant after unrolling");
    return true;
}

static bool check_leaf(struct verifier *v, const struct expr_node *node)
{
    switch (node->op) {
    case EXPR_CONSTANT:
        return true;
    case EXPR_DIM:
        return kernel_dim_position(v->kernel, (dim)node->value) != UINT32_MAX ||
               wrong(v, "a dim that is neither a parameter nor computed");
    case EXPR_COMPUTED:
        return (node->value >= 0 && node->value < v->kernel->computed.count) ||
               wrong(v, "a computed dim that does not exist");
    case EXPR_WORD:
        return (node->value >= 0 && node->value < v->kernel->words.count) || wrong(v, "a word that does not exist");
    case EXPR_VARIABLE: {
        if (node->value <= 0 || node->value >= v->kernel->variables.count || !v->in_scope[node->value])
            return wrong(v, "a variable out of its scope");
        const struct kernel_variable *variable = &v->kernel->variables.items[node->value];
        return (variable->dtype == node->dtype && variable->lanes == node->lanes) ||
               wrong(v, "a variable of another type");
    }
    case EXPR_ELEMENT:
        if (node->value >= 0 && node->value < v->kernel->global_count &&
            !v->kernel->memories.items[node->value].read)
            return wrong(v, "a load from a buffer that is not said to be read");
        return check_access(v, node->value, node->arguments[0], node->dtype, node->lanes);
    case EXPR_ELEMENT_OR: {
        const struct expr_node *condition = at(v, node->arguments[0]), *otherwise = at(v, node->arguments[2]);
        if (condition->dtype != DTYPE_BOOL || (condition->lanes != 1 && condition->lanes != node->lanes) ||
            otherwise->dtype != node->dtype || otherwise->lanes != node->lanes)
            return wrong(v, "a guarded load whose condition or other value does not fit");
        return check_access(v, node->value, node->arguments[1], node->dtype, node->lanes);
    }
    case EXPR_THREAD_INDEX:
    case EXPR_BLOCK_INDEX:
        return (v->cuda && node->value >= 0 && node->value < 3) || wrong(v, "a thread index on a CPU");
    case EXPR_SHUFFLE_XOR:
        return v->cuda || wrong(v, "a shuffle on a CPU");
    case EXPR_LANE:
        return (node->value >= 0 && node->value < at(v, node->arguments[0])->lanes && node->lanes == 1) ||
               wrong(v, "a lane that does not exist");
    case EXPR_PACK:
        return (node->count == node->lanes) || wrong(v, "a pack of another length");
    case EXPR_BROADCAST:
        return (at(v, node->arguments[0])->lanes == 1 && !v->cuda) ||
               wrong(v, "a broadcast of a vector, or on CUDA");
    default:
        return wrong(v, "an expression that Kernel IR does not have");
    }
}

static bool check_operation(struct verifier *v, const struct expr_node *node)
{
    if (v->cuda && node->lanes > 1)
        return wrong(v, "vector arithmetic on CUDA");
    if (expr_class_of(node->op) == EXPR_FUNCTION && !v->kernel->calls_functions)
        return wrong(v, "a function that was not expanded");
    for (uint32_t i = 0; i < node->count; i++) {
        const struct expr_node *argument = at(v, node->arguments[i]);
        const bool condition = node->op == EXPR_SELECT && i == 0;
        if (argument->lanes != node->lanes && !(condition && argument->lanes == 1))
            return wrong(v, "operands of different vector lengths");
    }
    return true;
}

static bool check_node(struct verifier *v, const struct expr_node *node)
{
    if (node->lanes < 1 || node->lanes > MAX_LANES)
        return wrong(v, "a vector of a length that is not supported");
    switch (expr_class_of(node->op)) {
    case EXPR_LEAF:
    case EXPR_KERNEL:
        return check_leaf(v, node);
    default:
        return check_operation(v, node);
    }
}

static bool check_expr(struct verifier *v, expr root)
{
    const struct exprs *pool = v->kernel->pool;
    VEC(expr) stack = {0};
    vec_push(v->why->arena, &stack, root);
    while (stack.count) {
        const expr e = stack.items[--stack.count];
        if (!e || e >= pool->nodes.count)
            return wrong(v, "an expression that does not exist");
        if (v->seen[e] == v->statement)
            continue;
        v->seen[e] = v->statement;
        const struct expr_node *node = expr_at(pool, e);
        if (!check_node(v, node))
            return false;
        for (uint32_t i = 0; i < node->count; i++)
            vec_push(v->why->arena, &stack, node->arguments[i]);
    }
    return true;
}

static bool check_list(struct verifier *v, const struct statement_list *list, unsigned depth);

static bool check_parallel(struct verifier *v, const struct statement *s, unsigned depth)
{
    int64_t begin, step;
    if (v->cuda || depth || v->seen_parallel)
        return wrong(v, "a parallel loop on CUDA, inside another statement, or a second one");
    v->seen_parallel = true;
    if (!expr_constant_int(v->kernel->pool, s->begin, &begin) || begin != 0 ||
        !expr_constant_int(v->kernel->pool, s->step, &step) || step != 1)
        return wrong(v, "a parallel loop that does not count from 0 by 1");
    return true;
}

static bool check_for(struct verifier *v, const struct statement *s, unsigned depth)
{
    const struct exprs *pool = v->kernel->pool;
    if (!check_expr(v, s->begin) || !check_expr(v, s->end) || !check_expr(v, s->step))
        return false;
    if (!index_is_scalar(v, s->begin) || !index_is_scalar(v, s->end) || !index_is_scalar(v, s->step))
        return wrong(v, "a loop that does not count in i64");
    if (s->loop == LOOP_PARALLEL && !check_parallel(v, s, depth))
        return false;
    if (s->loop == LOOP_VECTORISE && v->cuda)
        return wrong(v, "a vectorised loop on CUDA");
    if (s->loop == LOOP_UNROLL) {
        int64_t begin, end, step;
        if (!expr_constant_int(pool, s->begin, &begin) || !expr_constant_int(pool, s->end, &end) ||
            !expr_constant_int(pool, s->step, &step) || step < 1 || end - begin > MAX_UNROLLED * step)
            return wrong(v, "an unrolled loop without constant bounds, or too long");
    }
    v->in_scope[s->variable] = true;
    v->unrolled[s->variable] = s->loop == LOOP_UNROLL;
    v->vector_loops += s->loop == LOOP_VECTORISE;
    const bool fine = check_list(v, &s->body, depth + 1);
    v->vector_loops -= s->loop == LOOP_VECTORISE;
    v->in_scope[s->variable] = false;
    return fine;
}

static bool check_assignment(struct verifier *v, const struct statement *s)
{
    if (!check_expr(v, s->value))
        return false;
    if (s->variable == 0 || s->variable >= v->kernel->variables.count)
        return wrong(v, "a variable that does not exist");
    const struct kernel_variable *variable = &v->kernel->variables.items[s->variable];
    const struct expr_node *value = at(v, s->value);
    if (variable->dtype != value->dtype || variable->lanes != value->lanes)
        return wrong(v, "a value whose type is not its variable's");
    if (s->kind == STATEMENT_ASSIGN) {
        if (!variable->mutable || !v->in_scope[s->variable])
            return wrong(v, "an assignment to a variable that is not mutable or not in scope");
        return v->vector_loop[s->variable] == v->vector_loops ||
               wrong(v, "an iteration of a vectorised loop that hangs on another one");
    }
    if (v->in_scope[s->variable])
        return wrong(v, "a second declaration");
    v->in_scope[s->variable] = true;
    v->vector_loop[s->variable] = v->vector_loops;
    return true;
}

/* From global to shared memory as it stands, in units that the hardware copies. */
static bool check_asynchronous(struct verifier *v, const struct statement *s)
{
    const struct expr_node *value = at(v, s->value);
    const unsigned bytes = dtype_bits(value->dtype) / 8 * value->lanes;
    const bool loads =
        (value->op == EXPR_ELEMENT || value->op == EXPR_ELEMENT_OR) && value->value < v->kernel->global_count;
    if (!v->machine->asynchronous_copies)
        return wrong(v, "an asynchronous copy on a machine without them");
    if (!loads || v->kernel->memories.items[s->memory].space != MEMORY_SHARED || (bytes != 4 && bytes != 16))
        return wrong(
            v, "an asynchronous store of something else than 4 or 16 bytes from global to shared memory");
    if (value->op == EXPR_ELEMENT)
        return true;
    const struct expr_node *otherwise = at(v, value->arguments[2]);
    const struct expr_node *zero = otherwise->op == EXPR_PACK ? at(v, otherwise->arguments[0]) : otherwise;
    return (zero->op == EXPR_CONSTANT && zero->value == 0) ||
           wrong(v, "an asynchronous store that fills with something else than zeros");
}

static bool check_store(struct verifier *v, const struct statement *s)
{
    if (!check_expr(v, s->index) || !check_expr(v, s->value))
        return false;
    const struct expr_node *value = at(v, s->value);
    return check_access(v, s->memory, s->index, value->dtype, value->lanes) &&
           (!s->asynchronous || check_asynchronous(v, s));
}

/* One operand against the letter of the stage's table. */
static bool check_operand(struct verifier *v, char letter, const struct stage_operand *operand)
{
    static const struct {
        char letter;
        enum memory_space space;
        bool indexed;
    } memories[] = {{'g', MEMORY_GLOBAL, true},     {'s', MEMORY_SHARED, true},
                    {'r', MEMORY_REGISTER, false},  {'R', MEMORY_REGISTER, false},
                    {'m', MEMORY_MBARRIER, false},  {'b', MEMORY_BARRIER, false},
                    {'t', MEMORY_TENSOR_MAP, false}};
    if (letter == 'v') {
        const bool known = operand->variable > 0 && operand->variable < v->kernel->variables.count;
        const struct kernel_variable *variable = &v->kernel->variables.items[known ? operand->variable : 0];
        return (known && v->in_scope[operand->variable] && variable->mutable &&
                variable->dtype == DTYPE_U32 && variable->lanes == 1) ||
               wrong(v, "a stage's variable that is not a mutable u32 in scope");
    }
    if (operand->value && !check_expr(v, operand->value))
        return false;
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) {
        if (memories[i].letter != letter)
            continue;
        if (operand->memory >= v->kernel->memories.count ||
            v->kernel->memories.items[operand->memory].space != memories[i].space)
            return wrong(v, "a stage's operand that is another kind of memory");
        return !operand->value || (memories[i].indexed && index_is_scalar(v, operand->value)) ||
               wrong(v, "an index of a stage's operand that is none");
    }
    if (!operand->value)
        return wrong(v, "a stage's operand without a value");
    const struct expr_node *value = at(v, operand->value);
    return value->lanes == 1 && value->dtype == (letter == 'u' ? DTYPE_BOOL : DTYPE_I64)
               ? true
               : wrong(v, "a stage's operand of another type");
}

static bool check_stage(struct verifier *v, const struct statement *s)
{
    if (s->stage < 0 || s->stage >= STAGE_COUNT)
        return wrong(v, "a stage that does not exist");
    const struct stage *stage = stage_row(s->stage);
    if (!v->cuda || v->machine->compute_capability < stage->capability ||
        (stage->architecture_specific &&
         (!v->machine->architecture_specific || v->machine->compute_capability != stage->capability)))
        return wrong(v, "a stage that the machine does not have");
    for (size_t i = 0; stage->operands[i]; i++)
        if (!check_operand(v, stage->operands[i], &s->operands[i]))
            return false;
    return true;
}

static bool check_tensor_map(struct verifier *v, const struct kernel_tensor_map *map)
{
    const struct kernel *kernel = v->kernel;
    if (map->memory >= kernel->memories.count ||
        kernel->memories.items[map->memory].space != MEMORY_TENSOR_MAP ||
        map->buffer >= kernel->global_count || map->rank < 2 || map->rank > MAX_TENSOR_MAP_RANK)
        return wrong(v, "a tensor map of no buffer, or of a rank that the copy engine does not have");
    for (uint32_t i = 0; i < map->rank; i++)
        if (!map->sizes[i] || !map->strides[i] || map->box[i] < 1 || map->box[i] > 256)
            return wrong(v, "a tensor map without a size, or with a box that is too large");
    const uint32_t line = map->box[0] * dtype_bits(kernel->memories.items[map->buffer].dtype) / 8;
    if (line % 16 || (map->swizzle && (map->swizzle % 32 || map->swizzle > 128 || line > map->swizzle)))
        return wrong(v, "a tensor map whose box does not fit its swizzle");
    return true;
}

static bool check_statement(struct verifier *v, const struct statement *s, unsigned depth)
{
    v->statement++;
    switch (s->kind) {
    case STATEMENT_DECLARE:
    case STATEMENT_ASSIGN:
        return check_assignment(v, s);
    case STATEMENT_FOR:
        return check_for(v, s, depth);
    case STATEMENT_IF:
        if (!check_expr(v, s->value))
            return false;
        if (at(v, s->value)->dtype != DTYPE_BOOL || at(v, s->value)->lanes != 1)
            return wrong(v, "a condition that is no bool");
        return check_list(v, &s->body, depth + 1) && check_list(v, &s->otherwise, depth + 1);
    case STATEMENT_STORE:
        return check_store(v, s);
    case STATEMENT_BARRIER:
        return v->cuda || wrong(v, "a barrier on a CPU");
    case STATEMENT_COMMIT:
    case STATEMENT_WAIT:
        return v->machine->asynchronous_copies || wrong(v, "asynchronous copies on a machine without them");
    case STATEMENT_SET_CONDITION:
        if (!check_expr(v, s->value))
            return false;
        if (!v->cuda || s->memory >= v->kernel->global_count || at(v, s->value)->dtype != DTYPE_BOOL ||
            at(v, s->value)->lanes != 1)
            return wrong(v, "a condition set on a CPU, without a handle, or to what is no bool");
        return true;
    case STATEMENT_STAGE:
        return check_stage(v, s);
    case STATEMENT_COMMENT:
        return !strpbrk(s->text, "\n\r\\*") || wrong(v, "a comment of more than one line");
    }
    return wrong(v, "an unknown statement");
}

static bool check_list(struct verifier *v, const struct statement_list *list, unsigned depth)
{
    if (depth > MAX_STATEMENT_DEPTH)
        return wrong(v, "statements nested too deeply");
    bool fine = true;
    for (const struct statement *s = list->first; s && fine; s = s->next)
        fine = check_statement(v, s, depth);
    for (const struct statement *s = list->first; s; s = s->next)
        if (s->kind == STATEMENT_DECLARE)
            v->in_scope[s->variable] = false;
    return fine;
}

static bool check_memories(struct verifier *v)
{
    enum { MAX_BARRIERS = 15, MAX_THREADS = 1024 };
    const struct kernel *kernel = v->kernel;
    uint32_t barriers = 0, maps = 0;
    if (kernel->memories.count > MAX_KERNEL_MEMORIES || kernel->dims.count > MAX_KERNEL_DIMS)
        return wrong(v, "too many memories or dims");
    for (uint32_t i = 0; i < kernel->memories.count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        const bool global = memory->space == MEMORY_GLOBAL;
        if (global != (i < kernel->global_count))
            return wrong(v, "buffers that do not stand first");
        if (((memory->space == MEMORY_SHARED || memory->space >= MEMORY_TENSOR_MAP) && !v->cuda) ||
            (memory->space == MEMORY_SCRATCH && v->cuda))
            return wrong(v, "memory that the target does not have");
        if (!global && memory->count < 1)
            return wrong(v, "memory without elements");
        if (memory->lanes != 1 && memory->space != MEMORY_REGISTER)
            return wrong(v, "memory of vectors that is not in registers");
        if (dtype_bits(memory->dtype) < 8)
            return wrong(v, "memory of packed elements");
        barriers += memory->space == MEMORY_BARRIER;
        if (memory->space == MEMORY_BARRIER && (memory->count % 32 || memory->count > MAX_THREADS))
            return wrong(v, "a barrier of a part of a warp, or of more threads than a block has");
        maps += memory->space == MEMORY_TENSOR_MAP;
    }
    if (barriers > MAX_BARRIERS || maps > MAX_TENSOR_MAPS || maps != kernel->tensor_maps.count)
        return wrong(v, "too many barriers or tensor maps, or a map without its description");
    for (uint32_t i = 0; i < maps; i++)
        if (!check_tensor_map(v, &kernel->tensor_maps.items[i]))
            return false;
    return true;
}

/* Words, parameters, and dims that are computed before. */
static bool check_computed(struct verifier *v)
{
    bool fine = true;
    for (uint32_t i = 0; i < v->kernel->computed.count && fine; i++) {
        v->statement++;
        fine = check_expr(v, v->kernel->computed.items[i].value) &&
               (index_is_scalar(v, v->kernel->computed.items[i].value) || wrong(v, "a computed dim that is no i64"));
    }
    return fine;
}

bool kernel_verify(const struct kernel *kernel, const struct machine *machine, struct text *why)
{
    struct verifier verifier = {
        .kernel = kernel,
        .machine = machine,
        .cuda = machine->kind == TARGET_CUDA,
        .why = why,
        .in_scope = arena_new_array(why->arena, bool, kernel->variables.count),
        .vector_loop = arena_new_array(why->arena, uint32_t, kernel->variables.count),
        .unrolled = arena_new_array(why->arena, bool, kernel->variables.count),
        .seen = arena_new_array(why->arena, uint32_t, kernel->pool->nodes.count),
    };
    return check_memories(&verifier) && check_computed(&verifier) && check_list(&verifier, &kernel->body, 0);
}

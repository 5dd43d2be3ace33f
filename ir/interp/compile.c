/* Expressions become a linear program: what the roots reach, each node once, in ascending order (the pool's
 * evaluation order), in registers that are handed on after their last use. Indices of loads that are affine
 * in the axes do not become instructions: the load computes them by run. */
#include "ir/interp/program.h"

#include "ir/support/checked.h"

#include <string.h>

void space_init(struct space *space, uint32_t axis_count, const int64_t *extents, uint32_t first,
                uint32_t last)
{
    space->axis_count = axis_count;
    space->first = first;
    space->last = last;
    space->run_axis = axis_count;
    for (uint32_t i = 0; i < axis_count; i++) {
        space->extents[i] = extents[i];
        if (i >= first && i < last && extents[i] > 1)
            space->run_axis = i;
    }
}

/* ---- accesses
 * ---------------------------------------------------------------------------------------------------- */

/* Adds coefficient * [0, extent - 1] to the bounds; false when they leave i64. */
static bool widen_bounds(int64_t coefficient, int64_t extent, int64_t *low, int64_t *high)
{
    int64_t reach;
    return mul_i64(coefficient, extent > 0 ? extent - 1 : 0, &reach) &&
           add_i64(coefficient > 0 ? *high : *low, reach, coefficient > 0 ? high : low);
}

/* Is the flat index of a safe access linear over the varying axes? flat[axis]: its coefficient there. */
static void find_linear(const struct space *space, const uint64_t *flat, struct access *access)
{
    if (space->run_axis == space->axis_count) {
        access->linear = true;
        return;
    }
    uint64_t expected = flat[space->run_axis];
    access->linear_step = (int64_t)expected;
    for (uint32_t axis = space->run_axis;; axis--) {
        if (space->extents[axis] != 1) {
            if (flat[axis] != expected)
                return;
            expected *= (uint64_t)space->extents[axis];
        }
        if (axis == space->first)
            break;
    }
    access->linear = true;
}

const struct access *access_new(struct exprs *pool, const struct space *space, const struct place *places,
                                uint32_t place, uint32_t rank, const expr *indices)
{
    const struct place *target = &places[place];
    struct access access = {.place = place, .safe = true};
    VEC(struct access_term) terms = {0};
    uint64_t flat[MAX_AXES] = {0};
    for (uint32_t d = 0; d < rank; d++) {
        struct affine affine;
        if (!expr_affine(pool, indices[d], space->axis_count, &affine) ||
            !expr_constant_int(pool, affine.offset, &access.offsets[d]))
            return NULL;
        int64_t low = access.offsets[d], high = low;
        for (uint32_t axis = 0; axis < space->axis_count; axis++) {
            struct access_term term = {.dim = d, .axis = axis};
            if (!expr_constant_int(pool, affine.coefficients[axis], &term.coefficient) ||
                !widen_bounds(term.coefficient, space->extents[axis], &low, &high))
                return NULL;
            if (!term.coefficient)
                continue;
            vec_push(pool->arena, &terms, term);
            flat[axis] += (uint64_t)term.coefficient * (uint64_t)target->strides[d];
            if (axis == space->run_axis)
                access.steps[d] = term.coefficient;
        }
        access.safe = access.safe && low >= 0 && high < target->sizes[d];
    }
    access.terms = terms.items;
    access.term_count = terms.count;
    if (space->run_axis < space->axis_count)
        access.step = (int64_t)flat[space->run_axis];
    if (access.safe)
        find_linear(space, flat, &access);
    return arena_copy(pool->arena, &access, sizeof access);
}

/* ---- programs
 * ---------------------------------------------------------------------------------------------------- */

struct compiler {
    struct exprs *pool;
    const struct place *places;
    struct program *out;
    uint32_t count;                 /* nodes that the roots can reach: those below */
    uint32_t *last_use;             /* [count]: 0: not needed; UINT32_MAX: kept */
    uint32_t *registers;            /* [count] */
    const struct access **accesses; /* [count] */
    VEC(uint32_t) free_registers;
};

/* A node's arguments that become registers. */
static const expr *used_arguments(const struct compiler *c, const struct expr_node *node, expr e,
                                  uint32_t *count)
{
    if (!c->accesses[e]) {
        *count = node->count;
        return node->arguments;
    }
    *count = node->op == EXPR_LOAD_OR;
    return *count ? node->arguments + node->count - *count : NULL;
}

/* From the roots down: which nodes are needed, and until when. */
static void find_uses(struct compiler *c, uint32_t root_count, const expr *roots)
{
    for (uint32_t i = 0; i < root_count; i++)
        c->last_use[roots[i]] = UINT32_MAX;
    for (expr e = c->count; e-- > 1;) {
        if (!c->last_use[e])
            continue;
        const struct expr_node node = *expr_at(c->pool, e); /* access_new may move the pool */
        if (node.op == EXPR_CONSTANT || node.op == EXPR_REDUCED)
            c->last_use[e] = UINT32_MAX;
        if (node.op == EXPR_LOAD || node.op == EXPR_LOAD_OR)
            c->accesses[e] = access_new(c->pool, &c->out->space, c->places, (uint32_t)node.value,
                                        (uint32_t)node.count - (node.op == EXPR_LOAD_OR), node.arguments);
        uint32_t count;
        const expr *arguments = used_arguments(c, &node, e, &count);
        for (uint32_t i = 0; i < count; i++)
            if (c->last_use[arguments[i]] < e)
                c->last_use[arguments[i]] = e;
    }
}

static uint32_t take_register(struct compiler *c)
{
    if (c->free_registers.count)
        return c->free_registers.items[--c->free_registers.count];
    return c->out->register_count++;
}

static void add_preset(struct compiler *c, const struct expr_node *node, uint32_t result)
{
    const struct preset preset = {.result = result, .dtype = node->dtype, .value = node->value};
    if (node->op == EXPR_CONSTANT)
        c->out->constants[c->out->constant_count++] = preset;
    else
        c->out->reduced[c->out->reduced_count++] = preset;
}

static void add_instruction(struct compiler *c, const struct expr_node *node, expr e)
{
    struct instruction i = {
        .op = node->op, .dtype = node->dtype, .value = node->value, .access = c->accesses[e]};
    const expr *used = used_arguments(c, node, e, &i.argument_count);
    uint32_t *arguments = arena_new_array(c->pool->arena, uint32_t, i.argument_count);
    for (uint32_t k = 0; k < i.argument_count; k++)
        arguments[k] = c->registers[used[k]];
    if (node->count)
        i.from = expr_at(c->pool, node->arguments[node->op == EXPR_SELECT])->dtype;
    i.arguments = arguments;
    /* The result takes a register before the arguments give theirs back: no operation writes what it reads.
     */
    i.result = c->registers[e] = take_register(c);
    for (uint32_t k = 0; k < i.argument_count; k++) {
        if (c->last_use[used[k]] != e)
            continue;
        c->last_use[used[k]] = UINT32_MAX; /* an argument that stands twice gives its register back once */
        vec_push(c->pool->arena, &c->free_registers, arguments[k]);
    }
    c->out->needs_runs |= i.access ? !i.access->linear : i.op == EXPR_AXIS;
    c->out->instructions[c->out->instruction_count++] = i;
}

void program_compile(struct exprs *pool, const struct place *places, const struct space *space,
                     uint32_t root_count, const expr *roots, uint32_t *results, struct program *out)
{
    memset(out, 0, sizeof *out);
    out->space = *space;
    struct compiler c = {.pool = pool, .places = places, .out = out, .count = 1};
    for (uint32_t i = 0; i < root_count; i++)
        if (roots[i] >= c.count)
            c.count = roots[i] + 1;
    c.last_use = arena_new_array(pool->arena, uint32_t, c.count);
    c.registers = arena_new_array(pool->arena, uint32_t, c.count);
    c.accesses = arena_array(pool->arena, c.count, sizeof *c.accesses);
    find_uses(&c, root_count, roots);
    uint32_t needed = 0;
    for (expr e = 1; e < c.count; e++)
        needed += c.last_use[e] != 0;
    out->instructions = arena_new_array(pool->arena, struct instruction, needed);
    out->constants = arena_new_array(pool->arena, struct preset, needed);
    out->reduced = arena_new_array(pool->arena, struct preset, needed);
    for (int presets = 1; presets >= 0; presets--)
        for (expr e = 1; e < c.count; e++) {
            const struct expr_node *node = expr_at(pool, e);
            const bool is_preset = node->op == EXPR_CONSTANT || node->op == EXPR_REDUCED;
            if (!c.last_use[e] || is_preset != (presets == 1))
                continue;
            if (is_preset)
                add_preset(&c, node, c.registers[e] = take_register(&c));
            else
                add_instruction(&c, node, e);
        }
    for (uint32_t i = 0; i < root_count; i++)
        results[i] = c.registers[roots[i]];
}

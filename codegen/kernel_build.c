/* Builders of Kernel IR statements: each appends one statement to the block's list. They check nothing but
 * what assert can see; kernel_verify states the rules. */
#include "codegen/kernel_ir.h"

#include <assert.h>
#include <string.h>

static struct statement *append(struct block *block, enum statement_kind kind)
{
    struct statement *statement = arena_new(block->kernel->pool->arena, struct statement);
    statement->kind = kind;
    if (block->at->last)
        block->at->last->next = statement;
    else
        block->at->first = statement;
    block->at->last = statement;
    return statement;
}

static uint32_t declare(struct block *block, const char *label, expr value, bool mutable)
{
    const struct expr_node *node = expr_at(block->kernel->pool, value);
    kernel_note(block->kernel, value);
    const uint32_t variable = kernel_variable_add(block->kernel, node->dtype, node->lanes, mutable, label);
    struct statement *statement = append(block, STATEMENT_DECLARE);
    statement->variable = variable;
    statement->value = value;
    return variable;
}

expr build_declare(struct block *block, const char *label, expr value)
{
    struct kernel *kernel = block->kernel;
    const enum expr_op op = expr_at(kernel->pool, value)->op;
    /* A name for a name says nothing. A mutable variable is copied: it may change. */
    const bool plain =
        op == EXPR_VARIABLE && !kernel->variables.items[expr_at(kernel->pool, value)->value].mutable;
    if (plain || op == EXPR_CONSTANT || op == EXPR_DIM)
        return value;
    const uint32_t variable = declare(block, label, value, false);
    int64_t low, high;
    if (expr_at(kernel->pool, value)->dtype == DTYPE_I64 && expr_at(kernel->pool, value)->lanes == 1 &&
        expr_index_range(kernel->pool, value, &low, &high) && low >= 0 && high < INT64_MAX)
        kernel->variables.items[variable].extent = dim_constant(kernel->pool->dims, high + 1);
    return kernel_variable(kernel, variable);
}

uint32_t build_mutable(struct block *block, const char *label, expr value)
{
    return declare(block, label, value, true);
}

void build_assign(struct block *block, uint32_t variable, expr value)
{
    assert(block->kernel->variables.items[variable].mutable);
    kernel_note(block->kernel, value);
    struct statement *statement = append(block, STATEMENT_ASSIGN);
    statement->variable = variable;
    statement->value = value;
}

/* The extent of 0 .. end - 1. */
static dim loop_extent(const struct kernel *kernel, expr begin, expr end)
{
    int64_t first, last;
    const struct expr_node *node = expr_at(kernel->pool, end);
    if (!expr_constant_int(kernel->pool, begin, &first) || first < 0)
        return DIM_NONE;
    if (node->op == EXPR_DIM)
        return (dim)node->value;
    if (expr_index_range(kernel->pool, end, &first, &last) && last < INT64_MAX)
        return dim_constant(kernel->pool->dims, last < 0 ? 0 : last);
    return DIM_NONE;
}

struct statement *build_for(struct block *block, const char *label, expr begin, expr end, expr step,
                            enum loop_kind loop, struct block *body, expr *variable)
{
    struct kernel *kernel = block->kernel;
    if (!step)
        step = expr_index(kernel->pool, 1);
    kernel_note(kernel, begin);
    kernel_note(kernel, end);
    kernel_note(kernel, step);
    const uint32_t number = kernel_variable_add(kernel, DTYPE_I64, 1, false, label);
    kernel->variables.items[number].extent = loop_extent(kernel, begin, end);
    struct statement *statement = append(block, STATEMENT_FOR);
    statement->variable = number;
    statement->begin = begin;
    statement->end = end;
    statement->step = step;
    statement->loop = loop;
    if (loop == LOOP_PARALLEL) {
        const struct expr_node *last = expr_at(kernel->pool, end);
        kernel->work =
            last->op == EXPR_DIM ? (dim)last->value : dim_constant(kernel->pool->dims, last->value);
    }
    *body = (struct block){.kernel = kernel, .at = &statement->body};
    *variable = kernel_variable(kernel, number);
    return statement;
}

void build_if(struct block *block, expr condition, struct block *then, struct block *otherwise)
{
    kernel_note(block->kernel, condition);
    struct statement *statement = append(block, STATEMENT_IF);
    statement->value = condition;
    *then = (struct block){.kernel = block->kernel, .at = &statement->body};
    if (otherwise)
        *otherwise = (struct block){.kernel = block->kernel, .at = &statement->otherwise};
}

void build_store(struct block *block, uint32_t memory, expr index, expr value)
{
    kernel_note(block->kernel, index);
    kernel_note(block->kernel, value);
    struct statement *statement = append(block, STATEMENT_STORE);
    statement->memory = memory;
    statement->index = index;
    statement->value = value;
    block->kernel->memories.items[memory].written = true;
}

void build_store_async(struct block *block, uint32_t memory, expr index, expr value)
{
    build_store(block, memory, index, value);
    block->at->last->asynchronous = true;
}

void build_commit(struct block *block)
{
    append(block, STATEMENT_COMMIT);
}

void build_wait(struct block *block, uint32_t batches)
{
    append(block, STATEMENT_WAIT)->batches = batches;
}

void build_barrier(struct block *block)
{
    append(block, STATEMENT_BARRIER);
}

void build_set_condition(struct block *block, uint32_t handle, expr value)
{
    kernel_note(block->kernel, value);
    struct statement *statement = append(block, STATEMENT_SET_CONDITION);
    statement->memory = handle;
    statement->value = value;
}

void build_stage(struct block *block, enum stage_number number, const int64_t *constants,
                 const struct stage_operand *operands)
{
    struct kernel *kernel = block->kernel;
    struct arena *arena = kernel->pool->arena;
    const struct stage *stage = stage_row(number);
    const size_t count = strlen(stage->operands);
    for (size_t i = 0; i < count; i++) {
        if (operands[i].value)
            kernel_note(kernel, operands[i].value);
        if (stage->operands[i] == 'g')
            kernel->memories.items[operands[i].memory].read = true;
    }
    struct statement *statement = append(block, STATEMENT_STAGE);
    statement->stage = number;
    if (stage->constants)
        statement->constants = arena_copy(arena, constants, stage->constants * sizeof *constants);
    if (count)
        statement->operands = arena_copy(arena, operands, count * sizeof *operands);
}

void build_comment(struct block *block, const char *text)
{
    append(block, STATEMENT_COMMENT)->text = text;
}

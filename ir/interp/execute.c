/* Runs a program over one block of points: finds the block's runs, then every instruction in order. */
#include "ir/interp/program.h"

#include <string.h>

void program_prepare(struct executor *x, const struct program *program)
{
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const struct preset *constant = &program->constants[i];
        for (uint32_t k = 0; k < BLOCK_POINTS; k++)
            write_element(constant->dtype, register_at(x, constant->result), k, (uint64_t)constant->value);
    }
}

/* The block's runs and the axes at the start of each. The first run's axes are always found. */
static void find_runs(struct executor *x, const struct program *program, const int64_t *fixed, int64_t start,
                      uint32_t count)
{
    const struct space *space = &program->space;
    int64_t at[MAX_AXES];
    memcpy(at, fixed, space->axis_count * sizeof *at);
    for (uint32_t i = space->last; i-- > space->first;) {
        at[i] = start % space->extents[i];
        start /= space->extents[i];
    }
    x->run_count = 0;
    const uint32_t run_axis = space->run_axis;
    for (uint32_t done = 0; done < count;) {
        const bool single = run_axis == space->axis_count || !program->needs_runs;
        const int64_t rest = single ? count : space->extents[run_axis] - at[run_axis];
        const uint32_t length = rest < (int64_t)(count - done) ? (uint32_t)rest : count - done;
        memcpy(x->run_axes + (size_t)x->run_count * space->axis_count, at, space->axis_count * sizeof *at);
        x->run_starts[x->run_count] = done;
        x->run_lengths[x->run_count++] = length;
        done += length;
        if (single)
            return;
        at[run_axis] += length;
        for (uint32_t i = run_axis; i > space->first && at[i] == space->extents[i]; i--) {
            at[i] = 0;
            at[i - 1]++;
        }
    }
}

static void fill_axis(struct executor *x, const struct space *space, uint32_t axis, int64_t *result)
{
    for (uint32_t run = 0; run < x->run_count; run++) {
        int64_t value = x->run_axes[(size_t)run * space->axis_count + axis];
        const int64_t step = axis == space->run_axis;
        int64_t *to = result + x->run_starts[run];
        for (uint32_t k = 0; k < x->run_lengths[run]; k++)
            to[k] = value + (int64_t)k * step;
    }
}

bool program_run(struct executor *x, const struct program *program, const int64_t *fixed, int64_t start,
                 uint32_t count)
{
    x->steps += (uint64_t)count * (program->instruction_count + 1);
    if (x->step_limit && x->steps > x->step_limit) {
        x->status = INTERP_STEPS;
        return false;
    }
    find_runs(x, program, fixed, start, count);
    for (uint32_t n = 0; n < program->instruction_count; n++) {
        const struct instruction *i = &program->instructions[n];
        if (i->op == EXPR_AXIS) {
            fill_axis(x, &program->space, (uint32_t)i->value, register_at(x, i->result));
        } else if (i->op == EXPR_LOAD || i->op == EXPR_LOAD_OR) {
            if (!load_block(x, program, i, count))
                return false;
        } else {
            const void *arguments[3] = {NULL, NULL, NULL};
            for (uint32_t a = 0; a < i->argument_count && a < 3; a++)
                arguments[a] = register_at(x, i->arguments[a]);
            operate_block(i, count, register_at(x, i->result), arguments);
        }
    }
    return true;
}

/* Scans, scatters and sorts. A scan goes along its axis, either point by point over blocks of rows, or block
 * by block along each row; a scatter always point by point, and has nothing to add up. A filter asks each
 * candidate about those before it. A sort evaluates a row's keys, sorts their places by merging, and runs the
 * stores over the places. */
#include "ir/interp/nest.h"

#include <string.h>

/* Reduced values of the stores' program, for `count` points: accumulators[r], or its running values. */
static void set_reduced(struct nest_plan *plan, union accumulator *const *values, uint32_t count)
{
    struct executor *x = &plan->run->executor;
    x->registers = plan->store_registers;
    for (uint32_t i = 0; i < plan->store.reduced_count; i++) {
        const struct preset *reduced = &plan->store.reduced[i];
        accumulator_finish(reduced->dtype, values[reduced->value], register_at(x, reduced->result), count);
    }
}

/* ---- scans
 * ------------------------------------------------------------------------------------------------------- */

static bool scan_rows(struct nest_plan *plan, int64_t start, uint32_t count)
{
    struct executor *x = &plan->run->executor;
    const struct nest *nest = plan->nest;
    int64_t fixed[MAX_AXES] = {0};
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        accumulator_init(nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r], count);
    for (int64_t at = 0; at < plan->reduce_count; at++) {
        fixed[nest->rank] = at;
        x->registers = plan->body_registers;
        if (nest->reduction_count && !program_run(x, &plan->body, fixed, start, count))
            return false;
        for (uint32_t r = 0; r < nest->reduction_count; r++)
            accumulate(nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r], false,
                       register_at(x, plan->body_results[r]), count);
        set_reduced(plan, plan->accumulators, count);
        if (!nest_run_stores(plan, fixed, start, count))
            return false;
    }
    return true;
}

/* running[r][k]: the combination up to point k of the block. */
static bool scan_row(struct nest_plan *plan, int64_t row, union accumulator **running)
{
    struct executor *x = &plan->run->executor;
    const struct nest *nest = plan->nest;
    int64_t fixed[MAX_AXES] = {0};
    nest_unflatten(plan->extents, 0, nest->rank, row, fixed);
    for (uint32_t r = 0; r < nest->reduction_count; r++)
        accumulator_init(nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r], 1);
    for (int64_t at = 0; at < plan->reduce_count; at += BLOCK_POINTS) {
        const int64_t rest = plan->reduce_count - at;
        const uint32_t count = rest < BLOCK_POINTS ? (uint32_t)rest : BLOCK_POINTS;
        x->registers = plan->body_registers;
        if (!program_run(x, &plan->body, fixed, at, count))
            return false;
        for (uint32_t r = 0; r < nest->reduction_count; r++) {
            const unsigned char *values = register_at(x, plan->body_results[r]);
            const uint32_t width = dtype_bits(plan->body_dtypes[r]) / 8;
            for (uint32_t k = 0; k < count; k++) {
                accumulate(nest->reductions[r].op, plan->body_dtypes[r], plan->accumulators[r], true,
                           values + (size_t)k * width, 1);
                running[r][k] = plan->accumulators[r][0];
            }
        }
        set_reduced(plan, running, count);
        if (!nest_run_stores(plan, fixed, at, count))
            return false;
    }
    return true;
}

enum interp_status nest_run_scan(struct nest_plan *plan)
{
    struct interpretation *run = plan->run;
    const uint32_t count = plan->nest->reduction_count;
    if (plan->blocks_of_parallel) {
        for (int64_t start = 0; start < plan->parallel_count; start += BLOCK_POINTS) {
            const int64_t rest = plan->parallel_count - start;
            if (!scan_rows(plan, start, rest < BLOCK_POINTS ? (uint32_t)rest : BLOCK_POINTS))
                return run->executor.status;
        }
        return INTERP_DONE;
    }
    union accumulator **running = arena_array(&run->arena, count, sizeof *running);
    for (uint32_t r = 0; r < count; r++)
        running[r] = arena_new_array(&run->arena, union accumulator, BLOCK_POINTS);
    for (int64_t row = 0; row < plan->parallel_count; row++)
        if (!scan_row(plan, row, running))
            return run->executor.status;
    return INTERP_DONE;
}

/* ---- sorts
 * ------------------------------------------------------------------------------------------------------- */

struct keyed {
    uint64_t key;
    int64_t place;
};

/* Merges runs of doubling length between the two lists; the result is the list that is returned. Stable. */
static struct keyed *merge_sort(struct keyed *from, struct keyed *to, int64_t count)
{
    for (int64_t length = 1; length < count; length *= 2) {
        for (int64_t start = 0; start < count; start += 2 * length) {
            const int64_t middle = start + length < count ? start + length : count;
            const int64_t end = middle + length < count ? middle + length : count;
            int64_t left = start, right = middle;
            for (int64_t at = start; at < end; at++) {
                const bool takes_left = left < middle && (right >= end || from[left].key <= from[right].key);
                to[at] = from[takes_left ? left++ : right++];
            }
        }
        struct keyed *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

static bool find_keys(struct nest_plan *plan, const int64_t *fixed, struct keyed *keys, int64_t count)
{
    struct executor *x = &plan->run->executor;
    x->registers = plan->body_registers;
    for (int64_t at = 0; at < count; at += BLOCK_POINTS) {
        const uint32_t points = count - at < BLOCK_POINTS ? (uint32_t)(count - at) : BLOCK_POINTS;
        if (!program_run(x, &plan->body, fixed, at, points))
            return false;
        for (uint32_t k = 0; k < points; k++)
            keys[at + k] = (struct keyed){
                read_element(plan->body_dtypes[0], register_at(x, plan->body_results[0]), k), at + k};
    }
    return true;
}

static bool sort_row(struct nest_plan *plan, int64_t row, struct keyed *keys, struct keyed *other)
{
    struct executor *x = &plan->run->executor;
    const uint32_t rank = plan->nest->rank;
    const int64_t count = plan->extents[rank], places = plan->extents[rank + 1];
    int64_t fixed[MAX_AXES] = {0};
    nest_unflatten(plan->extents, 0, rank, row, fixed);
    if (!find_keys(plan, fixed, keys, count))
        return false;
    const struct keyed *sorted = merge_sort(keys, other, count);
    for (int64_t at = 0; at < places; at += BLOCK_POINTS) {
        const uint32_t points = places - at < BLOCK_POINTS ? (uint32_t)(places - at) : BLOCK_POINTS;
        x->registers = plan->store_registers;
        for (uint32_t i = 0; i < plan->store.reduced_count; i++) {
            int64_t *result = register_at(x, plan->store.reduced[i].result);
            for (uint32_t k = 0; k < points; k++)
                result[k] = sorted[at + k].place;
        }
        if (!nest_run_stores(plan, fixed, at, points))
            return false;
    }
    return true;
}

enum interp_status nest_run_sort(struct nest_plan *plan)
{
    struct interpretation *run = plan->run;
    const int64_t count = plan->extents[plan->nest->rank];
    if (plan->extents[plan->nest->rank + 1] > count)
        return INTERP_OUT_OF_RANGE;
    struct keyed *keys = arena_array(&run->arena, (size_t)count, sizeof *keys);
    struct keyed *other = arena_array(&run->arena, (size_t)count, sizeof *other);
    for (int64_t row = 0; row < plan->parallel_count; row++)
        if (!sort_row(plan, row, keys, other))
            return run->executor.status;
    return INTERP_DONE;
}

/* ---- filters
 * ----------------------------------------------------------------------------------------------------- */

static uint64_t body_value(struct nest_plan *plan, uint32_t body, uint32_t point)
{
    return read_element(plan->body_dtypes[body], register_at(&plan->run->executor, plan->body_results[body]),
                        point);
}

/* kept[i] of one row. */
static bool filter_row(struct nest_plan *plan, int64_t *fixed, uint32_t *kept)
{
    struct executor *x = &plan->run->executor;
    const uint32_t rank = plan->nest->rank;
    int64_t count = 0;
    for (int64_t i = 0; i < plan->extents[rank]; i++) {
        fixed[rank] = i;
        x->registers = plan->body_registers;
        if (!program_run(x, &plan->body, fixed, 0, 1))
            return false;
        kept[i] = body_value(plan, 0, 0) != 0 && count < (int64_t)body_value(plan, 2, 0);
        for (int64_t at = 0; kept[i] && at < i; at += BLOCK_POINTS) {
            const uint32_t points = i - at < BLOCK_POINTS ? (uint32_t)(i - at) : BLOCK_POINTS;
            if (!program_run(x, &plan->body, fixed, at, points))
                return false;
            for (uint32_t k = 0; k < points; k++)
                if (kept[at + k] && body_value(plan, 1, k) != 0)
                    kept[i] = 0;
        }
        count += kept[i];
    }
    return true;
}

enum interp_status nest_run_filter(struct nest_plan *plan)
{
    struct executor *x = &plan->run->executor;
    const uint32_t rank = plan->nest->rank;
    const int64_t length = plan->extents[rank];
    uint32_t *kept = arena_array(&plan->run->arena, (size_t)length + 1, sizeof *kept);
    for (int64_t row = 0; row < plan->parallel_count; row++) {
        int64_t fixed[MAX_AXES] = {0};
        nest_unflatten(plan->extents, 0, rank, row, fixed);
        if (!filter_row(plan, fixed, kept))
            return x->status;
        for (int64_t at = 0; at < length; at += BLOCK_POINTS) {
            const uint32_t points = length - at < BLOCK_POINTS ? (uint32_t)(length - at) : BLOCK_POINTS;
            x->registers = plan->store_registers;
            for (uint32_t i = 0; i < plan->store.reduced_count; i++)
                memcpy(register_at(x, plan->store.reduced[i].result), kept + at, points * sizeof *kept);
            if (!nest_run_stores(plan, fixed, at, points))
                return x->status;
        }
    }
    return INTERP_DONE;
}

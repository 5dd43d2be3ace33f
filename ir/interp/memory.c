/* Loads and stores of a block. Every element's position is checked against its buffer, by element, by run, or
 * once for the whole space (struct access, `safe`): no byte outside a buffer is touched. Buffers need not be
 * aligned. */
#include "ir/interp/program.h"

#include <string.h>

/* `count` elements of sizeof(type) bytes, at steps in elements. */
#define COPY_STRIDED(type)                                                                                   \
    for (uint32_t i = 0; i < count; i++)                                                                     \
        memcpy(to + (int64_t)i * to_step * (int64_t)sizeof(type),                                            \
               from + (int64_t)i * from_step * (int64_t)sizeof(type), sizeof(type));                         \
    break

static void copy_elements(uint32_t width, unsigned char *to, int64_t to_step, const unsigned char *from,
                          int64_t from_step, uint32_t count)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * width);
        return;
    }
    switch (width) {
    case 1:
        COPY_STRIDED(uint8_t);
    case 2:
        COPY_STRIDED(uint16_t);
    case 4:
        COPY_STRIDED(uint32_t);
    default:
        COPY_STRIDED(uint64_t);
    }
}

/* Elements `step` apart from the place to `values`, or from there to the place. */
static bool move_elements(struct executor *x, uint32_t number, uint64_t flat, int64_t step,
                          unsigned char *values, uint32_t count, bool store)
{
    const struct place *place = &x->places[number];
    if (place->storage)
        return pages_move(x, number, flat, step, values, count, store);
    unsigned char *at = place->bytes + flat * place->width;
    if (store)
        copy_elements(place->width, at, step, values, 1, count);
    else
        copy_elements(place->width, values, 1, at, step, count);
    return true;
}

static bool out_of_range(struct executor *x)
{
    x->status = INTERP_OUT_OF_RANGE;
    return false;
}

/* ---- by run
 * ------------------------------------------------------------------------------------------------------ */

/* Position of a run in its buffer: the index in each dim, and flat. */
static uint64_t run_start(const struct executor *x, const struct program *program,
                          const struct access *access, uint32_t run, int64_t *indices)
{
    const struct place *place = &x->places[access->place];
    const int64_t *axes = x->run_axes + (size_t)run * program->space.axis_count;
    for (uint32_t d = 0; d < place->rank; d++)
        indices[d] = access->offsets[d];
    for (uint32_t i = 0; i < access->term_count; i++) {
        const struct access_term *term = &access->terms[i];
        indices[term->dim] += term->coefficient * axes[term->axis];
    }
    uint64_t flat = 0;
    for (uint32_t d = 0; d < place->rank; d++)
        flat += (uint64_t)indices[d] * (uint64_t)place->strides[d];
    return flat;
}

/* Steps of `step` that it takes to go `distance`. */
static uint64_t steps_to(uint64_t distance, uint64_t step)
{
    return distance ? (distance - 1) / step + 1 : 0;
}

/* The points first .. last-1 of a run whose index + i * step lies in [0, size). */
static void clip_run(int64_t index, int64_t step, int64_t size, int64_t *first, int64_t *last)
{
    if (step == 0) {
        if (index < 0 || index >= size)
            *last = *first;
        return;
    }
    const uint64_t at = (uint64_t)index, all = (uint64_t)size;
    const uint64_t length = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t enter, leave; /* distances to the first position inside and to the first one behind */
    if (step > 0) {
        enter = index < 0 ? 0 - at : 0;
        leave = index < size ? all - at : 0;
    } else {
        enter = index >= size ? at - all + 1 : 0;
        leave = index >= 0 ? at + 1 : 0;
    }
    const uint64_t begin = steps_to(enter, length), end = steps_to(leave, length);
    if (begin > (uint64_t)*first)
        *first = begin < (uint64_t)*last ? (int64_t)begin : *last;
    if (end < (uint64_t)*last)
        *last = (int64_t)end;
    if (*last < *first)
        *last = *first;
}

/* The part of a run that lies in the buffer. */
static void find_inside(const struct place *place, const struct access *access, const int64_t *indices,
                        uint32_t length, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = length;
    for (uint32_t d = 0; d < place->rank && !access->safe; d++)
        clip_run(indices[d], access->steps[d], place->sizes[d], first, last);
}

static bool load_runs(struct executor *x, const struct program *program, const struct instruction *i,
                      uint32_t count)
{
    const struct access *access = i->access;
    const struct place *place = &x->places[access->place];
    unsigned char *result = register_at(x, i->result);
    const uint32_t width = place->width;
    int64_t indices[MAX_RANK];
    if (access->linear) {
        const uint64_t flat = run_start(x, program, access, 0, indices);
        return move_elements(x, access->place, flat, access->linear_step, result, count, false);
    }
    const unsigned char *otherwise = i->op == EXPR_LOAD_OR ? register_at(x, i->arguments[0]) : NULL;
    for (uint32_t run = 0; run < x->run_count; run++) {
        const uint32_t length = x->run_lengths[run];
        const uint64_t flat = run_start(x, program, access, run, indices);
        const size_t start = (size_t)x->run_starts[run] * width;
        int64_t first, last;
        find_inside(place, access, indices, length, &first, &last);
        if (last - first != (int64_t)length) {
            if (!otherwise)
                return out_of_range(x);
            memcpy(result + start, otherwise + start, (size_t)length * width);
        }
        if (first == last)
            continue;
        const uint64_t from = flat + (uint64_t)first * (uint64_t)access->step;
        if (!move_elements(x, access->place, from, access->step, result + start + (size_t)first * width,
                           (uint32_t)(last - first), false))
            return false;
    }
    return true;
}

/* ---- by element
 * -------------------------------------------------------------------------------------------------- */

/* x->flat and x->inside from the indices in registers. */
static void find_positions(struct executor *x, const struct place *place, const uint32_t *indices,
                           uint32_t count)
{
    memset(x->inside, 1, count);
    memset(x->flat, 0, count * sizeof *x->flat);
    for (uint32_t d = 0; d < place->rank; d++) {
        const int64_t *index = register_at(x, indices[d]);
        const int64_t size = place->sizes[d];
        for (uint32_t k = 0; k < count; k++) {
            const bool ok = index[k] >= 0 && index[k] < size;
            x->inside[k] &= ok;
            x->flat[k] = ok ? x->flat[k] * size + index[k] : 0;
        }
    }
}

#define LOAD_ELEMENTS(type)                                                                                  \
    for (uint32_t k = 0; k < count; k++)                                                                     \
        if (x->inside[k])                                                                                    \
            memcpy(result + k * sizeof(type), place->bytes + (size_t)x->flat[k] * sizeof(type),              \
                   sizeof(type));                                                                            \
    break

static bool load_elements(struct executor *x, const struct instruction *i, uint32_t count)
{
    const struct place *place = &x->places[i->value];
    unsigned char *result = register_at(x, i->result);
    find_positions(x, place, i->arguments, count);
    if (i->op == EXPR_LOAD_OR)
        memcpy(result, register_at(x, i->arguments[place->rank]), (size_t)count * place->width);
    else if (memchr(x->inside, 0, count))
        return out_of_range(x);
    for (uint32_t k = 0; k < count && place->storage; k++)
        if (x->inside[k] && !pages_move(x, (uint32_t)i->value, (uint64_t)x->flat[k], 1,
                                        result + (size_t)k * place->width, 1, false))
            return false;
    if (place->storage)
        return true;
    switch (place->width) {
    case 1:
        LOAD_ELEMENTS(uint8_t);
    case 2:
        LOAD_ELEMENTS(uint16_t);
    case 4:
        LOAD_ELEMENTS(uint32_t);
    default:
        LOAD_ELEMENTS(uint64_t);
    }
    return true;
}

bool load_block(struct executor *x, const struct program *program, const struct instruction *i,
                uint32_t count)
{
    if (!(i->access ? load_runs(x, program, i, count) : load_elements(x, i, count)))
        return false;
    if (i->dtype == DTYPE_BOOL) { /* any byte but 0 is true */
        unsigned char *result = register_at(x, i->result);
        for (uint32_t k = 0; k < count; k++)
            result[k] = result[k] != 0;
    }
    return true;
}

/* ---- stores
 * ------------------------------------------------------------------------------------------------------ */

static bool store_runs(struct executor *x, const struct program *program, const struct access *access,
                       unsigned char *values, uint32_t count)
{
    const struct place *place = &x->places[access->place];
    const uint32_t width = place->width;
    int64_t indices[MAX_RANK];
    if (access->linear) {
        const uint64_t flat = run_start(x, program, access, 0, indices);
        return move_elements(x, access->place, flat, access->linear_step, values, count, true);
    }
    for (uint32_t run = 0; run < x->run_count; run++) {
        const uint32_t length = x->run_lengths[run];
        const uint64_t flat = run_start(x, program, access, run, indices);
        int64_t first, last;
        find_inside(place, access, indices, length, &first, &last);
        if (last - first != (int64_t)length)
            return out_of_range(x);
        if (!move_elements(x, access->place, flat, access->step, values + (size_t)x->run_starts[run] * width,
                           length, true))
            return false;
    }
    return true;
}

bool store_block(struct executor *x, const struct program *program, uint32_t number,
                 const struct access *access, const uint32_t *indices, uint32_t value, uint32_t condition,
                 uint32_t count)
{
    const struct place *place = &x->places[number];
    unsigned char *values = register_at(x, value);
    if (access)
        return store_runs(x, program, access, values, count);
    find_positions(x, place, indices, count);
    const unsigned char *wanted = condition == NO_REGISTER ? NULL : register_at(x, condition);
    for (uint32_t k = 0; k < count; k++)
        if (!x->inside[k] && (!wanted || wanted[k]))
            return out_of_range(x);
    for (uint32_t k = 0; k < count; k++)
        if ((!wanted || wanted[k]) && !move_elements(x, number, (uint64_t)x->flat[k], 1,
                                                     values + (size_t)k * place->width, 1, true))
            return false;
    return true;
}

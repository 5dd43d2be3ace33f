/* The end of grouping: live units become groups, each behind the groups whose values it reads. Otherwise they
 * keep the order of the model's nodes, which keeps values short-lived. */
#include "passes/group_units.h"

enum state { STATE_NEW, STATE_OPEN, STATE_DONE };

struct emission {
    struct grouper *grouper;
    struct grouping *out;
    unsigned char *states; /* [unit's index] */
    uint32_t *index;       /* [value]: index of the unit that stores it, plus 1 */
    VEC(uint32_t) stack;
};

static void number_values(struct emission *emission)
{
    const struct grouper *grouper = emission->grouper;
    for (uint32_t u = 0; u < grouper->units.count; u++) {
        const struct unit *unit = grouper->units.items[u];
        for (uint32_t b = 0; !unit->dead && b < unit->body.buffers.count; b++)
            if (unit->used.items[b] && unit->body.buffers.items[b].role == BUFFER_OUTPUT)
                emission->index[unit->values.items[b]] = u + 1;
    }
}

/* Puts the unit's producers that are not emitted yet on the stack; how many they are. */
static uint32_t open_producers(struct emission *emission, uint32_t u)
{
    const struct unit *unit = emission->grouper->units.items[u];
    uint32_t count = 0;
    for (uint32_t b = 0; b < unit->body.buffers.count; b++) {
        if (!unit->used.items[b] || unit->body.buffers.items[b].role != BUFFER_INPUT)
            continue;
        const uint32_t producer = emission->index[unit->values.items[b]];
        if (!producer || emission->states[producer - 1] != STATE_NEW)
            continue;
        vec_push(emission->grouper->arena, &emission->stack, producer - 1);
        count++;
    }
    return count;
}

static void emit(struct emission *emission, uint32_t u)
{
    vec_push(emission->grouper->arena, &emission->stack, u);
    while (emission->stack.count) {
        const uint32_t item = emission->stack.items[emission->stack.count - 1];
        if (emission->states[item] == STATE_NEW) {
            emission->states[item] = STATE_OPEN;
            if (open_producers(emission, item))
                continue;
        }
        emission->stack.count--;
        if (emission->states[item] == STATE_DONE)
            continue;
        emission->states[item] = STATE_DONE;
        drop_doubled_stores(emission->grouper, emission->grouper->units.items[item], emission->out);
        const struct group group = unit_group(emission->grouper, emission->grouper->units.items[item]);
        vec_push(emission->grouper->graph->arena, &emission->out->groups, group);
    }
}

void emit_groups(struct grouper *grouper, struct grouping *out)
{
    struct emission emission = {
        .grouper = grouper,
        .out = out,
        .states = arena_new_array(grouper->arena, unsigned char, grouper->units.count),
        .index = arena_new_array(grouper->arena, uint32_t, grouper->graph->values.count),
    };
    const uint32_t count = grouper->units.count;
    uint32_t *by_end = arena_new_array(grouper->arena, uint32_t, grouper->graph->nodes.count + 1);
    uint32_t *next = arena_new_array(grouper->arena, uint32_t, count);
    number_values(&emission);
    for (uint32_t u = count; u-- > 0;) {
        const uint32_t last = grouper->units.items[u]->last;
        next[u] = by_end[last];
        by_end[last] = u + 1;
    }
    for (uint32_t last = 0; last <= grouper->graph->nodes.count; last++)
        for (uint32_t u = by_end[last]; u; u = next[u - 1])
            if (!grouper->units.items[u - 1]->dead && emission.states[u - 1] == STATE_NEW)
                emit(&emission, u - 1);
}

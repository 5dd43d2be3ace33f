/* Greedy placement: items in order of size, each into the lowest gap between the items placed before that
 * live at the same time. Several orders are tried (by size, by size times duration, by begin) until one meets
 * the lower bound, the largest live set; the best is kept. Small plans that are above it then go on from the
 * best order: the item that ends at the top goes first in the next round. Placed items stand sorted by
 * offset, so one pass over them finds the gaps. */
#include "runtime/arena_plan.h"

#include <string.h>

enum order_kind { BY_SIZE, BY_AREA, BY_DURATION, BY_BEGIN, BY_END, ORDER_COUNT };

static uint64_t rounded(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) & ~(alignment - 1);
}

/* Does a stand before b in the order? Ties by position, so the order is total. */
static int before(enum order_kind kind, const struct arena_item *items, uint32_t a, uint32_t b)
{
    const struct arena_item *x = &items[a], *y = &items[b];
    uint64_t span_x = (uint64_t)x->last - x->first + 1, span_y = (uint64_t)y->last - y->first + 1;
    switch (kind) {
    case BY_AREA: {
        /* Areas may pass 64 bits: sizes in KiB are exact enough to sort by. */
        uint64_t area_x = (x->bytes >> 10) * span_x, area_y = (y->bytes >> 10) * span_y;
        if (area_x != area_y)
            return area_x > area_y;
        break;
    }
    case BY_DURATION:
        if (span_x != span_y)
            return span_x > span_y;
        break;
    case BY_BEGIN:
        if (x->first != y->first)
            return x->first < y->first;
        break;
    case BY_END:
        if (x->last != y->last)
            return x->last > y->last;
        break;
    default:
        break;
    }
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    return a < b;
}

static void sift(enum order_kind kind, const struct arena_item *items, uint32_t *order, uint32_t root,
                 uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(kind, items, order[child], order[child + 1]))
            child++;
        if (!before(kind, items, order[root], order[child]))
            return;
        uint32_t swapped = order[root];
        order[root] = order[child];
        order[child] = swapped;
        root = child;
    }
}

/* Heap sort: no recursion, no memory, no quadratic case. */
static void sort(enum order_kind kind, const struct arena_item *items, uint32_t *order, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--)
        sift(kind, items, order, i - 1, count);
    for (uint32_t end = count; end > 1; end--) {
        uint32_t swapped = order[0];
        order[0] = order[end - 1];
        order[end - 1] = swapped;
        sift(kind, items, order, 0, end - 1);
    }
}

/* Places all items in the order; returns the arena's bytes. `placed` gets them sorted by offset. */
static uint64_t place(struct arena_item *items, const uint32_t *order, uint32_t *placed, uint32_t count,
                      uint64_t alignment)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct arena_item *item = &items[order[i]];
        uint64_t need = rounded(item->bytes, alignment), at = 0;
        item->offset = 0;
        if (!need) {
            /* Keeps the list sorted without taking part: no gap ends at an item of no size. */
            memmove(placed + 1, placed, i * sizeof *placed);
            placed[0] = order[i];
            continue;
        }
        for (uint32_t j = 0; j < i; j++) {
            const struct arena_item *other = &items[placed[j]];
            if (!other->bytes || other->last < item->first || other->first > item->last)
                continue;
            if (other->offset >= at && other->offset - at >= need)
                break;
            uint64_t end = other->offset + rounded(other->bytes, alignment);
            at = end > at ? end : at;
        }
        item->offset = at;
        uint32_t low = 0, high = i; /* the first placed one behind `at` */
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (items[placed[middle]].offset <= at)
                low = middle + 1;
            else
                high = middle;
        }
        memmove(placed + low + 1, placed + low, (i - low) * sizeof *placed);
        placed[low] = order[i];
        total = at + need > total ? at + need : total;
    }
    return total;
}

uint64_t arena_plan_live(const struct arena_item *items, uint32_t count, uint64_t alignment, uint32_t *order)
{
    /* Sweep: items by begin in one half of the scratch, by end (backwards) in the other. */
    uint32_t *ends = order + count;
    for (uint32_t i = 0; i < count; i++)
        order[i] = ends[i] = i;
    sort(BY_BEGIN, items, order, count);
    sort(BY_END, items, ends, count);
    uint64_t live = 0, most = 0;
    uint32_t end = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct arena_item *item = &items[order[i]];
        while (end > 0 && items[ends[end - 1]].last < item->first)
            live -= rounded(items[ends[--end]].bytes, alignment);
        live += rounded(item->bytes, alignment);
        most = live > most ? live : most;
    }
    return most;
}

/* Rounds that cost no more than placing a few thousand items once. */
static uint32_t rounds_for(uint32_t count)
{
    enum { MOST_ROUNDS = 64, MOST_VISITS = 1 << 24 };
    const uint64_t rounds = MOST_VISITS / ((uint64_t)count * count + 1);
    return rounds > MOST_ROUNDS ? MOST_ROUNDS : (uint32_t)rounds;
}

/* What ends at the top goes to the front of the order. */
static void promote_highest(const struct arena_item *items, uint32_t *order, uint32_t count,
                            uint64_t alignment, uint64_t total)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct arena_item *item = &items[order[i]];
        if (item->offset + rounded(item->bytes, alignment) != total)
            continue;
        const uint32_t highest = order[i];
        memmove(order + 1, order, i * sizeof *order);
        order[0] = highest;
        return;
    }
}

/* Rounds from one of the orders on, until one needs no more than `enough`. Returns the least bytes, and in
 * which round. */
static uint64_t improve(struct arena_item *items, uint32_t count, uint64_t alignment, uint32_t *order,
                        enum order_kind kind, uint32_t rounds, uint64_t enough, uint32_t *found)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    sort(kind, items, order, count);
    for (uint32_t round = 0; round <= rounds && best > enough; round++) {
        const uint64_t bytes = place(items, order, order + count, count, alignment);
        if (bytes < best) {
            best = bytes;
            *found = round;
        }
        promote_highest(items, order, count, alignment, bytes);
    }
    return best;
}

int arena_plan(struct arena_item *items, uint32_t count, uint64_t alignment, uint32_t *order, uint64_t *total)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].bytes > (UINT64_MAX >> 2) - alignment - sum)
            return 0;
        sum += rounded(items[i].bytes, alignment);
    }
    const uint64_t live = arena_plan_live(items, count, alignment, order);
    uint64_t best = UINT64_MAX;
    enum order_kind best_kind = BY_SIZE;
    uint32_t best_round = 0, round = 0;
    for (int pass = 0; pass < 2 && best > live; pass++) {
        const uint32_t rounds = pass ? rounds_for(count) : 0;
        for (enum order_kind kind = BY_SIZE; kind < ORDER_COUNT && best > live; kind++) {
            const uint64_t bytes = improve(items, count, alignment, order, kind, rounds, live, &round);
            if (bytes < best) {
                best = bytes;
                best_kind = kind;
                best_round = round;
            }
        }
    }
    /* The best one once more. */
    *total = count ? improve(items, count, alignment, order, best_kind, best_round, 0, &round) : 0;
    return 1;
}

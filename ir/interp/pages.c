/* Pages of places behind storage: a set-associative cache of bounded size, least recently used out. An
 * element never straddles two pages, since widths are powers of two. Memory of a page is taken when it is
 * first needed. */
#include "ir/interp/program.h"

#include <string.h>

enum { WAYS = 8 };

struct page {
    unsigned char *bytes;
    uint64_t number, used; /* used: 0: empty */
    uint32_t place;
    bool dirty;
};

struct pages {
    struct arena *arena;
    uint64_t clock;
    uint32_t sets;
    struct page *recent[MAX_BUFFERS]; /* of each place: the last one found */
    struct page *pages;               /* [sets * WAYS] */
};

struct pages *pages_new(struct arena *arena, uint32_t count)
{
    struct pages *pages = arena_new(arena, struct pages);
    pages->arena = arena;
    pages->sets = count / WAYS;
    pages->pages = arena_new_array(arena, struct page, (size_t)pages->sets * WAYS);
    for (uint32_t i = 0; i < MAX_BUFFERS; i++)
        pages->recent[i] = &pages->pages[0];
    return pages;
}

static size_t bytes_in_page(const struct place *place, uint64_t number)
{
    const uint64_t begin = number * PAGE_BYTES, all = (uint64_t)place->count * place->width;
    return all - begin < PAGE_BYTES ? (size_t)(all - begin) : PAGE_BYTES;
}

static bool write_page(struct executor *x, struct page *page)
{
    const struct place *place = &x->places[page->place];
    page->dirty = false;
    if (place->storage->write && place->storage->write(place->storage->user, page->number * PAGE_BYTES,
                                                       page->bytes, bytes_in_page(place, page->number)))
        return true;
    x->status = INTERP_STORAGE;
    return false;
}

/* The page with these bytes; NULL: x->status says why. */
static struct page *find_page(struct executor *x, uint32_t place, uint64_t number)
{
    struct pages *pages = x->pages;
    struct page *recent = pages->recent[place];
    if (recent->used && recent->place == place && recent->number == number)
        return recent;
    const uint64_t mixed = (number * MAX_BUFFERS + place) * UINT64_C(0x9E3779B97F4A7C15);
    struct page *set = &pages->pages[(mixed >> 40) % pages->sets * WAYS], *oldest = set;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].used && set[i].place == place && set[i].number == number) {
            set[i].used = ++pages->clock;
            pages->recent[place] = &set[i];
            return &set[i];
        }
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    if (oldest->dirty && !write_page(x, oldest))
        return NULL;
    if (!oldest->bytes)
        oldest->bytes = arena_alloc(pages->arena, PAGE_BYTES);
    const struct interp_storage *storage = x->places[place].storage;
    oldest->used = 0;
    if (!storage->read(storage->user, number * PAGE_BYTES, oldest->bytes,
                       bytes_in_page(&x->places[place], number))) {
        x->status = INTERP_STORAGE;
        return NULL;
    }
    oldest->place = place;
    oldest->number = number;
    oldest->used = ++pages->clock;
    pages->recent[place] = oldest;
    return oldest;
}

bool pages_move(struct executor *x, uint32_t place, uint64_t flat, int64_t step, unsigned char *values,
                uint32_t count, bool store)
{
    const uint32_t width = x->places[place].width;
    for (uint32_t i = 0; i < count;) {
        const uint64_t at = (flat + (uint64_t)i * (uint64_t)step) * width, offset = at % PAGE_BYTES;
        struct page *page = find_page(x, place, at / PAGE_BYTES);
        if (!page)
            return false;
        const uint64_t fitting = step == 1 ? (PAGE_BYTES - offset) / width : 1;
        const uint32_t elements = fitting < count - i ? (uint32_t)fitting : count - i;
        unsigned char *mine = values + (size_t)i * width;
        if (store)
            memcpy(page->bytes + offset, mine, (size_t)elements * width);
        else
            memcpy(mine, page->bytes + offset, (size_t)elements * width);
        page->dirty = page->dirty || store;
        i += elements;
    }
    return true;
}

bool pages_flush(struct executor *x)
{
    for (uint32_t i = 0; x->pages && i < x->pages->sets * WAYS; i++) {
        struct page *page = &x->pages->pages[i];
        if (page->used && page->dirty && !write_page(x, page))
            return false;
    }
    return true;
}

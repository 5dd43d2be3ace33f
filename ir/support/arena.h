/* Compiler memory. An arena hands out zeroed memory that lives until the arena is released; nothing in it is freed
 * one by one. An allocation never returns NULL to its caller: when the allocator refuses, the arena jumps to the
 * recovery point that its owner set, which is the one place that handles the failure. Foreign frames (protobuf-c,
 * LLVM, NVRTC) must not be on the stack between the two; code below them uses arena_try_alloc.
 *
 *     struct arena arena;
 *     struct recovery recovery;
 *     arena_init(&arena, allocator, &recovery);
 *     if (setjmp(recovery.jump) != 0) { ... out of memory ...; arena_release(&arena); return false; }
 *
 * An arena belongs to one thread at a time. */
#ifndef GPUCC_IR_SUPPORT_ARENA_H
#define GPUCC_IR_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where memory comes from. `allocate` returns NULL when it refuses. `release` gets the size it was asked for. */
struct allocator {
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
};

/* malloc and free. */
extern const struct allocator system_allocator;

struct recovery {
    jmp_buf jump;
};

struct arena_block;

struct arena {
    const struct allocator *allocator;
    struct recovery *recovery;  /* not owned; where a refused allocation jumps to */
    struct arena_block *blocks; /* newest first */
    size_t used, capacity;      /* bytes of the newest block */
    size_t total;               /* bytes taken from the allocator */
    size_t limit;               /* refuse beyond this many bytes; 0: no limit */
    bool exhausted;             /* the allocator has refused, and not the limit */
    struct arena *children, *sibling;
};

void arena_init(struct arena *arena, const struct allocator *allocator, struct recovery *recovery);
void arena_release(struct arena *arena); /* frees all, children too; the arena can be used again */

/* An arena for what is done with sooner, with the parent's allocator and recovery point. It lives in the parent and is
 * released with it at the latest, so that a jump to the recovery point leaks nothing. */
struct arena *arena_child(struct arena *parent);
void arena_clear(struct arena *arena); /* as arena_release, but keeps the newest block for what comes next */
/* All that `from` handed out belongs to `into`; `from` is empty. Both have the same allocator. */
void arena_adopt(struct arena *into, struct arena *from);

/* Zeroed, 16-byte aligned; size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_array(struct arena *arena, size_t count, size_t size); /* count * size, checked */
void *arena_try_alloc(struct arena *arena, size_t bytes);          /* NULL instead of the jump */
void *arena_copy(struct arena *arena, const void *data, size_t bytes);
char *arena_string(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#define arena_new(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define arena_new_array(arena, type, n) ((type *)arena_array((arena), (n), sizeof(type)))

/* Growable arrays in an arena:  VEC(struct node) nodes = {0};  vec_push(arena, &nodes, node); */
#define VEC(type)                                                                                            \
    struct {                                                                                                 \
        type *items;                                                                                         \
        uint32_t count, capacity;                                                                            \
    }
#define vec_push(arena, v, item)                                                                             \
    ((v)->items = vec_grow((arena), (v)->items, sizeof *(v)->items, (v)->count, &(v)->capacity),             \
     (v)->items[(v)->count++] = (item))

/* Room for one more item behind `count`; the array may move. */
void *vec_grow(struct arena *arena, void *items, size_t size, uint32_t count, uint32_t *capacity);

#endif

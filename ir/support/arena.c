/* Blocks of doubling size, linked newest first. Large requests get a block of their own behind the newest
 * one. */
#include "ir/support/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/checked.h"

struct arena_block {
    struct arena_block *next;
    size_t bytes; /* of data, behind this header */
    alignas(16) unsigned char data[];
};

/* A test builds this file with blocks so small that every allocation asks the allocator. */
#ifndef ARENA_LARGEST_BLOCK
#define ARENA_LARGEST_BLOCK (4 * 1024 * 1024)
#endif
enum { FIRST_BLOCK = 64 * 1024, LARGEST_BLOCK = ARENA_LARGEST_BLOCK, ALIGNMENT = 16 };

static void *system_allocate(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void system_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

const struct allocator system_allocator = {system_allocate, system_release, NULL};

void arena_init(struct arena *arena, const struct allocator *allocator, struct recovery *recovery)
{
    *arena = (struct arena){.allocator = allocator, .recovery = recovery};
}

static void release_blocks(struct arena *arena, struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        arena->total -= sizeof *block + block->bytes;
        arena->allocator->release(arena->allocator->user, block, sizeof *block + block->bytes);
        block = next;
    }
}

/* Children have no children: they live in their parent, and so do their structs. */
static void release_children(struct arena *arena)
{
    for (struct arena *child = arena->children; child; child = child->sibling)
        release_blocks(child, child->blocks);
    arena->children = NULL;
}

void arena_release(struct arena *arena)
{
    release_children(arena);
    release_blocks(arena, arena->blocks);
    arena->blocks = NULL;
    arena->used = arena->capacity = arena->total = 0;
}

struct arena *arena_child(struct arena *parent)
{
    struct arena *child = arena_new(parent, struct arena);
    arena_init(child, parent->allocator, parent->recovery);
    child->sibling = parent->children;
    parent->children = child;
    return child;
}

void arena_clear(struct arena *arena)
{
    release_children(arena);
    if (!arena->blocks)
        return;
    release_blocks(arena, arena->blocks->next);
    arena->blocks->next = NULL;
    arena->used = 0;
}

void arena_adopt(struct arena *into, struct arena *from)
{
    struct arena_block *last = from->blocks;
    if (!last)
        return;
    while (last->next)
        last = last->next;
    if (into->blocks) { /* the newest keeps its free room */
        last->next = into->blocks->next;
        into->blocks->next = from->blocks;
    } else {
        into->blocks = from->blocks;
        into->used = from->used;
        into->capacity = from->capacity;
    }
    into->total += from->total;
    from->blocks = NULL;
    from->used = from->capacity = from->total = 0;
}

static struct arena_block *take_block(struct arena *arena, size_t bytes)
{
    size_t whole;
    if (!add_size(sizeof(struct arena_block), bytes, &whole) ||
        (arena->limit && (whole > arena->limit || arena->total > arena->limit - whole)))
        return NULL;
    struct arena_block *block = arena->allocator->allocate(arena->allocator->user, whole);
    if (!block) {
        arena->exhausted = true;
        return NULL;
    }
    block->bytes = bytes;
    arena->total += whole;
    return block;
}

void *arena_try_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = bytes ? (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
    if (arena->blocks && bytes <= arena->capacity - arena->used) {
        void *memory = arena->blocks->data + arena->used;
        arena->used += bytes;
        return memset(memory, 0, bytes);
    }
    size_t next = arena->capacity ? arena->capacity * 2 : FIRST_BLOCK;
    if (next > LARGEST_BLOCK)
        next = LARGEST_BLOCK;
    if (arena->blocks && bytes > next / 4) { /* a block of its own; the newest keeps its free room */
        struct arena_block *block = take_block(arena, bytes);
        if (!block)
            return NULL;
        block->next = arena->blocks->next;
        arena->blocks->next = block;
        return memset(block->data, 0, bytes);
    }
    struct arena_block *block = take_block(arena, bytes > next ? bytes : next);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->capacity = block->bytes;
    arena->used = bytes;
    return memset(block->data, 0, bytes);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    void *memory = arena_try_alloc(arena, bytes);
    if (!memory)
        longjmp(arena->recovery->jump, 1);
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!mul_size(count, size, &bytes))
        longjmp(arena->recovery->jump, 1);
    return arena_alloc(arena, bytes);
}

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);
    if (bytes)
        memcpy(copy, data, bytes);
    return copy;
}

char *arena_string(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = arena_alloc(arena, length < 0 ? 1 : (size_t)length + 1);
    if (length >= 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

void *vec_grow(struct arena *arena, void *items, size_t size, uint32_t count, uint32_t *capacity)
{
    if (count < *capacity)
        return items;
    uint32_t larger = *capacity ? *capacity * 2 : 8;
    if (larger <= count)
        longjmp(arena->recovery->jump, 1);
    void *moved = arena_array(arena, larger, size);
    if (count)
        memcpy(moved, items, count * size);
    *capacity = larger;
    return moved;
}

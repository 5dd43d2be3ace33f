/* Text building. Escaping is decided per UTF-8 sequence: what a terminal could act on (C0 and C1 controls,
 * characters that turn the writing direction) and what is no UTF-8 at all is written byte by byte as \xNN, so
 * that a hostile name can neither move the cursor nor end the quotes that stand around it. */
#include "ir/support/str.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/checked.h"
#include "ir/support/hash.h"

enum { FIRST_TEXT = 64, FIRST_SLOTS = 64 };

/* Room for `more` bytes and the NUL; jumps to the arena's recovery point when the sum does not fit a size_t.
 */
static void text_reserve(struct text *text, size_t more)
{
    size_t needed;
    if (!add_size(text->length, more, &needed) || !add_size(needed, 1, &needed))
        needed = SIZE_MAX; /* refused by the arena */
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity > SIZE_MAX / 2 ? needed : text->capacity * 2;
    if (capacity < needed)
        capacity = needed;
    char *data = arena_alloc(text->arena, capacity);
    memcpy(data, text->data, text->length);
    text->data = data;
    text->capacity = capacity;
}

void text_init(struct text *text, struct arena *arena)
{
    *text = (struct text){.arena = arena, .data = arena_alloc(arena, FIRST_TEXT), .capacity = FIRST_TEXT};
}

void text_append(struct text *text, const char *data, size_t length)
{
    text_reserve(text, length);
    if (length)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_put(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->data + text->length, room, format, arguments);
    if (length > 0 && (size_t)length >= room) {
        text_reserve(text, (size_t)length);
        length = vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(arguments);
    if (length > 0)
        text->length += (size_t)length;
    text->data[text->length] = '\0';
}

/* Decodes the UTF-8 sequence at `at`, which ends with a NUL: its length, and its code point; 0 when it is not
 * valid (overlong, surrogate, beyond U+10FFFF, cut short). */
static unsigned decode_utf8(const unsigned char *at, uint32_t *code)
{
    static const struct {
        unsigned char mask, mark;
        unsigned length;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};

    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        if ((at[0] & forms[form].mask) != forms[form].mark)
            continue;
        uint32_t value = at[0] & (unsigned char)~forms[form].mask;
        for (unsigned i = 1; i < forms[form].length; i++) {
            if ((at[i] & 0xC0) != 0x80)
                return 0;
            value = value << 6 | (at[i] & 0x3F);
        }
        if (value < forms[form].least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
            return 0;
        *code = value;
        return forms[form].length;
    }
    return 0;
}

static bool is_printable(uint32_t code)
{
    if (code < 0x20 || code == '"' || code == '\\' || (code >= 0x7F && code <= 0x9F))
        return false;
    return !((code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
             (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF); /* invisible, separating, turning */
}

/* True when the whole string was written. */
static bool put_escaped(struct text *text, const char *string, size_t limit)
{
    const unsigned char *at = (const unsigned char *)string;
    for (size_t taken = 0; *at;) {
        uint32_t code = 0;
        unsigned valid = decode_utf8(at, &code);
        unsigned length = valid ? valid : 1;
        if (length > limit - taken)
            return false;
        if (valid && is_printable(code))
            text_append(text, (const char *)at, length);
        else
            for (unsigned i = 0; i < length; i++)
                text_printf(text, "\\x%02X", (unsigned)at[i]);
        at += length;
        taken += length;
    }
    return true;
}

void text_escape(struct text *text, const char *string, size_t limit)
{
    if (!put_escaped(text, string, limit))
        text_put(text, "...");
}

void text_put_json(struct text *text, const char *string)
{
    const unsigned char *at = (const unsigned char *)string;
    text_put(text, "\"");
    while (*at) {
        uint32_t code = 0;
        unsigned length = decode_utf8(at, &code);
        if (!length)
            text_put(text, "\\ufffd");
        else if (code == '"' || code == '\\')
            text_printf(text, "\\%c", *at);
        else if (is_printable(code) || code > 0xFFFF)
            text_append(text, (const char *)at, length);
        else
            text_printf(text, "\\u%04x", (unsigned)code);
        at += length ? length : 1;
    }
    text_put(text, "\"");
}

void text_quote(struct text *text, const char *string, size_t limit)
{
    text_put(text, "\"");
    bool whole = put_escaped(text, string, limit);
    text_put(text, whole ? "\"" : "\"...");
}

/* nan and the infinities by name; false for a finite value. */
static bool put_special(struct text *text, double value)
{
    if (isnan(value))
        text_put(text, "nan");
    else if (isinf(value))
        text_put(text, value < 0 ? "-inf" : "inf");
    else
        return false;
    return true;
}

/* Appends a number that printf wrote, with the locale's decimal point (any bytes that no number has) as a
 * dot. */
static void put_decimal(struct text *text, const char *number)
{
    bool in_point = false;
    for (; *number; number++) {
        bool plain = (*number >= '0' && *number <= '9') || *number == '-' || *number == '+' || *number == 'e';
        if (plain)
            text_append(text, number, 1);
        else if (!in_point)
            text_put(text, ".");
        in_point = !plain;
    }
}

void text_put_f32(struct text *text, float value)
{
    if (put_special(text, (double)value))
        return;
    char number[64];
    /* Up to FLT_DIG digits always survive, unless the value is subnormal and holds fewer. */
    int digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG;
    for (; digits <= 9; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value)
            break;
    }
    put_decimal(text, number);
}

void text_put_f64(struct text *text, double value)
{
    if (put_special(text, value))
        return;
    char number[64];
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    for (; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    put_decimal(text, number);
}

void interner_init(struct interner *interner, struct arena *arena)
{
    *interner = (struct interner){.arena = arena};
}

/* The slot of the string: its own, or the empty one where it belongs. The address of the arena differs from
 * process to process, so that nobody can prepare a model whose names all collide. */
static uint32_t find_slot(const struct interner *interner, const char *data, size_t length)
{
    uint32_t mask = interner->capacity - 1;
    uint32_t slot = (uint32_t)hash_bytes((uint64_t)(uintptr_t)interner->arena, data, length) & mask;
    for (;; slot = (slot + 1) & mask) {
        const char *other = interner->slots[slot];
        if (!other || (strncmp(other, data, length) == 0 && other[length] == '\0'))
            return slot;
    }
}

static void interner_grow(struct interner *interner)
{
    struct interner larger = *interner;
    larger.capacity = interner->capacity ? interner->capacity * 2 : FIRST_SLOTS;
    if (!larger.capacity)
        longjmp(interner->arena->recovery->jump, 1);
    larger.slots = arena_new_array(interner->arena, const char *, larger.capacity);
    for (uint32_t i = 0; i < interner->capacity; i++) {
        const char *string = interner->slots[i];
        if (string)
            larger.slots[find_slot(&larger, string, strlen(string))] = string;
    }
    *interner = larger;
}

const char *intern_range(struct interner *interner, const char *data, size_t length)
{
    if (!length)
        data = ""; /* may be NULL, which strncmp must not see */
    const char *end = memchr(data, '\0', length);
    if (end)
        length = (size_t)(end - data);
    if (interner->count >= interner->capacity - interner->capacity / 4)
        interner_grow(interner);
    uint32_t slot = find_slot(interner, data, length);
    if (!interner->slots[slot]) {
        char *copy = arena_alloc(interner->arena, length + 1);
        if (length)
            memcpy(copy, data, length);
        interner->slots[slot] = copy;
        interner->count++;
    }
    return interner->slots[slot];
}

const char *intern(struct interner *interner, const char *string)
{
    return intern_range(interner, string, strlen(string));
}

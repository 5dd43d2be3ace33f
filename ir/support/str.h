/* Text building, in an arena. A builder's text is always NUL-terminated. */
#ifndef GPUCC_IR_SUPPORT_STR_H
#define GPUCC_IR_SUPPORT_STR_H

#include "ir/support/arena.h"

struct text {
    struct arena *arena;
    char *data;
    size_t length, capacity;
};

void text_init(struct text *text, struct arena *arena);
void text_append(struct text *text, const char *data, size_t length);
void text_put(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The string in double quotes: control bytes, quotes, backslashes and bytes of invalid UTF-8 as \xNN, at most
 * `limit` bytes of it (then "..."). For names of an untrusted model. */
void text_quote(struct text *text, const char *string, size_t limit);
/* The same without the quotes around it. */
void text_escape(struct text *text, const char *string, size_t limit);
/* As a JSON string with its quotes; bytes of invalid UTF-8 become U+FFFD, so that every parser takes it. */
void text_put_json(struct text *text, const char *string);
/* The shortest decimal that reads back as the same value, independent of the locale; nan, inf, -inf by name. */
void text_put_f32(struct text *text, float value);
void text_put_f64(struct text *text, double value);

/* Equal strings get the same pointer, so interned strings are compared by pointer. Lives in its arena. */
struct interner {
    struct arena *arena;
    const char **slots;
    uint32_t count, capacity; /* capacity: power of two */
};
void interner_init(struct interner *interner, struct arena *arena);
const char *intern(struct interner *interner, const char *string);
const char *intern_range(struct interner *interner, const char *data, size_t length);

#endif

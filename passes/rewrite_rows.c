/* The rewrite rows as a table. */
#include "passes/rewrite_guards.h"

static const struct rewrite rewrite_rows[] = {
#define REWRITE(name, pattern, replacement, guard) {#name, pattern, replacement, guard},
#include "passes/rewrite_rows.def"
#undef REWRITE
};

const struct rewrite *rewrite_row(uint32_t index)
{
    return index < sizeof rewrite_rows / sizeof rewrite_rows[0] ? &rewrite_rows[index] : NULL;
}

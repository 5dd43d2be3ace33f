/* Dims and symbols in words, for messages and `info`. */
#include "runtime/dim_text.h"

#include <stdio.h>
#include <string.h>

struct printer {
    const struct bundle_tables *tables;
    char *text;
    size_t bytes, used;
    int full;
};

static void put(struct printer *printer, const char *text)
{
    size_t length = strlen(text);
    if (printer->full || printer->used + length + 4 > printer->bytes) {
        if (!printer->full && printer->used + 4 <= printer->bytes) {
            memcpy(printer->text + printer->used, "...", 4);
            printer->used += 3;
        }
        printer->full = 1;
        return;
    }
    memcpy(printer->text + printer->used, text, length + 1);
    printer->used += length;
}

const char *bundle_symbol_text(const struct bundle_tables *tables, uint32_t symbol, char *text, size_t bytes)
{
    const struct bundle_symbol *row = &tables->symbols[symbol];
    char name[80];
    const char *own = tables->strings + row->name;
    if (*own) {
        snprintf(text, bytes, "%s", runtime_escape(own, name, sizeof name));
        return text;
    }
    if (row->source >= BUNDLE_WORD) {
        snprintf(text, bytes, "computed size %u", symbol);
        return text;
    }
    runtime_escape(tables->strings + tables->inputs[row->input].name, name, sizeof name);
    snprintf(text, bytes, "%s[%u]", name, row->axis); /* an axis, or an element where values are sizes */
    return text;
}

enum { MAX_TEXT_DEPTH = 12 };

/* Recursion ends at a depth, since rows of a file may hang on each other in long chains. */
static void put_dim(struct printer *printer, uint32_t index, int depth)
{
    const struct bundle_dim *dim = &printer->tables->dims[index];
    const struct bundle_term *terms = &printer->tables->terms[dim->first_term];
    static const char *const between[BUNDLE_DIM_OP_COUNT] = {"", "", " + ", " * ", " / ", " % ", ", ", ", "};
    char piece[128];
    if (depth > MAX_TEXT_DEPTH) {
        put(printer, "...");
        return;
    }
    if (dim->op == BUNDLE_DIM_CONSTANT) {
        snprintf(piece, sizeof piece, "%lld", (long long)dim->value);
        put(printer, piece);
        return;
    }
    if (dim->op == BUNDLE_DIM_SYMBOL) {
        put(printer, bundle_symbol_text(printer->tables, (uint32_t)dim->value, piece, sizeof piece));
        return;
    }
    put(printer, dim->op == BUNDLE_DIM_MIN ? "min(" : dim->op == BUNDLE_DIM_MAX ? "max(" : depth ? "(" : "");
    for (uint32_t i = 0; i < dim->term_count && !printer->full; i++) {
        put(printer, i ? between[dim->op] : "");
        if (dim->op == BUNDLE_DIM_SUM && terms[i].coefficient != 1) {
            snprintf(piece, sizeof piece, "%lld * ", (long long)terms[i].coefficient);
            put(printer, piece);
        }
        put_dim(printer, terms[i].dim, depth + 1);
    }
    if (dim->op == BUNDLE_DIM_SUM && (dim->value || !dim->term_count)) {
        snprintf(piece, sizeof piece, "%s%lld", dim->term_count ? " + " : "", (long long)dim->value);
        put(printer, piece);
    }
    put(printer, dim->op == BUNDLE_DIM_MIN || dim->op == BUNDLE_DIM_MAX || depth ? ")" : "");
}

const char *bundle_dim_text(const struct bundle_tables *tables, uint32_t dim, char *text, size_t bytes)
{
    struct printer printer = {tables, text, bytes, 0, 0};
    if (bytes)
        text[0] = '\0';
    put_dim(&printer, dim, 0);
    return text;
}

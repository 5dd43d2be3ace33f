/* Recording and printing of diagnostics. All text of the model passes through the escaping of str.c, with a
 * bound on its length, so a hostile name costs a few hundred bytes of output and cannot forge a line of it.
 */
#include "ir/support/diag.h"

#include <string.h>

enum { MOST_DIAGNOSTICS = 100, NAME_LIMIT = 256, OPERATOR_LIMIT = 128, FILE_LIMIT = 4096, MOST_MERGED = 8 };

static const struct row {
    unsigned number;
    const char *name;
    int status;
    const char *meaning;
} rows[] = {
#define DIAG(number, name, status, meaning) {number, #name, status, meaning},
#include "ir/support/diag.def"
#undef DIAG
};

void diagnostics_init(struct diagnostics *diagnostics, struct arena *arena, const char *file)
{
    *diagnostics = (struct diagnostics){.arena = arena, .file = file};
}

void diag_error(struct diagnostics *diagnostics, enum diag_code code, const struct location *location,
                const char *format, ...)
{
    if (diagnostics->items.count >= MOST_DIAGNOSTICS) {
        if (diagnostics->dropped < UINT32_MAX)
            diagnostics->dropped++;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(diagnostics->arena, format, arguments);
    va_end(arguments);
    vec_push(diagnostics->arena, &diagnostics->items, ((struct diagnostic){code, location, message}));
}

const char *diag_quote(struct diagnostics *diagnostics, const char *name)
{
    struct text text;
    text_init(&text, diagnostics->arena);
    text_quote(&text, name, NAME_LIMIT);
    return text.data;
}

static void put_operator(struct text *out, const struct location *location)
{
    if (location->domain && *location->domain) {
        text_escape(out, location->domain, OPERATOR_LIMIT);
        text_put(out, ".");
    }
    text_escape(out, location->op_type ? location->op_type : "", OPERATOR_LIMIT);
}

/* `node "/a" (#42, MatMul, opset 17): ` */
static void put_location(struct text *out, const struct location *location)
{
    text_put(out, "node ");
    text_quote(out, location->name ? location->name : "", NAME_LIMIT);
    text_printf(out, " (#%u, ", (unsigned)location->number);
    put_operator(out, location);
    text_printf(out, ", opset %lld", (long long)location->opset);
    if (location->graph && *location->graph) {
        text_put(out, ", in ");
        text_quote(out, location->graph, NAME_LIMIT);
    }
    unsigned merged = 0;
    for (const struct location *other = location->also; other; other = other->also, merged++) {
        if (merged == MOST_MERGED) {
            text_put(out, ", ...");
            break;
        }
        text_printf(out, merged ? ", #%u " : ", merged with #%u ", (unsigned)other->number);
        put_operator(out, other);
    }
    text_put(out, "): ");
}

void diag_print(const struct diagnostics *diagnostics, const struct diagnostic *item, struct text *out)
{
    text_escape(out, diagnostics->file ? diagnostics->file : "gpucc", FILE_LIMIT);
    text_printf(out, ": error E%04u: ", (unsigned)item->code);
    if (item->location && item->location->op_type)
        put_location(out, item->location);
    text_put(out, item->message);
    text_put(out, "\n");
}

int diag_status(const struct diagnostics *diagnostics)
{
    if (!diagnostics->items.count)
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].number == (unsigned)diagnostics->items.items[0].code)
            return rows[i].status;
    return 4; /* no such row: a defect of gpucc */
}

const char *diag_row(uint32_t index, unsigned *number, const char **name, int *status)
{
    if (index >= sizeof rows / sizeof *rows)
        return NULL;
    *number = rows[index].number;
    *name = rows[index].name;
    *status = rows[index].status;
    return rows[index].meaning;
}

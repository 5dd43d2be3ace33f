/* Recording and printing of diagnostics. All text of the model passes through the escaping of str.c, with a
 * bound on its length, so a hostile name costs a few hundred bytes of output and cannot forge a line of it.
 */
#include "ir/support/diag.h"

#include <string.h>

enum { NAME_LIMIT = 256, OPERATOR_LIMIT = 128, FILE_LIMIT = 4096, MOST_MERGED = 8 };

static const struct diag_row rows[] = {
#define DIAG(number, name, status, meaning, remedy) {number, #name, status, meaning, remedy},
#include "ir/support/diag.def"
#undef DIAG
};

void diagnostics_init(struct diagnostics *diagnostics, struct arena *arena, const char *file)
{
    *diagnostics = (struct diagnostics){.arena = arena, .file = file, .most = MOST_DIAGNOSTICS};
}

void diag_error(struct diagnostics *diagnostics, enum diag_code code, const struct location *location,
                const char *format, ...)
{
    if (diagnostics->items.count >= diagnostics->most) {
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

int diag_code_status(enum diag_code code)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].number == (unsigned)code)
            return rows[i].status;
    return 4; /* no such row: a defect of gpucc */
}

int diag_status(const struct diagnostics *diagnostics)
{
    return diagnostics->items.count ? diag_code_status(diagnostics->items.items[0].code) : 0;
}

const struct diag_row *diag_row(uint32_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

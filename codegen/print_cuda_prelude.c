/* What a CUDA source begins with: only what its kernels use. The pieces are those of codegen/device/, one
 * definition of functions of one name each; functions that expressions call (exp_f32, f32_from_f16, ...) are
 * printed from their expansion (ir/expr.h), so that they round as on every other executor; and vector types.
 *
 * A piece begins with a line "//! names", or "//! 80+ names" where it needs that compute capability or "//!
 * 80- names" where it is for those below; the line itself is not printed. Pieces may use others. A function
 * that a piece defines for the machine is not printed from its expansion: it is the machine's own, and the
 * same. */
#include <stdlib.h>
#include <string.h>

#include "codegen/print_cuda_internal.h"
#include "codegen/printers.h"
#include "ir/support/embedded.h"

extern const struct embedded_file device_files[]; /* codegen/device/, in order; NULL name behind the last */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does the text hold the word? */
static bool mentions(const char *text, const char *word, size_t length)
{
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
        if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
            return true;
    return false;
}

struct piece {
    const char *names; /* separated by blanks */
    const char *text;
    bool used;
};

/* One piece from the text behind "//! "; NULL behind the last. `out->names` stays NULL where it is not for
 * the machine. */
static const char *next_piece(const char *at, const struct machine *machine, struct arena *arena,
                              struct piece *out)
{
    const char *line_end = strchr(at, '\n'), *end = strstr(at, "\n//! ");
    const size_t length = end ? (size_t)(end + 1 - (line_end + 1)) : strlen(line_end + 1);
    char *names = arena_printf(arena, "%.*s", (int)(line_end - at), at), *behind = names;
    const long bound = strtol(names, &behind, 10);
    *out = (struct piece){0};
    const bool fits = behind == names || (*behind == '+' ? machine->compute_capability >= bound
                                                         : machine->compute_capability < bound);
    if (fits) {
        out->names = behind == names ? names : behind + 2;
        out->text = arena_printf(arena, "%.*s", (int)length, line_end + 1);
    }
    return end ? end + 1 + strlen("//! ") : NULL;
}

static bool is_wanted(const struct piece *piece, const char *source, struct arena *arena)
{
    char *names = arena_string(arena, piece->names);
    for (char *at = names; *at;) {
        const size_t length = strcspn(at, " ");
        const char behind = at[length];
        at[length] = '\0';
        if (length && mentions(source, at, length))
            return true;
        at += length + (behind != '\0');
    }
    return false;
}

struct pieces {
    struct piece *items;
    uint32_t count;
};

static struct pieces find_pieces(const struct machine *machine, struct arena *arena)
{
    VEC(struct piece) pieces = {0};
    for (const struct embedded_file *file = device_files; file->name; file++)
        for (const char *at = strstr((const char *)file->data, "\n//! ") + strlen("\n//! "); at;) {
            struct piece piece;
            at = next_piece(at, machine, arena, &piece);
            if (piece.names)
                vec_push(arena, &pieces, piece);
        }
    return (struct pieces){pieces.items, pieces.count};
}

static bool is_defined(const struct pieces *pieces, const char *name)
{
    for (uint32_t i = 0; i < pieces->count; i++)
        if (mentions(pieces->items[i].names, name, strlen(name)))
            return true;
    return false;
}

static void put_pieces(struct pieces *pieces, const char *source, struct text *out)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < pieces->count; i++) {
            struct piece *piece = &pieces->items[i];
            bool wanted = is_wanted(piece, source, out->arena);
            for (uint32_t k = 0; k < pieces->count && !wanted; k++)
                wanted = pieces->items[k].used && is_wanted(piece, pieces->items[k].text, out->arena);
            changed |= wanted && !piece->used;
            piece->used = piece->used || wanted;
        }
    }
    for (uint32_t i = 0; i < pieces->count; i++)
        if (pieces->items[i].used)
            text_put(out, pieces->items[i].text);
}

static void put_vector_types(const char *source, struct text *out)
{
    enum { WIDEST = 16 };
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++) {
        unsigned bits = dtype_bits((enum dtype)dtype);
        if (bits < 8 || bits > 64)
            continue;
        for (unsigned lanes = 2; lanes * bits <= 8 * WIDEST; lanes *= 2) {
            const char *name = arena_printf(out->arena, "%sx%u", dtype_name((enum dtype)dtype), lanes);
            if (mentions(source, name, strlen(name)))
                text_printf(out, "struct __align__(%u) %s {\n    %s v[%u];\n};\n", lanes * bits / 8, name,
                            cuda_storage_type((enum dtype)dtype), lanes);
        }
    }
}

/* DEVICE float exp_f32(float x) { ... } */
static void put_function(const char *name, enum expr_op op, enum dtype to, enum dtype from, struct text *out)
{
    struct arena *arena = out->arena;
    struct dims *dims = arena_new(arena, struct dims);
    dims_init(dims, arena);
    struct kernel *kernel = kernel_new(arena, dims);
    const uint16_t count = op == EXPR_POW ? 2 : 1;
    expr arguments[2] = {0};
    static const char *const labels[] = {"x", "y"};
    for (uint16_t i = 0; i < count; i++)
        arguments[i] = kernel_variable(kernel, kernel_variable_add(kernel, from, 1, false, labels[i]));
    const struct expr_node node = {.op = op, .dtype = to, .lanes = 1, .count = count, .arguments = arguments};
    cuda_put_function(kernel, name, expr_expand(kernel->pool, expr_make(kernel->pool, &node)), out);
}

static void put_functions(const struct pieces *pieces, const char *source, struct text *out)
{
    static const enum expr_op ops[] = {EXPR_EXP,  EXPR_EXP2, EXPR_LOG, EXPR_SIN,    EXPR_COS,
                                       EXPR_TANH, EXPR_ERF,  EXPR_POW, EXPR_SIGMOID};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int dtype = 1; dtype < DTYPE_COUNT; dtype++) {
            const char *name = cuda_function_name(out->arena, ops[i], (enum dtype)dtype, (enum dtype)dtype);
            if (mentions(source, name, strlen(name)) && !is_defined(pieces, name))
                put_function(name, ops[i], (enum dtype)dtype, (enum dtype)dtype, out);
        }
    for (int to = 1; to < DTYPE_COUNT; to++)
        for (int from = 1; from < DTYPE_COUNT; from++) {
            const char *name = cuda_function_name(out->arena, EXPR_CONVERT, (enum dtype)to, (enum dtype)from);
            if (mentions(source, name, strlen(name)) && !is_defined(pieces, name))
                put_function(name, EXPR_CONVERT, (enum dtype)to, (enum dtype)from, out);
        }
}

void print_cuda_prelude(const char *source, const struct machine *machine, struct text *out)
{
    struct pieces pieces = find_pieces(machine, out->arena);
    struct text functions, all;
    text_init(&functions, out->arena);
    put_functions(&pieces, source, &functions);
    text_init(&all, out->arena);
    text_printf(&all, "%s%s", functions.data, source);
    put_pieces(&pieces, all.data, out);
    put_vector_types(source, out);
    text_put(out, functions.data);
    text_put(out, "\n");
}

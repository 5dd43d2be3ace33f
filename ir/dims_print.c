/* The text of dims, written and read. Reading goes through the public operations, so any expression becomes
 * canonical and what dim_print wrote becomes the dim that it was. Grammar: sum     = ["-"] product { ("+" |
 * "-") product } product = primary { ("*" | "/" | "%") primary } primary = number | "s" digits | "(" sum ")"
 * | ("min" | "max") "(" sum "," sum ")" */
#include "ir/dims_polynomial.h"

#include <inttypes.h>
#include <string.h>

static void print_dim(const struct dims *dims, dim d, struct text *out);

/* As an operand of `/` or of a product: in parentheses unless it is one word. */
static void print_primary(const struct dims *dims, dim d, struct text *out)
{
    const struct dim_node *node = &dims->nodes.items[d];
    const bool bare = node->op == DIM_SYMBOL || node->op == DIM_MIN || node->op == DIM_MAX ||
                      (node->op == DIM_CONSTANT && node->value >= 0);
    if (!bare)
        text_put(out, "(");
    print_dim(dims, d, out);
    if (!bare)
        text_put(out, ")");
}

static void print_monomial(const struct dims *dims, dim d, bool scaled, struct text *out)
{
    const struct dim_node *node = &dims->nodes.items[d];
    if (node->op == DIM_PRODUCT) {
        for (uint32_t i = 0; i < node->count; i++) {
            text_put(out, i ? " * " : "");
            print_primary(dims, node->arguments[i], out);
        }
    } else if (scaled) {
        print_primary(dims, d, out);
    } else {
        print_dim(dims, d, out);
    }
}

static void print_sum(const struct dims *dims, const struct dim_node *node, struct text *out)
{
    for (uint32_t i = 0; i < node->count; i++) {
        const int64_t k = node->coefficients[i];
        text_put(out, i == 0 ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + "));
        const uint64_t size = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;
        if (size != 1)
            text_printf(out, "%" PRIu64 " * ", size);
        print_monomial(dims, node->arguments[i], size != 1, out);
    }
    if (node->value)
        text_printf(out, " %c %" PRIu64, node->value < 0 ? '-' : '+',
                    node->value < 0 ? 0 - (uint64_t)node->value : (uint64_t)node->value);
}

static void print_dim(const struct dims *dims, dim d, struct text *out)
{
    const struct dim_node *node = &dims->nodes.items[d];
    switch (node->op) {
    case DIM_CONSTANT:
        text_printf(out, "%" PRId64, node->value);
        break;
    case DIM_SYMBOL:
        text_printf(out, "s%" PRId64, node->value);
        break;
    case DIM_SUM:
        print_sum(dims, node, out);
        break;
    case DIM_PRODUCT:
        print_monomial(dims, d, false, out);
        break;
    case DIM_FLOOR_DIV:
    case DIM_MOD:
        print_primary(dims, node->arguments[0], out);
        text_put(out, node->op == DIM_MOD ? " % " : " / ");
        print_primary(dims, node->arguments[1], out);
        break;
    case DIM_MIN:
    case DIM_MAX:
        text_put(out, node->op == DIM_MIN ? "min(" : "max(");
        print_dim(dims, node->arguments[0], out);
        text_put(out, ", ");
        print_dim(dims, node->arguments[1], out);
        text_put(out, ")");
        break;
    }
}

void dim_print(const struct dims *dims, dim d, struct text *out)
{
    if (d == DIM_NONE)
        text_put(out, "?");
    else
        print_dim(dims, d, out);
}

/* ---- reading
 * ----------------------------------------------------------------------------------------------------- */

enum { MAX_DEPTH = 256 };

struct reader {
    struct dims *dims;
    const char *at;
    int depth;
};

static char peek(struct reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
    return *reader->at;
}

static bool take(struct reader *reader, char what)
{
    if (peek(reader) != what)
        return false;
    reader->at++;
    return true;
}

/* Digits, up to 2^63 (the magnitude of INT64_MIN). */
static bool read_digits(struct reader *reader, uint64_t *value)
{
    const char *at = reader->at;
    *value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        const unsigned digit = (unsigned)(*at - '0');
        if (*value > (((uint64_t)1 << 63) - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    const bool any = at != reader->at;
    reader->at = at;
    return any;
}

static dim read_sum(struct reader *reader);

static dim read_constant(struct reader *reader, bool negative)
{
    uint64_t size;
    if (!read_digits(reader, &size) || (!negative && size > INT64_MAX))
        return DIM_NONE;
    return dim_constant(reader->dims, !negative          ? (int64_t)size
                                      : size > INT64_MAX ? INT64_MIN
                                                         : -(int64_t)size);
}

static dim read_primary(struct reader *reader)
{
    const char next = peek(reader);
    uint64_t number;
    if (next >= '0' && next <= '9')
        return read_constant(reader, false);
    if (next == 's') {
        reader->at++;
        if (!read_digits(reader, &number) || number >= reader->dims->symbols.count)
            return DIM_NONE;
        return dims_intern(reader->dims, &(struct dim_node){.op = DIM_SYMBOL, .value = (int64_t)number});
    }
    if (next == '(') {
        reader->at++;
        const dim inner = read_sum(reader);
        return take(reader, ')') ? inner : DIM_NONE;
    }
    const bool least = strncmp(reader->at, "min(", 4) == 0;
    if (!least && strncmp(reader->at, "max(", 4) != 0)
        return DIM_NONE;
    reader->at += 4;
    const dim a = read_sum(reader);
    if (!take(reader, ','))
        return DIM_NONE;
    const dim b = read_sum(reader);
    if (!take(reader, ')'))
        return DIM_NONE;
    return least ? dim_min(reader->dims, a, b) : dim_max(reader->dims, a, b);
}

static dim read_product(struct reader *reader)
{
    dim result = read_primary(reader);
    while (result != DIM_NONE) {
        if (take(reader, '*'))
            result = dim_mul(reader->dims, result, read_primary(reader));
        else if (take(reader, '/'))
            result = dim_floor_div(reader->dims, result, read_primary(reader));
        else if (take(reader, '%'))
            result = dim_mod(reader->dims, result, read_primary(reader));
        else
            break;
    }
    return result;
}

static dim read_sum(struct reader *reader)
{
    if (++reader->depth > MAX_DEPTH)
        return DIM_NONE;
    dim result;
    if (take(reader, '-')) {
        const char next = peek(reader);
        const char *start = reader->at;
        result = next >= '0' && next <= '9' ? read_constant(reader, true) : DIM_NONE;
        if (result == DIM_NONE || peek(reader) == '*' || peek(reader) == '/' || peek(reader) == '%') {
            reader->at = start;
            result = dim_sub(reader->dims, dim_constant(reader->dims, 0), read_product(reader));
        }
    } else {
        result = read_product(reader);
    }
    while (result != DIM_NONE) {
        if (take(reader, '+'))
            result = dim_add(reader->dims, result, read_product(reader));
        else if (take(reader, '-'))
            result = dim_sub(reader->dims, result, read_product(reader));
        else
            break;
    }
    reader->depth--;
    return result;
}

bool dim_parse(struct dims *dims, const char **text, dim *out)
{
    struct reader reader = {dims, *text, 0};
    *out = read_sum(&reader);
    *text = reader.at;
    return *out != DIM_NONE;
}

/* Rewrite rows as text -> patterns as data. The text is our own: a mistake is a defect of the row, found by
 * the test that parses every one. Recursion is bounded by PATTERN_NODES. */
#include "passes/rewrite.h"

#include <string.h>

struct reader {
    const char *at;
    struct pattern *out;
    struct names *names;
    struct text *why;
};

static void skip_space(struct reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
}

static bool fail(struct reader *reader, const char *what)
{
    text_printf(reader->why, "%s before \"%s\"", what, reader->at);
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool read_word(struct reader *reader, char word[32])
{
    size_t length = 0;
    while (is_letter(*reader->at) && length < 31)
        word[length++] = *reader->at++;
    word[length] = 0;
    return length > 0 || fail(reader, "a name is missing");
}

/* The name's index + 1; 0: too many names, or too long. */
static uint8_t name_index(struct names *names, const char *word)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (!strcmp(names->text[i], word))
            return (uint8_t)(i + 1);
    if (names->count == PATTERN_NAMES || strlen(word) > PATTERN_NAME_LENGTH)
        return 0;
    strcpy(names->text[names->count++], word);
    return (uint8_t)names->count;
}

static bool read_node(struct reader *reader, uint8_t *index);

static bool read_arguments(struct reader *reader, uint8_t index)
{
    reader->at++;
    for (;;) {
        struct pattern_node *node = &reader->out->nodes[index];
        uint8_t argument;
        skip_space(reader);
        if (*reader->at == ')') {
            reader->at++;
            return true;
        }
        if (node->count == PATTERN_ARGUMENTS)
            return fail(reader, "too many arguments");
        if (!read_node(reader, &argument))
            return false;
        reader->out->nodes[index].arguments[reader->out->nodes[index].count++] = argument;
        skip_space(reader);
        if (*reader->at == ',')
            reader->at++;
        else if (*reader->at != ')')
            return fail(reader, "a comma or a parenthesis is missing");
    }
}

static bool read_operator(struct reader *reader, uint8_t index)
{
    struct pattern_node *node = &reader->out->nodes[index];
    char word[32];
    if (!read_word(reader, word))
        return false;
    if (*reader->at == '=') {
        node->name = name_index(reader->names, word);
        reader->at++;
        if (!node->name)
            return fail(reader, "too many names");
        if (!read_word(reader, word))
            return false;
    }
    node->kind = PATTERN_OP;
    node->op = op_from_name(word);
    if (node->op == OP_NONE && strcmp(word, "Pointwise") != 0) {
        node->kind = PATTERN_NAMED;
        node->name = name_index(reader->names, word);
    }
    if (*reader->at == '+') {
        node->any_uses = true;
        reader->at++;
    }
    return *reader->at == '(' ? read_arguments(reader, index) : fail(reader, "arguments are missing");
}

static bool read_node(struct reader *reader, uint8_t *index)
{
    skip_space(reader);
    if (reader->out->count == PATTERN_NODES)
        return fail(reader, "the pattern is too large");
    *index = (uint8_t)reader->out->count++;
    struct pattern_node *node = &reader->out->nodes[*index];
    *node = (struct pattern_node){0};
    const char first = *reader->at;
    if (first != '?' && first != '#' && first != '$')
        return read_operator(reader, *index);
    node->kind = first == '?' ? PATTERN_VALUE : first == '#' ? PATTERN_CONSTANT : PATTERN_MADE;
    reader->at++;
    char word[32];
    if (!read_word(reader, word))
        return false;
    node->name = name_index(reader->names, word);
    return node->name != 0 || fail(reader, "too many names");
}

static bool read_pattern(const char *text, struct pattern *out, struct names *names, struct text *why)
{
    struct reader reader = {.at = text, .out = out, .names = names, .why = why};
    uint8_t root;
    out->count = 0;
    if (!read_node(&reader, &root))
        return false;
    out->root = root;
    skip_space(&reader);
    return !*reader.at || fail(&reader, "the end was expected");
}

bool rewrite_parse(const struct rewrite *row, struct parsed_rewrite *out, struct text *why)
{
    *out = (struct parsed_rewrite){.row = row};
    if (!read_pattern(row->pattern, &out->pattern, &out->names, why) ||
        !read_pattern(row->replacement, &out->replacement, &out->names, why))
        return false;
    if (out->pattern.nodes[out->pattern.root].kind == PATTERN_OP)
        return true;
    text_put(why, "the pattern's root is no operator");
    return false;
}

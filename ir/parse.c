/* Reads the text that print.c writes (grammar: docs/ir.md), and what a person writes in the same form: values
 * may have any name, types of results may be left out. One error ends the reading; it names the line. */
#include "ir/graph.h"

#include "ir/support/hash.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 1024, MAX_WORD = 64, MAX_NESTING = 64, MAX_RESULTS = 255 };

struct named_value {
    const char *name;
    value_id id;
};

struct parser {
    struct arena *arena;
    struct diagnostics *diagnostics;
    const struct blob_finder *blobs;
    struct graph *graph;
    const char *start, *at;
    struct named_value *slots; /* open addressing */
    uint32_t slot_count, named;
    VEC(struct named_value) words; /* symbols by number, and the values that hold them: defined later */
    bool failed;
};

static bool fail(struct parser *p, const char *expected)
{
    unsigned line = 1;
    for (const char *c = p->start; c < p->at; c++)
        line += *c == '\n';
    if (!p->failed)
        diag_error(p->diagnostics, DIAG_internal, NULL, "IR text, line %u: expected %s", line, expected);
    p->failed = true;
    return false;
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')
        p->at++;
}

static bool take(struct parser *p, const char *text)
{
    skip_space(p);
    const size_t length = strlen(text);
    if (strncmp(p->at, text, length) != 0)
        return false;
    if (isalpha((unsigned char)text[0]) && (isalnum((unsigned char)p->at[length]) || p->at[length] == '_'))
        return false;
    p->at += length;
    return true;
}

static bool need(struct parser *p, const char *text)
{
    return !p->failed && (take(p, text) || fail(p, text));
}

/* Letters, digits, underscore, prime and dot. */
static bool take_word(struct parser *p, char word[MAX_WORD])
{
    size_t length = 0;
    skip_space(p);
    while ((isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '\'' || *p->at == '.') &&
           length + 1 < MAX_WORD)
        word[length++] = *p->at++;
    word[length] = 0;
    return length > 0;
}

static bool need_int(struct parser *p, int64_t *value)
{
    skip_space(p);
    char *end;
    const long long number = strtoll(p->at, &end, 10);
    if (p->failed || end == p->at)
        return fail(p, "an integer");
    /* `0..5`: the dots are not part of the number */
    p->at = end;
    *value = number;
    return true;
}

static bool need_number(struct parser *p, double *value)
{
    skip_space(p);
    char *end;
    *value = strtod(p->at, &end);
    if (p->failed || end == p->at)
        return fail(p, "a number");
    p->at = end;
    return true;
}

static bool need_index(struct parser *p, uint32_t *value)
{
    int64_t number;
    if (!need_int(p, &number))
        return false;
    if (number < 0 || number > UINT32_MAX)
        return fail(p, "a number that is not negative");
    *value = (uint32_t)number;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "text" with text_quote's escapes, when one stands here. */
static const char *take_quoted(struct parser *p)
{
    skip_space(p);
    if (*p->at != '"')
        return NULL;
    struct text text;
    text_init(&text, p->arena);
    for (p->at++; *p->at && *p->at != '"'; p->at++) {
        char c = *p->at;
        if (c == '\\' && p->at[1] == 'x' && hex_digit(p->at[2]) >= 0 && hex_digit(p->at[3]) >= 0) {
            c = (char)(hex_digit(p->at[2]) * 16 + hex_digit(p->at[3]));
            p->at += 3;
        }
        text_append(&text, &c, 1);
    }
    if (*p->at)
        p->at++;
    (void)take(p, "...");
    return text.data;
}

/* ---- names of values
 * --------------------------------------------------------------------------------------------- */

static struct named_value *find_slot(struct parser *p, const char *name)
{
    uint64_t at = hash_bytes(0, name, strlen(name));
    while (p->slots[at % p->slot_count].name && strcmp(p->slots[at % p->slot_count].name, name) != 0)
        at++;
    return &p->slots[at % p->slot_count];
}

static bool name_value(struct parser *p, const char *name, value_id id)
{
    if ((p->named + 1) * 2 > p->slot_count) {
        struct named_value *old = p->slots;
        const uint32_t count = p->slot_count;
        p->slot_count = count ? count * 2 : 64;
        p->slots = arena_new_array(p->arena, struct named_value, p->slot_count);
        for (uint32_t i = 0; i < count; i++)
            if (old[i].name)
                *find_slot(p, old[i].name) = old[i];
    }
    struct named_value *slot = find_slot(p, name);
    if (slot->name)
        return fail(p, "a new value name");
    *slot = (struct named_value){arena_string(p->arena, name), id};
    p->named++;
    return true;
}

static bool need_value_name(struct parser *p, char word[MAX_WORD])
{
    return need(p, "%") && (take_word(p, word) || fail(p, "the name of a value"));
}

static bool need_value(struct parser *p, value_id *id)
{
    char word[MAX_WORD];
    if (take(p, "_")) {
        *id = 0;
        return true;
    }
    if (!need_value_name(p, word))
        return false;
    *id = p->slot_count ? find_slot(p, word)->id : 0;
    return *id != 0 || fail(p, "a value that is defined before its use");
}

/* ---- pieces
 * ------------------------------------------------------------------------------------------------------ */

/* Dims up to the closing character, which is taken. */
static bool need_dims(struct parser *p, const char *close, dim *dims, uint32_t limit, uint32_t *count)
{
    for (*count = 0; !take(p, close);) {
        if (*count && !need(p, ","))
            return false;
        if (*count == limit)
            return fail(p, "a shorter list");
        skip_space(p);
        if (take(p, "?"))
            dims[*count] = DIM_NONE;
        else if (!dim_parse(&p->graph->dims, &p->at, &dims[*count]))
            return fail(p, "a dim");
        ++*count;
    }
    return true;
}

static bool need_type(struct parser *p, struct tensor_type *type, const dim **contents,
                      uint32_t *content_count)
{
    char word[MAX_WORD];
    dim dims[MAX_CONTENTS];
    uint32_t count;
    if (p->failed || !take_word(p, word))
        return fail(p, "an element type");
    const enum dtype dtype = dtype_from_name(word);
    if (dtype == DTYPE_NONE && strcmp(word, "none") != 0)
        return fail(p, "an element type");
    if (!need(p, "["))
        return false;
    if (take(p, "*")) {
        *type = (struct tensor_type){.dtype = dtype, .rank = -1};
        return need(p, "]");
    }
    if (!need_dims(p, "]", dims, MAX_RANK, &count))
        return false;
    *type = tensor_type_new(p->graph->arena, dtype, (int)count, dims);
    if (take(p, "{")) {
        if (!need_dims(p, "}", dims, MAX_CONTENTS, &count))
            return false;
        *contents = arena_copy(p->graph->arena, dims, count * sizeof *dims);
        *content_count = count;
    }
    return true;
}

/* `; #3, #4`, or nothing. Other text behind a semicolon is a comment. */
static const struct location *take_place(struct parser *p, const char *op_type)
{
    struct location *first = NULL, **last = &first;
    while (*p->at == ' ')
        p->at++;
    if (*p->at != ';')
        return NULL;
    p->at++;
    while (*p->at == ' ' || *p->at == ',')
        p->at++;
    while (*p->at == '#' && isdigit((unsigned char)p->at[1])) {
        struct location *location = arena_new(p->graph->arena, struct location);
        char *end;
        *location = (struct location){.op_type = op_type, .domain = "", .name = "", .graph = ""};
        location->number = (uint32_t)strtoul(p->at + 1, &end, 10);
        *last = location;
        last = (struct location **)&location->also;
        p->at = end;
        while (*p->at == ' ' || *p->at == ',')
            p->at++;
    }
    while (*p->at && *p->at != '\n')
        p->at++;
    return first;
}

static bool need_attribute_list(struct parser *p, struct attribute *attribute)
{
    int64_t integers[MAX_LIST];
    double numbers[MAX_LIST];
    uint32_t count = 0;
    for (; !take(p, "]"); count++) {
        if (count == MAX_LIST)
            return fail(p, "a shorter list");
        if ((count && !need(p, ",")) ||
            !(attribute->kind == ATTR_INTS ? need_int(p, &integers[count]) : need_number(p, &numbers[count])))
            return false;
    }
    struct arena *arena = p->graph->arena;
    *attribute =
        attribute->kind == ATTR_INTS
            ? attribute_ints(attribute->name, count, arena_copy(arena, integers, count * sizeof *integers))
            : attribute_floats(attribute->name, count, arena_copy(arena, numbers, count * sizeof *numbers));
    return true;
}

static bool need_attribute(struct parser *p, const char *name, struct attribute *attribute)
{
    char word[MAX_WORD];
    *attribute = (struct attribute){.name = attribute_from_text(name)};
    attribute->kind = attribute_kind_of(attribute->name);
    if (attribute->name == ATTR_NONE)
        return fail(p, "the name of an attribute");
    if (!need(p, "="))
        return false;
    if (take(p, "{")) {
        dim dims[MAX_LIST];
        uint32_t count;
        if (!need_dims(p, "}", dims, MAX_LIST, &count))
            return false;
        *attribute =
            attribute_dims(attribute->name, count, arena_copy(p->graph->arena, dims, count * sizeof *dims));
        return true;
    }
    switch (attribute->kind) {
    case ATTR_INT:
        return need_int(p, &attribute->integer);
    case ATTR_FLOAT:
        return need_number(p, &attribute->number);
    case ATTR_INTS:
    case ATTR_FLOATS:
        return need(p, "[") && need_attribute_list(p, attribute);
    case ATTR_WORD:
        if (!take_word(p, word) || !(attribute->word = word_find(word)))
            return fail(p, "a word of the vocabulary");
        return true;
    case ATTR_DTYPE:
        if (!take_word(p, word) || dtype_from_name(word) == DTYPE_NONE)
            return fail(p, "an element type");
        attribute->integer = (int64_t)dtype_from_name(word);
        return true;
    case ATTR_DIMS:
        break;
    }
    return fail(p, "{");
}

/* ---- statements
 * -------------------------------------------------------------------------------------------------- */

static bool need_range(struct parser *p, struct symbol *symbol)
{
    const int64_t most = INT64_MAX >> 2;
    if (!need_int(p, &symbol->low) || !need(p, "..") || !need_int(p, &symbol->high))
        return false;
    symbol->hint = symbol->low;
    if (take(p, ", hint") && !need_int(p, &symbol->hint))
        return false;
    return (symbol->low <= symbol->high && symbol->low >= -most && symbol->high <= most) || fail(p, "a range");
}

static bool need_dim(struct parser *p, dim *d)
{
    skip_space(p);
    return !p->failed && (dim_parse(&p->graph->dims, &p->at, d) || fail(p, "a dim"));
}

static bool parse_word(struct parser *p, struct symbol *symbol)
{
    char word[MAX_WORD] = "";
    symbol->source = SYMBOL_WORD;
    if (!take(p, "_") && !need_value_name(p, word))
        return false;
    const struct named_value named = {arena_string(p->arena, word), p->graph->dims.symbols.count};
    if (*word)
        vec_push(p->arena, &p->words, named);
    return need_index(p, &symbol->axis) && need(p, ",") && need_range(p, symbol) && need(p, ",") &&
           need(p, "most") && need_dim(p, &symbol->bound);
}

static bool parse_input_symbol(struct parser *p, struct symbol *symbol)
{
    if (!need(p, "input") || !need_index(p, &symbol->input))
        return false;
    symbol->source = take(p, "value") ? SYMBOL_INPUT_VALUE : SYMBOL_INPUT_AXIS;
    if (symbol->source == SYMBOL_INPUT_AXIS && !need(p, "axis"))
        return false;
    return need_index(p, &symbol->axis) && need(p, ",") && need_range(p, symbol);
}

static bool parse_symbol(struct parser *p)
{
    struct symbol symbol = {.name = NULL};
    char word[MAX_WORD];
    if (!take_word(p, word) || word[0] != 's' ||
        strtoul(word + 1, NULL, 10) != (unsigned long)p->graph->dims.symbols.count)
        return fail(p, "the next symbol, in order");
    symbol.name = take_quoted(p);
    if (!need(p, ":"))
        return false;
    if (take(p, "word")) {
        if (!parse_word(p, &symbol))
            return false;
    } else if (take(p, "bound")) {
        symbol.source = SYMBOL_BOUND;
        if (!need_range(p, &symbol))
            return false;
    } else if (!parse_input_symbol(p, &symbol)) {
        return false;
    }
    dim_symbol(&p->graph->dims, &symbol);
    return true;
}

static bool parse_guard(struct parser *p)
{
    struct guard guard;
    if (!need_dim(p, &guard.left) || !need(p, "==") || !need_dim(p, &guard.right))
        return false;
    guard.location = take_place(p, NULL);
    vec_push(p->graph->arena, &p->graph->dims.guards, guard);
    return true;
}

static bool parse_merge(struct parser *p)
{
    dim symbol, replacement;
    if (!need_dim(p, &symbol) || !need(p, "=") || !need_dim(p, &replacement))
        return false;
    const struct dim_node *node = &p->graph->dims.nodes.items[symbol];
    if (node->op != DIM_SYMBOL)
        return fail(p, "a symbol");
    p->graph->dims.symbols.items[node->value].replacement = replacement;
    p->graph->dims.merges++;
    return true;
}

static bool parse_input(struct parser *p)
{
    char word[MAX_WORD];
    struct tensor_type type;
    const dim *contents = NULL;
    uint32_t count = 0;
    if (!need_value_name(p, word))
        return false;
    const char *name = take_quoted(p);
    if (!need(p, ":") || !need_type(p, &type, &contents, &count))
        return false;
    const value_id id = graph_add_input(p->graph, name, type);
    graph_value(p->graph, id)->contents = contents;
    graph_value(p->graph, id)->content_count = count;
    return name_value(p, word, id);
}

static bool parse_hex(struct parser *p, uint64_t length, struct blob **out)
{
    unsigned char *bytes = arena_alloc(p->graph->arena, (size_t)length);
    while (*p->at == ' ')
        p->at++;
    for (uint64_t i = 0; i < length; i++, p->at += 2) {
        const int high = hex_digit(p->at[0]), low = high < 0 ? -1 : hex_digit(p->at[1]);
        if (low < 0)
            return fail(p, "as many hex digits as the type has");
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    *out = arena_new(p->graph->arena, struct blob);
    **out = (struct blob){.kind = BLOB_MEMORY, .length = length, .bytes = bytes, .fd = -1};
    return !isalnum((unsigned char)*p->at) || fail(p, "the end of the line");
}

static bool parse_weight(struct parser *p)
{
    char word[MAX_WORD];
    struct tensor_type type;
    const dim *contents = NULL;
    uint32_t count = 0;
    int64_t elements;
    uint64_t length = 0;
    const struct blob *blob = NULL;
    if (!need_value_name(p, word))
        return false;
    const char *name = take_quoted(p);
    if (!need(p, ":") || !need_type(p, &type, &contents, &count))
        return false;
    if (!tensor_constant_sizes(&p->graph->dims, &type, NULL, &elements) ||
        !dtype_bytes(type.dtype, elements, &length))
        return fail(p, "constant dims");
    if (take(p, "zeros")) {
        struct blob *made = arena_new(p->graph->arena, struct blob);
        *made = (struct blob){.kind = BLOB_MEMORY, .length = length, .fd = -1};
        made->bytes = arena_alloc(p->graph->arena, (size_t)length);
        blob = made;
    } else if (take(p, "hex")) {
        struct blob *made = NULL;
        if (length > MAX_LIST || !parse_hex(p, length, &made))
            return fail(p, "hex digits");
        blob = made;
    } else {
        char *end;
        if (!need(p, "blob"))
            return false;
        const uint64_t hash = strtoull(p->at, &end, 16);
        if (end == p->at)
            return fail(p, "a hash");
        p->at = end;
        blob = p->blobs && p->blobs->find ? p->blobs->find(p->blobs->user, hash, length) : NULL;
        if (!blob)
            return fail(p, "a blob that is known");
    }
    const value_id id = graph_add_constant(p->graph, type, blob);
    graph_value(p->graph, id)->weight_name = name;
    return name_value(p, word, id);
}

static bool parse_region(struct parser *p, region_id region, int depth);

static bool parse_body(struct parser *p, node_id node, int depth)
{
    const region_id region = graph_add_region(p->graph, node);
    if (depth > MAX_NESTING)
        return fail(p, "less nesting");
    if (!need(p, "("))
        return false;
    while (!take(p, ")")) {
        char word[MAX_WORD];
        struct value value = {.kind = VALUE_ARGUMENT};
        if (p->graph->regions.items[region].arguments.count && !need(p, ","))
            return false;
        if (!need_value_name(p, word) || !need(p, ":") ||
            !need_type(p, &value.type, &value.contents, &value.content_count))
            return false;
        value.index = p->graph->regions.items[region].arguments.count;
        vec_push(p->graph->arena, &p->graph->values, value);
        vec_push(p->graph->arena, &p->graph->regions.items[region].arguments, p->graph->values.count - 1);
        if (!name_value(p, word, p->graph->values.count - 1))
            return false;
    }
    return need(p, "{") && parse_region(p, region, depth);
}

static bool parse_node(struct parser *p, region_id region, int depth)
{
    char names[MAX_RESULTS][MAX_WORD];
    value_id inputs[MAX_LIST];
    struct attribute attributes[ATTR_COUNT];
    char word[MAX_WORD];
    uint32_t outputs = 0, input_count = 0, attribute_count = 0;
    do {
        if (outputs == MAX_RESULTS)
            return fail(p, "fewer results");
        names[outputs][0] = 0;
        if (!take(p, "_") && !need_value_name(p, names[outputs]))
            return false;
        outputs++;
    } while (take(p, ","));
    if (!need(p, "=") || !take_word(p, word) || op_from_name(word) == OP_NONE)
        return fail(p, "an operator");
    const enum op op = op_from_name(word);
    if (!need(p, "("))
        return false;
    while (!take(p, ")")) {
        if (input_count == MAX_LIST)
            return fail(p, "fewer inputs");
        if ((input_count && !need(p, ",")) || !need_value(p, &inputs[input_count++]))
            return false;
    }
    while (*p->at == ' ')
        p->at++;
    while (isalpha((unsigned char)*p->at)) {
        if (attribute_count == ATTR_COUNT || !take_word(p, word) ||
            !need_attribute(p, word, &attributes[attribute_count++]))
            return fail(p, "an attribute");
        while (*p->at == ' ')
            p->at++;
    }
    const node_id node = graph_add_node(p->graph, region, 0, op, input_count, inputs, outputs,
                                        attribute_count, attributes, NULL);
    const bool typed = *p->at == ':' && take(p, ":");
    for (uint32_t i = 0; i < outputs; i++) {
        const value_id id = graph_node(p->graph, node)->outputs[i];
        struct value *value = graph_value(p->graph, id);
        if (typed && i && !need(p, ","))
            return false;
        if (!names[i][0]) {
            graph_node(p->graph, node)->outputs[i] = 0;
            if (typed && !need(p, "_"))
                return false;
            continue;
        }
        if ((typed && !need_type(p, &value->type, &value->contents, &value->content_count)) ||
            !name_value(p, names[i], id))
            return false;
    }
    graph_node(p->graph, node)->location = take_place(p, op_facts(op)->name);
    while (take(p, "body"))
        if (!parse_body(p, node, depth + 1))
            return false;
    return true;
}

static bool skip_comment(struct parser *p)
{
    skip_space(p);
    if (*p->at != ';')
        return false;
    while (*p->at && *p->at != '\n')
        p->at++;
    return true;
}

static bool parse_region(struct parser *p, region_id region, int depth)
{
    while (!p->failed) {
        value_id id;
        if (skip_comment(p))
            continue;
        if (take(p, "yield")) {
            skip_space(p);
            while (*p->at == '%' || *p->at == '_') {
                if (!need_value(p, &id))
                    return false;
                vec_push(p->graph->arena, &p->graph->regions.items[region].results, id);
                (void)take(p, ",");
                skip_space(p);
            }
            return need(p, "}");
        }
        if (!parse_node(p, region, depth))
            return false;
    }
    return false;
}

static bool parse_statement(struct parser *p)
{
    if (take(p, "dim"))
        return parse_symbol(p);
    if (take(p, "guard"))
        return parse_guard(p);
    if (take(p, "merge"))
        return parse_merge(p);
    if (take(p, "input"))
        return parse_input(p);
    if (take(p, "weight"))
        return parse_weight(p);
    if (take(p, "output")) {
        value_id id;
        if (!need_value(p, &id))
            return false;
        graph_add_output(p->graph, id, take_quoted(p));
        return true;
    }
    if (take(p, "alias")) {
        struct alias alias;
        if (!need_index(p, &alias.output) || !need(p, "=") || !need_index(p, &alias.input))
            return false;
        vec_push(p->graph->arena, &p->graph->aliases, alias);
        return true;
    }
    return parse_node(p, GRAPH_BODY, 0);
}

bool graph_parse(struct arena *arena, struct diagnostics *diagnostics, const char *text,
                 const struct blob_finder *blobs, struct graph **out)
{
    struct parser p = {.arena = arena, .diagnostics = diagnostics, .blobs = blobs, .start = text, .at = text};
    p.graph = graph_new(arena);
    while (skip_comment(&p))
        continue;
    if (!need(&p, "model"))
        return false;
    p.graph->producer = take_quoted(&p);
    if (!need(&p, "opset") || !need_int(&p, &p.graph->opset) || !need(&p, "{"))
        return false;
    while (!p.failed && !take(&p, "}"))
        if (!skip_comment(&p) && !parse_statement(&p))
            return false;
    for (uint32_t i = 0; i < p.words.count; i++) {
        const struct named_value *slot = p.slot_count ? find_slot(&p, p.words.items[i].name) : NULL;
        if (!slot || !slot->id)
            return fail(&p, "the value that holds a size");
        p.graph->dims.symbols.items[p.words.items[i].id].word = slot->id;
    }
    while (skip_comment(&p))
        continue;
    if (!p.failed && *p.at)
        fail(&p, "the end");
    *out = p.graph;
    return !p.failed;
}

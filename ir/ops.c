/* Facts of ops.def and attributes.def, and the vocabulary of word attributes. */
#include "ir/graph.h"

#include <string.h>

static const struct op_facts facts[OP_COUNT] = {
    [OP_NONE] = {"none", 0, 0, 0, 0, 0},
#define OP(name, least_inputs, most_inputs, least_outputs, most_outputs, traits, shape, definition)          \
    [OP_##name] = {#name, least_inputs, most_inputs, least_outputs, most_outputs, traits},
#include "ir/ops.def"
#undef OP
};

static const struct {
    const char *text;
    enum attribute_kind kind;
} attributes[ATTR_COUNT] = {
    [ATTR_NONE] = {"none", ATTR_INT},
#define ATTRIBUTE(name, kind) [ATTR_##name] = {#name, ATTR_##kind},
#include "ir/attributes.def"
#undef ATTRIBUTE
};

static const char *const words[] = {
    "none",
    "tanh",
    "NOTSET",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "DCR",
    "CRD",
    "constant",
    "reflect",
    "edge",
    "wrap",
    "nearest",
    "linear",
    "cubic",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
    "round_prefer_floor",
    "round_prefer_ceil",
    "floor",
    "ceil",
    "stretch",
    "not_larger",
    "not_smaller",
    "up",
    "down",
    "LEFT",
    "RIGHT",
    "add",
    "mul",
    "min",
    "max",
};

const struct op_facts *op_facts(enum op op)
{
    return &facts[(unsigned)op < OP_COUNT ? op : OP_NONE];
}

enum op op_from_name(const char *name)
{
    for (unsigned i = 1; i < OP_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0)
            return (enum op)i;
    return OP_NONE;
}

const char *attribute_text(enum attribute_name name)
{
    return attributes[(unsigned)name < ATTR_COUNT ? name : ATTR_NONE].text;
}

enum attribute_name attribute_from_text(const char *text)
{
    for (unsigned i = 1; i < ATTR_COUNT; i++)
        if (strcmp(attributes[i].text, text) == 0)
            return (enum attribute_name)i;
    return ATTR_NONE;
}

enum attribute_kind attribute_kind_of(enum attribute_name name)
{
    return attributes[(unsigned)name < ATTR_COUNT ? name : ATTR_NONE].kind;
}

const char *word_find(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], text) == 0)
            return words[i];
    return NULL;
}

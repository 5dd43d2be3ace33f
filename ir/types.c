/* Facts of dtypes.def as functions. */
#include "ir/types.h"

#include <string.h>

struct dtype_facts {
    const char *text;
    unsigned bits;
    enum dtype_class class;
};

static const struct dtype_facts facts[DTYPE_COUNT] = {
    [DTYPE_NONE] = {"none", 0, DTYPE_CLASS_OTHER},
#define DTYPE(name, number, text, bits, class) [DTYPE_##name] = {text, bits, DTYPE_CLASS_##class},
#include "ir/dtypes.def"
#undef DTYPE
};

static const struct dtype_facts *facts_of(enum dtype dtype)
{
    return (unsigned)dtype < DTYPE_COUNT && facts[dtype].text ? &facts[dtype] : &facts[DTYPE_NONE];
}

const char *dtype_name(enum dtype dtype)
{
    return facts_of(dtype)->text;
}

enum dtype dtype_from_name(const char *name)
{
    for (unsigned i = 1; i < DTYPE_COUNT; i++)
        if (facts[i].text && strcmp(facts[i].text, name) == 0)
            return (enum dtype)i;
    return DTYPE_NONE;
}

unsigned dtype_bits(enum dtype dtype)
{
    return facts_of(dtype)->bits;
}

enum dtype_class dtype_class(enum dtype dtype)
{
    return facts_of(dtype)->class;
}

bool dtype_is_float(enum dtype dtype)
{
    return dtype_class(dtype) == DTYPE_CLASS_FLOAT;
}

bool dtype_is_integer(enum dtype dtype)
{
    return dtype_class(dtype) == DTYPE_CLASS_INT || dtype_class(dtype) == DTYPE_CLASS_UINT;
}

bool dtype_bytes(enum dtype dtype, int64_t count, uint64_t *bytes)
{
    const uint64_t bits = dtype_bits(dtype);
    if (count < 0 || (bits && (uint64_t)count > (UINT64_MAX - 7) / bits))
        return false;
    *bytes = ((uint64_t)count * bits + 7) / 8;
    return true;
}

/* operators.def becomes arrays: one of attributes for each row, one of the rows. Rows of a domain stand in
 * the order of their names, so that a name is found by bisection. */
#include "frontend/operators.h"

#include <string.h>

#include "frontend/importer.h"

#define T_BOOL       DTYPES_BOOL
#define T_I64        DTYPE_BIT(I64)
#define T_INDEX      DTYPES_INDEX
#define T_STRING     DTYPE_BIT(STRING)
#define T_COMPLEX    (DTYPE_BIT(C64) | DTYPE_BIT(C128))
#define T_F32        DTYPE_BIT(F32)
#define T_FLOAT      (DTYPE_BIT(F16) | DTYPE_BIT(F32) | DTYPE_BIT(F64))
#define T_FLOAT_BF   DTYPES_FLOAT
#define T_WIDE       (T_FLOAT | DTYPE_BIT(I32) | DTYPE_BIT(I64) | DTYPE_BIT(U32) | DTYPE_BIT(U64))
#define T_WIDE_BF    (T_WIDE | DTYPE_BIT(BF16))
#define T_NUMBER_OLD (T_FLOAT | DTYPES_INTEGER)
#define T_NUMBER     DTYPES_NUMBER
#define T_ALL        (T_NUMBER_OLD | T_BOOL | T_STRING | T_COMPLEX)
#define T_ALL_BF     (T_ALL | DTYPE_BIT(BF16))
#define T_F8         (DTYPE_BIT(F8E4M3FN) | DTYPE_BIT(F8E4M3FNUZ) | DTYPE_BIT(F8E5M2) | DTYPE_BIT(F8E5M2FNUZ))
#define T_ALL_F8     (T_ALL_BF | T_F8)
#define T_ALL_4      (T_ALL_F8 | DTYPE_BIT(U4) | DTYPE_BIT(I4))
#define T_ALL_F4     (T_ALL_4 | DTYPE_BIT(F4E2M1))
#define T_ALL_E8     (T_ALL_F4 | DTYPE_BIT(F8E8M0))
#define T_ALL_2      (T_ALL_E8 | DTYPE_BIT(U2) | DTYPE_BIT(I2))
#define T_ALL_F6     (T_ALL_2 | DTYPE_BIT(F6E2M3) | DTYPE_BIT(F6E3M2))

#define INT(name, value)          {#name, ONNX_INT, ATTR_##name, false, true, value, 0, NULL},
#define INT_OPTIONAL(name)        {#name, ONNX_INT, ATTR_##name, false, false, 0, 0, NULL},
#define INT_REQUIRED(name)        {#name, ONNX_INT, ATTR_##name, true, false, 0, 0, NULL},
#define INTS(name)                {#name, ONNX_INTS, ATTR_##name, false, false, 0, 0, NULL},
#define INTS_REQUIRED(name)       {#name, ONNX_INTS, ATTR_##name, true, false, 0, 0, NULL},
#define FLOAT(name, value)        {#name, ONNX_FLOAT, ATTR_##name, false, true, 0, (double)value, NULL},
#define WORD(name, value)         {#name, ONNX_STRING, ATTR_##name, false, true, 0, 0, value},
#define WORD_REQUIRED(name)       {#name, ONNX_STRING, ATTR_##name, true, false, 0, 0, NULL},
#define DTYPE_NUMBER(name, value) {#name, ONNX_INT, ATTR_##name, false, true, value, 0, NULL},
#define DTYPE_REQUIRED(name)      {#name, ONNX_INT, ATTR_##name, true, false, 0, 0, NULL},
#define OTHER(name, type, need)   {#name, ONNX_##type, ATTR_NONE, NEED_##need, false, 0, 0, NULL},
#define NEED_REQUIRED             true
#define NEED_OPTIONAL             false

/* The last entry ends every list, so that none is empty. */
#define OPERATOR(name, since, i0, i1, o0, o1, types, op, function, attributes)                               \
    static const struct operator_attribute attributes_of_##name##_##since[] = {                              \
        attributes{NULL, ONNX_UNDEFINED, ATTR_NONE, false, false, 0, 0, NULL}};
#define MICROSOFT(name, since, i0, i1, o0, o1, types, op, function, attributes)                              \
    static const struct operator_attribute attributes_of_microsoft_##name##_##since[] = {                    \
        attributes{NULL, ONNX_UNDEFINED, ATTR_NONE, false, false, 0, 0, NULL}};
#define UNSUPPORTED(domain, name)
#include "frontend/operators.def"
#undef OPERATOR
#undef MICROSOFT
#undef UNSUPPORTED

#define ROW(domain, name, of, since, i0, i1, o0, o1, types, op, function)                                    \
    {domain,                                                                                                 \
     name,                                                                                                   \
     since,                                                                                                  \
     i0,                                                                                                     \
     i1,                                                                                                     \
     o0,                                                                                                     \
     o1,                                                                                                     \
     types,                                                                                                  \
     OP_##op,                                                                                                \
     import_##function,                                                                                      \
     attributes_of_##of##_##since,                                                                           \
     sizeof attributes_of_##of##_##since / sizeof *attributes_of_##of##_##since - 1},

static const struct operator_row rows[] = {
#define OPERATOR(name, since, i0, i1, o0, o1, types, op, function, attributes)                               \
    ROW("", #name, name, since, i0, i1, o0, o1, types, op, function)
#define MICROSOFT(name, since, i0, i1, o0, o1, types, op, function, attributes)                              \
    ROW("com.microsoft", #name, microsoft_##name, since, i0, i1, o0, o1, types, op, function)
#define UNSUPPORTED(domain, name)
#include "frontend/operators.def"
#undef OPERATOR
#undef MICROSOFT
#undef UNSUPPORTED
};

static const char *const standard[] = {
#define OPERATOR(name, since, i0, i1, o0, o1, types, op, function, attributes)
#define MICROSOFT(name, since, i0, i1, o0, o1, types, op, function, attributes)
#define UNSUPPORTED(domain, name) #name,
#include "frontend/operators.def"
#undef OPERATOR
#undef MICROSOFT
#undef UNSUPPORTED
};

enum { ROW_COUNT = sizeof rows / sizeof *rows, STANDARD_COUNT = sizeof standard / sizeof *standard };

const char *onnx_attribute_type_name(enum onnx_attribute_type type)
{
    static const char *const names[] = {
        "nothing", "a float",         "an integer",     "a string", "a tensor",
        "a graph", "floats",          "integers",       "strings",  "tensors",
        "graphs",  "a sparse tensor", "sparse tensors", "a type",   "types",
    };
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "of an unknown type";
}

/* By domain, then by name. */
static int compare_row(const struct operator_row *row, const char *domain, const char *name)
{
    const int order = strcmp(row->domain, domain);
    return order ? order : strcmp(row->name, name);
}

const struct operator_row *operator_find(const char *domain, const char *name, int64_t opset)
{
    uint32_t low = 0, high = ROW_COUNT; /* the first row that is not smaller */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_row(&rows[middle], domain, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct operator_row *found = NULL;
    for (; low < ROW_COUNT && !compare_row(&rows[low], domain, name) && rows[low].since <= opset; low++)
        found = &rows[low];
    return found;
}

bool operator_is_standard(const char *name)
{
    for (uint32_t i = 0; i < STANDARD_COUNT; i++)
        if (!strcmp(standard[i], name))
            return true;
    for (uint32_t i = 0; i < ROW_COUNT; i++)
        if (!*rows[i].domain && !strcmp(rows[i].name, name))
            return true;
    return false;
}

const struct operator_row *operator_row(uint32_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

/* The command ops: the operator table, one line a row. */
#include <inttypes.h>
#include <stdio.h>

#include "frontend/driver/driver.h"
#include "frontend/operators.h"

static void put_arity(struct text *line, unsigned least, unsigned most)
{
    if (most == ANY_NUMBER)
        text_printf(line, "%u or more", least);
    else if (least == most)
        text_printf(line, "%u", least);
    else
        text_printf(line, "%u to %u", least, most);
}

void command_ops(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    if (options->files.count) {
        diag_error(diagnostics, DIAG_bad_option, NULL, "ops takes no file");
        return;
    }
    const struct operator_row *row;
    printf("%-32s %-6s %-12s %-12s %s\n", "operator", "since", "inputs", "outputs",
           "element types of input 0");
    for (uint32_t i = 0; (row = operator_row(i)); i++) {
        struct text inputs, outputs, types;
        text_init(&inputs, arena);
        text_init(&outputs, arena);
        text_init(&types, arena);
        put_arity(&inputs, row->least_inputs, row->most_inputs);
        put_arity(&outputs, row->least_outputs, row->most_outputs);
        for (int dtype = 1; dtype < DTYPE_COUNT; dtype++)
            if (dtype < 32 && (row->types >> dtype & 1))
                text_printf(&types, "%s%s", types.length ? " " : "", dtype_name((enum dtype)dtype));
        struct text name;
        text_init(&name, arena);
        text_printf(&name, "%s%s%s", row->domain, *row->domain ? "." : "", row->name);
        printf("%-32s %-6" PRId64 " %-12s %-12s %s\n", name.data, row->since, inputs.data, outputs.data,
               types.data);
    }
}

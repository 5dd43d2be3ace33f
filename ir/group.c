/* The text form of groups: which nodes, which values stand behind the buffers, and the nests. For dumps and
 * tests; it is not read back. */
#include "ir/group.h"

static void print_values(const struct graph *graph, const struct group *group, enum buffer_role role,
                         struct text *out)
{
    const char *separator = "";
    text_put(out, "(");
    for (uint32_t b = 0; b < group->body.buffers.count; b++) {
        if (group->body.buffers.items[b].role != role)
            continue;
        const value_id value = group->values[b];
        text_put(out, separator);
        separator = ", ";
        if (!value)
            text_put(out, "temporary");
        else if (graph_value(graph, value)->kind == VALUE_CONSTANT)
            text_printf(out, "%%w%u", (unsigned)value);
        else
            text_printf(out, "%%%u", (unsigned)value);
    }
    text_put(out, ")");
}

/*   group (%1, %w3) -> (%9) {      # Conv #4, Relu #5
 *     ... the Definition ...
 *   } */
void group_print(const struct graph *graph, const struct group *group, struct text *out)
{
    text_put(out, "group ");
    print_values(graph, group, BUFFER_INPUT, out);
    text_put(out, " -> ");
    print_values(graph, group, BUFFER_OUTPUT, out);
    text_put(out, " {  #");
    for (uint32_t i = 0; i < group->nodes.count; i++) {
        const struct node *node = graph_node(graph, group->nodes.items[i]);
        text_printf(out, "%s%s #%u", i ? ", " : " ", op_facts(node->op)->name,
                    (unsigned)group->nodes.items[i]);
    }
    text_put(out, "\n");
    definition_print(&group->body, out);
    text_put(out, "}\n");
}

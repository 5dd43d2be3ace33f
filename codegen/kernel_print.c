/* Kernel IR as text (docs/kernel-ir.md). Equal text means an equal kernel: variables and memories go by
 * number, dims by their position among the parameters, so that the same kernel for other dims prints the
 * same. Within a statement, nodes that are used twice are named once: the text is as long as the kernel, not
 * as its expressions written out. */
#include "codegen/kernel_ir.h"

#include <string.h>

enum { MAX_PRINTED_DEPTH = 60 };

struct printer {
    const struct kernel *kernel;
    struct text *out;
    uint32_t *uses;  /* [node]: within this statement */
    uint32_t *names; /* [node]: number of its name within this statement, 0: none */
    uint32_t next_name;
    unsigned depth;  /* of statements */
    VEC(expr) order; /* nodes of this statement, arguments before users */
};

static void indent(struct printer *p)
{
    text_printf(p->out, "%*s", (int)(2 * p->depth + 2), "");
}

static void print_constant(struct text *out, const struct expr_node *node)
{
    uint64_t bits = (uint64_t)node->value;
    float single;
    double real;
    const uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&real, &bits, sizeof real);
    if (node->dtype == DTYPE_F32 && single == single)
        text_put_f32(out, single);
    else if (node->dtype == DTYPE_F64 && real == real)
        text_put_f64(out, real);
    else if (dtype_is_float(node->dtype))
        text_printf(out, "0x%llx", (unsigned long long)bits);
    else
        text_printf(out, "%lld", (long long)node->value);
    if (node->dtype != DTYPE_I64)
        text_printf(out, ":%s", dtype_name(node->dtype));
}

static void print_name(struct printer *p, const struct expr_node *node)
{
    text_put(p->out, expr_op_name(node->op));
    if (node->op == EXPR_CONVERT || node->op == EXPR_BITCAST)
        text_printf(p->out, ".%s", dtype_name(node->dtype));
    if (node->op == EXPR_LANE || node->op == EXPR_SHUFFLE_XOR)
        text_printf(p->out, ".%lld", (long long)node->value);
    if (node->lanes > 1)
        text_printf(p->out, ".x%u", (unsigned)node->lanes);
}

static void print_operand(struct printer *p, expr e);

static void print_node(struct printer *p, const struct expr_node *node)
{
    switch (node->op) {
    case EXPR_CONSTANT:
        print_constant(p->out, node);
        return;
    case EXPR_DIM:
        text_printf(p->out, "d%u", (unsigned)kernel_dim_position(p->kernel, (dim)node->value));
        return;
    case EXPR_COMPUTED:
        text_printf(p->out, "d%lld", (long long)(p->kernel->dims.count + node->value));
        return;
    case EXPR_WORD:
        text_printf(p->out, "w%lld", (long long)node->value);
        return;
    case EXPR_VARIABLE:
        text_printf(p->out, "v%lld", (long long)node->value);
        return;
    case EXPR_THREAD_INDEX:
    case EXPR_BLOCK_INDEX:
        text_printf(p->out, "%s.%c", expr_op_name(node->op), "xyz"[node->value]);
        return;
    case EXPR_ELEMENT:
        text_printf(p->out, "m%lld[", (long long)node->value);
        print_operand(p, node->arguments[0]);
        text_put(p->out, "]");
        if (node->lanes > 1)
            text_printf(p->out, ".x%u", (unsigned)node->lanes);
        return;
    default:
        break;
    }
    print_name(p, node);
    if (node->op == EXPR_ELEMENT_OR)
        text_printf(p->out, ".m%lld", (long long)node->value);
    text_put(p->out, "(");
    for (uint32_t i = 0; i < node->count; i++) {
        text_put(p->out, i ? ", " : "");
        print_operand(p, node->arguments[i]);
    }
    text_put(p->out, ")");
}

static void print_operand(struct printer *p, expr e)
{
    if (p->names[e])
        text_printf(p->out, "t%u", (unsigned)p->names[e]);
    else
        print_node(p, expr_at(p->kernel->pool, e));
}

/* Nodes below `root`, arguments first, with their uses and the height of what is not named. A node is named
 * when it is used twice or stands on too high a tree, so that print_operand's recursion is bounded. */
static void collect(struct printer *p, expr root)
{
    const struct exprs *pool = p->kernel->pool;
    struct arena *arena = p->out->arena;
    struct visit {
        expr e;
        uint32_t next;
    };
    VEC(struct visit) stack = {0};
    if (p->uses[root]++)
        return;
    const struct visit first = {.e = root};
    vec_push(arena, &stack, first);
    while (stack.count) {
        struct visit *top = &stack.items[stack.count - 1];
        const struct expr_node *node = expr_at(pool, top->e);
        if (top->next == node->count) {
            vec_push(arena, &p->order, top->e);
            stack.count--;
            continue;
        }
        const struct visit child = {.e = node->arguments[top->next++]};
        if (!p->uses[child.e]++)
            vec_push(arena, &stack, child);
    }
}

/* Prints the names that the roots need and leaves the printer ready for print_operand. */
static void begin_statement(struct printer *p, uint32_t count, const expr *roots)
{
    const struct exprs *pool = p->kernel->pool;
    p->order.count = 0;
    p->next_name = 0;
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            collect(p, roots[i]);
    uint32_t *heights = arena_new_array(p->out->arena, uint32_t, p->order.count + 1);
    for (uint32_t i = 0; i < p->order.count; i++) {
        const expr e = p->order.items[i];
        const struct expr_node *node = expr_at(pool, e);
        uint32_t height = 0;
        for (uint32_t k = 0; k < node->count; k++)
            if (!p->names[node->arguments[k]] && heights[p->uses[node->arguments[k]]] >= height)
                height = heights[p->uses[node->arguments[k]]] + 1;
        const bool named = node->count && (p->uses[e] > 1 || height >= MAX_PRINTED_DEPTH);
        if (named) {
            const uint32_t name = ++p->next_name;
            indent(p);
            text_printf(p->out, "t%u = ", (unsigned)name);
            print_node(p, node);
            text_put(p->out, "\n");
            p->names[e] = name;
        }
        /* From here on only the height matters: the count of uses makes room for its place. */
        heights[i] = named ? 0 : height;
        p->uses[e] = i;
    }
}

static void end_statement(struct printer *p)
{
    for (uint32_t i = 0; i < p->order.count; i++)
        p->uses[p->order.items[i]] = p->names[p->order.items[i]] = 0;
}

static void print_list(struct printer *p, const struct statement_list *list);

static void print_body(struct printer *p, const struct statement_list *list)
{
    text_put(p->out, " {\n");
    p->depth++;
    print_list(p, list);
    p->depth--;
    indent(p);
    text_put(p->out, "}");
}

static void print_for(struct printer *p, const struct statement *s)
{
    static const char *const kinds[] = {"for", "unroll", "vectorise", "parallel"};
    const expr roots[] = {s->begin, s->end, s->step};
    begin_statement(p, 3, roots);
    indent(p);
    text_printf(p->out, "%s v%u = ", kinds[s->loop], (unsigned)s->variable);
    print_operand(p, s->begin);
    text_put(p->out, " .. ");
    print_operand(p, s->end);
    text_put(p->out, " step ");
    print_operand(p, s->step);
    end_statement(p);
    print_body(p, &s->body);
    text_put(p->out, "\n");
}

static void print_if(struct printer *p, const struct statement *s)
{
    begin_statement(p, 1, &s->value);
    indent(p);
    text_put(p->out, "if ");
    print_operand(p, s->value);
    end_statement(p);
    print_body(p, &s->body);
    if (s->otherwise.first) {
        text_put(p->out, " else");
        print_body(p, &s->otherwise);
    }
    text_put(p->out, "\n");
}

static void print_set_condition(struct printer *p, const struct statement *s)
{
    begin_statement(p, 1, &s->value);
    indent(p);
    text_printf(p->out, "condition m%u = ", (unsigned)s->memory);
    print_operand(p, s->value);
    text_put(p->out, "\n");
    end_statement(p);
}

static void print_declare(struct printer *p, const struct statement *s)
{
    const struct kernel_variable *v = &p->kernel->variables.items[s->variable];
    begin_statement(p, 1, &s->value);
    indent(p);
    if (s->kind == STATEMENT_DECLARE) {
        text_printf(p->out, "%s v%u : %s", v->mutable ? "var" : "let", (unsigned)s->variable,
                    dtype_name(v->dtype));
        if (v->lanes > 1)
            text_printf(p->out, "x%u", (unsigned)v->lanes);
        text_put(p->out, " = ");
    } else {
        text_printf(p->out, "v%u = ", (unsigned)s->variable);
    }
    print_operand(p, s->value);
    text_put(p->out, "\n");
    end_statement(p);
}

static void print_store(struct printer *p, const struct statement *s)
{
    const expr roots[] = {s->index, s->value};
    begin_statement(p, 2, roots);
    indent(p);
    text_printf(p->out, "m%u[", (unsigned)s->memory);
    print_operand(p, s->index);
    text_put(p->out, s->asynchronous ? "] <- " : "] = ");
    print_operand(p, s->value);
    text_put(p->out, "\n");
    end_statement(p);
}

static void print_stage(struct printer *p, const struct statement *s)
{
    const struct stage *stage = stage_row(s->stage);
    const size_t count = strlen(stage->operands);
    expr *roots = arena_new_array(p->out->arena, expr, count + 1);
    for (size_t i = 0; i < count; i++)
        roots[i] = s->operands[i].value;
    begin_statement(p, (uint32_t)count, roots);
    indent(p);
    text_printf(p->out, "stage %s<", stage->name);
    for (uint32_t i = 0; i < stage->constants; i++)
        text_printf(p->out, "%s%lld", i ? ", " : "", (long long)s->constants[i]);
    text_put(p->out, ">(");
    for (size_t i = 0; i < count; i++) {
        const struct stage_operand *operand = &s->operands[i];
        text_put(p->out, i ? ", " : "");
        if (stage->operands[i] == 'v')
            text_printf(p->out, "v%u", (unsigned)operand->variable);
        else if (strchr("gsrRmbt", stage->operands[i]))
            text_printf(p->out, operand->value ? "m%u[" : "m%u", (unsigned)operand->memory);
        if (operand->value)
            print_operand(p, operand->value);
        if (operand->value && strchr("gs", stage->operands[i]))
            text_put(p->out, "]");
    }
    text_put(p->out, ")\n");
    end_statement(p);
}

static void print_list(struct printer *p, const struct statement_list *list)
{
    for (const struct statement *s = list->first; s; s = s->next) {
        switch (s->kind) {
        case STATEMENT_DECLARE:
        case STATEMENT_ASSIGN:
            print_declare(p, s);
            break;
        case STATEMENT_FOR:
            print_for(p, s);
            break;
        case STATEMENT_IF:
            print_if(p, s);
            break;
        case STATEMENT_STORE:
            print_store(p, s);
            break;
        case STATEMENT_BARRIER:
            indent(p);
            text_put(p->out, "barrier\n");
            break;
        case STATEMENT_COMMIT:
            indent(p);
            text_put(p->out, "commit\n");
            break;
        case STATEMENT_WAIT:
            indent(p);
            text_printf(p->out, "wait %u\n", (unsigned)s->batches);
            break;
        case STATEMENT_SET_CONDITION:
            print_set_condition(p, s);
            break;
        case STATEMENT_STAGE:
            print_stage(p, s);
            break;
        case STATEMENT_COMMENT:
            indent(p);
            text_printf(p->out, "# %s\n", s->text);
            break;
        }
    }
}

static void print_memory(const struct kernel_memory *memory, uint32_t number, struct text *out)
{
    static const char *const spaces[] = {"global",     "shared",   "register", "scratch",
                                         "tensor_map", "mbarrier", "barrier"};
    text_printf(out, "  %s m%u : %s", spaces[memory->space], (unsigned)number, dtype_name(memory->dtype));
    if (memory->lanes > 1)
        text_printf(out, "x%u", (unsigned)memory->lanes);
    if (memory->space == MEMORY_GLOBAL)
        text_printf(out, "%s%s%s", memory->read ? " read" : "", memory->written ? " written" : "",
                    memory->in_place ? " in_place" : "");
    else
        text_printf(out, "[%lld]", (long long)memory->count);
    if (memory->alignment)
        text_printf(out, " aligned %u", (unsigned)memory->alignment);
    text_printf(out, " \"%s\"\n", memory->label ? memory->label : "");
}

static void print_tensor_map(const struct dims *dims, const struct kernel_tensor_map *map, struct text *out)
{
    text_printf(out, "  m%u shows m%u as [", (unsigned)map->memory, (unsigned)map->buffer);
    for (uint32_t i = 0; i < map->rank; i++) {
        text_put(out, i ? ", " : "");
        dim_print(dims, map->sizes[i], out);
        text_put(out, " by ");
        dim_print(dims, map->strides[i], out);
    }
    text_put(out, "], boxes of ");
    for (uint32_t i = 0; i < map->rank; i++)
        text_printf(out, "%s%u", i ? "x" : "", (unsigned)map->box[i]);
    text_printf(out, ", swizzle %u\n", (unsigned)map->swizzle);
}

void kernel_print(const struct kernel *kernel, struct text *out)
{
    const struct exprs *pool = kernel->pool;
    struct printer printer = {
        .kernel = kernel,
        .out = out,
        .uses = arena_new_array(out->arena, uint32_t, pool->nodes.count),
        .names = arena_new_array(out->arena, uint32_t, pool->nodes.count),
    };
    text_printf(out, "kernel %s (%s) dims %u", kernel->strategy ? kernel->strategy : "",
                kernel->config ? kernel->config : "", (unsigned)kernel->dims.count);
    const bool cuda = kernel->block[0] != 1 || kernel->block[1] != 1 || kernel->block[2] != 1;
    if (cuda) {
        text_put(out, " grid(");
        for (int i = 0; i < 3; i++) {
            text_put(out, i ? ", " : "");
            dim_print(pool->dims, kernel->grid[i], out);
        }
        text_printf(out, ") block(%u, %u, %u) index %u", (unsigned)kernel->block[0],
                    (unsigned)kernel->block[1], (unsigned)kernel->block[2], (unsigned)kernel->index_bits);
        if (kernel->min_blocks)
            text_printf(out, " min_blocks %u", (unsigned)kernel->min_blocks);
        if (kernel->condition) {
            text_put(out, " if ");
            dim_print(pool->dims, kernel->condition, out);
        }
    }
    text_put(out, " {\n");
    for (uint32_t i = 0; i < kernel->memories.count; i++)
        print_memory(&kernel->memories.items[i], i, out);
    for (uint32_t i = 0; i < kernel->tensor_maps.count; i++)
        print_tensor_map(pool->dims, &kernel->tensor_maps.items[i], out);
    for (uint32_t i = 0; i < kernel->words.count; i++)
        text_printf(out, "  word w%u : %s[%u]\n", (unsigned)i, dtype_name(kernel->words.items[i].dtype),
                    (unsigned)kernel->words.items[i].element);
    printer.depth = 0;
    for (uint32_t i = 0; i < kernel->computed.count; i++) {
        const expr value = kernel->computed.items[i].value;
        begin_statement(&printer, 1, &value);
        text_printf(out, "  d%u = ", (unsigned)(kernel->dims.count + i));
        print_operand(&printer, value);
        text_put(out, "\n");
        end_statement(&printer);
    }
    print_list(&printer, &kernel->body);
    text_put(out, "}\n");
}

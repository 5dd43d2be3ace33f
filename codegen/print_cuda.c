/* Kernel IR as CUDA C: one kernel a call, header-free, without a byte of the model's text. Reads only the
 * kernel. */
#include <inttypes.h>
#include <string.h>

#include "codegen/print_cuda_internal.h"
#include "codegen/printers.h"

enum { LARGEST_STATIC_SHARED = 48 * 1024 };

/* ---- which i64 variables may be wide
 * ------------------------------------------------------------------------------ */

static bool widen_list(struct cuda_printer *p, const struct statement_list *list)
{
    bool changed = false;
    for (const struct statement *s = list->first; s; s = s->next) {
        if ((s->kind == STATEMENT_DECLARE || s->kind == STATEMENT_ASSIGN) && !p->wide_variable[s->variable] &&
            p->kernel->variables.items[s->variable].dtype == DTYPE_I64 && !cuda_is_index(p, s->value)) {
            p->wide_variable[s->variable] = true;
            changed = true;
        }
        changed |= widen_list(p, &s->body);
        changed |= widen_list(p, &s->otherwise);
    }
    return changed;
}

static void find_wide_variables(struct cuda_printer *p)
{
    do
        memset(p->index, -1, p->kernel->pool->nodes.count);
    while (widen_list(p, &p->kernel->body));
}

/* ---- statements
 * ---------------------------------------------------------------------------------------------------- */

static void put_list(struct cuda_printer *p, const struct statement_list *list);

/* A scope: names that it takes are free again behind it. */
static void put_block(struct cuda_printer *p, const struct statement_list *list)
{
    const uint32_t taken = p->taken.count;
    text_put(p->out, " {\n");
    p->depth++;
    put_list(p, list);
    p->depth--;
    cuda_indent(p);
    text_put(p->out, "}");
    p->taken.count = taken;
}

static void name_variable(struct cuda_printer *p, uint32_t variable)
{
    const char *label = p->kernel->variables.items[variable].label;
    p->variables[variable] = cuda_new_name(p, label ? label : "v");
}

static void put_type(struct cuda_printer *p, uint32_t number)
{
    const struct kernel_variable *variable = &p->kernel->variables.items[number];
    if (variable->lanes > 1)
        text_printf(p->out, "%sx%u ", dtype_name(variable->dtype), (unsigned)variable->lanes);
    else if (variable->dtype == DTYPE_I64 && p->kernel->index_bits == 32 && !p->wide_variable[number])
        text_put(p->out, "int ");
    else
        text_printf(p->out, "%s ", cuda_value_type(variable->dtype));
}

static void put_declare(struct cuda_printer *p, const struct statement *s)
{
    cuda_begin_statement(p, 1, &s->value);
    cuda_indent(p);
    text_put(p->out, p->kernel->variables.items[s->variable].mutable ? "" : "const ");
    put_type(p, s->variable);
    struct text value, *out = p->out;
    text_init(&value, out->arena); /* the name is not yet visible in the value */
    p->out = &value;
    cuda_put_declaration_value(p, s->value);
    p->out = out;
    name_variable(p, s->variable);
    text_printf(p->out, "%s = %s;\n", p->variables[s->variable], value.data);
    cuda_end_statement(p);
}

/* v = v + x as v += x, where C's own addition serves. */
static void put_assign(struct cuda_printer *p, const struct statement *s)
{
    const struct expr_node *value = expr_at(p->kernel->pool, s->value);
    const bool plain = dtype_is_float(value->dtype) || cuda_is_narrow(p, s->value);
    expr added = 0;
    if (value->op == EXPR_ADD && plain) {
        const struct expr_node *left = expr_at(p->kernel->pool, value->arguments[0]);
        if (left->op == EXPR_VARIABLE && left->value == s->variable)
            added = value->arguments[1];
    }
    const expr root = added ? added : s->value;
    cuda_begin_statement(p, 1, &root);
    cuda_indent(p);
    text_printf(p->out, "%s %s ", p->variables[s->variable], added ? "+=" : "=");
    cuda_put_expr(p, root, CUDA_ANY);
    text_put(p->out, ";\n");
    cuda_end_statement(p);
}

static void put_for(struct cuda_printer *p, const struct statement *s)
{
    const expr roots[] = {s->begin, s->end, s->step};
    int64_t step = 0;
    cuda_begin_statement(p, 3, roots);
    if (s->loop == LOOP_UNROLL) {
        cuda_indent(p);
        text_put(p->out, "#pragma unroll\n");
    }
    cuda_indent(p);
    const uint32_t taken = p->taken.count;
    name_variable(p, s->variable);
    p->unrolled[s->variable] = s->loop == LOOP_UNROLL;
    const char *name = p->variables[s->variable];
    text_printf(p->out, "for (%s %s = ", p->kernel->index_bits == 32 ? "int" : "long long", name);
    cuda_put_expr(p, s->begin, CUDA_ANY);
    text_printf(p->out, "; %s < ", name);
    cuda_put_expr(p, s->end, CUDA_RELATION + 1);
    text_put(p->out, "; ");
    if (expr_constant_int(p->kernel->pool, s->step, &step) && step == 1) {
        text_printf(p->out, "++%s", name);
    } else {
        text_printf(p->out, "%s += ", name);
        cuda_put_expr(p, s->step, CUDA_ANY);
    }
    text_put(p->out, ")");
    cuda_end_statement(p);
    put_block(p, &s->body);
    text_put(p->out, "\n");
    p->taken.count = taken;
}

static void put_if(struct cuda_printer *p, const struct statement *s)
{
    cuda_begin_statement(p, 1, &s->value);
    cuda_indent(p);
    text_put(p->out, "if (");
    cuda_put_expr(p, s->value, CUDA_ANY);
    text_put(p->out, ")");
    cuda_end_statement(p);
    put_block(p, &s->body);
    if (s->otherwise.first) {
        text_put(p->out, " else");
        put_block(p, &s->otherwise);
    }
    text_put(p->out, "\n");
}

/* copy_async_16(&tile[i], &x[j]), or with a condition under which else zeros are written. */
static void put_copy(struct cuda_printer *p, const struct statement *s)
{
    const struct expr_node *value = expr_at(p->kernel->pool, s->value);
    const bool guarded = value->op == EXPR_ELEMENT_OR;
    const expr index = value->arguments[guarded];
    const expr roots[] = {s->index, index, guarded ? value->arguments[0] : 0};
    cuda_begin_statement(p, 3, roots);
    cuda_indent(p);
    text_printf(p->out, "copy_async_%u%s(&%s[", dtype_bits(value->dtype) / 8 * value->lanes,
                guarded ? "_or_zero" : "", p->memories[s->memory]);
    cuda_put_expr(p, s->index, CUDA_ANY);
    text_printf(p->out, "], &%s[", p->memories[value->value]);
    cuda_put_expr(p, index, CUDA_ANY);
    text_put(p->out, "]");
    if (guarded) {
        text_put(p->out, ", ");
        cuda_put_expr(p, value->arguments[0], CUDA_ANY);
    }
    text_put(p->out, ");\n");
    cuda_end_statement(p);
}

static void put_store(struct cuda_printer *p, const struct statement *s)
{
    const struct expr_node *value = expr_at(p->kernel->pool, s->value);
    const expr roots[] = {s->index, s->value};
    if (s->asynchronous) {
        put_copy(p, s);
        return;
    }
    cuda_begin_statement(p, 2, roots);
    cuda_indent(p);
    if (value->lanes > 1)
        text_printf(p->out, "*(%sx%u *)&", dtype_name(value->dtype), (unsigned)value->lanes);
    text_printf(p->out, "%s[", p->memories[s->memory]);
    cuda_put_expr(p, s->index, CUDA_ANY);
    text_put(p->out, "] = ");
    cuda_put_expr(p, s->value, CUDA_ANY);
    text_put(p->out, ";\n");
    cuda_end_statement(p);
}

static void put_line(struct cuda_printer *p, const char *line)
{
    cuda_indent(p);
    text_printf(p->out, "%s\n", line);
}

static void put_set_condition(struct cuda_printer *p, const struct statement *s)
{
    cuda_begin_statement(p, 1, &s->value);
    cuda_indent(p);
    text_put(p->out, "cudaGraphSetConditional((unsigned long long)");
    text_put(p->out, p->memories[s->memory]);
    text_put(p->out, ", ");
    cuda_put_expr(p, s->value, CUDA_ANY);
    text_put(p->out, ");\n");
    cuda_end_statement(p);
}

/* Named barriers are numbered from 1 on: 0 is the whole block's. */
static uint32_t barrier_number(const struct kernel *kernel, uint32_t memory)
{
    uint32_t number = 1;
    for (uint32_t i = 0; i < memory; i++)
        number += kernel->memories.items[i].space == MEMORY_BARRIER;
    return number;
}

static void put_operand(struct cuda_printer *p, char letter, const struct stage_operand *operand)
{
    switch (letter) {
    case 'g':
    case 's':
        text_printf(p->out, operand->value ? "&%s[" : "%s", p->memories[operand->memory]);
        if (operand->value) {
            cuda_put_expr(p, operand->value, CUDA_ANY);
            text_put(p->out, "]");
        }
        return;
    case 'r':
    case 'R':
    case 'm':
    case 't':
        text_put(p->out, p->memories[operand->memory]);
        return;
    case 'b':
        text_printf(p->out, "%" PRIu32 ", %" PRId64, barrier_number(p->kernel, operand->memory),
                    p->kernel->memories.items[operand->memory].count);
        return;
    case 'v':
        text_put(p->out, p->variables[operand->variable]);
        return;
    default:
        if (letter == 'i' && !cuda_is_narrow(p, operand->value)) {
            text_put(p->out, "(int)");
            cuda_put_expr(p, operand->value, CUDA_PRIMARY);
        } else {
            cuda_put_expr(p, operand->value, CUDA_ANY);
        }
        return;
    }
}

static void put_stage(struct cuda_printer *p, const struct statement *s)
{
    const struct stage *stage = stage_row(s->stage);
    const size_t count = strlen(stage->operands);
    expr *roots = arena_new_array(p->out->arena, expr, count + 1);
    for (size_t i = 0; i < count; i++)
        roots[i] = s->operands[i].value;
    cuda_begin_statement(p, (uint32_t)count, roots);
    cuda_indent(p);
    text_put(p->out, stage->name);
    for (uint32_t i = 0; i < stage->constants; i++)
        text_printf(p->out, "%s%" PRId64 "%s", i ? ", " : "<", s->constants[i],
                    i + 1 == stage->constants ? ">" : "");
    text_put(p->out, "(");
    for (size_t i = 0; i < count; i++) {
        text_put(p->out, i ? ", " : "");
        put_operand(p, stage->operands[i], &s->operands[i]);
    }
    text_put(p->out, ");\n");
    cuda_end_statement(p);
}

static void put_list(struct cuda_printer *p, const struct statement_list *list)
{
    for (const struct statement *s = list->first; s; s = s->next)
        switch (s->kind) {
        case STATEMENT_DECLARE:
            put_declare(p, s);
            break;
        case STATEMENT_ASSIGN:
            put_assign(p, s);
            break;
        case STATEMENT_FOR:
            put_for(p, s);
            break;
        case STATEMENT_IF:
            put_if(p, s);
            break;
        case STATEMENT_STORE:
            put_store(p, s);
            break;
        case STATEMENT_BARRIER:
            put_line(p, "__syncthreads();");
            break;
        case STATEMENT_COMMIT:
            put_line(p, "commit_copies();");
            break;
        case STATEMENT_WAIT:
            put_line(p, arena_printf(p->out->arena, "wait_copies<%u>();", (unsigned)s->batches));
            break;
        case STATEMENT_SET_CONDITION:
            put_set_condition(p, s);
            break;
        case STATEMENT_STAGE:
            put_stage(p, s);
            break;
        case STATEMENT_COMMENT:
            put_line(p, arena_printf(p->out->arena, "// %s", s->text));
            break;
        }
}

/* ---- the kernel
 * ---------------------------------------------------------------------------------------------------- */

/* The nodes by number and, where it is one of our own operators, name. */
static void put_nodes(const struct kernel *kernel, struct text *out)
{
    enum { MOST = 12 };
    unsigned count = 0;
    for (const struct location *at = kernel->location; at; at = at->also, count++) {
        if (count >= MOST)
            continue;
        enum op op = at->op_type ? op_from_name(at->op_type) : OP_NONE;
        text_printf(out, "%s#%" PRIu32 "%s%s", count ? ", " : "// Nodes: ", at->number, op ? " " : "",
                    op ? op_facts(op)->name : "");
    }
    if (count > MOST)
        text_printf(out, " and %u more", count - MOST);
    text_put(out, count ? ".\n" : "");
}

/* "// Reads x f32[s0, 64], w f32[64, 64]; writes out f32[s0, 64]." over as many lines as that takes. */
static void put_buffers(const struct cuda_printer *p)
{
    enum { WIDEST = 118 };
    const struct kernel *kernel = p->kernel;
    size_t line = p->out->length;
    for (int written = 0; written < 2; written++) {
        bool first = true;
        for (uint32_t i = 0; i < kernel->global_count; i++) {
            const struct kernel_memory *memory = &kernel->memories.items[i];
            if (memory->written != (written != 0) || !memory->shape)
                continue;
            const char *item = arena_printf(p->out->arena, "%s %s%s", p->memories[i],
                                            dtype_name(memory->dtype), memory->shape);
            const char *lead = !first                   ? ", "
                               : !written               ? "// Reads "
                               : p->out->length == line ? "// Writes "
                                                        : "; writes ";
            if (!first && p->out->length - line + strlen(item) > WIDEST) {
                text_put(p->out, ",\n");
                line = p->out->length;
                lead = "//     ";
            }
            text_printf(p->out, "%s%s", lead, item);
            first = false;
        }
    }
    text_put(p->out, p->out->length == line ? "" : ".\n");
}

static void put_comment(const struct cuda_printer *p, const struct machine *machine)
{
    const struct kernel *kernel = p->kernel;
    const struct dims *dims = kernel->pool->dims;
    if (kernel->summary)
        text_printf(p->out, "// %s\n", kernel->summary);
    put_nodes(kernel, p->out);
    put_buffers(p);
    if (kernel->bytes && kernel->operations) {
        double bytes = (double)dim_hint(dims, kernel->bytes),
               operations = (double)dim_hint(dims, kernel->operations);
        double memory = bytes / machine->memory_bytes_per_second,
               compute = operations / machine->fp32_per_second;
        text_printf(p->out,
                    "// At the planned dims: %.0f bytes, %.0f operations; no less than %.2f us on %s (%s).\n",
                    bytes, operations, 1e6 * (memory > compute ? memory : compute), machine->name,
                    memory > compute ? "memory" : "arithmetic");
    }
    text_printf(p->out, "// Strategy %s%s%s.\n", kernel->strategy,
                kernel->config && kernel->config[0] ? ": " : "", kernel->config ? kernel->config : "");
}

static void put_parameters(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    for (uint32_t i = 0; i < kernel->global_count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        text_printf(p->out, "%s%s%s *%s%s", i ? ", " : "", memory->written ? "" : "const ",
                    cuda_storage_type(memory->dtype), memory->in_place ? "" : "__restrict__ ",
                    p->memories[i]);
    }
    for (uint32_t i = 0; i < kernel->words.count; i++)
        text_printf(p->out, ", const %s *__restrict__ %s", cuda_storage_type(kernel->words.items[i].dtype),
                    p->words[i]);
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        text_printf(p->out, "%s%s %s", i || kernel->global_count ? ", " : "",
                    kernel->index_bits == 32 ? "int" : "long long", p->dims[i]);
    for (uint32_t i = 0; i < kernel->tensor_maps.count; i++)
        text_printf(p->out, "%sconst __grid_constant__ tensor_map %s",
                    i || kernel->dims.count || kernel->global_count ? ", " : "",
                    p->memories[kernel->tensor_maps.items[i].memory]);
}

static bool is_shared(const struct kernel_memory *memory)
{
    return memory->space == MEMORY_SHARED || memory->space == MEMORY_MBARRIER;
}

static uint32_t shared_alignment(const struct kernel_memory *memory)
{
    return memory->alignment > 16 ? memory->alignment : 16;
}

/* Where a shared array begins, behind those before it; the last one's end when there is none at `memory`. */
static uint64_t shared_offset(const struct kernel *kernel, uint32_t memory)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < kernel->memories.count; i++) {
        const struct kernel_memory *at = &kernel->memories.items[i];
        const uint64_t alignment = shared_alignment(at);
        uint64_t bytes = 0;
        if (!is_shared(at))
            continue;
        offset = (offset + alignment - 1) / alignment * alignment;
        if (i == memory)
            return offset;
        dtype_bytes(at->dtype, at->count * at->lanes, &bytes);
        offset += (bytes + 15) & ~(uint64_t)15;
    }
    return offset;
}

uint64_t cuda_dynamic_shared_bytes(const struct kernel *kernel)
{
    uint64_t total = shared_offset(kernel, kernel->memories.count);
    return total > LARGEST_STATIC_SHARED ? total : 0;
}

/* Declares the block's dynamic memory; its name. Kernels of one unit share a name, and so must the alignment.
 */
static const char *put_dynamic(struct cuda_printer *p)
{
    uint32_t alignment = 16;
    for (uint32_t i = 0; i < p->kernel->memories.count; i++) {
        const struct kernel_memory *memory = &p->kernel->memories.items[i];
        if (is_shared(memory) && shared_alignment(memory) > alignment)
            alignment = shared_alignment(memory);
    }
    const char *name =
        alignment == 16 ? "shared_bytes" : arena_printf(p->out->arena, "shared_bytes_%" PRIu32, alignment);
    text_printf(p->out, "    extern __shared__ __align__(%" PRIu32 ") unsigned char %s[];\n", alignment,
                name);
    return name;
}

static void put_array(struct cuda_printer *p, uint32_t number, const char *dynamic)
{
    const struct kernel_memory *memory = &p->kernel->memories.items[number];
    const char *type = memory->space == MEMORY_REGISTER   ? cuda_value_type(memory->dtype)
                       : memory->space == MEMORY_MBARRIER ? "mbarrier"
                                                          : cuda_storage_type(memory->dtype);
    if (is_shared(memory) && dynamic) {
        text_printf(p->out, "    %s *const %s = (%s *)(%s + %" PRIu64 ");", type, p->memories[number], type,
                    dynamic, shared_offset(p->kernel, number));
    } else {
        text_put(p->out, "    ");
        if (is_shared(memory))
            text_printf(p->out, "__shared__ __align__(%" PRIu32 ") ", shared_alignment(memory));
        else if (memory->alignment >= 16)
            text_put(p->out, "__align__(16) ");
        if (memory->lanes > 1)
            text_printf(p->out, "%sx%u ", dtype_name(memory->dtype), (unsigned)memory->lanes);
        else
            text_printf(p->out, "%s ", type);
        text_printf(p->out, "%s[%" PRId64 "];", p->memories[number], memory->count);
    }
    text_printf(p->out, "%s%s\n", memory->shape ? " // " : "", memory->shape ? memory->shape : "");
}

static void put_arrays(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    const char *dynamic = cuda_dynamic_shared_bytes(kernel) > 0 ? put_dynamic(p) : NULL;
    for (uint32_t i = kernel->global_count; i < kernel->memories.count; i++)
        if (kernel->memories.items[i].space != MEMORY_TENSOR_MAP &&
            kernel->memories.items[i].space != MEMORY_BARRIER)
            put_array(p, i, dynamic);
}

/* Those that the body calls by name, several a line. */
static void put_constants(struct cuda_printer *p)
{
    enum { WIDEST = 110 };
    const struct kernel *kernel = p->kernel;
    const char *type = kernel->index_bits == 32 ? "int" : "long long";
    size_t line = 0;
    bool any = false;
    for (uint32_t i = 0; i < kernel->constants.count; i++) {
        if (!p->constants[i])
            continue;
        const char *item =
            arena_printf(p->out->arena, "%s = %" PRId64, p->constants[i], kernel->constants.items[i].value);
        if (!any || p->out->length - line + strlen(item) > WIDEST) {
            text_put(p->out, any ? ";\n" : "");
            line = p->out->length;
            text_printf(p->out, "    constexpr %s ", type);
        } else {
            text_put(p->out, ", ");
        }
        text_put(p->out, item);
        any = true;
    }
    text_put(p->out, any ? ";\n" : "");
}

static void name_parameters(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    for (uint32_t i = 0; i < kernel->memories.count; i++) {
        const char *label = kernel->memories.items[i].label;
        p->memories[i] = cuda_new_name(p, label ? label : "m");
    }
    for (uint32_t i = 0; i < kernel->words.count; i++)
        p->words[i] = cuda_new_name(p, "count");
    for (uint32_t i = 0; i < kernel->dims.count + kernel->computed.count; i++) {
        const dim d = i < kernel->dims.count ? kernel->dims.items[i]
                                             : kernel->computed.items[i - kernel->dims.count].d;
        const char *label = "size";
        for (uint32_t k = 0; k < kernel->dim_labels.count; k++)
            if (kernel->dim_labels.items[k].d == d)
                label = kernel->dim_labels.items[k].label;
        p->dims[i] = cuda_new_name(p, label);
    }
}

/* Sizes that the model computes. */
static void put_computed(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    for (uint32_t i = 0; i < kernel->computed.count; i++) {
        const expr value = kernel->computed.items[i].value;
        cuda_begin_statement(p, 1, &value);
        cuda_indent(p);
        text_printf(p->out, kernel->index_bits == 32 ? "const int %s = (int)" : "const long long %s = ",
                    p->dims[kernel->dims.count + i]);
        cuda_put_expr(p, value, CUDA_PRIMARY);
        text_put(p->out, ";\n");
        cuda_end_statement(p);
    }
}

static struct cuda_printer new_printer(const struct kernel *kernel, struct text *out)
{
    uint32_t nodes = kernel->pool->nodes.count;
    struct arena *arena = out->arena;
    struct cuda_printer printer = {
        .kernel = kernel,
        .out = out,
        .wide_variable = arena_new_array(arena, bool, kernel->variables.count + 1),
        .index = arena_new_array(arena, signed char, nodes),
        .uses = arena_new_array(arena, uint32_t, nodes),
        .names = arena_new_array(arena, const char *, nodes),
        .variables = arena_new_array(arena, const char *, kernel->variables.count + 1),
        .memories = arena_new_array(arena, const char *, kernel->memories.count + 1),
        .words = arena_new_array(arena, const char *, kernel->words.count + 1),
        .dims = arena_new_array(arena, const char *, kernel->dims.count + kernel->computed.count + 1),
        .constants = arena_new_array(arena, const char *, kernel->constants.count + 1),
        .unrolled = arena_new_array(arena, bool, kernel->variables.count + 1),
        .depth = 1,
    };
    find_wide_variables(&printer);
    return printer;
}

/* Then the device runtime's function is declared, which the driver provides. */
static bool sets_condition(const struct statement_list *list)
{
    for (const struct statement *s = list->first; s; s = s->next)
        if (s->kind == STATEMENT_SET_CONDITION || sets_condition(&s->body) || sets_condition(&s->otherwise))
            return true;
    return false;
}

void print_cuda(const struct kernel *kernel, const char *name, const struct machine *machine, bool comments,
                struct text *out)
{
    struct cuda_printer printer = new_printer(kernel, out);
    name_parameters(&printer);
    /* The body first: it says which constants are used. */
    struct text body;
    text_init(&body, out->arena);
    printer.out = &body;
    put_computed(&printer);
    put_list(&printer, &kernel->body);
    printer.out = out;
    if (comments)
        put_comment(&printer, machine);
    if (sets_condition(&kernel->body))
        text_put(out, "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long handle, "
                      "unsigned int value);\n");
    text_printf(out, "extern \"C\" __global__ void __launch_bounds__(%" PRIu32,
                kernel->block[0] * kernel->block[1] * kernel->block[2]);
    if (kernel->min_blocks)
        text_printf(out, ", %" PRIu32, kernel->min_blocks);
    text_printf(out, ")\n%s(", name);
    put_parameters(&printer);
    text_put(out, ")\n{\n");
    put_constants(&printer);
    put_arrays(&printer);
    text_put(out, body.data);
    text_put(out, "}\n");
}

void cuda_put_function(const struct kernel *kernel, const char *name, expr value, struct text *out)
{
    struct cuda_printer printer = new_printer(kernel, out);
    text_printf(out, "DEVICE %s %s(", cuda_value_type(expr_at(kernel->pool, value)->dtype), name);
    for (uint32_t i = 1; i < kernel->variables.count; i++) {
        name_variable(&printer, i);
        text_printf(out, "%s%s %s", i > 1 ? ", " : "", cuda_value_type(kernel->variables.items[i].dtype),
                    printer.variables[i]);
    }
    text_put(out, ")\n{\n");
    cuda_begin_statement(&printer, 1, &value);
    text_put(out, "    return ");
    cuda_put_expr(&printer, value, CUDA_ANY);
    text_put(out, ";\n}\n");
    cuda_end_statement(&printer);
}

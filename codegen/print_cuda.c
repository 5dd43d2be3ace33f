/* Kernel IR as CUDA C: one kernel a call, header-free, without a byte of the model's text. Reads only the kernel. */
#include <inttypes.h>
#include <string.h>

#include "codegen/print_cuda_internal.h"
#include "codegen/printers.h"
#include "ir/support/embedded.h"

extern const struct embedded_file device_files[]; /* codegen/device/: arithmetic.cuh alone */

enum { LARGEST_STATIC_SHARED = 48 * 1024 };

/* ---- which i64 variables may be wide ------------------------------------------------------------------------------ */

static bool widen_list(struct cuda_printer *p, const struct statement_list *list)
{
    bool changed = false;
    for (const struct statement *s = list->first; s; s = s->next) {
        if ((s->kind == STATEMENT_DECLARE || s->kind == STATEMENT_ASSIGN) && !p->wide_variable[s->variable] &&
            p->kernel->variables.items[s->variable].dtype == DTYPE_I64 && !cuda_is_narrow(p, s->value)) {
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
        memset(p->narrow, -1, p->kernel->pool->nodes.count);
    while (widen_list(p, &p->kernel->body));
}

/* ---- statements ---------------------------------------------------------------------------------------------------- */

static void put_list(struct cuda_printer *p, const struct statement_list *list);

static void put_block(struct cuda_printer *p, const struct statement_list *list)
{
    text_put(p->out, " {\n");
    p->depth++;
    put_list(p, list);
    p->depth--;
    cuda_indent(p);
    text_put(p->out, "}");
}

static void put_declare(struct cuda_printer *p, const struct statement *s)
{
    const struct kernel_variable *variable = &p->kernel->variables.items[s->variable];
    cuda_begin_statement(p, 1, &s->value);
    cuda_indent(p);
    if (s->kind == STATEMENT_DECLARE) {
        text_put(p->out, variable->mutable ? "" : "const ");
        if (variable->lanes > 1)
            text_printf(p->out, "%sx%u ", dtype_name(variable->dtype), (unsigned)variable->lanes);
        else if (variable->dtype == DTYPE_I64 && p->kernel->index_bits == 32 && !p->wide_variable[s->variable])
            text_put(p->out, "int ");
        else
            text_printf(p->out, "%s ", cuda_value_type(variable->dtype));
    }
    cuda_put_variable(p, s->variable);
    text_put(p->out, " = ");
    cuda_put_expr(p, s->value, CUDA_ANY);
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
    text_printf(p->out, "for (%s ", p->kernel->index_bits == 32 ? "int" : "long long");
    cuda_put_variable(p, s->variable);
    text_put(p->out, " = ");
    cuda_put_expr(p, s->begin, CUDA_ANY);
    text_put(p->out, "; ");
    cuda_put_variable(p, s->variable);
    text_put(p->out, " < ");
    cuda_put_expr(p, s->end, CUDA_RELATION + 1);
    text_put(p->out, "; ");
    if (expr_constant_int(p->kernel->pool, s->step, &step) && step == 1) {
        text_put(p->out, "++");
        cuda_put_variable(p, s->variable);
    } else {
        cuda_put_variable(p, s->variable);
        text_put(p->out, " += ");
        cuda_put_expr(p, s->step, CUDA_ANY);
    }
    text_put(p->out, ")");
    cuda_end_statement(p);
    put_block(p, &s->body);
    text_put(p->out, "\n");
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

static void put_store(struct cuda_printer *p, const struct statement *s)
{
    const struct expr_node *value = expr_at(p->kernel->pool, s->value);
    const expr roots[] = {s->index, s->value};
    cuda_begin_statement(p, 2, roots);
    cuda_indent(p);
    if (value->lanes > 1) {
        text_printf(p->out, "store_%sx%u(&", dtype_name(value->dtype), (unsigned)value->lanes);
        cuda_put_memory(p, s->memory);
        text_put(p->out, "[");
        cuda_put_expr(p, s->index, CUDA_ANY);
        text_put(p->out, "], ");
        cuda_put_expr(p, s->value, CUDA_ANY);
        text_put(p->out, ");\n");
    } else {
        cuda_put_memory(p, s->memory);
        text_put(p->out, "[");
        cuda_put_expr(p, s->index, CUDA_ANY);
        text_put(p->out, "] = ");
        cuda_put_expr(p, s->value, CUDA_ANY);
        text_put(p->out, ";\n");
    }
    cuda_end_statement(p);
}

static void put_list(struct cuda_printer *p, const struct statement_list *list)
{
    for (const struct statement *s = list->first; s; s = s->next)
        switch (s->kind) {
        case STATEMENT_DECLARE:
        case STATEMENT_ASSIGN:
            put_declare(p, s);
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
            cuda_indent(p);
            text_put(p->out, "__syncthreads();\n");
            break;
        case STATEMENT_COMMENT:
            cuda_indent(p);
            text_printf(p->out, "// %s\n", s->text);
            break;
        }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

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

static void put_comment(const struct kernel *kernel, const struct machine *machine, struct text *out)
{
    const struct dims *dims = kernel->pool->dims;
    if (kernel->summary)
        text_printf(out, "// %s\n", kernel->summary);
    put_nodes(kernel, out);
    if (kernel->bytes && kernel->operations && machine->memory_bytes_per_second > 0 && machine->fp32_per_second > 0) {
        double bytes = (double)dim_hint(dims, kernel->bytes), operations = (double)dim_hint(dims, kernel->operations);
        double memory = bytes / machine->memory_bytes_per_second, compute = operations / machine->fp32_per_second;
        text_printf(out, "// At the planned dims: %.0f bytes, %.0f operations; no less than %.2f us on %s (%s).\n", bytes,
                    operations, 1e6 * (memory > compute ? memory : compute), machine->name,
                    memory > compute ? "memory" : "arithmetic");
    }
    text_printf(out, "// Strategy %s%s%s.\n", kernel->strategy, kernel->config && kernel->config[0] ? ": " : "",
                kernel->config ? kernel->config : "");
}

static void put_parameters(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    for (uint32_t i = 0; i < kernel->global_count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        text_printf(p->out, "%s%s%s *%s", i ? ", " : "", memory->written ? "" : "const ",
                    cuda_storage_type(memory->dtype), memory->in_place ? "" : "__restrict__ ");
        cuda_put_memory(p, i);
    }
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        text_printf(p->out, "%s%s d%" PRIu32, i || kernel->global_count ? ", " : "",
                    kernel->index_bits == 32 ? "int" : "long long", i);
}

static uint64_t memory_bytes(const struct kernel_memory *memory)
{
    uint64_t bytes = 0;
    dtype_bytes(memory->dtype, memory->count * memory->lanes, &bytes);
    return (bytes + 15) & ~(uint64_t)15;
}

uint64_t cuda_dynamic_shared_bytes(const struct kernel *kernel)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < kernel->memories.count; i++)
        if (kernel->memories.items[i].space == MEMORY_SHARED)
            total += memory_bytes(&kernel->memories.items[i]);
    return total > LARGEST_STATIC_SHARED ? total : 0;
}

static void put_arrays(struct cuda_printer *p)
{
    const struct kernel *kernel = p->kernel;
    bool dynamic = cuda_dynamic_shared_bytes(kernel) > 0;
    uint64_t offset = 0;
    if (dynamic)
        text_put(p->out, "    extern __shared__ __align__(16) unsigned char shared_bytes[];\n");
    for (uint32_t i = kernel->global_count; i < kernel->memories.count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        const char *type =
            memory->space == MEMORY_REGISTER ? cuda_value_type(memory->dtype) : cuda_storage_type(memory->dtype);
        if (memory->space == MEMORY_SHARED && dynamic) {
            text_printf(p->out, "    %s *const ", type);
            cuda_put_memory(p, i);
            text_printf(p->out, " = (%s *)(shared_bytes + %" PRIu64 ");\n", type, offset);
            offset += memory_bytes(memory);
        } else {
            text_printf(p->out, "    %s", memory->space == MEMORY_SHARED ? "__shared__ __align__(16) " : "");
            if (memory->lanes > 1)
                text_printf(p->out, "%sx%u ", dtype_name(memory->dtype), (unsigned)memory->lanes);
            else
                text_printf(p->out, "%s ", type);
            cuda_put_memory(p, i);
            text_printf(p->out, "[%" PRId64 "];\n", memory->count);
        }
    }
}

void print_cuda(const struct kernel *kernel, const char *name, const struct machine *machine, bool comments,
                struct text *out)
{
    uint32_t nodes = kernel->pool->nodes.count;
    struct cuda_printer printer = {
        .kernel = kernel,
        .out = out,
        .wide_variable = arena_new_array(out->arena, bool, kernel->variables.count + 1),
        .narrow = arena_new_array(out->arena, signed char, nodes),
        .uses = arena_new_array(out->arena, uint32_t, nodes),
        .names = arena_new_array(out->arena, uint32_t, nodes),
    };
    find_wide_variables(&printer);
    if (comments)
        put_comment(kernel, machine, out);
    text_printf(out, "extern \"C\" __global__ void __launch_bounds__(%" PRIu32,
                kernel->block[0] * kernel->block[1] * kernel->block[2]);
    if (kernel->min_blocks)
        text_printf(out, ", %" PRIu32, kernel->min_blocks);
    text_printf(out, ")\n%s(", name);
    put_parameters(&printer);
    text_put(out, ")\n{\n");
    put_arrays(&printer);
    printer.depth = 1;
    put_list(&printer, &kernel->body);
    text_put(out, "}\n");
}

/* ---- what every unit begins with ------------------------------------------------------------------------------------ */

void print_cuda_prelude(struct text *out)
{
    enum { WIDEST = 16 };
    text_put(out, (const char *)device_files[0].data);
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++) {
        unsigned bits = dtype_bits((enum dtype)dtype);
        if (bits < 8 || bits > 64)
            continue;
        for (unsigned lanes = 2; lanes * bits <= 8 * WIDEST; lanes *= 2)
            text_printf(out, "VECTOR(%sx%u, %s, %u)\n", dtype_name((enum dtype)dtype), lanes,
                        cuda_storage_type((enum dtype)dtype), lanes);
    }
    text_put(out, "\n");
}

/* The command info: a bundle's tables as JSON. Reads the file; executes nothing in it. */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frontend/driver/driver.h"
#include "ir/target.h"
#include "ir/types.h"
#include "runtime/info.h"

enum { LONGEST_DIM = 512 };

static const char *string_at(const struct bundle_tables *tables, bundle_string string)
{
    return tables->strings + string;
}

/* Sizes hang on the input's values: on a GPU they are stated in prepare, since a run does not wait for the
 * device. */
static bool is_read_on_host(const struct bundle_tables *tables, uint32_t input)
{
    for (uint32_t i = 0; i < tables->symbol_count; i++)
        if (tables->symbols[i].source == BUNDLE_INPUT_VALUE && tables->symbols[i].input == input)
            return true;
    return false;
}

static void put_tensors(struct text *out, const struct bundle_tables *tables, const char *title,
                        const struct bundle_tensor *items, uint32_t count, bool outputs)
{
    text_printf(out, "  \"%s\": [", title);
    for (uint32_t i = 0; i < count; i++) {
        text_put(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        text_put_json(out, string_at(tables, items[i].name));
        text_printf(out, ", \"type\": \"%s\", \"dims\": [", tables_dtype_name(items[i].dtype));
        for (uint32_t axis = 0; axis < items[i].rank; axis++) {
            char size[LONGEST_DIM];
            text_put(out, axis ? ", " : "");
            text_put_json(
                out, bundle_dim_text(tables, tables->indices[items[i].first_dim + axis], size, sizeof size));
        }
        text_put(out, "]");
        if (outputs && items[i].alias_input != BUNDLE_NONE) {
            text_put(out, ", \"lives_in\": ");
            text_put_json(out, string_at(tables, tables->inputs[items[i].alias_input].name));
        }
        if (!outputs && is_read_on_host(tables, i))
            text_put(out, ", \"read_on_host\": true");
        text_put(out, "}");
    }
    text_put(out, count ? "\n  ],\n" : "],\n");
}

static void put_symbols(struct text *out, const struct bundle_tables *tables)
{
    char name[LONGEST_DIM];
    text_put(out, "  \"dims\": [");
    for (uint32_t i = 0; i < tables->symbol_count; i++) {
        const struct bundle_symbol *symbol = &tables->symbols[i];
        text_put(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        text_put_json(out, bundle_symbol_text(tables, i, name, sizeof name));
        text_printf(out, ", \"low\": %" PRId64 ", \"high\": %" PRId64 ", \"hint\": %" PRId64, symbol->low,
                    symbol->high, symbol->hint);
        if (symbol->source == BUNDLE_WORD) {
            text_put(out, ", \"computed\": true, \"most\": ");
            text_put_json(out, bundle_dim_text(tables, symbol->bound, name, sizeof name));
        } else if (symbol->source == BUNDLE_BOUND) {
            text_put(out, ", \"bound\": true");
        }
        if (symbol->replacement != BUNDLE_NONE) {
            text_put(out, ", \"equals\": ");
            text_put_json(out, bundle_dim_text(tables, symbol->replacement, name, sizeof name));
        }
        text_put(out, "}");
    }
    text_put(out, tables->symbol_count ? "\n  ],\n" : "],\n");
    text_put(out, "  \"guards\": [");
    for (uint32_t i = 0; i < tables->guard_count; i++) {
        const struct bundle_guard *guard = &tables->guards[i];
        text_put(out, i ? ",\n    {\"left\": " : "\n    {\"left\": ");
        text_put_json(out, bundle_dim_text(tables, guard->left, name, sizeof name));
        text_put(out, ", \"right\": ");
        text_put_json(out, bundle_dim_text(tables, guard->right, name, sizeof name));
        text_put(out, ", \"node\": ");
        text_put_json(out, string_at(tables, guard->node));
        text_put(out, "}");
    }
    text_put(out, tables->guard_count ? "\n  ],\n" : "],\n");
}

static void put_memory(struct text *out, const struct bundle_file *file, uint32_t index)
{
    const struct bundle_tables *tables = &file->tables;
    struct bundle_memory memory = {0};
    struct runtime_error error;
    if (bundle_plan_memory(tables, index, &memory, &error) != GPUCC_OK)
        return;
    if (tables->plans[index].kind == BUNDLE_CPU)
        bundle_file_code(file, &memory.code_bytes,
                         &error); /* the targets of a CPU share it with the runtime */
    text_printf(out,
                ", \"memory\": {\"weights\": %" PRIu64 ", \"arena_at_hint\": %" PRIu64 ", \"code\": %" PRIu64
                "}",
                memory.weight_bytes, memory.arena_bytes, memory.code_bytes);
}

/* How far the kernels made for a target have been tested, by the machine table. */
static const char *how_checked(const char *target)
{
    const struct machine *machine = machine_find(target);
    return machine && !machine->compiled_only ? "run on a GPU" : "compiled only";
}

static void put_plans(struct text *out, const struct bundle_file *file)
{
    const struct bundle_tables *tables = &file->tables;
    text_put(out, "  \"targets\": [");
    for (uint32_t i = 0; i < tables->plan_count; i++) {
        const struct bundle_plan *plan = &tables->plans[i];
        bool ptx = false;
        if (plan->kind == BUNDLE_INIT)
            continue;
        for (uint32_t k = 0; k < plan->image_count; k++)
            ptx |= tables->images[plan->first_image + k].kind == BUNDLE_PTX;
        text_put(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        text_put_json(out, string_at(tables, plan->name));
        text_printf(out, ", \"kernels\": %u, \"launches\": %u", plan->kernel_count, plan->launch_count);
        if (plan->control_count) /* on a GPU: conditional nodes of the graph */
            text_printf(out, ", \"loops_and_branches\": %u", plan->control_count);
        if (plan->kind == BUNDLE_CUDA)
            text_printf(out, ", \"driver\": \"%u.%u\", \"ptx\": %s, \"checked\": \"%s\"",
                        plan->driver_version / 1000, plan->driver_version % 1000 / 10, ptx ? "true" : "false",
                        how_checked(string_at(tables, plan->name)));
        put_memory(out, file, i);
        text_put(out, "}");
    }
    text_put(out, tables->plan_count ? "\n  ],\n" : "],\n");
}

/* Bytes of the parts of the file. */
static void put_file(struct text *out, const struct bundle_file *file)
{
    const struct bundle_header *header = file->tables.header;
    text_printf(out,
                "  \"file\": {\"image\": %" PRIu64 ", \"tables_and_device_code\": %" PRIu64
                ", \"weights\": %" PRIu64 ", \"weights_beside\": ",
                header->image_bytes, header->blob_bytes, header->weights_bytes);
    if (header->sidecar)
        text_put_json(out, string_at(&file->tables, header->sidecar_name));
    else
        text_put(out, "null");
    text_put(out, "},\n");
}

/* The model's initialisers, and why those that cannot be replaced cannot. */
static void put_weights(struct text *out, const struct bundle_tables *tables)
{
    text_put(out, "  \"weights\": [");
    for (uint32_t i = 0; i < tables->weight_count; i++) {
        const struct bundle_weight_row *weight = &tables->weights[i];
        text_put(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        text_put_json(out, string_at(tables, weight->name));
        text_printf(out, ", \"type\": \"%s\", \"dims\": [", tables_dtype_name(weight->dtype));
        for (uint32_t k = 0; k < weight->rank; k++)
            text_printf(out, "%s%" PRId64, k ? ", " : "",
                        tables->dims[tables->indices[weight->first_dim + k]].value);
        text_put(out, "]");
        if (string_at(tables, weight->frozen)[0]) {
            text_put(out, ", \"frozen\": ");
            text_put_json(out, string_at(tables, weight->frozen));
        }
        text_put(out, "}");
    }
    text_put(out, tables->weight_count ? "\n  ],\n" : "],\n");
}

static void put_facts(struct text *out, const struct bundle_tables *tables)
{
    text_put(out, "  \"provenance\": {");
    for (uint32_t i = 0; i < tables->fact_count; i++) {
        text_put(out, i ? ",\n    " : "\n    ");
        text_put_json(out, string_at(tables, tables->facts[i].key));
        text_put(out, ": ");
        text_put_json(out, string_at(tables, tables->facts[i].value));
    }
    text_put(out, tables->fact_count ? "\n  }\n" : "}\n");
}

static const char *machine_text(uint32_t machine)
{
    return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "aarch64" : "unknown";
}

struct show {
    struct bundle_file file;
    struct arena *arena;
};

static void show(void *user)
{
    const struct show *s = user;
    const struct bundle_tables *tables = &s->file.tables;
    struct text out;
    text_init(&out, s->arena);
    text_put(&out, "{\n");
    text_printf(&out, "  \"abi\": %u,\n  \"host\": \"%s\",\n  \"opset\": %" PRId64 ",\n  \"producer\": ",
                tables->header->abi, machine_text(tables->header->machine), tables->header->opset);
    text_put_json(&out, string_at(tables, tables->header->producer));
    text_put(&out, ",\n");
    put_tensors(&out, tables, "inputs", tables->inputs, tables->input_count, false);
    put_tensors(&out, tables, "outputs", tables->outputs, tables->output_count, true);
    put_symbols(&out, tables);
    put_plans(&out, &s->file);
    put_weights(&out, tables);
    put_file(&out, &s->file);
    put_facts(&out, tables);
    text_put(&out, "}\n");
    fputs(out.data, stdout);
}

static void end_show(void *user)
{
    bundle_file_close(&((struct show *)user)->file);
}

void command_info(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    const char *path = command_file(options, "the bundle", diagnostics);
    struct show s = {.arena = arena};
    struct runtime_error error;
    if (!path)
        return;
    gpucc_status status = bundle_file_open(path, &s.file, &error);
    if (status == GPUCC_OK)
        guarded(arena, show, end_show, &s);
    else
        diag_error(diagnostics, status_code(status), NULL, "%s", error.text);
}

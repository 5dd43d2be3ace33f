/* What a model's plans look like, without code generation:
 *
 *     plan_facts [--imported] MODEL [NAME=SIZE ...]
 *
 * Prints one line for the graph and one for each target at these sizes: "shapes N" is shape arithmetic that
 * is left at run time, "live" the largest sum of arena bytes that are needed at one time, "arena" what the
 * planner takes. Weights are not read beyond what passes fold, so files of zeros do.
 *
 * Shape arithmetic is a node whose results are known as dims (their contents), or an operator that gives or
 * takes a shape as a tensor. Such a node may stay in the graph only as a source, Dims, of numbers that are
 * data (the positions of a mask), and a plan may hold it only inside the kernel of what computes with it: no
 * launch is spent on it and no memory. --imported counts in the graph before any pass and stops there: the
 * check of the check. Exit status 1: the model is not supported; 2: usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/plan.h"
#include "frontend/import.h"
#include "passes/pass.h"

enum { FOLD_LIMIT = 1 << 20 };

static bool known_contents(const struct value *value)
{
    for (uint32_t i = 0; value->contents && i < value->content_count; i++)
        if (!value->contents[i])
            return false;
    return value->contents && value->content_count;
}

static bool is_output(const struct graph *graph, value_id id)
{
    for (uint32_t i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].value == id)
            return true;
    return false;
}

/* Operators that are gone when shapes are: their inputs have become attributes and result types. */
static bool takes_shape(const struct node *node)
{
    static const struct {
        enum op op;
        uint32_t inputs; /* that are data */
    } rows[] = {
        {OP_Reshape, 1},   {OP_Expand, 1},    {OP_Slice, 1},           {OP_Tile, 1},      {OP_Pad, 2},
        {OP_Resize, 1},    {OP_Squeeze, 0},   {OP_Unsqueeze, 0},       {OP_Shape, 0},     {OP_Size, 0},
        {OP_Flatten, 0},   {OP_Split, 0},     {OP_ConstantOfShape, 0}, {OP_ReduceSum, 1}, {OP_ReduceMean, 1},
        {OP_ReduceMax, 1}, {OP_ReduceMin, 1}, {OP_ReduceProd, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == node->op)
            return node->input_count > rows[i].inputs;
    return false;
}

static uint32_t shape_nodes(const struct graph *graph)
{
    uint32_t count = 0;
    for (region_id r = 1; r < graph->regions.count; r++)
        for (uint32_t i = 0; i < graph->regions.items[r].nodes.count; i++) {
            const struct node *node = graph_node(graph, graph->regions.items[r].nodes.items[i]);
            bool found = takes_shape(node);
            for (uint32_t k = 0; k < node->output_count; k++)
                found = found || (node->op != OP_Dims && node->outputs[k] &&
                                  known_contents(graph_value(graph, node->outputs[k])));
            if (found)
                printf("  left: %s #%u\n", op_facts(node->op)->name,
                       node->location ? node->location->number : 0);
            count += found;
        }
    return count;
}

/* Groups whose stored values are all known as dims; the caller may ask for such a value as an output. */
static uint32_t shape_groups(const struct graph *graph, const struct grouping *grouping)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < grouping->groups.count; i++) {
        const struct group *group = &grouping->groups.items[i];
        bool all = true;
        for (uint32_t k = 0; k < group->body.buffers.count; k++)
            if (group->body.buffers.items[k].role == BUFFER_OUTPUT)
                all = all && group->values[k] && known_contents(graph_value(graph, group->values[k])) &&
                      !is_output(graph, group->values[k]);
        if (all)
            printf("  launched: %s #%u\n", op_facts(graph_node(graph, group->nodes.items[0])->op)->name,
                   group->location ? group->location->number : 0);
        count += all;
    }
    return count;
}

static bool print_plan(struct graph *graph, const char *target, struct arena *arena,
                       struct diagnostics *diagnostics)
{
    const struct machine *machine = machine_find(target);
    struct target_services services = plan_services(graph, machine, 3, arena);
    struct grouping grouping = {0};
    struct plan plan;
    const struct plan_options options = {.optimisation = 3, .threads = 1};
    uint64_t live, bytes;
    if (!group_graph(graph, &services, 3, diagnostics, &grouping) ||
        !plan_build(graph, &grouping, machine, &options, arena, diagnostics, &plan) ||
        !plan_memory(graph, &plan, arena, &live, &bytes))
        return false;
    const uint32_t shapes = shape_groups(graph, &grouping);
    printf("%s: shapes %u, launches %u, live %llu, arena %llu\n", target, shapes, plan.launches.count,
           (unsigned long long)live, (unsigned long long)bytes);
    return true;
}

static bool work(const char *path, bool imported, const struct import_options *import,
                 struct source_files *files, struct arena *arena, struct diagnostics *diagnostics)
{
    static const char *const targets[] = {"cpu", "cpu-v4", "sm_90a"};
    struct graph *graph;
    const struct pipeline_options pipeline = {.optimisation = 3, .verify = true, .fold_limit = FOLD_LIMIT};
    if (!import_model(arena, diagnostics, path, import, files, &graph) ||
        (!imported && !run_pipeline(graph, diagnostics, &pipeline)))
        return false;
    const uint32_t shapes = shape_nodes(graph);
    printf("graph: shapes %u, nodes %u\n", shapes, graph->regions.items[GRAPH_BODY].nodes.count);
    bool good = true;
    for (size_t i = 0; i < sizeof targets / sizeof *targets && good && !imported; i++)
        good = print_plan(graph, targets[i], arena, diagnostics);
    return good;
}

static void print_problems(const struct diagnostics *diagnostics, struct arena *arena)
{
    for (uint32_t i = 0; i < diagnostics->items.count; i++) {
        struct text line;
        text_init(&line, arena);
        diag_print(diagnostics, &diagnostics->items.items[i], &line);
        fputs(line.data, stderr);
    }
}

static int run(int count, char **arguments, struct arena *arena)
{
    struct diagnostics diagnostics;
    struct source_files files;
    int first = 1;
    if (count > 1 && !strcmp(arguments[1], "--imported")) {
        first = 2;
    }
    if (count <= first) {
        fprintf(stderr, "usage: plan_facts [--imported] MODEL [NAME=SIZE ...]\n");
        return 2;
    }
    struct import_dim *dims = arena_new_array(arena, struct import_dim, (size_t)count);
    struct import_options import = {.dims = dims};
    for (int i = first + 1; i < count; i++) {
        char *name = arena_string(arena, arguments[i]), *equals = strrchr(name, '=');
        const long long size = equals ? atoll(equals + 1) : 0;
        if (!equals || size < 1)
            return 2;
        *equals = '\0';
        dims[import.dim_count++] = (struct import_dim){.name = name, .low = 1, .hint = size, .high = 1 << 20};
    }
    diagnostics_init(&diagnostics, arena, arguments[first]);
    source_files_init(&files, arena);
    const bool good = work(arguments[first], first == 2, &import, &files, arena, &diagnostics);
    print_problems(&diagnostics, arena);
    source_files_close(&files);
    return good ? 0 : 1;
}

int main(int count, char **arguments)
{
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    if (setjmp(recovery.jump) != 0) {
        fprintf(stderr, "plan_facts: no memory\n");
        arena_release(&arena);
        return 3;
    }
    const int status = run(count, arguments, &arena);
    arena_release(&arena);
    return status;
}

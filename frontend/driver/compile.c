/* The commands compile and check: model -> graph -> one plan a target -> machine code -> bundle. */
#include <stdio.h>
#include <string.h>

#include "codegen/bundle_writer.h"
#include "codegen/plan.h"
#include "codegen/printers.h"
#include "frontend/driver/driver.h"
#include "passes/pass.h"

#define DEFAULT_TARGETS "cpu,sm_80,sm_90a"

struct compilation {
    const struct options *options;
    struct arena *arena;
    struct diagnostics *diagnostics;
    struct graph *graph;
    int64_t level, threads;
    bool verbose, ptx_needed;
    enum host host;
    struct grouping cpu_grouping; /* of all CPU machines */
    VEC(const struct machine *) machines;
    struct plan *plans;            /* [machines] */
    struct bundle_target *targets; /* [machines] */
    struct plan init_plan;         /* from weights to constants, for the host's lowest level */
    struct bundle_target init;
    VEC(struct object_kernel) cpu_kernels;
    struct cuda_options cuda;
    const char *cuda_compiler; /* name and version; NULL without a CUDA target */
    int cuda_major, cuda_minor;
    struct cuda_emission *emissions; /* [machines] */
    struct object_file *objects;
    uint32_t object_count;
    double started;
};

static void say(const struct compilation *c, const char *what)
{
    if (c->verbose)
        fprintf(stderr, "%8.3f s  %s\n", seconds_now() - c->started, what);
}

static void add_machine(struct compilation *c, const struct machine *machine)
{
    for (uint32_t i = 0; i < c->machines.count; i++)
        if (c->machines.items[i] == machine)
            return;
    vec_push(c->arena, &c->machines, machine);
}

/* "cpu" stands for every instruction set level of the host; the runtime picks. */
static void add_cpu_machines(struct compilation *c)
{
    for (uint32_t i = 0; machine_row(i); i++)
        if (machine_row(i)->kind == TARGET_CPU && machine_row(i)->host == c->host)
            add_machine(c, machine_row(i));
}

static bool choose_host(struct compilation *c)
{
    const char *name = option_value(c->options, OPTION_HOST, host_name(HOST_X86_64));
    if (host_find(name, &c->host))
        return true;
    struct text names;
    text_init(&names, c->arena);
    for (int i = 0; i < HOST_COUNT; i++)
        text_printf(&names, "%s%s", i ? ", " : "", host_name((enum host)i));
    diag_error(c->diagnostics, DIAG_bad_option, NULL, "option --host takes one of %s, not %s", names.data,
               diag_quote(c->diagnostics, name));
    return false;
}

static bool choose_targets(struct compilation *c)
{
    const char *list = option_value(c->options, OPTION_TARGET, NULL);
    if (!list)
        list = DEFAULT_TARGETS;
    bool good = true;
    char *copy = arena_string(c->arena, list);
    for (char *at = copy; at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        const struct machine *machine = machine_find(at);
        if (strcmp(at, "cpu") == 0) {
            add_cpu_machines(c);
        } else if (machine && machine->kind == TARGET_CUDA) {
            add_machine(c, machine);
        } else {
            struct text names;
            text_init(&names, c->arena);
            text_put(&names, "cpu");
            for (uint32_t i = 0; machine_row(i); i++)
                if (machine_row(i)->kind == TARGET_CUDA)
                    text_printf(&names, ", %s", machine_row(i)->name);
            diag_error(c->diagnostics, DIAG_unknown_target, NULL, "unknown target %s; known are %s",
                       diag_quote(c->diagnostics, at), names.data);
            good = false;
        }
        at = comma ? comma + 1 : NULL;
    }
    return good;
}

static void explain_line(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

static bool build_plan(struct compilation *c, uint32_t index)
{
    const struct machine *machine = c->machines.items[index];
    struct grouping own = {0}, *grouping = machine->kind == TARGET_CPU ? &c->cpu_grouping : &own;
    if (!grouping->groups.count) {
        struct target_services services =
            plan_services(c->graph, machine_reference(machine), (int)c->level, c->arena);
        if (!group_graph(c->graph, &services, (int)c->level, c->diagnostics, grouping))
            return false;
    }
    struct plan_options options = {
        .optimisation = (int)c->level,
        .threads = (uint32_t)c->threads,
        .explain = c->options->of[OPTION_EXPLAIN].given ? explain_line : NULL,
    };
    if (!plan_build(c->graph, grouping, machine, &options, c->arena, c->diagnostics, &c->plans[index]))
        return false;
    if (c->verbose)
        fprintf(stderr, "%8.3f s  %s: %u groups, %u launches, %u kernels\n", seconds_now() - c->started,
                machine->name, grouping->groups.count, c->plans[index].launches.count,
                c->plans[index].kernels.count);
    return true;
}

/* Symbols of the CPU kernels: name and level, unique over all plans; plans have kernels in common. */
static const char *list_cpu_kernel(struct compilation *c, const struct plan_kernel *plan_kernel)
{
    char *symbol = arena_printf(c->arena, "%s_%s", plan_kernel->kernel->name, plan_kernel->machine->name);
    for (char *at = symbol; *at; at++)
        if (*at == '-')
            *at = '_';
    for (uint32_t i = 0; i < c->cpu_kernels.count; i++)
        if (strcmp(c->cpu_kernels.items[i].symbol, symbol) == 0)
            return c->cpu_kernels.items[i].symbol;
    struct object_kernel kernel = {
        .kernel = plan_kernel->kernel, .symbol = symbol, .machine = plan_kernel->machine};
    vec_push(c->arena, &c->cpu_kernels, kernel);
    return symbol;
}

static const char *const *list_cpu_kernels(struct compilation *c, const struct plan *plan)
{
    const char **symbols = arena_new_array(c->arena, const char *, plan->kernels.count);
    for (uint32_t i = 0; i < plan->kernels.count; i++)
        symbols[i] = list_cpu_kernel(c, &plan->kernels.items[i]);
    return symbols;
}

/* PTX comes with the lowest plain target only: it is what later chips run. */
static const struct machine *ptx_machine(const struct compilation *c)
{
    const struct machine *lowest = NULL;
    for (uint32_t i = 0; i < c->machines.count; i++) {
        const struct machine *machine = c->machines.items[i];
        if (machine->kind == TARGET_CUDA && !machine->architecture_specific &&
            (!lowest || machine->compute_capability < lowest->compute_capability))
            lowest = machine;
    }
    return lowest;
}

static bool cuda_settings(struct compilation *c)
{
    const char *compiler = option_value(c->options, OPTION_COMPILER, "nvrtc");
    c->cuda = (struct cuda_options){
        .compiler = strcmp(compiler, "nvcc") == 0 ? COMPILER_NVCC : COMPILER_NVRTC,
        .cache_folder = option_value(c->options, OPTION_CACHE, NULL),
        .threads = (uint32_t)c->threads,
    };
    if (strcmp(compiler, "nvcc") == 0 || strcmp(compiler, "nvrtc") == 0)
        return true;
    diag_error(c->diagnostics, DIAG_bad_option, NULL, "--compiler takes nvrtc or nvcc, not %s",
               diag_quote(c->diagnostics, compiler));
    return false;
}

static bool has_cuda_target(const struct compilation *c)
{
    for (uint32_t i = 0; i < c->machines.count; i++)
        if (c->machines.items[i]->kind == TARGET_CUDA)
            return true;
    return false;
}

/* What the machine lacks is said before the work and not behind it. */
static bool check_tools(struct compilation *c)
{
    bool good = true;
    if (has_cuda_target(c)) {
        c->cuda_compiler =
            cuda_compiler_name(c->cuda.compiler, &c->cuda_major, &c->cuda_minor, c->arena, c->diagnostics);
        good = c->cuda_compiler != NULL;
    }
    return bundle_check_host(c->host, c->diagnostics) &&
           bundle_find_linker(c->host, option_value(c->options, OPTION_LINKER, NULL), c->arena,
                              c->diagnostics) &&
           good;
}

static bool compile_cuda(struct compilation *c, uint32_t index)
{
    const struct cuda_options *options = &c->cuda;
    struct bundle_target *target = &c->targets[index];
    const struct plan *plan = &c->plans[index];
    struct cuda_image *images;
    if (!cuda_compile(plan, options, false, c->arena, c->diagnostics, &images, &target->cubin_count))
        return false;
    target->cubins = images;
    if (plan->machine == ptx_machine(c)) {
        if (!cuda_compile(plan, options, true, c->arena, c->diagnostics, &images, &target->ptx_count))
            return false;
        target->ptx = images;
    }
    say(c, plan->machine->name);
    return true;
}

static void remove_emissions(struct compilation *c)
{
    for (uint32_t i = 0; i < c->machines.count && c->emissions; i++)
        cuda_emit_remove(&c->emissions[i]);
}

static bool emit_cuda(struct compilation *c)
{
    const char *folder = option_value(c->options, OPTION_EMIT_CUDA, NULL);
    uint32_t cuda_targets = 0;
    c->emissions = arena_new_array(c->arena, struct cuda_emission, c->machines.count);
    for (uint32_t i = 0; i < c->machines.count; i++)
        cuda_targets += c->machines.items[i]->kind == TARGET_CUDA;
    for (uint32_t i = 0; folder && i < c->machines.count; i++) {
        if (c->machines.items[i]->kind != TARGET_CUDA)
            continue;
        const char *path =
            cuda_targets == 1 ? folder : arena_printf(c->arena, "%s/%s", folder, c->machines.items[i]->name);
        if (!cuda_emit(&c->plans[i], path, c->arena, c->diagnostics, &c->emissions[i]))
            return false;
    }
    return true;
}

static bool compile_code(struct compilation *c)
{
    for (uint32_t i = 0; i < c->machines.count; i++) {
        c->targets[i].plan = &c->plans[i];
        if (c->machines.items[i]->kind == TARGET_CPU)
            c->targets[i].symbols = list_cpu_kernels(c, &c->plans[i]);
    }
    c->init = (struct bundle_target){.plan = &c->init_plan, .symbols = list_cpu_kernels(c, &c->init_plan)};
    if (!llvm_objects(c->cpu_kernels.items, c->cpu_kernels.count, (uint32_t)c->threads,
                      c->cuda.cache_folder, c->arena, c->diagnostics, &c->objects, &c->object_count))
        return false;
    say(c, "CPU kernels compiled");
    for (uint32_t i = 0; i < c->machines.count; i++)
        if (c->machines.items[i]->kind == TARGET_CUDA && !compile_cuda(c, i))
            return false;
    return true;
}

static const char *bundle_path(const struct compilation *c, const char *model)
{
    const char *path = option_value(c->options, OPTION_OUTPUT_FILE, NULL);
    if (path)
        return path;
    size_t length = strlen(model);
    if (length > 5 && strcmp(model + length - 5, ".onnx") == 0)
        length -= 5;
    return arena_printf(c->arena, "%.*s.so", (int)length, model);
}

/* Neither output may be a file that is read. */
static bool check_outputs(const struct compilation *c, const struct source_files *files, const char *bundle)
{
    const char *weights = option_value(c->options, OPTION_WEIGHTS, NULL);
    const char *outputs[] = {bundle, weights};
    bool good = true;
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        if (outputs[i] && source_files_hold(files, outputs[i])) {
            diag_error(c->diagnostics, DIAG_bad_option, NULL, "the output %s is a file of the model",
                       diag_quote(c->diagnostics, outputs[i]));
            good = false;
        }
    if (weights && strcmp(weights, bundle) == 0) {
        diag_error(c->diagnostics, DIAG_bad_option, NULL, "bundle and weights cannot both be %s",
                   diag_quote(c->diagnostics, bundle));
        good = false;
    }
    return good;
}

static bool write_bundle(struct compilation *c, const char *path)
{
    struct bundle_fact facts[] = {
        {"LLVM", llvm_version()},
        {"CUDA compiler", c->cuda_compiler ? c->cuda_compiler : "none"},
        {"options", arena_printf(c->arena, "-O%d", (int)c->level)},
    };
    struct bundle_inputs inputs = {
        .graph = c->graph,
        .targets = c->targets,
        .target_count = c->machines.count,
        .init = &c->init,
        .objects = c->objects,
        .object_count = c->object_count,
        .facts = facts,
        .fact_count = sizeof facts / sizeof facts[0],
        .nvrtc_major = c->cuda_major,
        .nvrtc_minor = c->cuda_minor,
        .host = c->host,
        .linker = option_value(c->options, OPTION_LINKER, NULL),
        .weights_path = option_value(c->options, OPTION_WEIGHTS, NULL),
        .threads = (uint32_t)c->threads,
    };
    if (!bundle_write(&inputs, path, c->diagnostics))
        return false;
    say(c, "bundle written");
    return true;
}

/* Sources and bundle, or neither: also when memory runs out. */
static void write_outputs(struct compilation *c, const char *path)
{
    struct recovery *outer = c->arena->recovery, inner;
    if (setjmp(inner.jump) != 0) {
        c->arena->recovery = outer;
        remove_emissions(c);
        longjmp(outer->jump, 1);
    }
    c->arena->recovery = &inner;
    if (!emit_cuda(c) || !write_bundle(c, path))
        remove_emissions(c);
    c->arena->recovery = outer;
}

static bool compile_plans(struct compilation *c)
{
    c->plans = arena_new_array(c->arena, struct plan, c->machines.count);
    c->targets = arena_new_array(c->arena, struct bundle_target, c->machines.count);
    for (uint32_t i = 0; i < c->machines.count; i++)
        if (!build_plan(c, i))
            return false;
    const struct plan **plans = arena_new_array(c->arena, const struct plan *, c->machines.count);
    for (uint32_t i = 0; i < c->machines.count; i++)
        plans[i] = &c->plans[i];
    return plan_init(c->graph, plans, c->machines.count, machine_lowest(c->host), c->arena, c->diagnostics,
                     &c->init_plan);
}

static bool compile_settings(struct compilation *c)
{
    bool good = choose_host(c) && choose_targets(c);
    good &= option_integer(c->options, OPTION_LEVEL, 0, 3, 3, &c->level, c->diagnostics);
    good &= option_integer(c->options, OPTION_THREADS, 0, 1024, 0, &c->threads, c->diagnostics);
    good &= cuda_settings(c);
    c->verbose = c->options->of[OPTION_VERBOSE].given;
    c->started = seconds_now();
    return good;
}

static void print_pipeline(void)
{
    for (uint32_t i = 0; pipeline_pass(i); i++)
        printf("%-16s -O%d  %s\n", pipeline_pass(i)->name, pipeline_pass(i)->from_level,
               pipeline_pass(i)->summary);
}

void command_compile(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    if (options->of[OPTION_PRINT_PIPELINE].given) {
        print_pipeline();
        return;
    }
    const char *model = command_file(options, "the model", diagnostics);
    struct compilation c = {.options = options, .arena = arena, .diagnostics = diagnostics};
    struct source_files files;
    if (!model || !compile_settings(&c))
        return;
    source_files_init(&files, arena);
    c.graph = load_model(options, model, &files, arena, diagnostics);
    if (c.graph && check_tools(&c) && check_outputs(&c, &files, bundle_path(&c, model))) {
        say(&c, "imported and simplified");
        if (!option_value(options, OPTION_TARGET, NULL))
            fprintf(stderr, "targets: %s\n", DEFAULT_TARGETS);
        if (compile_plans(&c) && compile_code(&c))
            write_outputs(&c, bundle_path(&c, model));
    }
    source_files_close(&files);
}

void command_check(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    const char *model = command_file(options, "the model", diagnostics);
    struct compilation c = {.options = options, .arena = arena, .diagnostics = diagnostics};
    struct source_files files;
    if (!model || !compile_settings(&c))
        return;
    diagnostics->most = UINT32_MAX; /* what cannot be compiled is the answer here: all of it */
    source_files_init(&files, arena);
    c.graph = load_model(options, model, &files, arena, diagnostics);
    if (c.graph && compile_plans(&c)) {
        uint32_t nodes = c.graph->regions.items[GRAPH_BODY].nodes.count;
        printf("%s: supported (%u nodes after simplification)\n", diag_quote(diagnostics, model), nodes);
    }
    source_files_close(&files);
}

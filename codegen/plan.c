/* From groups to a plan: a strategy for each group, kernels that are equal made one, buffers with live
 * ranges.
 *
 * Buffers. Every value that a group stores or loads has one plan buffer: the caller's (graph inputs and
 * outputs), a constant, or a stretch of the arena that is live from its first launch to its last. A group
 * that only copies a buffer element for element in the same flat order needs no launch: its result is another
 * name of the source buffer. The launches of a body stand among the others, in a range that a control record
 * names (plan_control.c).
 *
 * Nothing here knows sizes: elements stay dims, and the runtime's planner places the arena in `prepare`. */
#include "codegen/plan.h"

#include <string.h>

#include "codegen/plan_internal.h"
#include "ir/init.h"

static bool context_is_constant(const struct strategy_context *context, uint32_t buffer)
{
    const struct plan_strategy_context *whole = (const struct plan_strategy_context *)context;
    value_id value = context->group->values[buffer];
    return value != 0 && whole->init[value];
}

struct plan_strategy_context plan_strategy_context(const struct graph *graph, const struct group *group,
                                                   const struct machine *machine, const bool *init,
                                                   struct arena *arena)
{
    return (struct plan_strategy_context){
        .base = {.graph = graph,
                 .group = group,
                 .machine = machine,
                 .arena = arena,
                 .is_constant = context_is_constant},
        .init = init,
    };
}

uint32_t planner_add_buffer(struct planner *planner, enum plan_buffer_kind kind, uint32_t index,
                            enum dtype dtype, dim elements)
{
    struct plan_buffer buffer = {.kind = kind,
                                 .index = index,
                                 .dtype = dtype,
                                 .elements = elements,
                                 .first = UINT32_MAX,
                                 .last = 0,
                                 .shares = UINT32_MAX};
    vec_push(planner->arena, &planner->plan->buffers, buffer);
    return planner->plan->buffers.count - 1;
}

uint32_t planner_add_constant(struct planner *planner, value_id value, const struct definition *recipe,
                              enum dtype dtype, int64_t elements)
{
    struct plan_constant constant = {.value = value, .recipe = recipe, .dtype = dtype, .elements = elements};
    vec_push(planner->arena, &planner->plan->constants, constant);
    return planner_add_buffer(planner, PLAN_CONSTANT, planner->plan->constants.count - 1, dtype,
                              dim_constant(planner->dims, elements));
}

uint32_t planner_value_buffer(struct planner *planner, value_id value)
{
    value = planner->same_as[value];
    if (planner->value_buffers[value] != UINT32_MAX)
        return planner->value_buffers[value];
    const struct tensor_type *type = &graph_value(planner->graph, value)->type;
    uint32_t buffer;
    if (planner->init[value]) {
        int64_t sizes[MAX_RANK], elements = 0;
        tensor_constant_sizes(planner->dims, type, sizes, &elements);
        buffer = planner_add_constant(planner, value, NULL, type->dtype, elements);
    } else {
        buffer =
            planner_add_buffer(planner, PLAN_ARENA, 0, type->dtype, tensor_elements(planner->dims, type));
    }
    planner->value_buffers[value] = buffer;
    return buffer;
}

/* Inputs and outputs first, so that their values have the caller's memory. An output that is an input, a
 * constant, or the value of an earlier output is copied at the end. */
static void add_caller_buffers(struct planner *planner)
{
    const struct graph *graph = planner->graph;
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        value_id value = graph->inputs.items[i];
        const struct tensor_type *type = &graph_value(graph, value)->type;
        planner->value_buffers[value] =
            planner_add_buffer(planner, PLAN_INPUT, i, type->dtype, tensor_elements(planner->dims, type));
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        value_id value = graph->outputs.items[i].value;
        const struct tensor_type *type = &graph_value(graph, value)->type;
        uint32_t buffer =
            planner_add_buffer(planner, PLAN_OUTPUT, i, type->dtype, tensor_elements(planner->dims, type));
        /* An aliased output is computed in the arena at first: its input may be read until the end. */
        const bool aliased = planner_alias_of(graph, i) != UINT32_MAX;
        if (planner->init[value] || planner->same_as[value] != value ||
            planner->value_buffers[value] != UINT32_MAX || aliased) {
            struct plan_copy copy = {.from = planner_value_buffer(planner, value), .to = buffer};
            vec_push(planner->arena, &planner->plan->copies, copy);
        } else {
            planner->value_buffers[value] = buffer;
        }
    }
}

/* A flat copy: one map nest that stores a bare load at the same flat index. The loaded buffer, or -1. */
static int flat_copy_source(const struct group *group)
{
    const struct definition *body = &group->body;
    if (body->nests.count != 1 || body->nests.items[0].reduction_count ||
        body->nests.items[0].store_count != 1)
        return -1;
    const struct nest *nest = &body->nests.items[0];
    const struct nest_store *store = &nest->stores[0];
    const struct expr_node *load = expr_at(body->pool, store->value);
    if (load->op != EXPR_LOAD || store->indices || store->condition)
        return -1;
    uint32_t from = (uint32_t)load->value;
    const struct tensor_type *source = &body->buffers.items[from].type;
    const struct tensor_type *target = &body->buffers.items[store->buffer].type;
    if (source->dtype != target->dtype ||
        dim_equal(body->pool->dims, tensor_elements(body->pool->dims, source),
                  tensor_elements(body->pool->dims, target)) != 1)
        return -1;
    expr axes[MAX_AXES];
    for (uint32_t i = 0; i < nest->rank; i++)
        axes[i] = expr_axis(body->pool, i, nest->extents[i]);
    return expr_index_equal(body->pool, flat_index(body->pool, source, load->arguments),
                            flat_index(body->pool, target, axes))
               ? (int)from
               : -1;
}

/* True when the group's result needs no launch. */
static bool alias_flat_copy(struct planner *planner, const struct group *group)
{
    int from = flat_copy_source(group);
    if (from < 0 || !group->values[from])
        return false;
    value_id source = group->values[from];
    value_id result = group->values[group->body.nests.items[0].stores[0].buffer];
    if (planner->depth && planner->value_buffers[result] != UINT32_MAX)
        return false; /* a branch's result, to be stored only where the branch runs */
    uint32_t source_buffer = planner_value_buffer(planner, source);
    if (planner->value_buffers[result] == UINT32_MAX) {
        planner->value_buffers[result] = source_buffer;
    } else { /* the result is the caller's output */
        struct plan_copy copy = {.from = source_buffer, .to = planner->value_buffers[result]};
        vec_push(planner->arena, &planner->plan->copies, copy);
    }
    return true;
}

void planner_mark_use(struct planner *planner, uint32_t buffer, uint32_t launch)
{
    struct plan_buffer *item = &planner->plan->buffers.items[buffer];
    if (item->first == UINT32_MAX || launch < item->first)
        item->first = launch;
    if (launch > item->last)
        item->last = launch;
}

static uint32_t argument_buffer(struct planner *planner, const struct group *group,
                                const struct lowered_group *lowered, const struct argument *argument,
                                uint32_t *temporaries, uint32_t *derived)
{
    if (argument->kind == ARGUMENT_BUFFER) {
        value_id value = group->values[argument->index];
        if (value)
            return planner_value_buffer(planner, value);
        if (planner->group_buffers[argument->index] == UINT32_MAX) {
            const struct tensor_type *type = &group->body.buffers.items[argument->index].type;
            planner->group_buffers[argument->index] =
                planner_add_buffer(planner, PLAN_ARENA, 0, type->dtype, tensor_elements(planner->dims, type));
        }
        return planner->group_buffers[argument->index];
    }
    if (argument->kind == ARGUMENT_TEMPORARY) {
        if (temporaries[argument->index] == UINT32_MAX) {
            const struct tensor_type *type = &lowered->temporaries.items[argument->index].type;
            temporaries[argument->index] =
                planner_add_buffer(planner, PLAN_ARENA, 0, type->dtype, tensor_elements(planner->dims, type));
        }
        return temporaries[argument->index];
    }
    if (derived[argument->index] == UINT32_MAX)
        derived[argument->index] =
            planner_derived_buffer(planner, group, &lowered->derived.items[argument->index]);
    return derived[argument->index];
}

uint32_t planner_derived_buffer(struct planner *planner, const struct group *group,
                                const struct derived *derived)
{
    value_id value = group->values[derived->source];
    const struct tensor_type *type = &derived->recipe.buffers.items[1].type;
    int64_t sizes[MAX_RANK], elements = 0;
    tensor_constant_sizes(planner->dims, type, sizes, &elements);
    struct text key;
    text_init(&key, planner->scratch);
    definition_print(&derived->recipe, &key);
    for (uint32_t i = 0; i < planner->derived.count; i++) {
        const struct known_derived *known = &planner->derived.items[i];
        if (known->value == value && strcmp(known->recipe, key.data) == 0)
            return known->buffer;
    }
    planner->keep = true;
    struct definition *recipe = arena_copy(planner->arena, &derived->recipe, sizeof *recipe);
    struct known_derived known = {.value = value,
                                  .recipe = arena_string(planner->arena, key.data),
                                  .buffer =
                                      planner_add_constant(planner, value, recipe, type->dtype, elements)};
    vec_push(planner->arena, &planner->derived, known);
    return known.buffer;
}

uint32_t *planner_unset(struct arena *arena, uint32_t count)
{
    uint32_t *items = arena_new_array(arena, uint32_t, count);
    memset(items, 0xff, count * sizeof *items);
    return items;
}

/* A launch of a branch that sizes choose runs where they do: on a GPU it has a condition, on a CPU no work
 * elsewhere. */
static bool run_where(struct planner *planner, struct plan_launch *launch)
{
    if (planner->runs == DIM_NONE)
        return true;
    if (planner->plan->machine->kind != TARGET_CUDA)
        launch->work = dim_mul(planner->dims, launch->work, planner->runs);
    else if (launch->condition == DIM_NONE)
        launch->condition = planner->runs;
    else
        launch->condition = dim_mul(planner->dims, launch->condition, planner->runs);
    if (launch->work != DIM_NONE &&
        (planner->plan->machine->kind != TARGET_CUDA || launch->condition != DIM_NONE))
        return true;
    diag_error(planner->diagnostics, DIAG_limit_exceeded, launch->location,
               "the sizes that decide whether the branch runs are too complex");
    return false;
}

bool planner_add_launches(struct planner *planner, const struct group *group,
                          const struct lowered_group *lowered, const struct machine *machine,
                          const uint32_t *bound)
{
    uint32_t *temporaries = planner_unset(planner->arena, lowered->temporaries.count);
    uint32_t *derived = planner_unset(planner->arena, lowered->derived.count);
    planner->group_buffers = planner_unset(planner->arena, group->body.buffers.count);
    if (bound)
        memcpy(planner->group_buffers, bound, group->body.buffers.count * sizeof *bound);
    uint32_t first_launch = planner->plan->launches.count;
    for (uint32_t i = 0; i < lowered->launches.count; i++) {
        const struct kernel_launch *from = &lowered->launches.items[i];
        const struct kernel *kernel = from->kernel;
        struct plan_launch launch = {.location = group->location, .work = kernel->work};
        memcpy(launch.grid, kernel->grid, sizeof launch.grid);
        launch.condition = kernel->condition;
        if (!run_where(planner, &launch))
            return false;
        launch.tensor_maps = arena_copy(planner->arena, kernel->tensor_maps.items,
                                        kernel->tensor_maps.count * sizeof *kernel->tensor_maps.items);
        launch.tensor_map_count = kernel->tensor_maps.count;
        uint32_t *buffers =
            arena_new_array(planner->arena, uint32_t, kernel->global_count + MAX_KERNEL_WORDS);
        for (uint32_t k = 0; k < kernel->global_count; k++)
            buffers[k] = argument_buffer(planner, group, lowered, &from->arguments[k], temporaries, derived);
        if (!planner_bind_words(planner, group, from->kernel, buffers))
            return false;
        for (uint32_t k = 0; k < kernel_buffer_count(kernel); k++)
            planner_mark_use(planner, buffers[k], planner->plan->launches.count);
        launch.buffers = buffers;
        launch.dims = arena_copy(planner->arena, kernel->dims.items, kernel->dims.count * sizeof(dim));
        if (!planner_add_kernel(planner, group, from->kernel, machine, &launch.kernel))
            return false;
        vec_push(planner->arena, &planner->plan->launches, launch);
    }
    /* Temporaries of a group may be handed from launch to launch: keep them whole for the time of the group.
     */
    for (uint32_t i = 0; i < lowered->temporaries.count; i++)
        if (temporaries[i] != UINT32_MAX)
            planner_mark_use(planner, temporaries[i], first_launch);
    return true;
}

void planner_end_group(struct planner *planner)
{
    if (planner->keep)
        arena_adopt(planner->arena, planner->built);
    planner->keep = false;
    arena_clear(planner->built);
    arena_clear(planner->scratch);
}

bool planner_add_group(struct planner *planner, const struct group *group, const uint32_t *bound)
{
    if (group->control)
        return planner_add_control(planner, group);
    if (planner->options->optimisation > 0 && alias_flat_copy(planner, group))
        return true;
    group = planner_update(planner, group);
    const struct machine *machine = planner->plan->machine;
    struct plan_strategy_context context = plan_strategy_context(
        planner->graph, group, machine_reference(machine), planner->init, planner->scratch);
    struct config config;
    struct text why;
    text_init(&why, planner->scratch);
    const struct strategy *strategy = strategy_choose(&context.base, planner->options->optimisation, &config,
                                                      planner->options->explain ? &why : NULL);
    const struct machine *compiled_for = strategy_retarget(&context.base, machine, strategy, &config);
    struct lowered_group lowered = {0};
    struct text reason;
    text_init(&reason, planner->scratch);
    context.base.arena = planner->built;
    if (!strategy->build(&context.base, &config, &lowered, &reason)) {
        diag_error(planner->diagnostics, DIAG_internal, group->location,
                   "strategy %s refused a group that it takes: %s", strategy->name, reason.data);
        return false;
    }
    if (planner->options->explain) {
        struct text line;
        text_init(&line, planner->scratch);
        text_printf(&line, "%s: ", strategy->name);
        if (strategy->describe)
            strategy->describe(&config, &line);
        text_put(&line, "\n");
        group_print(planner->graph, group, &line);
        text_put(&line, why.data);
        planner->options->explain(planner->options->explain_user, line.data);
    }
    planner_allow_in_place(planner, group, &lowered);
    if (!planner_add_launches(planner, group, &lowered, compiled_for, bound))
        return false;
    planner_end_group(planner);
    return true;
}

bool planner_add_grouping(struct planner *planner, const struct grouping *grouping)
{
    for (uint32_t i = 0; i < grouping->views.count; i++)
        planner->same_as[grouping->views.items[i].value] = grouping->views.items[i].of;
    for (uint32_t i = 0; i < grouping->groups.count; i++)
        if (!planner_add_group(planner, &grouping->groups.items[i], NULL))
            return false;
    return true;
}

/* What outlasts a loop at the plan's end has no launch behind it to last for. */
static void end_with_last_launch(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->buffers.count; i++) {
        struct plan_buffer *buffer = &plan->buffers.items[i];
        if (buffer->last >= plan->launches.count && plan->launches.count)
            buffer->last = plan->launches.count - 1;
    }
}

/* The last launch counts as use of everything that is copied behind it. */
static void mark_copies(struct planner *planner)
{
    uint32_t launches = planner->plan->launches.count;
    for (uint32_t i = 0; i < planner->plan->copies.count; i++)
        planner_mark_use(planner, planner->plan->copies.items[i].from, launches ? launches - 1 : 0);
}

bool plan_build(const struct graph *graph, const struct grouping *grouping, const struct machine *machine,
                const struct plan_options *options, struct arena *arena, struct diagnostics *diagnostics,
                struct plan *out)
{
    *out = (struct plan){.machine = machine, .word_buffer = UINT32_MAX};
    struct planner planner = {
        .graph = graph,
        .dims = (struct dims *)&graph->dims, /* the table grows by hash-consing; no dim changes */
        .arena = arena,
        .scratch = arena_child(arena),
        .built = arena_child(arena),
        .diagnostics = diagnostics,
        .options = options,
        .plan = out,
        .init = init_values(graph, arena),
        .value_buffers = planner_unset(arena, graph->values.count),
    };
    planner.same_as = arena_new_array(arena, value_id, graph->values.count);
    for (uint32_t i = 0; i < graph->values.count; i++)
        planner.same_as[i] = i;
    for (uint32_t i = 0; i < grouping->views.count; i++)
        planner.same_as[grouping->views.items[i].value] = grouping->views.items[i].of;
    if (!planner_check_aliases(&planner))
        return false;
    add_caller_buffers(&planner);
    if (!planner_add_grouping(&planner, grouping))
        return false;
    if (!planner_place_outputs(&planner))
        return false;
    if (!planner_collect_words(&planner))
        return false;
    mark_copies(&planner);
    planner_share_in_place(&planner);
    end_with_last_launch(out);
    return true;
}

/* Outputs that live in an input's buffer (--alias), and copies into outputs.
 *
 * Such an output is computed in the arena at first and copied behind all launches, since the input may be
 * read until then. Where the last launch that reads the input stands before the first that touches the
 * result, or is the launch that makes it in place, the result is made in the caller's buffer at once and the
 * copy goes.
 *
 * Copies that are left run one by one: those that read an input come before those that write over it. Where
 * that is a circle (two outputs that swap two inputs) the model is refused. */
#include <string.h>

#include "codegen/plan_internal.h"

uint32_t planner_alias_of(const struct graph *graph, uint32_t output)
{
    for (uint32_t i = 0; i < graph->aliases.count; i++)
        if (graph->aliases.items[i].output == output)
            return graph->aliases.items[i].input;
    return UINT32_MAX;
}

/* The plan buffer of a graph input; inputs come first. */
static uint32_t input_buffer(uint32_t input)
{
    return input;
}

static const char *output_name(struct planner *planner, uint32_t output)
{
    return diag_quote(planner->diagnostics, planner->graph->outputs.items[output].name);
}

static const char *input_name(struct planner *planner, uint32_t input)
{
    const char *name = graph_value(planner->graph, planner->graph->inputs.items[input])->name;
    return diag_quote(planner->diagnostics, name ? name : "(unnamed)");
}

bool planner_check_aliases(struct planner *planner)
{
    const struct graph *graph = planner->graph;
    bool good = true;
    for (uint32_t i = 0; i < graph->aliases.count; i++) {
        const struct alias alias = graph->aliases.items[i];
        const enum dtype input = graph_value(graph, graph->inputs.items[alias.input])->type.dtype;
        const enum dtype output = graph_value(graph, graph->outputs.items[alias.output].value)->type.dtype;
        if (input == output)
            continue;
        diag_error(planner->diagnostics, DIAG_bad_option, NULL,
                   "--alias: output %s holds %s and cannot live in the buffer of input %s, which holds %s",
                   output_name(planner, alias.output), dtype_name(output), input_name(planner, alias.input),
                   dtype_name(input));
        good = false;
    }
    return good;
}

/* ---- without a copy
 * ------------------------------------------------------------------------------------------------ */

static bool launch_uses(const struct plan *plan, const struct plan_launch *launch, uint32_t buffer)
{
    const uint32_t count = kernel_buffer_count(plan->kernels.items[launch->kernel].kernel);
    for (uint32_t i = 0; i < count; i++)
        if (launch->buffers[i] == buffer)
            return true;
    return false;
}

static bool made_in_place(const struct planner *planner, uint32_t launch, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < planner->pairs.count; i++) {
        const struct in_place_pair *pair = &planner->pairs.items[i];
        const uint32_t *buffers = planner->plan->launches.items[launch].buffers;
        if (pair->launch == launch && buffers[pair->input] == from && buffers[pair->output] == to)
            return true;
    }
    return false;
}

/* Nobody reads the input once something is in `result`. */
static bool input_is_read_before(const struct planner *planner, uint32_t input, uint32_t result)
{
    const struct plan *plan = planner->plan;
    uint32_t last_read = 0, first_use = UINT32_MAX;
    bool read = false;
    if (plan->controls.count) /* launches of a loop run again */
        return false;
    for (uint32_t i = 0; i < plan->launches.count; i++) {
        if (launch_uses(plan, &plan->launches.items[i], input)) {
            last_read = i;
            read = true;
        }
        if (first_use == UINT32_MAX && launch_uses(plan, &plan->launches.items[i], result))
            first_use = i;
    }
    return first_use != UINT32_MAX &&
           (!read || last_read < first_use ||
            (last_read == first_use && made_in_place(planner, first_use, input, result)));
}

/* The copy is the only one that reads its source, and none reads the input behind the launches. */
static bool copy_stands_alone(const struct planner *planner, uint32_t copy, uint32_t input)
{
    const struct plan *plan = planner->plan;
    for (uint32_t i = 0; i < plan->copies.count; i++) {
        const struct plan_copy *other = &plan->copies.items[i];
        if (i != copy && (other->from == plan->copies.items[copy].from || other->from == input))
            return false;
    }
    return true;
}

static void take_caller_buffer(struct planner *planner, uint32_t copy)
{
    struct plan *plan = planner->plan;
    const struct plan_copy moved = plan->copies.items[copy];
    for (uint32_t i = 0; i < plan->launches.count; i++) {
        struct plan_launch *launch = &plan->launches.items[i];
        const uint32_t count = kernel_buffer_count(plan->kernels.items[launch->kernel].kernel);
        if (!launch_uses(plan, launch, moved.from))
            continue;
        uint32_t *buffers = arena_copy(planner->arena, launch->buffers, count * sizeof *buffers);
        for (uint32_t k = 0; k < count; k++)
            if (buffers[k] == moved.from)
                buffers[k] = moved.to;
        launch->buffers = buffers;
    }
    plan->buffers.items[moved.from].elements = dim_constant(planner->dims, 0); /* nothing is in it */
    plan->copies.count--;
    memmove(&plan->copies.items[copy], &plan->copies.items[copy + 1],
            (plan->copies.count - copy) * sizeof *plan->copies.items);
}

/* ---- order
 * ----------------------------------------------------------------------------------------------------------
 */

/* The input whose memory the copy overwrites; UINT32_MAX: none. */
static uint32_t overwritten_input(const struct planner *planner, const struct plan_copy *copy)
{
    const struct plan_buffer *to = &planner->plan->buffers.items[copy->to];
    return to->kind == PLAN_OUTPUT ? planner_alias_of(planner->graph, to->index) : UINT32_MAX;
}

/* The copy reads an input that another copy, not done yet, ... : must `first` run before `second`? */
static bool must_precede(const struct planner *planner, const struct plan_copy *first,
                         const struct plan_copy *second)
{
    const uint32_t input = overwritten_input(planner, second);
    return first != second && input != UINT32_MAX && first->from == input_buffer(input);
}

static bool refuse_circle(struct planner *planner, const struct plan_copy *copy)
{
    const uint32_t output = planner->plan->buffers.items[copy->to].index;
    const uint32_t input = overwritten_input(planner, copy);
    uint32_t reader = output;
    for (uint32_t i = 0; i < planner->plan->copies.count; i++)
        if (must_precede(planner, &planner->plan->copies.items[i], copy))
            reader = planner->plan->buffers.items[planner->plan->copies.items[i].to].index;
    diag_error(
        planner->diagnostics, DIAG_unsupported_case, NULL,
        "--alias: output %s cannot live in the buffer of input %s: output %s is a copy of that input and "
        "would read it after it is written",
        output_name(planner, output), input_name(planner, input), output_name(planner, reader));
    return false;
}

static bool order_copies(struct planner *planner)
{
    struct plan *plan = planner->plan;
    for (uint32_t done = 0; done < plan->copies.count; done++) {
        uint32_t next = done;
        for (bool blocked = true; next < plan->copies.count && blocked; next += blocked) {
            blocked = false;
            for (uint32_t i = done; i < plan->copies.count && !blocked; i++)
                blocked = must_precede(planner, &plan->copies.items[i], &plan->copies.items[next]);
        }
        if (next == plan->copies.count)
            return refuse_circle(planner, &plan->copies.items[done]);
        const struct plan_copy chosen = plan->copies.items[next];
        memmove(&plan->copies.items[done + 1], &plan->copies.items[done],
                (next - done) * sizeof *plan->copies.items);
        plan->copies.items[done] = chosen;
    }
    return true;
}

bool planner_place_outputs(struct planner *planner)
{
    struct plan *plan = planner->plan;
    for (uint32_t i = plan->copies.count; i-- > 0;) {
        const struct plan_copy copy = plan->copies.items[i];
        const uint32_t input = overwritten_input(planner, &copy);
        if (input == UINT32_MAX)
            continue;
        if (copy.from == input_buffer(input)) { /* it is there already */
            plan->copies.count--;
            memmove(&plan->copies.items[i], &plan->copies.items[i + 1],
                    (plan->copies.count - i) * sizeof *plan->copies.items);
        } else if (plan->buffers.items[copy.from].kind == PLAN_ARENA &&
                   copy_stands_alone(planner, i, input_buffer(input)) &&
                   input_is_read_before(planner, input_buffer(input), copy.from)) {
            take_caller_buffer(planner, i);
        }
    }
    return order_copies(planner);
}

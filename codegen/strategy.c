/* The strategies of each kind of machine, in order, and the choice among them: the cheapest configuration of
 * those that fit at the level. Equal costs: the earlier row. */
#include "codegen/strategy.h"

#include <math.h>

#include "codegen/strategy/cpu/strategies.h"
#include "codegen/strategy/gpu/gpu_common.h"

enum { MAX_CANDIDATES = 16, MAX_STRATEGIES = 16 };

static const struct strategy *const cpu_rows_list[] = {&cpu_depthwise, &cpu_conv,      &cpu_matmul, &cpu_rows,
                                                       &cpu_columns,   &cpu_transpose, &cpu_plain,  NULL};
static const struct strategy *const gpu_rows_list[] = {
    &gpu_matmul_wgmma, &gpu_matmul_mma, &gpu_contraction, &gpu_window, &gpu_rows, &gpu_columns,
    &gpu_split,        &gpu_transpose,  &gpu_pointwise,   &gpu_plain,  NULL};

const struct strategy *cpu_strategy(uint32_t index)
{
    return index < sizeof cpu_rows_list / sizeof cpu_rows_list[0] ? cpu_rows_list[index] : NULL;
}

const struct strategy *gpu_strategy(uint32_t index)
{
    return index < sizeof gpu_rows_list / sizeof gpu_rows_list[0] ? gpu_rows_list[index] : NULL;
}

const struct strategy *strategy_row(const struct machine *machine, uint32_t index)
{
    return machine->kind == TARGET_CPU ? cpu_strategy(index) : gpu_strategy(index);
}

bool strategy_takes(const struct strategy *strategy, const struct strategy_context *context, int optimisation,
                    struct text *why)
{
    if (strategy->from_level > optimisation) {
        text_put(why, "the level is too low");
        return false;
    }
    if (!strategy->any_nest && !definition_is_plain(&context->group->body)) {
        text_put(why, "a scan, a sort or a conditional store");
        return false;
    }
    return strategy->fits(context, why);
}

/* Of one strategy that fits: its cheapest configuration. */
static double cheapest(const struct strategy_context *context, const struct strategy *strategy,
                       struct config *config)
{
    struct config candidates[MAX_CANDIDATES];
    double least = INFINITY;
    const uint32_t count = strategy->candidates(context, candidates, MAX_CANDIDATES);
    for (uint32_t i = 0; i < count; i++) {
        const double cost = strategy->cost(context, &candidates[i]);
        if (i > 0 && !(cost < least))
            continue;
        least = cost;
        *config = candidates[i];
    }
    return least;
}

const struct strategy *strategy_choose(const struct strategy_context *context, int optimisation,
                                       struct config *config, struct text *why_not)
{
    const struct strategy *best = NULL, *strategy;
    double costs[MAX_STRATEGIES] = {0}, best_cost = 0;
    for (uint32_t i = 0; (strategy = strategy_row(context->machine, i)); i++) {
        struct config own = {0};
        struct text why;
        text_init(&why, context->arena);
        costs[i] = -1;
        if (strategy->from_level > optimisation)
            continue;
        if (!strategy_takes(strategy, context, optimisation, &why)) {
            if (why_not)
                text_printf(why_not, "  not %s: %s\n", strategy->name, why.data);
            continue;
        }
        costs[i] = cheapest(context, strategy, &own);
        if (!best || costs[i] < best_cost) {
            best = strategy;
            best_cost = costs[i];
            *config = own;
        }
    }
    for (uint32_t i = 0; why_not && (strategy = strategy_row(context->machine, i)); i++)
        if (strategy != best && costs[i] >= 0)
            text_printf(why_not, "  not %s: %.3g us, %s takes %.3g\n", strategy->name, costs[i] * 1e6,
                        best->name, best_cost * 1e6);
    return best;
}

const struct machine *strategy_retarget(struct strategy_context *context, const struct machine *machine,
                                        const struct strategy *strategy, struct config *config)
{
    const struct machine *reference = context->machine;
    if (machine == reference)
        return machine;
    if (strategy->retarget &&
        !machine->software_fma) { /* that fma is slower than any tile could make up for */
        context->machine = machine;
        strategy->retarget(context, config);
        return machine;
    }
    return machine->host == reference->host && machine->level > reference->level ? reference : machine;
}

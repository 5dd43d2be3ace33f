/* What passes ask of code generation: does a strategy better than the plain one take a group, and what would
 * it cost. */
#include "codegen/plan_internal.h"
#include "ir/init.h"

struct services {
    const struct graph *graph;
    const struct machine *machine;
    struct arena *scratch; /* of one question */
    const bool *init;
    int optimisation;
};

/* The last row is the plain strategy: it fits everything and so says nothing. */
static bool services_fit(void *user, const struct group *group, struct text *why)
{
    const struct services *services = user;
    struct plan_strategy_context context =
        plan_strategy_context(services->graph, group, services->machine, services->init, services->scratch);
    const struct strategy *strategy;
    bool taken = false;
    for (uint32_t i = 0;
         (strategy = strategy_row(services->machine, i)) && strategy_row(services->machine, i + 1); i++)
        if ((taken = strategy_takes(strategy, &context.base, services->optimisation, why)))
            break;
    arena_clear(services->scratch);
    return taken;
}

static double services_cost(void *user, const struct group *group)
{
    const struct services *services = user;
    struct plan_strategy_context context =
        plan_strategy_context(services->graph, group, services->machine, services->init, services->scratch);
    struct config config;
    const double cost =
        strategy_choose(&context.base, services->optimisation, &config, NULL)->cost(&context.base, &config);
    arena_clear(services->scratch);
    return cost;
}

struct target_services plan_services(const struct graph *graph, const struct machine *machine,
                                     int optimisation, struct arena *arena)
{
    struct services *services = arena_new(arena, struct services);
    *services = (struct services){.graph = graph,
                                  .machine = machine,
                                  .scratch = arena_child(arena),
                                  .init = init_values(graph, arena),
                                  .optimisation = optimisation};
    return (struct target_services){
        .machine = machine, .user = services, .fits = services_fit, .cost = services_cost};
}

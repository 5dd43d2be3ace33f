/* Sizes that the model computes, in a plan: kernels whose dims hang on them get the buffers that hold them,
 * and one launch at the end puts all of them in line, so that the host fetches them with one copy and knows
 * the actual sizes. */
#include "codegen/plan_internal.h"

#include <string.h>

bool planner_bind_words(struct planner *planner, const struct group *group, struct kernel *kernel,
                        uint32_t *buffers)
{
    uint32_t symbols[MAX_KERNEL_WORDS];
    dim touched[MAX_KERNEL_MEMORIES];
    for (uint32_t i = 0; i < kernel->global_count; i++)
        touched[i] = planner->plan->buffers.items[buffers[i]].elements;
    if (!kernel_bind_words(kernel, planner->graph, touched, kernel->global_count, symbols)) {
        diag_error(planner->diagnostics, DIAG_limit_exceeded, group->location,
                   "a kernel hangs on more than %u sizes that the model computes",
                   (unsigned)MAX_KERNEL_WORDS);
        return false;
    }
    for (uint32_t i = 0; i < kernel->words.count; i++)
        buffers[kernel->global_count + i] =
            planner_value_buffer(planner, planner->dims->symbols.items[symbols[i]].word);
    return true;
}

/* Some launch stores the value, or the caller or the weights have it; those inside bodies are no longer what
 * they were when the model ends. */
static bool is_there(const struct planner *planner, const struct symbol *symbol)
{
    const struct value *value = graph_value(planner->graph, symbol->word);
    if (value->kind == VALUE_CONSTANT || planner->init[symbol->word])
        return false; /* known: shape inference or the fold settled it */
    if (value->kind != VALUE_RESULT || graph_node(planner->graph, value->producer)->removed ||
        graph_node(planner->graph, value->producer)->region != GRAPH_BODY)
        return false;
    return planner->value_buffers[planner->same_as[symbol->word]] != UINT32_MAX;
}

static struct kernel_memory memory_of(enum dtype dtype, bool written)
{
    return (struct kernel_memory){.space = MEMORY_GLOBAL,
                                  .dtype = dtype,
                                  .lanes = 1,
                                  .read = !written,
                                  .written = written,
                                  .alignment = dtype_bits(dtype) / 8,
                                  .label = written ? "counts" : "count"};
}

/* Words first .. first + count - 1 into the word buffer. */
static bool collect(struct planner *planner, uint32_t first, uint32_t count)
{
    struct plan *plan = planner->plan;
    struct kernel *kernel = kernel_new(planner->arena, planner->dims);
    uint32_t buffers[MAX_KERNEL_MEMORIES];
    kernel->strategy = "collect";
    kernel->summary = "Puts the sizes that the model computed in line for the host";
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol *symbol = &planner->dims->symbols.items[plan->words.items[first + i].symbol];
        const struct kernel_memory memory =
            memory_of(graph_value(planner->graph, symbol->word)->type.dtype, false);
        buffers[i] = planner_value_buffer(planner, symbol->word);
        (void)kernel_memory_add(kernel, &memory);
    }
    const struct kernel_memory counts = memory_of(DTYPE_I64, true);
    buffers[count] = plan->word_buffer;
    (void)kernel_memory_add(kernel, &counts);
    struct block block = {.kernel = kernel, .at = &kernel->body};
    for (uint32_t i = 0; i < count; i++) {
        const struct symbol *symbol = &planner->dims->symbols.items[plan->words.items[first + i].symbol];
        const expr word = kernel_element(kernel, i, expr_index(kernel->pool, symbol->axis), 1);
        build_store(&block, count, expr_index(kernel->pool, first + i),
                    expr_convert(kernel->pool, DTYPE_I64, word));
    }
    struct plan_launch launch = {
        .buffers = arena_copy(planner->arena, buffers, (count + 1) * sizeof *buffers), .work = kernel->work};
    const struct group nothing = {0};
    memcpy(launch.grid, kernel->grid, sizeof launch.grid);
    for (uint32_t i = 0; i <= count; i++)
        planner_mark_use(planner, buffers[i], plan->launches.count);
    if (!planner_add_kernel(planner, &nothing, kernel, plan->machine, &launch.kernel))
        return false;
    vec_push(planner->arena, &plan->launches, launch);
    return true;
}

bool planner_collect_words(struct planner *planner)
{
    struct plan *plan = planner->plan;
    for (uint32_t i = 0; i < planner->dims->symbols.count; i++) {
        const struct symbol *symbol = &planner->dims->symbols.items[i];
        if (symbol->source == SYMBOL_WORD && is_there(planner, symbol))
            vec_push(planner->arena, &plan->words, ((struct plan_word){i}));
    }
    if (!plan->words.count)
        return true;
    plan->word_buffer =
        planner_add_buffer(planner, PLAN_ARENA, 0, DTYPE_I64, dim_constant(planner->dims, plan->words.count));
    for (uint32_t first = 0; first < plan->words.count;) {
        const uint32_t left = plan->words.count - first;
        const uint32_t count = left < MAX_KERNEL_MEMORIES - 1 ? left : MAX_KERNEL_MEMORIES - 1;
        if (!collect(planner, first, count))
            return false;
        first += count;
    }
    /* Read when all is done. */
    planner_mark_use(planner, plan->word_buffer, plan->launches.count - 1);
    return true;
}

/* Unique kernels of a plan: equal canonical text, one kernel. For CUDA the text is the comment-free source
 * under a fixed name, so that the hash names what the compiler sees; for the CPU it is the printed Kernel IR.
 */
#include <ctype.h>
#include <string.h>

#include "codegen/plan_internal.h"
#include "codegen/printers.h"
#include "ir/support/hash.h"

/* The operator that a group is named by: its anchor, else a reduction, else its first node. */
static const char *group_operator(const struct graph *graph, const struct group *group)
{
    static const uint32_t order[] = {OP_ANCHOR, OP_REDUCTION};
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (uint32_t i = 0; i < group->nodes.count; i++) {
            const struct op_facts *facts = op_facts(graph_node(graph, group->nodes.items[i])->op);
            if (facts->traits & order[k])
                return facts->name;
        }
    return group->nodes.count ? op_facts(graph_node(graph, group->nodes.items[0])->op)->name
                              : "copy"; /* the planner's own */
}

/* conv_1a2b3c4d: our operator name in lower case and the first 8 digits of the hash. */
static const char *kernel_name(struct arena *arena, const char *op, const char *hash)
{
    char *name = arena_printf(arena, "%s_%.8s", op, hash);
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return name;
}

static void hash_text(const char *text, const char *machine, char hex[65])
{
    struct sha256 hash;
    unsigned char digest[32];
    sha256_init(&hash);
    sha256_update(&hash, machine, strlen(machine) + 1);
    sha256_update(&hash, text, strlen(text));
    sha256_final(&hash, digest);
    sha256_hex(digest, hex);
}

/* What the compiler sees, without comments and under a fixed name. */
static void canonical_text(const struct kernel *kernel, const struct machine *machine, struct text *out)
{
    if (machine->kind != TARGET_CUDA) {
        kernel_print(kernel, out);
        return;
    }
    struct text source;
    text_init(&source, out->arena);
    print_cuda(kernel, "kernel", machine, false, &source);
    print_cuda_prelude(source.data, machine, out);
    text_put(out, source.data);
}

void plan_kernel_hash(const struct kernel *kernel, const struct machine *machine, struct arena *arena,
                      char hex[65])
{
    struct text text;
    text_init(&text, arena);
    canonical_text(kernel, machine, &text);
    hash_text(text.data, machine->name, hex);
}

static void grow_slots(struct planner *planner)
{
    const uint32_t count = planner->slot_count ? 2 * planner->slot_count : 64;
    uint32_t *slots = arena_new_array(planner->arena, uint32_t, count);
    for (uint32_t i = 0; i < planner->slot_count; i++) {
        if (!planner->slots[i])
            continue;
        const char *key = planner->kernel_keys.items[planner->slots[i] - 1];
        uint32_t at = (uint32_t)hash_bytes(0, key, strlen(key)) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = planner->slots[i];
    }
    planner->slots = slots;
    planner->slot_count = count;
}

/* The kernel with this text; false: *number, the next one, is entered for it. */
static bool find_kernel(struct planner *planner, const char *text, const struct machine *machine,
                        uint32_t *number)
{
    if (2 * planner->kernel_keys.count >= planner->slot_count)
        grow_slots(planner);
    for (uint32_t at = (uint32_t)hash_bytes(0, text, strlen(text));; at++) {
        uint32_t *slot = &planner->slots[at & (planner->slot_count - 1)];
        if (!*slot) {
            *number = planner->kernel_keys.count;
            *slot = *number + 1;
            return false;
        }
        *number = *slot - 1;
        if (planner->plan->kernels.items[*number].machine == machine &&
            strcmp(planner->kernel_keys.items[*number], text) == 0)
            return true;
    }
}

bool planner_add_kernel(struct planner *planner, const struct group *group, struct kernel *kernel,
                        const struct machine *machine, uint32_t *number)
{
    struct text text;
    text_init(&text, planner->scratch);
    if (!kernel_verify(kernel, machine, &text)) {
        diag_error(planner->diagnostics, DIAG_internal, group->location,
                   "strategy %s built a wrong kernel: %s", kernel->strategy, text.data);
        return false;
    }
    text_init(&text, planner->scratch);
    canonical_text(kernel, machine, &text);
    if (find_kernel(planner, text.data, machine, number))
        return true;
    planner->keep = true;
    struct plan_kernel added = {.kernel = kernel, .machine = machine, .dim_count = kernel->dims.count};
    hash_text(text.data, machine->name, added.hash);
    kernel->name = kernel_name(planner->arena, group_operator(planner->graph, group), added.hash);
    if (machine->kind == TARGET_CUDA) {
        struct text source;
        text_init(&source, planner->arena);
        print_cuda(kernel, kernel->name, machine, true, &source);
        added.source = source.data;
    }
    vec_push(planner->arena, &planner->plan->kernels, added);
    vec_push(planner->arena, &planner->kernel_keys, (const char *)arena_string(planner->arena, text.data));
    return true;
}

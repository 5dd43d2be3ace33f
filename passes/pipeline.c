/* The pipeline of the shared passes: a list one can read. It runs once a model, before any target is looked
 * at.
 *
 * cse stands before canonicalise because patterns ask for the *same* value twice (x in a GELU); fold and cse
 * stand behind it again because rows leave arithmetic on constants. */
#include "passes/passes.h"

#include <string.h>

static const struct pass shared_passes[] = {
    {"import_cleanup", pass_import_cleanup, 1,
     "drop identities, casts to the same type, outputs nobody reads"},
    {"shapes", pass_shapes, 0, "find the type of every value; shape inputs become attributes"},
    {"fold", pass_fold, 1, "evaluate small constant nodes; shape arithmetic becomes dims"},
    {"cse", pass_cse, 1, "merge nodes that compute the same"},
    {"canonicalise", pass_canonicalise, 1, "apply the rewrite rows until none fires"},
    {"fold", pass_fold, 1, "again: what rewriting left on constants"},
    {"cse", pass_cse, 1, "again"},
    {"hoist", pass_hoist, 1, "compute once, before a loop, what does not change in it"},
    {"dead_code", pass_dead_code, 0, "drop nodes whose results nobody reads"},
};

enum { PASS_COUNT = sizeof shared_passes / sizeof shared_passes[0] };

const struct pass *pipeline_pass(uint32_t index)
{
    return index < PASS_COUNT ? &shared_passes[index] : NULL;
}

const struct pass *pipeline_find(const char *name)
{
    for (uint32_t i = 0; i < PASS_COUNT; i++)
        if (!strcmp(shared_passes[i].name, name))
            return &shared_passes[i];
    return NULL;
}

/* From the model's file to the graph that all targets share: options for the importer, import, pipeline. */
#include <stdio.h>
#include <string.h>

#include "frontend/driver/driver.h"
#include "passes/pass.h"

enum { DEFAULT_FOLD_LIMIT = 1 << 20 };

/* NAME=LOW[:HIGH[:HINT]] */
static bool parse_dim(const char *text, struct import_dim *out, struct arena *arena)
{
    const char *numbers;
    if (!split_pair(arena, text, true, &out->name, &numbers))
        return false;
    int64_t values[3];
    uint32_t count = 0;
    char *rest = arena_string(arena, numbers);
    for (char *at = rest; at; count++) {
        char *colon = at;
        while (*colon && *colon != ':')
            colon++;
        char *next = *colon ? colon + 1 : NULL;
        *colon = '\0';
        if (count == 3 || !parse_integer(at, &values[count]) || values[count] < 0)
            return false;
        at = next;
    }
    out->low = values[0];
    out->high = count > 1 ? values[1] : values[0];
    out->hint = count > 2 ? values[2] : out->high;
    return out->low <= out->high && out->hint >= out->low && out->hint <= out->high;
}

static bool import_settings(const struct options *options, struct import_options *out, struct arena *arena,
                            struct diagnostics *diagnostics)
{
    bool good = true;
    uint32_t dim_count = options->of[OPTION_DIM].values.count;
    struct import_dim *dims = arena_new_array(arena, struct import_dim, dim_count);
    for (uint32_t i = 0; i < dim_count; i++) {
        const char *text = options->of[OPTION_DIM].values.items[i];
        if (!parse_dim(text, &dims[i], arena)) {
            diag_error(diagnostics, DIAG_bad_option, NULL,
                       "--dim takes NAME=LOW[:HIGH[:HINT]] with 0 <= LOW <= HINT <= HIGH, not %s",
                       diag_quote(diagnostics, text));
            good = false;
        }
    }
    uint32_t alias_count = options->of[OPTION_ALIAS].values.count;
    struct import_alias *aliases = arena_new_array(arena, struct import_alias, alias_count);
    for (uint32_t i = 0; i < alias_count; i++) {
        const char *text = options->of[OPTION_ALIAS].values.items[i];
        if (!split_pair(arena, text, false, &aliases[i].output, &aliases[i].input)) {
            diag_error(diagnostics, DIAG_bad_option, NULL, "--alias takes OUTPUT=INPUT, not %s",
                       diag_quote(diagnostics, text));
            good = false;
        }
    }
    *out = (struct import_options){
        .dims = dims,
        .dim_count = dim_count,
        .outputs = options->of[OPTION_OUTPUT].values.items,
        .output_count = options->of[OPTION_OUTPUT].values.count,
        .aliases = aliases,
        .alias_count = alias_count,
    };
    return good;
}

static void dump_pass(void *user, const char *pass, const char *text)
{
    (void)user;
    printf("; after %s\n%s\n", pass, text); /* a comment of the text form: a dump reads back as it is */
}

/* The pass whose result is asked for, or "all"; NULL: none. False: reported. */
static bool dump_wish(const struct options *options, int64_t level, const char **dump,
                      struct diagnostics *diagnostics)
{
    *dump = option_value(options, OPTION_DUMP_IR, NULL);
    if (!*dump || strcmp(*dump, "all") == 0)
        return true;
    const struct pass *pass = pipeline_find(*dump);
    if (!pass)
        diag_error(diagnostics, DIAG_bad_option, NULL,
                   "--dump-ir takes all or the name of a pass, not %s; gpucc --print-pipeline lists them",
                   diag_quote(diagnostics, *dump));
    else if (pass->from_level > level)
        diag_error(diagnostics, DIAG_bad_option, NULL, "--dump-ir=%s: the pass does not run at -O%d",
                   pass->name, (int)level);
    return pass && pass->from_level <= level;
}

struct graph *load_model(const struct options *options, const char *path, struct source_files *files,
                         struct arena *arena, struct diagnostics *diagnostics)
{
    struct import_options import;
    int64_t level, fold_limit;
    struct graph *graph = NULL;
    bool good = import_settings(options, &import, arena, diagnostics);
    good &= option_integer(options, OPTION_LEVEL, 0, 3, 3, &level, diagnostics);
    good &= option_integer(options, OPTION_FOLD_LIMIT, 0, INT64_C(1) << 32, DEFAULT_FOLD_LIMIT, &fold_limit,
                           diagnostics);
    const char *dump;
    good = good && dump_wish(options, level, &dump, diagnostics);
    if (!good || !import_model(arena, diagnostics, path, &import, files, &graph))
        return NULL;
    struct pipeline_options pipeline = {
        .optimisation = (int)level,
#ifdef GPUCC_VERIFY
        .verify = true,
#endif
        .dump = dump,
        .dump_sink = dump_pass,
        .fold_limit = (uint64_t)fold_limit,
    };
    return run_pipeline(graph, diagnostics, &pipeline) ? graph : NULL;
}

void guarded(struct arena *arena, void (*work)(void *user), void (*clean_up)(void *user), void *user)
{
    struct recovery *outer = arena->recovery, inner;
    if (setjmp(inner.jump) != 0) {
        arena->recovery = outer;
        clean_up(user);
        longjmp(outer->jump, 1);
    }
    arena->recovery = &inner;
    work(user);
    arena->recovery = outer;
    clean_up(user);
}

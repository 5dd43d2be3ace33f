/* Reads argv by the table in options.def. Options may stand before or behind the command's files; "--" ends
 * them. */
#include "frontend/driver/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct option_row {
    const char *text, *short_text;
    enum option_kind kind;
    unsigned commands;
    const char *argument, *help;
};

static const struct option_row rows[] = {
#define OPTION(name, text, short_text, kind, commands, argument, help)                                       \
    {text, short_text, kind, commands, argument, help},
#include "frontend/driver/options.def"
#undef OPTION
};

static const struct {
    const char *name; /* NULL: without a word */
    enum command command;
    const char *usage, *help;
} commands[] = {
    {NULL, COMMAND_COMPILE, "gpucc MODEL.onnx [-o BUNDLE.so]",
     "compile a model into a shared library, a bundle"},
    {"check", COMMAND_CHECK, "gpucc check MODEL.onnx",
     "say whether the model can be compiled, and all that cannot"},
    {"run", COMMAND_RUN, "gpucc run BUNDLE.so", "one inference on files or random data"},
    {"info", COMMAND_INFO, "gpucc info BUNDLE.so", "what a bundle holds, as JSON; executes nothing"},
    {"ops", COMMAND_OPS, "gpucc ops", "the operators that are supported"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static bool bad_option(struct diagnostics *diagnostics, const char *text, const char *problem)
{
    diag_error(diagnostics, DIAG_bad_option, NULL, "option %s %s", diag_quote(diagnostics, text), problem);
    return false;
}

/* The row that the text (behind "--" or "-") names; *value is what stands behind '=' (or behind a short
 * option's letter). */
static int find_option(const char *text, bool is_short, const char **value)
{
    *value = NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &rows[i];
        if (is_short) {
            if (row->short_text && text[0] == row->short_text[0]) {
                if (text[1])
                    *value = text + 1;
                return i;
            }
            continue;
        }
        size_t length = strlen(row->text);
        if (strncmp(text, row->text, length) == 0 && (text[length] == '\0' || text[length] == '=')) {
            if (text[length] == '=')
                *value = text + length + 1;
            return i;
        }
    }
    return -1;
}

static bool take_option(struct options *options, int argc, char **argv, int *at, struct arena *arena,
                        struct diagnostics *diagnostics)
{
    const char *text = argv[*at];
    bool is_short = text[1] != '-';
    const char *value;
    int found = find_option(text + (is_short ? 1 : 2), is_short, &value);
    if (found < 0)
        return bad_option(diagnostics, text, "is unknown; see gpucc --help");
    const struct option_row *row = &rows[found];
    if (row->kind == OPTION_FLAG && value)
        return bad_option(diagnostics, text, "takes no value");
    if (row->kind != OPTION_FLAG && !value) {
        if (*at + 1 >= argc)
            return bad_option(diagnostics, text, "needs a value");
        value = argv[++*at];
    }
    options->of[found].given = true;
    vec_push(arena, &options->of[found].values, value);
    return true;
}

static bool check_commands(const struct options *options, struct diagnostics *diagnostics)
{
    bool good = true;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options->of[i].given && !(rows[i].commands & (unsigned)options->command))
            good = bad_option(diagnostics, arena_printf(diagnostics->arena, "--%s", rows[i].text),
                              "does not belong to this command; see gpucc COMMAND --help");
    return good;
}

bool options_parse(struct options *options, int argc, char **argv, struct arena *arena,
                   struct diagnostics *diagnostics)
{
    *options = (struct options){.command = COMMAND_COMPILE};
    bool only_files = false, command_seen = false, good = true;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (!only_files && strcmp(text, "--") == 0) {
            only_files = true;
        } else if (!only_files && (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)) {
            options->help = true;
        } else if (!only_files && strcmp(text, "--version") == 0) {
            options->version = true;
        } else if (!only_files && text[0] == '-' && text[1]) {
            good &= take_option(options, argc, argv, &i, arena, diagnostics);
        } else {
            bool is_command = false;
            for (size_t k = 0; !only_files && !command_seen && k < COMMANDS; k++)
                if (commands[k].name && strcmp(text, commands[k].name) == 0) {
                    options->command = commands[k].command;
                    is_command = true;
                }
            command_seen = true;
            if (!is_command)
                vec_push(arena, &options->files, text);
        }
    }
    return good && (options->help || options->version || check_commands(options, diagnostics));
}

const char *option_value(const struct options *options, enum option_name name, const char *absent)
{
    uint32_t count = options->of[name].values.count;
    return count && options->of[name].values.items[count - 1] ? options->of[name].values.items[count - 1]
                                                              : absent;
}

bool parse_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || text[0] == ' ' || text[0] == '+')
        return false;
    *value = number;
    return true;
}

bool option_integer(const struct options *options, enum option_name name, int64_t low, int64_t high,
                    int64_t absent, int64_t *value, struct diagnostics *diagnostics)
{
    *value = absent;
    const char *text = option_value(options, name, NULL);
    if (!text)
        return true;
    if (parse_integer(text, value) && *value >= low && *value <= high)
        return true;
    diag_error(diagnostics, DIAG_bad_option, NULL,
               "option --%s takes a number of %" PRId64 " to %" PRId64 ", not %s", rows[name].text, low, high,
               diag_quote(diagnostics, text));
    return false;
}

bool split_pair(struct arena *arena, const char *text, bool from_end, const char **name, const char **rest)
{
    const char *at = from_end ? strrchr(text, '=') : strchr(text, '=');
    if (!at || at == text || !at[1])
        return false;
    char *copy = arena_string(arena, text);
    copy[at - text] = '\0';
    *name = copy;
    *rest = copy + (at - text) + 1;
    return true;
}

static void put_options(enum command command, struct text *out)
{
    enum { COLUMN = 36 };
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &rows[i];
        if (!(row->commands & (unsigned)command))
            continue;
        struct text left;
        text_init(&left, out->arena);
        if (row->short_text)
            text_printf(&left, "-%s, ", row->short_text);
        text_printf(&left, "--%s%s%s", row->text, row->argument ? "=" : "",
                    row->argument ? row->argument : "");
        text_printf(out, "  %-*s %s\n", COLUMN, left.data, row->help);
    }
}

void options_help(enum command command, struct text *out)
{
    bool options = false;
    for (int i = 0; i < OPTION_COUNT; i++)
        options |= (rows[i].commands & (unsigned)command) != 0;
    for (size_t k = 0; k < COMMANDS; k++)
        if (command == COMMAND_COMPILE || commands[k].command == command)
            text_printf(out, "%-32s %s\n", commands[k].usage, commands[k].help);
    if (command == COMMAND_COMPILE)
        text_put(out, "gpucc COMMAND --help             the options of check, run\n"
                      "gpucc --version\n");
    if (options)
        text_put(out, command == COMMAND_COMPILE ? "\noptions when compiling:\n" : "\noptions:\n");
    put_options(command, out);
    if (command == COMMAND_COMPILE)
        text_put(
            out,
            "\nexit status: 0 done, 1 the model is invalid or not supported, 2 usage, 3 the machine lacks "
            "something, 4 a defect\n");
}

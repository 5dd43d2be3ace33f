/* Command line options: one table (options.def) says which exist, for which commands, and what they take. */
#ifndef GPUCC_FRONTEND_DRIVER_OPTIONS_H
#define GPUCC_FRONTEND_DRIVER_OPTIONS_H

#include "ir/support/arena.h"
#include "ir/support/diag.h"

enum command { COMMAND_COMPILE = 1, COMMAND_CHECK = 2, COMMAND_RUN = 4, COMMAND_INFO = 8, COMMAND_OPS = 16 };

enum option_kind {
    OPTION_FLAG, /* --verbose */
    OPTION_ONE,  /* --target=X or --target X; the last one counts */
    OPTION_MANY, /* may be repeated */
};

/* One row an option. */
enum option_name {
#define OPTION(name, text, short_text, kind, commands, argument, help) OPTION_##name,
#include "frontend/driver/options.def"
#undef OPTION
    OPTION_COUNT
};

struct options {
    enum command command;
    VEC(const char *) files; /* arguments that are no options, after the command */
    struct {
        VEC(const char *) values;
        bool given;
    } of[OPTION_COUNT];
    bool help, version;
};

/* False: an E0505 is recorded. The strings are argv's own. */
bool options_parse(struct options *options, int argc, char **argv, struct arena *arena,
                   struct diagnostics *diagnostics);
/* The last value, or `absent`. */
const char *option_value(const struct options *options, enum option_name name, const char *absent);
/* A decimal integer of low..high; E0505 when it is not one. */
bool option_integer(const struct options *options, enum option_name name, int64_t low, int64_t high, int64_t absent,
                    int64_t *value, struct diagnostics *diagnostics);
/* Splits "NAME=REST" at the last '=' (`from_end`) or the first; false without one or with an empty side. */
bool split_pair(struct arena *arena, const char *text, bool from_end, const char **name, const char **rest);
bool parse_integer(const char *text, int64_t *value);
void options_help(enum command command, struct text *out); /* COMMAND_COMPILE: with a list of the others */

#endif

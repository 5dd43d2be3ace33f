/* gpucc: reads the command line, runs one command, prints its diagnostics, returns its exit status:
 * 0 done, 1 the model is invalid or unsupported, 2 usage, 3 environment, 4 internal error. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "frontend/driver/driver.h"

enum { EXIT_NO_MEMORY = 3 };

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const char *command_file(const struct options *options, const char *what, struct diagnostics *diagnostics)
{
    if (options->files.count == 1)
        return options->files.items[0];
    diag_error(diagnostics, DIAG_bad_option, NULL, "expected one file, %s, but %u were given; see gpucc --help", what,
               options->files.count);
    return NULL;
}

static void run_command(const struct options *options, struct arena *arena, struct diagnostics *diagnostics)
{
    static const struct {
        enum command command;
        void (*run)(const struct options *, struct arena *, struct diagnostics *);
    } rows[] = {
        {COMMAND_COMPILE, command_compile}, {COMMAND_CHECK, command_check}, {COMMAND_RUN, command_run},
        {COMMAND_INFO, command_info},       {COMMAND_OPS, command_ops},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].command == options->command)
            rows[i].run(options, arena, diagnostics);
}

static void print_diagnostics(const struct diagnostics *diagnostics, struct arena *arena)
{
    for (uint32_t i = 0; i < diagnostics->items.count; i++) {
        struct text line;
        text_init(&line, arena);
        diag_print(diagnostics, &diagnostics->items.items[i], &line);
        fprintf(stderr, "%s\n", line.data);
    }
    if (diagnostics->dropped)
        fprintf(stderr, "and %u more\n", diagnostics->dropped);
}

static int finish(struct diagnostics *diagnostics, struct arena *arena)
{
    int status = diag_status(diagnostics);
    print_diagnostics(diagnostics, arena);
    if (fflush(stdout) != 0 && status == 0) {
        fprintf(stderr, "gpucc: error E0105: standard output cannot be written\n");
        status = 3;
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct arena arena; /* static: its fields are read after a longjmp */
    struct recovery recovery;
    signal(SIGPIPE, SIG_IGN);
    arena_init(&arena, &system_allocator, &recovery);
    if (setjmp(recovery.jump) != 0) {
        fprintf(stderr, "gpucc: error E0901: out of memory\n");
        arena_release(&arena);
        return EXIT_NO_MEMORY;
    }
    struct diagnostics diagnostics;
    struct options options;
    diagnostics_init(&diagnostics, &arena, "gpucc");
    bool good = options_parse(&options, argc, argv, &arena, &diagnostics);
    if (good && options.version) {
        printf("gpucc %s\n", GPUCC_VERSION);
    } else if (good && (options.help || argc < 2)) {
        struct text help;
        text_init(&help, &arena);
        options_help(options.command == COMMAND_COMPILE ? 0 : options.command, &help);
        fputs(help.data, options.help ? stdout : stderr);
        if (!options.help) {
            arena_release(&arena);
            return 2;
        }
    } else if (good) {
        if (options.files.count == 1)
            diagnostics.file = options.files.items[0];
        run_command(&options, &arena, &diagnostics);
    }
    int status = finish(&diagnostics, &arena);
    arena_release(&arena);
    return status;
}

/* gpucc: reads the command line, runs one command, prints its diagnostics, returns its exit status:
 * 0 done, 1 the model is invalid or unsupported, 2 usage, 3 environment, 4 internal error. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codegen/printers.h"
#include "frontend/driver/driver.h"

enum { EXIT_USAGE = 2, EXIT_NO_MEMORY = 3 };

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
    diag_error(diagnostics, DIAG_bad_option, NULL,
               "expected one file, %s, but %u were given; see gpucc --help", what, options->files.count);
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
        const struct diagnostic *item = &diagnostics->items.items[i];
        /* What is wrong with the command line or the machine is not about the model's file. */
        bool about_file = diag_code_status(item->code) == 1;
        struct diagnostics shown = {.file = about_file ? diagnostics->file : "gpucc"};
        struct text line;
        text_init(&line, arena);
        diag_print(&shown, item, &line);
        fputs(line.data, stderr);
    }
    if (diagnostics->dropped)
        fprintf(stderr, "and %u more\n", diagnostics->dropped);
}

/* Whether all that was printed arrived. A reader of a pipe that has gone away has read what it wanted. */
static bool output_arrived(void)
{
    struct stat facts;
    bool good = fflush(stdout) == 0 && !ferror(stdout);
    return good ||
           (fstat(STDOUT_FILENO, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode)));
}

static int finish(struct diagnostics *diagnostics, struct arena *arena)
{
    if (!output_arrived())
        diag_error(diagnostics, DIAG_output_unwritable, NULL, "standard output cannot be written");
    print_diagnostics(diagnostics, arena);
    return diag_status(diagnostics);
}

static void print_version(void)
{
    printf("gpucc %s (LLVM %s)\n", GPUCC_VERSION, llvm_version());
}

static void print_help(enum command command, FILE *out, struct arena *arena)
{
    struct text help;
    text_init(&help, arena);
    options_help(command, &help);
    fputs(help.data, out);
}

int main(int argc, char **argv)
{
    static struct arena arena; /* static: its fields are read after a longjmp */
    struct recovery recovery;
    signal(SIGPIPE, SIG_IGN); /* both become errors of write */
    signal(SIGXFSZ, SIG_IGN);
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
        print_version();
    } else if (good && options.help) {
        print_help(options.command, stdout, &arena);
    } else if (argc < 2) {
        print_help(COMMAND_COMPILE, stderr, &arena);
        arena_release(&arena);
        return EXIT_USAGE;
    } else if (good) {
        if (options.files.count == 1)
            diagnostics.file = options.files.items[0];
        run_command(&options, &arena, &diagnostics);
    }
    int status = finish(&diagnostics, &arena);
    arena_release(&arena);
    return status;
}

/* What the files of the driver share. Only they print, and only main returns an exit status. */
#ifndef GPUCC_FRONTEND_DRIVER_DRIVER_H
#define GPUCC_FRONTEND_DRIVER_DRIVER_H

#include "frontend/driver/options.h"
#include "ir/graph.h"
#include "frontend/import.h"
#include "gpucc/runtime.h"

/* Each command records diagnostics and returns; main prints them and makes the exit status of the first one. */
void command_compile(const struct options *options, struct arena *arena, struct diagnostics *diagnostics);
void command_check(const struct options *options, struct arena *arena, struct diagnostics *diagnostics);
void command_run(const struct options *options, struct arena *arena, struct diagnostics *diagnostics);
void command_info(const struct options *options, struct arena *arena, struct diagnostics *diagnostics);
void command_ops(const struct options *options, struct arena *arena, struct diagnostics *diagnostics);

/* The one file argument of a command; NULL: reported. */
const char *command_file(const struct options *options, const char *what, struct diagnostics *diagnostics);

/* load.c: import and the shared passes, as the options ask. NULL: reported. `files` must be closed by the caller, after
 * the last use of the graph, in either case. */
struct graph *load_model(const struct options *options, const char *path, struct source_files *files,
                         struct arena *arena, struct diagnostics *diagnostics);

/* The diagnostic of what the runtime reports. */
enum diag_code status_code(gpucc_status status);

/* Runs `work`, then `clean_up`, also when memory runs out in between: then that goes on to the arena's recovery point. */
void guarded(struct arena *arena, void (*work)(void *user), void (*clean_up)(void *user), void *user);

/* Seconds since some fixed moment. */
double seconds_now(void);

#endif

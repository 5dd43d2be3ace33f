/* The files a model is made of: the model itself and its external data. Each is opened once and stays open as
 * long as constants may be read from it; the owner of this struct closes them.
 *
 * External data is given by untrusted text. Only regular files inside the model's folder are opened: the text
 * is checked, links are resolved, the result must still be inside, and then every folder on the way and the
 * file itself are opened one by one without following links, so that nothing can be exchanged between the
 * check and the use. */
#ifndef GPUCC_FRONTEND_SOURCE_FILES_H
#define GPUCC_FRONTEND_SOURCE_FILES_H

#include <sys/types.h>

#include "frontend/wire.h"

struct source_file {
    const char *location; /* external data: as first asked for */
    int fd;               /* -1: not open */
    uint64_t bytes;
    dev_t device;
    ino_t inode;
};

struct source_files {
    struct arena *arena;
    const char *folder; /* real path of the model's folder; NULL: external data is not allowed */
    VEC(struct source_file) files;
};

void source_files_init(struct source_files *files, struct arena *arena);
void source_files_close(struct source_files *files);
/* The model's file: its descriptor and size; remembers its folder. False: errno is set. */
bool source_files_open_model(struct source_files *files, const char *path, int *fd, uint64_t *bytes);
/* An external data file. NULL, or why it is refused (static text, or errno's). */
const char *source_files_open_data(struct source_files *files, const char *location, int *fd,
                                   uint64_t *bytes);

/* Is the file under this path one of them? What is read must not be written over. */
bool source_files_hold(const struct source_files *files, const char *path);

#endif

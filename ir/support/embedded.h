/* Files that the build puts into the program (cmake/gpucc_embed.cmake): device sources, stubs, the runtime.
 */
#ifndef GPUCC_IR_SUPPORT_EMBEDDED_H
#define GPUCC_IR_SUPPORT_EMBEDDED_H

#include <stddef.h>

/* Arrays of these end with a row whose name is NULL. A zero byte stands behind the data, so text is a C
 * string. */
struct embedded_file {
    const char *name; /* path relative to the folder that was embedded */
    const unsigned char *data;
    size_t bytes;
};

#endif

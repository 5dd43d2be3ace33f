/* The kernel cache: machine code of units of CUDA and of CPU kernels on disk, by the hash of everything that
 * made it. One file an entry, with a digest of its content; a damaged, foreign or unreadable entry is a miss.
 * Safe with many processes: an entry appears by rename. The folder is the user's alone (mode 0700, owner
 * checked); a folder that is not is not used. */
#ifndef GPUCC_CODEGEN_KERNEL_CACHE_H
#define GPUCC_CODEGEN_KERNEL_CACHE_H

#include "ir/support/arena.h"

struct kernel_cache {
    int folder; /* descriptor; -1: no cache */
};

/* `wish`: NULL: $GPUCC_CACHE_DIR, else $XDG_CACHE_HOME/gpucc, else ~/.cache/gpucc; "": none. Never fails:
 * without a usable folder there is no cache. */
struct kernel_cache kernel_cache_open(const char *wish, struct arena *arena);
/* Deletes the oldest entries beyond 2 GiB, closes the folder. */
void kernel_cache_close(struct kernel_cache *cache);

/* `source`: what is compiled, text or the compiler's own form of it. */
void kernel_cache_key(const void *source, size_t length, const char *architecture, const char *compiler,
                      const char *const *options, uint32_t option_count, unsigned char key[32]);
/* Thread safe. The bytes are from malloc. */
bool kernel_cache_read(const struct kernel_cache *cache, const unsigned char key[32], unsigned char **bytes,
                       size_t *length);
void kernel_cache_write(const struct kernel_cache *cache, const unsigned char key[32],
                        const unsigned char *bytes, size_t length);

#endif

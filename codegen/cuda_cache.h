/* The kernel cache: machine code of CUDA units on disk, by the hash of everything that made it. One file an entry, with a
 * digest of its content; a damaged, foreign or unreadable entry is a miss. Safe with many processes: an entry appears by
 * rename. The folder is the user's alone (mode 0700, owner checked); a folder that is not is not used. */
#ifndef GPUCC_CODEGEN_CUDA_CACHE_H
#define GPUCC_CODEGEN_CUDA_CACHE_H

#include "ir/support/arena.h"

struct cuda_cache {
    int folder; /* descriptor; -1: no cache */
};

/* `wish`: NULL: $GPUCC_CACHE_DIR, else $XDG_CACHE_HOME/gpucc, else ~/.cache/gpucc; "": none. Never fails: without a usable
 * folder there is no cache. */
struct cuda_cache cuda_cache_open(const char *wish, struct arena *arena);
/* Deletes the oldest entries beyond 2 GiB, closes the folder. */
void cuda_cache_close(struct cuda_cache *cache);

void cuda_cache_key(const char *source, const char *architecture, const char *compiler, const char *const *options,
                    uint32_t option_count, unsigned char key[32]);
/* Thread safe. The bytes are from malloc. */
bool cuda_cache_read(const struct cuda_cache *cache, const unsigned char key[32], unsigned char **bytes, size_t *length);
void cuda_cache_write(const struct cuda_cache *cache, const unsigned char key[32], const unsigned char *bytes,
                      size_t length);

#endif

/* SHA-256 for the hashes of a bundle, with the processor's instructions where it has them. Pure; used by the
 * runtime, the loader and the bundle writer. */
#ifndef GPUCC_RUNTIME_SHA256_H
#define GPUCC_RUNTIME_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct bundle_hash {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};
void bundle_hash_begin(struct bundle_hash *hash);
void bundle_hash_add(struct bundle_hash *hash, const void *data, size_t bytes);
void bundle_hash_end(struct bundle_hash *hash, unsigned char digest[32]);
void bundle_hash_of(const void *data, size_t bytes, unsigned char digest[32]);

#endif

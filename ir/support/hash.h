/* Two hashes. hash_bytes: fast, for tables in memory, never stored. sha256: for names of things that outlive the
 * process (kernels, cache entries, weights, bundles). */
#ifndef GPUCC_IR_SUPPORT_HASH_H
#define GPUCC_IR_SUPPORT_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes);
static inline uint64_t hash_word(uint64_t seed, uint64_t word)
{
    uint64_t h = (seed ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};
void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const void *data, size_t bytes);
void sha256_final(struct sha256 *hash, unsigned char digest[32]);
void sha256_hex(const unsigned char digest[32], char hex[65]);

#endif

/* hash_bytes is SipHash-1-3 with the seed as its key: tables that hold names of an untrusted model stay fast
 * whatever the names are. sha256 follows FIPS 180-4. Both read bytes, never words, so results are the same on
 * every machine. */
#include "ir/support/hash.h"

#include <string.h>

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static uint64_t read_little_endian(const unsigned char *data, size_t bytes)
{
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)data[i] << (8 * i);
    return word;
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes)
{
    const uint64_t second_key = rotate_left(seed, 32) ^ UINT64_C(0x9E3779B97F4A7C15);
    struct sip s = {seed ^ UINT64_C(0x736f6d6570736575), second_key ^ UINT64_C(0x646f72616e646f6d),
                    seed ^ UINT64_C(0x6c7967656e657261), second_key ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = data;
    size_t left = bytes;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = read_little_endian(at, 8);
        s.v3 ^= word;
        sip_round(&s);
        s.v0 ^= word;
    }
    uint64_t last = (uint64_t)bytes << 56 | read_little_endian(at, left);
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xFF;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static void sha256_block(uint32_t state[8], const unsigned char block[64])
{
    uint32_t schedule[64];
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t before = schedule[i - 15], recent = schedule[i - 2];
        uint32_t s0 = rotate_right(before, 7) ^ rotate_right(before, 18) ^ before >> 3;
        uint32_t s1 = rotate_right(recent, 17) ^ rotate_right(recent, 19) ^ recent >> 10;
        schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t choice = (e & f) ^ (~e & g);
        uint32_t t1 = h + s1 + choice + round_constants[i] + schedule[i];
        uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + s0 + majority;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += mixed[i];
}

void sha256_init(struct sha256 *hash)
{
    *hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                      0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *hash, const void *data, size_t bytes)
{
    if (!bytes)
        return;
    const unsigned char *at = data;
    size_t held = (size_t)(hash->bytes % 64);
    hash->bytes += bytes;
    if (held) {
        size_t part = bytes < 64 - held ? bytes : 64 - held;
        memcpy(hash->block + held, at, part);
        at += part;
        bytes -= part;
        if (held + part < 64)
            return;
        sha256_block(hash->state, hash->block);
    }
    for (; bytes >= 64; bytes -= 64, at += 64)
        sha256_block(hash->state, at);
    memcpy(hash->block, at, bytes);
}

void sha256_final(struct sha256 *hash, unsigned char digest[32])
{
    const uint64_t bits = hash->bytes * 8;
    const size_t held = (size_t)(hash->bytes % 64);
    unsigned char tail[72] = {0x80};
    const size_t padding = (held < 56 ? 56 : 120) - held;
    for (int i = 0; i < 8; i++)
        tail[padding + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_update(hash, tail, padding + 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(const unsigned char digest[32], char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
}

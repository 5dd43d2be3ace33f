/* SHA-256 against the vectors of FIPS 180-4 and lengths around the block's edges; hash_bytes against
 * SipHash-1-3's properties that tables rely on. */
#include "tests/unit/support.h"

#include <string.h>

#include "ir/support/hash.h"

static void check_sha256(const void *data, size_t bytes, const char *expected)
{
    struct sha256 hash;
    unsigned char digest[32];
    char hex[65];
    sha256_init(&hash);
    sha256_update(&hash, data, bytes);
    sha256_final(&hash, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, expected);
}

static void sha256_vectors(void **state)
{
    (void)state;
    check_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                 "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void sha256_of_a_million(void **state)
{
    (void)state;
    struct sha256 hash;
    unsigned char digest[32];
    char hex[65], part[1000];
    memset(part, 'a', sizeof part);
    sha256_init(&hash);
    for (int i = 0; i < 1000; i++)
        sha256_update(&hash, part, sizeof part);
    sha256_final(&hash, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void sha256_does_not_depend_on_the_cuts(void **state)
{
    (void)state;
    unsigned char data[300], whole[32], parts[32];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + 3);
    for (size_t length = 0; length <= 200; length++) {
        struct sha256 hash;
        sha256_init(&hash);
        sha256_update(&hash, data, length);
        sha256_final(&hash, whole);
        for (size_t step = 1; step <= 70; step += 23) {
            sha256_init(&hash);
            for (size_t at = 0; at < length; at += step)
                sha256_update(&hash, data + at, length - at < step ? length - at : step);
            sha256_final(&hash, parts);
            assert_memory_equal(whole, parts, 32);
        }
    }
}

static void hash_bytes_depends_on_seed_length_and_every_bit(void **state)
{
    (void)state;
    unsigned char data[40] = {0};
    assert_true(hash_bytes(1, data, 8) != hash_bytes(2, data, 8));
    for (size_t length = 0; length < sizeof data; length++) {
        assert_true(hash_bytes(9, data, length) != hash_bytes(9, data, length + 1));
        uint64_t before = hash_bytes(9, data, length);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(hash_bytes(9, data, length) != before);
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_true(hash_bytes(9, data, length) == before);
    }
}

static void the_low_bits_spread(void **state)
{
    (void)state;
    unsigned counts[64] = {0};
    for (uint32_t i = 0; i < 64000; i++)
        counts[hash_bytes(5, &i, sizeof i) % 64]++;
    for (int i = 0; i < 64; i++)
        assert_in_range(counts[i], 850, 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(sha256_of_a_million),
        cmocka_unit_test(sha256_does_not_depend_on_the_cuts),
        cmocka_unit_test(hash_bytes_depends_on_seed_length_and_every_bit),
        cmocka_unit_test(the_low_bits_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

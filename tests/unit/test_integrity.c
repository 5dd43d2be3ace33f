/* Damage: every byte of a small bundle, many of a large one, and every length of page are refused by
 * gpucc_open or the first gpucc_prepare, in this very process: nothing is loaded before it is checked. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/model_support.h"

enum { PAGE = 4096, RANDOM_BYTES = 1000 };

static const char small_text[] = "model opset 17 {\n"
                                 "  input %x \"x\" : f32[4]\n"
                                 "  weight %w \"w\" : f32[4] hex 0000803f000000400000404000008040\n"
                                 "  %y = Mul(%x, %w) : f32[4] ; #0\n"
                                 "  output %y \"y\"\n"
                                 "}\n";
/* 12 MB of weights: three leaves of the hash tree. */
static const char large_text[] = "model opset 17 {\n"
                                 "  input %x \"x\" : f32[1]\n"
                                 "  weight %w \"w\" : f32[3000000] zeros\n"
                                 "  %y = Mul(%x, %w) : f32[3000000] ; #0\n"
                                 "  output %y \"y\"\n"
                                 "}\n";

/* The status of the one that failed, of open, create and prepare. */
static gpucc_status try_bundle(const char *path)
{
    gpucc_model *model;
    gpucc_context *context = NULL;
    gpucc_context_options options = GPUCC_INIT(gpucc_context_options);
    options.device = GPUCC_CPU;
    options.threads = 1;
    gpucc_status status = gpucc_open(path, NULL, &model);
    if (status != GPUCC_OK)
        return status;
    status = gpucc_context_create(model, &options, &context);
    if (status == GPUCC_OK)
        status = gpucc_prepare(context, NULL, NULL);
    gpucc_context_destroy(context);
    gpucc_close(model);
    return status;
}

struct file {
    struct model world;
    const char *path;
    unsigned char *bytes;
    size_t length;
    int fd;
};

static void open_file(struct file *file, struct arena *arena, const char *text)
{
    gpucc_close(open_model(&file->world, arena, "cpu", text));
    file->path = file->world.path;
    assert_true(file_read_all(arena, file->path, 64 << 20, (char **)&file->bytes, &file->length));
    file->fd = open(file->path, O_RDWR);
    assert_true(file->fd >= 0);
    assert_int_equal(try_bundle(file->path), GPUCC_OK);
}

static void close_file(struct file *file)
{
    assert_int_equal(try_bundle(file->path), GPUCC_OK);
    close(file->fd);
    model_end(&file->world);
}

static void flip(struct file *file, size_t at, unsigned char bits)
{
    const unsigned char changed = file->bytes[at] ^ bits;
    assert_int_equal(pwrite(file->fd, &changed, 1, (off_t)at), 1);
    const gpucc_status status = try_bundle(file->path);
    if ((status != GPUCC_BAD_BUNDLE && status != GPUCC_IO_ERROR) || !*gpucc_last_error())
        fail_msg("byte %zu of %zu, bits %02x: %s", at, file->length, bits, gpucc_status_name(status));
    assert_int_equal(pwrite(file->fd, &file->bytes[at], 1, (off_t)at), 1);
}

static void every_byte_of_a_small_bundle(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct file file;
    open_file(&file, &arena, small_text);
    for (size_t at = 0; at < file.length; at++)
        flip(&file, at, (unsigned char)(1u << at % 8));
    print_message("%zu bytes\n", file.length);
    close_file(&file);
}

static void random_bytes_of_a_large_bundle(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct file file;
    uint64_t random = 20261130;
    open_file(&file, &arena, large_text);
    for (int i = 0; i < RANDOM_BYTES; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        flip(&file, (size_t)((random >> 24) % file.length), (unsigned char)(1 + (random >> 16) % 255));
    }
    print_message("%zu bytes\n", file.length);
    close_file(&file);
}

static void every_page_may_be_the_last(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct file file;
    open_file(&file, &arena, large_text);
    for (size_t left = (file.length - 1) / PAGE * PAGE;; left -= PAGE) {
        assert_int_equal(ftruncate(file.fd, (off_t)left), 0);
        const gpucc_status status = try_bundle(file.path);
        if (status != GPUCC_BAD_BUNDLE && status != GPUCC_IO_ERROR)
            fail_msg("%zu of %zu bytes: %s", left, file.length, gpucc_status_name(status));
        if (!left)
            break;
    }
    assert_int_equal(pwrite(file.fd, file.bytes, file.length, 0), file.length);
    close_file(&file);
}

/* A byte more than the header says. */
static void bytes_behind_the_end(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct file file;
    open_file(&file, &arena, small_text);
    assert_int_equal(pwrite(file.fd, "", 1, (off_t)file.length), 1);
    assert_int_equal(try_bundle(file.path), GPUCC_BAD_BUNDLE);
    assert_int_equal(ftruncate(file.fd, (off_t)file.length), 0);
    close_file(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_of_a_small_bundle),
        cmocka_unit_test(random_bytes_of_a_large_bundle),
        cmocka_unit_test(every_page_may_be_the_last),
        cmocka_unit_test(bytes_behind_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

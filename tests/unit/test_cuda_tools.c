/* The kernel cache, NVRTC and nvcc as tools, cuda_compile and cuda_emit. What needs NVRTC or nvcc is skipped
 * without it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/kernel_cache.h"
#include "codegen/nvcc.h"
#include "codegen/printers.h"
#include "ir/support/file.h"
#include "tests/unit/support.h"

static const unsigned char content[] = "machine code of some kernel";
enum { ENTRY_HEADER = 48 };

static const char *key_of(const char *source, unsigned char key[32])
{
    kernel_cache_key(source, strlen(source), "sm_80", "NVRTC 13.0", NULL, 0, key);
    return source;
}

static const char *entry_path(struct arena *arena, const char *folder, const unsigned char *key)
{
    struct text text;
    text_init(&text, arena);
    text_printf(&text, "%s/", folder);
    for (int i = 0; i < 32; i++)
        text_printf(&text, "%02x", key[i]);
    return text.data;
}

static bool reads(const struct kernel_cache *cache, const unsigned char *key)
{
    unsigned char *bytes = NULL;
    size_t length = 0;
    if (!kernel_cache_read(cache, key, &bytes, &length))
        return false;
    assert_int_equal(length, sizeof content);
    assert_memory_equal(bytes, content, sizeof content);
    free(bytes);
    return true;
}

static void test_round_trip_and_damage(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    unsigned char key[32], other[32];
    assert_true(temporary_folder(&arena, &folder));
    struct kernel_cache cache = kernel_cache_open(folder, &arena);
    assert_true(cache.folder >= 0);
    key_of("a", key);
    key_of("b", other);
    assert_memory_not_equal(key, other, 32);
    assert_false(reads(&cache, key));
    kernel_cache_write(&cache, key, content, sizeof content);
    assert_true(reads(&cache, key));
    assert_false(reads(&cache, other));
    const char *path = entry_path(&arena, folder, key);
    for (size_t at = 0; at < ENTRY_HEADER + sizeof content; at++) { /* every byte counts */
        int fd = open(path, O_RDWR);
        unsigned char byte;
        assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        assert_false(reads(&cache, key));
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        close(fd);
    }
    assert_true(reads(&cache, key));
    for (off_t length = 0; length < (off_t)(ENTRY_HEADER + sizeof content); length += 7) { /* cut short */
        assert_int_equal(truncate(path, length), 0);
        assert_false(reads(&cache, key));
    }
    kernel_cache_write(&cache, key, content, sizeof content); /* made anew */
    assert_true(reads(&cache, key));
    kernel_cache_close(&cache);
    assert_false(reads(&cache, key));
    remove_folder(folder);
    arena_release(&arena);
}

static void test_foreign_entries_and_folders(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    unsigned char key[32];
    assert_true(temporary_folder(&arena, &folder));
    const char *inner = arena_printf(&arena, "%s/cache", folder);
    struct kernel_cache cache = kernel_cache_open(inner, &arena);
    struct stat facts;
    assert_int_equal(stat(inner, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    key_of("a", key);
    kernel_cache_write(&cache, key, content, sizeof content);
    /* A link to a good entry is not followed. */
    unsigned char linked[32];
    key_of("linked", linked);
    assert_int_equal(symlink(entry_path(&arena, inner, key), entry_path(&arena, inner, linked)), 0);
    assert_true(reads(&cache, key));
    assert_false(reads(&cache, linked));
    unlink(entry_path(&arena, inner, linked));
    kernel_cache_close(&cache);
    /* Nor is a folder that is a link, or that others may write, or a file. */
    const char *link_path = arena_printf(&arena, "%s/link", folder);
    assert_int_equal(symlink(inner, link_path), 0);
    assert_int_equal(kernel_cache_open(link_path, &arena).folder, -1);
    assert_int_equal(chmod(inner, 0777), 0);
    assert_int_equal(kernel_cache_open(inner, &arena).folder, -1);
    assert_int_equal(kernel_cache_open(entry_path(&arena, inner, key), &arena).folder, -1);
    assert_int_equal(kernel_cache_open("", &arena).folder, -1);
    unlink(link_path);
    remove_folder(inner);
    remove_folder(folder);
    arena_release(&arena);
}

static void test_oldest_go_first(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    assert_true(temporary_folder(&arena, &folder));
    static const char *const names[] = {"old", "middle", "new"};
    for (int i = 0; i < 3; i++) { /* sparse files: 3 GiB that take no room */
        const char *path = arena_printf(&arena, "%s/%s", folder, names[i]);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
        assert_int_equal(futimens(fd, times), 0);
        close(fd);
    }
    struct kernel_cache cache = kernel_cache_open(folder, &arena);
    kernel_cache_close(&cache);
    assert_int_not_equal(access(arena_printf(&arena, "%s/old", folder), F_OK), 0);
    assert_int_equal(access(arena_printf(&arena, "%s/middle", folder), F_OK), 0);
    assert_int_equal(access(arena_printf(&arena, "%s/new", folder), F_OK), 0);
    remove_folder(folder);
    arena_release(&arena);
}

/* Processes that write and read one entry at once never see half of it. */
static void test_many_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 6, ROUNDS = 200 };
    TEST_ARENA(arena);
    char *folder;
    pid_t children[PROCESSES];
    assert_true(temporary_folder(&arena, &folder));
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0)
            continue;
        unsigned char key[32], *bytes;
        size_t length;
        struct kernel_cache cache = kernel_cache_open(folder, &arena);
        key_of("shared", key);
        int wrong = cache.folder < 0;
        for (int round = 0; round < ROUNDS; round++) {
            kernel_cache_write(&cache, key, content, sizeof content);
            if (!kernel_cache_read(&cache, key, &bytes, &length)) {
                wrong = 1;
                continue;
            }
            wrong |= length != sizeof content || memcmp(bytes, content, length) != 0;
            free(bytes);
        }
        _exit(wrong);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    remove_folder(folder);
    arena_release(&arena);
}

static void test_nvrtc_missing(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "test");
    setenv("GPUCC_NVRTC", "/nonexistent/libnvrtc.so", 1);
    assert_null(nvrtc_open(&arena, NULL));
    assert_null(nvrtc_open(&arena, &diagnostics));
    assert_int_equal(diagnostics.items.count, 1);
    assert_int_equal(diagnostics.items.items[0].code, DIAG_no_compiler);
    assert_non_null(
        strstr(diagnostics.items.items[0].message, "\"/nonexistent/libnvrtc.so\", where GPUCC_NVRTC"));
    int major = -1, minor = -1;
    assert_null(cuda_compiler_name(COMPILER_NVRTC, &major, &minor, &arena, &diagnostics));
    assert_int_equal(major, 0);
    struct plan plan = {.machine = machine_find("sm_80")};
    struct cuda_options options = {.cache_folder = "", .threads = 1};
    struct cuda_image *images;
    uint32_t count;
    assert_false(cuda_compile(&plan, &options, false, &arena, &diagnostics, &images, &count));
    unsetenv("GPUCC_NVRTC");
    arena_release(&arena);
}

/* ---- compiling
 * -------------------------------------------------------------------------------------------------------- */

static struct plan make_plan(struct arena *arena, const char *const *sources, uint32_t count)
{
    struct plan plan = {.machine = machine_find("sm_80")};
    struct dims *dims = arena_new(arena, struct dims);
    dims_init(dims, arena);
    for (uint32_t i = 0; i < count; i++) {
        struct plan_kernel kernel = {.kernel = kernel_new(arena, dims), .source = sources[i]};
        kernel.kernel->name = arena_printf(arena, "add_%u", (unsigned)i);
        memset(kernel.hash, 'a', 64);
        vec_push(arena, &plan.kernels, kernel);
    }
    return plan;
}

static const char *const good_source =
    "extern \"C\" __global__ void add_0(float *x)\n{\n    x[0] = maximum_f32(x[0], 1.0f);\n}\n";

static void check_compiler(enum cuda_compiler compiler)
{
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    char *folder;
    diagnostics_init(&diagnostics, &arena, "test");
    int major, minor;
    if (!cuda_compiler_name(compiler, &major, &minor, &arena, &diagnostics)) {
        arena_release(&arena);
        skip();
    }
    assert_true(temporary_folder(&arena, &folder));
    struct plan plan = make_plan(&arena, &good_source, 1);
    struct cuda_options options = {.compiler = compiler, .cache_folder = folder, .threads = 2};
    struct cuda_image *images, *again;
    uint32_t count;
    assert_true(cuda_compile(&plan, &options, false, &arena, &diagnostics, &images, &count));
    assert_int_equal(count, 1);
    assert_memory_equal(images[0].bytes, "\177ELF", 4);
    assert_true(cuda_compile(&plan, &options, false, &arena, &diagnostics, &again, &count));
    assert_int_equal(images[0].length, again[0].length);
    assert_memory_equal(images[0].bytes, again[0].bytes, images[0].length);
    assert_true(cuda_compile(&plan, &options, true, &arena, &diagnostics, &images, &count));
    assert_non_null(strstr((const char *)images[0].bytes, ".target sm_80"));
    assert_int_equal(images[0].bytes[images[0].length - 1], 0);
    remove_folder(folder);
    /* Refused: the kernel is named, source and log are kept. */
    static const char *const bad[] = {"extern \"C\" __global__ void add_0(float *x) { x[0] = nothing; }\n"};
    plan = make_plan(&arena, bad, 1);
    options.cache_folder = "";
    assert_false(cuda_compile(&plan, &options, false, &arena, &diagnostics, &images, &count));
    assert_int_equal(count, 0);
    const struct diagnostic *last = &diagnostics.items.items[diagnostics.items.count - 1];
    assert_int_equal(last->code, DIAG_tool_failed);
    assert_non_null(strstr(last->message, "add_0"));
    const char *kept = strstr(last->message, "are in ");
    assert_non_null(kept);
    char *path = arena_string(&arena, kept + strlen("are in "));
    if (path[0] == '"') {
        path++;
        path[strcspn(path, "\"")] = '\0';
    }
    char *log;
    size_t bytes;
    assert_true(file_read_all(&arena, arena_printf(&arena, "%s/kernels.log", path), 1 << 20, &log, &bytes));
    assert_non_null(strstr(log, "nothing"));
    remove_folder(path);
    arena_release(&arena);
}

static void test_nvrtc(void **state)
{
    (void)state;
    check_compiler(COMPILER_NVRTC);
}

static void test_nvcc(void **state)
{
    (void)state;
    check_compiler(COMPILER_NVCC);
}

static void test_emit(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    char *folder, *text;
    size_t bytes;
    diagnostics_init(&diagnostics, &arena, "test");
    assert_true(temporary_folder(&arena, &folder));
    struct plan plan = make_plan(&arena, &good_source, 1);
    struct location location = {.number = 7, .op_type = "Add", .name = "evil\n*/ $(rm)"};
    struct plan_launch launch = {.location = &location};
    vec_push(&arena, &plan.launches, launch);
    struct cuda_emission emission;
    assert_true(cuda_emit(&plan, folder, &arena, &diagnostics, &emission));
    assert_true(file_read_all(&arena, arena_printf(&arena, "%s/add_0.cu", folder), 1 << 20, &text, &bytes));
    assert_non_null(strstr(text, good_source));
    assert_null(strstr(text, "evil"));
    assert_true(
        file_read_all(&arena, arena_printf(&arena, "%s/kernels.map", folder), 1 << 20, &text, &bytes));
    assert_non_null(strstr(text, "#7"));
    assert_non_null(strstr(text, "evil"));
    assert_null(strstr(text, "evil\n"));
    assert_true(file_read_all(&arena, arena_printf(&arena, "%s/build.sh", folder), 1 << 20, &text, &bytes));
    assert_null(strstr(text, "evil"));
    struct stat facts;
    assert_int_equal(stat(arena_printf(&arena, "%s/build.sh", folder), &facts), 0);
    assert_true((facts.st_mode & 0100) != 0);
    remove_folder(folder);
    assert_false(cuda_emit(&plan, "/dev/null/folder", &arena, &diagnostics, &emission));
    assert_int_equal(diagnostics.items.items[diagnostics.items.count - 1].code, DIAG_output_unwritable);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_and_damage),
        cmocka_unit_test(test_foreign_entries_and_folders),
        cmocka_unit_test(test_oldest_go_first),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_nvrtc_missing),
        cmocka_unit_test(test_nvrtc),
        cmocka_unit_test(test_nvcc),
        cmocka_unit_test(test_emit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files, output that is complete or absent, programs and temporary folders. */
#include "tests/unit/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/file.h"

static unsigned entries_of(const char *path)
{
    unsigned count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder, *data;
    size_t bytes;
    assert_true(temporary_folder(&arena, &folder));
    assert_int_equal(mode_of(folder), 0700);
    char *path = arena_printf(&arena, "%s/file", folder);
    assert_true(file_write_all(&arena, path, "a\0b", 3));
    assert_true(file_read_all(&arena, path, 3, &data, &bytes));
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "a\0b", 4);
    assert_false(file_read_all(&arena, path, 2, &data, &bytes));
    assert_int_equal(errno, EFBIG);
    assert_true(file_write_all(&arena, path, NULL, 0)); /* replaces */
    assert_true(file_read_all(&arena, path, 0, &data, &bytes));
    assert_string_equal(data, "");
    assert_int_equal(entries_of(folder), 1);
    remove_folder(folder);
    assert_int_equal(access(folder, F_OK), -1);
    arena_release(&arena);
}

static void reads_are_exact(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    char data[4] = "";
    int fd;
    uint64_t bytes;
    assert_true(temporary_folder(&arena, &folder));
    char *path = arena_printf(&arena, "%s/file", folder);
    assert_true(file_write_all(&arena, path, "0123456789", 10));
    assert_true(file_open(path, &fd, &bytes));
    assert_int_equal(bytes, 10);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(file_read_at(fd, 7, data, 3));
    assert_memory_equal(data, "789", 3);
    assert_true(file_read_at(fd, 10, data, 0));
    assert_false(file_read_at(fd, 8, data, 3));
    assert_int_equal(errno, EIO);
    assert_false(file_read_at(fd, UINT64_MAX, data, 1));
    assert_int_equal(errno, EINVAL);
    assert_false(file_read_at(fd, INT64_MAX, data, 2));
    assert_int_equal(errno, EINVAL);
    close(fd);
    remove_folder(folder);
    arena_release(&arena);
}

static void only_regular_files_are_opened(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    int fd = -1;
    uint64_t bytes;
    assert_true(temporary_folder(&arena, &folder));
    char *fifo = arena_printf(&arena, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_false(file_open(fifo, &fd, &bytes)); /* and does not wait for a writer */
    assert_int_equal(errno, EINVAL);
    assert_false(file_open(folder, &fd, &bytes));
    assert_int_equal(errno, EINVAL);
    assert_false(file_open("/dev/zero", &fd, &bytes));
    assert_int_equal(errno, EINVAL);
    assert_false(file_open(arena_printf(&arena, "%s/none", folder), &fd, &bytes));
    assert_int_equal(errno, ENOENT);
    assert_int_equal(fd, -1);
    remove_folder(folder);
    arena_release(&arena);
}

static void abandoned_output_leaves_nothing(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    struct output_file out;
    assert_true(temporary_folder(&arena, &folder));
    char *path = arena_printf(&arena, "%s/out", folder);
    assert_true(output_open(&out, &arena, path, false));
    assert_true(output_write(&out, "half", 4));
    assert_int_equal(access(path, F_OK), -1); /* not there before the commit */
    errno = ENOSPC;
    output_abandon(&out);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(entries_of(folder), 0);
    output_abandon(&out); /* harmless */
    assert_false(output_commit(&out));
    assert_int_equal(entries_of(folder), 0);

    /* A target that appears as a folder meanwhile: the rename fails, nothing stays. */
    assert_true(output_open(&out, &arena, path, false));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(output_commit(&out));
    assert_int_equal(entries_of(folder), 1);
    rmdir(path);
    remove_folder(folder);
    arena_release(&arena);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder, *data;
    size_t bytes;
    assert_true(temporary_folder(&arena, &folder));
    char *path = arena_printf(&arena, "%s/out", folder);
    assert_true(file_write_all(&arena, path, "old", 3));
    /* A limit on the size of files stands in for the disk: write fails with EFBIG instead of ENOSPC. */
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char *big = arena_alloc(&arena, 5000);
    bool written = file_write_all(&arena, path, big, 5000);
    int error = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_false(written);
    assert_int_equal(error, EFBIG);
    assert_int_equal(entries_of(folder), 1);
    assert_true(file_read_all(&arena, path, 10, &data, &bytes));
    assert_string_equal(data, "old");
    remove_folder(folder);
    arena_release(&arena);
}

static void odd_targets_are_refused_or_followed(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder, *data;
    size_t bytes;
    struct output_file out;
    struct stat status;
    assert_true(temporary_folder(&arena, &folder));
    assert_false(output_open(&out, &arena, folder, false));
    assert_int_equal(errno, EISDIR);
    assert_false(output_open(&out, &arena, "/dev/null", false)); /* would be replaced by the rename */
    assert_int_equal(errno, EINVAL);
    assert_false(output_open(&out, &arena, "", false));
    assert_false(output_open(&out, &arena, arena_printf(&arena, "%s/none/out", folder), false));
    assert_int_equal(errno, ENOENT);
    char *path = arena_printf(&arena, "%s/real", folder), *link = arena_printf(&arena, "%s/link", folder);
    assert_true(file_write_all(&arena, path, "old", 3));
    assert_int_equal(symlink("real", link), 0);
    assert_true(file_write_all(&arena, link, "new", 3));
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_true(file_read_all(&arena, path, 10, &data, &bytes));
    assert_string_equal(data, "new");
    remove_folder(folder);
    arena_release(&arena);
}

static void modes_follow_the_umask(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder;
    struct output_file out;
    assert_true(temporary_folder(&arena, &folder));
    char *path = arena_printf(&arena, "%s/out", folder);
    mode_t before = umask(027);
    assert_true(output_open(&out, &arena, path, true));
    assert_true(output_write(&out, "0123456789", 10));
    assert_true(output_write_at(&out, 2, "xy", 2));
    assert_true(output_write_at(&out, 20, "z", 1));
    assert_false(output_write_at(&out, UINT64_MAX, "z", 1));
    assert_true(output_commit(&out));
    assert_int_equal(mode_of(path), 0750);
    assert_true(file_write_all(&arena, path, "", 0));
    assert_int_equal(mode_of(path), 0640);
    umask(before);
    remove_folder(folder);
    arena_release(&arena);
}

static void positions_land_where_they_should(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder, *data;
    size_t bytes;
    struct output_file out;
    assert_true(temporary_folder(&arena, &folder));
    char *path = arena_printf(&arena, "%s/out", folder);
    assert_true(output_open(&out, &arena, path, false));
    assert_true(output_write_at(&out, 4, "ef", 2));
    assert_true(output_write(&out, "ab", 2));
    assert_true(output_commit(&out));
    assert_true(file_read_all(&arena, path, 100, &data, &bytes));
    assert_int_equal(bytes, 6);
    assert_memory_equal(data, "ab\0\0ef", 6);
    remove_folder(folder);
    arena_release(&arena);
}

static int shell(struct arena *arena, const char *script, char **log)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", arena_string(arena, script), NULL};
    int status = -1;
    assert_true(run_program(arena, argv, &status, log));
    return status;
}

static void programs_report_status_and_output(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *log;
    assert_int_equal(shell(&arena, "echo out; echo err >&2; exit 7", &log), 7);
    assert_string_equal(log, "out\nerr\n");
    assert_int_equal(shell(&arena, "kill -9 $$", &log), 128 + SIGKILL);
    assert_string_equal(log, "");
    assert_int_equal(shell(&arena, "cat", &log), 0); /* no input to wait for */
    assert_int_equal(shell(&arena, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done", &log),
                     0);
    assert_int_equal(strlen(log), 64 * 1024);
    assert_memory_equal(log, "line 0\n", 7);
    int status;
    char *const argv[] = {(char *)"gpucc-no-such-program", NULL};
    assert_false(run_program(&arena, argv, &status, &log));
    assert_int_equal(errno, ENOENT);
    arena_release(&arena);
}

static void programs_get_no_shell_and_a_clean_environment(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *log;
    int status;
    char *const argv[] = {(char *)"echo", (char *)"$HOME; `id` | *", NULL};
    assert_true(run_program(&arena, argv, &status, &log));
    assert_string_equal(log, "$HOME; `id` | *\n");
    setenv("NVCC_PREPEND_FLAGS", "-O0", 1);
    setenv("NVCC_APPEND_FLAGS", "-O0", 1);
    setenv("LD_RUN_PATH", "/nowhere", 1);
    assert_int_equal(
        shell(&arena, "echo \"$NVCC_PREPEND_FLAGS$NVCC_APPEND_FLAGS$LD_PRELOAD$LD_RUN_PATH $LC_ALL $PATH\"",
              &log),
        0);
    assert_string_equal(log, arena_printf(&arena, " C %s\n", getenv("PATH")));
    assert_string_equal(getenv("NVCC_APPEND_FLAGS"), "-O0"); /* our own environment is untouched */
    unsetenv("NVCC_PREPEND_FLAGS");
    unsetenv("NVCC_APPEND_FLAGS");
    unsetenv("LD_RUN_PATH");
    arena_release(&arena);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void failures_leak_no_descriptor(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct output_file out;
    char *log, *data, *folder;
    size_t bytes;
    int fd, status;
    uint64_t size;
    unsigned before = open_descriptors();
    assert_true(temporary_folder(&arena, &folder));
    char *const argv[] = {(char *)"gpucc-no-such-program", NULL};
    assert_false(run_program(&arena, argv, &status, &log));
    assert_false(file_open(folder, &fd, &size));
    assert_true(file_write_all(&arena, arena_printf(&arena, "%s/f", folder), "abc", 3));
    assert_false(file_read_all(&arena, arena_printf(&arena, "%s/f", folder), 1, &data, &bytes));
    assert_true(output_open(&out, &arena, arena_printf(&arena, "%s/g", folder), false));
    output_abandon(&out);
    remove_folder(folder);
    assert_int_equal(open_descriptors(), before);
    arena_release(&arena);
}

static void temporary_folders_follow_tmpdir(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    char *folder, *inner;
    assert_true(temporary_folder(&arena, &folder));
    const char *before = getenv("TMPDIR");
    char *kept = before ? arena_string(&arena, before) : NULL;
    setenv("TMPDIR", folder, 1);
    assert_true(temporary_folder(&arena, &inner));
    assert_memory_equal(inner, folder, strlen(folder));
    rmdir(inner);
    setenv("TMPDIR", arena_printf(&arena, "%s/none", folder), 1);
    assert_false(temporary_folder(&arena, &inner));
    assert_int_equal(errno, ENOENT);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    remove_folder(folder);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(reads_are_exact),
        cmocka_unit_test(only_regular_files_are_opened),
        cmocka_unit_test(abandoned_output_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(odd_targets_are_refused_or_followed),
        cmocka_unit_test(modes_follow_the_umask),
        cmocka_unit_test(positions_land_where_they_should),
        cmocka_unit_test(programs_report_status_and_output),
        cmocka_unit_test(programs_get_no_shell_and_a_clean_environment),
        cmocka_unit_test(failures_leak_no_descriptor),
        cmocka_unit_test(temporary_folders_follow_tmpdir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

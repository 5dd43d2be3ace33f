/* The CUDA C of some strategy cases as it stands in this folder: changes of what is emitted are seen by a
 * reader.
 *
 *     golden FOLDER [--update] */
#include <stdio.h>
#include <string.h>

#include "codegen/printers.h"
#include "ir/support/file.h"
#include "tests/harness/gpu_cases.h"
#include "tests/unit/support.h"

static const struct {
    const char *name, *file;
} golden[] = {
    {"softmax", "softmax.cu"},
    {"softmax, symbols", "softmax_free_sizes.cu"},
    {"sum of columns", "columns.cu"},
    {"transposition", "transpose.cu"},
    {"runs with broadcast", "pointwise.cu"},
    {"product with tails in runs", "product.cu"},
    {"batched product, symbols", "product_free_sizes.cu"},
    {"convolution 3x3 by 2", "convolution.cu"},
    {"convolution by channel", "convolution_by_channel.cu"},
    {"product by warps with tails, symbols", "product_by_warps.cu"},
    {"product by warpgroups", "product_by_warpgroups.cu"},
    {"product that the copy engine refuses, symbols", "product_pair.cu"},
};
enum { GOLDEN = sizeof golden / sizeof golden[0] };

static const char *folder;
static bool update;

static void print_case(struct arena *arena, const struct gpu_case *made, struct text *out)
{
    const struct machine *machine = machine_find("sm_90a");
    struct gpu_run run;
    assert_true(gpu_run_make(&run, arena, made, machine, 0));
    for (uint32_t i = 0; i < run.lowered.launches.count; i++) {
        const struct kernel *kernel = run.lowered.launches.items[i].kernel;
        struct text why;
        text_init(&why, arena);
        if (!kernel_verify(kernel, machine, &why))
            fail_msg("%s: %s", made->name, why.data);
        text_put(out, i ? "\n" : "");
        print_cuda(kernel, arena_printf(arena, "kernel_%u", (unsigned)i), machine, true, out);
    }
}

static void test_golden(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    unsigned found = 0, different = 0;
    struct gpu_case *made;
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++)
        for (unsigned k = 0; k < GOLDEN; k++) {
            if (strcmp(made->name, golden[k].name) != 0)
                continue;
            found++;
            struct text text;
            char *expected = NULL;
            size_t bytes = 0;
            const char *path = arena_printf(&arena, "%s/%s", folder, golden[k].file);
            text_init(&text, &arena);
            print_case(&arena, made, &text);
            if (update) {
                assert_true(file_write_all(&arena, path, text.data, text.length));
            } else if (!file_read_all(&arena, path, 1 << 20, &expected, &bytes) ||
                       strcmp(expected, text.data) != 0) {
                fprintf(stderr,
                        "%s is not what is emitted now; see the difference by `golden %s --update` and git "
                        "diff\n",
                        path, folder);
                different++;
            }
        }
    assert_int_equal(found, GOLDEN);
    assert_int_equal(different, 0);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    if (argc < 2) {
        fprintf(stderr, "usage: golden FOLDER [--update]\n");
        return 2;
    }
    folder = argv[1];
    update = argc > 2 && strcmp(argv[2], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every GPU strategy against the interpreter without a GPU: the printed CUDA C runs on the host
 * (tests/harness), and NVRTC, where there is one, must take it for each architecture. */
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/gpu_cases.h"

#include <string.h>

enum { MOST_RUNS = 2000 };

struct pending {
    struct gpu_run run;
    uint32_t *kernels; /* of the batch, one a launch */
};

static struct host_map host_map(const struct gpu_run *run, const struct kernel_tensor_map *map,
                                void *const *arguments)
{
    struct host_map made = {.address = arguments[map->buffer], .rank = (int)map->rank};
    for (uint32_t i = 0; i < map->rank; i++) {
        made.sizes[i] = gpu_run_dim(run, map->sizes[i]);
        made.strides[i] = gpu_run_dim(run, map->strides[i]);
        made.box[i] = (int)map->box[i];
        if (i && made.sizes[i] > 1 && made.strides[i] % 8)
            fail_msg("%s: a stride that the copy engine does not take", run->from->name);
    }
    return made;
}

/* Launches in order; buffers and temporaries end at forbidden pages. */
static void launch_all(const struct host_batch *batch, struct pending *p)
{
    struct gpu_run *run = &p->run;
    void *buffers[MAX_BUFFERS] = {NULL}, *temporaries[MAX_BUFFERS] = {NULL}, *derived[4] = {NULL};
    uint64_t temporary_bytes[MAX_BUFFERS] = {0};
    const struct definition *d = &run->group.body;
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        buffers[i] = guarded_alloc(run->bytes[i]);
        memcpy(buffers[i], run->buffers[i], run->bytes[i]);
    }
    for (uint32_t i = 0; i < run->lowered.temporaries.count; i++) {
        const struct tensor_type *type = &run->lowered.temporaries.items[i].type;
        temporary_bytes[i] = (uint64_t)gpu_run_dim(run, type->dims[0]) * dtype_bits(type->dtype) / 8;
        temporaries[i] = guarded_alloc(temporary_bytes[i]);
        memset(temporaries[i], 0x7f, temporary_bytes[i]);
    }
    for (uint32_t i = 0; i < run->lowered.derived.count; i++) {
        derived[i] = guarded_alloc(run->derived_bytes[i]);
        memcpy(derived[i], run->derived[i], run->derived_bytes[i]);
    }
    for (uint32_t i = 0; i < run->lowered.launches.count; i++) {
        const struct kernel_launch *launch = &run->lowered.launches.items[i];
        if (!gpu_run_launches(run, launch->kernel))
            continue;
        struct host_map maps[MAX_TENSOR_MAPS];
        const void *map_pointers[MAX_TENSOR_MAPS];
        void *arguments[MAX_KERNEL_MEMORIES + MAX_KERNEL_WORDS];
        int64_t word_values[MAX_KERNEL_WORDS];
        long long dims[MAX_KERNEL_DIMS], grid[3];
        for (uint32_t k = 0; k < launch->kernel->global_count; k++)
            arguments[k] =
                launch->arguments[k].kind == ARGUMENT_TEMPORARY ? temporaries[launch->arguments[k].index]
                : launch->arguments[k].kind == ARGUMENT_DERIVED ? derived[launch->arguments[k].index]
                                                                : buffers[launch->arguments[k].index];
        for (uint32_t k = 0; k < launch->kernel->dims.count; k++)
            dims[k] = gpu_run_dim(run, launch->kernel->dims.items[k]);
        for (int k = 0; k < 3; k++)
            grid[k] = gpu_run_grid(run, launch->kernel->grid[k]);
        for (uint32_t k = 0; k < launch->kernel->words.count; k++) {
            word_values[k] = run->from->symbols[run->words[i][k]];
            arguments[launch->kernel->global_count + k] = &word_values[k];
        }
        for (uint32_t k = 0; k < launch->kernel->tensor_maps.count; k++) {
            maps[k] = host_map(run, &launch->kernel->tensor_maps.items[k], arguments);
            map_pointers[k] = &maps[k];
        }
        if (host_batch_kernel(batch, p->kernels[i])(arguments, dims, grid, map_pointers) != 0)
            fail_msg("%s: threads part at a barrier or shuffle", run->from->name);
    }
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        if (d->buffers.items[i].role == BUFFER_OUTPUT)
            gpu_run_compare(run, i, buffers[i]);
        guarded_release(buffers[i], run->bytes[i]);
    }
    for (uint32_t i = 0; i < run->lowered.temporaries.count; i++)
        guarded_release(temporaries[i], temporary_bytes[i]);
    for (uint32_t i = 0; i < run->lowered.derived.count; i++)
        guarded_release(derived[i], run->derived_bytes[i]);
}

/* Adds the run's kernels. */
static void add_kernels(struct host_batch *batch, struct pending *p)
{
    const uint32_t count = p->run.lowered.launches.count;
    p->kernels = arena_new_array(batch->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; i++)
        p->kernels[i] =
            host_batch_add(batch, p->run.lowered.launches.items[i].kernel, p->run.context.machine);
}

/* Does the other machine copy asynchronously under the same configuration? */
static bool copies_on(const struct gpu_run *run, const struct machine *other)
{
    struct gpu_run same;
    gpu_run_build(&same, run->context.arena, run->from, other, &run->config);
    for (uint32_t i = 0; i < same.lowered.launches.count; i++) {
        struct text text;
        text_init(&text, run->context.arena);
        print_cuda(same.lowered.launches.items[i].kernel, "kernel", other, true, &text);
        if (strstr(text.data, "copy_async"))
            return true;
    }
    return false;
}

/* What a machine adds to another, whose runs are tested in full: of what only fills shared memory in another
 * way, the first two candidates. */
enum difference { NONE, OTHER_STRATEGIES, NO_ASYNCHRONOUS_COPIES };

static bool differs(const struct gpu_run *run, enum difference difference)
{
    const struct machine *other = machine_find("sm_80");
    return difference == NONE || !gpu_case_runs(run->from, other) ||
           (difference == NO_ASYNCHRONOUS_COPIES && copies_on(run, other));
}

static void run_strategies(const struct machine *machine, enum difference difference)
{
    TEST_ARENA(arena);
    struct host_batch batch;
    struct pending *runs = arena_new_array(&arena, struct pending, MOST_RUNS);
    uint32_t count = 0;
    host_batch_begin(&batch, &arena);
    struct gpu_case *made;
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++) {
        if (!gpu_case_runs(made, machine) ||
            (getenv("GPUCC_ONLY") && !strstr(made->name, getenv("GPUCC_ONLY"))))
            continue;
        const uint32_t last = difference == NO_ASYNCHRONOUS_COPIES ? 1 : UINT32_MAX;
        for (uint32_t number = 0; number <= last && count < MOST_RUNS &&
                                  gpu_run_make(&runs[count].run, &arena, made, machine, number);
             number++) {
            if (!differs(&runs[count].run, difference))
                continue;
            add_kernels(&batch, &runs[count]);
            count++;
        }
    }
    assert_true(count > 0 || getenv("GPUCC_ONLY"));
    assert_true(count < MOST_RUNS);
    print_message("%u runs, %u kernels\n", count, batch.kernel_count);
    host_batch_compile(&batch);
    for (uint32_t i = 0; i < count; i++) {
        gpu_run_expect(&runs[i].run);
        launch_all(&batch, &runs[i]);
    }
    host_batch_end(&batch);
    arena_release(&arena);
}

static void test_strategies(void **state)
{
    (void)state;
    run_strategies(machine_find("sm_80"), NONE);
}

static void test_warpgroups(void **state)
{
    (void)state;
    run_strategies(machine_find("sm_90a"), OTHER_STRATEGIES);
}

static void test_without_asynchronous_copies(void **state)
{
    (void)state;
    run_strategies(machine_find("sm_75"), NO_ASYNCHRONOUS_COPIES);
}

static void compile_all(struct arena *arena, const struct machine *machine, uint32_t most_cases, bool wide,
                        enum difference difference)
{
    struct host_batch batch;
    struct gpu_case *made;
    host_batch_begin(&batch, arena);
    for (uint32_t i = 0, taken = 0; (made = gpu_case_make(arena, i)) && taken < most_cases; i++) {
        struct pending p;
        /* Run `candidates` is the first candidate with 64-bit indices. */
        uint32_t number = 0;
        while (wide && gpu_case_runs(made, machine) && gpu_run_make(&p.run, arena, made, machine, number) &&
               !p.run.context.index_bits)
            number++;
        if (!gpu_case_runs(made, machine) || !gpu_run_make(&p.run, arena, made, machine, number) ||
            !differs(&p.run, difference))
            continue;
        add_kernels(&batch, &p);
        taken++;
    }
    print_message("%s: %u kernels\n", machine->name, batch.kernel_count);
    if (!host_batch_nvrtc(&batch, machine, NULL))
        skip();
    host_batch_end(&batch);
}

/* The cheapest candidate of each case; the others differ by numbers alone. */
static void test_nvrtc(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    compile_all(&arena, machine_find("sm_90a"), UINT32_MAX, false, NONE);
    compile_all(&arena, machine_find("sm_75"), UINT32_MAX, false, NO_ASYNCHRONOUS_COPIES);
    compile_all(&arena, machine_find("sm_80"), UINT32_MAX, true, NONE);
    arena_release(&arena);
}

/* Every other CUDA target: what differs is in the machine table; some kernels show that NVRTC knows the name.
 */
static void test_targets(void **state)
{
    (void)state;
    enum { SOME = 3 };
    TEST_ARENA(arena);
    for (uint32_t i = 0; machine_row(i); i++)
        if (machine_row(i)->kind == TARGET_CUDA)
            compile_all(&arena, machine_row(i), SOME, false, NONE);
    arena_release(&arena);
}

/* Sums stay in registers and warpgroups' products follow each other: in every tile of both strategies, by the
 * cases that have them all. */
static void tiles_of(const struct machine *machine)
{
    TEST_ARENA(arena);
    enum { TILES = 6 };
    struct host_batch batch;
    struct gpu_case *made;
    char *log = NULL;
    host_batch_begin(&batch, &arena);
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++) {
        struct gpu_run run;
        if (!strstr(made->strategy, "gpu_matmul") || !gpu_case_runs(made, machine) ||
            made->candidates < TILES)
            continue;
        for (uint32_t number = 0; number < TILES && gpu_run_make(&run, &arena, made, machine, number);
             number++)
            for (uint32_t k = 0; k < run.lowered.launches.count; k++)
                host_batch_add(&batch, run.lowered.launches.items[k].kernel, machine);
    }
    assert_true(batch.kernel_count > 0);
    if (!host_batch_nvrtc(&batch, machine, &log))
        skip();
    if (slow_code(log))
        fail_msg("%s: %.300s", machine->name, slow_code(log));
    host_batch_end(&batch);
    arena_release(&arena);
}

static void test_registers(void **state)
{
    (void)state;
    tiles_of(machine_find("sm_80"));
    tiles_of(machine_find("sm_90a"));
}

/* The same question to kernels that are slow: sums at places that the thread computes, and sums that are read
 * while products are under way. */
static void test_slow_code(void **state)
{
    (void)state;
    static const char
        spilling[] = "extern \"C\" __global__ void k(float *x, int n)\n"
                     "{\n"
                     "    float a[64];\n"
                     "    for (int i = 0; i < 64; i++)\n"
                     "        a[(i * n) & 63] = x[i];\n"
                     "    for (int i = 0; i < n; i++)\n"
                     "        x[i] = a[i & 63];\n"
                     "}\n",
        serial[] = "extern \"C\" __global__ void k(float *x, const unsigned long long *y, int n)\n"
                   "{\n"
                   "    float sum[32];\n"
                   "    for (int i = 0; i < 32; i++)\n"
                   "        sum[i] = x[i];\n"
                   "    for (int i = 0; i < n; i++) {\n"
                   "        warpgroup_multiply<OPERAND_F16, false, false>(sum, y[i], y[i + 1], true);\n"
                   "        x[i] = sum[3];\n"
                   "    }\n"
                   "    warpgroup_commit();\n"
                   "    warpgroup_wait<0>();\n"
                   "    for (int i = 0; i < 32; i++)\n"
                   "        x[i] = sum[i];\n"
                   "}\n";
    TEST_ARENA(arena);
    char *log = NULL;
    if (!host_nvrtc(&arena, spilling, machine_find("sm_90a"), &log))
        skip();
    assert_non_null(slow_code(log));
    assert_true(host_nvrtc(&arena, serial, machine_find("sm_90a"), &log));
    if (!slow_code(log) || !strstr(slow_code(log), "serialized"))
        fail_msg("%s", log);
    assert_null(slow_code("ptxas info : 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strategies),
                                       cmocka_unit_test(test_warpgroups),
                                       cmocka_unit_test(test_without_asynchronous_copies),
                                       cmocka_unit_test(test_nvrtc),
                                       cmocka_unit_test(test_targets),
                                       cmocka_unit_test(test_registers),
                                       cmocka_unit_test(test_slow_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

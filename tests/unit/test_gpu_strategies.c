/* Every GPU strategy against the interpreter without a GPU: the printed CUDA C runs on the host
 * (tests/harness), and NVRTC, where there is one, must take it for each architecture. */
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/gpu_cases.h"

#include <string.h>

enum { MOST_RUNS = 2000 };

struct pending {
    struct gpu_run run;
    uint32_t first_kernel;
};

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
        void *arguments[MAX_KERNEL_MEMORIES];
        long long dims[MAX_KERNEL_DIMS], grid[3];
        for (uint32_t k = 0; k < launch->kernel->global_count; k++)
            arguments[k] = launch->arguments[k].kind == ARGUMENT_TEMPORARY ? temporaries[launch->arguments[k].index]
                           : launch->arguments[k].kind == ARGUMENT_DERIVED ? derived[launch->arguments[k].index]
                                                                           : buffers[launch->arguments[k].index];
        for (uint32_t k = 0; k < launch->kernel->dims.count; k++)
            dims[k] = gpu_run_dim(run, launch->kernel->dims.items[k]);
        for (int k = 0; k < 3; k++)
            grid[k] = gpu_run_dim(run, launch->kernel->grid[k]);
        if (host_batch_kernel(batch, p->first_kernel + i)(arguments, dims, grid) != 0)
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

static void test_strategies(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct host_batch batch;
    struct pending *runs = arena_new_array(&arena, struct pending, MOST_RUNS);
    uint32_t count = 0;
    host_batch_begin(&batch, &arena);
    struct gpu_case *made;
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++) {
        if (getenv("GPUCC_ONLY") && !strstr(made->name, getenv("GPUCC_ONLY")))
            continue;
        for (uint32_t candidate = 0; count < MOST_RUNS; candidate++) {
            struct pending *p = &runs[count];
            if (!gpu_run_make(&p->run, &arena, made, machine_find("sm_80"), candidate))
                break;
            p->first_kernel = batch.kernel_count;
            for (uint32_t k = 0; k < p->run.lowered.launches.count; k++)
                host_batch_add(&batch, p->run.lowered.launches.items[k].kernel, machine_find("sm_80"));
            count++;
        }
    }
    assert_true(count > 0);
    host_batch_compile(&batch);
    for (uint32_t i = 0; i < count; i++) {
        gpu_run_expect(&runs[i].run);
        launch_all(&batch, &runs[i]);
    }
    host_batch_end(&batch);
    arena_release(&arena);
}

/* The cheapest candidate of each case; the others differ by numbers alone. */
static void test_nvrtc(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const char *const architectures[] = {"sm_80", "sm_90a"};
    for (unsigned a = 0; a < 2; a++) {
        const struct machine *machine = machine_find(architectures[a]);
        struct host_batch batch;
        struct gpu_case *made;
        host_batch_begin(&batch, &arena);
        for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++) {
            struct gpu_run run;
            if (!gpu_run_make(&run, &arena, made, machine, 0))
                continue;
            for (uint32_t k = 0; k < run.lowered.launches.count; k++)
                host_batch_add(&batch, run.lowered.launches.items[k].kernel, machine);
        }
        if (!host_batch_nvrtc(&batch, machine))
            skip();
        host_batch_end(&batch);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strategies), cmocka_unit_test(test_nvrtc)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

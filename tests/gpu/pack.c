/* Writes the GPU strategies' test cases into one file for a machine that has a GPU and nothing else: for each
 * case a cubin, its launches, inputs and the interpreter's results. tests/gpu/check.c reads it.
 *
 *     pack FILE ARCHITECTURE
 *     pack hashes ARCHITECTURE       prints the hashes of the cases' kernels instead; needs no NVRTC
 *     pack speed FILE ARCHITECTURE   sizes of real models under many configurations, for `check time` */
#include <stdio.h>
#include <string.h>

#include "codegen/nvrtc.h"
#include "codegen/printers.h"
#include "tests/gpu/pack.h"
#include "tests/harness/gpu_cases.h"
#include "tests/unit/support.h"

static const char *pack_path, *pack_architecture;

static void put(FILE *out, const void *data, size_t bytes)
{
    assert_int_equal(fwrite(data, 1, bytes, out), bytes);
}

static void put_number(FILE *out, uint64_t value)
{
    put(out, &value, sizeof value);
}

static void put_text(FILE *out, const char *text)
{
    put_number(out, strlen(text));
    put(out, text, strlen(text));
}

static uint32_t word_count(const struct gpu_run *run)
{
    return run->from->bounds ? run->from->graph->dims.symbols.count : 0;
}

static void put_buffers(FILE *out, const struct gpu_run *run)
{
    const struct definition *d = &run->group.body;
    put_number(out, d->buffers.count + run->lowered.temporaries.count + run->lowered.derived.count +
                        word_count(run));
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        const struct buffer *buffer = &d->buffers.items[i];
        double allowed = gpu_case_tolerance(buffer->type.dtype);
        put_number(out, buffer->role == BUFFER_INPUT    ? PACK_INPUT
                        : buffer->role == BUFFER_OUTPUT ? PACK_OUTPUT
                                                        : PACK_SCRATCH);
        put_number(out, (uint64_t)buffer->type.dtype);
        put(out, &allowed, sizeof allowed);
        put_number(out, run->bytes[i]);
        put(out, buffer->role == BUFFER_INPUT ? run->buffers[i] : run->expected[i], run->bytes[i]);
    }
    for (uint32_t i = 0; i < run->lowered.temporaries.count; i++) {
        const struct tensor_type *type = &run->lowered.temporaries.items[i].type;
        uint64_t bytes = (uint64_t)gpu_run_dim(run, type->dims[0]) * dtype_bits(type->dtype) / 8;
        double none = 0;
        put_number(out, PACK_SCRATCH);
        put_number(out, (uint64_t)type->dtype);
        put(out, &none, sizeof none);
        put_number(out, bytes);
        unsigned char *poison = arena_alloc(run->context.arena, bytes);
        memset(poison, 0x7f, bytes);
        put(out, poison, bytes);
    }
    for (uint32_t i = 0; i < run->lowered.derived.count; i++) {
        const double none = 0;
        put_number(out, PACK_INPUT);
        put_number(out, (uint64_t)run->lowered.derived.items[i].recipe.buffers.items[1].type.dtype);
        put(out, &none, sizeof none);
        put_number(out, run->derived_bytes[i]);
        put(out, run->derived[i], run->derived_bytes[i]);
    }
    for (uint32_t i = 0; i < word_count(run); i++) {
        const double none = 0;
        put_number(out, PACK_INPUT);
        put_number(out, DTYPE_I64);
        put(out, &none, sizeof none);
        put_number(out, sizeof run->from->symbols[i]);
        put(out, &run->from->symbols[i], sizeof run->from->symbols[i]);
    }
}

/* Among the case's buffers: those of the group, then temporaries, then derived constants. */
static uint64_t argument_position(const struct gpu_run *run, const struct argument *argument)
{
    const uint32_t own = run->group.body.buffers.count;
    return argument->index + (argument->kind == ARGUMENT_TEMPORARY ? own
                              : argument->kind == ARGUMENT_DERIVED ? own + run->lowered.temporaries.count
                                                                   : 0);
}

/* Words stand behind all others. */
static uint64_t words_position(const struct gpu_run *run, uint32_t symbol)
{
    return run->group.body.buffers.count + run->lowered.temporaries.count + run->lowered.derived.count + symbol;
}

static void put_maps(FILE *out, const struct gpu_run *run, const struct kernel *kernel)
{
    put_number(out, kernel->tensor_maps.count);
    for (uint32_t i = 0; i < kernel->tensor_maps.count; i++) {
        const struct kernel_tensor_map *map = &kernel->tensor_maps.items[i];
        put_number(out, map->buffer);
        put_number(out, (uint64_t)kernel->memories.items[map->buffer].dtype);
        put_number(out, map->swizzle);
        put_number(out, map->rank);
        for (uint32_t k = 0; k < map->rank; k++) {
            put_number(out, (uint64_t)gpu_run_dim(run, map->sizes[k]));
            put_number(out, (uint64_t)gpu_run_dim(run, map->strides[k]));
            put_number(out, map->box[k]);
        }
    }
}

static void put_launches(FILE *out, const struct gpu_run *run)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->lowered.launches.count; i++)
        count += gpu_run_launches(run, run->lowered.launches.items[i].kernel);
    put_number(out, count);
    for (uint32_t i = 0; i < run->lowered.launches.count; i++) {
        const struct kernel_launch *launch = &run->lowered.launches.items[i];
        const struct kernel *kernel = launch->kernel;
        if (!gpu_run_launches(run, kernel))
            continue;
        char hex[65];
        plan_kernel_hash(kernel, run->context.machine, run->context.arena, hex);
        put_text(out, arena_printf(run->context.arena, "k%u", i));
        put_text(out, hex);
        for (int k = 0; k < 3; k++)
            put_number(out, (uint64_t)gpu_run_grid(run, kernel->grid[k]));
        for (int k = 0; k < 3; k++)
            put_number(out, kernel->block[k]);
        put_number(out, cuda_dynamic_shared_bytes(kernel));
        put_number(out, kernel_buffer_count(kernel));
        for (uint32_t k = 0; k < kernel->global_count; k++)
            put_number(out, argument_position(run, &launch->arguments[k]));
        for (uint32_t k = 0; k < kernel->words.count; k++)
            put_number(out, words_position(run, run->words[i][k]));
        put_number(out, kernel->index_bits);
        put_number(out, kernel->dims.count);
        for (uint32_t k = 0; k < kernel->dims.count; k++)
            put_number(out, (uint64_t)gpu_run_dim(run, kernel->dims.items[k]));
        put_maps(out, run, kernel);
    }
}

/* For timing: only sizes. */
static void put_sizes(FILE *out, const struct gpu_run *run)
{
    const struct definition *d = &run->group.body;
    const uint32_t own = d->buffers.count, temporaries = run->lowered.temporaries.count;
    const uint32_t count = own + temporaries + run->lowered.derived.count;
    put_number(out, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct tensor_type *type =
            i < own ? &d->buffers.items[i].type
            : i < own + temporaries
                ? &run->lowered.temporaries.items[i - own].type
                : &run->lowered.derived.items[i - own - temporaries].recipe.buffers.items[1].type;
        const double none = 0;
        put_number(out, PACK_RANDOM);
        put_number(out, (uint64_t)type->dtype);
        put(out, &none, sizeof none);
        put_number(out, gpu_run_bytes(run, type));
    }
}

static void put_image(FILE *out, const struct gpu_run *run, const struct nvrtc *nvrtc)
{
    struct arena *arena = run->context.arena;
    struct text kernels, source, why;
    text_init(&kernels, arena);
    text_init(&source, arena);
    text_init(&why, arena);
    for (uint32_t i = 0; i < run->lowered.launches.count; i++) {
        const struct kernel *kernel = run->lowered.launches.items[i].kernel;
        if (!kernel_verify(kernel, run->context.machine, &why))
            fail_msg("%s: %s", run->from->name, why.data);
        print_cuda(kernel, arena_printf(arena, "k%u", i), run->context.machine, true, &kernels);
    }
    print_cuda_prelude(kernels.data, run->context.machine, &source);
    text_put(&source, kernels.data);
    const char *options[] = {arena_printf(arena, "--gpu-architecture=%s", pack_architecture), "--fmad=false"};
    struct nvrtc_result result;
    if (!nvrtc_compile(nvrtc, source.data, options, 2, false, &result))
        fail_msg("%s: %.2000s", run->from->name, result.log ? result.log : "out of memory");
    put_number(out, result.bytes);
    put(out, result.image, result.bytes);
    nvrtc_result_release(&result);
}

static void write_pack(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "pack");
    struct nvrtc *nvrtc = nvrtc_open(&arena, &diagnostics);
    FILE *out = fopen(pack_path, "wb");
    assert_non_null(nvrtc);
    assert_non_null(out);
    const struct machine *machine = machine_find(pack_architecture);
    assert_non_null(machine);
    put(out, PACK_MAGIC, sizeof PACK_MAGIC - 1);
    struct gpu_case *made;
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++)
        for (uint32_t candidate = 0; gpu_case_runs(made, machine); candidate++) {
            struct gpu_run *run = arena_new(&arena, struct gpu_run);
            if (!gpu_run_make(run, &arena, made, machine, candidate))
                break;
            gpu_run_expect(run);
            put_number(out, 1);
            put_text(out,
                     arena_printf(&arena, "%s, %s, candidate %u%s", made->name, made->strategy, candidate,
                                  run->context.index_bits ? ", as the first with 64-bit indices" : ""));
            put_image(out, run, nvrtc);
            put_buffers(out, run);
            put_launches(out, run);
        }
    put_number(out, 0);
    assert_int_equal(fclose(out), 0);
    nvrtc_close(nvrtc);
    arena_release(&arena);
}

static void print_hashes(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct gpu_case *made;
    const struct machine *machine = machine_find(pack_architecture);
    assert_non_null(machine);
    for (uint32_t i = 0; (made = gpu_case_make(&arena, i)); i++)
        for (uint32_t candidate = 0; gpu_case_runs(made, machine); candidate++) {
            struct gpu_run run;
            if (!gpu_run_make(&run, &arena, made, machine, candidate))
                break;
            for (uint32_t k = 0; k < run.lowered.launches.count; k++) {
                char hex[65];
                if (!gpu_run_launches(&run, run.lowered.launches.items[k].kernel))
                    continue;
                plan_kernel_hash(run.lowered.launches.items[k].kernel, machine, &arena, hex);
                printf("%s\n", hex);
            }
        }
    arena_release(&arena);
}

static void write_speed(void **state)
{
    (void)state;
    enum { EACH = 1, MOST = 24 };
    TEST_ARENA(arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "pack");
    struct nvrtc *nvrtc = nvrtc_open(&arena, &diagnostics);
    FILE *out = fopen(pack_path, "wb");
    const struct machine *machine = machine_find(pack_architecture);
    assert_non_null(nvrtc);
    assert_non_null(out);
    assert_non_null(machine);
    put(out, PACK_MAGIC, sizeof PACK_MAGIC - 1);
    struct gpu_case *made;
    for (uint32_t i = 0; (made = gpu_speed_case_make(&arena, i)); i++) {
        struct config configs[MOST];
        const uint32_t count = gpu_run_variety(&arena, made, machine, EACH, configs, MOST);
        for (uint32_t k = 0; k < count; k++) {
            struct gpu_run *run = arena_new(&arena, struct gpu_run);
            struct text name;
            gpu_run_build(run, &arena, made, machine, &configs[k]);
            text_init(&name, &arena);
            text_printf(&name, "%-32s ", made->name);
            gpu_run_describe(run, &name);
            put_number(out, 1);
            put_text(out, name.data);
            put_image(out, run, nvrtc);
            put_sizes(out, run);
            put_launches(out, run);
        }
        printf("%s: %u\n", made->name, (unsigned)count);
    }
    put_number(out, 0);
    assert_int_equal(fclose(out), 0);
    nvrtc_close(nvrtc);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest pack[] = {cmocka_unit_test(write_pack)},
                            hashes[] = {cmocka_unit_test(print_hashes)},
                            speed[] = {cmocka_unit_test(write_speed)};
    if (argc == 4 && strcmp(argv[1], "speed") == 0) {
        pack_path = argv[2];
        pack_architecture = argv[3];
        return cmocka_run_group_tests(speed, NULL, NULL);
    }
    if (argc != 3) {
        fprintf(stderr,
                "usage: pack FILE ARCHITECTURE | pack hashes ARCHITECTURE | pack speed FILE ARCHITECTURE\n");
        return 2;
    }
    pack_path = argv[1];
    pack_architecture = argv[2];
    return strcmp(pack_path, "hashes") == 0 ? cmocka_run_group_tests(hashes, NULL, NULL)
                                            : cmocka_run_group_tests(pack, NULL, NULL);
}

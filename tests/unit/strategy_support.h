/* Groups made runnable by a strategy in a test: the kernels that a strategy builds for a Definition are
 * verified, compiled for an ISA level, run in uneven shares of their parallel loop, and compared with the
 * interpreter. Constants are packed by the strategy's own recipes, run by the interpreter. */
#ifndef GPUCC_TESTS_UNIT_STRATEGY_SUPPORT_H
#define GPUCC_TESTS_UNIT_STRATEGY_SUPPORT_H

#include <dlfcn.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/kernel_support.h"

#include "codegen/strategy.h"
#include "ir/interp.h"

enum { MOST_LAUNCHES = 4, MOST_TEMPORARIES = 8, MOST_SYMBOL_VALUES = 64 };

struct group_test {
    struct strategy_context context; /* first: the call-back finds the flags behind it */
    bool constant[MAX_BUFFERS];
    struct group group;
    struct lowered_group lowered;
    const struct strategy *strategy;
    struct config config;
    struct library library;
    kernel_function *functions[MOST_LAUNCHES];
    void *derived[8];
};

static inline bool group_test_constant(const struct strategy_context *context, uint32_t buffer)
{
    return ((const struct group_test *)context)->constant[buffer];
}

static inline const struct strategy *strategy_named(const struct machine *machine, const char *name)
{
    for (uint32_t i = 0; strategy_row(machine, i); i++)
        if (strcmp(strategy_row(machine, i)->name, name) == 0)
            return strategy_row(machine, i);
    fail_msg("no strategy %s", name);
    return NULL;
}

/* Builds and compiles. `name` NULL: the cheapest; `which`: the candidate. False: the strategy does not fit.
 */
static inline bool group_test_build(struct group_test *test, struct arena *arena,
                                    const struct definition *definition, const struct machine *machine,
                                    const char *name, uint32_t which)
{
    struct text why;
    text_init(&why, arena);
    test->group = (struct group){.body = *definition};
    test->group.values = arena_new_array(arena, value_id, definition->buffers.count);
    /* As plans do it; a strategy that is named is asked for the machine itself, but without fma a machine has no
     * kernels of its own, only code (strategy_retarget). */
    const struct machine *compiled_for = machine, *built_for = machine;
    if (!name || machine->software_fma)
        built_for = machine_reference(machine);
    test->context = (struct strategy_context){
        .group = &test->group, .machine = built_for, .arena = arena, .is_constant = group_test_constant};
    if (name) {
        struct config candidates[16];
        test->strategy = strategy_named(machine, name);
        if (!test->strategy->fits(&test->context, &why))
            return false;
        const uint32_t count = test->strategy->candidates(&test->context, candidates, 16);
        assert_true(count > 0);
        test->config = candidates[which < count ? which : count - 1];
    } else {
        test->strategy = strategy_choose(&test->context, 3, &test->config, NULL);
        compiled_for = strategy_retarget(&test->context, machine, test->strategy, &test->config);
    }
    if (!test->strategy->build(&test->context, &test->config, &test->lowered, &why))
        fail_msg("%s: %s", test->strategy->name, why.data);
    struct object_kernel kernels[MOST_LAUNCHES];
    const uint32_t count = test->lowered.launches.count;
    assert_true(count <= MOST_LAUNCHES);
    for (uint32_t i = 0; i < count; i++) {
        struct kernel *kernel = test->lowered.launches.items[i].kernel;
        if (!kernel_verify(kernel, machine, &why)) {
            text_put(&why, "\n");
            kernel_print(kernel, &why);
            fail_msg("%s: %s", test->strategy->name, why.data);
        }
        kernels[i] = (struct object_kernel){
            .kernel = kernel, .symbol = arena_printf(arena, "k%u", (unsigned)i), .machine = compiled_for};
    }
    test->library = load_kernels(arena, kernels, count);
    for (uint32_t i = 0; i < count; i++)
        test->functions[i] = library_kernel(&test->library, kernels[i].symbol);
    return true;
}

static inline uint64_t type_bytes(const struct dims *dims, const struct tensor_type *type,
                                  const int64_t *symbols)
{
    int64_t count = 1, size;
    for (int i = 0; i < type->rank; i++) {
        assert_true(dim_evaluate(dims, type->dims[i], symbols, &size));
        count *= size;
    }
    return (uint64_t)count * (dtype_bits(type->dtype) < 8 ? 8 : dtype_bits(type->dtype)) / 8;
}

static inline int64_t dim_now(const struct dims *dims, dim d, const int64_t *symbols)
{
    int64_t value = 0;
    assert_true(dim_evaluate(dims, d, symbols, &value));
    return value;
}

/* Packs the constants; buffers as the interpreter takes them. */
static inline void group_test_pack(struct group_test *test, void *const *buffers)
{
    struct arena *arena = test->context.arena;
    for (uint32_t i = 0; i < test->lowered.derived.count; i++) {
        const struct derived *derived = &test->lowered.derived.items[i];
        struct text why;
        text_init(&why, arena);
        assert_true(test->constant[derived->source]);
        if (!definition_verify(&derived->recipe, &why))
            fail_msg("recipe: %s", why.data);
        const struct tensor_type *type = &derived->recipe.buffers.items[1].type;
        test->derived[i] = arena_alloc(arena, type_bytes(derived->recipe.pool->dims, type, NULL) + 64);
        test->derived[i] = (void *)(((uintptr_t)test->derived[i] + 63) & ~(uintptr_t)63);
        void *pair[] = {buffers[derived->source], test->derived[i]};
        assert_int_equal(interpret(&derived->recipe, NULL, pair, NULL, &system_allocator), INTERP_DONE);
    }
}

/* Runs all launches, each in `shares` uneven shares. Temporaries are filled with huge
 * numbers first. */
static inline void group_test_run(struct group_test *test, const int64_t *symbols, void *const *buffers,
                                  void *scratch, int64_t shares)
{
    const struct dims *dims = test->group.body.pool->dims;
    void *temporaries[MOST_TEMPORARIES];
    assert_true(test->lowered.temporaries.count <= MOST_TEMPORARIES);
    for (uint32_t i = 0; i < test->lowered.temporaries.count; i++) {
        const uint64_t bytes = type_bytes(dims, &test->lowered.temporaries.items[i].type, symbols);
        temporaries[i] = arena_alloc(test->context.arena, bytes);
        memset(temporaries[i], 0x7f, bytes);
    }
    for (uint32_t i = 0; i < test->lowered.launches.count; i++) {
        const struct kernel_launch *launch = &test->lowered.launches.items[i];
        void *arguments[MAX_KERNEL_MEMORIES];
        int64_t values[MAX_KERNEL_DIMS];
        for (uint32_t k = 0; k < launch->kernel->global_count; k++) {
            const struct argument *from = &launch->arguments[k];
            arguments[k] = from->kind == ARGUMENT_DERIVED     ? test->derived[from->index]
                           : from->kind == ARGUMENT_TEMPORARY ? temporaries[from->index]
                                                              : buffers[from->index];
        }
        for (uint32_t k = 0; k < launch->kernel->dims.count; k++)
            values[k] = dim_now(dims, launch->kernel->dims.items[k], symbols);
        const int64_t work = dim_now(dims, launch->kernel->work, symbols);
        for (int64_t share = 0; share < shares; share++)
            test->functions[i](arguments, values, work * share / shares, work * (share + 1) / shares,
                               scratch);
    }
}

static inline void *group_test_scratch(struct group_test *test)
{
    uint64_t most = 64;
    for (uint32_t i = 0; i < test->lowered.launches.count; i++)
        if (test->lowered.launches.items[i].kernel->scratch_bytes > most)
            most = test->lowered.launches.items[i].kernel->scratch_bytes;
    unsigned char *memory = arena_alloc(test->context.arena, most + 64);
    memset(memory, 0x7f, most + 64); /* huge numbers: reading what was not written shows */
    return (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
}

static inline void fill_random(void *data, enum dtype dtype, uint64_t bytes, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    unsigned char *out = data;
    for (uint64_t i = 0; i < bytes; i += dtype_bits(dtype) / 8) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const double value = (double)(state >> 40) / 8388608.0 - 1;
        const float single = (float)value;
        const int32_t whole = (int32_t)(value * 100);
        const uint16_t half = (uint16_t)(0x3000 | (state >> 45 & 0x8fff));
        if (dtype == DTYPE_F32)
            memcpy(out + i, &single, 4);
        else if (dtype == DTYPE_F64)
            memcpy(out + i, &value, 8);
        else if (dtype == DTYPE_F16)
            memcpy(out + i, &half, 2);
        else
            memcpy(out + i, &whole, dtype_bits(dtype) / 8);
    }
}

static inline void group_test_compare(struct group_test *test, const int64_t *symbols, const char *what,
                                      uint32_t buffer, const void *result, const void *expected)
{
    const struct definition *d = &test->group.body;
    const struct tensor_type *type = &d->buffers.items[buffer].type;
    const uint64_t bytes = type_bytes(d->pool->dims, type, symbols), count = bytes / 4;
    if (type->dtype != DTYPE_F32) {
        assert_memory_equal(result, expected, bytes);
        return;
    }
    const float *got = result, *want = expected;
    float largest = 0;
    for (uint64_t k = 0; k < count; k++)
        largest = isfinite(want[k]) && fabsf(want[k]) > largest ? fabsf(want[k]) : largest;
    for (uint64_t k = 0; k < count; k++)
        if (!(fabsf(got[k] - want[k]) <= 2e-6f * largest) && got[k] != want[k] &&
            !(isnan(got[k]) && isnan(want[k]))) {
            struct text text;
            text_init(&text, test->context.arena);
            definition_print(d, &text);
            if (test->strategy->describe)
                test->strategy->describe(&test->config, &text);
            fail_msg("%s (%s, %s): element %llu of %llu is %.9g, expected %.9g\n%s", what,
                     test->context.machine->name, test->strategy->name, (unsigned long long)k,
                     (unsigned long long)count, (double)got[k], (double)want[k], text.data);
        }
}

/* Memory between two pages that nobody may touch, right behind the first or right before the second. */
struct guarded {
    unsigned char *map;
    size_t bytes;
};

static inline void *guarded_new(struct guarded *guarded, uint64_t bytes, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = ((size_t)bytes + page) / page * page;
    guarded->bytes = inner + 2 * page;
    guarded->map = mmap(NULL, guarded->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(guarded->map != MAP_FAILED);
    assert_int_equal(mprotect(guarded->map + page, inner, PROT_READ | PROT_WRITE), 0);
    return guarded->map + page + (at_end ? inner - bytes : 0);
}

/* One run with the given sizes against the interpreter; a kernel that leaves its buffers dies. */
static inline void group_test_check_at(struct group_test *test, const int64_t *symbols, const char *what,
                                       bool at_end)
{
    struct arena *arena = test->context.arena;
    const struct definition *d = &test->group.body;
    void *buffers[MAX_BUFFERS] = {0}, *expected[MAX_BUFFERS] = {0};
    struct guarded guarded[MAX_BUFFERS];
    for (uint32_t i = 0; i < d->buffers.count; i++) {
        const struct buffer *buffer = &d->buffers.items[i];
        const uint64_t bytes = type_bytes(d->pool->dims, &buffer->type, symbols);
        buffers[i] = expected[i] = guarded_new(&guarded[i], bytes, at_end);
        if (buffer->role == BUFFER_INPUT) {
            fill_random(buffers[i], buffer->type.dtype, bytes, i + 1);
        } else {
            expected[i] = arena_alloc(arena, bytes);
            memset(buffers[i], 0xA5, bytes);
            memset(expected[i], 0x5A, bytes);
        }
    }
    group_test_pack(test, buffers);
    group_test_run(test, symbols, buffers, group_test_scratch(test), 3);
    assert_int_equal(interpret(d, symbols, expected, NULL, &system_allocator), INTERP_DONE);
    for (uint32_t i = 0; i < d->buffers.count; i++)
        if (d->buffers.items[i].role == BUFFER_OUTPUT) /* temporaries need not be in memory */
            group_test_compare(test, symbols, what, i, buffers[i], expected[i]);
    for (uint32_t i = 0; i < d->buffers.count; i++)
        munmap(guarded[i].map, guarded[i].bytes);
}

static inline void group_test_check(struct group_test *test, const int64_t *symbols, const char *what)
{
    group_test_check_at(test, symbols, what, false);
    group_test_check_at(test, symbols, what, true);
}

static inline void group_test_close(struct group_test *test)
{
    dlclose(test->library.handle);
}

#endif

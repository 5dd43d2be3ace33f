/* The LLVM printer: every operation of Kernel IR on awkward values against ir/expr_eval.h, on each ISA level
 * that this machine has; guarded and masked loads, bools, scratch, registers; equal objects from any number
 * of threads. */
#include "tests/unit/kernel_support.h"

#include "ir/expr_eval.h"
#include "ir/support/hash.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>

enum { COUNT = 400 };

/* Values at the edges of a type first, then mixed bits. */
static uint64_t awkward(enum dtype dtype, unsigned i)
{
    static const uint64_t singles[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                       0x7fc00000, 0x00000001, 0x7f7fffff, 0x3f000000, 0xbf000000, 0x3fc00000,
                                       0x40200000, 0xcf000000, 0x4f000000, 0x5f000000};
    uint64_t bits = hash_word(0x1234567, i);
    if (dtype == DTYPE_F32)
        bits = i < 16  ? singles[i]
               : i % 3 ? (bits & 0x807fffff) | (0x38000000 + (bits >> 40 & 15) * 0x800000)
                       : bits;
    else if (dtype == DTYPE_F64)
        bits = i < 4 ? (uint64_t)i << 62
                     : (bits & UINT64_C(0x800fffffffffffff)) | (UINT64_C(0x3f8) + (bits >> 32 & 15)) << 52;
    else if (i < 16)
        bits = i < 5 ? (uint64_t)i - 2 : i < 8 ? UINT64_C(1) << (dtype_bits(dtype) - 1) : (uint64_t)i - 9;
    return expr_eval_extend(dtype, bits);
}

static unsigned bytes_of(enum dtype dtype)
{
    return dtype_bits(dtype) / 8;
}

static uint64_t read_bits(const unsigned char *data, enum dtype dtype, unsigned i)
{
    uint64_t bits = 0;
    memcpy(&bits, data + (size_t)i * bytes_of(dtype), bytes_of(dtype));
    return expr_eval_extend(dtype, bits);
}

static bool is_nan(enum dtype dtype, uint64_t bits)
{
    return dtype == DTYPE_F32   ? (bits & 0x7fffffff) > 0x7f800000
           : dtype == DTYPE_F64 ? (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000)
                                : false;
}

struct operation {
    enum expr_op op;
    enum dtype dtype, from;
    unsigned count;
};

/* y[i] = op(x0[i], x1[i], ...) in a vectorised loop. */
static struct kernel *operation_kernel(struct arena *arena, struct dims *dims,
                                       const struct operation *operation)
{
    struct kernel *kernel = kernel_new(arena, dims);
    struct block block = {.kernel = kernel, .at = &kernel->body}, parallel, body;
    struct kernel_memory memory = {.space = MEMORY_GLOBAL, .read = true, .label = "x"};
    for (unsigned i = 0; i < operation->count; i++) {
        memory.dtype = operation->op == EXPR_SELECT && i == 0 ? DTYPE_BOOL : operation->from;
        kernel_memory_add(kernel, &memory);
    }
    memory = (struct kernel_memory){.space = MEMORY_GLOBAL, .dtype = operation->dtype, .label = "y"};
    const uint32_t output = kernel_memory_add(kernel, &memory);
    struct exprs *pool = kernel->pool;
    expr outer, i, arguments[3];
    const expr zero = expr_index(pool, 0);
    build_for(&block, "row", zero, expr_index(pool, 1), 0, LOOP_PARALLEL, &parallel, &outer);
    build_for(&parallel, "i", zero, expr_index(pool, COUNT), 0, LOOP_VECTORISE, &body, &i);
    for (unsigned k = 0; k < operation->count; k++)
        arguments[k] = kernel_element(kernel, k, i, 1);
    const struct expr_node node = {.op = operation->op,
                                   .dtype = operation->dtype,
                                   .lanes = 1,
                                   .count = (uint16_t)operation->count,
                                   .arguments = arguments};
    build_store(&body, output, i, expr_make(pool, &node));
    return kernel;
}

static void fill(unsigned char *data, enum dtype dtype, unsigned rotate, enum expr_op op)
{
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t bits = awkward(dtype, (i * (rotate ? 7 : 1) + rotate) % COUNT);
        if ((op == EXPR_SHIFT_LEFT || op == EXPR_SHIFT_RIGHT) && rotate && i % 4)
            bits &= 63;
        if (op == EXPR_INDEX_DIV || op == EXPR_INDEX_MOD)
            bits = (bits & 0xffffff) + (rotate != 0);
        memcpy(data + (size_t)i * bytes_of(dtype), &bits, bytes_of(dtype));
    }
}

static void check_operation(const struct operation *operation, kernel_function *function)
{
    static unsigned char inputs[3][COUNT * 8], output[COUNT * 8];
    void *buffers[4];
    for (unsigned k = 0; k < operation->count; k++) {
        const enum dtype dtype = operation->op == EXPR_SELECT && k == 0 ? DTYPE_BOOL : operation->from;
        fill(inputs[k], dtype, k * 3, operation->op);
        buffers[k] = inputs[k];
    }
    memset(output, 0xee, sizeof output);
    buffers[operation->count] = output;
    function(buffers, NULL, 0, 1, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t arguments[3] = {0}, expected;
        for (unsigned k = 0; k < operation->count; k++)
            arguments[k] = read_bits(
                inputs[k], operation->op == EXPR_SELECT && k == 0 ? DTYPE_BOOL : operation->from, i);
        if (!expr_eval_op(operation->op, operation->dtype, operation->from, arguments, &expected))
            fail_msg("%s is not defined on %s", expr_op_name(operation->op), dtype_name(operation->from));
        const uint64_t got = read_bits(output, operation->dtype, i);
        if (got != expected && !(is_nan(operation->dtype, got) && is_nan(operation->dtype, expected)))
            fail_msg("%s %s -> %s (%llx, %llx, %llx): %llx, expected %llx", expr_op_name(operation->op),
                     dtype_name(operation->from), dtype_name(operation->dtype),
                     (unsigned long long)arguments[0], (unsigned long long)arguments[1],
                     (unsigned long long)arguments[2], (unsigned long long)got, (unsigned long long)expected);
    }
}

/* Every operation that arithmetic types have. */
static uint32_t list_operations(struct operation *out)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64,
                                       DTYPE_U32, DTYPE_U64, DTYPE_BOOL};
    static const enum dtype stored[] = {DTYPE_F32, DTYPE_F64, DTYPE_I8,  DTYPE_U8,  DTYPE_I16, DTYPE_U16,
                                        DTYPE_I32, DTYPE_U32, DTYPE_I64, DTYPE_U64, DTYPE_BOOL};
    uint32_t count = 0;
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
        for (enum expr_op op = EXPR_ADD; op <= EXPR_SELECT; op++) {
            static const uint8_t arguments[EXPR_COUNT] = {
#define EXPR(name, number, class, printed) [EXPR_##name] = number,
#include "ir/expr.def"
#undef EXPR
            };
            const bool comparison = expr_class_of(op) == EXPR_COMPARE;
            const struct operation operation = {op, comparison ? DTYPE_BOOL : types[t], types[t],
                                                arguments[op]};
            uint64_t values[3] = {1, 1, 1}, result;
            const bool is_real = dtype_is_float(types[t]);
            if ((op == EXPR_REMAINDER && is_real) || (types[t] == DTYPE_BOOL && op < EXPR_AND))
                continue;
            if (expr_eval_op(op, operation.dtype, types[t], values, &result))
                out[count++] = operation;
        }
    for (unsigned a = 0; a < sizeof stored / sizeof *stored; a++)
        for (unsigned b = 0; b < sizeof stored / sizeof *stored; b++)
            if (a != b)
                out[count++] = (struct operation){EXPR_CONVERT, stored[a], stored[b], 1};
    return count;
}

static void test_operations(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    static struct operation operations[400];
    const uint32_t count = list_operations(operations);
    assert_true(count > 150);
    for (unsigned l = 0; l < TEST_LEVELS; l++) {
        const struct machine *machine = test_level(l);
        if (!machine)
            continue;
        struct object_kernel *kernels = arena_new_array(&arena, struct object_kernel, count);
        for (uint32_t i = 0; i < count; i++) {
            struct kernel *kernel = operation_kernel(&arena, &dims, &operations[i]);
            struct text why;
            text_init(&why, &arena);
            if (!kernel_verify(kernel, machine, &why))
                fail_msg("%s", why.data);
            kernels[i] = (struct object_kernel){
                .kernel = kernel, .symbol = arena_printf(&arena, "k%u", (unsigned)i), .machine = machine};
        }
        struct library library = load_kernels(&arena, kernels, count);
        for (uint32_t i = 0; i < count; i++)
            check_operation(&operations[i], library_kernel(&library, kernels[i].symbol));
        dlclose(library.handle);
    }
    arena_release(&arena);
}

/* y[i] = 0 <= i - 2 < n ? x[i - 2] : -1, over n + 4 elements; the buffer ends at a page that cannot be read.
 */
static void test_guarded_load(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    const struct symbol symbol = {.low = 0, .high = 1 << 20, .hint = 64};
    const dim n = dim_symbol(&dims, &symbol);
    struct kernel *kernel = kernel_new(&arena, &dims);
    struct exprs *pool = kernel->pool;
    struct block block = {.kernel = kernel, .at = &kernel->body}, body;
    kernel_memory_add(kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .read = true, .label = "x"});
    kernel_memory_add(kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .label = "y"});
    expr i;
    const expr limit = expr_binary(pool, EXPR_ADD, kernel_dim(kernel, n), expr_index(pool, 4));
    build_for(&block, "i", expr_index(pool, 0), limit, 0, LOOP_VECTORISE, &body, &i);
    const expr at = expr_binary(pool, EXPR_SUB, i, expr_index(pool, 2));
    const expr inside =
        expr_binary(pool, EXPR_AND, expr_binary(pool, EXPR_LESS_EQUAL, expr_index(pool, 0), at),
                    expr_binary(pool, EXPR_LESS, at, kernel_dim(kernel, n)));
    build_store(&body, 1, i, kernel_element_or(kernel, 0, inside, at, expr_float(pool, DTYPE_F32, -1), 1));
    const struct object_kernel object = {kernel, "guarded", machine_find("cpu")};
    struct text text;
    text_init(&text, &arena);
    assert_true(kernel_verify(kernel, object.machine, &text));
    assert_int_equal(kernel->dims.count, 2);
    struct library library = load_kernels(&arena, &object, 1);
    kernel_function *function = library_kernel(&library, "guarded");
    for (int64_t size = 0; size < 40; size++) {
        float *x = test_malloc((size_t)size * sizeof(float) + 1), y[44];
        for (int64_t k = 0; k < size; k++)
            x[k] = (float)k;
        int64_t values[2];
        for (uint32_t d = 0; d < 2; d++)
            assert_true(dim_evaluate(&dims, kernel->dims.items[d], &size, &values[d]));
        function((void *[]){x, y}, values, 0, 1, NULL);
        for (int64_t k = 0; k < size + 4; k++)
            assert_true(y[k] == (k >= 2 && k < size + 2 ? (float)(k - 2) : -1.0f));
        test_free(x);
    }
    dlclose(library.handle);
    arena_release(&arena);
}

/* c[6][2 vectors] += a[k][6] * b[k][2 vectors]: registers of vectors, unrolled loops, fma. */
static struct kernel *micro_kernel(struct arena *arena, struct dims *dims, uint16_t lanes, int64_t rows)
{
    struct kernel *kernel = kernel_new(arena, dims);
    struct exprs *pool = kernel->pool;
    const struct symbol symbol = {.low = 0, .high = 1 << 20, .hint = 64};
    const dim depth = dim_symbol(dims, &symbol);
    const expr zero = expr_index(pool, 0);
    kernel_memory_add(
        kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .read = true, .label = "a", .alignment = 64});
    kernel_memory_add(
        kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .read = true, .label = "b", .alignment = 64});
    kernel_memory_add(kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .label = "c", .alignment = 64});
    const struct kernel_memory registers = {
        .space = MEMORY_REGISTER, .dtype = DTYPE_F32, .lanes = lanes, .count = rows * 2, .label = "sum"};
    const uint32_t sum = kernel_memory_add(kernel, &registers);
    struct block block = {.kernel = kernel, .at = &kernel->body}, clear, deep, row, column;
    expr r, k, i, j;
    build_for(&block, "r", zero, expr_index(pool, rows * 2), 0, LOOP_UNROLL, &clear, &r);
    build_store(&clear, sum, r, kernel_broadcast(kernel, expr_float(pool, DTYPE_F32, 0), lanes));
    build_for(&block, "k", zero, kernel_dim(kernel, depth), 0, LOOP_SERIAL, &deep, &k);
    build_for(&deep, "i", zero, expr_index(pool, rows), 0, LOOP_UNROLL, &row, &i);
    const expr left = kernel_element(
        kernel, 0, expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, k, expr_index(pool, rows)), i), 1);
    const expr wide = build_declare(&row, "left", kernel_broadcast(kernel, left, lanes));
    build_for(&row, "j", zero, expr_index(pool, 2), 0, LOOP_UNROLL, &column, &j);
    const expr place =
        expr_binary(pool, EXPR_MUL, expr_index(pool, lanes),
                    expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, k, expr_index(pool, 2)), j));
    const expr slot = expr_binary(pool, EXPR_ADD, expr_binary(pool, EXPR_MUL, i, expr_index(pool, 2)), j);
    build_store(&column, sum, slot,
                expr_fma(pool, wide, kernel_element(kernel, 1, place, lanes),
                         kernel_element(kernel, sum, slot, lanes)));
    build_for(&block, "r", zero, expr_index(pool, rows * 2), 0, LOOP_UNROLL, &clear, &r);
    build_store(&clear, 2, expr_binary(pool, EXPR_MUL, r, expr_index(pool, lanes)),
                kernel_element(kernel, sum, r, lanes));
    return kernel;
}

static void test_micro_kernel(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    enum { DEPTH = 37, MOST = 14 * 2 * 16 };
    for (unsigned l = 0; l < TEST_LEVELS; l++) {
        const struct machine *machine = test_level(l);
        if (!machine)
            continue;
        const uint16_t lanes = (uint16_t)(machine->vector_bytes / 4);
        const int64_t rows = l ? 14 : 6;
        struct kernel *kernel = micro_kernel(&arena, &dims, lanes, rows);
        struct text why;
        text_init(&why, &arena);
        if (!kernel_verify(kernel, machine, &why))
            fail_msg("%s", why.data);
        const struct object_kernel object = {kernel, "micro", machine};
        struct library library = load_kernels(&arena, &object, 1);
        static _Alignas(64) float a[DEPTH * 14], b[DEPTH * 32], c[MOST];
        for (unsigned i = 0; i < DEPTH * 14; i++)
            a[i] = (float)(hash_word(3, i) % 100) - 50;
        for (unsigned i = 0; i < DEPTH * 32; i++)
            b[i] = (float)(hash_word(5, i) % 100) - 50;
        const int64_t depth = DEPTH;
        library_kernel(&library, "micro")((void *[]){a, b, c}, &depth, 0, 1, NULL);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < 2 * lanes; j++) {
                float expected = 0; /* small integers: exact in any order */
                for (int64_t k = 0; k < DEPTH; k++)
                    expected += a[k * rows + i] * b[k * 2 * lanes + j];
                assert_true(c[i * 2 * lanes + j] == expected);
            }
        dlclose(library.handle);
    }
    arena_release(&arena);
}

/* Sums in a vectorised loop, a largest value, and a tail under a mask. */
static void test_reductions_and_masks(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    struct kernel *kernel = kernel_new(&arena, &dims);
    struct exprs *pool = kernel->pool;
    const expr zero = expr_index(pool, 0);
    kernel_memory_add(kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .read = true, .label = "x"});
    kernel_memory_add(kernel, &(struct kernel_memory){.dtype = DTYPE_F32, .label = "y"});
    const uint32_t scratch = kernel_memory_add(
        kernel,
        &(struct kernel_memory){.space = MEMORY_SCRATCH, .dtype = DTYPE_F32, .count = 100, .label = "t"});
    assert_int_equal(kernel->scratch_bytes, 448);
    struct block block = {.kernel = kernel, .at = &kernel->body}, body;
    expr i;
    const uint32_t sum = build_mutable(&block, "sum", expr_float(pool, DTYPE_F32, 0));
    const uint32_t most = build_mutable(&block, "most", expr_float(pool, DTYPE_F32, -INFINITY));
    build_for(&block, "i", zero, expr_index(pool, 100), 0, LOOP_SERIAL, &body, &i);
    const expr x = build_declare(&body, "x", kernel_element(kernel, 0, i, 1));
    build_assign(&body, sum, expr_binary(pool, EXPR_ADD, kernel_variable(kernel, sum), x));
    build_assign(&body, most, expr_binary(pool, EXPR_MAX, kernel_variable(kernel, most), x));
    build_store(&body, scratch, i, expr_binary(pool, EXPR_MUL, x, x));
    build_store(&block, 1, zero, kernel_variable(kernel, sum));
    build_store(&block, 1, expr_index(pool, 1), kernel_variable(kernel, most));
    /* Lanes 0 .. 4 of x behind element 95; the rest must not be touched. */
    expr inside[8];
    for (int k = 0; k < 8; k++)
        inside[k] = expr_int(pool, DTYPE_BOOL, k < 5);
    const expr tail = kernel_element_or(kernel, 0, kernel_pack(kernel, inside, 8), expr_index(pool, 95),
                                        kernel_broadcast(kernel, expr_float(pool, DTYPE_F32, 7), 8), 8);
    build_store(&block, 1, expr_index(pool, 2), tail);
    build_store(&block, 1, expr_index(pool, 10), kernel_element(kernel, scratch, expr_index(pool, 99), 1));
    const struct object_kernel object = {kernel, "sums", machine_find("cpu")};
    struct text why;
    text_init(&why, &arena);
    if (!kernel_verify(kernel, object.machine, &why))
        fail_msg("%s", why.data);
    struct library library = load_kernels(&arena, &object, 1);
    float input[100], y[11];
    static _Alignas(64) unsigned char scratch_memory[448];
    for (int k = 0; k < 100; k++)
        input[k] = (float)((k * 37) % 100 - 20);
    library_kernel(&library, "sums")((void *[]){input, y}, NULL, 0, 1, scratch_memory);
    assert_true(y[0] == 4950 - 2000 && y[1] == 79);
    for (int k = 0; k < 8; k++)
        assert_true(y[2 + k] == (k < 5 ? input[95 + k] : 7));
    assert_true(y[10] == input[99] * input[99]);
    dlclose(library.handle);
    arena_release(&arena);
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "test");
    struct object_kernel kernels[20];
    for (uint32_t i = 0; i < 20; i++)
        kernels[i] = (struct object_kernel){micro_kernel(&arena, &dims, 8, 1 + i % 6),
                                            arena_printf(&arena, "k%u", (unsigned)i), machine_find("cpu")};
    struct object_file *first, *second;
    uint32_t first_count, second_count;
    assert_true(llvm_objects(kernels, 20, 1, "", &arena, &diagnostics, &first, &first_count));
    assert_true(llvm_objects(kernels, 20, 3, "", &arena, &diagnostics, &second, &second_count));
    assert_int_equal(first_count, second_count);
    assert_true(first_count > 1);
    for (uint32_t i = 0; i < first_count; i++) {
        assert_int_equal(first[i].length, second[i].length);
        assert_memory_equal(first[i].bytes, second[i].bytes, first[i].length);
    }
    arena_release(&arena);
}

/* Puts one entry of the cache in the place of another; returns how many entries there are. */
static uint32_t mix_entries(struct arena *arena, const char *folder)
{
    const char *names[8] = {NULL};
    uint32_t count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *item; (item = readdir(list));)
        if (item->d_name[0] != '.' && count < 8)
            names[count++] = arena_printf(arena, "%s/%s", folder, item->d_name);
    closedir(list);
    assert_true(count >= 2);
    assert_int_equal(rename(names[0], names[1]), 0);
    return count;
}

/* What is in the cache is taken from there, each module by its own key. */
static void test_cache(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "test");
    char *folder;
    assert_true(temporary_folder(&arena, &folder));
    struct object_kernel kernels[12];
    for (uint32_t i = 0; i < 12; i++)
        kernels[i] = (struct object_kernel){micro_kernel(&arena, &dims, 8, 1 + i % 6),
                                            arena_printf(&arena, "k%u", (unsigned)i), machine_find("cpu")};
    struct object_file *made[3];
    uint32_t count;
    for (uint32_t turn = 0; turn < 3; turn++) {
        assert_true(llvm_objects(kernels, 12, 1, folder, &arena, &diagnostics, &made[turn], &count));
        if (turn == 1)
            assert_int_equal(mix_entries(&arena, folder), count);
    }
    assert_int_equal(count, 2);
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(made[0][i].length, made[1][i].length);
        assert_memory_equal(made[0][i].bytes, made[1][i].bytes, made[0][i].length);
        same += made[2][i].length == made[0][i].length &&
                memcmp(made[2][i].bytes, made[0][i].bytes, made[0][i].length) == 0;
    }
    assert_int_equal(same, 1); /* the other one is what was put in its place */
    remove_folder(folder);
    arena_release(&arena);
}

/* What Kernel IR does not have on a CPU is a diagnostic, not a crash. */
static void test_refusal(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    dims_init(&dims, &arena);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena, "test");
    struct kernel *kernel = kernel_new(&arena, &dims);
    struct block block = {.kernel = kernel, .at = &kernel->body};
    build_barrier(&block);
    const struct object_kernel object = {kernel, "wrong", machine_find("cpu")};
    struct object_file *objects;
    uint32_t count;
    struct text why;
    text_init(&why, &arena);
    assert_false(kernel_verify(kernel, object.machine, &why));
    assert_false(llvm_objects(&object, 1, 1, "", &arena, &diagnostics, &objects, &count));
    assert_int_equal(diagnostics.items.count, 1);
    assert_int_equal(diagnostics.items.items[0].code, DIAG_internal);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_guarded_load),
        cmocka_unit_test(test_micro_kernel),
        cmocka_unit_test(test_reductions_and_masks),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

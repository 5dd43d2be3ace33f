/* Device stages and the strategies that call them: what the verifier refuses, what the strategies take and
 * why not, when which of a pair of launches is made, and what is expanded on machines with conversions of
 * their own. */
#include "codegen/printers.h"
#include "codegen/strategy.h"

#include <string.h>

#include "tests/unit/definition_support.h"

/* ---- the verifier ---- */

struct fixture {
    struct kernel *kernel;
    struct block top;
    uint32_t buffer, shared, barriers, registers, run, at;
};

static void fixture_init(struct fixture *f, struct arena *arena, struct dims *dims)
{
    dims_init(dims, arena);
    f->kernel = kernel_new(arena, dims);
    f->kernel->strategy = "test";
    f->kernel->block[0] = 128;
    f->top = (struct block){.kernel = f->kernel, .at = &f->kernel->body};
    const struct kernel_memory memories[] = {
        {.space = MEMORY_GLOBAL, .dtype = DTYPE_F16, .label = "x"},
        {.space = MEMORY_SHARED, .dtype = DTYPE_F16, .count = 1024, .label = "tile", .alignment = 1024},
        {.space = MEMORY_MBARRIER, .dtype = DTYPE_U64, .count = 4, .label = "full"},
        {.space = MEMORY_REGISTER, .dtype = DTYPE_F32, .count = 32, .label = "sum"},
        {.space = MEMORY_REGISTER, .dtype = DTYPE_F32, .count = 8, .label = "run"},
    };
    uint32_t *const numbers[] = {&f->buffer, &f->shared, &f->barriers, &f->registers, &f->run};
    for (unsigned i = 0; i < sizeof memories / sizeof *memories; i++)
        *numbers[i] = kernel_memory_add(f->kernel, &memories[i]);
    f->at = build_mutable(&f->top, "at", expr_int(f->kernel->pool, DTYPE_U32, 0));
}

static expr number(struct fixture *f, int64_t value)
{
    return expr_index(f->kernel->pool, value);
}

static const int64_t some[] = {0, 64, 64, 4, 1, 1, 2};

static void good(struct fixture *f)
{
    const struct stage_operand run[] = {
        {.memory = f->run}, {.memory = f->registers}, {.value = number(f, 4)}, {.value = number(f, 0)}};
    const struct stage_operand ring[] = {
        {.memory = f->barriers}, {.memory = f->barriers}, {.value = number(f, 4)}};
    build_stage(&f->top, STAGE_fragment_run, NULL, run);
    build_stage(&f->top, STAGE_ring_begin, some, ring);
}

static void other_memory(struct fixture *f)
{
    const struct stage_operand run[] = {
        {.memory = f->shared}, {.memory = f->registers}, {.value = number(f, 4)}, {.value = number(f, 0)}};
    build_stage(&f->top, STAGE_fragment_run, NULL, run);
}

static void no_memory(struct fixture *f)
{
    const struct stage_operand ring[] = {{.memory = 77}, {.memory = f->barriers}, {.value = number(f, 4)}};
    build_stage(&f->top, STAGE_ring_begin, some, ring);
}

static void no_value(struct fixture *f)
{
    const struct stage_operand ring[] = {{.memory = f->barriers}, {.memory = f->barriers}, {0}};
    build_stage(&f->top, STAGE_ring_begin, some, ring);
}

static void other_type(struct fixture *f)
{
    const struct stage_operand ring[] = {
        {.memory = f->barriers}, {.memory = f->barriers}, {.value = expr_int(f->kernel->pool, DTYPE_I32, 4)}};
    build_stage(&f->top, STAGE_ring_begin, some, ring);
}

static void multiply(struct fixture *f, uint32_t variable)
{
    const struct stage_operand operands[] = {
        {.memory = f->registers}, {.memory = f->shared},   {.memory = f->shared},
        {.memory = f->barriers},  {.memory = f->barriers}, {.value = number(f, 0)},
        {.value = number(f, 64)}, {.value = number(f, 0)}, {.variable = variable}};
    build_stage(&f->top, STAGE_matmul_wgmma, some, operands);
}

static void good_variable(struct fixture *f)
{
    multiply(f, f->at);
}

static void constant_variable(struct fixture *f)
{
    f->kernel->variables.items[f->at].mutable = false;
    multiply(f, f->at);
}

static void unknown_variable(struct fixture *f)
{
    multiply(f, 0);
}

static void stored_barrier(struct fixture *f)
{
    build_store(&f->top, f->barriers, number(f, 0), expr_int(f->kernel->pool, DTYPE_U64, 0));
}

static void half_a_warp(struct fixture *f)
{
    kernel_memory_add(
        f->kernel,
        &(struct kernel_memory){.space = MEMORY_BARRIER, .dtype = DTYPE_U64, .count = 48, .label = "some"});
}

static void add_map(struct fixture *f, uint32_t rank, uint32_t box, uint32_t swizzle)
{
    struct dims *dims = f->kernel->pool->dims;
    struct kernel_tensor_map map = {.buffer = f->buffer, .rank = rank, .swizzle = swizzle};
    for (uint32_t i = 0; i < MAX_TENSOR_MAP_RANK; i++) {
        map.sizes[i] = map.strides[i] = dim_constant(dims, 64);
        map.box[i] = i ? 1 : box;
    }
    kernel_tensor_map_add(f->kernel, &map, "map");
}

static void good_map(struct fixture *f)
{
    add_map(f, 2, 64, 128);
}

static void flat_map(struct fixture *f)
{
    add_map(f, 1, 64, 128);
}

static void wide_map(struct fixture *f)
{
    add_map(f, 2, 128, 128);
}

static void test_verifier(void **state)
{
    (void)state;
    static const struct {
        void (*build)(struct fixture *f);
        const char *machine, *why;
    } cases[] = {
        {good, "sm_90a", NULL},
        {good_variable, "sm_90a", NULL},
        {good_map, "sm_90a", NULL},
        {good, "sm_80", "does not have"},
        {good, "sm_90", "does not have"},
        {good, "cpu", "does not have"},
        {other_memory, "sm_90a", "another kind of memory"},
        {no_memory, "sm_90a", "another kind of memory"},
        {no_value, "sm_90a", "without a value"},
        {other_type, "sm_90a", "of another type"},
        {constant_variable, "sm_90a", "not a mutable u32"},
        {unknown_variable, "sm_90a", "not a mutable u32"},
        {stored_barrier, "sm_90a", "stages alone"},
        {half_a_warp, "sm_90a", "part of a warp"},
        {flat_map, "sm_90a", "of a rank"},
        {wide_map, "sm_90a", "does not fit its swizzle"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recovery recovery;
        struct arena arena;
        struct dims dims;
        struct fixture f;
        struct text why;
        arena_init(&arena, &system_allocator, &recovery);
        fixture_init(&f, &arena, &dims);
        cases[i].build(&f);
        text_init(&why, &arena);
        const bool fine = kernel_verify(f.kernel, machine_find(cases[i].machine), &why);
        if (fine != !cases[i].why || (!fine && !strstr(why.data, cases[i].why)))
            fail_msg("case %u: %s", i, fine ? "taken" : why.data);
        arena_release(&arena);
    }
}

static void test_text(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    struct dims dims;
    struct fixture f;
    struct text text;
    fixture_init(&f, &arena, &dims);
    good_map(&f);
    good(&f);
    multiply(&f, f.at);
    text_init(&text, &arena);
    kernel_print(f.kernel, &text);
    static const char *const lines[] = {
        "mbarrier m2 : u64[4] \"full\"",
        "m5 shows m0 as [64 by 64, 64 by 64], boxes of 64x1, swizzle 128",
        "stage fragment_run<>(m4, m3, 4, 0)",
        "stage ring_begin<0>(m2, m2, 4)",
        "stage matmul_wgmma<0, 64, 64, 4, 1, 1>(m3, m1, m1, m2, m2, 0, 64, 0, v1)",
    };
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text.data, lines[i]))
            fail_msg("no line \"%s\" in\n%s", lines[i], text.data);
    struct text source, prelude;
    text_init(&source, &arena);
    text_init(&prelude, &arena);
    print_cuda(f.kernel, "k", machine_find("sm_90a"), false, &source);
    print_cuda_prelude(source.data, machine_find("sm_90a"), &prelude);
    /* What the stages call comes along, and nothing else. */
    assert_non_null(strstr(prelude.data, "DEVICE void matmul_wgmma("));
    assert_non_null(strstr(prelude.data, "DEVICE void mbarrier_wait("));
    assert_non_null(strstr(prelude.data, "DEVICE void fragment_run("));
    assert_null(strstr(prelude.data, "matmul_mma"));
    arena_release(&arena);
}

/* ---- what the strategies take ---- */

struct product {
    struct graph *graph;
    struct symbols symbols;
    struct exprs pool;
    struct group group;
    struct strategy_context context;
};

static bool nothing_constant(const struct strategy_context *context, uint32_t buffer)
{
    (void)context;
    (void)buffer;
    return false;
}

static void product_make(struct product *p, struct arena *arena, struct op_case *c, bool symbolic,
                         const char *machine)
{
    struct diagnostics diagnostics;
    *p = (struct product){.graph = graph_new(arena)};
    p->symbols = (struct symbols){.dims = &p->graph->dims, .symbolic = symbolic};
    diagnostics_init(&diagnostics, arena, "product");
    const node_id node = case_node(arena, c, &p->symbols, p->graph);
    exprs_init(&p->pool, arena, &p->graph->dims);
    assert_true(define_node(p->graph, node, &p->pool, &diagnostics, &p->group.body));
    p->group.values = arena_new_array(arena, value_id, p->group.body.buffers.count);
    p->context = (struct strategy_context){.graph = p->graph,
                                           .group = &p->group,
                                           .machine = machine_find(machine),
                                           .arena = arena,
                                           .is_constant = nothing_constant};
}

static const struct strategy *named(const char *name)
{
    for (uint32_t i = 0; gpu_strategy(i); i++)
        if (strcmp(gpu_strategy(i)->name, name) == 0)
            return gpu_strategy(i);
    fail_msg("no strategy %s", name);
    return NULL;
}

static struct op_case matmul(struct arena *arena, enum dtype dtype, int rank, const int64_t *a,
                             const int64_t *b, const int64_t *y)
{
    struct op_case c = {.op = OP_MatMul, .input_count = 2, .output_count = 1};
    c.inputs[0] = tensor_new(arena, dtype, rank, a);
    c.inputs[1] = tensor_new(arena, dtype, rank, b);
    c.outputs[0] = tensor_new(arena, dtype, rank, y);
    return c;
}

static struct op_case convolution(struct arena *arena, int64_t pad)
{
    const int64_t x[] = {2, 16, 9, 9}, w[] = {24, 16, 2, 2}, y[] = {2, 24, 8 + 2 * pad, 8 + 2 * pad};
    int64_t *pads = arena_new_array(arena, int64_t, 4);
    struct op_case c = {.op = OP_Conv, .input_count = 2, .output_count = 1};
    for (int i = 0; i < 4; i++)
        pads[i] = pad;
    c.inputs[0] = tensor_new(arena, DTYPE_F16, 4, x);
    c.inputs[1] = tensor_new(arena, DTYPE_F16, 4, w);
    c.outputs[0] = tensor_new(arena, DTYPE_F16, 4, y);
    add_attribute(&c, attribute_ints(ATTR_pads, 4, pads));
    return c;
}

static void test_legality(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const int64_t a[] = {24, 64}, b[] = {64, 40}, y[] = {24, 40}, odd_b[] = {64, 41}, odd_y[] = {24, 41};
    /* Rows merge across the other factor's axes; axes that alternate do not. */
    const int64_t near_a[] = {2, 1, 3, 1, 5, 24, 64}, near_b[] = {1, 2, 1, 3, 1, 64, 40},
                  near_y[] = {2, 2, 3, 3, 5, 24, 40};
    const int64_t far_a[] = {2, 1, 2, 1, 2, 24, 64}, far_b[] = {2, 3, 2, 3, 2, 64, 40},
                  far_y[] = {2, 3, 2, 3, 2, 24, 40};
    const int64_t row_a[] = {1, 64}, row_y[] = {1, 40}, thin_a[] = {24, 1}, thin_b[] = {1, 40},
                  none_a[] = {24, 0}, none_b[] = {0, 40}, batch_a[] = {3, 24, 64}, batch_b[] = {3, 64, 40},
                  batch_y[] = {3, 24, 40};
    struct op_case row = matmul(&arena, DTYPE_F16, 2, row_a, b, row_y),
                   thin = matmul(&arena, DTYPE_F16, 2, thin_a, thin_b, y),
                   none = matmul(&arena, DTYPE_F16, 2, none_a, none_b, y),
                   batch = matmul(&arena, DTYPE_F16, 3, batch_a, batch_b, batch_y);
    struct op_case plain = matmul(&arena, DTYPE_F16, 2, a, b, y),
                   single = matmul(&arena, DTYPE_F32, 2, a, b, y),
                   odd = matmul(&arena, DTYPE_BF16, 2, a, odd_b, odd_y),
                   near = matmul(&arena, DTYPE_F16, 7, near_a, near_b, near_y),
                   far = matmul(&arena, DTYPE_F16, 7, far_a, far_b, far_y), window = convolution(&arena, 0),
                   padded = convolution(&arena, 1);
    const struct {
        struct op_case *c;
        const char *strategy, *machine, *why;
        bool symbolic;
    } cases[] = {
        {&plain, "gpu_matmul_wgmma", "sm_90a", NULL, false},
        {&plain, "gpu_matmul_wgmma", "sm_90a", NULL, true},
        {&row, "gpu_matmul_mma", "sm_90a", "no element is used twice", false},
        {&row, "gpu_matmul_wgmma", "sm_90a", NULL, true},
        {&thin, "gpu_matmul_mma", "sm_90a", "loads nothing over the summed axes", false},
        {&thin, "gpu_matmul_wgmma", "sm_90a", NULL, true},
        {&none, "gpu_matmul_wgmma", "sm_90a", "an empty depth", false},
        {&none, "gpu_matmul_mma", "sm_90a", NULL, false},
        {&batch, "gpu_matmul_wgmma", "sm_90a", NULL, false},
        {&batch, "gpu_matmul_wgmma", "sm_90a", "a broadcast that only sizes decide", true},
        {&plain, "gpu_matmul_mma", "sm_90a", NULL, false},
        {&plain, "gpu_matmul_mma", "sm_80", NULL, false},
        {&plain, "gpu_matmul_wgmma", "sm_90", "sm_90a has them", false},
        {&plain, "gpu_matmul_wgmma", "sm_80", "sm_90a has them", false},
        {&single, "gpu_matmul_mma", "sm_90a", "no plain loads of one 16-bit float type", false},
        {&odd, "gpu_matmul_wgmma", "sm_90a", "never multiples of the copy engine's 16 bytes", false},
        {&odd, "gpu_matmul_mma", "sm_90a", NULL, false},
        {&near, "gpu_matmul_wgmma", "sm_90a", NULL, false},
        {&far, "gpu_matmul_mma", "sm_90a", "more axes in front", false},
        {&window, "gpu_matmul_mma", "sm_90a", "do not run through both operands as one", false},
        {&padded, "gpu_matmul_mma", "sm_90a", "no plain loads", false},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct product p;
        struct text why;
        text_init(&why, &arena);
        product_make(&p, &arena, cases[i].c, cases[i].symbolic, cases[i].machine);
        const bool fits = named(cases[i].strategy)->fits(&p.context, &why);
        if (fits != !cases[i].why || (!fits && !strstr(why.data, cases[i].why)))
            fail_msg("case %u: %s", i, fits ? "taken" : why.data);
    }
    arena_release(&arena);
}

/* One of the two launches is made whatever the sizes, the first exactly where the copy engine takes them. */
static void test_condition(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    const int64_t a[] = {24, 64}, b[] = {64, 40}, y[] = {24, 40};
    struct op_case c = matmul(&arena, DTYPE_F16, 2, a, b, y);
    struct product p;
    struct config config;
    struct lowered_group free_sizes = {0}, known = {0};
    struct text why;
    text_init(&why, &arena);
    const struct strategy *strategy = named("gpu_matmul_wgmma");
    product_make(&p, &arena, &c, false, "sm_90a");
    assert_int_equal(strategy->candidates(&p.context, &config, 1), 1);
    assert_true(strategy->build(&p.context, &config, &known, &why));
    assert_int_equal(known.launches.count, 1);
    assert_int_equal(known.launches.items[0].kernel->condition, DIM_NONE);
    product_make(&p, &arena, &c, true, "sm_90a");
    assert_int_equal(strategy->candidates(&p.context, &config, 1), 1);
    assert_true(strategy->build(&p.context, &config, &free_sizes, &why));
    assert_int_equal(free_sizes.launches.count, 2);
    assert_string_equal(free_sizes.launches.items[1].kernel->strategy, "gpu_matmul_mma");
    static const struct {
        int64_t m, k, n, first;
    } rows[] = {{24, 64, 40, 1}, {1, 8, 8, 1},    {300, 8, 16, 1}, {24, 63, 40, 0},
                {24, 64, 41, 0}, {24, 63, 41, 0}, {24, 0, 40, 0},  {24, 64, 0, 1},
                {0, 64, 40, 1},  {24, 4, 8, 0},   {24, 1, 8, 0},   {7, 4096, 12, 0}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t values[MOST_SYMBOLS] = {0}, made[2];
        for (uint32_t s = 0; s < p.graph->dims.symbols.count; s++) {
            const int64_t size = p.symbols.values[s];
            values[s] = size == 24 ? rows[i].m : size == 64 ? rows[i].k : rows[i].n;
        }
        for (int launch = 0; launch < 2; launch++)
            assert_true(dim_evaluate(&p.graph->dims, free_sizes.launches.items[launch].kernel->condition,
                                     values, &made[launch]));
        if (made[0] != rows[i].first || made[1] != 1 - made[0])
            fail_msg("row %u: %d, %d", i, (int)made[0], (int)made[1]);
    }
    arena_release(&arena);
}

/* ---- conversions ---- */

/* The machine's own where it has them, else printed from the expansion. */
static void test_native_half(void **state)
{
    (void)state;
    TEST_ARENA(arena);
    static const struct {
        const char *machine, *source, *native;
        bool has;
    } rows[] = {
        {"sm_90a", "f16_from_f32(x)", "cvt.rn.f16.f32", true},
        {"sm_75", "f16_from_f32(x)", "cvt.rn.f16.f32", true},
        {"sm_80", "bf16_from_f32(x)", "cvt.rn.bf16.f32", true},
        {"sm_75", "bf16_from_f32(x)", "cvt.rn.bf16.f32", false},
        {"sm_90a", "f16_from_f64(x)", "cvt.rn.f16", false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct text prelude;
        text_init(&prelude, &arena);
        print_cuda_prelude(rows[i].source, machine_find(rows[i].machine), &prelude);
        if ((strstr(prelude.data, rows[i].native) != NULL) != rows[i].has)
            fail_msg("row %u:\n%s", i, prelude.data);
        /* Once. */
        const char *name = arena_printf(&arena, "%.*s(", (int)strcspn(rows[i].source, "("), rows[i].source);
        const char *first = strstr(prelude.data, name);
        assert_non_null(first);
        assert_null(strstr(first + 1, arena_printf(&arena, "DEVICE unsigned short %s", name)));
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verifier),  cmocka_unit_test(test_text),        cmocka_unit_test(test_legality),
        cmocka_unit_test(test_condition), cmocka_unit_test(test_native_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

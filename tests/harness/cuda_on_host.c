/* See cuda_on_host.h. */
#include "tests/harness/cuda_on_host.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/nvrtc.h"
#include "codegen/print_cuda_internal.h"
#include "ir/support/file.h"
#include "ir/support/threads.h"

struct host_source {
    struct text text;   /* the kernel and what calls it, under a name that all share */
    struct text source; /* the same under a name of its own */
    uint32_t part;
};

/* What one job compiles; its memory is its own. */
struct part {
    struct arena arena;
    struct text source;
    void (*compile)(struct part *part);
    const char *path, *library; /* g++ */
    const struct nvrtc *nvrtc;
    const struct machine *machine;
    const char *architecture, *log;
    bool good;
};

void host_batch_begin(struct host_batch *batch, struct arena *arena)
{
    *batch = (struct host_batch){.arena = arena};
}

/* k0_run: buffers and dims as an array each, the grid as given. */
static void put_wrapper(const struct kernel *kernel, const char *name, struct text *out)
{
    text_printf(out,
                "#ifdef ON_HOST\nextern \"C\" int %s_run(void *const *buffers, const long long *dims, const "
                "long long *grid, const void *const *maps)\n",
                name);
    text_printf(out,
                "{\n    (void)buffers, (void)dims, (void)maps;\n    const unsigned block[] = {%u, %u, %u};\n",
                kernel->block[0], kernel->block[1], kernel->block[2]);
    text_printf(out, "    return host::run_grid(grid, block, [&] { %s(", name);
    for (uint32_t i = 0; i < kernel->global_count; i++)
        text_printf(out, "%s(%s *)buffers[%u]", i ? ", " : "",
                    cuda_storage_type(kernel->memories.items[i].dtype), i);
    for (uint32_t i = 0; i < kernel->words.count; i++)
        text_printf(out, ", (const %s *)buffers[%u]", cuda_storage_type(kernel->words.items[i].dtype),
                    kernel->global_count + i);
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        text_printf(out, "%s(%s)dims[%u]", i || kernel->global_count ? ", " : "",
                    kernel->index_bits == 32 ? "int" : "long long", i);
    for (uint32_t i = 0; i < kernel->tensor_maps.count; i++)
        text_printf(out, "%s*(const tensor_map *)maps[%u]",
                    i || kernel->dims.count || kernel->global_count ? ", " : "", i);
    text_put(out, "); });\n}\n#endif\n");
}

static void put_kernel(struct host_batch *batch, const struct kernel *kernel, const struct machine *machine,
                       const char *name, struct text *out)
{
    text_init(out, batch->arena);
    print_cuda(kernel, name, machine, true, out);
    put_wrapper(kernel, name, out);
}

uint32_t host_batch_add(struct host_batch *batch, const struct kernel *kernel, const struct machine *machine)
{
    struct text why;
    text_init(&why, batch->arena);
    if (!kernel_verify(kernel, machine, &why)) {
        text_put(&why, "\n");
        kernel_print(kernel, &why);
        fail_msg("%s: %s", kernel->strategy, why.data);
    }
    struct host_source added;
    put_kernel(batch, kernel, machine, "kernel", &added.text);
    for (uint32_t i = 0; i < batch->kernel_count; i++) {
        const struct text *other = &batch->sources[i].text;
        if (other->length == added.text.length && memcmp(other->data, added.text.data, other->length) == 0)
            return i;
    }
    put_kernel(batch, kernel, machine, arena_printf(batch->arena, "k%u", batch->kernel_count), &added.source);
    if (batch->kernel_count == batch->room) {
        batch->room = 2 * batch->room + 64;
        struct host_source *grown = arena_new_array(batch->arena, struct host_source, batch->room);
        if (batch->kernel_count)
            memcpy(grown, batch->sources, batch->kernel_count * sizeof *grown);
        batch->sources = grown;
    }
    batch->sources[batch->kernel_count] = added;
    return batch->kernel_count++;
}

/* The extern arrays of dynamic shared memory are plain ones on the host. */
static void put_host_source(struct text *out, const char *source)
{
    static const char begin[] = "extern __shared__ ", end[] = "[];";
    const char *at;
    while ((at = strstr(source, begin))) {
        const char *name = at + sizeof begin - 1, *behind = strstr(name, end);
        text_printf(out, "%.*sstatic %.*s[232448];", (int)(at - source), source, (int)(behind - name), name);
        source = behind + sizeof end - 1;
    }
    text_put(out, source);
}

/* Kernels in parts of about the same length. */
static struct part *make_parts(struct host_batch *batch)
{
    enum { FITTING = 384 * 1024 };
    size_t total = 0;
    for (uint32_t i = 0; i < batch->kernel_count; i++)
        total += batch->sources[i].source.length;
    batch->part_count = (uint32_t)(total / FITTING) + 1;
    batch->part_count = batch->part_count < MOST_PARTS ? batch->part_count : MOST_PARTS;
    struct part *parts = arena_new_array(batch->arena, struct part, batch->part_count);
    for (uint32_t i = 0; i < batch->part_count; i++) {
        parts[i] = (struct part){0};
        arena_init(&parts[i].arena, &system_allocator, batch->arena->recovery);
        text_init(&parts[i].source, &parts[i].arena);
    }
    for (uint32_t i = 0; i < batch->kernel_count; i++) {
        uint32_t shortest = 0;
        for (uint32_t k = 1; k < batch->part_count; k++)
            if (parts[k].source.length < parts[shortest].source.length)
                shortest = k;
        batch->sources[i].part = shortest;
        text_put(&parts[shortest].source, batch->sources[i].source.data);
    }
    return parts;
}

/* cuda_on_host.hh stands for what asm does. */
static const struct machine host_machine = {.name = "host", .kind = TARGET_CUDA};

static void compile_part(struct part *part)
{
    struct arena *arena = &part->arena;
    struct text source;
    text_init(&source, arena);
    text_printf(&source, "#define ON_HOST\n#include \"%s/tests/harness/cuda_on_host.hh\"\n",
                GPUCC_SOURCE_FOLDER);
    print_cuda_prelude(part->source.data, &host_machine, &source);
    put_host_source(&source, part->source.data);
    const char *words[] = {"g++",
                           "-std=c++17",
                           "-O1",
                           "-w",
                           "-ffp-contract=off",
                           "-fPIC",
                           "-shared",
                           "-fsanitize=alignment,bounds,shift",
                           "-fsanitize-undefined-trap-on-error",
                           "-fno-strict-aliasing",
                           "-o",
                           part->library,
                           part->path};
    enum { WORDS = sizeof words / sizeof words[0] };
    char *argv[WORDS + 1] = {NULL}, *log = NULL;
    for (unsigned i = 0; i < WORDS; i++)
        argv[i] = arena_string(arena, words[i]);
    int status = 0;
    part->good = file_write_all(arena, part->path, source.data, source.length) &&
                 run_program(arena, argv, &status, &log) && status == 0;
    part->log = log ? log : "it did not run";
}

/* A job may not jump out. */
static void part_job(void *user, uint32_t index)
{
    struct part *part = (struct part *)user + index;
    struct recovery recovery;
    part->arena.recovery = &recovery;
    if (setjmp(recovery.jump) == 0)
        part->compile(part);
    else
        part->log = "out of memory";
}

/* Releases the parts; `said` gets what the compiler printed. */
static void compile_parts(struct part *parts, uint32_t count, void (*compile)(struct part *part),
                          const char *compiler, struct text *said)
{
    for (uint32_t i = 0; i < count; i++)
        parts[i].compile = compile;
    run_jobs(count, 0, part_job, parts);
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].good)
            fail_msg("%s: %.3000s", compiler, parts[i].log);
        text_put(said, parts[i].log);
        arena_release(&parts[i].arena);
    }
}

void host_batch_compile(struct host_batch *batch)
{
    struct arena *arena = batch->arena;
    struct part *parts = make_parts(batch);
    struct text said;
    assert_true(temporary_folder(arena, &batch->folder));
    for (uint32_t i = 0; i < batch->part_count; i++) {
        parts[i].path = arena_printf(arena, "%s/part%u.cc", batch->folder, i);
        parts[i].library = arena_printf(arena, "%s/part%u.so", batch->folder, i);
    }
    text_init(&said, arena);
    compile_parts(parts, batch->part_count, compile_part, "g++", &said);
    for (uint32_t i = 0; i < batch->part_count; i++) {
        batch->libraries[i] = dlopen(parts[i].library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!batch->libraries[i])
            fail_msg("%s", dlerror());
    }
    if (!getenv("GPUCC_KEEP"))
        remove_folder(batch->folder);
}

host_kernel *host_batch_kernel(const struct host_batch *batch, uint32_t number)
{
    void *symbol =
        dlsym(batch->libraries[batch->sources[number].part], arena_printf(batch->arena, "k%u_run", number));
    host_kernel *function;
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void host_batch_end(struct host_batch *batch)
{
    for (uint32_t i = 0; i < batch->part_count; i++)
        if (batch->libraries[i])
            dlclose(batch->libraries[i]);
}

static void compile_part_by_nvrtc(struct part *part)
{
    struct text source;
    struct nvrtc_result result;
    const char *options[] = {part->architecture, "--fmad=false", "--ptxas-options=-v"};
    text_init(&source, &part->arena);
    print_cuda_prelude(part->source.data, part->machine, &source);
    text_put(&source, part->source.data);
    part->good = nvrtc_compile(part->nvrtc, source.data, options, 3, false, &result);
    part->log = arena_string(&part->arena, result.log ? result.log : part->good ? "" : "out of memory");
    nvrtc_result_release(&result);
}

static bool parts_by_nvrtc(struct arena *arena, struct part *parts, uint32_t count,
                           const struct machine *machine, char **log)
{
    struct nvrtc *nvrtc = nvrtc_open(arena, NULL);
    if (!nvrtc)
        return false;
    const char *architecture = arena_printf(arena, "--gpu-architecture=%s", machine->name);
    for (uint32_t i = 0; i < count; i++) {
        parts[i].nvrtc = nvrtc;
        parts[i].machine = machine;
        parts[i].architecture = architecture;
    }
    struct text said;
    text_init(&said, arena);
    compile_parts(parts, count, compile_part_by_nvrtc, architecture, &said);
    if (log)
        *log = said.data;
    nvrtc_close(nvrtc);
    return true;
}

bool host_batch_nvrtc(struct host_batch *batch, const struct machine *machine, char **log)
{
    struct part *parts = make_parts(batch);
    return parts_by_nvrtc(batch->arena, parts, batch->part_count, machine, log);
}

bool host_nvrtc(struct arena *arena, const char *kernels, const struct machine *machine, char **log)
{
    struct part *part = arena_new(arena, struct part);
    arena_init(&part->arena, &system_allocator, arena->recovery);
    text_init(&part->source, &part->arena);
    text_put(&part->source, kernels);
    return parts_by_nvrtc(arena, part, 1, machine, log);
}

const char *slow_code(const char *log)
{
    static const char none[] = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
    const char *at = strstr(log, "serialized");
    if (at)
        return at;
    while ((at = strstr(log, " bytes stack frame"))) {
        while (at > log && at[-1] >= '0' && at[-1] <= '9')
            at--;
        if (strncmp(at, none, sizeof none - 1) != 0)
            return at;
        log = at + sizeof none - 1;
    }
    return NULL;
}

static size_t guarded_bytes(size_t bytes, size_t page)
{
    return (bytes + 15) / 16 * 16 / page * page + 2 * page;
}

void *guarded_alloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), total = guarded_bytes(bytes, page);
    unsigned char *memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + total - page, page, PROT_NONE), 0);
    return memory + total - page - (bytes + 15) / 16 * 16;
}

void guarded_release(void *memory, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), total = guarded_bytes(bytes, page);
    munmap((unsigned char *)memory + (bytes + 15) / 16 * 16 + page - total, total);
}

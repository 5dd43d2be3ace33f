/* See cuda_on_host.h. */
#include "tests/harness/cuda_on_host.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/nvrtc.h"
#include "codegen/print_cuda_internal.h"
#include "ir/support/file.h"

void host_batch_begin(struct host_batch *batch, struct arena *arena)
{
    *batch = (struct host_batch){.arena = arena};
    text_init(&batch->source, arena);
}

/* k0_run: buffers and dims as an array each, the grid as given. */
static void put_wrapper(struct host_batch *batch, const struct kernel *kernel, const char *name)
{
    struct text *out = &batch->source;
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

uint32_t host_batch_add(struct host_batch *batch, const struct kernel *kernel, const struct machine *machine)
{
    struct text why;
    text_init(&why, batch->arena);
    if (!kernel_verify(kernel, machine, &why)) {
        text_put(&why, "\n");
        kernel_print(kernel, &why);
        fail_msg("%s: %s", kernel->strategy, why.data);
    }
    const char *name = arena_printf(batch->arena, "k%u", batch->kernel_count);
    print_cuda(kernel, name, machine, true, &batch->source);
    put_wrapper(batch, kernel, name);
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

void host_batch_compile(struct host_batch *batch)
{
    struct arena *arena = batch->arena;
    struct text source;
    text_init(&source, arena);
    text_printf(&source, "#define ON_HOST\n#include \"%s/tests/harness/cuda_on_host.hh\"\n",
                GPUCC_SOURCE_FOLDER);
    static const struct machine host = {.name = "host",
                                        .kind = TARGET_CUDA}; /* cuda_on_host.hh stands for what asm does */
    print_cuda_prelude(batch->source.data, &host, &source);
    put_host_source(&source, batch->source.data);
    assert_true(temporary_folder(arena, &batch->folder));
    const char *path = arena_printf(arena, "%s/kernels.cc", batch->folder);
    const char *library = arena_printf(arena, "%s/kernels.so", batch->folder);
    assert_true(file_write_all(arena, path, source.data, source.length));
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
                           library,
                           path};
    enum { WORDS = sizeof words / sizeof words[0] };
    char *argv[WORDS + 1] = {NULL};
    for (unsigned i = 0; i < WORDS; i++)
        argv[i] = arena_string(arena, words[i]);
    int status = 0;
    char *log = NULL;
    assert_true(run_program(arena, argv, &status, &log));
    if (status != 0)
        fail_msg("g++ refused %s:\n%.2000s", path, log);
    batch->library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!batch->library)
        fail_msg("%s", dlerror());
    if (!getenv("GPUCC_KEEP"))
        remove_folder(batch->folder);
}

host_kernel *host_batch_kernel(const struct host_batch *batch, uint32_t number)
{
    void *symbol = dlsym(batch->library, arena_printf(batch->arena, "k%u_run", number));
    host_kernel *function;
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

void host_batch_end(struct host_batch *batch)
{
    if (batch->library)
        dlclose(batch->library);
}

bool host_nvrtc(struct arena *arena, const char *kernels, const struct machine *machine, char **log)
{
    struct nvrtc *nvrtc = nvrtc_open(arena, NULL);
    if (!nvrtc)
        return false;
    struct text source;
    text_init(&source, arena);
    print_cuda_prelude(kernels, machine, &source);
    text_put(&source, kernels);
    const char *options[] = {arena_printf(arena, "--gpu-architecture=%s", machine->name), "--fmad=false",
                             "--ptxas-options=-v"};
    struct nvrtc_result result;
    bool good = nvrtc_compile(nvrtc, source.data, options, log ? 3 : 2, false, &result);
    if (!good)
        fail_msg("NVRTC for %s: %.3000s", machine->name, result.log ? result.log : "out of memory");
    if (log)
        *log = arena_string(arena, result.log ? result.log : "");
    nvrtc_result_release(&result);
    nvrtc_close(nvrtc);
    return true;
}

bool host_batch_nvrtc(const struct host_batch *batch, const struct machine *machine, char **log)
{
    return host_nvrtc(batch->arena, batch->source.data, machine, log);
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

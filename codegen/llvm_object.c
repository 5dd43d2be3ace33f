/* From Kernel IR to relocatable objects. Kernels are split into modules of a fixed number of kernels, each
 * with an LLVM context of its own, optimised and compiled on any thread: which kernels share a module never
 * depends on the number of threads, so neither do the bytes. What was compiled before comes from the kernel
 * cache. LLVM's messages become diagnostics; nothing is
 * printed. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include "codegen/kernel_cache.h"
#include "codegen/print_llvm.h"
#include "codegen/printers.h"
#include "ir/support/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS_A_MODULE = 8, MESSAGE_BYTES = 400 };

static const char pipeline[] = "default<O3>";

static const char *const triples[HOST_COUNT] = {
    [HOST_X86_64] = "x86_64-unknown-linux-gnu", [HOST_AARCH64] = "aarch64-unknown-linux-gnu"};

struct unit {
    const struct object_kernel *kernels;
    uint32_t count;
    const struct kernel_cache *cache;
    LLVMMemoryBufferRef object; /* NULL: failed, see message, or cached */
    unsigned char *cached;      /* from malloc */
    size_t cached_length;
    bool done, out_of_memory, tool_failed;
    char message[MESSAGE_BYTES];
};

const char *llvm_version(void)
{
    return LLVM_VERSION_STRING;
}

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;

static void register_targets(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

static void set_message(struct unit *unit, const char *what, const char *detail)
{
    if (!unit->message[0])
        snprintf(unit->message, sizeof unit->message, "%s%s%s", what, detail[0] ? ": " : "", detail);
}

/* Only errors count: a loop that LLVM could not vectorise is a warning. */
static void note_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    struct unit *unit = user;
    unit->tool_failed = true;
    set_message(unit, "LLVM", text);
    LLVMDisposeMessage(text);
}

static LLVMTargetMachineRef new_target_machine(struct unit *unit)
{
    LLVMTargetRef target;
    char *text = NULL;
    const struct machine *machine = unit->kernels[0].machine;
    const char *triple = triples[machine->host];
    if (LLVMGetTargetFromTriple(triple, &target, &text)) {
        set_message(unit, "LLVM", text);
        LLVMDisposeMessage(text);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, triple, machine->instruction_set, "", LLVMCodeGenLevelAggressive,
                                   LLVMRelocPIC, LLVMCodeModelDefault);
}

static bool optimise(struct unit *unit, LLVMModuleRef module, LLVMTargetMachineRef machine)
{
    char *text = NULL;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &text)) {
        set_message(unit, "LLVM refuses a kernel", text);
        LLVMDisposeMessage(text);
        return false;
    }
    LLVMDisposeMessage(text);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    /* Kernel IR says what is unrolled, and its vectors are explicit or loops that it marks: LLVM's own ideas
     * of the two cost two thirds of the time to compile and win nothing. */
    LLVMPassBuilderOptionsSetLoopUnrolling(options, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
    LLVMErrorRef error = LLVMRunPasses(module, pipeline, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    text = LLVMGetErrorMessage(error);
    set_message(unit, "LLVM's passes", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static void emit(struct unit *unit, LLVMModuleRef module, LLVMTargetMachineRef machine)
{
    char *text = NULL;
    LLVMMemoryBufferRef object = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &text, &object)) {
        set_message(unit, "LLVM's code generator", text ? text : "");
        LLVMDisposeMessage(text);
        return;
    }
    if (unit->message[0]) {
        LLVMDisposeMemoryBuffer(object);
        return;
    }
    unit->object = object;
    unit->done = true;
}

/* By the module as it is before any pass: LLVM's own bytes of it. False: there is no cache. */
static bool find_key(const struct unit *unit, LLVMModuleRef module, unsigned char key[32])
{
    static const char *const options[] = {pipeline};
    if (unit->cache->folder < 0)
        return false;
    LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(module);
    if (!code)
        return false;
    kernel_cache_key(LLVMGetBufferStart(code), LLVMGetBufferSize(code),
                     unit->kernels[0].machine->instruction_set, "LLVM " LLVM_VERSION_STRING, options, 1, key);
    LLVMDisposeMemoryBuffer(code);
    return true;
}

static void compile_module(struct unit *unit, LLVMContextRef context, LLVMModuleRef module,
                           struct arena *arena)
{
    for (uint32_t i = 0; i < unit->count; i++) {
        const struct object_kernel *kernel = &unit->kernels[i];
        const char *problem = NULL;
        if (!llvm_print_kernel(context, module, kernel->kernel, kernel->machine, kernel->symbol, arena,
                               &problem)) {
            set_message(unit, kernel->symbol, problem);
            return;
        }
    }
    LLVMTargetMachineRef machine = new_target_machine(unit);
    if (!machine) {
        set_message(unit, "LLVM", "no code generator for the host");
        return;
    }
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    unsigned char key[32];
    const bool has_key = find_key(unit, module, key);
    if (has_key && kernel_cache_read(unit->cache, key, &unit->cached, &unit->cached_length)) {
        unit->done = true;
    } else {
        unit->tool_failed = true;
        if (optimise(unit, module, machine))
            emit(unit, module, machine);
        if (has_key && unit->object)
            kernel_cache_write(unit->cache, key, (const unsigned char *)LLVMGetBufferStart(unit->object),
                               LLVMGetBufferSize(unit->object));
    }
    LLVMDisposeTargetMachine(machine);
}

/* A job has an arena of its own: jobs must not jump out, and printing allocates. */
static void compile_unit(void *user, uint32_t index)
{
    struct unit *unit = &((struct unit *)user)[index];
    struct recovery recovery;
    struct arena arena;
    arena_init(&arena, &system_allocator, &recovery);
    LLVMContextRef context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(context, note_diagnostic, unit);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("kernels", context);
    LLVMSetTarget(module, triples[unit->kernels[0].machine->host]);
    if (setjmp(recovery.jump) == 0)
        compile_module(unit, context, module, &arena);
    else
        unit->out_of_memory = true;
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    arena_release(&arena);
}

static bool report(const struct unit *units, uint32_t count, struct diagnostics *diagnostics)
{
    bool fine = true;
    for (uint32_t i = 0; i < count; i++) {
        if (units[i].done)
            continue;
        fine = false;
        if (units[i].out_of_memory)
            diag_error(diagnostics, DIAG_out_of_memory, NULL,
                       "out of memory while compiling kernels for the CPU");
        else
            diag_error(diagnostics, units[i].tool_failed ? DIAG_tool_failed : DIAG_internal, NULL, "%s",
                       units[i].message);
    }
    return fine;
}

/* Copies what LLVM or the cache gave into the arena, and frees it in any case before the arena may jump. */
static bool take_objects(struct unit *units, uint32_t count, struct arena *arena, struct object_file *objects)
{
    bool fine = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!units[i].done)
            continue;
        const bool cached = units[i].cached != NULL;
        const size_t length = cached ? units[i].cached_length : LLVMGetBufferSize(units[i].object);
        unsigned char *bytes = arena_try_alloc(arena, length);
        if (bytes)
            memcpy(bytes, cached ? (const char *)units[i].cached : LLVMGetBufferStart(units[i].object),
                   length);
        fine = fine && bytes;
        free(units[i].cached);
        if (units[i].object)
            LLVMDisposeMemoryBuffer(units[i].object);
        objects[i] = (struct object_file){.bytes = bytes, .length = length};
    }
    return fine;
}

/* Kernels of one machine stand together: a module has one target. */
static uint32_t split(const struct object_kernel *kernels, uint32_t count, struct unit *units)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t length = 1;
        while (i + length < count && length < KERNELS_A_MODULE &&
               kernels[i + length].machine == kernels[i].machine)
            length++;
        units[made++] = (struct unit){.kernels = &kernels[i], .count = length};
        i += length;
    }
    return made;
}

bool llvm_objects(const struct object_kernel *kernels, uint32_t count, uint32_t threads,
                  const char *cache_folder, struct arena *arena, struct diagnostics *diagnostics,
                  struct object_file **objects, uint32_t *object_count)
{
    pthread_once(&targets_once, register_targets);
    struct unit *units = arena_new_array(arena, struct unit, count);
    const uint32_t unit_count = split(kernels, count, units);
    *objects = arena_new_array(arena, struct object_file, unit_count);
    *object_count = unit_count;
    struct kernel_cache cache = kernel_cache_open(cache_folder, arena);
    for (uint32_t i = 0; i < unit_count; i++)
        units[i].cache = &cache;
    run_jobs(unit_count, threads, compile_unit, units);
    kernel_cache_close(&cache);
    const bool taken = take_objects(units, unit_count, arena, *objects);
    const bool complete = report(units, unit_count, diagnostics);
    if (!taken)
        diag_error(diagnostics, DIAG_out_of_memory, NULL, "out of memory while keeping compiled kernels");
    return complete && taken;
}

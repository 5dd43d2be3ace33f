/* The LLVM printer of Kernel IR: one kernel becomes two functions of a module. The outer one has the bundle's
 * signature and unpacks buffers, dims and scratch; the inner one takes each buffer as a parameter of its own
 * that does not alias the others, so that loops vectorise without checks at run time. Loops that Kernel IR
 * unrolls are unrolled here, so that REGISTER memory is indexed by constants and becomes registers; loops
 * that it vectorises are marked for LLVM. */
#include "codegen/print_llvm.h"

#include <llvm-c/DebugInfo.h>

#include <stdio.h>
#include <string.h>

enum { SCRATCH_ALIGNMENT = 64 };

/* ---- attributes and metadata
 * ------------------------------------------------------------------------------------- */

void llvm_add_flag(LLVMContextRef context, LLVMValueRef function, LLVMAttributeIndex place, const char *name,
                   uint64_t value)
{
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, place, LLVMCreateEnumAttribute(context, kind, value));
}

static void add_text(LLVMContextRef context, LLVMValueRef function, const char *name, const char *value)
{
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

/* "no-builtins": no loop becomes a call of memcpy or memset. */
void llvm_function_attributes(LLVMContextRef context, LLVMValueRef function, const struct machine *machine)
{
    const LLVMAttributeIndex place = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    char width[16];
    snprintf(width, sizeof width, "%u", (unsigned)machine->vector_bytes * 8);
    llvm_add_flag(context, function, place, "nounwind", 0);
    add_text(context, function, "target-cpu", machine->instruction_set);
    if (machine->host == HOST_X86_64)
        add_text(context, function, "prefer-vector-width", width);
    if (machine->vector_bytes >= 64)
        add_text(context, function, "min-legal-vector-width", width);
    add_text(context, function, "no-builtins", "");
}

/* A loop's identity is a metadata node that names itself first, then its properties. */
static LLVMMetadataRef vectorised_loop(struct llvm_printer *p)
{
    static const char property[] = "llvm.loop.vectorize.enable";
    LLVMTypeRef i1 = LLVMInt1TypeInContext(p->context);
    LLVMMetadataRef pair[] = {LLVMMDStringInContext2(p->context, property, strlen(property)),
                              LLVMValueAsMetadata(LLVMConstInt(i1, 1, 0))};
    LLVMMetadataRef placeholder = LLVMTemporaryMDNode(p->context, NULL, 0);
    LLVMMetadataRef entries[] = {placeholder, LLVMMDNodeInContext2(p->context, pair, 2)};
    LLVMMetadataRef loop = LLVMMDNodeInContext2(p->context, entries, 2);
    LLVMMetadataReplaceAllUsesWith(placeholder, loop);
    return loop;
}

static void set_metadata(struct llvm_printer *p, LLVMValueRef instruction, const char *kind,
                         LLVMMetadataRef node)
{
    LLVMSetMetadata(instruction, LLVMGetMDKindIDInContext(p->context, kind, (unsigned)strlen(kind)),
                    LLVMMetadataAsValue(p->context, node));
}

void llvm_mark_access(struct llvm_printer *p, LLVMValueRef instruction)
{
    if (p->loop)
        set_metadata(p, instruction, "llvm.mem.parallel_loop_access",
                     LLVMMDNodeInContext2(p->context, &p->loop, 1));
}

/* ---- statements
 * -------------------------------------------------------------------------------------------------- */

static LLVMBasicBlockRef new_block(struct llvm_printer *p)
{
    return LLVMAppendBasicBlockInContext(p->context, p->function, "");
}

/* Values of an earlier statement are not used again: memory and variables may have changed, and blocks
 * differ. */
static LLVMValueRef statement_expr(struct llvm_printer *p, expr e)
{
    p->stamp++;
    return llvm_expr(p, e);
}

static LLVMValueRef entry_alloca(struct llvm_printer *p, LLVMTypeRef type)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->builder);
    LLVMPositionBuilderBefore(p->builder, LLVMGetBasicBlockTerminator(p->entry));
    LLVMValueRef memory = LLVMBuildAlloca(p->builder, type, "");
    LLVMPositionBuilderAtEnd(p->builder, here);
    return memory;
}

static void print_declare(struct llvm_printer *p, const struct statement *s)
{
    const struct kernel_variable *variable = &p->kernel->variables.items[s->variable];
    LLVMValueRef value = statement_expr(p, s->value);
    if (!variable->mutable) {
        p->variables[s->variable] = value;
        p->variable_is_index[s->variable] = variable->dtype == DTYPE_I64 && p->values[s->value].index;
        return;
    }
    p->variables[s->variable] = entry_alloca(p, llvm_type(p->context, variable->dtype, variable->lanes));
    LLVMBuildStore(p->builder, value, p->variables[s->variable]);
}

static void print_assign(struct llvm_printer *p, const struct statement *s)
{
    LLVMValueRef value = statement_expr(p, s->value);
    LLVMBuildStore(p->builder, value, p->variables[s->variable]);
}

static void print_store(struct llvm_printer *p, const struct statement *s)
{
    const struct expr_node *node = expr_at(p->kernel->pool, s->value);
    LLVMValueRef value = statement_expr(p, s->value);
    LLVMValueRef index = llvm_expr(p, s->index);
    LLVMValueRef stored = llvm_to_memory(p, node->dtype, node->lanes, value);
    LLVMValueRef store = LLVMBuildStore(p->builder, stored, llvm_address(p, s->memory, index, node->lanes));
    LLVMSetAlignment(store, llvm_alignment(p, s->memory));
    llvm_mark_access(p, store);
}

static void print_list(struct llvm_printer *p, const struct statement_list *list);

static void print_if(struct llvm_printer *p, const struct statement *s)
{
    LLVMValueRef condition = statement_expr(p, s->value);
    LLVMBasicBlockRef then = new_block(p), otherwise = s->otherwise.first ? new_block(p) : NULL;
    LLVMBasicBlockRef after = new_block(p);
    LLVMBuildCondBr(p->builder, condition, then, otherwise ? otherwise : after);
    LLVMPositionBuilderAtEnd(p->builder, then);
    print_list(p, &s->body);
    LLVMBuildBr(p->builder, after);
    if (otherwise) {
        LLVMPositionBuilderAtEnd(p->builder, otherwise);
        print_list(p, &s->otherwise);
        LLVMBuildBr(p->builder, after);
    }
    LLVMPositionBuilderAtEnd(p->builder, after);
}

static void print_unrolled(struct llvm_printer *p, const struct statement *s)
{
    int64_t begin = 0, end = 0, step = 1;
    if (!expr_constant_int(p->kernel->pool, s->begin, &begin) ||
        !expr_constant_int(p->kernel->pool, s->end, &end) ||
        !expr_constant_int(p->kernel->pool, s->step, &step) || step < 1) {
        p->problem = "an unrolled loop without constant bounds";
        return;
    }
    for (int64_t i = begin; i < end; i += step) {
        p->variables[s->variable] =
            LLVMConstInt(LLVMInt64TypeInContext(p->context), (unsigned long long)i, 1);
        print_list(p, &s->body);
    }
}

static void print_for(struct llvm_printer *p, const struct statement *s)
{
    p->variable_is_index[s->variable] = true;
    if (s->loop == LOOP_UNROLL) {
        print_unrolled(p, s);
        return;
    }
    const bool parallel = s->loop == LOOP_PARALLEL;
    LLVMTypeRef i64 = LLVMInt64TypeInContext(p->context);
    LLVMValueRef begin = parallel ? p->begin : statement_expr(p, s->begin);
    LLVMValueRef end = parallel ? p->end : statement_expr(p, s->end);
    LLVMValueRef step = statement_expr(p, s->step);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(p->builder);
    LLVMBasicBlockRef header = new_block(p), body = new_block(p), after = new_block(p);
    LLVMBuildBr(p->builder, header);
    LLVMPositionBuilderAtEnd(p->builder, header);
    LLVMValueRef counter = LLVMBuildPhi(p->builder, i64, "");
    LLVMAddIncoming(counter, &begin, &before, 1);
    LLVMBuildCondBr(p->builder, LLVMBuildICmp(p->builder, LLVMIntSLT, counter, end, ""), body, after);
    LLVMPositionBuilderAtEnd(p->builder, body);
    p->variables[s->variable] = counter;
    LLVMMetadataRef outer = p->loop;
    p->loop = s->loop == LOOP_VECTORISE ? vectorised_loop(p) : NULL;
    print_list(p, &s->body);
    LLVMValueRef next = LLVMBuildAdd(p->builder, counter, step, "");
    LLVMSetNSW(next, 1);
    LLVMBasicBlockRef last = LLVMGetInsertBlock(p->builder);
    LLVMAddIncoming(counter, &next, &last, 1);
    LLVMValueRef branch = LLVMBuildBr(p->builder, header);
    if (p->loop)
        set_metadata(p, branch, "llvm.loop", p->loop);
    p->loop = outer;
    LLVMPositionBuilderAtEnd(p->builder, after);
}

static void print_list(struct llvm_printer *p, const struct statement_list *list)
{
    for (const struct statement *s = list->first; s && !p->problem; s = s->next) {
        switch (s->kind) {
        case STATEMENT_DECLARE:
            print_declare(p, s);
            break;
        case STATEMENT_ASSIGN:
            print_assign(p, s);
            break;
        case STATEMENT_FOR:
            print_for(p, s);
            break;
        case STATEMENT_IF:
            print_if(p, s);
            break;
        case STATEMENT_STORE:
            print_store(p, s);
            break;
        case STATEMENT_COMMENT:
            break;
        case STATEMENT_BARRIER:
        case STATEMENT_STAGE:
        case STATEMENT_COMMIT:
        case STATEMENT_WAIT:
        case STATEMENT_SET_CONDITION:
            p->problem = "a statement that only a GPU has";
            break;
        }
    }
}

/* ---- functions
 * --------------------------------------------------------------------------------------------------- */

static bool has_parameter(const struct kernel_memory *memory)
{
    return memory->space == MEMORY_GLOBAL || memory->space == MEMORY_SCRATCH;
}

/* Parameters of the inner function: buffers and scratch objects, words, dims, begin, end. */
static LLVMTypeRef inner_type(struct llvm_printer *p, uint32_t *count)
{
    const struct kernel *kernel = p->kernel;
    LLVMTypeRef *types =
        arena_new_array(p->arena, LLVMTypeRef, kernel->memories.count + kernel->words.count + kernel->dims.count + 2);
    *count = 0;
    for (uint32_t i = 0; i < kernel->memories.count; i++)
        if (has_parameter(&kernel->memories.items[i]))
            types[(*count)++] = LLVMPointerTypeInContext(p->context, 0);
    for (uint32_t i = 0; i < kernel->words.count + kernel->dims.count + 2; i++)
        types[(*count)++] = LLVMInt64TypeInContext(p->context);
    return LLVMFunctionType(LLVMVoidTypeInContext(p->context), types, *count, 0);
}

static void memory_attributes(struct llvm_printer *p, const struct kernel_memory *memory, uint32_t parameter)
{
    const LLVMAttributeIndex place = parameter + 1;
    const uint32_t alignment = memory->space == MEMORY_SCRATCH ? SCRATCH_ALIGNMENT : memory->alignment;
    if (!memory->in_place)
        llvm_add_flag(p->context, p->function, place, "noalias", 0);
    llvm_add_flag(p->context, p->function, place, "nonnull", 0);
    if (alignment && (alignment & (alignment - 1)) == 0)
        llvm_add_flag(p->context, p->function, place, "align", alignment);
    if (memory->space == MEMORY_GLOBAL && !memory->written)
        llvm_add_flag(p->context, p->function, place, "readonly", 0);
}

static void bind_parameters(struct llvm_printer *p)
{
    const struct kernel *kernel = p->kernel;
    uint32_t parameter = 0;
    for (uint32_t i = 0; i < kernel->memories.count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        if (has_parameter(memory)) {
            memory_attributes(p, memory, parameter);
            p->memories[i] = LLVMGetParam(p->function, parameter++);
        } else {
            LLVMTypeRef element = llvm_stored_type(p->context, memory->dtype, memory->lanes);
            p->memories[i] =
                LLVMBuildAlloca(p->builder, LLVMArrayType2(element, (uint64_t)memory->count), "");
        }
    }
    for (uint32_t i = 0; i < kernel->words.count; i++)
        p->words[i] = LLVMGetParam(p->function, parameter++);
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        p->dims[i] = LLVMGetParam(p->function, parameter++);
    p->begin = LLVMGetParam(p->function, parameter++);
    p->end = LLVMGetParam(p->function, parameter);
}

static LLVMValueRef pointer_at(struct llvm_printer *p, LLVMTypeRef element, LLVMValueRef base, uint64_t index)
{
    LLVMValueRef place = LLVMConstInt(LLVMInt64TypeInContext(p->context), index, 0);
    return LLVMBuildInBoundsGEP2(p->builder, element, base, &place, 1, "");
}

/* The size in a buffer, as an i64. */
static LLVMValueRef load_word(struct llvm_printer *p, uint32_t number, LLVMValueRef slot)
{
    const struct kernel_word *word = &p->kernel->words.items[number];
    LLVMTypeRef pointer = LLVMPointerTypeInContext(p->context, 0), i64 = LLVMInt64TypeInContext(p->context);
    LLVMTypeRef type = LLVMIntTypeInContext(p->context, dtype_bits(word->dtype));
    LLVMValueRef base = LLVMBuildLoad2(p->builder, pointer, slot, "");
    LLVMValueRef value = LLVMBuildLoad2(p->builder, type, pointer_at(p, type, base, word->element), "");
    return LLVMBuildIntCast2(p->builder, value, i64, dtype_class(word->dtype) == DTYPE_CLASS_INT, "");
}

/* void symbol(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch) */
static void print_entry(struct llvm_printer *p, LLVMTypeRef inner, uint32_t count, const char *symbol)
{
    const struct kernel *kernel = p->kernel;
    LLVMTypeRef pointer = LLVMPointerTypeInContext(p->context, 0), i64 = LLVMInt64TypeInContext(p->context);
    LLVMTypeRef types[] = {pointer, pointer, i64, i64, pointer};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(p->context), types, 5, 0);
    LLVMValueRef function = LLVMAddFunction(p->module, symbol, type);
    llvm_function_attributes(p->context, function, p->machine);
    LLVMSetVisibility(function, LLVMHiddenVisibility);
    LLVMPositionBuilderAtEnd(p->builder, LLVMAppendBasicBlockInContext(p->context, function, ""));
    LLVMValueRef *arguments = arena_new_array(p->arena, LLVMValueRef, count);
    uint32_t at = 0;
    uint64_t offset = 0, bytes = 0;
    for (uint32_t i = 0; i < kernel->memories.count; i++) {
        const struct kernel_memory *memory = &kernel->memories.items[i];
        if (memory->space == MEMORY_GLOBAL) {
            LLVMValueRef slot = pointer_at(p, pointer, LLVMGetParam(function, 0), i);
            arguments[at++] = LLVMBuildLoad2(p->builder, pointer, slot, "");
        } else if (memory->space == MEMORY_SCRATCH) {
            LLVMTypeRef byte = LLVMInt8TypeInContext(p->context);
            arguments[at++] = pointer_at(p, byte, LLVMGetParam(function, 4), offset);
            if (dtype_bytes(memory->dtype, memory->count, &bytes))
                offset += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        }
    }
    for (uint32_t i = 0; i < kernel->words.count; i++)
        arguments[at++] = load_word(p, i, pointer_at(p, pointer, LLVMGetParam(function, 0), kernel->global_count + i));
    for (uint32_t i = 0; i < kernel->dims.count; i++)
        arguments[at++] =
            LLVMBuildLoad2(p->builder, i64, pointer_at(p, i64, LLVMGetParam(function, 1), i), "");
    arguments[at++] = LLVMGetParam(function, 2);
    arguments[at++] = LLVMGetParam(function, 3);
    LLVMBuildCall2(p->builder, inner, p->function, arguments, count, "");
    LLVMBuildRetVoid(p->builder);
}

bool llvm_print_kernel(LLVMContextRef context, LLVMModuleRef module, const struct kernel *kernel,
                       const struct machine *machine, const char *symbol, struct arena *arena,
                       const char **problem)
{
    struct llvm_printer printer = {
        .context = context,
        .module = module,
        .builder = LLVMCreateBuilderInContext(context),
        .kernel = kernel,
        .machine = machine,
        .arena = arena,
        .memories = arena_new_array(arena, LLVMValueRef, kernel->memories.count),
        .words = arena_new_array(arena, LLVMValueRef, kernel->words.count),
        .dims = arena_new_array(arena, LLVMValueRef, kernel->dims.count + kernel->computed.count),
        .variables = arena_new_array(arena, LLVMValueRef, kernel->variables.count),
        .variable_is_index = arena_new_array(arena, bool, kernel->variables.count),
        .values = arena_new_array(arena, struct llvm_value, kernel->pool->nodes.count),
    };
    struct llvm_printer *p = &printer;
    uint32_t count;
    LLVMTypeRef type = inner_type(p, &count);
    p->function = LLVMAddFunction(module, arena_printf(arena, "%s_body", symbol), type);
    LLVMSetLinkage(p->function, LLVMInternalLinkage);
    llvm_function_attributes(context, p->function, machine);
    llvm_add_flag(context, p->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline", 0);
    p->entry = new_block(p);
    LLVMBasicBlockRef start = new_block(p);
    LLVMPositionBuilderAtEnd(p->builder, p->entry);
    bind_parameters(p);
    LLVMBuildBr(p->builder, start);
    LLVMPositionBuilderAtEnd(p->builder, start);
    for (uint32_t i = 0; i < kernel->computed.count; i++)
        p->dims[kernel->dims.count + i] = statement_expr(p, kernel->computed.items[i].value);
    print_list(p, &kernel->body);
    LLVMBuildRetVoid(p->builder);
    print_entry(p, type, count, symbol);
    LLVMDisposeBuilder(p->builder);
    *problem = p->problem;
    return !p->problem;
}

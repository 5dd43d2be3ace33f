/* Expressions of Kernel IR as LLVM instructions. One rule a node; what an operation means stands in
 * ir/expr.def and is spelled out where LLVM's own instruction is undefined (division, shifts, conversions to
 * integer). No operation becomes a call of a library. */
#include "codegen/print_llvm.h"

#include <string.h>

static LLVMTypeRef vector_of(LLVMTypeRef element, uint16_t lanes)
{
    return lanes > 1 ? LLVMVectorType(element, lanes) : element;
}

static LLVMTypeRef scalar_type(LLVMContextRef context, enum dtype dtype, bool stored)
{
    switch (dtype) {
    case DTYPE_F32:
        return LLVMFloatTypeInContext(context);
    case DTYPE_F64:
        return LLVMDoubleTypeInContext(context);
    case DTYPE_BOOL:
        return LLVMIntTypeInContext(context, stored ? 8 : 1);
    default:
        return LLVMIntTypeInContext(context, dtype_bits(dtype)); /* narrow floats are their bits */
    }
}

LLVMTypeRef llvm_type(LLVMContextRef context, enum dtype dtype, uint16_t lanes)
{
    return vector_of(scalar_type(context, dtype, false), lanes);
}

LLVMTypeRef llvm_stored_type(LLVMContextRef context, enum dtype dtype, uint16_t lanes)
{
    return vector_of(scalar_type(context, dtype, true), lanes);
}

static bool is_machine_float(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

static bool is_signed(enum dtype dtype)
{
    return dtype_class(dtype) == DTYPE_CLASS_INT;
}

static LLVMValueRef fail(struct llvm_printer *p, LLVMTypeRef type, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
    return LLVMGetUndef(type);
}

static LLVMValueRef intrinsic(struct llvm_printer *p, const char *name, uint32_t overloads,
                              LLVMTypeRef *types, uint32_t count, LLVMValueRef *arguments)
{
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(p->module, id, types, overloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(p->context, id, types, overloads);
    return LLVMBuildCall2(p->builder, type, function, arguments, count, "");
}

/* An intrinsic overloaded on its result alone. */
static LLVMValueRef simple_intrinsic(struct llvm_printer *p, const char *name, uint32_t count,
                                     LLVMValueRef *arguments)
{
    LLVMTypeRef type = LLVMTypeOf(arguments[0]);
    return intrinsic(p, name, 1, &type, count, arguments);
}

static LLVMValueRef splat(struct llvm_printer *p, LLVMValueRef scalar, uint16_t lanes)
{
    if (lanes == 1)
        return scalar;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->context);
    LLVMValueRef undefined = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(scalar), lanes));
    LLVMValueRef first = LLVMBuildInsertElement(p->builder, undefined, scalar, LLVMConstInt(i32, 0, 0), "");
    return LLVMBuildShuffleVector(p->builder, first, undefined, LLVMConstNull(LLVMVectorType(i32, lanes)),
                                  "");
}

static LLVMValueRef integer(struct llvm_printer *p, const struct expr_node *node, int64_t value)
{
    LLVMTypeRef element = llvm_type(p->context, node->dtype, 1);
    return splat(p, LLVMConstInt(element, (unsigned long long)value, 1), node->lanes);
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------------ */

unsigned llvm_alignment(const struct llvm_printer *p, uint32_t memory)
{
    const struct kernel_memory *m = &p->kernel->memories.items[memory];
    const unsigned bytes = m->dtype == DTYPE_BOOL ? 1 : dtype_bits(m->dtype) / 8;
    return m->space == MEMORY_REGISTER ? bytes * m->lanes : bytes;
}

LLVMValueRef llvm_address(struct llvm_printer *p, uint32_t memory, LLVMValueRef index, uint16_t lanes)
{
    const struct kernel_memory *m = &p->kernel->memories.items[memory];
    LLVMTypeRef type =
        llvm_stored_type(p->context, m->dtype, m->space == MEMORY_REGISTER ? lanes : (uint16_t)1);
    return LLVMBuildInBoundsGEP2(p->builder, type, p->memories[memory], &index, 1, "");
}

static LLVMValueRef from_memory(struct llvm_printer *p, enum dtype dtype, LLVMValueRef value)
{
    if (dtype != DTYPE_BOOL)
        return value;
    return LLVMBuildICmp(p->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

LLVMValueRef llvm_to_memory(struct llvm_printer *p, enum dtype dtype, uint16_t lanes, LLVMValueRef value)
{
    if (dtype != DTYPE_BOOL)
        return value;
    return LLVMBuildZExt(p->builder, value, llvm_stored_type(p->context, dtype, lanes), "");
}

static LLVMValueRef load(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef index)
{
    const uint32_t memory = (uint32_t)node->value;
    LLVMTypeRef type = llvm_stored_type(p->context, node->dtype, node->lanes);
    LLVMValueRef loaded = LLVMBuildLoad2(p->builder, type, llvm_address(p, memory, index, node->lanes), "");
    LLVMSetAlignment(loaded, llvm_alignment(p, memory));
    llvm_mark_access(p, loaded);
    return from_memory(p, node->dtype, loaded);
}

/* One condition for all lanes: the load stands in a block of its own. */
static LLVMValueRef branching_load(struct llvm_printer *p, const struct expr_node *node,
                                   LLVMValueRef condition, LLVMValueRef index, LLVMValueRef otherwise)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(p->builder);
    LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(p->context, p->function, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(p->context, p->function, "");
    LLVMBuildCondBr(p->builder, condition, inside, after);
    LLVMPositionBuilderAtEnd(p->builder, inside);
    LLVMValueRef loaded = load(p, node, index);
    LLVMBuildBr(p->builder, after);
    LLVMPositionBuilderAtEnd(p->builder, after);
    LLVMValueRef phi = LLVMBuildPhi(p->builder, LLVMTypeOf(otherwise), "");
    LLVMAddIncoming(phi, &loaded, &inside, 1);
    LLVMAddIncoming(phi, &otherwise, &from, 1);
    return phi;
}

static LLVMValueRef masked_load(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef mask,
                                LLVMValueRef index, LLVMValueRef otherwise)
{
    const uint32_t memory = (uint32_t)node->value;
    LLVMTypeRef types[] = {llvm_stored_type(p->context, node->dtype, node->lanes),
                           LLVMPointerTypeInContext(p->context, 0)};
    LLVMValueRef alignment = LLVMConstInt(LLVMInt32TypeInContext(p->context), llvm_alignment(p, memory), 0);
    LLVMValueRef arguments[] = {llvm_address(p, memory, index, node->lanes), alignment, mask,
                                llvm_to_memory(p, node->dtype, node->lanes, otherwise)};
    LLVMValueRef loaded = intrinsic(p, "llvm.masked.load", 2, types, 4, arguments);
    llvm_mark_access(p, loaded);
    return from_memory(p, node->dtype, loaded);
}

/* ---- arithmetic
 * -------------------------------------------------------------------------------------------------- */

static bool constant_within(LLVMValueRef value, uint64_t limit)
{
    return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) < limit;
}

/* x / 0 = 0 and MIN / -1 = MIN; x rem 0 = 0 and MIN rem -1 = 0. */
static LLVMValueRef divide_integers(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef a,
                                    LLVMValueRef b)
{
    const bool division = node->op == EXPR_DIV, sign = is_signed(node->dtype);
    LLVMValueRef zero = integer(p, node, 0), one = integer(p, node, 1), divisor = b;
    LLVMValueRef by_zero = LLVMBuildICmp(p->builder, LLVMIntEQ, b, zero, "");
    divisor = LLVMBuildSelect(p->builder, by_zero, one, divisor, "");
    if (sign) {
        const unsigned bits = dtype_bits(node->dtype);
        LLVMValueRef least = integer(p, node, INT64_MIN >> (64 - bits));
        LLVMValueRef overflow =
            LLVMBuildAnd(p->builder, LLVMBuildICmp(p->builder, LLVMIntEQ, a, least, ""),
                         LLVMBuildICmp(p->builder, LLVMIntEQ, b, integer(p, node, -1), ""), "");
        divisor = LLVMBuildSelect(p->builder, overflow, one, divisor, "");
    }
    LLVMValueRef result;
    if (division)
        result = sign ? LLVMBuildSDiv(p->builder, a, divisor, "") : LLVMBuildUDiv(p->builder, a, divisor, "");
    else
        result = sign ? LLVMBuildSRem(p->builder, a, divisor, "") : LLVMBuildURem(p->builder, a, divisor, "");
    return division ? LLVMBuildSelect(p->builder, by_zero, zero, result, "") : result;
}

/* Dividend >= 0, divisor > 0 wherever the result is used; elsewhere any result will do, but no trap. */
static LLVMValueRef divide_index(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef a,
                                 LLVMValueRef b)
{
    if (!LLVMIsAConstantInt(b)) {
        LLVMValueRef arguments[] = {b, integer(p, node, 1)};
        b = simple_intrinsic(p, "llvm.umax", 2, arguments);
    }
    return node->op == EXPR_INDEX_DIV ? LLVMBuildUDiv(p->builder, a, b, "")
                                      : LLVMBuildURem(p->builder, a, b, "");
}

static LLVMValueRef shift(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef a,
                          LLVMValueRef b)
{
    const unsigned bits = dtype_bits(node->dtype);
    if (node->op == EXPR_SHIFT_RIGHT && is_signed(node->dtype)) {
        LLVMValueRef arguments[] = {b, integer(p, node, (int64_t)bits - 1)};
        return LLVMBuildAShr(p->builder, a, simple_intrinsic(p, "llvm.umin", 2, arguments), "");
    }
    LLVMValueRef shifted = node->op == EXPR_SHIFT_LEFT ? LLVMBuildShl(p->builder, a, b, "")
                                                       : LLVMBuildLShr(p->builder, a, b, "");
    if (constant_within(b, bits))
        return shifted;
    LLVMValueRef inside = LLVMBuildICmp(p->builder, LLVMIntULT, b, integer(p, node, (int64_t)bits), "");
    return LLVMBuildSelect(p->builder, inside, shifted, integer(p, node, 0), "");
}

static LLVMValueRef float_operation(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef *a)
{
    switch (node->op) {
    case EXPR_ADD:
        return LLVMBuildFAdd(p->builder, a[0], a[1], "");
    case EXPR_SUB:
        return LLVMBuildFSub(p->builder, a[0], a[1], "");
    case EXPR_MUL:
        return LLVMBuildFMul(p->builder, a[0], a[1], "");
    case EXPR_DIV:
        return LLVMBuildFDiv(p->builder, a[0], a[1], "");
    case EXPR_NEG:
        return LLVMBuildFNeg(p->builder, a[0], "");
    case EXPR_ABS:
        return simple_intrinsic(p, "llvm.fabs", 1, a);
    case EXPR_MIN:
        return simple_intrinsic(p, "llvm.minimum", 2, a);
    case EXPR_MAX:
        return simple_intrinsic(p, "llvm.maximum", 2, a);
    case EXPR_FMA:
        return p->machine->software_fma ? llvm_software_fma(p, node->dtype, node->lanes, a)
                                        : simple_intrinsic(p, "llvm.fma", 3, a);
    case EXPR_SQRT:
        return simple_intrinsic(p, "llvm.sqrt", 1, a);
    case EXPR_FLOOR:
        return simple_intrinsic(p, "llvm.floor", 1, a);
    case EXPR_CEIL:
        return simple_intrinsic(p, "llvm.ceil", 1, a);
    case EXPR_TRUNC:
        return simple_intrinsic(p, "llvm.trunc", 1, a);
    case EXPR_ROUND_EVEN:
        return simple_intrinsic(p, "llvm.roundeven", 1, a);
    default:
        return fail(p, LLVMTypeOf(a[0]), "a float operation without an instruction");
    }
}

static LLVMValueRef wrap_free(LLVMValueRef value, bool index)
{
    if (index && LLVMIsAInstruction(value))
        LLVMSetNSW(value, 1);
    return value;
}

static LLVMValueRef integer_operation(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef *a,
                                      bool index)
{
    const bool sign = is_signed(node->dtype);
    LLVMValueRef is_least_undefined[] = {a[0], LLVMConstInt(LLVMInt1TypeInContext(p->context), 0, 0)};
    switch (node->op) {
    case EXPR_ADD:
        return wrap_free(LLVMBuildAdd(p->builder, a[0], a[1], ""), index);
    case EXPR_SUB:
        return wrap_free(LLVMBuildSub(p->builder, a[0], a[1], ""), index);
    case EXPR_MUL:
        return wrap_free(LLVMBuildMul(p->builder, a[0], a[1], ""), index);
    case EXPR_DIV:
    case EXPR_REMAINDER:
        return divide_integers(p, node, a[0], a[1]);
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
        return divide_index(p, node, a[0], a[1]);
    case EXPR_NEG:
        return LLVMBuildNeg(p->builder, a[0], "");
    case EXPR_ABS:
        return sign ? simple_intrinsic(p, "llvm.abs", 2, is_least_undefined) : a[0];
    case EXPR_MIN:
        return simple_intrinsic(p, sign ? "llvm.smin" : "llvm.umin", 2, a);
    case EXPR_MAX:
        return simple_intrinsic(p, sign ? "llvm.smax" : "llvm.umax", 2, a);
    case EXPR_SHIFT_LEFT:
    case EXPR_SHIFT_RIGHT:
        return shift(p, node, a[0], a[1]);
    case EXPR_AND:
        return LLVMBuildAnd(p->builder, a[0], a[1], "");
    case EXPR_OR:
        return LLVMBuildOr(p->builder, a[0], a[1], "");
    case EXPR_XOR:
        return LLVMBuildXor(p->builder, a[0], a[1], "");
    case EXPR_NOT:
        return LLVMBuildNot(p->builder, a[0], "");
    default:
        return fail(p, LLVMTypeOf(a[0]), "an integer operation without an instruction");
    }
}

static LLVMValueRef compare(struct llvm_printer *p, const struct expr_node *node, enum dtype from,
                            LLVMValueRef *a)
{
    const bool sign = is_signed(from);
    if (is_machine_float(from)) {
        const LLVMRealPredicate predicate = node->op == EXPR_EQUAL       ? LLVMRealOEQ
                                            : node->op == EXPR_NOT_EQUAL ? LLVMRealUNE
                                            : node->op == EXPR_LESS      ? LLVMRealOLT
                                                                         : LLVMRealOLE;
        return LLVMBuildFCmp(p->builder, predicate, a[0], a[1], "");
    }
    if (dtype_is_float(from))
        return fail(p, LLVMInt1TypeInContext(p->context), "a comparison of narrow floats");
    const LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT, less_equal = sign ? LLVMIntSLE : LLVMIntULE;
    const LLVMIntPredicate predicate = node->op == EXPR_EQUAL       ? LLVMIntEQ
                                       : node->op == EXPR_NOT_EQUAL ? LLVMIntNE
                                       : node->op == EXPR_LESS      ? less
                                                                    : less_equal;
    return LLVMBuildICmp(p->builder, predicate, a[0], a[1], "");
}

/* Out of range saturates and NaN gives 0: LLVM's saturating conversions say the same. */
static LLVMValueRef float_to_integer(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef value)
{
    LLVMTypeRef types[] = {llvm_type(p->context, node->dtype, node->lanes), LLVMTypeOf(value)};
    return intrinsic(p, is_signed(node->dtype) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", 2, types, 1, &value);
}

static LLVMValueRef convert(struct llvm_printer *p, const struct expr_node *node, enum dtype from,
                            LLVMValueRef value)
{
    LLVMTypeRef type = llvm_type(p->context, node->dtype, node->lanes);
    const bool from_float = is_machine_float(from), to_float = is_machine_float(node->dtype);
    if ((dtype_is_float(from) && !from_float) || (dtype_is_float(node->dtype) && !to_float))
        return fail(p, type, "a conversion of narrow floats that was not expanded");
    if (node->dtype == DTYPE_BOOL) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value));
        return from_float ? LLVMBuildFCmp(p->builder, LLVMRealUNE, value, zero, "")
                          : LLVMBuildICmp(p->builder, LLVMIntNE, value, zero, "");
    }
    if (from_float && to_float)
        return LLVMBuildFPCast(p->builder, value, type, "");
    if (from_float)
        return float_to_integer(p, node, value);
    if (to_float)
        return is_signed(from) ? LLVMBuildSIToFP(p->builder, value, type, "")
                               : LLVMBuildUIToFP(p->builder, value, type, "");
    return LLVMBuildIntCast2(p->builder, value, type, is_signed(from), "");
}

/* ---- nodes
 * ------------------------------------------------------------------------------------------------------- */

static LLVMValueRef constant(struct llvm_printer *p, const struct expr_node *node)
{
    LLVMTypeRef type = llvm_type(p->context, node->dtype, 1);
    if (!is_machine_float(node->dtype))
        return LLVMConstInt(type, (unsigned long long)node->value, 1);
    LLVMTypeRef bits = LLVMIntTypeInContext(p->context, dtype_bits(node->dtype));
    return LLVMConstBitCast(LLVMConstInt(bits, (unsigned long long)node->value, 0), type);
}

static LLVMValueRef dim_value(struct llvm_printer *p, const struct expr_node *node)
{
    const uint32_t position = kernel_dim_position(p->kernel, (dim)node->value);
    if (position != UINT32_MAX)
        return p->dims[position];
    return fail(p, LLVMInt64TypeInContext(p->context), "a dim that is no parameter");
}

static LLVMValueRef variable_value(struct llvm_printer *p, const struct expr_node *node)
{
    LLVMValueRef value = p->variables[node->value];
    if (!p->kernel->variables.items[node->value].mutable)
        return value;
    return LLVMBuildLoad2(p->builder, llvm_type(p->context, node->dtype, node->lanes), value, "");
}

static LLVMValueRef kernel_node(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef *a)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->context);
    switch (node->op) {
    case EXPR_VARIABLE:
        return variable_value(p, node);
    case EXPR_COMPUTED:
        return p->dims[p->kernel->dims.count + node->value];
    case EXPR_WORD:
        return p->words[node->value];
    case EXPR_ELEMENT:
        return load(p, node, a[0]);
    case EXPR_ELEMENT_OR:
        return LLVMGetTypeKind(LLVMTypeOf(a[0])) == LLVMVectorTypeKind
                   ? masked_load(p, node, a[0], a[1], a[2])
                   : branching_load(p, node, a[0], a[1], a[2]);
    case EXPR_LANE:
        return LLVMBuildExtractElement(p->builder, a[0],
                                       LLVMConstInt(i32, (unsigned long long)node->value, 0), "");
    case EXPR_BROADCAST:
        return splat(p, a[0], node->lanes);
    case EXPR_PACK: {
        LLVMValueRef vector = LLVMGetPoison(llvm_type(p->context, node->dtype, node->lanes));
        for (uint32_t i = 0; i < node->count; i++)
            vector = LLVMBuildInsertElement(p->builder, vector, a[i], LLVMConstInt(i32, i, 0), "");
        return vector;
    }
    default:
        return fail(p, llvm_type(p->context, node->dtype, node->lanes), "an expression that only a GPU has");
    }
}

static LLVMValueRef print_node(struct llvm_printer *p, const struct expr_node *node, LLVMValueRef *a,
                               bool index)
{
    const enum dtype from = node->count ? expr_at(p->kernel->pool, node->arguments[0])->dtype : node->dtype;
    LLVMTypeRef type = llvm_type(p->context, node->dtype, node->lanes);
    switch (node->op) {
    case EXPR_CONSTANT:
        return constant(p, node);
    case EXPR_DIM:
        return dim_value(p, node);
    case EXPR_SELECT:
        return LLVMBuildSelect(p->builder, a[0], a[1], a[2], "");
    case EXPR_CONVERT:
        return convert(p, node, from, a[0]);
    case EXPR_BITCAST:
        return LLVMBuildBitCast(p->builder, a[0], type, "");
    default:
        break;
    }
    switch (expr_class_of(node->op)) {
    case EXPR_COMPARE:
        return compare(p, node, from, a);
    case EXPR_ARITHMETIC:
    case EXPR_LOGIC:
        if (is_machine_float(node->dtype))
            return float_operation(p, node, a);
        return dtype_is_float(node->dtype) ? fail(p, type, "arithmetic of narrow floats")
                                           : integer_operation(p, node, a, index);
    case EXPR_KERNEL:
        return kernel_node(p, node, a);
    default:
        return fail(p, type, "an expression that Kernel IR does not have");
    }
}

static bool is_index(const struct llvm_printer *p, const struct expr_node *node)
{
    if (node->dtype != DTYPE_I64 || node->lanes != 1)
        return false;
    switch (node->op) {
    case EXPR_CONSTANT:
    case EXPR_DIM:
    case EXPR_COMPUTED:
        return true;
    case EXPR_VARIABLE:
        return p->variable_is_index[node->value];
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_INDEX_DIV:
    case EXPR_INDEX_MOD:
    case EXPR_MIN:
    case EXPR_MAX:
    case EXPR_SELECT:
        for (uint32_t i = node->op == EXPR_SELECT; i < node->count; i++)
            if (!p->values[node->arguments[i]].index)
                return false;
        return true;
    default:
        return false;
    }
}

LLVMValueRef llvm_expr(struct llvm_printer *p, expr root)
{
    struct exprs *pool = p->kernel->pool;
    VEC(expr) stack = {0};
    vec_push(p->arena, &stack, root);
    while (stack.count) {
        const expr e = stack.items[stack.count - 1];
        const struct expr_node *node = expr_at(pool, e);
        bool ready = true;
        if (p->values[e].stamp != p->stamp)
            for (uint32_t i = node->count; i > 0; i--)
                if (p->values[node->arguments[i - 1]].stamp != p->stamp) {
                    vec_push(p->arena, &stack, node->arguments[i - 1]);
                    ready = false;
                }
        if (!ready)
            continue;
        stack.count--;
        if (p->values[e].stamp == p->stamp)
            continue;
        LLVMValueRef *arguments = arena_new_array(p->arena, LLVMValueRef, node->count);
        for (uint32_t i = 0; i < node->count; i++)
            arguments[i] = p->values[node->arguments[i]].value;
        p->values[e].index = is_index(p, node);
        p->values[e].value = print_node(p, node, arguments, p->values[e].index);
        p->values[e].stamp = p->stamp;
    }
    return p->values[root].value;
}

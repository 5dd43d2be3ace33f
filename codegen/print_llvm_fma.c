/* fma for processors without the instruction: exact, rounded once, the same bits as the instruction gives.
 *
 *   f32  The product is exact in f64. So is the sum, together with its error: rounded to odd (the last bit is
 * set where there is an error) it has two bits more than f32 needs for one right rounding. f64  Integers: the
 * product of the two 53-bit significands and the third one, aligned in 128 bits, what falls off kept as one
 * sticky bit; added, normalised, rounded to nearest even with the bits that are there, subnormal results
 * included.
 *
 * Each is a function of the module, made on first use: fma_<lanes> and fma_f64. */
#include "codegen/print_llvm.h"

#include <stdio.h>
#include <string.h>

struct builder {
    struct llvm_printer *p;
    LLVMBuilderRef b;
    LLVMTypeRef i64, i128;
};

static LLVMValueRef constant(LLVMTypeRef type, uint64_t value)
{
    enum { MOST_LANES = 64 };
    LLVMValueRef lanes[MOST_LANES];
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return LLVMConstInt(type, value, 1);
    const unsigned count = LLVMGetVectorSize(type);
    for (unsigned i = 0; i < count && i < MOST_LANES; i++)
        lanes[i] = LLVMConstInt(LLVMGetElementType(type), value, 1);
    return LLVMConstVector(lanes, count);
}

/* A function of three arguments of one type; the builder stands in it. */
static LLVMValueRef begin_function(struct llvm_printer *p, const char *name, LLVMTypeRef type,
                                   const char *inlining, struct builder *out)
{
    LLVMTypeRef types[] = {type, type, type};
    LLVMValueRef function = LLVMAddFunction(p->module, name, LLVMFunctionType(type, types, 3, 0));
    LLVMSetLinkage(function, LLVMInternalLinkage);
    llvm_function_attributes(p->context, function, p->machine);
    llvm_add_flag(p->context, function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, inlining, 0);
    *out = (struct builder){.p = p,
                            .b = LLVMCreateBuilderInContext(p->context),
                            .i64 = LLVMInt64TypeInContext(p->context),
                            .i128 = LLVMIntTypeInContext(p->context, 128)};
    LLVMPositionBuilderAtEnd(out->b, LLVMAppendBasicBlockInContext(p->context, function, ""));
    return function;
}

static void end_function(const struct builder *f, LLVMValueRef result)
{
    LLVMBuildRet(f->b, result);
    LLVMDisposeBuilder(f->b);
}

/* ---- f32 */

/* The sum whose last bit is even and whose error is not 0 moves towards the error, to its odd neighbour. */
static LLVMValueRef round_to_odd(const struct builder *f, LLVMValueRef sum, LLVMValueRef error,
                                 LLVMTypeRef integers)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(sum)), bits = LLVMBuildBitCast(f->b, sum, integers, "");
    LLVMValueRef last = LLVMBuildAnd(f->b, bits, constant(integers, 1), "");
    LLVMValueRef even = LLVMBuildICmp(f->b, LLVMIntEQ, last, constant(integers, 0), "");
    LLVMValueRef inexact = LLVMBuildFCmp(f->b, LLVMRealONE, error, zero, ""); /* not of NaN */
    LLVMValueRef up = LLVMBuildFCmp(f->b, LLVMRealOGT, error, zero, "");
    LLVMValueRef positive = LLVMBuildFCmp(f->b, LLVMRealOGT, sum, zero, "");
    LLVMValueRef inward = LLVMBuildXor(f->b, up, positive, "");
    LLVMValueRef step =
        LLVMBuildSelect(f->b, inward, constant(integers, UINT64_MAX), constant(integers, 1), "");
    step = LLVMBuildSelect(f->b, LLVMBuildAnd(f->b, even, inexact, ""), step, constant(integers, 0), "");
    return LLVMBuildBitCast(f->b, LLVMBuildAdd(f->b, bits, step, ""), LLVMTypeOf(sum), "");
}

/* Scalars are put in place, so that loops around them become vectors; vectors are called: they are large. */
static LLVMValueRef single_function(struct llvm_printer *p, uint16_t lanes)
{
    char name[32];
    snprintf(name, sizeof name, "fma_%u", (unsigned)lanes);
    LLVMValueRef function = LLVMGetNamedFunction(p->module, name);
    if (function)
        return function;
    struct builder f;
    LLVMTypeRef type = llvm_type(p->context, DTYPE_F32, lanes),
                wide = llvm_type(p->context, DTYPE_F64, lanes);
    function = begin_function(p, name, type, lanes == 1 ? "alwaysinline" : "noinline", &f);
    LLVMValueRef a = LLVMBuildFPExt(f.b, LLVMGetParam(function, 0), wide, "");
    LLVMValueRef b = LLVMBuildFPExt(f.b, LLVMGetParam(function, 1), wide, "");
    LLVMValueRef c = LLVMBuildFPExt(f.b, LLVMGetParam(function, 2), wide, "");
    LLVMValueRef product = LLVMBuildFMul(f.b, a, b, "");
    LLVMValueRef sum = LLVMBuildFAdd(f.b, product, c, "");
    LLVMValueRef of_c = LLVMBuildFSub(f.b, sum, product, "");
    LLVMValueRef of_product = LLVMBuildFSub(f.b, sum, of_c, "");
    LLVMValueRef error =
        LLVMBuildFAdd(f.b, LLVMBuildFSub(f.b, product, of_product, ""), LLVMBuildFSub(f.b, c, of_c, ""), "");
    LLVMValueRef odd = round_to_odd(&f, sum, error, llvm_type(p->context, DTYPE_I64, lanes));
    end_function(&f, LLVMBuildFPTrunc(f.b, odd, type, ""));
    return function;
}

/* ---- f64 */

enum { FRACTION_BITS = 52, EXPONENT_MASK = 0x7ff, BIAS = 1075 /* of the significand as an integer */ };

/* significand * 2^exponent, the significand's highest bit at FRACTION_BITS; of a finite number other than 0.
 */
struct number {
    LLVMValueRef significand, exponent;        /* i64 */
    LLVMValueRef negative, is_finite, is_zero; /* i1 */
};

static LLVMValueRef leading_zeros(const struct builder *f, LLVMValueRef value)
{
    static const char name[] = "llvm.ctlz";
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef arguments[] = {value, LLVMConstInt(LLVMInt1TypeInContext(f->p->context), 0, 0)};
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(f->p->module, id, &type, 1);
    return LLVMBuildCall2(f->b, LLVMIntrinsicGetType(f->p->context, id, &type, 1), function, arguments, 2,
                          "");
}

static LLVMValueRef larger(const struct builder *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, a, b, ""), b, a, "");
}

static LLVMValueRef smaller(const struct builder *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntSLT, a, b, ""), a, b, "");
}

static struct number take_apart(const struct builder *f, LLVMValueRef value)
{
    LLVMValueRef bits = LLVMBuildBitCast(f->b, value, f->i64, ""), zero = constant(f->i64, 0);
    LLVMValueRef hidden = constant(f->i64, UINT64_C(1) << FRACTION_BITS);
    LLVMValueRef biased = LLVMBuildLShr(f->b, bits, constant(f->i64, FRACTION_BITS), "");
    biased = LLVMBuildAnd(f->b, biased, constant(f->i64, EXPONENT_MASK), "");
    LLVMValueRef whole = LLVMBuildAnd(f->b, bits, constant(f->i64, (UINT64_C(1) << FRACTION_BITS) - 1), "");
    LLVMValueRef is_normal = LLVMBuildICmp(f->b, LLVMIntNE, biased, zero, "");
    whole = LLVMBuildSelect(f->b, is_normal, LLVMBuildOr(f->b, whole, hidden, ""), whole, "");
    LLVMValueRef shift =
        LLVMBuildSub(f->b, leading_zeros(f, whole), constant(f->i64, 63 - FRACTION_BITS), "");
    LLVMValueRef exponent =
        LLVMBuildSub(f->b, larger(f, biased, constant(f->i64, 1)), constant(f->i64, BIAS), "");
    LLVMValueRef magnitude = LLVMBuildAnd(f->b, bits, constant(f->i64, INT64_MAX), "");
    return (struct number){
        .negative = LLVMBuildICmp(f->b, LLVMIntSLT, bits, zero, ""),
        .significand = LLVMBuildShl(f->b, whole, shift, ""), /* at most 53: of 0, which is not used */
        .exponent = LLVMBuildSub(f->b, exponent, shift, ""),
        .is_finite = LLVMBuildICmp(f->b, LLVMIntNE, biased, constant(f->i64, EXPONENT_MASK), ""),
        .is_zero = LLVMBuildICmp(f->b, LLVMIntEQ, magnitude, zero, ""),
    };
}

/* value >> by, by at least 0; the last bit is also set when others fell off. */
static LLVMValueRef shift_sticky(const struct builder *f, LLVMValueRef value, LLVMValueRef by)
{
    LLVMValueRef count = LLVMBuildZExt(f->b, smaller(f, by, constant(f->i64, 127)), f->i128, "");
    LLVMValueRef kept = LLVMBuildLShr(f->b, value, count, "");
    LLVMValueRef lost = LLVMBuildICmp(f->b, LLVMIntNE, LLVMBuildShl(f->b, kept, count, ""), value, "");
    return LLVMBuildOr(f->b, kept, LLVMBuildZExt(f->b, lost, f->i128, ""), "");
}

static LLVMValueRef with_sign(const struct builder *f, LLVMValueRef value, LLVMValueRef negative)
{
    return LLVMBuildSelect(f->b, negative, LLVMBuildNeg(f->b, value, ""), value, "");
}

/* value * 2^exponent rounded to the bits of an f64 without its sign; the value is not 0. */
static LLVMValueRef round_significand(const struct builder *f, LLVMValueRef value, LLVMValueRef exponent)
{
    /* The highest bit goes to TOP: two bits to spare, and a shift of 127 leaves less than a half. */
    enum { TOP = 125, DROPPED = TOP - FRACTION_BITS, LEAST_EXPONENT = -1074 };
    LLVMValueRef zeros = leading_zeros(f, value), one = constant(f->i128, 1);
    LLVMValueRef high = shift_sticky(f, LLVMBuildShl(f->b, value, zeros, ""), constant(f->i64, 127 - TOP));
    exponent = LLVMBuildSub(f->b, exponent, LLVMBuildTrunc(f->b, zeros, f->i64, ""), "");
    exponent = LLVMBuildAdd(f->b, exponent, constant(f->i64, 127 - TOP), "");
    LLVMValueRef drop = LLVMBuildSub(f->b, constant(f->i64, (uint64_t)(int64_t)LEAST_EXPONENT), exponent, "");
    drop = smaller(f, larger(f, drop, constant(f->i64, DROPPED)), constant(f->i64, 127));
    LLVMValueRef count = LLVMBuildZExt(f->b, drop, f->i128, "");
    LLVMValueRef quotient = LLVMBuildLShr(f->b, high, count, "");
    LLVMValueRef rest = LLVMBuildSub(f->b, high, LLVMBuildShl(f->b, quotient, count, ""), "");
    LLVMValueRef half = LLVMBuildShl(f->b, one, LLVMBuildSub(f->b, count, one, ""), "");
    LLVMValueRef odd = LLVMBuildTrunc(f->b, quotient, LLVMInt1TypeInContext(f->p->context), "");
    LLVMValueRef tie = LLVMBuildAnd(f->b, LLVMBuildICmp(f->b, LLVMIntEQ, rest, half, ""), odd, "");
    LLVMValueRef up = LLVMBuildOr(f->b, LLVMBuildICmp(f->b, LLVMIntUGT, rest, half, ""), tie, "");
    LLVMValueRef whole = LLVMBuildAdd(f->b, LLVMBuildTrunc(f->b, quotient, f->i64, ""),
                                      LLVMBuildZExt(f->b, up, f->i64, ""), "");
    /* The hidden bit adds 1 to the exponent's field, and so does a carry out of the significand. */
    LLVMValueRef biased = LLVMBuildAdd(f->b, exponent, constant(f->i64, DROPPED + BIAS - 1), "");
    biased = larger(f, biased, constant(f->i64, 0));
    LLVMValueRef huge = LLVMBuildICmp(f->b, LLVMIntSGE, biased, constant(f->i64, EXPONENT_MASK - 1), "");
    LLVMValueRef bits =
        LLVMBuildAdd(f->b, LLVMBuildShl(f->b, biased, constant(f->i64, FRACTION_BITS), ""), whole, "");
    return LLVMBuildSelect(f->b, huge, constant(f->i64, (uint64_t)EXPONENT_MASK << FRACTION_BITS), bits, "");
}

/* All three are finite and none is 0. */
static LLVMValueRef add_product(const struct builder *f, const struct number *a, const struct number *b,
                                const struct number *c)
{
    enum { PRODUCT_SHIFT = 20, SUMMAND_SHIFT = 72 }; /* highest bits at 124 or 125, and at 124 */
    LLVMValueRef product = LLVMBuildMul(f->b, LLVMBuildZExt(f->b, a->significand, f->i128, ""),
                                        LLVMBuildZExt(f->b, b->significand, f->i128, ""), "");
    product = LLVMBuildShl(f->b, product, constant(f->i128, PRODUCT_SHIFT), "");
    LLVMValueRef summand = LLVMBuildShl(f->b, LLVMBuildZExt(f->b, c->significand, f->i128, ""),
                                        constant(f->i128, SUMMAND_SHIFT), "");
    LLVMValueRef of_product = LLVMBuildSub(f->b, LLVMBuildAdd(f->b, a->exponent, b->exponent, ""),
                                           constant(f->i64, PRODUCT_SHIFT), "");
    LLVMValueRef of_summand = LLVMBuildSub(f->b, c->exponent, constant(f->i64, SUMMAND_SHIFT), "");
    LLVMValueRef exponent = larger(f, of_product, of_summand);
    product = shift_sticky(f, product, LLVMBuildSub(f->b, exponent, of_product, ""));
    summand = shift_sticky(f, summand, LLVMBuildSub(f->b, exponent, of_summand, ""));
    LLVMValueRef negative = LLVMBuildXor(f->b, a->negative, b->negative, "");
    LLVMValueRef sum =
        LLVMBuildAdd(f->b, with_sign(f, product, negative), with_sign(f, summand, c->negative), "");
    LLVMValueRef zero = constant(f->i128, 0), is_zero = LLVMBuildICmp(f->b, LLVMIntEQ, sum, zero, "");
    negative = LLVMBuildICmp(f->b, LLVMIntSLT, sum, zero, "");
    LLVMValueRef bits = round_significand(f, with_sign(f, sum, negative), exponent);
    LLVMValueRef sign =
        LLVMBuildShl(f->b, LLVMBuildZExt(f->b, negative, f->i64, ""), constant(f->i64, 63), "");
    bits = LLVMBuildSelect(f->b, is_zero, constant(f->i64, 0), LLVMBuildOr(f->b, bits, sign, ""), "");
    return LLVMBuildBitCast(f->b, bits, LLVMDoubleTypeInContext(f->p->context), "");
}

static LLVMValueRef double_function(struct llvm_printer *p)
{
    static const char name[] = "fma_f64";
    LLVMValueRef function = LLVMGetNamedFunction(p->module, name);
    if (function)
        return function;
    struct builder f;
    function = begin_function(p, name, LLVMDoubleTypeInContext(p->context), "noinline", &f);
    LLVMValueRef a = LLVMGetParam(function, 0), b = LLVMGetParam(function, 1), c = LLVMGetParam(function, 2);
    const struct number x = take_apart(&f, a), y = take_apart(&f, b), z = take_apart(&f, c);
    /* Where something is 0 or not finite, plain arithmetic rounds at most once. */
    LLVMValueRef product = LLVMBuildFMul(f.b, a, b, ""), sum = LLVMBuildFAdd(f.b, product, c, "");
    LLVMValueRef result = LLVMBuildSelect(f.b, z.is_zero, product, add_product(&f, &x, &y, &z), "");
    LLVMValueRef factor_is_zero = LLVMBuildOr(f.b, x.is_zero, y.is_zero, "");
    result = LLVMBuildSelect(f.b, factor_is_zero, sum, result, "");
    result = LLVMBuildSelect(f.b, z.is_finite, result, LLVMBuildFAdd(f.b, c, c, ""), "");
    LLVMValueRef factors_are_finite = LLVMBuildAnd(f.b, x.is_finite, y.is_finite, "");
    end_function(&f, LLVMBuildSelect(f.b, factors_are_finite, result, sum, ""));
    return function;
}

static LLVMValueRef call(const struct llvm_printer *p, LLVMValueRef function, LLVMValueRef *arguments)
{
    return LLVMBuildCall2(p->builder, LLVMGlobalGetValueType(function), function, arguments, 3, "");
}

LLVMValueRef llvm_software_fma(struct llvm_printer *p, enum dtype dtype, uint16_t lanes,
                               LLVMValueRef *arguments)
{
    if (dtype == DTYPE_F32)
        return call(p, single_function(p, lanes), arguments);
    LLVMValueRef function = double_function(p);
    if (lanes == 1)
        return call(p, function, arguments);
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->context);
    LLVMValueRef result = LLVMGetPoison(llvm_type(p->context, dtype, lanes));
    for (uint16_t i = 0; i < lanes; i++) {
        LLVMValueRef lane = LLVMConstInt(i32, i, 0), scalars[3];
        for (int k = 0; k < 3; k++)
            scalars[k] = LLVMBuildExtractElement(p->builder, arguments[k], lane, "");
        result = LLVMBuildInsertElement(p->builder, result, call(p, function, scalars), lane, "");
    }
    return result;
}

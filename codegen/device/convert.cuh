// The machine's own conversions between f32 and the 16-bit floats: nearest even, subnormals kept, as they are stated. Where a
// machine has none, print_cuda_prelude.c prints the expansion.

//! 53+ f16_from_f32
DEVICE unsigned short f16_from_f32(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

//! 53+ f32_from_f16
DEVICE float f32_from_f16(unsigned short x)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
    return value;
}

//! 80+ bf16_from_f32
DEVICE unsigned short bf16_from_f32(float x)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

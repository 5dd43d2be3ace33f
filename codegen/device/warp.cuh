// Instructions of sm_80 and newer that work on a warp's matrices, and barriers of some of a block's warps.

//! OPERAND_F16 OPERAND_BF16
enum { OPERAND_F16, OPERAND_BF16 };

//! 50+ barrier_meet
// `count` threads meet at the block's barrier `number`.
DEVICE void barrier_meet(int number, int count)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(count) : "memory");
}

//! 80+ matrix_load
// Four 8x8 matrices of 16-bit elements: lane 8i + r gives the address of row r of matrix i. TURNED: each transposed.
template <bool TURNED> DEVICE void matrix_load(unsigned (&to)[4], const void *row)
{
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared_address(row)));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared_address(row)));
}

//! 80+ matrix_multiply
// sum[16][8] += a[16][16] * b[16][8]
template <int TYPE> DEVICE void matrix_multiply(float *sum, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    if (TYPE == OPERAND_F16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

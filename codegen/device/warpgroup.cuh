// Instructions of sm_90a: barriers in shared memory, tensor copies, products by warpgroups, registers moved between
// warpgroups.

//! 90+ mbarrier
typedef unsigned long long mbarrier;

//! 90+ tensor_map
struct __align__(64) tensor_map {
    unsigned long long opaque[16];
};

//! 90+ mbarrier_begin mbarrier_publish
DEVICE void mbarrier_begin(mbarrier *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
// What mbarrier_begin wrote is seen by the copy engine, once the block's threads have met.
DEVICE void mbarrier_publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

//! 90+ mbarrier_arrive
DEVICE void mbarrier_arrive(mbarrier *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

//! 90+ mbarrier_expect
// Arrives, and keeps the phase open until so many bytes more have been copied.
DEVICE void mbarrier_expect(mbarrier *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

//! 90+ mbarrier_wait
// Until the phase of this parity is over.
DEVICE void mbarrier_wait(mbarrier *barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@over bra done;\n"
                 "bra again;\n"
                 "done:\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

//! 90+ tensor_load
// The box of a tensor at the coordinates, fastest first, into shared memory; what lies outside is zero.
#define TENSOR_LOAD(rank, at, ...)                                                                                     \
    asm volatile("cp.async.bulk.tensor." rank ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], "            \
                 "[%1, {" at "}], [%2];" ::"r"(shared_address(to)),                                                    \
                 "l"(&map), "r"(shared_address(barrier)), __VA_ARGS__                                                  \
                 : "memory")
template <int RANK>
DEVICE void tensor_load(void *to, const tensor_map &map, mbarrier *barrier, int c0, int c1, int c2, int c3, int c4)
{
    if (RANK == 2)
        TENSOR_LOAD("2d", "%3, %4", "r"(c0), "r"(c1));
    else if (RANK == 3)
        TENSOR_LOAD("3d", "%3, %4, %5", "r"(c0), "r"(c1), "r"(c2));
    else if (RANK == 4)
        TENSOR_LOAD("4d", "%3, %4, %5, %6", "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    else
        TENSOR_LOAD("5d", "%3, %4, %5, %6, %7", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4));
}
#undef TENSOR_LOAD

//! 90+ registers_give registers_take
// All warps of the warpgroup: its threads have so many registers from now on. COUNT: a multiple of 8.
template <int COUNT> DEVICE void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> DEVICE void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }

//! 90+ warpgroup_operand
// A tile in shared memory with the 128-byte swizzle, as an operand: `leading` bytes from one run of 64 rows or columns to
// the next (where they lie side by side), `stride` bytes from one group of 8 lines to the next.
DEVICE unsigned long long warpgroup_operand(const void *tile, int leading, int stride)
{
    return (unsigned long long)(shared_address(tile) >> 4 & 0x3fff) | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}
//! 90+ warpgroup_begin warpgroup_commit warpgroup_wait
DEVICE void warpgroup_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most LEFT committed groups are under way.
template <int LEFT> DEVICE void warpgroup_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

//! 90+ warpgroup_multiply
// sum[64][COLUMNS] = a[64][16] * b[16][COLUMNS] + (add ? sum : 0). TURNED: rows or columns lie side by side.
#define S8(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
              "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define S32(i) S8(i), S8(i + 8), S8(i + 16), S8(i + 24)
#define WARPGROUP_64(type)                                                                                            \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"                                                     \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {"                                              \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"                                       \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"                              \
        "}, %32, %33, more, 1, 1, %35, %36;\n}"                                                                        \
        : S32(0)                                                                                                      \
        : "l"(a), "l"(b), "r"((int)add), "n"((int)A_TURNED), "n"((int)B_TURNED))
#define WARPGROUP_128(type)                                                                                           \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %66, 0;\n"                                                     \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {"                                             \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"                                       \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"                             \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"                             \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"                              \
        "}, %64, %65, more, 1, 1, %67, %68;\n}"                                                                        \
        : S32(0), S32(32)                                                                                             \
        : "l"(a), "l"(b), "r"((int)add), "n"((int)A_TURNED), "n"((int)B_TURNED))
#define WARPGROUP_256(type)                                                                                           \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\n"                                                    \
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {"                                             \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"                                       \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"                             \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"                             \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,"                             \
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,"                             \
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"                             \
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111,"                 \
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"              \
        "}, %128, %129, more, 1, 1, %131, %132;\n}"                                                                    \
        : S32(0), S32(32), S32(64), S32(96)                                                                           \
        : "l"(a), "l"(b), "r"((int)add), "n"((int)A_TURNED), "n"((int)B_TURNED))

template <int TYPE, bool A_TURNED, bool B_TURNED>
DEVICE void warpgroup_multiply(float (&sum)[32], unsigned long long a, unsigned long long b, bool add)
{
    if (TYPE == OPERAND_F16)
        WARPGROUP_64("f16");
    else
        WARPGROUP_64("bf16");
}
template <int TYPE, bool A_TURNED, bool B_TURNED>
DEVICE void warpgroup_multiply(float (&sum)[64], unsigned long long a, unsigned long long b, bool add)
{
    if (TYPE == OPERAND_F16)
        WARPGROUP_128("f16");
    else
        WARPGROUP_128("bf16");
}
template <int TYPE, bool A_TURNED, bool B_TURNED>
DEVICE void warpgroup_multiply(float (&sum)[128], unsigned long long a, unsigned long long b, bool add)
{
    if (TYPE == OPERAND_F16)
        WARPGROUP_256("f16");
    else
        WARPGROUP_256("bf16");
}
#undef WARPGROUP_64
#undef WARPGROUP_128
#undef WARPGROUP_256
#undef S32
#undef S8

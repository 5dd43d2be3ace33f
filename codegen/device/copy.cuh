// Copies from global to shared memory that pass the registers and go on while the threads compute.

//! shared_address
DEVICE unsigned shared_address(const void *memory) { return (unsigned)__cvta_generic_to_shared(memory); }

//! 80+ copy_async_4
DEVICE void copy_async_4(void *to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from));
}

//! 80+ copy_async_16
DEVICE void copy_async_16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

//! 80+ copy_async_4_or_zero
// Reads nothing where the condition is false.
DEVICE void copy_async_4_or_zero(void *to, const void *from, bool condition)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(condition ? 4 : 0));
}

//! 80+ copy_async_16_or_zero
// Reads nothing where the condition is false.
DEVICE void copy_async_16_or_zero(void *to, const void *from, bool condition)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(condition ? 16 : 0));
}

//! 80+ copy_async_16_part
// Reads the first `bytes`; the rest are zeros.
DEVICE void copy_async_16_part(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
}

//! 80+ commit_copies
// The copies since the last call are a batch.
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }

//! 80+ wait_copies
// Until at most so many of this thread's batches are under way.
template <int BATCHES> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(BATCHES) : "memory"); }

/* Machine descriptions: what the makers' data sheets state, one row a target. CUDA figures are those of the
 * product named beside the row; CPU figures are of one core of a current server.
 */
#include "ir/target.h"

#include <string.h>

enum { KIBIBYTE = 1024 };

static const struct machine machines[] = {
    {.name = "cpu", /* x86-64-v3; the reference of all CPUs */
     .kind = TARGET_CPU,
     .memory_bytes_per_second = 12e9,
     .fp32_per_second = 90e9,
     .host = HOST_X86_64,
     .level = 3,
     .instruction_set = "x86-64-v3",
     .vector_bytes = 32,
     .vector_registers = 16},
    {.name = "cpu-v4",
     .kind = TARGET_CPU,
     .memory_bytes_per_second = 12e9,
     .fp32_per_second = 150e9,
     .host = HOST_X86_64,
     .level = 4,
     .instruction_set = "x86-64-v4",
     .vector_bytes = 64,
     .vector_registers = 32},
    {.name = "cpu-v2",
     .kind = TARGET_CPU,
     .memory_bytes_per_second = 12e9,
     .fp32_per_second = 2e9,
     .host = HOST_X86_64,
     .level = 2,
     .instruction_set = "x86-64-v2",
     .software_fma = true,
     .vector_bytes = 16,
     .vector_registers = 16},
    {.name = "cpu-aarch64", /* Armv8-A with its vectors */
     .kind = TARGET_CPU,
     .memory_bytes_per_second = 12e9,
     .fp32_per_second = 45e9,
     .host = HOST_AARCH64,
     .level = 8,
     .instruction_set = "generic",
     .vector_bytes = 16,
     .vector_registers = 32},
    {.name = "sm_75", /* T4 */
     .kind = TARGET_CUDA,
     .compute_capability = 75,
     .compiled_only = true,
     .multiprocessors = 40,
     .threads = 1024,
     .blocks = 16,
     .shared_bytes_block = 64 * KIBIBYTE,
     .shared_bytes = 64 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.59e9,
     .memory_bytes_per_second = 320e9,
     .fp32_per_second = 8.1e12,
     .tensor_per_second = 65e12},
    {.name = "sm_80", /* A100 SXM4 80 GB */
     .kind = TARGET_CUDA,
     .compute_capability = 80,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 108,
     .threads = 2048,
     .blocks = 32,
     .shared_bytes_block = 163 * KIBIBYTE,
     .shared_bytes = 164 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.41e9,
     .memory_bytes_per_second = 2039e9,
     .fp32_per_second = 19.5e12,
     .tensor_per_second = 312e12},
    {.name = "sm_86", /* A10 */
     .kind = TARGET_CUDA,
     .compute_capability = 86,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 72,
     .threads = 1536,
     .blocks = 16,
     .shared_bytes_block = 99 * KIBIBYTE,
     .shared_bytes = 100 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.695e9,
     .memory_bytes_per_second = 600e9,
     .fp32_per_second = 31.2e12,
     .tensor_per_second = 125e12},
    {.name = "sm_87", /* Jetson AGX Orin 64 GB */
     .kind = TARGET_CUDA,
     .compute_capability = 87,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 16,
     .threads = 1536,
     .blocks = 16,
     .shared_bytes_block = 163 * KIBIBYTE,
     .shared_bytes = 164 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.3e9,
     .memory_bytes_per_second = 204.8e9,
     .fp32_per_second = 5.3e12,
     .tensor_per_second = 85e12},
    {.name = "sm_89", /* L40S */
     .kind = TARGET_CUDA,
     .compute_capability = 89,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 142,
     .threads = 1536,
     .blocks = 24,
     .shared_bytes_block = 99 * KIBIBYTE,
     .shared_bytes = 100 * KIBIBYTE,
     .registers = 65536,
     .clock = 2.52e9,
     .memory_bytes_per_second = 864e9,
     .fp32_per_second = 91.6e12,
     .tensor_per_second = 362e12},
    {.name = "sm_90", /* H200, portable instructions only */
     .kind = TARGET_CUDA,
     .compute_capability = 90,
     .asynchronous_copies = true,
     .multiprocessors = 132,
     .threads = 2048,
     .blocks = 32,
     .shared_bytes_block = 227 * KIBIBYTE,
     .shared_bytes = 228 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.98e9,
     .memory_bytes_per_second = 4300e9, /* a copy's, measured; the data sheet says 4800 */
     .fp32_per_second = 67e12,
     .tensor_per_second = 989e12},
    {.name = "sm_90a", /* H200 */
     .kind = TARGET_CUDA,
     .compute_capability = 90,
     .architecture_specific = true,
     .asynchronous_copies = true,
     .multiprocessors = 132,
     .threads = 2048,
     .blocks = 32,
     .shared_bytes_block = 227 * KIBIBYTE,
     .shared_bytes = 228 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.98e9,
     .memory_bytes_per_second = 4300e9,
     .fp32_per_second = 67e12,
     .tensor_per_second = 989e12},
    {.name = "sm_100", /* B200 */
     .kind = TARGET_CUDA,
     .compute_capability = 100,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 148,
     .threads = 2048,
     .blocks = 32,
     .shared_bytes_block = 227 * KIBIBYTE,
     .shared_bytes = 228 * KIBIBYTE,
     .registers = 65536,
     .clock = 1.85e9,
     .memory_bytes_per_second = 8000e9,
     .fp32_per_second = 75e12,
     .tensor_per_second = 2250e12},
    {.name = "sm_120", /* RTX 5090 */
     .kind = TARGET_CUDA,
     .compute_capability = 120,
     .compiled_only = true,
     .asynchronous_copies = true,
     .multiprocessors = 170,
     .threads = 1536,
     .blocks = 24,
     .shared_bytes_block = 99 * KIBIBYTE,
     .shared_bytes = 100 * KIBIBYTE,
     .registers = 65536,
     .clock = 2.41e9,
     .memory_bytes_per_second = 1792e9,
     .fp32_per_second = 104.8e12,
     .tensor_per_second = 210e12},
};

const struct machine *machine_row(uint32_t index)
{
    return index < sizeof machines / sizeof *machines ? &machines[index] : NULL;
}

const struct machine *machine_lowest(enum host host)
{
    const struct machine *lowest = NULL;
    for (uint32_t i = 0; machine_row(i); i++)
        if (machine_row(i)->kind == TARGET_CPU && machine_row(i)->host == host &&
            (!lowest || machine_row(i)->level < lowest->level))
            lowest = machine_row(i);
    return lowest;
}

const struct machine *machine_find(const char *target)
{
    for (uint32_t i = 0; machine_row(i); i++)
        if (strcmp(machine_row(i)->name, target) == 0)
            return machine_row(i);
    return NULL;
}

const struct machine *machine_reference(const struct machine *machine)
{
    return machine->kind == TARGET_CPU ? &machines[0] : machine;
}

static const char *const hosts[HOST_COUNT] = {[HOST_X86_64] = "x86_64", [HOST_AARCH64] = "aarch64"};

const char *host_name(enum host host)
{
    return hosts[host];
}

bool host_find(const char *name, enum host *host)
{
    for (int i = 0; i < HOST_COUNT; i++)
        if (strcmp(hosts[i], name) == 0) {
            *host = (enum host)i;
            return true;
        }
    return false;
}

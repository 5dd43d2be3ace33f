/* The file between pack.c and check.c: the magic; then for each case the number 1, its name, a cubin,
 * buffers, launches; then the number 0. Numbers are u64 of this machine; text and bytes follow their length.
 */
#ifndef GPUCC_TESTS_GPU_PACK_H
#define GPUCC_TESTS_GPU_PACK_H

#define PACK_MAGIC "gpucc pack 2\n"

enum { PACK_INPUT, PACK_OUTPUT, PACK_SCRATCH, PACK_RANDOM /* no content follows: for timing */ };

#endif

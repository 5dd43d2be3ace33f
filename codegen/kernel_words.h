/* Sizes that the model computes, in a finished kernel. Its dims that hang on words (ir/dims.h) are no
 * parameters: the kernel reads the words from the buffers that hold them and computes the dims at its begin.
 * The host launches it for the words' bounds; what lies beyond the actual sizes is left early. */
#ifndef GPUCC_CODEGEN_KERNEL_WORDS_H
#define GPUCC_CODEGEN_KERNEL_WORDS_H

#include "codegen/kernel_ir.h"

enum { MAX_KERNEL_WORDS = 16 };

/* `touched`: sizes of the buffers that the kernel gets. Fills kernel->words and kernel->computed; symbols[i]
 * is the word of kernel->words[i]. Nothing happens to a kernel whose sizes hang on none. False: it hangs on
 * too many. */
bool kernel_bind_words(struct kernel *kernel, const struct graph *graph, const dim *touched,
                       uint32_t touched_count, uint32_t symbols[MAX_KERNEL_WORDS]);

#endif

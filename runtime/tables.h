/* The tables of a bundle as typed arrays. tables_open checks every offset, count, index and enumerator of the
 * blob, so that everything behind it may index without a check. */
#ifndef GPUCC_RUNTIME_TABLES_H
#define GPUCC_RUNTIME_TABLES_H

#include "runtime/bundle_format.h"
#include "runtime/error.h"

struct bundle_tables {
    const struct bundle_header *header;
    const char *strings;
    const struct bundle_symbol *symbols;
    const struct bundle_term *terms;
    const struct bundle_dim *dims;
    const struct bundle_guard *guards;
    const struct bundle_tensor *inputs, *outputs;
    const struct bundle_constant *constants;
    const struct bundle_weight_row *weights;
    const struct bundle_plan *plans;
    const struct bundle_buffer *buffers;
    const struct bundle_kernel *kernels;
    const struct bundle_launch *launches;
    const struct bundle_control *controls;
    const struct bundle_tensor_map *maps;
    const struct bundle_copy *copies;
    const struct bundle_image *images;
    const uint32_t *indices;
    const unsigned char *code;
    const struct bundle_fact_row *facts;
    uint32_t symbol_count, dim_count, guard_count, input_count, output_count, constant_count, weight_count,
        plan_count, fact_count;
};

/* `blob` is 8-byte aligned and outlives the tables. BAD_BUNDLE with the reason when anything is off. */
gpucc_status tables_open(const void *blob, uint64_t bytes, struct bundle_tables *tables,
                         struct runtime_error *error);

/* Bytes of `count` packed elements of an ONNX element type; 0 bits for types that a buffer cannot hold. */
unsigned tables_dtype_bits(uint32_t dtype);
int tables_dtype_bytes(uint32_t dtype, int64_t count, uint64_t *bytes); /* 0: negative, unknown or overflow */
const char *tables_dtype_name(uint32_t dtype);                          /* "f32" */

#endif

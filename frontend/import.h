/* The importer: from an ONNX file to the Graph IR. Everything that is ONNX's and not the computation's ends
 * here: names, opsets, model functions, the order of nodes, optional inputs, payload forms. Shapes are not
 * inferred here; element types are, as far as the import functions need them. All problems of the model are
 * reported in one run. */
#ifndef GPUCC_FRONTEND_IMPORT_H
#define GPUCC_FRONTEND_IMPORT_H

#include "frontend/source_files.h"
#include "ir/graph.h"

/* What `--dim` says of a symbol: by its name in the model (dim_param), or as INPUT[AXIS]. low == high fixes
 * it. */
struct import_dim {
    const char *name;
    int64_t low, hint, high;
};

/* --alias OUTPUT=INPUT */
struct import_alias {
    const char *output, *input;
};

struct import_options {
    const struct import_dim *dims;
    uint32_t dim_count;
    const char *const *outputs; /* --output: these values instead of the model's outputs */
    uint32_t output_count;
    const struct import_alias *aliases;
    uint32_t alias_count;
};

/* Imports the model at `path`. Constants of the graph read `files` until its owner closes it, success or not.
 * `options` may be NULL. False: reported. */
bool import_model(struct arena *arena, struct diagnostics *diagnostics, const char *path,
                  const struct import_options *options, struct source_files *files, struct graph **graph);
/* The same for a model in memory, which must outlive the graph; it has no external data. */
bool import_model_bytes(struct arena *arena, struct diagnostics *diagnostics, const void *data, size_t bytes,
                        const struct import_options *options, struct source_files *files,
                        struct graph **graph);

#endif

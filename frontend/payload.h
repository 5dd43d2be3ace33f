/* From a TensorProto to a tensor's type and a reference to its elements. No element is loaded here unless the
 * tensor is small: large payloads stay in their file, and the forms that are not plain elements
 * (variable-length numbers, lists cut in pieces, bools that are neither 0 nor 1) are decoded while they are
 * read. Every length is checked against the dims, every value against its type, before the reference is
 * handed out. */
#ifndef GPUCC_FRONTEND_PAYLOAD_H
#define GPUCC_FRONTEND_PAYLOAD_H

#include "frontend/reader.h"
#include "ir/graph.h"

struct tensor_data {
    enum dtype dtype;
    int rank;
    int64_t sizes[MAX_RANK];
    const struct blob *blob;
};

/* `what` names the tensor in messages ("initialiser \"w\"", "attribute value"). The blob lives in the arena
 * and may read the model's source. False: reported, with the location when there is one. */
bool payload_tensor(const struct reader *reader, struct arena *arena, struct diagnostics *diagnostics,
                    const struct location *location, const char *what, const Onnx__TensorProto *tensor,
                    struct tensor_data *out);

#endif

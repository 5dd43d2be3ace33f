/* shapes: the type of every value, by shape inference (ir/infer.h). Shape inputs become attributes, Flatten,
 * Squeeze, Split and their like become Reshape and Slice, Shape becomes Dims. Behind this pass every type is
 * known.
 *
 *     %1 = Shape(%x)
 *     %2 = Reshape(%y, %1)       ->     %2 = Reshape(%y) : f32[s0, 4]
 */
#include "passes/passes.h"

#include "ir/infer.h"

bool pass_shapes(struct pass_context *context)
{
    if (!infer_graph(context->graph, context->diagnostics))
        return false;
    for (uint32_t i = 0; i < context->graph->wishes.count; i++)
        if (!context->graph->wishes.items[i].used) {
            diag_error(context->diagnostics, DIAG_bad_option, NULL,
                       "no input has a free dim %s, and the model computes no size of that name",
                       diag_quote(context->diagnostics, context->graph->wishes.items[i].name));
            return false;
        }
    graph_sweep(context->graph);
    context->changes++;
    return true;
}

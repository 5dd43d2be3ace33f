/* canonicalise: applies the rewrite rows (rewrite_rows.def) until none fires.
 *
 * Every row lowers a measure: the number of nodes that run when the model runs, else the weight of an
 * operator (Div and Pow above Mul). So rewriting ends; the bound on rounds is there to make a row that breaks
 * this a reported defect instead of a hang. Nodes are visited in order, so a node's inputs are already
 * rewritten when it is looked at. */
#include "passes/rewrite.h"

enum { MOST_ROUNDS = 64, MOST_ROWS = 128, FIRES_A_NODE = 16 };

struct rows {
    uint32_t count;
    struct parsed_rewrite *items[MOST_ROWS];
};

static bool parse_rows(struct pass_context *context, struct rows *rows)
{
    struct text why;
    text_init(&why, context->scratch);
    rows->count = 0;
    for (uint32_t i = 0; rewrite_row(i) && rows->count < MOST_ROWS; i++) {
        struct parsed_rewrite *parsed = arena_new(context->scratch, struct parsed_rewrite);
        if (!rewrite_parse(rewrite_row(i), parsed, &why)) {
            diag_error(context->diagnostics, DIAG_internal, NULL, "rewrite row %s: %s", rewrite_row(i)->name,
                       why.data);
            return false;
        }
        rows->items[rows->count++] = parsed;
    }
    return true;
}

static bool may_match(const struct parsed_rewrite *row, enum op op)
{
    const enum op root = row->pattern.nodes[row->pattern.root].op;
    return root == OP_NONE ? (op_facts(op)->traits & OP_POINTWISE) != 0 : root == op;
}

static bool fire_one(struct rewriter *rewriter, const struct rows *rows, node_id id)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (may_match(rows->items[i], graph_node(rewriter->graph, id)->op) &&
            rewrite_apply(rewriter, rows->items[i], id))
            return true;
    return false;
}

static void visit(struct pass_context *context, struct rewriter *rewriter, const struct rows *rows,
                  node_id id)
{
    const struct node *node = graph_node(rewriter->graph, id);
    for (uint32_t i = 0; i < node->input_count; i++)
        node->inputs[i] = forward_of(&rewriter->forward, node->inputs[i]);
    for (uint32_t fires = 0; fires < FIRES_A_NODE && !graph_node(rewriter->graph, id)->removed; fires++) {
        if (!fire_one(rewriter, rows, id))
            return;
        context->changes++;
    }
}

/* The region's list grows while rewriting: the round walks a copy, the next round sees the new nodes. */
static void rewrite_region(struct pass_context *context, struct rewriter *rewriter, const struct rows *rows,
                           region_id region)
{
    const uint32_t count = context->graph->regions.items[region].nodes.count;
    const node_id *nodes = arena_copy(context->scratch, context->graph->regions.items[region].nodes.items,
                                      count * sizeof *nodes);
    for (uint32_t i = 0; i < count; i++)
        if (!graph_node(context->graph, nodes[i])->removed)
            visit(context, rewriter, rows, nodes[i]);
}

bool pass_canonicalise(struct pass_context *context)
{
    struct rows rows;
    if (!parse_rows(context, &rows))
        return false;
    for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
        const uint32_t before = context->changes;
        struct rewriter rewriter;
        rewriter_init(&rewriter, context->graph, context->scratch);
        for (region_id r = 1; r < context->graph->regions.count; r++)
            rewrite_region(context, &rewriter, &rows, r);
        forward_apply(&rewriter.forward, context->graph);
        graph_sweep(context->graph);
        if (context->changes == before)
            return true;
    }
    diag_error(context->diagnostics, DIAG_internal, NULL, "rewriting does not end after %d rounds",
               (int)MOST_ROUNDS);
    return false;
}

/* LSTM, GRU and RNN as what they compute: the products of the whole sequence with the input weights, then a
 * Scan over time of the cell. Both directions are separate scans, joined at the end. Time is the first axis
 * inside, whatever `layout` says.
 *
 * The weights of DynamicQuantizeLSTM have 8 bits: its products are of integers.
 *
 * With sequence_lens a step beyond its sequence's end keeps the states and gives zeros; going backward those
 * steps come first, so the states start where the sequence ends. */
#include <string.h>

#include "frontend/importer.h"

enum {
    MOST_GATES = 4,
    MOST_STATES = 2,
    MOST_ACTIVATIONS = 3,
    INPUT_LENGTHS = 4,
    INPUT_H = 5,
    INPUT_C = 6,
    INPUT_P = 7,
    INPUT_W_SCALE = 8, /* of DynamicQuantizeLSTM */
    INPUT_W_ZERO = 9,
    INPUT_R_SCALE = 10,
    INPUT_R_ZERO = 11
};

struct activation {
    char name[20];
    enum op op; /* OP_NONE: made of others */
    enum attribute_name alpha, beta;
    bool takes_alpha, takes_beta;
    float default_alpha, default_beta;
};

static const struct activation activation_rows[] = {
    {"Affine", OP_NONE, ATTR_NONE, ATTR_NONE, true, true, 1, 0},
    {"Elu", OP_Elu, ATTR_alpha, ATTR_NONE, true, false, 1, 0},
    {"HardSigmoid", OP_HardSigmoid, ATTR_alpha, ATTR_beta, true, true, 0.2F, 0.5F},
    {"LeakyRelu", OP_LeakyRelu, ATTR_alpha, ATTR_NONE, true, false, 0.01F, 0},
    {"Relu", OP_Relu, ATTR_NONE, ATTR_NONE, false, false, 0, 0},
    {"ScaledTanh", OP_NONE, ATTR_NONE, ATTR_NONE, true, true, 1, 1},
    {"Sigmoid", OP_Sigmoid, ATTR_NONE, ATTR_NONE, false, false, 0, 0},
    {"Softplus", OP_Softplus, ATTR_NONE, ATTR_NONE, false, false, 0, 0},
    {"Softsign", OP_Softsign, ATTR_NONE, ATTR_NONE, false, false, 0, 0},
    {"Tanh", OP_Tanh, ATTR_NONE, ATTR_NONE, false, false, 0, 0},
    {"ThresholdedRelu", OP_NONE, ATTR_NONE, ATTR_NONE, true, false, 1, 0},
};

struct chosen {
    const struct activation *row;
    float alpha, beta;
};

struct cell;
typedef void step_function(struct cell *cell);

/* One kind of cell; a row of each operator. */
struct kind {
    uint32_t gates, states, activations;
    const char *defaults[MOST_ACTIVATIONS];
    step_function *step;
};

/* One direction. `outer` emits before the scan, `inner` into its body. */
struct cell {
    struct importer *importer;
    const struct kind *kind;
    struct import_node *outer;
    struct import_node inner;
    enum dtype dtype;
    struct chosen activations[MOST_ACTIVATIONS];
    bool clips, forgets_input, linear_before_reset;
    float clip;
    value_id recurrence[MOST_GATES]; /* [H, H] transposed, a gate each: GRU */
    value_id joined;                 /* [H, gates * H]: the others, which need one product a step */
    value_id reset_bias;             /* GRU with linear_before_reset: the recurrent bias of the last gate */
    value_id peepholes[3];           /* LSTM: i, o, f; 0: none */
    value_id input;                  /* this step's products, [B, gates * H] */
    value_id states[MOST_STATES], next[MOST_STATES];
    bool quantised;       /* weights of 8 bits, one matrix a direction, turned already */
    value_id scale, zero; /* quantised: those of the recurrence */
};

/* ---- small words
 * ----------------------------------------------------------------------------------------------------- */

static value_id add(struct cell *cell, value_id a, value_id b)
{
    return import_emit2(cell->importer, &cell->inner, OP_Add, a, b);
}

static value_id mul(struct cell *cell, value_id a, value_id b)
{
    return import_emit2(cell->importer, &cell->inner, OP_Mul, a, b);
}

static value_id number(struct cell *cell, float value)
{
    return import_scalar(cell->importer, cell->dtype, (double)value);
}

static value_id gather(struct importer *importer, struct import_node *at, value_id from, int64_t index)
{
    const struct attribute axis = attribute_int(ATTR_axis, 0);
    const value_id inputs[2] = {from, import_int_scalar(importer, index)};
    return import_emit(importer, at, OP_Gather, 2, inputs, 1, &axis);
}

static value_id transpose(struct importer *importer, struct import_node *at, value_id from, uint32_t rank)
{
    static const int64_t swapped[4] = {1, 0, 2, 3};
    const struct attribute perm =
        attribute_ints(ATTR_perm, rank, arena_copy(importer->graph->arena, swapped, rank * sizeof *swapped));
    return import_emit(importer, at, OP_Transpose, 1, &from, 1, &perm);
}

static value_id unsqueeze(struct importer *importer, struct import_node *at, value_id from, int64_t axis)
{
    return import_emit2(importer, at, OP_Unsqueeze, from, import_int_list(importer, 1, &axis));
}

static value_id concat(struct importer *importer, struct import_node *at, const value_id *parts,
                       uint32_t count, int64_t axis)
{
    const struct attribute attribute = attribute_int(ATTR_axis, axis);
    return count == 1 ? parts[0] : import_emit(importer, at, OP_Concat, count, parts, 1, &attribute);
}

static void split(struct importer *importer, struct import_node *at, value_id from, int64_t axis,
                  uint32_t parts, value_id *out)
{
    const struct attribute attributes[2] = {attribute_int(ATTR_axis, axis),
                                            attribute_int(ATTR_num_outputs, parts)};
    const node_id made = graph_add_node(importer->graph, at->scope->region, 0, OP_Split, 1, &from, parts, 2,
                                        attributes, at->location);
    for (uint32_t i = 0; i < parts; i++) {
        out[i] = graph_node(importer->graph, made)->outputs[i];
        graph_value(importer->graph, out[i])->type.dtype = import_dtype(importer, from);
    }
}

/* ---- the cells
 * ------------------------------------------------------------------------------------------------------- */

/* The activation of x, which is clipped before it. */
static value_id activate(struct cell *cell, uint32_t which, value_id x)
{
    const struct chosen *chosen = &cell->activations[which];
    struct importer *importer = cell->importer;
    if (cell->clips) {
        const value_id bounds[3] = {x, number(cell, -cell->clip), number(cell, cell->clip)};
        x = import_emit(importer, &cell->inner, OP_Clip, 3, bounds, 0, NULL);
    }
    if (chosen->row->op != OP_NONE) {
        const struct attribute attributes[2] = {attribute_float(chosen->row->alpha, (double)chosen->alpha),
                                                attribute_float(chosen->row->beta, (double)chosen->beta)};
        const uint32_t count = chosen->row->beta != ATTR_NONE ? 2 : chosen->row->alpha != ATTR_NONE;
        return import_emit(importer, &cell->inner, chosen->row->op, 1, &x, count, attributes);
    }
    if (chosen->row->takes_beta && chosen->row->name[0] == 'A') /* alpha * x + beta */
        return add(cell, mul(cell, x, number(cell, chosen->alpha)), number(cell, chosen->beta));
    if (chosen->row->takes_beta) { /* alpha * tanh(beta * x) */
        const value_id bent = mul(cell, x, number(cell, chosen->beta));
        return mul(cell, import_emit1(importer, &cell->inner, OP_Tanh, bent), number(cell, chosen->alpha));
    }
    const value_id passes = import_emit2(importer, &cell->inner, OP_Greater, x, number(cell, chosen->alpha));
    const value_id where[3] = {passes, x, number(cell, 0)};
    return import_emit(importer, &cell->inner, OP_Where, 3, where, 0, NULL);
}

/* a, quantised as a whole, times 8-bit weights: the sum in i32, scaled. */
static value_id quantised_product(struct importer *importer, const struct import_node *at, value_id a,
                                  value_id weights, value_id scale, value_id zero)
{
    value_id parts[3];
    import_quantised(importer, at, a, parts);
    const value_id factors[4] = {parts[0], weights, parts[2], zero};
    const value_id sum = import_emit(importer, at, OP_MatMulInteger, 4, factors, 0, NULL);
    const struct attribute to = attribute_dtype(ATTR_to, DTYPE_F32);
    return import_emit2(importer, at, OP_Mul, import_emit(importer, at, OP_Cast, 1, &sum, 1, &to),
                        import_emit2(importer, at, OP_Mul, parts[1], scale));
}

static value_id product(struct cell *cell, value_id a, value_id weights)
{
    if (cell->quantised)
        return quantised_product(cell->importer, &cell->inner, a, weights, cell->scale, cell->zero);
    return import_emit2(cell->importer, &cell->inner, OP_MatMul, a, weights);
}

static void rnn_step(struct cell *cell)
{
    const value_id sum = add(cell, cell->input, product(cell, cell->states[0], cell->joined));
    cell->next[0] = activate(cell, 0, sum);
}

/* Gates z, r, h: H = (1 - z) * h + z * H. */
static void gru_step(struct cell *cell)
{
    struct importer *importer = cell->importer;
    value_id gates[3], zr[2];
    split(importer, &cell->inner, cell->input, -1, 3, gates);
    for (uint32_t i = 0; i < 2; i++)
        zr[i] = activate(cell, 0, add(cell, gates[i], product(cell, cell->states[0], cell->recurrence[i])));
    value_id hidden;
    if (cell->linear_before_reset) {
        hidden = product(cell, cell->states[0], cell->recurrence[2]);
        if (cell->reset_bias)
            hidden = add(cell, hidden, cell->reset_bias);
        hidden = mul(cell, zr[1], hidden);
    } else {
        hidden = product(cell, mul(cell, zr[1], cell->states[0]), cell->recurrence[2]);
    }
    hidden = activate(cell, 1, add(cell, gates[2], hidden));
    const value_id rest = import_emit2(importer, &cell->inner, OP_Sub, number(cell, 1), zr[0]);
    cell->next[0] = add(cell, mul(cell, rest, hidden), mul(cell, zr[0], cell->states[0]));
}

static value_id peep(struct cell *cell, uint32_t gate, value_id x, value_id state)
{
    return cell->peepholes[gate] ? add(cell, x, mul(cell, cell->peepholes[gate], state)) : x;
}

/* Gates i, o, f, c. */
static void lstm_step(struct cell *cell)
{
    struct importer *importer = cell->importer;
    value_id gates[4];
    split(importer, &cell->inner, add(cell, cell->input, product(cell, cell->states[0], cell->joined)), -1, 4,
          gates);
    const value_id in = activate(cell, 0, peep(cell, 0, gates[0], cell->states[1]));
    const value_id forget = cell->forgets_input
                                ? import_emit2(importer, &cell->inner, OP_Sub, number(cell, 1), in)
                                : activate(cell, 0, peep(cell, 2, gates[2], cell->states[1]));
    const value_id fresh = mul(cell, in, activate(cell, 1, gates[3]));
    cell->next[1] = add(cell, mul(cell, forget, cell->states[1]), fresh);
    const value_id out = activate(cell, 0, peep(cell, 1, gates[1], cell->next[1]));
    const bool clips = cell->clips;
    cell->clips = false; /* the state itself is not clipped */
    cell->next[0] = mul(cell, out, activate(cell, 2, cell->next[1]));
    cell->clips = clips;
}

static const struct kind rnn = {1, 1, 1, {"Tanh"}, rnn_step};
static const struct kind gru = {3, 1, 2, {"Sigmoid", "Tanh"}, gru_step};
static const struct kind lstm = {4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, lstm_step};

/* ---- attributes
 * ------------------------------------------------------------------------------------------------------ */

static bool find_activation(struct importer *importer, const struct import_node *node, const char *name,
                            size_t length, struct chosen *out)
{
    for (size_t i = 0; i < sizeof activation_rows / sizeof *activation_rows; i++) {
        const struct activation *row = &activation_rows[i];
        if (strlen(row->name) == length && !strncmp(row->name, name, length)) {
            *out = (struct chosen){row, row->default_alpha, row->default_beta};
            return true;
        }
    }
    return import_fail(importer, DIAG_wrong_attribute, node->location,
                       "attribute activations names no activation: %s",
                       import_quote(importer, arena_printf(importer->arena, "%.*s",
                                                           (int)(length < 60 ? length : 60), name)));
}

/* Activations of all directions, and their parameters, which are listed for those that take one. */
static bool find_activations(struct importer *importer, const struct import_node *node,
                             const struct kind *kind, uint32_t directions, struct chosen *out)
{
    const Onnx__AttributeProto *names = import_given(node, "activations");
    const Onnx__AttributeProto *alpha = import_given(node, "activation_alpha");
    const Onnx__AttributeProto *beta = import_given(node, "activation_beta");
    const uint32_t count = directions * kind->activations;
    size_t alphas = 0, betas = 0;
    if (names && names->n_strings && names->n_strings < count)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "attribute activations has %zu names, must have %u", names->n_strings, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = kind->defaults[i % kind->activations];
        size_t length = strlen(name);
        if (names && names->n_strings) {
            name = (const char *)names->strings[i].data;
            length = names->strings[i].len;
        }
        if (!find_activation(importer, node, name ? name : "", length, &out[i]))
            return false;
        if (out[i].row->takes_alpha && alpha && alphas < alpha->n_floats)
            out[i].alpha = alpha->floats[alphas++];
        if (out[i].row->takes_beta && beta && betas < beta->n_floats)
            out[i].beta = beta->floats[betas++];
    }
    return true;
}

/* 1 or 2 directions, and whether the first goes backward. */
static bool find_directions(struct importer *importer, const struct import_node *node, uint32_t *count,
                            bool *backward)
{
    const Onnx__AttributeProto *given = import_given(node, "direction");
    const char *text = given && given->s.len ? (const char *)given->s.data : "forward";
    const size_t length = given && given->s.len ? given->s.len : strlen(text);
    *count = length == 13 && !strncmp(text, "bidirectional", length) ? 2 : 1;
    *backward = length == 7 && !strncmp(text, "reverse", length);
    if (*count == 2 || *backward || (length == 7 && !strncmp(text, "forward", length)))
        return true;
    return import_fail(importer, DIAG_wrong_attribute, node->location,
                       "attribute direction must be forward, reverse or bidirectional");
}

/* ---- one direction
 * --------------------------------------------------------------------------------------------------- */

static value_id input_of(const struct import_node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : 0;
}

/* The whole sequence's products with the input weights, and every bias that does not hang on the states. */
static value_id multiply_inputs(struct cell *cell, uint32_t direction, value_id sequence)
{
    struct importer *importer = cell->importer;
    struct import_node *at = cell->outer;
    const value_id stated = gather(importer, at, at->inputs[1], direction);
    value_id sum;
    if (cell->quantised)
        sum = quantised_product(importer, at, sequence, stated,
                                gather(importer, at, at->inputs[INPUT_W_SCALE], direction),
                                gather(importer, at, at->inputs[INPUT_W_ZERO], direction));
    else
        sum = import_emit2(importer, at, OP_MatMul, sequence, transpose(importer, at, stated, 2));
    if (!input_of(at, 3))
        return sum;
    value_id halves[2], gates[2][3];
    split(importer, at, gather(importer, at, at->inputs[3], direction), 0, 2, halves);
    if (cell->kind != &gru || !cell->linear_before_reset)
        return import_emit2(importer, at, OP_Add, sum,
                            import_emit2(importer, at, OP_Add, halves[0], halves[1]));
    for (uint32_t i = 0; i < 2; i++)
        split(importer, at, halves[i], 0, 3, gates[i]);
    for (uint32_t i = 0; i < 2; i++)
        gates[0][i] = import_emit2(importer, at, OP_Add, gates[0][i], gates[1][i]);
    cell->reset_bias = gates[1][2];
    return import_emit2(importer, at, OP_Add, sum, concat(importer, at, gates[0], 3, 0));
}

static void take_recurrence(struct cell *cell, uint32_t direction)
{
    struct importer *importer = cell->importer;
    struct import_node *at = cell->outer;
    const value_id weights = gather(importer, at, at->inputs[2], direction);
    if (cell->quantised) {
        cell->joined = weights;
        cell->scale = gather(importer, at, at->inputs[INPUT_R_SCALE], direction);
        cell->zero = gather(importer, at, at->inputs[INPUT_R_ZERO], direction);
    } else if (cell->kind != &gru) {
        cell->joined = transpose(importer, at, weights, 2);
    } else {
        split(importer, at, weights, 0, 3, cell->recurrence);
        for (uint32_t i = 0; i < 3; i++)
            cell->recurrence[i] = transpose(importer, at, cell->recurrence[i], 2);
    }
    if (cell->kind == &lstm && input_of(at, INPUT_P))
        split(importer, at, gather(importer, at, at->inputs[INPUT_P], direction), 0, 3, cell->peepholes);
}

/* The first state, [batch, hidden]: the given one, which the Reshape holds to the sequence's batch, or zeros.
 */
static value_id first_state(struct cell *cell, uint32_t direction, value_id given, value_id sequence)
{
    struct importer *importer = cell->importer;
    struct import_node *at = cell->outer;
    value_id sizes[2];
    const struct attribute batch[2] = {attribute_int(ATTR_start, 1), attribute_int(ATTR_end, 2)};
    const int64_t axis = cell->quantised ? 1 : 2;
    const struct attribute hidden[2] = {attribute_int(ATTR_start, axis), attribute_int(ATTR_end, axis + 1)};
    sizes[0] = import_emit(importer, at, OP_Shape, 1, &sequence, 2, batch);
    sizes[1] = import_emit(importer, at, OP_Shape, 1, &at->inputs[2], 2, hidden);
    const value_id shape = concat(importer, at, sizes, 2, 0);
    if (given)
        return import_emit2(importer, at, OP_Reshape, gather(importer, at, given, direction), shape);
    return import_emit2(importer, at, OP_ConstantOfShape, shape, number(cell, 0));
}

/* The steps' numbers, to compare with the lengths. */
static value_id step_numbers(struct importer *importer, struct import_node *at, value_id sequence)
{
    const value_id shape = import_emit1(importer, at, OP_Shape, sequence);
    const value_id range[3] = {import_int_scalar(importer, 0), gather(importer, at, shape, 0),
                               import_int_scalar(importer, 1)};
    return import_emit(importer, at, OP_Range, 3, range, 0, NULL);
}

/* Beyond the end of its sequence a step keeps the states and gives zeros. `lengths`: [B, 1]. */
static value_id mask(struct cell *cell, value_id lengths, value_id step)
{
    struct importer *importer = cell->importer;
    const value_id inside = import_emit2(importer, &cell->inner, OP_Less, step, lengths);
    value_id kept[MOST_STATES + 1];
    for (uint32_t i = 0; i <= cell->kind->states; i++) {
        const bool output = i == cell->kind->states;
        const value_id where[3] = {inside, cell->next[output ? 0 : i],
                                   output ? number(cell, 0) : cell->states[i]};
        kept[i] = import_emit(importer, &cell->inner, OP_Where, 3, where, 0, NULL);
    }
    memcpy(cell->next, kept, cell->kind->states * sizeof *kept);
    return kept[cell->kind->states];
}

/* Results: the final states, then every step's output. */
static void scan_direction(struct cell *cell, uint32_t direction, bool backward, value_id sequence,
                           value_id lengths, const value_id *initial, value_id *results)
{
    struct importer *importer = cell->importer;
    struct graph *graph = importer->graph;
    struct import_node *at = cell->outer;
    const uint32_t states = cell->kind->states, scanned = lengths ? 2 : 1;
    value_id inputs[MOST_STATES + 2];
    for (uint32_t i = 0; i < states; i++)
        inputs[i] = first_state(cell, direction, initial[i], sequence);
    inputs[states] = multiply_inputs(cell, direction, sequence);
    if (lengths)
        inputs[states + 1] = step_numbers(importer, at, sequence);
    take_recurrence(cell, direction);
    const int64_t directions[2] = {backward, backward};
    const int64_t *kept = arena_copy(graph->arena, directions, sizeof directions);
    const struct attribute attributes[3] = {attribute_int(ATTR_num_scan_inputs, scanned),
                                            attribute_ints(ATTR_scan_input_directions, scanned, kept),
                                            attribute_ints(ATTR_scan_output_directions, 1, kept)};
    const node_id made = graph_add_node(graph, at->scope->region, 0, OP_Scan, states + scanned, inputs,
                                        states + 1, 3, attributes, at->location);
    struct import_scope scope = *at->scope;
    scope.region = graph_add_region(graph, made);
    cell->inner = *at;
    cell->inner.scope = &scope;
    for (uint32_t i = 0; i < states; i++)
        cell->states[i] = graph_add_argument(graph, scope.region, cell->dtype);
    cell->input = graph_add_argument(graph, scope.region, cell->dtype);
    const value_id step = lengths ? graph_add_argument(graph, scope.region, DTYPE_I64) : 0;
    cell->kind->step(cell);
    const value_id output = lengths ? mask(cell, lengths, step) : cell->next[0];
    for (uint32_t i = 0; i < states; i++)
        vec_push(graph->arena, &graph->regions.items[scope.region].results, cell->next[i]);
    vec_push(graph->arena, &graph->regions.items[scope.region].results, output);
    for (uint32_t i = 0; i <= states; i++) {
        results[i] = graph_node(graph, made)->outputs[i];
        graph_value(graph, results[i])->type.dtype = cell->dtype;
    }
}

/* ---- the operator
 * --------------------------------------------------------------------------------------------------- */

static bool flag(const struct import_node *node, const char *name)
{
    const Onnx__AttributeProto *given = import_given(node, name);
    return given && given->i != 0;
}

/* Results of all directions joined: outputs along axis 1 of [time, direction, batch, hidden], states along
 * axis 0. */
static void join(struct importer *importer, struct import_node *node, uint32_t directions,
                 value_id results[2][MOST_STATES + 1], uint32_t states, bool batch_first)
{
    for (uint32_t i = 0; i <= states && i < node->proto->n_output; i++) {
        const uint32_t result = i == 0 ? states : i - 1;
        value_id parts[2] = {0, 0};
        for (uint32_t d = 0; d < directions; d++)
            parts[d] = unsqueeze(importer, node, results[d][result], i == 0);
        value_id joined = concat(importer, node, parts, directions, i == 0);
        if (batch_first && i == 0) {
            static const int64_t order[4] = {2, 0, 1, 3};
            const struct attribute perm =
                attribute_ints(ATTR_perm, 4, arena_copy(importer->graph->arena, order, sizeof order));
            joined = import_emit(importer, node, OP_Transpose, 1, &joined, 1, &perm);
        } else if (batch_first) {
            joined = transpose(importer, node, joined, 3);
        }
        node->outputs[i] = joined;
    }
}

static bool import_recurrent(struct importer *importer, struct import_node *node, const struct kind *kind,
                             bool quantised)
{
    struct chosen activations[2 * MOST_ACTIVATIONS];
    value_id results[2][MOST_STATES + 1] = {{0}}, initial[MOST_STATES] = {0};
    uint32_t directions;
    bool backward;
    const bool batch_first = flag(node, "layout");
    const Onnx__AttributeProto *clip = import_given(node, "clip"),
                               *hidden = import_given(node, "hidden_size");
    const struct tensor_type *recurrence = &graph_value(importer->graph, node->inputs[2])->type;
    int64_t size;
    if (!find_directions(importer, node, &directions, &backward) ||
        !find_activations(importer, node, kind, directions, activations))
        return false;
    if (hidden && recurrence->rank == 3 &&
        dim_is_constant(&importer->graph->dims, recurrence->dims[quantised ? 1 : 2], &size) &&
        size != hidden->i)
        return import_fail(importer, DIAG_wrong_attribute, node->location,
                           "hidden_size is %lld, the recurrence weights have %lld", (long long)hidden->i,
                           (long long)size);
    value_id sequence = node->inputs[0], lengths = input_of(node, INPUT_LENGTHS);
    for (uint32_t i = 0; i < kind->states; i++)
        initial[i] = input_of(node, INPUT_H + i);
    if (batch_first) {
        sequence = transpose(importer, node, sequence, 3);
        for (uint32_t i = 0; i < kind->states; i++)
            initial[i] = initial[i] ? transpose(importer, node, initial[i], 3) : 0;
    }
    if (lengths) {
        const struct attribute to = attribute_dtype(ATTR_to, DTYPE_I64);
        lengths = unsqueeze(importer, node, import_emit(importer, node, OP_Cast, 1, &lengths, 1, &to), 1);
    }
    for (uint32_t d = 0; d < directions; d++) {
        struct cell cell = {.importer = importer,
                            .kind = kind,
                            .outer = node,
                            .dtype = import_dtype(importer, node->inputs[0]),
                            .quantised = quantised,
                            .clips = clip != NULL,
                            .clip = clip ? clip->f : 0,
                            .forgets_input = flag(node, "input_forget"),
                            .linear_before_reset = flag(node, "linear_before_reset")};
        memcpy(cell.activations, activations + d * kind->activations,
               kind->activations * sizeof *activations);
        scan_direction(&cell, d, backward || d == 1, sequence, lengths, initial, results[d]);
    }
    join(importer, node, directions, results, kind->states, batch_first);
    return true;
}

bool import_rnn(struct importer *importer, struct import_node *node)
{
    return import_recurrent(importer, node, &rnn, false);
}

bool import_gru(struct importer *importer, struct import_node *node)
{
    return import_recurrent(importer, node, &gru, false);
}

bool import_lstm(struct importer *importer, struct import_node *node)
{
    return import_recurrent(importer, node, &lstm, false);
}

/* com.microsoft: the weights of 8 bits are [direction, inputs, gates * hidden]; X and the state are quantised
 * as DynamicQuantizeLinear does, whole. */
bool import_dynamic_quantize_lstm(struct importer *importer, struct import_node *node)
{
    for (uint32_t i = INPUT_W_SCALE; i <= INPUT_R_ZERO; i++)
        if (!input_of(node, i))
            return import_fail(importer, DIAG_wrong_arity, node->location, "input %u must be given", i);
    return import_recurrent(importer, node, &lstm, true);
}

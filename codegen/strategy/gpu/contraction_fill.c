/* Filling a contraction's shared tiles, and repacking a constant factor for that: see contraction.h. */
#include <string.h>

#include "codegen/strategy/gpu/contraction_build.h"

static const char *const tile_labels[] = {"tile_a", "tile_b"}, *const next_labels[] = {"next_a", "next_b"},
                         *const own_labels[] = {"row", "column"}, *const at_labels[] = {"a_at", "b_at"};

static void split_position(struct builder *b, struct block *at, expr position, const uint32_t *axes,
                           uint32_t count, const char *label, expr *values)
{
    gpu_split_position(&b->k, at, b->plan->nest, position, axes, count, label, values);
}

expr contraction_depth_step(struct builder *b)
{
    return named(b, b->config[CONFIG_DEPTH], "tile_depth");
}

/* ---- where a thread's loads lie
 * ------------------------------------------------------------------------------------- */

/* A position that exists: the last `width` ones where this lies beyond the end. */
static expr clamped(struct builder *b, expr position, dim extent, int64_t tile, int64_t width)
{
    if (dim_divisible(b->pool->dims, extent, tile))
        return position;
    return binary(b, EXPR_MIN, position,
                  binary(b, EXPR_SUB, kernel_dim(b->k.kernel, extent), number(b, width)));
}

/* Flat index of the operand with the depth's axes at zero. */
static expr flat_base(struct builder *b, const struct fill *fill, const expr *own)
{
    const struct expr_node *load = expr_at(b->plan->body->pool, fill->operand->load);
    expr axes[MAX_AXES], indices[MAX_RANK];
    memcpy(axes, b->axes, sizeof axes);
    for (uint32_t i = 0; i < fill->operand->count; i++)
        axes[fill->operand->axes[i]] = own[fill->operand->axes[i]];
    for (uint32_t i = 0; i < b->plan->depth_count; i++)
        axes[b->plan->depth[i]] = number(b, 0);
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    for (uint32_t i = 0; i < load->count; i++)
        indices[i] = lower_expr(&lowering, load->arguments[i]);
    return lower_index(&lowering, fill->operand->buffer, indices);
}

/* Values of the operand's own axes in each round (one for all where rounds go along the depth). */
static void place_rounds(struct builder *b, struct block *top, struct fill *fill)
{
    const struct operand *operand = fill->operand;
    const expr first = fill->side == SIDE_ROWS ? b->first_row : b->first_column;
    const int64_t width = operand->along_depth ? 1 : operand->vector;
    for (int64_t round = 0; round < (operand->along_depth ? fill->rounds : 1); round++) {
        expr position = add(b, first, add(b, fill->at, number(b, round * fill->lines)));
        if (operand->packed) {
            fill->position = build_declare(top, own_labels[fill->side],
                                           clamped(b, position, contraction_packed_pitch(b->plan, operand),
                                                   fill->length, operand->vector));
            return;
        }
        position = build_declare(top, own_labels[fill->side],
                                 clamped(b, position, operand->extent, fill->length, width));
        split_position(b, top, position, operand->axes, operand->count, own_labels[fill->side],
                       fill->own[round]);
        if (operand->flat_depth)
            fill->base[round] = build_declare(top, at_labels[fill->side],
                                              add(b, flat_base(b, fill, fill->own[round]), fill->depth_at));
    }
}

static void add_tile(struct builder *b, struct fill *fill)
{
    const int64_t lines = fill->operand->along_depth ? fill->length : b->config[CONFIG_DEPTH];
    fill->stage = lines * fill->pitch;
    fill->tile = kernel_memory_add(
        b->k.kernel, &(struct kernel_memory){
                         .space = MEMORY_SHARED,
                         .dtype = b->plan->dtype,
                         .lanes = 1,
                         .count = b->config[CONFIG_STAGES] * fill->stage,
                         .label = tile_labels[fill->side],
                         .shape = arena_printf(b->context->arena, "stages x %s x pitch: %d x %d x %d",
                                               fill->operand->along_depth ? own_labels[fill->side] : "depth",
                                               (int)b->config[CONFIG_STAGES], (int)lines, (int)fill->pitch),
                         .alignment = 16});
    if (!b->plan->asynchronous)
        fill->next = gpu_registers(&b->k, b->plan->dtype, fill->rounds * fill->operand->vector,
                                   next_labels[fill->side]);
}

void contraction_fill_begin(struct builder *b, struct block *top, enum side side)
{
    static const char *const across_labels[] = {"loads_a", "loads_b"},
                             *const fill_labels[] = {"fill_a", "fill_b"},
                             *const depth_labels[] = {"depth_a", "depth_b"};
    struct fill *fill = &b->fills[side];
    const struct operand *operand = fill->operand = &b->plan->operands[side];
    const int64_t vector = operand->vector, depth = b->config[CONFIG_DEPTH];
    fill->side = side;
    fill->length = b->config[side == SIDE_ROWS ? CONFIG_ROWS : CONFIG_COLUMNS];
    const int64_t line = operand->along_depth ? depth : fill->length,
                  lines = operand->along_depth ? fill->length : depth;
    /* Neighbouring columns are read together along the depth: a vector between lines keeps them in different
     * banks. */
    fill->pitch = line + (operand->along_depth && side == SIDE_COLUMNS ? (int64_t)b->plan->lanes : 0);
    fill->across = line / vector;
    fill->idle = fill->across * lines < b->threads;
    fill->lines = fill->idle ? lines : b->threads / fill->across;
    fill->rounds = lines / fill->lines;
    const expr across = named(b, fill->across, across_labels[side]);
    const expr fast = scaled(b, binary(b, EXPR_INDEX_MOD, b->thread, across), vector);
    const expr slow = binary(b, EXPR_INDEX_DIV, b->thread, across);
    fill->at = build_declare(top, fill_labels[side], operand->along_depth ? slow : fast);
    fill->depth_at = build_declare(top, depth_labels[side], operand->along_depth ? fast : slow);
    place_rounds(b, top, fill);
    add_tile(b, fill);
}

expr contraction_tile_index(struct builder *b, const struct fill *fill, expr stage, expr depth, expr own)
{
    const expr pitch = named(b, fill->pitch, fill->side == SIDE_ROWS ? "pitch_a" : "pitch_b");
    const expr base = times(b, stage, named(b, fill->stage, fill->side == SIDE_ROWS ? "stage_a" : "stage_b"));
    const expr place = fill->operand->along_depth ? add(b, times(b, own, pitch), depth)
                                                  : add(b, times(b, depth, pitch), own);
    return add(b, base, place);
}

/* ---- one step's elements
 * -------------------------------------------------------------------------------------------- */

/* What all rounds of a step share. */
struct step {
    expr depth0, stage;
    bool tails; /* the last step may pass the end of the depth */
    expr tap_axes[MAX_AXES];
    expr first;        /* taps: first channel of the step */
    expr inside, base; /* taps: bounds test, and index of round 0; packed: index of round 0 */
};

static expr depth_in_range(struct builder *b, const struct step *step, expr depth)
{
    return step->tails
               ? binary(b, EXPR_LESS, depth, kernel_size(b->k.kernel, b->plan->depth_extent, "depth_end"))
               : expr_int(b->pool, DTYPE_BOOL, 1);
}

static void begin_taps(struct builder *b, struct block *at, struct step *step)
{
    const struct contraction_plan *plan = b->plan;
    const expr channels = named(b, plan->channels, "channels");
    const expr tap = build_declare(at, "tap", binary(b, EXPR_INDEX_DIV, step->depth0, channels));
    step->first = build_declare(at, "channel", binary(b, EXPR_INDEX_MOD, step->depth0, channels));
    split_position(b, at, tap, plan->depth, plan->taps, "tap", step->tap_axes);
}

/* The bounds of the window at this tap, and the index at the thread's first channel. */
static void begin_window(struct builder *b, struct block *at, const struct fill *fill, struct step *step)
{
    const struct contraction_plan *plan = b->plan;
    expr axes[MAX_AXES];
    memcpy(axes, b->axes, sizeof axes);
    for (uint32_t i = 0; i < fill->operand->count; i++)
        axes[fill->operand->axes[i]] = fill->own[0][fill->operand->axes[i]];
    for (uint32_t i = 0; i < plan->taps; i++)
        axes[plan->depth[i]] = step->tap_axes[plan->depth[i]];
    /* A step never leaves the channels: the test of their range is not needed. */
    axes[plan->depth[plan->taps]] =
        gpu_declare_within(&b->k, at, "channel", add(b, step->first, fill->depth_at),
                           dim_constant(b->pool->dims, plan->channels));
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    const struct expr_node element = *expr_at(b->pool, lower_expr(&lowering, fill->operand->load));
    const bool guarded = element.op == EXPR_ELEMENT_OR;
    step->inside =
        guarded ? build_declare(at, "inside", element.arguments[0]) : expr_int(b->pool, DTYPE_BOOL, 1);
    step->base = build_declare(at, at_labels[fill->side], element.arguments[guarded]);
}

/* Elements between neighbouring channels of the window's load. */
static expr channel_stride(struct builder *b, const struct fill *fill)
{
    const struct contraction_plan *plan = b->plan;
    const struct tensor_type *type = &plan->body->buffers.items[fill->operand->buffer].type;
    const struct expr_node *load = expr_at(plan->body->pool, fill->operand->load);
    dim stride = dim_constant(b->pool->dims, 1);
    int index = type->rank - 1;
    for (; index > 0; index--) {
        const struct expr_node *node = expr_at(plan->body->pool, load->arguments[index]);
        if (node->op == EXPR_AXIS && node->value == plan->depth[plan->taps])
            break;
        stride = dim_mul(b->pool->dims, stride, type->dims[index]);
    }
    const char *label = b->k.kernel->memories.items[fill->memory].label;
    return kernel_size(b->k.kernel, stride, arena_printf(b->context->arena, "%s_stride_%d", label, index));
}

static struct step begin_step(struct builder *b, struct block *at, const struct fill *fill, expr depth0,
                              expr stage)
{
    const struct contraction_plan *plan = b->plan;
    struct step step = {.depth0 = depth0, .stage = stage};
    /* Parts of a split depth are whole steps. */
    step.tails = !dim_divisible(b->pool->dims, plan->depth_extent, b->config[CONFIG_DEPTH]);
    if (fill->operand->packed) {
        const expr pitch = kernel_size(b->k.kernel, contraction_packed_pitch(plan, fill->operand),
                                       fill->side == SIDE_ROWS ? "packed_rows" : "packed_columns");
        step.base = build_declare(at, at_labels[fill->side],
                                  add(b, times(b, add(b, depth0, fill->depth_at), pitch), fill->position));
    } else if (plan->taps) {
        begin_taps(b, at, &step);
        begin_window(b, at, fill, &step);
    }
    return step;
}

/* The factor's load of a round where it is in range, zero elsewhere; `local`: depth within the tile. */
static expr element_of(struct builder *b, struct block *at, const struct fill *fill, const struct step *step,
                       expr round, int64_t number_of_round, expr depth)
{
    const struct contraction_plan *plan = b->plan;
    const struct operand *operand = fill->operand;
    const uint16_t lanes = (uint16_t)operand->vector;
    expr lane_zero = reduce_neutral(b->pool, REDUCE_SUM, plan->dtype),
         lane_zeros[4] = {lane_zero, lane_zero, lane_zero, lane_zero};
    const expr zero = kernel_pack(b->k.kernel, lane_zeros, lanes);
    expr inside = depth_in_range(b, step, depth), index;
    if (operand->packed) {
        const expr pitch = kernel_size(b->k.kernel, contraction_packed_pitch(plan, operand),
                                       fill->side == SIDE_ROWS ? "packed_rows" : "packed_columns");
        index = add(b, step->base, times(b, scaled(b, round, fill->lines), pitch));
    } else if (plan->taps) {
        index = add(b, step->base, times(b, scaled(b, round, fill->lines), channel_stride(b, fill)));
        inside = step->inside;
    } else if (operand->flat_depth) {
        index = add(b, fill->base[number_of_round], step->depth0);
    } else {
        const struct expr_node *load = expr_at(plan->body->pool, operand->load);
        expr axes[MAX_AXES];
        memcpy(axes, b->axes, sizeof axes);
        for (uint32_t i = 0; i < operand->count; i++)
            axes[operand->axes[i]] = fill->own[number_of_round][operand->axes[i]];
        split_position(b, at, depth, plan->depth, plan->depth_count, "k", axes);
        struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
        if (load->op == EXPR_LOAD_OR) {
            const struct expr_node element = *expr_at(b->pool, lower_expr(&lowering, operand->load));
            const bool guarded = element.op == EXPR_ELEMENT_OR;
            index = element.arguments[guarded];
            if (guarded)
                inside = binary(b, EXPR_AND, inside, element.arguments[0]);
        } else {
            expr indices[MAX_RANK];
            for (uint32_t i = 0; i < load->count; i++)
                indices[i] = lower_expr(&lowering, load->arguments[i]);
            index = lower_index(&lowering, operand->buffer, indices);
        }
    }
    b->k.kernel->memories.items[fill->memory].read = true;
    return kernel_element_or(b->k.kernel, fill->memory, inside, index, zero, lanes);
}

static expr round_depth(struct builder *b, const struct fill *fill, expr round)
{
    return fill->operand->along_depth ? fill->depth_at
                                      : add(b, fill->depth_at, scaled(b, round, fill->lines));
}

static expr round_own(struct builder *b, const struct fill *fill, expr round)
{
    return fill->operand->along_depth ? add(b, fill->at, scaled(b, round, fill->lines)) : fill->at;
}

/* The threads that have loads at all. */
static struct block active(struct builder *b, struct block *at, const struct fill *fill)
{
    struct block then = *at;
    if (fill->idle)
        build_if(at, binary(b, EXPR_LESS, b->thread, number(b, fill->across * fill->lines)), &then, NULL);
    return then;
}

static void copy_round(struct builder *b, struct block *at, const struct fill *fill, const struct step *step,
                       expr round, int64_t number_of_round)
{
    const expr local = round_depth(b, fill, round);
    const expr depth = step->tails || (!fill->operand->packed && !b->plan->taps && !fill->operand->flat_depth)
                           ? build_declare(at, "k", add(b, step->depth0, local))
                           : local;
    const expr value = element_of(b, at, fill, step, round, number_of_round, depth);
    build_store_async(at, fill->tile,
                      contraction_tile_index(b, fill, step->stage, local, round_own(b, fill, round)), value);
}

void contraction_fill_copy(struct builder *b, struct block *at, struct fill *fill, expr depth0, expr stage)
{
    struct block then = active(b, at, fill), body;
    const struct step step = begin_step(b, &then, fill, depth0, stage);
    expr round;
    if (fill->operand->along_depth || fill->rounds == 1) {
        for (int64_t i = 0; i < fill->rounds; i++)
            copy_round(b, &then, fill, &step, number(b, i), i);
        return;
    }
    build_for(&then, "round", number(b, 0), number(b, fill->rounds), 0, LOOP_UNROLL, &body, &round);
    copy_round(b, &body, fill, &step, round, 0);
}

/* ---- by way of registers
 * -------------------------------------------------------------------------------------------- */

static expr loaded_lane(void *user, uint32_t buffer, uint32_t rank, const expr *indices)
{
    struct builder *b = user;
    (void)buffer;
    (void)rank;
    (void)indices;
    return kernel_lane(b->k.kernel, b->loaded, b->loaded_lane);
}

/* The factor at the axes; `lane` of the loaded vector where there is one. */
static expr factor_value(struct builder *b, const struct fill *fill, const expr *axes, expr vector,
                         uint32_t lane)
{
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    if (!vector)
        return lower_expr(&lowering, fill->operand->factor);
    uint32_t *memories =
        arena_copy(b->context->arena, b->k.memories, b->plan->body->buffers.count * sizeof *memories);
    memories[fill->operand->buffer] = UINT32_MAX;
    lowering.memories = memories;
    lowering.value = loaded_lane;
    lowering.user = b;
    b->loaded = vector;
    b->loaded_lane = lane;
    return lower_expr(&lowering, fill->operand->factor);
}

static expr load_vector(struct builder *b, struct block *at, const struct fill *fill, const expr *axes)
{
    const struct expr_node *load = expr_at(b->plan->body->pool, fill->operand->load);
    struct lowering lowering = gpu_lowering(&b->k, axes, NULL);
    expr indices[MAX_RANK];
    for (uint32_t i = 0; i < load->count; i++)
        indices[i] = lower_expr(&lowering, load->arguments[i]);
    b->k.kernel->memories.items[fill->memory].read = true;
    return build_declare(at, "vector",
                         kernel_element(b->k.kernel, fill->memory,
                                        lower_index(&lowering, fill->operand->buffer, indices),
                                        (uint16_t)fill->operand->vector));
}

static void load_packed(struct builder *b, struct block *at, const struct fill *fill, const struct step *step,
                        expr round)
{
    const expr depth = add(b, step->depth0, round_depth(b, fill, round));
    build_store(at, fill->next, scaled(b, round, fill->operand->vector),
                element_of(b, at, fill, step, round, 0, depth));
}

/* A factor is computed at a depth that exists, then thrown away where this one does not. */
static void load_round(struct builder *b, struct block *at, const struct fill *fill, const struct step *step,
                       expr round, int64_t number_of_round)
{
    const struct contraction_plan *plan = b->plan;
    const struct operand *operand = fill->operand;
    if (operand->packed) {
        load_packed(b, at, fill, step, round);
        return;
    }
    expr axes[MAX_AXES];
    memcpy(axes, b->axes, sizeof axes);
    for (uint32_t i = 0; i < operand->count; i++)
        axes[operand->axes[i]] = fill->own[number_of_round][operand->axes[i]];
    const int64_t vector = operand->vector;
    const expr depth = build_declare(at, "k", add(b, step->depth0, round_depth(b, fill, round)));
    const expr extent = kernel_size(b->k.kernel, plan->depth_extent, "depth_end");
    const expr last = binary(b, EXPR_SUB, extent, number(b, operand->along_depth ? vector : 1));
    const expr place = step->tails ? build_declare(at, "place", binary(b, EXPR_MIN, depth, last)) : depth;
    split_position(b, at, place, plan->depth, plan->depth_count, "k", axes);
    const uint32_t fast =
        operand->along_depth ? plan->depth[plan->depth_count - 1] : operand->axes[operand->count - 1];
    const expr first = axes[fast], loaded = vector > 1 ? load_vector(b, at, fill, axes) : 0;
    const expr zero = reduce_neutral(b->pool, REDUCE_SUM, plan->dtype);
    for (int64_t lane = 0; lane < vector; lane++) {
        axes[fast] = add(b, first, number(b, lane));
        expr value = factor_value(b, fill, axes, loaded, (uint32_t)lane);
        if (step->tails)
            value = expr_select(b->pool, binary(b, EXPR_LESS, depth, extent), value, zero);
        build_store(at, fill->next, add(b, scaled(b, round, vector), number(b, lane)), value);
    }
}

void contraction_fill_load(struct builder *b, struct block *at, struct fill *fill, expr depth0)
{
    struct block then = active(b, at, fill), body;
    const struct step step = fill->operand->packed
                                 ? begin_step(b, &then, fill, depth0, 0)
                                 : (struct step){.depth0 = depth0,
                                                 .tails = !dim_divisible(b->pool->dims, b->plan->depth_extent,
                                                                         b->config[CONFIG_DEPTH])};
    expr round;
    if (fill->operand->along_depth || fill->rounds == 1) {
        for (int64_t i = 0; i < fill->rounds; i++)
            load_round(b, &then, fill, &step, number(b, i), i);
        return;
    }
    build_for(&then, "round", number(b, 0), number(b, fill->rounds), 0, LOOP_UNROLL, &body, &round);
    load_round(b, &body, fill, &step, round, 0);
}

void contraction_fill_store(struct builder *b, struct block *at, struct fill *fill, expr stage)
{
    struct block then = active(b, at, fill), body;
    const uint16_t vector = (uint16_t)fill->operand->vector;
    expr round = number(b, 0);
    body = then;
    if (fill->rounds > 1)
        build_for(&then, "round", number(b, 0), number(b, fill->rounds), 0, LOOP_UNROLL, &body, &round);
    build_store(
        &body, fill->tile,
        contraction_tile_index(b, fill, stage, round_depth(b, fill, round), round_own(b, fill, round)),
        kernel_element(b->k.kernel, fill->next, scaled(b, round, vector), vector));
}

/* ---- repacking
 * ------------------------------------------------------------------------------------------------------ */

dim contraction_packed_pitch(const struct contraction_plan *plan, const struct operand *operand)
{
    struct dims *dims = plan->body->pool->dims;
    const dim lanes = dim_constant(dims, 4);
    return dim_mul(dims, dim_ceil_div(dims, operand->extent, lanes), lanes);
}

/* The value of an axis at a flat position over axes[], the last one fastest; the first one has no upper end.
 */
static void digits(struct exprs *pool, const struct nest *nest, expr position, const uint32_t *axes,
                   uint32_t count, expr *values)
{
    for (uint32_t i = count; i-- > 0;) {
        const expr extent = expr_dim(pool, nest->extents[axes[i]]);
        values[axes[i]] = i ? expr_binary(pool, EXPR_INDEX_MOD, position, extent) : position;
        position = i ? expr_binary(pool, EXPR_INDEX_DIV, position, extent) : position;
    }
}

/* packed[depth][own] = source[...], zero in the padding. */
uint32_t contraction_pack(const struct strategy_context *context, const struct contraction_plan *plan,
                          const struct operand *operand, struct lowered_group *out)
{
    const struct exprs *from = plan->body->pool;
    const struct expr_node *load = expr_at(from, operand->load);
    const struct tensor_type *type = &plan->body->buffers.items[operand->buffer].type;
    struct exprs *pool = arena_new(context->arena, struct exprs);
    exprs_init(pool, context->arena, from->dims);
    struct derived derived = {.source = operand->buffer, .recipe = {.pool = pool}};
    struct definition *recipe = &derived.recipe;
    const dim extents[] = {plan->depth_extent, contraction_packed_pitch(plan, operand)};
    const uint32_t source = definition_buffer(recipe, BUFFER_INPUT, *type);
    const uint32_t packed =
        definition_buffer(recipe, BUFFER_OUTPUT, tensor_type_new(context->arena, type->dtype, 2, extents));
    struct nest *nest = definition_nest(recipe, 2, extents, 0, NULL);
    expr axes[MAX_AXES] = {0}, indices[MAX_RANK];
    digits(pool, plan->nest, nest_axis(recipe, nest, 0), plan->depth, plan->depth_count, axes);
    digits(pool, plan->nest, nest_axis(recipe, nest, 1), operand->axes, operand->count, axes);
    for (int i = 0; i < type->rank; i++) {
        const struct expr_node *index = expr_at(from, load->arguments[i]);
        indices[i] = index->op == EXPR_AXIS ? axes[index->value] : expr_index(pool, 0);
    }
    const expr zero = reduce_neutral(pool, REDUCE_SUM, type->dtype);
    nest_store(recipe, nest, packed, NULL,
               expr_load_or(pool, source, type->dtype, (uint32_t)type->rank, indices, zero));
    vec_push(context->arena, &out->derived, derived);
    return out->derived.count - 1;
}

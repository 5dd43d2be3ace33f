/* From the graph and its plans to the tables of runtime/bundle_format.h. The rows are built twice: the first
 * time only marks the dims that they use, then the marked ones become the bundle's dims in their order
 * (arguments stand before their users), and the second time the rows get the final numbers. */
#include <string.h>

#include "codegen/bundle_internal.h"
#include "ir/support/hash.h"

struct tables {
    struct bundle_writer *writer;
    struct arena *arena;
    struct dims *dims;
    bool final;          /* the second time */
    unsigned char *used; /* [dim]: the first time marks */
    uint32_t *numbers;   /* [dim]: in the bundle */
    uint32_t dim_limit;  /* length of the two */
    bool failed;

    VEC(char) strings;
    uint32_t *slots; /* hash table of offsets into strings; 0: empty */
    uint32_t slot_count, string_count;
    VEC(struct bundle_symbol) symbols;
    VEC(struct bundle_term) terms;
    VEC(struct bundle_dim) dim_rows;
    VEC(struct bundle_guard) guards;
    VEC(struct bundle_tensor) inputs;
    VEC(struct bundle_tensor) outputs;
    VEC(struct bundle_constant) constants;
    VEC(struct bundle_weight_row) weights;
    VEC(struct bundle_plan) plans;
    VEC(struct bundle_buffer) buffers;
    VEC(struct bundle_kernel) kernels;
    VEC(struct bundle_launch) launches;
    VEC(struct bundle_control) controls;
    VEC(struct bundle_tensor_map) maps;
    VEC(struct bundle_copy) copies;
    VEC(struct bundle_image) images;
    VEC(uint32_t) indices;
    VEC(struct bundle_fact_row) facts;
    struct text code;
};

/* ---- strings and dims
 * ---------------------------------------------------------------------------------------------- */

static void grow_slots(struct tables *t)
{
    uint32_t count = t->slot_count ? 2 * t->slot_count : 256;
    uint32_t *slots = arena_new_array(t->arena, uint32_t, count);
    for (uint32_t i = 0; i < t->slot_count; i++) {
        if (!t->slots[i])
            continue;
        const char *text = t->strings.items + t->slots[i];
        uint32_t at = (uint32_t)hash_bytes(0, text, strlen(text)) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = t->slots[i];
    }
    t->slots = slots;
    t->slot_count = count;
}

/* Equal strings are one; "" is 0. */
static bundle_string string_of(struct tables *t, const char *text)
{
    if (!text || !*text)
        return 0;
    if (2 * t->string_count >= t->slot_count)
        grow_slots(t);
    size_t length = strlen(text);
    uint32_t at = (uint32_t)hash_bytes(0, text, length) & (t->slot_count - 1);
    for (; t->slots[at]; at = (at + 1) & (t->slot_count - 1))
        if (strcmp(t->strings.items + t->slots[at], text) == 0)
            return t->slots[at];
    uint32_t offset = t->strings.count;
    for (size_t i = 0; i <= length; i++)
        vec_push(t->arena, &t->strings, text[i]);
    t->slots[at] = offset;
    t->string_count++;
    return offset;
}

static uint32_t dim_as_it_is(struct tables *t, dim d)
{
    if (d == DIM_NONE) {
        t->failed = true;
        return 0;
    }
    if (!t->final) {
        if (d >= t->dim_limit) {
            uint32_t limit = t->dims->nodes.count + 64;
            unsigned char *used = arena_new_array(t->arena, unsigned char, limit);
            if (t->dim_limit)
                memcpy(used, t->used, t->dim_limit);
            t->used = used;
            t->dim_limit = limit;
        }
        t->used[d] = 1;
        return 0;
    }
    if (d >= t->dim_limit || !t->used[d]) {
        t->failed = true;
        return 0;
    }
    return t->numbers[d];
}

/* With merged symbols replaced. */
static uint32_t dim_of(struct tables *t, dim d)
{
    return dim_as_it_is(t, d == DIM_NONE ? DIM_NONE : dim_current(t->dims, d));
}

static uint32_t constant_dim(struct tables *t, int64_t value)
{
    return dim_as_it_is(t, dim_constant(t->dims, value));
}

static int64_t hint_of(struct tables *t, dim d)
{
    int64_t hint = d == DIM_NONE ? 0 : dim_hint(t->dims, d);
    return hint > 0 ? hint : 0;
}

/* Marks arguments of marked dims, numbers all and writes their rows. */
static void emit_dims(struct tables *t)
{
    static const uint32_t ops[] = {[DIM_CONSTANT] = BUNDLE_DIM_CONSTANT,
                                   [DIM_SYMBOL] = BUNDLE_DIM_SYMBOL,
                                   [DIM_SUM] = BUNDLE_DIM_SUM,
                                   [DIM_PRODUCT] = BUNDLE_DIM_PRODUCT,
                                   [DIM_FLOOR_DIV] = BUNDLE_DIM_FLOOR_DIV,
                                   [DIM_MOD] = BUNDLE_DIM_MOD,
                                   [DIM_MIN] = BUNDLE_DIM_MIN,
                                   [DIM_MAX] = BUNDLE_DIM_MAX};
    for (uint32_t d = t->dim_limit; d-- > 1;) {
        if (!t->used[d])
            continue;
        const struct dim_node *node = &t->dims->nodes.items[d];
        for (uint32_t i = 0; i < node->count; i++)
            t->used[node->arguments[i]] = 1;
    }
    t->numbers = arena_new_array(t->arena, uint32_t, (size_t)t->dim_limit + 1);
    for (uint32_t d = 1; d < t->dim_limit; d++) {
        if (!t->used[d])
            continue;
        const struct dim_node *node = &t->dims->nodes.items[d];
        struct bundle_dim row = {.op = ops[node->op],
                                 .first_term = t->terms.count,
                                 .term_count = node->count,
                                 .value = node->op <= DIM_SUM ? node->value : 0};
        for (uint32_t i = 0; i < node->count; i++)
            vec_push(t->arena, &t->terms,
                     ((struct bundle_term){.coefficient = node->op == DIM_SUM ? node->coefficients[i] : 1,
                                           .dim = t->numbers[node->arguments[i]]}));
        t->numbers[d] = t->dim_rows.count;
        vec_push(t->arena, &t->dim_rows, row);
    }
}

/* ---- rows of the model
 * --------------------------------------------------------------------------------------------- */

static void add_symbols(struct tables *t)
{
    static const uint32_t sources[] = {[SYMBOL_INPUT_AXIS] = BUNDLE_INPUT_AXIS,
                                       [SYMBOL_INPUT_VALUE] = BUNDLE_INPUT_VALUE,
                                       [SYMBOL_WORD] = BUNDLE_WORD,
                                       [SYMBOL_BOUND] = BUNDLE_BOUND};
    for (uint32_t i = 0; i < t->dims->symbols.count; i++) {
        const struct symbol symbol = t->dims->symbols.items[i];
        struct bundle_symbol row = {
            .name = string_of(t, symbol.name),
            .source = sources[symbol.source],
            .bound = symbol.source == SYMBOL_WORD ? dim_of(t, symbol.bound) : BUNDLE_NONE,
            .input = symbol.input,
            .axis = symbol.axis,
            .low = symbol.low,
            .high = symbol.high,
            .hint = symbol.replacement ? hint_of(t, symbol.replacement) : symbol.hint,
            .replacement = symbol.replacement ? dim_of(t, symbol.replacement) : BUNDLE_NONE};
        vec_push(t->arena, &t->symbols, row);
    }
}

/* "/layer/MatMul (MatMul #42)", merged nodes behind. */
static const char *location_text(struct tables *t, const struct location *location, bool names)
{
    struct text text;
    text_init(&text, t->arena);
    for (int more = 0; location && more < 16; location = location->also, more++) {
        text_put(&text, more ? ", " : "");
        if (names && location->name && *location->name)
            text_printf(&text, "%s (", location->name);
        text_printf(&text, "%s #%u", location->op_type ? location->op_type : "node", location->number);
        text_put(&text, names && location->name && *location->name ? ")" : "");
    }
    text_put(&text, location ? ", ..." : "");
    return text.data ? text.data : "";
}

/* The node stands in a branch that sizes choose: what holds only there has been guarded so. */
static bool runs_by_sizes(const struct graph *graph, const struct node *node)
{
    for (region_id region = node->region; region != GRAPH_BODY;) {
        const struct node *parent = graph_node(graph, graph->regions.items[region].parent);
        if (parent->op == OP_If && node_attribute(parent, ATTR_dims))
            return true;
        region = parent->region;
    }
    return false;
}

static void add_guards(struct tables *t)
{
    const struct graph *graph = t->writer->inputs->graph;
    for (uint32_t i = 0; i < t->dims->guards.count; i++) {
        const struct guard guard = t->dims->guards.items[i];
        if (guard.left == guard.right)
            continue;
        struct bundle_guard row = {.left = dim_as_it_is(t, guard.left),
                                   .right = dim_as_it_is(t, guard.right),
                                   .node = string_of(t, location_text(t, guard.location, true)),
                                   .kind = BUNDLE_GUARD_EQUAL};
        vec_push(t->arena, &t->guards, row);
    }
    /* Sizes that some dims could make negative. Each once. */
    unsigned char *seen = NULL;
    uint32_t limit = 0;
    for (uint32_t i = 1; i < graph->values.count; i++) {
        const struct value *value = graph_value(graph, i);
        const struct node *producer = value->kind == VALUE_RESULT ? graph_node(graph, value->producer) : NULL;
        if (!producer || producer->removed || runs_by_sizes(graph, producer))
            continue;
        for (int axis = 0; axis < value->type.rank; axis++) {
            int64_t low, high;
            dim d = value->type.dims[axis] ? dim_current(t->dims, value->type.dims[axis]) : DIM_NONE;
            if (d == DIM_NONE)
                continue;
            dim_range(t->dims, d, &low, &high);
            if (low >= 0 || (d < limit && seen[d]))
                continue;
            if (d >= limit) {
                unsigned char *grown = arena_new_array(t->arena, unsigned char, 2 * (size_t)d + 1);
                if (limit)
                    memcpy(grown, seen, limit);
                seen = grown;
                limit = 2 * d + 1;
            }
            seen[d] = 1;
            struct bundle_guard row = {.left = dim_of(t, d),
                                       .right = dim_of(t, d),
                                       .node = string_of(t, location_text(t, producer->location, true)),
                                       .kind = BUNDLE_GUARD_NOT_NEGATIVE};
            vec_push(t->arena, &t->guards, row);
        }
    }
}

static struct bundle_tensor tensor_row(struct tables *t, const char *name, const struct tensor_type *type)
{
    struct bundle_tensor row = {.name = string_of(t, name),
                                .dtype = type->dtype,
                                .rank = (uint32_t)type->rank,
                                .first_dim = t->indices.count,
                                .alias_input = BUNDLE_NONE};
    for (int i = 0; i < type->rank; i++)
        vec_push(t->arena, &t->indices, dim_of(t, type->dims[i]));
    return row;
}

static void add_tensors(struct tables *t)
{
    const struct graph *graph = t->writer->inputs->graph;
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const struct value *value = graph_value(graph, graph->inputs.items[i]);
        vec_push(t->arena, &t->inputs, tensor_row(t, value->name, &value->type));
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        const struct graph_output *output = &graph->outputs.items[i];
        vec_push(t->arena, &t->outputs,
                 tensor_row(t, output->name, &graph_value(graph, output->value)->type));
        for (uint32_t k = 0; k < graph->aliases.count; k++)
            if (graph->aliases.items[k].output == i)
                t->outputs.items[i].alias_input = graph->aliases.items[k].input;
    }
}

/* ---- rows of the plans
 * --------------------------------------------------------------------------------------------- */

/* The bundle's number of a plan's constant; equal ones are one. */
static uint32_t constant_of(struct tables *t, const struct plan_constant *constant)
{
    struct bundle_blob *blob = &t->writer->blob;
    struct text recipe;
    text_init(&recipe, t->arena);
    if (constant->recipe)
        definition_print(constant->recipe, &recipe);
    for (uint32_t i = 0; i < blob->weights.count; i++) {
        const struct bundle_weight *weight = &blob->weights.items[i];
        if (weight->constant.value == constant->value && !weight->recipe_text == !constant->recipe &&
            (!constant->recipe || strcmp(weight->recipe_text, recipe.data) == 0))
            return i;
    }
    struct bundle_weight weight = {.constant = *constant,
                                   .recipe_text = constant->recipe ? recipe.data : NULL,
                                   .offset = blob->weight_bytes};
    if (!dtype_bytes(constant->dtype, constant->elements, &weight.bytes) || weight.bytes > INT64_MAX / 4 ||
        blob->weight_bytes > INT64_MAX / 4) {
        t->failed = true;
        return 0;
    }
    blob->weight_bytes += (weight.bytes + BUNDLE_ALIGNMENT - 1) / BUNDLE_ALIGNMENT * BUNDLE_ALIGNMENT;
    vec_push(t->arena, &blob->weights, weight);
    return blob->weights.count - 1;
}

static void add_constants(struct tables *t)
{
    const struct graph *graph = t->writer->inputs->graph;
    for (uint32_t i = 0; i < t->writer->blob.weights.count; i++) {
        const struct bundle_weight *weight = &t->writer->blob.weights.items[i];
        struct bundle_constant row = {
            .name = string_of(t, graph_value(graph, weight->constant.value)->weight_name),
            .dtype = weight->constant.dtype,
            .repacked = weight->constant.recipe != NULL,
            .elements = weight->constant.elements,
            .offset = weight->offset,
            .bytes = weight->bytes};
        vec_push(t->arena, &t->constants, row);
    }
}

/* The init plan's weights: all initialisers, in its order. */
static void add_weights(struct tables *t, const struct plan *init)
{
    const struct graph *graph = t->writer->inputs->graph;
    for (uint32_t i = 0; i < init->weights.count; i++) {
        const struct value *value = graph_value(graph, init->weights.items[i]);
        struct bundle_weight_row row = {.name = string_of(t, value->weight_name),
                                        .dtype = value->type.dtype,
                                        .rank = (uint32_t)value->type.rank,
                                        .first_dim = t->indices.count,
                                        .frozen = string_of(t, value->frozen),
                                        .constant = BUNDLE_NONE};
        for (int axis = 0; axis < value->type.rank; axis++)
            vec_push(t->arena, &t->indices, dim_of(t, value->type.dims[axis]));
        for (uint32_t k = 0; k < init->copies.count; k++) {
            const struct plan_buffer *from = &init->buffers.items[init->copies.items[k].from];
            const struct plan_buffer *to = &init->buffers.items[init->copies.items[k].to];
            if (from->index == i)
                row.constant = constant_of(t, &init->constants.items[to->index]);
        }
        vec_push(t->arena, &t->weights, row);
    }
}

static void add_buffer(struct tables *t, const struct plan *plan, const struct plan_buffer *buffer)
{
    static const uint32_t kinds[] = {[PLAN_INPUT] = BUNDLE_INPUT,
                                     [PLAN_OUTPUT] = BUNDLE_OUTPUT,
                                     [PLAN_CONSTANT] = BUNDLE_CONSTANT,
                                     [PLAN_ARENA] = BUNDLE_ARENA,
                                     [PLAN_WEIGHT] = BUNDLE_WEIGHT};
    struct bundle_buffer row = {.kind = kinds[buffer->kind],
                                .index = buffer->index,
                                .dtype = buffer->dtype,
                                .elements = dim_of(t, buffer->elements),
                                .shares = BUNDLE_NONE};
    if (buffer->kind == PLAN_CONSTANT)
        row.index = constant_of(t, &plan->constants.items[buffer->index]);
    if (buffer->kind == PLAN_ARENA) {
        /* A buffer that no launch uses lives for one launch all the same. */
        bool idle = buffer->first > buffer->last;
        row.index = 0;
        row.first = idle ? 0 : buffer->first;
        row.last = idle ? 0 : buffer->last;
        uint32_t owner = buffer->shares;
        for (uint32_t hops = 0; owner != UINT32_MAX && hops < plan->buffers.count; hops++) {
            row.shares = owner;
            owner = plan->buffers.items[owner].shares;
        }
    }
    vec_push(t->arena, &t->buffers, row);
}

/* The pointer table's entry of a symbol: plans may have kernels in common. */
static uint32_t function_of(struct tables *t, const char *symbol)
{
    struct bundle_blob *blob = &t->writer->blob;
    for (uint32_t i = 0; i < blob->symbols.count; i++)
        if (strcmp(blob->symbols.items[i], symbol) == 0)
            return i;
    vec_push(t->arena, &blob->symbols, symbol);
    return blob->symbols.count - 1;
}

static void add_kernel(struct tables *t, const struct bundle_target *target, uint32_t index)
{
    const struct plan_kernel *plan_kernel = &target->plan->kernels.items[index];
    const struct kernel *kernel = plan_kernel->kernel;
    bool cuda = target->plan->machine->kind == TARGET_CUDA;
    const char *config =
        kernel->config && *kernel->config
            ? arena_printf(t->arena, "%s %s", kernel->strategy ? kernel->strategy : "", kernel->config)
            : kernel->strategy;
    struct bundle_kernel row = {.name = string_of(t, kernel->name),
                                .config = string_of(t, config),
                                .summary = string_of(t, kernel->summary),
                                .buffer_count = kernel_buffer_count(kernel),
                                .dim_count = plan_kernel->dim_count,
                                .index_bits = kernel->index_bits,
                                .scratch_bytes = kernel->scratch_bytes,
                                .hint_work = cuda ? 1 : hint_of(t, kernel->work),
                                .hint_bytes = hint_of(t, kernel->bytes),
                                .hint_operations = hint_of(t, kernel->operations)};
    memcpy(row.block, kernel->block, sizeof row.block);
    for (uint32_t i = 0; i < kernel->global_count && i < BUNDLE_MAX_KERNEL_BUFFERS; i++) {
        row.read_mask |= (uint64_t)kernel->memories.items[i].read << i;
        row.written_mask |= (uint64_t)kernel->memories.items[i].written << i;
    }
    for (uint32_t i = kernel->global_count; i < kernel_buffer_count(kernel) && i < BUNDLE_MAX_KERNEL_BUFFERS; i++)
        row.read_mask |= UINT64_C(1) << i;
    if (cuda) {
        uint64_t shared = cuda_dynamic_shared_bytes(kernel);
        row.shared_bytes = (uint32_t)shared;
        t->failed = t->failed || shared > UINT32_MAX;
    } else {
        row.function = function_of(t, target->symbols[index]);
    }
    vec_push(t->arena, &t->kernels, row);
}

static void add_tensor_map(struct tables *t, const struct kernel *kernel, const struct kernel_tensor_map *map)
{
    struct bundle_tensor_map row = {.buffer = map->buffer,
                                    .dtype = kernel->memories.items[map->buffer].dtype,
                                    .rank = map->rank,
                                    .swizzle = map->swizzle,
                                    .first_dim = t->indices.count};
    memcpy(row.box, map->box, sizeof row.box);
    for (uint32_t i = 0; i < map->rank; i++)
        vec_push(t->arena, &t->indices, dim_of(t, map->sizes[i]));
    for (uint32_t i = 1; i < map->rank; i++)
        vec_push(t->arena, &t->indices, dim_of(t, map->strides[i]));
    vec_push(t->arena, &t->maps, row);
}

static void add_launch(struct tables *t, const struct plan *plan, const struct plan_launch *launch)
{
    const struct plan_kernel *kernel = &plan->kernels.items[launch->kernel];
    struct bundle_launch row = {.kernel = launch->kernel,
                                .first_buffer = t->indices.count,
                                .nodes = string_of(t, location_text(t, launch->location, false))};
    for (uint32_t i = 0; i < kernel_buffer_count(kernel->kernel); i++)
        vec_push(t->arena, &t->indices, launch->buffers[i]);
    row.first_dim = t->indices.count;
    for (uint32_t i = 0; i < kernel->dim_count; i++)
        vec_push(t->arena, &t->indices, dim_of(t, launch->dims[i]));
    bool cuda = plan->machine->kind == TARGET_CUDA;
    for (int i = 0; i < 3; i++)
        row.grid[i] = cuda ? dim_of(t, launch->grid[i]) : 0;
    row.work = cuda ? 0 : launch->work ? dim_of(t, launch->work) : constant_dim(t, 1);
    row.condition = launch->condition ? dim_of(t, launch->condition) : BUNDLE_NONE;
    row.first_map = t->maps.count;
    row.map_count = launch->tensor_map_count;
    for (uint32_t i = 0; i < launch->tensor_map_count; i++)
        add_tensor_map(t, kernel->kernel, &launch->tensor_maps[i]);
    vec_push(t->arena, &t->launches, row);
}

static void add_control(struct tables *t, const struct plan_control *control)
{
    const struct bundle_control row = {.kind = control->kind == PLAN_IF ? BUNDLE_IF : BUNDLE_WHILE,
                                       .condition = control->condition,
                                       .first = control->first,
                                       .middle = control->middle,
                                       .end = control->end,
                                       .inner = control->inner};
    vec_push(t->arena, &t->controls, row);
}

static void add_images(struct tables *t, const struct cuda_image *images, uint32_t count, uint32_t kind)
{
    static const char zeros[64];
    for (uint32_t i = 0; i < count && t->final; i++) {
        size_t misalign = t->code.length % sizeof zeros;
        if (misalign)
            text_append(&t->code, zeros, sizeof zeros - misalign);
        bool ends = kind != BUNDLE_PTX || (images[i].length && !images[i].bytes[images[i].length - 1]);
        struct bundle_image row = {.kind = kind,
                                   .first_kernel = images[i].first_kernel,
                                   .kernel_count = images[i].kernel_count,
                                   .offset = t->code.length,
                                   .bytes = images[i].length + !ends};
        text_append(&t->code, (const char *)images[i].bytes, images[i].length);
        text_append(&t->code, zeros, !ends);
        vec_push(t->arena, &t->images, row);
    }
}

static void add_plan(struct tables *t, const struct bundle_target *target)
{
    const struct plan *plan = target->plan;
    const struct machine *machine = plan->machine;
    const struct bundle_inputs *inputs = t->writer->inputs;
    bool cuda = machine->kind == TARGET_CUDA;
    struct bundle_plan row = {
        .name = string_of(t, machine->name),
        .kind = target == inputs->init ? BUNDLE_INIT
                : cuda                 ? BUNDLE_CUDA
                                       : BUNDLE_CPU,
        .level = cuda ? (uint32_t)machine->compute_capability : machine->level,
        .architecture_specific = machine->architecture_specific,
        /* Cubins run on every driver of their toolkit's major version, PTX needs one as new as its compiler.
         */
        .driver_version = cuda ? (uint32_t)inputs->nvrtc_major * 1000 : 0,
        .ptx_driver_version = cuda ? (uint32_t)(inputs->nvrtc_major * 1000 + inputs->nvrtc_minor * 10) : 0,
        .first_buffer = t->buffers.count,
        .buffer_count = plan->buffers.count,
        .first_kernel = t->kernels.count,
        .kernel_count = plan->kernels.count,
        .first_launch = t->launches.count,
        .launch_count = plan->launches.count,
        .first_control = t->controls.count,
        .control_count = plan->controls.count,
        .first_copy = t->copies.count,
        .copy_count = plan->copies.count,
        .word_buffer = plan->words.count ? plan->word_buffer : BUNDLE_NONE,
        .first_word = t->indices.count,
        .word_count = plan->words.count,
        .first_image = t->images.count,
        .image_count = target->cubin_count + target->ptx_count};
    for (uint32_t i = 0; i < plan->words.count; i++)
        vec_push(t->arena, &t->indices, plan->words.items[i].symbol);
    for (uint32_t i = 0; i < plan->buffers.count; i++)
        add_buffer(t, plan, &plan->buffers.items[i]);
    for (uint32_t i = 0; i < plan->kernels.count; i++)
        add_kernel(t, target, i);
    for (uint32_t i = 0; i < plan->launches.count; i++)
        add_launch(t, plan, &plan->launches.items[i]);
    for (uint32_t i = 0; i < plan->controls.count; i++)
        add_control(t, &plan->controls.items[i]);
    for (uint32_t i = 0; i < plan->copies.count; i++)
        vec_push(t->arena, &t->copies,
                 ((struct bundle_copy){plan->copies.items[i].from, plan->copies.items[i].to}));
    add_images(t, target->cubins, target->cubin_count, BUNDLE_CUBIN);
    add_images(t, target->ptx, target->ptx_count, BUNDLE_PTX);
    vec_push(t->arena, &t->plans, row);
}

static void add_fact(struct tables *t, const char *key, const char *value)
{
    vec_push(t->arena, &t->facts, ((struct bundle_fact_row){string_of(t, key), string_of(t, value)}));
}

/* ---- the blob
 * ------------------------------------------------------------------------------------------------------ */

static void build_rows(struct tables *t)
{
    const struct bundle_inputs *inputs = t->writer->inputs;
    add_symbols(t);
    add_guards(t);
    add_tensors(t);
    for (uint32_t i = 0; i < inputs->target_count; i++)
        add_plan(t, &inputs->targets[i]);
    if (inputs->init) {
        add_plan(t, inputs->init);
        add_weights(t, inputs->init->plan);
    }
    add_constants(t);
    add_fact(t, "gpucc", GPUCC_VERSION);
    add_fact(t, "linker", t->writer->linker_version);
    for (uint32_t i = 0; i < inputs->fact_count; i++)
        add_fact(t, inputs->facts[i].key, inputs->facts[i].value);
}

static struct bundle_array append(struct text *blob, const void *data, size_t size, uint64_t count,
                                  size_t alignment)
{
    static const char zeros[64];
    size_t misalign = blob->length % alignment;
    if (misalign)
        text_append(blob, zeros, alignment - misalign);
    struct bundle_array array = {.offset = blob->length, .count = count};
    if (count)
        text_append(blob, data, size * (size_t)count);
    return array;
}

#define APPEND(blob, vec) append((blob), (vec).items, sizeof *(vec).items, (vec).count, 8)

static void assemble(struct tables *t)
{
    struct bundle_writer *writer = t->writer;
    struct bundle_header header = {.format = BUNDLE_FORMAT,
                                   .abi = BUNDLE_ABI,
                                   .header_bytes = sizeof header,
                                   .machine = bundle_machine(writer->inputs->host),
                                   .sidecar = writer->inputs->weights_path != NULL};
    memcpy(header.magic, BUNDLE_MAGIC, sizeof header.magic);
    if (writer->inputs->weights_path) {
        const char *slash = strrchr(writer->inputs->weights_path, '/');
        header.sidecar_name = string_of(t, slash ? slash + 1 : writer->inputs->weights_path);
    }
    header.producer = string_of(t, writer->inputs->graph->producer);
    header.opset = writer->inputs->graph->opset;
    header.cpu_kernel_count = writer->blob.symbols.count;
    struct text blob;
    text_init(&blob, t->arena);
    text_append(&blob, (const char *)&header, sizeof header);
    header.strings = append(&blob, t->strings.items, 1, t->strings.count, 8);
    header.symbols = APPEND(&blob, t->symbols);
    header.terms = APPEND(&blob, t->terms);
    header.dims = APPEND(&blob, t->dim_rows);
    header.guards = APPEND(&blob, t->guards);
    header.inputs = APPEND(&blob, t->inputs);
    header.outputs = APPEND(&blob, t->outputs);
    header.constants = APPEND(&blob, t->constants);
    header.weights = APPEND(&blob, t->weights);
    header.plans = APPEND(&blob, t->plans);
    header.buffers = APPEND(&blob, t->buffers);
    header.kernels = APPEND(&blob, t->kernels);
    header.launches = APPEND(&blob, t->launches);
    header.controls = APPEND(&blob, t->controls);
    header.maps = APPEND(&blob, t->maps);
    header.copies = APPEND(&blob, t->copies);
    header.images = APPEND(&blob, t->images);
    header.indices = APPEND(&blob, t->indices);
    header.facts = APPEND(&blob, t->facts);
    header.code = append(&blob, t->code.data, 1, t->code.length, 64);
    append(&blob, NULL, 1, 0, 8);
    header.blob_bytes = blob.length;
    memcpy(blob.data, &header, sizeof header);
    writer->blob.bytes = (unsigned char *)blob.data;
    writer->blob.length = blob.length;
}

bool bundle_make_tables(struct bundle_writer *writer)
{
    struct tables t = {.writer = writer, .arena = writer->arena, .dims = &writer->inputs->graph->dims};
    struct tables marked;
    vec_push(t.arena, &t.strings, '\0');
    marked = t;
    build_rows(&marked);
    /* Again from the begin, with the dims that the first time marked. */
    t.final = true;
    t.failed = marked.failed;
    t.used = marked.used;
    t.dim_limit = marked.dim_limit;
    t.strings.items = NULL;
    t.strings.count = t.strings.capacity = 0;
    vec_push(t.arena, &t.strings, '\0');
    text_init(&t.code, t.arena);
    emit_dims(&t);
    writer->blob = (struct bundle_blob){0};
    build_rows(&t);
    if (t.failed) {
        diag_error(writer->diagnostics, DIAG_internal, NULL,
                   "a plan holds a size that is unknown or too large");
        return false;
    }
    assemble(&t);
    if (writer->blob.length > UINT32_MAX) {
        diag_error(writer->diagnostics, DIAG_limit_exceeded, NULL, "the bundle's tables and code pass 4 GiB");
        return false;
    }
    return true;
}

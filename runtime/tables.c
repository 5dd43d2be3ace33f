/* Validation of a bundle's tables. One pass over every array, each row by one function: nothing is followed
 * before it has been checked, and no memory is taken. A row that passes can only lead to other rows that
 * pass. */
#include "runtime/tables.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(BUNDLE_ABI == GPUCC_ABI, "one number");
_Static_assert(sizeof(struct bundle_array) == 16, "fixed layout");
_Static_assert(sizeof(struct bundle_header) == 488, "fixed layout");
_Static_assert(sizeof(struct bundle_symbol) == 48, "fixed layout");
_Static_assert(sizeof(struct bundle_term) == 16, "fixed layout");
_Static_assert(sizeof(struct bundle_dim) == 24, "fixed layout");
_Static_assert(sizeof(struct bundle_guard) == 16, "fixed layout");
_Static_assert(sizeof(struct bundle_tensor) == 24, "fixed layout");
_Static_assert(sizeof(struct bundle_constant) == 40, "fixed layout");
_Static_assert(sizeof(struct bundle_weight_row) == 24, "fixed layout");
_Static_assert(sizeof(struct bundle_plan) == 84, "fixed layout");
_Static_assert(sizeof(struct bundle_buffer) == 32, "fixed layout");
_Static_assert(sizeof(struct bundle_kernel) == 96, "fixed layout");
_Static_assert(sizeof(struct bundle_launch) == 48, "fixed layout");
_Static_assert(sizeof(struct bundle_tensor_map) == 40, "fixed layout");
_Static_assert(sizeof(struct bundle_control) == 24, "fixed layout");
_Static_assert(sizeof(struct bundle_copy) == 8, "fixed layout");
_Static_assert(sizeof(struct bundle_image) == 32, "fixed layout");
_Static_assert(sizeof(struct bundle_fact_row) == 8, "fixed layout");

/* Element types that buffers can hold; the numbers are ONNX's. */
static const struct dtype_row {
    char name[12];
    unsigned bits;
} dtype_rows[] = {
    [GPUCC_F32] = {"f32", 32},
    [GPUCC_U8] = {"u8", 8},
    [GPUCC_I8] = {"i8", 8},
    [GPUCC_U16] = {"u16", 16},
    [GPUCC_I16] = {"i16", 16},
    [GPUCC_I32] = {"i32", 32},
    [GPUCC_I64] = {"i64", 64},
    [GPUCC_BOOL] = {"bool", 8},
    [GPUCC_F16] = {"f16", 16},
    [GPUCC_F64] = {"f64", 64},
    [GPUCC_U32] = {"u32", 32},
    [GPUCC_U64] = {"u64", 64},
    [GPUCC_BF16] = {"bf16", 16},
    [GPUCC_F8E4M3FN] = {"f8e4m3fn", 8},
    [GPUCC_F8E4M3FNUZ] = {"f8e4m3fnuz", 8},
    [GPUCC_F8E5M2] = {"f8e5m2", 8},
    [GPUCC_F8E5M2FNUZ] = {"f8e5m2fnuz", 8},
    [GPUCC_U4] = {"u4", 4},
    [GPUCC_I4] = {"i4", 4},
    [GPUCC_F4E2M1] = {"f4e2m1", 4},
    [GPUCC_F8E8M0] = {"f8e8m0", 8},
    [GPUCC_U2] = {"u2", 2},
    [GPUCC_I2] = {"i2", 2},
};

unsigned tables_dtype_bits(uint32_t dtype)
{
    return dtype < sizeof dtype_rows / sizeof *dtype_rows ? dtype_rows[dtype].bits : 0;
}

const char *tables_dtype_name(uint32_t dtype)
{
    return tables_dtype_bits(dtype) ? dtype_rows[dtype].name : "none";
}

int tables_dtype_bytes(uint32_t dtype, int64_t count, uint64_t *bytes)
{
    unsigned bits = tables_dtype_bits(dtype);
    if (!bits || count < 0 || count > INT64_MAX / 64)
        return 0;
    *bytes = ((uint64_t)count * bits + 7) / 8;
    return 1;
}

struct check {
    struct bundle_tables *tables;
    const char *blob;
    uint64_t bytes;
    struct runtime_error *error;
};

static bool bad(const struct check *check, const char *what, uint64_t row)
{
    runtime_fail(check->error, GPUCC_BAD_BUNDLE, "the bundle is damaged: %s %llu is out of bounds", what,
                 (unsigned long long)row);
    return false;
}

/* first .. first+count lies within total. */
static bool range_holds(uint64_t first, uint64_t count, uint64_t total)
{
    return first <= total && count <= total - first;
}

static bool string_holds(const struct check *check, bundle_string string)
{
    return string < check->tables->header->strings.count;
}

static bool dim_holds(const struct check *check, uint32_t dim)
{
    return dim < check->tables->header->dims.count;
}

/* count indices from `first` exist and are all below `limit`. */
static bool indices_hold(const struct check *check, uint32_t first, uint32_t count, uint64_t limit)
{
    if (!range_holds(first, count, check->tables->header->indices.count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (check->tables->indices[first + i] >= limit)
            return false;
    return true;
}

static const void *array_at(const struct check *check, const struct bundle_array *array, size_t size,
                            bool *good)
{
    if (array->offset % 8 || array->offset > check->bytes || array->count > UINT32_MAX ||
        array->count > (check->bytes - array->offset) / size) {
        *good = bad(check, "array at", array->offset);
        return NULL;
    }
    return check->blob + array->offset;
}

static bool header_holds(const struct check *check)
{
    const struct bundle_header *header = (const struct bundle_header *)(const void *)check->blob;
    if (check->bytes < sizeof *header || memcmp(header->magic, BUNDLE_MAGIC, sizeof header->magic) != 0) {
        runtime_fail(check->error, GPUCC_BAD_BUNDLE, "not a gpucc bundle");
        return false;
    }
    if (header->format != BUNDLE_FORMAT || header->abi != GPUCC_ABI) {
        runtime_fail(check->error, GPUCC_BAD_BUNDLE,
                     "the bundle has format %u and ABI %u; this gpucc reads format %d and ABI %d",
                     header->format, header->abi, BUNDLE_FORMAT, GPUCC_ABI);
        return false;
    }
    if (header->header_bytes != sizeof *header || header->blob_bytes != check->bytes || header->sidecar > 1)
        return bad(check, "header size", header->header_bytes);
    uint64_t leaves = header->weights_bytes / BUNDLE_LEAF + (header->weights_bytes % BUNDLE_LEAF != 0);
    if (header->leaf_count != leaves || header->weights_offset > INT64_MAX / 2 ||
        header->weights_bytes > INT64_MAX / 2 || header->leaves_offset > INT64_MAX / 2 ||
        header->weights_offset % BUNDLE_PAGE)
        return bad(check, "weights", header->weights_offset);
    check->tables->header = header;
    return true;
}

static bool arrays_hold(const struct check *check)
{
    struct bundle_tables *t = check->tables;
    const struct bundle_header *h = t->header;
    bool good = true;
    t->strings = array_at(check, &h->strings, 1, &good);
    t->symbols = array_at(check, &h->symbols, sizeof *t->symbols, &good);
    t->terms = array_at(check, &h->terms, sizeof *t->terms, &good);
    t->dims = array_at(check, &h->dims, sizeof *t->dims, &good);
    t->guards = array_at(check, &h->guards, sizeof *t->guards, &good);
    t->inputs = array_at(check, &h->inputs, sizeof *t->inputs, &good);
    t->outputs = array_at(check, &h->outputs, sizeof *t->outputs, &good);
    t->constants = array_at(check, &h->constants, sizeof *t->constants, &good);
    t->weights = array_at(check, &h->weights, sizeof *t->weights, &good);
    t->plans = array_at(check, &h->plans, sizeof *t->plans, &good);
    t->buffers = array_at(check, &h->buffers, sizeof *t->buffers, &good);
    t->kernels = array_at(check, &h->kernels, sizeof *t->kernels, &good);
    t->launches = array_at(check, &h->launches, sizeof *t->launches, &good);
    t->controls = array_at(check, &h->controls, sizeof *t->controls, &good);
    t->maps = array_at(check, &h->maps, sizeof *t->maps, &good);
    t->copies = array_at(check, &h->copies, sizeof *t->copies, &good);
    t->images = array_at(check, &h->images, sizeof *t->images, &good);
    t->indices = array_at(check, &h->indices, sizeof *t->indices, &good);
    t->code = array_at(check, &h->code, 1, &good);
    t->facts = array_at(check, &h->facts, sizeof *t->facts, &good);
    if (!good)
        return false;
    if (!h->strings.count || t->strings[0] || t->strings[h->strings.count - 1])
        return bad(check, "strings of", h->strings.count);
    t->symbol_count = (uint32_t)h->symbols.count;
    t->dim_count = (uint32_t)h->dims.count;
    t->guard_count = (uint32_t)h->guards.count;
    t->input_count = (uint32_t)h->inputs.count;
    t->output_count = (uint32_t)h->outputs.count;
    t->constant_count = (uint32_t)h->constants.count;
    t->weight_count = (uint32_t)h->weights.count;
    t->plan_count = (uint32_t)h->plans.count;
    t->fact_count = (uint32_t)h->facts.count;
    return true;
}

static bool dim_row_holds(const struct check *check, uint32_t row)
{
    const struct bundle_dim *dim = &check->tables->dims[row];
    if (dim->op >= BUNDLE_DIM_OP_COUNT ||
        !range_holds(dim->first_term, dim->term_count, check->tables->header->terms.count))
        return false;
    bool binary = dim->op >= BUNDLE_DIM_FLOOR_DIV;
    bool leaf = dim->op == BUNDLE_DIM_CONSTANT || dim->op == BUNDLE_DIM_SYMBOL;
    if ((binary && dim->term_count != 2) || (leaf && dim->term_count != 0))
        return false;
    if (dim->op == BUNDLE_DIM_SYMBOL &&
        (dim->value < 0 || dim->value >= (int64_t)check->tables->symbol_count))
        return false;
    for (uint32_t i = 0; i < dim->term_count; i++)
        if (check->tables->terms[dim->first_term + i].dim >= row)
            return false;
    return true;
}

static bool tensor_row_holds(const struct check *check, const struct bundle_tensor *tensor, bool output)
{
    return string_holds(check, tensor->name) && tables_dtype_bits(tensor->dtype) &&
           tensor->rank <= BUNDLE_MAX_RANK &&
           indices_hold(check, tensor->first_dim, tensor->rank, check->tables->dim_count) &&
           (tensor->alias_input == BUNDLE_NONE ||
            (output && tensor->alias_input < check->tables->input_count));
}

static bool symbol_row_holds(const struct check *check, const struct bundle_symbol *symbol)
{
    const bool of_input = symbol->source <= BUNDLE_INPUT_VALUE;
    if (!string_holds(check, symbol->name) || symbol->source > BUNDLE_BOUND ||
        (of_input && symbol->input >= check->tables->input_count) || symbol->low > symbol->high ||
        (symbol->replacement != BUNDLE_NONE && !dim_holds(check, symbol->replacement)) ||
        (symbol->source == BUNDLE_WORD ? !dim_holds(check, symbol->bound) : symbol->bound != BUNDLE_NONE))
        return false;
    return symbol->source != BUNDLE_INPUT_AXIS ||
           (symbol->low >= 0 && symbol->axis < check->tables->inputs[symbol->input].rank);
}

static bool constant_row_holds(const struct check *check, const struct bundle_constant *constant)
{
    uint64_t bytes;
    return string_holds(check, constant->name) && constant->offset % BUNDLE_ALIGNMENT == 0 &&
           tables_dtype_bytes(constant->dtype, constant->elements, &bytes) && bytes == constant->bytes &&
           range_holds(constant->offset, constant->bytes, check->tables->header->weights_bytes);
}

/* All of the plan's dims, where they must be constants. */
static bool dim_is_fixed(const struct check *check, uint32_t dim)
{
    return dim_holds(check, dim) && check->tables->dims[dim].op == BUNDLE_DIM_CONSTANT &&
           check->tables->dims[dim].value >= 0;
}

static bool weight_row_holds(const struct check *check, const struct bundle_weight_row *weight)
{
    const struct bundle_tables *t = check->tables;
    int64_t elements = 1;
    uint64_t bytes;
    if (!string_holds(check, weight->name) || !string_holds(check, weight->frozen) ||
        !tables_dtype_bits(weight->dtype) || weight->rank > BUNDLE_MAX_RANK ||
        !indices_hold(check, weight->first_dim, weight->rank, t->dim_count))
        return false;
    for (uint32_t i = 0; i < weight->rank; i++) {
        uint32_t dim = t->indices[weight->first_dim + i];
        if (!dim_is_fixed(check, dim) ||
            (t->dims[dim].value > 0 && elements > INT64_MAX / 64 / t->dims[dim].value))
            return false;
        elements *= t->dims[dim].value;
    }
    if (!tables_dtype_bytes(weight->dtype, elements, &bytes))
        return false;
    return weight->constant == BUNDLE_NONE ||
           (weight->constant < t->constant_count && t->constants[weight->constant].bytes == bytes);
}

/* Elements of a buffer of the init plan are those of what it stands for. */
static bool fixed_buffer_holds(const struct check *check, const struct bundle_buffer *buffer)
{
    const struct bundle_tables *t = check->tables;
    uint64_t bytes;
    int64_t elements = 1;
    if (!dim_is_fixed(check, buffer->elements) ||
        !tables_dtype_bytes(buffer->dtype, t->dims[buffer->elements].value, &bytes) || bytes > INT64_MAX / 4)
        return false;
    if (buffer->kind == BUNDLE_ARENA)
        return true;
    if (buffer->kind == BUNDLE_CONSTANT)
        return buffer->index < t->constant_count && t->constants[buffer->index].bytes == bytes;
    if (buffer->kind != BUNDLE_WEIGHT || buffer->index >= t->weight_count ||
        t->weights[buffer->index].dtype != buffer->dtype)
        return false;
    const struct bundle_weight_row *weight = &t->weights[buffer->index];
    for (uint32_t i = 0; i < weight->rank; i++)
        elements *= t->dims[t->indices[weight->first_dim + i]].value;
    return elements == t->dims[buffer->elements].value;
}

static bool buffer_row_holds(const struct check *check, const struct bundle_plan *plan,
                             const struct bundle_buffer *buffer)
{
    const struct bundle_tables *t = check->tables;
    if (!dim_holds(check, buffer->elements) || !tables_dtype_bits(buffer->dtype) ||
        (plan->kind == BUNDLE_INIT && !fixed_buffer_holds(check, buffer)))
        return false;
    switch (buffer->kind) {
    case BUNDLE_INPUT:
        return buffer->index < t->input_count;
    case BUNDLE_OUTPUT:
        return buffer->index < t->output_count;
    case BUNDLE_CONSTANT:
        return buffer->index < t->constant_count;
    case BUNDLE_WEIGHT:
        return plan->kind == BUNDLE_INIT;
    case BUNDLE_ARENA:
        break;
    default:
        return false;
    }
    if (buffer->first > buffer->last || buffer->last >= plan->launch_count)
        return false;
    if (buffer->shares == BUNDLE_NONE)
        return true;
    if (buffer->shares >= plan->buffer_count)
        return false;
    const struct bundle_buffer *owner = &t->buffers[plan->first_buffer + buffer->shares];
    return owner->kind == BUNDLE_ARENA && owner->shares == BUNDLE_NONE && owner->first <= buffer->first &&
           owner->last >= buffer->last;
}

static bool kernel_row_holds(const struct check *check, const struct bundle_plan *plan,
                             const struct bundle_kernel *kernel)
{
    if (!string_holds(check, kernel->name) || !string_holds(check, kernel->config) ||
        !string_holds(check, kernel->summary) || kernel->buffer_count > BUNDLE_MAX_KERNEL_BUFFERS ||
        kernel->dim_count > BUNDLE_MAX_KERNEL_DIMS)
        return false;
    if (plan->kind != BUNDLE_CUDA)
        return kernel->function < check->tables->header->cpu_kernel_count &&
               kernel->scratch_bytes <= INT64_MAX / 2;
    uint64_t threads = (uint64_t)kernel->block[0] * kernel->block[1];
    return kernel->block[0] && kernel->block[1] && kernel->block[2] && threads <= 1024 &&
           kernel->block[2] <= 1024 && threads * kernel->block[2] <= 1024 &&
           (kernel->index_bits == 32 || kernel->index_bits == 64);
}

static bool map_row_holds(const struct check *check, const struct bundle_kernel *kernel,
                          const struct bundle_tensor_map *map)
{
    if (map->buffer >= kernel->buffer_count || !tables_dtype_bits(map->dtype) || map->rank < 2 ||
        map->rank > BUNDLE_MAX_MAP_RANK || map->swizzle > 128 || map->swizzle % 32 || map->swizzle == 96 ||
        !indices_hold(check, map->first_dim, 2 * map->rank - 1, check->tables->dim_count))
        return false;
    for (uint32_t i = 0; i < map->rank; i++)
        if (map->box[i] < 1 || map->box[i] > 256)
            return false;
    return true;
}

static bool launch_row_holds(const struct check *check, const struct bundle_plan *plan,
                             const struct bundle_launch *launch)
{
    const struct bundle_tables *t = check->tables;
    if (launch->kernel >= plan->kernel_count || !string_holds(check, launch->nodes))
        return false;
    const struct bundle_kernel *kernel = &t->kernels[plan->first_kernel + launch->kernel];
    if (!indices_hold(check, launch->first_buffer, kernel->buffer_count, plan->buffer_count) ||
        !indices_hold(check, launch->first_dim, kernel->dim_count, t->dim_count))
        return false;
    if (plan->kind == BUNDLE_CPU)
        return dim_holds(check, launch->work);
    if (plan->kind == BUNDLE_INIT) {
        for (uint32_t i = 0; i < kernel->dim_count; i++)
            if (!dim_is_fixed(check, t->indices[launch->first_dim + i]))
                return false;
        return dim_is_fixed(check, launch->work);
    }
    if ((launch->condition != BUNDLE_NONE && !dim_holds(check, launch->condition)) ||
        launch->map_count > BUNDLE_MAX_TENSOR_MAPS ||
        !range_holds(launch->first_map, launch->map_count, t->header->maps.count))
        return false;
    for (uint32_t i = 0; i < launch->map_count; i++)
        if (!map_row_holds(check, kernel, &t->maps[launch->first_map + i]))
            return false;
    return dim_holds(check, launch->grid[0]) && dim_holds(check, launch->grid[1]) &&
           dim_holds(check, launch->grid[2]);
}

static bool image_row_holds(const struct check *check, const struct bundle_plan *plan,
                            const struct bundle_image *image)
{
    return image->kind <= BUNDLE_PTX &&
           range_holds(image->first_kernel, image->kernel_count, plan->kernel_count) && image->bytes > 0 &&
           range_holds(image->offset, image->bytes, check->tables->header->code.count) &&
           (image->kind != BUNDLE_PTX || !check->tables->code[image->offset + image->bytes - 1]);
}

/* A launch reads and writes within its own arena buffers' time. */
static bool launch_is_live(const struct check *check, const struct bundle_plan *plan, uint32_t position)
{
    const struct bundle_tables *t = check->tables;
    const struct bundle_launch *launch = &t->launches[plan->first_launch + position];
    const struct bundle_kernel *kernel = &t->kernels[plan->first_kernel + launch->kernel];
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        const struct bundle_buffer *buffer =
            &t->buffers[plan->first_buffer + t->indices[launch->first_buffer + i]];
        if (buffer->kind == BUNDLE_ARENA && (position < buffer->first || position > buffer->last))
            return false;
    }
    return true;
}

/* The condition is one bool that is there whenever it is read. */
static bool condition_holds(const struct check *check, const struct bundle_plan *plan,
                            const struct bundle_control *control)
{
    const struct bundle_tables *t = check->tables;
    if (control->condition >= plan->buffer_count)
        return false;
    const struct bundle_buffer *buffer = &t->buffers[plan->first_buffer + control->condition];
    const struct bundle_dim *elements = &t->dims[buffer->elements];
    return buffer->dtype == GPUCC_BOOL && elements->op == BUNDLE_DIM_CONSTANT && elements->value >= 1 &&
           (buffer->kind != BUNDLE_ARENA ||
            (buffer->first <= control->first && buffer->last >= control->first &&
             (control->kind == BUNDLE_IF || buffer->last >= control->end - 1)));
}

/* On a GPU the launch before a control, and a loop's last one, take the handles in place of buffers. */
static bool setters_hold(const struct check *check, const struct bundle_plan *plan,
                         const struct bundle_control *control)
{
    const struct bundle_tables *t = check->tables;
    const bool loop = control->kind == BUNDLE_WHILE;
    if (plan->kind != BUNDLE_CUDA)
        return true;
    if (control->first == 0)
        return false;
    for (uint32_t i = 0; i < (loop ? 2 : 1); i++) {
        const struct bundle_launch *launch =
            &t->launches[plan->first_launch + (i ? control->end - 1 : control->first - 1)];
        if (t->kernels[plan->first_kernel + launch->kernel].buffer_count < (loop ? 2 : 3))
            return false;
    }
    return true;
}

/* Controls nest: each stands within the branch of the one around it. */
static bool controls_hold(const struct check *check, const struct bundle_plan *plan)
{
    const struct bundle_control *controls = &check->tables->controls[plan->first_control];
    struct {
        uint32_t last, middle, end; /* its inner controls end before `last` */
    } around[BUNDLE_MAX_DEPTH];
    uint32_t depth = 0, reached = 0;
    for (uint32_t i = 0; i < plan->control_count; i++) {
        const struct bundle_control *control = &controls[i];
        for (; depth && i == around[depth - 1].last; depth--)
            reached = around[depth - 1].end;
        if (control->kind > BUNDLE_WHILE || control->first >= control->end ||
            control->end > plan->launch_count || control->middle < control->first ||
            control->middle > control->end || control->first < reached ||
            control->inner > plan->control_count - 1 - i || depth == BUNDLE_MAX_DEPTH ||
            (control->kind == BUNDLE_WHILE && control->middle != control->end) ||
            !condition_holds(check, plan, control) || !setters_hold(check, plan, control))
            return bad(check, "control", plan->first_control + i);
        if (depth &&
            (control->end > around[depth - 1].end || i + 1 + control->inner > around[depth - 1].last ||
             (control->first < around[depth - 1].middle && control->end > around[depth - 1].middle)))
            return bad(check, "control", plan->first_control + i);
        reached = control->inner ? control->first : control->end;
        around[depth].last = i + 1 + control->inner;
        around[depth].middle = control->middle;
        around[depth].end = control->end;
        depth++;
    }
    return true;
}

/* Into what the plan may write; in an init plan a weight as it is. */
static bool copy_row_holds(const struct check *check, const struct bundle_plan *plan,
                           const struct bundle_copy *copy)
{
    const struct bundle_buffer *buffers = &check->tables->buffers[plan->first_buffer];
    if (copy->from >= plan->buffer_count || copy->to >= plan->buffer_count)
        return false;
    if (plan->kind != BUNDLE_INIT)
        return buffers[copy->to].kind != BUNDLE_CONSTANT;
    return buffers[copy->from].kind == BUNDLE_WEIGHT && buffers[copy->to].kind == BUNDLE_CONSTANT &&
           buffers[copy->from].dtype == buffers[copy->to].dtype &&
           check->tables->dims[buffers[copy->from].elements].value ==
               check->tables->dims[buffers[copy->to].elements].value;
}

/* One element of an i64 buffer that outlasts the launches for each word. */
static bool words_hold(const struct check *check, const struct bundle_plan *plan)
{
    const struct bundle_tables *t = check->tables;
    if (!plan->word_count)
        return plan->word_buffer == BUNDLE_NONE;
    if (plan->word_buffer >= plan->buffer_count ||
        !indices_hold(check, plan->first_word, plan->word_count, t->symbol_count))
        return false;
    const struct bundle_buffer *buffer = &t->buffers[plan->first_buffer + plan->word_buffer];
    const struct bundle_dim *elements = &t->dims[buffer->elements];
    for (uint32_t i = 0; i < plan->word_count; i++)
        if (t->symbols[t->indices[plan->first_word + i]].source != BUNDLE_WORD)
            return false;
    return buffer->kind == BUNDLE_ARENA && buffer->dtype == GPUCC_I64 && elements->op == BUNDLE_DIM_CONSTANT &&
           elements->value >= plan->word_count && buffer->last + 1 >= plan->launch_count &&
           plan->kind != BUNDLE_INIT;
}

static bool plan_holds(const struct check *check, uint32_t row)
{
    const struct bundle_tables *t = check->tables;
    const struct bundle_header *h = t->header;
    const struct bundle_plan *plan = &t->plans[row];
    if (!string_holds(check, plan->name) || plan->kind > BUNDLE_INIT ||
        !range_holds(plan->first_buffer, plan->buffer_count, h->buffers.count) ||
        !range_holds(plan->first_kernel, plan->kernel_count, h->kernels.count) ||
        !range_holds(plan->first_launch, plan->launch_count, h->launches.count) ||
        !range_holds(plan->first_control, plan->control_count, h->controls.count) ||
        !range_holds(plan->first_copy, plan->copy_count, h->copies.count) ||
        !range_holds(plan->first_image, plan->image_count, h->images.count))
        return bad(check, "plan", row);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (!buffer_row_holds(check, plan, &t->buffers[plan->first_buffer + i]))
            return bad(check, "buffer", plan->first_buffer + i);
    for (uint32_t i = 0; i < plan->kernel_count; i++)
        if (!kernel_row_holds(check, plan, &t->kernels[plan->first_kernel + i]))
            return bad(check, "kernel", plan->first_kernel + i);
    for (uint32_t i = 0; i < plan->launch_count; i++)
        if (!launch_row_holds(check, plan, &t->launches[plan->first_launch + i]) ||
            !launch_is_live(check, plan, i))
            return bad(check, "launch", plan->first_launch + i);
    if (!controls_hold(check, plan))
        return false;
    if (!words_hold(check, plan))
        return bad(check, "words of plan", row);
    for (uint32_t i = 0; i < plan->copy_count; i++) {
        if (!copy_row_holds(check, plan, &t->copies[plan->first_copy + i]))
            return bad(check, "copy", plan->first_copy + i);
    }
    for (uint32_t i = 0; i < plan->image_count; i++)
        if (!image_row_holds(check, plan, &t->images[plan->first_image + i]))
            return bad(check, "image", plan->first_image + i);
    return true;
}

static bool rows_hold(const struct check *check)
{
    const struct bundle_tables *t = check->tables;
    for (uint32_t i = 0; i < t->dim_count; i++)
        if (!dim_row_holds(check, i))
            return bad(check, "dim", i);
    for (uint32_t i = 0; i < t->input_count; i++)
        if (!tensor_row_holds(check, &t->inputs[i], false))
            return bad(check, "input", i);
    for (uint32_t i = 0; i < t->output_count; i++)
        if (!tensor_row_holds(check, &t->outputs[i], true))
            return bad(check, "output", i);
    for (uint32_t i = 0; i < t->symbol_count; i++)
        if (!symbol_row_holds(check, &t->symbols[i]))
            return bad(check, "symbol", i);
    for (uint32_t i = 0; i < t->guard_count; i++)
        if (!dim_holds(check, t->guards[i].left) || !dim_holds(check, t->guards[i].right) ||
            !string_holds(check, t->guards[i].node) || t->guards[i].kind > BUNDLE_GUARD_NOT_NEGATIVE)
            return bad(check, "guard", i);
    for (uint32_t i = 0; i < t->constant_count; i++)
        if (!constant_row_holds(check, &t->constants[i]))
            return bad(check, "constant", i);
    for (uint32_t i = 0; i < t->weight_count; i++)
        if (!weight_row_holds(check, &t->weights[i]))
            return bad(check, "weight", i);
    for (uint32_t i = 0; i < t->fact_count; i++)
        if (!string_holds(check, t->facts[i].key) || !string_holds(check, t->facts[i].value))
            return bad(check, "fact", i);
    for (uint32_t i = 0; i < t->plan_count; i++)
        if (!plan_holds(check, i))
            return false;
    if (!string_holds(check, t->header->producer) || !string_holds(check, t->header->sidecar_name))
        return bad(check, "header string", t->header->producer);
    return true;
}

gpucc_status tables_open(const void *blob, uint64_t bytes, struct bundle_tables *tables,
                         struct runtime_error *error)
{
    memset(tables, 0, sizeof *tables);
    struct check check = {tables, blob, bytes, error};
    if ((uintptr_t)blob % 8)
        return runtime_fail(error, GPUCC_BAD_BUNDLE, "the bundle's tables are not aligned");
    return header_holds(&check) && arrays_hold(&check) && rows_hold(&check) ? GPUCC_OK : GPUCC_BAD_BUNDLE;
}

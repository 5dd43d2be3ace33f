/* Which contractions are taken, with which tiles, at what cost. See contraction.h. */
#include "codegen/strategy/gpu/contraction.h"

#include <math.h>

static bool fits(const struct strategy_context *context, struct text *why)
{
    struct contraction_plan plan;
    return contraction_plan_make(context, &plan, why);
}

/* Rows, columns, rows and columns of a thread. */
static const int16_t tiles[][4] = {
    {128, 256, 16, 8}, {128, 128, 8, 8}, {128, 64, 8, 8}, {64, 128, 8, 8}, {64, 64, 8, 4},
    {64, 64, 4, 4},    {32, 128, 4, 8},  {128, 32, 8, 4}, {32, 64, 4, 4},  {64, 32, 4, 4},
    {32, 32, 4, 4},    {16, 64, 4, 4},   {16, 128, 4, 4},
};
static const int16_t depths[] = {16, 8, 32}, splits[] = {1, 2, 3, 4, 6, 8, 12, 16};
enum {
    TILES = sizeof tiles / sizeof tiles[0],
    DEPTHS = sizeof depths / sizeof depths[0],
    SPLITS = sizeof splits / sizeof splits[0]
};

struct sizes {
    double rows, columns, depth, batches;
};

static struct sizes planned_sizes(const struct strategy_context *context, const struct contraction_plan *plan)
{
    return (struct sizes){.rows = gpu_size(context, plan->operands[SIDE_ROWS].extent),
                          .columns = gpu_size(context, plan->operands[SIDE_COLUMNS].extent),
                          .depth = gpu_size(context, plan->depth_extent),
                          .batches = gpu_size(context, plan->batches)};
}

/* Registers of a thread, as compilers have needed them: sums, one depth of both factors (four where a tile
 * lies along the depth), addresses. */
static double thread_registers(const struct contraction_plan *plan, const int32_t *v)
{
    const double words = dtype_bits(plan->dtype) / 32.0;
    double own = v[CONFIG_OWN_ROWS] * (plan->operands[SIDE_ROWS].along_depth ? 4.0 : 1.0) +
                 v[CONFIG_OWN_COLUMNS] * (plan->operands[SIDE_COLUMNS].along_depth ? 4.0 : 1.0);
    return contraction_resident_blocks(v) ? 128
                                          : words * (v[CONFIG_OWN_ROWS] * v[CONFIG_OWN_COLUMNS] + own) + 40;
}

static double threads_of(const int32_t *v)
{
    return (double)(v[CONFIG_ROWS] / v[CONFIG_OWN_ROWS]) * (v[CONFIG_COLUMNS] / v[CONFIG_OWN_COLUMNS]);
}

/* Blocks that one multiprocessor holds at once; 0: the tile does not fit it. */
static double resident_blocks(const struct machine *machine, const struct contraction_plan *plan,
                              const struct config *config)
{
    const double shared = (double)contraction_shared_bytes(plan, config) + 1024,
                 threads = threads_of(config->value);
    const double used = thread_registers(plan, config->value);
    if (shared - 1024 > machine->shared_bytes_block || used > 255)
        return 0;
    return fmin(fmin(floor(machine->shared_bytes / shared), floor(machine->registers / (used * threads))),
                fmin(machine->threads / threads, machine->blocks));
}

/* Part of the multiply-add rate that reading the tiles leaves: a warp's vector load holds the shared memory
 * for four cycles, during which each of the four schedulers could have started four multiply-adds. */
static double arithmetic_share(const int32_t *v)
{
    const double best = 0.9, multiplications = (double)v[CONFIG_OWN_ROWS] * v[CONFIG_OWN_COLUMNS];
    return best * fmin(1, multiplications / (4.0 * (v[CONFIG_OWN_ROWS] + v[CONFIG_OWN_COLUMNS])));
}

/* Seconds of one wave of blocks on a multiprocessor that holds `at_once` of them. */
static double wave_seconds(const struct strategy_context *context, const struct contraction_plan *plan,
                           const int32_t *v, double at_once, double depth)
{
    /* From memory to shared memory; a warp scheduler with few warps does not fill its pipe. */
    const double latency = 0.7e-6, warps_to_fill = 8;
    const struct machine *machine = context->machine;
    const double rate = machine->fp32_per_second / machine->multiprocessors * arithmetic_share(v);
    const double warps = at_once * threads_of(v) / (double)WARP;
    double step = 2.0 * v[CONFIG_ROWS] * v[CONFIG_COLUMNS] * v[CONFIG_DEPTH] * at_once /
                  (rate * fmin(1, 0.4 + 0.6 * warps / warps_to_fill));
    if (plan->dtype != DTYPE_F32)
        step *= 2;
    /* What fills the tiles costs instructions too: more where a factor comes element by element. */
    for (int side = 0; side < 2; side++) {
        const double elements = (double)v[side == SIDE_ROWS ? CONFIG_ROWS : CONFIG_COLUMNS] * v[CONFIG_DEPTH];
        const double cycles = plan->operands[side].vector > 1 ? 2
                              : plan->taps                    ? 6
                              : plan->asynchronous            ? 16
                                                              : 24;
        step += at_once * elements / plan->operands[side].vector * cycles / (double)WARP / 4 / machine->clock;
    }
    const double ahead = plan->asynchronous ? v[CONFIG_STAGES] - 1 : 1;
    return ceil(depth / v[CONFIG_DEPTH]) * fmax(step, latency / ahead) + 2 * latency;
}

static double plan_cost(const struct strategy_context *context, const struct contraction_plan *plan,
                        struct sizes n, const struct config *config)
{
    const double launch = 2e-6, second_launch = 2.5e-6;
    const int32_t *v = config->value;
    const struct machine *machine = context->machine;
    const double resident = resident_blocks(machine, plan, config);
    if (resident < 1)
        return INFINITY;
    const double tiles_across =
        ceil(n.rows / v[CONFIG_ROWS]) * ceil(n.columns / v[CONFIG_COLUMNS]) * n.batches;
    const double blocks = tiles_across * v[CONFIG_SPLIT], depth = n.depth / v[CONFIG_SPLIT];
    const double whole = floor(blocks / (machine->multiprocessors * resident));
    const double rest = blocks - whole * machine->multiprocessors * resident;
    double time = whole * wave_seconds(context, plan, v, resident, depth);
    if (rest > 0)
        time += wave_seconds(context, plan, v, ceil(rest / machine->multiprocessors), depth);
    /* Every tile reads its rows and columns anew, mostly from the second-level cache. */
    const double cache_speed = 1.3, width = dtype_bits(plan->dtype) / 8.0;
    const double reads = tiles_across * n.depth * (v[CONFIG_ROWS] + v[CONFIG_COLUMNS]) * width;
    time = fmax(time, reads / (cache_speed * machine->memory_bytes_per_second));
    if (v[CONFIG_SPLIT] > 1)
        time += second_launch + 2 * width * n.rows * n.columns * n.batches * (v[CONFIG_SPLIT] + 1) /
                                    machine->memory_bytes_per_second;
    return launch + time;
}

static double cost(const struct strategy_context *context, const struct config *config)
{
    struct contraction_plan plan;
    struct text why;
    text_init(&why, context->arena);
    if (!contraction_plan_make(context, &plan, &why))
        return INFINITY;
    return fmax(plan_cost(context, &plan, planned_sizes(context, &plan), config),
                gpu_roofline(context, 0.9, 1.0));
}

static bool is_legal(const struct strategy_context *context, const struct contraction_plan *plan,
                     const struct config *config)
{
    const int32_t *v = config->value;
    const bool wide = plan->dtype == DTYPE_F64;
    return contraction_depth_fits(plan, v[CONFIG_DEPTH]) &&
           resident_blocks(context->machine, plan, config) >= 1 &&
           !(wide && v[CONFIG_OWN_ROWS] * v[CONFIG_OWN_COLUMNS] > 16);
}

/* Inserts by cost into the best `limit`. */
static uint32_t keep_best(struct config *out, double *costs, uint32_t count, uint32_t limit,
                          const struct config *config, double seconds)
{
    if (count == limit && seconds >= costs[count - 1])
        return count;
    uint32_t at = count < limit ? count++ : count - 1;
    for (; at > 0 && costs[at - 1] > seconds; at--) {
        costs[at] = costs[at - 1];
        out[at] = out[at - 1];
    }
    costs[at] = seconds;
    out[at] = *config;
    return count;
}

static uint32_t candidates(const struct strategy_context *context, struct config *out, uint32_t limit)
{
    enum { MOST = TILES * DEPTHS * SPLITS };
    double costs[MOST];
    uint32_t count = 0;
    struct contraction_plan plan;
    struct text why;
    text_init(&why, context->arena);
    limit = limit < MOST ? limit : MOST;
    if (limit == 0 || !contraction_plan_make(context, &plan, &why))
        return 0;
    const struct sizes n = planned_sizes(context, &plan);
    for (uint32_t t = 0; t < TILES; t++)
        for (uint32_t d = 0; d < DEPTHS; d++)
            for (uint32_t s = 0; s < SPLITS; s++) {
                const int large = tiles[t][0] * tiles[t][1] * depths[d] >= 64 * 64 * 32;
                const struct config config = {.value = {[CONFIG_ROWS] = tiles[t][0],
                                                        [CONFIG_COLUMNS] = tiles[t][1],
                                                        [CONFIG_DEPTH] = depths[d],
                                                        [CONFIG_OWN_ROWS] = tiles[t][2],
                                                        [CONFIG_OWN_COLUMNS] = tiles[t][3],
                                                        [CONFIG_STAGES] = !plan.asynchronous ? 2
                                                                          : large            ? 3
                                                                                             : 4,
                                                        [CONFIG_SPLIT] = splits[s]}};
                if (is_legal(context, &plan, &config))
                    count =
                        keep_best(out, costs, count, limit, &config, plan_cost(context, &plan, n, &config));
            }
    return count;
}

static bool build(const struct strategy_context *context, const struct config *config,
                  struct lowered_group *out, struct text *why)
{
    struct contraction_plan plan;
    return contraction_plan_make(context, &plan, why) && contraction_build(context, &plan, config, out);
}

static void describe(const struct config *config, struct text *out)
{
    const int32_t *v = config->value;
    text_printf(out, "tile=%dx%dx%d, thread=%dx%d, stages=%d, split=%d", v[CONFIG_ROWS], v[CONFIG_COLUMNS],
                v[CONFIG_DEPTH], v[CONFIG_OWN_ROWS], v[CONFIG_OWN_COLUMNS], v[CONFIG_STAGES],
                v[CONFIG_SPLIT]);
}

const struct strategy gpu_contraction = {
    .name = "gpu_contraction",
    .fits = fits,
    .candidates = candidates,
    .cost = cost,
    .build = build,
    .describe = describe,
    .from_level = 1,
};

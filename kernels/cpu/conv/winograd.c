/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/winograd.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "cpu/conv/winograd_filters.h"
#include "cpu/gemm/gemm.h"

#include <math.h>

/* False: no such window. Tiles of @outputs pixels where there is a choice. */
static bool choose_side(int64_t taps, int64_t stride, int64_t outputs, struct sl_winograd_side *ret_side)
{
        if ((taps != 1 && taps != 3 && taps != 5 && taps != 7) || (stride != 1 && (stride != 2 || taps != 3)))
                return false;
        *ret_side = (struct sl_winograd_side){.taps = taps,
                .stride = stride,
                .outputs = taps == 1                  ? 1
                           : taps == 3 && stride == 1 ? outputs
                                                      : 2};
        ret_side->positions = stride == 2 ? 5 : taps + ret_side->outputs - 1;
        ret_side->weights = stride == 2 ? 4 : ret_side->positions;
        return true;
}

/* Those that sl_winograd_run() has; small tiles are for 3x3 alone. */
static bool is_window(const struct sl_winograd *w, int64_t outputs)
{
        int64_t down = w->down.taps, across = w->across.taps;

        if (w->down.stride == 2 || w->across.stride == 2)
                return outputs == 2 && w->down.stride == w->across.stride;
        if (down == across)
                return down == 3 || (down == 5 && outputs == 4);
        return outputs == 4 && ((down == 1 && across != 5) || (across == 1 && down != 5));
}

static bool choose_sides(const struct sl_window *window, int64_t outputs, struct sl_winograd *w)
{
        if (window->dilation[0] != 1 || window->dilation[1] != 1)
                return false;
        if (!choose_side(window->kernel[0], window->stride[0], outputs, &w->down) ||
                !choose_side(window->kernel[1], window->stride[1], outputs, &w->across))
                return false;
        w->positions = w->down.positions * w->across.positions;
        w->weights = w->down.weights * w->across.weights;
        return is_window(w, outputs) && window->pad_begin[0] < w->down.taps && window->pad_begin[1] < w->across.taps;
}

/* Of a node that winograd_plan() has taken. */
static struct sl_winograd sides_of(const struct sl_node_desc *node, int64_t outputs)
{
        struct sl_winograd w = {0};

        if (!sl_window_read(node, &w.shape.window, NULL))
                choose_sides(&w.shape.window, outputs, &w);
        return w;
}

/* Bytes that a block of that many tiles takes: transformed, and the sums of one step. */
static double block_bytes(const struct sl_winograd *w, int64_t tiles)
{
        return (double)(w->positions * (w->channel_floats + w->step_filters) * tiles) * sizeof(float);
}

/*
 * How many tiles a block has. Every block reads all of the weights; within it, every step reads all of its tiles, which is free as
 * long as they stay in the L2 cache. Few blocks where the weights come from memory, small ones where they do not.
 */
static int64_t choose_block(const struct sl_winograd *w, const struct sl_core_figures *core)
{
        double cache = (double)sl_cpu_l2_bytes(), least = INFINITY;
        double weights = (double)(w->weights * w->shape.channels * w->shape.filters) * sizeof(float);
        double steps = (double)((w->shape.filters + w->step_filters - 1) / w->step_filters);
        int64_t best = w->tiles;

        for (int64_t blocks = 1, tiles = w->tiles;; blocks++, tiles = (w->tiles + blocks - 1) / blocks) {
                double bytes = block_bytes(w, tiles);
                double again = (double)blocks * weights / (weights > cache ? core->weights : core->near);
                double spilled = bytes > cache * 5 / 8 ? (double)blocks * steps * bytes / core->far : 0;

                if (again + spilled < least) {
                        least = again + spilled;
                        best = tiles;
                }
                if (!spilled || tiles <= 14)
                        return best;
        }
}

/* Planes that lie a multiple of 4 KiB apart would share a few lines of the L1 cache. */
static int64_t plane_floats(int64_t floats)
{
        return floats % 256 ? floats : floats + SL_LINE_BYTES / (int64_t)sizeof(float);
}

static bool winograd_plan(const struct sl_node_desc *node, int64_t outputs, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_winograd *w = state;
        const struct sl_conv_shape *c = &w->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read_real(node, &w->shape) || node->inputs[0].layout != SL_LAYOUT_CHANNELS_LAST)
                return false;
        if (c->groups != 1 || !choose_sides(&c->window, outputs, w))
                return false;
        w->tiles_down = (c->out_height + w->down.outputs - 1) / w->down.outputs;
        w->tiles_across = (c->out_width + w->across.outputs - 1) / w->across.outputs;
        w->tiles = c->batch * w->tiles_down * w->tiles_across;
        w->channel_floats = (int64_t)sl_align_up((uint64_t)w->shape.channels, 16);
        w->step_filters = w->tiles <= 2 ? SL_WINOGRAD_STEP_MAX : w->tiles <= 6 ? 2 * SL_GEMM_PANEL : SL_GEMM_PANEL;
        w->block_tiles = choose_block(w, sizes->core ? sizes->core : &sl_target_typical.core);
        w->position_floats = plane_floats(w->block_tiles * w->channel_floats);
        w->sum_floats = plane_floats(w->block_tiles * w->step_filters);
        w->sums_offset = w->positions * w->position_floats;
        w->streams = w->weights * w->shape.channels * w->shape.filters * (int64_t)sizeof(float) > sl_cpu_l2_bytes() / 4;
        sizes->scratch_bytes = (size_t)((w->sums_offset + w->positions * w->sum_floats) * (int64_t)sizeof(float));
        return true;
}

static bool winograd_plan_2(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        return winograd_plan(node, 2, state, sizes);
}

static bool winograd_plan_4(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        return winograd_plan(node, 4, state, sizes);
}

static void winograd_form(const struct sl_node_desc *node, int64_t outputs, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;
        struct sl_winograd w = sides_of(node, outputs);

        sl_cpu_form(ret_packed,
                w.down.stride == 2 ? "winograd stride 2"
                : outputs == 2     ? "winograd 2x2"
                                   : "winograd 4x4",
                f, w.weights * sl_gemm_packed_floats(f[1], f[0]));
}

static bool winograd_form_2(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        if (index == 1)
                winograd_form(node, 2, ret_packed);
        return index == 1;
}

static bool winograd_form_4(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        if (index == 1)
                winograd_form(node, 4, ret_packed);
        return index == 1;
}

static int winograd_repack(const struct sl_node_desc *node, int64_t outputs, const void *plain, void *ret_data)
{
        const struct sl_winograd w = sides_of(node, outputs);

        sl_winograd_repack(&w, &node->inputs[1], plain, ret_data);
        return 0;
}

static int winograd_repack_2(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        return winograd_repack(node, 2, plain, ret_data);
}

static int winograd_repack_4(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        return winograd_repack(node, 4, plain, ret_data);
}

static int winograd_run(const void *state, const struct sl_binding *binding)
{
        return sl_winograd_run(state, binding);
}

/*
 * The products are short, and wait for their weights when there are few tiles; where both take long, the one hides the other only
 * in part. The transforms read and write every value about twice, in pieces: as float32, and as what the tensors hold.
 */
static double winograd_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_winograd *w = state;
        double positions = (double)w->positions, tiles = (double)w->tiles;
        double blocks = (double)((w->tiles + w->block_tiles - 1) / w->block_tiles);
        double elements = (double)w->shape.channels * (double)w->shape.filters;
        double values = positions * tiles * (double)(w->shape.channels + w->shape.filters);
        double products = 2 * positions * elements * tiles / core->flops /
                          (w->positions == 36           ? core->winograd_4
                                  : w->down.stride == 2 ? core->winograd_strided
                                                        : core->winograd_2);
        double waiting = 4 * (double)w->weights * elements * blocks / core->weights, longer = sl_cost_longer(products, waiting);

        return sl_cost_activation(core, w->shape.epilogue.activation,
                       (double)(w->shape.batch * w->shape.out_height * w->shape.out_width * w->shape.filters), false) +
               longer + 0.4 * (products + waiting - longer) +
               2 * (4 + (double)sl_dtype_bytes(w->shape.dtype)) * values / core->near;
}

static int64_t winograd_units(const void *state, uint32_t axis)
{
        const struct sl_winograd *w = state;

        return axis == SL_AXIS_ROWS ? w->tiles : sl_gemm_panels(w->shape.filters);
}

static void winograd_narrow(void *state, const struct sl_part *part)
{
        struct sl_winograd *w = state;
        int64_t n = part->end - part->first;

        if (part->axis == SL_AXIS_ROWS) {
                w->shape.out_height = w->shape.out_height * n / w->tiles;
                w->tiles = n;
        } else {
                w->shape.filters = n * SL_GEMM_PANEL;
        }
}

/* Tiles lie across rows. */
static bool winograd_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_winograd *w = state;
        const struct sl_conv_shape *c = &w->shape;
        int64_t bytes = (int64_t)sl_dtype_bytes(c->dtype);
        bool is_result = operand == SL_REACH_OUTPUT || (c->residual && operand == c->residual);

        return is_result && part->axis == SL_AXIS_COLUMNS &&
               sl_reach_columns(
                       part, SL_GEMM_PANEL * bytes, c->filters * bytes, c->batch * c->out_height * c->out_width, ret_reach);
}

const struct sl_cpu_loop sl_cpu_winograd_2 = {.state_bytes = sizeof(struct sl_winograd),
        .plan = winograd_plan_2,
        .run = winograd_run,
        .units = winograd_units,
        .reach = winograd_reach,
        .form = winograd_form_2,
        .repack = winograd_repack_2,
        .reads_anywhere = true,
        .seconds = winograd_seconds,
        .narrow = winograd_narrow,
        .fuses_epilogue = true};
const struct sl_cpu_loop sl_cpu_winograd_4 = {.state_bytes = sizeof(struct sl_winograd),
        .plan = winograd_plan_4,
        .run = winograd_run,
        .units = winograd_units,
        .form = winograd_form_4,
        .repack = winograd_repack_4,
        .reads_anywhere = true,
        .seconds = winograd_seconds,
        .narrow = winograd_narrow,
        .fuses_epilogue = true};

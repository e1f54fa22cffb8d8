/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/grouped.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"

#define LANES       SL_GROUPED_LANES
#define GROUP_MAX   8 /* from 16 on oneDNN fills its vectors */
#define FILTERS_MAX 8
#define CHUNK_MAX   256

static bool takes_window(const struct sl_conv_shape *c)
{
        const struct sl_window *w = &c->window;
        int64_t side = w->kernel[0], stride = w->stride[0];

        if (w->kernel[1] != side || w->stride[1] != stride || w->dilation[0] != 1 || w->dilation[1] != 1)
                return false;
        return (side == 3 || ((side == 5 || side == 7) && c->channels == 1)) && (stride == 1 || stride == 2);
}

static bool takes_groups(const struct sl_conv_shape *c)
{
        int64_t group = c->channels, multiplier = c->filters / group;

        return group >= 1 && group <= GROUP_MAX && LANES % group == 0 && c->filters % group == 0 && multiplier >= 1 &&
               multiplier <= FILTERS_MAX && LANES % multiplier == 0 && (multiplier == 1 || group == 1);
}

/*
 * As many channels as let the rows under a tile stay in the L1 cache, so that the next row of tiles finds them there; at
 * least four vectors, since each tile and chunk takes its time. Images too wide for that take 256: more would push out the weights.
 */
static int64_t choose_chunk(const struct sl_grouped *d)
{
        int64_t rows = (sl_grouped_rows(d) - 1) * d->stride + d->side;
        int64_t chunk = sl_cpu_l1_bytes() / 8 * 7 / (rows * d->shape.width * (int64_t)sizeof(float)) / LANES * LANES;

        return chunk < 4 * LANES || chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
}

static bool grouped_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_grouped *d = state;
        const struct sl_conv_shape *c = &d->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read(node, &d->shape) || !sl_cpu_is_nhwc_f32(&node->inputs[0]))
                return false;
        if (!takes_groups(c) || !takes_window(c))
                return false;
        d->side = c->window.kernel[0];
        d->stride = c->window.stride[0];
        d->multiplier = c->filters / c->channels;
        d->in_channels = c->groups * c->channels;
        d->out_channels = c->groups * c->filters;
        if (c->out_width < SL_GROUPED_COLUMNS || c->out_height < sl_grouped_rows(d))
                return false;
        d->chunk_channels = choose_chunk(d);
        sizes->scratch_bytes = (size_t)d->in_channels * sizeof(float);
        return true;
}

static bool grouped_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "grouped", f, sl_grouped_packed_floats(f));
        return index == 1;
}

void sl_grouped_pack(const int64_t f[4], const float *from, float *to)
{
        int64_t filters = f[0], group = f[1], taps = f[2] * f[3];

        for (int64_t first = 0; first < filters; first += LANES)
                for (int64_t channel = 0; channel < group; channel++)
                        for (int64_t tap = 0; tap < taps; tap++)
                                for (int64_t lane = 0; lane < LANES; lane++)
                                        *to++ = first + lane < filters ? from[((first + lane) * group + channel) * taps + tap]
                                                                       : 0.0f;
}

static int grouped_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        sl_grouped_pack(node->inputs[1].shape.dims, plain, ret_data);
        return 0;
}

/*
 * Half of what the registers could do; tiles that stand over the edge count whole. Depthwise, the input comes in stripes of a
 * chunk, which takes longer than a stream; with groups the products hide it.
 */
static double grouped_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_grouped *d = state;
        double inputs = (double)d->shape.batch * (double)d->shape.height * (double)d->shape.width * (double)d->in_channels;
        double outputs =
                (double)d->shape.batch * (double)d->shape.out_height * (double)d->shape.out_width * (double)d->out_channels;
        double tiled = (double)d->shape.batch * (double)d->out_channels *
                       (double)sl_align_up((uint64_t)d->shape.out_height, (uint64_t)sl_grouped_rows(d)) *
                       (double)sl_align_up((uint64_t)d->shape.out_width, SL_GROUPED_COLUMNS);
        double products = 2 * tiled * (double)(d->side * d->side * d->shape.channels) / core->flops;
        double traffic = sl_cost_traffic(core, 4 * (outputs + inputs));

        return sl_cost_activation(core, d->shape.epilogue.activation, outputs, false) +
               (d->shape.channels == 1 ? products / core->depthwise + traffic / 0.75
                                       : sl_cost_longer(products / core->grouped, traffic));
}

static int64_t grouped_units(const void *state, uint32_t axis)
{
        return sl_grouped_units(state, axis);
}

static int grouped_run(const void *state, const struct sl_binding *binding)
{
        return sl_grouped_run(state, binding);
}

/* Windows of neighbouring rows lie over each other; a vector of filters reads its own channels. */
static bool grouped_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_grouped *d = state;
        const struct sl_conv_shape *c = &d->shape;
        const int64_t word = sizeof(float), vector = LANES * word;
        struct sl_part lines = sl_grouped_lines(d, part);

        if (operand == SL_REACH_OUTPUT || (c->residual && operand == c->residual))
                return part->axis == SL_AXIS_ROWS ? sl_reach_rows(&lines, c->out_width * d->out_channels * word, ret_reach)
                                                  : sl_reach_columns(part, vector, d->out_channels * word,
                                                            c->batch * c->out_height * c->out_width, ret_reach);
        return operand == 0 && part->axis == SL_AXIS_COLUMNS &&
               sl_reach_columns(part, vector / d->multiplier, d->in_channels * word, c->batch * c->height * c->width, ret_reach);
}

const struct sl_cpu_loop sl_cpu_grouped = {.state_bytes = sizeof(struct sl_grouped),
        .plan = grouped_plan,
        .run = grouped_run,
        .units = grouped_units,
        .reach = grouped_reach,
        .form = grouped_form,
        .repack = grouped_repack,
        .seconds = grouped_seconds,
        .fuses_epilogue = true};

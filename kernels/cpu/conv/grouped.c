/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/grouped.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "shape/window.h"

#define LANES       SL_GROUPED_LANES
#define GROUP_MAX   8 /* from 16 on the library fills its vectors */
#define FILTERS_MAX 8
#define CHUNK_MAX   256
#define NEAR_BYTES  (28 << 10)

static bool read_window(const struct sl_node_desc *node, struct sl_grouped *d)
{
        struct sl_window w;

        if (sl_window_read(node, &w, NULL) || w.kernel[0] != w.kernel[1] || w.stride[0] != w.stride[1])
                return false;
        d->side = w.kernel[0];
        d->stride = w.stride[0];
        d->pad_top = w.pad_begin[0];
        d->pad_left = w.pad_begin[1];
        return (d->side == 3 || ((d->side == 5 || d->side == 7) && d->group == 1)) && (d->stride == 1 || d->stride == 2) &&
               w.dilation[0] == 1 && w.dilation[1] == 1;
}

static bool is_grouped(const struct sl_node_desc *node, struct sl_grouped *d)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0], *f = sl_cpu_input(node, 1);

        if (!f || x->shape.rank != 4 || !sl_cpu_is_nhwc_f32(x) || !sl_cpu_is_nhwc_f32(y) || !sl_cpu_is_f32(f))
                return false;
        if (sl_cpu_is_empty(x) || sl_cpu_is_empty(y) || f->shape.dims[0] % x->shape.dims[1])
                return false;
        d->group = f->shape.dims[1];
        d->filters = f->shape.dims[0] / x->shape.dims[1];
        return sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) * d->group == x->shape.dims[1] && d->group >= 1 &&
               d->group <= GROUP_MAX && LANES % d->group == 0 && d->filters >= 1 && d->filters <= FILTERS_MAX &&
               LANES % d->filters == 0 && (d->filters == 1 || d->group == 1);
}

/*
 * As many channels as let the rows under a tile stay in the first-level cache, so that the next row of tiles finds them there; at
 * least four vectors, since each tile and chunk takes its time. Images too wide for that take 256: more would push out the weights.
 */
static int64_t choose_chunk(const struct sl_grouped *d)
{
        int64_t rows = (sl_grouped_rows(d) - 1) * d->stride + d->side;
        int64_t chunk = NEAR_BYTES / (rows * d->width * (int64_t)sizeof(float)) / LANES * LANES;

        return chunk < 4 * LANES || chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
}

static bool plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        struct sl_grouped *d = state;

        if (!sl_cpu_has_avx2() || !is_grouped(node, d) || !read_window(node, d) || !sl_finish_plan(node, &d->finish))
                return false;
        if (y[3] < SL_GROUPED_COLUMNS || y[2] < sl_grouped_rows(d))
                return false;
        d->batch = x[0];
        d->in_channels = x[1];
        d->channels = y[1];
        d->height = x[2];
        d->width = x[3];
        d->out_height = y[2];
        d->out_width = y[3];
        d->chunk_channels = choose_chunk(d);
        d->has_bias = sl_cpu_input(node, 2) != NULL;
        d->residual = d->finish.has_residual ? node->n_inputs - 1 : 0;
        sizes->scratch_bytes = (size_t)d->in_channels * sizeof(float);
        return true;
}

static bool form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "grouped", f, (int64_t)sl_align_up((uint64_t)f[0], LANES) * f[1] * f[2] * f[3]);
        return index == 1;
}

static int repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t filters = f[0], group = f[1], taps = f[2] * f[3];
        const float *from = plain;
        float *to = ret_data;

        (void)index;
        for (int64_t first = 0; first < filters; first += LANES)
                for (int64_t channel = 0; channel < group; channel++)
                        for (int64_t tap = 0; tap < taps; tap++)
                                for (int64_t lane = 0; lane < LANES; lane++)
                                        *to++ = first + lane < filters ? from[((first + lane) * group + channel) * taps + tap]
                                                                       : 0.0f;
        return 0;
}

/*
 * Half of what the registers could do; tiles that stand over the edge count whole. Depthwise, the input comes in stripes of a
 * chunk, which takes longer than a stream; with groups the products hide it.
 */
static double seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_grouped *d = state;
        double inputs = (double)d->batch * (double)d->height * (double)d->width * (double)d->in_channels;
        double outputs = (double)d->batch * (double)d->out_height * (double)d->out_width * (double)d->channels;
        double tiled = (double)d->batch * (double)d->channels *
                       (double)sl_align_up((uint64_t)d->out_height, (uint64_t)sl_grouped_rows(d)) *
                       (double)sl_align_up((uint64_t)d->out_width, SL_GROUPED_COLUMNS);
        double products = 2 * tiled * (double)(d->side * d->side * d->group) / core->flops;
        double traffic = sl_cost_traffic(core, 4 * (outputs + inputs));

        return sl_cost_activation(core, d->finish.activation, outputs, false) +
               (d->group == 1 ? products / 0.5 + traffic / 0.75 : sl_cost_longer(products / 0.64, traffic));
}

static int run(const void *state, const struct sl_binding *binding)
{
        return sl_grouped_run(state, binding);
}

const struct sl_cpu_loop sl_cpu_grouped = {.state_bytes = sizeof(struct sl_grouped),
        .plan = plan,
        .run = run,
        .form = form,
        .repack = repack,
        .seconds = seconds,
        .finishes = true};

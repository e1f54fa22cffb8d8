/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/dot_panels.h"

#include "cpu/base/operator.h"
#include "shape/window.h"

#include <string.h>

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

static void lay_depth(struct sl_dot_weights *w, bool joins)
{
        int64_t steps, chunks;

        w->piece = joins ? w->kernel[1] * w->channels : w->channels;
        steps = divide_up(w->piece, 4);
        chunks = divide_up(steps, SL_DOT_CHUNK);
        w->depth = (struct sl_dot_depth){.scanlines = w->kernel[0],
                .taps = joins ? 1 : w->kernel[1],
                .steps = steps,
                .chunk = divide_up(steps, chunks),
                .room = chunks * divide_up(steps, chunks)};
        w->panels = divide_up(w->filters, SL_DOT_PANEL);
}

/* The taps of a scanline lie behind each other where no other group's channels, and no hole, are between them. */
static void read_filters(const struct sl_node_desc *node, const struct sl_window *window, struct sl_dot_weights *ret_weights)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), taps = f[2] * f[3];

        *ret_weights = (struct sl_dot_weights){.groups = groups,
                .filters = f[0] / groups,
                .channels = f[1],
                .kernel = {f[2], f[3]},
                .filter_stride = f[1] * taps,
                .channel_stride = taps,
                .tap_strides = {f[3], 1}};
        lay_depth(ret_weights, groups == 1 && window->dilation[1] == 1);
}

static void read_matrix(const struct sl_node_desc *node, struct sl_dot_weights *ret_weights)
{
        bool turned = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int64_t depth = node->inputs[1].shape.dims[turned], columns = node->inputs[1].shape.dims[!turned];

        *ret_weights = (struct sl_dot_weights){.groups = 1,
                .filters = columns,
                .channels = depth,
                .kernel = {1, 1},
                .filter_stride = turned ? depth : 1,
                .channel_stride = turned ? 1 : columns};
        lay_depth(ret_weights, true);
}

void sl_dot_weights_read(const struct sl_node_desc *node, struct sl_dot_weights *ret_weights)
{
        struct sl_window window;

        if (node->op == SL_OP_QUANTIZED_MATMUL)
                read_matrix(node, ret_weights);
        else if (!sl_window_read(node, &window, NULL))
                read_filters(node, &window, ret_weights);
}

/* Column @column of a panel that begins with filter @first of all; what the panel has too many are zeros. */
static void pack_column(const struct sl_dot_weights *w, const int8_t *plain, int64_t first, int64_t column, int8_t *panel)
{
        const int8_t *from = plain + (first + column) * w->filter_stride;
        bool inside = column < w->filters - first % w->filters;
        int8_t *to = panel + SL_DOT_PANEL * (int64_t)sizeof(int32_t) + column * 4;
        int32_t sum = 0;

        for (int64_t scanline = 0; scanline < w->depth.scanlines; scanline++)
                for (int64_t tap = 0; tap < w->depth.taps; tap++)
                        for (int64_t k = 0; k < 4 * w->depth.room; k++) {
                                int64_t at = scanline * w->tap_strides[0] + (tap + k / w->channels) * w->tap_strides[1] +
                                             k % w->channels * w->channel_stride;

                                to[k % 4] = inside && k < w->piece ? from[at] : 0;
                                sum += to[k % 4];
                                to += k % 4 == 3 ? 4 * SL_DOT_PANEL : 0;
                        }
        memcpy(panel + column * (int64_t)sizeof(sum), &sum, sizeof(sum));
}

int64_t sl_dot_weights_bytes(const struct sl_dot_weights *weights)
{
        return weights->groups * weights->panels * sl_dot_panel_bytes(&weights->depth);
}

void sl_dot_weights_pack(const struct sl_dot_weights *weights, const int8_t *plain, int8_t *ret_panels)
{
        for (int64_t panel = 0; panel < weights->groups * weights->panels; panel++)
                for (int64_t column = 0; column < SL_DOT_PANEL; column++)
                        pack_column(weights, plain,
                                panel / weights->panels * weights->filters + panel % weights->panels * SL_DOT_PANEL, column,
                                ret_panels + panel * sl_dot_panel_bytes(&weights->depth));
}

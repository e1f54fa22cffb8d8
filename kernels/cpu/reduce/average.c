/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AveragePool of float32 by windows of many pixels, which oneDNN adds up one after the other: in pairs, row by row where the
 * pixels of a channel lie side by side, else down the columns that the channels are.
 */
#include "cpu/base/rows.h"
#include "cpu/reduce/columns.h"
#include "cpu/reduce/loops.h"
#include "shape/window.h"

/* Pixels: fewer cost no digits worth the name. */
#define MANY 256

struct average {
        int64_t planes, channels; /* PLAIN: a plane for each channel, of 1; CHANNELS_LAST: one for each image */
        int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad_begin[2], pad_end[2];
        bool counts_padding;
};

/* What of a window lies in the image, along one dimension. */
struct reach {
        int64_t first, n, counted;
};

static struct reach reach_of(const struct average *a, int d, int64_t position)
{
        int64_t start = position * a->stride[d] - a->pad_begin[d], step = a->dilation[d], skipped, last, limit;

        skipped = start < 0 ? (-start + step - 1) / step : 0;
        last = start >= a->in[d] ? 0 : (a->in[d] - start - 1) / step + 1;
        last = last < a->kernel[d] ? last : a->kernel[d];
        limit = (a->in[d] + a->pad_end[d] - start - 1) / step + 1;
        limit = limit < a->kernel[d] ? limit : a->kernel[d];
        return (struct reach){start + skipped * step, last > skipped ? last - skipped : 0,
                a->counts_padding ? limit
                : last > skipped  ? last - skipped
                                  : 0};
}

static void read_dim(struct average *a, int d, const struct sl_window *window, uint32_t i, int64_t in, int64_t out)
{
        a->in[d] = in;
        a->out[d] = out;
        a->kernel[d] = window->kernel[i];
        a->stride[d] = window->stride[i];
        a->dilation[d] = window->dilation[i];
        a->pad_begin[d] = window->pad_begin[i];
        a->pad_end[d] = window->pad_end[i];
}

bool sl_cpu_averages_many(const struct sl_node_desc *node)
{
        struct sl_window window;
        double pixels = 1;

        if (node->op != SL_OP_AVERAGE_POOL || !sl_cpu_is_f32(&node->inputs[0]) || sl_window_read(node, &window, NULL) ||
                window.rank > 2)
                return false;
        for (uint32_t i = 0; i < window.rank; i++)
                pixels *= (double)window.kernel[i];
        return pixels > MANY;
}

/* A line is an image of one row. */
static bool average_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        bool last = x->layout == SL_LAYOUT_CHANNELS_LAST;
        struct average *a = state;
        struct sl_window window;

        (void)sizes;
        if (!sl_cpu_averages_many(node) || sl_window_read(node, &window, NULL) || !sl_cpu_same_layout(x, y) || sl_cpu_is_empty(x) ||
                sl_cpu_is_empty(y))
                return false;
        *a = (struct average){.planes = x->shape.dims[0] * (last ? 1 : x->shape.dims[1]),
                .channels = last ? x->shape.dims[1] : 1,
                .in = {1, 1},
                .out = {1, 1},
                .kernel = {1, 1},
                .stride = {1, 1},
                .dilation = {1, 1},
                .counts_padding = sl_attrs_int(&node->attrs, SL_ATTR_COUNT_INCLUDE_PAD, 0) != 0};
        for (uint32_t i = 0; i < window.rank; i++)
                read_dim(a, (int)(i + 2 - window.rank), &window, i, x->shape.dims[2 + i], y->shape.dims[2 + i]);
        return true;
}

/* Rows of pixels that lie side by side are summed as such; how many there are no float would lose. */
static float sum_of_plane(const struct average *a, const struct reach *down, const struct reach *across, const float *plane)
{
        double sum = 0;

        for (int64_t i = 0; i < down->n; i++) {
                const float *row = plane + (down->first + i * a->dilation[0]) * a->in[1] + across->first;

                if (a->dilation[1] == 1) {
                        sum += (double)sl_row_sum(row, across->n);
                        continue;
                }
                for (int64_t k = 0; k < across->n; k++)
                        sum += (double)row[k * a->dilation[1]];
        }
        return (float)sum;
}

static void average_at(const struct average *a, int64_t row, int64_t column, const float *image, float *y)
{
        struct reach down = reach_of(a, 0, row), across = reach_of(a, 1, column);
        int64_t c = a->channels, count = down.counted * across.counted;

        if (c == 1) {
                *y = sum_of_plane(a, &down, &across, image);
        } else {
                const struct sl_columns columns = {.lines = down.n,
                        .length = across.n,
                        .line = a->dilation[0] * a->in[1] * c,
                        .row = a->dilation[1] * c,
                        .width = c};

                sl_column_sums(&columns, SL_COLUMN_VALUES, image + (down.first * a->in[1] + across.first) * c, y);
        }
        for (int64_t i = 0; i < c; i++)
                y[i] /= (float)count;
}

static int average_run(const void *state, const struct sl_binding *binding)
{
        const struct average *a = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, a->planes * a->out[0]);
        float *y = (float *)binding->outputs[0] + rows.first * a->out[1] * a->channels;

        for (int64_t row = rows.first; row < rows.end; row++) {
                const float *x = (const float *)binding->inputs[0] + row / a->out[0] * a->in[0] * a->in[1] * a->channels;

                for (int64_t column = 0; column < a->out[1]; column++, y += a->channels)
                        average_at(a, row % a->out[0], column, x, y);
        }
        return 0;
}

static int64_t average_units(const void *state, uint32_t axis)
{
        const struct average *a = state;

        return axis == SL_AXIS_ROWS ? a->planes * a->out[0] : 0;
}

const struct sl_cpu_loop sl_cpu_average = {
        .state_bytes = sizeof(struct average), .plan = average_plan, .run = average_run, .units = average_units};

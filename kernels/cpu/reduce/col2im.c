/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Col2Im of float32 images of two dimensions: plane by plane, rows of each tap are added to the rows of the image that they belong
 * to, tap after tap.
 */
#include "cpu/reduce/loops.h"
#include "shape/rearrange.h"
#include "shape/window.h"

#include <string.h>

struct col2im {
        int64_t planes, height, width, rows, columns; /* the image, and positions of the window on it */
        struct sl_window window;
};

static bool col2im_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct sl_node_desc image;
        struct col2im *c = state;

        (void)sizes;
        if (sl_cpu_input(node, 1) || sl_cpu_input(node, 2) || !sl_cpu_is_f32(x) || x->layout != SL_LAYOUT_PLAIN ||
                y->layout != SL_LAYOUT_PLAIN || y->shape.rank != 4 || sl_cpu_is_empty(x) || sl_cpu_is_empty(y))
                return false;
        sl_col2im_image(node, &image);
        c->planes = y->shape.dims[0] * y->shape.dims[1];
        c->height = y->shape.dims[2];
        c->width = y->shape.dims[3];
        return !sl_window_read(&image, &c->window, NULL) && !sl_window_positions(&c->window, 0, c->height, &c->rows, NULL) &&
               !sl_window_positions(&c->window, 1, c->width, &c->columns, NULL);
}

/* The positions of dimension @d from which the tap at @at (without padding) is inside of @size. */
static struct sl_part inside(const struct col2im *c, uint32_t d, int64_t at, int64_t size, int64_t positions)
{
        int64_t stride = c->window.stride[d], first = at < 0 ? (stride - 1 - at) / stride : 0;
        int64_t end = size - at > 0 ? (size - at + stride - 1) / stride : 0;

        return (struct sl_part){.first = first, .end = end < positions ? end : positions};
}

static inline __attribute__((always_inline)) void add_tap(
        const struct col2im *c, int64_t top, int64_t left, int64_t stride, const float *x, float *y)
{
        struct sl_part rows = inside(c, 0, top, c->height, c->rows), columns = inside(c, 1, left, c->width, c->columns);

        for (int64_t r = rows.first; r < rows.end; r++) {
                float *to = y + (r * c->window.stride[0] + top) * c->width + left;
                const float *from = x + r * c->columns;

                for (int64_t i = columns.first; i < columns.end; i++)
                        to[i * stride] += from[i];
        }
}

SL_CPU_CLONES static void add_taps(const struct col2im *c, const float *x, float *y)
{
        const struct sl_window *w = &c->window;

        for (int64_t ky = 0; ky < w->kernel[0]; ky++)
                for (int64_t kx = 0; kx < w->kernel[1]; kx++, x += c->rows * c->columns) {
                        int64_t top = ky * w->dilation[0] - w->pad_begin[0], left = kx * w->dilation[1] - w->pad_begin[1];

                        if (w->stride[1] == 1)
                                add_tap(c, top, left, 1, x, y);
                        else
                                add_tap(c, top, left, w->stride[1], x, y);
                }
}

static int64_t plane_columns(const struct col2im *c)
{
        return c->window.kernel[0] * c->window.kernel[1] * c->rows * c->columns;
}

static int col2im_run(const void *state, const struct sl_binding *binding)
{
        const struct col2im *c = state;
        struct sl_part planes = sl_part_along(binding->part, SL_AXIS_ROWS, c->planes);
        int64_t pixels = c->height * c->width;

        for (int64_t p = planes.first; p < planes.end; p++) {
                float *y = (float *)binding->outputs[0] + p * pixels;

                memset(y, 0, (size_t)pixels * sizeof(*y));
                add_taps(c, (const float *)binding->inputs[0] + p * plane_columns(c), y);
        }
        return 0;
}

static int64_t col2im_units(const void *state, uint32_t axis)
{
        return axis == SL_AXIS_ROWS ? ((const struct col2im *)state)->planes : 0;
}

static bool col2im_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct col2im *c = state;
        int64_t elements = operand == SL_REACH_OUTPUT ? c->height * c->width : plane_columns(c);

        return sl_reach_rows(part, elements * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_col2im = {
        .state_bytes = sizeof(struct col2im), .plan = col2im_plan, .run = col2im_run, .units = col2im_units, .reach = col2im_reach};

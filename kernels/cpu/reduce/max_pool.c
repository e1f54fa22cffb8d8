/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool over images in channels-last. The rows under a window are joined first, as long rows of all pixels and channels; then
 * the pixels of the joined row. A window of 3 x 3 so takes six comparisons and not nine.
 */
#include "cpu/reduce/loops.h"
#include "shape/window.h"

#include <string.h>

#define FEW 16 /* floats of a vector */

struct max_pool {
        int64_t batch, channels, height, width, rows, columns; /* rows and columns of the output */
        int64_t kernel[2], stride[2], dilation[2], pad[2];
};

/* The first and the number of kernel elements of @position that lie inside of @size. */
static int64_t inside(const struct max_pool *p, int d, int64_t position, int64_t size, int64_t *ret_first)
{
        int64_t from = position * p->stride[d] - p->pad[d], first = 0, n;

        if (from >= 0 && from + (p->kernel[d] - 1) * p->dilation[d] < size) {
                *ret_first = 0;
                return p->kernel[d];
        }
        if (from < 0)
                first = (-from + p->dilation[d] - 1) / p->dilation[d];
        n = size - from <= 0 ? 0 : (size - from - 1) / p->dilation[d] + 1;
        n = n < p->kernel[d] ? n : p->kernel[d];
        *ret_first = first;
        return n - first;
}

static bool all_have_pixels(const struct max_pool *p)
{
        int64_t first;

        for (int64_t i = 0; i < p->rows; i++)
                if (inside(p, 0, i, p->height, &first) < 1)
                        return false;
        for (int64_t i = 0; i < p->columns; i++)
                if (inside(p, 1, i, p->width, &first) < 1)
                        return false;
        return true;
}

static bool max_pool_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct max_pool *p = state;
        struct sl_window window;

        if (!sl_cpu_is_nhwc_f32(x) || !sl_cpu_is_nhwc_f32(y) || x->shape.rank != 4 || node->n_outputs != 1 || sl_cpu_is_empty(x) ||
                sl_cpu_is_empty(y) || sl_window_read(node, &window, NULL))
                return false;
        *p = (struct max_pool){.batch = x->shape.dims[0],
                .channels = x->shape.dims[1],
                .height = x->shape.dims[2],
                .width = x->shape.dims[3],
                .rows = y->shape.dims[2],
                .columns = y->shape.dims[3]};
        for (int d = 0; d < 2; d++) {
                p->kernel[d] = window.kernel[d];
                p->stride[d] = window.stride[d];
                p->dilation[d] = window.dilation[d];
                p->pad[d] = window.pad_begin[d];
        }
        sizes->scratch_bytes = (size_t)(p->width * p->channels) * sizeof(float);
        if (p->channels < FEW)
                sizes->scratch_bytes = 2 * sizes->scratch_bytes + FEW * sizeof(float);
        return all_have_pixels(p);
}

/* The greatest of @n rows of @length floats, @step apart. */
SL_CPU_CLONES static void join(int64_t length, int64_t n, const float *restrict x, int64_t step, float *restrict y)
{
        int64_t done = n % 2 ? 1 : 2;

        if (n % 2)
                memcpy(y, x, (size_t)length * sizeof(*y));
        else
                for (int64_t i = 0; i < length; i++)
                        y[i] = x[i] > x[step + i] ? x[i] : x[step + i];
        for (; done < n; done += 2) {
                const float *a = x + done * step, *b = a + step;

                for (int64_t i = 0; i < length; i++) {
                        float greater = a[i] > b[i] ? a[i] : b[i];

                        y[i] = greater > y[i] ? greater : y[i];
                }
        }
}

/* Three rows are the usual case: one pass instead of two. */
SL_CPU_CLONES static void join_three(int64_t length, const float *restrict x, int64_t step, float *restrict y)
{
        const float *b = x + step, *c = b + step;

        for (int64_t i = 0; i < length; i++) {
                float greater = x[i] > b[i] ? x[i] : b[i];

                y[i] = greater > c[i] ? greater : c[i];
        }
}

static void join_rows(int64_t length, int64_t n, const float *x, int64_t step, float *y)
{
        if (n == 3)
                join_three(length, x, step, y);
        else
                join(length, n, x, step, y);
}

static void pool_pixel(const struct max_pool *p, const float *joined, int64_t column, float *y)
{
        int64_t first, n = inside(p, 1, column, p->width, &first);

        join_rows(p->channels, n, joined + (column * p->stride[1] - p->pad[1] + first * p->dilation[1]) * p->channels,
                p->dilation[1] * p->channels, y + column * p->channels);
}

/*
 * Channels that fill no vector: the windows at all pixels of the row at once, of which those that count are taken; whole vectors of
 * them, where what follows in @y is written later.
 */
static void pool_few(const struct max_pool *p, const float *joined, float *all, float *y)
{
        int64_t windows = p->width - (p->kernel[1] - 1) * p->dilation[1], c = p->channels;

        if (windows > 0)
                join_rows(windows * c, p->kernel[1], joined, p->dilation[1] * c, all);
        for (int64_t column = 0; column < p->columns; column++) {
                int64_t left = column * p->stride[1] - p->pad[1];

                if (left < 0 || left >= windows)
                        pool_pixel(p, joined, column, y);
                else if (column * c + FEW <= p->columns * c)
                        memcpy(y + column * c, all + left * c, FEW * sizeof(*y));
                else
                        memcpy(y + column * c, all + left * c, (size_t)c * sizeof(*y));
        }
}

static void pool_row(const struct max_pool *p, const float *image, int64_t row, float *joined, float *y)
{
        int64_t length = p->width * p->channels, first, n = inside(p, 0, row, p->height, &first);
        int64_t top = row * p->stride[0] - p->pad[0] + first * p->dilation[0];

        join_rows(length, n, image + top * length, p->dilation[0] * length, joined);
        if (p->channels < FEW) {
                pool_few(p, joined, joined + length, y);
                return;
        }
        for (int64_t column = 0; column < p->columns; column++)
                pool_pixel(p, joined, column, y);
}

static int max_pool_run(const void *state, const struct sl_binding *binding)
{
        const struct max_pool *p = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->batch * p->rows);

        for (int64_t i = rows.first; i < rows.end; i++)
                pool_row(p, (const float *)binding->inputs[0] + i / p->rows * p->height * p->width * p->channels, i % p->rows,
                        binding->scratch, (float *)binding->outputs[0] + i * p->columns * p->channels);
        return 0;
}

static int64_t max_pool_units(const void *state, uint32_t axis)
{
        const struct max_pool *p = state;

        return axis == SL_AXIS_ROWS ? p->batch * p->rows : 0;
}

/* oneDNN compares each pixel of each window, and is never faster. */
static double max_pool_seconds(const struct sl_core_figures *core, const void *state)
{
        (void)core;
        (void)state;
        return 0;
}

/* Windows of neighbouring rows lie over each other. */
static bool max_pool_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct max_pool *p = state;

        return operand == SL_REACH_OUTPUT && sl_reach_rows(part, p->columns * p->channels * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_max_pool = {.state_bytes = sizeof(struct max_pool),
        .plan = max_pool_plan,
        .run = max_pool_run,
        .units = max_pool_units,
        .reach = max_pool_reach,
        .seconds = max_pool_seconds};

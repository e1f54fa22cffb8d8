/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LRN of PLAIN tensors of float32: x / (bias + alpha / size * the squares of `size` neighbours among the channels) ^ beta. Some
 * pixels at a time, whose channels stay in a cache while they are under the window.
 */
#include "cpu/base/vector_math.h"
#include "cpu/reduce/loops.h"

#include <math.h>
#include <string.h>

#define PIXELS 256 /* at a time */

struct response {
        int64_t samples, channels, pixels, before, after;
        float alpha, beta, bias; /* alpha by the size */
};

static bool response_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        int64_t size = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);
        struct response *r = state;

        (void)sizes;
        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(y) || x->shape.rank < 2 || x->layout != SL_LAYOUT_PLAIN ||
                y->layout != SL_LAYOUT_PLAIN || size < 1)
                return false;
        *r = (struct response){.samples = x->shape.dims[0],
                .channels = x->shape.dims[1],
                .pixels = 1,
                .before = (size - 1) / 2,
                .after = size / 2,
                .alpha = (float)(sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1e-4) / (double)size),
                .beta = (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.75),
                .bias = (float)sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 1)};
        for (uint32_t d = 2; d < x->shape.rank; d++)
                r->pixels *= x->shape.dims[d];
        return true;
}

SL_CPU_CLONES static void add_squares(int64_t n, float *restrict sums, const float *restrict x)
{
        for (int64_t i = 0; i < n; i++)
                sums[i] += x[i] * x[i];
}

/* Of five neighbours, the usual case: one pass. */
SL_CPU_CLONES static void add_five(int64_t n, float *restrict sums, const float *restrict x, int64_t step)
{
        for (int64_t i = 0; i < n; i++) {
                float a = x[i], b = x[step + i], c = x[2 * step + i], d = x[3 * step + i], e = x[4 * step + i];

                sums[i] = ((a * a + b * b) + (c * c + d * d)) + e * e;
        }
}

SL_CPU_CLONES static void respond(
        const struct response *r, int64_t n, float *restrict y, const float *restrict x, const float *restrict sums)
{
        for (int64_t i = 0; i < n; i++)
                y[i] = x[i] * sl_exp(-r->beta * sl_log(r->bias + r->alpha * sums[i]));
}

/* With beta 3/4, by two square roots. */
SL_CPU_CLONES static void respond_by_roots(
        const struct response *r, int64_t n, float *restrict y, const float *restrict x, const float *restrict sums)
{
        for (int64_t i = 0; i < n; i++) {
                float root = sqrtf(r->bias + r->alpha * sums[i]);

                y[i] = x[i] / (root * sqrtf(root));
        }
}

/* @n pixels of channel @c; x and y begin with the sample's. */
static void response_row(const struct response *r, int64_t c, int64_t pixel, int64_t n, float *y, const float *x)
{
        int64_t first = c < r->before ? 0 : c - r->before, last = c + r->after < r->channels ? c + r->after : r->channels - 1;
        float sums[PIXELS];

        if (last - first == 4) {
                add_five(n, sums, x + first * r->pixels + pixel, r->pixels);
        } else {
                memset(sums, 0, sizeof(sums));
                for (int64_t k = first; k <= last; k++)
                        add_squares(n, sums, x + k * r->pixels + pixel);
        }
        (r->beta == 0.75f ? respond_by_roots : respond)(r, n, y + c * r->pixels + pixel, x + c * r->pixels + pixel, sums);
}

static int response_run(const void *state, const struct sl_binding *binding)
{
        const struct response *r = state;
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, r->samples);

        for (int64_t s = part.first; s < part.end; s++)
                for (int64_t pixel = 0; pixel < r->pixels; pixel += PIXELS)
                        for (int64_t c = 0; c < r->channels; c++)
                                response_row(r, c, pixel, r->pixels - pixel < PIXELS ? r->pixels - pixel : PIXELS,
                                        (float *)binding->outputs[0] + s * r->channels * r->pixels,
                                        (const float *)binding->inputs[0] + s * r->channels * r->pixels);
        return 0;
}

static int64_t response_units(const void *state, uint32_t axis)
{
        const struct response *r = state;

        return axis == SL_AXIS_ROWS ? r->samples : 0;
}

static bool response_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct response *r = state;

        (void)operand;
        return sl_reach_rows(part, r->channels * r->pixels * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_response = {.state_bytes = sizeof(struct response),
        .plan = response_plan,
        .run = response_run,
        .units = response_units,
        .reach = response_reach};

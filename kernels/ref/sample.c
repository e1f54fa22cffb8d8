/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GridSample and AffineGrid. A place outside the image (or no number at all) is handled by the padding mode: nothing is read there.
 */
#include "element.h"
#include "kernels.h"

#include <string.h>

enum { MODE_LINEAR, MODE_NEAREST, MODE_CUBIC };
enum { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION };

/* Images written with three spatial dimensions; a missing one leads with size 1. */
struct sampler {
        const void *data;
        uint32_t dtype, rank;
        int64_t mode, padding, size[3];
        bool corners;
};

/* The place between the edges that mirrors at the edges lead to. */
static double reflect(double x, double low, double high)
{
        double range = high - low, distance;

        if (range <= 0)
                return low;
        distance = x < low ? low - x : x > high ? x - high : -1;
        if (distance < 0)
                return x;
        bool odd = fmod(floor(distance / range), 2) == 1;
        double rest = distance - floor(distance / range) * range;

        if (x < low)
                return odd ? high - rest : low + rest;
        return odd ? low + rest : high - rest;
}

/* The index that stands for @i along dimension @d, or -1 for none. */
static int64_t index_of(const struct sampler *s, uint32_t d, double i)
{
        double last = (double)(s->size[d] - 1);

        if (!(i >= 0 && i <= last)) {
                if (s->padding == PADDING_ZEROS || !isfinite(i))
                        return -1;
                i = s->padding == PADDING_BORDER ? fmin(fmax(i, 0), last)
                                                 : reflect(i, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5);
                i = fmin(fmax(i, 0), last);
        }
        return (int64_t)i;
}

/* From [-1, 1] to pixels, brought into the image as the padding says. */
static double pixel_of(const struct sampler *s, uint32_t d, double x)
{
        double size = (double)s->size[d], low = s->corners ? 0 : -0.5, high = s->corners ? size - 1 : size - 0.5;

        x = s->corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
        if (s->mode == MODE_NEAREST)
                x = nearbyint(x);
        if (x < low || x > high) {
                if (s->padding == PADDING_BORDER)
                        x = fmin(fmax(x, 0), size - 1);
                else if (s->padding == PADDING_REFLECTION)
                        x = reflect(x, low, high);
        }
        return x;
}

static double weight_of(const struct sampler *s, double distance)
{
        const double a = -0.75;

        distance = fabs(distance);
        if (s->mode == MODE_LINEAR)
                return distance < 1 ? 1 - distance : 0;
        if (distance <= 1)
                return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
        return distance < 2 ? ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a : 0;
}

/* The weighted sum over dimensions from @d on. */
static double sample(const struct sampler *s, int64_t plane, const double x[3], uint32_t d)
{
        bool missing = 3 - d > s->rank, single = missing || s->mode == MODE_NEAREST;
        int taps = single ? 1 : s->mode == MODE_CUBIC ? 4 : 2;
        double begin = single ? x[d] : floor(x[d]) - (s->mode == MODE_CUBIC ? 1 : 0), sum = 0;

        for (int k = 0; k < taps; k++) {
                double weight = single ? 1 : weight_of(s, x[d] - (begin + k));
                int64_t at = index_of(s, d, begin + k);

                if (at < 0 || weight == 0)
                        continue;
                at += plane * s->size[d];
                sum += weight * (d == 2 ? sl_ref_load(s->data, at, s->dtype) : sample(s, at, x, d + 1));
        }
        return isfinite(x[d]) ? sum : 0;
}

int sl_ref_grid_sample(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        uint32_t rank = in->rank - 2;
        int64_t positions = 1, channels = in->dims[1];
        uint64_t taps = rank == 2 ? 16 : 64; /* at most */
        struct sampler s = {.data = binding->inputs[0],
                .dtype = node->inputs[0].dtype,
                .rank = rank,
                .mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0),
                .padding = sl_attrs_int(&node->attrs, SL_ATTR_PADDING_MODE, 0),
                .size = {1, 1, 1},
                .corners = sl_attrs_int(&node->attrs, SL_ATTR_ALIGN_CORNERS, 0)};

        for (uint32_t i = 0; i < rank; i++) {
                s.size[3 - rank + i] = in->dims[i + 2];
                positions *= out->dims[i + 2];
        }
        for (int64_t i = 0; i < out->dims[0] * positions && sl_pace_on(binding->pace, 1); i++) {
                double x[3] = {0};

                /* The grid names the last dimension first. */
                for (uint32_t d = 0; d < rank; d++)
                        x[2 - d] = pixel_of(&s, 2 - d, sl_ref_load(binding->inputs[1], i * rank + d, node->inputs[1].dtype));
                for (int64_t c = 0; c < channels && sl_pace_on(binding->pace, taps); c++) {
                        int64_t plane = i / positions * channels + c;

                        sl_ref_store(binding->outputs[0], plane * positions + i % positions, s.dtype, sample(&s, plane, x, 0));
                }
        }
        return 0;
}

int sl_ref_affine_grid(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *out = &node->outputs[0].shape;
        uint32_t axes = out->rank - 2, dtype = node->inputs[0].dtype;
        bool corners = sl_attrs_int(&node->attrs, SL_ATTR_ALIGN_CORNERS, 0);
        int64_t n = (int64_t)sl_shape_elements(out), positions = out->dims[0] ? n / axes / out->dims[0] : 0;

        for (int64_t i = 0; i < n / axes && sl_pace_on(binding->pace, axes * axes); i++) {
                double place[4] = {0};
                int64_t rest = i % positions;

                for (uint32_t d = axes; d-- > 0; rest /= out->dims[d + 1]) {
                        double size = (double)out->dims[d + 1], at = (double)(rest % out->dims[d + 1]);

                        place[axes - 1 - d] = corners ? (size > 1 ? -1 + 2 * at / (size - 1) : 0) : -1 + (2 * at + 1) / size;
                }
                place[axes] = 1;
                for (uint32_t row = 0; row < axes; row++) {
                        double sum = 0;

                        for (uint32_t k = 0; k <= axes; k++)
                                sum += place[k] *
                                       sl_ref_load(binding->inputs[0], (i / positions * axes + row) * (axes + 1) + k, dtype);
                        sl_ref_store(binding->outputs[0], i * axes + row, dtype, sum);
                }
        }
        return 0;
}

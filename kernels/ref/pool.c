/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"
#include "span.h"

#include <errno.h>
#include <string.h>

/* How the elements under a window become one: the largest (a NaN stays), their sum, or the sum of their powers. */
struct pooling {
        bool max, powers;
        double p;
};

static struct pooling pooling_of(const struct sl_node_desc *node)
{
        return (struct pooling){.max = node->op == SL_OP_MAX_POOL || node->op == SL_OP_GLOBAL_MAX_POOL,
                .powers = node->op == SL_OP_LP_POOL || node->op == SL_OP_GLOBAL_LP_POOL,
                .p = (double)sl_attrs_int(&node->attrs, SL_ATTR_P, 2)};
}

/* @ret_place: of the largest, in the image. */
static double pool_window(const struct sl_ref_span *span, const struct sl_ref_taps *taps, const void *image, int64_t image_at,
        uint32_t dtype, const struct pooling *pooling, struct sl_pace *pace, int64_t *ret_place)
{
        double result = pooling->max ? -(double)INFINITY : 0;
        uint64_t columns = 1 + (uint64_t)(taps->last[2] - taps->first[2]);
        int64_t place = -1;

        for (int64_t z = taps->first[0]; z < taps->last[0]; z++)
                for (int64_t y = taps->first[1]; y < taps->last[1] && sl_pace_on(pace, columns); y++)
                        for (int64_t x = taps->first[2]; x < taps->last[2]; x++) {
                                const int64_t *d = span->window.dilation;
                                int64_t row = (taps->start[0] + z * d[0]) * span->in[1] + taps->start[1] + y * d[1];
                                int64_t at = row * span->in[2] + taps->start[2] + x * d[2];
                                double v = sl_ref_load(image, image_at + at, dtype);

                                if (!pooling->max) {
                                        result += pooling->powers ? pow(fabs(v), pooling->p) : v;
                                } else if (place < 0 || isnan(v) || v > result) {
                                        result = isnan(result) ? result : v;
                                        place = at;
                                }
                        }
        *ret_place = place;
        return result;
}

/* Place of a pixel when the first spatial dimension runs fastest; -1 of none, where the image has no pixels. */
static int64_t by_columns(const struct sl_ref_span *span, int64_t place)
{
        if (place < 0)
                return place;

        int64_t x = place % span->in[2], y = place / span->in[2] % span->in[1], z = place / span->in[2] / span->in[1];

        return (x * span->in[1] + y) * span->in[0] + z;
}

/*
 * What an average divides by: taps in the image, or in the image and its padding (but not beyond, where ceil_mode reaches).
 * In double: windows may be much wider than the image.
 */
static double count_taps(const struct sl_ref_span *span, const struct sl_ref_taps *taps, bool padding_too)
{
        double count = 1;

        for (uint32_t i = 0; i < SL_SPATIAL_MAX; i++) {
                int64_t limit = span->in[i] + span->window.pad_end[i], inside = taps->last[i] - taps->first[i];

                if (padding_too) {
                        inside = (limit - taps->start[i] - 1) / span->window.dilation[i] + 1;
                        inside = inside < span->window.kernel[i] ? inside : span->window.kernel[i];
                }
                count *= (double)inside;
        }
        return count;
}

int sl_ref_pool(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t planes = node->inputs[0].shape.dims[0] * node->inputs[0].shape.dims[1];
        bool padding_too = sl_attrs_int(&node->attrs, SL_ATTR_COUNT_INCLUDE_PAD, 0);
        bool columns = sl_attrs_int(&node->attrs, SL_ATTR_STORAGE_ORDER, 0);
        uint32_t dtype = node->inputs[0].dtype;
        struct pooling pooling = pooling_of(node);
        struct sl_ref_span span;

        sl_ref_span_read(node, &span);
        for (int64_t i = 0; i < planes; i++)
                for (int64_t p = 0; p < span.out_size && sl_pace_on(binding->pace, 1); p++) {
                        struct sl_ref_taps taps;
                        int64_t place = 0;

                        sl_ref_span_at(&span, p, &taps);
                        double result = pool_window(
                                &span, &taps, binding->inputs[0], i * span.in_size, dtype, &pooling, binding->pace, &place);
                        double count = node->op == SL_OP_AVERAGE_POOL ? count_taps(&span, &taps, padding_too) : 1;

                        if (pooling.powers)
                                result = pow(result, 1 / pooling.p);
                        sl_ref_store(binding->outputs[0], i * span.out_size + p, dtype, count > 0 ? result / count : 0);
                        if (node->n_outputs > 1)
                                ((int64_t *)binding->outputs[1])[i * span.out_size + p] =
                                        i * span.in_size + (columns ? by_columns(&span, place) : place);
                }
        return 0;
}

int sl_ref_global_pool(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t planes = in->dims[0] * in->dims[1], size = 1;
        uint32_t dtype = node->inputs[0].dtype;
        struct pooling pooling = pooling_of(node);

        for (uint32_t i = 2; i < in->rank; i++)
                size *= in->dims[i];
        for (int64_t i = 0; i < planes && sl_pace_on(binding->pace, 1); i++) {
                double result = pooling.max ? -(double)INFINITY : 0;

                for (int64_t k = 0; k < size && sl_pace_on(binding->pace, 1); k++) {
                        double v = sl_ref_load(binding->inputs[0], i * size + k, dtype);

                        if (!pooling.max)
                                result += pooling.powers ? pow(fabs(v), pooling.p) : v;
                        else if (isnan(v) || v > result)
                                result = v;
                }
                if (pooling.powers)
                        result = pow(result, 1 / pooling.p);
                sl_ref_store(binding->outputs[0], i, dtype, pooling.max || pooling.powers ? result : result / (double)size);
        }
        return 0;
}

/* Offset in the output of the element that lies at @at of a tensor of that shape; -ERANGE when the output has no such place. */
static int64_t place_in(const struct sl_shape *out, const struct sl_shape *shape, int64_t at)
{
        int64_t offset = 0, stride = 1;

        for (uint32_t i = shape->rank; i-- > 0;) {
                int64_t index = at % shape->dims[i];

                at /= shape->dims[i];
                if (index >= out->dims[i])
                        return -ERANGE;
                offset += index * stride;
                stride *= out->dims[i];
        }
        return offset;
}

int sl_ref_max_unpool(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *out = &node->outputs[0].shape;
        int64_t n = (int64_t)sl_shape_elements(&node->inputs[0].shape), n_before;
        const int64_t *places = binding->inputs[1];
        struct sl_shape before = {.rank = 0};
        uint32_t dtype = node->inputs[0].dtype;

        sl_unpooled_shape(node, &before, NULL);
        n_before = (int64_t)sl_shape_elements(&before);
        memset(binding->outputs[0], 0, sl_tensor_bytes(&node->outputs[0]));
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                int64_t at = places[i] < 0 || places[i] >= n_before ? -ERANGE : place_in(out, &before, places[i]);

                if (at < 0)
                        return -ERANGE;
                sl_ref_store(binding->outputs[0], at, dtype, sl_ref_load(binding->inputs[0], i, dtype));
        }
        return 0;
}

#include "element.h"
#include "kernels.h"
#include "span.h"

/* The largest or the sum of the elements under the window; a NaN stays. */
static double window_fold(const struct sl_ref_span *span, const struct sl_ref_taps *taps, const void *image, int64_t image_at,
        uint32_t dtype, bool max)
{
        double result = max ? -(double)INFINITY : 0;

        for (int64_t z = taps->first[0]; z < taps->last[0]; z++)
                for (int64_t y = taps->first[1]; y < taps->last[1]; y++)
                        for (int64_t x = taps->first[2]; x < taps->last[2]; x++) {
                                const int64_t *d = span->window.dilation;
                                int64_t row = (taps->start[0] + z * d[0]) * span->in[1] + taps->start[1] + y * d[1];
                                double v = sl_ref_load(image, image_at + row * span->in[2] + taps->start[2] + x * d[2], dtype);

                                if (!max)
                                        result += v;
                                else if (isnan(v) || v > result)
                                        result = v;
                        }
        return result;
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
        bool padding_too = sl_attrs_int(&node->attrs, SL_ATTR_COUNT_INCLUDE_PAD, 0), max = node->op == SL_OP_MAX_POOL;
        uint32_t dtype = node->inputs[0].dtype;
        struct sl_ref_span span;

        sl_ref_span_read(node, &span);
        for (int64_t i = 0; i < planes; i++)
                for (int64_t p = 0; p < span.out_size; p++) {
                        struct sl_ref_taps taps;

                        sl_ref_span_at(&span, p, &taps);
                        double result = window_fold(&span, &taps, binding->inputs[0], i * span.in_size, dtype, max);
                        double count = max ? 1 : count_taps(&span, &taps, padding_too);
                        sl_ref_store(binding->outputs[0], i * span.out_size + p, dtype, count > 0 ? result / count : 0);
                }
        return 0;
}

int sl_ref_global_pool(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t planes = in->dims[0] * in->dims[1], size = 1;
        bool max = node->op == SL_OP_GLOBAL_MAX_POOL;
        uint32_t dtype = node->inputs[0].dtype;

        for (uint32_t i = 2; i < in->rank; i++)
                size *= in->dims[i];
        for (int64_t i = 0; i < planes; i++) {
                double result = max ? -(double)INFINITY : 0;

                for (int64_t k = 0; k < size; k++) {
                        double v = sl_ref_load(binding->inputs[0], i * size + k, dtype);

                        if (!max)
                                result += v;
                        else if (isnan(v) || v > result)
                                result = v;
                }
                sl_ref_store(binding->outputs[0], i, dtype, max ? result : result / (double)size);
        }
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "span.h"

#include <stddef.h>

void sl_ref_span_read(const struct sl_node_desc *node, struct sl_ref_span *ret_span)
{
        struct sl_ref_span span = {.in_size = 1, .out_size = 1};
        struct sl_window read = {.rank = 0};

        sl_window_read(node, &read, NULL);
        uint32_t missing = SL_SPATIAL_MAX - read.rank;
        span.window.rank = SL_SPATIAL_MAX;
        for (uint32_t i = 0; i < SL_SPATIAL_MAX; i++) {
                bool real = i >= missing;
                uint32_t from = real ? i - missing : 0;

                span.window.kernel[i] = real ? read.kernel[from] : 1;
                span.window.stride[i] = real ? read.stride[from] : 1;
                span.window.dilation[i] = real ? read.dilation[from] : 1;
                span.window.pad_begin[i] = real ? read.pad_begin[from] : 0;
                span.window.pad_end[i] = real ? read.pad_end[from] : 0;
                span.in[i] = real ? node->inputs[0].shape.dims[2 + from] : 1;
                span.out[i] = real ? node->outputs[0].shape.dims[2 + from] : 1;
                span.in_size *= span.in[i];
                span.out_size *= span.out[i];
        }
        *ret_span = span;
}

/* Taps t below @kernel with start + t * dilation below @limit; @limit - @start may be negative. */
static int64_t taps_below(int64_t start, int64_t dilation, int64_t kernel, int64_t limit)
{
        int64_t distance = limit - start;
        int64_t taps = distance > 0 ? (distance - 1) / dilation + 1 : 0;

        return taps < kernel ? taps : kernel;
}

void sl_ref_span_at(const struct sl_ref_span *span, int64_t position, struct sl_ref_taps *ret_taps)
{
        for (uint32_t i = SL_SPATIAL_MAX; i-- > 0;) {
                int64_t start = position % span->out[i] * span->window.stride[i] - span->window.pad_begin[i];

                position /= span->out[i];
                ret_taps->start[i] = start;
                ret_taps->first[i] = taps_below(start, span->window.dilation[i], span->window.kernel[i], 0);
                ret_taps->last[i] = taps_below(start, span->window.dilation[i], span->window.kernel[i], span->in[i]);
        }
}

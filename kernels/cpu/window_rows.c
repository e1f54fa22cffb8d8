/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a convolution's product, and their way through it. For AVX-512.
 */
#include "cpu/gemm.h"
#include "cpu/vector.h"
#include "cpu/window_product.h"

static void copy_floats(float *to, const float *from, int64_t n)
{
        int64_t i = 0;

        for (; i + SL_VECTOR_FLOATS <= n; i += SL_VECTOR_FLOATS)
                _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
        if (i < n)
                _mm512_mask_storeu_ps(to + i, sl_vector_mask(n - i), _mm512_maskz_loadu_ps(sl_vector_mask(n - i), from + i));
}

static void clear_floats(float *to, int64_t n)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                _mm512_mask_storeu_ps(to + i, sl_vector_mask(n - i), _mm512_setzero_ps());
}

/* One line of the window: what lies left and right of the image is 0. Neighbours are copied in one piece. */
static void copy_line(const struct sl_window_product *p, const float *line, int64_t left, float *to)
{
        int64_t taps = p->window.kernel[1], step = p->window.dilation[1], c = p->channels;

        if (step == 1 && left >= 0 && left + taps <= p->width) {
                copy_floats(to, line + left * c, taps * c);
                return;
        }
        for (int64_t i = 0; i < taps; i++) {
                int64_t x = left + i * step;

                if (x >= 0 && x < p->width)
                        copy_floats(to + i * c, line + x * c, c);
                else
                        clear_floats(to + i * c, c);
        }
}

static void copy_row(const struct sl_window_product *p, const float *x, int64_t row, float *to)
{
        const struct sl_window *w = &p->window;
        int64_t pixels = p->out_height * p->out_width, line_floats = w->kernel[1] * p->channels;
        const float *image = x + row / pixels * p->height * p->width * p->channels;
        int64_t top = row % pixels / p->out_width * w->stride[0] - w->pad_begin[0];
        int64_t left = row % p->out_width * w->stride[1] - w->pad_begin[1];

        for (int64_t i = 0; i < w->kernel[0]; i++) {
                int64_t y = top + i * w->dilation[0];

                if (y >= 0 && y < p->height)
                        copy_line(p, image + y * p->width * p->channels, left, to + i * line_floats);
                else
                        clear_floats(to + i * line_floats, line_floats);
        }
}

int sl_window_product_run(const struct sl_window_product *p, const struct sl_binding *binding)
{
        int64_t block = p->block_rows ? p->block_rows : p->rows;
        struct sl_gemm gemm = {.a = p->block_rows ? binding->scratch : binding->inputs[0],
                .b = binding->inputs[1],
                .depth = p->depth,
                .columns = p->filters,
                .a_stride = p->depth,
                .c_stride = p->filters,
                .bias = p->has_bias ? binding->inputs[2] : NULL,
                .residual_stride = p->filters,
                .streams = p->streams,
                .finish = &p->finish};

        for (int64_t first = 0; first < p->rows; first += block) {
                gemm.rows = p->rows - first < block ? p->rows - first : block;
                gemm.c = (float *)binding->outputs[0] + first * p->filters;
                gemm.residual = p->residual ? (const float *)binding->inputs[p->residual] + first * p->filters : NULL;
                for (int64_t i = 0; i < gemm.rows && p->block_rows; i++)
                        copy_row(p, binding->inputs[0], first + i, (float *)binding->scratch + i * p->depth);
                sl_gemm_run(&gemm);
        }
        return 0;
}

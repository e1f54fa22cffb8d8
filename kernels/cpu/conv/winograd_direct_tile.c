/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/winograd_direct.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/vector.h"
#include "cpu/conv/winograd_filters.h"

#define TAPS_MAX 25 /* of both axes: 5x5 */

struct inverse {
        float down[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_SIDE_MAX], across[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_SIDE_MAX];
};

/* Of one channel: [tap]. */
static void recover_taps(const struct sl_winograd *w, const struct inverse *inverse, const struct sl_winograd_weights *weights,
        int64_t channel, sl_vector taps[TAPS_MAX])
{
        const int64_t matrix = w->shape.channels * weights->width, across = w->across.weights;
        const sl_lanes lanes = sl_lanes_first(weights->filters);
        sl_vector half[SL_WINOGRAD_TAPS_MAX * SL_WINOGRAD_SIDE_MAX], largest = sl_vector_zero();

        for (int64_t a = 0; a < w->down.taps; a++)
                for (int64_t j = 0; j < across; j++) {
                        const float *from = weights->first + channel * weights->width + j * matrix;

                        half[a * across + j] = sl_vector_zero();
                        for (int64_t i = 0; i < w->down.weights; i++)
                                half[a * across + j] = sl_vector_fma(sl_vector_set(inverse->down[a][i]),
                                        sl_vector_load_lanes(lanes, from + i * across * matrix), half[a * across + j]);
                }
        for (int64_t tap = 0; tap < w->down.taps * w->across.taps; tap++) {
                const sl_vector *line = half + tap / w->across.taps * across;

                taps[tap] = sl_vector_zero();
                for (int64_t j = 0; j < across; j++)
                        taps[tap] = sl_vector_fma(sl_vector_set(inverse->across[tap % w->across.taps][j]), line[j], taps[tap]);
                largest = sl_vector_max(largest, sl_vector_abs(taps[tap]));
        }
        largest = sl_vector_mul(largest, sl_vector_set(SL_WINOGRAD_NOTHING));
        for (int64_t tap = 0; tap < w->down.taps * w->across.taps; tap++)
                taps[tap] = sl_vector_where(sl_vector_less(sl_vector_abs(taps[tap]), largest), sl_vector_zero(), taps[tap]);
}

static float element(const struct sl_winograd *w, const void *x, int64_t index)
{
        return w->shape.dtype == SL_DTYPE_BF16 ? sl_widen_bf16(((const uint16_t *)x)[index]) : ((const float *)x)[index];
}

/* What one channel adds to a pixel, whose window begins at @top, @left; what lies beside the image is not there. */
static sl_vector add_window(const struct sl_winograd *w, const void *x, int64_t image, int64_t top, int64_t left,
        const sl_vector taps[TAPS_MAX], sl_vector sum)
{
        const struct sl_conv_shape *c = &w->shape;

        for (int64_t a = 0; a < w->down.taps; a++)
                for (int64_t b = 0; b < w->across.taps; b++) {
                        int64_t row = top + a, column = left + b;

                        if (row >= 0 && row < c->height && column >= 0 && column < c->width)
                                sum = sl_vector_fma(sl_vector_set(element(w, x, image + (row * c->width + column) * c->channels)),
                                        taps[a * w->across.taps + b], sum);
                }
        return sum;
}

void SL_TILE(sl_winograd_direct)(const struct sl_winograd *w, const void *x, int64_t sample, int64_t row, int64_t column,
        const struct sl_winograd_weights *weights, float ret_sums[SL_WINOGRAD_PIXELS_MAX][16])
{
        const struct sl_conv_shape *c = &w->shape;
        int64_t pixels = w->down.outputs * w->across.outputs;
        sl_vector sums[SL_WINOGRAD_PIXELS_MAX], taps[TAPS_MAX];
        struct inverse inverse;

        sl_winograd_filter_inverse(&w->down, inverse.down);
        sl_winograd_filter_inverse(&w->across, inverse.across);
        for (int64_t i = 0; i < pixels; i++)
                sums[i] = sl_vector_zero();
        for (int64_t channel = 0; channel < c->channels; channel++) {
                recover_taps(w, &inverse, weights, channel, taps);
                for (int64_t i = 0; i < pixels; i++) {
                        int64_t at_row = row + i / w->across.outputs, at_column = column + i % w->across.outputs;

                        if (at_row < c->out_height && at_column < c->out_width)
                                sums[i] = add_window(w, x, sample * c->height * c->width * c->channels + channel,
                                        at_row * w->down.stride - c->window.pad_begin[0],
                                        at_column * w->across.stride - c->window.pad_begin[1], taps, sums[i]);
                }
        }
        for (int64_t i = 0; i < pixels; i++)
                sl_vector_store(ret_sums[i], sums[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/winograd_filters.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/operator.h"
#include "cpu/conv/winograd.h"
#include "cpu/gemm/gemm.h"

#include <string.h>

/* The powers of each point over its distances to the others; the last is infinity. */
static void fill_rows(const struct sl_winograd_side *side, double ret_rows[SL_WINOGRAD_SIDE_MAX][SL_WINOGRAD_TAPS_MAX])
{
        static const double points_4[] = {0, 1, -1}, points_6[] = {0, 0.625, -0.625, 1.5, -1.5},
                            points_8[] = {0, 0.5, -0.5, 1, -1, 2, -2};
        const double *points = side->positions == 4 ? points_4 : side->positions == 6 ? points_6 : points_8;
        int64_t n = side->positions - 1;

        for (int64_t j = 0; j < n; j++) {
                double distance = 1, power = 1;

                for (int64_t l = 0; l < n; l++)
                        distance *= l == j ? 1 : points[j] - points[l];
                for (int64_t k = 0; k < side->taps; k++, power *= points[j])
                        ret_rows[j][k] = power / distance;
        }
        for (int64_t k = 0; k < side->taps; k++)
                ret_rows[n][k] = k == side->taps - 1;
}

/* Rows of the transform of a filter. */
static void filter_matrix(const struct sl_winograd_side *side, double ret_rows[SL_WINOGRAD_SIDE_MAX][SL_WINOGRAD_TAPS_MAX])
{
        static const double strided[4][3] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};

        if (side->stride == 1)
                fill_rows(side, ret_rows);
        for (int i = 0; i < 4 && side->stride == 2; i++)
                for (int k = 0; k < 3; k++)
                        ret_rows[i][k] = strided[i][k];
}

/* Of the symmetric @m [n][n] and the columns behind it, by Gauss's elimination; it is positive definite, so no row is exchanged. */
static void eliminate(int64_t n, int64_t columns, double m[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_TAPS_MAX + SL_WINOGRAD_SIDE_MAX])
{
        for (int64_t k = 0; k < n; k++) {
                double pivot = m[k][k];

                for (int64_t j = 0; j < columns; j++)
                        m[k][j] /= pivot;
                for (int64_t i = 0; i < n; i++) {
                        double factor = m[i][k];

                        for (int64_t j = 0; j < columns && i != k; j++)
                                m[i][j] -= factor * m[k][j];
                }
        }
}

void sl_winograd_filter_inverse(const struct sl_winograd_side *side, float ret_taps[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_SIDE_MAX])
{
        double rows[SL_WINOGRAD_SIDE_MAX][SL_WINOGRAD_TAPS_MAX],
                m[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_TAPS_MAX + SL_WINOGRAD_SIDE_MAX];
        int64_t taps = side->taps, weights = side->weights;

        filter_matrix(side, rows);
        for (int64_t a = 0; a < taps; a++) {
                for (int64_t b = 0; b < taps; b++) {
                        m[a][b] = 0;
                        for (int64_t i = 0; i < weights; i++)
                                m[a][b] += rows[i][a] * rows[i][b];
                }
                for (int64_t i = 0; i < weights; i++)
                        m[a][taps + i] = rows[i][a];
        }
        eliminate(taps, taps + weights, m);
        for (int64_t a = 0; a < taps; a++)
                for (int64_t i = 0; i < weights; i++)
                        ret_taps[a][i] = (float)m[a][taps + i];
}

/* The transforms of the two axes of a filter. */
struct filter_transform {
        struct sl_winograd_side down, across;
        double rows[SL_WINOGRAD_SIDE_MAX][SL_WINOGRAD_TAPS_MAX], columns[SL_WINOGRAD_SIDE_MAX][SL_WINOGRAD_TAPS_MAX];
};

#define FILTER_TAPS_MAX  25 /* of both axes: 5x5 */
#define FILTER_LINES_MAX (SL_WINOGRAD_SIDE_MAX * SL_WINOGRAD_TAPS_MAX)
#define TURNED_CHANNELS  16 /* at a time: 18 KiB of 3x3 filters */

/* to[i] = the sum of from[k * step] times factors[k]. */
static inline __attribute__((always_inline)) void mix(
        const double from[][SL_GEMM_PANEL], int64_t step, const double *factors, int64_t n, double to[SL_GEMM_PANEL])
{
        for (int64_t i = 0; i < SL_GEMM_PANEL; i++)
                to[i] = from[0][i] * factors[0];
        for (int64_t k = 1; k < n; k++)
                for (int64_t i = 0; i < SL_GEMM_PANEL; i++)
                        to[i] += from[k * step][i] * factors[k];
}

/* Down first, then across; @width floats of each position are written. With numbers of taps that are known the sums stay in
 * registers. */
static inline __attribute__((always_inline)) void transform_taps(const struct filter_transform *t, int64_t down, int64_t across,
        const double taps[][SL_GEMM_PANEL], int64_t width, float *to, int64_t stride)
{
        double half[FILTER_LINES_MAX][SL_GEMM_PANEL], sums[SL_GEMM_PANEL];

        for (int64_t i = 0; i < t->down.weights; i++)
                for (int64_t b = 0; b < across; b++)
                        mix(taps + b, across, t->rows[i], down, half[i * across + b]);
        for (int64_t i = 0; i < t->down.weights; i++)
                for (int64_t j = 0; j < t->across.weights; j++, to += stride) {
                        mix(half + i * across, 1, t->columns[j], across, sums);
                        for (int64_t k = 0; k < width; k++)
                                to[k] = (float)sums[k];
                }
}

/* One channel of the filters of a panel, [tap][filter]; those that it lacks are zeros. */
SL_CPU_CLONES static void transform_filters(
        const struct filter_transform *t, const float *filters, int64_t width, float *to, int64_t stride)
{
        double taps[FILTER_TAPS_MAX][SL_GEMM_PANEL];

        for (int64_t tap = 0; tap < t->down.taps * t->across.taps; tap++) {
                for (int64_t k = 0; k < width; k++)
                        taps[tap][k] = (double)filters[tap * width + k];
                for (int64_t k = width; k < SL_GEMM_PANEL; k++)
                        taps[tap][k] = 0;
        }
        if (t->down.taps == 3 && t->across.taps == 3 && width == SL_GEMM_PANEL)
                transform_taps(t, 3, 3, taps, SL_GEMM_PANEL, to, stride);
        else
                transform_taps(t, t->down.taps, t->across.taps, taps, width, to, stride);
}

/* The plain filters of a node, [filter][channel][tap], at any address. */
struct filters {
        const char *data;
        uint32_t dtype;
        int64_t channels, taps;
};

/* @n floats from element @index on. */
static void widen_filter(const struct filters *filters, int64_t index, int64_t n, float *to)
{
        const char *from = filters->data + index * (int64_t)sizeof(uint16_t);

        for (int64_t i = 0; i < n; i++) {
                uint16_t half;

                memcpy(&half, from + i * (int64_t)sizeof(half), sizeof(half));
                to[i] = sl_widen_bf16(half);
        }
}

/* Of filters from @first on, @own of them, channels from @channel on: [channel][tap][filter], as one panel. */
static void turn_filters(
        const struct filters *filters, int64_t first, int64_t own, int64_t channel, int64_t channels, float *turned)
{
        int64_t n = channels * filters->taps, stride = filters->channels * filters->taps;
        int64_t index = first * stride + channel * filters->taps;
        float wide[SL_GEMM_PANEL * TURNED_CHANNELS * FILTER_TAPS_MAX];

        if (filters->dtype == SL_DTYPE_F32) {
                sl_gemm_pack(filters->data + index * (int64_t)sizeof(float), n, own, 1, stride, turned);
                return;
        }
        for (int64_t k = 0; k < own; k++)
                widen_filter(filters, index + k * stride, n, wide + k * n);
        sl_gemm_pack(wide, n, own, 1, n, turned);
}

/* Of a panel, @own filters: some channels at a time are turned, so that filters lie side by side, in the L1 cache. */
static void transform_panel(
        const struct filter_transform *t, const struct filters *filters, int64_t first, int64_t own, int64_t width, float *to)
{
        float turned[TURNED_CHANNELS * FILTER_TAPS_MAX * SL_GEMM_PANEL];

        for (int64_t c = 0; c < filters->channels; c += TURNED_CHANNELS) {
                int64_t n = filters->channels - c < TURNED_CHANNELS ? filters->channels - c : TURNED_CHANNELS;

                turn_filters(filters, first, own, c, n, turned);
                for (int64_t i = 0; i < n; i++)
                        transform_filters(
                                t, turned + i * filters->taps * width, width, to + (c + i) * width, filters->channels * width);
        }
}

/* [filter][channel][tap] to [panel][matrix][channel][filter of the panel]. */
void sl_winograd_repack(const struct sl_winograd *w, const struct sl_tensor *weights, const char *plain, float *to)
{
        const int64_t *f = weights->shape.dims;
        const struct filters filters = {plain, weights->dtype, f[1], f[2] * f[3]};
        struct filter_transform t = {.down = w->down, .across = w->across};

        filter_matrix(&t.down, t.rows);
        filter_matrix(&t.across, t.columns);
        for (int64_t first = 0; first < f[0]; first += SL_GEMM_PANEL) {
                int64_t own = f[0] - first < SL_GEMM_PANEL ? f[0] - first : SL_GEMM_PANEL;
                int64_t width = sl_gemm_packed_floats(1, own);

                transform_panel(&t, &filters, first, own, width, to);
                to += w->weights * f[1] * width;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "mix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A throw goes to one of @n equal columns; the lower part of a column is its own, the upper one that of its alias. */
struct sl_mix {
        uint32_t n;
        struct column {
                double own; /* 0 to 1 */
                uint32_t alias;
        } columns[];
};

static double sum_of(const double *weights, uint32_t n)
{
        double sum = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (!(weights[i] >= 0))
                        return NAN;
                sum += weights[i];
        }
        return sum;
}

/* What a low column lacks is taken from a high one, which thereby may become low. @order: low ones from the front, others behind.
 */
static void fill_columns(struct sl_mix *mix, uint32_t *order)
{
        uint32_t n_low = 0, n_high = 0;

        for (uint32_t i = 0; i < mix->n; i++) {
                mix->columns[i].alias = i;
                if (mix->columns[i].own < 1)
                        order[n_low++] = i;
                else
                        order[mix->n - ++n_high] = i;
        }
        while (n_low && n_high) {
                uint32_t low = order[--n_low], high = order[mix->n - n_high];

                mix->columns[low].alias = high;
                mix->columns[high].own -= 1 - mix->columns[low].own;
                if (mix->columns[high].own < 1) {
                        n_high--;
                        order[n_low++] = high;
                }
        }
        /* Only rounding leaves any: they are full. */
        while (n_low)
                mix->columns[order[--n_low]].own = 1;
}

int sl_mix_new(const double *weights, uint32_t n, struct sl_mix **ret_mix)
{
        double sum = sum_of(weights, n);

        if (!(sum > 0) || !isfinite(sum))
                return -EINVAL;
        struct sl_mix *mix = malloc(sizeof(*mix) + n * sizeof(mix->columns[0]));
        uint32_t *order = malloc(n * sizeof(*order));

        if (!mix || !order) {
                free(mix);
                free(order);
                return -ENOMEM;
        }
        mix->n = n;
        for (uint32_t i = 0; i < n; i++)
                mix->columns[i].own = weights[i] / sum * n;
        fill_columns(mix, order);
        free(order);
        *ret_mix = mix;
        return 0;
}

struct sl_mix *sl_mix_free(struct sl_mix *mix)
{
        free(mix);
        return NULL;
}

uint32_t sl_mix_pick(const struct sl_mix *mix, struct sl_random *random)
{
        double at = (1 - sl_random_uniform(random)) * mix->n; /* in [0, n) */
        uint32_t column = (uint32_t)at;

        return at - column < mix->columns[column].own ? column : mix->columns[column].alias;
}

void sl_mix_zipf(double exponent, uint32_t n, double *ret_weights)
{
        for (uint32_t i = 0; i < n; i++)
                ret_weights[i] = pow(i + 1.0, -exponent);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int sl_samples_init(struct sl_samples *samples, size_t room)
{
        *samples = (struct sl_samples){.values = malloc(room * sizeof(*samples->values)), .room = room};
        if (!samples->values)
                return -ENOMEM;
        memset(samples->values, 0xff, room * sizeof(*samples->values));
        return 0;
}

void sl_samples_deinit(struct sl_samples *samples)
{
        free(samples->values);
        *samples = (struct sl_samples){0};
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

void sl_samples_sort(struct sl_samples *samples)
{
        if (samples->n)
                qsort(samples->values, samples->n, sizeof(*samples->values), compare);
}

double sl_samples_at(const struct sl_samples *samples, double share)
{
        if (samples->n == 0)
                return NAN;

        double rank = ceil(share * (double)samples->n);
        size_t index = rank < 1 ? 0 : (size_t)rank - 1;

        return (double)samples->values[index < samples->n ? index : samples->n - 1];
}

double sl_samples_mean(const struct sl_samples *samples)
{
        double sum = 0;

        for (size_t i = 0; i < samples->n; i++)
                sum += (double)samples->values[i];
        return samples->n ? sum / (double)samples->n : NAN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "latencies.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int sl_latencies_init(struct sl_latencies *latencies)
{
        *latencies = (struct sl_latencies){.buckets = malloc(SL_LATENCIES_BUCKETS * sizeof(*latencies->buckets))};
        if (!latencies->buckets)
                return -ENOMEM;
        sl_latencies_clear(latencies);
        return 0;
}

void sl_latencies_deinit(struct sl_latencies *latencies)
{
        free(latencies->buckets);
        *latencies = (struct sl_latencies){0};
}

void sl_latencies_clear(struct sl_latencies *latencies)
{
        memset(latencies->buckets, 0, SL_LATENCIES_BUCKETS * sizeof(*latencies->buckets));
        *latencies = (struct sl_latencies){.buckets = latencies->buckets, .least = UINT64_MAX};
}

void sl_latencies_merge(struct sl_latencies *into, const struct sl_latencies *from)
{
        for (uint32_t i = 0; i < SL_LATENCIES_BUCKETS; i++)
                into->buckets[i] += from->buckets[i];
        into->n += from->n;
        into->sum += from->sum;
        into->least = from->least < into->least ? from->least : into->least;
        into->most = from->most > into->most ? from->most : into->most;
}

uint64_t sl_latencies_begin(uint32_t bucket)
{
        if (bucket < 2u << SL_LATENCIES_SHIFT)
                return bucket;
        if (bucket >= SL_LATENCIES_BUCKETS)
                return UINT64_MAX;

        uint32_t shift = (bucket >> SL_LATENCIES_SHIFT) - 1;

        return (uint64_t)(bucket - (shift << SL_LATENCIES_SHIFT)) << shift;
}

static double middle_of(const struct sl_latencies *latencies, uint32_t bucket)
{
        uint64_t begin = sl_latencies_begin(bucket), last = sl_latencies_begin(bucket + 1) - 1;
        double middle = (double)begin + (double)(last - begin) / 2;

        return fmin(fmax(middle, (double)latencies->least), (double)latencies->most);
}

double sl_latencies_at(const struct sl_latencies *latencies, double share)
{
        double rank = fmax(1, ceil(share * (double)latencies->n));
        uint64_t below = 0;

        if (latencies->n == 0)
                return NAN;
        if (rank >= (double)latencies->n)
                return (double)latencies->most;
        for (uint32_t i = 0; i < SL_LATENCIES_BUCKETS; i++) {
                below += latencies->buckets[i];
                if ((double)below >= rank)
                        return middle_of(latencies, i);
        }
        return (double)latencies->most;
}

uint64_t sl_latencies_above(const struct sl_latencies *latencies, uint64_t value)
{
        uint64_t above = 0;

        for (uint32_t i = sl_latencies_bucket(value) + 1; i < SL_LATENCIES_BUCKETS; i++)
                above += latencies->buckets[i];
        return above;
}

double sl_latencies_mean(const struct sl_latencies *latencies)
{
        return latencies->n ? latencies->sum / (double)latencies->n : NAN;
}

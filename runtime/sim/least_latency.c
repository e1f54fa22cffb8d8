/* SPDX-License-Identifier: Apache-2.0 */
#include "least_latency.h"
#include "sim.h"

#define HALVINGS 64
#define MIXTURES 8

/* The least S(k) / k. */
static double least_part(const struct sl_sim_options *options)
{
        double least = 1;

        for (uint32_t k = 2; k <= options->n_workers; k++)
                if (sl_sim_slow_down(&options->device, k) / k < least)
                        least = sl_sim_slow_down(&options->device, k) / k;
        return least;
}

/* C(b, L) of a batch that takes @alone_ns. */
static double part_ns(const struct sl_sim_options *options, double alone_ns, double within_ns, double least)
{
        double e = options->device.corun > 1 ? options->device.corun - 1 : 0, x = alone_ns / within_ns;
        double even = e < 1 ? within_ns * e * x / (1 - (1 - e) * x) : alone_ns;

        return even > alone_ns * least ? even : alone_ns * least;
}

static uint32_t largest_batch(const struct sl_sim_options *options)
{
        uint32_t most = 1;

        for (uint32_t i = 0; i < options->n_workers; i++)
                most = options->batch_max[i] > most ? options->batch_max[i] : most;
        return most;
}

/* The largest rate, samples in a nanosecond, where @mixture of a batch's part is what it has alone; 0: not even one sample is that
 * fast. */
static double rate_of_mixture(const struct sl_sim_options *options, double within_ns, double least, double mixture)
{
        uint32_t most = largest_batch(options);
        double best = 0;

        for (uint32_t b = 1; b <= most; b++) {
                double alone_ns = (double)sl_sim_latency_ns(&options->device, b);

                if (alone_ns > within_ns)
                        continue;
                double part = (1 - mixture) * part_ns(options, alone_ns, within_ns, least) +
                              mixture * alone_ns * sl_sim_share(&options->device, b);

                best = b / part > best ? b / part : best;
        }
        return best;
}

/* R(L) */
static double rate_within(const struct sl_sim_options *options, double within_ns, double least)
{
        double best = rate_of_mixture(options, within_ns, least, 0);

        for (int i = 1; options->device.launch_ns && i <= MIXTURES; i++) {
                double rate = rate_of_mixture(options, within_ns, least, (double)i / MIXTURES);

                best = rate < best ? rate : best;
        }
        return best;
}

/* How many requests are late at least. Of all i before j the one for which most is left counts; where that is too much, one of them
 * is late, and if it is j itself this helps all later ones as well. */
static uint32_t count_late(double rate, const uint64_t *arrivals_ns, uint32_t n, double within_ns)
{
        double most_ns = 0;
        uint32_t late = 0;

        for (uint32_t j = 0; j < n; j++) {
                double gap_ns = j ? (double)(arrivals_ns[j] - arrivals_ns[j - 1]) : 0;

                most_ns = most_ns > gap_ns ? most_ns - gap_ns : 0;
                if (most_ns + 1 / rate > within_ns)
                        late++;
                else
                        most_ns += 1 / rate;
        }
        return late;
}

uint64_t sl_sim_least_latency_ns(const struct sl_sim_options *options, const uint64_t *arrivals_ns, uint32_t n, double share)
{
        double least = least_part(options), low = 0, high = (double)sl_sim_latency_ns(&options->device, 1) * n;
        double kept = share * n;
        uint32_t whole = (uint32_t)kept + ((double)(uint32_t)kept < kept), late = n - (whole < n ? whole : n);

        for (int i = 0; i < HALVINGS && n > late && low < high; i++) {
                double middle = low + (high - low) / 2;

                double rate = rate_within(options, middle, least);

                if (rate > 0 && count_late(rate, arrivals_ns, n, middle) <= late)
                        high = middle;
                else
                        low = middle;
        }
        return n > late ? (uint64_t)low : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

static double best_batch_rate(const struct sl_sim_options *options)
{
        double best = 0;

        for (uint32_t i = 0; i < options->n_workers; i++)
                for (uint32_t k = 1; k <= options->batch_max[i]; k++) {
                        double rate = (double)k / (double)sl_sim_latency_ns(&options->device, k);

                        best = rate > best ? rate : best;
                }
        return best;
}

void sl_sim_bound_init(struct sl_sim_bound *bound, const struct sl_sim_options *options)
{
        double workers = 1;

        for (uint32_t n = 1; n <= options->n_workers; n++)
                if (n / sl_sim_slow_down(&options->device, n) > workers)
                        workers = n / sl_sim_slow_down(&options->device, n);
        *bound = (struct sl_sim_bound){.rate = workers * best_batch_rate(options)};
}

uint64_t sl_sim_bound_ns(struct sl_sim_bound *bound, const struct sl_sim_options *options, const struct sl_sim_request *request)
{
        double arrival_ns = (double)request->arrival_ns, alone_ns = (double)sl_sim_latency_ns(&options->device, 1), queued_ns;

        bound->free_ns = (bound->free_ns > arrival_ns ? bound->free_ns : arrival_ns) + request->samples / bound->rate;
        queued_ns = bound->free_ns - arrival_ns;
        return (uint64_t)(queued_ns > alone_ns ? queued_ns : alone_ns);
}

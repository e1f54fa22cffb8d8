/* SPDX-License-Identifier: Apache-2.0 */
#include "team_measure.h"

#include "base/clock.h"
#include "device_let.h"
#include "quantile.h"
#include "team.h"
#include "worker_round.h"

#define ROUND_NS 50000000ull

enum { ALONE, TEAM, WORKERS };

static int make_workers(const struct sl_team_setting *setting, struct sl_timed_worker *workers, struct sl_error *error)
{
        int cores[SL_TEAM_MEMBERS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < setting->threads; i++)
                cores[i] = sl_device_let_core(setting->let, i);
        for (uint32_t i = 0; i < WORKERS && r == 0; i++)
                r = sl_timed_worker_init(&workers[i], setting->plan, setting->batch, cores[0], error);
        return r == 0 && setting->threads > 1 ? sl_timed_worker_use_team(&workers[TEAM], cores, setting->threads, error) : r;
}

static int run_in_turns(struct sl_timed_worker *workers, double seconds, struct sl_error *error)
{
        uint64_t until = sl_clock_ns() + (uint64_t)(seconds * (double)SL_NS_PER_SECOND);
        int r = 0;

        do {
                for (uint32_t i = 0; i < WORKERS && r == 0; i++) {
                        struct sl_timed_worker *worker = &workers[i];

                        r = sl_worker_round(&worker, 1, ROUND_NS, true, NULL, error);
                }
        } while (r == 0 && sl_clock_ns() < until);
        return r;
}

static double median_of(struct sl_timed_worker *worker)
{
        sl_quantile_sort(worker->latencies_ns, worker->n_latencies);
        return sl_quantile(worker->latencies_ns, worker->n_latencies, 0.5);
}

int sl_team_measure(const struct sl_team_setting *setting, struct sl_team_times *ret_times, struct sl_error *error)
{
        struct sl_timed_worker workers[WORKERS] = {0};
        int r = make_workers(setting, workers, error);

        if (r == 0)
                r = run_in_turns(workers, setting->seconds, error);
        if (r == 0)
                *ret_times = (struct sl_team_times){.alone_ns = median_of(&workers[ALONE]), .team_ns = median_of(&workers[TEAM])};
        for (uint32_t i = 0; i < WORKERS; i++)
                sl_timed_worker_deinit(&workers[i]);
        return r;
}

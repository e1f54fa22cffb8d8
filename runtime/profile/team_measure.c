/* SPDX-License-Identifier: Apache-2.0 */
#include "team_measure.h"

#include "base/clock.h"
#include "device_let.h"
#include "quantile.h"
#include "team.h"
#include "worker_round.h"

#define ROUND_NS 50000000ull

/* One alone, one with a team, and those that compute at once, each a batch of its own. */
enum { ALONE, TEAM, SINGLES };

struct rivals {
        struct sl_timed_worker workers[SINGLES + SL_ROUND_WORKERS_MAX];
        uint32_t n_singles;
};

static int make_workers(const struct sl_team_setting *setting, struct rivals *rivals, struct sl_error *error)
{
        int cores[SL_TEAM_MEMBERS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < setting->threads; i++)
                cores[i] = sl_device_let_core(setting->let, i);
        rivals->n_singles = setting->threads < SL_ROUND_WORKERS_MAX ? setting->threads : SL_ROUND_WORKERS_MAX;
        for (uint32_t i = 0; i < SINGLES + rivals->n_singles && r == 0; i++)
                r = sl_timed_worker_init(
                        &rivals->workers[i], setting->plan, setting->batch, cores[i < SINGLES ? 0 : i - SINGLES], error);
        return r == 0 && setting->threads > 1 ? sl_timed_worker_use_team(&rivals->workers[TEAM], cores, setting->threads, error)
                                              : r;
}

static int run_in_turns(struct rivals *rivals, double seconds, struct sl_error *error)
{
        uint64_t until = sl_clock_ns() + (uint64_t)(seconds * (double)SL_NS_PER_SECOND);
        struct sl_timed_worker *all[SINGLES + SL_ROUND_WORKERS_MAX];
        int r = 0;

        for (uint32_t i = 0; i < SINGLES + rivals->n_singles; i++)
                all[i] = &rivals->workers[i];
        do {
                for (uint32_t i = 0; i < SINGLES && r == 0; i++)
                        r = sl_worker_round(&all[i], 1, ROUND_NS, true, NULL, error);
                if (r == 0)
                        r = sl_worker_round(&all[SINGLES], rivals->n_singles, ROUND_NS, true, NULL, error);
        } while (r == 0 && sl_clock_ns() < until);
        return r;
}

static double median_of(struct sl_timed_worker *worker)
{
        sl_quantile_sort(worker->latencies_ns, worker->n_latencies);
        return sl_quantile(worker->latencies_ns, worker->n_latencies, 0.5);
}

/* Batches that all of them compute in a nanosecond. */
static double rate_of_singles(struct rivals *rivals)
{
        double rate = 0;

        for (uint32_t i = 0; i < rivals->n_singles; i++)
                rate += 1 / median_of(&rivals->workers[SINGLES + i]);
        return rate;
}

int sl_team_measure(const struct sl_team_setting *setting, struct sl_team_times *ret_times, struct sl_error *error)
{
        struct rivals rivals = {.n_singles = 0};
        int r = make_workers(setting, &rivals, error);

        if (r == 0)
                r = run_in_turns(&rivals, setting->seconds, error);
        if (r == 0)
                *ret_times = (struct sl_team_times){.alone_ns = median_of(&rivals.workers[ALONE]),
                        .team_ns = median_of(&rivals.workers[TEAM]),
                        .singles_ns = 1 / rate_of_singles(&rivals),
                        .n_singles = rivals.n_singles};
        for (uint32_t i = 0; i < SINGLES + rivals.n_singles; i++)
                sl_timed_worker_deinit(&rivals.workers[i]);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "condition.h"

#define BUSY_ENTER 0.95
#define BUSY_LEAVE 0.80
#define WAIT_ENTER 0.90
#define WAIT_LEAVE 0.50
#define JOBS_LEAST 8u

void sl_condition_begin(struct sl_worker_condition *worker)
{
        *worker = (struct sl_worker_condition){.condition = SL_CONDITION_ACTIVE};
}

/* A moving average over time: what holds for @ns counts by its share of that and of what is kept. */
static void average(double *mean, double value, uint64_t ns)
{
        *mean += (value - *mean) * (double)ns / (double)(ns + SL_CONDITION_LATELY_NS);
}

static enum sl_condition below_peak(const struct sl_worker_condition *worker)
{
        return worker->interference.slowed ? SL_CONDITION_INTERFERED : SL_CONDITION_ACTIVE;
}

/* What holds now, and how it came about. */
static uint32_t settle(struct sl_worker_condition *worker)
{
        enum sl_condition before = worker->condition;
        uint32_t changes = 0;

        if (before == SL_CONDITION_OVERLOADED) {
                if (worker->busy >= BUSY_LEAVE && worker->waited >= WAIT_LEAVE)
                        return 0;
                changes |= 1u << SL_CONDITION_CHANGE_BELOW_PEAK;
                before = SL_CONDITION_ACTIVE;
        } else if (worker->jobs >= JOBS_LEAST && worker->busy >= BUSY_ENTER && worker->waited >= WAIT_ENTER) {
                worker->condition = SL_CONDITION_OVERLOADED;
                return 1u << SL_CONDITION_CHANGE_PEAK;
        }
        worker->condition = below_peak(worker);
        if (worker->condition != before)
                changes |= 1u << (before == SL_CONDITION_ACTIVE ? SL_CONDITION_CHANGE_SLOWED : SL_CONDITION_CHANGE_RECOVERED);
        return changes;
}

uint32_t sl_condition_job_ended(struct sl_worker_condition *worker, const struct sl_job_end *end)
{
        uint64_t since_ns = worker->end_ns ? worker->end_ns : end->end_ns - end->busy_ns;
        uint64_t ns = end->end_ns > since_ns ? end->end_ns - since_ns : 0;
        uint64_t busy_ns = end->busy_ns < ns ? end->busy_ns : ns;

        worker->jobs += worker->jobs < UINT32_MAX;
        worker->end_ns = end->end_ns > since_ns ? end->end_ns : since_ns;
        worker->job_end_ns = worker->end_ns;
        average(&worker->busy, 0, ns - busy_ns);
        average(&worker->busy, 1, busy_ns);
        average(&worker->waited, end->waits, ns);
        if (end->has_ratio)
                sl_interference_learn(&worker->interference, end->log_ratio);
        return settle(worker);
}

uint32_t sl_condition_rests(struct sl_worker_condition *worker, uint64_t now_ns)
{
        if (!worker->end_ns || now_ns <= worker->end_ns)
                return 0;
        average(&worker->busy, 0, now_ns - worker->end_ns);
        average(&worker->waited, 0, now_ns - worker->end_ns);
        worker->end_ns = now_ns;
        if (now_ns - worker->job_end_ns >= SL_CONDITION_FORGET_NS)
                sl_interference_forget(&worker->interference);
        return settle(worker);
}

enum sl_condition sl_condition_of(const uint32_t workers[SL_CONDITION_COUNT])
{
        uint32_t active = workers[SL_CONDITION_ACTIVE], interfered = workers[SL_CONDITION_INTERFERED];

        if (!(active + interfered + workers[SL_CONDITION_OVERLOADED]))
                return SL_CONDITION_INACTIVE;
        if (!(active + interfered))
                return SL_CONDITION_OVERLOADED;
        return interfered && interfered >= active ? SL_CONDITION_INTERFERED : SL_CONDITION_ACTIVE;
}

const char *sl_condition_name(enum sl_condition condition)
{
        static const char *const names[] = {
#define X(id, name) [SL_CONDITION_##id] = name,
                SL_CONDITIONS(X)
#undef X
        };

        return names[condition];
}

const char *sl_condition_change_name(enum sl_condition_change change)
{
        static const char *const names[] = {
#define X(id, name) [SL_CONDITION_CHANGE_##id] = name,
                SL_CONDITION_CHANGES(X)
#undef X
        };

        return names[change];
}

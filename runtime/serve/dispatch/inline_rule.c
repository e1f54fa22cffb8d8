/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_rule.h"

#include "ensemble.h"
#include "executor.h"
#include "model.h"

/* So many jobs forget a slowest one by about two thirds. */
#define MEMORY_JOBS  32u
/* What slow jobs may take of the dispatcher's time, as a part of the limit for each job; of no more jobs than this at a time. */
#define CREDIT_PART  4u
#define CREDIT_JOBS  1024u
/* One that is given up costs so many times the credit. */
#define OVERRUN_PART 8u

/* The client of the only request waits, whether it was counted already or not. */
bool sl_inline_is_alone(uint32_t in_flight, uint32_t cores, uint32_t waiting)
{
        return in_flight == 1 && cores && cores <= 1 + (waiting ? waiting : 1);
}

static void earn_credit(struct sl_inline_gauge *gauge, uint64_t limit_ns)
{
        uint64_t most_ns = CREDIT_JOBS * limit_ns / CREDIT_PART;

        gauge->credit_ns += limit_ns / CREDIT_PART;
        if (gauge->credit_ns > most_ns)
                gauge->credit_ns = most_ns;
}

/* A slow job that says something about whoever ran it, and nothing about the model. */
static bool is_mishap(struct sl_inline_gauge *gauge, uint64_t ns, uint64_t limit_ns)
{
        if (ns <= 2 * limit_ns || ns > gauge->credit_ns)
                return false;
        gauge->credit_ns -= ns;
        return true;
}

void sl_inline_gauge_init(struct sl_inline_gauge *gauge, uint64_t ns)
{
        *gauge = (struct sl_inline_gauge){.tried_ns = ns};
        sl_service_time_learn(&gauge->time, 1, ns);
}

static uint64_t longest_ns(uint64_t limit_ns)
{
        return limit_ns < SL_INLINE_ALONE_NS ? SL_INLINE_ALONE_NS : limit_ns;
}

void sl_inline_overran(struct sl_inline_gauge *gauge, uint64_t ns, uint64_t limit_ns)
{
        uint64_t bound_ns = 2 * longest_ns(limit_ns), cost_ns = OVERRUN_PART * (ns < bound_ns ? ns : bound_ns);

        if (cost_ns <= gauge->credit_ns) {
                gauge->credit_ns -= cost_ns;
                return;
        }
        gauge->term = gauge->term < SL_INLINE_TERM / 2 ? SL_INLINE_TERM : 2 * gauge->term;
        if (gauge->term > SL_INLINE_TERM_MAX)
                gauge->term = SL_INLINE_TERM_MAX;
        gauge->barred = gauge->term;
}

static void serve_term(struct sl_inline_gauge *gauge)
{
        if (gauge->barred)
                gauge->barred--;
        else if (gauge->term)
                gauge->term--;
}

static void learn_slowest(struct sl_inline_gauge *gauge, uint64_t ns, uint64_t limit_ns)
{
        uint64_t faded_ns;

        serve_term(gauge);
        earn_credit(gauge, limit_ns);
        if (is_mishap(gauge, ns, limit_ns))
                return;
        faded_ns = gauge->slowest_ns - gauge->slowest_ns / MEMORY_JOBS;
        gauge->slowest_ns = ns > faded_ns ? ns : faded_ns;
        if (gauge->slowest_ns > 2 * limit_ns)
                gauge->slow = true;
        else if (gauge->slowest_ns <= limit_ns)
                gauge->slow = false;
}

void sl_inline_learn(struct sl_inline_gauge *gauge, uint32_t samples, uint64_t ns, uint64_t limit_ns)
{
        sl_service_time_learn(&gauge->time, samples, ns);
        learn_slowest(gauge, ns, limit_ns);
}

/* The average takes a quarter of the way to what it is told. */
static uint64_t faded(const struct sl_inline_gauge *gauge, uint32_t samples, uint64_t known_ns)
{
        uint64_t tried_ns = gauge->tried_ns * samples;

        return tried_ns && known_ns > tried_ns ? known_ns - (known_ns - tried_ns) * 4 / MEMORY_JOBS : known_ns;
}

void sl_inline_learn_elsewhere(struct sl_inline_gauge *gauge, uint32_t samples, uint64_t ns, uint64_t limit_ns)
{
        uint64_t known_ns = sl_service_time_ns(&gauge->time, samples);

        if (known_ns)
                sl_service_time_learn(&gauge->time, samples, ns < known_ns ? ns : faded(gauge, samples, known_ns));
        learn_slowest(gauge, ns < limit_ns ? ns : limit_ns, limit_ns);
}

/* Who was never tried is expected to take as long as a worker. */
static const struct sl_service_time *times_of(const struct sl_model *model)
{
        return sl_service_time_ns(&model->gauge.time, 1) ? &model->gauge.time : &model->service_time;
}

uint64_t sl_inline_ns(const struct sl_model *model, uint32_t samples)
{
        return sl_service_time_ns(times_of(model), samples);
}

uint32_t sl_inline_samples(const struct sl_model *model, uint64_t limit_ns)
{
        return sl_service_time_samples(times_of(model), limit_ns, model->inliner->batch_max);
}

static uint64_t size_ns(const struct sl_model *model, uint64_t units)
{
        uint64_t ns = sl_size_line_ns(&model->gauge.line, units);

        return ns ? ns : sl_size_line_ns(&model->line, units);
}

uint64_t sl_inline_task_ns(const struct sl_model *model, const struct sl_task *task)
{
        return task->units ? size_ns(model, task->units) : sl_inline_ns(model, task->samples);
}

void sl_inline_learn_size(struct sl_inline_gauge *gauge, uint64_t units, uint64_t ns)
{
        sl_size_line_learn(&gauge->line, units, ns);
}

/* What is less than was known counts; else all of it fades, until the dispatcher tries again. */
void sl_inline_learn_size_elsewhere(struct sl_inline_gauge *gauge, uint64_t units, uint64_t ns)
{
        uint64_t known_ns = sl_size_line_ns(&gauge->line, units), faded_ns = known_ns - known_ns / MEMORY_JOBS;

        if (known_ns)
                sl_size_line_learn(&gauge->line, units, ns < faded_ns ? ns : faded_ns);
}

bool sl_inline_wants(const struct sl_ensemble *ensemble, uint32_t samples, uint64_t units, const struct sl_inline_limit *limit)
{
        uint64_t limit_ns = limit->alone ? longest_ns(limit->ns) : limit->ns;
        uint64_t slowest_ns = 0, expected_ns = 0;

        if (sl_rule_is_of_boxes(ensemble->assembly.rule)) /* how long that takes the data say, and no gauge knows */
                return false;
        for (uint32_t m = 0; m < sl_ensemble_models(ensemble) && limit->ns; m++) {
                const struct sl_model *member = ensemble->members[m];

                if (!member->inliner || member->gauge.barred || (member->gauge.slow && !limit->alone) ||
                        samples > member->inliner->batch_max)
                        return false;
                slowest_ns += member->gauge.slowest_ns;
                if (units && !size_ns(member, units))
                        return false;
                expected_ns += units ? size_ns(member, units) : sl_inline_ns(member, samples);
        }
        return limit->ns && slowest_ns <= 2 * limit_ns && expected_ns <= limit_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_run.h"

#include "bundle.h"
#include "handout.h"
#include "model.h"

/* What the first segment that waits for the dispatcher itself is expected to take; UINT64_MAX: there is none, or it has a job. */
static uint64_t inline_ns(const struct sl_handout *handout)
{
        if (!sl_handout_is_inline(handout) || sl_executor_jobs(handout->model->inliner))
                return UINT64_MAX;
        return sl_inline_ns(handout->model, sl_task_queue_at(handout->queue, 0)->samples);
}

/* So many are looked at in a run; the next one finds the others. */
#define CANDIDATES_MAX 64u

/* Models that have something for the dispatcher itself, the shortest first. */
struct candidates {
        uint32_t n;
        struct {
                struct sl_model *model;
                uint64_t ns;
        } list[CANDIDATES_MAX];
};

static void enter_candidate(struct candidates *candidates, struct sl_model *model, uint64_t ns)
{
        uint32_t at = candidates->n < CANDIDATES_MAX ? candidates->n++ : CANDIDATES_MAX - 1;

        if (at == CANDIDATES_MAX - 1 && candidates->list[at].model && candidates->list[at].ns <= ns)
                return;
        for (; at > 0 && candidates->list[at - 1].ns > ns; at--)
                candidates->list[at] = candidates->list[at - 1];
        candidates->list[at].model = model;
        candidates->list[at].ns = ns;
}

static void find_candidates(const struct sl_schedule *schedule, uint32_t priority, struct candidates *ret_candidates)
{
        ret_candidates->n = 0;
        ret_candidates->list[CANDIDATES_MAX - 1].model = NULL;
        for (struct sl_model *model = schedule->models; model; model = model->next_busy) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);
                uint64_t ns = inline_ns(&handout);

                if (ns != UINT64_MAX)
                        enter_candidate(ret_candidates, model, ns);
        }
}

/* Whole tasks that are gathered for the dispatcher itself: as many samples as fit its limit. */
static uint32_t inline_samples(const struct sl_handout *handout)
{
        const struct sl_model *model = handout->model;
        uint32_t most = sl_inline_samples(model, handout->schedule->budget->limit_ns),
                 samples = sl_task_queue_at(handout->queue, 0)->samples;

        for (uint32_t i = 1; model->info->batchable && i < sl_handout_waiting(handout); i++) {
                const struct sl_task *task = sl_task_queue_at(handout->queue, i);

                if (!task->is_inline || samples + task->samples > most)
                        break;
                samples += task->samples;
        }
        return samples;
}

static void give_inline(struct sl_handout *handout)
{
        sl_handout_give(handout, handout->model->inliner, inline_samples(handout));
}

/* Of all models of the bundle, as far as the time goes; there is one that it suffices for. */
static void compute_bundle(
        const struct sl_schedule *schedule, struct sl_bundle *bundle, struct sl_carrier *carrier, uint32_t priority)
{
        const struct sl_inline_budget *budget = schedule->budget;
        uint64_t left_ns = budget->left_ns < budget->limit_ns ? budget->left_ns : budget->limit_ns;
        uint32_t without = UINT32_MAX, given = 0;

        for (uint32_t i = 0; i < bundle->n_models; i++) {
                struct sl_handout handout = sl_handout_of(schedule, sl_bundle_model(bundle, i), priority);
                uint64_t ns = inline_ns(&handout);

                if (ns == UINT64_MAX)
                        continue;
                if ((given && ns > left_ns) || carrier->is_full) {
                        without = i < without ? i : without;
                        continue;
                }
                give_inline(&handout);
                given++;
                left_ns -= ns < left_ns ? ns : left_ns;
        }
        sl_carrier_send(carrier, priority, true, schedule->from);
        if (without < UINT32_MAX)
                bundle->turn = (bundle->turn + without) % bundle->n_models;
}

static void compute(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        struct sl_handout handout = sl_handout_of(schedule, model, priority);
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t begun_ns = budget->now_ns, away_ns;

        if (model->inliner->carrier)
                compute_bundle(schedule, model->bundle, model->inliner->carrier, priority);
        else
                give_inline(&handout);
        budget->now_ns = sl_clock_ns();
        away_ns = budget->now_ns - begun_ns;
        budget->left_ns -= away_ns < budget->left_ns ? away_ns : budget->left_ns;
        budget->jobs++;
}

/* What waits for the dispatcher itself, and the threads that would be woken for it: one for each model, one for all that share
 * workers. */
struct left_over {
        uint64_t ns;
        uint32_t models;
        bool bundled;
};

static struct left_over count_left(const struct sl_schedule *schedule, uint32_t priority)
{
        struct left_over left = {0};

        for (struct sl_model *model = schedule->models; model; model = model->next_busy) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);

                if (!sl_handout_is_inline(&handout))
                        continue;
                left.ns += sl_inline_ns(model, sl_task_queue_at(handout.queue, 0)->samples) *
                           sl_handout_waiting(&handout);
                left.models += !model->bundle;
                left.bundled |= model->bundle != NULL;
        }
        return left;
}

/* It is done before a thread that is woken for it would run, or takes no longer than the calls that wake all of them. */
static bool is_left_to_itself(const struct sl_schedule *schedule, uint32_t priority)
{
        const struct left_over left = count_left(schedule, priority);

        return left.ns <= SL_LIGHT_NS || left.ns <= (left.models + left.bundled) * SL_WAKE_CALL_NS;
}

/*
 * There is no time for the next one: the next pass goes on, or workers get it. What a whole pass would not suffice for is theirs in
 * any case.
 */
static void end_budget(const struct sl_schedule *schedule, uint32_t priority, bool computed)
{
        struct sl_inline_budget *budget = schedule->budget;

        budget->left_ns = 0;
        budget->kept_class = priority;
        budget->kept = computed && (budget->keeps || is_left_to_itself(schedule, priority));
}

static bool has_time(const struct sl_inline_budget *budget, uint64_t ns)
{
        return budget->left_ns && ns <= budget->left_ns;
}

/*
 * One job of each model at most: its answers have to be harvested before the next. Nor do answers wait for others longer than a job
 * may take.
 */
uint32_t sl_inline_run(const struct sl_schedule *schedule, uint32_t priority)
{
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t until_ns = budget->now_ns + budget->limit_ns;
        struct candidates candidates;
        uint32_t jobs = 0, i;

        find_candidates(schedule, priority, &candidates);
        for (i = 0; i < candidates.n && has_time(budget, candidates.list[i].ns) && budget->now_ns < until_ns; i++) {
                struct sl_handout handout = sl_handout_of(schedule, candidates.list[i].model, priority);

                if (inline_ns(&handout) == UINT64_MAX) /* its bundle's turn was before */
                        continue;
                compute(schedule, candidates.list[i].model, priority);
                jobs++;
        }
        if (!budget->left_ns || (i < candidates.n && budget->now_ns < until_ns))
                end_budget(schedule, priority, budget->left_ns < SL_INLINE_PASS_NS);
        return jobs;
}

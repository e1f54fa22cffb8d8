/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_run.h"

#include "block.h"
#include "bundle.h"
#include "handout.h"
#include "model.h"

static uint64_t less(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* No other job until answers are harvested: of the model, or of all that share its carrier. */
static bool is_full(const struct sl_executor *inliner)
{
        return sl_executor_jobs(inliner) || (inliner->carrier && inliner->carrier->n_launches == SL_EXECUTOR_JOBS_MAX);
}

/* The first segment that waits is for the dispatcher itself, and there is room for it. */
static bool goes_inline(const struct sl_handout *handout)
{
        return sl_handout_is_inline(handout) && !is_full(handout->model->inliner);
}

/* What that segment is expected to take. */
static uint64_t inline_ns(const struct sl_handout *handout)
{
        return sl_inline_task_ns(handout->model, sl_task_queue_at(handout->queue, 0));
}

/* So many are looked at in a run; the next one finds the others. */
#define CANDIDATES_MAX 64u

/* Models that have something for the dispatcher itself: those that wait for too long, then the others, each the shortest first. */
struct candidates {
        uint32_t n;
        struct candidate {
                struct sl_model *model;
                uint64_t ns;
                bool due;
        } list[CANDIDATES_MAX];
};

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
        return a->due == b->due ? a->ns < b->ns : a->due;
}

static void enter_candidate(struct candidates *candidates, const struct candidate *candidate)
{
        uint32_t at = candidates->n;

        if (at < CANDIDATES_MAX)
                candidates->n++;
        else if (!goes_before(candidate, &candidates->list[--at]))
                return;
        for (; at > 0 && goes_before(candidate, &candidates->list[at - 1]); at--)
                candidates->list[at] = candidates->list[at - 1];
        candidates->list[at] = *candidate;
}

static void find_candidates(const struct sl_schedule *schedule, uint32_t priority, struct candidates *ret_candidates)
{
        ret_candidates->n = 0;
        for (struct sl_model *model = schedule->waiting[priority]; model; model = model->next_waiting[priority]) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);
                uint64_t ns;

                if (!goes_inline(&handout))
                        continue;
                ns = inline_ns(&handout);
                /* What this pass has no time for would be in the way of what it has time for. */
                enter_candidate(
                        ret_candidates, &(struct candidate){.model = model,
                                                .ns = ns,
                                                .due = model->passed_over >= SL_INLINE_PASSES && ns <= schedule->budget->left_ns});
        }
}

/* Whole tasks that are gathered for the dispatcher itself: as many samples as fit its limit. */
static uint32_t inline_samples(const struct sl_handout *handout)
{
        const struct sl_model *model = handout->model;
        uint32_t waiting = sl_handout_waiting(handout), samples = sl_task_queue_at(handout->queue, 0)->samples, most;

        if (waiting == 1 || !model->info->batchable)
                return samples;
        most = sl_inline_samples(model, handout->schedule->budget->limit_ns);
        for (uint32_t i = 1; i < waiting; i++) {
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

/* Lanes of the bundle's inliner that have a job of @samples for it, as bits: looked for once in a run. */
static uint64_t find_lanes(const struct sl_schedule *schedule, struct sl_bundle *bundle, uint32_t priority, uint32_t samples)
{
        uint64_t lanes = 0;

        if (bundle->ready.run == schedule->run && bundle->ready.priority == priority && bundle->ready.samples == samples)
                return bundle->ready.lanes;
        for (uint64_t left = bundle->waiting[priority]; left; left &= left - 1) {
                const struct sl_handout handout = sl_handout_of(schedule, bundle->models[__builtin_ctzll(left)], priority);

                if (goes_inline(&handout) && inline_samples(&handout) == samples)
                        lanes |= UINT64_C(1) << handout.model->inliner->lane;
        }
        bundle->ready.lanes = lanes;
        bundle->ready.run = schedule->run;
        bundle->ready.priority = priority;
        bundle->ready.samples = samples;
        return lanes;
}

/* What a merged plan computes together with the model's job of @samples: its lanes, as bits; 0: nothing is. */
static uint64_t find_together(const struct sl_handout *handout, uint32_t samples, uint64_t *ret_ns)
{
        const struct sl_executor *inliner = handout->model->inliner;

        if (!inliner->carrier->blocks)
                return 0;
        return sl_blocks_together(inliner->carrier->blocks, inliner->lane,
                find_lanes(handout->schedule, handout->model->bundle, handout->priority, samples), samples, ret_ns);
}

/* Each of @lanes, which have just been found, has a job of @samples. */
static void give_together(
        const struct sl_schedule *schedule, struct sl_bundle *bundle, uint32_t priority, uint64_t lanes, uint32_t samples)
{
        for (; lanes && !bundle->inliner->is_full; lanes &= lanes - 1) {
                struct sl_executor *inliner = bundle->inliner->lanes[__builtin_ctzll(lanes)];
                struct sl_handout handout = sl_handout_of(schedule, inliner->model, priority);

                bundle->ready.lanes &= ~(lanes & -lanes);
                sl_handout_give(&handout, inliner, samples);
        }
}

/* One by one as they are listed, as far as the time goes; it suffices for the first. */
static void give_each(const struct sl_schedule *schedule, const struct candidates *candidates, uint32_t first, uint32_t priority)
{
        const struct sl_inline_budget *budget = schedule->budget;
        struct sl_bundle *bundle = candidates->list[first].model->bundle;
        uint64_t left_ns = less(budget->left_ns, budget->limit_ns);

        bundle->ready.run = 0;
        for (uint32_t i = first; i < candidates->n && !bundle->inliner->is_full; i++) {
                struct sl_handout handout = sl_handout_of(schedule, candidates->list[i].model, priority);
                uint64_t ns;

                if (handout.model->bundle != bundle || !goes_inline(&handout))
                        continue;
                ns = sl_inline_ns(handout.model, inline_samples(&handout));
                if (i > first && ns > left_ns)
                        break;
                give_inline(&handout);
                left_ns -= less(ns, left_ns);
        }
}

/* What other merged plans compute together goes along with the first one's, as far as the time goes. */
static void give_others_together(const struct sl_schedule *schedule, const struct candidates *candidates, uint32_t first,
        uint32_t priority, uint64_t left_ns)
{
        struct sl_bundle *bundle = candidates->list[first].model->bundle;

        for (uint32_t i = first + 1; i < candidates->n && !bundle->inliner->is_full; i++) {
                struct sl_handout handout = sl_handout_of(schedule, candidates->list[i].model, priority);
                uint32_t samples;
                uint64_t ns = 0, lanes;

                if (handout.model->bundle != bundle || !goes_inline(&handout))
                        continue;
                samples = inline_samples(&handout);
                lanes = find_together(&handout, samples, &ns);
                if (!lanes || ns > left_ns)
                        continue;
                give_together(schedule, bundle, priority, lanes, samples);
                left_ns -= ns;
        }
}

/*
 * One launch of the bundle's models. What goes together takes less time than the same one by one, if more than a job of its own may
 * take: where this pass has not so much left it waits for the next one, once. False: it does.
 */
static bool compute_bundle(
        const struct sl_schedule *schedule, const struct candidates *candidates, uint32_t first, uint32_t priority)
{
        struct sl_model *model = candidates->list[first].model;
        const struct sl_handout handout = sl_handout_of(schedule, model, priority);
        const struct sl_inline_budget *budget = schedule->budget;
        uint32_t samples = inline_samples(&handout);
        uint64_t ns = 0, lanes = find_together(&handout, samples, &ns), limit_ns = less(budget->left_ns, budget->limit_ns);

        model->bundle->put_off = ns > budget->left_ns && !model->bundle->put_off;
        if (model->bundle->put_off)
                return false;
        if (lanes && ns <= budget->left_ns) {
                give_together(schedule, model->bundle, priority, lanes, samples);
                give_others_together(schedule, candidates, first, priority, limit_ns - less(ns, limit_ns));
        } else {
                give_each(schedule, candidates, first, priority);
        }
        sl_carrier_send(model->inliner->carrier, priority, true, schedule->from);
        return true;
}

/* False: the pass has no time for it. */
static bool compute(const struct sl_schedule *schedule, const struct candidates *candidates, uint32_t at, uint32_t priority)
{
        struct sl_model *model = candidates->list[at].model;
        struct sl_handout handout = sl_handout_of(schedule, model, priority);
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t begun_ns = budget->now_ns, away_ns;

        if (!model->inliner->carrier)
                give_inline(&handout);
        else if (!compute_bundle(schedule, candidates, at, priority))
                return false;
        budget->now_ns = sl_clock_ns();
        away_ns = budget->now_ns - begun_ns;
        budget->left_ns -= less(away_ns, budget->left_ns);
        budget->jobs++;
        return true;
}

/* What waits for the dispatcher itself, and the threads that would be woken for it: one for each model, one for all that share
 * workers. */
struct left_over {
        uint64_t ns;
        uint32_t models;
        bool bundled;
        bool waits_too_long; /* for one of them no pass suffices, or too many have gone by */
};

static struct left_over count_left(const struct sl_schedule *schedule, uint32_t priority)
{
        struct left_over left = {0};

        for (struct sl_model *model = schedule->waiting[priority]; model; model = model->next_waiting[priority]) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);
                uint64_t ns;

                if (!sl_handout_is_inline(&handout))
                        continue;
                ns = sl_inline_task_ns(model, sl_task_queue_at(handout.queue, 0));
                left.ns += ns * sl_handout_waiting(&handout);
                left.waits_too_long |= ns > SL_INLINE_PASS_NS || model->passed_over > SL_INLINE_PASSES;
                left.models += !model->bundle;
                left.bundled |= model->bundle != NULL;
        }
        return left;
}

/* It is done before a thread that is woken for it would run, or takes no longer than the calls that wake all of them. */
static bool is_left_to_itself(const struct sl_schedule *schedule, uint32_t priority)
{
        const struct left_over left = count_left(schedule, priority);

        return !left.waits_too_long && (left.ns <= SL_LIGHT_NS || left.ns <= (left.models + left.bundled) * SL_WAKE_CALL_NS);
}

/* Else what is short and comes again and again would keep others waiting for as long as it does. */
static void mark_kept(const struct sl_schedule *schedule, uint32_t priority)
{
        for (struct sl_model *model = schedule->waiting[priority]; model; model = model->next_waiting[priority]) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);

                if (goes_inline(&handout))
                        model->passed_over++;
        }
}

/* Workers get it. */
static void forget_put_off(const struct sl_schedule *schedule)
{
        for (struct sl_bundle *bundle = schedule->bundles; bundle; bundle = bundle->next)
                bundle->put_off = false;
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
        if (budget->kept)
                mark_kept(schedule, priority);
        else
                forget_put_off(schedule);
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

                if (!goes_inline(&handout)) /* its bundle's turn was before */
                        continue;
                if (!compute(schedule, &candidates, i, priority)) {
                        budget->left_ns = 0;
                        break;
                }
                jobs++;
        }
        if (!budget->left_ns || (i < candidates.n && budget->now_ns < until_ns))
                end_budget(schedule, priority, budget->left_ns < SL_INLINE_PASS_NS);
        return jobs;
}

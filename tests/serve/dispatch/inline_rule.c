/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_rule.h"

#include "ensemble.h"
#include "executor.h"
#include "model.h"

#include <criterion/criterion.h>
#include <string.h>

#define LIMIT_NS 20000ull

/* An ensemble of two models that take @ns for a sample; both may be computed by the dispatcher. */
struct pair {
        struct sl_executor inliner;
        struct sl_model models[2];
        struct sl_ensemble ensemble;
};

static void pair_init(struct pair *pair, uint64_t ns)
{
        memset(pair, 0, sizeof(*pair));
        pair->inliner.batch_max = 8;
        pair->ensemble.assembly.n_members = 2;
        for (uint32_t i = 0; i < 2; i++) {
                pair->ensemble.members[i] = &pair->models[i];
                pair->models[i].inliner = &pair->inliner;
                sl_service_time_learn(&pair->models[i].service_time, 1, ns);
                sl_inline_learn(&pair->models[i].gauge, 1, ns, LIMIT_NS);
        }
}

static bool wants(const struct pair *pair, uint32_t samples, uint64_t limit_ns)
{
        return sl_inline_wants(&pair->ensemble, samples, 0, &(struct sl_inline_limit){.ns = limit_ns});
}

static bool wants_alone(const struct pair *pair, uint32_t samples, uint64_t limit_ns)
{
        return sl_inline_wants(&pair->ensemble, samples, 0, &(struct sl_inline_limit){.ns = limit_ns, .alone = true});
}

Test(inline_rule, all_members_together_take_no_longer_than_the_limit)
{
        struct pair pair;

        pair_init(&pair, LIMIT_NS / 2);
        cr_expect(wants(&pair, 1, LIMIT_NS));
        cr_expect_not(wants(&pair, 2, LIMIT_NS), "so many samples take longer");
        cr_expect_not(wants(&pair, 1, 0), "it is switched off");
        pair_init(&pair, LIMIT_NS / 2 + 1);
        cr_expect_not(wants(&pair, 1, LIMIT_NS));
        pair_init(&pair, LIMIT_NS / 100);
        cr_expect(wants(&pair, 8, LIMIT_NS));
        cr_expect_not(wants(&pair, 9, LIMIT_NS), "more than its largest batch");
        pair.models[1].inliner = NULL;
        cr_expect_not(wants(&pair, 1, LIMIT_NS), "a member that is not for it");
}

Test(inline_rule, boxes_are_never_fused_by_the_dispatcher)
{
        static const enum sl_rule rules[] = {SL_RULE_WEIGHTED_BOXES, SL_RULE_NMS, SL_RULE_SOFT_NMS};
        struct pair pair;

        pair_init(&pair, LIMIT_NS / 100);
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
                pair.ensemble.assembly.rule = rules[i];
                cr_expect_not(wants(&pair, 1, LIMIT_NS));
                cr_expect_not(wants_alone(&pair, 1, LIMIT_NS));
        }
        pair.ensemble.assembly.rule = SL_RULE_MAXIMUM;
        cr_expect(wants(&pair, 1, LIMIT_NS));
}

Test(inline_rule, one_job_above_twice_the_limit_ends_it_until_it_is_forgotten)
{
        struct pair pair;
        uint32_t jobs = 0;

        pair_init(&pair, 1000);
        sl_inline_learn(&pair.models[1].gauge, 1, 2 * LIMIT_NS, LIMIT_NS);
        cr_expect(wants(&pair, 1, 2 * LIMIT_NS + 2000), "twice is not above twice");
        sl_inline_learn(&pair.models[1].gauge, 1, 2 * LIMIT_NS + 1, LIMIT_NS);
        cr_expect_not(wants(&pair, 1, LIMIT_NS));
        for (; !wants(&pair, 1, LIMIT_NS) && jobs < 1000; jobs++)
                sl_inline_learn(&pair.models[1].gauge, 1, 1000, LIMIT_NS);
        cr_expect_gt(jobs, 10, "it has to be below the limit again, not only below twice");
        cr_expect_lt(jobs, 100);
}

/* What takes a millisecond with some inputs is no longer for the dispatcher after the first of them. */
Test(inline_rule, slow_jobs_again_and_again_keep_it_out)
{
        struct pair pair;

        pair_init(&pair, 1000);
        for (uint32_t i = 0; i < 100; i++) {
                sl_inline_learn(&pair.models[0].gauge, 1, i % 16 ? 1000 : 1000000, LIMIT_NS);
                cr_expect_not(wants(&pair, 1, LIMIT_NS), "job %u", i);
        }
}

/* As whoever computes is preempted once in a while: so long that it makes no difference, beside as many others. */
Test(inline_rule, slow_jobs_are_forgiven_while_they_take_a_quarter_of_the_limit_for_each_job)
{
        struct pair pair;

        pair_init(&pair, 1000);
        for (uint32_t i = 1; i <= 4096; i++) {
                sl_inline_learn(&pair.models[0].gauge, 1, i % 256 ? 1000 : 200 * LIMIT_NS / 4, LIMIT_NS);
                cr_expect(wants(&pair, 1, LIMIT_NS), "job %u", i);
        }
        pair_init(&pair, 1000);
        for (uint32_t i = 1; i <= 256; i++)
                sl_inline_learn(&pair.models[0].gauge, 1, i % 256 ? 1000 : 300 * LIMIT_NS / 4, LIMIT_NS);
        cr_expect_not(wants(&pair, 1, LIMIT_NS), "so long a one is not");
}

Test(inline_rule, what_takes_long_on_a_core_that_others_use_as_well_keeps_nothing_out)
{
        struct pair pair;

        pair_init(&pair, 1000);
        for (uint32_t i = 0; i < 8; i++)
                sl_inline_learn_elsewhere(&pair.models[0].gauge, 1, 1000000, LIMIT_NS);
        cr_expect(wants(&pair, 1, LIMIT_NS));
        sl_inline_learn(&pair.models[0].gauge, 1, 1000000, LIMIT_NS);
        cr_expect_not(wants(&pair, 1, LIMIT_NS));
        for (uint32_t i = 0; i < 200; i++)
                sl_inline_learn_elsewhere(&pair.models[0].gauge, 1, 1000000, LIMIT_NS);
        cr_expect(wants(&pair, 1, LIMIT_NS), "nor for longer");
}

/* Twice the limit is expected by what workers took, with others on their cores. */
Test(inline_rule, what_workers_took_is_not_what_the_dispatcher_takes)
{
        struct pair pair;

        pair_init(&pair, 1000);
        for (uint32_t m = 0; m < 2; m++) {
                sl_inline_gauge_init(&pair.models[m].gauge, LIMIT_NS / 4);
                for (uint32_t i = 0; i < 100; i++) {
                        sl_service_time_learn(&pair.models[m].service_time, 1, 2 * LIMIT_NS);
                        sl_inline_learn_elsewhere(&pair.models[m].gauge, 1, 2 * LIMIT_NS, LIMIT_NS);
                }
                cr_expect_eq(sl_inline_ns(&pair.models[m], 1), LIMIT_NS / 4);
        }
        cr_expect(wants(&pair, 1, LIMIT_NS));
        cr_expect_eq(sl_inline_samples(&pair.models[0], LIMIT_NS), 4);
        sl_inline_learn_elsewhere(&pair.models[0].gauge, 1, LIMIT_NS / 8, LIMIT_NS);
        cr_expect_lt(sl_inline_ns(&pair.models[0], 1), LIMIT_NS / 4, "that it took less holds for both");
}

/* Its own core was somebody else's for a while. */
Test(inline_rule, who_was_slow_is_tried_again_unless_the_trial_was_slow_too)
{
        static const struct {
                uint64_t tried_ns;
                bool again;
        } rows[] = {{LIMIT_NS / 4, true}, {LIMIT_NS / 2 + 1, false}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct pair pair;
                uint32_t jobs = 0;

                pair_init(&pair, 1000);
                for (uint32_t m = 0; m < 2; m++) {
                        sl_inline_gauge_init(&pair.models[m].gauge, rows[i].tried_ns);
                        for (uint32_t k = 0; k < 20; k++)
                                sl_inline_learn(&pair.models[m].gauge, 1, LIMIT_NS, LIMIT_NS);
                }
                cr_expect_not(wants(&pair, 1, LIMIT_NS));
                for (; !wants(&pair, 1, LIMIT_NS) && jobs < 1000; jobs++)
                        for (uint32_t m = 0; m < 2; m++)
                                sl_inline_learn_elsewhere(&pair.models[m].gauge, 1, LIMIT_NS, LIMIT_NS);
                cr_expect_eq(jobs < 1000, rows[i].again, "%zu: after %u jobs", i, jobs);
                cr_expect_gt(jobs, 20, "%zu: not with each other job", i);
        }
}

Test(inline_rule, a_request_is_alone_when_those_who_wait_have_all_other_cores)
{
        cr_expect(sl_inline_is_alone(1, 2, 0), "its client waits, though it was not counted yet");
        cr_expect(sl_inline_is_alone(1, 2, 1));
        cr_expect(sl_inline_is_alone(1, 8, 7));
        cr_expect(sl_inline_is_alone(1, 1, 0));
        cr_expect_not(sl_inline_is_alone(1, 3, 1), "a worker can have the third");
        cr_expect_not(sl_inline_is_alone(2, 2, 1), "workers can take both together");
        cr_expect_not(sl_inline_is_alone(0, 2, 1));
        cr_expect_not(sl_inline_is_alone(1, 0, 1), "how many cores there are is not known");
}

Test(inline_rule, an_only_request_has_a_limit_of_its_own)
{
        struct pair pair;

        pair_init(&pair, SL_INLINE_ALONE_NS / 2);
        cr_expect_not(wants(&pair, 1, LIMIT_NS));
        cr_expect(wants_alone(&pair, 1, LIMIT_NS));
        cr_expect_not(wants_alone(&pair, 2, LIMIT_NS), "so many samples take longer");
        cr_expect_not(wants_alone(&pair, 1, 0), "it is switched off");
        cr_expect(wants_alone(&pair, 2, 2 * SL_INLINE_ALONE_NS), "as the limit of all is above it");
        sl_inline_learn(&pair.models[0].gauge, 1, 2 * SL_INLINE_ALONE_NS + 1, LIMIT_NS);
        cr_expect_not(wants_alone(&pair, 1, LIMIT_NS), "a slow job");
        pair_init(&pair, SL_INLINE_ALONE_NS / 2);
        pair.models[1].inliner = NULL;
        cr_expect_not(wants_alone(&pair, 1, LIMIT_NS), "a member that is not for it");
}

static uint32_t jobs_until_wanted(struct pair *pair)
{
        uint32_t jobs = 0;

        for (; !wants(pair, 1, LIMIT_NS) && jobs < 10000000; jobs++) {
                cr_assert_not(wants_alone(pair, 1, LIMIT_NS), "not when it is alone either");
                sl_inline_learn_elsewhere(&pair->models[0].gauge, 1, 1000, LIMIT_NS);
        }
        return jobs;
}

Test(inline_rule, a_job_that_is_given_up_bars_its_model_for_longer_each_time)
{
        uint32_t before = 0;
        struct pair pair;

        pair_init(&pair, 1000);
        for (int i = 0; i < 6; i++) {
                uint32_t jobs;

                pair.models[0].gauge.credit_ns = 0;
                sl_inline_overran(&pair.models[0].gauge, 300000, LIMIT_NS);
                jobs = jobs_until_wanted(&pair);
                cr_expect_geq(jobs, 1024u);
                cr_expect_geq(jobs, before + before / 2, "%u jobs, then %u", before, jobs);
                before = jobs;
        }
        for (int i = 0; i < 30; i++)
                sl_inline_overran(&pair.models[0].gauge, 300000, LIMIT_NS);
        cr_expect_leq(jobs_until_wanted(&pair), 1u << 20, "but not for ever");
}

/* Cheap and expensive ones in turn: however they are dealt, what is given up takes at most a twelfth of the dispatcher's time. */
Test(inline_rule, what_is_given_up_takes_little_of_the_dispatchers_time_however_it_is_dealt)
{
        for (uint32_t cheap = 0; cheap <= 4096; cheap = 2 * cheap + 1) {
                uint64_t all_ns = 0, given_up_ns = 0;
                struct pair pair;

                pair_init(&pair, 1000);
                for (uint32_t i = 0; i < 1000000; i++) {
                        bool is_cheap = i % (cheap + 1) != cheap;

                        all_ns += 10000; /* what a request takes beside, at the least */
                        if (!wants_alone(&pair, 1, LIMIT_NS)) {
                                sl_inline_learn_elsewhere(&pair.models[0].gauge, 1, is_cheap ? 1000 : 1000000, LIMIT_NS);
                        } else if (is_cheap) {
                                sl_inline_learn(&pair.models[0].gauge, 1, 1000, LIMIT_NS);
                        } else {
                                sl_inline_overran(&pair.models[0].gauge, 200000, LIMIT_NS);
                                given_up_ns += 200000;
                        }
                }
                cr_expect_lt(given_up_ns, (all_ns + given_up_ns) / 12, "of %u jobs one: %llu of %llu ns", cheap + 1,
                        (unsigned long long)given_up_ns, (unsigned long long)(all_ns + given_up_ns));
        }
}

Test(inline_rule, a_job_that_is_given_up_is_forgiven_beside_hundreds_that_are_not)
{
        struct pair pair;

        pair_init(&pair, 1000);
        for (uint32_t i = 0; i < 1000; i++)
                sl_inline_learn(&pair.models[0].gauge, 1, 1000, LIMIT_NS);
        sl_inline_overran(&pair.models[0].gauge, 3000000, LIMIT_NS);
        cr_expect(wants(&pair, 1, LIMIT_NS), "whoever computes is preempted once in a while");
        sl_inline_overran(&pair.models[0].gauge, 3000000, LIMIT_NS);
        sl_inline_overran(&pair.models[0].gauge, 3000000, LIMIT_NS);
        sl_inline_overran(&pair.models[0].gauge, 3000000, LIMIT_NS);
        cr_expect_not(wants(&pair, 1, LIMIT_NS));
}

static bool wants_size(const struct pair *pair, uint64_t units)
{
        return sl_inline_wants(&pair->ensemble, 1, units, &(struct sl_inline_limit){.ns = LIMIT_NS});
}

/* 1,000 ns and 10 for each unit. */
static void learn_workers(struct pair *pair, uint32_t jobs)
{
        for (uint32_t i = 0; i < jobs; i++)
                sl_size_line_learn(&pair->models[0].line, 100 + i % 50, 2000 + 10 * (i % 50));
}

Test(inline_rule, a_plan_of_any_size_is_for_sizes_that_keep_the_limit_once_workers_have_shown_what_they_take)
{
        struct pair pair;

        pair_init(&pair, 1000);
        pair.ensemble.assembly.n_members = 1;
        cr_expect_not(wants_size(&pair, 1), "nothing is known");
        learn_workers(&pair, 100);
        cr_expect(wants_size(&pair, 1800));
        cr_expect_not(wants_size(&pair, 2000));
        for (uint32_t i = 0; i < 100; i++)
                sl_inline_learn_size(&pair.models[0].gauge, 100 + i % 50, 2 * (2000 + 10 * (i % 50)));
        cr_expect(wants_size(&pair, 800), "what it takes itself counts");
        cr_expect_not(wants_size(&pair, 1000));
        for (uint32_t i = 0; i < 4000; i++)
                sl_inline_learn_size_elsewhere(&pair.models[0].gauge, 100 + i % 50, 2000 + 10 * (i % 50));
        cr_expect(wants_size(&pair, 1800), "where workers are faster it is tried again");
}

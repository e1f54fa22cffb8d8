/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule is what its options and seed say, and its parts together are the whole.
 */
#include "schedule.h"

#include "mix.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define N 10000u

static struct sl_mix *three_models(void)
{
        struct sl_mix *mix;

        cr_assert_eq(sl_mix_new((const double[]){4, 2, 1}, 3, &mix), 0);
        return mix;
}

static const uint32_t samples[] = {1, 8, 3};

static struct sl_schedule_options poisson(const struct sl_mix *mix)
{
        return (struct sl_schedule_options){
                .arrivals = {.kind = SL_ARRIVALS_POISSON, .rate = 1000, .seed = 4}, .mix = mix, .samples = samples, .seed = 4};
}

Test(schedule, parts_together_are_the_whole)
{
        struct sl_mix *mix = three_models();
        struct sl_schedule_options options = poisson(mix);
        struct sl_schedule whole, parts[3];
        struct sl_load_request expected, got;

        sl_schedule_init(&whole, &options);
        for (options.parts = 3; options.part < 3; options.part++)
                sl_schedule_init(&parts[options.part], &options);
        for (uint32_t i = 0; i < N; i++) {
                sl_schedule_next(&whole, &expected);
                sl_schedule_next(&parts[i % 3], &got);
                cr_assert_eq(got.due_ns, expected.due_ns);
                cr_assert_eq(got.model, expected.model);
                cr_assert_eq(got.samples, samples[got.model]);
        }
        sl_mix_free(mix);
}

/* Another rate does not change which models are asked for. */
Test(schedule, the_mix_does_not_depend_on_the_arrivals)
{
        struct sl_mix *mix = three_models();
        struct sl_schedule_options options = poisson(mix);
        struct sl_schedule slow, fast;
        struct sl_load_request one, other;

        sl_schedule_init(&slow, &options);
        options.arrivals = (struct sl_arrivals_options){.kind = SL_ARRIVALS_CONSTANT, .rate = 77};
        sl_schedule_init(&fast, &options);
        for (uint32_t i = 0; i < N; i++) {
                sl_schedule_next(&slow, &one);
                sl_schedule_next(&fast, &other);
                cr_assert_eq(one.model, other.model);
        }
        sl_mix_free(mix);
}

Test(schedule, a_trace_is_replayed_as_it_is_and_begins_again)
{
        struct sl_trace trace = {0};
        struct sl_schedule schedule;
        struct sl_load_request request;
        uint32_t model;

        cr_assert_eq(sl_trace_model(&trace, "a", &model), 0);
        for (uint64_t i = 0; i < 3; i++)
                cr_assert_eq(sl_trace_add(&trace, &(struct sl_load_request){.due_ns = 100 * i, .samples = (uint32_t)i + 1}), 0);
        sl_schedule_init(&schedule, &(struct sl_schedule_options){.trace = &trace});
        for (uint64_t i = 0; i < 9; i++) {
                sl_schedule_next(&schedule, &request);
                cr_expect_eq(request.due_ns, 100 * i, "number %lu is due at %lu", i, request.due_ns);
                cr_expect_eq(request.samples, i % 3 + 1);
        }
        sl_schedule_init(&schedule, &(struct sl_schedule_options){.trace = &trace, .speed = 4});
        for (uint64_t i = 0; i < 9; i++) {
                sl_schedule_next(&schedule, &request);
                cr_expect_eq(request.due_ns, 25 * i);
        }
        sl_trace_deinit(&trace);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "prepared.h"

#include "accumulator.h"
#include "base/clock.h"
#include "job_runner.h"

/* A first sample that takes so many times the limit of inline, cold, is not tried again. */
#define HOPELESS 100

static struct sl_job_runner_options runner_options(const struct sl_prepare_options *options)
{
        return (struct sl_job_runner_options){
                .plan = options->plan,
                .batch_max = options->batch_max,
                .regions = options->regions,
                .verdicts = sl_accumulator_verdict(options->accumulator, 0),
                .fake = options->fake,
                .growth = options->growth,
        };
}

int sl_prepared_make(struct sl_prepared *prepared, const struct sl_prepare_options *options)
{
        const struct sl_job_runner_options own = runner_options(options);
        uint64_t until_ns = sl_clock_ns() + options->warmup_ns;
        int r = sl_job_runner_new(&own, &prepared->runner);

        prepared->options = *options;
        if (r < 0)
                return r;
        sl_job_runner_show(prepared->runner, options->stats);
        prepared->warm_up = (struct sl_warm_up){
                .instance = sl_job_runner_instance(prepared->runner),
                .batcher = sl_job_runner_batcher(prepared->runner),
                .stats = options->stats,
                .info = sl_plan_info(options->plan),
                .dynamic = sl_plan_is_dynamic(options->plan),
                .batch_max = options->batch_max,
                .until_ns = until_ns,
                .called = options->called,
        };
        return 0;
}

static bool may_be_inline(const struct sl_prepare_options *options, uint64_t first_ns)
{
        return options->inline_ns && first_ns < HOPELESS * options->inline_ns;
}

int sl_prepared_run_first(struct sl_prepared *prepared)
{
        const struct sl_prepare_options *options = &prepared->options;
        const struct sl_job_runner_options own = runner_options(options);
        int r = 0;

        if (options->first_ns && !may_be_inline(options, options->first_ns))
                sl_warm_up_recall(&prepared->warm_up, options->first_ns);
        else
                r = sl_warm_up_first(&prepared->warm_up);
        if (r == 0 && may_be_inline(options, prepared->warm_up.first_ns))
                r = sl_inline_trial_run(&own, prepared->runner, options->inline_ns, options->inline_bound_ns, &prepared->trial);
        return r;
}

void sl_prepared_free(struct sl_prepared *prepared)
{
        sl_job_runner_free(prepared->runner);
        sl_job_runner_free(prepared->trial.runner);
}

struct sl_inline_trial sl_prepared_take_trial(struct sl_prepared *prepared)
{
        struct sl_inline_trial trial = prepared->trial;

        prepared->trial = (struct sl_inline_trial){0};
        return trial;
}

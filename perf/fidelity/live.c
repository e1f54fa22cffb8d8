/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "load_client.h"
#include "starling.h"

#include <errno.h>
#include <stdlib.h>

#define IN_FLIGHT 256u
#define LEAD_NS   (50 * SL_NS_PER_MS) /* until the first request is due */
#define PATIENCE  60                  /* seconds after the last */

/* The target of a runtime, and which request is at each of its places. */
struct recorder {
        struct sl_load_target inner;
        struct replay_answer *answers;
        uint64_t n_sent;
        struct {
                uint64_t number, due_ns;
        } places[IN_FLIGHT];
};

static uint64_t now(void *of)
{
        struct recorder *recorder = of;

        return recorder->inner.now_ns(recorder->inner.of);
}

static int submit(void *of, const struct sl_load_request *request, uint32_t place)
{
        struct recorder *recorder = of;
        int r = recorder->inner.submit(recorder->inner.of, request, place);

        if (r == -EAGAIN)
                return r;
        recorder->places[place].number = recorder->n_sent++;
        recorder->places[place].due_ns = request->due_ns;
        recorder->answers[recorder->places[place].number].status = r;
        return r;
}

static int reap(void *of, struct sl_load_answer *ret_answers, uint32_t max, uint64_t until_ns)
{
        struct recorder *recorder = of;
        int n = recorder->inner.reap(recorder->inner.of, ret_answers, max, until_ns);
        uint64_t now_ns = n > 0 ? now(of) : 0;

        for (int i = 0; i < n; i++) {
                const struct sl_load_answer *answer = &ret_answers[i];

                recorder->answers[recorder->places[answer->place].number] =
                        (struct replay_answer){.latency_ns = now_ns - recorder->places[answer->place].due_ns,
                                .queued_ns = answer->queued_ns,
                                .batched_ns = answer->batched_ns,
                                .computing_ns = answer->computing_ns,
                                .combining_ns = answer->combining_ns,
                                .status = answer->status};
        }
        return n;
}

static bool is_interrupted(void *of)
{
        struct recorder *recorder = of;

        return recorder->inner.is_interrupted(recorder->inner.of);
}

static int run(const struct sl_trace *trace, struct sl_load_client *client, struct replay_answer *ret_answers)
{
        struct recorder recorder = {.inner = sl_load_client_target(client), .answers = ret_answers};
        const struct sl_load_target target = {
                .of = &recorder, .now_ns = now, .submit = submit, .reap = reap, .is_interrupted = is_interrupted};
        uint64_t start_ns = sl_clock_ns() + LEAD_NS, last_ns = start_ns + trace->requests[trace->n_requests - 1].due_ns + 1;
        const struct sl_tally_options tally_options = {.from_ns = start_ns, .until_ns = last_ns, .n_models = trace->n_models};
        const struct sl_generator_options options = {.schedule = {.trace = trace},
                .in_flight = IN_FLIGHT,
                .start_ns = start_ns,
                .until_ns = last_ns,
                .give_up_ns = last_ns + PATIENCE * SL_NS_PER_SECOND,
                .requests = trace->n_requests};
        struct sl_tally tally;
        int r = sl_tally_init(&tally, &tally_options);

        if (r == 0)
                r = sl_generator_run(&options, &target, &tally);
        sl_tally_deinit(&tally);
        return r;
}

static void find_samples(const struct sl_trace *trace, uint32_t ret_samples[SL_LOAD_MODELS_MAX])
{
        for (size_t i = 0; i < trace->n_requests; i++)
                if (trace->requests[i].samples > ret_samples[trace->requests[i].model])
                        ret_samples[trace->requests[i].model] = trace->requests[i].samples;
}

int replay_live(const struct sl_trace *trace, const char *runtime, struct replay_answer *ret_answers, struct sl_error *error)
{
        const char *models[SL_LOAD_MODELS_MAX];
        uint32_t samples[SL_LOAD_MODELS_MAX] = {0};
        struct starling_error starling_error = {""};
        struct sl_load_client *client;
        int r;

        if (trace->n_models > SL_LOAD_MODELS_MAX)
                return sl_error_set(error, E2BIG, "%u models, at most %u", trace->n_models, SL_LOAD_MODELS_MAX);
        for (uint32_t i = 0; i < trace->n_models; i++)
                models[i] = trace->models[i];
        find_samples(trace, samples);
        r = sl_load_client_new(&(struct sl_load_client_options){.runtime = runtime,
                                       .models = models,
                                       .samples = samples,
                                       .n_models = trace->n_models,
                                       .in_flight = IN_FLIGHT},
                &client, &starling_error);
        if (r < 0)
                return sl_error_set(error, -r, "%s", starling_error.text);
        r = run(trace, client, ret_answers);
        if (r < 0)
                r = sl_error_set(error, -r, "%s: %s", runtime, sl_load_client_error(client));
        sl_load_client_free(client);
        return r;
}

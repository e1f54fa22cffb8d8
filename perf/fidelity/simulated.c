/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/error.h"
#include "fleet.h"
#include "replay.h"
#include "serving.h"

#include <errno.h>
#include <stdlib.h>

/* As the daemon has them by default. */
#define SEGMENT_SAMPLES 128u
#define SLICE_MS        10u
#define REQUESTS        1024u
#define SEGMENTS        1024u

struct run {
        const struct sl_trace *trace;
        struct replay_answer *answers;
        uint32_t ensembles[SERVING_NAMES_MAX]; /* of the trace's models */
        size_t next;
};

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct run *run = context;
        const struct sl_load_request *request = &run->trace->requests[run->next];

        if (run->next == run->trace->n_requests)
                return false;
        run->next++;
        *ret_request = (struct sl_sim_request){
                .arrival_ns = request->due_ns, .samples = request->samples, .ensemble = run->ensembles[request->model]};
        return true;
}

static void ended(void *context, const struct sl_sim_end *end)
{
        struct run *run = context;

        run->answers[end->number] =
                (struct replay_answer){.latency_ns = end->end_ns - end->request.arrival_ns, .status = end->status};
}

static int simulate(struct run *run, const struct serving *serving, struct sl_error *error)
{
        const struct sl_sim_calls calls = {.context = run, .next = next, .ended = ended};
        struct sl_sim_model *models = calloc(serving->costs->n_models, sizeof(*models));
        struct sl_sim_ensemble ensembles[SERVING_NAMES_MAX];
        struct sl_sim *sim;
        int r;

        if (!models)
                return sl_error_set(error, ENOMEM, "out of memory");
        for (uint32_t i = 0; i < serving->costs->n_models; i++)
                models[i] = (struct sl_sim_model){.slice_ns = SLICE_MS * SL_NS_PER_MS, .slice_samples = SL_SLICE_SAMPLES_MAX};
        for (uint32_t i = 0; i < serving->n_ensembles; i++)
                ensembles[i] = (struct sl_sim_ensemble){.members = serving->ensembles[i].members,
                        .n_members = serving->ensembles[i].n_members,
                        .segment_samples = SEGMENT_SAMPLES,
                        .queue_requests = REQUESTS};
        r = sl_sim_of_costs(serving->costs,
                &(struct sl_sim_world){.n_models = serving->costs->n_models,
                        .n_workers = serving->n_workers,
                        .n_ensembles = serving->n_ensembles,
                        .models = models,
                        .workers = serving->workers,
                        .ensembles = ensembles,
                        .own = serving->own,
                        .n_clients = 1,
                        .n_requests = REQUESTS,
                        .n_segments = SEGMENTS,
                        .jobs_max = SL_SIM_JOBS_MAX,
                        .learns = true},
                &calls, &sim, error);
        free(models);
        if (r < 0)
                return r;
        sl_sim_run(sim);
        sl_sim_free(sim);
        return 0;
}

int replay_simulated(
        const struct sl_trace *trace, const struct serving *given, struct replay_answer *ret_answers, struct sl_error *error)
{
        struct run run = {.trace = trace, .answers = ret_answers};
        struct serving serving = *given;

        if (trace->n_models > SERVING_NAMES_MAX)
                return sl_error_set(error, E2BIG, "%u models, at most %u", trace->n_models, SERVING_NAMES_MAX);
        for (uint32_t i = 0; i < trace->n_models; i++) {
                int found = serving_find(&serving, trace->models[i], error);

                if (found < 0)
                        return found;
                run.ensembles[i] = (uint32_t)found;
        }
        return simulate(&run, &serving, error);
}

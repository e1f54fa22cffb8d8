/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle.h"
#include "handout.h"
#include "let.h"
#include "model.h"

/* What of a bundle waits for its carriers. */
struct bundled {
        const struct sl_schedule *schedule;
        struct sl_bundle *bundle;
        uint32_t priority;
        bool spares_inline;
        uint64_t models; /* that wait, as bits by place */
        uint64_t ns;     /* that a job of each is expected to take */
};

static bool bundled_waits(const struct bundled *bundled, const struct sl_handout *handout)
{
        return sl_handout_waiting(handout) && !(bundled->spares_inline && sl_handout_is_inline(handout));
}

/* The model's lanes may be on some of the carriers only. */
static void count_lanes(const struct sl_model *model)
{
        struct sl_carrier *idle = NULL;
        uint32_t n_idle = 0;

        for (uint32_t i = 0; i < model->workers.n; i++) {
                struct sl_carrier *carrier = model->workers.list[i]->carrier;

                carrier->n_waiting++;
                if (carrier->n_launches == 0) {
                        idle = carrier;
                        n_idle++;
                }
        }
        if (n_idle == 1)
                idle->n_only++;
}

static void count_bundled(struct bundled *bundled)
{
        const struct sl_bundle *bundle = bundled->bundle;

        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                bundle->carriers[i]->n_waiting = bundle->carriers[i]->n_only = 0;
        for (uint64_t left = bundle->waiting[bundled->priority]; left; left &= left - 1) {
                const struct sl_handout handout =
                        sl_handout_of(bundled->schedule, bundle->models[__builtin_ctzll(left)], bundled->priority);

                if (!bundled_waits(bundled, &handout))
                        continue;
                bundled->models |= left & -left;
                bundled->ns += sl_service_time_ns(&handout.model->service_time, sl_task_queue_at(handout.queue, 0)->samples);
                count_lanes(handout.model);
        }
}

static uint32_t n_models(const struct bundled *bundled)
{
        return (uint32_t)__builtin_popcountll(bundled->models);
}

/* Where waking a second thread takes longer than all of it: the first idle carrier that can have all; NULL: there is none. */
static const struct sl_carrier *find_only(const struct bundled *bundled)
{
        const struct sl_bundle *bundle = bundled->bundle;

        for (uint32_t i = 0; i < bundle->n_carriers && bundled->ns <= SL_LIGHT_NS; i++)
                if (bundle->carriers[i]->n_launches == 0 && bundle->carriers[i]->n_waiting == n_models(bundled))
                        return bundle->carriers[i];
        return NULL;
}

/* Idle carriers get the same number of models each, and whatever no other one can have. */
static void share_bundled(const struct bundled *bundled)
{
        const struct sl_bundle *bundle = bundled->bundle;
        const struct sl_carrier *only = find_only(bundled);
        uint32_t idle = 0, share;

        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                idle += bundle->carriers[i]->n_launches == 0 && bundle->carriers[i]->n_waiting;
        share = idle && !only ? (n_models(bundled) + idle - 1) / idle : n_models(bundled);
        for (uint32_t i = 0; i < bundle->n_carriers; i++) {
                struct sl_carrier *carrier = bundle->carriers[i];

                carrier->is_full = only && carrier != only;
                carrier->share = share > carrier->n_only ? share : carrier->n_only;
        }
}

static void look_for_full(const struct bundled *bundled, uint64_t slice_ns)
{
        for (uint32_t i = 0; i < bundled->bundle->n_carriers; i++) {
                struct sl_carrier *carrier = bundled->bundle->carriers[i];

                carrier->is_full |= (uint32_t)__builtin_popcountll(carrier->filled) >= carrier->share ||
                                    (carrier->filled && carrier->filled_ns >= slice_ns);
        }
}

static void launch_bundled(const struct bundled *bundled)
{
        for (uint32_t i = 0; i < bundled->bundle->n_carriers; i++) {
                struct sl_carrier *carrier = bundled->bundle->carriers[i];

                if (!sl_carrier_send(carrier, bundled->priority, carrier->filled_ns <= SL_LIGHT_NS, bundled->schedule->from))
                        continue;
                carrier->backwards = !carrier->backwards;
                sl_handout_take_turn(carrier->let, bundled->priority, 1);
        }
}

static uint32_t run_bundled(struct bundled *bundled)
{
        struct sl_bundle *bundle = bundled->bundle;
        uint32_t jobs = 0;

        for (uint64_t left = bundle->waiting[bundled->priority]; left;) {
                struct sl_handout handout = sl_handout_of(bundled->schedule, sl_bundle_next(bundle, &left), bundled->priority);
                uint32_t given;

                if (!bundled_waits(bundled, &handout))
                        continue;
                given = sl_handout_run(&handout);
                jobs += given;
                if (given)
                        sl_bundle_took_turn(bundle, handout.model);
                look_for_full(bundled, handout.model->slice_ns);
        }
        return jobs;
}

uint32_t sl_bundle_run(const struct sl_schedule *schedule, struct sl_bundle *bundle, uint32_t priority, bool spares_inline)
{
        struct bundled bundled = {.schedule = schedule, .bundle = bundle, .priority = priority, .spares_inline = spares_inline};
        uint32_t jobs;

        count_bundled(&bundled);
        if (!bundled.models)
                return 0;
        share_bundled(&bundled);
        jobs = run_bundled(&bundled);
        launch_bundled(&bundled);
        return jobs;
}

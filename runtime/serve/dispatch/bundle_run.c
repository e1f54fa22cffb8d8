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
        uint32_t waiting; /* models */
        uint64_t ns;      /* that a job of each is expected to take */
        uint32_t share;   /* models that a carrier gets */
};

static bool bundled_waits(const struct bundled *bundled, const struct sl_handout *handout)
{
        return sl_handout_waiting(handout) && !(bundled->spares_inline && sl_handout_is_inline(handout));
}

static void count_bundled(struct bundled *bundled)
{
        for (uint64_t left = bundled->bundle->waiting[bundled->priority]; left; left &= left - 1) {
                const struct sl_handout handout =
                        sl_handout_of(bundled->schedule, bundled->bundle->models[__builtin_ctzll(left)], bundled->priority);

                if (!bundled_waits(bundled, &handout))
                        continue;
                bundled->waiting++;
                bundled->ns += sl_service_time_ns(&handout.model->service_time, sl_task_queue_at(handout.queue, 0)->samples);
        }
}

/* Where waking a second thread takes longer than all of it, the first idle carrier gets all. */
static void share_bundled(struct bundled *bundled)
{
        uint32_t idle = 0;

        for (uint32_t i = 0; i < bundled->bundle->n_carriers; i++) {
                struct sl_carrier *carrier = bundled->bundle->carriers[i];

                carrier->is_full = idle > 0 && bundled->ns <= SL_LIGHT_NS;
                idle += carrier->n_launches == 0 && !carrier->is_full;
        }
        bundled->share = idle ? (bundled->waiting + idle - 1) / idle : bundled->waiting;
}

static void look_for_full(const struct bundled *bundled, uint64_t slice_ns)
{
        for (uint32_t i = 0; i < bundled->bundle->n_carriers; i++) {
                struct sl_carrier *carrier = bundled->bundle->carriers[i];

                carrier->is_full |= (uint32_t)__builtin_popcountll(carrier->filled) >= bundled->share ||
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
        if (!bundled.waiting)
                return 0;
        share_bundled(&bundled);
        jobs = run_bundled(&bundled);
        launch_bundled(&bundled);
        return jobs;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "offers.h"

#include "account.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "names.h"
#include "registry_state.h"
#include "requested.h"
#include "rungs.h"
#include "runtime_options.h"
#include "stats.h"
#include "task_page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WAIT_FIRST_NS SL_NS_PER_SECOND
#define WAIT_LAST_NS  (64 * SL_NS_PER_SECOND)
#define NONE          UINT32_MAX

/* A name, as long as the same is wanted of it. */
struct offer {
        uint64_t want;
        uint64_t requests;              /* of it, at the last look */
        uint64_t wait_ns, wait_until_ns; /* after it was offered in vain */
        double rate;                    /* of a worker, when it served last */
        bool is_offered, is_used;
};

struct sl_offers {
        struct sl_registry *registry;
        uint32_t advised[SL_TASKS_MAX]; /* the name that was said last; NONE */
        struct offer offers[SL_CATALOGUE_MODELS];
        struct sl_rung rungs[SL_TASK_VARIANTS_MAX];
        const struct sl_served *served[SL_TASK_VARIANTS_MAX];
};

int sl_offers_new(struct sl_registry *r, struct sl_offers **ret_offers)
{
        struct sl_offers *offers = calloc(1, sizeof(*offers));

        if (!offers)
                return -ENOMEM;
        offers->registry = r;
        for (uint32_t i = 0; i < SL_TASKS_MAX; i++)
                offers->advised[i] = NONE;
        *ret_offers = offers;
        return 0;
}

struct sl_offers *sl_offers_free(struct sl_offers *offers)
{
        free(offers);
        return NULL;
}

/* ---- one name ---- */

static uint64_t requests_of(const struct sl_served *served)
{
        const struct sl_model_stats *counters = served->counting.counters;

        return counters && !served->counting.shared_counters ? sl_counter_read(&counters->requests) : 0;
}

static bool comes(const struct sl_served *served)
{
        return !sl_served_is_ready(served) && (served->want.request.is_asked || (served->load && !served->load_is_plan));
}

static bool may_come(const struct sl_served *served)
{
        return served->want.number && served->want.spec->spec.on_request && !served->is_shape && !served->drains &&
               served->failed != served->want.number;
}

static void wait_longer(struct offer *offer, uint64_t now_ns)
{
        offer->wait_ns = offer->wait_ns ? 2 * offer->wait_ns : WAIT_FIRST_NS;
        offer->wait_ns = offer->wait_ns < WAIT_LAST_NS ? offer->wait_ns : WAIT_LAST_NS;
        offer->wait_until_ns = now_ns + offer->wait_ns;
}

/* What has become of it since the last look. */
static void follow(struct offer *offer, const struct sl_served *served, uint64_t now_ns)
{
        uint64_t requests = requests_of(served);

        if (offer->want != served->want.number)
                *offer = (struct offer){.want = served->want.number};
        if (offer->is_offered && requests > offer->requests) {
                offer->is_used = true;
                offer->wait_ns = 0;
        }
        offer->requests = requests;
        if (!offer->is_offered || sl_served_is_ready(served) || comes(served))
                return;
        if (!offer->is_used)
                wait_longer(offer, now_ns);
        offer->is_offered = offer->is_used = false;
}

/* ---- one task ---- */

/* One that is not there, or cannot come, is passed over as one that waits. */
static void set_rung(struct sl_offers *o, const struct sl_task_spec *task, uint32_t i, uint64_t now_ns, sl_offer_load_fn load,
        void *context)
{
        const struct sl_served *served = sl_names_find(o->registry, task->variants[i]);
        struct sl_rung *rung = &o->rungs[i];
        struct offer *offer;
        struct sl_offer_load its = {.rate = 0};

        *rung = (struct sl_rung){.accuracy = task->accuracies[i], .waits = true};
        o->served[i] = served;
        if (!served || !served->used)
                return;
        offer = &o->offers[served->index];
        follow(offer, served, now_ns);
        if (sl_served_is_ready(served))
                its = load(context, served);
        if (its.rate > 0)
                offer->rate = its.rate;
        rung->rate = offer->rate;
        if (rung->rate <= 0 && task->latencies_ms && task->latencies_ms[i] > 0)
                rung->rate = 1000 / task->latencies_ms[i];
        rung->required = its.required;
        rung->serves = sl_served_is_ready(served);
        rung->lacks = rung->serves && its.lacks;
        rung->comes = comes(served);
        rung->waits = !may_come(served) || now_ns < offer->wait_until_ns;
}

static void report(const struct sl_offers *o, const char *event, const struct sl_task_spec *task, uint32_t i,
        enum sl_rungs_move move, const char *cause)
{
        struct sl_fields fields = {0};
        double required = 0;

        for (uint32_t k = 0; k < task->n; k++)
                required += o->rungs[k].serves ? o->rungs[k].required : 0;
        sl_fields_add(&fields, "task", task->name);
        sl_fields_add(&fields, "variant", task->variants[i]);
        sl_fields_add(&fields, "verdict", sl_rungs_move_name(move));
        sl_fields_add_number(&fields, "required_per_s", llround(required));
        sl_fields_add_number(&fields, "worker_does_per_s", llround(o->rungs[i].rate));
        if (cause)
                sl_fields_add(&fields, "cause", cause);
        sl_account_log(o->registry->options.accounts, NULL, cause ? 1 : 2, event, fields.text);
}

static void offer_variant(struct sl_offers *o, const struct sl_task_spec *task, uint32_t i, enum sl_rungs_move move, uint64_t now_ns)
{
        struct sl_served *served = sl_names_find(o->registry, task->variants[i]);
        struct offer *offer = &o->offers[served->index];
        struct sl_error error = {""};

        if (sl_requested_ask(o->registry, served, SL_ASKED_BY_NOBODY, &error) < 0) {
                wait_longer(offer, now_ns);
                report(o, "autoscale-refused", task, i, move, error.text);
                return;
        }
        offer->is_offered = true;
        offer->is_used = false;
        report(o, "autoscale", task, i, move, NULL);
}

void sl_offers_look(struct sl_offers *o, bool acts, uint64_t now_ns, sl_offer_load_fn load, void *context)
{
        const struct sl_runtime_options *options = o->registry->options.runtime;
        uint32_t n = 0;
        const struct sl_task_spec *tasks = options->tasks ? options->tasks(options->context, &n) : NULL;

        for (uint32_t t = 0; t < n && t < SL_TASKS_MAX; t++) {
                enum sl_rungs_move move;
                uint32_t next = NONE;

                if (tasks[t].n > SL_TASK_VARIANTS_MAX)
                        continue;
                for (uint32_t i = 0; i < tasks[t].n; i++)
                        set_rung(o, &tasks[t], i, now_ns, load, context);
                move = sl_rungs_next(o->rungs, tasks[t].n, &next);
                if (acts && move != SL_RUNGS_STAY)
                        offer_variant(o, &tasks[t], next, move, now_ns);
                else if (move != SL_RUNGS_STAY && o->advised[t] != next)
                        report(o, "autoscale-advice", &tasks[t], next, move, NULL);
                o->advised[t] = next;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each policy of batching promises (serve/decide/README.md), over thousands of runs of random engines under loads that try to
 * break it: nothing is lost, a class keeps the order of arrival and goes before those that are less urgent, nothing starts after
 * its deadline, and nobody waits for longer than the policy says. What the simulator was told to do is written down and looked at
 * afterwards, so that nothing of it is believed but times.
 */
#include "base/split_mix.h"
#include "layout.h"
#include "sim.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define RUNS     SL_ROUNDS(1000u) /* of each policy */
#define REQUESTS 150u
#define WORKERS  8u
#define JOBS     4096u
#define MS       1000000ull
#define NEVER    UINT64_MAX

struct asked {
        struct sl_sim_request request;
        uint64_t first_ns, last_ns; /* its first sample, and its last, was given to a worker */
        uint64_t end_ns;
        uint32_t given, job; /* samples; the last that has some */
        int status;
        bool ended, cut; /* in pieces of several jobs */
};

struct job {
        uint32_t worker;
        uint64_t begun_ns, end_ns;
};

/* A run: what comes, and what became of it. */
struct trial {
        struct sl_sim_options options;
        uint64_t seed, stream;
        uint32_t n, at,
                oldest[SL_PRIORITIES]; /* requests; in arrival order, the next that comes; of each class the oldest that waits */
        uint32_t n_jobs, n_ended;
        struct asked asked[REQUESTS];
        struct job jobs[JOBS];
};

#define EXPECT(t, true_thing, text, ...)                                                                                           \
        cr_assert((true_thing), "%s, seed %lu: " text, sl_policies[(t)->options.batching.policy].name, (t)->seed, __VA_ARGS__)

static uint32_t draw(struct trial *t, uint32_t n)
{
        return (uint32_t)((sl_split_mix_next(&t->stream) >> 32) % n);
}

/* ---- engines and loads ---- */

static void draw_device(struct trial *t, struct sl_sim_device *device)
{
        uint64_t ns = 100000 + draw(t, 10) * MS;
        uint32_t gains = draw(t, 3); /* nothing by batches, something, nearly all */

        for (uint32_t i = 0; i < 7; i++, ns += gains == 2 ? draw(t, 100000) : gains == 1 ? ns / 2 : ns)
                device->latency_ns[i] = ns;
        device->corun = draw(t, 2) ? 1 : 1 + 0.1 * draw(t, 20);
        device->at_once = draw(t, 3);
        device->transfer_ns = draw(t, 2) ? draw(t, 200000) : 0;
        device->copy_engines = draw(t, 3);
}

static void draw_batching(struct trial *t, struct sl_batching *batching)
{
        bool waits = batching->policy == SL_POLICY_opt_wait || batching->policy == SL_POLICY_static;

        batching->latency_ms = 1 + draw(t, 50);
        if (waits || batching->policy == SL_POLICY_triton)
                batching->delay_us = waits + draw(t, 30000);
        if (batching->policy == SL_POLICY_triton) {
                batching->in_order = draw(t, 2);
                for (uint32_t size = 1 + draw(t, 4); batching->n_sizes < draw(t, 4); size += 1 + draw(t, 6))
                        batching->sizes[batching->n_sizes++] = size;
        }
        batching->engine = (struct sl_ebird_engine){{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};
        cr_assert_null(sl_batching_wrong(batching));
}

/* Gaps of nothing, of what one sample takes, of the delay, and of chance: whoever holds something is met just behind its end. */
static uint64_t draw_gap_ns(struct trial *t, uint32_t kind)
{
        const struct sl_sim_options *options = &t->options;

        switch (draw(t, 8) ? kind : draw(t, 5)) {
        case 0:
                return 0;
        case 1:
                return options->device.latency_ns[draw(t, 4)] + draw(t, 2);
        case 2:
                return options->batching.delay_us * 1000ull + draw(t, 2);
        case 3:
                return draw(t, 40) ? 0 : 50 * MS;
        default:
                return draw(t, (uint32_t)(2 * options->device.latency_ns[0]));
        }
}

static void draw_requests(struct trial *t)
{
        uint32_t kind = draw(t, 5), samples_max = draw(t, 2) ? 1 : 1 + draw(t, 40), classes = 1 + draw(t, SL_PRIORITIES);
        uint32_t deadlines = draw(t, 3);
        uint64_t at_ns = draw(t, 1000);

        if (classes > 1) /* else less urgent ones leave cores to those that are more urgent (turns.h) */
                t->options.device.at_once = 0;
        t->n = 1 + draw(t, REQUESTS);
        for (uint32_t i = 0; i < t->n; i++) {
                at_ns += draw_gap_ns(t, kind);
                t->asked[i].request = (struct sl_sim_request){.arrival_ns = at_ns,
                        .samples = 1 + draw(t, samples_max),
                        .priority = draw(t, classes),
                        .deadline_ns = draw(t, 2) < deadlines ? at_ns + draw(t, 100) * MS : 0};
        }
}

static void trial_draw(struct trial *t, enum sl_policy_id policy, uint64_t seed)
{
        memset(t, 0, sizeof(*t));
        t->seed = t->stream = seed;
        t->options = (struct sl_sim_options){.batching.policy = policy,
                .n_workers = 1 + draw(t, WORKERS),
                .slice_samples = draw(t, 2) ? 65536 : 1 + draw(t, 40),
                .queue_requests = REQUESTS};
        for (uint32_t i = 0; i < t->options.n_workers; i++)
                t->options.batch_max[i] = draw(t, 3) ? 1u << draw(t, 6) : 1 + draw(t, 40);
        draw_device(t, &t->options.device);
        draw_batching(t, &t->options.batching);
        draw_requests(t);
}

/* ---- what is written down ---- */

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct trial *t = context;

        if (t->at == t->n)
                return false;
        *ret_request = t->asked[t->at++].request;
        return true;
}

/* NULL: none of the class waits. */
static struct asked *oldest_of(struct trial *t, uint32_t class, uint64_t now_ns)
{
        for (uint32_t *i = &t->oldest[class]; *i < t->n && t->asked[*i].request.arrival_ns <= now_ns; ++*i)
                if (t->asked[*i].request.priority == class && t->asked[*i].given < t->asked[*i].request.samples)
                        return &t->asked[*i];
        return NULL;
}

static uint64_t delay_ns(const struct trial *t)
{
        return t->options.batching.delay_us * 1000ull;
}

/* A class that is more urgent has had its turn: what waits of it still may only be held for its delay. */
static void expect_nothing_more_urgent(struct trial *t, uint32_t class, uint64_t now_ns)
{
        for (uint32_t i = 0; i < class; i++) {
                const struct asked *urgent = oldest_of(t, i, now_ns);

                EXPECT(t, !urgent || now_ns < urgent->request.arrival_ns + delay_ns(t),
                        "class %u starts at %lu, class %u waits since %lu", class, now_ns, i, urgent->request.arrival_ns);
        }
}

static void decided(void *context, const struct sl_sim_decided *d)
{
        struct trial *t = context;
        uint32_t left = d->decision.samples;

        expect_nothing_more_urgent(t, d->priority, d->now_ns);
        EXPECT(t, t->n_jobs < JOBS && left, "%u samples", left);
        while (left) {
                struct asked *asked = oldest_of(t, d->priority, d->now_ns);

                EXPECT(t, asked, "%u samples more than wait", left);
                uint32_t waits = asked->request.samples - asked->given, taken = left < waits ? left : waits;

                asked->first_ns = asked->given ? asked->first_ns : d->now_ns;
                asked->last_ns = d->now_ns;
                asked->cut |= asked->given > 0;
                asked->given += taken;
                asked->job = t->n_jobs;
                left -= taken;
        }
        t->jobs[t->n_jobs++] = (struct job){.worker = d->worker, .begun_ns = d->now_ns, .end_ns = NEVER};
}

static void ended(void *context, const struct sl_sim_end *end)
{
        struct trial *t = context;
        struct asked *asked = &t->asked[end->number];

        EXPECT(t, end->number < t->n && !asked->ended, "request %lu ends twice", end->number);
        asked->ended = true;
        asked->end_ns = end->end_ns;
        asked->status = end->status;
        t->jobs[asked->job].end_ns = end->end_ns;
        t->n_ended++;
}

static void trial_run(struct trial *t)
{
        struct sl_sim *sim;

        cr_assert_eq(sl_sim_new(&t->options, &(struct sl_sim_calls){t, next, ended, decided}, &sim), 0);
        sl_sim_run(sim);
        sl_sim_free(sim);
}

/* ---- what is promised ---- */

static void expect_all_ended(const struct trial *t)
{
        EXPECT(t, t->n_ended == t->n, "%u of %u requests ended", t->n_ended, t->n);
        for (uint32_t i = 0; i < t->n; i++)
                EXPECT(t, t->asked[i].given == t->asked[i].request.samples && t->asked[i].end_ns >= t->asked[i].last_ns,
                        "request %u: %u samples given, ended at %lu", i, t->asked[i].given, t->asked[i].end_ns);
}

static void expect_deadlines(const struct trial *t)
{
        for (uint32_t i = 0; i < t->n; i++) {
                const struct asked *asked = &t->asked[i];
                bool late = asked->request.deadline_ns && asked->last_ns >= asked->request.deadline_ns;

                EXPECT(t, asked->status == (late ? -ETIME : 0), "request %u, given at %lu, due at %lu, ends with %d", i,
                        asked->last_ns, asked->request.deadline_ns, asked->status);
        }
}

/* The last that was given in the class before @i; NULL: none was. */
static const struct asked *before(const struct trial *t, uint32_t i)
{
        for (uint32_t k = i; k-- > 0;)
                if (t->asked[k].request.priority == t->asked[i].request.priority)
                        return &t->asked[k];
        return NULL;
}

static void expect_order_of_arrival(const struct trial *t)
{
        for (uint32_t i = 0; i < t->n; i++) {
                const struct asked *asked = &t->asked[i], *earlier = before(t, i);

                EXPECT(t, asked->first_ns >= asked->request.arrival_ns && (!earlier || asked->first_ns >= earlier->last_ns),
                        "request %u is given at %lu, before the one before it", i, asked->first_ns);
        }
}

/* From when on @worker had nothing to do, the first such time at or behind @from_ns; NEVER: not before @to_ns. */
static uint64_t idle_since(const struct trial *t, uint32_t worker, uint64_t from_ns, uint64_t to_ns)
{
        for (uint32_t i = 0; i < t->n_jobs && from_ns < to_ns; i++) {
                const struct job *job = &t->jobs[i];

                if (job->worker != worker || job->end_ns <= from_ns)
                        continue;
                if (job->begun_ns > from_ns)
                        return from_ns;
                from_ns = job->end_ns;
        }
        return from_ns < to_ns ? from_ns : NEVER;
}

/* No worker has nothing to do from @from_ns until the request is given. */
static void expect_all_busy(const struct trial *t, uint32_t i, uint64_t from_ns)
{
        for (uint32_t w = 0; w < t->options.n_workers; w++)
                EXPECT(t, idle_since(t, w, from_ns, t->asked[i].first_ns) == NEVER,
                        "request %u waits from %lu to %lu, worker %u is idle at %lu", i, t->asked[i].request.arrival_ns,
                        t->asked[i].first_ns, w, idle_since(t, w, from_ns, t->asked[i].first_ns));
}

/* Until those that compute have ended, from when the request is the oldest of its class, and none more urgent waits. */
static void expect_given_when_all_have_ended(const struct trial *t, uint32_t i, uint64_t from_ns)
{
        const struct asked *asked = &t->asked[i], *earlier = before(t, i);
        uint64_t until_ns;

        from_ns = earlier && earlier->last_ns > from_ns ? earlier->last_ns : from_ns;
        for (uint32_t k = 0; k < t->n; k++) /* more urgent ones have their turns */
                if (t->asked[k].request.priority < asked->request.priority && t->asked[k].last_ns > from_ns &&
                        t->asked[k].request.arrival_ns <= asked->first_ns && t->asked[k].last_ns <= asked->first_ns)
                        from_ns = t->asked[k].last_ns;
        until_ns = from_ns;
        for (uint32_t k = 0; k < t->n_jobs; k++)
                if (t->jobs[k].begun_ns <= from_ns && t->jobs[k].end_ns > until_ns)
                        until_ns = t->jobs[k].end_ns;
        EXPECT(t, asked->first_ns <= until_ns, "request %u waits from %lu to %lu, those before it have ended at %lu", i, from_ns,
                asked->first_ns, until_ns);
}

/* Each job's end is known. */
static void expect_bound(const struct trial *t)
{
        const char *waits = sl_policies[t->options.batching.policy].waits;

        for (uint32_t i = 0; i < t->n; i++) {
                uint64_t due_ns = t->asked[i].request.arrival_ns + delay_ns(t);

                if (!strcmp(waits, "until all workers are idle") || t->options.batching.in_order)
                        expect_given_when_all_have_ended(t, i, due_ns);
                else
                        expect_all_busy(t, i, due_ns);
        }
}

static bool some_are_cut(const struct trial *t)
{
        for (uint32_t i = 0; i < t->n; i++)
                if (t->asked[i].cut)
                        return true;
        return false;
}

static void check_policy(enum sl_policy_id policy)
{
        static struct trial t;
        uint32_t n_bounds = 0;

        for (uint64_t seed = 1; seed <= RUNS; seed++) {
                trial_draw(&t, policy, seed);
                trial_run(&t);
                expect_all_ended(&t);
                expect_deadlines(&t);
                expect_order_of_arrival(&t);
                if (some_are_cut(&t))
                        continue;
                expect_bound(&t);
                n_bounds++;
        }
        cr_expect_gt(n_bounds, RUNS / 4);
}

Test(promises, each_policy_keeps_its_own_in_thousands_of_runs)
{
        for (uint32_t policy = 0; policy < SL_POLICY_COUNT; policy++)
                check_policy(policy);
}

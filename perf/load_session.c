/* SPDX-License-Identifier: Apache-2.0 */
#include "load_session.h"

#include "base/clock.h"
#include "bench.h"
#include "cores.h"
#include "mix.h"
#include "process.h"
#include "starling.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LEAD_NS    (20 * SL_NS_PER_MS) /* for threads to start in */
#define LONGEST_NS (24 * 3600 * SL_NS_PER_SECOND)
#define LOOK_NS    (50 * SL_NS_PER_MS)

struct worker {
        struct sl_load_session *session;
        struct sl_load_client *client;
        struct sl_generator_options load;
        struct sl_tally tally;
        pthread_t thread;
        bool started;
        int cpu, result; /* cpu -1: not bound */
};

struct sl_load_session {
        struct sl_load_options options;
        struct sl_mix *mix;
        struct worker workers[SL_LOAD_THREADS_MAX];
};

/* ---- making ---- */

/* A share of the places in flight: the first ones take what does not divide. */
static uint32_t share_of(const struct sl_load_session *session, uint32_t in_flight, uint32_t worker)
{
        uint32_t threads = session->options.threads, share = in_flight / threads + (worker < in_flight % threads);

        return share ? share : 1;
}

static int make_workers(struct sl_load_session *session, struct starling_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < session->options.threads && r == 0; i++) {
                struct worker *worker = &session->workers[i];
                struct sl_load_client_options options = session->options.client;

                worker->session = session;
                worker->cpu = session->options.n_cpus ? session->options.cpus[i % session->options.n_cpus] : -1;
                options.in_flight = share_of(session, options.in_flight, i);
                r = sl_load_client_new(&options, &worker->client, error);
        }
        return r;
}

int sl_load_session_new(const struct sl_load_options *options, struct sl_load_session **ret_session, struct starling_error *error)
{
        struct sl_load_session *session = calloc(1, sizeof(*session));

        if (!session)
                return -ENOMEM;
        session->options = *options;
        int r = sl_mix_new(options->weights, options->client.n_models, &session->mix);
        if (r < 0)
                snprintf(error->text, sizeof(error->text), "weights of models want to be 0 or more, and together more than 0");
        else
                r = make_workers(session, error);
        if (r < 0) {
                sl_load_session_free(session);
                return r;
        }
        *ret_session = session;
        return 0;
}

struct sl_load_session *sl_load_session_free(struct sl_load_session *session)
{
        if (!session)
                return NULL;
        for (uint32_t i = 0; i < session->options.threads; i++)
                sl_load_client_free(session->workers[i].client);
        sl_mix_free(session->mix);
        free(session);
        return NULL;
}

/* ---- a repeat ---- */

static void *worker_run(void *argument)
{
        struct worker *worker = argument;
        const struct sl_load_target target = sl_load_client_target(worker->client);

        /* The kernel ends sleeps 50 us late unless it is asked not to. */
        (void)prctl(PR_SET_TIMERSLACK, 1);
        if (worker->cpu >= 0)
                (void)sl_cores_pin(worker->cpu);
        worker->result = sl_generator_run(&worker->load, &target, &worker->tally);
        return NULL;
}

static struct sl_schedule_options schedule_of(
        const struct sl_load_session *session, const struct sl_load_level *level, uint32_t number, uint32_t part)
{
        struct sl_schedule_options schedule = {
                .arrivals = level->arrivals,
                .mix = session->mix,
                .samples = session->options.client.samples,
                .trace = session->options.trace,
                .speed = session->options.speed,
                .seed = session->options.seed + number,
                .part = part,
                .parts = session->options.threads,
        };

        schedule.arrivals.seed = session->options.seed + number;
        return schedule;
}

static struct sl_tally_options window_of(const struct sl_load_session *session, const struct sl_load_level *level)
{
        uint64_t start_ns = sl_clock_ns() + LEAD_NS, from_ns = start_ns + (level->requests ? 0 : session->options.warm_up_ns);

        return (struct sl_tally_options){
                .from_ns = from_ns,
                .until_ns = from_ns + (level->requests ? LONGEST_NS : session->options.duration_ns),
                .objective_ns = session->options.objective_ns,
                .n_models = session->options.client.n_models,
        };
}

/* How long what is overdue is still sent for, once the time is over. */
static uint64_t grace_ns(const struct sl_load_session *session)
{
        uint64_t duration_ns = session->options.duration_ns;

        return duration_ns < SL_NS_PER_SECOND ? SL_NS_PER_SECOND : duration_ns;
}

static int start_worker(struct worker *worker, uint32_t part, const struct sl_load_level *level, uint32_t number,
        const struct sl_tally_options *window)
{
        const struct sl_load_session *session = worker->session;
        uint32_t threads = session->options.threads;
        uint32_t most = share_of(session, session->options.client.in_flight, part);
        uint32_t wanted = share_of(session, level->in_flight, part);

        worker->load = (struct sl_generator_options){
                .schedule = schedule_of(session, level, number, part),
                .closed = level->closed,
                .in_flight = level->closed && wanted < most ? wanted : most,
                .start_ns = window->from_ns - (level->requests ? 0 : session->options.warm_up_ns),
                .until_ns = window->until_ns,
                .give_up_ns = window->until_ns + grace_ns(session),
                .requests = level->requests / threads + (part < level->requests % threads),
        };
        int r = sl_tally_init(&worker->tally, window);
        if (r == 0)
                r = -pthread_create(&worker->thread, NULL, worker_run, worker);
        worker->started = r == 0;
        return r;
}

static int await_time(uint64_t until_ns)
{
        uint64_t now_ns;

        while ((now_ns = sl_clock_ns()) < until_ns) {
                uint64_t left_ns = until_ns - now_ns < LOOK_NS ? until_ns - now_ns : LOOK_NS;
                const struct timespec time = {.tv_nsec = (long)left_ns};

                if (sl_bench_interrupted())
                        return -EINTR;
                clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        }
        return 0;
}

static uint64_t own_cpu_ns(void)
{
        struct timespec time;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return (uint64_t)time.tv_sec * SL_NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

static void take_ends(struct sl_load_session *session, struct sl_load_repeat *repeat)
{
        repeat->client_cpu_ns = own_cpu_ns() - repeat->client_cpu_ns;
        repeat->after = sl_runtime_account_take(session->options.client.runtime);
        (void)sl_process_rss(getpid(), &repeat->client_rss_bytes);
}

static int join_workers(struct sl_load_session *session, struct sl_load_repeat *repeat, struct starling_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < session->options.threads; i++) {
                struct worker *worker = &session->workers[i];

                if (!worker->started)
                        continue;
                pthread_join(worker->thread, NULL);
                worker->started = false;
                if (worker->result < 0 && r == 0) {
                        const char *why = sl_load_client_error(worker->client);

                        r = worker->result;
                        snprintf(error->text, sizeof(error->text), "%s", *why ? why : starling_strerror(r));
                }
                if (!repeat->tally.failed && (worker->tally.failed || !worker->tally.answered))
                        snprintf(error->text, sizeof(error->text), "%s", sl_load_client_error(worker->client));
                sl_tally_merge(&repeat->tally, &worker->tally);
        }
        return r;
}

/* A load of so many requests is over when they are answered, any other when its time is. */
static int measure_window(struct sl_load_session *session, const struct sl_load_level *level, const struct sl_tally_options *window,
        struct sl_load_repeat *repeat, struct starling_error *error)
{
        int r = await_time(window->from_ns);

        repeat->client_cpu_ns = own_cpu_ns();
        repeat->before = sl_runtime_account_take(session->options.client.runtime);
        if (r == 0 && !level->requests) {
                r = await_time(window->until_ns);
                take_ends(session, repeat);
        }
        int joined = join_workers(session, repeat, error);

        if (level->requests)
                take_ends(session, repeat);
        return r < 0 ? r : joined;
}

int sl_load_session_run(struct sl_load_session *session, const struct sl_load_level *level, uint32_t number,
        struct sl_load_repeat *ret_repeat, struct starling_error *error)
{
        const struct sl_tally_options window = window_of(session, level);

        *ret_repeat = (struct sl_load_repeat){0};
        int r = sl_tally_init(&ret_repeat->tally, &window);
        for (uint32_t i = 0; i < session->options.threads && r == 0; i++)
                r = start_worker(&session->workers[i], i, level, number, &window);
        if (r == 0)
                r = measure_window(session, level, &window, ret_repeat, error);
        else
                (void)join_workers(session, ret_repeat, error);
        for (uint32_t i = 0; i < session->options.threads; i++)
                sl_tally_deinit(&session->workers[i].tally);
        ret_repeat->measured_ns = level->requests ? ret_repeat->tally.last_ns - window.from_ns : window.until_ns - window.from_ns;
        if (r < 0)
                sl_tally_deinit(&ret_repeat->tally);
        return r;
}

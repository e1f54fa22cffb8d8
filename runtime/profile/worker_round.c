/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_round.h"

#include "base/clock.h"
#include "base/error.h"
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_LATENCIES 65536u /* that are kept of one round */

enum gate { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP };

struct round {
        pthread_mutex_t lock; /* of the next four */
        pthread_cond_t change;
        uint32_t n_ready;
        enum gate gate;
        uint64_t opened_ns;     /* written before the gate opens */
        atomic_uint n_counting; /* workers that have not counted their last batch */
        uint64_t round_ns;
        bool keep, burst;
        const atomic_bool *stops;
};

struct seat {
        struct round *round;
        struct sl_timed_worker *worker;
        pthread_t thread;
        int result;
};

int sl_timed_worker_init(
        struct sl_timed_worker *worker, const struct sl_plan *plan, uint32_t batch, int core, struct sl_error *error)
{
        int r;

        *worker = (struct sl_timed_worker){.batch = batch, .core = core};
        r = sl_instance_new(plan, batch, &worker->instance, error);
        if (r < 0)
                return r;
        if (sl_sample_ports_init(&worker->ports, sl_plan_info(plan), batch) < 0)
                return sl_error_set(error, ENOMEM, "no memory for inputs and outputs of batch %u", batch);
        while ((r = sl_instance_populate(worker->instance, batch, UINT64_MAX)) > 0)
                ;
        return r < 0 ? sl_error_set(error, -r, "no memory for the workspace of batch %u", batch) : 0;
}

int sl_timed_worker_use_team(struct sl_timed_worker *worker, const int *cores, uint32_t n, struct sl_error *error)
{
        const struct sl_team_options options = {.size = n, .cpus = cores, .spin_ns = SL_TEAM_SPIN_NS};
        int r = sl_team_new(&options, &worker->team, error);

        if (r < 0)
                return r;
        worker->core = cores[0];
        return sl_instance_use_team(worker->instance, worker->team, error);
}

void sl_timed_worker_deinit(struct sl_timed_worker *worker)
{
        sl_sample_ports_deinit(&worker->ports);
        sl_instance_free(worker->instance);
        sl_team_free(worker->team);
        free(worker->latencies_ns);
        *worker = (struct sl_timed_worker){.batch = 0};
}

static int make_room(struct sl_timed_worker *worker)
{
        size_t wanted = worker->n_latencies + ROUND_LATENCIES;
        double *latencies;

        wanted = wanted < SL_LATENCIES_MAX ? wanted : SL_LATENCIES_MAX;
        if (worker->room >= wanted)
                return 0;
        latencies = reallocarray(worker->latencies_ns, wanted, sizeof(*latencies));
        if (!latencies)
                return -ENOMEM;
        worker->latencies_ns = latencies;
        worker->room = wanted;
        return 0;
}

static bool stopped(const struct round *round)
{
        return round->stops && atomic_load_explicit(round->stops, memory_order_relaxed);
}

static int bind_thread(int core)
{
        cpu_set_t cores;

        CPU_ZERO(&cores);
        CPU_SET(core, &cores);
        return sched_setaffinity(0, sizeof(cores), &cores) < 0 ? -errno : 0;
}

static int run_batch(struct sl_timed_worker *worker)
{
        return sl_sample_ports_run(&worker->ports, worker->instance, worker->batch);
}

static bool wait_for_start(struct round *round)
{
        bool open;

        pthread_mutex_lock(&round->lock);
        round->n_ready++;
        pthread_cond_broadcast(&round->change);
        while (round->gate == GATE_SHUT)
                pthread_cond_wait(&round->change, &round->lock);
        open = round->gate == GATE_OPEN;
        pthread_mutex_unlock(&round->lock);
        return open;
}

static int count_batches(struct round *round, struct sl_timed_worker *worker)
{
        const uint64_t start = round->burst ? round->opened_ns : sl_clock_ns();
        uint64_t before = start, now = start;
        int r = 0;

        worker->n_runs = 0;
        while (r == 0 && !stopped(round) && (!worker->n_runs || now - start < round->round_ns)) {
                r = run_batch(worker);
                now = sl_clock_ns();
                if (round->keep && worker->n_latencies < worker->room)
                        worker->latencies_ns[worker->n_latencies++] = (double)(now - before);
                before = now;
                worker->n_runs++;
        }
        worker->span_ns = now - start;
        return r;
}

static void *seat_run(void *argument)
{
        struct seat *seat = argument;
        struct round *round = seat->round;
        int r = bind_thread(seat->worker->core);

        if (r == 0 && !round->burst)
                r = run_batch(seat->worker);
        if (wait_for_start(round)) {
                if (r == 0)
                        r = count_batches(round, seat->worker);
                atomic_fetch_sub(&round->n_counting, 1);
                while (r == 0 && !round->burst && !stopped(round) && atomic_load_explicit(&round->n_counting, memory_order_relaxed))
                        r = run_batch(seat->worker);
        }
        if (seat->worker->team)
                sl_team_rest(seat->worker->team);
        seat->result = r;
        return NULL;
}

static void open_gate(struct round *round, uint32_t n_started, enum gate gate)
{
        pthread_mutex_lock(&round->lock);
        while (round->n_ready < n_started)
                pthread_cond_wait(&round->change, &round->lock);
        round->opened_ns = sl_clock_ns();
        round->gate = gate;
        pthread_cond_broadcast(&round->change);
        pthread_mutex_unlock(&round->lock);
}

static int run_seats(struct round *round, struct seat *seats, uint32_t n, struct sl_error *error)
{
        uint32_t n_started = 0;
        int r = 0;

        while (n_started < n && r == 0) {
                r = pthread_create(&seats[n_started].thread, NULL, seat_run, &seats[n_started]);
                n_started += r == 0;
        }
        open_gate(round, n_started, r == 0 ? GATE_OPEN : GATE_GIVEN_UP);
        for (uint32_t i = 0; i < n_started; i++)
                pthread_join(seats[i].thread, NULL);
        if (r != 0)
                return sl_error_set(error, r, "a thread for a worker: %s", strerror(r));
        for (uint32_t i = 0; i < n; i++)
                if (seats[i].result < 0)
                        return sl_instance_explain(seats[i].worker->instance, seats[i].result, error);
        return stopped(round) ? -EINTR : 0;
}

static int run_round(struct round *round, struct sl_timed_worker *const *workers, uint32_t n, struct sl_error *error)
{
        struct seat seats[SL_ROUND_WORKERS_MAX];
        int r = 0;

        if (n > SL_ROUND_WORKERS_MAX)
                return sl_error_set(error, E2BIG, "%u workers at a time, at most %u", n, SL_ROUND_WORKERS_MAX);
        for (uint32_t i = 0; i < n; i++) {
                seats[i] = (struct seat){.round = round, .worker = workers[i]};
                if (round->keep && make_room(workers[i]) < 0)
                        return sl_error_set(error, ENOMEM, "no memory for latencies");
        }
        pthread_mutex_init(&round->lock, NULL);
        pthread_cond_init(&round->change, NULL);
        atomic_init(&round->n_counting, n);
        r = run_seats(round, seats, n, error);
        pthread_cond_destroy(&round->change);
        pthread_mutex_destroy(&round->lock);
        return r;
}

int sl_worker_round(struct sl_timed_worker *const *workers, uint32_t n, uint64_t round_ns, bool keep, const atomic_bool *stops,
        struct sl_error *error)
{
        struct round round = {.round_ns = round_ns, .keep = keep, .stops = stops};

        return run_round(&round, workers, n, error);
}

int sl_worker_burst(struct sl_timed_worker *const *workers, uint32_t n, const atomic_bool *stops, struct sl_error *error)
{
        struct round round = {.burst = true, .stops = stops};

        return run_round(&round, workers, n, error);
}

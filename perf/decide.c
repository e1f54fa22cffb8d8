/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide: what a decision of each policy takes at 64 workers, half of them idle, with 256 requests waiting; and how many requests a
 * second the simulator does with it, on one core, when 100,000 come in a second of virtual time: where they wait for their workers as they are, and where
 * they take turns among 8 clients and become segments.
 */
#include "base/clock.h"
#include "layout.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS   200000u
#define REQUESTS 2000000u
#define WAITING  256u
#define CLIENTS  8u

static const struct sl_ebird_engine engine = {{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};

static struct sl_batching batching_of(uint32_t policy)
{
        bool waits = policy == SL_POLICY_opt_wait || policy == SL_POLICY_static || policy == SL_POLICY_triton;

        return (struct sl_batching){.policy = policy, .latency_ms = 20, .delay_us = waits ? 1000 : 0, .engine = engine};
}

static double decision_ns(uint32_t policy)
{
        struct sl_policy_view view;
        struct sl_batching batching = batching_of(policy);
        struct sl_batching_state state = {.batch_max = 16};
        struct sl_service_time times = {0};
        struct sl_decision decisions[SL_POLICY_WORKERS_MAX + 1];
        struct sl_task_queue waiting;
        uint64_t next_ns, begun_ns;

        if (sl_task_queue_init(&waiting, WAITING) < 0)
                return 0;
        for (uint32_t i = 0; i < WAITING; i++)
                sl_task_queue_push(&waiting, &(struct sl_task){.samples = 1});
        for (uint32_t i = 1; i <= 64; i *= 2)
                sl_service_time_learn(&times, i, 100000 + 10000 * i);
        view = (struct sl_policy_view){.waiting = &waiting,
                .batchable = true,
                .service_time = &times,
                .slice_samples = 65536,
                .batching = &batching,
                .batching_state = &state,
                .n_workers = SL_POLICY_WORKERS_MAX,
                .n_lets = 1,
                .starts_max = {UINT32_MAX}};
        for (uint32_t i = 0; i < view.n_workers; i++)
                view.workers[i] = (struct sl_policy_worker){.batch_max = 1u << i % 6, .jobs = i % 2, .jobs_max = 2};
        begun_ns = sl_clock_ns();
        for (uint32_t i = 0; i < ROUNDS; i++)
                sl_policies[policy].decide(&view, 1000 + i, decisions, SL_POLICY_WORKERS_MAX + 1, &next_ns);
        begun_ns = sl_clock_ns() - begun_ns;
        sl_task_queue_deinit(&waiting);
        return (double)begun_ns / ROUNDS;
}

struct load {
        uint32_t dice, n, n_clients;
        uint64_t at_ns, ended;
};

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct load *load = context;

        if (load->n++ == REQUESTS)
                return false;
        load->dice = load->dice * 1664525u + 1013904223u;
        load->at_ns += (load->dice >> 8) % 20000;
        *ret_request = (struct sl_sim_request){
                .arrival_ns = load->at_ns, .samples = 1, .client = load->n_clients ? load->n % load->n_clients : 0};
        return true;
}

static void ended(void *context, const struct sl_sim_end *end)
{
        struct load *load = context;

        (void)end;
        load->ended++;
}

static double run(struct sl_sim *sim, const struct load *load)
{
        uint64_t begun_ns = sl_clock_ns();

        sl_sim_run(sim);
        begun_ns = sl_clock_ns() - begun_ns;
        sl_sim_free(sim);
        return (double)load->ended * 1e9 / (double)begun_ns;
}

static const struct sl_sim_device device = {.latency_ns = {20000, 25000, 35000, 55000, 95000, 175000}, .corun = 1.2};
static const uint32_t batch_max[] = {1, 2, 4, 4, 8, 8, 16};

#define WORKERS (sizeof(batch_max) / sizeof(batch_max[0]))

static double requests_per_second(uint32_t policy)
{
        struct sl_sim_options options = {.device = device,
                .batching = batching_of(policy),
                .n_workers = WORKERS,
                .slice_samples = 65536,
                .queue_requests = 65536};
        struct load load = {.dice = 1};
        struct sl_sim *sim;

        memcpy(options.batch_max, batch_max, sizeof(batch_max));
        if (sl_sim_new(&options, &(struct sl_sim_calls){.context = &load, .next = next, .ended = ended}, &sim) < 0)
                return 0;
        return run(sim, &load);
}

/* As the runtime serves them. */
static double served_per_second(uint32_t policy)
{
        const uint32_t members[] = {0};
        struct sl_sim_worker workers[WORKERS];
        struct sl_sim_time time = {.transfer_ns = 0};
        struct load load = {.dice = 1, .n_clients = CLIENTS};
        struct sl_sim *sim;

        memcpy(time.latency_ns, device.latency_ns, sizeof(time.latency_ns));
        for (uint32_t i = 0; i < WORKERS; i++)
                workers[i] = (struct sl_sim_worker){.batch_max = batch_max[i]};
        if (sl_sim_of_world(&(struct sl_sim_world){.n_lets = 1,
                                    .n_models = 1,
                                    .n_workers = WORKERS,
                                    .n_ensembles = 1,
                                    .n_classes = 1,
                                    .lets = &(struct sl_sim_let){0},
                                    .models = &(struct sl_sim_model){.batching = batching_of(policy), .slice_samples = 65536},
                                    .workers = workers,
                                    .ensembles = &(struct sl_sim_ensemble){members, 1, 128, 65536, false},
                                    .times = &time,
                                    .pairs = &device.corun,
                                    .n_clients = CLIENTS,
                                    .n_requests = 65536,
                                    .n_segments = 65536,
                                    .jobs_max = 2},
                    &(struct sl_sim_calls){.context = &load, .next = next, .ended = ended}, &sim) < 0)
                return 0;
        return run(sim, &load);
}

int main(void)
{
        printf("%-16s %14s %22s %22s\n", "policy", "decision (ns)", "simulated (million/s)", "with turns (million/s)");
        for (uint32_t i = 0; i < SL_POLICY_COUNT; i++)
                printf("%-16s %14.0f %22.2f %22.2f\n", sl_policies[i].name, decision_ns(i), requests_per_second(i) / 1e6,
                        served_per_second(i) / 1e6);
        return 0;
}

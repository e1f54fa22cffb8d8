/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies: what policies of batching make of one network on one device, simulated from a table of costs.
 *
 *     bench-policies COSTS MODEL CONTENTION COPY_NS SEED RATE:N...
 *             N requests at RATE a second, then the next: latencies, phase by phase
 *     bench-policies COSTS MODEL CONTENTION COPY_NS SEED qos MS N
 *             the largest rate of N requests of which 99 in 100 are answered within MS
 *
 * The costs' first class is the device. What of a batch's time is launches is what its two smallest sizes have in common;
 * CONTENTION is how much slower each job beside makes all. Requests of one sample at Poisson times.
 *
 * Policies that know one batch at a time have one worker of 32. They gather it in the host's memory, COPY_NS a sample, and copy it
 * to the device before they compute, as E2bird shows TF-Serving to do. N-Ebird has the paper's workers, E-Ebird those that its
 * offline phase finds on these costs; they and Starling's policies copy while others compute. One JSON object.
 *
 * Sources: W. Cui et al., "E2bird", sections 3, 7 and 8.
 */
#include "arrivals.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "costs.h"
#include "costs_file.h"
#include "ebird_engine.h"
#include "least_latency.h"
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX    32u
#define INSTANCES    2u /* of work_conserving and starling, each of up to 32 */
#define PHASES_MAX   16u
#define REQUESTS_MAX 1000000u
#define RATE_MAX     1e9
#define HALVINGS     12
#define MS           1e6

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)

struct phase {
        double rate;
        uint32_t n;
};

struct bench {
        struct sl_sim_device device;
        struct sl_ebird_engine engine;
        uint64_t copy_ns;
        uint32_t delay_us;
        uint64_t seed;
        uint32_t n; /* requests of all phases */
        uint64_t *arrivals_ns, *took_ns, *sorted_ns;
        uint32_t at; /* the next arrival */
};

static const uint32_t compared[] = {SL_POLICY_no_wait, SL_POLICY_opt_wait, SL_POLICY_static, SL_POLICY_triton, SL_POLICY_n_ebird,
        SL_POLICY_e_ebird, SL_POLICY_work_conserving, SL_POLICY_starling};
#define COMPARED (sizeof(compared) / sizeof(compared[0]))

static int number(const char *what, const char *text, uint64_t max, uint64_t *ret_value, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        return sl_value_number(text, 1, max, ret_value, wish) < 0
                       ? sl_error_set(error, EINVAL, "%s: \"%s\" is %s", what, text, wish)
                       : 0;
}

/* ---- The device ---- */

static int device_read(const char *path, const char *model, double contention, struct sl_sim_device *device, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        int r = sl_costs_file_read(path, &costs, error);
        uint32_t m = r < 0 ? SL_COST_NONE : sl_costs_find_model(costs, model);

        if (r < 0)
                return r;
        if (m == SL_COST_NONE)
                return sl_error_set(error, ENOENT, "%s: no model \"%s\"", path, model);
        *device = (struct sl_sim_device){.corun = 1 + contention, .copy_engines = costs->classes[0].copy_engines};
        for (uint32_t i = 0; i < SL_SIM_SIZES && 1u << i <= BATCH_MAX; i++) {
                uint32_t b = sl_costs_find_batch(costs, 1u << i);
                const struct sl_cost_cell *cell = b == SL_COST_NONE ? NULL : sl_costs_cell(costs, 0, m, b);

                if (!cell || !cell->latency_ns)
                        return sl_error_set(error, EINVAL, "%s: \"%s\" has no cost for batches of %u", path, model, 1u << i);
                device->latency_ns[i] = cell->latency_ns;
                device->transfer_ns = cell->transfer_ns >> i;
        }
        if (2 * device->latency_ns[0] > device->latency_ns[1])
                device->launch_ns = 2 * device->latency_ns[0] - device->latency_ns[1];
        return 0;
}

/* The mean latency of all workers of a configuration that begin at once: each size ends in turn, the smaller ones first. */
static double configuration_ns(void *context, const struct sl_ebird_configuration *configuration)
{
        const struct sl_sim_device *device = context;
        uint32_t left = 0, n = 0;
        double at_ns = 0, alone_ns = 0, sum_ns = 0, shares = 0;

        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++) {
                left += configuration->workers[i];
                shares += configuration->workers[i] * sl_sim_share(device, 1u << i);
        }
        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++) {
                if (!configuration->workers[i])
                        continue;
                at_ns += ((double)device->latency_ns[i] - alone_ns) * sl_sim_slow_down(device, left) * (shares > 1 ? shares : 1);
                alone_ns = (double)device->latency_ns[i];
                sum_ns += at_ns * configuration->workers[i];
                n += configuration->workers[i];
                left -= configuration->workers[i];
                shares -= configuration->workers[i] * sl_sim_share(device, 1u << i);
        }
        return sum_ns / n;
}

static void workers_add(struct sl_sim_options *options, uint32_t n, uint32_t batch_max)
{
        for (uint32_t i = 0; i < n && options->n_workers < SL_POLICY_WORKERS_MAX; i++)
                options->batch_max[options->n_workers++] = batch_max;
}

static void configuration_add(struct sl_sim_options *options, const struct sl_ebird_configuration *configuration)
{
        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++)
                workers_add(options, configuration->workers[i], 1u << i);
}

static struct sl_sim_options options_of(const struct bench *bench, uint32_t policy)
{
        static const struct sl_ebird_configuration naive = {{2, 1, 1, 1, 1}};
        struct sl_sim_options options = {.device = bench->device,
                .batching = {.policy = policy,
                        .delay_us = bench->delay_us,
                        .n_sizes = 3,
                        .sizes = {8, 16, 32},
                        .engine = bench->engine},
                .slice_samples = BATCH_MAX,
                .queue_requests = bench->n};
        struct sl_ebird_configuration workers = sl_ebird_workers(&bench->engine);

        if (policy == SL_POLICY_n_ebird)
                configuration_add(&options, &naive);
        else if (policy == SL_POLICY_e_ebird)
                configuration_add(&options, &workers);
        else if (policy == SL_POLICY_starling || policy == SL_POLICY_work_conserving)
                workers_add(&options, INSTANCES, BATCH_MAX);
        else {
                workers_add(&options, 1, BATCH_MAX);
                options.device.copy_engines = 0;
                options.device.transfer_ns += bench->copy_ns;
        }
        return options;
}

/* Any workers that a policy here could have. */
static struct sl_sim_options options_of_all(const struct bench *bench)
{
        struct sl_sim_options options = {.device = bench->device};

        workers_add(&options, BATCH_MAX, BATCH_MAX);
        return options;
}

/* ---- Requests ---- */

static void arrivals_fill(struct bench *bench, const struct phase *phases, uint32_t n_phases)
{
        uint64_t begin_ns = 0;
        uint32_t k = 0;

        for (uint32_t i = 0; i < n_phases; i++) {
                struct sl_arrivals arrivals;

                sl_arrivals_init(&arrivals, &(struct sl_arrivals_options){.rate = phases[i].rate, .seed = bench->seed + i});
                for (uint32_t j = 0; j < phases[i].n; j++)
                        bench->arrivals_ns[k++] = begin_ns + sl_arrivals_next(&arrivals);
                begin_ns = k ? bench->arrivals_ns[k - 1] : 0;
        }
}

static bool bench_next(void *context, struct sl_sim_request *ret_request)
{
        struct bench *bench = context;

        if (bench->at == bench->n)
                return false;
        *ret_request = (struct sl_sim_request){.arrival_ns = bench->arrivals_ns[bench->at++], .samples = 1};
        return true;
}

static void bench_ended(void *context, const struct sl_sim_end *end)
{
        ((struct bench *)context)->took_ns[end->number] = end->end_ns - end->request.arrival_ns;
}

static int bench_run(struct bench *bench, uint32_t policy, struct sl_error *error)
{
        struct sl_sim_options options = options_of(bench, policy);
        struct sl_sim *sim;

        bench->at = 0;
        if (sl_sim_new(&options, &(struct sl_sim_calls){bench, bench_next, bench_ended, NULL}, &sim) < 0)
                return sl_error_set(error, ENOMEM, "%s: it cannot be simulated", sl_policies[policy].name);
        sl_sim_run(sim);
        sl_sim_free(sim);
        return 0;
}

static int ascending(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* The smallest latency of @n that at least @percent of them do not exceed; they are sorted by sorted_fill(). */
static double sorted_ms(const struct bench *bench, uint32_t n, uint32_t percent)
{
        return (double)bench->sorted_ns[((uint64_t)n * percent + 99) / 100 - 1] / MS;
}

static void sorted_fill(struct bench *bench, uint32_t first, uint32_t n)
{
        memcpy(bench->sorted_ns, &bench->took_ns[first], n * sizeof(*bench->sorted_ns));
        qsort(bench->sorted_ns, n, sizeof(*bench->sorted_ns), ascending);
}

/* ---- What is printed ---- */

static void latencies_print(struct bench *bench, uint32_t first, uint32_t n)
{
        double sum_ns = 0;

        sorted_fill(bench, first, n);
        for (uint32_t i = 0; i < n; i++)
                sum_ns += (double)bench->sorted_ns[i];
        printf("{\"mean_ms\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}", sum_ns / n / MS,
                sorted_ms(bench, n, 50), sorted_ms(bench, n, 99), sorted_ms(bench, n, 100));
}

static void bound_print(struct bench *bench, uint32_t first, uint32_t n)
{
        struct sl_sim_options options = options_of_all(bench);
        const uint64_t *arrivals_ns = &bench->arrivals_ns[first];

        printf("{\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}",
                (double)sl_sim_least_latency_ns(&options, arrivals_ns, n, 0.5) / MS,
                (double)sl_sim_least_latency_ns(&options, arrivals_ns, n, 0.99) / MS,
                (double)sl_sim_least_latency_ns(&options, arrivals_ns, n, 1) / MS);
}

static void phases_print(struct bench *bench, const struct phase *phases, uint32_t n_phases,
        void (*print)(struct bench *bench, uint32_t first, uint32_t n))
{
        uint32_t first = 0;

        for (uint32_t i = 0; i < n_phases; first += phases[i++].n) {
                fputs(i ? ", " : "[", stdout);
                print(bench, first, phases[i].n);
        }
        fputs("]", stdout);
}

static int phases_run(struct bench *bench, const struct phase *phases, uint32_t n_phases, struct sl_error *error)
{
        arrivals_fill(bench, phases, n_phases);
        fputs(", \"policies\": {", stdout);
        for (uint32_t i = 0; i < COMPARED; i++) {
                int r = bench_run(bench, compared[i], error);

                if (r < 0)
                        return r;
                printf("%s\"%s\": {\"phases\": ", i ? ", " : "", sl_policies[compared[i]].name);
                phases_print(bench, phases, n_phases, latencies_print);
                fputs(", \"latencies_ms\": [", stdout);
                for (uint32_t k = 0; k < bench->n; k++)
                        printf("%s%.2f", k ? ", " : "", (double)bench->took_ns[k] / MS);
                fputs("]}", stdout);
        }
        fputs("}, \"bound\": ", stdout);
        phases_print(bench, phases, n_phases, bound_print);
        return 0;
}

/* By halving from what batches of 32 reach beside each other. */
static int qos_rate(struct bench *bench, uint32_t policy, double qos_ms, double *ret_rate, struct sl_error *error)
{
        double low = 0, high = 2.0 * BATCH_MAX * 1e9 / (double)sl_sim_latency_ns(&bench->device, BATCH_MAX);

        for (int i = 0; i < HALVINGS; i++) {
                double rate = (low + high) / 2;

                arrivals_fill(bench, &(struct phase){rate, bench->n}, 1);
                if (bench_run(bench, policy, error) < 0)
                        return -ENOMEM;
                sorted_fill(bench, 0, bench->n);
                if (sorted_ms(bench, bench->n, 99) <= qos_ms)
                        low = rate;
                else
                        high = rate;
        }
        *ret_rate = low;
        return 0;
}

static int qos_run(struct bench *bench, double qos_ms, struct sl_error *error)
{
        fputs(", \"rates\": {", stdout);
        for (uint32_t i = 0; i < COMPARED; i++) {
                double rate;

                if (qos_rate(bench, compared[i], qos_ms, &rate, error) < 0)
                        return -ENOMEM;
                printf("%s\"%s\": %.3f", i ? ", " : "", sl_policies[compared[i]].name, rate);
        }
        fputs("}", stdout);
        return 0;
}

static void configuration_print(const char *before, const struct sl_ebird_configuration *configuration)
{
        fputs(before, stdout);
        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++)
                printf("%s%u", i ? ", " : "[", configuration->workers[i]);
        fputs("]", stdout);
}

static void engine_print(const struct bench *bench)
{
        struct sl_ebird_configuration workers = sl_ebird_workers(&bench->engine);

        for (uint32_t i = 0; i < SL_EBIRD_ROWS; i++)
                configuration_print(i ? ", " : ", \"engine\": {\"rows\": [", &bench->engine.rows[i]);
        configuration_print("], \"workers\": ", &workers);
        fputs("}", stdout);
}

/* ---- The command line ---- */

static int phase_read(const char *text, struct phase *phase, struct sl_error *error)
{
        char rate[32], wish[SL_WISH_BYTES];
        const char *colon = strchr(text, ':');
        uint64_t n = 0;
        int r = 0;

        snprintf(rate, sizeof(rate), "%.*s", colon ? (int)(colon - text) : 0, text);
        if (!colon || sl_value_real(rate, 1e-3, RATE_MAX, &phase->rate, wish) < 0)
                return sl_error_set(error, EINVAL, "RATE:N: \"%s\" is none", text);
        r = number("RATE:N", colon + 1, REQUESTS_MAX, &n, error);
        phase->n = (uint32_t)n;
        return r;
}

static int phases_read(char **argv, struct phase *phases, uint32_t *ret_n_phases, uint32_t *ret_n, struct sl_error *error)
{
        uint32_t n = 0;

        for (*ret_n = 0; argv[n]; n++) {
                if (n == PHASES_MAX)
                        return sl_error_set(error, E2BIG, "more than %u phases", PHASES_MAX);
                if (phase_read(argv[n], &phases[n], error) < 0)
                        return -EINVAL;
                *ret_n += phases[n].n;
        }
        *ret_n_phases = n;
        return n ? 0 : sl_error_set(error, EINVAL, "no RATE:N");
}

/* E2bird, section 3: 30 ms for ResNet152, which takes 93.7 in batches of 32; for others in proportion. */
static uint32_t delay_us(const struct sl_sim_device *device)
{
        return (uint32_t)((double)sl_sim_latency_ns(device, BATCH_MAX) * 30.0 / 93.7 / 1e3);
}

static int bench_init(struct bench *bench, char **argv, uint32_t n, struct sl_error *error)
{
        *bench = (struct bench){.n = n, .arrivals_ns = calloc(n, 8), .took_ns = calloc(n, 8), .sorted_ns = calloc(n, 8)};
        char wish[SL_WISH_BYTES];
        double contention = 0, copy_ns = 0;
        int r = number("SEED", argv[5], UINT64_MAX, &bench->seed, error);

        if (r == 0 && sl_value_real(argv[3], 0, 1, &contention, wish) < 0)
                r = sl_error_set(error, EINVAL, "CONTENTION: \"%s\" is %s", argv[3], wish);
        if (r == 0 && sl_value_real(argv[4], 0, 1e9, &copy_ns, wish) < 0)
                r = sl_error_set(error, EINVAL, "COPY_NS: \"%s\" is %s", argv[4], wish);
        bench->copy_ns = (uint64_t)copy_ns;
        r = r < 0 ? r : device_read(argv[1], argv[2], contention, &bench->device, error);
        if (r < 0)
                return r;
        if (!bench->arrivals_ns || !bench->took_ns || !bench->sorted_ns)
                return sl_error_set(error, ENOMEM, "out of memory for %u requests", n);
        bench->delay_us = delay_us(&bench->device);
        sl_ebird_search(configuration_ns, &bench->device, &bench->engine);
        return 0;
}

static void bench_deinit(struct bench *bench)
{
        free(bench->arrivals_ns);
        free(bench->took_ns);
        free(bench->sorted_ns);
}

static int command_run(char **argv, struct sl_error *error)
{
        struct phase phases[PHASES_MAX];
        uint64_t n_qos = 0;
        uint32_t n_phases = 0, n = 0;
        double qos_ms = 0;
        bool qos = strcmp(argv[6], "qos") == 0 && argv[7] && argv[8];
        char wish[SL_WISH_BYTES];
        struct bench bench;

        if (qos && sl_value_real(argv[7], 1e-3, 1e9, &qos_ms, wish) < 0)
                return sl_error_set(error, EINVAL, "MS: \"%s\" is %s", argv[7], wish);
        int r = qos ? number("N", argv[8], REQUESTS_MAX, &n_qos, error) : phases_read(&argv[6], phases, &n_phases, &n, error);
        if (r < 0)
                return r;
        r = bench_init(&bench, argv, qos ? (uint32_t)n_qos : n, error);
        if (r == 0) {
                printf("{\"model\": \"%s\", \"seed\": %" PRIu64 ", \"capacity\": %.3f, \"delay_us\": %u", argv[2], bench.seed,
                        BATCH_MAX * 1e9 / (double)sl_sim_latency_ns(&bench.device, BATCH_MAX), bench.delay_us);
                engine_print(&bench);
                r = qos ? qos_run(&bench, qos_ms, error) : phases_run(&bench, phases, n_phases, error);
                puts("}");
        }
        bench_deinit(&bench);
        return r;
}

int main(int argc, char **argv)
{
        struct sl_error error = {"usage: bench-policies COSTS MODEL CONTENTION COPY_NS SEED (RATE:N... | qos MS N)"};

        if (argc < 7 || command_run(argv, &error) < 0) {
                fprintf(stderr, "bench-policies: %s\n", error.text);
                return 1;
        }
        return 0;
}

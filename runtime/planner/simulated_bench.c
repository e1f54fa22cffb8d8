/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated_bench.h"
#include "allocation_bench.h"
#include "base/error.h"
#include "matrix.h"
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES      8
#define POWERS     (NODES + 1)     /* of a pair: at the nodes, and their integral */
#define EXACT      (2 * NODES - 1) /* the degree up to which they are */
#define HALVINGS   8               /* of the interval, beyond it */
#define ROUNDS_MAX 200
#define CLOSE      1e-9

static const double node_at[NODES] = {0.0198550717512319, 0.1016667612931866, 0.2372337950418355, 0.4082826787521751,
        0.5917173212478249, 0.7627662049581645, 0.8983332387068134, 0.9801449282487681};
static const double node_weight[NODES] = {0.0506142681451881, 0.1111905172266872, 0.1568533229389437, 0.1813418916891810,
        0.1813418916891810, 0.1568533229389437, 0.1111905172266872, 0.0506142681451881};

struct worker {
        uint32_t device, model;
        double alone;   /* samples a second */
        double time_ns; /* of a batch, alone, with its transfer */
        double speed;
};

struct model_state {
        double busy, capacity, time_ns;
        double busy_at_throughput;
        uint32_t n_workers;
};

struct simulated_bench {
        struct sl_bench bench;
        const struct sl_problem *problem;
        uint32_t n_workers;
        struct worker *workers; /* by rows */
        struct model_state *models;
        double *powers;  /* classes x models x models x POWERS: node_at ^ (pair - 1), and 1 / pair */
        double *chances; /* of how many others of a device are busy */
};

static const double *pair_powers(const struct simulated_bench *bench, uint32_t device, uint32_t model, uint32_t other)
{
        const struct sl_costs *costs = bench->problem->costs;
        uint32_t class_index = costs->devices[device].class_index;

        return &bench->powers[(((size_t)class_index * costs->n_models + model) * costs->n_models + other) * POWERS];
}

static void worker_add(struct simulated_bench *bench, uint32_t device, uint32_t model, uint32_t batch)
{
        const struct sl_costs *costs = bench->problem->costs;
        const struct sl_cost_cell *cell = sl_costs_worker(costs, device, model, batch);
        struct worker *worker = &bench->workers[bench->n_workers++];

        *worker = (struct worker){device, model, batch * 1e9 / (double)sl_costs_period_ns(costs, device, cell),
                (double)(cell->latency_ns + cell->transfer_ns), 1};
        bench->models[model].n_workers++;
}

static void workers_collect(struct simulated_bench *bench, const struct sl_matrix *matrix)
{
        bench->n_workers = 0;
        memset(bench->models, 0, matrix->n_models * sizeof(*bench->models));
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++)
                        if (sl_matrix_batch(matrix, d, m))
                                worker_add(bench, d, m, sl_matrix_batch(matrix, d, m));
}

/*
 * Beside many others, or pairs that cost much, the integrand is next to nothing but close to 1: half of what is left, and half of
 * that, are integrated by themselves.
 */
static double speed_beside_many(const struct simulated_bench *bench, uint32_t w, uint32_t first, uint32_t last)
{
        const struct worker *worker = &bench->workers[w];
        double speed = 0, begin = 0, width = 0.5;

        for (int part = 0; part <= HALVINGS; part++, begin += width, width /= part < HALVINGS ? 2 : 1)
                for (int i = 0; i < NODES; i++) {
                        double at = begin + node_at[i] * width, product = 1;

                        for (uint32_t v = first; v < last; v++) {
                                const double *power = pair_powers(bench, worker->device, worker->model, bench->workers[v].model);
                                double more = 1 / power[NODES] - 1, busy = bench->models[bench->workers[v].model].busy;

                                if (v != w)
                                        product *= 1 - busy * (1 - (more == 1 ? at : pow(at, more)));
                        }
                        speed += node_weight[i] * width * product;
                }
        return speed;
}

/* E[min(1, cores / (1 + K))] where K others are busy: the part of a core that there is for worker @w. */
static double core_share(const struct simulated_bench *bench, uint32_t w, uint32_t first, uint32_t last, uint32_t cores)
{
        double *chances = bench->chances, share = 0;
        uint32_t n = 0;

        if (last - first <= cores)
                return 1;
        chances[0] = 1;
        for (uint32_t v = first; v < last; v++) {
                double busy = bench->models[bench->workers[v].model].busy;

                if (v == w)
                        continue;
                chances[n + 1] = chances[n] * busy;
                for (uint32_t k = n; k > 0; k--)
                        chances[k] = chances[k] * (1 - busy) + chances[k - 1] * busy;
                chances[0] *= 1 - busy;
                n++;
        }
        for (uint32_t k = 0; k <= n; k++)
                share += chances[k] * fmin(1, (double)cores / (k + 1));
        return share;
}

/* Of worker @w among those from @first to @last on its device, if each had a core for itself. */
static double speed_of_pairs(const struct simulated_bench *bench, uint32_t w, uint32_t first, uint32_t last)
{
        const struct worker *worker = &bench->workers[w];
        double product[NODES] = {1, 1, 1, 1, 1, 1, 1, 1}, speed = 0, degree = 0;

        if (last - first == 1)
                return 1;
        if (last - first == 2) { /* beside one other, in closed form */
                const struct worker *other = &bench->workers[w == first ? first + 1 : first];
                double slowed = pair_powers(bench, worker->device, worker->model, other->model)[NODES];

                return 1 - bench->models[other->model].busy * (1 - slowed);
        }
        for (uint32_t v = first; v < last; v++) {
                const double *power = pair_powers(bench, worker->device, worker->model, bench->workers[v].model);
                double busy = bench->models[bench->workers[v].model].busy;

                degree += v != w ? 1 / power[NODES] - 1 : 0;
                for (int i = 0; v != w && i < NODES; i++)
                        product[i] *= 1 - busy * (1 - power[i]);
        }
        if (degree > EXACT)
                return speed_beside_many(bench, w, first, last);
        for (int i = 0; i < NODES; i++)
                speed += node_weight[i] * product[i];
        return speed;
}

static double worker_speed(const struct simulated_bench *bench, uint32_t w, uint32_t first, uint32_t last)
{
        const struct sl_costs *costs = bench->problem->costs;
        uint32_t cores = sl_costs_cores(costs, costs->devices[bench->workers[w].device].class_index);
        double speed = speed_of_pairs(bench, w, first, last);

        return cores > 1 ? speed * core_share(bench, w, first, last, cores) : speed;
}

static void capacities_take(struct simulated_bench *bench, uint32_t n_models)
{
        for (uint32_t m = 0; m < n_models; m++)
                bench->models[m].capacity = 0;
        for (uint32_t first = 0, last; first < bench->n_workers; first = last) {
                for (last = first; last < bench->n_workers && bench->workers[last].device == bench->workers[first].device;)
                        last++;
                for (uint32_t w = first; w < last; w++) {
                        bench->workers[w].speed = worker_speed(bench, w, first, last);
                        bench->models[bench->workers[w].model].capacity += bench->workers[w].alone * bench->workers[w].speed;
                }
        }
}

/* u(m) = rate / C(m), at most 1. Return: the largest change. */
static double busy_update(struct simulated_bench *bench, uint32_t n_models, double rate, double share)
{
        double change = 0;

        for (uint32_t m = 0; m < n_models; m++) {
                double busy = fmin(1, rate / bench->models[m].capacity);

                busy = bench->models[m].busy + (busy - bench->models[m].busy) * share;
                change = fmax(change, fabs(busy - bench->models[m].busy));
                bench->models[m].busy = busy;
        }
        return change;
}

static double least_capacity(const struct simulated_bench *bench, uint32_t n_models)
{
        double least = INFINITY;

        for (uint32_t m = 0; m < n_models; m++)
                least = fmin(least, bench->models[m].capacity);
        return least;
}

/* From all busy on. Steps become shorter where whole ones do not settle. */
static double throughput(struct simulated_bench *bench, uint32_t n_models)
{
        double rate = 0;

        for (uint32_t m = 0; m < n_models; m++)
                bench->models[m].busy = 1;
        for (int round = 0; round < ROUNDS_MAX; round++) {
                capacities_take(bench, n_models);
                rate = least_capacity(bench, n_models);
                if (busy_update(bench, n_models, rate, round < ROUNDS_MAX / 4 ? 1 : 0.5) < CLOSE)
                        break;
        }
        for (uint32_t m = 0; m < n_models; m++)
                bench->models[m].busy_at_throughput = bench->models[m].busy;
        return rate;
}

static void times_take(struct simulated_bench *bench, uint32_t n_models)
{
        for (uint32_t m = 0; m < n_models; m++)
                bench->models[m].time_ns = 0;
        for (uint32_t w = 0; w < bench->n_workers; w++) {
                const struct worker *worker = &bench->workers[w];
                struct model_state *model = &bench->models[worker->model];

                model->time_ns += worker->alone * worker->speed / model->capacity * worker->time_ns / worker->speed;
        }
}

static double model_latency_ns(const struct model_state *model)
{
        double n = model->n_workers, u = model->busy;

        return model->time_ns * (1 + pow(u, sqrt(2 * (n + 1)) - 1) / (n * (1 - u)) / 2);
}

static double latency_ns(struct simulated_bench *bench, uint32_t n_models, double load)
{
        double latency = 0;

        for (uint32_t m = 0; m < n_models; m++)
                bench->models[m].busy = 0;
        for (int round = 0; round < ROUNDS_MAX; round++) {
                capacities_take(bench, n_models);
                if (busy_update(bench, n_models, load, 1) < CLOSE)
                        break;
        }
        times_take(bench, n_models);
        for (uint32_t m = 0; m < n_models; m++)
                latency = fmax(latency, bench->models[m].busy < 1 ? model_latency_ns(&bench->models[m]) : INFINITY);
        return latency;
}

static int simulated_run(struct sl_bench *base, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        struct simulated_bench *bench = (struct simulated_bench *)base;

        (void)error;
        *ret_result = (struct sl_bench_result){0, calibration->load > 0 ? INFINITY : 0};
        if (!sl_matrix_fits(bench->problem, matrix))
                return 0;
        workers_collect(bench, matrix);
        ret_result->throughput = throughput(bench, matrix->n_models);
        if (calibration->load > 0 && calibration->load < ret_result->throughput)
                ret_result->latency_ns = latency_ns(bench, matrix->n_models, calibration->load);
        return 0;
}

static void simulated_free(struct sl_bench *base)
{
        struct simulated_bench *bench = (struct simulated_bench *)base;

        free(bench->workers);
        free(bench->models);
        free(bench->powers);
        free(bench->chances);
        free(bench);
}

static const struct sl_bench_ops simulated_ops = {"simulated", simulated_run, simulated_free};

double sl_simulated_bench_busy(const struct sl_bench *bench, uint32_t model)
{
        return ((const struct simulated_bench *)bench)->models[model].busy_at_throughput;
}

static void powers_fill(double *powers, const struct sl_costs *costs)
{
        for (uint32_t c = 0; c < costs->n_classes; c++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        for (uint32_t o = 0; o < costs->n_models; o++) {
                                double more = sl_costs_slowdown(costs, c, m, &o, 1) - 1;

                                for (int i = 0; i < NODES; i++)
                                        powers[i] = more == 1 ? node_at[i] : pow(node_at[i], more);
                                powers[NODES] = 1 / (1 + more);
                                powers += POWERS;
                        }
}

int sl_simulated_bench_new(const struct sl_problem *problem, struct sl_bench **ret_bench, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        struct simulated_bench *bench = calloc(1, sizeof(*bench));

        if (!bench)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        bench->bench.ops = &simulated_ops;
        bench->problem = problem;
        bench->workers = calloc((size_t)costs->n_devices * costs->n_models, sizeof(*bench->workers));
        bench->models = calloc(costs->n_models, sizeof(*bench->models));
        bench->powers = calloc((size_t)costs->n_classes * costs->n_models * costs->n_models, POWERS * sizeof(double));
        bench->chances = calloc((size_t)costs->n_models + 1, sizeof(*bench->chances));
        if (!bench->workers || !bench->models || !bench->powers || !bench->chances) {
                simulated_free(&bench->bench);
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        }
        powers_fill(bench->powers, costs);
        *ret_bench = &bench->bench;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "costs.h"
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double share(uint64_t *seed)
{
        return draw(seed, 1000001) / 1e6;
}

static void class_fill(struct sl_costs *costs, uint32_t c, uint64_t *seed)
{
        struct sl_cost_class *class = &costs->classes[c];

        snprintf(class->name, sizeof(class->name), "class%u", c);
        class->kind = draw(seed, 3) ? SL_DEVICE_GPU : SL_DEVICE_CPU;
        class->units = 2 + draw(seed, 9);
        for (uint32_t units = 1; units < class->units && class->n_sizes < costs->n_sizes; units++)
                if (draw(seed, 3))
                        class->sizes[class->n_sizes++] = units;
        for (uint32_t i = 0; i < 5 && draw(seed, 3); i++)
                class->interference[i] = i < 4 ? 0.5 * share(seed) - 0.1 : 0.9 + 0.2 * share(seed);
        for (uint32_t m = 0; m < costs->n_models; m++) {
                double sample = 1e5 * (1 + 20 * share(seed)), fixed = 1e6 * share(seed), serial = 0.5 * share(seed);

                for (uint32_t o = 0; o < costs->n_models; o++)
                        *sl_costs_pair(costs, c, m, o) = draw(seed, 2) ? 1 + 0.3 * share(seed) : 0;
                for (uint32_t size = 0; size <= class->n_sizes; size++)
                        for (uint32_t b = 0; b < costs->n_batches; b++) {
                                uint32_t units = size < class->n_sizes ? class->sizes[size] : class->units;
                                double part = serial + (1 - serial) * class->units / units;
                                double ns =
                                        fixed + sample * costs->batches[b] * part * (draw(seed, 4) ? 1 : 0.5 + 0.7 * share(seed));

                                *sl_costs_size_cell(costs, c, size, m, b) =
                                        (struct sl_cost_cell){.latency_ns = draw(seed, 25) ? (uint64_t)ns : 0,
                                                .transfer_ns = draw(seed, 2) ? 1000 * costs->batches[b] : 0,
                                                .workspace_bytes = draw(seed, 300) * costs->batches[b],
                                                .l2_use = share(seed),
                                                .memory_use = share(seed),
                                                .source = SL_COST_DERIVED};
                        }
        }
}

void parts_case_init(struct parts_case *given, uint64_t seed, uint32_t devices_max, uint32_t models_max)
{
        uint32_t n_classes = 1 + !draw(&seed, 4), n_devices = 1 + draw(&seed, devices_max), n_models = 1 + draw(&seed, models_max);
        double load = 2 * share(&seed);
        struct sl_costs *costs;

        memset(given, 0, sizeof(*given));
        if (sl_costs_new_sized(n_classes, n_devices, n_models, 4, 6, &costs, NULL) < 0)
                abort();
        for (uint32_t b = 0; b < 4; b++)
                costs->batches[b] = draw(&seed, 2) || b == 0 ? 1u << b : 3u << (b - 1);
        for (uint32_t b = 1; b < 4; b++)
                costs->batches[b] = costs->batches[b] > costs->batches[b - 1] ? costs->batches[b] : costs->batches[b - 1] + 1;
        for (uint32_t m = 0; m < n_models; m++) {
                costs->models[m].weights_bytes = draw(&seed, 500);
                snprintf(costs->models[m].name, SL_COST_NAME_BYTES, "m%u", m);
        }
        for (uint32_t c = 0; c < n_classes; c++)
                class_fill(costs, c, &seed);
        for (uint32_t d = 0; d < n_devices; d++) {
                costs->devices[d].class_index = draw(&seed, n_classes);
                costs->devices[d].memory_bytes = draw(&seed, 4) ? 100000 : 200 + draw(&seed, 5000);
                costs->devices[d].memory_of = d && !draw(&seed, 8) ? costs->devices[d - 1].memory_of : d;
                snprintf(costs->devices[d].name, SL_COST_NAME_BYTES, "d%u", d);
        }
        for (uint32_t m = 0; m < n_models; m++) {
                struct sl_cost_let let = {.latency_ns = 1e6};

                sl_costs_let(costs, 0, costs->classes[0].units, m, costs->batches[draw(&seed, 4)], &let);
                given->demands[m].objective_ns = (uint64_t)((1 + 6 * share(&seed)) * let.latency_ns);
                given->demands[m].rate =
                        m && !draw(&seed, 6) ? 0 : load * share(&seed) * n_devices / n_models * 4e9 / let.latency_ns + 1e-3;
        }
        given->costs = costs;
        given->problem =
                (struct sl_partition_problem){costs, given->demands, draw(&seed, 3) ? sl_partition_paper : sl_partition_authors};
        if (given->problem.options.dropped_rate > 0)
                given->problem.options.dropped_rate = 3;
        given->problem.options.interference = draw(&seed, 2);
}

void parts_case_deinit(struct parts_case *given)
{
        sl_costs_free(given->costs);
}

double planned_ns(const struct sl_partition_problem *problem, uint32_t device, uint32_t units, uint32_t model, uint32_t batch)
{
        const struct sl_costs *costs = problem->costs;
        uint32_t largest = costs->batches[costs->n_batches - 1];
        struct sl_cost_let let;
        double longest = 0;
        bool known = false;

        for (uint32_t b = 1; b <= largest && !(known && b > batch); b++) {
                if (!sl_costs_let(costs, costs->devices[device].class_index, units, model, b, &let))
                        continue;
                known = b >= batch;
                if (let.latency_ns + let.transfer_ns > longest)
                        longest = let.latency_ns + let.transfer_ns;
        }
        return known ? longest * problem->options.latency_factor : 0;
}

/* At its worst, of any batches up to those of the places. */
static double slowdown(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, uint32_t let,
        const struct sl_partition_place *place)
{
        const struct sl_partition_let *own = &schedule->lets[let];
        double sum = 1;

        for (uint32_t i = 0; i < schedule->n_lets && problem->options.interference; i++) {
                const struct sl_partition_let *other = &schedule->lets[i];
                double most = 1;

                for (uint32_t p = 0; i != let && other->device == own->device && p < other->n_places; p++)
                        for (uint32_t a = 1; a <= place->batch; a++)
                                for (uint32_t b = 1; b <= other->places[p].batch; b++) {
                                        const struct sl_cost_running running = {place->model, a, own->units},
                                                                     beside = {other->places[p].model, b, other->units};
                                        double s = sl_costs_let_slowdown(problem->costs,
                                                problem->costs->devices[own->device].class_index, &running, &beside);

                                        most = s > most ? s : most;
                                }
                sum += most - 1;
        }
        return sum;
}

static const char *let_rule(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, uint32_t let)
{
        const struct sl_partition_let *l = &schedule->lets[let];
        double took[SL_PARTITION_PLACES_MAX], all = 0;

        if (!l->n_places || l->n_places > problem->options.places_max)
                return "a let has no place, or too many";
        for (uint32_t p = 0; p < l->n_places; p++) {
                double alone = planned_ns(problem, l->device, l->units, l->places[p].model, l->places[p].batch);

                if (!(alone > 0) || !(l->places[p].rate > 0))
                        return "a batch is of no size that is known, or nothing comes";
                took[p] = alone * slowdown(problem, schedule, let, &l->places[p]);
                all += took[p];
                for (uint32_t k = 0; k < p; k++)
                        if (l->places[k].model == l->places[p].model)
                                return "a model is twice on a let";
        }
        if (all > l->cycle_ns * (1 + 1e-6))
                return "batches take more than their cycle";
        for (uint32_t p = 0; p < l->n_places; p++) {
                double last = problem->options.worst == SL_PARTITION_ALL_BATCHES ? all : took[p];

                if (l->places[p].rate * l->cycle_ns / 1e9 > l->places[p].batch * (1 + 1e-6))
                        return "a cycle brings more than the batch";
                if (l->cycle_ns + last > (double)problem->demands[l->places[p].model].objective_ns * (1 + 1e-6))
                        return "an objective is missed";
        }
        return NULL;
}

static const char *device_rule(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule,
        uint32_t device, uint32_t lets_max)
{
        const struct sl_costs *costs = problem->costs;
        const struct sl_cost_class *class = &costs->classes[costs->devices[device].class_index];
        uint64_t units = 0, bytes = 0;
        bool there[MODELS_MAX] = {false};
        uint32_t n = 0;

        for (uint32_t i = 0; i < schedule->n_lets; i++) {
                const struct sl_partition_let *let = &schedule->lets[i];

                if (let->device == device) {
                        bool known = let->units == class->units || let->units == class->units / 2;

                        for (uint32_t k = 0; k < class->n_sizes; k++)
                                known = known || class->sizes[k] == let->units;
                        if (!known)
                                return "a let is of no size of its class";
                        units += let->units;
                        n++;
                }
                if (costs->devices[let->device].memory_of != device)
                        continue;
                for (uint32_t p = 0; p < let->n_places; p++) {
                        uint64_t workspace = 0;
                        bool known = false;

                        for (uint32_t b = 1; b <= costs->batches[costs->n_batches - 1] && !(known && b > let->places[p].batch);
                                b++) {
                                struct sl_cost_let cost;

                                if (!sl_costs_let(costs, costs->devices[let->device].class_index, let->units, let->places[p].model,
                                            b, &cost))
                                        continue;
                                known = b >= let->places[p].batch;
                                workspace = cost.workspace_bytes > workspace ? cost.workspace_bytes : workspace;
                        }
                        bytes += workspace;
                        bytes += there[let->places[p].model] ? 0 : costs->models[let->places[p].model].weights_bytes;
                        there[let->places[p].model] = true;
                }
        }
        if (units > class->units)
                return "lets overlap";
        if (n > lets_max)
                return "a device has too many lets";
        return costs->devices[device].memory_of == device && bytes > costs->devices[device].memory_bytes ? "memory is short" : NULL;
}

const char *broken_rule(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, uint32_t lets_max)
{
        const char *rule = NULL;

        for (uint32_t i = 0; i < schedule->n_lets; i++)
                if (schedule->lets[i].device >= problem->costs->n_devices)
                        return "a let is of no device";
        for (uint32_t i = 1; i < schedule->n_lets; i++)
                if (schedule->lets[i].device < schedule->lets[i - 1].device)
                        return "lets are not by device";
        for (uint32_t i = 0; i < schedule->n_lets && !rule; i++)
                rule = let_rule(problem, schedule, i);
        for (uint32_t d = 0; d < problem->costs->n_devices && !rule; d++)
                rule = device_rule(problem, schedule, d, lets_max);
        for (uint32_t m = 0; m < problem->costs->n_models && !rule; m++) {
                double found = schedule->lacking[m], rate = problem->demands[m].rate;

                for (uint32_t i = 0; i < schedule->n_lets; i++)
                        for (uint32_t p = 0; p < schedule->lets[i].n_places; p++)
                                found += schedule->lets[i].places[p].model == m ? schedule->lets[i].places[p].rate : 0;
                if (!(found > rate * (1 - 1e-6) - 1e-12) || !(found < rate * (1 + 1e-6) + 1e-12))
                        rule = "a model is left out silently, or has more than it wants";
                if (schedule->schedulable && schedule->lacking[m] > problem->options.dropped_rate)
                        rule = "a schedule that bears all lacks something";
        }
        return rule;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static uint32_t units_of(const struct sl_cost_class *class)
{
        return class->units ? class->units : 1;
}

/* Sizes of the costs and the half among them, in their order. */
static void sizes_fill(struct sl_partition_sizes *sizes, const struct sl_cost_class *class)
{
        uint32_t half = units_of(class) / 2;

        *sizes = (struct sl_partition_sizes){.half = SL_COST_NONE};
        for (uint32_t i = 0; i <= class->n_sizes; i++) {
                uint32_t units = i < class->n_sizes ? class->sizes[i] : units_of(class);

                if (half && sizes->half == SL_COST_NONE && units >= half) {
                        sizes->half = sizes->n;
                        if (units > half)
                                sizes->units[sizes->n++] = half;
                }
                sizes->is_let[sizes->n] = true;
                sizes->units[sizes->n++] = units;
        }
}

static bool cost_of(const struct sl_costs *costs, uint32_t class_index, uint32_t units, uint32_t model, uint32_t batch,
        struct sl_cost_let *ret_cost)
{
        return sl_costs_let(costs, class_index, costs->classes[class_index].units ? units : 0, model, batch, ret_cost);
}

/* A batch whose cost is not known is computed as the next larger one; none takes less than a smaller one. */
static void latencies_fill(struct sl_partition_times *times, double factor, uint32_t class_index, uint32_t slot, uint32_t model)
{
        size_t first = sl_partition_at(times, class_index, slot, model, 1);
        double *latency = &times->latency_ns[first], most = 0;
        uint64_t *bytes = &times->workspace_bytes[first], most_bytes = 0;

        for (uint32_t b = 1; b <= times->batch_max; b++) {
                struct sl_cost_let cost;

                if (!cost_of(times->costs, class_index, times->sizes[class_index].units[slot], model, b, &cost))
                        continue;
                double ns = factor * (cost.latency_ns + cost.transfer_ns);
                most = ns > most ? ns : most;
                most_bytes = cost.workspace_bytes > most_bytes ? cost.workspace_bytes : most_bytes;
                latency[b - 1] = most;
                bytes[b - 1] = most_bytes;
        }
        double *cheapest = &times->cheapest_ns[((size_t)class_index * SL_PARTITION_SLOTS + slot) * times->n_models + model];
        *cheapest = INFINITY;
        for (uint32_t b = times->batch_max; b > 0; b--) {
                if (latency[b - 1] <= 0 && b < times->batch_max) {
                        latency[b - 1] = latency[b];
                        bytes[b - 1] = bytes[b];
                }
                if (latency[b - 1] > 0 && latency[b - 1] / b < *cheapest)
                        *cheapest = latency[b - 1] / b;
        }
}

static double larger(double a, double b)
{
        return a > b ? a : b;
}

static double smaller(double a, double b)
{
        return a < b ? a : b;
}

/* Of a batch on the whole device, shares between those of the sizes around it. */
static void use_of(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t batch, double ret_use[2])
{
        const struct sl_cost_cell *below = NULL;
        uint32_t at = 0;

        ret_use[0] = ret_use[1] = 0;
        for (uint32_t i = 0; i < costs->n_batches; i++) {
                const struct sl_cost_cell *cell = sl_costs_cell(costs, class_index, model, i);

                if (!cell->latency_ns)
                        continue;
                double share = below && costs->batches[i] > batch ? (double)(batch - at) / (costs->batches[i] - at) : 1;
                ret_use[0] = below ? below->l2_use * (1 - share) + cell->l2_use * share : cell->l2_use;
                ret_use[1] = below ? below->memory_use * (1 - share) + cell->memory_use * share : cell->memory_use;
                if (costs->batches[i] >= batch)
                        return;
                below = cell;
                at = costs->batches[i];
        }
}

static void uses_fill(struct sl_partition_times *times, uint32_t class_index, uint32_t model)
{
        double *uses = &times->uses[((size_t)class_index * times->n_models + model) * times->batch_max * 4];
        double extremes[4] = {0, 1, 0, 1}, use[2];

        for (uint32_t b = 1; b <= times->batch_max; b++, uses += 4) {
                use_of(times->costs, class_index, model, b, use);
                for (uint32_t i = 0; i < 2; i++) {
                        extremes[2 * i] = larger(extremes[2 * i], use[i]);
                        extremes[2 * i + 1] = smaller(extremes[2 * i + 1], use[i]);
                }
                for (uint32_t i = 0; i < 4; i++)
                        uses[i] = extremes[i];
        }
}

int sl_partition_times_new(const struct sl_partition_problem *problem, struct sl_partition_times **ret_times)
{
        const struct sl_costs *costs = problem->costs;
        struct sl_partition_times *times = calloc(1, sizeof(*times));
        uint32_t largest = costs->batches[costs->n_batches - 1];

        if (!times)
                return -ENOMEM;
        times->costs = costs;
        times->n_models = costs->n_models;
        times->batch_max = largest < SL_PARTITION_BATCH_MAX ? largest : SL_PARTITION_BATCH_MAX;
        size_t cells = (size_t)costs->n_classes * SL_PARTITION_SLOTS * costs->n_models * times->batch_max;
        times->sizes = calloc(costs->n_classes, sizeof(*times->sizes));
        times->latency_ns = calloc(cells, sizeof(*times->latency_ns));
        times->cheapest_ns = calloc((size_t)costs->n_classes * SL_PARTITION_SLOTS * costs->n_models, sizeof(*times->cheapest_ns));
        times->workspace_bytes = calloc(cells, sizeof(*times->workspace_bytes));
        times->uses = calloc((size_t)costs->n_classes * costs->n_models * times->batch_max * 4, sizeof(*times->uses));
        if (!times->sizes || !times->latency_ns || !times->cheapest_ns || !times->workspace_bytes || !times->uses) {
                sl_partition_times_free(times);
                return -ENOMEM;
        }
        for (uint32_t c = 0; c < costs->n_classes; c++) {
                sizes_fill(&times->sizes[c], &costs->classes[c]);
                for (uint32_t m = 0; m < costs->n_models; m++) {
                        for (uint32_t slot = 0; slot < times->sizes[c].n; slot++)
                                latencies_fill(times, problem->options.latency_factor, c, slot, m);
                        uses_fill(times, c, m);
                }
        }
        *ret_times = times;
        return 0;
}

struct sl_partition_times *sl_partition_times_free(struct sl_partition_times *times)
{
        if (!times)
                return NULL;
        free(times->sizes);
        free(times->latency_ns);
        free(times->cheapest_ns);
        free(times->workspace_bytes);
        free(times->uses);
        free(times);
        return NULL;
}

uint32_t sl_partition_slot(const struct sl_partition_times *times, uint32_t class_index, uint32_t units)
{
        const struct sl_partition_sizes *sizes = &times->sizes[class_index];

        for (uint32_t slot = 0; slot < sizes->n; slot++)
                if (sizes->units[slot] == units)
                        return slot;
        return SL_COST_NONE;
}

/* c x use x share, at its largest. */
static double term(double c, const double *extremes, double share)
{
        return c * share * (c > 0 ? extremes[0] : extremes[1]);
}

double sl_partition_slowdown(const struct sl_partition_times *times, uint32_t class_index, const struct sl_cost_running *a,
        const struct sl_cost_running *b)
{
        const struct sl_cost_class *class = &times->costs->classes[class_index];
        const double *c = class->interference, of_all = units_of(class);
        bool known = false;

        for (uint32_t i = 0; i < 5; i++)
                known = known || c[i] > 0 || c[i] < 0;
        if (!known)
                return sl_costs_let_slowdown(times->costs, class_index, a, b);
        const double *of_a =
                &times->uses[(((size_t)class_index * times->n_models + a->model) * times->batch_max + a->batch - 1) * 4];
        const double *of_b =
                &times->uses[(((size_t)class_index * times->n_models + b->model) * times->batch_max + b->batch - 1) * 4];
        double share_a = a->units / of_all, share_b = b->units / of_all;
        double slowdown = term(c[0], of_a, share_a) + term(c[1], of_b, share_b) + term(c[2], of_a + 2, share_a) +
                          term(c[3], of_b + 2, share_b) + c[4];
        return slowdown > 1 ? slowdown : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a let takes: between the sizes and batches whose cells are known. Sources: S. Choi, S. Lee, Y. Kim, J. Park, Y. Kwon, J.
 * Huh, "Serving heterogeneous machine learning models on multi-GPU servers with spatio-temporal sharing", USENIX ATC 2022,
 * section 4.4.
 */
#include "costs.h"

/* Known cells around a batch size: [0] at or below it, [1] above it. NULL: none there. */
struct around {
        const struct sl_cost_cell *cells[2];
        uint32_t batches[2];
};

static struct around cells_around(const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model, uint32_t batch)
{
        struct around around = {{NULL, NULL}, {0, 0}};

        for (uint32_t i = 0; i < costs->n_batches && !around.cells[1]; i++) {
                const struct sl_cost_cell *cell = sl_costs_size_cell(costs, class_index, size, model, i);
                uint32_t side = costs->batches[i] > batch;

                if (!cell->latency_ns)
                        continue;
                around.cells[side] = cell;
                around.batches[side] = costs->batches[i];
        }
        return around;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* @share: how far it is from @a to @b. */
static double between(double a, double b, double share)
{
        return a * (1 - share) + b * share;
}

static bool batch_cost(const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model, uint32_t batch,
        struct sl_cost_let *ret_let)
{
        const struct around around = cells_around(costs, class_index, size, model, batch);
        const struct sl_cost_cell *a = around.cells[0], *b = around.cells[1];

        if (!a)
                return false;
        if (around.batches[0] == batch) {
                *ret_let = (struct sl_cost_let){
                        (double)a->latency_ns, (double)a->transfer_ns, a->workspace_bytes, .interpolated = false};
                return true;
        }
        if (!b)
                return false;
        double share = (double)(batch - around.batches[0]) / (around.batches[1] - around.batches[0]);
        *ret_let = (struct sl_cost_let){between((double)a->latency_ns, (double)b->latency_ns, share),
                between((double)a->transfer_ns, (double)b->transfer_ns, share), larger(a->workspace_bytes, b->workspace_bytes),
                .interpolated = true};
        return true;
}

static uint32_t size_units(const struct sl_cost_class *class, uint32_t size)
{
        return size == class->n_sizes ? class->units : class->sizes[size];
}

bool sl_costs_let(const struct sl_costs *costs, uint32_t class_index, uint32_t units, uint32_t model, uint32_t batch,
        struct sl_cost_let *ret_let)
{
        const struct sl_cost_class *class = &costs->classes[class_index];
        struct sl_cost_let below = {.latency_ns = 0}, cost;
        uint32_t below_units = 0;

        for (uint32_t size = 0; size <= class->n_sizes; size++) {
                uint32_t at = size_units(class, size);

                if (!batch_cost(costs, class_index, size, model, batch, &cost))
                        continue;
                if (at == units) {
                        *ret_let = cost;
                        return true;
                }
                if (at > units && !below_units)
                        return false;
                if (at > units) {
                        double share = (1.0 / below_units - 1.0 / units) / (1.0 / below_units - 1.0 / at);

                        *ret_let = (struct sl_cost_let){between(below.latency_ns, cost.latency_ns, share),
                                between(below.transfer_ns, cost.transfer_ns, share),
                                larger(below.workspace_bytes, cost.workspace_bytes), .interpolated = true};
                        return true;
                }
                below = cost;
                below_units = at;
        }
        return false;
}

/* Shares of the whole device's caches and memory that a batch uses; a size that was not measured in proportion. */
static void uses(const struct sl_costs *costs, uint32_t class_index, const struct sl_cost_running *running, double ret_uses[2])
{
        const struct sl_cost_class *class = &costs->classes[class_index];
        const struct around around = cells_around(costs, class_index, class->n_sizes, running->model, running->batch);
        const struct sl_cost_cell *a = around.cells[0] ? around.cells[0] : around.cells[1],
                                  *b = around.cells[1] ? around.cells[1] : a;
        double share = a && a != b ? (double)(running->batch - around.batches[0]) / (around.batches[1] - around.batches[0]) : 0;
        double part = class->units ? (double)running->units / class->units : 1;

        ret_uses[0] = a ? part * between(a->l2_use, b->l2_use, share) : 0;
        ret_uses[1] = a ? part * between(a->memory_use, b->memory_use, share) : 0;
}

static bool has_coefficients(const struct sl_cost_class *class)
{
        for (uint32_t i = 0; i < 5; i++)
                if (class->interference[i] < 0 || class->interference[i] > 0)
                        return true;
        return false;
}

double sl_costs_let_slowdown(
        const struct sl_costs *costs, uint32_t class_index, const struct sl_cost_running *a, const struct sl_cost_running *b)
{
        const struct sl_cost_class *class = &costs->classes[class_index];
        const double *c = class->interference;
        double of_a[2], of_b[2], slowdown;

        if (!has_coefficients(class)) {
                slowdown = class->kind == SL_DEVICE_CPU ? *sl_costs_pair(costs, class_index, a->model, b->model) : 1;
                return slowdown > 1 ? slowdown : 1;
        }
        uses(costs, class_index, a, of_a);
        uses(costs, class_index, b, of_b);
        slowdown = c[0] * of_a[0] + c[1] * of_b[0] + c[2] * of_a[1] + c[3] * of_b[1] + c[4];
        return slowdown > 1 ? slowdown : 1;
}

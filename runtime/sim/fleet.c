/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include "base/error.h"
#include "costs.h"

#include <errno.h>
#include <stdlib.h>

/* How long a thread goes on while others wait: Linux, kernel/sched/fair.c: 0.7 ms, times 1 + log2 of the processors; of two. */
#define CPU_SLICE_NS 1400000u

struct tables {
        struct sl_sim_let *lets;
        struct sl_sim_time *times;
        double *pairs;
};

static void tables_deinit(struct tables *tables)
{
        free(tables->lets);
        free(tables->times);
        free(tables->pairs);
}

static int tables_init(struct tables *tables, const struct sl_costs *costs)
{
        size_t cells = (size_t)costs->n_classes * costs->n_models;

        *tables = (struct tables){.lets = calloc(costs->n_devices, sizeof(*tables->lets)),
                .times = calloc(cells, sizeof(*tables->times)),
                .pairs = calloc(cells * costs->n_models, sizeof(*tables->pairs))};
        return tables->lets && tables->times && tables->pairs ? 0 : -ENOMEM;
}

/* The known cells around a batch size; NULL: there is none on that side. */
static void cells_around(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t batch, uint32_t ret_sizes[2],
        const struct sl_cost_cell *ret_cells[2])
{
        ret_cells[0] = ret_cells[1] = NULL;
        for (uint32_t i = 0; i < costs->n_batches && !ret_cells[1]; i++) {
                const struct sl_cost_cell *cell = sl_costs_cell(costs, class_index, model, i);
                uint32_t side = costs->batches[i] > batch;

                if (!cell->latency_ns)
                        continue;
                ret_sizes[side] = costs->batches[i];
                ret_cells[side] = cell;
        }
}

/* Of a batch that is larger than all that are known as dear, a sample, as the largest; of a smaller one as the smallest. */
static uint64_t latency_ns(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t batch)
{
        const struct sl_cost_cell *cells[2];
        uint32_t sizes[2];
        double share;

        cells_around(costs, class_index, model, batch, sizes, cells);
        if (!cells[0])
                return cells[1] ? cells[1]->latency_ns : 0;
        if (!cells[1])
                return (uint64_t)((double)cells[0]->latency_ns * batch / sizes[0]);
        share = (double)(batch - sizes[0]) / (sizes[1] - sizes[0]);
        return (uint64_t)((double)cells[0]->latency_ns * (1 - share) + (double)cells[1]->latency_ns * share + 0.5);
}

/* Of the largest batch that is known. */
static uint64_t transfer_ns(const struct sl_costs *costs, uint32_t class_index, uint32_t model)
{
        const struct sl_cost_cell *cells[2];
        uint32_t sizes[2];

        cells_around(costs, class_index, model, UINT32_MAX, sizes, cells);
        return cells[0] ? cells[0]->transfer_ns / sizes[0] : 0;
}

static void fill_times(struct tables *tables, const struct sl_costs *costs)
{
        for (uint32_t c = 0; c < costs->n_classes; c++)
                for (uint32_t m = 0; m < costs->n_models; m++) {
                        struct sl_sim_time *time = &tables->times[(size_t)c * costs->n_models + m];

                        time->transfer_ns = transfer_ns(costs, c, m);
                        time->in_steps = costs->classes[c].kind == SL_DEVICE_CPU;
                        for (uint32_t i = 0; i < SL_SIM_SIZES; i++)
                                time->latency_ns[i] = latency_ns(costs, c, m, 1u << i);
                }
}

/* Where it is known how many cores there are, what nobody measured beside another shares those, and is slowed down by nothing else.
 */
static double pair_of(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t other)
{
        const struct sl_cost_class *class = &costs->classes[class_index];
        double measured = *sl_costs_pair(costs, class_index, model, other);

        if (class->kind == SL_DEVICE_CPU && class->units && !(measured > 0))
                return 1;
        return sl_costs_slowdown(costs, class_index, model, &other, 1);
}

static void fill_pairs(struct tables *tables, const struct sl_costs *costs)
{
        double *pair = tables->pairs;

        for (uint32_t c = 0; c < costs->n_classes; c++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        for (uint32_t other = 0; other < costs->n_models; other++)
                                *pair++ = pair_of(costs, c, m, other);
}

static void fill_lets(struct tables *tables, const struct sl_costs *costs)
{
        for (uint32_t i = 0; i < costs->n_devices; i++) {
                const struct sl_cost_class *class = &costs->classes[costs->devices[i].class_index];
                bool cpu = class->kind == SL_DEVICE_CPU;

                tables->lets[i] = (struct sl_sim_let){.class_index = costs->devices[i].class_index,
                        .cores_of = i,
                        .at_once = cpu ? class->units : 0,
                        .copy_engines = class->copy_engines < SL_SIM_COPIERS_MAX ? class->copy_engines : SL_SIM_COPIERS_MAX,
                        .for_one = cpu && class->units == 1,
                        .slice_ns = cpu ? CPU_SLICE_NS : 0};
        }
}

static int check_worker(const struct sl_costs *costs, const struct sl_sim_worker *worker, uint32_t index, struct sl_error *error)
{
        if (worker->let >= costs->n_devices || worker->model >= costs->n_models)
                return sl_error_set(error, EINVAL, "sim: worker %u is of model %u on device %u, the costs are of %u and %u", index,
                        worker->model, worker->let, costs->n_models, costs->n_devices);
        if (sl_costs_worker(costs, worker->let, worker->model, worker->batch_max))
                return 0;
        return sl_error_set(error, EINVAL, "sim: \"%s\" on \"%s\", batch %u: its cost is not known",
                costs->models[worker->model].name, costs->devices[worker->let].name, worker->batch_max);
}

static uint64_t workspace_bytes(const struct sl_costs *costs, const struct sl_sim_worker *worker)
{
        return sl_costs_worker(costs, worker->let, worker->model, worker->batch_max)->workspace_bytes;
}

/* Weights lie once in a device's memory, for all its workers of the model: they count with the first. */
static uint64_t bytes_of(const struct sl_costs *costs, const struct sl_sim_world *world, uint32_t index, uint32_t memory)
{
        const struct sl_sim_worker *worker = &world->workers[index];
        uint64_t bytes = workspace_bytes(costs, worker);

        for (uint32_t i = 0; i < index; i++)
                if (world->workers[i].model == worker->model && costs->devices[world->workers[i].let].memory_of == memory)
                        return bytes;
        return bytes + costs->models[worker->model].weights_bytes;
}

static int check_memory(const struct sl_costs *costs, const struct sl_sim_world *world, uint32_t device, struct sl_error *error)
{
        uint64_t needed = 0, most = 0, limit = costs->devices[device].memory_bytes;
        uint32_t largest = 0;

        for (uint32_t i = 0; i < world->n_workers; i++) {
                uint64_t bytes;

                if (costs->devices[world->workers[i].let].memory_of != device)
                        continue;
                bytes = bytes_of(costs, world, i, device);
                largest = bytes >= most ? i : largest;
                most = bytes >= most ? bytes : most;
                needed += bytes;
        }
        if (needed <= limit)
                return 0;
        return sl_error_set(error, ENOSPC,
                "sim: \"%s\": its workers need %llu bytes, %llu of them \"%s\" on \"%s\" in batches of %u; it has %llu",
                costs->devices[device].name, (unsigned long long)needed, (unsigned long long)most,
                costs->models[world->workers[largest].model].name, costs->devices[world->workers[largest].let].name,
                world->workers[largest].batch_max, (unsigned long long)limit);
}

static int check(const struct sl_costs *costs, const struct sl_sim_world *world, struct sl_error *error)
{
        int r = 0;

        if (world->n_models != costs->n_models || world->n_workers > SL_SIM_WORKERS_MAX)
                return sl_error_set(error, EINVAL, "sim: %u models of the costs' %u, %u workers of at most %u", world->n_models,
                        costs->n_models, world->n_workers, SL_SIM_WORKERS_MAX);
        for (uint32_t i = 0; i < world->n_workers && r == 0; i++)
                r = check_worker(costs, &world->workers[i], i, error);
        for (uint32_t i = 0; i < costs->n_devices && r == 0; i++)
                r = check_memory(costs, world, i, error);
        return r;
}

static int make(const struct sl_costs *costs, const struct sl_sim_world *given, struct tables *tables,
        const struct sl_sim_calls *calls, struct sl_sim **ret_sim)
{
        struct sl_sim_world world = *given;

        fill_times(tables, costs);
        fill_pairs(tables, costs);
        fill_lets(tables, costs);
        world.n_lets = costs->n_devices;
        world.n_classes = costs->n_classes;
        world.lets = given->lets ? given->lets : tables->lets;
        world.times = given->times ? given->times : tables->times;
        world.pairs = given->pairs ? given->pairs : tables->pairs;
        return sl_sim_of_world(&world, calls, ret_sim);
}

int sl_sim_of_costs(const struct sl_costs *costs, const struct sl_sim_world *world, const struct sl_sim_calls *calls,
        struct sl_sim **ret_sim, struct sl_error *error)
{
        struct tables tables;
        int r = check(costs, world, error);

        if (r < 0)
                return r;
        r = tables_init(&tables, costs);
        if (r == 0)
                r = make(costs, world, &tables, calls, ret_sim);
        tables_deinit(&tables);
        if (r == -EINVAL)
                return sl_error_set(error, EINVAL, "sim: a number is out of its limits, or a member has no worker");
        return r < 0 ? sl_error_set(error, ENOMEM, "sim: out of memory") : 0;
}

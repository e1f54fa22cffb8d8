/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "layout.h"

#include <errno.h>

static bool is_within(uint32_t n, uint32_t most)
{
        return n >= 1 && n <= most;
}

static bool lets_hold(const struct sl_sim_world *world)
{
        for (uint32_t i = 0; i < world->n_lets; i++) {
                const struct sl_sim_let *let = &world->lets[i];

                if (let->class_index >= world->n_classes || let->cores_of > i ||
                        world->lets[let->cores_of].cores_of != let->cores_of || let->copy_engines > SL_SIM_COPIERS_MAX)
                        return false;
        }
        return true;
}

static bool worker_holds(const struct sl_sim_world *world, const struct sl_sim_worker *worker)
{
        return worker->let < world->n_lets && worker->model < world->n_models &&
               is_within(worker->batch_max, 1u << (SL_SIM_SIZES - 1)) &&
               sl_sim_world_time(world, worker->let, worker->model)->latency_ns[0];
}

static uint32_t workers_of(const struct sl_sim_world *world, uint32_t model)
{
        uint32_t workers = 0;

        for (uint32_t i = 0; i < world->n_workers; i++)
                workers += world->workers[i].model == model;
        return workers;
}

static bool model_holds(const struct sl_sim_world *world, uint32_t model)
{
        const struct sl_sim_model *options = &world->models[model];

        return options->batching.policy < SL_POLICY_COUNT && options->slice_samples &&
               workers_of(world, model) <= SL_POLICY_WORKERS_MAX;
}

static bool is_before(const struct sl_sim_ensemble *ensemble, uint32_t n, uint32_t model)
{
        for (uint32_t i = 0; i < n; i++)
                if (ensemble->members[i] == model)
                        return true;
        return false;
}

static bool ensemble_holds(const struct sl_sim_world *world, const struct sl_sim_ensemble *ensemble)
{
        bool holds = is_within(ensemble->n_members, SL_SIM_MEMBERS_MAX) && ensemble->segment_samples && ensemble->queue_requests;

        for (uint32_t i = 0; holds && i < ensemble->n_members; i++)
                holds = ensemble->members[i] < world->n_models && !is_before(ensemble, i, ensemble->members[i]) &&
                        workers_of(world, ensemble->members[i]);
        return holds;
}

int sl_sim_world_check(const struct sl_sim_world *world)
{
        bool holds = is_within(world->n_lets, SL_SIM_LETS_MAX) && is_within(world->n_models, SL_SIM_MODELS_MAX) &&
                     is_within(world->n_workers, SL_SIM_WORKERS_MAX) && is_within(world->n_ensembles, SL_SIM_MODELS_MAX) &&
                     is_within(world->n_requests, SL_SIM_RECORDS_MAX) && is_within(world->n_segments, SL_SIM_RECORDS_MAX) &&
                     is_within(world->n_clients, SL_SIM_CLIENTS_MAX) && is_within(world->jobs_max, SL_SIM_JOBS_MAX) &&
                     is_within(world->n_classes, SL_SIM_LETS_MAX) && lets_hold(world);

        for (uint32_t i = 0; holds && i < world->n_workers; i++)
                holds = worker_holds(world, &world->workers[i]);
        for (uint32_t i = 0; holds && i < world->n_models; i++)
                holds = model_holds(world, i);
        for (uint32_t i = 0; holds && i < world->n_ensembles; i++)
                holds = ensemble_holds(world, &world->ensembles[i]);
        return holds ? 0 : -EINVAL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served in a simulation, as a command line says it: costs, one device of them, workers there, ensembles. Texts are argv's.
 */
#pragma once

#include "costs.h"
#include "world.h"

struct sl_error;

#define SERVING_WORKERS_MAX 64u
#define SERVING_NAMES_MAX   16u

struct serving_ensemble {
        const char *name;
        uint32_t members[SL_SIM_MEMBERS_MAX], n_members;
};

struct serving {
        struct sl_costs *costs;
        uint32_t device;
        struct sl_sim_worker workers[SERVING_WORKERS_MAX];
        uint32_t n_workers, n_ensembles;
        struct serving_ensemble ensembles[SERVING_NAMES_MAX];
        struct sl_sim_own own;
};

/* @units: cores of the device that workers share. Return: 0; -errno with text. */
int serving_init(struct serving *serving, const char *costs, const char *device, uint32_t units, struct sl_error *error);
void serving_deinit(struct serving *serving);

/* "MODEL=BATCH" and "NAME=MODEL,MODEL". A model is served under its own name as well. Return: 0; -errno with text. */
int serving_add_worker(struct serving *serving, const char *text, struct sl_error *error);
int serving_add_ensemble(struct serving *serving, const char *text, struct sl_error *error);

/* "taken=NS,hop=NS,job=NS,wake=NS,heard=NS,told=NS", any of them. Return: 0; -EINVAL with text. */
int serving_set_own(struct serving *serving, const char *text, struct sl_error *error);

/* Its number among the ensembles, which it becomes if it is a model. Return: that; -ENOENT with text; -E2BIG. */
int serving_find(struct serving *serving, const char *name, struct sl_error *error);

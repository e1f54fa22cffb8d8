/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling optimize` is asked: its arguments, and the problem that they make out of the costs. One owner.
 */
#pragma once

#include "data_folders.h"
#include "objective.h"
#include "problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PINS_MAX 256

struct optimize_wish {
        const char *subject;    /* the argument */
        bool is_folder;         /* of a repository; else costs */
        const char *costs_path; /* the argument, or what was written for the folder */
        FILE *answer;           /* standard output, where that is the output; NULL */
        const char *output, *devices, *models, *forbid, *batches;
        const char *pins[PINS_MAX];
        struct data_folders folders;
        uint32_t n_pins, benches, starts, confirm;
        enum sl_objective objective;
        double load, headroom, seconds;
        uint64_t seed;
        bool explain, again;
};

/* Costs of the rows and columns that are asked for, and the constraints. */
struct optimize_task {
        struct sl_costs *costs;
        struct sl_problem problem;
        bool *forbidden;
        uint32_t *pinned;
};

/* Return: 0; -EINVAL wrong usage, with or without a text. */
int optimize_parse(int argc, char **argv, struct optimize_wish *ret_wish, struct sl_error *error);

/* Return: 0, checked; -EINVAL a name that the costs do not have, a pin that cannot be; what reading the file says; -ENOMEM. */
int optimize_task_init(struct optimize_task *task, const struct optimize_wish *wish, struct sl_error *error);

/* @task with one more row like @device, free of constraints. */
int optimize_task_extend(struct optimize_task *ret_task, const struct optimize_task *task, uint32_t device, struct sl_error *error);
void optimize_task_deinit(struct optimize_task *task);

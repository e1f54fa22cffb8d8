/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to measure, one after the other: each worker alone on each device, then combinations of workers that compute at the
 * same time. A task is one combination. Pure; the caller's.
 */
#pragma once

#include "subject.h"
#include "wish.h"
#include "worker_profile.h"

struct sl_freshness;

struct task {
        const struct sl_device_let *device;
        uint32_t threads; /* of each worker */
        uint32_t n;       /* 1: alone */
        struct subject *subjects[SL_ROUND_WORKERS_MAX];
        uint32_t batches[SL_ROUND_WORKERS_MAX];
};

struct tasks {
        struct task *items;
        uint32_t n, room;
};

#define TASKS_MAX 100000u

/* Combinations have equal batch sizes unless @wish->mixed. Return: 0; -E2BIG; -ENOMEM. Deinit it in either case. */
int tasks_plan(const struct wish *wish, const struct subjects *subjects, struct tasks *tasks, struct sl_error *error);
void tasks_deinit(struct tasks *tasks);

/* Is worker @i one that an earlier one of the same task is like, too? They have one profile. */
bool task_repeats(const struct task *task, uint32_t i);

/* The profile of worker @i, without figures. Return: 0; -EINVAL a text is too long; -errno of reading a model's file. */
int task_fill(const struct task *task, uint32_t i, struct sl_freshness *freshness, struct sl_worker_profile *profile,
        struct sl_error *error);

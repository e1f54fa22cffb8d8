/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch on one thread, by a team, and by independent instances, one for each core, that compute at once: in turns, so that all
 * see the same machine. What the instances reach together is what a team cannot pass without a better use of the caches. Threads:
 * those of the rounds, and the team.
 */
#pragma once

#include <stdint.h>

struct sl_device_let;
struct sl_error;
struct sl_plan;

struct sl_team_times {
        double alone_ns, team_ns; /* medians; with one core both are that of one thread */
        double singles_ns;        /* for each batch of the instances: what one takes over how many there are */
        uint32_t n_singles;       /* the cores, 16 at most */
};

/* The team has a thread on each of the first @threads cores of @let, 1 to SL_TEAM_MEMBERS_MAX. Takes about @seconds. */
struct sl_team_setting {
        const struct sl_plan *plan;
        uint32_t batch, threads;
        const struct sl_device_let *let;
        double seconds;
};

/* Return: 0; what sl_timed_worker_init(), sl_timed_worker_use_team() and sl_worker_round() say. */
int sl_team_measure(const struct sl_team_setting *setting, struct sl_team_times *ret_times, struct sl_error *error);

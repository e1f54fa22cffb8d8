/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What teams should take beside what one takes, as text and as JSON. One thread.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct sl_node_profile;
struct sl_team_model;

struct team_report {
        const struct sl_node_profile *profile;
        const struct sl_node_profile *together; /* by the team; NULL: there is one core */
        const struct sl_team_model *model;
        double barrier_ns, shared; /* of the target: a call of two; bytes/s of all cores */
        double alone_ns, team_ns;  /* measured: of one thread, and of a team on @n_cores */
        double singles_ns;         /* measured: for each batch, where as many instances compute at once */
        uint32_t n_singles;
        uint32_t n_cores;
};

/* Every step for each size, then a line for each size. */
void team_print_text(const struct team_report *report, FILE *stream);

/* The same. Return: 0, -ENOMEM, -EIO. */
int team_print_json(const struct team_report *report, FILE *stream);

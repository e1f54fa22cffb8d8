/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lets of this runtime, and which worker gets which: as long as there are as many cores as the configuration has workers, each
 * gets a core for itself, the one with the fewest workers first; otherwise all share one let of all worker cores. A core that the
 * dispatcher has too is nobody's own.
 *
 * Control thread only.
 */
#pragma once

#include "let.h"

struct sl_stats;

struct sl_lets {
        struct sl_let shared; /* all worker cores */
        bool enough;          /* single ones, for all workers of the configuration */
        uint32_t n_single;
        struct sl_let single[]; /* of one core */
};

/*
 * @worker_cpus: empty: any, of which there are @usable; at least 1. @stats: where they are shown, as long as that lives; NULL:
 * nowhere. Return: 0, -ENOMEM.
 */
int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets);
struct sl_lets *sl_lets_free(struct sl_lets *lets);

/* The configuration has so many workers, of all models together. */
void sl_lets_expect(struct sl_lets *lets, uint32_t workers);

/* @leaving: workers whose place the new one takes, on which let each runs; they do not count. */
struct sl_let *sl_lets_assign(struct sl_lets *lets, struct sl_let *const *leaving, uint32_t n_leaving);

/* A worker that had it is gone. */
void sl_lets_return(struct sl_let *let);

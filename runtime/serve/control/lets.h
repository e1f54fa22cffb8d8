/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lets of this runtime, and which worker gets which. A worker that an allocation has put on certain cores gets the let of these,
 * which all such workers share. Of the others each gets a core for itself as long as there are as many cores as the configuration
 * has of them, the one with the fewest workers first; otherwise all share one let of all worker cores. A core that the dispatcher
 * has too is nobody's own.
 *
 * Lets may overlap: each runs no more jobs at a time than it has cores, and beyond that the system divides cores by time.
 *
 * Control thread only.
 */
#pragma once

#include "let.h"

struct sl_stats;

/* Of different cores that allocations name; more of them run in the let of all worker cores. */
#define SL_LETS_NAMED_MAX 128u

struct sl_lets {
        struct sl_let shared; /* all worker cores */
        cpu_set_t allowed;    /* the same; where they are not configured what this process may use */
        bool enough;          /* single ones, for all workers of the configuration that no allocation places */
        struct sl_stats *stats;
        uint32_t n_single, n_named;
        struct sl_let *single;                   /* of one core */
        struct sl_let *named[SL_LETS_NAMED_MAX]; /* made as they are asked for; they stay */
};

/*
 * @worker_cpus: empty: any, of which there are @usable; at least 1. @stats: where they are shown, as long as that lives; NULL:
 * nowhere. Return: 0, -ENOMEM.
 */
int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets);
struct sl_lets *sl_lets_free(struct sl_lets *lets);

/* The configuration has so many workers, of all models together, that no allocation places. */
void sl_lets_expect(struct sl_lets *lets, uint32_t workers);

/* Workers may run on these. */
bool sl_lets_allow(const struct sl_lets *lets, const cpu_set_t *cores);

/* @cores: on which it is to run; empty: anywhere. @leaving: workers whose place the new one takes, on which let each runs; they do
 * not count. */
struct sl_let *sl_lets_assign(struct sl_lets *lets, const cpu_set_t *cores, struct sl_let *const *leaving, uint32_t n_leaving);

/* A worker that had it is gone. */
void sl_lets_return(struct sl_let *let);

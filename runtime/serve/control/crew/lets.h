/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lets of this runtime, and which worker gets which. A worker that an allocation has put on certain cores gets the let of
 * these, which all such workers share. Of the others each gets a core for itself as long as there are as many cores as the
 * configuration has of them, the one with the fewest workers first; otherwise all share one let of all worker cores. A core that
 * the dispatcher has too is nobody's own. Of equal ones goes last which a worker has left that was interfered with there.
 *
 * Lets may overlap: each runs no more jobs at a time than it has cores, and beyond that the system divides cores by time.
 *
 * Control thread only.
 */
#pragma once

#include "let.h"
#include "worker_set.h"

struct sl_stats;

/* Beyond so many the workers that further ones are named for run on all worker cores. */
#define SL_LETS_MAX 2048u

struct sl_lets {
        cpu_set_t configured; /* worker cores; empty: any */
        cpu_set_t dispatcher; /* its cores */
        cpu_set_t allowed;    /* where workers may run now */
        uint32_t expected;    /* workers of the configuration that no allocation places */
        uint32_t further;     /* and those that plans of any size have beyond it */
        struct sl_stats *stats;
        struct sl_let *shared; /* of all worker cores */
        struct sl_let *all;    /* they stay, as workers that have not left yet may have them */
        uint32_t n;
        uint64_t n_left; /* workers that were interfered with */
};

/*
 * @worker_cpus: empty: any, of which there are @usable; at least 1. @stats: where they are shown, as long as that lives; NULL:
 * nowhere. Return: 0, -ENOMEM.
 */
int sl_lets_new(const cpu_set_t *worker_cpus, const cpu_set_t *dispatcher_cpus, uint32_t usable, struct sl_stats *stats,
        struct sl_lets **ret_lets);
struct sl_lets *sl_lets_free(struct sl_lets *lets);

/* This process may use these cores now. Return: true when workers that have a stale let are to move, or may have other cores. */
bool sl_lets_update(struct sl_lets *lets, const cpu_set_t *usable);

/* What is left of @set on the cores that there are: a worker without any is left out, but for the last one, which runs anywhere. */
void sl_lets_fit(const struct sl_lets *lets, const struct sl_worker_set *set, struct sl_worker_set *ret_set);

/* The configuration has so many workers, of all models together, that no allocation places. */
void sl_lets_expect(struct sl_lets *lets, uint32_t workers);

/* Plans of any size have so many beyond those. */
void sl_lets_expect_further(struct sl_lets *lets, uint32_t workers);

/* How many workers one model may have, of which one is expected: those for which there are cores of their own, or else, where that
 * would be but one, as many as there are worker cores, which all share. */
uint32_t sl_lets_each(const struct sl_lets *lets);

/* Workers may run on these. */
bool sl_lets_allow(const struct sl_lets *lets, const cpu_set_t *cores);

/*
 * Where a thread starts that is to run on @cores (empty: any), or comes to its end soon (NULL). What starts in the background,
 * while something serves, starts where no dispatcher runs, if there is such a core: beside one that spins it would have to wait for
 * a tick of the system's clock, some milliseconds. Return: empty: anywhere.
 */
cpu_set_t sl_lets_start_cores(const struct sl_lets *lets, const cpu_set_t *cores, bool background);

/* @cores: on which it is to run; empty: anywhere. @leaving: workers whose place the new one takes, on which let each runs; they do
 * not count. */
struct sl_let *sl_lets_assign(struct sl_lets *lets, const cpu_set_t *cores, struct sl_let *const *leaving, uint32_t n_leaving);

/* That of a worker on a GPU, which all on the same part of it have. It is nobody's core. NULL: there is no room for another one. */
struct sl_let *sl_lets_assign_gpu(struct sl_lets *lets, const struct sl_gpu_let *gpu);

/* A worker that has @let for itself would get another core on which no worker is, by any let. */
bool sl_lets_have_idle(const struct sl_lets *lets, const struct sl_let *let);

/* A worker is about to leave it that is interfered with there. */
void sl_lets_note_departure(struct sl_lets *lets, struct sl_let *let);

/* A worker that had it is gone. */
void sl_lets_return(struct sl_let *let);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One round of a measurement: workers, each on a thread of its own that is bound to one core, or with a team on several, compute
 * batch after batch at the same time. They begin together, after one batch each that is not counted. A worker counts the batches
 * that it begins before the round's end; it computes on, uncounted, until every other one has counted its last, so that each is
 * always beside all the others.
 *
 * Threads: those of a round live as long as sl_worker_round() runs.
 */
#pragma once

#include "sample_ports.h"

#include <stdatomic.h>
#include <stdint.h>

struct sl_error;
struct sl_team;

#define SL_ROUND_WORKERS_MAX 32u
#define SL_LATENCIES_MAX     (1u << 20) /* that are kept of a worker; later ones are only counted */

/* A worker that can be measured, and what has been seen of it so far. One owner. */
struct sl_timed_worker {
        struct sl_instance *instance;
        struct sl_team *team; /* NULL: it is alone */
        struct sl_sample_ports ports;
        uint32_t batch;
        int core;
        double *latencies_ns; /* n_latencies; room for one more round is made before it */
        size_t n_latencies, room;
        uint64_t n_runs, span_ns; /* of the last round or burst: batches that count, and from the start to the last one's end */
};

/* Makes an instance of @plan, which must outlive it, for @batch. Return: 0; -ENOMEM; what sl_instance_new() says. */
int sl_timed_worker_init(
        struct sl_timed_worker *worker, const struct sl_plan *plan, uint32_t batch, int core, struct sl_error *error);
/*
 * From the next round on it computes with a team of @n threads, one on each of @cores, of which the first is its own from now on.
 * Return: 0; what sl_team_new() and sl_instance_use_team() say.
 */
int sl_timed_worker_use_team(struct sl_timed_worker *worker, const int *cores, uint32_t n, struct sl_error *error);
/* What is all zero is fine. */
void sl_timed_worker_deinit(struct sl_timed_worker *worker);

/*
 * @stops: when it becomes true the round ends after the batches that are under way; NULL: nothing ends it. @keep: latencies are
 * kept. Return: 0; -EINTR; -ENOMEM; -errno of a thread; what a run says, with text.
 */
int sl_worker_round(struct sl_timed_worker *const *workers, uint32_t n, uint64_t round_ns, bool keep, const atomic_bool *stops,
        struct sl_error *error);

/*
 * Each of @n computes one batch: they begin together, however many of them share a core, and their span_ns are from there to the
 * end of each. Nothing is computed before or after that. Return: as sl_worker_round().
 */
int sl_worker_burst(struct sl_timed_worker *const *workers, uint32_t n, const atomic_bool *stops, struct sl_error *error);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that takes the time that a table says: discrete events under a virtual clock. One model with workers of several batch
 * sizes on one device, its queues by class, and the policy that decides for it live: the same object code (serve/decide).
 *
 *     arrival --> queue of its class --decide()--> job --> (copied) --> computed beside others --> done
 *
 * All jobs that compute at once are slowed down alike, S(k) for k of them: the device has a clock of its own that runs at 1 / S(k),
 * and a job is done when that clock has advanced by what the job takes alone. With copy engines a batch is copied while others
 * compute; without, copying is a part of what it takes. What has passed its deadline is not computed, as workers do.
 *
 * Deterministic: nothing here draws; whoever makes arrivals seeds them. Events of the same time: ends, then copies, then arrivals.
 * Nothing is allocated after sl_sim_new(). One thread.
 */
#pragma once

#include "policy.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_SIM_SIZES 17u /* batches of 1, 2, 4, ... 65,536 */

struct sl_sim;

struct sl_sim_device {
        uint64_t latency_ns[SL_SIM_SIZES]; /* of a batch of 2^i alone; 0: as dear, a sample, as the next smaller one */
        uint64_t transfer_ns;              /* of a sample, there and back */
        uint32_t copy_engines;
        double corun;     /* what a job takes beside one other, in times of what it takes alone; below 1: 1 */
        uint32_t at_once; /* jobs that compute before they share the device by time; 0: any number */
};

struct sl_sim_options {
        struct sl_sim_device device;
        struct sl_batching batching;
        uint32_t n_workers; /* 1 to SL_POLICY_WORKERS_MAX */
        uint32_t batch_max[SL_POLICY_WORKERS_MAX];
        uint32_t slice_samples;
        uint32_t queue_requests; /* that wait or are computed at a time; more are refused */
};

struct sl_sim_request {
        uint64_t arrival_ns; /* not before that of the request before */
        uint64_t deadline_ns;
        uint32_t samples, priority, client;
};

/* @status: 0; -ETIME it was late, and of it was not computed what had not begun; -EBUSY the queue was full. */
struct sl_sim_end {
        struct sl_sim_request request;
        uint64_t number; /* from 0, in the order of arrival */
        uint64_t end_ns;
        int status;
};

struct sl_sim_calls {
        void *context;
        bool (*next)(void *context, struct sl_sim_request *ret_request); /* false: no more */
        void (*ended)(void *context, const struct sl_sim_end *end);      /* once for each request */
        void (*decided)(
                void *context, uint64_t now_ns, uint32_t priority, const struct sl_decision *decision); /* NULL: nobody asks */
};

/* Return: 0; -EINVAL no worker, too many, or one of no samples, no first latency, no queue, or a policy that there is none;
 * -ENOMEM. */
int sl_sim_new(const struct sl_sim_options *options, const struct sl_sim_calls *calls, struct sl_sim **ret_sim);
struct sl_sim *sl_sim_free(struct sl_sim *sim);

/* Until nothing comes any more and all is done. Return: the time then. */
uint64_t sl_sim_run(struct sl_sim *sim);

/* What a batch takes alone, and how much longer beside others. */
uint64_t sl_sim_latency_ns(const struct sl_sim_device *device, uint32_t samples);
double sl_sim_slow_down(const struct sl_sim_device *device, uint32_t busy);

/*
 * What no schedule can beat, even one that knows all arrivals: the i-th answer comes no earlier than the i-th request alone takes,
 * and no earlier than a fluid server is done with i requests that computes all of the time at the best rate of any batch size and
 * number of workers. The i-th answer is not always that of the i-th request; mean and maximum are bounds nevertheless. Of single
 * samples, without copies.
 */
struct sl_sim_bound {
        double rate; /* samples in a nanosecond */
        double free_ns;
};

void sl_sim_bound_init(struct sl_sim_bound *bound, const struct sl_sim_options *options);

/* The least latency of the next request. */
uint64_t sl_sim_bound_ns(struct sl_sim_bound *bound, const struct sl_sim_options *options, const struct sl_sim_request *request);

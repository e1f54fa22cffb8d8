/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime serves, under a virtual clock: discrete events, devices that take the time that a table says, and the same
 * object code that decides live (serve/decide).
 *
 *     arrival --> fair turn, segments --> queue of each member, by class --decide()--> job --> (copied) --> computed beside others
 *                                                                                                                  |
 *               request ended <-- all its segments have all members' predictions <---------------------------------'
 *
 * world.h says what there is; server.h is the dispatcher's part of it, cores.h the devices'. Jobs that compute on the same cores
 * slow each other down, by pairs of models: the cores have a clock for each model that runs at 1 / S, and a job is done when that
 * has advanced by what the job takes alone. With copy engines a batch is copied while others compute; without, copying is a part of
 * what it takes. What has passed its deadline when a worker begins with it is not computed, as workers do.
 *
 * Not simulated: staging that runs out, cancellations, requests that end at their deadline while they wait (live up to 0.5 ms after
 * it, here when a worker comes to them), what the dispatcher computes itself, and the dispatcher's own core.
 *
 * Deterministic: nothing here draws; whoever makes arrivals seeds them. Events of the same time: ends of jobs, then begins and
 * copies, then arrivals, then decisions. Nothing is allocated after it is made. One thread.
 */
#pragma once

#include "world.h"

struct sl_sim;

struct sl_sim_request {
        uint64_t arrival_ns; /* not before that of the request before */
        uint64_t deadline_ns;
        uint32_t samples, priority, client;
        uint32_t ensemble;
};

/* @status: 0; -ETIME it was late, and of it was not computed what had not begun; -EBUSY the queue was full. */
struct sl_sim_end {
        struct sl_sim_request request;
        uint64_t number; /* from 0, in the order of arrival */
        uint64_t end_ns;
        int status;
};

/* What a model's policy has decided on what waits in a class. */
struct sl_sim_decided {
        uint64_t now_ns;
        uint32_t model, priority;
        uint32_t worker; /* of all; decision.worker is its number among those of the model */
        struct sl_decision decision;
};

struct sl_sim_calls {
        void *context;
        bool (*next)(void *context, struct sl_sim_request *ret_request);      /* false: no more */
        void (*ended)(void *context, const struct sl_sim_end *end);           /* once for each request */
        void (*decided)(void *context, const struct sl_sim_decided *decided); /* NULL: nobody asks */
};

/* Return: 0; -EINVAL as sl_sim_world_check(); -ENOMEM. */
int sl_sim_of_world(const struct sl_sim_world *world, const struct sl_sim_calls *calls, struct sl_sim **ret_sim);
struct sl_sim *sl_sim_free(struct sl_sim *sim);

/* Until nothing comes any more and all is done. Return: the time then. */
uint64_t sl_sim_run(struct sl_sim *sim);

/* ---- One model with workers of several batch sizes on one device, where a request waits for its workers as a whole, in the order
 * of arrival; service times are known beforehand, and a worker has one job at a time. ---- */

struct sl_sim_device {
        uint64_t latency_ns[SL_SIM_SIZES]; /* of a batch of 2^i alone; 0: as dear, a sample, as the next smaller one */
        uint64_t transfer_ns;              /* of a sample, there and back */
        uint64_t launch_ns;                /* of each batch's time; others have the device as long (cores.h). 0: not known */
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

/* Return: 0; -EINVAL no worker, too many, or one of no samples, no first latency, no queue, or a policy that there is none;
 * -ENOMEM. */
int sl_sim_new(const struct sl_sim_options *options, const struct sl_sim_calls *calls, struct sl_sim **ret_sim);

/* What a batch takes alone, and how much longer beside others. */
uint64_t sl_sim_latency_ns(const struct sl_sim_device *device, uint32_t samples);
double sl_sim_slow_down(const struct sl_sim_device *device, uint32_t busy);

/* The share of its time alone for which a batch has the device: all are slower yet by the sum of those that compute, where that is
 * above 1. 0: not known. */
double sl_sim_share(const struct sl_sim_device *device, uint32_t samples);

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

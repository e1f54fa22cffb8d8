/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of one plan that share the samples of a batch: lane i computes its part on CPU i. Lane 0 is the thread of the caller,
 * each other has a thread, which spins while a burst of runs is under way and sleeps between bursts. With fewer samples than CPUs
 * there are fewer lanes, each of which has a team of as many CPUs as all can have: a lone sample is computed by all of them.
 */
#pragma once

#include <stdint.h>

#define SL_LANES_MAX 8

struct sl_error;
struct sl_lanes;
struct sl_plan;
struct sl_ports;

/* Binds the calling thread to cpus[0]. @plan and @ports outlive the lanes. Return: 0; -errno of sl_instance_new() and of threads.
 */
int sl_lanes_new(const struct sl_plan *plan, const struct sl_ports *ports, const int *cpus, uint32_t n_cpus,
        struct sl_lanes **ret_lanes, struct sl_error *error);

/* Ends the threads. NULL is fine. Returns NULL. */
struct sl_lanes *sl_lanes_free(struct sl_lanes *lanes);

uint32_t sl_lanes_count(const struct sl_lanes *lanes);

/* Computes all samples @times times, one after another; each run takes ret_ns[i]. Return: 0; -errno of sl_instance_run(). */
int sl_lanes_run(struct sl_lanes *lanes, uint32_t times, uint64_t *ret_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What batches take on lets, as schedulers look it up: the costs of all sizes of a class, and of half of it, for every batch size.
 */
#pragma once

#include "costs.h"
#include "partition.h"

#define SL_PARTITION_SLOTS (SL_COST_SIZES_MAX + 2u)

/* Sizes of a class, ascending; the last one is the whole device. */
struct sl_partition_sizes {
        uint32_t n, units[SL_PARTITION_SLOTS];
        bool is_let[SL_PARTITION_SLOTS]; /* a size of the costs; else it is only the half, for those who divide evenly */
        uint32_t half;                   /* its slot; SL_COST_NONE: nothing is known of it */
};

struct sl_partition_times {
        const struct sl_costs *costs;
        uint32_t n_models, batch_max;
        struct sl_partition_sizes *sizes; /* of each class */
        double *latency_ns;               /* [class][slot][model][batch - 1]; 0: not known */
        double *cheapest_ns; /* [class][slot][model]: a sample, in the batch where it takes least; INFINITY: not known */
        uint64_t *workspace_bytes;
        double *uses; /* [class][model][batch - 1][4]: most and least of L2 cache and of memory, of all batches up to it */
};

/* Return: 0; -ENOMEM. */
int sl_partition_times_new(const struct sl_partition_problem *problem, struct sl_partition_times **ret_times);
struct sl_partition_times *sl_partition_times_free(struct sl_partition_times *times);

/* SL_COST_NONE: no let of the class has so many units. */
uint32_t sl_partition_slot(const struct sl_partition_times *times, uint32_t class_index, uint32_t units);

static inline size_t sl_partition_at(
        const struct sl_partition_times *times, uint32_t class_index, uint32_t slot, uint32_t model, uint32_t batch)
{
        return (((size_t)class_index * SL_PARTITION_SLOTS + slot) * times->n_models + model) * times->batch_max + batch - 1;
}

/* Of a batch of at least 1 and at most batch_max, in nanoseconds; 0: not known. */
static inline double sl_partition_latency(
        const struct sl_partition_times *times, uint32_t class_index, uint32_t slot, uint32_t model, uint32_t batch)
{
        return times->latency_ns[sl_partition_at(times, class_index, slot, model, batch)];
}

/* A sample in the batch where it takes least. */
static inline double sl_partition_cheapest(
        const struct sl_partition_times *times, uint32_t class_index, uint32_t slot, uint32_t model)
{
        return times->cheapest_ns[((size_t)class_index * SL_PARTITION_SLOTS + slot) * times->n_models + model];
}

/* How much longer @a takes beside @b, whatever smaller batches of both are; at least 1. */
double sl_partition_slowdown(const struct sl_partition_times *times, uint32_t class_index, const struct sl_cost_running *a,
        const struct sl_cost_running *b);

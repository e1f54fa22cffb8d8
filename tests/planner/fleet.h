/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fleets for the planner's tests: one that is easy to compute by hand, and random ones out of a seed. Whoever makes one frees it.
 */
#pragma once

#include <stdint.h>

struct sl_costs;

/* Draws in [0, n); one stream for each seed. */
uint32_t draw(uint64_t *seed, uint32_t n);

/*
 * @n_gpus times "gpuN" of 1,000 bytes and "cpu" of 10,000; @n_models times "mN" of 100 bytes; batches 8, 16, 32. A batch takes
 * 1,000 ns a sample on the CPU and 100 ns on a GPU, whatever its size, and 10 bytes a sample. Devices are shared by time.
 */
struct sl_costs *plain_fleet(uint32_t n_gpus, uint32_t n_models);

/* 1 to @devices_max devices, 1 to @models_max models, 1 to 3 classes, 1 to 4 batch sizes; cells may be unknown, memory small. */
struct sl_costs *random_fleet(uint64_t *seed, uint32_t devices_max, uint32_t models_max);

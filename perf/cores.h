/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the two sides of a benchmark run. No state; any thread.
 */
#pragma once

#include <stdbool.h>

/* May this process run on @cpu? */
bool sl_cores_allowed(int cpu);

/* Two different CPUs that this process may use, neighbours in number. Return: 0; -ENOTSUP there is only one. */
int sl_cores_pick(int ret_cpus[2]);

/* A third CPU that this process may use, apart from @cpus; -1 when there is none. */
int sl_cores_third(const int cpus[2]);

/* Binds the calling thread to @cpu. Return: 0, -EINVAL: this process may not use it. */
int sl_cores_pin(int cpu);

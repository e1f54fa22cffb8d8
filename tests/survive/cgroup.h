/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory control group of a test's own, below the one that the test runs in, version 1 or 2: a runtime that joins it is killed by
 * the kernel when it takes more than the limit. Where none can be made (no root, no such controller) the test says so and bounds
 * the runtime by its configuration. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cgroup {
        char folder[512]; /* "" when there is none */
        bool unified;     /* version 2 */
};

/* Return: false when the system does not let one be made; what stopped it is printed. */
bool cgroup_make(struct cgroup *cgroup, uint64_t limit_bytes);

/* The calling process joins; for world.before_exec. Ends the process when it cannot. */
void cgroup_join(void *cgroup);

/* Bytes charged to it now, and at most so far; times that the kernel killed in it. */
uint64_t cgroup_used(const struct cgroup *cgroup);
uint64_t cgroup_peak(const struct cgroup *cgroup);
uint64_t cgroup_kills(const struct cgroup *cgroup);

/* All of its processes have ended. One that was not made is fine. */
void cgroup_remove(struct cgroup *cgroup);

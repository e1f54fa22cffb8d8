/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an offline job as a client of the user's own: reads ranges of samples, has the runtime compute them in the background, and
 * writes what comes back beside the output, each range at its own place. A range that was cut short by the death of either side is
 * computed again, and lies in the output once. One thread.
 */
#pragma once

#include "offline_job.h"

/* The lock is held. Until it is done, failed, paused or cancelled, as the job's state says then. Return: 0; -errno: it has failed.
 */
int offline_run(struct offline_job *job);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker process: what is behind a process executor (execute/process_executor.h). It gives up what it does not need, opens the
 * plan, makes its instance, runs one sample, says that it is ready, and computes jobs until the runtime is gone. One thread.
 */
#pragma once

#include <stdbool.h>

/* Has the program been started to be a worker's process? */
bool sl_worker_is_meant(int argc, char **argv);

/* Return: the exit status. */
int sl_worker_main(int argc, char **argv);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate before the workers of a runtime in this process: while it is shut no job is computed, so that a test holds requests in
 * flight for as long as it needs them there, whatever else the machine does. For executables that are linked with
 * --wrap=sl_job_runner_run. What the dispatcher computes itself is held as well, and the dispatcher with it.
 */
#pragma once

void gate_shut(void);
void gate_open(void);

/* Lets the next job through, of whichever worker, and returns when it has been answered. The gate is shut. */
void gate_let_one_through(void);

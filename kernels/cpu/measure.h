/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one core of this machine reaches, measured. Each figure is the median of several runs in the thread's own time, so that
 * neither who else has the core nor what disturbs fewer than half of the runs changes much, and has two digits. It takes some tens
 * of milliseconds and 32 MiB. The rates are measured; what kernels reach of them is
 * typical (calibrate.h).
 */
#pragma once

struct sl_target;

/* As sl_planner.measure; what a team reaches (measure_team.h) is measured besides. */
int sl_cpu_measure(struct sl_target *ret_target);

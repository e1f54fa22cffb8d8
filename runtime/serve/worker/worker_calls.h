/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a worker process makes: memory, its jobs and packets, time, its own end. Pure.
 */
#pragma once

#include "call_filter.h"

#define SL_WORKER_CALLS_MAX 48

/* Return: how many. */
size_t sl_worker_calls(struct sl_call_rule ret_rules[SL_WORKER_CALLS_MAX]);

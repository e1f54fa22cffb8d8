/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a worker process makes: memory, its jobs and packets, time, its own end. Pure.
 */
#pragma once

struct sl_call_list;

void sl_worker_calls(struct sl_call_list *ret_list);

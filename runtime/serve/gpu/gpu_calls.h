/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that no driver of a GPU has a use for once its device is open: other programs, other processes, other users, other
 * networks, the kernel's own doors. What a driver calls is nobody's list, so that everything else stays. Functions without state.
 */
#pragma once

/* For all threads that there are and come. Return: 0; what sl_call_filter_refuse() says. */
int sl_gpu_calls_refuse(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that find no memory do not always say so: some use what they did not get. A process that dies by a signal while its
 * address space is nearly used up says on its report pipe that memory was the cause; any other death by signal stays what it is.
 */
#pragma once

/* Handles SIGSEGV, SIGBUS, SIGABRT and SIGFPE, on a stack of its own. Reports to SL_CHILD_REPORT_FD, takes SL_CHILD_MEMORY_FD.
 * Return: 0, -errno. */
int sl_crash_report_prepare(void);

/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process stands that does not end. */
#pragma once

#include <sys/types.h>

/* Prints to stderr, a line a thread: its name, its state, the kernel's function and the system call that it waits in. */
void hung_describe(pid_t pid);

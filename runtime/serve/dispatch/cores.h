/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of cores. Pure; any thread.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

/* The lowest core of the set; -1 when it is empty. */
static inline int sl_first_core(const cpu_set_t *cores)
{
        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, cores))
                        return core;
        return -1;
}

/* "0-2,5"; "0-2,..." when @bytes do not suffice. Returns @ret_text. */
const char *sl_cores_text(const cpu_set_t *cores, char *ret_text, size_t bytes);

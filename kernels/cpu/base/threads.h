/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread per worker: oneDNN here runs its loops through OpenMP, and a pinned worker must not wake a team of others.
 */
#pragma once

/*
 * Makes every later pack(), compile() and launch() of the calling thread run on that thread alone. OpenMP keeps the count per
 * thread, so each thread that uses the `cpu` backend calls this once, before its first compile(): oneDNN builds the number of
 * threads into a kernel, and a kernel must be launched under the count that it was compiled for.
 */
void sl_cpu_use_one_thread(void);

/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/threads.h"

/* Declared here, as <omp.h> comes with a compiler's OpenMP package, while the function is there whenever oneDNN is. */
extern void omp_set_num_threads(int count);

void sl_cpu_use_one_thread(void)
{
        omp_set_num_threads(1);
}

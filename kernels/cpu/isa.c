/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/isa.h"

#include <unistd.h>

bool sl_cpu_has_avx512(void)
{
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

int64_t sl_cpu_cache_bytes(void)
{
        long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);

        return bytes > 0 ? bytes : 1 << 20;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_sleep.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where there is no word, and where the kernel cannot wait for several (before Linux 5.16, or denied). */
#define NAP_NS 200000

void sl_gpu_sleep(const _Atomic uint32_t *const *words, const uint32_t *values, uint32_t n, uint64_t limit_ns)
{
        struct futex_waitv waits[SL_GPU_SLEEP_WORDS_MAX];
        uint64_t until_ns = sl_clock_ns() + limit_ns;
        struct timespec until = {.tv_sec = (time_t)(until_ns / SL_NS_PER_SECOND), .tv_nsec = (long)(until_ns % SL_NS_PER_SECOND)};

        n = n < SL_GPU_SLEEP_WORDS_MAX ? n : SL_GPU_SLEEP_WORDS_MAX;
        for (uint32_t i = 0; i < n; i++)
                waits[i] = (struct futex_waitv){.val = values[i], .uaddr = (uintptr_t)words[i], .flags = FUTEX_32};
        if (n == 0 || (syscall(SYS_futex_waitv, waits, n, 0, &until, CLOCK_MONOTONIC) < 0 && (errno == ENOSYS || errno == EPERM)))
                clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/value.h"
#include "notify.h"
#include "runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FEEDINGS 3 /* in the time that the manager waits */

static void on_timer(void *context)
{
        struct sl_watchdog *watchdog = context;
        uint64_t n;

        if (read(watchdog->timer, &n, sizeof(n)) == (ssize_t)sizeof(n) && sl_runtime_probe(watchdog->runtime))
                sl_notify("WATCHDOG=1");
}

/* Variables that were meant for another process are left alone. */
static int read_environment(uint64_t *ret_us)
{
        const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        char wish[SL_WISH_BYTES];
        uint64_t number;

        if (!us)
                return 0;
        if (pid && (sl_value_number(pid, 1, INT32_MAX, &number, wish) < 0 || number != (uint64_t)getpid()))
                return 0;
        return sl_value_number(us, FEEDINGS, UINT64_MAX / SL_NS_PER_US, ret_us, wish) < 0 ? -EINVAL : 1;
}

int sl_watchdog_start(struct sl_watchdog *watchdog, struct sl_runtime *runtime)
{
        uint64_t us = 0;
        int r = read_environment(&us);

        *watchdog = (struct sl_watchdog){.runtime = runtime, .timer = -1};
        if (r <= 0)
                return r;
        watchdog->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        if (watchdog->timer < 0)
                return -errno;
        uint64_t ns = us * SL_NS_PER_US / FEEDINGS;
        struct timespec period = {.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)};
        struct itimerspec times = {.it_interval = period, .it_value = period};
        if (timerfd_settime(watchdog->timer, 0, &times, NULL) < 0)
                return -errno;
        r = sl_runtime_watch(runtime, watchdog->timer, on_timer, watchdog);
        return r < 0 ? r : 1;
}

void sl_watchdog_stop(struct sl_watchdog *watchdog)
{
        if (watchdog->runtime)
                sl_cleanup_fd(&watchdog->timer);
}

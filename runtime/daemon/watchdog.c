/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "notify.h"
#include "runtime.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void on_timer(void *context)
{
        struct sl_watchdog *watchdog = context;
        uint64_t n;

        if (read(watchdog->timer, &n, sizeof(n)) == (ssize_t)sizeof(n) && sl_runtime_probe(watchdog->runtime))
                sl_notify("WATCHDOG=1");
}

int sl_watchdog_start(struct sl_watchdog *watchdog, struct sl_runtime *runtime)
{
        uint64_t us = 0;
        int r = sl_notify_watchdog(&us);

        *watchdog = (struct sl_watchdog){.runtime = runtime, .timer = -1};
        if (r <= 0)
                return r;
        watchdog->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        if (watchdog->timer < 0)
                return -errno;
        uint64_t ns = us * SL_NS_PER_US / SL_NOTIFY_FEEDINGS;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "load_wait.h"

#include "base/clock.h"
#include "base/relax.h"
#include "starling.h"

#include <errno.h>
#include <poll.h>

#define SLEEP_NS         (50 * SL_NS_PER_MS)               /* at most, between two looks for an interruption */
#define CROWDED_SLEEP_NS (SL_NS_PER_MS + SL_NS_PER_MS / 2) /* starling_wait() may take shorter ones for a millisecond */

static int spin_until(struct starling_queue *queue, struct starling_completion *completions, uint32_t max, uint64_t until_ns)
{
        int n;

        while ((n = starling_poll(queue, completions, max)) == 0 && sl_clock_ns() < until_ns)
                sl_relax();
        return n;
}

static void sleep_until(uint64_t ns)
{
        const struct timespec time = {.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)};

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* As an event loop does, with a time-out that is kept. */
static int watch(struct starling_queue *queue, struct starling_completion *completions, uint32_t max, uint64_t left_ns)
{
        struct pollfd descriptor = {.fd = starling_queue_fd(queue), .events = POLLIN};
        const struct timespec time = {.tv_nsec = (long)left_ns};

        if (descriptor.fd < 0)
                return descriptor.fd;
        if (starling_queue_arm(queue) == 0)
                ppoll(&descriptor, 1, &time, NULL);
        return starling_poll(queue, completions, max);
}

static int sleep_for(struct starling_queue *queue, struct starling_completion *completions, uint32_t max, uint64_t left_ns)
{
        int n;

        if (starling_queue_in_flight(queue) == 0) {
                sleep_until(sl_clock_ns() + left_ns);
                return 0;
        }
        if (left_ns < CROWDED_SLEEP_NS)
                return watch(queue, completions, max, left_ns);
        n = starling_wait(queue, completions, max, left_ns);
        return n == -ETIMEDOUT || n == -ENODATA || n == -EINTR ? 0 : n;
}

int sl_load_wait(struct starling_queue *queue, bool spin, struct starling_completion *completions, uint32_t max, uint64_t until_ns)
{
        int n = starling_poll(queue, completions, max);
        uint64_t now_ns = n ? until_ns : sl_clock_ns();

        if (now_ns >= until_ns)
                return n;
        uint64_t left_ns = until_ns - now_ns < SLEEP_NS ? until_ns - now_ns : SLEEP_NS;

        if (spin)
                return spin_until(queue, completions, max, now_ns + left_ns);
        return left_ns <= SL_LOAD_WAIT_SPIN_NS ? spin_until(queue, completions, max, until_ns)
                                               : sleep_for(queue, completions, max, left_ns - SL_LOAD_WAIT_SPIN_NS);
}

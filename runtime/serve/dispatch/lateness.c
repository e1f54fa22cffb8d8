/* SPDX-License-Identifier: Apache-2.0 */
#include "lateness.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* A look weighs a quarter: what was once late is forgotten after some ten looks. */
uint64_t sl_lateness_forget(uint64_t late_ns, uint64_t waited_ns, uint64_t turns, uint64_t entries)
{
        uint64_t times = turns > entries ? turns : entries, now_ns = times ? waited_ns / times : 0;

        return (3 * late_ns + now_ns) / 4;
}

static int read_waits(const struct sl_lateness *lateness, uint64_t *ret_waited_ns, uint64_t *ret_turns)
{
        char text[96];
        ssize_t n = pread(lateness->fd, text, sizeof(text) - 1, 0);

        if (n <= 0)
                return -1;
        text[n] = 0;
        return sscanf(text, "%*u %" SCNu64 " %" SCNu64, ret_waited_ns, ret_turns) == 2 ? 0 : -1;
}

void sl_lateness_init(struct sl_lateness *lateness)
{
        *lateness = (struct sl_lateness){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
        if (lateness->fd >= 0 && read_waits(lateness, &lateness->waited_ns, &lateness->turns) < 0)
                sl_lateness_deinit(lateness);
}

void sl_lateness_deinit(struct sl_lateness *lateness)
{
        sl_cleanup_fd(&lateness->fd);
        lateness->fd = -1;
}

uint32_t sl_lateness_read(struct sl_lateness *lateness, uint64_t entries)
{
        uint64_t waited_ns, turns;

        if (lateness->fd < 0 || read_waits(lateness, &waited_ns, &turns) < 0)
                return 0;
        lateness->late_ns =
                sl_lateness_forget(lateness->late_ns, waited_ns - lateness->waited_ns, turns - lateness->turns, entries);
        lateness->waited_ns = waited_ns;
        lateness->turns = turns;
        return lateness->late_ns < UINT32_MAX ? (uint32_t)lateness->late_ns : UINT32_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "notify.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/value.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Bytes of the address in *ret_bytes. */
static int address_of(const char *name, struct sockaddr_un *ret_address, socklen_t *ret_bytes)
{
        size_t bytes = strlen(name);

        if ((name[0] != '/' && name[0] != '@') || bytes < 2)
                return -EINVAL;
        if (bytes >= sizeof(ret_address->sun_path))
                return -ENAMETOOLONG;
        *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
        memcpy(ret_address->sun_path, name, bytes);
        if (name[0] == '@')
                ret_address->sun_path[0] = 0;
        *ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
        return 0;
}

int sl_notify(const char *state)
{
        const char *name = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address;
        socklen_t bytes;

        if (!name)
                return 0;
        int result = address_of(name, &address, &bytes);
        if (result < 0)
                return result;
        SL_CLEANUP(sl_cleanup_fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, bytes) < 0)
                return -errno;
        return 1;
}

int sl_notify_reloading(void)
{
        char state[64];

        snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(sl_clock_ns() / SL_NS_PER_US));
        return sl_notify(state);
}

/* Variables that were meant for another process are left alone. */
int sl_notify_watchdog(uint64_t *ret_us)
{
        const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        char wish[SL_WISH_BYTES];
        uint64_t number;

        if (!us)
                return 0;
        if (pid && (sl_value_number(pid, 1, INT32_MAX, &number, wish) < 0 || number != (uint64_t)getpid()))
                return 0;
        return sl_value_number(us, SL_NOTIFY_FEEDINGS, UINT64_MAX / SL_NS_PER_US, ret_us, wish) < 0 ? -EINVAL : 1;
}

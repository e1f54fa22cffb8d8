/* SPDX-License-Identifier: Apache-2.0 */
#include "listen_address.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BACKLOG        64
#define FIRST_FD       3 /* SD_LISTEN_FDS_START */
#define ADDRESS_WANTED "wants an address and a port, as 127.0.0.1:9464 or [::1]:9464"

union address {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_un local;
        struct sockaddr_storage storage;
};

/* The address before the last colon. Return: its length; 0: there is none. */
static socklen_t parse_host(const char *host, uint16_t port, union address *ret_address)
{
        size_t length = strlen(host);

        *ret_address = (union address){.storage.ss_family = AF_INET};
        if (strcmp(host, "localhost") == 0)
                host = "127.0.0.1";
        if (inet_pton(AF_INET, host, &ret_address->ip4.sin_addr) == 1) {
                ret_address->ip4.sin_family = AF_INET;
                ret_address->ip4.sin_port = htons(port);
                return sizeof(ret_address->ip4);
        }
        if (length < 2 || host[0] != '[' || host[length - 1] != ']')
                return 0;

        char inner[INET6_ADDRSTRLEN + 1] = "";

        snprintf(inner, sizeof(inner), "%.*s", (int)length - 2, host + 1);
        ret_address->ip6.sin6_family = AF_INET6;
        ret_address->ip6.sin6_port = htons(port);
        return inet_pton(AF_INET6, inner, &ret_address->ip6.sin6_addr) == 1 ? sizeof(ret_address->ip6) : 0;
}

static int parse(const char *text, union address *ret_address, socklen_t *ret_bytes, struct sl_error *error)
{
        const char *colon = strrchr(text, ':');
        char host[64], wish[SL_WISH_BYTES];
        uint64_t port;

        if (!colon || (size_t)(colon - text) >= sizeof(host))
                return sl_error_set(error, EINVAL, "\"%s\" " ADDRESS_WANTED, text);
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
        if (sl_value_number(colon + 1, 0, UINT16_MAX, &port, wish) < 0)
                return sl_error_set(error, EINVAL, "\"%s\": port \"%s\" is %s", text, colon + 1, wish);
        *ret_bytes = parse_host(host, (uint16_t)port, ret_address);
        return *ret_bytes ? 0 : sl_error_set(error, EINVAL, "\"%s\" " ADDRESS_WANTED, text);
}

int listen_at(const char *text, struct sl_error *error)
{
        union address address;
        socklen_t bytes;
        int r = parse(text, &address, &bytes, error);

        if (r < 0)
                return r;

        SL_CLEANUP(sl_cleanup_fd) int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int yes = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 || bind(fd, &address.any, bytes) < 0 ||
                listen(fd, BACKLOG) < 0)
                return sl_error_set(error, errno, "cannot listen at %s: %s", text, strerror(errno));
        return sl_take_fd(&fd);
}

static bool is_listening(int fd)
{
        int listening = 0;
        socklen_t bytes = sizeof(listening);

        return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) == 0 && listening;
}

int listen_handed_over(struct sl_error *error)
{
        const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
        char wish[SL_WISH_BYTES];
        uint64_t number;

        if (!pid || !fds || sl_value_number(pid, 1, INT32_MAX, &number, wish) < 0 || number != (uint64_t)getpid())
                return -ENOENT;
        if (sl_value_number(fds, 1, 1, &number, wish) < 0)
                return sl_error_set(error, EINVAL, "the service manager hands over %s sockets, one is wanted", fds);
        if (!is_listening(FIRST_FD))
                return sl_error_set(error, EINVAL, "the service manager hands over what is no listening socket");
        if (fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) < 0)
                return sl_error_set(error, errno, "the service manager's socket: %s", strerror(errno));
        return FIRST_FD;
}

void listen_name(int fd, char *ret_name, size_t bytes)
{
        union address address = {.storage.ss_family = AF_UNSPEC};
        socklen_t length = sizeof(address);
        char host[INET6_ADDRSTRLEN] = "?";

        snprintf(ret_name, bytes, "?");
        if (getsockname(fd, &address.any, &length) < 0)
                return;
        if (address.any.sa_family == AF_INET) {
                inet_ntop(AF_INET, &address.ip4.sin_addr, host, sizeof(host));
                snprintf(ret_name, bytes, "%s:%u", host, ntohs(address.ip4.sin_port));
        } else if (address.any.sa_family == AF_INET6) {
                inet_ntop(AF_INET6, &address.ip6.sin6_addr, host, sizeof(host));
                snprintf(ret_name, bytes, "[%s]:%u", host, ntohs(address.ip6.sin6_port));
        } else if (address.any.sa_family == AF_UNIX) {
                snprintf(ret_name, bytes, "%.*s", (int)sizeof(address.local.sun_path), address.local.sun_path);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "host_names.h"

#include "base/error.h"
#include "base/quote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NAME_BYTES_MAX 253u /* of a name of DNS */
#define NAME_BYTES     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

void host_names_init(struct host_names *names)
{
        *names = (struct host_names){.n = 0};
        if (gethostname(names->own, sizeof(names->own)) < 0)
                names->own[0] = 0;
        names->own[sizeof(names->own) - 1] = 0;
}

int host_names_add(struct host_names *names, const char *name, struct sl_error *error)
{
        size_t n = strlen(name);
        char quoted[128];

        if (n == 0 || n > NAME_BYTES_MAX || strspn(name, NAME_BYTES) != n)
                return sl_error_set(error, EINVAL,
                        "host %s is no name: it wants 1 to %u letters, digits, \"-\", \"_\" and \".\", and no port",
                        sl_quote(name, quoted, sizeof(quoted)), NAME_BYTES_MAX);
        if (names->n == HOST_NAMES_MAX)
                return sl_error_set(
                        error, EINVAL, "host \"%s\" is number %u, there are at most %u", name, names->n + 1, HOST_NAMES_MAX);
        names->items[names->n++] = name;
        return 0;
}

/* "", or a colon and digits. */
static bool is_port(const char *text)
{
        return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* A dot at the end says that the name is whole. */
static bool is_same(const char *host, const char *name)
{
        size_t n = strlen(host);

        n -= n > 0 && host[n - 1] == '.';
        return n > 0 && strlen(name) == n && strncasecmp(host, name, n) == 0;
}

static bool is_address(const char *host)
{
        struct in_addr address;

        return inet_pton(AF_INET, host, &address) == 1;
}

static bool is_bracketed_address(const char *header)
{
        const char *end = strchr(header, ']');
        char host[INET6_ADDRSTRLEN];
        struct in6_addr address;
        size_t n = end ? (size_t)(end - header) - 1 : sizeof(host);

        if (n >= sizeof(host) || !is_port(end + 1))
                return false;
        memcpy(host, header + 1, n);
        host[n] = 0;
        return inet_pton(AF_INET6, host, &address) == 1;
}

bool host_names_have(const struct host_names *names, const char *header)
{
        char host[NAME_BYTES_MAX + 2]; /* with a dot at the end */
        size_t n = header ? strcspn(header, ":") : 0;

        if (!header)
                return true;
        if (header[0] == '[')
                return is_bracketed_address(header);
        if (n >= sizeof(host) || !is_port(header + n))
                return false;
        memcpy(host, header, n);
        host[n] = 0;
        for (uint32_t i = 0; i < names->n; i++)
                if (is_same(host, names->items[i]))
                        return true;
        return is_address(host) || is_same(host, "localhost") || is_same(host, names->own);
}

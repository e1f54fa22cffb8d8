/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness as service managers want it. */
#include "notify.h"
#include "folder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager's socket at @name, which starts with "/" or "@". */
static int listen_at(const char *name)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

        memcpy(address.sun_path, name, strlen(name));
        if (name[0] == '@')
                address.sun_path[0] = 0;
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, bytes), 0);
        setenv("NOTIFY_SOCKET", name, 1);
        return fd;
}

static const char *received(int fd)
{
        static char text[256];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = 0;
        return text;
}

Test(notify, without_a_manager_nothing_is_sent)
{
        unsetenv("NOTIFY_SOCKET");
        cr_assert_eq(sl_notify("READY=1"), 0);
}

Test(notify, a_manager_at_a_path_is_told)
{
        struct folder folder;
        char path[128];

        folder_make(&folder);
        snprintf(path, sizeof(path), "%s/notify", folder.path);
        int fd = listen_at(path);
        cr_assert_eq(sl_notify("READY=1"), 1);
        cr_assert_str_eq(received(fd), "READY=1");
        close(fd);
        folder_remove(&folder);
}

Test(notify, a_manager_at_an_abstract_name_is_told)
{
        char name[64];

        snprintf(name, sizeof(name), "@starling-test-%d", getpid());
        int fd = listen_at(name);
        cr_assert_eq(sl_notify("STOPPING=1"), 1);
        cr_assert_str_eq(received(fd), "STOPPING=1");
        cr_assert_eq(sl_notify_reloading(), 1);
        cr_assert_eq(strncmp(received(fd), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
        close(fd);
}

Test(notify, a_wrong_address_is_an_error)
{
        char longer[300];

        setenv("NOTIFY_SOCKET", "relative", 1);
        cr_assert_eq(sl_notify("READY=1"), -EINVAL);
        setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
        cr_assert_eq(sl_notify("READY=1"), -ENOENT);
        memset(longer, 'x', sizeof(longer));
        longer[0] = '/';
        longer[sizeof(longer) - 1] = 0;
        setenv("NOTIFY_SOCKET", longer, 1);
        cr_assert_eq(sl_notify("READY=1"), -ENAMETOOLONG);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include "attach.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 128

bool sl_listener_is_there(const char *path)
{
        struct stat status;

        return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int listen_beside(int fd, const struct sockaddr_un *beside, struct sl_error *error)
{
        unlink(beside->sun_path);
        if (bind(fd, (const struct sockaddr *)beside, sizeof(*beside)) < 0)
                return sl_error_set(error, errno, "cannot bind \"%s\": %s", beside->sun_path, strerror(errno));
        /* Whoever may write the socket may connect; who is admitted is decided by the peer's credentials. */
        if (chmod(beside->sun_path, 0666) < 0)
                return sl_error_set(error, errno, "cannot open \"%s\" to others: %s", beside->sun_path, strerror(errno));
        if (listen(fd, BACKLOG) < 0)
                return sl_error_set(error, errno, "cannot listen on \"%s\": %s", beside->sun_path, strerror(errno));
        return 0;
}

/* What is no socket was put there by somebody, for something else. */
static int check_place(const char *path, struct sl_error *error)
{
        struct stat status;

        if (lstat(path, &status) < 0 || S_ISSOCK(status.st_mode))
                return 0;
        return sl_error_set(error, EEXIST, "socket path \"%s\": what is there is no socket, and stays", path);
}

int sl_listener_open(const char *path, int *ret_fd, struct sl_error *error)
{
        struct sockaddr_un beside = {.sun_family = AF_UNIX};
        SL_CLEANUP(sl_cleanup_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r;

        if (fd < 0)
                return sl_error_set(error, errno, "no socket: %s", strerror(errno));
        if (snprintf(beside.sun_path, sizeof(beside.sun_path), "%s~", path) >= (int)sizeof(beside.sun_path))
                return sl_error_set(
                        error, ENAMETOOLONG, "socket path \"%s\": at most %zu bytes", path, sizeof(beside.sun_path) - 2);
        sl_socket_set_passing(fd, false);
        r = check_place(path, error);
        if (r < 0)
                return r;
        r = listen_beside(fd, &beside, error);
        if (r == 0 && rename(beside.sun_path, path) < 0)
                r = sl_error_set(error, errno, "cannot put the socket at \"%s\": %s", path, strerror(errno));
        if (r < 0) {
                unlink(beside.sun_path);
                return r;
        }
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

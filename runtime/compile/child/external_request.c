/* SPDX-License-Identifier: Apache-2.0 */
#include "external_request.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "child_args.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

static int take_fd(struct msghdr *message)
{
        struct cmsghdr *part = CMSG_FIRSTHDR(message);
        int fd = -1;

        if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
                memcpy(&fd, CMSG_DATA(part), sizeof(fd));
        return fd;
}

/* False: no answer. */
static bool receive_answer(struct sl_child_answer *answer, int *ret_fd)
{
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct iovec part = {.iov_base = answer, .iov_len = sizeof(*answer)};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

        if (recvmsg(SL_CHILD_EXTERNAL_FD, &message, MSG_CMSG_CLOEXEC) != sizeof(*answer))
                return false;
        *ret_fd = take_fd(&message);
        return true;
}

/* write(), because the filter of system calls knows it already. */
int sl_external_request(void *number, const char *location, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char request[1 + SL_CHILD_LOCATION_BYTES_MAX];
        size_t length = strlen(location);
        struct sl_child_answer answer;

        if (!length || length >= SL_CHILD_LOCATION_BYTES_MAX)
                return sl_error_set(error, EACCES, "external data \"%s\": its name has %zu bytes, at least 1 and at most %d",
                        location, length, SL_CHILD_LOCATION_BYTES_MAX - 1);
        request[0] = number ? (char)*(const uint8_t *)number : 0;
        memcpy(request + 1, location, length);
        if (write(SL_CHILD_EXTERNAL_FD, request, length + 1) != (ssize_t)length + 1 || !receive_answer(&answer, &fd))
                return sl_error_set(error, EIO, "external data \"%s\": the process that opens it does not answer", location);
        if (answer.code)
                return sl_error_set(error, answer.code, "%.*s", (int)sizeof(answer.text) - 1, answer.text);
        if (fd < 0)
                return sl_error_set(error, EIO, "external data \"%s\": no descriptor came with the answer", location);
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 30) /* at most at once */

int find_whole_file(const char *path, char ret_place[PATH_MAX], struct sl_error *error)
{
        struct stat status;

        if (lstat(path, &status) < 0 && errno == ENOENT)
                return snprintf(ret_place, PATH_MAX, "%s", path) < PATH_MAX
                               ? 0
                               : sl_error_set(error, ENAMETOOLONG, "\"%s\": longer than %d bytes", path, PATH_MAX - 1);
        if (stat(path, &status) < 0 || !realpath(path, ret_place))
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        return S_ISREG(status.st_mode) ? 0 : sl_error_set(error, EINVAL, "\"%s\" is no regular file", path);
}

/* The rights of a file that is made in the usual way; of mkstemp() it has its user's alone. */
static int set_rights(int fd)
{
        mode_t mask = umask(0);

        umask(mask);
        return fchmod(fd, 0666 & ~mask) < 0 ? -errno : 0;
}

int keep_whole_file(const char *place, int (*write)(int fd, void *context), void *context, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char under_way[PATH_MAX + 8];
        int r;

        snprintf(under_way, sizeof(under_way), "%s.XXXXXX", place);
        fd = mkstemp(under_way);
        if (fd < 0)
                return sl_error_set(error, errno, "\"%s\": %s", under_way, strerror(errno));
        r = write(fd, context);
        if (r == 0)
                r = set_rights(fd);
        if (r == 0 && rename(under_way, place) < 0)
                r = -errno;
        if (r == 0)
                return 0;
        unlink(under_way);
        return sl_error_set(error, -r, "\"%s\": %s", place, strerror(-r));
}

/* @context: a descriptor. */
static int copy_file(int to, void *context)
{
        int from = *(const int *)context;
        off_t at = 0;
        ssize_t n;

        do
                n = sendfile(to, from, &at, COPY_BYTES);
        while (n > 0 || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

int copy_whole_file(const char *place, int from, struct sl_error *error)
{
        return keep_whole_file(place, copy_file, &from, error);
}

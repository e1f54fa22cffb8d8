/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_claim.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 16 /* each lost to another runtime that starts or ends at the same moment */

static bool lock(int fd)
{
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

        return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool sl_claim_is_held(int fd)
{
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

        return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

/* As of proc_pid_stat(5): PF_EXITING, and the bit of SIGKILL among the pending signals. */
#define FLAG_EXITING 0x4u
#define BIT_KILL     (1ull << (SIGKILL - 1))

/* What follows the name of the program, which may hold anything. */
static bool read_stat(uint32_t pid, char *ret_state, uint64_t *ret_flags, uint64_t *ret_pending)
{
        char path[40], text[1024];
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;

        snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = 0;
        const char *rest = strrchr(text, ')');
        return rest && sscanf(rest,
                               ") %c %*d %*d %*d %*d %*d %" SCNu64
                               " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %" SCNu64,
                               ret_state, ret_flags, ret_pending) == 3;
}

bool sl_claim_owner_is_ending(uint32_t pid)
{
        uint64_t flags, pending;
        char state;

        if (!read_stat(pid, &state, &flags, &pending))
                return true;
        return strchr("ZXx", state) || (flags & FLAG_EXITING) || (pending & BIT_KILL);
}

bool sl_claim_owner_is_here(uint32_t pid)
{
        char path[40];

        snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
        return access(path, F_OK) == 0;
}

static bool is_name_of(int directory, const char *file, int fd)
{
        struct stat named, open;

        return fstatat(directory, file, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
               named.st_ino == open.st_ino;
}

static int refuse(const char *directory, const char *file, const char *cause, struct sl_error *error)
{
        return sl_error_set(error, EPERM, "\"%s/%s\" %s", directory, file, cause);
}

/* In place of what was kept before. False: nobody wants it, or something of somebody else's has that name. */
static bool keep_stale(int directory, const char *file, int fd, const struct sl_claim_keep *keep)
{
        return keep && keep->is_worth(fd) && renameat(directory, file, directory, keep->as) == 0;
}

/* Removes a file that a dead writer left behind. Return: 1 removed; 0 it is gone, try again; -EADDRINUSE; -EPERM; -errno. */
static int remove_stale(
        int directory, const char *directory_name, const char *file, const struct sl_claim_keep *keep, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = openat(directory, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        struct stat status;

        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0 && errno == ELOOP)
                return refuse(directory_name, file, "is a symbolic link", error);
        if (fd < 0 && (errno == EACCES || errno == EISDIR || errno == ENXIO))
                return refuse(directory_name, file, "is no regular file of this user", error);
        if (fd < 0 || fstat(fd, &status) < 0)
                return sl_error_set(error, errno, "\"%s/%s\": %s", directory_name, file, strerror(errno));
        if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink > 1)
                return refuse(directory_name, file, "is no regular file of this user alone", error);
        if (!lock(fd) && sl_claim_is_held(fd))
                return sl_error_set(error, EADDRINUSE, "\"%s/%s\": a runtime of this name is running", directory_name, file);
        if (is_name_of(directory, file, fd) && !keep_stale(directory, file, fd, keep) && unlinkat(directory, file, 0) < 0 &&
                errno != ENOENT)
                return sl_error_set(error, errno, "\"%s/%s\": cannot be removed: %s", directory_name, file, strerror(errno));
        return 1;
}

int sl_claim_create(const char *directory, const char *file, const struct sl_claim_keep *keep, bool *ret_stale, int *ret_fd,
        struct sl_error *error)
{
        bool stale = false;

        SL_CLEANUP(sl_cleanup_fd) int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0)
                return sl_error_set(error, errno, "directory \"%s\": %s", directory, strerror(errno));
        for (int i = 0; i < TRIES; i++) {
                SL_CLEANUP(sl_cleanup_fd) int fd = openat(dir, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

                if (fd >= 0 && lock(fd) && is_name_of(dir, file, fd)) {
                        *ret_stale = stale;
                        *ret_fd = sl_take_fd(&fd);
                        return 0;
                }
                if (fd < 0 && errno != EEXIST)
                        return sl_error_set(error, errno, "\"%s/%s\": cannot be created: %s", directory, file, strerror(errno));
                int r = fd < 0 ? remove_stale(dir, directory, file, keep, error) : 0;
                if (r < 0)
                        return r;
                stale |= r > 0;
        }
        return sl_error_set(error, EADDRINUSE, "\"%s/%s\": other runtimes of this name start at the same time", directory, file);
}

void sl_claim_remove(const char *directory, const char *file, int fd)
{
        SL_CLEANUP(sl_cleanup_fd) int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (dir >= 0 && is_name_of(dir, file, fd))
                unlinkat(dir, file, 0);
}

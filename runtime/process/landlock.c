/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel says which version it has; each bit is asked for from the version on that knows it. Headers of older systems lack the
 * newer ones, so the layout of version 6 is written down here.
 *
 * Sources: Documentation/userspace-api/landlock.rst of the Linux kernel.
 */
#include "landlock.h"

#include "base/cleanup.h"
#include "sandbox_additions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct ruleset {
        uint64_t files, network, scopes;
};

/* By version: the bits of all before it, too. The third of them knows of truncate, the fifth of ioctl. */
static const struct ruleset rulesets[] = {
        {0x1fff, 0, 0}, {0x3fff, 0, 0}, {0x7fff, 0, 0}, {0x7fff, 0x3, 0}, /* to bind and to connect */
        {0xffff, 0x3, 0}, {0xffff, 0x3, 0x3},                             /* abstract sockets and signals stay within the domain */
};

/* Rights of the third version and of the fifth. */
#define TRUNCATE  (1ull << 14)
#define IOCTL_DEV (1ull << 15)

#define RULESETS (sizeof(rulesets) / sizeof(rulesets[0]))

static size_t ruleset_bytes(int version)
{
        return version < 4   ? offsetof(struct ruleset, network)
               : version < 6 ? offsetof(struct ruleset, scopes)
                             : sizeof(struct ruleset);
}

/* @handled: what the domain knows to refuse. Of a file there is less to allow than of a folder. */
static int let_open(int ruleset_fd, const struct sl_landlock_path *path, uint64_t handled)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path->name, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE, .parent_fd = fd};
        struct stat stat;

        if (fd < 0 || fstat(fd, &stat) < 0)
                return -errno;
        if (S_ISDIR(stat.st_mode))
                rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
        if (path->written)
                rule.allowed_access |= handled & (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEV);
        if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                return -errno;
        return 0;
}

int sl_landlock_version(void)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        return version < 1 ? 0 : (int)version;
}

int sl_landlock_enter(const struct sl_landlock_path *paths, size_t n)
{
        int version = sl_landlock_version();
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r = 0;

        if (version < 1)
                return -ENOSYS;
        if (version > (int)RULESETS)
                version = (int)RULESETS;
        fd = (int)syscall(SYS_landlock_create_ruleset, &rulesets[version - 1], ruleset_bytes(version), 0);
        if (fd < 0)
                return -errno;
        if (sl_sandbox_additions.readable_folder)
                r = let_open(fd, &(struct sl_landlock_path){.name = sl_sandbox_additions.readable_folder}, 0);
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = let_open(fd, &paths[i], rulesets[version - 1].files);
                r = r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ELOOP ? 0 : r; /* nothing can be opened there anyway */
        }
        if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = -errno;
        return r;
}

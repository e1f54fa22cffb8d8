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
#include <sys/syscall.h>

struct ruleset {
        uint64_t files, network, scopes;
};

/* By version: the bits of all before it, too. The third of them knows of truncate, the fifth of ioctl. */
static const struct ruleset rulesets[] = {
        {0x1fff, 0, 0}, {0x3fff, 0, 0}, {0x7fff, 0, 0}, {0x7fff, 0x3, 0}, /* to bind and to connect */
        {0xffff, 0x3, 0}, {0xffff, 0x3, 0x3},                             /* abstract sockets and signals stay within the domain */
};

#define RULESETS (sizeof(rulesets) / sizeof(rulesets[0]))

static size_t ruleset_bytes(int version)
{
        return version < 4   ? offsetof(struct ruleset, network)
               : version < 6 ? offsetof(struct ruleset, scopes)
                             : sizeof(struct ruleset);
}

static int let_read(int ruleset_fd, const char *folder)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {
                .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR, .parent_fd = fd};

        if (fd < 0 || syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                return -errno;
        return 0;
}

int sl_landlock_version(void)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        return version < 1 ? 0 : (int)version;
}

int sl_landlock_enter(const char *const *readable_folders, size_t n)
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
                r = let_read(fd, sl_sandbox_additions.readable_folder);
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = let_read(fd, readable_folders[i]);
                r = r == -ENOENT ? 0 : r;
        }
        if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = -errno;
        return r;
}

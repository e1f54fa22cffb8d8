/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_guard.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* The kernel's format of system.posix_acl_access (linux/posix_acl_xattr.h): little-endian, entries by tag and then by id. */
#define ACL_VERSION 2
#define ACL_NOBODY  UINT32_MAX

enum acl_tag { ACL_OWNER = 0x01, ACL_USER = 0x02, ACL_OWNERS_GROUP = 0x04, ACL_GROUP = 0x08, ACL_MASK = 0x10, ACL_OTHERS = 0x20 };
enum acl_permission { ACL_NONE = 0, ACL_READ = 4, ACL_READ_WRITE = 6 };

struct acl_entry {
        uint16_t tag, permissions;
        uint32_t id;
};

struct acl {
        uint32_t version;
        struct acl_entry entries[SL_GUARD_NAMES_MAX + 4];
};

static uint32_t add_entry(struct acl *acl, uint32_t n, enum acl_tag tag, enum acl_permission permissions, uint32_t id)
{
        acl->entries[n] = (struct acl_entry){htole16(tag), htole16(permissions), htole32(id)};
        return n + 1;
}

static int compare_ids(const void *a, const void *b)
{
        uint32_t x = le32toh(((const struct acl_entry *)a)->id), y = le32toh(((const struct acl_entry *)b)->id);

        return (x > y) - (x < y);
}

/* Sorted, each once. */
static uint32_t add_names(struct acl *acl, uint32_t n, enum acl_tag tag, const uint32_t *ids, uint32_t n_ids)
{
        uint32_t first = n, kept = n;

        for (uint32_t i = 0; i < n_ids; i++)
                n = add_entry(acl, n, tag, ACL_READ, ids[i]);
        qsort(acl->entries + first, n - first, sizeof(acl->entries[0]), compare_ids);
        for (uint32_t i = first; i < n; i++)
                if (kept == first || acl->entries[kept - 1].id != acl->entries[i].id)
                        acl->entries[kept++] = acl->entries[i];
        return kept;
}

static uint32_t fill(struct acl *acl, const struct sl_stats_guard *guard)
{
        uint32_t n = add_entry(acl, 0, ACL_OWNER, ACL_READ_WRITE, ACL_NOBODY);

        n = add_names(acl, n, ACL_USER, guard->uids, guard->n_uids);
        n = add_entry(acl, n, ACL_OWNERS_GROUP, ACL_NONE, ACL_NOBODY);
        n = add_names(acl, n, ACL_GROUP, guard->gids, guard->n_gids);
        n = add_entry(acl, n, ACL_MASK, ACL_READ, ACL_NOBODY);
        n = add_entry(acl, n, ACL_OTHERS, ACL_NONE, ACL_NOBODY);
        acl->version = htole32(ACL_VERSION);
        return n;
}

int sl_stats_guard_apply(int fd, const struct sl_stats_guard *guard)
{
        struct acl *acl;
        int r = 0;

        if (!guard || guard->everybody)
                return fchmod(fd, 0644) < 0 ? -errno : 0;
        if (guard->n_uids + guard->n_gids == 0)
                return 0;
        if (guard->n_uids > SL_GUARD_NAMES_MAX || guard->n_gids > SL_GUARD_NAMES_MAX - guard->n_uids)
                return -E2BIG;
        acl = calloc(1, sizeof(*acl));
        if (!acl)
                return -ENOMEM;

        uint32_t n = fill(acl, guard);

        if (fsetxattr(fd, "system.posix_acl_access", acl, sizeof(acl->version) + n * sizeof(acl->entries[0]), 0) < 0)
                r = -errno;
        free(acl);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_record.h"

#include "base/cleanup.h"
#include "cache_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t checksum_of(const void *record, size_t bytes)
{
        return XXH3_64bits(record, bytes - sizeof(uint64_t));
}

int sl_cache_record_open(int folder, const char *name, uint64_t kind, void *ret_record, size_t bytes, int *ret_fd)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        uint64_t checksum;
        int r = sl_cache_folder_find(folder, name, &fd);

        if (r < 0)
                return r;
        if (read(fd, ret_record, bytes) != (ssize_t)bytes || memcmp(ret_record, &kind, sizeof(kind)))
                return -EBADMSG;
        memcpy(&checksum, (const char *)ret_record + bytes - sizeof(checksum), sizeof(checksum));
        if (checksum != checksum_of(ret_record, bytes))
                return -EBADMSG;
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

int sl_cache_record_read(int folder, const char *name, uint64_t kind, void *ret_record, size_t bytes)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;

        return sl_cache_record_open(folder, name, kind, ret_record, bytes, &fd);
}

struct writing {
        const void *record;
        size_t bytes;
};

static int write_record(int fd, void *context)
{
        const struct writing *writing = context;

        return write(fd, writing->record, writing->bytes) == (ssize_t)writing->bytes ? 0 : -EIO;
}

int sl_cache_record_write(int folder, const char *name, void *record, size_t bytes)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct writing writing = {record, bytes};
        uint64_t checksum = checksum_of(record, bytes);

        memcpy((char *)record + bytes - sizeof(checksum), &checksum, sizeof(checksum));
        return sl_cache_folder_put(folder, name, write_record, &writing, &fd);
}

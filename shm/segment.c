/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Newer than the headers of the oldest supported distribution. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int seals_of(enum sl_seal seal)
{
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

        return seal == SL_SEAL_RESPONSE ? seals | F_SEAL_FUTURE_WRITE : seals;
}

static int create_memfd(const char *name)
{
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

        if (fd < 0 && errno == EINVAL) /* kernels before 6.3 do not know NOEXEC_SEAL */
                fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        return fd;
}

int sl_segment_create(
        const char *name, uint64_t bytes, enum sl_seal seal, int *ret_fd, struct sl_mapping *ret_mapping, struct sl_error *error)
{
        uint64_t size = sl_align_up(bytes, SL_PAGE_BYTES);

        if (bytes == 0 || bytes > INT64_MAX - SL_PAGE_BYTES)
                return sl_error_set(error, EINVAL, "segment \"%s\": %" PRIu64 " bytes is no size for a segment", name, bytes);

        SL_CLEANUP(sl_cleanup_fd) int fd = create_memfd(name);

        if (fd < 0)
                return sl_error_set(error, errno, "segment \"%s\": no memfd: %s", name, strerror(errno));
        if (ftruncate(fd, (off_t)size) < 0)
                return sl_error_set(error, errno, "segment \"%s\" of %" PRIu64 " bytes: %s", name, size, strerror(errno));

        struct sl_mapping mapping = {.base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), .bytes = size};

        if (mapping.base == MAP_FAILED)
                return sl_error_set(
                        error, errno, "segment \"%s\" of %" PRIu64 " bytes: cannot be mapped: %s", name, size, strerror(errno));
        if (fcntl(fd, F_ADD_SEALS, seals_of(seal)) < 0) {
                int code = errno;

                sl_mapping_free(&mapping);
                return sl_error_set(error, code, "segment \"%s\": cannot be sealed: %s", name, strerror(code));
        }
        *ret_fd = sl_take_fd(&fd);
        *ret_mapping = mapping;
        return 0;
}

/* Huge pages are refused because a hole punched into one is a SIGBUS for the other side. */
static bool is_plain_memory(int fd)
{
        struct statfs filesystem;

        return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC;
}

int sl_segment_check(int fd, enum sl_seal seal, uint64_t *ret_bytes, struct sl_error *error)
{
        int wanted = seals_of(seal);
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat status;

        if (seals < 0 || !is_plain_memory(fd))
                return sl_error_set(error, EBADMSG, "fd %d is no memfd of ordinary pages", fd);
        if ((seals & wanted) != wanted)
                return sl_error_set(error, EBADMSG, "memfd %d has seals %#x, wants %#x", fd, (unsigned)seals, (unsigned)wanted);
        if (fstat(fd, &status) < 0 || status.st_size <= 0 || status.st_size % SL_PAGE_BYTES)
                return sl_error_set(error, EBADMSG, "memfd %d is not a whole number of pages", fd);
        *ret_bytes = (uint64_t)status.st_size;
        return 0;
}

int sl_segment_map(int fd, uint64_t bytes, enum sl_seal seal, int writable, struct sl_mapping *ret_mapping, struct sl_error *error)
{
        uint64_t size;
        int r = sl_segment_check(fd, seal, &size, error);

        if (r < 0)
                return r;
        if (size != bytes)
                return sl_error_set(error, EBADMSG, "memfd %d has %" PRIu64 " bytes, wants %" PRIu64, fd, size, bytes);

        void *base = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

        if (base == MAP_FAILED)
                return sl_error_set(error, errno, "memfd %d of %" PRIu64 " bytes cannot be mapped%s: %s", fd, size,
                        writable ? " for writing" : "", strerror(errno));
        *ret_mapping = (struct sl_mapping){.base = base, .bytes = size};
        return 0;
}

int sl_mapping_populate(const struct sl_mapping *mapping, uint64_t offset, uint64_t bytes)
{
        uint64_t start = offset & ~(uint64_t)(SL_PAGE_BYTES - 1);

        if (!sl_range_inside(offset, bytes, mapping->bytes))
                return -EINVAL;
        if (bytes == 0)
                return 0;
        if (madvise((char *)mapping->base + start, offset - start + bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
                return 0;
        return errno == EFAULT || errno == EAGAIN ? -ENOMEM : -errno;
}

void sl_mapping_free(struct sl_mapping *mapping)
{
        if (mapping->base)
                munmap(mapping->base, mapping->bytes);
        *mapping = (struct sl_mapping){0};
}

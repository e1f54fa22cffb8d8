/*
 * The path is walked one component at a time with O_NOFOLLOW: the same guarantee as openat2() with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS, also under filters that deny openat2(). O_NONBLOCK, so that a FIFO cannot make us wait.
 */
#include "import/external.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define COMPONENT_BYTES 256

static int outside(const char *location, struct sl_error *error)
{
        return sl_error_set(error, EACCES, "external data \"%s\" leads outside the model's folder or over a link", location);
}

/* Cuts the first component off *path. -EACCES for one that is empty, "." or "..". */
static int next_component(const char **path, char component[COMPONENT_BYTES], bool *ret_last)
{
        size_t length = strcspn(*path, "/");

        if (!length || length >= COMPONENT_BYTES)
                return -EACCES;
        memcpy(component, *path, length);
        component[length] = 0;
        *ret_last = (*path)[length] == 0;
        *path += length + !*ret_last;
        return !strcmp(component, ".") || !strcmp(component, "..") ? -EACCES : 0;
}

static int open_beneath(int folder_fd, const char *location, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        const char *path = location;
        char component[COMPONENT_BYTES];
        bool last = false;

        while (!last) {
                if (next_component(&path, component, &last) < 0)
                        return outside(location, error);
                int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
                int fd = openat(folder < 0 ? folder_fd : folder, component, flags);

                if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
                        return outside(location, error);
                if (fd < 0)
                        return sl_error_set(
                                error, errno == ENOENT ? ENOENT : EIO, "external data \"%s\": %s", location, strerror(errno));
                sl_cleanup_fd(&folder);
                folder = fd;
        }
        *ret_fd = sl_take_fd(&folder);
        return 0;
}

static int check_file(int fd, const char *location, uint64_t offset, uint64_t n_bytes, struct sl_error *error)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return sl_error_set(error, EIO, "external data \"%s\": %s", location, strerror(errno));
        if (!S_ISREG(status.st_mode))
                return sl_error_set(error, EACCES, "external data \"%s\" is no regular file", location);
        if (!sl_range_inside(offset, n_bytes, (uint64_t)status.st_size))
                return sl_error_set(error, EBADMSG,
                        "external data \"%s\" has %" PRIu64 " bytes, offset %" PRIu64 " and length %" PRIu64 " reach beyond them",
                        location, (uint64_t)status.st_size, offset, n_bytes);
        return 0;
}

int sl_external_map(int folder_fd, const char *location, uint64_t offset, uint64_t n_bytes, struct sl_external_region *ret_region,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        uint64_t start = offset & ~(uint64_t)(SL_PAGE_BYTES - 1);
        int result = open_beneath(folder_fd, location, &fd, error);

        if (result == 0)
                result = check_file(fd, location, offset, n_bytes, error);
        if (result < 0)
                return result;
        if (!n_bytes) {
                *ret_region = (struct sl_external_region){0};
                return 0;
        }
        size_t bytes = (size_t)(offset - start + n_bytes);
        void *mapping = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)start);

        if (mapping == MAP_FAILED)
                return sl_error_set(
                        error, ENOMEM, "external data \"%s\": cannot map %zu bytes: %s", location, bytes, strerror(errno));
        *ret_region = (struct sl_external_region){
                .data = (const uint8_t *)mapping + (offset - start), .mapping = mapping, .mapping_bytes = bytes};
        return 0;
}

void sl_external_unmap(void *mapping, size_t mapping_bytes)
{
        if (mapping)
                munmap(mapping, mapping_bytes);
}

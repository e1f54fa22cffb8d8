/* SPDX-License-Identifier: Apache-2.0 */
#include "import/external.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "model_file.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

void sl_external_files_deinit(struct sl_external_files *files)
{
        if (!files->location)
                return;
        free(sl_take(files->location));
        close(files->fd);
}

/* Its end tells the size: asking for the file's status is more than a filter of system calls need allow. */
static int open_file(struct sl_external_files *files, const char *location, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) char *copy = NULL;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int result;
        off_t end;

        if (files->location && !strcmp(files->location, location))
                return 0;
        sl_external_files_deinit(files);
        result = files->model->open_external(files->model->context, location, &fd, error);
        if (result < 0)
                return result;
        end = lseek(fd, 0, SEEK_END);
        if (end < 0)
                return sl_error_set(error, EIO, "external data \"%s\": %s", location, strerror(errno));
        copy = strdup(location);
        if (!copy)
                return sl_error_set(error, ENOMEM, "external data \"%s\": no memory for its name", location);
        files->location = sl_take(copy);
        files->fd = sl_take_fd(&fd);
        files->bytes = (uint64_t)end;
        return 0;
}

int sl_external_map(struct sl_external_files *files, const char *location, uint64_t offset, uint64_t n_bytes,
        struct sl_external_region *ret_region, struct sl_error *error)
{
        uint64_t start = offset & ~(uint64_t)(SL_PAGE_BYTES - 1);
        int result = open_file(files, location, error);

        if (result < 0)
                return result;
        if (!sl_range_inside(offset, n_bytes, files->bytes))
                return sl_error_set(error, EBADMSG,
                        "external data \"%s\" has %" PRIu64 " bytes, offset %" PRIu64 " and length %" PRIu64 " reach beyond them",
                        location, files->bytes, offset, n_bytes);
        if (!n_bytes) {
                *ret_region = (struct sl_external_region){0};
                return 0;
        }
        size_t bytes = (size_t)(offset - start + n_bytes);
        void *mapping = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, files->fd, (off_t)start);

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

/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain_of_path(const char *path, int e, struct sl_error *error)
{
        return sl_error_set(error, e, "%s: %s", path, strerrordesc_np(e));
}

/* All of its room is taken at once. */
static int make_part(struct offline_output *output, const char *path, const struct offline_shape *shape, struct sl_error *error)
{
        char header[512];
        size_t length = offline_header(shape, header, sizeof(header));
        uint64_t bytes = length + output->row_bytes * shape->dims[0];
        int e;

        output->fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (output->fd < 0)
                return complain_of_path(path, errno, error);
        output->begin = length;
        e = posix_fallocate(output->fd, 0, (off_t)bytes);
        if (e == 0 && pwrite(output->fd, header, length, 0) != (ssize_t)length)
                e = errno;
        if (!e)
                return 0;
        unlink(path);
        offline_output_close(output);
        return sl_error_set(error, e, "%s: there is no room for its %" PRIu64 " bytes: %s", path, bytes, strerrordesc_np(e));
}

int offline_output_make(const struct offline_job *job, const struct offline_shape *shape, struct sl_error *error)
{
        struct offline_output output = {.fd = -1, .row_bytes = offline_sample_bytes(shape)};
        char path[PATH_MAX + 32];
        int r;

        offline_job_part(job, path);
        r = make_part(&output, path, shape, error);
        offline_output_close(&output);
        return r;
}

int offline_output_open(const struct offline_job *job, struct offline_output *ret_output, struct sl_error *error)
{
        char path[PATH_MAX + 32];
        int r;

        offline_job_part(job, path);
        ret_output->fd = open(path, O_RDWR | O_CLOEXEC);
        if (ret_output->fd < 0)
                return complain_of_path(path, errno, error);
        r = offline_header_read(ret_output->fd, path, &ret_output->shape, &ret_output->begin, error);
        ret_output->row_bytes = r < 0 ? 0 : offline_sample_bytes(&ret_output->shape);
        return r;
}

void offline_output_close(struct offline_output *output)
{
        if (output->fd >= 0)
                close(output->fd);
        output->fd = -1;
}

int offline_output_write(
        const struct offline_output *output, uint64_t first, uint32_t samples, const void *from, struct sl_error *error)
{
        uint64_t bytes = samples * output->row_bytes;

        errno = EIO;
        if (pwrite(output->fd, from, bytes, (off_t)(output->begin + first * output->row_bytes)) == (ssize_t)bytes)
                return 0;
        return sl_error_set(error, errno, "the output of sample %" PRIu64 ": %s", first, strerrordesc_np(errno));
}

int offline_output_publish(const struct offline_job *job, const struct offline_output *output, struct sl_error *error)
{
        const struct offline_description *d = &job->description;
        char path[PATH_MAX + 32];

        offline_job_part(job, path);
        if (fsync(output->fd) < 0 || renameat2(AT_FDCWD, path, AT_FDCWD, d->output, d->replaces ? 0 : RENAME_NOREPLACE) < 0)
                return complain_of_path(d->output, errno, error);
        return 0;
}

bool offline_output_is_published(const struct offline_job *job)
{
        char path[PATH_MAX + 32];

        offline_job_part(job, path);
        return access(path, F_OK) < 0 && access(job->description.output, F_OK) == 0;
}

void offline_output_remove(const struct offline_job *job)
{
        char path[PATH_MAX + 32];

        offline_job_part(job, path);
        unlink(path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of external data is walked one component at a time with O_NOFOLLOW: the same guarantee as openat2() with RESOLVE_BENEATH
 * and RESOLVE_NO_SYMLINKS, also under filters that deny openat2(). O_NONBLOCK, so that a FIFO cannot make us wait.
 */
#include "model_file.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define COMPONENT_BYTES 256

int sl_model_file_open(const char *path, struct sl_model_file *ret_file, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return sl_error_set(error, errno == ENOENT ? ENOENT : EIO, "%s: %s", path, strerror(errno));
        if (!S_ISREG(status.st_mode))
                return sl_error_set(error, EBADMSG, "%s: not a regular file", path);
        if (!status.st_size)
                return sl_error_set(error, EBADMSG, "%s: the file is empty", path);
        *ret_file = (struct sl_model_file){.path = path, .bytes = (uint64_t)status.st_size, .fd = sl_take_fd(&fd), .folder_fd = -1};
        return 0;
}

/* @context: the file itself. */
static int open_in_folder(void *context, const char *location, int *ret_fd, struct sl_error *error)
{
        const struct sl_model_file *file = context;

        return sl_model_folder_open_file(file->folder_fd, location, ret_fd, error);
}

void sl_model_file_use_folder(struct sl_model_file *file)
{
        if (sl_model_folder_open(file->path, &file->folder_fd) < 0)
                return;
        file->open_external = open_in_folder;
        file->context = file;
}

void sl_model_file_close(struct sl_model_file *file)
{
        sl_cleanup_fd(&file->fd);
        sl_cleanup_fd(&file->folder_fd);
}

int sl_model_folder_open(const char *path, int *ret_fd)
{
        const char *slash = strrchr(path, '/');
        SL_CLEANUP(sl_cleanup_free) char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

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

int sl_model_folder_open_file(int folder_fd, const char *location, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct stat status;
        int result = open_beneath(folder_fd, location, &fd, error);

        if (result < 0)
                return result;
        if (fstat(fd, &status) < 0)
                return sl_error_set(error, EIO, "external data \"%s\": %s", location, strerror(errno));
        if (!S_ISREG(status.st_mode))
                return sl_error_set(error, EACCES, "external data \"%s\" is no regular file", location);
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

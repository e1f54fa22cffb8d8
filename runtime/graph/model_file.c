/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of external data is walked one component at a time with O_NOFOLLOW: the same guarantee as openat2() with RESOLVE_BENEATH
 * and RESOLVE_NO_SYMLINKS, also under filters that deny openat2(). O_NONBLOCK, so that a FIFO cannot make us wait.
 *
 * Where the file itself is a link, what is behind it is found without being opened (O_PATH), so that nothing happens to a device or
 * a pipe. The kernel says where that file lies; what was found is then opened, by its descriptor, and not what the links say by
 * now.
 */
#include "model_file.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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
        *ret_file = (struct sl_model_file){.path = path, .bytes = (uint64_t)status.st_size, .fd = sl_take_fd(&fd), .folder.fd = -1};
        return 0;
}

/* @context: the file itself. */
static int open_in_folder(void *context, const char *location, int *ret_fd, struct sl_error *error)
{
        const struct sl_model_file *file = context;

        return sl_model_folder_open_file(&file->folder, location, ret_fd, error);
}

void sl_model_file_use_folder(struct sl_model_file *file, const struct sl_data_folders *others)
{
        if (sl_model_folder_open(file->path, others, &file->folder) < 0)
                return;
        file->open_external = open_in_folder;
        file->context = file;
}

void sl_model_file_close(struct sl_model_file *file)
{
        sl_cleanup_fd(&file->fd);
        sl_model_folder_close(&file->folder);
}

/* Where the file at @path really lies, links and all. */
static char *home_of(const char *path)
{
        char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;

        if (slash)
                *(slash == real ? slash + 1 : slash) = 0;
        return real;
}

static int find_others(const struct sl_data_folders *others, struct sl_model_folder *folder)
{
        folder->others = calloc(others->n + 1u, sizeof(*folder->others));
        if (!folder->others)
                return -ENOMEM;
        for (uint32_t i = 0; i < others->n; i++) {
                char *real = realpath(others->paths[i], NULL);

                if (real)
                        folder->others[folder->n_others++] = real;
        }
        return 0;
}

int sl_model_folder_open(const char *path, const struct sl_data_folders *others, struct sl_model_folder *ret_folder)
{
        struct sl_model_folder opened = {.fd = -1};
        const char *slash = strrchr(path, '/');
        SL_CLEANUP(sl_cleanup_free) char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (fd < 0)
                return -errno;
        opened.fd = fd;
        if (others && find_others(others, &opened) < 0) {
                close(fd);
                return -ENOMEM;
        }
        opened.home = home_of(path);
        *ret_folder = opened;
        return 0;
}

void sl_model_folder_close(struct sl_model_folder *folder)
{
        sl_cleanup_fd(&folder->fd);
        for (uint32_t i = 0; i < folder->n_others; i++)
                free(folder->others[i]);
        free(folder->others);
        free(folder->home);
        folder->home = NULL;
        folder->others = NULL;
        folder->n_others = 0;
}

static int outside(const char *location, struct sl_error *error)
{
        return sl_error_set(
                error, EACCES, "external data \"%s\" leads outside the model's folder or over a link that does", location);
}

/* Cuts the first component off *path, behind any "./". -EACCES for one that is empty, "." or "..". */
static int next_component(const char **path, char component[COMPONENT_BYTES], bool *ret_last)
{
        size_t length;

        while (!strncmp(*path, "./", 2))
                *path += 2;
        length = strcspn(*path, "/");
        if (!length || length >= COMPONENT_BYTES)
                return -EACCES;
        memcpy(component, *path, length);
        component[length] = 0;
        *ret_last = (*path)[length] == 0;
        *path += length + !*ret_last;
        return !strcmp(component, ".") || !strcmp(component, "..") ? -EACCES : 0;
}

/* One component of the path. -ELOOP without a text: it is a link. */
static int open_component(
        int folder_fd, const char *location, const char *component, int flags, int *ret_fd, struct sl_error *error)
{
        int fd = openat(folder_fd, component, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags);

        if (fd < 0 && errno == ELOOP)
                return -ELOOP;
        if (fd < 0 && errno == ENOTDIR)
                return outside(location, error);
        if (fd < 0)
                return sl_error_set(error, errno == ENOENT ? ENOENT : EIO, "external data \"%s\": %s", location, strerror(errno));
        *ret_fd = fd;
        return 0;
}

/* The folder in which the last component lies, over no link; -1: the model's own. */
static int open_parent(int folder_fd, const char *location, int *ret_fd, char ret_last[COMPONENT_BYTES], struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int folder = -1;
        const char *path = location;
        bool last = false;

        for (;;) {
                int fd, result;

                if (next_component(&path, ret_last, &last) < 0)
                        return outside(location, error);
                if (last)
                        break;
                result = open_component(folder < 0 ? folder_fd : folder, location, ret_last, O_DIRECTORY, &fd, error);
                if (result < 0)
                        return result == -ELOOP ? outside(location, error) : result;
                sl_cleanup_fd(&folder);
                folder = fd;
        }
        *ret_fd = sl_take_fd(&folder);
        return 0;
}

static bool lies_in(const char *path, const char *folder)
{
        size_t length = strlen(folder);

        return !strncmp(path, folder, length) && (path[length] == '/' || (length == 1 && path[1]));
}

static bool may_lie(const char *path, const struct sl_model_folder *folder)
{
        bool may = folder->home && lies_in(path, folder->home);

        for (uint32_t i = 0; i < folder->n_others && !may; i++)
                may = lies_in(path, folder->others[i]);
        return may;
}

/* The file that the link leads to now, if it lies where links may lead; only found, not opened. */
static int find_behind(int parent_fd, const char *link, const struct sl_model_folder *folder, const char *location, int *ret_fd,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = openat(parent_fd, link, O_PATH | O_CLOEXEC);
        char proc[40], real[PATH_MAX];
        ssize_t n;

        if (fd < 0 && errno != ENOENT)
                return outside(location, error);
        if (fd < 0)
                return sl_error_set(error, ENOENT, "external data \"%s\": %s", location, strerror(ENOENT));
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
        n = readlink(proc, real, sizeof(real) - 1);
        if (n <= 0)
                return outside(location, error);
        real[n] = 0;
        if (!may_lie(real, folder))
                return outside(location, error);
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

static int check_regular(int fd, const char *location, struct sl_error *error)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return sl_error_set(error, EIO, "external data \"%s\": %s", location, strerror(errno));
        if (!S_ISREG(status.st_mode))
                return sl_error_set(error, EACCES, "external data \"%s\" is no regular file", location);
        return 0;
}

static int open_behind(int parent_fd, const char *link, const struct sl_model_folder *folder, const char *location, int *ret_fd,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int found = -1;
        char proc[40];
        int result = find_behind(parent_fd, link, folder, location, &found, error);

        if (result == 0)
                result = check_regular(found, location, error);
        if (result < 0)
                return result;
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", found);
        *ret_fd = open(proc, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return *ret_fd < 0 ? sl_error_set(error, EIO, "external data \"%s\": %s", location, strerror(errno)) : 0;
}

int sl_model_folder_open_file(const struct sl_model_folder *folder, const char *location, int *ret_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int parent = -1;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char last[COMPONENT_BYTES];
        int result = open_parent(folder->fd, location, &parent, last, error), parent_fd = parent < 0 ? folder->fd : parent;

        if (result == 0)
                result = open_component(parent_fd, location, last, 0, &fd, error);
        if (result == -ELOOP)
                result = open_behind(parent_fd, last, folder, location, &fd, error);
        if (result == 0)
                result = check_regular(fd, location, error);
        if (result < 0)
                return result;
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3-128 for both: it is no shield against somebody who makes collisions, and need not be: whoever can write model files can have
 * any model served anyway, and nobody else can write into the cache (plan_cache.c looks at its owner).
 */
#include "model_digest.h"

#include "base/cleanup.h"
#include "stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxh_x86dispatch.h>

#define CHUNK_BYTES (1u << 20)
#define FILES_MAX   4096
#define DEPTH_MAX   8

/* Every tensor with external data has an entry with this key. */
static const char external_key[] = "location";

struct walk {
        bool contents;              /* else what the file system says */
        const struct sl_stop *stop; /* of reading */
        uint64_t bytes;             /* of all files */
        struct sl_digest sum;
        uint32_t n_files;
        int64_t changed; /* seconds of the latest change */
};

/* A sum, so that the order in which a folder lists its files does not matter. */
static void digest_add(struct walk *walk, XXH128_hash_t hash)
{
        walk->sum.low += hash.low64;
        walk->sum.high += hash.high64 ^ hash.low64 * 0x9e3779b97f4a7c15u;
}

static void add_status(struct walk *walk, const char *name, const struct stat *status)
{
        const uint64_t numbers[] = {status->st_dev, status->st_ino, (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
                (uint64_t)status->st_mtim.tv_nsec, (uint64_t)status->st_ctim.tv_sec, (uint64_t)status->st_ctim.tv_nsec};

        digest_add(walk, XXH3_128bits_withSeed(numbers, sizeof(numbers), XXH3_64bits(name, strlen(name))));
        if (status->st_ctim.tv_sec > walk->changed)
                walk->changed = status->st_ctim.tv_sec;
}

/* Whether the key stands anywhere in what was read; @tail keeps the end of the chunk before. */
static bool finds_key(const char *chunk, size_t n, char tail[2 * sizeof(external_key)])
{
        const size_t key = sizeof(external_key) - 1;
        size_t kept = strlen(tail), head = n < key ? n : key;
        bool found;

        memcpy(tail + kept, chunk, head);
        found = memmem(tail, kept + head, external_key, key) || memmem(chunk, n, external_key, key);
        kept = n < key - 1 ? n : key - 1;
        memcpy(tail, chunk + n - kept, kept);
        tail[kept] = 0;
        return found;
}

/* Of a file that grows meanwhile no more than it had. @ret_found NULL: nothing is looked for. */
static int hash_stream(int fd, uint64_t bytes, const struct sl_stop *stop, XXH3_state_t *state, char *chunk, bool *ret_found)
{
        char tail[2 * sizeof(external_key)] = "";
        ssize_t n;
        int r;

        while ((r = sl_stop_look(stop)) == 0 && bytes) {
                n = read(fd, chunk, bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                bytes -= (uint64_t)n;
                XXH3_128bits_update(state, chunk, (size_t)n);
                if (ret_found && !*ret_found)
                        *ret_found = finds_key(chunk, (size_t)n, tail);
        }
        return r;
}

static int add_content(struct walk *walk, int fd, uint64_t bytes, const char *name, bool *ret_found)
{
        SL_CLEANUP(sl_cleanup_free) char *chunk = malloc(CHUNK_BYTES);
        XXH3_state_t *state = XXH3_createState();
        int r = chunk && state ? 0 : -ENOMEM;

        if (r == 0) {
                XXH3_128bits_reset_withSeed(state, XXH3_64bits(name, strlen(name)));
                r = hash_stream(fd, bytes, walk->stop, state, chunk, ret_found);
        }
        if (r == 0)
                digest_add(walk, XXH3_128bits_digest(state));
        XXH3_freeState(state);
        return r;
}

static int add_file(struct walk *walk, int folder_fd, const char *entry, const char *name, bool *ret_found)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = openat(folder_fd, entry, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EINVAL;
        if (++walk->n_files > FILES_MAX)
                return -E2BIG;
        walk->bytes += (uint64_t)status.st_size;
        if (walk->contents)
                return add_content(walk, fd, (uint64_t)status.st_size, name, ret_found);
        add_status(walk, name, &status);
        return 0;
}

static int add_folder(struct walk *walk, int folder_fd, const char *prefix, uint32_t depth);

/* A link is what it says, and the file that it leads to, where that can be read; into a folder behind it no model comes. */
static int add_link(struct walk *walk, int folder_fd, const char *entry, const char *name)
{
        char target[PATH_MAX];
        ssize_t n = readlinkat(folder_fd, entry, target, sizeof(target));
        struct stat status;
        int r;

        if (n < 0)
                return -errno;
        digest_add(walk, XXH3_128bits_withSeed(target, (size_t)n, XXH3_64bits(name, strlen(name))));
        if (fstatat(folder_fd, entry, &status, 0) < 0 || !S_ISREG(status.st_mode))
                return 0;
        r = add_file(walk, folder_fd, entry, name, NULL);
        return r == -EACCES ? 0 : r;
}

static int add_entry(struct walk *walk, int folder_fd, const struct dirent *entry, const char *prefix, uint32_t depth)
{
        char name[PATH_MAX];
        struct stat status;
        int fd;

        if (entry->d_name[0] == '.' && (!entry->d_name[1] || !strcmp(entry->d_name, "..")))
                return 0;
        if (snprintf(name, sizeof(name), "%s/%s", prefix, entry->d_name) >= (int)sizeof(name))
                return -ENAMETOOLONG;
        if (fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISREG(status.st_mode))
                return add_file(walk, folder_fd, entry->d_name, name, NULL);
        if (S_ISLNK(status.st_mode))
                return add_link(walk, folder_fd, entry->d_name, name);
        if (!S_ISDIR(status.st_mode))
                return 0;
        fd = openat(folder_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : add_folder(walk, fd, name, depth + 1);
}

/* Takes the descriptor over. */
static int add_folder(struct walk *walk, int folder_fd, const char *prefix, uint32_t depth)
{
        DIR *folder = depth > DEPTH_MAX ? NULL : fdopendir(folder_fd);
        const struct dirent *entry;
        int r = 0;

        if (!folder) {
                r = depth > DEPTH_MAX ? -E2BIG : -errno;
                close(folder_fd);
                return r;
        }
        while (r == 0 && (errno = 0, entry = readdir(folder)))
                r = add_entry(walk, dirfd(folder), entry, prefix, depth);
        if (r == 0 && !entry && errno)
                r = -errno;
        closedir(folder);
        return r;
}

static int add_siblings(struct walk *walk, const char *path)
{
        char folder[PATH_MAX];
        const char *slash = strrchr(path, '/');
        int fd;

        if (slash == path)
                snprintf(folder, sizeof(folder), "/");
        else if (!slash)
                snprintf(folder, sizeof(folder), ".");
        else if (snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path) >= (int)sizeof(folder))
                return -ENAMETOOLONG;
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : add_folder(walk, fd, "", 0);
}

int sl_model_identify(const char *path, bool folder, struct sl_digest *ret_identity, int64_t *ret_changed)
{
        struct walk walk = {.contents = false};
        int r = add_file(&walk, AT_FDCWD, path, path, NULL);

        if (r == 0 && folder)
                r = add_siblings(&walk, path);
        if (r < 0)
                return r;
        *ret_identity = walk.sum;
        *ret_changed = walk.changed;
        return 0;
}

bool sl_model_is_still(const char *path, const struct sl_model_identity *identity)
{
        struct sl_digest now;
        int64_t changed;

        return !identity->known || (sl_model_identify(path, identity->folder, &now, &changed) == 0 &&
                                           now.low == identity->digest.low && now.high == identity->digest.high);
}

/* What nobody would compile is not read: a sparse file costs its owner nothing, and its reader days. */
static int check_size(const char *path, uint64_t bytes_max)
{
        struct stat status;

        if (stat(path, &status) < 0)
                return -errno;
        return (uint64_t)status.st_size > bytes_max ? -EFBIG : 0;
}

static int add_folder_content(struct walk *walk, const char *path, uint64_t bytes_max, struct sl_model_content *content)
{
        struct walk sizes = {.contents = false};
        int r = add_siblings(&sizes, path);

        if (r < 0)
                return r;
        content->by_status = sizes.bytes > bytes_max;
        if (!content->by_status)
                return add_siblings(walk, path);
        walk->sum.low += sizes.sum.low;
        walk->sum.high += sizes.sum.high;
        return 0;
}

int sl_model_digest(const char *path, uint64_t bytes_max, const struct sl_stop *stop, struct sl_model_content *ret_content)
{
        struct walk walk = {.contents = true, .stop = stop};
        struct sl_model_content content = {.by_status = false};
        int r = check_size(path, bytes_max);

        if (r == 0)
                r = add_file(&walk, AT_FDCWD, path, "", &content.folder);
        if (r == 0 && content.folder)
                r = add_folder_content(&walk, path, bytes_max, &content);
        if (r < 0)
                return r;
        content.digest = walk.sum;
        *ret_content = content;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_folder.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/share.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX       65536u
#define WRITERS         (S_IWGRP | S_IWOTH)
#define OWNER_ONLY      0600
#define PAGE_BYTES      4096u
#define KEY_DIGITS      32u
#define UID_DIGITS      10u
#define PASSWD_BYTES    4096u
#define ABANDONED_AFTER 3600 /* seconds: who wrote it is dead */

static bool is_ours_alone(const struct stat *status)
{
        return status->st_uid == geteuid() && !(status->st_mode & WRITERS);
}

/* ---- which folder ---- */

static bool is_own_folder(const char *path)
{
        struct stat status;

        return path && path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* $HOME may be that of the user who was before sudo. */
static int find_home(char ret_home[PATH_MAX], struct sl_error *error)
{
        const char *home = getenv("HOME");
        char bytes[PASSWD_BYTES];
        struct passwd entry, *found = NULL;

        if (!is_own_folder(home) && getpwuid_r(geteuid(), &entry, bytes, sizeof(bytes), &found) == 0 && found)
                home = found->pw_dir;
        if (!is_own_folder(home))
                return sl_error_set(error, ENOENT, "user %u has no home folder, and $XDG_CACHE_HOME is not set", geteuid());
        return snprintf(ret_home, PATH_MAX, "%s", home) < PATH_MAX ? 0
                                                                   : sl_error_set(error, ENAMETOOLONG, "\"%s\": too long", home);
}

int sl_cache_folder_default(char ret_path[PATH_MAX], struct sl_error *error)
{
        const char *base = getenv("XDG_CACHE_HOME");
        char home[PATH_MAX], above[PATH_MAX];
        bool given = base && base[0] == '/';
        int r = given ? 0 : find_home(home, error);

        if (r < 0)
                return r;
        if (snprintf(above, sizeof(above), "%s%s", given ? base : home, given ? "" : "/.cache") >= PATH_MAX ||
                snprintf(ret_path, PATH_MAX, "%s/starling", above) >= PATH_MAX)
                return sl_error_set(error, ENAMETOOLONG, "cache folder below \"%s\": the path is too long", given ? base : home);
        return 0;
}

static bool is_default(const char *path)
{
        char usual[PATH_MAX];

        return sl_cache_folder_default(usual, NULL) == 0 && strcmp(path, usual) == 0;
}

/* Another process may have been faster. */
static int make_one(const char *path)
{
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* With the one above, ~/.cache, of the default one. */
static int make_folder(const char *path)
{
        char above[PATH_MAX];
        int r = make_one(path);

        if (r != -ENOENT || !is_default(path))
                return r;
        snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
        r = make_one(above);
        return r < 0 ? r : make_one(path);
}

int sl_cache_folder_open(const char *path, bool make, int *ret_folder, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct stat status;
        int r = make ? make_folder(path) : 0;

        if (r < 0)
                return sl_error_set(error, -r, "cache folder \"%s\": %s", path, strerror(-r));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return sl_error_set(error, errno, "cache folder \"%s\": %s", path, strerror(errno));
        if (!is_ours_alone(&status))
                return sl_error_set(error, EPERM,
                        "cache folder \"%s\": it belongs to user %u with mode %o, others could write to it", path, status.st_uid,
                        status.st_mode & 07777u);
        *ret_folder = sl_take_fd(&fd);
        return 0;
}

/* ---- what is in it ---- */

int sl_cache_folder_find(int folder, const char *name, int *ret_fd)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || !is_ours_alone(&status) || status.st_nlink > 1)
                return -EPERM;
        *ret_fd = sl_take_fd(&fd);
        return 0;
}

/* Takes ".UID" off @rest. Return: false when no such thing is there. */
static bool read_uid(const char **rest, uint32_t *ret_uid)
{
        size_t digits = **rest == '.' ? strspn(*rest + 1, "0123456789") : 0;

        if (!digits || digits > UID_DIGITS)
                return false;
        *ret_uid = (uint32_t)strtoull(*rest + 1, NULL, 10);
        *rest += 1 + digits;
        return true;
}

static bool read_kind(const char *suffix, enum sl_cache_file_kind *ret_kind)
{
        static const char *const suffixes[] = {[SL_CACHE_PLAN] = ".plan",
                [SL_CACHE_RECORD] = ".intact",
                [SL_CACHE_BASE] = ".base",
                [SL_CACHE_MODEL] = ".model",
                [SL_CACHE_CORE] = ".core",
                [SL_CACHE_ALLOCATION] = ".allocation",
                [SL_CACHE_FUSE] = ".fuse",
                [SL_CACHE_CHOICES] = ".choices"};

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
                if (!strcmp(suffix, suffixes[i])) {
                        *ret_kind = (enum sl_cache_file_kind)i;
                        return true;
                }
        return false;
}

/* Return: true for a name that we give. */
static bool read_name(const char *name, struct sl_cache_file *ret_file)
{
        const char *rest = name + KEY_DIGITS;

        *ret_file = (struct sl_cache_file){.kind = SL_CACHE_UNDER_WAY};
        if (strlen(name) >= sizeof(ret_file->name))
                return false;
        strcpy(ret_file->name, name);
        if (!strncmp(name, "new.", 4))
                return name[4] && strspn(name + 4, "0123456789abcdef.") == strlen(name + 4);
        if (strspn(name, "0123456789abcdef") != KEY_DIGITS)
                return false;
        ret_file->asked = read_uid(&rest, &ret_file->uid);
        return read_kind(rest, &ret_file->kind) && (!ret_file->asked || ret_file->kind == SL_CACHE_PLAN ||
                                                           ret_file->kind == SL_CACHE_RECORD || ret_file->kind == SL_CACHE_CHOICES);
}

static DIR *read_folder(int folder)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *stream = fd < 0 ? NULL : fdopendir(fd);

        if (!stream && fd >= 0)
                close(fd);
        return stream;
}

int sl_cache_folder_plan(int folder, const char *name, char ret_name[SL_CACHE_NAME_BYTES])
{
        struct sl_cache_file file;
        struct stat status;
        DIR *stream;
        int r = -ENOENT;

        snprintf(ret_name, SL_CACHE_NAME_BYTES, "%s", name);
        if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
                return 0;
        stream = read_folder(folder);
        if (!stream)
                return -errno;
        for (const struct dirent *found; r < 0 && (found = readdir(stream));)
                if (!strncmp(found->d_name, name, KEY_DIGITS) && read_name(found->d_name, &file) && file.kind == SL_CACHE_PLAN) {
                        memcpy(ret_name, file.name, SL_CACHE_NAME_BYTES);
                        r = 0;
                }
        closedir(stream);
        return r;
}

/* Return: 0 and its name, -errno. */
static int create_under_way(int folder, char ret_name[SL_CACHE_NAME_BYTES], int *ret_fd)
{
        uint64_t number;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                return -errno;
        snprintf(ret_name, SL_CACHE_NAME_BYTES, "new.%016llx", (unsigned long long)number);
        *ret_fd = openat(folder, ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, OWNER_ONLY);
        return *ret_fd < 0 ? -errno : 0;
}

int sl_cache_folder_put(int folder, const char *name, int (*write_to)(int fd, void *context), void *context, int *ret_fd)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        char under_way[SL_CACHE_NAME_BYTES];
        int r = create_under_way(folder, under_way, &fd);

        if (r < 0)
                return r;
        r = write_to(fd, context);
        if (r == 0 && renameat(folder, under_way, folder, name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(folder, under_way, 0);
        else
                *ret_fd = sl_take_fd(&fd);
        return r;
}

void sl_cache_folder_record(const char *plan, char ret_name[SL_CACHE_NAME_BYTES])
{
        snprintf(ret_name, SL_CACHE_NAME_BYTES, "%.*s.intact", (int)(strlen(plan) - strlen(".plan")), plan);
}

static bool is_later(struct timespec a, struct timespec b)
{
        return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static uint64_t whole_pages(off_t bytes)
{
        return ((uint64_t)bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void add_record(int folder, struct sl_cache_file *plan)
{
        char record[SL_CACHE_NAME_BYTES];
        struct stat status;

        sl_cache_folder_record(plan->name, record);
        if (fstatat(folder, record, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
                return;
        plan->bytes += whole_pages(status.st_size);
        if (is_later(status.st_mtim, plan->used))
                plan->used = status.st_mtim;
}

static bool has_plan(int folder, const struct sl_cache_file *record)
{
        char plan[SL_CACHE_NAME_BYTES];
        struct stat status;

        snprintf(plan, sizeof(plan), "%.*s.plan", (int)(strlen(record->name) - strlen(".intact")), record->name);
        return fstatat(folder, plan, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Return: true for a file of ours that counts by itself. */
static bool examine(int folder, const char *name, struct sl_cache_file *ret_file)
{
        struct stat status;

        if (!read_name(name, ret_file) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
                return false;
        ret_file->bytes = whole_pages(status.st_size);
        ret_file->used = status.st_mtim;
        if (ret_file->kind == SL_CACHE_PLAN)
                add_record(folder, ret_file);
        return ret_file->kind != SL_CACHE_RECORD || !has_plan(folder, ret_file);
}

static int oldest_first(const void *a, const void *b)
{
        const struct sl_cache_file *left = a, *right = b;

        return is_later(left->used, right->used) - is_later(right->used, left->used);
}

int sl_cache_folder_list(int folder, struct sl_cache_file **ret_files, uint32_t *ret_n)
{
        DIR *stream = read_folder(folder);
        struct sl_cache_file *files = NULL;
        uint32_t n = 0, room = 0;

        if (!stream)
                return -errno;
        for (const struct dirent *found; (found = readdir(stream)) && n < FILES_MAX;) {
                struct sl_cache_file file;

                if (!examine(folder, found->d_name, &file))
                        continue;
                if (n == room) {
                        struct sl_cache_file *grown = reallocarray(files, room = room * 2 + 64, sizeof(*grown));

                        if (!grown) {
                                free(files);
                                closedir(stream);
                                return -ENOMEM;
                        }
                        files = grown;
                }
                files[n++] = file;
        }
        closedir(stream);
        if (n)
                qsort(files, n, sizeof(*files), oldest_first);
        *ret_files = files;
        *ret_n = n;
        return 0;
}

/* ---- what goes ---- */

static bool same_owner(const struct sl_cache_file *a, const struct sl_cache_file *b)
{
        return a->asked == b->asked && (!a->asked || a->uid == b->uid);
}

/* What its owner has; 0 when an earlier file is of the same one. */
static uint64_t bytes_of_owner(const struct sl_cache_file *files, uint32_t n, uint32_t of)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (!same_owner(&files[i], &files[of]))
                        continue;
                if (i < of)
                        return 0;
                bytes += files[i].bytes;
        }
        return bytes;
}

/* A file of the owner with most: as all together have more than there is, that one has more than its share. */
static uint32_t find_most(const struct sl_cache_file *files, uint32_t n, uint64_t *ret_bytes, uint32_t *ret_owners)
{
        uint32_t most = 0;

        *ret_bytes = 0;
        *ret_owners = 0;
        for (uint32_t i = 0; i < n; i++) {
                uint64_t bytes = bytes_of_owner(files, n, i);

                *ret_owners += bytes > 0;
                if (bytes > *ret_bytes) {
                        *ret_bytes = bytes;
                        most = i;
                }
        }
        return most;
}

/* What is under way is somebody's who lives, unless it is old. */
static bool may_go(const struct sl_cache_file *file)
{
        return file->kind != SL_CACHE_UNDER_WAY || file->used.tv_sec < time(NULL) - ABANDONED_AFTER;
}

/* Whoever shares the folder may have been faster. */
int sl_cache_folder_remove(int folder, const char *name)
{
        struct sl_cache_file file;
        char record[SL_CACHE_NAME_BYTES];

        if (read_name(name, &file) && file.kind == SL_CACHE_PLAN) {
                sl_cache_folder_record(name, record);
                unlinkat(folder, record, 0);
        }
        return unlinkat(folder, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes what this owner used longest ago. Return: bytes that are free now; 0: it has nothing that may go. */
static uint64_t remove_oldest(int folder, struct sl_cache_file *files, uint32_t *n, const struct sl_cache_file *owner)
{
        for (uint32_t i = 0; i < *n; i++) {
                uint64_t bytes = files[i].bytes;

                if (!same_owner(&files[i], owner) || !may_go(&files[i]) || sl_cache_folder_remove(folder, files[i].name) < 0)
                        continue;
                memmove(&files[i], &files[i + 1], (--*n - i) * sizeof(*files));
                return bytes;
        }
        return 0;
}

/* From the owner with most, as far as its share. Return: bytes that are free now. */
static uint64_t take_from_most(int folder, struct sl_cache_file *files, uint32_t *n, uint64_t bytes_max, uint64_t too_many)
{
        uint64_t has, gone = 1, freed = 0;
        uint32_t owners, most = find_most(files, *n, &has, &owners);
        const struct sl_cache_file owner = files[most];

        while (gone && freed < too_many && has - freed > sl_share_each(bytes_max, owners)) {
                gone = remove_oldest(folder, files, n, &owner);
                freed += gone;
        }
        return freed;
}

uint64_t sl_cache_folder_make_room(int folder, uint64_t bytes_max)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_cache_file *files = NULL;
        uint64_t bytes = 0, freed = 1;
        uint32_t n = 0;

        if (sl_cache_folder_list(folder, &files, &n) < 0)
                return 0;
        for (uint32_t i = 0; i < n; i++)
                bytes += files[i].bytes;
        while (bytes > bytes_max && freed) {
                freed = take_from_most(folder, files, &n, bytes_max, bytes - bytes_max);
                bytes -= freed;
        }
        return bytes < bytes_max ? bytes_max - bytes : 0;
}

int sl_cache_folder_clear(int folder, uint32_t *ret_n, uint64_t *ret_bytes)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_cache_file *files = NULL;
        uint32_t n = 0;
        int r = sl_cache_folder_list(folder, &files, &n);

        *ret_n = 0;
        *ret_bytes = 0;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                if (!may_go(&files[i]))
                        continue;
                r = sl_cache_folder_remove(folder, files[i].name);
                *ret_n += r == 0;
                *ret_bytes += r == 0 ? files[i].bytes : 0;
        }
        return r;
}

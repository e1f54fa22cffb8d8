/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the stats page. The file is read and not mapped: whoever owns it may cut it off at any time, and a reader of
 * a mapping would end by SIGBUS. The header is copied and checked once; afterwards only the checked copy is believed, so that a
 * damaged page shows wrong numbers and never another place.
 */
#include "attach.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "seqlock.h"
#include "stats.h"
#include "stats_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAX      (4ull << 30)
#define SLOT_BYTES_MAX 2176u

#define SOCKET_PATH_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

static_assert(
        sizeof(struct sl_model_stats) <= SLOT_BYTES_MAX && sizeof(struct sl_worker_stats) <= SLOT_BYTES_MAX, "the longest slots");

/* Texts in slots: whoever wrote the page, they end. */
static const struct slot_text {
        enum sl_stats_section section;
        uint32_t offset, bytes;
} slot_texts[] = {
#define TEXT(section, type, field)                                                                                                 \
        {                                                                                                                          \
                SL_STATS_##section, offsetof(type, field), sizeof(((type *)NULL)->field)                                           \
        }
        TEXT(MODELS, struct sl_model_stats, name),
        TEXT(MODELS, struct sl_model_stats, why),
        TEXT(MODELS, struct sl_model_stats, origin),
        TEXT(MODELS, struct sl_model_stats, awaits),
        TEXT(MODELS, struct sl_model_stats, step),
        TEXT(MODELS, struct sl_model_stats, cause),
        TEXT(CLIENTS, struct sl_client_stats, label),
        TEXT(WORKERS, struct sl_worker_stats, model),
        TEXT(WORKERS, struct sl_worker_stats, executor),
        TEXT(WORKERS, struct sl_worker_stats, why),
        TEXT(QUEUES, struct sl_queue_stats, model),
        TEXT(LETS, struct sl_let_stats, name),
        TEXT(LETS, struct sl_let_stats, cores),
        TEXT(MEMORY, struct sl_memory_stats, name),
        TEXT(STEPS, struct sl_step_stats, name),
};

struct sl_stats_view {
        int fd;
        uint64_t bytes;
        char *path;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
};

SL_DEFINE_CLEANUP(struct sl_stats_view *, sl_stats_close)

static const size_t slot_bytes[SL_STATS_SECTIONS_N] = {
#define X(id, type, title) [SL_STATS_##id] = sizeof(type),
        SL_STATS_SECTIONS(X)
#undef X
};

/* Return: 0; -EBADMSG the file ends before that, as it has been cut off; -errno. */
static int read_at(const struct sl_stats_view *view, uint64_t offset, void *to, size_t bytes)
{
        for (size_t done = 0; done < bytes;) {
                ssize_t n = pread(view->fd, (char *)to + done, bytes - done, (off_t)(offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EBADMSG;
                done += (size_t)n;
        }
        return 0;
}

static int open_file(struct sl_stats_view *view, const char *path, struct sl_error *error)
{
        struct stat status;

        view->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (view->fd < 0 || fstat(view->fd, &status) < 0)
                return sl_error_set(error, errno, "stats page \"%s\": %s", path, strerror(errno));
        if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(struct sl_stats_header) ||
                (uint64_t)status.st_size > BYTES_MAX)
                return sl_error_set(error, EBADMSG, "\"%s\" is no stats page", path);
        view->bytes = (uint64_t)status.st_size;
        return 0;
}

static bool is_inside(const struct sl_stats_extent *extent, size_t least_stride, uint64_t bytes)
{
        uint64_t length;

        return extent->stride >= least_stride && extent->stride % SL_LINE_BYTES == 0 && extent->offset % SL_LINE_BYTES == 0 &&
               !sl_mul_overflows(extent->stride, extent->count, &length) && sl_range_inside(extent->offset, length, bytes);
}

static int check_version(const struct sl_stats_header *header, const char *path, struct sl_error *error)
{
        if (header->version == SL_STATS_VERSION)
                return 0;
        return sl_error_set(error, EBADMSG,
                "stats page \"%s\" has version %u, wants %u: it is of %s Starling than this program, use the one of its runtime",
                path, header->version, SL_STATS_VERSION, header->version < SL_STATS_VERSION ? "an older" : "a newer");
}

static int copy_sections(struct sl_stats_view *view, const struct sl_stats_header *header, const char *path, struct sl_error *error)
{
        uint64_t n = header->n_sections, bytes = offsetof(struct sl_stats_header, sections) + n * sizeof(header->sections[0]);

        if (bytes > view->bytes || bytes > header->header_bytes)
                return sl_error_set(error, EBADMSG, "stats page \"%s\" is damaged: %" PRIu64 " sections in a header of %u bytes",
                        path, n, header->header_bytes);
        for (uint32_t i = 0; i < n && i < SL_STATS_SECTIONS_N; i++)
                view->sections[i] = header->sections[i];
        return 0;
}

/* Behind the magic number, which its writer stores last. */
static bool read_header(const struct sl_stats_view *view, struct sl_stats_header *ret_header)
{
        uint64_t magic = 0;

        static_assert(offsetof(struct sl_stats_header, magic) == 0 && sizeof(magic) == sizeof(ret_header->magic), "it is first");
        return read_at(view, 0, &magic, sizeof(magic)) == 0 && magic == SL_STATS_MAGIC &&
               read_at(view, 0, ret_header, sizeof(*ret_header)) == 0;
}

static int check_header(struct sl_stats_view *view, const char *path, struct sl_error *error)
{
        struct sl_stats_header header;
        int r;

        if (!read_header(view, &header))
                return sl_error_set(error, EBADMSG, "\"%s\" is no stats page, or not yet one", path);
        r = check_version(&header, path, error);
        if (r == 0)
                r = copy_sections(view, &header, path, error);
        if (r < 0)
                return r;
        for (int i = 0; i < SL_STATS_SECTIONS_N; i++)
                if (view->sections[i].count && !is_inside(&view->sections[i], slot_bytes[i], view->bytes))
                        return sl_error_set(error, EBADMSG,
                                "stats page \"%s\" is damaged: section %d at %" PRIu64 ", %u slots of %u bytes, in %" PRIu64
                                " bytes",
                                path, i, view->sections[i].offset, view->sections[i].count, view->sections[i].stride, view->bytes);
        return 0;
}

static int page_path(const char *name, const char *directory, char *ret_path, size_t bytes, struct sl_error *error)
{
        int n = snprintf(ret_path, bytes, "%s/starling.%s", directory, name);

        if (n < 0 || (size_t)n >= bytes || strchr(name, '/'))
                return sl_error_set(error, EINVAL, "\"%s\" is no name of a runtime", name);
        return 0;
}

int sl_stats_open_file(const char *path, struct sl_stats_view **ret_view, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_stats_close) struct sl_stats_view *view = calloc(1, sizeof(*view));
        int r;

        if (!view)
                return sl_error_set(error, ENOMEM, "stats page \"%s\": no memory", path);
        view->fd = -1;
        view->path = strdup(path);
        if (!view->path)
                return sl_error_set(error, ENOMEM, "stats page \"%s\": no memory", path);
        r = open_file(view, path, error);
        if (r == 0)
                r = check_header(view, path, error);
        if (r < 0)
                return r;
        *ret_view = sl_take(view);
        return 0;
}

static int open_in(const char *name, const char *directory, struct sl_stats_view **ret_view, struct sl_error *error)
{
        char path[512];
        int r = page_path(name, directory, path, sizeof(path), error);

        return r < 0 ? r : sl_stats_open_file(path, ret_view, error);
}

/*
 * Who may have made the page beside root and the caller: whom the socket belongs to, and where there is none, who alone could make
 * one. @ret_folder is "" when there is no such place. Return: false: nobody.
 */
static bool find_owner(const char *name, char ret_folder[SOCKET_PATH_BYTES], uid_t *ret_owner)
{
        struct stat status;
        bool is_socket;

        ret_folder[0] = 0;
        if (sl_socket_find(name, ret_folder, SOCKET_PATH_BYTES) < 0)
                return false;
        is_socket = lstat(ret_folder, &status) == 0 && S_ISSOCK(status.st_mode);
        *strrchr(ret_folder, '/') = 0;
        if (!is_socket && (stat(ret_folder, &status) < 0 || (status.st_mode & (S_IWGRP | S_IWOTH))))
                return false;
        *ret_owner = status.st_uid;
        return true;
}

static bool is_trusted(uid_t owner, const uid_t *runtime)
{
        return owner == 0 || owner == geteuid() || (runtime && owner == *runtime);
}

/* @name: of the page. */
static int open_trusted(
        const char *name, const char *directory, const uid_t *runtime, struct sl_stats_view **ret_view, struct sl_error *error)
{
        struct sl_stats_view *view;
        uint32_t owner;
        int r = open_in(name, directory, &view, error);

        if (r < 0)
                return r;
        owner = sl_stats_owner(view);
        if (is_trusted(owner, runtime)) {
                *ret_view = view;
                return 0;
        }
        r = sl_error_set(
                error, EPERM, "stats page \"%s\" is of user %u, whom no socket of that runtime belongs to", view->path, owner);
        sl_stats_close(view);
        return r;
}

/* @page: the name of a page of runtime @name. That of a living one is preferred. */
static int open_page(const char *name, const char *page, struct sl_stats_view **ret_view, struct sl_error *error)
{
        struct sl_stats_view *view = NULL, *beside;
        char folder[SOCKET_PATH_BYTES];
        struct sl_error other;
        uid_t owner;
        bool owned = find_owner(name, folder, &owner);
        int r = open_trusted(page, SL_STATS_DIRECTORY, owned ? &owner : NULL, &view, error);
        int r_beside = -ENOENT;

        if ((r < 0 || !sl_stats_is_live(view)) && folder[0])
                r_beside = open_trusted(page, folder, owned ? &owner : NULL, &beside, &other);
        if (r_beside == 0) {
                sl_stats_close(view);
                view = beside;
                r = 0;
        } else if (r == -ENOENT && r_beside != -ENOENT) {
                return sl_error_set(error, -r_beside, "%s", other.text);
        }
        if (r == 0)
                *ret_view = view;
        return r;
}

int sl_stats_open(const char *name, const char *directory, struct sl_stats_view **ret_view, struct sl_error *error)
{
        return directory ? open_in(name, directory, ret_view, error) : open_page(name, name, ret_view, error);
}

int sl_stats_open_last(const char *name, struct sl_stats_view **ret_view, struct sl_error *error)
{
        char page[SL_STATS_NAME_BYTES + sizeof(SL_STATS_LAST)];

        if (snprintf(page, sizeof(page), "%s" SL_STATS_LAST, name) >= (int)sizeof(page))
                return sl_error_set(error, EINVAL, "\"%s\" is no name of a runtime", name);
        return open_page(name, page, ret_view, error);
}

/* Whatever version it has. */
bool sl_stats_is_claimed(const char *name, const char *directory)
{
        char path[512];
        bool held;
        int fd;

        if (page_path(name, directory, path, sizeof(path), NULL) < 0)
                return false;
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return false;
        held = sl_claim_is_held(fd);
        close(fd);
        return held;
}

struct sl_stats_view *sl_stats_close(struct sl_stats_view *view)
{
        if (!view)
                return NULL;
        if (view->fd >= 0)
                close(view->fd);
        free(view->path);
        free(view);
        return NULL;
}

void sl_stats_read_header(const struct sl_stats_view *view, struct sl_stats_header *ret_header)
{
        if (read_at(view, 0, ret_header, sizeof(*ret_header)) < 0)
                memset(ret_header, 0, sizeof(*ret_header));
        ret_header->runtime_name[sizeof(ret_header->runtime_name) - 1] = '\0';
        ret_header->wait_name[sizeof(ret_header->wait_name) - 1] = '\0';
        ret_header->release[sizeof(ret_header->release) - 1] = '\0';
}

int sl_stats_check(const struct sl_stats_view *view, struct sl_error *error)
{
        struct stat status;

        if (fstat(view->fd, &status) == 0 && (uint64_t)status.st_size >= view->bytes)
                return 0;
        return sl_error_set(error, EBADMSG, "stats page \"%s\" was cut off while it was read", view->path);
}

bool sl_stats_is_live(const struct sl_stats_view *view)
{
        return sl_claim_is_held(view->fd);
}

uint32_t sl_stats_owner(const struct sl_stats_view *view)
{
        struct stat status;

        return fstat(view->fd, &status) == 0 ? status.st_uid : UINT32_MAX;
}

uint32_t sl_stats_count(const struct sl_stats_view *view, enum sl_stats_section section)
{
        return view->sections[section].count;
}

static void terminate_texts(enum sl_stats_section section, struct sl_stats_slot *slot)
{
        for (size_t i = 0; i < sizeof(slot_texts) / sizeof(slot_texts[0]); i++)
                if (slot_texts[i].section == section)
                        ((char *)slot)[slot_texts[i].offset + slot_texts[i].bytes - 1] = 0;
}

/*
 * As Q2 of seqlock.h, by system calls: the sequence, all of the slot, the sequence again. The kernel copies from the very memory
 * that the writer maps, and this kind of processor keeps loads in order and whole words whole. What was never used is not looked at
 * twice. Return: 0; -EAGAIN: @slot is torn; as read_at().
 */
static int try_copy(const struct sl_stats_view *view, uint64_t offset, struct sl_stats_slot *slot, size_t bytes)
{
        uint32_t before, after;
        int r = read_at(view, offset, slot, bytes);

        if (r == 0 && slot->seq == 0 && slot->used == 0)
                return 0;
        if (r == 0)
                r = read_at(view, offset, &before, sizeof(before));
        if (r == 0)
                r = read_at(view, offset, slot, bytes);
        if (r == 0)
                r = read_at(view, offset, &after, sizeof(after));
        if (r < 0)
                return r;
        return !(before & 1) && before == after ? 0 : -EAGAIN;
}

/* Copies a slot; @tries: as often as it is met in the middle of a change. */
static int copy_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, int tries, struct sl_stats_slot *ret_slot)
{
        const struct sl_stats_extent *extent = &view->sections[section];
        union {
                struct sl_stats_slot slot;
                char bytes[SLOT_BYTES_MAX];
        } copy;
        struct sl_stats_slot *slot = &copy.slot;
        int r = -EAGAIN;

        if (index >= extent->count || slot_bytes[section] > sizeof(copy))
                return -ENOENT;
        for (int i = 0; i < tries && r == -EAGAIN; i++) {
                r = try_copy(view, extent->offset + (uint64_t)index * extent->stride, slot, slot_bytes[section]);
                if (r == -EAGAIN && i % SL_SEQLOCK_SPINS == SL_SEQLOCK_SPINS - 1)
                        nanosleep(&(struct timespec){.tv_nsec = SL_SEQLOCK_PAUSE_NS}, NULL);
        }
        if (r < 0 && r != -EAGAIN)
                return r;
        if (slot->used == 0)
                return r < 0 ? r : -ENOENT;
        memset(slot, 0, offsetof(struct sl_stats_slot, used));
        memcpy(ret_slot, slot, slot_bytes[section]);
        terminate_texts(section, ret_slot);
        return r;
}

int sl_stats_read_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot)
{
        return copy_slot(view, section, index, SL_SEQLOCK_TRIES, ret_slot);
}

int sl_stats_try_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot)
{
        return copy_slot(view, section, index, 1, ret_slot);
}

static int copy_of_set(const struct sl_stats_view *view, uint32_t set, size_t offset, void *to, size_t bytes)
{
        const struct sl_stats_extent *extent = &view->sections[SL_STATS_HISTOGRAMS];

        return set < extent->count ? read_at(view, extent->offset + (uint64_t)set * extent->stride + offset, to, bytes) : -ENOENT;
}

int sl_stats_read_histogram(const struct sl_stats_view *view, uint32_t set, enum sl_stage stage, struct sl_histogram *ret_histogram)
{
        return copy_of_set(view, set, offsetof(struct sl_histogram_set, stages) + stage * sizeof(*ret_histogram), ret_histogram,
                sizeof(*ret_histogram));
}

int sl_stats_read_histograms(const struct sl_stats_view *view, uint32_t set, struct sl_histogram_set *ret_set)
{
        return copy_of_set(view, set, 0, ret_set, sizeof(*ret_set));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of the stats page. The header is copied and checked once; afterwards only the checked copy is believed, so that
 * a damaged page shows wrong numbers and never a wrong address.
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES_MAX      (4ull << 30)
#define SLOT_BYTES_MAX 640u

#define SOCKET_PATH_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

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
        TEXT(CLIENTS, struct sl_client_stats, label),
        TEXT(WORKERS, struct sl_worker_stats, model),
        TEXT(WORKERS, struct sl_worker_stats, executor),
        TEXT(WORKERS, struct sl_worker_stats, why),
        TEXT(QUEUES, struct sl_queue_stats, model),
        TEXT(LETS, struct sl_let_stats, name),
        TEXT(LETS, struct sl_let_stats, cores),
        TEXT(MEMORY, struct sl_memory_stats, name),
};

struct sl_stats_view {
        int fd;
        const char *base;
        uint64_t bytes;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
};

SL_DEFINE_CLEANUP(struct sl_stats_view *, sl_stats_close)

static const size_t slot_bytes[SL_STATS_SECTIONS_N] = {
#define X(id, type, title) [SL_STATS_##id] = sizeof(type),
        SL_STATS_SECTIONS(X)
#undef X
};

static const struct sl_stats_header *header_of(const struct sl_stats_view *view)
{
        return (const struct sl_stats_header *)view->base;
}

static int map_file(struct sl_stats_view *view, const char *path, struct sl_error *error)
{
        struct stat status;
        void *base;

        view->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (view->fd < 0 || fstat(view->fd, &status) < 0)
                return sl_error_set(error, errno, "stats page \"%s\": %s", path, strerror(errno));
        if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(struct sl_stats_header) ||
                (uint64_t)status.st_size > BYTES_MAX)
                return sl_error_set(error, EBADMSG, "\"%s\" is no stats page", path);
        base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, view->fd, 0);
        if (base == MAP_FAILED)
                return sl_error_set(error, errno, "stats page \"%s\": cannot be mapped: %s", path, strerror(errno));
        view->base = base;
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

static int copy_sections(struct sl_stats_view *view, const char *path, struct sl_error *error)
{
        const struct sl_stats_header *header = header_of(view);
        uint64_t n = header->n_sections, bytes = offsetof(struct sl_stats_header, sections) + n * sizeof(header->sections[0]);

        if (bytes > view->bytes || bytes > header->header_bytes)
                return sl_error_set(error, EBADMSG, "stats page \"%s\" is damaged: %" PRIu64 " sections in a header of %u bytes",
                        path, n, header->header_bytes);
        for (uint32_t i = 0; i < n && i < SL_STATS_SECTIONS_N; i++)
                view->sections[i] = header->sections[i];
        return 0;
}

static int check_header(struct sl_stats_view *view, const char *path, struct sl_error *error)
{
        const struct sl_stats_header *header = header_of(view);
        int r;

        if (atomic_load_explicit(&header->magic, memory_order_acquire) != SL_STATS_MAGIC)
                return sl_error_set(error, EBADMSG, "\"%s\" is no stats page, or not yet one", path);
        r = check_version(header, path, error);
        if (r == 0)
                r = copy_sections(view, path, error);
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
        r = map_file(view, path, error);
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

/* @ret_folder is "" when there is no such place. Return: true and its owner when a socket lies there. */
static bool find_socket(const char *name, char ret_folder[SOCKET_PATH_BYTES], uid_t *ret_owner)
{
        struct stat status;
        bool found;

        ret_folder[0] = 0;
        if (sl_socket_find(name, ret_folder, SOCKET_PATH_BYTES) < 0)
                return false;
        found = lstat(ret_folder, &status) == 0 && S_ISSOCK(status.st_mode);
        if (found)
                *ret_owner = status.st_uid;
        *strrchr(ret_folder, '/') = 0;
        return found;
}

static int open_trusted(
        const char *name, const char *directory, const uid_t *owner, struct sl_stats_view **ret_view, struct sl_error *error)
{
        struct sl_stats_view *view;
        struct stat status;
        int r = open_in(name, directory, &view, error);

        if (r < 0)
                return r;
        if (owner &&
                (fstat(view->fd, &status) < 0 || (status.st_uid != 0 && status.st_uid != geteuid() && status.st_uid != *owner))) {
                sl_stats_close(view);
                return sl_error_set(error, EPERM, "stats page \"%s/starling.%s\" is not of user %u, as the runtime is", directory,
                        name, *owner);
        }
        *ret_view = view;
        return 0;
}

int sl_stats_open(const char *name, const char *directory, struct sl_stats_view **ret_view, struct sl_error *error)
{
        struct sl_stats_view *view = NULL, *beside;
        char folder[SOCKET_PATH_BYTES];
        uid_t owner;

        if (directory)
                return open_in(name, directory, ret_view, error);

        bool owned = find_socket(name, folder, &owner);
        int r = open_trusted(name, SL_STATS_DIRECTORY, owned ? &owner : NULL, &view, error);

        if ((r < 0 || !sl_stats_is_live(view)) && folder[0] &&
                open_trusted(name, folder, owned ? &owner : NULL, &beside, NULL) == 0) {
                sl_stats_close(view);
                view = beside;
                r = 0;
        }
        if (r == 0)
                *ret_view = view;
        return r;
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
        if (view->base)
                munmap((void *)view->base, view->bytes);
        if (view->fd >= 0)
                close(view->fd);
        free(view);
        return NULL;
}

void sl_stats_read_header(const struct sl_stats_view *view, struct sl_stats_header *ret_header)
{
        sl_seqlock_load(ret_header, view->base, sizeof(*ret_header));
        ret_header->runtime_name[sizeof(ret_header->runtime_name) - 1] = '\0';
        ret_header->wait_name[sizeof(ret_header->wait_name) - 1] = '\0';
        ret_header->release[sizeof(ret_header->release) - 1] = '\0';
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

typedef int (*read_fn)(const _Atomic uint32_t *seq, void *restrict to, const void *from, size_t bytes);

/* Copies a slot from its member `used` on. */
static int copy_slot(const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, read_fn read,
        struct sl_stats_slot *ret_slot)
{
        const struct sl_stats_extent *extent = &view->sections[section];
        const size_t skip = offsetof(struct sl_stats_slot, used);
        const size_t bytes = slot_bytes[section] - skip;
        uint64_t copy[SLOT_BYTES_MAX / 8];

        if (index >= extent->count || bytes > sizeof(copy))
                return -ENOENT;

        const char *slot = view->base + extent->offset + (uint64_t)index * extent->stride;
        int r = read((const _Atomic uint32_t *)(const void *)slot, copy, slot + skip, bytes);

        if (copy[0] == 0)
                return r < 0 ? r : -ENOENT;
        memset(ret_slot, 0, skip);
        memcpy((char *)ret_slot + skip, copy, bytes);
        terminate_texts(section, ret_slot);
        return r;
}

int sl_stats_read_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot)
{
        return copy_slot(view, section, index, sl_seqlock_read, ret_slot);
}

int sl_stats_try_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot)
{
        return copy_slot(view, section, index, sl_seqlock_try, ret_slot);
}

static const struct sl_histogram_set *set_at(const struct sl_stats_view *view, uint32_t index)
{
        const struct sl_stats_extent *extent = &view->sections[SL_STATS_HISTOGRAMS];

        if (index >= extent->count)
                return NULL;
        return (const struct sl_histogram_set *)(view->base + extent->offset + (uint64_t)index * extent->stride);
}

const struct sl_histogram_set *sl_stats_histograms(const struct sl_stats_view *view, const struct sl_model_stats *model)
{
        return set_at(view, model->histograms);
}

const struct sl_histogram_set *sl_stats_histograms_of_worker(const struct sl_stats_view *view, const struct sl_worker_stats *worker)
{
        return set_at(view, worker->histograms);
}

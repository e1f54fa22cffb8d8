/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the stats page: its file. It is sparse: what a dispatcher writes is reserved at the start, a slot and a set
 * of histograms when somebody gets it (stats_slots.c), so that a store into the mapping never meets a full file system (which would
 * be a SIGBUS) and an idle runtime holds a part of the bound.
 */
#include "stats.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "stats_claim.h"
#include "stats_guard.h"
#include "stats_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX  65536u
#define LAST_BYTES (sizeof(((struct sl_stats *)0)->file) + sizeof(SL_STATS_LAST))

/*
 * How long a runtime that was killed may keep its lock, as the kernel gives back all of its memory first, or one that was told to
 * end may take for that; and how long one that was told so just now may take to say it.
 */
#define ENDING_NS (10 * SL_NS_PER_SECOND)
#define TOLD_NS   (SL_NS_PER_SECOND / 2)

static const size_t strides[SL_STATS_SECTIONS_N] = {
#define X(id, type, title) [SL_STATS_##id] = sizeof(type),
        SL_STATS_SECTIONS(X)
#undef X
};

/* Where the options say nothing. */
static const uint32_t counts_default[SL_STATS_SECTIONS_N] = {
        [SL_STATS_DISPATCHERS] = 1,
        [SL_STATS_CLIENTS] = 1024,
        [SL_STATS_WORKERS] = 512,
        [SL_STATS_HISTOGRAMS] = 1, /* at least */
        [SL_STATS_QUEUES] = 1024,
        [SL_STATS_LETS] = 256,
        [SL_STATS_MEMORY] = 16,
        [SL_STATS_STEPS] = 32,
};

/* Of models the common one, and as many as a catalogue has and some that are leaving, where they take no more than a part of the
 * page. */
#define MODELS_LEAST (512u + 1)
#define MODELS_MOST  (4096u + 512u + 1)
#define OTHERS_BYTES (3u << 20) /* that the other sections take at least; of the rest models get three eighths at most */

/* And of these as many as fit a part of the page: of 30 MiB, 4096 records, 1024 that were traced, and 2048 spans. */
static const uint32_t parts[SL_STATS_SECTIONS_N] = {
        [SL_STATS_RECORDS] = 32,
        [SL_STATS_TRACED] = 128,
        [SL_STATS_SPANS] = 128,
};

SL_DEFINE_CLEANUP(struct sl_stats *, sl_stats_free)

/* ---- the file ------------------------------------------------------------------------------------------------------- */

/* Writes zeros where fallocate() is unknown; that takes the memory as well. */
static int reserve_by_writing(int fd, uint64_t offset, uint64_t bytes)
{
        static const char zeros[SL_PAGE_BYTES];

        while (bytes > 0) {
                size_t part = bytes < sizeof(zeros) ? (size_t)bytes : sizeof(zeros);
                ssize_t n = pwrite(fd, zeros, part, (off_t)offset);

                if (n < 0 && errno != EINTR)
                        return -errno;
                offset += n > 0 ? (uint64_t)n : 0;
                bytes -= n > 0 ? (uint64_t)n : 0;
        }
        return 0;
}

int sl_stats_reserve(struct sl_stats *stats, uint64_t offset, uint64_t bytes, struct sl_error *error)
{
        int r = stats->promise ? stats->promise(stats->promise_context, bytes) : 0;

        if (r < 0)
                return sl_error_set(error, -r, "stats page \"%s/%s\": no %" PRIu64 " bytes are left below memory_max",
                        stats->directory, stats->file, bytes);
        do
                r = fallocate(stats->fd, 0, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
        while (r == -EINTR);
        if (r == -EOPNOTSUPP)
                r = reserve_by_writing(stats->fd, offset, bytes);
        if (r == -ENOMEM) /* what tmpfs says when the limit is the container's */
                r = -ENOSPC;
        if (r < 0)
                sl_error_set(error, -r, "stats page \"%s/%s\": no %" PRIu64 " bytes: %s", stats->directory, stats->file, bytes,
                        strerror(-r));
        stats->reserved += r == 0 ? bytes : 0;
        return r;
}

uint64_t sl_stats_reserved(const struct sl_stats *stats)
{
        return stats->reserved;
}

void sl_stats_promise(struct sl_stats *stats, int (*promise)(void *context, uint64_t more), void *context)
{
        stats->promise = promise;
        stats->promise_context = context;
}

static uint32_t count_of_models(const struct sl_stats *stats)
{
        uint64_t rest = stats->bytes > OTHERS_BYTES ? stats->bytes - OTHERS_BYTES : 0;
        uint64_t fit = rest / 8 * 3 / strides[SL_STATS_MODELS];

        return fit < MODELS_LEAST ? MODELS_LEAST : fit > MODELS_MOST ? MODELS_MOST : (uint32_t)fit;
}

/* A power of two, where it goes by the bytes of the page; SL_STATS_NONE in the options: none. */
static uint32_t count_of(const struct sl_stats *stats, enum sl_stats_section section, uint32_t wish)
{
        uint32_t count = 1;

        if (section == SL_STATS_MODELS && !wish)
                return count_of_models(stats);
        if (!parts[section])
                return wish ? wish : counts_default[section];
        if (wish == SL_STATS_NONE)
                return 0;
        while (count < COUNT_MAX && 2 * count * strides[section] <= stats->bytes / parts[section])
                count *= 2;
        return count;
}

/* @offset: where the section begins; moved behind it. Return: 0, -EINVAL. */
static int place_section(
        struct sl_stats *stats, enum sl_stats_section section, uint32_t count, uint64_t *offset, struct sl_error *error)
{
        if (count > COUNT_MAX)
                return sl_error_set(error, EINVAL, "stats page: %u slots, at most %u", count, COUNT_MAX);
        stats->sections[section] =
                (struct sl_stats_extent){.offset = *offset, .stride = (uint32_t)strides[section], .count = count};
        *offset += (uint64_t)count * strides[section];
        return 0;
}

/* The histograms lie behind all others, and get the rest of the file. Return: 0, -EINVAL. */
static int place_sections(struct sl_stats *stats, const uint32_t *counts, struct sl_error *error)
{
        uint64_t offset = sl_align_up(sizeof(struct sl_stats_header), SL_PAGE_BYTES);
        int r = 0;

        for (int i = 0; i < SL_STATS_SECTIONS_N && r == 0; i++)
                if (i != SL_STATS_HISTOGRAMS)
                        r = place_section(stats, i, count_of(stats, i, counts[i]), &offset, error);
        if (r == 0)
                r = place_section(stats, SL_STATS_HISTOGRAMS, counts_default[SL_STATS_HISTOGRAMS], &offset, error);
        if (r < 0)
                return r;
        if (offset > stats->bytes)
                return sl_error_set(
                        error, EINVAL, "stats page: %" PRIu64 " bytes, its sections need %" PRIu64, stats->bytes, offset);

        uint64_t more = (stats->bytes - offset) / strides[SL_STATS_HISTOGRAMS];

        stats->sections[SL_STATS_HISTOGRAMS].count += (uint32_t)(more < COUNT_MAX ? more : COUNT_MAX);
        return 0;
}

/* Up to the first slots that are given out, and from behind the last. */
static uint64_t head_bytes(const struct sl_stats *stats)
{
        return stats->sections[SL_STATS_MODELS].offset;
}

static uint64_t tail_bytes(const struct sl_stats *stats)
{
        const struct sl_stats_extent *histograms = &stats->sections[SL_STATS_HISTOGRAMS];

        return histograms->offset + histograms->stride - stats->sections[SL_STATS_RECORDS].offset;
}

uint64_t sl_stats_bytes_at_once(uint64_t bytes)
{
        static const uint32_t counts[SL_STATS_SECTIONS_N];
        struct sl_stats stats = {.bytes = sl_align_up(bytes, SL_PAGE_BYTES)};

        return place_sections(&stats, counts, NULL) < 0 ? bytes : head_bytes(&stats) + tail_bytes(&stats);
}

static int map_file(struct sl_stats *stats, struct sl_error *error)
{
        int r;

        if (ftruncate(stats->fd, (off_t)stats->bytes) < 0)
                return sl_error_set(error, errno, "stats page \"%s/%s\" of %" PRIu64 " bytes: %s", stats->directory, stats->file,
                        stats->bytes, strerror(errno));
        r = sl_stats_reserve(stats, 0, head_bytes(stats), error);
        if (r == 0)
                r = sl_stats_reserve(stats, stats->sections[SL_STATS_RECORDS].offset, tail_bytes(stats), error);
        if (r < 0)
                return r;
        stats->base = mmap(NULL, stats->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, stats->fd, 0);
        if (stats->base == MAP_FAILED) {
                stats->base = NULL;
                return sl_error_set(error, errno, "stats page \"%s/%s\" of %" PRIu64 " bytes: cannot be mapped: %s",
                        stats->directory, stats->file, stats->bytes, strerror(errno));
        }
        return 0;
}

static void write_header(struct sl_stats *stats, const struct sl_stats_options *options)
{
        struct sl_stats_header *header = sl_stats_header_of(stats);
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        header->version = SL_STATS_VERSION;
        header->header_bytes = sizeof(*header);
        header->bytes = stats->bytes;
        header->pid = (uint32_t)getpid();
        header->started_ns = sl_clock_ns();
        header->started_unix_ns = (uint64_t)now.tv_sec * SL_NS_PER_SECOND + (uint64_t)now.tv_nsec;
        snprintf(header->runtime_name, sizeof(header->runtime_name), "%s", options->name);
        snprintf(header->wait_name, sizeof(header->wait_name), "%s", options->wait_name ? options->wait_name : "");
        snprintf(header->release, sizeof(header->release), "%s", options->release ? options->release : "");
        header->n_sections = SL_STATS_SECTIONS_N;
        memcpy(header->sections, stats->sections, sizeof(header->sections));
}

/* ---- the page ------------------------------------------------------------------------------------------------------- */

static int check_options(const struct sl_stats_options *options, struct sl_error *error)
{
        size_t length = strlen(options->name);

        if (length == 0 || length >= SL_STATS_NAME_BYTES || strchr(options->name, '/'))
                return sl_error_set(error, EINVAL, "runtime name \"%s\": wants 1 to %u bytes without a slash", options->name,
                        SL_STATS_NAME_BYTES - 1);
        if (options->bytes > INT64_MAX - SL_PAGE_BYTES)
                return sl_error_set(error, EINVAL, "stats page: %" PRIu64 " bytes is too much", options->bytes);
        if (options->directory && strlen(options->directory) >= sizeof(((struct sl_stats *)0)->directory))
                return sl_error_set(error, ENAMETOOLONG, "stats page: directory \"%s\" is too long", options->directory);
        return 0;
}

static struct sl_stats *new_stats(const struct sl_stats_options *options)
{
        struct sl_stats *stats = aligned_alloc(alignof(struct sl_stats), sizeof(*stats));

        if (!stats)
                return NULL;
        *stats = (struct sl_stats){.fd = -1};
        stats->bytes = sl_align_up(options->bytes ? options->bytes : SL_STATS_BYTES_DEFAULT, SL_PAGE_BYTES);
        snprintf(stats->directory, sizeof(stats->directory), "%s", options->directory ? options->directory : SL_STATS_DIRECTORY);
        snprintf(stats->file, sizeof(stats->file), "starling.%s", options->name);
        snprintf(stats->path, sizeof(stats->path), "%s/%s", stats->directory, stats->file);
        return stats;
}

static bool owner_is_ending(const char *name, const char *directory, bool may_be_told)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;
        int r = sl_stats_open(name, directory, &view, NULL);

        if (r < 0)
                return r == -ENOENT;
        sl_stats_read_header(view, &header);
        sl_stats_close(view);
        return may_be_told || atomic_load_explicit(&header.state, memory_order_relaxed) >= SL_RUNTIME_STOPPING ||
               sl_claim_owner_is_ending(header.pid);
}

/* Whoever has the name may give it up soon: looks again after a while. False: there is nothing to wait for any more. */
static bool wait_for_end(const char *name, const char *directory, uint64_t begun_ns)
{
        const struct timespec pause = {.tv_nsec = 5 * SL_NS_PER_MS};
        uint64_t waited_ns = sl_clock_ns() - begun_ns;

        if (waited_ns >= ENDING_NS || !owner_is_ending(name, directory, waited_ns < TOLD_NS))
                return false;
        nanosleep(&pause, NULL);
        return true;
}

/* The flight recorder of a runtime that served, and did not come to its end. */
static bool has_crashed(int fd)
{
        struct sl_stats_header header;

        if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
                atomic_load_explicit(&header.magic, memory_order_relaxed) != SL_STATS_MAGIC)
                return false;
        uint32_t state = atomic_load_explicit(&header.state, memory_order_relaxed);

        return state == SL_RUNTIME_READY || state == SL_RUNTIME_STOPPING;
}

static void name_last(const struct sl_stats *stats, char ret_file[LAST_BYTES])
{
        snprintf(ret_file, LAST_BYTES, "%s" SL_STATS_LAST, stats->file);
}

/* Returns whether there was one. Whose it is the file system knows. */
static bool remove_last(const struct sl_stats *stats)
{
        char path[sizeof(stats->path) + sizeof(SL_STATS_LAST)];

        snprintf(path, sizeof(path), "%s" SL_STATS_LAST, stats->path);
        return unlink(path) == 0;
}

static int claim(struct sl_stats *stats, const char *name, struct sl_error *error)
{
        char last[LAST_BYTES];
        const struct sl_claim_keep keep = {.as = last, .is_worth = has_crashed};
        uint64_t begun_ns = sl_clock_ns();
        int r;

        name_last(stats, last);
        do
                r = sl_claim_create(stats->directory, stats->file, &keep, &stats->has_replaced, &stats->fd, error);
        while (r == -EADDRINUSE && wait_for_end(name, stats->directory, begun_ns));
        return r;
}

bool sl_stats_stays_claimed(const char *name, const char *directory)
{
        uint64_t begun_ns = sl_clock_ns();
        bool claimed;

        do
                claimed = sl_stats_is_claimed(name, directory);
        while (claimed && wait_for_end(name, directory, begun_ns));
        return claimed;
}

const char *sl_stats_path(const struct sl_stats *stats)
{
        return stats->path;
}

bool sl_stats_has_replaced(const struct sl_stats *stats)
{
        return stats->has_replaced;
}

int sl_stats_guarded(const struct sl_stats *stats)
{
        return stats->guarded;
}

int sl_stats_create(const struct sl_stats_options *options, struct sl_stats **ret_stats, struct sl_error *error)
{
        int r = check_options(options, error);

        if (r < 0)
                return r;

        SL_CLEANUP(sl_cleanup_sl_stats_free) struct sl_stats *stats = new_stats(options);

        if (!stats)
                return sl_error_set(error, ENOMEM, "stats page: no memory");
        r = place_sections(stats, options->counts, error);
        if (r < 0)
                return r;
        stats->set_used = calloc(stats->sections[SL_STATS_HISTOGRAMS].count, 1);
        stats->model_uses = calloc(stats->sections[SL_STATS_MODELS].count, sizeof(*stats->model_uses));
        if (!stats->set_used || !stats->model_uses)
                return sl_error_set(error, ENOMEM, "stats page: no memory");
        r = claim(stats, options->name, error);
        if (r < 0)
                return sl_error_prefix(error, r, "stats page");
        r = map_file(stats, error);
        if (r == -ENOSPC && remove_last(stats)) /* the new page is worth more */
                r = map_file(stats, error);
        if (r < 0)
                return r;
        write_header(stats, options);
        r = sl_stats_start_slots(stats, error);
        if (r < 0)
                return r;
        atomic_store_explicit(&sl_stats_header_of(stats)->magic, SL_STATS_MAGIC, memory_order_release);
        stats->guarded = sl_stats_guard_apply(stats->fd, options->guard);
        *ret_stats = sl_take(stats);
        return 0;
}

struct sl_stats *sl_stats_free(struct sl_stats *stats)
{
        if (!stats)
                return NULL;
        if (stats->base) {
                sl_stats_set_state(stats, SL_RUNTIME_STOPPED);
                munmap(stats->base, stats->bytes);
        }
        if (stats->fd >= 0) {
                sl_claim_remove(stats->directory, stats->file, stats->fd);
                close(stats->fd);
                if (stats->has_served)
                        (void)remove_last(stats);
        }
        free(stats->set_used);
        free(stats->model_uses);
        free(stats);
        return NULL;
}

void sl_stats_set_state(struct sl_stats *stats, enum sl_runtime_state state)
{
        stats->has_served |= state == SL_RUNTIME_READY;
        atomic_store_explicit(&sl_stats_header_of(stats)->state, state, memory_order_relaxed);
}

void sl_stats_set_memory(struct sl_stats *stats, uint64_t bytes, uint64_t max)
{
        sl_counter_set(&sl_stats_header_of(stats)->memory_bytes, bytes);
        sl_counter_set(&sl_stats_header_of(stats)->memory_max, max);
}

void sl_stats_add_memory(struct sl_stats *stats, uint64_t bytes)
{
        atomic_fetch_add_explicit(&sl_stats_header_of(stats)->memory_bytes, bytes, memory_order_relaxed);
}

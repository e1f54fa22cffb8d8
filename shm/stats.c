/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the stats page. The file is sparse: the sections of slots are reserved at the start, a set of histograms
 * when a model gets it, so that a store into the mapping never meets a full file system (which would be a SIGBUS) and an idle
 * runtime holds some hundred KiB instead of the whole bound.
 */
#include "stats.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "seqlock.h"
#include "stats_claim.h"
#include "stats_guard.h"

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

#define MODELS_DEFAULT  512u
#define CLIENTS_DEFAULT 1024u
#define WORKERS_DEFAULT 512u
#define COUNT_MAX       65536u
#define COMMON_NAME     "(others)"

/* How long a runtime that was killed may keep its lock: the kernel gives back all of its memory first. */
#define ENDING_NS (10 * SL_NS_PER_SECOND)

struct sl_stats {
        int fd;
        char *base; /* whole file; only reserved parts are touched */
        uint64_t bytes;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
        uint8_t *set_used; /* [n histogram sets] */
        char directory[200];
        char file[SL_STATS_NAME_BYTES + 16];
        char path[200 + SL_STATS_NAME_BYTES + 16];
        bool has_replaced;
        int guarded;                         /* 0, -errno */
        struct sl_client_stats spare_client; /* counts of those that found no slot; nobody reads them */
        struct sl_worker_stats spare_worker;
};

static const size_t strides[SL_STATS_SECTIONS_N] = {
#define X(id, type) [SL_STATS_##id] = sizeof(type),
        SL_STATS_SECTIONS(X)
#undef X
};

SL_DEFINE_CLEANUP(struct sl_stats *, sl_stats_free)

const char *sl_stage_name(enum sl_stage stage)
{
        static const char *const names[SL_STAGES] = {
#define X(id, name) [SL_STAGE_##id] = name,
                SL_STAGES_OF_A_REQUEST(X)
#undef X
        };

        return stage < SL_STAGES ? names[stage] : "unknown";
}

const char *sl_batch_reason_text(enum sl_batch_reason reason)
{
        static const char *const texts[SL_BATCH_REASON_LIMIT] = {
#define X(id, text) [SL_BATCH_##id] = text,
                SL_BATCH_REASONS(X)
#undef X
        };

        return reason < SL_BATCH_REASON_LIMIT ? texts[reason] : "unknown";
}

const char *sl_refusal_text(enum sl_refusal refusal)
{
        static const char *const texts[SL_REFUSAL_LIMIT] = {
#define X(id, text) [SL_REFUSAL_##id] = text,
                SL_REFUSALS(X)
#undef X
        };

        return refusal < SL_REFUSAL_LIMIT ? texts[refusal] : "unknown";
}

/* ---- the file ------------------------------------------------------------------------------------------------------- */

static struct sl_stats_header *header_of(struct sl_stats *stats)
{
        return (struct sl_stats_header *)stats->base;
}

static void *slot_at(struct sl_stats *stats, enum sl_stats_section section, uint32_t index)
{
        const struct sl_stats_extent *extent = &stats->sections[section];

        return stats->base + extent->offset + (uint64_t)index * extent->stride;
}

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

static int reserve(struct sl_stats *stats, uint64_t offset, uint64_t bytes, struct sl_error *error)
{
        int r;

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
        return r;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
        return value ? value : otherwise;
}

/* Places all sections; the histograms get the rest of the file. Return: 0, -EINVAL. */
static int place_sections(struct sl_stats *stats, const struct sl_stats_options *options, struct sl_error *error)
{
        const uint32_t counts[SL_STATS_SECTIONS_N] = {
                [SL_STATS_DISPATCHERS] = options->n_dispatchers,
                [SL_STATS_MODELS] = or_default(options->n_models, MODELS_DEFAULT) + 1, /* the common one */
                [SL_STATS_CLIENTS] = or_default(options->n_clients, CLIENTS_DEFAULT),
                [SL_STATS_WORKERS] = or_default(options->n_workers, WORKERS_DEFAULT),
                [SL_STATS_HISTOGRAMS] = 1, /* at least */
        };
        uint64_t offset = sl_align_up(sizeof(struct sl_stats_header), SL_PAGE_BYTES);

        for (int i = 0; i < SL_STATS_SECTIONS_N; i++) {
                if (counts[i] > COUNT_MAX)
                        return sl_error_set(error, EINVAL, "stats page: %u slots, at most %u", counts[i], COUNT_MAX);
                stats->sections[i] = (struct sl_stats_extent){.offset = offset, .stride = (uint32_t)strides[i], .count = counts[i]};
                offset += (uint64_t)counts[i] * strides[i];
        }
        if (offset > stats->bytes)
                return sl_error_set(
                        error, EINVAL, "stats page: %" PRIu64 " bytes, its sections need %" PRIu64, stats->bytes, offset);

        uint64_t more = (stats->bytes - offset) / strides[SL_STATS_HISTOGRAMS];

        stats->sections[SL_STATS_HISTOGRAMS].count += (uint32_t)(more < COUNT_MAX ? more : COUNT_MAX);
        return 0;
}

static int map_file(struct sl_stats *stats, struct sl_error *error)
{
        const struct sl_stats_extent *histograms = &stats->sections[SL_STATS_HISTOGRAMS];
        int r;

        if (ftruncate(stats->fd, (off_t)stats->bytes) < 0)
                return sl_error_set(error, errno, "stats page \"%s/%s\" of %" PRIu64 " bytes: %s", stats->directory, stats->file,
                        stats->bytes, strerror(errno));
        r = reserve(stats, 0, histograms->offset + histograms->stride, error);
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
        struct sl_stats_header *header = header_of(stats);
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
        memcpy(header->sections, stats->sections, sizeof(header->sections));
}

/* ---- slots ---------------------------------------------------------------------------------------------------------- */

/* Every kind of slot begins with a struct sl_stats_slot; what follows seq is replaced by @content. */
static void write_slot(struct sl_stats_slot *slot, const void *content, size_t bytes)
{
        size_t skip = offsetof(struct sl_stats_slot, used);

        sl_seqlock_begin(&slot->seq);
        sl_seqlock_store((char *)slot + skip, (const char *)content + skip, bytes - skip);
        sl_seqlock_end(&slot->seq);
}

/* The counters stay readable until the slot serves somebody else. */
static void release_slot(struct sl_stats_slot *slot)
{
        const uint64_t unused = 0;

        sl_seqlock_begin(&slot->seq);
        sl_seqlock_store(&slot->used, &unused, sizeof(unused));
        sl_seqlock_end(&slot->seq);
}

static void *unused_slot(struct sl_stats *stats, enum sl_stats_section section)
{
        for (uint32_t i = 0; i < stats->sections[section].count; i++) {
                struct sl_stats_slot *slot = slot_at(stats, section, i);

                if (!slot->used)
                        return slot;
        }
        return NULL;
}

static void start_slots(struct sl_stats *stats)
{
        struct sl_model_stats common = {.slot.used = 1, .name = COMMON_NAME};

        write_slot(slot_at(stats, SL_STATS_MODELS, 0), &common, sizeof(common));
        stats->set_used[0] = 1;
        for (uint32_t i = 0; i < stats->sections[SL_STATS_DISPATCHERS].count; i++)
                sl_stats_dispatcher_pinned(stats, i, -1);
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

static bool owner_is_ending(const char *name, const char *directory)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;
        int r = sl_stats_open(name, directory, &view, NULL);

        if (r < 0)
                return r == -ENOENT;
        sl_stats_read_header(view, &header);
        sl_stats_close(view);
        return sl_claim_owner_is_ending(header.pid);
}

static int claim(struct sl_stats *stats, const char *name, struct sl_error *error)
{
        const struct timespec pause = {.tv_nsec = 5 * SL_NS_PER_MS};
        uint64_t until_ns = sl_clock_ns() + ENDING_NS;

        for (;;) {
                int r = sl_claim_create(stats->directory, stats->file, &stats->has_replaced, &stats->fd, error);

                if (r != -EADDRINUSE || sl_clock_ns() >= until_ns || !owner_is_ending(name, stats->directory))
                        return r;
                nanosleep(&pause, NULL);
        }
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

bool sl_stats_is_claimed(const char *name, const char *directory)
{
        struct sl_stats_view *view;
        bool live;

        if (sl_stats_open(name, directory, &view, NULL) < 0)
                return false;
        live = sl_stats_is_live(view);
        sl_stats_close(view);
        return live;
}

int sl_stats_create(const struct sl_stats_options *options, struct sl_stats **ret_stats, struct sl_error *error)
{
        int r = check_options(options, error);

        if (r < 0)
                return r;

        SL_CLEANUP(sl_cleanup_sl_stats_free) struct sl_stats *stats = new_stats(options);

        if (!stats)
                return sl_error_set(error, ENOMEM, "stats page: no memory");
        r = place_sections(stats, options, error);
        if (r < 0)
                return r;
        stats->set_used = calloc(stats->sections[SL_STATS_HISTOGRAMS].count, 1);
        if (!stats->set_used)
                return sl_error_set(error, ENOMEM, "stats page: no memory");
        r = claim(stats, options->name, error);
        if (r < 0)
                return sl_error_prefix(error, r, "stats page");
        r = map_file(stats, error);
        if (r < 0)
                return r;
        write_header(stats, options);
        start_slots(stats);
        atomic_store_explicit(&header_of(stats)->magic, SL_STATS_MAGIC, memory_order_release);
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
        }
        free(stats->set_used);
        free(stats);
        return NULL;
}

void sl_stats_set_state(struct sl_stats *stats, enum sl_runtime_state state)
{
        atomic_store_explicit(&header_of(stats)->state, state, memory_order_relaxed);
}

void sl_stats_set_memory(struct sl_stats *stats, uint64_t bytes, uint64_t max)
{
        sl_counter_set(&header_of(stats)->memory_bytes, bytes);
        sl_counter_set(&header_of(stats)->memory_max, max);
}

struct sl_dispatcher_stats *sl_stats_dispatcher(struct sl_stats *stats, uint32_t index)
{
        return index < stats->sections[SL_STATS_DISPATCHERS].count ? slot_at(stats, SL_STATS_DISPATCHERS, index) : NULL;
}

void sl_stats_dispatcher_pinned(struct sl_stats *stats, uint32_t index, int32_t core)
{
        struct sl_dispatcher_stats *slot = sl_stats_dispatcher(stats, index);
        struct sl_dispatcher_stats content = {.slot.used = 1, .core = core};

        if (slot) /* up to the counters, which are the dispatcher's */
                write_slot(&slot->slot, &content, offsetof(struct sl_dispatcher_stats, requests));
}

/* ---- models --------------------------------------------------------------------------------------------------------- */

/* The number of an unused set of histograms, zeroed; 0 (the common one) if there is none. */
static uint32_t take_set(struct sl_stats *stats, int *ret_result, struct sl_error *error)
{
        const struct sl_stats_extent *extent = &stats->sections[SL_STATS_HISTOGRAMS];

        for (uint32_t i = 1; i < extent->count; i++) {
                if (stats->set_used[i])
                        continue;
                *ret_result = reserve(stats, extent->offset + (uint64_t)i * extent->stride, extent->stride, error);
                if (*ret_result < 0)
                        return 0;
                stats->set_used[i] = 1;
                return i;
        }
        *ret_result = sl_error_set(error, ENOSPC, "stats page of %" PRIu64 " bytes: all %u sets of histograms are in use",
                stats->bytes, extent->count);
        return 0;
}

static void clear_set(struct sl_histogram_set *set)
{
        _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)set;

        for (size_t i = 0; i < sizeof(*set) / sizeof(*words); i++)
                sl_counter_set(&words[i], 0);
}

static void count_in_common(struct sl_stats *stats, struct sl_model_counting *ret_counting)
{
        *ret_counting = (struct sl_model_counting){.counters = slot_at(stats, SL_STATS_MODELS, 0),
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, 0),
                .shared_counters = true,
                .shared_histograms = true};
        sl_counter_add(&header_of(stats)->crowded, 1);
}

int sl_stats_model_add(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        struct sl_model_stats *slot = unused_slot(stats, SL_STATS_MODELS);
        struct sl_model_stats content = {.slot.used = 1};
        int r = 0;

        if (!slot) {
                count_in_common(stats, ret_counting);
                return sl_error_set(error, ENOSPC, "model \"%s\": all %u slots of the stats page are in use; counted in %s", name,
                        stats->sections[SL_STATS_MODELS].count, COMMON_NAME);
        }
        snprintf(content.name, sizeof(content.name), "%s", name);
        content.histograms = take_set(stats, &r, error);
        if (content.histograms == 0)
                sl_counter_add(&header_of(stats)->crowded, 1);
        else
                clear_set(slot_at(stats, SL_STATS_HISTOGRAMS, content.histograms));
        write_slot(&slot->slot, &content, sizeof(content));
        *ret_counting = (struct sl_model_counting){.counters = slot,
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, content.histograms),
                .shared_histograms = content.histograms == 0};
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\": its histograms are counted in %s", name, COMMON_NAME) : 0;
}

void sl_stats_model_remove(struct sl_stats *stats, struct sl_model_counting *counting)
{
        if (counting->counters && !counting->shared_counters) {
                if (!counting->shared_histograms)
                        stats->set_used[counting->counters->histograms] = 0;
                release_slot(&counting->counters->slot);
        }
        *counting = (struct sl_model_counting){0};
}

/* ---- clients and workers -------------------------------------------------------------------------------------------- */

int sl_stats_client_add(
        struct sl_stats *stats, uint64_t id, uint32_t uid, uint32_t pid, const char *label, struct sl_client_stats **ret_slot)
{
        struct sl_client_stats *slot = unused_slot(stats, SL_STATS_CLIENTS);
        struct sl_client_stats content = {.slot.used = 1, .id = id, .uid = uid, .pid = pid};

        *ret_slot = slot ? slot : &stats->spare_client;
        if (!slot)
                return -ENOSPC;
        snprintf(content.label, sizeof(content.label), "%s", label);
        write_slot(&slot->slot, &content, sizeof(content));
        return 0;
}

void sl_stats_client_remove(struct sl_stats *stats, struct sl_client_stats *slot)
{
        if (slot && slot != &stats->spare_client)
                release_slot(&slot->slot);
}

int sl_stats_worker_add(struct sl_stats *stats, const char *model, const char *executor, int32_t core, uint32_t batch_max,
        struct sl_worker_stats **ret_slot)
{
        struct sl_worker_stats *slot = unused_slot(stats, SL_STATS_WORKERS);
        struct sl_worker_stats content = {.slot.used = 1, .core = core, .batch_max = batch_max};

        *ret_slot = slot ? slot : &stats->spare_worker;
        if (!slot)
                return -ENOSPC;
        snprintf(content.model, sizeof(content.model), "%s", model);
        snprintf(content.executor, sizeof(content.executor), "%s", executor);
        write_slot(&slot->slot, &content, sizeof(content));
        return 0;
}

void sl_stats_worker_remove(struct sl_stats *stats, struct sl_worker_stats *slot)
{
        if (slot && slot != &stats->spare_worker)
                release_slot(&slot->slot);
}

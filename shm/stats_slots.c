/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the stats page: who has which slot, and what is shown in it. Slots are found by a walk over their section,
 * as they change hands rarely.
 */
#include "stats_state.h"

#include "base/error.h"
#include "seqlock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COMMON_NAME "(others)"

/* ---- slots of any kind ---------------------------------------------------------------------------------------------- */

static void *slot_at(const struct sl_stats *stats, enum sl_stats_section section, uint32_t index)
{
        const struct sl_stats_extent *extent = &stats->sections[section];

        return stats->base + extent->offset + (uint64_t)index * extent->stride;
}

/* SL_STATS_NONE: it is no slot of the page. */
static uint32_t index_of(const struct sl_stats *stats, enum sl_stats_section section, const void *slot)
{
        const struct sl_stats_extent *extent = &stats->sections[section];
        uint64_t offset = (uint64_t)((const char *)slot - stats->base) - extent->offset;
        uint64_t index = offset / extent->stride;

        return (const char *)slot >= stats->base + extent->offset && index < extent->count ? (uint32_t)index : SL_STATS_NONE;
}

void *sl_stats_slots(struct sl_stats *stats, enum sl_stats_section section, uint32_t *ret_n)
{
        *ret_n = stats->sections[section].count;
        return slot_at(stats, section, 0);
}

uint32_t sl_stats_number(const struct sl_stats *stats, enum sl_stats_section section, const void *slot)
{
        return index_of(stats, section, slot);
}

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

static void *unused_slot(const struct sl_stats *stats, enum sl_stats_section section)
{
        for (uint32_t i = 0; i < stats->sections[section].count; i++) {
                struct sl_stats_slot *slot = slot_at(stats, section, i);

                if (!slot->used)
                        return slot;
        }
        return NULL;
}

/* Gives a slot to who is shown as @content, all counters zero; @spare when there is none. Return: 0, -ENOSPC. */
static int give_slot(
        struct sl_stats *stats, enum sl_stats_section section, struct sl_stats_slot *content, void *spare, void **ret_slot)
{
        struct sl_stats_slot *slot = unused_slot(stats, section);

        *ret_slot = slot ? slot : spare;
        if (!slot)
                return -ENOSPC;
        content->used = 1;
        write_slot(slot, content, stats->sections[section].stride);
        return 0;
}

static void take_slot_back(struct sl_stats *stats, enum sl_stats_section section, struct sl_stats_slot *slot)
{
        if (slot && index_of(stats, section, slot) != SL_STATS_NONE)
                release_slot(slot);
}

/* ---- dispatchers ---------------------------------------------------------------------------------------------------- */

struct sl_dispatcher_stats *sl_stats_dispatcher(struct sl_stats *stats, uint32_t index)
{
        return index < stats->sections[SL_STATS_DISPATCHERS].count ? slot_at(stats, SL_STATS_DISPATCHERS, index) : NULL;
}

void sl_stats_dispatcher_pinned(struct sl_stats *stats, uint32_t index, int32_t core)
{
        struct sl_dispatcher_stats *slot = sl_stats_dispatcher(stats, index);
        struct sl_dispatcher_stats content = {.slot.used = 1, .core = core};

        if (slot)
                write_slot(&slot->slot, &content, offsetof(struct sl_dispatcher_stats, requests));
}

void sl_stats_dispatcher_samples(struct sl_stats *stats, uint32_t index, uint32_t sampling)
{
        struct sl_dispatcher_stats *slot = sl_stats_dispatcher(stats, index);

        if (!slot)
                return;
        struct sl_dispatcher_stats content = {.slot.used = 1, .core = slot->core, .sampling = sampling};

        write_slot(&slot->slot, &content, offsetof(struct sl_dispatcher_stats, requests));
}

void sl_stats_start_slots(struct sl_stats *stats)
{
        struct sl_model_stats common = {.slot.used = 1, .state = SL_STATS_MODEL_READY, .name = COMMON_NAME};

        write_slot(slot_at(stats, SL_STATS_MODELS, 0), &common, sizeof(common));
        stats->model_holders[0] = 1;
        stats->set_used[0] = 1;
        for (uint32_t i = 0; i < stats->sections[SL_STATS_DISPATCHERS].count; i++)
                sl_stats_dispatcher_pinned(stats, i, -1);
}

/* ---- sets of histograms --------------------------------------------------------------------------------------------- */

static void clear_set(struct sl_histogram_set *set)
{
        _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)set;

        for (size_t i = 0; i < sizeof(*set) / sizeof(*words); i++)
                sl_counter_set(&words[i], 0);
}

/* The number of an unused set of histograms, zeroed; 0 (the common one) if there is none. */
static uint32_t take_set(struct sl_stats *stats, int *ret_result, struct sl_error *error)
{
        const struct sl_stats_extent *extent = &stats->sections[SL_STATS_HISTOGRAMS];

        for (uint32_t i = 1; i < extent->count; i++) {
                if (stats->set_used[i])
                        continue;
                *ret_result = sl_stats_reserve(stats, extent->offset + (uint64_t)i * extent->stride, extent->stride, error);
                if (*ret_result < 0)
                        return 0;
                stats->set_used[i] = 1;
                clear_set(slot_at(stats, SL_STATS_HISTOGRAMS, i));
                return i;
        }
        *ret_result = sl_error_set(error, ENOSPC, "stats page of %" PRIu64 " bytes: all %u sets of histograms are in use",
                stats->bytes, extent->count);
        return 0;
}

/* ---- models --------------------------------------------------------------------------------------------------------- */

static int count_in_common(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        *ret_counting = (struct sl_model_counting){.counters = slot_at(stats, SL_STATS_MODELS, 0),
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, 0),
                .shared_counters = true,
                .shared_histograms = true};
        sl_counter_add(&sl_stats_header_of(stats)->crowded, 1);
        return sl_error_set(error, ENOSPC, "model \"%s\": all %u slots of the stats page are in use; counted in %s", name,
                stats->sections[SL_STATS_MODELS].count, COMMON_NAME);
}

static void count_in(struct sl_stats *stats, struct sl_model_stats *slot, struct sl_model_counting *ret_counting)
{
        uint32_t number = index_of(stats, SL_STATS_MODELS, slot);

        stats->model_holders[number]++;
        *ret_counting = (struct sl_model_counting){.counters = slot,
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, slot->histograms),
                .number = number,
                .shared_histograms = slot->histograms == 0};
}

static struct sl_model_stats *slot_named(struct sl_stats *stats, const char *name)
{
        for (uint32_t i = 1; i < stats->sections[SL_STATS_MODELS].count; i++) {
                struct sl_model_stats *slot = slot_at(stats, SL_STATS_MODELS, i);

                if (stats->model_holders[i] && strncmp(slot->name, name, sizeof(slot->name) - 1) == 0)
                        return slot;
        }
        return NULL;
}

int sl_stats_model_add(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        struct sl_model_stats content = {0}, *slot = slot_named(stats, name);
        int r = 0;

        if (slot) {
                count_in(stats, slot, ret_counting);
                return 0;
        }
        if (!unused_slot(stats, SL_STATS_MODELS))
                return count_in_common(stats, name, ret_counting, error);
        snprintf(content.name, sizeof(content.name), "%s", name);
        content.histograms = take_set(stats, &r, error);
        if (content.histograms == 0)
                sl_counter_add(&sl_stats_header_of(stats)->crowded, 1);
        give_slot(stats, SL_STATS_MODELS, &content.slot, NULL, (void **)&slot);
        count_in(stats, slot, ret_counting);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\": its histograms are counted in %s", name, COMMON_NAME) : 0;
}

#define KEEP_SUM(name, text) sl_counter_add(&open->left_##name, sl_counter_read(&slot->name));

/* Sizes make room for others; what they have counted is the open model's. */
static void keep_sums(struct sl_stats *stats, const struct sl_model_stats *slot)
{
        char of[SL_STATS_NAME_BYTES];
        struct sl_model_stats *open = sl_stats_sizes_of(slot, of) ? slot_named(stats, of) : NULL;

        if (open) {
                SL_MODEL_SUMS(KEEP_SUM)
        }
}

void sl_stats_model_remove(struct sl_stats *stats, struct sl_model_counting *counting)
{
        struct sl_model_stats *slot = counting->counters;

        if (slot && !counting->shared_counters && --stats->model_holders[counting->number] == 0) {
                if (slot->histograms)
                        stats->set_used[slot->histograms] = 0;
                keep_sums(stats, slot);
                release_slot(&slot->slot);
        }
        *counting = (struct sl_model_counting){0};
}

void sl_stats_model_shown(const struct sl_model_counting *counting, struct sl_model_stats *ret_shown)
{
        memset(ret_shown, 0, sizeof(*ret_shown));
        if (!counting->shared_counters)
                sl_seqlock_load(ret_shown, counting->counters, offsetof(struct sl_model_stats, requests));
}

void sl_stats_model_show(const struct sl_model_counting *counting, const struct sl_model_stats *shown)
{
        struct sl_model_stats content = *shown;

        if (counting->shared_counters)
                return;
        content.slot.used = 1;
        content.histograms = counting->counters->histograms;
        memcpy(content.name, counting->counters->name, sizeof(content.name));
        write_slot(&counting->counters->slot, &content, offsetof(struct sl_model_stats, requests));
}

/* ---- clients -------------------------------------------------------------------------------------------------------- */

int sl_stats_client_add(struct sl_stats *stats, const struct sl_client_stats *shown, struct sl_client_stats **ret_slot)
{
        struct sl_client_stats content = *shown;

        return give_slot(stats, SL_STATS_CLIENTS, &content.slot, &stats->spare_client, (void **)ret_slot);
}

void sl_stats_client_remove(struct sl_stats *stats, struct sl_client_stats *slot)
{
        take_slot_back(stats, SL_STATS_CLIENTS, slot ? &slot->slot : NULL);
}

/* ---- workers -------------------------------------------------------------------------------------------------------- */

int sl_stats_worker_add(
        struct sl_stats *stats, const struct sl_worker_stats *shown, bool with_histograms, struct sl_worker_stats **ret_slot)
{
        struct sl_worker_stats content = *shown;
        uint32_t set = 0;
        int r = 0;

        if (with_histograms && unused_slot(stats, SL_STATS_WORKERS))
                set = take_set(stats, &r, NULL);
        content.histograms = set ? set : SL_STATS_NONE;
        return give_slot(stats, SL_STATS_WORKERS, &content.slot, &stats->spare_worker, (void **)ret_slot);
}

void sl_stats_worker_remove(struct sl_stats *stats, struct sl_worker_stats *slot)
{
        if (slot && slot != &stats->spare_worker && slot->histograms != SL_STATS_NONE)
                stats->set_used[slot->histograms] = 0;
        take_slot_back(stats, SL_STATS_WORKERS, slot ? &slot->slot : NULL);
}

void sl_stats_worker_shown(const struct sl_worker_stats *slot, struct sl_worker_stats *ret_shown)
{
        memset(ret_shown, 0, sizeof(*ret_shown));
        sl_seqlock_load(ret_shown, slot, offsetof(struct sl_worker_stats, batches));
}

void sl_stats_worker_show(struct sl_worker_stats *slot, const struct sl_worker_stats *shown)
{
        struct sl_worker_stats content = *shown;

        content.slot.used = 1;
        content.histograms = slot->histograms;
        write_slot(&slot->slot, &content, offsetof(struct sl_worker_stats, batches));
}

struct sl_histogram_set *sl_stats_worker_histograms(struct sl_stats *stats, const struct sl_worker_stats *slot)
{
        if (slot == &stats->spare_worker || slot->histograms == SL_STATS_NONE)
                return NULL;
        return slot_at(stats, SL_STATS_HISTOGRAMS, slot->histograms);
}

/* ---- queues, lets, memory ------------------------------------------------------------------------------------------- */

int sl_stats_queue_add(struct sl_stats *stats, const char *model, enum sl_stats_queue_kind kind, struct sl_queue_stats **ret_slot)
{
        struct sl_queue_stats content = {.kind = kind};

        snprintf(content.model, sizeof(content.model), "%s", model);
        return give_slot(stats, SL_STATS_QUEUES, &content.slot, &stats->spare_queue, (void **)ret_slot);
}

void sl_stats_queue_remove(struct sl_stats *stats, struct sl_queue_stats *slot)
{
        take_slot_back(stats, SL_STATS_QUEUES, slot ? &slot->slot : NULL);
}

int sl_stats_let_add(struct sl_stats *stats, const struct sl_let_stats *shown, struct sl_let_stats **ret_slot)
{
        struct sl_let_stats content = *shown;

        return give_slot(stats, SL_STATS_LETS, &content.slot, &stats->spare_let, (void **)ret_slot);
}

void sl_stats_let_workers(struct sl_let_stats *slot, uint32_t workers)
{
        struct sl_let_stats content;

        sl_seqlock_load(&content, slot, offsetof(struct sl_let_stats, turns));
        content.workers = workers;
        write_slot(&slot->slot, &content, offsetof(struct sl_let_stats, turns));
}

uint32_t sl_stats_let_index(const struct sl_stats *stats, const struct sl_let_stats *slot)
{
        return index_of(stats, SL_STATS_LETS, slot);
}

int sl_stats_memory_add(struct sl_stats *stats, const char *name, struct sl_memory_stats **ret_slot)
{
        struct sl_memory_stats content = {0};

        snprintf(content.name, sizeof(content.name), "%s", name);
        return give_slot(stats, SL_STATS_MEMORY, &content.slot, &stats->spare_memory, (void **)ret_slot);
}

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

/* One more slot of the section has memory. Return: 0; -ENOSPC all have, or there is none; with text. */
static int reserve_slot(struct sl_stats *stats, enum sl_stats_section section, struct sl_error *error)
{
        const struct sl_stats_extent *extent = &stats->sections[section];
        uint32_t n = stats->n_reserved[section];
        int r;

        if (n == extent->count)
                return sl_error_set(error, ENOSPC, "all %u slots of the stats page are in use", n);
        r = sl_stats_reserve(stats, extent->offset + (uint64_t)n * extent->stride, extent->stride, error);
        if (r < 0)
                return -ENOSPC;
        stats->n_reserved[section]++;
        return 0;
}

/* What has no memory is not looked at. Return: 0; -ENOSPC with text. */
static int find_unused(
        struct sl_stats *stats, enum sl_stats_section section, struct sl_stats_slot **ret_slot, struct sl_error *error)
{
        int r;

        for (uint32_t i = 0; i < stats->n_reserved[section]; i++) {
                *ret_slot = slot_at(stats, section, i);
                if (!(*ret_slot)->used)
                        return 0;
        }
        r = reserve_slot(stats, section, error);
        if (r == 0)
                *ret_slot = slot_at(stats, section, stats->n_reserved[section] - 1);
        return r;
}

/* Gives a slot to who is shown as @content, all counters zero; @spare when there is none. Return: 0, -ENOSPC. */
static int give_slot(
        struct sl_stats *stats, enum sl_stats_section section, struct sl_stats_slot *content, void *spare, void **ret_slot)
{
        struct sl_stats_slot *slot = NULL;
        int r = find_unused(stats, section, &slot, NULL);

        *ret_slot = r == 0 ? (void *)slot : spare;
        if (r < 0)
                return r;
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

int sl_stats_start_slots(struct sl_stats *stats, struct sl_error *error)
{
        struct sl_model_stats common = {.slot.used = 1, .state = SL_STATS_MODEL_READY, .name = COMMON_NAME};
        int r = reserve_slot(stats, SL_STATS_MODELS, error);

        if (r < 0)
                return r;
        write_slot(slot_at(stats, SL_STATS_MODELS, 0), &common, sizeof(common));
        stats->model_uses[0].holders = 1;
        stats->set_used[0] = 1;
        for (uint32_t i = 0; i < stats->sections[SL_STATS_DISPATCHERS].count; i++)
                sl_stats_dispatcher_pinned(stats, i, -1);
        return 0;
}

/* ---- sets of histograms --------------------------------------------------------------------------------------------- */

/* @shown: 0 the common one, in which it records; SL_STATS_NONE: it has none. */
static void set_histograms(struct sl_stats *stats, uint32_t number, uint32_t shown)
{
        struct sl_model_stats *slot = slot_at(stats, SL_STATS_MODELS, number);

        stats->model_uses[number].set = shown == SL_STATS_NONE ? 0 : shown;
        sl_seqlock_begin(&slot->slot.seq);
        sl_seqlock_store(&slot->histograms, &shown, sizeof(shown));
        sl_seqlock_end(&slot->slot.seq);
}

static void clear_set(struct sl_histogram_set *set)
{
        _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)set;

        for (size_t i = 0; i < sizeof(*set) / sizeof(*words); i++)
                sl_counter_set(&words[i], 0);
}

/* The set of the model that was unloaded longest ago; 0: all are recorded in. */
static uint32_t take_left_set(struct sl_stats *stats)
{
        struct sl_stats_model_use *oldest = NULL;
        uint32_t set = 0;

        for (uint32_t i = 1; i < stats->n_reserved[SL_STATS_MODELS]; i++) {
                struct sl_stats_model_use *use = &stats->model_uses[i];

                if (use->set && !use->recorders && (!oldest || use->left < oldest->left))
                        oldest = use;
        }
        if (!oldest)
                return 0;
        set = oldest->set;
        set_histograms(stats, (uint32_t)(oldest - stats->model_uses), SL_STATS_NONE);
        return set;
}

/* The number of an unused set of histograms, zeroed; 0 (the common one) if there is none. */
static uint32_t take_set(struct sl_stats *stats, int *ret_result, struct sl_error *error)
{
        const struct sl_stats_extent *extent = &stats->sections[SL_STATS_HISTOGRAMS];
        uint32_t set = 1;

        while (set < extent->count && stats->set_used[set])
                set++;
        if (set < extent->count) {
                *ret_result = sl_stats_reserve(stats, extent->offset + (uint64_t)set * extent->stride, extent->stride, error);
                if (*ret_result < 0)
                        return 0;
        } else {
                set = take_left_set(stats);
        }
        if (!set || set == extent->count) {
                *ret_result = sl_error_set(error, ENOSPC, "stats page of %" PRIu64 " bytes: all %u sets of histograms are in use",
                        stats->bytes, extent->count);
                return 0;
        }
        stats->set_used[set] = 1;
        clear_set(slot_at(stats, SL_STATS_HISTOGRAMS, set));
        return set;
}

/* ---- models --------------------------------------------------------------------------------------------------------- */

static int count_in_common(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        *ret_counting = (struct sl_model_counting){.counters = slot_at(stats, SL_STATS_MODELS, 0),
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, 0),
                .shared_counters = true,
                .shared_histograms = true};
        sl_counter_add(&sl_stats_header_of(stats)->crowded, 1);
        return sl_error_prefix(error, -ENOSPC, "model \"%s\": counted in %s", name, COMMON_NAME);
}

static void count_in(struct sl_stats *stats, uint32_t number, bool records, struct sl_model_counting *ret_counting)
{
        struct sl_stats_model_use *use = &stats->model_uses[number];
        uint32_t set = records ? use->set : 0;

        use->holders++;
        use->recorders += records;
        *ret_counting = (struct sl_model_counting){.counters = slot_at(stats, SL_STATS_MODELS, number),
                .histograms = slot_at(stats, SL_STATS_HISTOGRAMS, set),
                .number = number,
                .records = records,
                .shared_histograms = set == 0};
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint32_t hash_name(const char *name)
{
        uint32_t hash = 0x811c9dc5u;

        for (; *name; name++)
                hash = (hash ^ (unsigned char)*name) * 0x01000193u;
        return hash;
}

/* 0: none has that name. */
static uint32_t slot_named(const struct sl_stats *stats, const char *name)
{
        uint32_t hash = hash_name(name);

        for (uint32_t i = 1; i < stats->n_reserved[SL_STATS_MODELS]; i++) {
                const struct sl_model_stats *slot = slot_at(stats, SL_STATS_MODELS, i);

                if (stats->model_uses[i].holders && stats->model_uses[i].hash == hash && strcmp(slot->name, name) == 0)
                        return i;
        }
        return 0;
}

/* Return: 0: one that is unused and has memory; -ENOSPC with text. */
static int find_unused_model(struct sl_stats *stats, uint32_t *ret_number, struct sl_error *error)
{
        uint32_t i = 1;
        int r = 0;

        while (i < stats->n_reserved[SL_STATS_MODELS] && stats->model_uses[i].holders)
                i++;
        if (i == stats->n_reserved[SL_STATS_MODELS])
                r = reserve_slot(stats, SL_STATS_MODELS, error);
        if (r == 0)
                *ret_number = i;
        return r;
}

static void begin_slot(struct sl_stats *stats, uint32_t number, const char *name)
{
        struct sl_model_stats content = {.slot.used = 1, .histograms = SL_STATS_NONE};

        snprintf(content.name, sizeof(content.name), "%s", name);
        stats->model_uses[number] = (struct sl_stats_model_use){.hash = hash_name(name)};
        write_slot(slot_at(stats, SL_STATS_MODELS, number), &content, sizeof(content));
}

static int give_set(struct sl_stats *stats, uint32_t number, struct sl_error *error)
{
        struct sl_stats_model_use *use = &stats->model_uses[number];
        int r = 0;

        if (use->set)
                return 0;
        set_histograms(stats, number, take_set(stats, &r, error));
        if (!use->set)
                sl_counter_add(&sl_stats_header_of(stats)->crowded, 1);
        return r;
}

static int add_model(
        struct sl_stats *stats, const char *name, bool records, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        uint32_t number = slot_named(stats, name);
        int r = 0;

        if (!number) {
                if (find_unused_model(stats, &number, error) < 0)
                        return count_in_common(stats, name, ret_counting, error);
                begin_slot(stats, number, name);
        }
        if (records && !stats->model_uses[number].recorders)
                r = give_set(stats, number, error);
        count_in(stats, number, records, ret_counting);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\": its histograms are counted in %s", name, COMMON_NAME) : 0;
}

int sl_stats_model_add(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        return add_model(stats, name, true, ret_counting, error);
}

int sl_stats_model_add_shown(
        struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error)
{
        return add_model(stats, name, false, ret_counting, error);
}

#define KEEP_SUM(name, text) sl_counter_add(&open->left_##name, sl_counter_read(&slot->name));

/* Sizes make room for others; what they have counted is the open model's. */
static void keep_sums(struct sl_stats *stats, const struct sl_model_stats *slot)
{
        char of[SL_STATS_MODEL_BYTES];
        uint32_t number = sl_stats_sizes_of(slot, of) ? slot_named(stats, of) : 0;

        if (number) {
                struct sl_model_stats *open = slot_at(stats, SL_STATS_MODELS, number);

                SL_MODEL_SUMS(KEEP_SUM)
        }
}

void sl_stats_model_remove(struct sl_stats *stats, struct sl_model_counting *counting)
{
        struct sl_model_stats *slot = counting->counters;
        struct sl_stats_model_use *use = &stats->model_uses[counting->number];

        if (slot && !counting->shared_counters) {
                if (counting->records && --use->recorders == 0) {
                        use->left = ++stats->lefts;
                        if (!use->set)
                                set_histograms(stats, counting->number, SL_STATS_NONE);
                }
                if (--use->holders == 0) {
                        stats->set_used[use->set] = use->set == 0; /* the common one stays */
                        use->set = 0;
                        keep_sums(stats, slot);
                        release_slot(&slot->slot);
                }
        }
        *counting = (struct sl_model_counting){0};
}

/* Of a model's slot, what is the control thread's: before the counters, and between them and those of ensembles. */
#define MODEL_HEAD_BYTES  offsetof(struct sl_model_stats, requests)
#define MODEL_TAIL_OFFSET offsetof(struct sl_model_stats, want)
#define MODEL_TAIL_BYTES  (offsetof(struct sl_model_stats, skipped) - MODEL_TAIL_OFFSET)

void sl_stats_model_shown(const struct sl_model_counting *counting, struct sl_model_stats *ret_shown)
{
        memset(ret_shown, 0, sizeof(*ret_shown));
        if (counting->shared_counters)
                return;
        sl_seqlock_load(ret_shown, counting->counters, MODEL_HEAD_BYTES);
        sl_seqlock_load(
                (char *)ret_shown + MODEL_TAIL_OFFSET, (const char *)counting->counters + MODEL_TAIL_OFFSET, MODEL_TAIL_BYTES);
}

static void write_model(struct sl_model_stats *slot, const struct sl_model_stats *content)
{
        size_t skip = offsetof(struct sl_stats_slot, used);

        sl_seqlock_begin(&slot->slot.seq);
        sl_seqlock_store((char *)slot + skip, (const char *)content + skip, MODEL_HEAD_BYTES - skip);
        sl_seqlock_store((char *)slot + MODEL_TAIL_OFFSET, (const char *)content + MODEL_TAIL_OFFSET, MODEL_TAIL_BYTES);
        sl_seqlock_end(&slot->slot.seq);
}

void sl_stats_model_show(const struct sl_model_counting *counting, const struct sl_model_stats *shown)
{
        struct sl_model_stats content = *shown;

        if (counting->shared_counters)
                return;
        content.slot.used = 1;
        content.histograms = counting->counters->histograms;
        memcpy(content.name, counting->counters->name, sizeof(content.name));
        write_model(counting->counters, &content);
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

        if (with_histograms && find_unused(stats, SL_STATS_WORKERS, &(struct sl_stats_slot *){NULL}, NULL) == 0)
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

/* ---- queues, lets, memory, steps ------------------------------------------------------------------------------------ */

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

int sl_stats_step_add(struct sl_stats *stats, const char *name, struct sl_step_stats **ret_slot)
{
        struct sl_step_stats content = {0};

        snprintf(content.name, sizeof(content.name), "%s", name);
        return give_slot(stats, SL_STATS_STEPS, &content.slot, &stats->spare_step, (void **)ret_slot);
}

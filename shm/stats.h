/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats page, written and read: its layout is stats_layout.h.
 *
 * Threads: create, free, add and remove on the runtime's control thread. A slot is the control thread's until it hands it on, and
 * again once its users are done. Readers: any process; they get copies and never wait.
 */
#pragma once

#include "stats_layout.h"

#include <stdbool.h>

struct sl_error;
struct sl_stats_guard;

/* ---- the runtime's side --------------------------------------------------------------------------------------------- */

struct sl_stats;

struct sl_stats_options {
        const char *name;      /* of the runtime; no slash, at most 63 bytes */
        const char *directory; /* NULL: SL_STATS_DIRECTORY */
        const char *wait_name;
        const char *release;                  /* of Starling; NULL: "" */
        const struct sl_stats_guard *guard;   /* who may read it; NULL: everybody */
        uint64_t bytes;                       /* of the file; 0: SL_STATS_BYTES_DEFAULT. Memory is taken as slots are used */
        uint32_t counts[SL_STATS_SECTIONS_N]; /* slots of each section; 0: as many as stats.c says. Histograms get the rest.
                                                 Of records and spans only whether: SL_STATS_NONE is none */
};

/*
 * Creates the page, or replaces the one that a dead runtime of this name left behind: of one that served and crashed it is kept, as
 * NAME~last, until the next one crashes, this one ends as it should, or its memory is needed for the page. The text names path and
 * bytes. Return: 0, or -EINVAL      the name, or no room for the sections in so few bytes -EADDRINUSE  a runtime of this name
 * lives; one that was killed or told to end just now is waited for, up to 10 s -EPERM       the path is a symbolic link, no regular
 * file, or somebody else's -ENOSPC      the file system is full -ENOMEM, -errno
 */
int sl_stats_create(const struct sl_stats_options *options, struct sl_stats **ret_stats, struct sl_error *error);

/* Of a page of so many bytes, with the counts that stats.c says: what it takes of its file system at once; the rest comes with
 * models. */
uint64_t sl_stats_bytes_at_once(uint64_t bytes);

/* Where it lies; whether a dead runtime's lay there; 0, or why (-errno) nobody but the owner may read it although @guard names
 * others. */
const char *sl_stats_path(const struct sl_stats *stats);
bool sl_stats_has_replaced(const struct sl_stats *stats);
int sl_stats_guarded(const struct sl_stats *stats);

/* True when a living runtime's page @name lies in @directory. */
bool sl_stats_is_claimed(const char *name, const char *directory);

/* The same, after one that was killed or told to end just now was waited for, as sl_stats_create() does. */
bool sl_stats_stays_claimed(const char *name, const char *directory);

/* Removes the file, and what is kept of a crash before if this one was READY. NULL is fine. */
struct sl_stats *sl_stats_free(struct sl_stats *stats);

void sl_stats_set_state(struct sl_stats *stats, enum sl_runtime_state state);

/*
 * How many bytes of the page have memory by now. From sl_stats_promise() on whoever counts the memory of the runtime is asked for
 * each more, and may refuse it (-ENOMEM): then there is no more slot than there was.
 */
uint64_t sl_stats_reserved(const struct sl_stats *stats);
void sl_stats_promise(struct sl_stats *stats, int (*promise)(void *context, uint64_t more), void *context);

/* What the runtime has promised of the memory that it may take. */
void sl_stats_set_memory(struct sl_stats *stats, uint64_t bytes, uint64_t max);

/* @bytes more are promised; modulo 2^64, for less. Any thread. */
void sl_stats_add_memory(struct sl_stats *stats, uint64_t bytes);

/*
 * What stands before the counters of a slot is control's, and of a model what is wanted of it: a copy of it is changed and shown
 * again. Of the copy, what is behind
 * counts for nothing, and so do `slot` and the numbers of histograms.
 */

/* Dispatcher @index's slot; NULL unless there are so many. In use from the start. */
struct sl_dispatcher_stats *sl_stats_dispatcher(struct sl_stats *stats, uint32_t index);
void sl_stats_dispatcher_pinned(struct sl_stats *stats, uint32_t index, int32_t core);
void sl_stats_dispatcher_samples(struct sl_stats *stats, uint32_t index, uint32_t sampling);

/* The slots of a section that somebody else writes (recorder.h); a slot's number there, SL_STATS_NONE: it is none of them. */
void *sl_stats_slots(struct sl_stats *stats, enum sl_stats_section section, uint32_t *ret_n);
uint32_t sl_stats_number(const struct sl_stats *stats, enum sl_stats_section section, const void *slot);

/* What a model's thread counts with: pointers into the page, and whether other models count in the same place. A plain value. */
struct sl_model_counting {
        struct sl_model_stats *counters;
        struct sl_histogram_set *histograms;
        uint32_t number; /* of the slot that has the counters */
        bool shared_counters, shared_histograms;
        bool records; /* in the histograms: they are its own */
};

/*
 * A slot for what is served as @name: each time that it is added it is the same one, which goes on counting, and it is free when it
 * was removed as often. What sizes of an open model have counted is then added to what has left of that, if it has a slot. Return:
 * 0; -ENOSPC: no room for its histograms (or no slot at all): *ret_counting is usable nevertheless and counts in the common ones,
 * the text says so.
 */
int sl_stats_model_add(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error);

/*
 * The same of a name that is not loaded, or by who only shows what it is: it takes no histograms. Those of a model that nobody has
 * added otherwise any more go on being shown, until another one needs them.
 */
int sl_stats_model_add_shown(
        struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error);
void sl_stats_model_remove(struct sl_stats *stats, struct sl_model_counting *counting);

/* The common slot shows nothing of a model. */
void sl_stats_model_shown(const struct sl_model_counting *counting, struct sl_model_stats *ret_shown);
void sl_stats_model_show(const struct sl_model_counting *counting, const struct sl_model_stats *shown);

/* @shown: id, uid, pid, label, and so on. Return: 0, -ENOSPC: all are in use; *ret_slot is then an unpublished one that may be
 * written as any other. */
int sl_stats_client_add(struct sl_stats *stats, const struct sl_client_stats *shown, struct sl_client_stats **ret_slot);
void sl_stats_client_remove(struct sl_stats *stats, struct sl_client_stats *slot);

/* As for clients. @with_histograms: it has a set of its own, if there is room. */
int sl_stats_worker_add(
        struct sl_stats *stats, const struct sl_worker_stats *shown, bool with_histograms, struct sl_worker_stats **ret_slot);
void sl_stats_worker_remove(struct sl_stats *stats, struct sl_worker_stats *slot);
void sl_stats_worker_shown(const struct sl_worker_stats *slot, struct sl_worker_stats *ret_shown);
void sl_stats_worker_show(struct sl_worker_stats *slot, const struct sl_worker_stats *shown);

/* NULL: it has none. Its dispatcher records in it. */
struct sl_histogram_set *sl_stats_worker_histograms(struct sl_stats *stats, const struct sl_worker_stats *slot);

/* As for clients. */
int sl_stats_queue_add(struct sl_stats *stats, const char *model, enum sl_stats_queue_kind kind, struct sl_queue_stats **ret_slot);
void sl_stats_queue_remove(struct sl_stats *stats, struct sl_queue_stats *slot);

/* As for clients. They stay as long as the page. */
int sl_stats_let_add(struct sl_stats *stats, const struct sl_let_stats *shown, struct sl_let_stats **ret_slot);
void sl_stats_let_workers(struct sl_let_stats *slot, uint32_t workers);
uint32_t sl_stats_let_index(const struct sl_stats *stats, const struct sl_let_stats *slot); /* SL_STATS_NONE: it has no slot */

/* As for lets. */
int sl_stats_memory_add(struct sl_stats *stats, const char *name, struct sl_memory_stats **ret_slot);

/* As for lets. */
int sl_stats_step_add(struct sl_stats *stats, const char *name, struct sl_step_stats **ret_slot);

static inline void sl_counter_set(_Atomic uint64_t *counter, uint64_t value)
{
        atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* sl_model_count(&counting, completed, 1) */
#define sl_model_count(counting, field, n) sl_model_count_at((counting), &(counting)->counters->field, (n))

static inline void sl_model_count_at(const struct sl_model_counting *counting, _Atomic uint64_t *counter, uint64_t n)
{
        if (counting->shared_counters)
                atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
        else
                sl_counter_add(counter, n);
}

static inline void sl_model_record(const struct sl_model_counting *counting, enum sl_stage stage, uint64_t ns)
{
        if (counting->shared_histograms)
                sl_histogram_record_shared(&counting->histograms->stages[stage], ns);
        else
                sl_histogram_record(&counting->histograms->stages[stage], ns);
}

/* ---- a reader's side ------------------------------------------------------------------------------------------------ */

struct sl_stats_view;

/*
 * Opens the page of runtime @name for reading. @directory: NULL: SL_STATS_DIRECTORY, else the folder of its socket; that of a
 * living runtime is preferred, and there a page is believed only if it is root's, the caller's own, or of whom the socket belongs
 * to (without a socket: its folder, if nobody else may write there). In a @directory that is given it may be anybody's. Return: 0;
 * -ENOENT; -EPERM somebody else's; -EBADMSG no stats page, damaged, or of another version (the text says which); -errno.
 */
int sl_stats_open(const char *name, const char *directory, struct sl_stats_view **ret_view, struct sl_error *error);

/* The same of the page that the runtime of that name had before, if that crashed. */
int sl_stats_open_last(const char *name, struct sl_stats_view **ret_view, struct sl_error *error);

/* The same of a file, wherever it lies and whosever it is. */
int sl_stats_open_file(const char *path, struct sl_stats_view **ret_view, struct sl_error *error);
struct sl_stats_view *sl_stats_close(struct sl_stats_view *view);

/*
 * Its owner may cut the file off at any time: what was there is then not read (-EBADMSG). Return: 0; -EBADMSG it has been cut off
 * since it was opened, with text.
 */
int sl_stats_check(const struct sl_stats_view *view, struct sl_error *error);

/* Copy of the header; zeros when the file has been cut off. */
void sl_stats_read_header(const struct sl_stats_view *view, struct sl_stats_header *ret_header);

/* True while the runtime that writes this page lives. */
bool sl_stats_is_live(const struct sl_stats_view *view);

/* The user whom the file belongs to; UINT32_MAX: not known. */
uint32_t sl_stats_owner(const struct sl_stats_view *view);

/* Number of slots, used or not: the bound of @index below. */
uint32_t sl_stats_count(const struct sl_stats_view *view, enum sl_stats_section section);

/*
 * Copy of a slot of any section but the histograms, texts in it terminated. Return: 0; -ENOENT unused or out of range; -EAGAIN just
 * being changed, or left so by a crash; -EBADMSG, -errno it cannot be read.
 */
int sl_stats_read_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot);

/*
 * The same of what changes all the time, a record or a span, without trying again: -EAGAIN is then no sign of a crash, and the copy
 * is torn: of each word either what stood there before or after.
 */
int sl_stats_try_slot(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_stats_slot *ret_slot);

#define SL_STATS_READER(name, section, type)                                                                                       \
        static inline int name(const struct sl_stats_view *view, uint32_t index, type *ret_slot)                                   \
        {                                                                                                                          \
                return sl_stats_read_slot(view, section, index, &ret_slot->slot);                                                  \
        }

SL_STATS_READER(sl_stats_read_dispatcher, SL_STATS_DISPATCHERS, struct sl_dispatcher_stats)
SL_STATS_READER(sl_stats_read_model, SL_STATS_MODELS, struct sl_model_stats)
SL_STATS_READER(sl_stats_read_client, SL_STATS_CLIENTS, struct sl_client_stats)
SL_STATS_READER(sl_stats_read_worker, SL_STATS_WORKERS, struct sl_worker_stats)
SL_STATS_READER(sl_stats_read_queue, SL_STATS_QUEUES, struct sl_queue_stats)
SL_STATS_READER(sl_stats_read_let, SL_STATS_LETS, struct sl_let_stats)
SL_STATS_READER(sl_stats_read_memory, SL_STATS_MEMORY, struct sl_memory_stats)
SL_STATS_READER(sl_stats_read_step, SL_STATS_STEPS, struct sl_step_stats)

static inline int sl_stats_read_record(
        const struct sl_stats_view *view, enum sl_stats_section section, uint32_t index, struct sl_flight_record *ret_record)
{
        return sl_stats_try_slot(view, section, index, &ret_record->slot);
}

/*
 * Copies of a set of histograms, or of one in it; @set: `histograms` of a model's or a worker's slot. Return: 0; -ENOENT there is
 * none of that number; -EBADMSG, -errno it cannot be read.
 */
int sl_stats_read_histograms(const struct sl_stats_view *view, uint32_t set, struct sl_histogram_set *ret_set);
int sl_stats_read_histogram(
        const struct sl_stats_view *view, uint32_t set, enum sl_stage stage, struct sl_histogram *ret_histogram);

/* Names of codes; of a number that is none "unknown". */

const char *sl_stage_name(uint32_t stage);
const char *sl_refusal_text(uint32_t refusal);
const char *sl_batch_reason_text(uint32_t reason);
const char *sl_stats_model_state_name(uint32_t state);
const char *sl_stats_model_kind_name(uint32_t kind);
const char *sl_stats_queue_kind_name(uint32_t kind);
const char *sl_stats_worker_state_name(uint32_t state);
const char *sl_flight_stage_name(uint32_t stage);

/* Is it sizes of an open model ("bert[128]")? Return: true, with the name of that; false also where there was no room for the "[".
 */
bool sl_stats_sizes_of(const struct sl_model_stats *model, char ret_name[SL_STATS_MODEL_BYTES]);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two rings of a queue pair, as inline functions over a sl_queue_map. Layout and memory order: layout.h.
 * Each struct below is private memory of its one thread; the shared words are touched nowhere else.
 */
#pragma once

#include "layout.h"

#include <string.h>

/* A word of a struct, whatever the types of its members. */
typedef _Atomic uint64_t __attribute__((may_alias)) sl_line_word;

/* Copies one line word by word with relaxed loads: the other side may be writing it, and each word is read once. */
static inline void sl_line_copy(void *restrict to, const void *from)
{
        const sl_line_word *source = from;

        for (int i = 0; i < SL_LINE_BYTES / 8; i++) {
                uint64_t word = atomic_load_explicit(&source[i], memory_order_relaxed);

                memcpy((char *)to + 8 * i, &word, sizeof(word));
        }
}

/* ---- client's side: submission ---- */

struct sl_submitter {
        uint32_t tail;     /* entries published */
        uint32_t consumed; /* cached copy of the dispatcher's index */
};

/* Free slots; looks at the shared index only when the cached one says full. */
static inline uint32_t sl_submitter_room(struct sl_submitter *s, const struct sl_queue_map *q)
{
        uint32_t room = q->depth - (s->tail - s->consumed);

        if (room)
                return room;
        s->consumed = atomic_load_explicit(&q->response->consumed, memory_order_acquire); /* F2 */
        return q->depth - (s->tail - s->consumed);
}

/* The slot of the next entry; sl_submitter_room() said that there is one. */
static inline struct sl_entry *sl_submitter_slot(const struct sl_submitter *s, const struct sl_queue_map *q)
{
        return &q->entries[s->tail & q->mask];
}

/* Publishes the slot, everything but its sequence number being filled. */
static inline void sl_submitter_publish(struct sl_submitter *s, const struct sl_queue_map *q)
{
        struct sl_entry *entry = sl_submitter_slot(s, q);

        atomic_store_explicit(&entry->seq, ++s->tail, memory_order_release); /* S1 */
}

/* ---- runtime's side: submission ---- */

/* Copies the next entry if there is one. Its private index is @head; the caller advances it and publishes (F1). */
static inline int sl_entry_take(uint32_t head, const struct sl_queue_map *q, struct sl_entry *ret_entry)
{
        struct sl_entry *slot = &q->entries[head & q->mask];

        if (atomic_load_explicit(&slot->seq, memory_order_acquire) != head + 1) /* S2 */
                return 0;
        sl_line_copy(ret_entry, slot);
        return 1;
}

static inline void sl_consumed_publish(uint32_t head, const struct sl_queue_map *q)
{
        atomic_store_explicit(&q->response->consumed, head, memory_order_release); /* F1 */
}

/* ---- runtime's side: completion ---- */

struct sl_completer {
        uint32_t next;      /* completions written */
        uint32_t published; /* completions that the client may see */
};

/* What a completion's slot says while it holds completion @index: laps alternate, and 0 is none yet. */
static inline uint16_t sl_lap(uint32_t index, const struct sl_queue_map *q)
{
        return index & q->depth ? 2 : 1;
}

/*
 * Writes the next completion, but for its lap; there is always a slot: at most depth requests are in flight. Field by field, so
 * that a literal goes straight into the slot.
 */
static inline void sl_completer_put(struct sl_completer *c, const struct sl_queue_map *q, const struct sl_completion *from)
{
        struct sl_completion *slot = &q->response->completions[c->next++ & q->mask];

        slot->user_data = from->user_data;
        slot->status = from->status;
        slot->tag = from->tag;
        slot->flags = from->flags;
        slot->queued_ns = from->queued_ns;
        slot->batched_ns = from->batched_ns;
        slot->computing_ns = from->computing_ns;
        slot->combining_ns = from->combining_ns;
        slot->bytes_needed = from->bytes_needed;
        slot->index = from->index;
        slot->n_outputs = from->n_outputs;
}

/* Publishes all that was written, the oldest last: who sees that one sees them all. True if there was anything. */
static inline int sl_completer_publish(struct sl_completer *c, const struct sl_queue_map *q)
{
        if (c->next == c->published)
                return 0;
        for (uint32_t i = c->next; i-- != c->published;)
                atomic_store_explicit(&q->response->completions[i & q->mask].lap, sl_lap(i, q), memory_order_release); /* C1 */
        c->published = c->next;
        atomic_store_explicit(&q->response->tail, c->next, memory_order_release); /* E1 */
        return 1;
}

/* Completions that the client has taken, clamped to what is possible. */
static inline uint32_t sl_completer_taken(const struct sl_completer *c, const struct sl_queue_map *q)
{
        uint32_t head = atomic_load_explicit(&q->request->head, memory_order_acquire); /* D2 */

        return c->published - head <= q->depth ? head : c->published - q->depth;
}

/* ---- client's side: completion ---- */

struct sl_reaper {
        uint32_t head; /* completions taken */
};

/* The next completion; NULL: it has not come yet. */
static inline const struct sl_completion *sl_reaper_peek(const struct sl_reaper *r, const struct sl_queue_map *q)
{
        const struct sl_completion *slot = &q->response->completions[r->head & q->mask];

        return atomic_load_explicit(&slot->lap, memory_order_acquire) == sl_lap(r->head, q) ? slot : NULL; /* C2 */
}

static inline void sl_reaper_advance(struct sl_reaper *r)
{
        r->head++;
}

/* Gives the slots back, once per batch. */
static inline void sl_reaper_publish(const struct sl_reaper *r, const struct sl_queue_map *q)
{
        atomic_store_explicit(&q->request->head, r->head, memory_order_release); /* D1 */
}

/* Is there a completion beyond the first @head, as a sleeper looks (W2 of doorbell.h)? @tail: as read with seq_cst. */
static inline int sl_tail_is_beyond(uint32_t tail, uint32_t head)
{
        return (int32_t)(tail - head) > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence lock: one writer, any number of readers that try again when they met a change. Used by the catalogue and the stats
 * page. (Q1) writer: seq odd, then every word with store-release, then seq even with store-release. (Q2) reader: load-acquire seq,
 * every word with load-acquire, load seq; equal and even means a true copy.   pairs with Q1 A reader that saw a word of the new
 * state also sees the odd seq before it. No fences are needed, so ThreadSanitizer can follow.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define SL_SEQLOCK_TRIES 1000

#define SL_SEQLOCK_SPINS    64
#define SL_SEQLOCK_PAUSE_NS 200000

/* Behind try number @i, the first being 0. A writer that was taken off its core inside of a change gets time to end it. */
static inline void sl_seqlock_pause(int i)
{
        if (i % SL_SEQLOCK_SPINS == SL_SEQLOCK_SPINS - 1)
                nanosleep(&(struct timespec){.tv_nsec = SL_SEQLOCK_PAUSE_NS}, NULL);
}

static inline void sl_seqlock_begin(_Atomic uint32_t *seq)
{
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void sl_seqlock_end(_Atomic uint32_t *seq)
{
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_release);
}

/* Words of a struct, whatever the types of its members. */
typedef _Atomic uint64_t __attribute__((may_alias)) sl_seqlock_long;
typedef _Atomic uint32_t __attribute__((may_alias)) sl_seqlock_word;

/* Addresses and @bytes are multiples of 4. Where @shared and @bytes are multiples of 8, no word of 8 bytes is ever torn. */
static inline void sl_seqlock_store(void *shared, const void *from, size_t bytes)
{
        size_t step = ((uintptr_t)shared | bytes) % 8 ? 4 : 8;

        for (size_t i = 0; i < bytes; i += step) {
                uint64_t value = 0;

                memcpy(&value, (const char *)from + i, step); /* little-endian: a short word is the lower half */
                if (step == 8)
                        atomic_store_explicit((sl_seqlock_long *)((char *)shared + i), value, memory_order_release);
                else
                        atomic_store_explicit((sl_seqlock_word *)((char *)shared + i), (uint32_t)value, memory_order_release);
        }
}

static inline void sl_seqlock_load(void *restrict to, const void *shared, size_t bytes)
{
        size_t step = ((uintptr_t)shared | bytes) % 8 ? 4 : 8;

        for (size_t i = 0; i < bytes; i += step) {
                uint64_t value;

                if (step == 8)
                        value = atomic_load_explicit((const sl_seqlock_long *)((const char *)shared + i), memory_order_acquire);
                else
                        value = atomic_load_explicit((const sl_seqlock_word *)((const char *)shared + i), memory_order_acquire);
                memcpy((char *)to + i, &value, step);
        }
}

/* Copies @bytes that @seq guards, or what it meets in the middle of a change. Return: 0; -EAGAIN: it met one. */
static inline int sl_seqlock_try(const _Atomic uint32_t *seq, void *restrict to, const void *from, size_t bytes)
{
        uint32_t before = atomic_load_explicit(seq, memory_order_acquire);

        sl_seqlock_load(to, from, bytes);
        return !(before & 1) && atomic_load_explicit(seq, memory_order_relaxed) == before ? 0 : -EAGAIN;
}

/* The same until it is whole. Return: 0; -EAGAIN: every try met a change, so the writer is very busy or died inside one. */
static inline int sl_seqlock_read(const _Atomic uint32_t *seq, void *restrict to, const void *from, size_t bytes)
{
        for (int i = 0; i < SL_SEQLOCK_TRIES; i++) {
                if (sl_seqlock_try(seq, to, from, bytes) == 0)
                        return 0;
                sl_seqlock_pause(i);
        }
        return -EAGAIN;
}

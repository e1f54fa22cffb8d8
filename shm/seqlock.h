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

#define SL_SEQLOCK_TRIES 1000

static inline void sl_seqlock_begin(_Atomic uint32_t *seq)
{
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void sl_seqlock_end(_Atomic uint32_t *seq)
{
        atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1, memory_order_release);
}

/* Addresses and @bytes are multiples of 4. Where they are multiples of 8, words of 8 bytes are never torn. */
static inline void sl_seqlock_store(void *to, const void *from, size_t bytes)
{
        if (((uintptr_t)to | (uintptr_t)from | bytes) % 8 == 0)
                for (size_t i = 0; i < bytes / 8; i++)
                        atomic_store_explicit((_Atomic uint64_t *)to + i, ((const uint64_t *)from)[i], memory_order_release);
        else
                for (size_t i = 0; i < bytes / 4; i++)
                        atomic_store_explicit((_Atomic uint32_t *)to + i, ((const uint32_t *)from)[i], memory_order_release);
}

static inline void sl_seqlock_load(void *restrict to, const void *from, size_t bytes)
{
        if (((uintptr_t)to | (uintptr_t)from | bytes) % 8 == 0)
                for (size_t i = 0; i < bytes / 8; i++)
                        ((uint64_t *)to)[i] = atomic_load_explicit((const _Atomic uint64_t *)from + i, memory_order_acquire);
        else
                for (size_t i = 0; i < bytes / 4; i++)
                        ((uint32_t *)to)[i] = atomic_load_explicit((const _Atomic uint32_t *)from + i, memory_order_acquire);
}

/* Copies @bytes that @seq guards. Return: 0; -EAGAIN: every try met a change, so the writer is very busy or died inside one. */
static inline int sl_seqlock_read(const _Atomic uint32_t *seq, void *restrict to, const void *from, size_t bytes)
{
        for (int i = 0; i < SL_SEQLOCK_TRIES; i++) {
                uint32_t before = atomic_load_explicit(seq, memory_order_acquire);

                if (before & 1)
                        continue;
                sl_seqlock_load(to, from, bytes);
                if (atomic_load_explicit(seq, memory_order_relaxed) == before)
                        return 0;
        }
        return -EAGAIN;
}

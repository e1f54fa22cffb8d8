/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history: what sl_converge() was asked and what it answered, one call after the other, as bytes. Who reads them asks it the same
 * again and compares the steps.
 *
 *     head | call | call | ...
 *     call: head | names that are other than in the call before | groups | steps
 *
 * A call that finds nothing changed and nothing to do is left out. Structs lie there as they are in memory: a reader is built from
 * the same headers as the writer, which the head shows. Plain values; no I/O.
 */
#pragma once

#include "step.h"

#include <stddef.h>

/* Takes @bytes of a history, one piece behind the other. */
typedef void (*sl_history_put_fn)(void *context, const void *bytes, size_t n);

struct sl_history_writer {
        sl_history_put_fn put;
        void *context;
        uint64_t written[SL_FLEET_NAMES_MAX]; /* a hash of each name as it was written last; 0: it has not been */
};

/* The head; all names are new. */
void sl_history_begin(struct sl_history_writer *writer);

/* One call, and its answer. */
void sl_history_write(struct sl_history_writer *writer, const struct sl_fleet *fleet, const struct sl_step *steps, uint32_t n_steps,
        uint64_t due_ns);

struct sl_history_reader {
        const char *at;
        size_t left;
        struct sl_fleet_name names[SL_FLEET_NAMES_MAX];
};

struct sl_history_call {
        struct sl_fleet fleet; /* its arrays are the reader's, or lie in the bytes; until the next call is read */
        uint32_t n_steps;
        const struct sl_step *steps;
        uint64_t due_ns;
};

/* @bytes stay, and begin at a multiple of 8. Return: 0; -EBADMSG it is no history, or one of another build. */
int sl_history_open(struct sl_history_reader *reader, const void *bytes, size_t n);

/* Return: 1; 0 there is no more, or the rest of it was cut off; -EBADMSG it contradicts itself. */
int sl_history_next(struct sl_history_reader *reader, struct sl_history_call *ret_call);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulator: stages the members' predictions of a segment and combines them once, when the last one is there
 * (ensemble paper, section II.C.2; there a process, here the thread of whichever sender comes last, so that no hop is added).
 *
 *   (P1) sender: prediction written to its place in the staging, then fetch_sub(missing, 1, acq_rel).
 *   (P2) the sender that takes `missing` from 1 to 0: everything of P1 is visible to it; it combines.    pairs with P1
 * The result is stored in the client's arena before the sender's message goes to the dispatcher (mailbox.h, B1).
 *
 * A segment belongs to the dispatcher until it is broadcast and after all members' messages have come back; in between its
 * senders own their parts of the staging. Staging is one arena of the runtime, allocated at the start: a segment is not
 * broadcast before its staging is there.
 */
#pragma once

#include "arena.h"

#include <stdatomic.h>
#include <stdint.h>

struct sl_assembly;
struct sl_work;

/* One segment in flight: consecutive samples of a request, at most N. */
struct sl_segment {
        struct sl_work *work;
        uint32_t start, samples; /* of the request: [start, start + samples) */
        _Atomic uint32_t missing;  /* members whose prediction is not staged (P1) */
        _Atomic uint32_t failures; /* members that could not predict: nothing is combined */
        unsigned char *staging;    /* [member][output][samples...]; NULL when members write into the client's outputs */
        uint64_t staging_offset;
        uint32_t messages_left; /* dispatcher */
        uint32_t next_free;     /* dispatcher */
};

struct sl_accumulator;

/*
 * @segments: how many may be in flight. @staging_bytes: memory for predictions, mapped now, faulted in by its first use.
 * Return: 0, -ENOMEM.
 */
int sl_accumulator_new(uint32_t segments, uint64_t staging_bytes, struct sl_accumulator **ret_accumulator);
struct sl_accumulator *sl_accumulator_free(struct sl_accumulator *accumulator);

/*
 * Dispatcher: a segment with its staging: samples [start, start + samples) of the request whose @work it is, at most N.
 * Return: its id; for now -EAGAIN: no record is free; -ENOMEM: no staging.
 */
int sl_accumulator_open(struct sl_accumulator *accumulator, struct sl_work *work, uint32_t start, uint32_t samples);

/* Dispatcher: all messages of the segment are back. */
void sl_accumulator_close(struct sl_accumulator *accumulator, uint32_t segment);

/* Any thread: the segment of an id that was opened and not closed. */
struct sl_segment *sl_accumulator_segment(struct sl_accumulator *accumulator, uint32_t segment);

/* Bytes of staging that a segment of @samples needs; 0 when nothing is staged. */
uint64_t sl_accumulator_staging_bytes(const struct sl_assembly *assembly, uint32_t samples);

/* Worker: where member @member puts output @output of this segment; [segment->samples, ...], PLAIN. */
void *sl_accumulator_place(const struct sl_segment *segment, uint32_t member, uint32_t output);

/*
 * Sender (P1, P2): this member's prediction is in its place, or @status says why there is none.
 * Return: 0: others are missing; 1: this was the last, and the result stands in the client's outputs, unless a member failed
 * or the request has been given up; -ETIME: the last, but the deadline has passed and nothing was combined.
 */
int sl_accumulator_deliver(struct sl_segment *segment, int status);

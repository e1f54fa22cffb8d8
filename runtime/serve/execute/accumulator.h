/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulator: stages the members' predictions of a segment and combines them once, when the last one is there
 * (ensemble paper, section II.C.2; there a process, here the thread of whichever sender comes last, so that no hop is added).
 * It counts samples, as a member's prediction of a segment may come in pieces, and from several workers.
 *
 *   (P1) sender: predictions written to their place in the staging, then fetch_sub(missing, samples, seq_cst).
 *   (P2) the sender that takes `missing` to 0: everything of P1 is visible to it; it combines.    pairs with P1
 *   (P3) sender: its answer put into its mailbox, then load-seq_cst missing. Who came before the last one with P1 and after it with
 *        its answer finds 0, as P1, the mailbox and the bell (bell.h) have one total order: the dispatcher may have heard of the
 *        end, and sleep for ends, but the segment is open until this answer.    pairs with P1
 * The result is stored in the client's arena before the sender's answer goes to the dispatcher (mailbox.h, B1).
 *
 * A segment belongs to the dispatcher until it is broadcast and after all pieces have been answered; in between its senders own
 * their parts of the staging. Staging is one region, made at the start: a segment is not broadcast before its staging is there.
 */
#pragma once

#include "regions.h"
#include "segment_staging.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_job;
struct sl_made_output;
struct sl_piece;

/* A request as it looks to those who assemble its outputs. Filled before its first segment, and left alone until the last is
 * closed. */
struct sl_work {
        const struct sl_assembly *assembly;
        struct sl_place *inputs, *outputs; /* of the whole request's first sample */
        struct sl_made_output *made;       /* of each output; the dispatcher's */
        struct sl_made_output *given;      /* of each input, where a request says sizes (assembly.h, open_inputs); the same */
        uint64_t deadline_ns;              /* CLOCK_MONOTONIC; 0: none */
        uint64_t origin;                   /* of random numbers: another one for each request */
        uint32_t segments;                 /* list of those that are open; SL_NO_SEGMENT: none */
};

#define SL_NO_SEGMENT UINT32_MAX

/* One segment in flight: consecutive samples of a request, at most N. */
struct sl_segment {
        struct sl_work *work;
        uint32_t start, samples;   /* of the request: [start, start + samples) */
        _Atomic uint32_t missing;  /* samples, of each member, whose prediction is not staged (P1) */
        _Atomic uint32_t failures; /* pieces that could not be predicted: nothing is combined */
        _Atomic uint32_t
                combined; /* samples, of member 0, whose result stands in the client's outputs: it was combined elsewhere */
        _Atomic uint32_t unstaged; /* samples, of each member, that were, and have no prediction in the staging */
        struct sl_place staging;   /* [member][output][samples...]; bytes 0 when members write into the client's outputs */
        uint64_t staging_bytes;

        /*
         * Where members may be missing (assembly.h, is_partial). A segment has a stage for the members that are asked at once, and
         * one for each that is asked behind them. The dispatcher writes `asked` before it publishes a stage (mailbox.h, B1); the
         * sender that takes `missing` to 0 (P2) writes the others, before its answer.
         */
        uint32_t asked;              /* members, the first ones */
        uint32_t open;               /* samples that want another one; 0: the result stands, or there is none */
        int32_t lacks;               /* -errno: too few have answered; else 0 */
        struct sl_members_used used; /* by the result */

        /* dispatcher */
        bool is_stacked;         /* the combiner has been asked */
        bool is_inline;          /* what the dispatcher may compute itself */
        uint64_t predictions;    /* asked for: samples, of each member */
        uint32_t gpu;            /* 1 + the GPU whose process may combine it; 0: it is combined here */
        uint32_t expected;       /* samples, of each member */
        uint32_t unanswered;     /* of them */
        uint32_t next, previous; /* of the same work; next: of those that are free */
};

struct sl_accumulator;

/*
 * @regions: where work's tensors lie, and the staging will. @segments: how many may be in flight. @staging_bytes: memory for
 * predictions, mapped now, faulted in by its first use. Return: 0, -ENOMEM, -EMFILE, -E2BIG no region is left.
 */
int sl_accumulator_new(
        struct sl_regions *regions, uint32_t segments, uint64_t staging_bytes, struct sl_accumulator **ret_accumulator);
struct sl_accumulator *sl_accumulator_free(struct sl_accumulator *accumulator);

/*
 * Dispatcher: a segment with its staging: samples [start, start + samples) of the request whose @work it is, at most N.
 * Return: its id; for now -EAGAIN: no record is free; -ENOMEM: no staging.
 */
int sl_accumulator_open(struct sl_accumulator *accumulator, struct sl_work *work, uint32_t start, uint32_t samples);

/* For SL_WALK(), dispatcher: what holds of all records and of an open one, as accumulator.c lists it. */
void sl_accumulator_walk(const struct sl_accumulator *accumulator, uint32_t segment);

/* Dispatcher: all pieces of the segment are answered. */
void sl_accumulator_close(struct sl_accumulator *accumulator, uint32_t segment);

/* Any thread: the segment of an id that was opened and not closed. */
struct sl_segment *sl_accumulator_segment(struct sl_accumulator *accumulator, uint32_t segment);

/* The word that ends work on a segment early: 0, or -errno. Dispatcher, once: V1 of job.h. Any thread that has a piece of it: V2.
 */
void sl_accumulator_give_up(struct sl_accumulator *accumulator, const struct sl_work *work, int32_t verdict);
const _Atomic int32_t *sl_accumulator_verdict(const struct sl_accumulator *accumulator, uint32_t segment);

/* Of the words of all segments, which lie in it by their ids; the accumulator's. */
int sl_accumulator_verdicts_fd(const struct sl_accumulator *accumulator);
uint64_t sl_accumulator_verdicts_bytes(const struct sl_accumulator *accumulator);

/* Bytes of staging that a segment of @samples needs; 0 when nothing is staged. */
uint64_t sl_accumulator_staging_bytes(const struct sl_assembly *assembly, uint32_t samples);

/*
 * Dispatcher: samples [first, first + samples) of the segment become the job's next piece, for member @member, with the places of
 * their inputs and outputs. The job has room, and its n_inputs and n_outputs are those of the member.
 */
void sl_accumulator_add_piece(struct sl_accumulator *accumulator, struct sl_job *job, uint32_t segment, uint32_t member,
        uint32_t first, uint32_t samples);

/* Where its predictions are, and are to go. */
struct sl_staged_segment sl_accumulator_staged(const struct sl_accumulator *accumulator, uint32_t segment);

/*
 * Dispatcher: all that was asked for is answered, and the next member is asked for @samples more; where members may be missing.
 * Return: which one.
 */
uint32_t sl_accumulator_ask(struct sl_accumulator *accumulator, uint32_t segment, uint32_t samples);

/* Dispatcher: all members have answered, and the combiner is asked (assembly.h, is_stacked), with the samples of the segment. */
void sl_accumulator_stack(struct sl_accumulator *accumulator, uint32_t segment);

/* Dispatcher: as sl_accumulator_ask(), but nobody is asked any more: the segment has ended with those who have answered. */
void sl_accumulator_end(struct sl_accumulator *accumulator, uint32_t segment);

/* Dispatcher: no member's prediction of it has been delivered. */
static inline bool sl_accumulator_is_untouched(const struct sl_segment *segment)
{
        return atomic_load_explicit(&segment->missing, memory_order_relaxed) == segment->expected;
}

/* Dispatcher: where the result of the piece's samples is to stand, that of its first. */
struct sl_place sl_accumulator_result(const struct sl_accumulator *accumulator, const struct sl_piece *piece, uint32_t output);

/*
 * Sender, before it delivers the piece: its process has combined the segment. Member 0's pieces come with the result, which stands
 * in the client's outputs now; those of others with nothing.
 */
void sl_accumulator_note_combined(struct sl_accumulator *accumulator, const struct sl_piece *piece);

/* Sender, before it delivers the piece: its predictions are there. Nothing where no member may be missing. */
void sl_accumulator_note(struct sl_accumulator *accumulator, const struct sl_piece *piece);

/*
 * Sender (P1, P2): predictions of @samples samples by one member are in their places, or @status says why there are none.
 * Return: 0: others are missing; 1: these were the last, and the result stands in the client's outputs, unless a piece failed
 * or the request has been given up, or `open` or `lacks` says otherwise; -ETIME: the last, but the deadline has passed and nothing
 * was combined; -EIO: a process has combined it, and ended before it had answered everything: a part of the predictions is nowhere.
 */
int sl_accumulator_deliver(struct sl_accumulator *accumulator, uint32_t segment, uint32_t samples, int status);

/* Sender (P3), behind its answer: are all predictions there? Of a segment that has been closed since it says something of another.
 */
bool sl_accumulator_delivered(const struct sl_accumulator *accumulator, uint32_t segment);

/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off
 *
 * Segments of ensembles whose members are all on one GPU: what members make of a segment stays there until all of it is there, so that
 * it can be combined where it is (gpu_accumulator.h does so). A piece is held from the moment at which its job is taken:
 *
 *     piece     EXPECTED --made--> THERE --its copies are queued--> LEAVING --they have ended--> SETTLED
 *                   +--it failed, or was given up: its segment goes apart--------------------------^
 *
 *     segment   GATHERING --all samples of all members are THERE--> WHOLE: it leaves as one, the result in the places of member 0
 *                   +--a member is late, fails, or its place is needed--> APART: each piece leaves by itself, as without all this
 *
 * A member is late that has not come HOLD_NS after the first prediction was there; one that has come is waited for, as it is being
 * computed. So nothing here waits for longer than that on what is not being computed. Members come and are answered as pieces of
 * jobs that nobody has answered, so that what is here when the process dies is lost as any piece is.
 *
 * Sources: Pochelu, Petiton, Conche (2022), section II.C.2, whose accumulator this is for one device.
 *
 * Pure; one thread.
 */
/* clang-format on */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_arena;

#define SL_HELD_SEGMENTS_MAX 128
#define SL_HELD_OUTPUTS_MAX  8

/* How long a member may be late. */
#define SL_HELD_NS (10 * 1000 * 1000ull)

enum sl_held_state { SL_HELD_EXPECTED, SL_HELD_THERE, SL_HELD_LEAVING, SL_HELD_SETTLED };
enum sl_segment_state { SL_SEGMENT_GATHERING, SL_SEGMENT_WHOLE, SL_SEGMENT_APART };

struct sl_held_segment;

/* Of whoever has the job. Zeros: it is not held. */
struct sl_held_piece {
        struct sl_held_segment *segment; /* NULL: it is not held */
        struct sl_held_piece *next;      /* of the segment's */
        enum sl_held_state state;
        uint32_t member, first, samples;
        float weight;
        void *const *outputs; /* [n_outputs]: where it goes when it leaves */
        uint64_t ticket;      /* LEAVING: what is queued for it */
        bool combined;        /* SETTLED: the result is in the places of member 0 */
};

/* What is the same for all pieces of a segment. */
struct sl_held_shape {
        uint32_t segment; /* its id */
        uint32_t n_members, samples;
        uint32_t rule;
        uint32_t n_outputs;
        struct {
                uint64_t sample_bytes; /* of all of it, where it has no batch */
                uint32_t classes;
                bool batched;
        } outputs[SL_HELD_OUTPUTS_MAX];
};

struct sl_held_segment {
        struct sl_held_shape shape;
        enum sl_segment_state state;
        uint32_t come, there; /* samples of all members: of pieces that have come, and whose predictions are there */
        uint64_t since_ns;    /* the first prediction was there; 0: none is */
        bool has_room;
        uint64_t offset, member_bytes; /* of its room, in which members lie one behind the other, and the result behind them */
        struct sl_held_piece *pieces;  /* NULL: the record is free */
};

struct sl_held_segments {
        struct sl_arena *room;
        uint32_t n_used; /* records [0, n_used) may be in use */
        struct sl_held_segment at[SL_HELD_SEGMENTS_MAX];
};

/* @room_bytes: whole pages, on the device. Return: 0; -ENOMEM; -EINVAL. */
int sl_held_segments_init(struct sl_held_segments *held, uint64_t room_bytes);
void sl_held_segments_deinit(struct sl_held_segments *held);

/*
 * A piece has come, whose member, first, samples, weight and outputs are filled. False: it is not held, as there is no room, the
 * segment is apart, or it is of an ensemble that is not for that; its segment is apart then, if there is one.
 */
bool sl_held_come(struct sl_held_segments *held, const struct sl_held_shape *shape, struct sl_held_piece *piece);

/* Its prediction is there; or will never be, and the others leave by themselves. */
void sl_held_made(struct sl_held_piece *piece, uint64_t now_ns);
void sl_held_failed(struct sl_held_piece *piece);

/* They leave by themselves from now on, unless all of them have begun to leave as one. */
void sl_held_let_go(struct sl_held_segment *segment);

/* It has been answered, or its job is gone: the last one frees the segment. */
void sl_held_drop(struct sl_held_segments *held, struct sl_held_piece *piece);

/* Looks how late its members are. Return: is all of it there, so that it is to leave as one? */
bool sl_held_look(struct sl_held_segment *segment, uint64_t now_ns);

/* A piece that waits for the others. */
static inline bool sl_held_waits(const struct sl_held_piece *piece)
{
        return piece->segment && piece->state == SL_HELD_THERE && piece->segment->state == SL_SEGMENT_GATHERING;
}

/* Where in the room a member's output is; of member n_members: the result's. That of the segment's first sample. */
uint64_t sl_held_place(const struct sl_held_segment *segment, uint32_t member, uint32_t output);

/* Bytes of so many samples, and where sample @first of an output is behind its first. */
uint64_t sl_held_bytes(const struct sl_held_shape *shape, uint32_t output, uint32_t samples);
uint64_t sl_held_skip(const struct sl_held_shape *shape, uint32_t output, uint32_t first);

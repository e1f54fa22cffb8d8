/* SPDX-License-Identifier: Apache-2.0 */
#include "held_segments.h"

#include "arena.h"
#include "base/assert.h"
#include "base/bytes.h"

#include <errno.h>
#include <string.h>

/* Where an output begins. */
#define ALIGNMENT 256

int sl_held_segments_init(struct sl_held_segments *held, uint64_t room_bytes)
{
        memset(held, 0, sizeof(*held));
        return sl_arena_new(room_bytes, &held->room);
}

void sl_held_segments_deinit(struct sl_held_segments *held)
{
        held->room = sl_arena_free(held->room);
}

uint64_t sl_held_bytes(const struct sl_held_shape *shape, uint32_t output, uint32_t samples)
{
        return shape->outputs[output].sample_bytes * (shape->outputs[output].batched ? samples : 1);
}

uint64_t sl_held_skip(const struct sl_held_shape *shape, uint32_t output, uint32_t first)
{
        return shape->outputs[output].batched ? shape->outputs[output].sample_bytes * first : 0;
}

static uint64_t output_room(const struct sl_held_shape *shape, uint32_t output)
{
        return sl_align_up(sl_held_bytes(shape, output, shape->samples), ALIGNMENT);
}

static uint64_t member_room(const struct sl_held_shape *shape)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < shape->n_outputs; i++)
                bytes += output_room(shape, i);
        return bytes;
}

uint64_t sl_held_place(const struct sl_held_segment *segment, uint32_t member, uint32_t output)
{
        uint64_t offset = segment->offset + member * segment->member_bytes;

        for (uint32_t i = 0; i < output; i++)
                offset += output_room(&segment->shape, i);
        return offset;
}

/* Of that id, else a free record, else NULL. */
static struct sl_held_segment *find_record(struct sl_held_segments *held, uint32_t id)
{
        struct sl_held_segment *unused = NULL;

        for (uint32_t i = 0; i < held->n_used; i++) {
                if (held->at[i].pieces && held->at[i].shape.segment == id)
                        return &held->at[i];
                if (!held->at[i].pieces && !unused)
                        unused = &held->at[i];
        }
        if (!unused && held->n_used < SL_HELD_SEGMENTS_MAX)
                unused = &held->at[held->n_used++];
        return unused;
}

/* One that is apart from the beginning has a record all the same, so that no piece of it waits for the others. */
static void open_record(struct sl_held_segments *held, struct sl_held_segment *segment, const struct sl_held_shape *shape)
{
        uint64_t bytes = member_room(shape), all;

        *segment = (struct sl_held_segment){.shape = *shape, .member_bytes = bytes};
        segment->has_room =
                !sl_mul_overflows(bytes, shape->n_members + 1ull, &all) && sl_arena_take(held->room, all, &segment->offset) == 0;
        if (!segment->has_room)
                segment->state = SL_SEGMENT_APART;
}

bool sl_held_come(struct sl_held_segments *held, const struct sl_held_shape *shape, struct sl_held_piece *piece)
{
        struct sl_held_segment *segment = find_record(held, shape->segment);

        if (!segment)
                return false;
        if (!segment->pieces)
                open_record(held, segment, shape);
        if (segment->state != SL_SEGMENT_GATHERING && segment->pieces)
                return false;
        segment->come += piece->samples;
        SL_ASSERT(segment->come <= segment->shape.samples * segment->shape.n_members);
        piece->segment = segment;
        piece->next = segment->pieces;
        segment->pieces = piece;
        piece->combined = false;
        piece->state = segment->has_room ? SL_HELD_EXPECTED : SL_HELD_SETTLED;
        return segment->has_room;
}

void sl_held_made(struct sl_held_piece *piece, uint64_t now_ns)
{
        struct sl_held_segment *segment = piece->segment;

        SL_ASSERT(piece->state == SL_HELD_EXPECTED);
        piece->state = SL_HELD_THERE;
        segment->there += piece->samples;
        if (!segment->since_ns)
                segment->since_ns = now_ns;
}

void sl_held_let_go(struct sl_held_segment *segment)
{
        if (segment->state == SL_SEGMENT_GATHERING)
                segment->state = SL_SEGMENT_APART;
}

void sl_held_failed(struct sl_held_piece *piece)
{
        SL_ASSERT(piece->state == SL_HELD_EXPECTED || sl_held_waits(piece));
        sl_held_let_go(piece->segment);
        piece->state = SL_HELD_SETTLED;
}

bool sl_held_look(struct sl_held_segment *segment, uint64_t now_ns)
{
        uint32_t all = segment->shape.samples * segment->shape.n_members;

        if (segment->state != SL_SEGMENT_GATHERING)
                return false;
        if (segment->there == all)
                return true;
        if (segment->since_ns && segment->come < all && now_ns - segment->since_ns > SL_HELD_NS)
                sl_held_let_go(segment);
        return false;
}

void sl_held_drop(struct sl_held_segments *held, struct sl_held_piece *piece)
{
        struct sl_held_segment *segment = piece->segment;
        struct sl_held_piece **at = &segment->pieces;

        while (*at != piece)
                at = &(*at)->next;
        *at = piece->next;
        piece->segment = NULL;
        sl_held_let_go(segment);
        if (!segment->pieces && segment->has_room)
                (void)sl_arena_give(held->room, segment->offset);
}

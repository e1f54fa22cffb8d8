/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a node, for who computes it together with others. A kernel says into how many units its output can be cut along an
 * axis; a part is some neighbouring units, and parts that do not overlap may be computed at once, each with scratch of its own. All
 * of them together make the bits that the whole launch makes.
 *
 * Some kernels go in stages: the parts of one may be computed at once, over one scratch that all of them share, and see what all
 * parts of the stages before have made. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum sl_axis {
        SL_AXIS_NONE,
        SL_AXIS_ROWS,    /* what lies one behind the other: samples, scanlines, rows of a product, tiles, heads, elements */
        SL_AXIS_COLUMNS, /* what lies side by side in each row: channels, columns of a product */
        SL_AXIS_COUNT,
};

struct sl_part {
        uint32_t axis; /* enum sl_axis, but NONE */
        int64_t first, end;
        int64_t stage; /* from 0 on */
};

/* Part @index of @count of so many units; parts differ by one unit at most. */
static inline struct sl_part sl_part_of(uint32_t axis, int64_t units, uint32_t index, uint32_t count)
{
        return (struct sl_part){.axis = axis, .first = units * index / count, .end = units * (index + 1) / count};
}

/*
 * Where a part touches an operand: @runs runs of @bytes bytes, the first from byte @first on, each @pitch bytes behind the one
 * before. It may say more than what is read or written, never less.
 */
struct sl_reach {
        int64_t first, bytes, pitch, runs;
};

/* Operands are numbered by inputs; output i is this and i. */
#define SL_REACH_OUTPUT 0x10000u

/* Do two parts touch the same byte of one buffer, in which the operands begin at @a_at and @b_at? True where it is hard to tell. */
bool sl_reaches_meet(const struct sl_reach *a, int64_t a_at, const struct sl_reach *b, int64_t b_at);

/* The units along @axis that @part has, of @units; NULL, and a part along another axis, has all of them. */
static inline struct sl_part sl_part_along(const struct sl_part *part, uint32_t axis, int64_t units)
{
        return part && part->axis == axis ? *part : (struct sl_part){.axis = axis, .end = units};
}

/*
 * What a node took, by axis: the longest of so many parts along it, which ran one after the other on one core; all of it with NONE.
 * Infinite: it was not timed so.
 */
struct sl_part_times {
        uint32_t members; /* 0: nothing was timed */
        double seconds[SL_AXIS_COUNT];
};

/*
 * How a node is computed by a team: so many of its members take part, from @first on, each a part along the axis. NONE: one member
 * computes all of it; with 1 member it is @first, so that others may compute other nodes meanwhile. A plan says it for these sizes
 * of teams; one of another size works as the next smaller one.
 */
#define SL_TEAM_SIZES(X) X(2) X(3) X(4) X(5) X(6) X(8) X(12) X(16) X(24) X(32) X(48) X(64)
enum {
#define X(size) SL_TEAM_SIZE_##size,
        SL_TEAM_SIZES(X)
#undef X
                SL_TEAM_SIZE_COUNT,
};

struct sl_split {
        uint8_t axis, members; /* enum sl_axis; with NONE 0 or 1 */
        uint8_t first;         /* of those members; 0 of 0 */
        uint8_t begins;        /* 1: it waits for all before it, so that those behind it can be computed beside it */
};

/* About how long teams take for a node, each as its split says; 0: nobody knows. */
struct sl_split_seconds {
        double whole, team[SL_TEAM_SIZE_COUNT];
};

static inline uint32_t sl_team_size_at(uint32_t index)
{
        static const uint8_t sizes[SL_TEAM_SIZE_COUNT] = {
#define X(size) size,
                SL_TEAM_SIZES(X)
#undef X
        };

        return sizes[index];
}

/* What member @member computes of a node of so many units. False: nothing; with NONE it is all of it, and the part is empty. */
static inline bool sl_split_part(struct sl_split split, int64_t units, uint32_t member, struct sl_part *ret_part)
{
        uint32_t members = split.members ? split.members : 1;

        if (member < split.first || member >= split.first + members)
                return false;
        *ret_part = (struct sl_part){.axis = SL_AXIS_NONE};
        if (split.axis != SL_AXIS_NONE)
                *ret_part = sl_part_of(split.axis, units, member - split.first, split.members);
        return true;
}

/* What @splits, one for each of those sizes, say of a team of @members. */
static inline struct sl_split sl_split_for(const struct sl_split splits[SL_TEAM_SIZE_COUNT], uint32_t members)
{
        struct sl_split split = {SL_AXIS_NONE, 0, 0, 0};

        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT && sl_team_size_at(i) <= members; i++)
                split = splits[i];
        return split;
}

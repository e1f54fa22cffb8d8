/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary embedding, spelled out as products and sums, for the operators of com.microsoft that have it. Private to this folder; one
 * owner thread.
 */
#pragma once

#include "import/expand.h"

struct sl_rotary {
        uint32_t cosines, sines; /* of the places of the rows; broadcast to [batch, ., ., half of what is turned] */
        bool interleaved;        /* neighbours are turned together, not the halves */
};

/* Rows @places of the two caches, with a dimension for the heads at @axis of them. */
void sl_rotary_take(
        struct sl_expansion *x, uint32_t cosines, uint32_t sines, uint32_t places, int64_t axis, struct sl_rotary *rotary);

/* The first elements of the last of four dimensions, twice as many as a row of the caches has, turned. */
uint32_t sl_rotary_turn(struct sl_expansion *x, const struct sl_rotary *rotary, uint32_t value);

/* The integers [@first, @first + @n). */
uint32_t sl_rotary_places(struct sl_expansion *x, int64_t first, int64_t n);
